"""Judging whole sweeps: counts of distances to the correctly rounded result, and the worst of them.

`BulkJudge.sweep` runs the native pass over consecutive arguments. Elements that an enclosure does not decide, and those
near a power of two, where steps and ulps differ (``reading:1``), are settled one by one by the slow path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from halfulp.oracle import hardware
from halfulp.oracle.bulk.kernel import BINS, FAR, LONGEST_PIECE, RESULT, Native, Word, native
from halfulp.oracle.bulk.table import BEYOND, INFINITY, SCALE, SHIFT, SIGN, Array, Evaluated, Kind, Table, evaluate
from halfulp.oracle.formats import FORMATS, Bits
from halfulp.oracle.functions import nearest_many

F32 = FORMATS["f32"]


@dataclass(frozen=True)
class Limits:
    """What counts as a breach.

    Attributes:
        steps: the bound in steps and ulps from the correctly rounded result, 0 to 7; None: there is none.
        relative: elements with ``|got - exact| > relative * max(|exact|, least)`` are counted as beyond; None: none.
        least: see there.
    """

    steps: int | None = None
    relative: float | None = None
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.steps is not None and not 0 <= self.steps < BINS:
            raise ValueError(f"a bound of {self.steps} steps: only 0 to {BINS - 1} are counted one by one")

    @property
    def largest(self) -> float:
        """The relative limit as float64 compares it, infinite where there is none: what is near it counts as beyond."""
        return np.inf if self.relative is None else self.relative * (1 - 2.0**-39)


@dataclass(frozen=True)
class Summary:
    """What was seen in a range of arguments. Sums with ``+``, in any order.

    Attributes:
        inputs: number of elements.
        histogram: how many at 0, 1, ..., 7 and at 8 or more steps.
        wrong: results without a distance: NaN for a number or the reverse, or anything but a result that is stated
            exactly (poles, infinities, zeros and their sign).
        forbidden: beyond the bound in steps and in ulps, or wrong. Without a bound: wrong alone.
        unspecified: beyond the bound in only one of the two (``reading:1``).
        beyond: beyond the relative limit, or so near to it that float64 cannot tell.
        zero_sign: the nearest result is a zero (an underflow), and the other zero was given.
        settled: undecided elements that were handed to the slow path.
        max_distance, max_distance_at: the greatest distance among those that have one, and its argument. Cut off at
            2**31 - 2; a lower bound for results that should have overflowed by 64 steps or more.
        max_error, max_error_at: the greatest ``|got - exact| / ulp(exact)``, within 2**-16, and its argument; infinity
            counts as 2**128.
    """

    inputs: int
    histogram: tuple[int, ...]
    wrong: int
    forbidden: int
    unspecified: int
    beyond: int
    zero_sign: int
    settled: int
    max_distance: int
    max_distance_at: int | None
    max_error: float
    max_error_at: int | None

    def __add__(self, other: Summary) -> Summary:
        longer = max(other, self, key=lambda s: (s.max_distance, -(s.max_distance_at or 0)))
        larger = max(other, self, key=lambda s: (s.max_error, -(s.max_error_at or 0)))
        names = ("inputs", "wrong", "forbidden", "unspecified", "beyond", "zero_sign", "settled")
        return Summary(
            histogram=tuple(a + b for a, b in zip(self.histogram, other.histogram, strict=True)),
            max_distance=longer.max_distance,
            max_distance_at=longer.max_distance_at,
            max_error=larger.max_error,
            max_error_at=larger.max_error_at,
            **{name: getattr(self, name) + getattr(other, name) for name in names},
        )


NOTHING = Summary(0, (0,) * (BINS + 1), 0, 0, 0, 0, 0, 0, -1, None, -1.0, None)


@dataclass(frozen=True)
class Elements:
    """The verdict on single elements.

    Attributes:
        nearest: uint32, the correctly rounded results.
        distance: int64, steps; -1 where ``wrong``.
        ulps: float64, ``|got - nearest| / ulp(nearest)``, the other measure of ``reading:1``.
        error: float64, ``|got - exact| / ulp(exact)`` within 2**-16.
        wrong: see `Summary`.
        undecided: was settled by the slow path.
        y: float64, the approximate value, within 2**-41 of the exact one, relatively.
    """

    nearest: Bits
    distance: Array
    ulps: Array
    error: Array
    wrong: Array
    undecided: Array
    y: Array


class Pieces(NamedTuple):
    """Parts of runs, which together are consecutive arguments. All int64, shape (n,).

    Attributes:
        firsts: the code of the first argument of each.
        offsets: the same, counted from the first argument of all.
        lengths: arguments, `LONGEST_PIECE` at most.
        runs: the index of the run.
    """

    firsts: Array
    offsets: Array
    lengths: Array
    runs: Array

    def at(self, which: Array) -> Pieces:
        """Some of them, by a mask or by indices."""
        return Pieces(*(column[which] for column in self))


Settle = Callable[[Bits], Bits]
"""Arguments to their correctly rounded results: the slow path."""


class BulkJudge:
    """The judge of one function in f32.

    Args:
        table: its table; trusted, see `oracle.bulk.build.verify`.
        settle: the slow path. None: `oracle.functions.nearest_many`.
        code: the compiled judge of the table's degree. None: the shared one.
    """

    def __init__(self, table: Table, settle: Settle | None = None, code: Native | None = None) -> None:
        self.table = table
        self._settle: Settle = settle or (lambda codes: nearest_many(table.name, F32, codes))
        self._native = code or native(table.degree)
        self._starts = table.starts.astype(np.int64)
        self._rows = np.ascontiguousarray(table.rows)
        self._reflected = np.ascontiguousarray(table.reflected)

    def sweep(self, first: int, got: Bits, limits: Limits = Limits()) -> Summary:
        """Judge the results of consecutive arguments.

        Args:
            first: the code of the first argument; the arguments do not go beyond 0xffffffff.
            got: (n,) uint32, the results, contiguous.
            limits: what counts as a breach.

        Raises:
            RuntimeError: float arithmetic is not in its default state on this thread.
            ValueError: wrong dtype or layout, or too many elements.
        """
        if got.dtype != np.uint32 or got.ndim != 1 or not got.flags.c_contiguous:
            raise ValueError("results are a contiguous vector of uint32")
        if not 0 <= first <= first + len(got) <= 1 << 32:
            raise ValueError(f"no {len(got)} codes from {first:#x}")
        if not hardware.in_default_state():
            raise RuntimeError("float64 arithmetic is not in its default state: no bound would hold")
        if len(got) == 0:
            return NOTHING
        pieces = self.pieces(first, len(got))
        rows = self.rows(pieces, got, limits)
        again = self.again(pieces, rows)
        total = self.summed(pieces.at(~again), rows[~again], limits)
        if again.any():
            where = pieces.at(again)
            picked = [np.arange(o, o + n) for o, n in zip(where.offsets, where.lengths, strict=True)]
            places = np.concatenate(picked)
            total += self._counted((first + places).astype(np.uint32), got[places], limits)
        return total

    def pieces(self, first: int, n: int, cuts: Sequence[int] = ()) -> Pieces:
        """The pieces of ``n`` consecutive arguments.

        Args:
            first: the code of the first.
            cuts: further codes that pieces begin with, ascending.
        """
        inside = np.array([cut for cut in cuts if first < cut < first + n], np.int64)
        a, b = np.searchsorted(self._starts, (first, first + n - 1), side="right") - 1
        start = np.union1d(np.maximum(self._starts[a : b + 1], first), inside)
        runs = np.searchsorted(self._starts, start, side="right") - 1
        end = np.append(start[1:], first + n)
        parts = -((start - end) // LONGEST_PIECE)
        which = np.repeat(np.arange(len(start)), parts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(parts) - parts, parts)
        firsts = start[which] + number * LONGEST_PIECE
        lengths = np.minimum(end[which] - firsts, LONGEST_PIECE)
        return Pieces(firsts, firsts - first, lengths, runs[which])

    def rows(self, pieces: Pieces, got: Bits, limits: Limits = Limits()) -> Array:
        """What the native pass writes: (pieces, `RESULT`) int64, columns as in `Word`.

        Args:
            pieces: of consecutive arguments, or some of them.
            got: the results of the consecutive arguments.
        """
        out = np.zeros((len(pieces.runs), RESULT), np.int64)
        out[:, Word.DISTANCE] = -1
        out.view(np.float64)[:, Word.FRACTION] = -1.0
        numbers = np.array([limits.largest, limits.least])
        table = self.table
        columns = [np.ascontiguousarray(c) for c in (pieces.offsets, pieces.lengths, pieces.firsts, pieces.runs)]
        arrays = (*columns, table.kinds, got, self._rows, self._reflected, table.codes, table.positions, numbers, out)
        self._native.judge(len(out), *(a.ctypes.data for a in arrays))
        return out

    def again(self, pieces: Pieces, rows: Array, close: int = 0) -> Array:
        """Which pieces have an element whose row is not right in all respects: they are judged one by one.

        Args:
            close: results at most so many steps off may lie in another binade than the nearest: steps and ulps differ
                by a factor of two at most, which the caller allows for. Their signs are the same, or there would be
                more steps.
        """
        kinds, position = self.table.kinds[pieces.runs], self.table.positions[pieces.runs]
        again = (rows[:, Word.UNDECIDED] > 0) | ((rows[:, Word.MIXED] > 0) & (rows[:, Word.DISTANCE] > close))
        again |= np.isposinf(rows.view(np.float64)[:, Word.FRACTION])
        again |= (rows[:, [Word.BEYOND, Word.WRONG]] > 0).any(axis=1) & (kinds < Kind.VALUE)
        again |= (kinds == Kind.VALUE) & (position >= INFINITY) & (position < INFINITY + BEYOND)
        return np.asarray(again)

    def summed(self, pieces: Pieces, out: Array, limits: Limits) -> Summary:
        """The sum of rows that are right."""
        if len(out) == 0:
            return NOTHING
        sums = out.sum(axis=0)
        bins = [int(sums[k]) for k in range(BINS)]
        inputs, wrong = int(pieces.lengths.sum()), int(sums[Word.WRONG])
        bins.append(inputs - wrong - sum(bins))
        far = int(np.argmax(out[:, Word.DISTANCE]))
        errors = out.view(np.float64)[:, Word.FRACTION]
        most = int(np.argmax(errors))
        argument = np.float32(out.view(np.float64)[most, Word.ARGUMENT]).view(np.uint32)
        distance = int(out[far, Word.DISTANCE])
        return Summary(
            inputs,
            tuple(bins),
            wrong,
            wrong + (0 if limits.steps is None else sum(bins[limits.steps + 1 :])),
            0,
            int(sums[Word.BEYOND]),
            int(sums[Word.ZERO_SIGN]),
            0,
            distance,
            int(pieces.firsts[far] + out[far, Word.INDEX]) if distance >= 0 else None,
            float(errors[most]),
            int(argument) if errors[most] >= 0 else None,
        )

    def _counted(self, codes: Bits, got: Bits, limits: Limits) -> Summary:
        """The same from single elements."""
        found = self.elements(codes, got)
        number = found.distance[~found.wrong]
        bins = np.bincount(np.minimum(number, BINS), minlength=BINS + 1)
        forbidden, unspecified = found.wrong.copy(), np.zeros(len(codes), np.bool_)
        if limits.steps is not None:
            by_steps, by_ulps = found.distance > limits.steps, found.ulps > limits.steps
            forbidden |= by_steps & by_ulps
            unspecified = (by_steps != by_ulps) & ~found.wrong
        beyond = 0
        if limits.relative is not None:
            beyond = int(self._beyond(found, got, limits).sum())
        zeros = (found.nearest & ~np.uint32(SIGN) == 0) & (found.nearest ^ got == SIGN) & (found.distance == 0)
        far, most = int(np.argmax(found.distance)), int(np.argmax(np.where(found.error >= 0, found.error, -1.0)))
        largest = found.error[most] if found.error[most] >= 0 else -1.0
        return Summary(
            len(codes),
            tuple(bins.tolist()),
            int(found.wrong.sum()),
            int(forbidden.sum()),
            int(unspecified.sum()),
            beyond,
            int(zeros.sum()),
            int(found.undecided.sum()),
            int(found.distance[far]),
            int(codes[far]) if found.distance[far] >= 0 else None,
            float(largest),
            int(codes[most]) if largest >= 0 else None,
        )

    @staticmethod
    def _beyond(found: Elements, got: Bits, limits: Limits) -> Array:
        assert limits.relative is not None
        with np.errstate(all="ignore"):
            error = np.abs(_finite(got) - found.y)
            limit = limits.relative * (1 - 2.0**-39) * np.maximum(np.abs(found.y), limits.least)
        return np.asarray(~(error <= limit) & (found.distance != 0))

    def array(self, codes: Bits) -> Evaluated:
        """Enclosures of arbitrary arguments; undecided ones are marked, not settled."""
        if not hardware.in_default_state():
            raise RuntimeError("float64 arithmetic is not in its default state: no bound would hold")
        return evaluate(self.table, np.ascontiguousarray(codes, np.uint32))

    def nearest(self, codes: Bits) -> Bits:
        """The correctly rounded results of arbitrary arguments."""
        found = self.array(codes)
        return self._settled(codes, found)

    def _settled(self, codes: Bits, found: Evaluated) -> Bits:
        nearest = found.nearest.copy()
        if found.undecided.any():
            nearest[found.undecided] = self._settle(codes[found.undecided])
        return nearest

    def elements(self, codes: Bits, got: Bits) -> Elements:
        """The verdict on each of arbitrary arguments and their results.

        Args:
            codes, got: (n,) uint32.
        """
        found = self.array(codes)
        nearest = self._settled(codes, found)
        run = self.table.run_of(codes)
        kinds = self.table.kinds[run]
        constant = kinds >= Kind.VALUE
        position = _ordinal(nearest)
        position[constant] = self.table.positions[run[constant]]
        at = _ordinal(got)
        overflow = (got == INFINITY) & (position >= INFINITY)
        at[overflow] = position[overflow]
        nan, nearest_nan = _is_nan(got), _is_nan(nearest)
        exact = (kinds == Kind.EXACT) | ((kinds == Kind.REFLECTION) & (nearest == INFINITY))
        wrong = (nan != nearest_nan) | (exact & ~nearest_nan & (got != nearest))
        distance = np.minimum(np.abs(at - position), FAR)
        distance[nan & nearest_nan] = 0
        distance[wrong] = -1
        past = position >= INFINITY
        value = _finite(got)
        target = _finite(nearest)
        target[past] += (position[past] - INFINITY) * 2.0**105
        with np.errstate(all="ignore"):
            ulps = np.abs(value - target) * _inverse_ulp(target)
            value[overflow] = np.maximum(value, found.y)[overflow]
            error = np.abs(value - found.y) * _inverse_ulp(found.y)
            rows = self.table.rows[run[constant]]
            error[constant] = np.abs(value[constant] - rows[:, SCALE]) * rows[:, SHIFT]
        error[exact] = np.nan
        ulps[overflow] = 0
        return Elements(nearest, distance, ulps, error, wrong, found.undecided, found.y)


def _ordinal(codes: Bits) -> Array:
    magnitude = (codes & 0x7FFF_FFFF).astype(np.int64)
    return np.where(codes & SIGN, -magnitude, magnitude)


def _is_nan(codes: Bits) -> Array:
    return (codes & 0x7FFF_FFFF) > INFINITY


def _finite(codes: Bits) -> Array:
    """Values as float64, infinities as 2**128."""
    with np.errstate(invalid="ignore"):
        values = codes.view(np.float32).astype(np.float64)
    return np.clip(values, -(2.0**128), 2.0**128)


def _inverse_ulp(values: Array) -> Array:
    """1/ulp of the f32 binade of float64 values."""
    _, exponent = np.frexp(values)
    return np.ldexp(1.0, np.where(values == 0, 149, 24 - np.maximum(exponent, -125)))
