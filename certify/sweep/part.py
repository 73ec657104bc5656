"""What is seen in a part of a sweep. Parts are plain data and are merged in the order of their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from halfulp.oracle.bulk.digest import NONE, Digest, add
from halfulp.oracle.formats import Bits
from halfulp.oracle.sets import Verdict

BINS = 8
"""Distances 0 to 7 are counted one by one, 8 and more together."""

KEPT = 10
"""Worst inputs, and breaches, that are kept."""

Array = np.ndarray[Any, np.dtype[Any]]

ClauseOf = Callable[[Sequence[Bits]], str]
"""The clause that governs an element, given its operands as arrays of one element."""


@dataclass(frozen=True)
class Extreme:
    """One input and its result, all as bit patterns.

    Attributes:
        operands, got, nearest: ``nearest`` is the correctly rounded result.
        distance: steps between the two; None where one is NaN.
        error: ``|got - exact| / ulp(exact)``; None where the result is stated exactly or is not measured.
        clause: that governs a breach; empty for others.
    """

    operands: tuple[int, ...]
    got: int
    nearest: int
    distance: int | None
    error: float | None
    clause: str = ""

    @property
    def key(self) -> tuple[float, float, tuple[int, ...]]:
        """Worst first, then by operands."""
        none = -1.0
        error = none if self.error is None else self.error
        distance = none if self.distance is None else float(self.distance)
        return (-error, -distance, self.operands)


class Assessment(NamedTuple):
    """The verdicts on single elements.

    Attributes:
        verdict: `Verdict` values.
        nearest: correctly rounded results.
        distance: int64, steps; -1 where there is none (NaN for a number or the reverse, no claim).
        error: float64, fractional error; NaN where it is not measured. None: nowhere.
        settled: how many elements needed the slow path.
        undecided: how many it did not settle either.
    """

    verdict: Array
    nearest: Bits
    distance: Array
    error: Array | None
    settled: int = 0
    undecided: int = 0


@dataclass
class Part:
    """Counts and extremes.

    Attributes:
        inputs, claimed, allowed, forbidden, unspecified, no_claim: elements. ``claimed`` are those with a claim.
        wrong: claimed elements without a distance.
        settled: elements that no enclosure decided, handed to the slow path.
        undecided: of those, elements that remained undecided.
        histogram: claimed elements at 0, 1, ..., 7 and at 8 or more steps.
        max_distance, max_argument: the greatest distance and the first operands that have it; -1: none.
        max_error, max_error_argument: the same of fractional errors; -1: none.
        worst: the worst elements, as far as they were looked at one by one.
        breaches: the first forbidden elements.
        profile: ``(first input, greatest error)`` of consecutive stretches of inputs, for plots.
        target_seconds, judge_seconds: wall time in the process that did it.
        target_cpu, judge_cpu: seconds of processor time of the thread that did it, which do not count waiting.
        digest: SHA-256 of the output of the chunk.
        sums: digest that does not depend on order, see `oracle.bulk.digest`.
    """

    inputs: int = 0
    claimed: int = 0
    allowed: int = 0
    forbidden: int = 0
    unspecified: int = 0
    no_claim: int = 0
    wrong: int = 0
    settled: int = 0
    undecided: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * (BINS + 1))
    max_distance: int = -1
    max_argument: tuple[int, ...] = ()
    max_error: float = -1.0
    max_error_argument: tuple[int, ...] = ()
    worst: list[Extreme] = field(default_factory=list)
    breaches: list[Extreme] = field(default_factory=list)
    profile: list[tuple[int, float]] = field(default_factory=list)
    target_seconds: float = 0.0
    judge_seconds: float = 0.0
    target_cpu: float = 0.0
    judge_cpu: float = 0.0
    digest: str = ""
    sums: Digest = NONE

    def add(self, later: Part) -> None:
        """Merge the part of later inputs into this one. The digest stays."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.sums = add(self.sums, later.sums)
        self.histogram = [a + b for a, b in zip(self.histogram, later.histogram, strict=True)]
        if later.max_distance > self.max_distance:
            self.max_distance, self.max_argument = later.max_distance, later.max_argument
        if later.max_error > self.max_error:
            self.max_error, self.max_error_argument = later.max_error, later.max_error_argument
        if later.worst:
            self.worst = sorted({*self.worst, *later.worst}, key=lambda extreme: extreme.key)[:KEPT]
        self.breaches = [*self.breaches, *later.breaches][:KEPT]
        self.profile = [*self.profile, *later.profile]

    def plain(self) -> dict[str, Any]:
        """As JSON data; infinite errors as text."""
        data = asdict(self)
        data["max_error"] = _out(self.max_error)
        data["profile"] = [[first, _out(error)] for first, error in self.profile]
        for name in ("worst", "breaches"):
            for row in data[name]:
                row["error"] = _out(row["error"])
        return data


