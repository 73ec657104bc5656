"""Wrong type checkers (``intent:1``, ``3``, ``4``, ``5.2-j``): what they let through and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from halfulp.oracle.formats import FLOATS, INTS, format_of
from halfulp.oracle.kernel import Apply, Input, Kernel, Type, rebuild
from halfulp.oracle.ops import Accepted, Refused
from halfulp.oracle.source import Call, Expression, Formed, Literal, Parameter, Source
from halfulp.oracle.suspects.record import CLASSIC, Suspect, TypingRule, intent
from halfulp.oracle.typing import check, elaborate

Program = Kernel | Source


def verdict(program: Program) -> Kernel | Accepted | Refused | None:
    """What the language says; None where it is silent."""
    answer = check(program) if isinstance(program, Kernel) else elaborate(program)
    return answer if isinstance(answer, (Kernel, Accepted, Refused)) else None


def refusing_clause(program: Program) -> str | None:
    answer = verdict(program)
    return answer.clause if isinstance(answer, Refused) else None


def is_accepted(program: Program) -> bool:
    return isinstance(verdict(program), (Kernel, Accepted))


# Walking programs.


def expressions(node: Expression) -> Iterator[Expression]:
    yield node
    if isinstance(node, Call):
        for arg in node.args:
            yield from expressions(arg)


def mapped(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with ``change`` applied to every node, leaves first."""
    if isinstance(node, Call):
        node = replace(node, args=tuple(mapped(arg, change) for arg in node.args))
    return change(node)


def literals(program: Program) -> list[bool | int | float]:
    if isinstance(program, Kernel):
        return []
    return [node.value for node in expressions(program.result) if isinstance(node, Literal)]


def dtypes(program: Program) -> set[str]:
    if isinstance(program, Kernel):
        return {value.dtype if isinstance(value, Apply) else value.type.dtype for value in program.values}
    return {node.dtype for node in expressions(program.result) if isinstance(node, Parameter)}


def renamed(program: Program, names: dict[str, str]) -> Program:
    """The program with some dtypes taken for others."""
    if isinstance(program, Source):

        def change(node: Expression) -> Expression:
            if isinstance(node, (Parameter, Call)) and node.dtype in names:
                return replace(node, dtype=names[node.dtype])
            return node

        return Source(mapped(program.result, change))

    def swap(position: int, value: object) -> Apply | Input | None:
        if isinstance(value, Apply) and value.dtype in names:
            return replace(value, dtype=names[value.dtype])
        if isinstance(value, Input) and value.type.dtype in names:
            return Input(Type(names[value.type.dtype], value.type.dims))
        return None

    return rebuild(program, swap)


# Rules.


def ignoring(clause: str, also: Callable[[Program], bool] = lambda program: True) -> TypingRule:
    """Accept what one clause refuses."""
    return lambda program: True if refusing_clause(program) == clause and also(program) else None


def conflating(names: dict[str, str]) -> TypingRule:
    """Take some dtypes for others."""

    def rule(program: Program) -> bool | None:
        if refusing_clause(program) is None or not dtypes(program) & set(names):
            return None
        return True if is_accepted(renamed(program, names)) else None

    return rule


def refusing(where: Callable[[Program], bool]) -> TypingRule:
    """Refuse some programs of those that the language accepts."""
    return lambda program: False if where(program) and is_accepted(program) else None


def _formed_as(change: Callable[[Expression], Expression]) -> TypingRule:
    """Judge the program as if its formed values were something else."""

    def rule(program: Program) -> bool | None:
        if isinstance(program, Kernel) or not any(isinstance(n, Formed) for n in expressions(program.result)):
            return None
        believed, true = is_accepted(Source(mapped(program.result, change))), verdict(program)
        if true is None or believed == is_accepted(program):
            return None
        return believed

    return rule


def _default_32(node: Expression) -> Expression:
    if isinstance(node, Formed) and not isinstance(node.literal.value, bool):
        return Call("cast", (node,), "f32" if isinstance(node.literal.value, float) else "i32")
    return node


def _never_formed(node: Expression) -> Expression:
    return node.literal if isinstance(node, Formed) else node


def _fraction_for_integer(program: Program) -> bool:
    return bool(dtypes(program) & set(INTS)) and any(isinstance(value, float) for value in literals(program))


def _integer_beyond(program: Program) -> bool:
    return bool(dtypes(program) & set(INTS)) and any(isinstance(value, int) for value in literals(program))


def _beyond_float(program: Program) -> bool:
    return bool(dtypes(program) & set(FLOATS))


def _inexact_literal(program: Program) -> bool:
    """A finite literal that the narrowest float of the program cannot hold."""
    floats = [format_of(name) for name in dtypes(program) if format_of(name).is_float]
    if not floats:
        return False
    step = min(fmt.precision for fmt in floats)
    for value in literals(program):
        if isinstance(value, float) and value - value == 0 and Fraction(value).numerator.bit_length() > step:
            return True
    return False


