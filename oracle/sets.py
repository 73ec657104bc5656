"""Allowed sets and verdicts.

A language leaves freedom, so an oracle answers with the *set* of results that each element may have. A set has two
levels: values that must be accepted, and values that only some readings of the text allow (*unspecified*); everything
else is forbidden. An element without a claim (illegal input, a race) has no verdict on any value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import reduce
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Ordinals = np.ndarray[Any, np.dtype[np.int64]]
Range = tuple[Ordinals, Ordinals]
"""Inclusive ends, as ordinals, one pair for each element; empty where the lower end is above the upper."""


class Verdict(IntEnum):
    """What is said of one result. The order is that of severity."""

    ALLOWED = 0
    NO_CLAIM = 1
    UNSPECIFIED = 2
    FORBIDDEN = 3


@dataclass(frozen=True)
class AllowedSet:
    """The allowed results of ``n`` elements, one row each.

    Attributes:
        format: the format of the result.
        nearest: shape (n,), the correctly rounded (or only) result as a bit pattern.
        claim: shape (n,), False where nothing is claimed. None: claimed everywhere.
        member: shape (n,), False where ``nearest`` need not be accepted. None: accepted everywhere.
        free_nan: where ``nearest`` is an accepted NaN, every NaN is (``reading:3``). False for operations that
            carry bits.
        nan: shape (n,), True where any NaN is accepted besides. None: nowhere.
        ranges: further accepted values, as inclusive ranges of ordinals.
        unspecified: unspecified values, likewise. A value that is accepted is not unspecified.
        unspecified_nan: shape (n,), True where a NaN is unspecified. None: nowhere.
        anything: shape (n,), True where every value, NaN too, is at least unspecified. None: nowhere.
    """

    format: Format
    nearest: Bits
    claim: Mask | None = None
    member: Mask | None = None
    free_nan: bool = True
    nan: Mask | None = None
    ranges: Sequence[Range] = ()
    unspecified: Sequence[Range] = ()
    unspecified_nan: Mask | None = None
    anything: Mask | None = None

    def __len__(self) -> int:
        return len(self.nearest)

    @property
    def claimed(self) -> Mask:
        """Shape (n,): True where something is claimed."""
        return np.ones(len(self), bool) if self.claim is None else self.claim

    @property
    def accepts_nan(self) -> Mask:
        """Shape (n,): True where any NaN is accepted."""
        if not self.format.is_float:
            return np.zeros(len(self), bool)
        accepted = np.zeros(len(self), bool) if self.nan is None else self.nan
        if self.free_nan:
            near = codes.is_nan(self.format, self.nearest)
            accepted = accepted | (near if self.member is None else near & self.member)
        return accepted

    @property
    def only_unspecified(self) -> Mask:
        """Shape (n,): True where something is claimed but no value has to be accepted."""
        if self.member is None:
            return np.zeros(len(self), bool)
        some = self.member | self.accepts_nan
        for low, high in self.ranges:
            some = some | (low <= high)
        return self.claimed & ~some

    @property
    def single(self) -> Mask:
        """Shape (n,): True where exactly one value is allowed (any NaN counts as one) and none is unspecified."""
        one = self.claimed if self.member is None else self.claimed & self.member
        if self.nan is not None:
            one = one & ~self.nan
        for low, high in (*self.ranges, *self.unspecified):
            one = one & (low > high)
        for mask in (self.unspecified_nan, self.anything):
            if mask is not None:
                one = one & ~mask
        return one

    @property
    def unspecified_ranges(self) -> tuple[Range, ...]:
        """All unspecified values but NaN, those of ``anything`` among them. May overlap the accepted ones."""
        if self.anything is None:
            return tuple(self.unspecified)
        return (*self.unspecified, only_where(*codes.ordinal_span(self.format), self.anything))

    @property
    def unspecifies_nan(self) -> Mask:
        """Shape (n,): True where a NaN is unspecified, if it is not accepted."""
        found = either((self.unspecified_nan, self.anything)) if self.format.is_float else None
        return np.zeros(len(self), bool) if found is None else found

    def take(self, index: Any) -> AllowedSet:
        """The rows that ``index`` (a mask or positions) selects."""

        def pick(ranges: Sequence[Range]) -> tuple[Range, ...]:
            return tuple((low[index], high[index]) for low, high in ranges)

        def rows(mask: Mask | None) -> Mask | None:
            return None if mask is None else mask[index]

        return replace(
            self,
            nearest=self.nearest[index],
            claim=rows(self.claim),
            member=rows(self.member),
            nan=rows(self.nan),
            ranges=pick(self.ranges),
            unspecified=pick(self.unspecified),
            unspecified_nan=rows(self.unspecified_nan),
            anything=rows(self.anything),
        )

    def judge(self, got: Bits) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The verdict on each result, as an array of `Verdict` values.

        Args:
            got: shape (n,), bit patterns in the storage dtype of the format.
        """
        same = got == self.nearest
        if self.member is not None:
            same &= self.member
        if self.claim is None:
            verdict = np.zeros(len(self), np.uint8)
        else:
            verdict = np.logical_not(self.claim).view(np.uint8)  # NO_CLAIM is 1
            same |= verdict.view(bool)
        if not same.all():
            rest = np.flatnonzero(~same)
            verdict[rest] = self.take(rest)._judge_others(got[rest])
        return verdict

    def _judge_others(self, got: Bits) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Verdicts where the result is not the accepted nearest one. NaN is tested first."""
        accepted = np.zeros(len(got), bool)
        unspecified = np.zeros(len(got), bool) if self.anything is None else self.anything.copy()
        if self.format.is_float:
            nan = codes.is_nan(self.format, got)
            accepted |= nan & self.accepts_nan
            if self.unspecified_nan is not None:
                unspecified |= nan & self.unspecified_nan
        if self.ranges or self.unspecified:
            at = codes.ordinal(self.format, got)
            for low, high in self.ranges:
                accepted |= (low <= at) & (at <= high)
            for low, high in self.unspecified:
                unspecified |= (low <= at) & (at <= high)
        return np.where(
            accepted, Verdict.ALLOWED, np.where(unspecified, Verdict.UNSPECIFIED, Verdict.FORBIDDEN)
        ).astype(np.uint8)

    def distance(self, got: Bits) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Steps between neighbouring representable numbers from ``nearest`` to each result (``reading:1``).

        In ulp of the result's format; +0 and -0 are one point. Where either is NaN: 0 if both are, else 2**64 - 1.
        Meaningless for integers.
        """
        return codes.distance(self.format, self.nearest, got)


