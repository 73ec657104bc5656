"""Approximate exp2, tanh and fdiv, in f32 (``intent:5.1-e`` to ``5.1-h``, ``reading:11`` to ``13``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from halfulp.oracle import codes, rounding_array
from halfulp.oracle.formats import FORMATS, Bits
from halfulp.oracle.functions import source
from halfulp.oracle.ops.ulp import Positions, magnitudes, to_ordinals, ulp_spans, without
from halfulp.oracle.sets import AllowedSet, Mask, Range, only_where

F32 = FORMATS["f32"]
SIGN = np.uint32(F32.sign_mask)
SMALLEST_NORMAL = F32.min_normal_bits
EMPTY_LOW, EMPTY_HIGH = np.int64(1), np.int64(0)


def flushed(bits: Bits) -> Bits:
    """A subnormal number becomes the zero of its sign (``intent:5.1-h``)."""
    return np.where(codes.is_subnormal(F32, bits), bits & SIGN, bits)


def _flush_range(span: Range) -> tuple[Range, ...]:
    """What flushing makes of a range: its normal numbers of either sign, and the zeros its other members become.

    A range that straddles the smallest normal number has both outcomes.
    """
    low, high = span
    some = low <= high
    first_below = -SMALLEST_NORMAL - 1  # ordinal of the negative normal number of least magnitude
    positive = some & (low < SMALLEST_NORMAL) & (high >= 0)
    negative = some & (high > first_below) & (low < 0)
    return (
        only_where(np.maximum(low, SMALLEST_NORMAL), high, some),
        only_where(low, np.minimum(high, first_below), some),
        only_where(np.where(negative, -1, 0), np.where(positive, 0, -1), positive | negative),
    )


def _set(nearest: Bits, accepted: Sequence[Range], open_to: Sequence[Range]) -> AllowedSet:
    """An `AllowedSet` without the ranges that are empty everywhere or hold nothing but the nearest result."""
    at = codes.ordinal(F32, nearest)

    def kept(ranges: Sequence[Range]) -> tuple[Range, ...]:
        return tuple(r for r in (without(one, at) for one in ranges) if (r[0] <= r[1]).any())

    return AllowedSet(F32, nearest, ranges=kept(accepted), unspecified=kept(open_to))


def _beyond_both(accepted: Range, either: Range) -> Range:
    """The wider range, but empty where it is no wider."""
    same = (accepted[0] == either[0]) & (accepted[1] == either[1])
    return np.where(same, EMPTY_LOW, either[0]), np.where(same, EMPTY_HIGH, either[1])


@dataclass(frozen=True)
class Approximate:
    """A unary approximate operation: both functions take the operand and whether it flushes."""

    allowed: Callable[[Bits, bool], AllowedSet]
    cases: Callable[[Bits, bool], dict[str, Mask]]


# exp2.


def _special(bits: Bits) -> Mask:
    return codes.is_zero(F32, bits) | codes.is_infinite(F32, bits) | codes.is_nan(F32, bits)


def _exp2_allowed(bits: Bits, flush: bool) -> AllowedSet:
    """``reading:11``: 2 ulp everywhere, subnormal results included; with flushing a subnormal operand is a zero."""
    if flush:
        bits = flushed(bits)
    nearest = source.current().nearest("exp2", F32, bits)
    magnitude = magnitudes(F32, nearest)
    special = _special(bits)
    beyond = np.flatnonzero(codes.is_infinite(F32, nearest) & ~special)
    if len(beyond):
        magnitude[beyond] = source.current().unbounded("exp2", F32, bits[beyond])
    positive = np.zeros(len(bits), bool)
    accepted, either = (to_ordinals(F32, span, positive, ~special) for span in ulp_spans(F32, magnitude, 2))
    either = _beyond_both(accepted, either)
    if flush:
        return _set(flushed(nearest), _flush_range(accepted), _flush_range(either))
    return _set(nearest, (accepted,), (either,))


def _exp2_cases(bits: Bits, flush: bool) -> dict[str, Mask]:
    everywhere = np.ones(len(bits), bool)
    if not flush:
        return {"intent:5.1-e": everywhere}
    value = codes.float64_values(F32, bits)
    # 2^x is subnormal below -126, and rounds to zero from -150 down.
    touched = codes.is_subnormal(F32, bits) | ((value < -126) & (value > -150))
    return {"intent:5.1-e": ~touched, "intent:5.1-h": touched}


# tanh.

TANH_ERROR = Fraction(1, 1 << 11)


def _tanh_allowed(bits: Bits, flush: bool) -> AllowedSet:
    """``reading:12``: a relative error of at most 2^-11; a subnormal operand comes back, others near it unspecified."""
    nearest = source.current().nearest("tanh", F32, bits)
    least, greatest = source.current().within("tanh", F32, bits, TANH_ERROR)
    special, subnormal = _special(bits), codes.is_subnormal(F32, bits)
    ends = codes.ordinal(F32, least), codes.ordinal(F32, greatest)
    low, high = np.minimum(*ends), np.maximum(*ends)
    crossed = (least & ~SIGN) > (greatest & ~SIGN)  # no number is near enough: few-bit subnormal values
    accepted = only_where(low, high, ~special & ~subnormal & ~crossed)
    near = only_where(low, high, subnormal & ~crossed)
    return _set(nearest, (accepted,), (near,))


def _tanh_cases(bits: Bits, flush: bool) -> dict[str, Mask]:
    subnormal = codes.is_subnormal(F32, bits)
    return {"intent:5.1-f": ~subnormal, "reading:12": subnormal}


UNARY: dict[str, Approximate] = {
    "exp2": Approximate(_exp2_allowed, _exp2_cases),
    "tanh": Approximate(_tanh_allowed, _tanh_cases),
}


# fdiv.

LARGE_DIVISOR = 0x7E800000
"""2^126."""
RECIPROCAL_OVERFLOWS = 0x00200000
"""2^-128: the reciprocal of a number up to here is beyond the largest finite one."""


def quotient_magnitude(a: Bits, b: Bits, nearest: Bits) -> Positions:
    """Positions of RN(a/b), with an exponent that has no upper limit.

    Beyond the range the float64 quotient is rounded to 24 bits on its code. Two roundings are one: a quotient of
    24-bit numbers that is no midpoint is further from every midpoint than float64's error (see `rounding_array`).
    """
    magnitude = magnitudes(F32, nearest)
    beyond = np.flatnonzero(codes.is_infinite(F32, nearest))
    if len(beyond):
        x, y = (np.abs(codes.float64_values(F32, bits[beyond])) for bits in (a, b))
        with np.errstate(all="ignore"):
            wide = (x / y).view(np.int64)
        even = (wide >> 29) & 1
        magnitude[beyond] = ((wide + 0x0FFFFFFF + even) >> 29) - ((1023 - F32.bias) << F32.fraction_bits)
    return magnitude


def fdiv_allowed(a: Bits, b: Bits, flush: bool) -> AllowedSet:
    """``reading:13``."""
    if flush:
        a, b = flushed(a), flushed(b)
    sign = (a ^ b) & SIGN
    negative = sign != 0
    size_a, size_b = a & ~SIGN, b & ~SIGN
    finite_a, finite_b = size_a < F32.infinity_bits, size_b < F32.infinity_bits
    large = finite_b & (size_b > LARGE_DIVISOR)
    numbers = finite_a & (size_a != 0) & finite_b & (size_b != 0)
    approximated = numbers & ~large
    tiny = approximated & (size_b < SMALLEST_NORMAL)
    nearest = rounding_array.div(F32, a, b).bits
    magnitude = quotient_magnitude(a, b, np.where(approximated, nearest, np.uint32(0)))
    nearest = np.where(large & finite_a, sign, nearest)
    nearest = np.where(large & (size_a == F32.infinity_bits), np.uint32(F32.nan_bits), nearest)
    # The quotient's sign is stated, a zero's too: nothing beyond the zero of that sign.
    accepted, either = (
        to_ordinals(F32, span, negative, approximated, own_zero=True) for span in ulp_spans(F32, magnitude, 2)
    )
    either = _beyond_both(accepted, either)
    if flush:
        return _set(flushed(nearest), _flush_range(accepted), _flush_range(either))
    if not tiny.any():
        return _set(nearest, (accepted,), (either,))
    # A subnormal divisor has no bound: unspecified is every result that shows no broken rule.
    top = np.where(size_b <= RECIPROCAL_OVERFLOWS, F32.infinity_bits, F32.max_finite_bits).astype(np.int64)
    loose = only_where(np.where(negative, ~top, 0), np.where(negative, -1, top), tiny)
    return _set(nearest, (accepted,), (either, loose))


def fdiv_cases(a: Bits, b: Bits, flush: bool) -> dict[str, Mask]:
    """Subnormal divisors have a reading of their own; with flushing, what flushing touches."""
    subnormal_a, subnormal_b = codes.is_subnormal(F32, a), codes.is_subnormal(F32, b)
    if flush:
        result = rounding_array.div(F32, flushed(a), flushed(b)).bits
        touched = subnormal_a | subnormal_b | codes.is_subnormal(F32, result)
        return {"intent:5.1-g": ~touched, "intent:5.1-h": touched}
    tiny = subnormal_b & ~codes.is_zero(F32, a) & ((a & ~SIGN) < F32.infinity_bits)
    return {"intent:5.1-g": ~tiny, "reading:13": tiny}
