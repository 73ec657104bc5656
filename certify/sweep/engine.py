"""Spreads the chunks of a sweep over an executor, and keeps its state."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import halfulp
from halfulp.certify.report import write_json
from halfulp.certify.sweep.domain import chunk_length
from halfulp.certify.sweep.job import Job, SweepError, run_chunks, target_of
from halfulp.certify.sweep.part import Part, part_from_plain

STATE_SCHEMA = "halfulp-sweep-state-2"

AIM = 0.5
"""Seconds that one task should take: long against the cost of a task, short for somebody who interrupts."""

LARGEST_TASK = 64
"""Chunks of one task, at most."""

GRACE = 5.0
"""Seconds that an interrupted sweep waits for the tasks that are running, so that they are not lost."""

SAVE_EVERY = 15.0
"""Seconds between two savings of the state, or more where saving takes long."""


class Inline(Executor):
    """Runs everything at once in this thread: one process, nothing to start."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def local_executor(processes: int) -> Iterator[tuple[Executor, int]]:
    """An executor on this machine, and how many tasks it runs at once. Processes are started afresh, not forked."""
    if processes == 1:
        yield Inline(), 1
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_leave_interrupts_to_the_parent)
    try:
        yield pool, processes
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """The workers of a Dask cluster.

    Raises:
        SweepError: dask.distributed is not installed, there is no scheduler at the address, it has no workers, or
            they have other versions than this process.
    """
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise SweepError(
            "--scheduler needs dask.distributed, which is not installed; pip install 'halfulp[dask]'"
        ) from None
    try:
        client: Any = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SweepError(
            f"--scheduler {address}: no connection ({error}); start one with `dask scheduler` and give the address it "
            "prints, tcp://HOST:PORT"
        ) from None
    try:
        workers = sum(client.nthreads().values())
        if not workers:
            raise SweepError(f"--scheduler {address}: it has no workers; start some with `dask worker {address}`")
        here = environment()
        for worker, there in client.run(environment).items():
            different = [name for name in here if there.get(name) != here[name]]
            if different:
                name = different[0]
                raise SweepError(
                    f"--scheduler {address}: worker {worker} has {name} {there.get(name)}, this process {here[name]}; "
                    "one record cannot speak of both. Install the same on both"
                )
        yield client.get_executor(pure=False, retries=2), workers
    finally:
        client.close()


