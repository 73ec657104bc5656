"""lgamma, asin, log1p, erfc, i0 and ordinary exp2 and tanh: what may come out (``intent:5-c`` to ``5-k``, ``5.1-a``).

In f32 and f64 a rule gives ranges around the correctly rounded result; below f32 the ranges are those of f32, carried
through one cast (``reading:10``). Where the exact values come from is a matter of `oracle.functions.source`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from halfulp.oracle import codes, functions, rounding_array
from halfulp.oracle.codes import Kind
from halfulp.oracle.formats import FORMATS, Bits, Format
from halfulp.oracle.functions import source
from halfulp.oracle.ops import approximate
from halfulp.oracle.ops.arithmetic import DIV
from halfulp.oracle.ops.casts import cast_range
from halfulp.oracle.ops.function_points import WINDOWS, critical_points, division_points
from halfulp.oracle.ops.record import Accepted, Attrs, Operation, Refused, Signature, TypingAnswer
from halfulp.oracle.ops.rules import bool_is_no_number, same_dtype
from halfulp.oracle.ops.ulp import Positions, Span, clip, gross_span, magnitudes, to_ordinals, ulp_spans, without
from halfulp.oracle.sets import AllowedSet, Mask, Range

F32 = FORMATS["f32"]


# Typing.


def _refuse_integers(fmt: Format) -> Refused | None:
    if fmt.is_int:
        return Refused("intent:5-k", f"{fmt.name} is an integer; the function is defined on floats")
    return bool_is_no_number(fmt)


def attribute_refusal(args: Sequence[str], attrs: Attrs) -> Refused | None:
    """``intent:5.1-b`` to ``-d``: what is refused of ``approximate`` and ``flush_to_zero`` where both exist."""
    for name, setting in attrs:
        if not isinstance(setting, bool):
            return Refused("intent:5.1-c", f"{name}={setting!r} is not a compile-time bool")
    settings = dict(attrs)
    if settings.get("flush_to_zero") and not settings.get("approximate"):
        return Refused("intent:5.1-b", "flush_to_zero needs approximate=True")
    if settings.get("approximate") and any(arg != "f32" for arg in args):
        return Refused("intent:5.1-d", f"the approximate operation has f32 operands, not {', '.join(args)}")
    return None


def attribute_typing(refuse: Callable[[Format], Refused | None]) -> Callable[..., TypingAnswer]:
    """Operands first, then attributes. Names that an operation does not have are refused elsewhere."""
    operands = same_dtype(refuse=refuse)

    def rule(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
        answer = operands(args, dtype, attrs)
        refused = attribute_refusal(args, attrs) if isinstance(answer, Accepted) else None
        return refused or answer

    return rule


# Special operands: the text states the result, and it has no tolerance.


def _values(fmt: Format, bits: Bits) -> codes.F64:
    return codes.float64_values(fmt, bits)


def _special_zero_and_infinite(fmt: Format, bits: Bits) -> Mask:
    return codes.is_zero(fmt, bits) | codes.is_infinite(fmt, bits) | codes.is_nan(fmt, bits)


def _special_of_lgamma(fmt: Format, bits: Bits) -> Mask:
    value = _values(fmt, bits)
    with np.errstate(invalid="ignore"):
        pole = (value <= 0) & (value == np.floor(value))
    return np.asarray(pole | (value == 1) | (value == 2) | ~np.isfinite(value))


def _special_of_asin(fmt: Format, bits: Bits) -> Mask:
    value = _values(fmt, bits)
    return np.asarray((value == 0) | ~(np.abs(value) <= 1))


def _special_of_log1p(fmt: Format, bits: Bits) -> Mask:
    value = _values(fmt, bits)
    return np.asarray((value == 0) | ~(value > -1) | np.isinf(value))


# The rules.


@dataclass(frozen=True)
class Rule:
    """What is said of a function in f32 and f64.

    Attributes:
        name: of the function.
        clause: states the special values.
        bounds: in ulp, for f32 and f64: of the text, or of the published table (``stated`` is False).
        special: operands whose result is stated exactly.
        stated: the text has the bound: beyond it is a breach. Otherwise ``reading:9``.
        own_sign: results of the other sign are breaches (``reading:9``).
        most: a function of the format that gives the greatest magnitude allowed, as a code.
    """

    name: str
    clause: str
    bounds: tuple[int, int]
    special: Callable[[Format, Bits], Mask] = _special_zero_and_infinite
    stated: bool = False
    own_sign: bool = False
    most: Callable[[Format], int] | None = None


def _right_angle(fmt: Format) -> int:
    """RN(pi/2): asin of 1."""
    return functions.nearest("asin", fmt, fmt.bias << fmt.fraction_bits)


F64_ASIN_STEPS = 1 << 20
"""``intent:5-h``: an f64 asin further off than this has f32 accuracy. That of f32 would be about 2**29 steps."""

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("lgamma", "intent:5-c", (6, 4), _special_of_lgamma),
        Rule("asin", "intent:5-d", (2, 2), _special_of_asin, own_sign=True, most=_right_angle),
        Rule("log1p", "intent:5-e", (1, 1), _special_of_log1p, stated=True),
        Rule("erfc", "intent:5-f", (4, 5), stated=True),
        Rule("i0", "intent:5-g", (6, 6), stated=True),
        Rule("exp2", "intent:5-a", (2, 1), own_sign=True),
        Rule("tanh", "intent:5-a", (2, 1), own_sign=True),
    )
}
"""The bounds of lgamma, asin, exp2 and tanh are those that CUDA publishes for its device functions. For lgamma it
publishes none between about -10 (f32) or -23 (f64) and -2.26; the number stands for that stretch too, so that what is
worse is at least reported."""


class Band(NamedTuple):
    """Results in one format: the correctly rounded one, those accepted besides, and those not forbidden."""

    nearest: Bits
    accepted: Range
    open: Range


def rounded_magnitudes(name: str, fmt: Format, operand: Bits, nearest: Bits, special: Mask) -> Positions:
    """Positions of the correctly rounded results, those beyond the largest finite number included."""
    magnitude = magnitudes(fmt, nearest)
    beyond = np.flatnonzero(codes.is_infinite(fmt, nearest) & ~special)
    if len(beyond):
        magnitude[beyond] = source.current().unbounded(name, fmt, operand[beyond])
    return magnitude


def band(rule: Rule, fmt: Format, bits: Bits) -> Band:
    """The rule in f32 or f64."""
    nearest = source.current().nearest(rule.name, fmt, bits)
    special = rule.special(fmt, bits)
    magnitude = rounded_magnitudes(rule.name, fmt, bits, nearest, special)
    bound = rule.bounds[0 if fmt.width == 32 else 1]
    accepted, open_to = ulp_spans(fmt, magnitude, bound)
    if not rule.stated:
        gross = gross_span(fmt, magnitude)
        if rule.name == "asin" and fmt.width == 64:
            gross = clip(gross, magnitude - F64_ASIN_STEPS, magnitude + F64_ASIN_STEPS)
        open_to = Span(np.minimum(gross.low, open_to.low), np.maximum(gross.high, open_to.high))
    if rule.own_sign:
        accepted, open_to = clip(accepted, 0, accepted.high), clip(open_to, 0, open_to.high)
    if rule.most is not None:
        most = rule.most(fmt)
        accepted, open_to = clip(accepted, accepted.low, most), clip(open_to, open_to.low, most)
    negative = codes.is_negative(fmt, nearest)
    return Band(
        nearest,
        to_ordinals(fmt, accepted, negative, ~special),
        to_ordinals(fmt, open_to, negative, ~special),
    )


def as_set(fmt: Format, found: Band) -> AllowedSet:
    """The band as a set. Ranges that would say nothing new are left out."""
    at = codes.ordinal(fmt, found.nearest)
    accepted = without(found.accepted, at)
    low, high = found.open
    same = (low == found.accepted[0]) & (high == found.accepted[1])
    open_to = without((np.where(same, np.int64(1), low), np.where(same, np.int64(0), high)), at)
    return AllowedSet(
        fmt,
        found.nearest,
        ranges=(accepted,) if (accepted[0] <= accepted[1]).any() else (),
        unspecified=(open_to,) if (open_to[0] <= open_to[1]).any() else (),
    )


# Below f32.


def nearest_below_f32(name: str, fmt: Format, bits: Bits, nearest: Bits) -> Bits:
    """The correctly rounded results in a format below f32, from those in f32.

    Rounding twice differs from rounding once where the first result is a midpoint of the shorter format, and nowhere
    else; those few are looked up.
    """
    result = rounding_array.cast_float(F32, fmt, nearest).bits
    midpoint = np.flatnonzero(_is_midpoint(fmt, nearest))
    if len(midpoint):
        result = result.copy()
        result[midpoint] = functions.nearest_many(name, fmt, bits[midpoint])
    return result


def _is_midpoint(fmt: Format, bits: Bits) -> Mask:
    """Whether an f32 number is half way between two numbers of ``fmt``, or at its threshold of overflow."""
    below = rounding_array.cast_float(F32, fmt, bits, mode="toward_zero").bits
    kind, _, sig, exp = codes.midpoint_above(fmt, below)
    value = np.abs(codes.float64_values(F32, bits))
    return np.asarray((kind == Kind.FINITE) & (np.ldexp(sig.astype(np.float64), exp) == value))


def allowed_below_f32(rule: Rule, fmt: Format, bits: Bits) -> AllowedSet:
    """``reading:10``: the image of the f32 range; no claim where it holds a value that the cast does not take."""
    wide = rounding_array.cast_float(fmt, F32, bits).bits
    found = band(rule, F32, wide)
    accepted, beyond_accepted = cast_range(F32, fmt, found.accepted)
    open_to, beyond_open = cast_range(F32, fmt, found.open)
    nearest = nearest_below_f32(rule.name, fmt, bits, found.nearest)
    result = as_set(fmt, Band(nearest, accepted, open_to))
    if fmt.infinity:
        return result
    unclaimed = beyond_accepted | beyond_open | rounding_array.cast_float(F32, fmt, found.nearest).beyond
    if not unclaimed.any():
        return result
    return AllowedSet(fmt, nearest, claim=~unclaimed, ranges=result.ranges, unspecified=result.unspecified)


def ordinary_allowed(rule: Rule, fmt: Format, bits: Bits) -> AllowedSet:
    """The ordinary operation, in any float format."""
    return as_set(fmt, band(rule, fmt, bits)) if fmt.width >= 32 else allowed_below_f32(rule, fmt, bits)


# Cases.


def main_clause(rule: Rule, fmt: Format) -> str:
    """What governs results that are not stated exactly."""
    if fmt.width < 32:  # lgamma, exp2 and tanh below f32 are a reading; for the others the text says so
        return "reading:10" if rule.name in ("lgamma", "exp2", "tanh") else "intent:5-h"
    if rule.stated:
        return rule.clause
    if rule.name == "asin" and fmt.width == 64:
        return "intent:5-h"
    return "reading:9" if rule.name in ("lgamma", "asin") else "intent:5.1-a"


def ordinary_cases(rule: Rule, fmt: Format, bits: Bits) -> dict[str, Mask]:
    main = main_clause(rule, fmt)
    if main == rule.clause:
        return {main: np.ones(len(bits), bool)}
    special = rule.special(fmt, bits)
    return {rule.clause: special, main: ~special}


# The records.

APPROXIMATE: Attrs = (("approximate", True),)
FLUSHING: Attrs = (("approximate", True), ("flush_to_zero", True))


def is_approximate(attrs: Attrs) -> bool:
    return bool(dict(attrs).get("approximate"))


def flushes(attrs: Attrs) -> bool:
    return bool(dict(attrs).get("flush_to_zero"))


def _record(name: str, chapter: str, summary: str, *, attrs: tuple[Attrs, ...] = ((),)) -> Operation:
    rule = RULES[name]

    def allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        if is_approximate(signature.attrs):
            return approximate.UNARY[name].allowed(operands[0], flushes(signature.attrs))
        return ordinary_allowed(rule, signature.result_format, operands[0])

    def cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
        if is_approximate(signature.attrs):
            return approximate.UNARY[name].cases(operands[0], flushes(signature.attrs))
        return ordinary_cases(rule, signature.result_format, operands[0])

    def clauses(signature: Signature) -> tuple[str, ...]:
        return tuple(cases(signature, [np.zeros(0, fmt.storage) for fmt in signature.formats]))

    return Operation(
        name=name,
        arity=1,
        chapter=chapter,
        summary=summary,
        typing=attribute_typing(_refuse_integers),
        allowed=allowed,
        clauses=clauses,
        cases=cases,
        critical=lambda signature: critical_points(name, signature.formats[0]),
        attrs=attrs,
        window=WINDOWS[name],
        costly=lambda signature: not source.current().is_fast(name, _exact_in(signature.result_format)),
    )


def _exact_in(fmt: Format) -> Format:
    """The format in which exact values are asked for."""
    return fmt if fmt.width >= 32 else F32


# fdiv.


def _no_integer_fdiv(fmt: Format) -> Refused | None:
    if fmt.is_int:
        return Refused("intent:4-d", "fdiv is `/`, which is not defined on integers")
    return bool_is_no_number(fmt)


def _fdiv_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    """``intent:5.1-a``: by default the ordinary division."""
    a, b = operands
    if is_approximate(signature.attrs):
        return approximate.fdiv_allowed(a, b, flushes(signature.attrs))
    return DIV.allowed(signature, operands)


def _fdiv_cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
    a, b = operands
    if is_approximate(signature.attrs):
        return approximate.fdiv_cases(a, b, flushes(signature.attrs))
    return {"intent:5.1-a": np.ones(len(a), bool)}


def _fdiv_critical(signature: Signature) -> Sequence[Bits]:
    return division_points() if signature.args[0] == "f32" else DIV.critical(signature)


FDIV = Operation(
    name="fdiv",
    arity=2,
    chapter="5.1",
    summary="Division; approximate: a product with the reciprocal, within 2 ulp for divisors that are not extreme.",
    typing=attribute_typing(_no_integer_fdiv),
    allowed=_fdiv_allowed,
    clauses=lambda signature: tuple(_fdiv_cases(signature, [np.zeros(0, fmt.storage) for fmt in signature.formats])),
    cases=_fdiv_cases,
    critical=_fdiv_critical,
    attrs=((), APPROXIMATE, FLUSHING),
)

FUNCTIONS = (
    _record("lgamma", "5", "log|Gamma(x)|: +0 at 1 and 2, +infinity at zero and the negative integers."),
    _record("asin", "5", "The principal arc sine; NaN outside [-1, 1]."),
    _record("log1p", "5", "log(1 + x) of the exact sum, within 1 ulp."),
    _record("erfc", "5", "1 - erf(x) of the exact values, within 4 ulp (f32) or 5 ulp (f64)."),
    _record("i0", "5", "The modified Bessel function of the first kind of order 0, within 6 ulp."),
    _record(
        "exp2",
        "5.1",
        "2 to the power x; approximate: within 2 ulp, perhaps flushing.",
        attrs=((), APPROXIMATE, FLUSHING),
    ),
    _record(
        "tanh",
        "5.1",
        "The hyperbolic tangent; approximate: a relative error of at most 2^-11.",
        attrs=((), APPROXIMATE),
    ),
    FDIV,
)
