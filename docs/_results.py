"""The page of measured results, from the JSON records of real runs in docs/results/."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import _results_litmus

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


HEAD = """Measured once, on two cores of an x86-64 machine (AMD Zen 3, LLVM 22.1) unless its record names another; the
records stand beside this page in `results/`. Those of sweeps say what was tried, where and with which versions; the
others were made by programs under `benchmarks/`.

"""

CASTS = """## Casts of every f32 input

`halfulp sweep cast` on the CPU backend, all 2^32 inputs each, every result judged by its allowed set. The digest is
SHA-256 over the SHA-256s of consecutive chunks of 2^20 outputs.

"""

FUNCTIONS = """
## Functions on every f32 input

`halfulp sweep` on the CPU backend, all 2^32 inputs each: every result judged by certified enclosures, the few that they
do not decide by mpmath and Arb. *Steps* count from the correctly rounded result (reading:1); the *error* is that of the
result itself, in ulp of the exact value.

"""

FUNCTION_SPEED = """
The speed of that, in millions of inputs a second of processor time and core: of the *target*, of the *judge* in the
same sweep, errors and digests included, and the ratio of their times; two processes on two cores. *Judge alone* is
`benchmarks/bulk_speed.py` on one core; to the right of it, how many times faster that is than one input at a time by
the slow path (a correctly rounded result), by mpmath and Arb at 100 bits, and by MPFR at 24, which does not have i0.

"""

QUOTIENTS = """
## Quotients

`halfulp sweep fdiv` in f32 on the CPU backend: every value of one operand for each listed value of the other, and
random pairs. Results that are the correctly rounded quotient are recognised by two exact products, all others are
judged by their sets. *judge*: as above.

"""

DOUBLES = """
## Functions in f64

2^64 inputs cannot be tried. `halfulp sweep --format f64 --sample 1e5` judges a sample and then searches around its
worst inputs: **these maxima are lower bounds.** On (-24, -2), where the published table has no number for lgamma and
the system's is off by 8 ulp and more next to zeros, the backend has a kernel of its own.

"""

AGREEMENT = """
## The sources of exact values

`benchmarks/oracle_agreement.py`: mpmath, Arb and a third source round the exact value to the same code, on all codes of
the formats of 8 and 16 bits, and on f32 and f64 inputs that are critical, random, or (in f32) hard to round: all whose
exact value lies within about 2^-18 ulp of a rounding boundary. To the right the enclosures of the bulk judge against
the slow path: they hold Arb's value of 80 bits, and decide as the slow path does.

"""

PHILOX = """
## Random bits

"""

DASK = """
## A worker that dies

"""

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
"""Writes a table from its heads and rows."""

Record = dict[str, Any]

COUNTS = ("forbidden", "unspecified", "undecided")
MAXIMA = ("most steps", "largest error in ulp")


def records(pattern: str, backend: str = "cpu") -> list[Record]:
    """The records of sweeps of a backend in files of that pattern."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob(pattern))]
    return [record for record in found if record["backend"] == backend]


def name_of(record: Record) -> str:
    """The signature without formats: ``exp2, approximate, flush_to_zero``."""
    return ", ".join([f"`{record['op']}`", *(name for name, setting in record["attrs"].items() if setting)])


def bound_text(record: Record) -> str:
    bound = record["bound"]
    if "relative" in bound:
        return f"2^-11, relatively ({record['clause']})"
    text = f"{bound['ulp']} ulp" if bound["ulp"] else "correctly rounded"
    return text + (f" ({record['clause']})" if bound["stated"] else f" (a published table; {record['clause']})")


def _argument(argument: str | list[str] | None) -> str:
    return "" if argument is None else f"`{argument}`" if isinstance(argument, str) else f"`{', '.join(argument)}`"


def maxima(record: Record) -> tuple[str, str]:
    """The most steps and the largest error, with their arguments."""
    steps, error = record["max_distance"], record["max_fractional_error"]
    at, error_at = (_argument(record[name]) for name in ("max_argument", "max_fractional_error_argument"))
    return str(steps) if steps == 0 else f"{steps} at {at}", "" if error is None else f"{error:.9g} at {error_at}"


def counted_steps(record: Record) -> str:
    return ", ".join(f"{steps}: {count:,}" for steps, count in record["histogram"].items() if count)


def _digest(record: Record) -> str:
    return f"`{record['digest'][:16]}...`"


def _casts(table: Table) -> str:
    kinds = ("allowed", "forbidden", "unspecified", "no_claim", "undecided")
    rows = [
        (f"`{record['signature']}`", *(f"{record[kind]:,}" for kind in kinds), _digest(record))
        for record in records("sweep-cast-*.json")
    ]
    return CASTS + table(("cast", *(kind.replace("_", " ") for kind in kinds), "digest"), rows)


def _functions(table: Table, records: Sequence[Record]) -> str:
    """The functions that were tried on every f32 input."""
    rows = [
        (
            name_of(record),
            bound_text(record),
            *(str(record[kind]) for kind in COUNTS),
            *maxima(record),
            counted_steps(record),
            _digest(record),
        )
        for record in records
    ]
    return FUNCTIONS + table(("function", "bound", *COUNTS, *MAXIMA, "results by steps", "digest"), rows)


