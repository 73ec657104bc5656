"""How fast the bulk judge is, on one core: millions of inputs a second, and as ratios.

For each function, correct results of chunks of 2**20 consecutive arguments from all over the range are judged again
and again. The time is that of the judge alone, in processor time of the thread. Next to it: the ratio to a numpy copy
of the same results, the time to build the table, and how many times faster this is than the slow path and Arb, one
argument at a time. With ``--all`` every chunk of the range is judged once against the table's own results (no target is
run).

Run with ``python benchmarks/bulk_speed.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from halfulp.oracle import functions
from halfulp.oracle.bulk import NOTHING, TARGETS, BulkJudge, Limits, build
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.rounding import value_of

CHUNK = 1 << 20
LIMITS = Limits(4)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of some repetitions."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def correct(judge: BulkJudge, first: int) -> Any:
    return np.ascontiguousarray(judge.nearest((first + np.arange(CHUNK)).astype(np.uint32)))


def one_at_a_time(name: str, count: int) -> tuple[float, float]:
    """Seconds for one argument: the slow path, and an Arb ball of 100 bits."""
    rng = np.random.default_rng(0)
    codes = rng.uniform(0.01, 0.99, count).astype(np.float32).view(np.uint32)
    slow = seconds(lambda: functions.nearest_many(name, "f32", codes), 1) / count
    values = [value_of(FORMATS["f32"], int(code)) for code in codes]
    arb = seconds(lambda: [functions.arb_ball(name, value, 100) for value in values], 1) / count  # type: ignore[arg-type]
    return slow, arb


def sweep(judge: BulkJudge) -> tuple[float, str]:
    """Millions of inputs a second over all 2**32 of them, and what was found."""
    total, spent = NOTHING, 0.0
    for first in range(0, 1 << 32, CHUNK):
        got = correct(judge, first)
        start = time.thread_time()
        total += judge.sweep(first, got, LIMITS)
        spent += time.thread_time() - start
    found = f"undecided {total.settled}, forbidden {total.forbidden}, max error {total.max_error:.6f} ulp"
    return (1 << 32) / spent / 1e6, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", default=",".join(TARGETS), help="comma separated")
    parser.add_argument("--chunks", type=int, default=64, help="chunks of 2**20 arguments (default 64)")
    parser.add_argument("--all", action="store_true", help="all 4096 chunks, about a minute or two a function")
    options = parser.parse_args()
    print("function   build s    runs  table kB   judge M/s   x copy   vs slow path   vs Arb   worst chunk M/s")
    for name in options.functions.split(","):
        start = time.thread_time()
        table = build(name)
        built = time.thread_time() - start
        judge = BulkJudge(table)
        times = []
        copies = []
        for first in np.linspace(0, (1 << 32) - CHUNK, options.chunks).astype(np.int64) & -CHUNK:
            got = correct(judge, int(first))
            times.append(seconds(partial(judge.sweep, int(first), got, LIMITS), 5))
            copies.append(seconds(got.copy, 5))
        rate = CHUNK * len(times) / sum(times)
        slow, arb = one_at_a_time(name, 300)
        print(
            f"{name:9s} {built:8.2f} {len(table.starts):7d} {table.nbytes / 1e3:9.0f} {rate / 1e6:11.0f}"
            f" {sum(times) / sum(copies):8.1f} {rate * slow:14.0f} {rate * arb:8.0f} {CHUNK / max(times) / 1e6:17.0f}",
            flush=True,
        )
        if options.all:
            print("          all: {:.0f} M/s, {}".format(*sweep(judge)), flush=True)


if __name__ == "__main__":
    main()
