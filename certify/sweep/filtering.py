"""A search in f64 with very many candidates, on a device: those that look worst are judged on the host.

A third of the candidates is spread over all rows of `oracle.bulk.ranking`, evenly over binades; rows are short beside
zeros, poles and ends of the domain. A third lies around critical and known points, at distances that are uniform in
their number of bits, and a third in ever closer neighbourhoods of the worst found so far. The target runs on the
device; a kernel compares its results with double-double references, which are good to about 2**-70 and decide nothing:
what they single out gets its verdict from ball arithmetic. Maxima are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfulp.certify.sweep.domain import Sample
from halfulp.certify.sweep.engine import Progress
from halfulp.certify.sweep.job import Job, SweepError, Target, device_program, run_points
from halfulp.certify.sweep.part import Array, Part
from halfulp.oracle.bulk import ranking
from halfulp.oracle.bulk.cuda_source import WARP, prelude
from halfulp.oracle.bulk.ranking import EXPONENTS, Rows

EACH = 1024
"""Candidates of a stratum: an interval of codes within a row. A warp looks at them, and keeps the worst."""

STRATA = 1 << 16
"""Strata of a launch, at most: 2**26 candidates, two buffers of half a GiB."""

JUDGED = 4096
"""Candidates that the host judges."""

CENTRES = 1024
"""Of the worst so far, whose neighbourhoods are searched."""

OF_A_ROW = 64
"""Kept of one row, at most, so that one bad place does not hide the others."""

NEIGHBOURHOODS = tuple(range(46, 7, -3))
"""Binary logarithms of the distances, in codes, to which neighbourhoods reach."""

KERNELS = f"""
static __device__ __forceinline__ u64 mixed(u64 z)
{{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}}

/* Candidate i lies in stratum i / {EACH}; splitmix64 from the seed on says where. */
extern "C" __global__ void draw(u64 n, const u64 *firsts, const u64 *spans, u64 seed, u64 *out)
{{
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
        out[i] = firsts[i / {EACH}] + __umul64hi(mixed(seed + i * 0x9e3779b97f4a7c15ull), spans[i / {EACH}]);
}}

