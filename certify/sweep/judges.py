"""Judges of sweeps: by allowed sets, which are the definition, and by certified enclosures, which are fast.

The bulk judge never decides against a result. Where everything of a stretch lies within the bound by both counts of
``reading:1`` and nothing that is stated exactly differs, every result is allowed; any other stretch is looked at one
by one, and what an enclosure does not clear gets its verdict from the allowed set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from halfulp.certify import tables
from halfulp.certify.sweep.part import BINS, KEPT, Array, Assessment, Extreme, Part, part_of
from halfulp.oracle import codes, functions, hardware
from halfulp.oracle.bulk import TARGETS, BulkJudge, Limits, Pieces, Summary, narrow
from halfulp.oracle.bulk.kernel import Word
from halfulp.oracle.bulk.quotients import PIECE, quotients
from halfulp.oracle.formats import FORMATS, Bits, Format
from halfulp.oracle.functions import UndecidedRoundingError, source
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.approximate import LARGE_DIVISOR, TANH_ERROR, flushed
from halfulp.oracle.ops.functions import RULES, flushes, is_approximate
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import power_of_two, value_of
from halfulp.oracle.sets import AllowedSet, Mask, Verdict

F32 = FORMATS["f32"]
SIGN = F32.sign_mask

BLOCK = 1 << 15
"""Elements judged at once by their sets."""

FINE = 1 << 12
"""Elements of a stretch that is looked at again, one by one."""

NO_DISTANCE = np.uint64(2**64 - 1)


class Judge(Protocol):
    """Judges results of one signature."""

    def judge(self, columns: Sequence[Bits], got: Bits, *, worst: bool = True) -> Part:
        """Counts and extremes of arbitrary inputs; without ``worst`` the worst ones are not picked out."""
        ...

    def judge_run(self, first: int, columns: Sequence[Bits], got: Bits) -> Part:
        """The same for consecutive codes from ``first`` of a single operand; ``worst`` may be incomplete."""
        ...

    def worst(self, first: int | None, columns: Sequence[Bits], got: Bits) -> list[Extreme]:
        """The worst elements, complete."""
        ...


# Fractional errors.

Errors = Callable[[Sequence[Bits], Bits, Bits], Array]
"""Operands, results and correctly rounded results to ``|got - exact| / ulp(exact)``; NaN where it is not measured."""

LOOKED_AT = 32
"""Correctly rounded f64 results of a block whose error is measured: it is at most half an ulp anyway."""


def error_in_ulp(fmt: Format, exact: Array, got: Bits) -> Array:
    """``|got - exact| / ulp(exact)`` from float64 approximations of the exact values.

    Formats up to f32: their steps are 2**29 times those of float64. NaN where the exact value is infinite or NaN, or
    the result is NaN; an infinite result counts as 2**(emax + 1), or as the exact value where that lies beyond.
    """
    with np.errstate(all="ignore"):
        value = codes.float64_values(fmt, got)
        infinite = np.isinf(value)
        if infinite.any():
            limit = np.copysign(2.0 ** (fmt.max_exponent + 1), value)
            beyond = (np.sign(value) == np.sign(exact)) & (np.abs(exact) > np.abs(limit))
            value = np.where(infinite, np.where(beyond, exact, limit), value)
        exponent = np.maximum((exact.view(np.int64) >> 52) & 0x7FF, 1023 + fmt.emin)
        inverse = ((2046 + fmt.fraction_bits - exponent) << 52).view(np.float64)
        error: Array = np.abs(value - exact) * inverse
    return error if np.isfinite(exact).all() else np.where(np.isfinite(exact), error, np.nan)


def _narrow_errors(signature: Signature) -> Errors:
    """Of a function below f32: the table of its f32 form gives the values."""
    fmt, bulk = signature.formats[0], bulk_judge(signature.op)

    def errors(columns: Sequence[Bits], got: Bits, nearest: Bits) -> Array:
        with np.errstate(invalid="ignore"):
            wide = codes.float64_values(fmt, columns[0]).astype(np.float32).view(np.uint32)
        return error_in_ulp(fmt, bulk.array(wide).y, got)

    return errors


def _wide_errors(signature: Signature) -> Errors:
    """Of a function in f64, from its exact value cut off 32 bits beyond the format, one by one: of wrong results, and
    of a few that are correctly rounded."""
    fmt = signature.result_format

    def one(code: int, got: int) -> float:
        exact = functions.extended(signature.op, fmt, code)
        value = value_of(fmt, got)
        if exact.kind != "number" or value == "nan":
            return float("nan")
        target = exact.significand * power_of_two(exact.exponent)
        if isinstance(value, str):
            value = max(target, power_of_two(fmt.max_exponent + 1)) * (-1 if value == "-inf" else 1)
        if exact.negative:
            value = -value
        top = exact.significand.bit_length() - 1 + exact.exponent
        return float(abs(value - target) / power_of_two(max(top, fmt.emin) - fmt.fraction_bits))

    def errors(columns: Sequence[Bits], got: Bits, nearest: Bits) -> Array:
        found = np.full(len(got), np.nan)
        right = got == nearest
        for at in (*np.flatnonzero(~right).tolist(), *np.flatnonzero(right)[:LOOKED_AT].tolist()):
            found[at] = one(int(columns[0][at]), int(got[at]))
        return found

    return errors


def _quotient_errors(signature: Signature) -> Errors:
    """Of an f32 quotient of finite numbers, for divisors that ``reading:13`` gives a tolerance."""
    flush = flushes(signature.attrs)
    approximate = is_approximate(signature.attrs)

    def errors(columns: Sequence[Bits], got: Bits, nearest: Bits) -> Array:
        a, b = (flushed(column) for column in columns) if flush else columns
        with np.errstate(all="ignore"):
            exact = codes.float64_values(F32, a) / codes.float64_values(F32, b)
            error = error_in_ulp(F32, exact, got)
        stated = exact == 0
        if approximate:
            stated |= (b & ~np.uint32(SIGN)) > LARGE_DIVISOR
        if flush:
            stated |= np.abs(exact) < 2.0**F32.emin
        return np.where(stated, np.nan, error)

    return errors


def _errors(signature: Signature) -> Errors | None:
    """How the fractional error of a signature is measured; None: it is not, since one result alone is right."""
    fmt = signature.result_format
    if signature.op == "fdiv" and fmt is F32:
        return _quotient_errors(signature)
    if signature.op in TARGETS and not is_approximate(signature.attrs):
        return _narrow_errors(signature) if fmt.width < 32 else _wide_errors(signature)
    return None


# By sets.


def clause_of(signature: Signature) -> Callable[[Sequence[Bits]], str]:
    """The clause that governs an element; of several the first."""

    def find(columns: Sequence[Bits]) -> str:
        cases = operation(signature.op).cases(signature, columns)
        return next((clause for clause, mask in cases.items() if mask[0]), "")

    return find


def distances(allowed: AllowedSet, got: Bits, verdict: Array) -> Array:
    """Steps as int64; -1 where there are none."""
    if allowed.format.is_float:
        steps = allowed.distance(got)
    else:
        at, nearest = (codes.ordinal(allowed.format, bits) for bits in (got, allowed.nearest))
        steps = np.abs(at - nearest).astype(np.uint64)
    capped = np.minimum(steps, np.uint64(2**62)).astype(np.int64)
    return np.where((steps == NO_DISTANCE) | (verdict == Verdict.NO_CLAIM), np.int64(-1), capped)


class SetJudge:
    """Every element by its allowed set."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.record = operation(signature.op)
        self.errors = _errors(signature)
        self.clause_of = clause_of(signature)
        self.source = Enclosures() if signature.op in TARGETS else source.current()

    def assess(self, columns: Sequence[Bits], got: Bits) -> Assessment:
        try:
            with source.use(self.source):
                allowed = self.record.allowed(self.signature, columns)
        except UndecidedRoundingError:
            return self._one_by_one(columns, got)
        verdict = allowed.judge(got)
        error = None if self.errors is None else self.errors(columns, got, allowed.nearest)
        if error is not None and allowed.claim is not None:
            error[~allowed.claim] = np.nan
        same = allowed.claim is None and np.array_equal(got, allowed.nearest)
        distance = np.zeros(len(got), np.int64) if same else distances(allowed, got, verdict)
        return Assessment(verdict, allowed.nearest, distance, error)

    def _one_by_one(self, columns: Sequence[Bits], got: Bits) -> Assessment:
        """Some element has no decided rounding: the others are judged, that one is counted."""
        if len(got) == 1:
            none = np.array([Verdict.NO_CLAIM], np.uint8)
            return Assessment(none, got, np.array([-1]), None, 1, 1)
        middle = len(got) // 2
        halves = [
            self.assess([column[part] for column in columns], got[part])
            for part in (slice(0, middle), slice(middle, None))
        ]
        errors = [np.full(len(half.verdict), np.nan) if half.error is None else half.error for half in halves]
        return Assessment(
            np.concatenate([half.verdict for half in halves]),
            np.concatenate([half.nearest for half in halves]),
            np.concatenate([half.distance for half in halves]),
            np.concatenate(errors),
            sum(half.settled for half in halves),
            sum(half.undecided for half in halves),
        )

    def judge(self, columns: Sequence[Bits], got: Bits, *, worst: bool = True) -> Part:
        total = Part()
        for start in range(0, len(got), BLOCK):
            rows = slice(start, start + BLOCK)
            block = [column[rows] for column in columns]
            found = self.assess(block, got[rows])
            total.add(part_of(block, got[rows], found, self.clause_of, worst=worst))
        return total

    def judge_run(self, first: int, columns: Sequence[Bits], got: Bits) -> Part:
        return self.judge(columns, got, worst=False)

    def worst(self, first: int | None, columns: Sequence[Bits], got: Bits) -> list[Extreme]:
        return self.judge(columns, got).worst


