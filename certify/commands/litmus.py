"""``halfulp litmus``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from halfulp.adapters.protocol import Adapter, Closes, LitmusOptions, LitmusRun
from halfulp.certify.commands.common import FOUND, OK, CommandError, Subparsers, add_command
from halfulp.certify.commands.running import adapter_named, count
from halfulp.certify.questions import VERDICTS
from halfulp.oracle.memory import herd, typing
from halfulp.oracle.memory.catalogue import FAMILIES, Test, catalogue, minimal_set
from halfulp.oracle.memory.interleaving import interleaved, sequential
from halfulp.oracle.memory.mutants import VARIANTS, kills
from halfulp.oracle.memory.program import DTYPES, Outcome, Program, from_json, outcome_text, to_json
from halfulp.oracle.memory.refute import forbidden_outcomes, why_not
from halfulp.oracle.memory.search import Execution, Outcomes, allowed, verdict
from halfulp.oracle.ops.record import Refused
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus import CONFIGURATIONS, ask, describe, mutant_rate

DESCRIPTION = """
Litmus tests: which outcomes of a program with atomics are possible, and why the others are not.

  halfulp litmus --list                  all tests of the catalogue
  halfulp litmus MP                      message passing: every outcome with a witness, and what is forbidden and why
  halfulp litmus FILE.litmus             a test of your own, in the C dialect of herd7
  halfulp litmus MP --export             the test in that dialect, for herd7 and litmus7
  halfulp litmus MP --backend cpu --instances 1000000
                                         run it, and judge what comes out

