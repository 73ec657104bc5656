"""``halfulp litmus``."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halfulp.adapters.protocol import Closes
from halfulp.certify.commands import litmus_all
from halfulp.certify.commands.common import FOUND, OK, CommandError, Subparsers, add_command
from halfulp.certify.commands.running import adapter_named, count, seed
from halfulp.certify.litmus_runs import CHUNK, Ran, configurations, counts, evidence, mutant_of
from halfulp.certify.litmus_table import Entry, entries
from halfulp.certify.questions import VERDICTS
from halfulp.oracle.memory import herd, typing
from halfulp.oracle.memory.catalogue import FAMILIES
from halfulp.oracle.memory.mutants import MUTANTS, VARIANTS, kills
from halfulp.oracle.memory.program import DTYPES, Outcome, Program, from_json, outcome_text, to_json
from halfulp.oracle.memory.refute import forbidden_outcomes, why_not
from halfulp.oracle.memory.search import Execution, Outcomes, allowed, verdict
from halfulp.oracle.ops.record import Refused
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus import describe

DESCRIPTION = """
Litmus tests: which outcomes of a program with atomics are possible, and why the others are not.

  halfulp litmus --list                  all tests of the catalogue
  halfulp litmus MP                      message passing: every outcome with a witness, and what is forbidden and why
  halfulp litmus FILE.litmus             a test of your own, in the C dialect of herd7
  halfulp litmus MP --export             the test in that dialect, for herd7 and litmus7
  halfulp litmus MP --backend cpu --instances 1000000
                                         run it, and judge what comes out
  halfulp litmus --all --backend cpu --json FILE
                                         run the whole catalogue, and keep a record

