"""Words per second of the random bits: the oracle and the CPU backend, which have to agree on every one of them.

python benchmarks/philox.py [--words 100000000] [--json docs/results/philox.json]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from halfulp.adapters.protocol import Options
from halfulp.backends.cpu.adapter import CpuAdapter
from halfulp.certify.device import cpu_class
from halfulp.certify.report import write_json
from halfulp.oracle import random
from halfulp.oracle.ops import OPERATIONS, Signature

LAUNCH = 1 << 20
SEED = 0x0123456789ABCDEF
FIRST = (1 << 34) - (1 << 22)
"""The first counter: the carry into the second word of the block comes early."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=100_000_000)
    parser.add_argument("--json", type=Path, help="write the record to this file")
    options = parser.parse_args()
    words = options.words
    kernel = OPERATIONS["random_bits"].kernel(Signature("random_bits", ("u64", "u64"), "u32"))
    (program,) = CpuAdapter().compile([kernel], Options(3))
    if not callable(program):
        print(f"the CPU backend does not compile random_bits: {program.reason}")
        return 1
    seeds = np.full(LAUNCH, SEED, np.uint64)
    lanes = np.arange(LAUNCH, dtype=np.uint64)
    seconds = {"oracle": 0.0, "CPU backend": 0.0}
    different = 0
    for at in range(0, words, LAUNCH):
        n = min(LAUNCH, words - at)
        counters = lanes[:n] + np.uint64(FIRST + at)
        start = time.thread_time()
        expected = random.words(SEED, FIRST + at, n)
        middle = time.thread_time()
        (got,) = program(seeds[:n], counters)
        seconds["oracle"] += middle - start
        seconds["CPU backend"] += time.thread_time() - middle
        different += int(np.count_nonzero(got != expected))
    for name, time_of in seconds.items():
        print(f"{name:<12} {words / time_of / 1e6:6.0f} million words/s/core")
    print(f"{different} of {words} words differ")
    if options.json:
        rates = {name: round(words / time_of / 1e6) for name, time_of in seconds.items()}
        write_json(
            options.json,
            {"words": words, "different": different, "million_words_per_second_per_core": rates, "cpu": cpu_class()},
        )
    return int(different > 0)


if __name__ == "__main__":
    raise SystemExit(main())
