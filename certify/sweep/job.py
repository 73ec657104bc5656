"""One sweep: what is run, on what, with which inputs; and the work of one chunk of it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from halfulp.adapters.discovery import AdapterError, load
from halfulp.adapters.protocol import Adapter, Compiled, Options, Rejected, Unsupported, UnsupportedError
from halfulp.certify.sweep.domain import CHUNK, Codes, Domain, Sample, chunk_count, chunk_length, domain_from_plain
from halfulp.certify.sweep.judges import Judge, judge_of
from halfulp.certify.sweep.part import Extreme, Part
from halfulp.oracle.bulk.digest import add, digest_of
from halfulp.oracle.formats import Bits
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature

PIECE = 1 << 17
"""Inputs of one call of the target: small enough for the caches, large enough that calls cost nothing."""

STRETCHES = 1024
"""Points of a plot, about."""

LEAST_STRETCH = 256
"""Inputs of one point, at least."""


class SweepError(Exception):
    """The sweep cannot be done. The message says what, why and what to do. May cross processes."""


@dataclass(frozen=True)
class Job:
    """A sweep.

    Attributes:
        backend: as on the command line.
        signature: of the operation, with its attributes.
        domain: the inputs.
    """

    backend: str
    signature: Signature
    domain: Domain

    @property
    def chunks(self) -> int:
        return chunk_count(self.domain)

    def plain(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "op": self.signature.op,
            "args": list(self.signature.args),
            "result": self.signature.result,
            "attrs": dict(self.signature.attrs),
            "domain": self.domain.plain(),
        }


def job_from_plain(data: Mapping[str, Any]) -> Job:
    """The inverse of `Job.plain`.

    Raises:
        KeyError, TypeError: it is none.
    """
    attrs = tuple(sorted(data["attrs"].items()))
    signature = Signature(data["op"], tuple(data["args"]), data["result"], attrs)
    return Job(data["backend"], signature, domain_from_plain(signature, data["domain"]))


@dataclass(frozen=True)
class Target:
    """A compiled program of a backend, at its highest optimisation level."""

    adapter: Adapter
    program: Compiled
    level: int

    @property
    def piece(self) -> int:
        """Inputs of a call: all of a chunk where they go to a device and back, which calls cost something."""
        return PIECE if device_program(self) is None else CHUNK

    def __call__(self, columns: Sequence[Bits], signature: Signature) -> Bits:
        """The results.

        Raises:
            SweepError: the program raised, or returned something that is no such array.
        """
        for column in columns:
            column.flags.writeable = False
        try:
            outputs = self.program(*columns)
        except UnsupportedError as error:
            raise SweepError(f"{self.adapter.name} found out that it cannot run {signature.id}: {error}") from None
        except Exception as error:
            raise SweepError(
                f"{self.adapter.name} broke off while running {signature.id}: {type(error).__name__}: {error}"
            ) from None
        dtype = signature.result_format.storage
        good = len(outputs) == 1 and outputs[0].dtype == dtype and outputs[0].shape == columns[0].shape
        if not good:
            shown = ", ".join(f"{output.dtype}{list(output.shape)}" for output in outputs)
            raise SweepError(
                f"{self.adapter.name} returned {shown or 'nothing'} for {signature.id} where one {dtype} array of "
                f"{len(columns[0])} elements is due; `halfulp backends` and the adapter's own tests may say more"
            )
        return np.ascontiguousarray(outputs[0])


class OnDevice(Protocol):
    """A program on arrays in the device's memory: ``device_program`` of a compiled program, where it has one.

    ``launch(inputs, outputs, n)`` takes sequences of `backends.cuda.driver.Buffer` with n elements each, in the
    storage dtypes of their formats, and returns before the device is done.
    """

    def launch(self, inputs: Sequence[Any], outputs: Sequence[Any], n: int) -> None: ...


def device_program(target: Target) -> OnDevice | None:
    """The target on arrays of the device; None where it does not offer that."""
    return getattr(target.program, "device_program", None)


@cache
def target_of(backend: str, signature: Signature) -> Target:
    """The program, compiled once in each process.

    Raises:
        SweepError: there is no such backend, or it does not offer the operation.
    """
    try:
        adapter = load(backend)
    except AdapterError as error:
        raise SweepError(f"--backend {backend}: {error}") from None
    level = max(adapter.opt_levels)
    (answer,) = adapter.compile([operation(signature.op).kernel(signature)], Options(level))
    if isinstance(answer, Rejected | Unsupported):
        what = "refuses" if isinstance(answer, Rejected) else "does not offer"
        raise SweepError(f"{backend} {what} {signature.id}: {answer.reason}")
    return Target(adapter, answer, level)


_ONE_AT_A_TIME = threading.RLock()


def one_at_a_time() -> AbstractContextManager[object]:
    """The oracle's arithmetic has a working precision for the whole process, so workers with threads take turns."""
    return _ONE_AT_A_TIME


