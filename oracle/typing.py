"""Typing of dialect *intent*, as far as elementwise programs show it (``intent:1``, ``3``, ``4``, ``5.2``).

Two levels. A `Kernel` states every dtype; `check` says whether the language accepts it. A `Source` is what an author
writes, with untyped literals; `elaborate` gives every value a dtype and returns a kernel, or refuses the program. The
rejection table is derived from the typing rules of the records and from the literal rules: nothing is listed by hand
that a rule already says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from halfulp.oracle.formats import CANONICAL, FLOATS, INTS, STORAGE_ONLY, Format, format_of
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Type, Value, one_node
from halfulp.oracle.ops import (
    OPERATIONS,
    Accepted,
    Refused,
    TypingAnswer,
    Undecided,
    attribute_misuse,
    combinations,
    typed,
)
from halfulp.oracle.ops.record import Attrs, Operation
from halfulp.oracle.ops.rules import element_type
from halfulp.oracle.rounding import round_exact, value_of
from halfulp.oracle.source import Call, Expression, Formed, Literal, Parameter, Source

FORMED: dict[type, str] = {bool: "bool", int: "i64", float: "f64"}
"""``intent:3-c``: the dtype of a literal where nothing expects one."""


# Kernels.


def check(kernel: Kernel) -> TypingAnswer:
    """Whether the language accepts a typed kernel.

    Returns:
        `Refused` if any value is refused, else `Undecided` if the text is silent about any, else `Accepted` with the
        dtype of the first output.
    """
    silent: Undecided | None = None
    for position, value in enumerate(kernel.values):
        verdict = _check_value(kernel, position, value)
        if isinstance(verdict, Refused):
            return verdict
        silent = silent or verdict
    return silent or Accepted(kernel.output_types[0].dtype)


def _check_value(kernel: Kernel, position: int, value: Value) -> Refused | Undecided | None:
    if not isinstance(value, Apply):
        return element_type(value.type.dtype)
    record = OPERATIONS.get(value.op)
    if record is None:
        return Undecided(f"{value.op} is no operation of this language's elementwise programs")
    if len(value.args) != record.arity:
        return Undecided(f"{value.op} takes {record.arity} operands")
    args = tuple(kernel.type_of(arg).dtype for arg in value.args)
    verdict = typed(record, args, value.dtype if record.converts else None, value.attrs)
    if isinstance(verdict, Refused):
        return verdict
    if verdict.result is not None and verdict.result != value.dtype:
        return Refused("intent:3-e", f"{value.op} of {', '.join(args)} is {verdict.result}, not {value.dtype}")
    return verdict if isinstance(verdict, Undecided) else None


# Literals.


def literal(value: bool | int | float, fmt: Format) -> int | Refused | Undecided:
    """The code of a Python literal where ``fmt`` is expected (``intent:3-a``, ``3-b``, ``reading:8``)."""
    if fmt.kind == "bool" or isinstance(value, bool):
        if fmt.kind == "bool" and isinstance(value, bool):
            return int(value)
        return Undecided(f"the text does not say whether {value!r} is representable in {fmt.name}")
    return _integer_literal(value, fmt) if fmt.is_int else _float_literal(value, fmt)


def _integer_literal(value: int | float, fmt: Format) -> int | Refused | Undecided:
    if isinstance(value, float):
        if math.isfinite(value) and value.is_integer():
            return Undecided(f"{value!r} is an integer written as a float")
        return Refused("intent:3-b", f"{value!r} is not representable in {fmt.name}")
    if not fmt.min_int <= value <= fmt.max_int:
        return Refused("intent:3-b", f"{value} is outside {fmt.name}'s [{fmt.min_int}, {fmt.max_int}]")
    return value % fmt.code_count


def _float_literal(value: int | float, fmt: Format) -> int | Refused | Undecided:
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return fmt.nan_bits
        if not fmt.infinity:
            return Undecided(f"{fmt.name} has no infinity")
        return fmt.infinity_bits | (fmt.sign_mask if value < 0 else 0)
    exact = Fraction(value)
    negative_zero = isinstance(value, float) and value == 0 and math.copysign(1, value) < 0
    try:
        code = round_exact(fmt, exact, overflow="illegal", negative_zero=negative_zero)
    except OverflowError:
        return Refused("intent:3-b", f"{value!r} is beyond the range of {fmt.name}")
    largest = value_of(fmt, fmt.max_finite_bits)
    assert isinstance(largest, Fraction)
    if abs(exact) > largest:
        return Undecided(f"{value!r} lies between {fmt.name}'s largest number and its rounding threshold")
    if isinstance(value, int) and value_of(fmt, code) != exact:
        return Undecided(f"{fmt.name} cannot hold {value} exactly")
    return code


# Elaboration.


class _Stop(Exception):
    def __init__(self, verdict: Refused | Undecided) -> None:
        self.verdict = verdict


class _Elaborator:
    def __init__(self, source: Source) -> None:
        self.values: list[Value] = []
        self.parameters: dict[str, int] = {}
        for parameter in source.parameters():
            self.parameters[parameter.name] = self._add(Input(Type(parameter.dtype)))

    def _add(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _dtype(self, position: int) -> str:
        value = self.values[position]
        return value.dtype if isinstance(value, Apply) else value.type.dtype

    def _literal(self, node: Literal, dtype: str) -> int:
        code = literal(node.value, format_of(dtype))
        if isinstance(code, (Refused, Undecided)):
            raise _Stop(code)
        return self._add(Constant(dtype, code))

    def expression(self, node: Expression, expected: str | None = None) -> int:
        match node:
            case Parameter():
                refused = element_type(node.dtype)
                if refused:
                    raise _Stop(refused)
                return self.parameters[node.name]
            case Literal():
                return self._literal(node, expected or FORMED[type(node.value)])
            case Formed():
                return self._literal(node.literal, FORMED[type(node.literal.value)])
            case Call():
                return self._call(node)

    def _call(self, node: Call) -> int:
        record = OPERATIONS.get(node.op)
        if record is None or len(node.args) != record.arity:
            raise _Stop(Undecided(f"{node.op} of {len(node.args)} operands is no elementwise operation"))
        if record.converts and isinstance(node.args[0], Literal):
            raise _Stop(Undecided(f"the text does not say which dtype the literal in {node.op} takes first"))
        # A literal takes the dtype of the operands beside it; a condition is not beside the branches it chooses.
        typed = {i: self.expression(arg) for i, arg in enumerate(node.args) if not isinstance(arg, Literal)}
        beside = [self._dtype(at) for i, at in typed.items() if not (record.name == "select" and i == 0)]
        if beside:
            dtypes = [self._dtype(typed[i]) if i in typed else beside[0] for i in range(record.arity)]
            if record.name == "select" and 0 not in typed:
                dtypes[0] = "bool"
            self._require(node, record, dtypes)  # a wrong operation is refused before its literals are looked at
        args = []
        for i, arg in enumerate(node.args):
            if i in typed:
                args.append(typed[i])
            elif record.name == "select" and i == 0:
                args.append(self.expression(arg, "bool"))
            else:
                args.append(self.expression(arg, beside[0] if beside else None))
        result = self._require(node, record, [self._dtype(arg) for arg in args])
        return self._add(Apply(node.op, tuple(args), result, node.attrs))

    def _require(self, node: Call, record: Operation, dtypes: list[str]) -> str:
        """The result dtype, where the language accepts the operand dtypes."""
        verdict = typed(record, tuple(dtypes), node.dtype, node.attrs)
        if not isinstance(verdict, Accepted):
            raise _Stop(self._because_formed(node, verdict))
        return verdict.result

    @staticmethod
    def _because_formed(node: Call, verdict: Refused | Undecided) -> Refused | Undecided:
        """``intent:3-d``: a mix whose cause is a literal formed earlier is a breach of that clause."""
        formed = any(isinstance(arg, Formed) for arg in node.args)
        if formed and isinstance(verdict, Refused) and verdict.clause == "intent:3-g":
            return Refused("intent:3-d", f"a formed value keeps its dtype: {verdict.reason}")
        return verdict


def elaborate(source: Source) -> Kernel | Refused | Undecided:
    """Give every value a dtype, or say why the language refuses the program or does not decide."""
    work = _Elaborator(source)
    try:
        result = work.expression(source.result)
        return Kernel(tuple(work.values), (result,))
    except _Stop as stop:
        return stop.verdict


# The tables.


def _well_typed(record: Operation, dtype: str) -> tuple[str, ...] | None:
    """Operands of ``dtype`` for an operation, where the language accepts them."""
    args = ("bool", dtype, dtype) if record.name == "select" else (dtype,) * record.arity
    return args if isinstance(record.typing(args, None, ()), Accepted) else None


def _refused_kernels() -> Iterator[tuple[Kernel, Refused]]:
    """All operand dtypes that a record's rule refuses, and its results of a wrong dtype."""
    for record in OPERATIONS.values():
        if record.build is not None:
            continue  # not a node of kernels: its nodes are in the table themselves
        for args, target in combinations(record):
            verdict = record.typing(args, target, ())
            if isinstance(verdict, Refused):
                yield one_node(record.name, args, target or args[-1]), verdict
            elif isinstance(verdict, Accepted) and not record.converts and len(set(args)) == 1:
                other = "f64" if verdict.result == "f32" else "f32"
                kernel = one_node(record.name, args, other)
                refused = check(kernel)
                assert isinstance(refused, Refused)
                yield kernel, refused
        for args, attrs in attribute_misuse(record):
            verdict = typed(record, args, None, attrs)
            if isinstance(verdict, Refused):
                yield one_node(record.name, args, args[-1], attrs=dict(attrs)), verdict
    for dtype in STORAGE_ONLY:
        for kernel in (one_node("add", (dtype, dtype), dtype), one_node("cast", (dtype,), "f32")):
            refused = check(kernel)
            assert isinstance(refused, Refused)
            yield kernel, refused


