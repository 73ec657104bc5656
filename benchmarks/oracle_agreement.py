"""Whether the sources of exact values agree, on a million inputs of each function and on those that are hard to round.

For each function:

* mpmath, Arb and MPFR (for i0 a power series in integers, since MPFR does not have it) round the exact value to one
  code. Inputs: every code of the formats of 8 and 16 bits, the critical points of f32 and f64, random ones, and every
  f32 input whose exact value lies within about 2^-18 ulp of a rounding boundary. These are found by trying all 2^32
  with enclosures widened on purpose: what the widened ones leave undecided is such an input.
* The enclosures of the bulk judge hold Arb's, and the codes that they decide are those of the slow path. Inputs: random
  ones, both ends and the middle of every run, poles, and the same hard ones.

The sources and the draws are those of the tests, which look at a thousand inputs in every run. The record is written
after each function; a function that is in it already, of the same count and seed, is not done again.

    python benchmarks/oracle_agreement.py --jobs 2 --out docs/results/oracle-agreement.json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import bulk_attack as bulk
import function_sources as oracle

from halfulp.certify.report import write_json
from halfulp.certify.sweep.domain import CHUNK
from halfulp.certify.sweep.job import PIECE, target_of
from halfulp.oracle import functions
from halfulp.oracle.bulk import BulkJudge, Kind, Limits
from halfulp.oracle.bulk.table import HIGH, LOW
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.ops.record import Signature

WIDER = 2.0**-42
"""Relative: 2^-19 to 2^-18 ulp of an f32 result."""

TOGETHER = 500
"""Inputs of one task."""

SHOWN = 20
"""Disagreements that are written out."""

EVERYTHING = 1 << 32


class Search:
    """Finds the f32 inputs of a function that are hard to round.

    The native judge looks at single elements wherever an enclosure is undecided, and asks for their rounding here. It
    is given the results of the CPU backend, because it looks at wrong ones singly, too.
    """

    def __init__(self, name: str) -> None:
        table = bulk.table(name)
        rows = table.rows.copy()
        run = table.kinds < Kind.VALUE
        rows[run, LOW] *= 1 - WIDER
        rows[run, HIGH] *= 1 + WIDER
        self.judge = BulkJudge(replace(table, rows=rows), settle=self._settle)
        self.signature = Signature(name, ("f32",), "f32")
        self.target = target_of("cpu", self.signature)
        self.found: list[int] = []

    def _settle(self, codes: Any) -> Any:
        self.found += codes.tolist()
        return functions.nearest_many(self.signature.op, "f32", codes)

    def chunk(self, first: int) -> list[int]:
        """Those among consecutive codes."""
        self.found.clear()
        for start in range(first, first + CHUNK, PIECE):
            codes = np.arange(start, start + PIECE, dtype=np.uint64).astype(np.uint32)
            self.judge.sweep(start, self.target((codes,), self.signature), Limits(7))
        return sorted(set(self.found))


@cache
def search(name: str) -> Search:
    return Search(name)


# Tasks of worker processes.


def hard_of_chunk(task: tuple[str, int]) -> list[int]:
    name, first = task
    return search(name).chunk(first)


def three_sources(task: tuple[str, str, list[int]]) -> list[str]:
    name, dtype, codes = task
    return oracle.disagreements(name, FORMATS[dtype], codes)


def bulk_and_slow(task: tuple[str, str, list[int]]) -> tuple[list[str], int, int]:
    name, _, codes = task
    return bulk.breaches(name, np.array(codes, np.uint32))


# The record of a function.


def batches(name: str, dtype: str, codes: Sequence[int]) -> Iterator[tuple[str, str, list[int]]]:
    for start in range(0, len(codes), TOGETHER):
        yield name, dtype, list(codes[start : start + TOGETHER])


def distinct(*parts: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(code for part in parts for code in part))


def filled_up(have: Sequence[int], wanted: int, draw: Callable[[int], Iterable[int]], seed: int) -> list[int]:
    """At least ``wanted`` distinct codes: those there are, then new ones from the draws of further seeds."""
    codes = dict.fromkeys(have)
    while len(codes) < wanted:
        seed += 1
        new = (code for code in distinct(draw(seed)) if code not in codes)
        codes.update(dict.fromkeys(islice(new, wanted - len(codes))))
    return list(codes)


def inputs_of_sources(name: str, count: int, seed: int, hard: Sequence[int]) -> dict[str, list[int]]:
    """``count`` operands at least, by format; what is missing is made up in f64."""
    found = oracle.shared_out(name, count, seed)
    found["f32"] = [*hard, *found["f32"]]
    found = {dtype: distinct(codes) for dtype, codes in found.items()}
    wanted = len(found["f64"]) + count - sum(map(len, found.values()))
    draw = partial(oracle.operands, name, FORMATS["f64"], count)
    return {**found, "f64": filled_up(found["f64"], wanted, draw, seed)}


def inputs_of_bulk(name: str, count: int, seed: int, hard: Sequence[int]) -> list[int]:
    def draw(seed: int) -> list[int]:
        return bulk.attack(name, count, seed).tolist()

    return filled_up([*hard, *draw(seed)], count, draw, seed)


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    began = time.monotonic()
    return {**work(), "seconds": round(time.monotonic() - began, 1)}


def agreement(pool: Executor, name: str, count: int, seed: int, chunks: int) -> dict[str, Any]:
    """The record of one function: see the head of this file."""
    bulk.table(name)  # built once, before the workers ask for it
    hard: list[int] = []

    def find() -> dict[str, Any]:
        tasks = [(name, number * (EVERYTHING // chunks)) for number in range(chunks)]
        for part in pool.map(hard_of_chunk, tasks, chunksize=4):
            hard.extend(part)
        return {"tried": chunks * CHUNK, "found": len(hard)}

    def three() -> dict[str, Any]:
        inputs = inputs_of_sources(name, count, seed, hard)
        tasks = [task for dtype, codes in inputs.items() for task in batches(name, dtype, codes)]
        wrong = [text for texts in pool.map(three_sources, tasks) for text in texts]
        return {
            "third": "power series" if name == "i0" else "MPFR",
            "inputs": sum(map(len, inputs.values())),
            "by_format": {dtype: len(codes) for dtype, codes in inputs.items()},
            "disagreements": len(wrong),
            "shown": wrong[:SHOWN],
        }

    def judge() -> dict[str, Any]:
        codes = inputs_of_bulk(name, count, seed, hard)
        results = list(pool.map(bulk_and_slow, batches(name, "f32", codes)))
        wrong = [text for texts, _, _ in results for text in texts]
        return {
            "inputs": len(codes),
            "enclosures": sum(compared for _, compared, _ in results),
            "undecided": sum(undecided for _, _, undecided in results),
            "disagreements": len(wrong),
            "shown": wrong[:SHOWN],
        }

    return {
        "hard_to_round": timed(find),
        "three_sources": timed(three),
        "bulk_and_slow_path": timed(judge),
        "table": bulk.table(name).digest,
    }


def versions() -> dict[str, str]:
    packages = ("mpmath", "python-flint", "gmpy2", "numpy", "llvmlite")
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
        "MPFR": gmpy2.mpfr_version(),
    }


def begun(out: Path | None, head: dict[str, Any]) -> dict[str, Any]:
    """The functions of an earlier run that said the same at its head."""
    try:
        record = json.loads(out.read_text(encoding="utf-8")) if out else {}
    except (OSError, ValueError):
        return {}
    same = all(record.get(key) == head[key] for key in ("count", "seed", "versions"))
    return dict(record["functions"]) if same else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--count", type=int, default=10**6, help="inputs of a function (default 10^6)")
    parser.add_argument("--seed", type=int, default=1, help="of the random ones (default 1)")
    parser.add_argument("--only", default=",".join(oracle.UNARY), help="functions, comma separated (default: all)")
    parser.add_argument("--chunks", type=int, default=4096, help="of 4096 chunks, how many are searched for hard ones")
    parser.add_argument("--out", type=Path, help="write the record to this file")
    options = parser.parse_args()
    head = {"count": options.count, "seed": options.seed, "versions": versions()}
    done = begun(options.out, head)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context) as pool:
        for name in options.only.split(","):
            if name in done:
                continue
            done[name] = agreement(pool, name, options.count, options.seed, options.chunks)
            done[name]["jobs"] = options.jobs
            print(json.dumps({name: done[name]}), flush=True)
            if options.out:
                system = f"{platform.system()}-{platform.machine()}"
                write_json(options.out, {**head, "platform": system, "functions": done})
    parts = (found[part] for found in done.values() for part in ("three_sources", "bulk_and_slow_path"))
    wrong = sum(part["disagreements"] for part in parts)
    print(f"{wrong} disagreements")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
