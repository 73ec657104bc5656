"""What litmus tests and their mutants showed on a GPU, from the record of `benchmarks/cuda_litmus.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent / "results" / "litmus-cuda.json"

HEADS = ("test", "instances/s", "forbidden", "one after the other", "interleaved", "order mutants", "scope mutants")


def section(table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """The section of docs/results.md."""
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    said = record["summary"]
    mutants = "; ".join(
        f"{kind}: {said[f'{kind}_mutants_shown']} of {said[f'{kind}_mutants']} shown, half of them within "
        f"{1e3 * said[f'{kind}_mutants_median_seconds_to_first']:.1f} ms"
        for kind in ("order", "scope", "other")
        if said[f"{kind}_mutants_shown"]
    )
    unseen = [f"`{row['test']}`: {', '.join(_unseen(row))}" for row in record["tests"] if _unseen(row)]
    return (
        "\n## Atomics on a GPU\n\n"
        f"`benchmarks/cuda_litmus.py` on an {record['device']} in {record['seconds']:.0f} seconds: {said['tests']} "
        f"tests whose outcome is forbidden, at least {said['least_instances']:,} instances each, forbidden outcomes "
        f"seen: {said['forbidden']}. Mutants of the tests, compiled and run likewise ({mutants}).\n\n"
        "*One after the other* is the share of each outcome of threads that do not overlap, smallest and greatest, and "
        "*interleaved* that of all others, in the half of the run with balanced settings. Of mutants: how many showed "
        "the outcome, the least and the greatest rate after that, and the longest time to the first one.\n\n"
        + table(HEADS, (_row(row) for row in record["tests"]))
        + "\nWhere no order can be weakened, the mutant is another one: an update split in two, or two accesses "
        "exchanged. Orders that did not show here, so that only the instructions tell:\n\n"
        + "".join(f"* {line}\n" for line in unseen)
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    run = row["runs"][0]
    alone = run["one_after_the_other"]
    return (
        f"`{row['test']}`",
        f"{run['per_second']:.1e}",
        str(row["forbidden"]),
        f"{min(alone):.1%} to {max(alone):.1%}",
        f"{run['interleaved']:.1%}",
        _mutants(row, "order", "other"),
        _mutants(row, "scope"),
    )


def _mutants(row: dict[str, Any], *kinds: str) -> str:
    mine = [mutant for mutant in row["mutants"] if mutant["kind"] in kinds]
    seen = [mutant for mutant in mine if mutant["seen"]]
    if not mine:
        return "-"
    if not seen:
        return f"0/{len(mine)}"
    rates = sorted((mutant["rate"] or 1 / mutant["measured"], not mutant["rate"]) for mutant in seen)
    least, most = (f"{'below ' if unseen else ''}{rate:.0e}" for rate, unseen in (rates[0], rates[-1]))
    longest = max(mutant["seconds_to_first"] for mutant in seen)
    return f"{len(seen)}/{len(mine)}, {least} to {most}, {1e3 * longest:.0f} ms"


def _unseen(row: dict[str, Any]) -> list[str]:
    """Changes of orders that did not show, shortest first."""
    return [f"{m['change']}" for m in row["mutants"] if m["kind"] == "order" and not m["seen"]]
