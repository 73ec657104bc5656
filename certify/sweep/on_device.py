"""Sweeps whose results stay on the device: the target writes them there, and the bulk judge reads them there.

What comes back is a row for each piece of some two thousand inputs. A piece whose row says that every result is allowed
is done; of any other the results are fetched, and judged on the host like everything else. Some pieces, chosen at
random, are judged by the native judge too, and have to give the same row, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from halfulp.certify.sweep.domain import Codes
from halfulp.certify.sweep.engine import Progress, versions_of
from halfulp.certify.sweep.job import Job, SweepError, Target, device_program, one_at_a_time, target_of
from halfulp.certify.sweep.judges import FunctionJudge, judge_of, part_of_summary
from halfulp.certify.sweep.part import KEPT, Array, Extreme, Part, part_of
from halfulp.certify.sweep.record import Found
from halfulp.oracle.bulk import TARGETS, Limits, Pieces, digest
from halfulp.oracle.formats import Bits
from halfulp.oracle.ops.record import Signature

STRETCH = 1 << 28
"""Inputs that are on the device at once: two buffers of 1 GiB."""

SHARE = 0.01
"""Of the pieces, and of the runs, that the host judges too."""

CLUSTER = 32
"""Neighbouring pieces that are chosen together, since they are fetched at once."""

TASK = 1 << 16
"""Elements that a process judges at once, about."""

FEW = 16
"""Tasks that are not worth starting processes for."""

STRETCHES = 1024
"""Points of a plot, about."""


def covers(job: Job, target: Target) -> bool:
    """Whether a sweep can be judged on the device."""
    in_reach = isinstance(job.domain, Codes) and job.signature.op in TARGETS and job.signature.args == ("f32",)
    return in_reach and device_program(target) is not None


@dataclass
class Timing:
    """Seconds of kernels: writing the inputs, the target, the judge with the digest."""

    inputs: float = 0.0
    target: float = 0.0
    judge: float = 0.0

    @property
    def ratio(self) -> float:
        """How long a judged sweep takes, against the target alone writing its results."""
        return (self.inputs + self.target + self.judge) / self.target if self.target else float("nan")


@dataclass
class DeviceSweep:
    """What a sweep on the device brings to light.

    Attributes:
        total: counts and extremes; ``worst`` is complete.
        digest: of the complete output, see `oracle.bulk.digest`.
        timing: of the kernels.
        arithmetic: results of the test of the device's arithmetic.
        checked: pieces, runs and inputs that the host judged too, with the same rows.
        fetched: inputs whose results were judged on the host alone.
        repeatable: the pieces with the worst inputs were run again, and gave the same.
    """

    total: Part = field(default_factory=Part)
    digest: digest.Digest = digest.NONE
    timing: Timing = field(default_factory=Timing)
    arithmetic: int = 0
    checked: dict[str, int] = field(default_factory=lambda: {"pieces": 0, "runs": 0, "inputs": 0})
    fetched: int = 0
    repeatable: bool = True

    def plain(self) -> dict[str, Any]:
        """For the record."""
        return {
            "arithmetic_checked": self.arithmetic,
            "checked_on_host": {**self.checked, "differences": 0},
            "judged_on_host": self.fetched,
            "kernel_seconds": {
                "inputs": round(self.timing.inputs, 6),
                "target": round(self.timing.target, 6),
                "judge": round(self.timing.judge, 6),
            },
            "ratio": round(self.timing.ratio, 3),
        }


CONSECUTIVE = """
extern "C" __global__ void consecutive(unsigned int *out, unsigned int first, unsigned int n)
{
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = first + i;
}
"""


def found(job: Job, executor: Executor, known: Part, *, seed: int = 0, quiet: bool = False) -> Found:
    """Sweep on the device; everything for the record but the wall time. See `sweep`."""
    seen = sweep(job, target_of(job.backend, job.signature), executor, seed=seed, quiet=quiet)
    return Found(
        seen.total,
        None,
        seen.digest,
        seen.total.worst,
        known,
        repeatable=seen.repeatable,
        versions=versions_of(job),
        device=seen.plain(),
    )


def sweep(job: Job, target: Target, executor: Executor, *, seed: int = 0, quiet: bool = False) -> DeviceSweep:
    """Sweep on the device.

    Args:
        job: one that `covers` says yes to.
        executor: for what has to be judged on the host.
        seed: of the choice of pieces that the host judges too.

    Raises:
        SweepError: the device's arithmetic is not fit, a kernel failed, or the judges differ.
    """
    from halfulp.backends.cuda.driver import DriverError
    from halfulp.certify.sweep.device_judge import UnfitDeviceError

    try:
        return _Sweep(job, target, executor, seed).run(quiet)
    except (UnfitDeviceError, DriverError) as error:
        raise SweepError(f"{job.backend}: {error}") from None


class _Sweep:
    def __init__(self, job: Job, target: Target, executor: Executor, seed: int) -> None:
        from halfulp.backends.cuda.driver import Buffer, device
        from halfulp.certify.sweep.device_judge import DeviceJudge, check_arithmetic, compiled

        judge = judge_of(job.signature)
        assert isinstance(judge, FunctionJudge)
        assert isinstance(job.domain, Codes)
        self.job, self.target, self.executor = job, target, executor
        self.judge, self.domain = judge, job.domain
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.found = DeviceSweep(arithmetic=check_arithmetic())
        self.device_judge = DeviceJudge(judge.bulk)
        self.longest = min(STRETCH, self.domain.count)
        self.inputs, self.outputs = Buffer(4 * self.longest), Buffer(4 * self.longest)
        self.blocks = 32 * device().processors
        self.consecutive = compiled(CONSECUTIVE, "consecutive")
        self.worst: list[tuple[tuple[float, int, int], Bits, Bits]] = []
        self.step = max(1, -(-self.domain.count // STRETCHES))
        self.profile = np.full(-(-self.domain.count // self.step), -1.0)

    def run(self, quiet: bool) -> DeviceSweep:
        progress = Progress(self.domain.count, 0, quiet)
        try:
            for start in range(0, self.domain.count, self.longest):
                n = min(self.longest, self.domain.count - start)
                self._stretch(self.domain.first + start, n)
                progress.advance(n)
            self._run_worst_again()
        finally:
            progress.close()
        total = self.found.total
        total.profile = [(k * self.step, float(error)) for k, error in enumerate(self.profile) if error >= 0]
        timing = self.found.timing
        total.target_seconds += timing.target
        total.judge_seconds += timing.judge
        return self.found

    def _stretch(self, first: int, n: int) -> None:
        from halfulp.backends.cuda.driver import Timer

        program, timing = device_program(self.target), self.found.timing
        assert program is not None
        with Timer() as timer:
            self.consecutive.launch(self.blocks, 256, self.inputs, np.uint32(first), np.uint32(n))
        timing.inputs += timer.seconds
        with Timer() as timer:
            program.launch([self.inputs], [self.outputs], n)
        timing.target += timer.seconds
        pieces = self.judge.bulk.pieces(first, n, self.judge.cuts)
        strict = self.judge.is_strict(pieces.firsts)
        judged = self.device_judge.judge(first, self.outputs, pieces, strict, self.judge.limits)
        timing.judge += judged.seconds
        sums = judged.sums.sum(axis=0)
        self.found.digest = digest.add(self.found.digest, (int(sums[0]), int(sums[1])))
        began, thread = time.perf_counter(), time.thread_time()
        self._check(pieces, strict, judged.rows, judged.sums)
        clear = self.judge.clear(pieces, judged.rows)
        part = Part()
        if clear.any():
            part = part_of_summary(self.judge.bulk.summed(pieces.at(clear), judged.rows[clear], self.judge.limits))
            self._remember(pieces.at(clear), judged.rows[clear])
        _merge(part, self._on_host(pieces.at(~clear)))
        part.judge_seconds += time.perf_counter() - began
        part.judge_cpu += time.thread_time() - thread
        _merge(self.found.total, part)

    def _fetched(self, pieces: Pieces) -> Bits:
        """The results of some pieces, one after the other. Neighbours are fetched at once."""
        ends = pieces.offsets + pieces.lengths
        breaks = np.flatnonzero(pieces.offsets[1:] != ends[:-1]) + 1
        groups = zip(np.append(0, breaks), np.append(breaks, len(ends)), strict=True)
        spans = [(int(pieces.offsets[a]), int(ends[b - 1])) for a, b in groups]
        if len(spans) > 1 << 13:
            everything = self.outputs.get(np.uint32, spans[-1][1])
            return np.concatenate([everything[a:b] for a, b in spans])
        return np.concatenate([self.outputs.get(np.uint32, b - a, 4 * a) for a, b in spans])

    def _check(self, pieces: Pieces, strict: Array, rows: Array, sums: Array) -> None:
        """Judge a share of the pieces on the host, and compare.

        Raises:
            SweepError: a row differs.
        """
        chosen = self._chosen(pieces)
        some = pieces.at(chosen)
        got = self._fetched(some)
        packed = some._replace(offsets=np.cumsum(some.lengths) - some.lengths)
        expected = np.empty((len(chosen), rows.shape[1]), np.int64)
        for flag in (False, True):
            which = np.flatnonzero(strict[chosen] == flag)
            if len(which):
                limits = Limits() if flag else self.judge.limits
                expected[which] = self.judge.bulk.rows(packed.at(which), got, limits)
        different = np.flatnonzero((expected != rows[chosen]).any(axis=1))
        summed = digest.digest_of(self.job.signature, [codes_of(some)], got)
        seen = sums[chosen].sum(axis=0)
        if len(different) or summed != (int(seen[0]), int(seen[1])):
            at = int(some.firsts[different[0]]) if len(different) else int(some.firsts[0])
            raise SweepError(
                f"{self.job.backend}: the judge on the device and that on the host differ, for the inputs from "
                f"{at:#010x} on ({len(different)} of {len(chosen)} pieces); neither is to be trusted before the cause "
                "is found. "
                "Judge on the host: --judge host"
            )
        self.found.checked["pieces"] += len(chosen)
        self.found.checked["runs"] += len(np.unique(some.runs))
        self.found.checked["inputs"] += int(some.lengths.sum())

    def _chosen(self, pieces: Pieces) -> Array:
        """At least `SHARE` of the pieces, in clusters, and one piece of each of at least `SHARE` of the runs."""
        n = len(pieces.runs)
        clusters = int(np.ceil(SHARE * n / CLUSTER))
        starts = self.rng.choice(max(1, -(-n // CLUSTER)), clusters, replace=False) * CLUSTER
        in_clusters = (starts[:, None] + np.arange(CLUSTER)).ravel()
        runs, begins, counts = np.unique(pieces.runs, return_index=True, return_counts=True)
        some = self.rng.choice(len(runs), int(np.ceil(SHARE * len(runs))), replace=False)
        singles = begins[some] + self.rng.integers(0, counts[some])
        chosen: Array = np.union1d(in_clusters[in_clusters < n], singles)
        return chosen

    def _remember(self, pieces: Pieces, rows: Array) -> None:
        """Keep the results of the pieces with the largest errors: no more are needed than inputs are kept."""
        from halfulp.oracle.bulk.kernel import Word

        errors, distances = rows.view(np.float64)[:, Word.FRACTION], rows[:, Word.DISTANCE]
        self._profiled(pieces.firsts, errors)
        for at in np.lexsort((pieces.firsts, -distances, -errors))[:KEPT].tolist():
            key = (-float(errors[at]), -int(distances[at]), int(pieces.firsts[at]))
            if len(self.worst) < KEPT or key < self.worst[-1][0]:
                one = pieces.at(np.array([at]))
                self.worst.append((key, codes_of(one), self._fetched(one)))
                self.worst.sort(key=lambda row: row[0])
                del self.worst[KEPT:]

    def _profiled(self, firsts: Array, errors: Array) -> None:
        np.maximum.at(self.profile, (firsts - self.domain.first) // self.step, errors)

    def _on_host(self, pieces: Pieces) -> Part:
        """Judge pieces on the host, element by element, by as many processes as there are."""
        total = Part()
        if not len(pieces.runs):
            return total
        got = self._fetched(pieces)
        self.found.fetched += len(got)
        ends = np.cumsum(pieces.lengths)
        cuts = np.searchsorted(ends, np.arange(TASK, int(ends[-1]) + TASK, TASK)) + 1
        groups = np.unique(np.append(0, np.minimum(cuts, len(ends))))
        tasks = []
        for a, b in pairwise(groups.tolist()):
            some = pieces.at(np.arange(a, b))
            tasks.append((some, np.ascontiguousarray(got[ends[a] - pieces.lengths[a] : ends[b - 1]])))
        for (some, _), (part, errors) in zip(tasks, self._judged(tasks), strict=True):
            total.add(part)
            self._profiled(some.firsts, errors)
        return total

    def _judged(self, tasks: Sequence[tuple[Pieces, Bits]]) -> Iterator[tuple[Part, Array]]:
        signature = self.job.signature
        if len(tasks) <= FEW:
            return (judge_pieces(signature, *task) for task in tasks)
        return self.executor.map(judge_pieces, [signature] * len(tasks), *zip(*tasks, strict=True))

    def _run_worst_again(self) -> None:
        """The worst inputs of what the device judged, one by one; and the same once more by the target."""
        worst: set[Extreme] = set(self.found.total.worst)
        for _, bits, got in self.worst:
            worst |= set(self.judge.judge([bits], got).worst)
            self.found.repeatable &= bool(np.array_equal(self.target([bits], self.job.signature), got))
        self.found.total.worst = sorted(worst, key=lambda extreme: extreme.key)[:KEPT]


def codes_of(pieces: Pieces) -> Bits:
    """The arguments of some pieces, one after the other."""
    begins = np.cumsum(pieces.lengths) - pieces.lengths
    found: Bits = (np.repeat(pieces.firsts - begins, pieces.lengths) + np.arange(pieces.lengths.sum())).astype(
        np.uint32
    )
    return found


def judge_pieces(signature: Signature, pieces: Pieces, got: Bits) -> tuple[Part, Array]:
    """The verdict on some pieces, element by element, and the largest error of each. What an executor is given."""
    with one_at_a_time():
        judge = judge_of(signature)
        assert isinstance(judge, FunctionJudge)
        columns = [codes_of(pieces)]
        found = judge.assess(columns, got)
        assert found.error is not None
        begins = np.cumsum(pieces.lengths) - pieces.lengths
        errors = np.fmax.reduceat(np.where(np.isnan(found.error), -1.0, found.error), begins)
        return part_of(columns, got, found, judge.clause_of), errors


def _merge(total: Part, other: Part) -> None:
    """Like `Part.add`, but in any order of inputs: of equal maxima the first argument counts."""
    for value, argument in (("max_distance", "max_argument"), ("max_error", "max_error_argument")):
        if getattr(other, value) == getattr(total, value) and getattr(other, argument) < getattr(total, argument):
            setattr(total, argument, getattr(other, argument))
    total.add(other)
