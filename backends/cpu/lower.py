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

from halfulp.backends.cpu import lower_cast, lower_float, lower_int, lower_math, lower_random
from halfulp.backends.cpu.check import Mode, mode_of
from halfulp.backends.cpu.ir import Code, Reg, constant
from halfulp.backends.cpu.types import SCALARS, Scalar
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel

VECTORISE_LIMIT = 200
"""Instructions of a loop body beyond which it is not vectorised: that would cost seconds and gain nothing."""


_WIDTHS = re.compile(r"\b(?:i(\d+)|(double))\b")


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
    first = operands[0]
    if op in ("cast", "cast_saturate"):
        value = lower_cast.lower(code, args[0], first, result, saturate=op == "cast_saturate")
    elif op == "bitcast":
        value = args[0]
    elif op == "select":
        value = code.select(args[0], args[1], args[2])
    elif op == "fdiv":
        if mode:
            value = lower_math.divide_approximately(code, args[0], args[1], mode)
        else:
            value = lower_float.lower(code, "div", first, args)
    elif op in lower_math.FUNCTIONS:
        value = lower_math.lower(code, op, first, args[0], mode)
    elif op in lower_random.OPERATIONS:
        value = lower_random.lower(code, op, args[0], args[1])
    elif first.is_float:
        value = lower_float.lower(code, op, first, args)
    else:
        value = lower_int.lower(code, op, first, args)
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

    def call(self, code: Code, entry: Function, args: Sequence[Reg]) -> Reg:
        self.functions.setdefault(entry.name, entry)
        return code.emit(entry.result, f"call {entry.result} {entry.name}({', '.join(map(str, args))})")


_LOOP_METADATA = """!1 = distinct !{!1, !{!"llvm.loop.vectorize.width", i32 1}}
!4 = distinct !{!4, !{!"llvm.loop.vectorize.width", i32 4}}
!8 = distinct !{!8, !{!"llvm.loop.vectorize.width", i32 8}}"""


class _KernelCode:
    """One kernel as a function. Arguments are ``%p0``, ``%p1``, ...: inputs, then outputs."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module = module
        self.kernel = kernel
        self.types = [SCALARS[kernel.type_of(i).dtype] for i in range(len(kernel.values))]
        self.entry = Code("s")
        self.body = Code("v")
        self.size = 0
        self.widest = 0
        self.registers: list[Reg] = []

    def define(self, name: str) -> str:
        kernel = self.kernel
        pointers = 0
        for position, value in enumerate(kernel.values):
            code = self._code(position)
            match value:
                case Input():
                    self.registers.append(self._load(code, position, pointers))
                    pointers += 1
                case Constant():
                    self.registers.append(constant(self.types[position].register, value.bits))
                case Apply():
                    self.registers.append(self._apply(code, position, value))
        parameters = [f"ptr noalias readonly %p{i}" for i in range(pointers)]
        for output in kernel.outputs:
            self._store(self._code(output), output, pointers)
            parameters.append(f"ptr noalias writeonly %p{pointers}")
            pointers += 1
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

    def _code(self, position: int) -> Code:
        return self.body if self.kernel.type_of(position).dims else self.entry

    def _address(self, code: Code, position: int, pointer: int) -> str:
        if code is self.entry:
            return f"%p{pointer}"
        return code.emit("ptr", f"getelementptr inbounds {self.types[position].memory}, ptr %p{pointer}, i64 %i").name

    def _load(self, code: Code, position: int, pointer: int) -> Reg:
        """The caller's arrays need not be aligned."""
        dtype = self.types[position]
        address = self._address(code, position, pointer)
        loaded = code.emit(dtype.memory, f"load {dtype.memory}, ptr {address}, align 1")
        return code.icmp("ne", loaded, 0) if dtype.is_bool else loaded

    def _store(self, code: Code, position: int, pointer: int) -> None:
        dtype = self.types[position]
        value = code.convert("zext", self.registers[position], dtype.memory)
        code.lines.append(f"  store {value}, ptr {self._address(code, position, pointer)}, align {dtype.bytes}")

    def _apply(self, code: Code, position: int, value: Apply) -> Reg:
        fused = self._fused(value) if self.module.fuse else None
        op, args = fused or (value.op, value.args)
        operands = tuple(self.types[arg] for arg in args)
        result = self.types[position]
        entry = function(op, operands, result, mode_of(value.attrs))
        self.size += entry.size
        self.widest = max(self.widest, entry.widest)
        return self.module.call(code, entry, [self.registers[arg] for arg in args])

    def _fused(self, value: Apply) -> tuple[str, tuple[int, ...]] | None:
        """The multiply-add that a sum or difference with a product becomes.

        Each sum decides for itself, and the product stays what it is for its other users (``intent:5.5-c``).
        """
        if value.op not in ("add", "sub") or not SCALARS[value.dtype].native:
            return None
        left, right = value.args
        product = self.kernel.values[left]
        if isinstance(product, Apply) and product.op == "mul":
            return f"fused_{value.op}", (*product.args, right)
        product = self.kernel.values[right]
        if isinstance(product, Apply) and product.op == "mul":
            return "fused_add" if value.op == "add" else "fused_rsub", (*product.args, left)
        return None