def _literals_for(fmt: Format) -> Iterator[bool | int | float]:
    """Literals at and beyond what a dtype can hold, and plain ones."""
    yield from (0, 1, True, 1.5, 0.1, 1.0, -0.0, 1e6, 1e400 if fmt.is_int else math.inf)
    if fmt.is_int:
        yield from (fmt.min_int, fmt.max_int, fmt.min_int - 1, fmt.max_int + 1, fmt.min_int - 0.5)
    else:
        largest = value_of(fmt, fmt.max_finite_bits)
        assert isinstance(largest, Fraction)
        for value in (
            largest,
            2 * largest,
            -2 * largest,
            largest * (1 + Fraction(1, 1 << (fmt.fraction_bits + 3))),
        ):
            yield int(value)
            if abs(value) <= Fraction(1.7e308):
                yield float(value)
        yield 2**fmt.precision + 1


def _attribute_choices(record: Operation) -> Iterator[tuple[tuple[str, ...], Attrs]]:
    """The meaningful attributes, with f32 operands, and the default written out."""
    for attrs in (*record.attrs, tuple((name, False) for name in sorted(record.attributes))):
        yield ("f32",) * record.arity, attrs


def _sources() -> Iterator[Source]:
    """Programs with literals: beside a typed operand, formed on their own, and in every place of an operation."""
    for dtype in (*INTS, *FLOATS):
        x = Parameter("x", dtype)
        for value in _literals_for(format_of(dtype)):
            for op in ("add", "lt"):
                yield Source(Call(op, (x, Literal(value))))
                yield Source(Call(op, (Literal(value), x)))
        for value in (True, 1, 1.5):
            yield Source(Call("add", (x, Formed(Literal(value)))))
            yield Source(Call("mul", (Formed(Literal(value)), x)))
    for dtype in CANONICAL:
        x, y, c = Parameter("x", dtype), Parameter("y", dtype), Parameter("c", "bool")
        for record in OPERATIONS.values():
            args = _well_typed(record, dtype)
            if args is not None and record.build is None:
                operands = (c, x, y) if record.name == "select" else (x, y)[: record.arity]
                yield Source(Call(record.name, operands))
        yield Source(Call("add", (Call("lt", (x, y)), x)))
        yield Source(Call("add", (Call("lt", (x, y)), Literal(1))))
        for other in CANONICAL:
            yield Source(Call("add", (Call("cast", (x,), other), Parameter("z", other))))
        yield Source(Call("select", (c, x, Literal(True if dtype == "bool" else 1))))
    for record in OPERATIONS.values():
        for args, attrs in (*attribute_misuse(record), *_attribute_choices(record)):
            if record.attributes:
                operands = tuple(Parameter(name, dtype) for name, dtype in zip("xy", args, strict=False))
                yield Source(Call(record.name, operands, attrs=attrs))


@cache
def _elaborated() -> tuple[tuple[Source, Kernel | Refused | Undecided], ...]:
    # By their text: as Python values 1, 1.0 and True are equal, as literals they are three programs.
    distinct = {str(source): source for source in _sources()}
    return tuple((source, elaborate(source)) for source in distinct.values())


@cache
def rejections() -> tuple[tuple[Kernel | Source, Refused], ...]:
    """Programs that the language refuses, each with the clause that does."""
    sources = ((source, found) for source, found in _elaborated() if isinstance(found, Refused))
    return (*_refused_kernels(), *sources)


@cache
def acceptances() -> tuple[tuple[Source, Kernel], ...]:
    """Source programs that the language accepts, each with the kernel it elaborates to."""
    return tuple((source, found) for source, found in _elaborated() if isinstance(found, Kernel))


__all__ = ["FORMED", "acceptances", "check", "elaborate", "literal", "rejections"]
