"""How fast the bulk judge is, on one core: millions of inputs a second, and as ratios.

For each function, correct results of chunks of 2**20 consecutive arguments from all over the range are judged again
and again. The time is that of the judge alone, in processor time of the thread. Next to it: the ratio to a numpy copy
of the same results, the time to build the table, and how many times faster this is than one argument at a time by the
slow path (a correctly rounded result), by mpmath and Arb at 100 bits, and by MPFR at 24, where it has the function.
With ``--all`` every chunk of the range is judged once against the table's own results (no target is run).

    python benchmarks/bulk_speed.py --json docs/results/bulk-speed.json
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from function_sources import mpfr_context, mpfr_function

from halfulp.certify.device import cpu_class
from halfulp.certify.report import write_json
from halfulp.oracle import functions
from halfulp.oracle.bulk import NOTHING, TARGETS, BulkJudge, Limits, build
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.functions.record import mp
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


def one_at_a_time(name: str, count: int) -> dict[str, float | None]:
    """Microseconds for one argument in (0, 1), by each source."""
    rng = np.random.default_rng(0)
    codes = rng.uniform(0.01, 0.99, count).astype(np.float32).view(np.uint32)
    values = [value for code in codes if isinstance(value := value_of(FORMATS["f32"], int(code)), Fraction)]
    definition = functions.FUNCTIONS[name].value

    def by_mpmath() -> None:
        with mp.workprec(100):
            for value in values:
                definition(value)

    def by_mpfr() -> None:
        with mpfr_context(FORMATS["f32"]):
            for operand in operands:
                evaluate(operand)

    found: dict[str, float | None] = {
        "slow_path": seconds(lambda: functions.nearest_many(name, "f32", codes), 1) / count * 1e6,
        "mpmath": seconds(by_mpmath, 5) / count * 1e6,
        "arb": seconds(lambda: [functions.arb_ball(name, value, 100) for value in values], 5) / count * 1e6,
        "mpfr": None,
    }
    evaluate = mpfr_function(name)
    if evaluate is not None:
        operands = [gmpy2.mpfr(value) for value in values]
        found["mpfr"] = seconds(by_mpfr, 5) / count * 1e6
    return found


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


def measured(name: str, chunks: int) -> tuple[dict[str, Any], BulkJudge]:
    """The row of a function, and its judge."""
    start = time.thread_time()
    table = build(name)
    built = time.thread_time() - start
    judge = BulkJudge(table)
    times, copies = [], []
    for first in np.linspace(0, (1 << 32) - CHUNK, chunks).astype(np.int64) & -CHUNK:
        got = correct(judge, int(first))
        times.append(seconds(partial(judge.sweep, int(first), got, LIMITS), 5))
        copies.append(seconds(got.copy, 5))
    rate = CHUNK * len(times) / sum(times) / 1e6
    single = one_at_a_time(name, 300)
    row = {
        "build_seconds": round(built, 2),
        "runs": len(table.starts),
        "table_bytes": table.nbytes,
        "judge_million_per_second": round(rate, 1),
        "slowest_chunk_million_per_second": round(CHUNK / max(times) / 1e6, 1),
        "times_a_copy": round(sum(times) / sum(copies), 1),
        "microseconds_one_at_a_time": {source: time and round(time, 3) for source, time in single.items()},
        "times_faster_than": {source: time and round(rate * time) for source, time in single.items()},
    }
    return row, judge


def text(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", default=",".join(TARGETS), help="comma separated")
    parser.add_argument("--chunks", type=int, default=64, help="chunks of 2**20 arguments (default 64)")
    parser.add_argument("--all", action="store_true", help="all 4096 chunks, about a minute or two a function")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    print("                                                      one argument at a time, times slower than the judge")
    print("function   build s    runs  judge M/s  worst chunk  x copy   slow path     mpmath       Arb      MPFR")
    rows: dict[str, Any] = {}
    load = os.getloadavg()[0]
    for name in options.functions.split(","):
        row, judge = measured(name, options.chunks)
        rows[name] = row
        faster = "".join(f"{text(row['times_faster_than'][k]):>11s}" for k in ("slow_path", "mpmath", "arb", "mpfr"))
        print(
            f"{name:9s} {row['build_seconds']:8.2f} {row['runs']:7d} {row['judge_million_per_second']:10.0f}"
            f" {row['slowest_chunk_million_per_second']:12.0f} {row['times_a_copy']:7.1f} {faster}",
            flush=True,
        )
        if options.all:
            print("          all: {:.0f} M/s, {}".format(*sweep(judge)), flush=True)
    if options.json:
        write_json(options.json, {"cpu": cpu_class(), "load_average_before": round(load, 2), "functions": rows})


if __name__ == "__main__":
    main()
