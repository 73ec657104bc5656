"""Comparisons, select, and the maximum and minimum operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops.arithmetic import integer_clauses
from halfulp.oracle.ops.record import Accepted, Attrs, Operation, Signature, TypingAnswer, Undecided
from halfulp.oracle.ops.rules import bool_is_no_number, crossed_specials, mixed, not_elements, same_dtype
from halfulp.oracle.sets import AllowedSet, Mask, exactly, mark_unspecified, point

# Comparisons.


def _positions(fmt: Format, bits: Bits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Integers in the order of the values; the two zeros share one."""
    at = codes.ordinal(fmt, bits)
    return np.where(at < 0, at + 1, at) if fmt.is_float else at


def _compare(fmt: Format, relation: str, a: Bits, b: Bits) -> Mask:
    """``intent:5-a``: every comparison with a NaN is false, but for ``ne``."""
    x, y = _positions(fmt, a), _positions(fmt, b)
    result: Mask
    match relation:
        case "eq" | "ne":
            result = x == y
        case "lt" | "ge":
            result = x < y
        case _:
            result = x > y
    if relation in ("ne", "ge", "le"):
        result = ~result
    if fmt.is_float:
        unordered = codes.is_nan(fmt, a) | codes.is_nan(fmt, b)
        result = np.where(unordered, relation == "ne", result)
    return result


def _fast_compare(relation: str, a: Bits, b: Bits) -> Mask:
    """f32 and f64 on the host: comparison has no rounding, and a quiet or signalling NaN is unordered."""
    view = f"f{a.dtype.itemsize}"
    x, y = a.view(view), b.view(view)
    with np.errstate(invalid="ignore"):
        rules = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
        rules |= {"gt": np.greater, "ge": np.greater_equal}
        return np.asarray(rules[relation](x, y))


def _comparison_allowed(relation: str) -> Callable[[Signature, Sequence[Bits]], AllowedSet]:
    def allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        fmt, (a, b) = signature.formats[0], operands
        fast = fmt.name in ("f32", "f64")
        truth = _fast_compare(relation, a, b) if fast else _compare(fmt, relation, a, b)
        result = exactly(signature.result_format, truth.astype(np.uint8))
        return mark_unspecified(result, np.ones(len(a), bool)) if fmt.kind == "bool" else result

    return allowed


def _comparison_clauses(signature: Signature) -> tuple[str, ...]:
    fmt = signature.formats[0]
    if fmt.is_float:
        return ("intent:5-a", "intent:5-b")
    return integer_clauses(signature, "intent:3-h")


def _comparison_cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
    fmt = signature.formats[0]
    if fmt.is_float:
        subnormal = codes.is_subnormal(fmt, operands[0]) | codes.is_subnormal(fmt, operands[1])
        return {"intent:5-a": ~subnormal, "intent:5-b": subnormal}
    return {clause: np.ones(len(operands[0]), bool) for clause in _comparison_clauses(signature)}


def _bools_compare(fmt: Format) -> str | None:
    return "the text does not order or compare bools" if fmt.kind == "bool" else None


def _comparison(relation: str, words: str) -> Operation:
    return Operation(
        name=relation,
        arity=2,
        chapter="4/5",
        summary=f"True where the first operand is {words} the second; the result is bool.",
        typing=same_dtype(undecided=_bools_compare, result="bool"),
        allowed=_comparison_allowed(relation),
        clauses=_comparison_clauses,
        cases=_comparison_cases,
        critical=crossed_specials,
    )


# Select.


def _select_typing(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    condition, first, second = args
    refused = not_elements(args) or mixed((first, second))
    if refused:
        return refused
    if condition != "bool":
        return Undecided("the text does not say what a condition that is no bool means")
    return Accepted(first)


def _select_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    """The bits of the operand chosen, a NaN's too (``reading:29``)."""
    condition, first, second = operands
    return exactly(signature.result_format, np.where(condition != 0, first, second), carries_bits=True)


SELECT = Operation(
    name="select",
    arity=3,
    chapter="4/5",
    summary="The second operand where the condition is true, the third elsewhere, bit for bit.",
    typing=_select_typing,
    allowed=_select_allowed,
    clauses=lambda signature: ("reading:29",),
    cases=lambda signature, operands: {"reading:29": np.ones(len(operands[0]), bool)},
    critical=crossed_specials,
)


# Maximum and minimum.


def _extremum_allowed(largest: bool, propagates: bool) -> Callable[[Signature, Sequence[Bits]], AllowedSet]:
    """``intent:5.2-k`` and ``-l``; of +0 and -0 either may come out (``reading:6``)."""

    def allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        fmt, (a, b) = signature.result_format, operands
        nan_a, nan_b = codes.is_nan(fmt, a), codes.is_nan(fmt, b)
        at_a, at_b = codes.ordinal(fmt, a), codes.ordinal(fmt, b)
        first = at_a >= at_b if largest else at_a <= at_b
        first = (first | nan_a) & (nan_a | ~nan_b) if propagates else (first & ~nan_a) | nan_b
        nearest = np.where(first, a, b)
        zeros = codes.is_zero(fmt, a) & codes.is_zero(fmt, b) & (a != b)
        ranges = (point(fmt, np.where(first, b, a), zeros),) if zeros.any() else ()
        return AllowedSet(fmt, nearest, ranges=ranges)

    return allowed


def _extremum_clauses(clause: str) -> Callable[[Signature], tuple[str, ...]]:
    return lambda signature: ("intent:5-a", "intent:5-b", clause)


def _extremum_cases(clause: str) -> Callable[[Signature, Sequence[Bits]], Mapping[str, Mask]]:
    def cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
        fmt, (a, b) = signature.result_format, operands
        nan = codes.is_nan(fmt, a) | codes.is_nan(fmt, b)
        subnormal = (codes.is_subnormal(fmt, a) | codes.is_subnormal(fmt, b)) & ~nan
        return {"intent:5-a": ~nan & ~subnormal, "intent:5-b": subnormal, clause: nan}

    return cases


def _extremum(name: str, *, largest: bool, propagates: bool) -> Operation:
    clause = "intent:5.2-k" if propagates else "intent:5.2-l"
    rule = "a NaN operand makes the result NaN" if propagates else "a single NaN operand is ignored"
    typed = same_dtype(refuse=bool_is_no_number)

    def typing(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
        answer = typed(args, dtype, attrs)
        if isinstance(answer, Accepted) and not format_of(args[0]).is_float:
            return Undecided(f"the text does not give {name} of integers any meaning")
        return answer

    return Operation(
        name=name,
        arity=2,
        chapter="5.2",
        summary=f"The {'larger' if largest else 'smaller'} operand; {rule}.",
        typing=typing,
        allowed=_extremum_allowed(largest, propagates),
        clauses=_extremum_clauses(clause),
        cases=_extremum_cases(clause),
        critical=crossed_specials,
    )


CHOICES = (
    _comparison("eq", "equal to"),
    _comparison("ne", "not equal to"),
    _comparison("lt", "less than"),
    _comparison("le", "at most"),
    _comparison("gt", "greater than"),
    _comparison("ge", "at least"),
    SELECT,
    _extremum("maximum", largest=True, propagates=True),
    _extremum("minimum", largest=False, propagates=True),
    _extremum("maximum_num", largest=True, propagates=False),
    _extremum("minimum_num", largest=False, propagates=False),
)