def exactly(fmt: Format, bits: Bits, *, claim: Mask | None = None, carries_bits: bool = False) -> AllowedSet:
    """One value for each element; any NaN where it is a NaN, unless the operation ``carries_bits``."""
    return AllowedSet(fmt, bits, claim=claim, free_nan=not carries_bits)


def only_where(low: Ordinals | int, high: Ordinals | int, where: Mask) -> Range:
    """The range where ``where`` holds; empty elsewhere. (``low - 1`` would wrap at the least 64-bit ordinal.)"""
    return np.where(where, low, np.int64(1)), np.where(where, high, np.int64(0))


def point(fmt: Format, bits: Bits, where: Mask | None = None) -> Range:
    """The range that holds one value; empty where ``where`` is False."""
    at = codes.ordinal(fmt, bits)
    return (at, at) if where is None else only_where(at, at, where)


def mark_unspecified(allowed: AllowedSet, where: Mask) -> AllowedSet:
    """The same set, but where ``where`` holds no value is required and every value is unspecified."""
    if not where.any():
        return allowed
    member = ~where if allowed.member is None else allowed.member & ~where
    nan = None if allowed.nan is None else allowed.nan & ~where
    ranges = tuple(only_where(low, high, ~where) for low, high in allowed.ranges)
    anything = where if allowed.anything is None else where | allowed.anything
    return replace(allowed, member=member, nan=nan, ranges=ranges, anything=anything)


def _folded(rule: Callable[[Mask, Mask], Mask], masks: Sequence[Mask | None]) -> Mask | None:
    """The masks that there are, combined; None where there is none."""
    known = [mask for mask in masks if mask is not None]
    return reduce(rule, known) if known else None


def together(masks: Sequence[Mask | None]) -> Mask | None:
    """Where all masks hold; None stands for everywhere."""
    return _folded(np.logical_and, masks)


def either(masks: Sequence[Mask | None]) -> Mask | None:
    """Where any mask holds; None stands for nowhere."""
    return _folded(np.logical_or, masks)


def union(first: AllowedSet, second: AllowedSet) -> AllowedSet:
    """Both sets' members; nothing is claimed where either claims nothing. Both are of one operation's results."""
    fmt = first.format
    extra = first.nearest != second.nearest
    if first.member is not None:
        extra |= ~first.member
    if second.member is not None:
        extra &= second.member
    both = replace(
        first,
        claim=together((first.claim, second.claim)),
        nan=either((first.nan, second.nan)),
        unspecified_nan=either((first.unspecified_nan, second.unspecified_nan)),
        anything=either((first.anything, second.anything)),
    )
    ranges = (*first.ranges, *second.ranges)
    if extra.any():
        if fmt.is_float and second.free_nan:
            nan = extra & codes.is_nan(fmt, second.nearest)
            extra &= ~nan
            both = replace(both, nan=either((both.nan, nan)))
        ranges = (*ranges, point(fmt, second.nearest, extra))
    return replace(both, ranges=ranges, unspecified=(*first.unspecified, *second.unspecified))