def _log1pf() -> str:
    """The one input on which glibc's log1pf is off by more than 1 ulp."""
    record = _load("sweep-log1p-numpy")
    first, second = record["worst"][:2]
    return (
        f"\nThe same sweep of numpy ({record['device']}), whose log1p in f32 is that of the C library, finds the one "
        f"input on which that is off by more than 1 ulp: {first['fractional_error']} at `{first['argument']}`; the "
        f"next has {second['fractional_error']}. Its result is {first['distance']} step from the correctly rounded "
        f"one, which is what the bound counts (reading:1): {record['forbidden']} forbidden.\n"
    )


def _function_speed(table: Table, records: Sequence[Record]) -> str:
    """The judge beside the target, and beside other sources."""
    speed = _load("bulk-speed")
    rows = []
    for record in records:
        time = record["time"]
        rates = [f"{time[f'{who}_million_per_second']:.0f}" for who in ("target", "judge")]
        ratio = f"{time['judge_cpu_seconds'] / time['target_cpu_seconds']:.1f}"
        alone = speed["functions"][record["op"]] if not any(record["attrs"].values()) else None
        single: list[str] = [""] * 5
        if alone is not None:
            faster = [alone["times_faster_than"][source] for source in ("slow_path", "mpmath", "arb", "mpfr")]
            times = ["-" if number is None else f"{number:,}" for number in faster]
            single = [f"{alone['judge_million_per_second']:.0f}", *times]
        rows.append((name_of(record), *rates, ratio, *single))
    heads = ("function", "target", "judge", "judge / target", "judge alone")
    return FUNCTION_SPEED + table((*heads, "x slow path", "x mpmath", "x Arb", "x MPFR"), rows)


def _quotients(table: Table) -> str:
    found = records("sweep-fdiv*.json")
    if not found:
        return ""
    found.sort(key=lambda record: (record["domain"]["kind"], len(record["attrs"]), record["domain"].get("operand", "")))
    rows = []
    for record in found:
        domain = record["domain"]
        if domain["kind"] == "sample":
            tried = f"a sample of {record['inputs']:,} pairs"
        else:
            other = {"lhs": "rhs", "rhs": "lhs"}[domain["operand"]]
            tried = f"every {other}, {len(domain['values'])} values of {domain['operand']}: {record['inputs']:,}"
        counts = (str(record[kind]) for kind in COUNTS)
        rate = f"{record['time']['judge_million_per_second']:.0f}"
        rows.append((name_of(record), tried, *counts, *maxima(record), rate, _digest(record)))
    listed = {
        record["domain"]["operand"]: record["domain"]["values"] for record in found if "values" in record["domain"]
    }
    lists = "".join(f"* {operand}: {' '.join(f'`{code}`' for code in codes)}\n" for operand, codes in listed.items())
    heads = ("operation", "inputs", *COUNTS, *MAXIMA, "judge", "digest")
    return QUOTIENTS + table(heads, rows) + (f"\nListed values:\n\n{lists}" if lists else "")


def _doubles(table: Table) -> str:
    rows = [
        (
            name_of(record),
            bound_text(record),
            f"{record['inputs']:,}",
            *(str(record[kind]) for kind in COUNTS),
            *maxima(record),
        )
        for record in records("sweep-*-f64.json")
    ]
    return DOUBLES + table(("function", "bound", "inputs", *COUNTS, *MAXIMA), rows)


def _agreement(table: Table) -> str:
    path = RESULTS / "oracle-agreement.json"
    if not path.exists():
        return ""
    record = _load("oracle-agreement")
    rows = []
    for name, found in record["functions"].items():
        three, bulk = found["three_sources"], found["bulk_and_slow_path"]
        rows.append(
            (
                f"`{name}`",
                three["third"],
                f"{three['inputs']:,}",
                f"{found['hard_to_round']['found']:,}",
                str(three["disagreements"]),
                f"{bulk['inputs']:,}",
                f"{bulk['enclosures']:,}",
                str(bulk["undecided"]),
                str(bulk["disagreements"]),
            )
        )
    heads = ("function", "third source", "inputs", "hard to round", "disagreements")
    return AGREEMENT + table((*heads, "bulk inputs", "enclosures", "undecided", "disagreements"), rows)


def _philox() -> str:
    record = _load("philox")
    rates = record["million_words_per_second_per_core"]
    return (
        f"{PHILOX}`benchmarks/philox.py` compares {record['words']:,} words of Philox4x32-10 between oracle and CPU "
        f"backend, across the carry of the counter's first word: {record['different']} differ. Millions of words a "
        f"second and core: {', '.join(f'{name} {rate}' for name, rate in rates.items())}.\n"
    )


def _dask() -> str:
    record = _load("dask-worker-killed")
    same = "the same as" if record["record_as_from_local_processes"] else "another one than"
    return (
        f"{DASK}A sweep of `{record['operation']}` over {record['inputs']:,} inputs on a Dask cluster of "
        f"{record['workers']} workers, one of them killed ({record['signal']}) after {record['killed_after_seconds']} "
        f"seconds: the record, its digest included, is {same} from local processes.\n"
    )


def _load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def results_page(table: Table, note: str) -> str:
    """The page, with the table writer and the head note of the other pages."""
    narrow, seeds, speed = map(_load, ("exhaustive-narrow-cpu", "seeds-cpu", "judge-speed"))
    functions = [
        record for record in records("sweep-*.json") if record["domain"]["kind"] == "codes" and record["op"] != "cast"
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
        f"# Results\n\n{note}{HEAD}"
        + _casts(table)
        + _functions(table, functions)
        + _log1pf()
        + _function_speed(table, functions)
        + _quotients(table)
        + _doubles(table)
        + _agreement(table)
        + _philox()
        + _dask()
        + _results_litmus.section(table)
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
