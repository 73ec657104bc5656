"""Threads of the operating system that work in rounds, each on its processor."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def processors(placement: str, threads: int, seed: int) -> list[int | None]:
    """The processor of each thread; None where the system chooses.

    With fewer processors than threads, several share one: not with neighbours in the program, as far as possible.
    """
    if placement == "free" or not hasattr(os, "sched_setaffinity"):
        return [None] * threads
    there = sorted(os.sched_getaffinity(0))
    if placement == "together":
        return [there[seed % len(there)]] * threads
    return [there[(thread + seed) % len(there)] for thread in range(threads)]


def in_threads(works: Sequence[Callable[[], None]], places: Sequence[int | None], rounds: Rounds) -> int:
    """Run each work once a round in a thread of its own, on its processor. How many threads could be pinned.

    ``rounds.prepare`` is called before each round and ``rounds.collect`` after it, while all threads rest. Works must
    not raise.
    """
    gate = threading.Barrier(len(works) + 1)
    pinned = [False] * len(works)

    def worker(number: int) -> None:
        place = places[number]
        if place is not None:
            try:
                os.sched_setaffinity(0, {place})  # of this thread alone
                pinned[number] = True
            except OSError:
                pass
        try:
            while True:
                gate.wait()
                works[number]()
                gate.wait()
        except threading.BrokenBarrierError:
            return

    workers = [threading.Thread(target=worker, args=(number,), daemon=True) for number in range(len(works))]
    for thread in workers:
        thread.start()
    try:
        while rounds.prepare():
            start = time.perf_counter()
            gate.wait()
            gate.wait()
            rounds.collect(time.perf_counter() - start)
    finally:
        gate.abort()
        for thread in workers:
            thread.join()
    return sum(pinned)


@dataclass(frozen=True)
class Rounds:
    """What stands between rounds.

    Attributes:
        prepare: makes everything ready for a round; False where there is no further one.
        collect: called with the seconds that a round took.
    """

    prepare: Callable[[], bool]
    collect: Callable[[float], None]
