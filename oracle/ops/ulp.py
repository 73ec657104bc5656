"""Tolerances as ranges of ordinals: what ``reading:1`` and ``reading:9`` leave around a correctly rounded result.

Everything here counts *steps* on the line of magnitude codes, continued above the largest finite number as if the
exponent had no upper limit and below zero into the other sign; +0 and -0 are one point of it. A position is relative
to the sign of the result: positive towards larger magnitudes. `to_ordinals` turns positions into ordinals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.sets import Mask, Range

Positions = np.ndarray[Any, np.dtype[np.int64]]


class Span(NamedTuple):
    """Inclusive positions, one pair for each element; empty where the lower is above the upper."""

    low: Positions
    high: Positions


def magnitudes(fmt: Format, bits: Bits) -> Positions:
    """The positions of results, on the side of their own sign."""
    return np.asarray((bits & fmt.magnitude_mask).astype(np.int64))


def _binade(fmt: Format, magnitude: Positions) -> tuple[Positions, Positions]:
    """The position at which the significand 0 of the binade would stand, and the significand: the sum is the position.

    Subnormal numbers belong to the binade of the smallest normal one, whose steps they share; it starts at 0.
    """
    start = (np.maximum(magnitude >> fmt.fraction_bits, 1) - 1) << fmt.fraction_bits
    return start, magnitude - start


def ulp_spans(fmt: Format, magnitude: Positions, bound: int) -> tuple[Span, Span]:
    """``reading:1``: results that are within the bound by both counts, and by at least one of them.

    The two counts are steps from the correctly rounded result, and |got - RN| / ulp(RN). They part next to powers of
    two, where the steps change their length.

    Args:
        magnitude: positions of the correctly rounded results, with an unbounded exponent.
        bound: in ulp; small against the number of codes in a binade.
    """
    if 4 * bound > 1 << fmt.fraction_bits:
        raise ValueError(f"{bound} ulp leave the neighbouring binades of {fmt.name}")
    hidden = 1 << fmt.fraction_bits
    start, significand = _binade(fmt, magnitude)
    least, most = significand - bound, significand + bound
    by_value = Span(
        np.where((least < hidden) & (start > 0), start - hidden + 2 * least, start + least),
        np.where(most >= 2 * hidden, start + hidden + most // 2, start + most),
    )
    by_steps = Span(magnitude - bound, magnitude + bound)
    both = Span(np.maximum(by_value.low, by_steps.low), np.minimum(by_value.high, by_steps.high))
    either = Span(np.minimum(by_value.low, by_steps.low), np.maximum(by_value.high, by_steps.high))
    return both, either


def gross_span(fmt: Format, magnitude: Positions) -> Span:
    """``reading:9``: results with an error of at most 2^-6 max(|exact|, 2^-6), as far as the rounded result tells.

    The exact value is within half an ulp of the rounded one. The span errs outwards by that, so a result just beyond
    the limit may count as within.
    """
    hidden = 1 << fmt.fraction_bits
    small = magnitude < (fmt.bias - 6) << fmt.fraction_bits
    start, significand = _binade(fmt, magnitude)
    # 63/64 and 65/64 of the value, at most one binade away. Two steps cover what is rounded off.
    less, more = 63 * significand, 65 * significand
    low = np.where((less < 64 * hidden) & (start > 0), start - hidden + less // 32, start + less // 64)
    high = np.where(more >= 128 * hidden, start + hidden + more // 128, start + more // 64)
    relative = Span(low - 2, high + 2)
    kept = np.where(small, magnitude, 0)
    value = codes.float64_values(fmt, kept.astype(fmt.storage))
    ulp = np.ldexp(1.0, codes.ulp_exponent(fmt, kept.astype(fmt.storage)))
    ends = (value - ulp - 2.0**-12, value + ulp + 2.0**-12)
    low, high = (_position_of(fmt, end) for end in ends)
    return Span(np.where(small, low - 1, relative.low), np.where(small, high + 1, relative.high))


def _position_of(fmt: Format, value: np.ndarray[Any, np.dtype[np.float64]]) -> Positions:
    """The position nearest to a value, in f32 or f64."""
    view = np.float32 if fmt.width == 32 else np.float64
    at = codes.ordinal(fmt, value.astype(view).view(fmt.storage))
    return np.where(at < 0, at + 1, at)


def clip(span: Span, low: Positions | int, high: Positions | int) -> Span:
    """The part of the span between two positions."""
    return Span(np.maximum(span.low, low), np.minimum(span.high, high))


def to_ordinals(fmt: Format, span: Span, negative: Mask, where: Mask, *, own_zero: bool = False) -> Range:
    """The span as a range of ordinals where ``where`` holds; empty elsewhere.

    An infinity stands for every point from 2**(emax + 1) on. Zero stands for both zeros, or for the one with the sign
    of the result where ``own_zero``; then results of the other sign are left out too.
    """
    top = fmt.infinity_bits
    some = where & (span.low <= span.high)
    low, high = (np.clip(end, -top, top) for end in span)
    if own_zero:
        some = some & (high >= 0)
        low = np.maximum(low, 0)
    # On the positive side a position is its ordinal; on the negative side there is -0 in between.
    upwards = (np.where(low > 0, low, low if own_zero else low - 1), np.where(high >= 0, high, high - 1))
    downwards = (np.where(high >= 0, ~high, -high), np.where(low > 0, ~low, ~low if own_zero else -low))
    first = np.where(negative, downwards[0], upwards[0])
    last = np.where(negative, downwards[1], upwards[1])
    return np.where(some, first, np.int64(1)), np.where(some, last, np.int64(0))


def without(span: Range, single: Positions) -> Range:
    """The range, but empty where it holds nothing besides ``single``."""
    low, high = span
    only = (low == single) & (high == single)
    return np.where(only, np.int64(1), low), np.where(only, np.int64(0), high)
