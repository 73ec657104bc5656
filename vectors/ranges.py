"""Allowed sets as ranges of bit patterns, which any language compares as unsigned integers.

The oracle counts in ordinals, so that a range may cross zero. Here a range lies within one sign, NaN codes are ranges
like all others, and nothing has to be decoded in order to judge a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import WIDE, Bits, Format
from halfulp.oracle.sets import AllowedSet

Span = tuple[int, int]
"""Inclusive ends, as codes; both with the same sign bit where the format has one."""


@dataclass(frozen=True)
class Row:
    """What one element may be.

    Attributes:
        nearest: the correctly rounded (or only) result, as a code; of NaNs that are all right, ``fmt.nan_bits``.
        allowed: the results that have to be accepted, ascending and disjoint. Empty where nothing is required.
        unspecified: results that only some readings allow, likewise; none of them is in ``allowed``.
    """

    nearest: int
    allowed: tuple[Span, ...]
    unspecified: tuple[Span, ...] = ()


def nan_spans(fmt: Format) -> tuple[Span, ...]:
    """The NaN codes of a format."""
    match fmt.nan:
        case "none":
            return ()
        case "negative_zero":
            return ((fmt.sign_mask, fmt.sign_mask),)
    first = fmt.infinity_bits + 1 if fmt.infinity else fmt.magnitude_mask
    positive = (first, fmt.magnitude_mask)
    if not fmt.signed:
        return (positive,)
    return positive, (first | fmt.sign_mask, fmt.magnitude_mask | fmt.sign_mask)


def sign_bit(fmt: Format) -> int:
    """The lowest code with the sign bit set; one beyond all codes where there is no sign."""
    return 1 << (fmt.width - 1) if fmt.signed else fmt.code_count


def from_ordinals(fmt: Format, low: int, high: int) -> list[Span]:
    """The codes of the numbers from one ordinal to another (`codes.ordinal`), NaN codes left out."""
    if low > high:
        return []
    if not fmt.signed:
        offset = 1 << 63 if fmt.width == 64 else 0
        spans = [(low + offset, high + offset)]
    else:
        spans = [(max(low, 0), high)] if high >= 0 else []
        if low < 0:
            top = min(high, -1)
            if fmt.is_float:  # -0 is -1, and away from zero the codes grow
                spans.append((fmt.sign_mask | ~top, fmt.sign_mask | ~low))
            else:
                spans.append((low + fmt.code_count, top + fmt.code_count))
    return subtracted(spans, nan_spans(fmt)) if fmt.nan == "negative_zero" else spans


def merged(fmt: Format, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Ascending, with what overlaps or touches joined, but not across the sign."""
    result: list[Span] = []
    border = sign_bit(fmt)
    for low, high in sorted(spans):
        if result and low <= result[-1][1] + 1 and (result[-1][1] < border) == (low < border):
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def subtracted(spans: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    """What remains of some spans without others."""
    left = list(spans)
    for low, high in taken:
        pieces = []
        for start, stop in left:
            pieces += [(start, min(stop, low - 1)), (max(start, high + 1), stop)]
        left = [(start, stop) for start, stop in pieces if start <= stop]
    return left


def row(fmt: Format, nearest: int, accepted: Iterable[Span], open_to: Iterable[Span] = ()) -> Row:
    """A row from spans in any order that may overlap."""
    allowed = merged(fmt, accepted)
    return Row(nearest, allowed, merged(fmt, subtracted(open_to, allowed)))


def holds(spans: Sequence[Span], code: int) -> bool:
    """Whether a code is in one of the spans."""
    return any(low <= code <= high for low, high in spans)


def integers(bits: Bits) -> list[int]:
    """Bit patterns as Python integers, those of 128 bits too."""
    if bits.dtype == WIDE:
        return [high << 64 | low for low, high in bits.tolist()]
    found: list[int] = bits.tolist()
    return found


def rows(allowed: AllowedSet) -> list[Row | None]:
    """One row for each element; None where nothing is claimed."""
    fmt = allowed.format
    nearest = integers(allowed.nearest)
    found: list[Row | None] = [Row(code, ((code, code),)) for code in nearest]
    for position in np.flatnonzero(~allowed.claimed).tolist():
        found[position] = None
    plain = allowed.single
    if fmt.is_float:
        plain = plain & ~allowed.accepts_nan
    odd = np.flatnonzero(allowed.claimed & ~plain)
    if not len(odd):
        return found
    some = allowed.take(odd)
    member = np.ones(len(odd), bool) if some.member is None else some.member
    is_nan, nan_open = some.accepts_nan.tolist(), some.unspecifies_nan.tolist()
    accepted = [(low.tolist(), high.tolist()) for low, high in some.ranges]
    open_to = [(low.tolist(), high.tolist()) for low, high in some.unspecified_ranges]
    nans = nan_spans(fmt)
    free = (codes.is_nan(fmt, some.nearest) & some.free_nan).tolist()
    for at, position in enumerate(odd.tolist()):
        code = nearest[position]
        inside = [(code, code)] if member[at] else []
        for low, high in accepted:
            inside += from_ordinals(fmt, low[at], high[at])
        beside = [span for low, high in open_to for span in from_ordinals(fmt, low[at], high[at])]
        if is_nan[at]:
            inside = [span for span in inside if span != (code, code) or not free[at]] + list(nans)
            code = fmt.nan_bits if free[at] else code  # which NaN a machine gives differs between machines
        if nan_open[at]:
            beside += nans
        found[position] = row(fmt, code, inside, beside)
    return found