def _integer_for_float(program: Program) -> bool:
    return bool(dtypes(program) & set(FLOATS)) and any(type(value) is int for value in literals(program))


def _boundary(program: Program) -> bool:
    """A literal equal to the smallest or largest integer of a dtype."""
    ends = {end for name in dtypes(program) & set(INTS) for end in (format_of(name).min_int, format_of(name).max_int)}
    return any(type(value) is int and value in ends and value != 0 for value in literals(program))


def _arithmetic_on_byte_floats(program: Program) -> bool:
    floats = {name for name in dtypes(program) & set(FLOATS) if format_of(name).width == 8}
    return isinstance(program, Source) and bool(floats) and not literals(program)


def checker(name: str, summary: str, clauses: tuple[str, ...], rule: TypingRule, source: str = CLASSIC) -> Suspect:
    return Suspect(name, summary, clauses, source, typing_rule=rule)


SUSPECTS: tuple[Suspect, ...] = (
    checker(
        "accepts_mixed_dtypes",
        "Operands of different dtypes are promoted silently.",
        intent("3-g"),
        ignoring("intent:3-g"),
        "https://github.com/numba/numba/issues/10151",
    ),
    checker(
        "promotes_index_with_i64",
        "index and i64 are one type.",
        intent("3-g"),
        conflating({"index": "i64"}),
    ),
    checker(
        "ignores_signedness",
        "Signed and unsigned integers of one width are one type.",
        intent("3-g"),
        conflating({"u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64"}),
    ),
    checker(
        "accepts_division_of_integers",
        "`/` of integers is accepted.",
        intent("4-d"),
        ignoring("intent:4-d"),
    ),
    checker(
        "accepts_float_remainder",
        "`%` of floats is accepted.",
        intent("4-k"),
        ignoring("intent:4-k"),
    ),
    checker(
        "wraps_integer_literals",
        "An integer literal out of range wraps.",
        intent("3-b"),
        ignoring("intent:3-b", _integer_beyond),
        "https://github.com/pytorch/pytorch/issues/198071",
    ),
    checker(
        "truncates_fraction_literals",
        "A literal with a fraction is cut to an integer.",
        intent("3-b"),
        ignoring("intent:3-b", _fraction_for_integer),
    ),
    checker(
        "overflows_float_literals",
        "A literal beyond a float's range becomes infinity.",
        intent("3-b"),
        ignoring("intent:3-b", _beyond_float),
    ),
    checker(
        "bool_is_a_number",
        "Arithmetic on bools is accepted.",
        intent("3-h"),
        ignoring("intent:3-h"),
    ),
    checker(
        "bitcast_of_any_width",
        "A bitcast between different widths is accepted.",
        intent("5.2-j"),
        ignoring("intent:5.2-j"),
    ),
    checker(
        "accepts_subbyte_dtypes",
        "Four-bit dtypes are accepted as elements.",
        intent("1-b"),
        ignoring("intent:1-b"),
    ),
    checker(
        "accepts_further_dtypes",
        "Dtypes beyond the sixteen scalars are accepted as elements.",
        intent("1-a"),
        ignoring("intent:1-a"),
    ),
    checker(
        "result_dtype_unchecked",
        "An operation may claim any dtype for its result.",
        intent("3-e"),
        ignoring("intent:3-e"),
    ),
    checker(
        "defaults_are_32_bits",
        "A literal formed without an expected dtype is i32 or f32.",
        intent("3-c"),
        _formed_as(_default_32),
    ),
    checker(
        "formed_values_adapt",
        "A value formed from a literal takes the dtype of a later operand.",
        intent("3-d"),
        _formed_as(_never_formed),
    ),
    checker(
        "refuses_inexact_literals",
        "A float literal that has to be rounded is refused.",
        intent("3-a"),
        refusing(_inexact_literal),
    ),
    checker(
        "refuses_integer_literals_for_floats",
        "An integer literal beside a float is refused.",
        intent("3-a"),
        refusing(_integer_for_float),
    ),
    checker(
        "refuses_extreme_literals",
        "The smallest and largest integer of a dtype are refused as literals.",
        intent("3-a"),
        refusing(_boundary),
    ),
    checker(
        "byte_floats_are_storage",
        "Operations on 8-bit floats are refused, as if these were formats for storage only.",
        intent("3-f"),
        refusing(_arithmetic_on_byte_floats),
    ),
    checker(
        "accepts_functions_of_integers",
        "Functions of integers are accepted.",
        intent("5-k"),
        ignoring("intent:5-k"),
    ),
    checker(
        "accepts_flushing_anywhere",
        "flush_to_zero is accepted without approximate, and on any operation.",
        intent("5.1-b"),
        ignoring("intent:5.1-b"),
    ),
    checker(
        "attributes_are_truthy",
        "An attribute may be anything; what is not zero counts as true.",
        intent("5.1-c"),
        ignoring("intent:5.1-c"),
    ),
    checker(
        "approximates_any_dtype",
        "approximate is accepted on every float dtype.",
        intent("5.1-d"),
        ignoring("intent:5.1-d"),
    ),
)
