"""Certify a backend with one seed after another at full depth, and record what each run judged.

python benchmarks/seeds.py --backend cpu --seeds 10 --json docs/results/seeds-cpu.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def certify(backend: str, seed: int, depth: str, folder: Path) -> dict[str, Any]:
    """One run of the installed command, in a folder of its own."""
    report = folder / f"{seed}.json"
    command = [sys.executable, "-m", "halfulp.certify.cli", "certify", "--backend", backend]
    command += ["--seed", str(seed), "--depth", depth, "--json", str(report)]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = round(time.perf_counter() - began, 1)
    tallies = json.loads(report.read_text())["tallies"]
    kinds = ("allowed", "forbidden", "unspecified", "no_claim")
    counts = {kind: sum(tally[kind] for tally in tallies) for kind in kinds}
    return {"seed": seed, "exit_status": done.returncode, "programs": len(tallies), **counts, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--seeds", type=int, default=10, help="how many, from 1 (default 10)")
    parser.add_argument("--depth", default="standard", choices=("quick", "standard", "deep"))
    parser.add_argument("--json", help="write the record to this file")
    options = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            runs.append(certify(options.backend, seed, options.depth, Path(folder)))
            print(json.dumps(runs[-1]), flush=True)
    if options.json:
        record = {"backend": options.backend, "depth": options.depth, "runs": runs}
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
