"""How long the memory model takes: all order variants of the critical cycles, and histories of ten million operations.

Processor time of one core. Run with ``python benchmarks/memory_model.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from halfulp.oracle.memory.cycles import cycle, necklaces, variants
from halfulp.oracle.memory.histories import History, judge
from halfulp.oracle.memory.search import verdict

OPERATIONS = 10**7


def timed(what: str, work: Callable[[], int]) -> None:
    start = time.process_time()
    count = work()
    print(f"{what:44s} {count:>10,} in {time.process_time() - start:6.2f} s", flush=True)


def orders(locations: int) -> int:
    """The verdict on the weak outcome of every order variant of every critical cycle."""
    programs = [program for segments in necklaces(locations) for program in variants(cycle(segments))]
    for program in programs:
        verdict(program)
    return len(programs)


def history(kind: str) -> int:
    rng = np.random.default_rng(1)
    who = rng.integers(0, 4, OPERATIONS)
    if kind == "add":
        given, old = np.ones(OPERATIONS, np.uint32), np.arange(OPERATIONS, dtype=np.uint32)
        last, dtype = OPERATIONS, "u32"
    else:
        given = rng.permutation(OPERATIONS).astype(np.int64) + 1
        old, last, dtype = np.append(np.int64(0), given[:-1]), int(given[-1]), "i64"
    operands, results = (tuple(array[who == thread] for thread in range(4)) for array in (given, old))
    judge(History(kind, dtype, 0, last, operands, results))
    return OPERATIONS


def main() -> None:
    timed("order variants over two locations", lambda: orders(2))
    timed("order variants over three locations", lambda: orders(3))
    for kind in ("add", "exchange"):
        timed(f"operations of one {kind} history", lambda kind=kind: history(kind))


if __name__ == "__main__":
    main()