Names are those of --list; a beginning will do where it fits one test only. A test is in the list once for each weakest
choice of orders that forbids its outcome (rlx, acq, rel and ar stand for the orders, thread by thread), or with the
strongest orders if none does.
"""

_ORDERS = re.compile(r"(\+(rlx|acq|rel|ar|plain)(-(rlx|acq|rel|ar|plain))*)+$")
"""The orders at the end of the name of a test."""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "litmus", "what may a program with atomics do?", DESCRIPTION)
    parser.add_argument("test", nargs="?", metavar="TEST", help="a name, FILE.litmus or FILE.json, or - for stdin")
    parser.add_argument("--list", action="store_true", help="list the catalogue and stop")
    parser.add_argument("--all", action="store_true", help="run every test of the catalogue on the backend")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="as JSON, on standard output or to FILE")
    parser.add_argument("--dtype", choices=DTYPES, default="u32", help="of the locations (default: u32)")
    parser.add_argument("--export", action="store_true", help="print the test in the C dialect of herd7 and stop")
    parser.add_argument("--backend", metavar="SPEC", help="run the test there: NAME, MODULE:CLASS or pipe:COMMAND")
    parser.add_argument("--instances", type=count, default=1 << 18, metavar="N", help="how often, in each way")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of what is drawn in a run (default: 0)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    chosen = [name for name in ("--list", "--all", "--export") if getattr(arguments, name[2:])]
    if len(chosen) > 1:
        raise CommandError(f"{' and '.join(chosen)} exclude each other")
    if arguments.test is not None and chosen in (["--list"], ["--all"]):
        raise CommandError(f"{chosen[0]} is about all tests, and {arguments.test!r} is one; leave out one of the two")
    if arguments.all:
        if arguments.backend is None:
            raise CommandError("--all runs the catalogue on a backend; add --backend SPEC (`halfulp backends`)")
        return litmus_all.run(arguments, entries(arguments.dtype, computing))
    if arguments.list:
        if arguments.backend is not None:
            raise CommandError("--list runs nothing; to run all tests use --all in its place")
        found = entries(arguments.dtype, computing)
        return _answer(arguments.json, _list_text(found, arguments.dtype), [_list_row(entry) for entry in found])
    if arguments.test is None:
        hint = f" (FILE of --json is {arguments.json!r}; put the test before --json)" if arguments.json else ""
        raise CommandError(f"name a test, or --list for all there are{hint}")
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
        return _answer(arguments.json, "", _test_json(program, outcomes))
    print(_test_text(program, outcomes))
    return OK


def _answer(where: str | None, text: str, data: Any) -> int:
    """Print ``text``, or ``data`` as JSON, or write that to a file."""
    if where is None:
        print(text)
    elif where == "-":
        print(json.dumps(data, indent=1))
    else:
        try:
            Path(where).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{where}: {error.strerror}; --json takes the name of a file to write") from None
    return OK


def computing(done: int, total: int) -> None:
    """Progress of what is computed once and kept (see `litmus_table`)."""
    if sys.stderr.isatty():
        text = f"computing the verdicts of the catalogue, once: {done / total:4.0%}" if done < total - 1 else ""
        print(f"\r{text:<60}" + ("" if text else "\r"), end="", file=sys.stderr, flush=True)


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
        except UnicodeDecodeError:
            raise CommandError(f"{name}: this is no text in UTF-8, so no litmus test") from None
        try:
            as_json = name.endswith(".json") or text.lstrip().startswith("{")
            program = from_json(json.loads(text)) if as_json else herd.from_herd(text)
        except ValueError as error:
            raise CommandError(f"{name}: {error}") from None
        if not program.threads:
            raise CommandError(f"{name}: the program has no threads, so that there is nothing to ask")
        return program
    tests = entries(dtype, computing)
    names = [test.name for test in tests]
    fitting = [n for n in names if n == name] or [n for n in names if _ORDERS.sub("", n) == name]
    fitting = fitting or [n for n in names if n.startswith(name)]
    if len(fitting) == 1:
        return tests[names.index(fitting[0])].program
    if fitting:
        shown = ", ".join(fitting[:8]) + (", ..." if len(fitting) > 8 else "")
        raise CommandError(f"{len(fitting)} tests begin with {name!r}: {shown}")
    shapes = {known.lower(): known for known in [*names, *(_ORDERS.sub("", n) for n in names)]}
    close = [shapes[found] for found in difflib.get_close_matches(name.lower(), shapes, n=3)]
    hint = f"; did you mean {' or '.join(close)}? " if close else ""
    raise CommandError(f"there is no test {name!r}{hint or '; '}`halfulp litmus --list` names all there are")


# The catalogue.


def _list_text(tests: Sequence[Entry], dtype: str) -> str:
    width = max(len(test.name) for test in tests)
    lines = [f"{len(tests)} tests on {dtype}. * is in the smallest set that kills every model mutant: run it first."]
    for family, about in FAMILIES.items():
        lines += ["", f"{family}: {about}"]
        for test in (test for test in tests if test.family == family):
            mark = "*" if test.in_minimal_set else " "
            count = f"kills {len(test.kills)}" if test.kills else ""
            said = test.verdict.replace("_", " ") + (" (informative)" if test.differs_under else "")
            lines.append(f"{mark} {test.name:<{width}}  {said:<12} {count}".rstrip())
    return "\n".join([*lines, "", *_mutant_lines(tests)])


def _mutant_lines(tests: Sequence[Entry]) -> list[str]:
    """Each model mutant, and who kills it: all of them if they are few, else those of the smallest set."""
    lines = ["model mutants: what is wrong with each, and the tests that kill it"]
    for name, mutant in MUTANTS.items():
        killers = [test for test in tests if name in test.kills]
        shown = killers if len(killers) <= 3 else [test for test in killers if test.in_minimal_set]
        some = ", ".join(test.name for test in shown)
        more = f" and {len(killers) - len(shown)} more" if len(killers) > len(shown) else ""
        lines += [f"  {name}: {mutant.summary}", f"      killed by {some}{more}"]
    return lines


def _list_row(test: Entry) -> dict[str, Any]:
    return {
        "name": test.name,
        "family": test.family,
        "program": to_json(test.program),
        "weak": dict(test.program.weak),
        "verdict": test.verdict,
        "kills": list(test.kills),
        "differs_under": list(test.differs_under),
        "in_minimal_set": test.in_minimal_set,
    }


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


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


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
        results = list(configurations(adapter, program, arguments.instances, arguments.seed, progress=_progress))
        rows = []
        for ran in results:
            rate = mutant_of(adapter, program, ran, min(CHUNK, ran.instances))
            rows.append(evidence(program, ran, rate) | {"outcomes": counts(program, ran)})
    finally:
        if sys.stderr.isatty():
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
        if isinstance(adapter, Closes):
            adapter.close()
    outcomes = allowed(program)
    found = {o for result in results for o in result.histogram if outcomes.verdict(o) is Verdict.FORBIDDEN}
    if arguments.json:
        _answer(arguments.json, "", {"name": program.name, "backend": arguments.backend, "runs": rows})
        return FOUND if found else OK
    print(program, "\n", sep="")
    for row in rows:
        print(_row_text(row))
    for outcome in sorted(found):
        print(why_not(program, outcome))
    return FOUND if found else OK


def _progress(result: Ran, share: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{describe(result.options)}: {share:4.0%}", end="", file=sys.stderr, flush=True)


def _row_text(row: dict[str, Any]) -> str:
    lines = [f"{row['configuration']}: {row['instances']:,} instances, {row['per_second']:,} each second"]
    for entry in row["outcomes"]:
        lines.append(f"  {entry['count']:>12,}  {entry['verdict']:<12} {outcome_text(entry['outcome'])}")
    lines.append(f"  {row['not_sequential']:.2%} need an interleaving, {row['not_interleaved']:.2%} more than that")
    if row["mutant_rate"] is not None:
        rate = row["mutant_rate"]
        never = f"never in {min(CHUNK, row['instances']):,} instances: the weak outcome is not observable here"
        shown = f"in {rate:.2g} of its instances" if rate else never
        lines.append(f"  a mutant of the test shows the weak outcome {shown}")
    return "\n".join(lines)
