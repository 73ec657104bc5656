"""From kernels to one CUDA C++ source.

Every operation on given types is one function, shared by all kernels of a source. A kernel is a function of the number
of elements, the input pointers and the output pointers: every thread computes the rank-0 values, and arrays in a loop
over the whole grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Reg
from halfulp.backends.common.graph import Graph
from halfulp.backends.common.lowering import Lowering
from halfulp.backends.common.types import SCALARS, Scalar
from halfulp.backends.cuda.cpp import PRELUDE, TYPES, Code
from halfulp.oracle.kernel import Kernel

HEADER = (
    PRELUDE
    + """\
#define D static __device__ %s
#define K extern "C" __global__ void
#define T u64 t=blockIdx.x*(u64)blockDim.x+threadIdx.x;
#define L for(u64 i=t;i<n;i+=gridDim.x*(u64)blockDim.x)
"""
)


def _memory(dtype: str) -> str:
    """The C++ type of an array element."""
    return TYPES[SCALARS[dtype].memory]


@dataclass(frozen=True)
class Function:
    """The function of one operation: its name and its definition."""

    name: str
    text: str


class Functions:
    """The functions of operations, as one lowering makes them; each is written once."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self._made: dict[tuple[str, tuple[Scalar, ...], Scalar, Mode], Function] = {}

    def get(self, op: str, operands: tuple[Scalar, ...], result: Scalar, mode: Mode) -> Function:
        """An approximate operation is a function of its own (``intent:5.1-j``)."""
        key = (op, operands, result, mode)
        if key not in self._made:
            code = Code()
            args = [Reg(scalar.register, "abc"[i]) for i, scalar in enumerate(operands)]
            value = self.lowering.operation(code, op, operands, result, mode, args)
            name = "_".join((op, *(scalar.name for scalar in operands), result.name, *([mode] if mode else [])))
            parameters = ",".join(f"{TYPES[arg.type]} {arg.name}" for arg in args)
            head = f"D {TYPES[result.register]} {name}({parameters})"
            self._made[key] = Function(name, f"{head}{{{''.join(code.lines)}return {value.name};}}")
        return self._made[key]


class Source:
    """The text of one source, kernel by kernel.

    Args:
        inline: the functions of the operations are to be inlined; otherwise they are not.
        fuse: contract products into sums of f32 and f64 (``intent:5.5-a``).
    """

    def __init__(self, functions: Functions, *, inline: bool, fuse: bool) -> None:
        self.functions = functions
        self.inline = inline
        self.fuse = fuse
        self.used: dict[str, str] = {}
        self.kernels: list[str] = []

    def add(self, kernel: Kernel, name: str) -> None:
        """Add a checked kernel as ``name``."""
        self.kernels.append(_KernelCode(self, kernel).define(name))

    def __str__(self) -> str:
        header = HEADER % ("__forceinline__" if self.inline else "__noinline__")
        return "\n".join((header, *self.used.values(), *self.kernels, ""))


class _KernelCode(Graph[Code]):
    """One kernel as a ``__global__`` function. Arguments are ``p0``, ``p1``, ...: inputs, then outputs."""

    def __init__(self, source: Source, kernel: Kernel) -> None:
        super().__init__(kernel, Code("s"), Code("v"), fuse=source.fuse)
        self.source = source

    def define(self, name: str) -> str:
        self.build()
        kernel = self.kernel
        types = [_memory(type_.dtype) for type_ in (*kernel.input_types, *kernel.output_types)]
        inputs = len(kernel.input_types)
        parameters = [f"{'const ' if i < inputs else ''}{type_}*__restrict__ p{i}" for i, type_ in enumerate(types)]
        loop = f"L{{{''.join(self.body.lines)}}}" if self.body.lines else ""
        return f"K {name}({','.join(('u64 n', *parameters))}){{T {''.join(self.entry.lines)}{loop}}}"

    def load(self, code: Code, dtype: Scalar, pointer: int) -> Reg:
        element = f"*p{pointer}" if code is self.entry else f"p{pointer}[i]"
        return code.emit(dtype.register, f"{element}!=0" if dtype.is_bool else element)

    def store(self, code: Code, dtype: Scalar, pointer: int, value: Reg) -> None:
        """A rank-0 output is written by one thread."""
        code.lines.append(f"if(!t)*p{pointer}={value.name};" if code is self.entry else f"p{pointer}[i]={value.name};")

    def call(
        self, code: Code, op: str, operands: tuple[Scalar, ...], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        function = self.source.functions.get(op, operands, result, mode)
        self.source.used.setdefault(function.name, function.text)
        return code.emit(result.register, f"{function.name}({','.join(arg.name for arg in args)})")


class _ScalarCode(Graph[Code]):
    """One kernel as a ``__device__`` function of one element. All operations stand in it."""

    def __init__(self, lowering: Lowering, kernel: Kernel, *, fuse: bool) -> None:
        code = Code()
        super().__init__(kernel, code, code, fuse=fuse)
        self.lowering = lowering
        self.results: list[str] = []

    def load(self, code: Code, dtype: Scalar, pointer: int) -> Reg:
        return code.emit("i1", f"p{pointer}!=0") if dtype.is_bool else Reg(dtype.register, f"p{pointer}")

    def store(self, code: Code, dtype: Scalar, pointer: int, value: Reg) -> None:
        self.results.append(value.name)

    def call(
        self, code: Code, op: str, operands: tuple[Scalar, ...], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        return self.lowering.operation(code, op, operands, result, mode, args)


def device_function(lowering: Lowering, kernel: Kernel, name: str, *, fuse: bool) -> str:
    """A checked kernel of one output as ``static __device__ OUT name(IN p0, IN p1, ...)``, on codes.

    Raises:
        ValueError: the kernel has several outputs.
    """
    if len(kernel.outputs) != 1:
        raise ValueError(f"a kernel of {len(kernel.outputs)} outputs is no function")
    code = _ScalarCode(lowering, kernel, fuse=fuse)
    code.build()
    types = [_memory(type_.dtype) for type_ in kernel.input_types]
    parameters = ",".join(f"{type_} p{i}" for i, type_ in enumerate(types))
    head = f"static __device__ __forceinline__ {_memory(kernel.output_types[0].dtype)} {name}({parameters})"
    return f"{PRELUDE}{head}{{{''.join(code.body.lines)}return {code.results[0]};}}\n"
