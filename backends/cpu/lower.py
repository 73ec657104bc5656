"""From a kernel to LLVM IR.

Every operation on given types is one internal function, shared by all kernels of a module and inlined where the
optimiser runs. A kernel is a function ``void (i64 n, input pointers, output pointers)``: rank-0 values are computed on
entry, arrays in one loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Reg
from halfulp.backends.common.graph import Graph
from halfulp.backends.common.types import Scalar
from halfulp.backends.cpu.functions import CpuLowering
from halfulp.backends.cpu.ir import Code
from halfulp.oracle.kernel import Kernel

VECTORISE_LIMIT = 200
"""Instructions of a loop body beyond which it is not vectorised: that would cost seconds and gain nothing."""


_WIDTHS = re.compile(r"\b(?:i(\d+)|(double))\b")
_LOWERING = CpuLowering()


@dataclass(frozen=True)
class Function:
    """The internal function of one operation.

    Attributes:
        name, result: as LLVM writes them.
        text: its definition, without attributes.
        declarations: intrinsics that it calls.
        size: number of instructions.
        widest: bits of the widest value in it.
    """

    name: str
    result: str
    text: str
    declarations: frozenset[str]
    size: int
    widest: int


@cache
def function(op: str, operands: tuple[Scalar, ...], result: Scalar, mode: Mode = "") -> Function:
    """The function of ``op`` on ``operands``. An approximate operation is a function of its own (``intent:5.1-j``)."""
    code = Code()
    args = [Reg(scalar.register, f"%{'abc'[i]}") for i, scalar in enumerate(operands)]
    value = _LOWERING.operation(code, op, operands, result, mode, args)
    name = "@" + ".".join((op, *(scalar.name for scalar in operands), result.name, *([mode] if mode else [])))
    header = f"define internal {result.register} {name}({', '.join(map(str, args))}) #0 {{"
    text = "\n".join((header, *code.lines, f"  ret {value}", "}"))
    widest = max(int(width or 64) for width, _ in _WIDTHS.findall(text))
    return Function(name, result.register, text, frozenset(code.declarations), len(code.lines), widest)


class Module:
    """The text of one LLVM module, kernel by kernel.

    Args:
        inline: mark the functions of the operations as to be inlined.
        fuse: contract products into sums of f32 and f64 (``intent:5.5-a``).
    """

    def __init__(self, *, inline: bool, fuse: bool) -> None:
        self.inline = inline
        self.fuse = fuse
        self.functions: dict[str, Function] = {}
        self.kernels: list[str] = []

    def add(self, kernel: Kernel, name: str) -> None:
        """Add a checked kernel as the external function ``name``."""
        self.kernels.append(_KernelCode(self, kernel).define(name))

    def __str__(self) -> str:
        declarations = sorted({line for entry in self.functions.values() for line in entry.declarations})
        attributes = "attributes #0 = { nounwind " + ("alwaysinline }" if self.inline else "noinline }")
        bodies = [entry.text for entry in self.functions.values()]
        return "\n".join((*declarations, *bodies, *self.kernels, attributes, _LOOP_METADATA, ""))


_LOOP_METADATA = """!1 = distinct !{!1, !{!"llvm.loop.vectorize.width", i32 1}}
!4 = distinct !{!4, !{!"llvm.loop.vectorize.width", i32 4}}
!8 = distinct !{!8, !{!"llvm.loop.vectorize.width", i32 8}}"""


class _KernelCode(Graph[Code]):
    """One kernel as a function. Arguments are ``%p0``, ``%p1``, ...: inputs, then outputs."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        super().__init__(kernel, Code("s"), Code("v"), fuse=module.fuse)
        self.module = module
        self.size = 0
        self.widest = 0

    def define(self, name: str) -> str:
        self.build()
        inputs, outputs = len(self.kernel.input_types), len(self.kernel.outputs)
        parameters = [f"ptr noalias readonly %p{i}" for i in range(inputs)]
        parameters += [f"ptr noalias writeonly %p{inputs + i}" for i in range(outputs)]
        header = f"define void @{name}({', '.join(('i64 %n', *parameters))}) nounwind {{"
        return "\n".join((header, "entry:", *self.entry.lines, *self._loop(), "  ret void", "}"))

    def _loop(self) -> list[str]:
        if not self.body.lines:
            return []
        hint = f", !llvm.loop !{self._lanes()}" if self._lanes() else ""
        return [
            "  %empty = icmp eq i64 %n, 0",
            "  br i1 %empty, label %done, label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *self.body.lines,
            "  %next = add nuw nsw i64 %i, 1",
            "  %more = icmp ult i64 %next, %n",
            f"  br i1 %more, label %loop, label %done{hint}",
            "done:",
        ]

    def _lanes(self) -> int:
        """The number of lanes to vectorise for, 0 to leave it to LLVM.

        LLVM sizes a vector by the memory type. A loop over bytes that computes in 32 bits would get 32 lanes, four
        registers for each value, which compiles slowly and spills.
        """
        if self.size > VECTORISE_LIMIT:
            return 1
        if self.widest <= max(dtype.width for dtype in self.types):
            return 0
        return {32: 8, 64: 4}.get(self.widest, 0)

    def _address(self, code: Code, dtype: Scalar, pointer: int) -> str:
        if code is self.entry:
            return f"%p{pointer}"
        return code.emit("ptr", f"getelementptr inbounds {dtype.memory}, ptr %p{pointer}, i64 %i").name

    def load(self, code: Code, dtype: Scalar, pointer: int) -> Reg:
        """The caller's arrays need not be aligned."""
        address = self._address(code, dtype, pointer)
        loaded = code.emit(dtype.memory, f"load {dtype.memory}, ptr {address}, align 1")
        return code.icmp("ne", loaded, 0) if dtype.is_bool else loaded

    def store(self, code: Code, dtype: Scalar, pointer: int, value: Reg) -> None:
        stored = code.convert("zext", value, dtype.memory)
        code.lines.append(f"  store {stored}, ptr {self._address(code, dtype, pointer)}, align {dtype.bytes}")

    def call(
        self, code: Code, op: str, operands: tuple[Scalar, ...], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        entry = function(op, operands, result, mode)
        self.module.functions.setdefault(entry.name, entry)
        self.size += entry.size
        self.widest = max(self.widest, entry.widest)
        return code.emit(entry.result, f"call {entry.result} {entry.name}({', '.join(map(str, args))})")
