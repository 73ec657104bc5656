"""The page of what was measured on a GPU, from the JSON records of `benchmarks/gpu_records.py` in docs/results/."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import _results_litmus_cuda
from _results import RESULTS, Record, Table, bound_text, counted_steps, maxima, name_of, records

HEAD = """\
Written by `benchmarks/gpu_records.py --out DIR` on a machine with {gpu} (compute capability {arch}, driver for CUDA
{driver}, NVRTC {nvrtc}) and {processes} processes, in one run of {total:.0f} seconds. How the device judges:
[try every input](how-to/sweep.md) and [how the oracle is proved](explanation/how-the-oracle-is-proved.md).

| step | seconds |
|---|---|
| tables of the certified judge | {tables:.0f} |
| f32 functions, every input | {functions:.0f} |
| f64 functions, 10^9 candidates each | {wide:.0f} |
| casts of every f32 input | {casts:.0f} |
| all pairs of f16 and of bf16, added, multiplied, divided | {pairs:.0f} |
| certification at standard depth | {certify:.0f} |
| suspects, built with real compiler options and instructions | {detection:.0f} |
| litmus tests and their mutants | {litmus:.0f} |

## Certification

{verdict}.
{allowed:,} results are allowed, {unspecified:,} unspecified, {no_claim:,} without a claim, at both optimisation levels.

"""

SIDE_BY_SIDE = """## Functions on every f32 input, beside the CPU backend

All 2^32 inputs. *Steps* count from the correctly rounded result (reading:1); the *error* is that of the result itself,
in ulp of the exact value. Nothing is forbidden and nothing undecided where the columns say 0.

"""

TIMES = """
## How long that takes

Milliseconds of kernel time for all 2^32 inputs: writing the *inputs*, the *target* writing its results, the certified
*judge* with histogram, maxima and digest. The *ratio* is the sum of the three over the target alone. *Judged again* on
the host, bit for bit the same: a random hundredth of the pieces.

"""

DOUBLES = """
## Functions in f64

`halfulp sweep --format f64 --filter 1e9`: of 10^9 candidates the device keeps those with the largest errors by a
reference in double-double arithmetic, then searches beside them; the host judges what is kept by Arb. **These maxima
are lower bounds.**

"""

CASTS = """
## Casts and pairs

Every f32 input of a cast, every pair of 16-bit operands. The digest is the sum over all inputs of a mix of input and
output (see [the record of a sweep](reference/sweep-record.md)).

"""

SUSPECTS = """
## Suspects

Backends that are wrong in one way, built by real compiler options, instructions and intrinsics: {rows} places in which
one was tried, {wrong} of them not as they should be. *Faults* have to be reported, *variants* are allowed and must not
be.

"""


def _load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _key(record: Record) -> tuple[str, str]:
    return record["op"], json.dumps(record["attrs"], sort_keys=True)


def _functions(backend: str) -> list[Record]:
    kept = [r for r in records("sweep-*.json", backend) if r["domain"]["kind"] == "codes" and r["op"] != "cast"]
    return sorted(kept, key=_key)


def _side_by_side(table: Table) -> str:
    rows = []
    on_cpu = {_key(record): record for record in _functions("cpu")}
    for record in _functions("cuda"):
        for who, found in (("cuda", record), ("cpu", on_cpu.get(_key(record)))):
            if found is not None:
                counts = (str(found[kind]) for kind in ("forbidden", "undecided"))
                rows.append((name_of(found), bound_text(found), who, *counts, *maxima(found), counted_steps(found)))
    heads = ("function", "bound", "backend", "forbidden", "undecided")
    return SIDE_BY_SIDE + table((*heads, "most steps", "largest error in ulp", "results by steps"), rows)


def _times(table: Table) -> str:
    rows = []
    for record in _functions("cuda"):
        judge = record["device_judge"]
        seconds, again = judge["kernel_seconds"], judge["checked_on_host"]
        rows.append(
            (
                name_of(record),
                *(f"{1e3 * seconds[part]:.1f}" for part in ("inputs", "target", "judge")),
                f"{judge['ratio']:.2f}",
                f"{again['inputs']:,}, {again['differences']} differ",
                f"{record['time']['wall_seconds']:.1f} s",
            )
        )
    return TIMES + table(("function", "inputs", "target", "judge", "ratio", "judged again", "wall time"), rows)


def _doubles(table: Table) -> str:
    rows = [
        (name_of(record), bound_text(record), f"{record['inputs']:,}", str(record["forbidden"]), *maxima(record))
        for record in records("sweep-cuda-*-f64.json", "cuda")
    ]
    heads = ("function", "bound", "judged on the host", "forbidden", "most steps", "largest error in ulp")
    return DOUBLES + table(heads, rows)


def _exact(table: Table) -> str:
    kept = [r for r in records("sweep-cuda-*.json", "cuda") if r["op"] == "cast" or r["domain"]["kind"] == "pairs"]
    kinds = ("allowed", "forbidden", "unspecified", "no_claim")
    rows = [
        (f"`{record['signature']}`", *(f"{record[kind]:,}" for kind in kinds), f"`{' '.join(record['digest64'])}`")
        for record in kept
    ]
    return CASTS + table(("operation", *(kind.replace("_", " ") for kind in kinds), "digest64"), rows)


def _suspects(table: Table) -> str:
    rows = _load("cuda-detection")["rows"]
    by_suspect: dict[tuple[str, bool], dict[str, list[str]]] = {}
    for row in rows:
        places = by_suspect.setdefault((row["suspect"], row["fault"]), {"ptx": [], "gpu": []})
        seen = "reported" if row["forbidden"] else "not reported"
        places[row["means"]].append(f"{row['where']} ({row['clause']}): {seen}")
    wrong = sum(bool(row["forbidden"]) != row["fault"] for row in rows)
    cells = (
        (f"`{name}`", "fault" if fault else "variant", *("; ".join(places[means]) or "-" for means in ("ptx", "gpu")))
        for (name, fault), places in by_suspect.items()
    )
    heads = ("suspect", "kind", "by its PTX", "by running it")
    return SUSPECTS.format(rows=len(rows), wrong=wrong) + table(heads, cells)


def cuda_page(table: Table, note: str) -> str:
    """The page, with the table writer and the head note of the other pages."""
    summary = _load("summary-cuda")
    ran, seconds = summary["certification"], summary["step_seconds"]
    versions: dict[str, str] = ran["versions"]
    head = HEAD.format(
        gpu=f"one {versions['gpu']}",
        arch=versions["arch"].removeprefix("sm_"),
        driver=versions["cuda driver"],
        nvrtc=versions["nvrtc"],
        processes=summary["processes"],
        total=sum(seconds.values()),
        verdict=ran["verdict"].capitalize(),
        **seconds,
        **ran["totals"] | {"seconds": 0},
    )
    sections: Iterable[str] = (
        _side_by_side(table),
        _times(table),
        _doubles(table),
        _exact(table),
        _suspects(table),
        _results_litmus_cuda.section(table),
    )
    return f"# Results on a GPU\n\n{note}{head}" + "".join(sections)