Names are those of --list; a beginning will do where it fits one test only. A test is in the list once for each weakest
choice of orders that forbids its outcome (rlx, acq, rel and ar stand for the orders, thread by thread), or with the
strongest orders if none does.
"""

_ORDERS = re.compile(r"(\+(rlx|acq|rel|ar|plain)(-(rlx|acq|rel|ar|plain))*)+$")
"""The orders at the end of the name of a test."""

CHUNK = 1 << 17
"""Instances between two signs of progress."""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "litmus", "what may a program with atomics do?", DESCRIPTION)
    parser.add_argument("test", nargs="?", metavar="TEST", help="a name, FILE.litmus or FILE.json, or - for stdin")
    parser.add_argument("--list", action="store_true", help="list the catalogue and stop")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--dtype", choices=DTYPES, default="u32", help="of the locations (default: u32)")
    parser.add_argument("--export", action="store_true", help="print the test in the C dialect of herd7 and stop")
    parser.add_argument("--backend", metavar="SPEC", help="run the test there: NAME, MODULE:CLASS or pipe:COMMAND")
    parser.add_argument("--instances", type=count, default=1 << 18, metavar="N", help="how often, in each way")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn in a run (default: 0)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        print(_list_json(arguments.dtype) if arguments.json else _list_text(arguments.dtype))
        return OK
    if arguments.test is None:
        raise CommandError("name a test, or --list for all there are")
    program = find_program(arguments.test, arguments.dtype)
    if arguments.export:
        try:
            print(herd.to_herd(program), end="")
        except ValueError as error:
            raise CommandError(str(error)) from None
        return OK
    answer = typing.check(program)
    if isinstance(answer, Refused):
        raise CommandError(f"{program.name} is no program of the language: {answer.reason} ({answer.clause})")
    if arguments.backend is not None:
        return _run_on(arguments, program)
    outcomes = allowed(program)
    if arguments.json:
        print(json.dumps(_test_json(program, outcomes), indent=1))
    else:
        print(_test_text(program, outcomes))
    return OK


def find_program(name: str, dtype: str) -> Program:
    """The program of a test in the catalogue, of a file, or of standard input.

    Raises:
        CommandError: there is none, or several, or it cannot be read.
    """
    if name == "-" or name.endswith((".litmus", ".json")):
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror}") from None
        try:
            return from_json(json.loads(text)) if text.lstrip().startswith("{") else herd.from_herd(text)
        except ValueError as error:
            raise CommandError(f"{name}: {error}") from None
    tests = catalogue(dtype)
    names = [test.name for test in tests]
    fitting = [n for n in names if n == name] or [n for n in names if _ORDERS.sub("", n) == name]
    fitting = fitting or [n for n in names if n.startswith(name)]
    if len(fitting) == 1:
        return tests[names.index(fitting[0])].program
    if fitting:
        shown = ", ".join(fitting[:8]) + (", ..." if len(fitting) > 8 else "")
        raise CommandError(f"{len(fitting)} tests begin with {name!r}: {shown}")
    raise CommandError(f"there is no test {name!r}; `halfulp litmus --list` names all there are")


# The catalogue.


def _list_text(dtype: str) -> str:
    tests = catalogue(dtype)
    first = set(minimal_set(dtype))
    width = max(len(test.name) for test in tests)
    lines = [f"{len(tests)} tests on {dtype}. * is in the smallest set that kills every model mutant: run it first."]
    for family, about in FAMILIES.items():
        lines += ["", f"{family}: {about}"]
        for test in (test for test in tests if test.family == family):
            mark = "*" if test.name in first else " "
            count = f"kills {len(test.kills)}" if test.kills else ""
            lines.append(f"{mark} {test.name:<{width}}  {_verdict_text(test):<12} {count}".rstrip())
    return "\n".join(lines)


def _verdict_text(test: Test) -> str:
    said = VERDICTS[test.verdict].replace("_", " ")
    return said + " (informative)" if test.informative else said


def _list_json(dtype: str) -> str:
    first = set(minimal_set(dtype))
    rows = [
        {
            "name": test.name,
            "family": test.family,
            "program": to_json(test.program),
            "weak": dict(test.program.weak),
            "verdict": VERDICTS[test.verdict],
            "kills": list(test.kills),
            "differs_under": list(test.informative),
            "in_minimal_set": test.name in first,
        }
        for test in catalogue(dtype)
    ]
    return json.dumps(rows, indent=1)


# One test.


def _shown(program: Program, outcomes: Outcomes) -> list[Outcome]:
    """The forbidden outcomes to be refuted: the weak one, and the others if they are few."""
    if outcomes.races or outcomes.band_races:
        return []
    found = forbidden_outcomes(program, outcomes)
    weak = set(program.weak)
    mine = [outcome for outcome in found if weak and weak <= set(outcome)]
    return found if len(found) <= 8 else mine[:1]


def _differences(program: Program, said: Verdict) -> list[str]:
    return [name for name, model in VARIANTS.items() if program.weak and verdict(program, model=model) != said]


def _test_json(program: Program, outcomes: Outcomes) -> dict[str, Any]:
    said = outcomes.verdict(program.weak) if program.weak else None
    return {
        "name": program.name,
        "program": to_json(program),
        "weak": dict(program.weak),
        "verdict": None if said is None else VERDICTS[said],
        "allowed": [{"outcome": dict(o), "witness": _lines(w)} for o, w in outcomes.allowed.items()],
        "unspecified": [{"outcome": dict(o), "witness": _lines(w)} for o, w in outcomes.unspecified.items()],
        "forbidden": [
            {"outcome": dict(o), "because": str(why_not(program, o)).splitlines()} for o in _shown(program, outcomes)
        ],
        "races": [str(race) for race in (*outcomes.races, *outcomes.band_races)],
        "kills": list(kills(program)) if program.weak else [],
        "differs_under": [] if said is None else _differences(program, said),
    }


def _lines(execution: Execution) -> list[str]:
    return str(execution).splitlines()


def _indented(text: str, by: str = "    ") -> str:
    return "\n".join(by + line for line in text.splitlines())


def _test_text(program: Program, outcomes: Outcomes) -> str:
    parts = [str(program), ""]
    if outcomes.races:
        parts.append("no claim: the program has a race between")
        parts += [f"    {race}" for race in outcomes.races]
        return "\n".join(parts)
    for heading, table in (("allowed", outcomes.allowed), ("unspecified", outcomes.unspecified)):
        for outcome, witness in table.items():
            parts += [f"{heading}: {outcome_text(outcome)}", _indented(str(witness)), ""]
    if outcomes.band_races:
        parts.append("unspecified: everything else, since an execution that is itself unspecified has a race between")
        parts += [f"    {race}" for race in outcomes.band_races]
    shown = _shown(program, outcomes)
    for outcome in shown:
        head, _, why = str(why_not(program, outcome)).partition("\n")
        parts += [f"forbidden: {head.replace(' is forbidden', '', 1)}", *([_indented(why)] if why else []), ""]
    rest = len(forbidden_outcomes(program, outcomes)) - len(shown) if not outcomes.band_races else 0
    if rest > 0:
        parts += [f"forbidden: {rest} more outcomes with values that occur elsewhere, and all others", ""]
    if program.weak:
        said = outcomes.verdict(program.weak)
        parts.append(f"verdict on {outcome_text(program.weak)}: {VERDICTS[said].replace('_', ' ')}")
        killed = kills(program)
        if killed:
            parts.append(f"models that are wrong and show it: {', '.join(killed)}")
        differs = _differences(program, said)
        if differs:
            parts.append(f"informative: the verdict is another one under {', '.join(differs)}")
    return "\n".join(parts).rstrip()


# On a backend.


def _run_on(arguments: argparse.Namespace, program: Program) -> int:
    adapter = adapter_named(arguments.backend)
    try:
        results = list(_runs(adapter, program, arguments.instances, arguments.seed))
    finally:
        if isinstance(adapter, Closes):
            adapter.close()
    outcomes = allowed(program)
    weak = set(program.weak)
    found = {outcome for _, run, _ in results for outcome in run if outcomes.verdict(outcome) is Verdict.FORBIDDEN}
    apart, turns = sequential(program), interleaved(program)
    rows = []
    for options, histogram, seconds in results:
        total = sum(histogram.values())
        rate = mutant_rate(adapter, program, options) if outcomes.verdict(program.weak) is Verdict.FORBIDDEN else None
        rows.append(
            {
                "configuration": describe(options),
                "instances": total,
                "per_second": round(total / max(seconds, 1e-9)),
                "not_sequential": sum(n for o, n in histogram.items() if o not in apart) / total,
                "not_interleaved": sum(n for o, n in histogram.items() if o not in turns) / total,
                "weak": sum(n for o, n in histogram.items() if weak and weak <= set(o)),
                "mutant_rate": rate,
                "outcomes": [
                    {"outcome": dict(o), "count": n, "verdict": VERDICTS[outcomes.verdict(o)]}
                    for o, n in sorted(histogram.items())
                ],
            }
        )
    if arguments.json:
        print(json.dumps({"name": program.name, "backend": arguments.backend, "runs": rows}, indent=1))
        return FOUND if found else OK
    print(program, "\n", sep="")
    for row in rows:
        print(_row_text(row))
    for outcome in sorted(found):
        print(why_not(program, outcome))
    return FOUND if found else OK


def _runs(
    adapter: Adapter, program: Program, instances: int, seed: int
) -> Iterable[tuple[LitmusOptions, Counter[Outcome], float]]:
    """The histogram of each configuration, run piece by piece with progress on standard error."""
    for number, configuration in enumerate(CONFIGURATIONS):
        histogram: Counter[Outcome] = Counter()
        seconds = 0.0
        options = replace(configuration, seed=seed, opt_level=max(adapter.opt_levels))
        while (done := sum(histogram.values())) < instances:
            piece = min(CHUNK, instances - done)
            answer = ask(adapter, program, replace(options, instances=piece, seed=seed + done))
            if not isinstance(answer, LitmusRun):
                reason = answer if isinstance(answer, str) else answer.reason
                raise CommandError(f"{adapter.name} did not run {program.name}: {reason}")
            histogram.update(answer.histogram)
            seconds += answer.seconds
            if sys.stderr.isatty():
                share = (number + sum(histogram.values()) / instances) / len(CONFIGURATIONS)
                print(f"\r{describe(options)}: {share:4.0%}", end="", file=sys.stderr, flush=True)
        yield replace(options, instances=min(instances, CHUNK)), histogram, seconds
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)


def _row_text(row: dict[str, Any]) -> str:
    lines = [f"{row['configuration']}: {row['instances']:,} instances, {row['per_second']:,} each second"]
    for entry in row["outcomes"]:
        lines.append(f"  {entry['count']:>12,}  {entry['verdict']:<12} {outcome_text(entry['outcome'])}")
    lines.append(f"  {row['not_sequential']:.2%} need an interleaving, {row['not_interleaved']:.2%} more than that")
    if row["mutant_rate"] is not None:
        rate = row["mutant_rate"]
        shown = f"in {rate:.2g} of its instances" if rate else "never: the weak outcome is not observable here"
        lines.append(f"  a mutant of the test shows the weak outcome {shown}")
    return "\n".join(lines)
