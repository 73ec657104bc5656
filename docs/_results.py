"""The page of measured results, from the JSON records of real runs in docs/results/."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

PEERS = """
## The oracle beside other implementations

`HALFULP_DEEP=1 pytest tests/test_rounding_against_mpfr.py tests/test_integers_against_python.py
tests/test_ml_dtypes_peer.py` compares the oracle with implementations that share no code with it, on a million
adversarial inputs for each operation, spread over its formats (ten thousand in every test run):

| peer | what | disagreements |
|---|---|---|
| MPFR (gmpy2) | add, sub, mul, div, sqrt, fma and casts in f8e5m2, f16, bf16, f32, f64 | none |
| Python integers | every integer operation, comparison and integer cast in the nine integer types | none |
| ml_dtypes | all codes of ten formats; casts from f32; arithmetic of bf16, f8e4m3fn and f8e5m2 | two, below |

Where ml_dtypes 0.6.0 and the oracle differ, ml_dtypes is wrong:

* From f32 to e8m0, between 2^-127 and the midpoint above it (codes 0x00400001 to 0x005fffff, subnormal in f32) it
  answers 2^-126; the nearest number is 2^-127.
* From f64 and from 32- and 64-bit integers to bf16, f8e4m3fn and f8e5m2 it rounds to f32 first, so that a value just
  beside a midpoint becomes the midpoint: see [the findings](findings/numpy-ml_dtypes.md).
"""


def _sweeps(table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """The functions that were tried on every f32 input, from the records of `halfulp sweep`."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("sweep-*.json"))]
    rows = [
        (
            f"`{record['signature']}`",
            f"{record['bound']['ulp']} ulp"
            if record["bound"].get("stated") and "ulp" in record["bound"]
            else "see clause",
            record["clause"],
            f"{record['inputs']:,}",
            str(record["forbidden"]),
            str(record["undecided"]),
            f"{record['max_distance']} at {record['max_argument']}",
            f"{record['max_fractional_error']:.9g} at {record['max_fractional_error_argument']}",
            ", ".join(f"{steps}: {count:,}" for steps, count in record["histogram"].items() if count),
            f"{record['time']['judge_million_per_second']:.0f}",
            f"`{record['digest'][:16]}...`",
        )
        for record in records
    ]
    heads = ("function", "bound", "clause", "inputs", "forbidden", "undecided", "most steps", "largest error in ulp")
    return (
        "\n## Functions on every f32 input\n\n"
        "`halfulp sweep` on the CPU backend: every input judged by certified enclosures, the few that they do not "
        "decide by mpmath and Arb. *Steps* count from the correctly rounded result (reading:1); the *error* is that of "
        "the result itself, in ulp of the exact value. *judge*: millions of inputs a second of processor time and "
        "core, measured while other work ran on the machine.\n\n"
        + table((*heads, "results by steps", "judge", "digest"), rows)
    )


def _load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def results_page(table: Callable[[Sequence[str], Iterable[Sequence[str]]], str], note: str) -> str:
    """The page, with the table writer and the head note of the other pages."""
    casts, narrow, seeds, speed = map(
        _load, ("exhaustive-f32-casts-cpu", "exhaustive-narrow-cpu", "seeds-cpu", "judge-speed")
    )
    seconds = sum(row["seconds"] for row in casts)
    rows = [
        (
            f"`{row['signature']}`",
            *(f"{row[kind]:,}" for kind in ("allowed", "forbidden", "unspecified", "no_claim")),
            f"{row['judge_million_per_second_per_core']:.0f}",
            f"`{row['sha256'][:16]}...`",
        )
        for row in casts
    ]
    runs = [
        (
            str(run["seed"]),
            *(f"{run[kind]:,}" for kind in ("programs", "allowed", "forbidden", "unspecified", "no_claim")),
        )
        for run in seeds["runs"]
    ]
    speeds = speed["million_elements_per_second_per_core"]
    return (
        f"# Results\n\n{note}Measured once, on two cores of an x86-64 machine (AMD Zen 3, LLVM 22.1); the records "
        "stand beside this page in `results/`, and each names the command that made it in the file of that name under "
        "`benchmarks/`.\n\n## Every f32 input\n\n"
        f"Casts from f32 on the CPU backend, all 2^32 inputs each, every result judged; the six together in "
        f"{seconds:.0f} seconds. *judge* is the speed of the oracle alone, in millions of results a second and core; "
        "the digest is SHA-256 over the SHA-256s of consecutive chunks of 2^20 outputs.\n\n"
        + table(("cast", "allowed", "forbidden", "unspecified", "no claim", "judge", "digest"), rows)
        + _sweeps(table)
        + "\n## Every input of the short formats\n\n"
        f"All pairs of 8-bit codes for every operation, all codes of f16 and bf16 for every unary operation, all casts "
        f"from 8- and 16-bit formats, at both optimisation levels of the CPU backend: {narrow['signatures']} "
        f"signatures, {narrow['elements']:,} results, of which {narrow['allowed']:,} allowed, "
        f"{narrow.get('forbidden', 0)} forbidden, {narrow['unspecified']:,} unspecified and "
        f"{narrow['no_claim']:,} without a claim.\n"
        "\n## Ten seeds\n\nFull certification of the CPU backend at standard depth.\n\n"
        + table(("seed", "programs", "allowed", "forbidden", "unspecified", "no claim"), runs)
        + "\n## Speed of the judge\n\nMillions of results a second and core, from random operands, in blocks of 32 Ki: "
        f"of {len(speeds)} signatures the slowest is `{min(speeds, key=speeds.__getitem__)}` with "
        f"{min(speeds.values()):.1f}. Arithmetic and casts from f32:\n\n"
        + table(("signature", "speed"), ((f"`{name}`", f"{speeds[name]:.0f}") for name in _named(speeds)))
        + PEERS
    )


def _named(speeds: dict[str, float]) -> list[str]:
    """f32 arithmetic, and casts from f32 to the 16 scalars."""
    unary, binary = ("neg", "abs", "sqrt", "floor"), ("add", "sub", "mul", "div")
    names = [f"{op}[f32,f32->f32]" for op in binary] + [f"{op}[f32->f32]" for op in unary]
    return names + [name for name in speeds if name.startswith("cast[f32->")]
