"""What the catalogue of litmus tests showed on processors, from the record of `halfulp litmus --all`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from halfulp.certify.commands.litmus_all import HEADS, family_rows

RECORD = Path(__file__).resolve().parent / "results" / "litmus-cpu.json"

SHOWN = 8
"""Tests that are listed on their own."""


def section(table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """The section of docs/results.md."""
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    machine = record["machine"]
    beyond = sorted(record["tests"], key=lambda test: -_share(test, "not_interleaved"))[:SHOWN]
    return (
        "\n## Atomics on processors\n\n"
        f"`{record['command']}` on {machine['processors']} processors ({machine['processor']}), shared with other "
        f"work: {len(record['tests'])} of {record['of']} tests, {record['instances']:,} instances in "
        f"{record['seconds']:.0f} seconds, and {record['mutant_instances']:,} of mutants. Forbidden outcomes: "
        f"{record['forbidden']}. Unspecified outcomes: {record['unspecified']}.\n\n"
        "*Interleaved* is the share of instances whose outcome threads one after the other do not give, *beyond* that "
        "which no interleaving gives. Beside tests that forbid an outcome a "
        "[mutant](explanation/memory-model.md#never-seen) was run: how many showed the outcome, and the largest share "
        "of instances in which one did.\n\n"
        + table(HEADS, family_rows(record))
        + "\nx86-64 lets a load pass an earlier store and nothing else, so that mutants of orders hardly show there; "
        "orders are judged by the instructions. The tests with most outcomes that no interleaving gives, all of them "
        "allowed:\n\n"
        + table(
            ("test", "instances", "interleaved", "beyond", "most in one configuration"),
            (_row(test) for test in beyond if _share(test, "not_interleaved")),
        )
    )


def _row(test: dict[str, Any]) -> tuple[str, ...]:
    best = max(test["runs"], key=lambda run: run["not_interleaved"])
    return (
        f"`{test['name']}`",
        f"{sum(run['instances'] for run in test['runs']):,}",
        f"{_share(test, 'not_sequential'):.3%}",
        f"{_share(test, 'not_interleaved'):.3%}",
        f"{best['not_interleaved']:.3%}, {best['configuration']}",
    )


def _share(test: dict[str, Any], name: str) -> float:
    """The share of all instances of a test."""
    total = sum(run["instances"] for run in test["runs"])
    return sum(run[name] * run["instances"] for run in test["runs"]) / max(total, 1)
