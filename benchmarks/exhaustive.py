"""Try every input of the short formats: a backend against the oracle.

All pairs of 8-bit codes for every operation, all codes of f16 and bf16 for every unary operation, all casts from 8- and
16-bit formats, at both optimisation levels. Every result is judged; the record says how many were allowed. The 2^32
inputs of an f32 operation are for ``halfulp sweep``.

    python benchmarks/exhaustive.py --backend cpu --json docs/results/exhaustive-narrow-cpu.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from halfulp.adapters.discovery import load
from halfulp.adapters.protocol import Options, Rejected, Unsupported
from halfulp.oracle.formats import Bits
from halfulp.oracle.judge import judge
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import OPERATIONS, Signature, signatures
from halfulp.oracle.sets import Verdict


def narrow() -> Iterator[tuple[Signature, list[Bits]]]:
    """Signatures whose operands together have at most 16 bits (a bool counts as one), with all their operands."""
    for signature in signatures():
        widths = [fmt.width for fmt in signature.formats]
        if signature.op != "muladd" and sum(widths) <= 17:
            every = np.arange(1 << sum(widths), dtype=np.uint64)
            operands = []
            for fmt in signature.formats:
                operands.append((every & np.uint64(fmt.code_count - 1)).astype(fmt.storage))
                every = every >> np.uint64(fmt.width)
            yield signature, operands


def run_narrow(backend: str) -> dict[str, Any]:
    adapter = load(backend)
    cases = list(narrow())
    kernels: list[Kernel] = [OPERATIONS[signature.op].kernel(signature) for signature, _ in cases]
    total: Counter[str] = Counter()
    refused: list[str] = []
    for level in adapter.opt_levels:
        compiled = adapter.compile(kernels, Options(level))
        for (signature, operands), kernel, program in zip(cases, kernels, compiled, strict=True):
            if isinstance(program, Rejected | Unsupported):
                refused.append(f"{signature.id}: {program.reason}")
                continue
            outputs = program(*operands)
            (verdicts,) = judge(kernel, operands, outputs)
            for verdict, count in zip(*np.unique(verdicts, return_counts=True), strict=True):
                total[Verdict(verdict).name.lower()] += int(count)
            if (verdicts == Verdict.FORBIDDEN).any():
                print(f"FORBIDDEN: {signature.id} at O{level}", file=sys.stderr)
    return {"signatures": len(cases), "elements": sum(total.values()), **total, "not_run": refused}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--json", help="also write the record to this file")
    options = parser.parse_args()
    began = time.perf_counter()
    record = run_narrow(options.backend)
    print(json.dumps(record, indent=1))
    print(f"{time.perf_counter() - began:.1f} s")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
