"""A sweep from its first input to its record."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from typing import Any

from halfulp.certify.sweep import engine, filtering, on_device
from halfulp.certify.sweep.domain import Sample
from halfulp.certify.sweep.job import run_points, target_of, worst_of_chunk
from halfulp.certify.sweep.known import known_inputs
from halfulp.certify.sweep.part import KEPT, Part
from halfulp.certify.sweep.record import Found, merged, record_of, worst_chunks
from halfulp.certify.sweep.search import search


def complete(
    state: engine.State,
    executor: Executor,
    at_once: int,
    *,
    stays: bool = False,
    candidates: int = 0,
    quiet: bool = False,
) -> tuple[Found, dict[str, Any]]:
    """Do what is left of a sweep.

    Args:
        state: what is done, which is none of it at first.
        executor, at_once: see `engine.local_executor`.
        stays: the results stay on the device; `on_device.covers` said yes.
        candidates: so many are filtered on the device; `filtering.covers` said yes. 0: none.
        quiet: no progress on standard error.

    Returns:
        what was found, and the record of it.

    Raises:
        SweepError, KeyboardInterrupt, OSError: see `engine.run`.
    """
    began = time.monotonic()
    job = state.job
    known = run_points(job, [one.operands for one in known_inputs(job.signature)])
    if stays:
        found = on_device.found(job, executor, known, quiet=quiet)
    else:
        engine.run(state, executor, at_once, quiet=quiet)
        found = _found(state, executor, known, candidates, quiet)
    found.wall = time.monotonic() - began
    return found, record_of(job, found, target_of(job.backend, job.signature).level)


def _found(state: engine.State, executor: Executor, known: Part, candidates: int, quiet: bool) -> Found:
    """What the parts add up to, the worst inputs, and what searches add."""
    job = state.job
    total, digest = merged(state.parts)
    worst = set(total.worst)
    repeatable = True
    filtered = None
    if candidates and isinstance(job.domain, Sample):
        target = target_of(job.backend, job.signature)
        looked = filtering.search(job, target, executor, candidates, job.domain.seed, quiet=quiet)
        filtered = looked.part, filtering.plain(looked)
        total.add(looked.part)
        worst |= set(looked.part.worst)
    if job.signature.formats[0].width < 64:
        chosen = worst_chunks(state.parts)
        for number, again in zip(chosen, executor.map(worst_of_chunk, [job] * len(chosen), chosen), strict=True):
            repeatable &= again[0] == state.parts[number].digest
            worst |= set(again[1])
    searched = None
    if isinstance(job.domain, Sample) and len(job.signature.args) == 1 and job.signature.formats[0].width == 64:
        searched = search(job, [one.operands for one in total.worst], job.domain.seed)
        total.add(searched)
        worst |= set(searched.worst)
    return Found(
        total,
        digest,
        total.sums,
        sorted(worst, key=lambda extreme: extreme.key)[:KEPT],
        known,
        searched,
        repeatable,
        versions=state.versions,
        filtered=filtered,
    )
