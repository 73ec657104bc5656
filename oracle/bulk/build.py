"""Building a table, and checking one against nothing but the function.

`build` is deterministic. `verify` takes the numbers in a table as they are, derives the bound of each again and
compares it with the width that the table claims; whether they came from `build`, a cache or somebody else does not
matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from flint import arb

from halfulp.oracle.bulk import segments
from halfulp.oracle.bulk.bounds import LARGEST_WIDTH, encloses, working_precision
from halfulp.oracle.bulk.segments import Run, UnprovenError
from halfulp.oracle.bulk.table import (
    BEYOND,
    HIGH,
    INFINITY,
    LEADING,
    LOW,
    REFLECTED_ROWS,
    SCALE,
    SHIFT,
    SIGN,
    Kind,
    Table,
)
from halfulp.oracle.bulk.targets import NAN, TARGETS, Region, Target
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.functions import enclosure, nearest, unbounded_magnitude

F32 = FORMATS["f32"]


def ordinal(code: int) -> int:
    """The position of a code in the order of values, both zeros at 0."""
    return -(code & ~SIGN) if code & SIGN else code


def ulp_exponent(value: float) -> int:
    """ulp = 2**e of an f32, from a value that lies in its binade."""
    return max(int(np.frexp(value)[1]) - 1, -126) - 23 if value else -149


def inverse_ulp(value: float) -> float:
    """1/ulp, and 0 for infinities and NaN, which have none."""
    return 2.0 ** -ulp_exponent(value) if np.isfinite(value) else 0.0


class _Rows:
    """A table under construction."""

    def __init__(self, degree: int) -> None:
        self.degree = degree
        self.starts: list[int] = []
        self.kinds: list[Kind] = []
        self.rows: list[list[float]] = []
        self.codes: list[int] = []
        self.positions: list[int] = []

    def _add(self, first: int, kind: Kind, row: list[float], code: int, position: int) -> None:
        self.starts.append(first)
        self.kinds.append(kind)
        self.rows.append(row + [0.0] * (LEADING + self.degree + 1 - len(row)))
        self.codes.append(code)
        self.positions.append(position)

    def polynomial(self, run: Run) -> None:
        head = [run.scale, run.shift, run.low, run.high]
        self._add(run.first, run.kind, head + list(run.coefficients[::-1]), 0, 0)

    def constant(self, first: int, kind: Kind, code: int, value: float, position: int) -> None:
        self._add(first, kind, [value, inverse_ulp(value)], code, position)

    def exact(self, first: int, code: int) -> None:
        self.constant(first, Kind.EXACT, code, segments.value_of(code), ordinal(code))


def _overflow(target: Target, region: Region) -> Iterator[tuple[int, int, float]]:
    """First code, position and value of the runs of an overflowing region; one run for each code at its beginning."""
    for code in range(region.first, region.last + 1):
        position = unbounded_magnitude(target.name, F32, code)
        if position < INFINITY:
            raise UnprovenError(f"{target.name}: {code:#010x} does not overflow")
        yield code, min(position, INFINITY + BEYOND), _overflowing(target, code)
        if position >= INFINITY + BEYOND:
            return


def _overflowing(target: Target, code: int) -> float:
    """The value of an overflowing result, to 53 bits."""
    return float(enclosure(target.name, F32, code, 60)[0])


def _mirrored(run: Run, parity: str) -> Run:
    """The run of the negated arguments of an odd or even function."""
    keep = 1 if parity == "odd" else 0
    coefficients = tuple(c if i % 2 == keep else -c for i, c in enumerate(run.coefficients))
    return run._replace(first=run.first ^ SIGN, last=run.last ^ SIGN, shift=-run.shift, coefficients=coefficients)


def regions_of(target: Target) -> tuple[Region, ...]:
    """The regions of all codes, those of negative arguments mirrored where the function has a parity."""
    if target.parity is None:
        return target.regions
    flip = SIGN if target.parity == "odd" else 0
    negative = (
        r._replace(first=r.first | SIGN, last=r.last | SIGN, code=r.code if r.code == NAN else r.code ^ flip)
        for r in target.regions
    )
    return target.regions + tuple(negative)


def build(name: str, progress: Callable[[str], None] | None = None) -> Table:
    """The table of a function, from nothing.

    Args:
        name: one of `TARGETS`.
        progress: called with a line of text now and then.

    Raises:
        UnprovenError: a bound does not hold. Not known to happen.
    """
    target = TARGETS[name]
    with working_precision():
        return _build(target, progress or (lambda _: None))


def _build(target: Target, progress: Callable[[str], None]) -> Table:
    rows = _Rows(target.degree)
    reflected = np.zeros((0, 3 + target.degree))
    error = None
    if any(region.kind == "reflection" for region in target.regions):
        reflected = segments.reflected_rows(target.degree)
        error = segments.reflected_error(reflected)
    positive: dict[int, list[Run]] = {}
    for region in regions_of(target):
        match region.kind:
            case "exact":
                rows.exact(region.first, region.code)
            case "flat":
                rows.constant(
                    region.first, Kind.VALUE, region.code, segments.value_of(region.code), ordinal(region.code)
                )
            case "overflow":
                mirrored = region._replace(first=region.first & ~SIGN, last=region.last & ~SIGN)
                for code, position, value in _overflow(target, mirrored):
                    rows.constant(code | region.first & SIGN, Kind.VALUE, INFINITY, value, position)
            case _:
                if target.parity and region.first & SIGN:
                    runs = [_mirrored(run, target.parity) for run in positive[region.first ^ SIGN]]
                else:
                    runs = positive[region.first] = list(segments.split(target, region, error))
                for run in runs:
                    if run.kind == Kind.EXACT:
                        rows.exact(run.first, INFINITY)
                    else:
                        rows.polynomial(run)
        progress(f"{target.name}: {len(rows.starts)} runs to {region.last:#010x}")
    return Table(
        target.name,
        target.degree,
        np.array(rows.starts, np.uint32),
        np.array(rows.kinds, np.uint8),
        np.array(rows.rows, np.float64),
        np.array(rows.codes, np.uint32),
        np.array(rows.positions, np.int32),
        reflected,
    )


# Checking.


def verify(table: Table, runs: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None) -> None:
    """Derive every bound of a table again.

    Args:
        table: any table, from anywhere.
        runs: indices of the runs to look at. None: all.

    Raises:
        UnprovenError: runs overlap or leave a gap, a width is less than what can be proven or more than the claim, a
            constant is wrong, or a run is of a kind that its region does not allow. The message names the run.
    """
    target = TARGETS[table.name]
    starts = table.starts.astype(np.int64)
    if (
        starts[0] != 0
        or (np.diff(starts) <= 0).any()
        or {len(table.kinds), len(table.rows), len(table.codes), len(table.positions)} != {len(starts)}
    ):
        raise UnprovenError(f"{table.name}: the runs are not in order")
    regions = regions_of(target)
    ends = np.array([r.last for r in regions])
    last = table.last_codes()
    with working_precision():
        error = None
        if len(table.reflected):
            if len(table.reflected) != REFLECTED_ROWS:
                raise UnprovenError("W: rows are missing")
            error = segments.reflected_error(table.reflected)
        for i in range(len(starts)) if runs is None else runs:
            region = regions[int(np.searchsorted(ends, starts[i]))]
            if last[i] > region.last:
                raise UnprovenError(f"{table.name}: run {i} leaves its region")
            reason = _fault(table, int(i), int(last[i]), target, region, error)
            if reason:
                raise UnprovenError(f"{table.name}: run {i} from {int(starts[i]):#010x}: {reason}")


def _fault(table: Table, i: int, last: int, target: Target, region: Region, error: arb | None) -> str:
    """What is wrong with a run; empty if nothing is."""
    first, kind, row = int(table.starts[i]), Kind(table.kinds[i]), table.rows[i].tolist()
    if kind >= Kind.VALUE:
        return _constant_fault(table, i, last, target, region)
    if region.kind not in ("polynomial", "reflection") or (kind == Kind.REFLECTION and region.kind != "reflection"):
        return "a polynomial does not belong here"
    if not _one_sign(first, last):
        return "it contains both signs"
    run = Run(first, last, kind, row[SCALE], row[SHIFT], row[LOW], row[HIGH], tuple(row[: LEADING - 1 : -1]))
    if not row[HIGH] - row[LOW] <= LARGEST_WIDTH - 2.0**-50:
        return "its enclosures are wider than 2**-16 ulp"
    if target.parity and first & SIGN:
        run = _mirrored(run, target.parity)
    if kind == Kind.REFLECTION:
        bound = None if error is None else segments.reflection_error(run, error)
    elif region.kind == "reflection" and segments.contains_integer(first, last):
        return "it contains a pole"
    else:
        bound = segments.polynomial_error(target, run)
    if bound is None or not encloses(row[LOW], row[HIGH], bound):
        return f"an error of {bound} is not within {row[LOW]!r}, {row[HIGH]!r}"
    return ""


def _one_sign(first: int, last: int) -> bool:
    return (first ^ last) & SIGN == 0


def _constant_fault(table: Table, i: int, last: int, target: Target, region: Region) -> str:
    first, kind, code = int(table.starts[i]), Kind(table.kinds[i]), int(table.codes[i])
    value, position = float(table.rows[i, SCALE]), int(table.positions[i])
    if region.kind == "reflection":
        pole = first == last and segments.contains_integer(first, last)
        return "" if pole and (kind, code) == (Kind.EXACT, INFINITY) else "it is no pole"
    if region.kind == "polynomial" or (kind == Kind.EXACT) != (region.kind == "exact"):
        return "a constant does not belong here"
    if region.kind != "overflow":
        wrong = code != region.code or position != ordinal(code)
        if region.kind == "flat" and any(nearest(target.name, F32, end) != code for end in (first, last)):
            return "its ends round to something else"
        true_value = segments.value_of(code)
        if wrong or not (value == true_value or (value != value and true_value != true_value)):
            return "its constant is wrong"
        return "" if table.rows[i, SHIFT] == inverse_ulp(value) else "its ulp is wrong"
    if code != INFINITY or value != _overflowing(target, first) or table.rows[i, SHIFT] != inverse_ulp(value):
        return "its constant is wrong"
    true = min(unbounded_magnitude(target.name, F32, first), INFINITY + BEYOND)
    if true < INFINITY or position != true or (last > first and true < INFINITY + BEYOND):
        return "its position is wrong"
    return ""
