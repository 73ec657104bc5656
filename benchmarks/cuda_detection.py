"""Put every CUDA suspect on trial, in the text of its code and on the GPU, and the backend itself in the same places.

python benchmarks/cuda_detection.py --json docs/results/cuda-detection.json

Each suspect is tried by the properties of the clauses that it breaks, with the quick budget first and the standard one
where that misses it. An allowed variant, and the backend itself, must not be reported by any of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from halfulp.adapters.discovery import AdapterError
from halfulp.backends.cuda import CudaAdapter
from halfulp.certify.detection.cuda import Means, Row, detect, try_place
from halfulp.certify.saboteurs.cuda import CUDA_SUSPECTS
from halfulp.properties.plan import Plan


def rows_of(name: str, means: Means, seed: int) -> list[Row]:
    """The rows of one suspect, from the quick budget where that is enough."""
    rows = list(detect(name, means, Plan(seed, "quick")))
    if means == "gpu" and CUDA_SUSPECTS[name].fault and not all(row.right for row in rows):
        rows = list(detect(name, means, Plan(seed, "standard")))
    return rows


def of_backend(means: Means, seed: int) -> dict[str, Any]:
    """The backend itself in every place: how many claims and results were judged, and what was found."""
    backend = CudaAdapter("compile-only" if means == "ptx" else "")
    places = {getattr(p, means): p for suspect in CUDA_SUSPECTS.values() for p in suspect.places if getattr(p, means)}
    judged, found = 0, []
    for place in places.values():
        trial = try_place(backend, place, means, Plan(seed, "quick"))
        judged += trial.judged
        found += [f"{finding.id} {finding.clause} {finding.message}" for finding in trial.findings]
    backend.close()
    return {"places": len(places), "judged": judged, "findings": found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--means", nargs="+", choices=("ptx", "gpu"), default=["ptx", "gpu"])
    parser.add_argument("--json", help="write the record to this file")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        versions = dict(CudaAdapter("" if "gpu" in options.means else "compile-only").facts.versions)
    except AdapterError as error:
        print(f"{error}; `--means ptx` is enough for a part of the table", file=sys.stderr)
        return 2
    rows: list[Row] = []
    backends: dict[str, Any] = {}
    for means in options.means:
        backends[means] = of_backend(means, options.seed)
        print(f"{means}: the backend itself {json.dumps(backends[means])}", flush=True)
        for name in CUDA_SUSPECTS:
            for row in rows_of(name, means, options.seed):
                rows.append(row)
                answer = "as it should be" if row.right else "WRONG"
                print(f"{answer}: {row}", flush=True)
    wrong = [row for row in rows if not row.right]
    record = {
        "seed": options.seed,
        "versions": versions,
        "faults": sum(suspect.fault for suspect in CUDA_SUSPECTS.values()),
        "variants": sum(not suspect.fault for suspect in CUDA_SUSPECTS.values()),
        "backend": backends,
        "rows": [{**asdict(row), "seconds": round(row.seconds, 3)} for row in rows],
        "seconds": round(time.perf_counter() - start, 1),
    }
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows)} rows, {len(wrong)} not as they should be, {record['seconds']} s")
    return 1 if wrong or any(one["findings"] for one in backends.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