class QuotientJudge(SetJudge):
    """fdiv in f32: what is the correctly rounded quotient is allowed; pieces that hold anything else go by sets."""

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature)
        self.check = quotients(is_approximate(signature.attrs), flushes(signature.attrs)).check

    def judge(self, columns: Sequence[Bits], got: Bits, *, worst: bool = True) -> Part:
        """The worst ones are picked out of the pieces that go by sets alone."""
        a, b = columns
        found = self.check(a, b, got)
        total = Part()
        edges = [0, *(np.flatnonzero(np.diff(found.doubtful > 0)) + 1).tolist(), len(found.doubtful)]
        for first, end in pairwise(edges):
            rows = slice(first * PIECE, end * PIECE)
            block = [column[rows] for column in columns]
            if found.doubtful[first]:
                total.add(super().judge(block, got[rows], worst=worst))
            else:
                total.add(_part_of_quotients(block, found.error[first:end], found.at[first:end], columns))
        return total

    def worst(self, first: int | None, columns: Sequence[Bits], got: Bits) -> list[Extreme]:
        return super().judge(columns, got).worst


def _part_of_quotients(block: Sequence[Bits], error: Array, at: Array, columns: Sequence[Bits]) -> Part:
    """Results that are all right, and the errors of their pieces."""
    n, largest = len(block[0]), int(np.argmax(error))
    return Part(
        inputs=n,
        claimed=n,
        allowed=n,
        histogram=[n, *[0] * BINS],
        max_distance=0,
        max_argument=tuple(int(column[0]) for column in block),
        max_error=float(error[largest]),
        max_error_argument=tuple(int(column[at[largest]]) for column in columns) if error[largest] >= 0 else (),
    )