_SUMS = (
    *("inputs", "claimed", "allowed", "forbidden", "unspecified", "no_claim", "wrong", "settled", "undecided"),
    *("target_seconds", "judge_seconds", "target_cpu", "judge_cpu"),
)


def part_from_plain(data: Mapping[str, Any]) -> Part:
    """The inverse of `Part.plain`.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    values = {f.name: data[f.name] for f in fields(Part)}
    for name in ("worst", "breaches"):
        values[name] = [
            Extreme(**{**row, "operands": tuple(row["operands"]), "error": _in(row["error"])}) for row in data[name]
        ]
    for name in ("max_argument", "max_error_argument", "sums"):
        values[name] = tuple(data[name])
    values["max_error"] = float(_in(data["max_error"]) or 0.0)
    values["profile"] = [(first, float(_in(error) or 0.0)) for first, error in data["profile"]]
    return Part(**values)


def _out(number: float | None) -> float | str | None:
    return "inf" if number is not None and math.isinf(number) else number


def _in(number: float | str | None) -> float | None:
    return None if number is None else float(number)


def part_of(
    columns: Sequence[Bits], got: Bits, found: Assessment, clause_of: ClauseOf | None = None, *, worst: bool = True
) -> Part:
    """The counts and extremes of single elements, by numpy.

    Args:
        columns: operands, shape (n,) each; n is not 0.
        clause_of: gives the clause that governs an element.
        worst: pick out the worst elements, too.
    """
    verdict, distance = found.verdict, found.distance
    counts = np.bincount(verdict, minlength=4)
    claimed = len(got) - int(counts[Verdict.NO_CLAIM])
    far = int(np.argmax(distance))
    if distance[far] == 0 and not distance.any():
        histogram = [len(got), *[0] * BINS]
    else:
        histogram = np.bincount(np.minimum(distance[distance >= 0], BINS), minlength=BINS + 1).tolist()
    part = Part(
        inputs=len(got),
        claimed=claimed,
        allowed=int(counts[Verdict.ALLOWED]),
        forbidden=int(counts[Verdict.FORBIDDEN]),
        unspecified=int(counts[Verdict.UNSPECIFIED]),
        no_claim=int(counts[Verdict.NO_CLAIM]),
        wrong=claimed - sum(histogram),
        settled=found.settled,
        undecided=found.undecided,
        histogram=histogram,
    )
    if distance[far] >= 0:
        part.max_distance, part.max_argument = int(distance[far]), _row(columns, far)
    if found.error is not None:
        largest = float(np.fmax.reduce(found.error))
        if largest >= 0:
            at = int(np.argmax(found.error == largest))
            part.max_error, part.max_error_argument = largest, _row(columns, at)
    if worst:
        part.worst = _worst(columns, got, found)
    for at in np.flatnonzero(verdict == Verdict.FORBIDDEN)[:KEPT].tolist() if part.forbidden else ():
        clause = "" if clause_of is None else clause_of([column[at : at + 1] for column in columns])
        part.breaches.append(_extreme(columns, got, found, at, clause))
    return part


def _worst(columns: Sequence[Bits], got: Bits, found: Assessment) -> list[Extreme]:
    rank = np.where(found.distance > 0, found.distance - 2.0**40, -np.inf)
    if found.error is not None:
        rank = np.where(found.error >= 0, found.error, rank)
    chosen = [_extreme(columns, got, found, at) for at in _largest(rank) if rank[at] > -np.inf]
    return sorted(chosen, key=lambda extreme: extreme.key)


def _largest(rank: Array) -> list[int]:
    """Positions of the `KEPT` largest; of equal ones the first."""
    if len(rank) <= KEPT:
        return list(range(len(rank)))
    least = np.partition(rank, -KEPT)[-KEPT]
    above = np.flatnonzero(rank > least).tolist()
    return [*above, *np.flatnonzero(rank == least)[: KEPT - len(above)].tolist()]


def _row(columns: Sequence[Bits], at: int) -> tuple[int, ...]:
    return tuple(int(column[at]) for column in columns)


def _extreme(columns: Sequence[Bits], got: Bits, found: Assessment, at: int, clause: str = "") -> Extreme:
    distance = int(found.distance[at])
    error = math.nan if found.error is None else float(found.error[at])
    return Extreme(
        _row(columns, at),
        int(got[at]),
        int(found.nearest[at]),
        None if distance < 0 else distance,
        None if math.isnan(error) else error,
        clause,
    )
