"""Put an eager array library on trial: one method per operation, and the graph is walked here.

A subclass says how its library's arrays are made from bit patterns and turned back (`EagerAdapter.from_bits`,
`EagerAdapter.to_bits`, `EagerAdapter.has_dtype`) and has one method for each operation that the library offers, named
as the operation is (with a trailing underscore where Python reserves the name: ``and_``, ``or_``, ``not_``). The
methods call the library as its user would and repair nothing.

An eager library has no compiler that could refuse a program. What it has is exceptions and promotion, and they are
read as follows. ``compile`` runs the program once on arrays of one element, each of value 1:

* An exception that the library uses for refusing operands (`EagerAdapter.refusals`) is `Rejected`.
* A missing method, a dtype that the library lacks, and any other exception are `Unsupported`, with the reason.
* A library that computes with operands of several dtypes instead of refusing them has *accepted* the program. Its
  result is converted to the dtype that the kernel states, by the library's own cast, and that a program was accepted
  which the language refuses is the finding.
* The same holds where operands of one dtype give a result of another kind (``/`` of two integers giving a float).
* Where operands of one dtype give a bool or another dtype of their own kind, and the kernel states neither (f8 operands
  with an f32 result; a kernel that calls the sum of two f32 an f64), a conversion would make up a program that no user
  of the library can write, since an eager program does not state the dtype of a result: `Unsupported`.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any, assert_never

import numpy as np

from halfulp.adapters.protocol import (
    Array,
    Compiled,
    Facts,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
)
from halfulp.oracle.formats import FORMATS, WIDE, Format, format_of
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel
from halfulp.oracle.source import Call, Expression, Formed, Literal, Parameter, Source

CONVERSIONS = frozenset({"cast", "cast_saturate", "bitcast"})
"""Operations whose method gets the target dtype after the operand."""


class _RefusedError(Exception):
    """The library refused an operation: its name and what the library said."""


class EagerAdapter:
    """Base class of adapters for eager array libraries.

    Attributes:
        name: short name for reports.
        opt_levels: an eager library has one.
        facts: see `Facts`.
        refusals: the exceptions by which the library refuses operands.
        literals: the library gives Python literals a dtype from their context, so that source programs can be run:
            methods then get Python numbers as operands too. Where False, source programs are `Unsupported`.
    """

    name: str = "eager"
    opt_levels: Sequence[int] = (0,)
    facts: Facts = Facts()
    refusals: tuple[type[Exception], ...] = (TypeError, ValueError, OverflowError)
    literals: bool = False

    def from_bits(self, dtype: str, bits: Array) -> Any:
        """The library's array of bit patterns ``bits`` (rank 0 or 1, read-only) read as ``dtype``.

        Raises:
            UnsupportedError: the library has no such dtype.
        """
        raise NotImplementedError

    def to_bits(self, dtype: str, value: Any) -> Array:
        """The bit patterns of ``value``, whose dtype is ``dtype``. May share memory with it."""
        raise NotImplementedError

    def has_dtype(self, value: Any, dtype: str) -> bool:
        """Whether the library's array ``value`` is of ``dtype``."""
        raise NotImplementedError

    def formed(self, value: bool | int | float) -> Any:
        """The library's array of a Python number that nothing gives a dtype. Needed with ``literals`` only."""
        raise NotImplementedError

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Compiled | Rejected | Unsupported]:
        """See `Adapter.compile` and the text of this module."""
        return [self._compile(program) for program in programs]

    def _compile(self, program: Kernel | Source) -> Compiled | Rejected | Unsupported:
        if isinstance(program, Source):
            if not self.literals:
                return Unsupported(f"{self.name} has no front end for source programs")
            dtypes = tuple(parameter.dtype for parameter in program.parameters())
            shapes: tuple[tuple[int, ...], ...] = ((1,),) * len(dtypes)
            expected = None
        else:
            dtypes = tuple(type_.dtype for type_ in program.input_types)
            shapes = tuple((1,) * len(type_.dims) for type_ in program.input_types)
            expected = [(1,) * len(type_.dims) for type_ in program.output_types]
        run = self._runner(program)
        try:
            outputs = run(*(_ones(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)))
        except _RefusedError as refused:
            return Rejected(f"{self.name}: {refused}")
        except (UnsupportedError, NotImplementedError) as error:
            return Unsupported(str(error) or f"{self.name} does not implement it")
        except Exception as error:
            return Unsupported(f"{self.name} failed on arrays of one element: {type(error).__name__}: {error}")
        for position, output in enumerate(outputs):
            if expected is not None and output.shape != expected[position]:
                return Unsupported(
                    f"{self.name} gives output {position} the shape {output.shape}, not {expected[position]}"
                )
        return run

    def _runner(self, program: Kernel | Source) -> Compiled:
        def run(*inputs: Array) -> list[Array]:
            if isinstance(program, Source):
                outputs = [self._run_source(program, inputs)]
            else:
                outputs = self._run_kernel(program, inputs)
            return _fresh(outputs, inputs)

        return run

    def _run_kernel(self, kernel: Kernel, inputs: Sequence[Array]) -> list[Array]:
        arriving = iter(inputs)
        values: list[Any] = []
        for position, value in enumerate(kernel.values):
            match value:
                case Input():
                    values.append(self.from_bits(value.type.dtype, next(arriving)))
                case Constant():
                    values.append(self.from_bits(value.dtype, _code(format_of(value.dtype), value.bits)))
                case Apply():
                    dtype = value.dtype if value.op in CONVERSIONS else None
                    result = self._apply(value.op, [values[arg] for arg in value.args], dtype, dict(value.attrs))
                    operands = [kernel.type_of(arg).dtype for arg in value.args]
                    values.append(self._in_dtype(value, operands, result))
                case _:
                    assert_never(value)
            if not self.has_dtype(values[-1], kernel.type_of(position).dtype):
                raise UnsupportedError(f"{self.name} has no {kernel.type_of(position).dtype}")
        return [self.to_bits(kernel.type_of(output).dtype, values[output]) for output in kernel.outputs]

    def _in_dtype(self, node: Apply, operands: Sequence[str], result: Any) -> Any:
        """The result in the node's dtype, as the text of this module says."""
        if self.has_dtype(result, node.dtype):
            return result
        actual = self._dtype_of(result)
        dtypes = set(operands[1:] if node.op == "select" else operands)
        if actual is not None and len(dtypes) == 1:
            operand = dtypes.pop()
            if format_of(actual).kind in ("bool", format_of(operand).kind):
                raise UnsupportedError(f"{node.op} of {operand} gives {actual} in {self.name}, never {node.dtype}")
        return self._apply("cast", [result], node.dtype, {})

    def _dtype_of(self, value: Any) -> str | None:
        names = [name for name in FORMATS if self.has_dtype(value, name)]
        return names[-1] if names else None  # The last: where index is the library's i64, i64 it is.

    def _run_source(self, source: Source, inputs: Sequence[Array]) -> Array:
        parameters = {p: self.from_bits(p.dtype, bits) for p, bits in zip(source.parameters(), inputs, strict=True)}

        def value_of(node: Expression) -> Any:
            match node:
                case Parameter():
                    return parameters[node]
                case Literal():
                    return node.value
                case Formed():
                    return self.formed(node.literal.value)
                case Call():
                    return self._apply(node.op, [value_of(arg) for arg in node.args], node.dtype, dict(node.attrs))
                case _:
                    assert_never(node)

        result = value_of(source.result)
        if isinstance(result, bool | int | float):
            result = self.formed(result)
        dtype = self._dtype_of(result)
        if dtype is None:
            raise UnsupportedError(f"{self.name} gives a result of no known format")
        return self.to_bits(dtype, result)

    def _apply(self, op: str, args: Sequence[Any], dtype: str | None, attrs: dict[str, Any]) -> Any:
        method = self._method(op)
        operands = [*args] if dtype is None else [*args, dtype]
        signature = inspect.signature(method)
        for attr in attrs:
            if attr not in signature.parameters:
                raise UnsupportedError(f"{op} takes no attribute {attr!r} in {self.name}")
        try:
            signature.bind(*operands, **attrs)
        except TypeError as error:
            raise _RefusedError(f"{op} with {len(args)} operands: {error}") from error
        try:
            return method(*operands, **attrs)
        except self.refusals as error:
            raise _RefusedError(f"{op}: {error}") from error

    def _method(self, op: str) -> Callable[..., Any]:
        name = f"{op}_" if keyword.iskeyword(op) else op
        reserved = name.startswith("_") or hasattr(EagerAdapter, name)
        method = None if reserved else getattr(self, name, None)
        if not callable(method):
            raise UnsupportedError(f"{self.name} does not offer {op}")
        return method  # type: ignore[no-any-return]


def _code(fmt: Format, bits: int) -> Array:
    """A rank-0, read-only array of one bit pattern."""
    wide = fmt.storage == WIDE
    array = np.array((bits & (1 << 64) - 1, bits >> 64) if wide else bits, fmt.storage)
    array.flags.writeable = False
    return array


def _ones(dtype: str, shape: tuple[int, ...]) -> Array:
    """A read-only array of the value 1."""
    fmt = format_of(dtype)
    array = np.full(shape, _code(fmt, fmt.bias << fmt.fraction_bits if fmt.is_float else 1))
    array.flags.writeable = False
    return array


def _fresh(outputs: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
    """The outputs, copied where they share memory with an input or with each other, or cannot be written to."""
    fresh: list[Array] = []
    for output in outputs:
        taken = any(np.may_share_memory(output, other) for other in (*inputs, *fresh))
        own = output.flags.c_contiguous and output.flags.writeable and not taken
        fresh.append(output if own else output.copy(order="C"))
    return fresh
