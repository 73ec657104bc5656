"""Try every input: a backend against the oracle where the inputs can be enumerated.

``narrow``: all pairs of 8-bit codes for every operation, all codes of f16 and bf16 for every unary operation, all
casts from 8- and 16-bit formats. ``f32``: all 2^32 inputs of the casts from f32 to f16, bf16, f8e4m3fn, f8e5m2, i32
and u32. Every result is judged; the record says how many were allowed, and for the f32 casts the digest of the complete
output: SHA-256 over the SHA-256s of consecutive chunks of 2^20 outputs.

    python benchmarks/exhaustive.py narrow --backend cpu
    python benchmarks/exhaustive.py f32 --backend cpu --processes 2 --json FILE
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from halfulp.adapters.discovery import load
from halfulp.adapters.protocol import Options, Rejected, Unsupported
from halfulp.oracle.formats import Bits
from halfulp.oracle.judge import judge
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import OPERATIONS, Signature, signatures
from halfulp.oracle.sets import Verdict

CHUNK = 1 << 20
BLOCK = 1 << 15
F32_TARGETS = ("f16", "bf16", "f8e4m3fn", "f8e5m2", "i32", "u32")


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


def _chunk(task: tuple[str, str, int]) -> tuple[int, bytes, dict[str, int], float, float]:
    backend, target, start = task
    signature, program = _prepared(backend, target)
    record = OPERATIONS["cast"]
    digest, counts = hashlib.sha256(), Counter[str]()
    running = judging = 0.0
    for begin in range(start, start + CHUNK, BLOCK):
        bits = np.arange(begin, begin + BLOCK, dtype=np.uint32)
        t0 = time.perf_counter()
        (output,) = program(bits)
        t1 = time.perf_counter()
        verdicts = record.allowed(signature, [bits]).judge(output)
        counted = np.bincount(verdicts, minlength=4)
        judging += time.perf_counter() - t1
        running += t1 - t0
        digest.update(output.tobytes())
        for verdict in Verdict:
            counts[verdict.name.lower()] += int(counted[verdict])
    return start, digest.digest(), dict(counts), running, judging


_PREPARED: dict[tuple[str, str], Any] = {}


def _prepared(backend: str, target: str) -> Any:
    key = (backend, target)
    if key not in _PREPARED:
        adapter = load(backend)
        signature = Signature("cast", ("f32",), target)
        (program,) = adapter.compile([OPERATIONS["cast"].kernel(signature)], Options(max(adapter.opt_levels)))
        if isinstance(program, Rejected | Unsupported):
            raise SystemExit(f"{signature.id}: {program.reason}")
        _PREPARED[key] = signature, program
        _PREPARED[key, "adapter"] = adapter  # type: ignore[index]
    return _PREPARED[key]


def run_f32(backend: str, processes: int, chunks: int) -> list[dict[str, Any]]:
    rows = []
    with ProcessPoolExecutor(processes) as pool:
        for target in F32_TARGETS:
            began = time.perf_counter()
            total: Counter[str] = Counter()
            digests: dict[int, bytes] = {}
            running = judging = 0.0
            step = (1 << 32) // CHUNK // chunks
            tasks = [(backend, target, i * step * CHUNK) for i in range(chunks)]
            for start, digest, counts, run, judged in pool.map(_chunk, tasks, chunksize=8):
                digests[start] = digest
                total.update(counts)
                running += run
                judging += judged
            complete = hashlib.sha256(b"".join(digests[start] for start in sorted(digests))).hexdigest()
            elements = len(digests) * CHUNK
            row = {
                "signature": f"cast[f32->{target}]",
                "inputs": elements,
                **total,
                "seconds": round(time.perf_counter() - began, 2),
                "target_million_per_second_per_core": round(elements / running / 1e6, 1),
                "judge_million_per_second_per_core": round(elements / judging / 1e6, 1),
                "sha256": complete,
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("narrow", "f32"))
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=4096, help="of 4096 chunks of 2^20 inputs, how many to try")
    parser.add_argument("--json", help="also write the record to this file")
    options = parser.parse_args()
    began = time.perf_counter()
    if options.what == "narrow":
        record: Any = run_narrow(options.backend)
        print(json.dumps(record, indent=1))
    else:
        record = run_f32(options.backend, options.processes, options.chunks)
    print(f"{time.perf_counter() - began:.1f} s")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