extern "C" __global__ void rank(
    u64 n, const u64 *codes, const double *got, const u32 *rows, const double *table, double *errors, u64 *worst)
{{
    const u64 stratum = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / {WARP};
    if (stratum * {EACH} >= n) return;
    const double *row = table + (u64)rows[stratum] * {ranking.COLUMNS};
    double most = -1.0;
    u64 at = 0;
    for (u64 i = stratum * {EACH} + threadIdx.x % {WARP}; i < (stratum + 1) * {EACH}; i += {WARP}) {{
        double high, low;
        reference(row, double_of(codes[i]), high, low);
        const double error = error_in_ulp(got[i], high, low);
        if (error > most) {{ most = error; at = codes[i]; }}
    }}
    for (int step = {WARP // 2}; step; step /= 2) {{
        const double error = __shfl_down_sync(0xffffffffu, most, step);
        const u64 code = __shfl_down_sync(0xffffffffu, at, step);
        if (error > most) {{ most = error; at = code; }}
    }}
    if (threadIdx.x % {WARP} == 0) {{ errors[stratum] = most; worst[stratum] = at; }}
}}
"""


def source() -> str:
    """The text of both kernels."""
    return prelude() + ranking.CUDA + KERNELS


def covers(job: Job, target: Target) -> bool:
    """Whether candidates of a sweep can be filtered on a device."""
    signature = job.signature
    return signature.args == ("f64",) and signature.op in EXPONENTS and device_program(target) is not None


@dataclass
class Filtered:
    """What came of it.

    Attributes:
        part: counts and extremes of the candidates that were judged.
        candidates: tried on the device.
        rows: of the table of references.
        best: the largest error by the references, in ulp; infinite for an infinity or NaN.
        seconds: of kernels.
    """

    part: Part = field(default_factory=Part)
    candidates: int = 0
    rows: int = 0
    best: float = -1.0
    seconds: dict[str, float] = field(default_factory=lambda: {"draw": 0.0, "target": 0.0, "rank": 0.0})


class Worst:
    """The candidates that look worst so far, the worst first."""

    def __init__(self) -> None:
        self.codes, self.rows = np.empty(0, np.uint64), np.empty(0, np.int64)
        self.errors = np.empty(0, np.float64)

    def add(self, codes: Array, rows: Array, errors: Array) -> None:
        codes, at = np.unique(np.append(self.codes, codes), return_index=True)
        rows, errors = np.append(self.rows, rows)[at], np.append(self.errors, errors)[at]
        order = np.lexsort((codes, -errors))
        codes, rows, errors = codes[order], rows[order], errors[order]
        by_row = np.argsort(rows, kind="stable")
        _, begins, counts = np.unique(rows[by_row], return_index=True, return_counts=True)
        place = np.empty(len(rows), np.int64)
        place[by_row] = np.arange(len(rows)) - np.repeat(begins, counts)
        kept = np.flatnonzero(place < OF_A_ROW)[:JUDGED]
        self.codes, self.rows, self.errors = codes[kept], rows[kept], errors[kept]


def search(
    job: Job, target: Target, executor: Executor, candidates: int, seed: int, *, quiet: bool = False
) -> Filtered:
    """Search.

    Args:
        job: one that `covers` says yes to.
        executor: builds the table of references.
        candidates: how many, about.
        seed: all draws depend on it.

    Raises:
        SweepError: a kernel failed, or the target broke off.
    """
    from halfulp.backends.cuda.driver import DriverError

    try:
        return _Search(job, target, ranking.build(job.signature.op, executor.map), seed).run(candidates, quiet)
    except DriverError as error:
        raise SweepError(f"{job.backend}: {error}") from None


class _Search:
    def __init__(self, job: Job, target: Target, rows: Rows, seed: int) -> None:
        from halfulp.backends.cuda.driver import Buffer
        from halfulp.certify.sweep.device_judge import compiled, uploaded

        self.job, self.target, self.rows = job, target, rows
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.draw, self.rank = compiled(source(), "draw"), compiled(source(), "rank")
        self.table = uploaded(rows.table)
        self.codes, self.got = Buffer(8 * EACH * STRATA), Buffer(8 * EACH * STRATA)
        self.errors, self.at = Buffer(8 * STRATA), Buffer(8 * STRATA)
        self.worst, self.found = Worst(), Filtered(rows=len(rows.firsts))

    def run(self, candidates: int, quiet: bool) -> Filtered:
        progress = Progress(candidates, 0, quiet)
        try:
            for rows, firsts, lasts in self._strata(max(1, candidates // EACH)):
                self._launch(rows, firsts, lasts)
                progress.advance(EACH * len(rows))
        finally:
            progress.close()
        self.found.best = float(self.worst.errors[0]) if len(self.worst.errors) else -1.0
        self.found.part = run_points(self.job, [(code,) for code in self.worst.codes.tolist()])
        return self.found

    def _strata(self, total: int) -> Iterator[tuple[Array, Array, Array]]:
        """Rows, first and last codes of the strata of each launch. What is drawn later depends on what was found."""
        third = max(1, total // 3)
        for start in range(0, third, STRATA):
            rows = self._drawn_rows(min(STRATA, third - start))
            yield rows, self.rows.firsts[rows], self.rows.lasts[rows]
        codes, rows = self._points()
        for start in range(0, third if len(codes) else 0, STRATA):
            n = min(STRATA, third - start)
            which = self.rng.integers(0, len(codes), n)
            reach = np.uint64(1) << self.rng.integers(NEIGHBOURHOODS[-1], NEIGHBOURHOODS[0], n).astype(np.uint64)
            yield self._around(rows[which], codes[which], reach)
        each = third // len(NEIGHBOURHOODS)
        for bits in NEIGHBOURHOODS:
            for start in range(0, each, STRATA):
                n = min(STRATA, each - start)
                which = np.arange(start, start + n) % min(CENTRES, len(self.worst.codes))
                yield self._around(self.worst.rows[which], self.worst.codes[which], np.uint64(1 << bits))

    def _around(self, rows: Array, codes: Array, reach: Array | np.uint64) -> tuple[Array, Array, Array]:
        """Neighbourhoods of codes, as far as they lie in the rows."""
        firsts = np.maximum(codes, self.rows.firsts[rows] + reach) - reach
        return rows, firsts, np.minimum(codes + reach, self.rows.lasts[rows])

    def _points(self) -> tuple[Array, Array]:
        """Listed points of the sample that a row covers, and their rows."""
        points = self.job.domain.points if isinstance(self.job.domain, Sample) else ()
        codes = np.unique(np.array([point[0] for point in points], np.uint64))
        order = np.argsort(self.rows.firsts)
        place = np.searchsorted(self.rows.firsts[order], codes, side="right").astype(np.int64) - 1
        rows = order[np.maximum(place, 0)]
        inside = (place >= 0) & (codes <= self.rows.lasts[rows])
        return codes[inside], rows[inside]

    def _drawn_rows(self, n: int) -> Array:
        """Rows at random: each binade as often as any other, and of its rows each as often."""
        _, begins, counts = np.unique(self.rows.binades, return_index=True, return_counts=True)
        order = np.argsort(self.rows.binades, kind="stable")
        binade = self.rng.integers(0, len(begins), n)
        starts = np.cumsum(counts) - counts
        chosen: Array = order[starts[binade] + self.rng.integers(0, counts[binade])]
        return chosen

    def _launch(self, rows: Array, firsts: Array, lasts: Array) -> None:
        from halfulp.backends.cuda.driver import Timer
        from halfulp.certify.sweep.device_judge import BLOCK, uploaded

        program = device_program(self.target)
        assert program is not None
        strata, n = len(rows), EACH * len(rows)
        seconds = self.found.seconds
        given = uploaded(firsts), uploaded(lasts - firsts + np.uint64(1))
        seed = np.uint64(self.rng.integers(0, 1 << 63))
        with Timer() as timer:
            self.draw.launch(min(1 << 16, -(-n // BLOCK)), BLOCK, np.uint64(n), *given, seed, self.codes)
        seconds["draw"] += timer.seconds
        with Timer() as timer:
            program.launch([self.codes], [self.got], n)
        seconds["target"] += timer.seconds
        which = uploaded(rows.astype(np.uint32))
        with Timer() as timer:
            self.rank.launch(
                -(-strata * WARP // BLOCK),
                BLOCK,
                *(np.uint64(n), self.codes, self.got, which, self.table, self.errors, self.at),
            )
        seconds["rank"] += timer.seconds
        self.worst.add(self.at.get(np.uint64, strata), rows, self.errors.get(np.float64, strata))
        self.found.candidates += n


def plain(found: Filtered) -> dict[str, Any]:
    """For the record."""
    return {
        "candidates": found.candidates,
        "judged": found.part.inputs,
        "rows": found.rows,
        "kernel_seconds": {name: round(seconds, 6) for name, seconds in found.seconds.items()},
    }