class NarrowJudge(SetJudge):
    """Arithmetic of f16 and bf16: what is correctly rounded is allowed; pieces that hold anything else go by sets."""

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature)
        self.check = narrow.narrow(signature.op, signature.args[0])

    def judge(self, columns: Sequence[Bits], got: Bits, *, worst: bool = True) -> Part:
        a, b = columns
        doubtful = self.check.doubtful(a, b, got) > 0
        total = Part()
        edges = [0, *(np.flatnonzero(np.diff(doubtful)) + 1).tolist(), len(doubtful)]
        for first, end in pairwise(edges):
            rows = slice(first * narrow.PIECE, end * narrow.PIECE)
            block = [column[rows] for column in columns]
            total.add(super().judge(block, got[rows], worst=worst) if doubtful[first] else _part_of_right(block))
        return total


def _part_of_right(block: Sequence[Bits]) -> Part:
    """Results that are all correctly rounded, where nothing else is right."""
    n = len(block[0])
    part = Part(inputs=n, claimed=n, allowed=n, histogram=[n, *[0] * BINS], max_distance=0)
    part.max_argument = tuple(int(column[0]) for column in block)
    return part


# By enclosures.


class Settled:
    """The slow path for elements that an enclosure does not decide, counting those that it does not decide either."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.undecided = 0

    def __call__(self, bits: Bits) -> Bits:
        try:
            return functions.nearest_many(self.name, F32, bits)
        except UndecidedRoundingError:
            return np.array([self._one(code) for code in bits.tolist()], np.uint32)

    def _one(self, code: int) -> int:
        try:
            return functions.nearest(self.name, F32, code)
        except UndecidedRoundingError:
            self.undecided += 1
            return F32.nan_bits


@cache
def _settled(name: str) -> Settled:
    return Settled(name)


@cache
def bulk_judge(name: str) -> BulkJudge:
    """The bulk judge of a function, one in each process."""
    return BulkJudge(tables.table(name), settle=_settled(name))


class Enclosures:
    """The source of exact values (`oracle.functions.source`) that takes correctly rounded f32 results from tables."""

    def __init__(self) -> None:
        self._slow = source.SlowPath()

    def is_fast(self, name: str, fmt: Format) -> bool:
        return fmt is F32 and name in TARGETS

    def nearest(self, name: str, fmt: Format, bits: Bits) -> Bits:
        """The slow path, too, where a library has changed the state of float arithmetic: it does not depend on it."""
        if not self.is_fast(name, fmt) or not hardware.in_default_state():
            return self._slow.nearest(name, fmt, bits)
        return bulk_judge(name).nearest(np.ascontiguousarray(bits))

    def unbounded(self, name: str, fmt: Format, bits: Bits) -> source.Magnitudes:
        return self._slow.unbounded(name, fmt, bits)

    def within(self, name: str, fmt: Format, bits: Bits, relative: Fraction) -> tuple[Bits, Bits]:
        return self._slow.within(name, fmt, bits, relative)


Stretch = tuple[int, int]
"""First and last code."""

_SUBNORMAL: tuple[Stretch, ...] = ((0, F32.min_normal_bits - 1), (SIGN, SIGN + F32.min_normal_bits - 1))
_NEXT_TO_ZERO: tuple[Stretch, ...] = ((0, 63), (SIGN, SIGN + 63))
_SUBNORMAL_POWERS: Stretch = (0xC2FC0000, 0xC3160000)
"""From -126 to -150: 2^x is subnormal, or rounds to a zero or to the smallest normal number."""
_SMALL_POWERS: Stretch = (0xC2FC0000, F32.infinity_bits | SIGN)
"""From -126 down: few steps from zero."""
_ENDS_OF_ASIN: tuple[Stretch, ...] = ((0x3F7FFFF0, 0x3F800000), (0xBF7FFFF0, 0xBF800000))


def strict_stretches(signature: Signature) -> tuple[Stretch, ...]:
    """Where a result within the bound may be forbidden all the same: a wrong sign, or beyond pi/2; or flushing.

    Elsewhere the correctly rounded result is further from zero, and from the end of the range, than any bound.
    """
    if flushes(signature.attrs):
        return (*_SUBNORMAL, _SMALL_POWERS)
    if is_approximate(signature.attrs):
        return _SUBNORMAL if signature.op == "tanh" else ()
    return {
        "asin": (*_NEXT_TO_ZERO, *_ENDS_OF_ASIN),
        "tanh": _NEXT_TO_ZERO,
        "exp2": (_SMALL_POWERS,),
    }.get(signature.op, ())


class FunctionJudge:
    """A unary function in f32."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.bulk = bulk_judge(signature.op)
        self.undecided = _settled(signature.op)
        self.strict = strict_stretches(signature)
        self.flush = flushes(signature.attrs)
        self.clause_of = clause_of(signature)
        if is_approximate(signature.attrs) and signature.op == "tanh":
            self.limits = Limits(relative=float(TANH_ERROR))
        elif is_approximate(signature.attrs):
            self.limits = Limits(steps=2)
        else:
            self.limits = Limits(steps=RULES[signature.op].bounds[0])

    def judge_run(self, first: int, columns: Sequence[Bits], got: Bits) -> Part:
        total = Part()
        for start, end, strict in self._stretches(first, first + len(got)):
            total.add(self._run(start, got[start - first : end - first], strict, len(got)))
        return total

    @property
    def cuts(self) -> list[int]:
        """Where a stretch of codes has to be cut, so that what is said of its first code holds for all of it."""
        return sorted({cut for low, high in (*self.strict, _SUBNORMAL_POWERS) for cut in (low, high + 1)})

    def is_strict(self, bits: Array) -> Mask:
        """Which codes lie in a strict stretch."""
        strict = np.zeros(len(bits), bool)
        for low, high in self.strict:
            strict |= (low <= bits) & (bits <= high)
        return strict

    def _stretches(self, first: int, end: int) -> list[tuple[int, int, bool]]:
        """The codes of a run, cut at the ends of the strict stretches."""
        edges = [first, *(cut for cut in self.cuts if first < cut < end), end]
        return [(a, b, any(low <= a <= high for low, high in self.strict)) for a, b in pairwise(edges)]

    def clear(self, pieces: Pieces, rows: Array) -> Mask:
        """Of which pieces every result is allowed, by the rows of the bulk judge alone (`BulkJudge.rows`).

        Args:
            pieces: none may contain a cut.
            rows: in strict stretches without the relative limit.
        """
        strict = self.is_strict(pieces.firsts)
        counted = pieces.lengths if self.limits.steps is None else rows[:, : self.limits.steps + 1].sum(axis=1)
        within = np.where(strict, rows[:, 0], counted)
        close = 1 << 20 if self.limits.steps is None else self.limits.steps // 2
        clear = ~self.bulk.again(pieces, rows, close) & (within == pieces.lengths)
        clear &= ~(rows[:, [Word.WRONG, Word.BEYOND, Word.ZERO_SIGN]] > 0).any(axis=1)
        if self.flush:
            low, high = _SUBNORMAL_POWERS
            clear &= (pieces.firsts < low) | (pieces.firsts > high)
        return np.asarray(clear)

    def _run(self, first: int, got: Bits, strict: bool, size: int) -> Part:
        """One stretch: natively; what is not clear, again in smaller ones, and at last one by one."""
        if self.flush and _SUBNORMAL_POWERS[0] <= first <= _SUBNORMAL_POWERS[1]:
            return self.judge((np.arange(first, first + len(got), dtype=np.uint64).astype(np.uint32),), got)
        before = self.undecided.undecided
        summary = self.bulk.sweep(first, got, Limits(steps=0) if strict else self.limits)
        if _clear(summary) and self.undecided.undecided == before:
            return part_of_summary(summary)
        if size > FINE:
            smaller = max(FINE, size // 32)
            total = Part()
            for start in range(0, len(got), smaller):
                total.add(self._run(first + start, got[start : start + smaller], strict, smaller))
            return total
        return self.judge((np.arange(first, first + len(got), dtype=np.uint64).astype(np.uint32),), got)

    def judge(self, columns: Sequence[Bits], got: Bits, *, worst: bool = True) -> Part:
        total = Part()
        for start in range(0, len(got), BLOCK):
            rows = slice(start, start + BLOCK)
            block = [np.ascontiguousarray(column[rows]) for column in columns]
            found = self.assess(block, got[rows])
            total.add(part_of(block, got[rows], found, self.clause_of, worst=worst))
        return total

    def assess(self, columns: Sequence[Bits], got: Bits) -> Assessment:
        (bits,) = columns
        before = self.undecided.undecided
        found = self.bulk.elements(flushed(bits) if self.flush else bits, got)
        clear = ~found.wrong & self._within(found, got)
        clear &= ~self.is_strict(bits) | (found.nearest == got)
        verdict = np.zeros(len(bits), np.uint8)
        nearest, distance, error = found.nearest, found.distance.copy(), found.error.copy()
        touched = np.zeros(len(bits), bool)
        if self.flush:  # what flushing touches is measured from the flushed result
            touched = codes.is_subnormal(F32, bits) | codes.is_subnormal(F32, nearest)
            nearest = flushed(nearest)
            clear &= ~touched
            error[touched] = np.nan
        rest = np.flatnonzero(~clear)
        if len(rest):
            with source.use(Enclosures()):
                allowed = operation(self.signature.op).allowed(self.signature, [bits[rest]])
            verdict[rest] = allowed.judge(got[rest])
            again = touched[rest]
            steps = distances(allowed, got[rest], verdict[rest])
            distance[rest[again]] = steps[again]
        return Assessment(
            verdict, nearest, distance, error, int(found.undecided.sum()), self.undecided.undecided - before
        )

    def _within(self, found: Any, got: Bits) -> Mask:
        if self.limits.relative is None:
            assert self.limits.steps is not None
            inside = (found.distance <= self.limits.steps) & (found.ulps <= self.limits.steps)
            other_zero = (found.nearest ^ got == SIGN) & (found.distance == 0)
            return np.asarray(inside & ~other_zero)
        with np.errstate(all="ignore"):
            value = got.view(np.float32).astype(np.float64)
            limit = self.limits.relative * (1 - 2.0**-39) * np.abs(found.y)
            return np.asarray((np.abs(value - found.y) <= limit) | (found.nearest == got))

    def worst(self, first: int | None, columns: Sequence[Bits], got: Bits) -> list[Extreme]:
        """The worst elements lie in the blocks with the largest maxima, of which no more are needed than elements."""
        if first is None:
            return self.judge(columns, got).worst
        blocks = []
        for start in range(0, len(got), FINE):
            part = self.judge_run(first + start, (), got[start : start + FINE])
            blocks.append((-part.max_error, -part.max_distance, start))
        total = Part()
        for _, _, start in sorted(blocks)[:KEPT]:
            rows = slice(start, start + FINE)
            total.add(self.judge([columns[0][rows]], got[rows]))
        return total.worst


def _clear(summary: Summary) -> bool:
    """Whether every result of a stretch is allowed."""
    return not (summary.wrong or summary.forbidden or summary.unspecified or summary.beyond or summary.zero_sign)


def part_of_summary(summary: Summary) -> Part:
    at, error_at = summary.max_distance_at, summary.max_error_at
    return Part(
        inputs=summary.inputs,
        claimed=summary.inputs,
        allowed=summary.inputs,
        settled=summary.settled,
        histogram=[*summary.histogram[:BINS], sum(summary.histogram[BINS:])],
        max_distance=summary.max_distance,
        max_argument=() if at is None else (at,),
        max_error=summary.max_error,
        max_error_argument=() if error_at is None else (error_at,),
    )


@cache
def judge_of(signature: Signature) -> Judge:
    """The fastest judge there is for a signature, one in each process."""
    if signature.op in TARGETS and signature.args == ("f32",):
        return FunctionJudge(signature)
    if signature.op == "fdiv" and signature.args[0] == "f32":
        return QuotientJudge(signature)
    if signature.op in narrow.OPERATIONS and signature.args[0] in narrow.FORMATS:
        return NarrowJudge(signature)
    return SetJudge(signature)