def environment() -> dict[str, str]:
    """Versions that a verdict depends on."""
    found = {"halfulp": halfulp.__version__, "python": platform.python_version()}
    for package in ("numpy", "python-flint", "mpmath", "llvmlite"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def versions_of(job: Job) -> dict[str, str]:
    """`environment`, and what the backend names.

    Raises:
        SweepError: see `target_of`.
    """
    facts = target_of(job.backend, job.signature).adapter.facts
    return {**environment(), **{str(name): str(text) for name, text in facts.versions.items()}}


# The state.


class State:
    """The chunks that are done, on disk if a path is given.

    Args:
        job: the sweep.
        path: the file. None: nothing is kept.
        parts: what is done already.
    """

    def __init__(self, job: Job, path: Path | None, parts: dict[int, Part] | None = None) -> None:
        self.job = job
        self.path = path
        self.parts = parts or {}
        self.versions = versions_of(job)
        self._saved = time.monotonic()
        self._cost = 0.0

    def save(self, *, now: bool = True) -> None:
        """Write the file in one step; without ``now`` only if the last time is long ago.

        Raises:
            OSError: it cannot be written.
        """
        began = time.monotonic()
        if self.path is None or (not now and began - self._saved < max(SAVE_EVERY, 30 * self._cost)):
            return
        data = {
            "schema": STATE_SCHEMA,
            "job": self.job.plain(),
            "versions": self.versions,
            "parts": {str(number): self.parts[number].plain() for number in sorted(self.parts)},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, data)
        self._saved = time.monotonic()
        self._cost = self._saved - began

    def discard(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def state_name(job: Job) -> str:
    """The name of the state file of a sweep: the same for the same sweep."""
    digest = hashlib.sha256(json.dumps(job.plain(), sort_keys=True).encode()).hexdigest()[:12]
    return f"sweep-{job.signature.op}-{job.signature.args[0]}-{digest}.json"


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, str], dict[int, Part]]:
    """The job (as plain data), the versions and the parts of a state file.

    Raises:
        SweepError: it cannot be read, or is no state file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != STATE_SCHEMA:
            raise SweepError(f"{path}: its layout is {data['schema']}, this version reads {STATE_SCHEMA}; start anew")
        parts = {int(number): part_from_plain(part) for number, part in data["parts"].items()}
        return data["job"], data["versions"], parts
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}; give the file that the interrupted sweep named") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SweepError(f"{path} is not the state of a sweep; give the file that the interrupted one named") from None


# The run.


class Progress:
    """One line on standard error with the rate and the time to go; on a terminal it is rewritten in place."""

    def __init__(self, total: int, done: int, quiet: bool) -> None:
        self.total, self.done, self.first = total, done, done
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self.began = self.shown = time.monotonic()
        self.width = 0

    def advance(self, inputs: int) -> None:
        self.done += inputs
        now = time.monotonic()
        if not self.quiet and now - self.shown >= (0.2 if self.live else 15.0):
            self.shown = now
            self._write(self.text(now))

    def text(self, now: float) -> str:
        rate = (self.done - self.first) / max(now - self.began, 1e-9)
        left = (self.total - self.done) / rate if rate else 0.0
        return (
            f"{100 * self.done / self.total:5.1f} %  {self.done:,} of {self.total:,} inputs  "
            f"{rate / 1e6:.1f} million/s  {_duration(left)} to go"
        )

    def _write(self, text: str) -> None:
        if self.live:
            print("\r" + text.ljust(self.width), end="", file=sys.stderr, flush=True)
            self.width = len(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.live and self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)
            self.width = 0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def run(state: State, executor: Executor, at_once: int, *, quiet: bool = False) -> None:
    """Run all chunks that are not done yet; the parts are put into the state.

    Raises:
        SweepError: see `run_chunks`; or a worker process died.
        KeyboardInterrupt: interrupted; what is done is in the state, which is saved.
        OSError: the state cannot be written.
    """
    job = state.job
    waiting = [number for number in range(job.chunks) if number not in state.parts]
    waiting.reverse()
    done = sum(part.inputs for part in state.parts.values())
    progress = Progress(job.domain.inputs, done, quiet)
    running: dict[Future[Any], list[int]] = {}
    size = 1
    try:
        while waiting or running:
            while waiting and len(running) < 2 * at_once:
                size = min(size, max(1, len(waiting) // (2 * at_once)))
                numbers = [waiting.pop() for _ in range(size)]
                running[executor.submit(run_chunks, job, numbers)] = numbers
                if any(future.done() for future in running):
                    break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                numbers = running.pop(future)
                found = future.result()
                state.parts.update(found)
                progress.advance(sum(chunk_length(job.domain, number) for number in numbers))
                spent = sum(part.target_seconds + part.judge_seconds for _, part in found) / len(found)
                size = max(1, min(LARGEST_TASK, int(AIM / max(spent, 1e-6))))
            state.save(now=False)
    except BrokenExecutor:
        state.save()
        raise SweepError(
            f"a worker process died while it ran {job.signature.id}: the backend crashed, or memory ran out. "
            "--processes 1 shows a crash where it happens"
        ) from None
    except KeyboardInterrupt:
        left = [future for future in running if not future.cancel()]
        for future in wait(left, timeout=GRACE).done:
            if not future.cancelled() and future.exception() is None:
                state.parts.update(future.result())
        state.save()
        raise
    finally:
        progress.close()
