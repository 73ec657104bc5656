"""``halfulp litmus --all``: the whole catalogue on one backend, with a record of what came out."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halfulp.adapters.protocol import Adapter, Closes, HasLitmus
from halfulp.certify.commands.common import FOUND, OK, CommandError
from halfulp.certify.commands.running import adapter_named
from halfulp.certify.litmus_runs import CHUNK, Ran, configurations, evidence, forbidden, mutant_of
from halfulp.certify.litmus_table import Entry
from halfulp.oracle.memory.catalogue import FAMILIES
from halfulp.oracle.memory.program import Outcome, outcome_text
from halfulp.oracle.memory.refute import why_not
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus import blamed, describe, outcomes, title
from halfulp.properties.replay import RecordedLitmus, encode

MUTANT_SHARE = 8
"""A mutant is run for one in so many instances of its test."""


def run(arguments: argparse.Namespace, tests: Sequence[Entry]) -> int:
    adapter = adapter_named(arguments.backend)
    try:
        if not isinstance(adapter, HasLitmus):
            raise CommandError(f"{adapter.name} runs no litmus programs")
        return _run(arguments, adapter, tests)
    finally:
        if isinstance(adapter, Closes):
            adapter.close()


def _run(arguments: argparse.Namespace, adapter: Adapter, tests: Sequence[Entry]) -> int:
    tests = sorted(tests, key=lambda test: not test.in_minimal_set)  # those first that are most likely to see something
    record = _head(arguments, adapter, len(tests))
    start = time.perf_counter()
    interrupted = False
    try:
        for number, test in enumerate(tests):
            _progress(number, len(tests), test.name)
            record["tests"].append(_try(adapter, test, arguments.instances, arguments.seed, record))
            record["seconds"] = round(time.perf_counter() - start, 1)
            _save(record, arguments.json)
        record["complete"] = True
    except KeyboardInterrupt:
        interrupted = True
    _progress(0, 0, "")
    _save(record, arguments.json)
    if arguments.json == "-":
        print(as_text(record), end="")
    else:
        print(summary(record))
    if interrupted:
        where = f"; {arguments.json} holds what was run until then" if arguments.json not in (None, "-") else ""
        print(f"halfulp: interrupted after {len(record['tests'])} of {len(tests)} tests{where}", file=sys.stderr)
        return 128 + 2
    return FOUND if record["forbidden"] else OK


def _head(arguments: argparse.Namespace, adapter: Adapter, total: int) -> dict[str, Any]:
    return {
        "command": f"halfulp litmus --all --backend {arguments.backend} --dtype {arguments.dtype} "
        f"--instances {arguments.instances} --seed {arguments.seed}",
        "spec": arguments.backend,
        "backend": adapter.name,
        "versions": dict(adapter.facts.versions),
        "machine": {"processor": _processor(), "processors": len(os.sched_getaffinity(0))},
        "dtype": arguments.dtype,
        "complete": False,
        "of": total,
        "seconds": 0.0,
        "instances": 0,
        "mutant_instances": 0,
        "forbidden": 0,
        "unspecified": 0,
        "tests": [],
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _try(adapter: Adapter, test: Entry, instances: int, seed: int, record: dict[str, Any]) -> dict[str, Any]:
    """One test; the sums in the record go on."""
    program = test.program
    row: dict[str, Any] = {"name": test.name, "family": test.family, "verdict": test.verdict, "runs": []}
    judged = outcomes(program)
    try:
        for ran in configurations(adapter, program, instances, seed):
            share = min(CHUNK, max(1 << 10, ran.instances // MUTANT_SHARE))
            rate = mutant_of(adapter, program, ran, share)
            row["runs"].append(evidence(program, ran, rate))
            record["instances"] += ran.instances
            record["mutant_instances"] += share if rate is not None else 0
            record["unspecified"] += sum(
                n for outcome, n in ran.histogram.items() if judged.verdict(outcome) is Verdict.UNSPECIFIED
            )
            for outcome, count in forbidden(program, ran).items():
                record["forbidden"] += count
                row.setdefault("breaches", []).append(_breach(test, ran, outcome, count))
    except CommandError as error:
        row["not_run"] = str(error)
    return row


def _breach(test: Entry, ran: Ran, outcome: Outcome, count: int) -> dict[str, Any]:
    """A forbidden outcome, with a token that runs a piece of the same kind again."""
    options = replace(ran.options, instances=min(CHUNK, ran.instances))
    name = f"litmus[{title(test.program)}]/{describe(options)}/O{options.opt_level}"
    clause = blamed(test.program, why_not(test.program, outcome))
    token = encode(RecordedLitmus(name, clause, test.program, options, count))
    return {"id": name, "clause": clause, "outcome": dict(outcome), "count": count, "token": token}


def as_text(record: dict[str, Any]) -> str:
    """The record as JSON, a line for each test."""
    head = json.dumps({name: value for name, value in record.items() if name != "tests"}, indent=1)
    tests = ",\n".join(f"  {json.dumps(test)}" for test in record["tests"])
    return f'{head[:-2]},\n "tests": [\n{tests}\n ]\n}}\n'


def _save(record: dict[str, Any], where: str | None) -> None:
    """Written aside and renamed: what is there is always a whole record, of all tests or of the first ones."""
    if where in (None, "-"):
        return
    path = Path(where)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(as_text(record), encoding="utf-8")
        os.replace(aside, path)
    except OSError as error:
        raise CommandError(f"{where}: {error.strerror}; --json takes the name of a file to write") from None


def _progress(done: int, total: int, name: str) -> None:
    """One line on standard error: rewritten on a terminal, else every twentieth test."""
    if sys.stderr.isatty():
        text = f"{done + 1} of {total}: {name}" if total else ""
        print(f"\r{text[:78]:<78}" + ("" if total else "\r"), end="", file=sys.stderr, flush=True)
    elif total and done % 20 == 0:
        print(f"test {done + 1} of {total}: {name}", file=sys.stderr, flush=True)


# What people read.


def family_rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    """For each family: tests, instances, the three shares, and how many forbidden outcomes a mutant showed."""
    rows: list[tuple[str, ...]] = []
    for family in FAMILIES:
        tests = [test for test in record["tests"] if test["family"] == family and test["runs"]]
        runs = [run for test in tests for run in test["runs"]]
        total = sum(run["instances"] for run in runs)
        if not total:
            continue

        def share(name: str, runs: list[dict[str, Any]] = runs, total: int = total) -> str:
            return f"{sum(run[name] * run['instances'] for run in runs) / total:.2%}"

        rates = [
            max(run["mutant_rate"] for run in test["runs"])
            for test in tests
            if all(run["mutant_rate"] is not None for run in test["runs"])
        ]
        shown = f"{sum(rate > 0 for rate in rates)} of {len(rates)}" if rates else ""
        best = f"{max(rates):.2%}" if rates and max(rates) else ""
        shares = share("not_sequential"), share("not_interleaved")
        rows.append((family, str(len(tests)), f"{total:,}", *shares, shown, best))
    return rows


HEADS = ("family", "tests", "instances", "interleaved", "beyond", "mutants that show it", "at most in")
"""Of `family_rows`."""


def summary(record: dict[str, Any]) -> str:
    """The record as a text."""
    rows = [HEADS, *family_rows(record)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = [
        f"{record['backend']}: {len(record['tests'])} of {record['of']} tests, {record['instances']:,} instances in "
        f"{record['seconds']:.0f} s, and {record['mutant_instances']:,} of mutants",
        "",
    ]
    lines += [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    missing = [test for test in record["tests"] if "not_run" in test]
    lines += ["", *(f"not run: {test['not_run']}" for test in missing)]
    for test in record["tests"]:
        for breach in test.get("breaches", ()):
            lines += [
                f"{breach['clause']}: {breach['id']}: {outcome_text(breach['outcome'])} is forbidden, and came out "
                f"{breach['count']:,} times",
                f"  halfulp replay {breach['token']} --backend {shlex.quote(record['spec'])}",
            ]
    seen = f"{record['forbidden']:,} forbidden outcomes" if record["forbidden"] else "nothing forbidden"
    lines.append(f"{seen} seen; {record['unspecified']:,} unspecified outcomes")
    return "\n".join(lines)
