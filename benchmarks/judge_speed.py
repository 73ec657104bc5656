"""How fast the oracle judges, per operation and format, on one core.

Each row judges correct outputs, which is the common case: elements per second of ``record.allowed`` and
``AllowedSet.judge`` together, in blocks of 32 Ki elements, and the ratio to a plain numpy copy of the same outputs in
the same run (machines are noisy; a ratio is not). Run with ``make bench`` or ``python benchmarks/judge_speed.py``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence

import numpy as np

from halfulp.oracle.formats import FORMATS, Bits, Format
from halfulp.oracle.ops import OPERATIONS, Signature, signatures

BLOCK = 1 << 15


def random_bits(fmt: Format, n: int, rng: np.random.Generator) -> Bits:
    if fmt.storage.fields:
        return np.frombuffer(rng.bytes(n * fmt.storage.itemsize), fmt.storage)
    return (
        np.frombuffer(rng.bytes(n * fmt.storage.itemsize), fmt.storage) & fmt.storage.type(fmt.code_count - 1)
    ).copy()


def per_second(work: Callable[[], object], elements: int, seconds: float) -> float:
    work()
    best = float("inf")
    until = time.process_time() + seconds
    while time.process_time() < until:
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return elements / best


def oracle_only() -> Sequence[Signature]:
    """Casts from and to f32 of the formats that no backend is asked for."""
    rows = []
    for fmt in FORMATS.values():
        if not fmt.canonical:
            rows += [Signature("cast", (fmt.name,), "f32"), Signature("cast", ("f32",), fmt.name)]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", help="only these operations, comma separated")
    parser.add_argument("--seconds", type=float, default=0.05, help="time spent on each row (default 0.05)")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--below", type=float, help="print only rows below this many million elements per second")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    wanted = options.ops.split(",") if options.ops else list(OPERATIONS)
    slowest: tuple[float, str] = (float("inf"), "")
    rows: dict[str, float] = {}
    for signature in (*signatures(), *oracle_only()):
        if signature.op not in wanted:
            continue
        record = OPERATIONS[signature.op]
        operands = [random_bits(fmt, BLOCK, rng) for fmt in signature.formats]
        outputs = record.allowed(signature, operands).nearest.copy()
        speed = per_second(
            lambda r=record, s=signature, o=operands, g=outputs: r.allowed(s, o).judge(g), BLOCK, options.seconds
        )
        copy = per_second(lambda g=outputs: g.copy(), BLOCK, options.seconds / 5)
        slowest = min(slowest, (speed, signature.id))
        rows[signature.id] = round(speed / 1e6, 1)
        if options.below is None or speed < options.below * 1e6:
            print(f"{signature.id:36s} {speed / 1e6:9.1f} M/s   copy/judge {copy / speed:8.1f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"million_elements_per_second_per_core": rows}, file, indent=1)
            file.write("\n")
    print(f"slowest: {slowest[1]} at {slowest[0] / 1e6:.1f} million elements per second per core")


if __name__ == "__main__":
    main()