def run_chunks(job: Job, numbers: Sequence[int]) -> list[tuple[int, Part]]:
    """Run and judge some chunks. What an executor is given.

    Raises:
        SweepError: see `target_of` and `Target`.
    """
    with one_at_a_time():
        target, judge = target_of(job.backend, job.signature), judge_of(job.signature)
        return [(number, _chunk(job, target, judge, number)) for number in numbers]


def _chunk(job: Job, target: Target, judge: Judge, number: int) -> Part:
    domain = job.domain
    start, length = number * CHUNK, chunk_length(domain, number)
    columns = domain.columns(start, length)
    stretch = _stretch(job)
    total, digest = Part(), hashlib.sha256()
    size = target.piece
    for begin in range(0, length, size):
        piece = [column[begin : begin + size] for column in columns]
        began = _clocks()
        got = target(piece, job.signature)
        ran = _clocks()
        digest.update(got.data)
        total.sums = add(total.sums, digest_of(job.signature, piece, got))
        judging = _clocks()
        for low in range(0, len(got), stretch):
            rows = slice(low, low + stretch)
            block = [column[rows] for column in piece]
            if isinstance(domain, Codes):
                part = judge.judge_run(domain.first + start + begin + low, block, got[rows])
            else:
                part = judge.judge(block, got[rows])
            measured = part.max_error if part.max_error >= 0 else float(part.max_distance)
            part.profile = [(start + begin + low, measured)]
            total.add(part)
        _count_time(total, began, ran, judging)
    total.digest = digest.hexdigest()
    total.profile = _thinned(total.profile, max(1, STRETCHES // job.chunks))
    return total


Clocks = tuple[float, float]
"""Wall time, and processor time of this thread."""


def _clocks() -> Clocks:
    return time.perf_counter(), time.thread_time()


def _count_time(part: Part, began: Clocks, ran: Clocks, judging: Clocks) -> None:
    """Add the time of the target, and that of the judge up to now."""
    now = _clocks()
    part.target_seconds += ran[0] - began[0]
    part.target_cpu += ran[1] - began[1]
    part.judge_seconds += now[0] - judging[0]
    part.judge_cpu += now[1] - judging[1]


def _stretch(job: Job) -> int:
    """Inputs that share a point of the plot; judged together."""
    if isinstance(job.domain, Sample):
        return PIECE
    return min(PIECE, max(LEAST_STRETCH, job.domain.inputs // STRETCHES))


def _thinned(profile: list[tuple[int, float]], points: int) -> list[tuple[int, float]]:
    """The same in fewer stretches: the greatest of each."""
    if len(profile) <= points:
        return profile
    size = -(-len(profile) // points)
    groups = [profile[i : i + size] for i in range(0, len(profile), size)]
    return [(group[0][0], max(error for _, error in group)) for group in groups]


def worst_of_chunk(job: Job, number: int) -> tuple[str, list[Extreme]]:
    """The digest and the worst inputs of a chunk, run once more.

    Raises:
        SweepError: see `target_of` and `Target`.
    """
    with one_at_a_time():
        target, judge = target_of(job.backend, job.signature), judge_of(job.signature)
        start, length = number * CHUNK, chunk_length(job.domain, number)
        columns = job.domain.columns(start, length)
        size = target.piece
        pieces = [
            target([column[begin : begin + size] for column in columns], job.signature)
            for begin in range(0, length, size)
        ]
        got = np.concatenate(pieces)
        first = job.domain.first + start if isinstance(job.domain, Codes) else None
        return hashlib.sha256(got.data).hexdigest(), judge.worst(first, columns, got)


def run_points(job: Job, points: Sequence[tuple[int, ...]]) -> Part:
    """Run and judge listed inputs.

    Raises:
        SweepError: see `target_of` and `Target`.
    """
    if not points:
        return Part()
    with one_at_a_time():
        target, judge = target_of(job.backend, job.signature), judge_of(job.signature)
        columns = [np.array([point[i] for point in points], fmt.storage) for i, fmt in enumerate(job.signature.formats)]
        began = _clocks()
        got = target(columns, job.signature)
        ran = _clocks()
        part = judge.judge(columns, got)
        _count_time(part, began, ran, ran)
        return part
