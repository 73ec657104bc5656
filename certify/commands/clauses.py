"""``halfulp clauses``."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from halfulp.certify.commands.common import OK as OK
from halfulp.certify.commands.common import CommandError, Subparsers, add_command
from halfulp.oracle.clauses import CLAUSES, KINDS, READINGS, Clause, canonical_id
from halfulp.oracle.ops import operation, signatures
from halfulp.oracle.typing import rejections

DESCRIPTION = """
The rules of dialect intent in the suite's own words: id, kind, whether the suite checks it today, and by what.

  halfulp clauses                        all of them
  halfulp clauses '5.2*'                 those of one section
  halfulp clauses intent:5.2-g           one
  halfulp clauses 'reading:*'            decisions where the text leaves a choice

The same patterns select what `halfulp certify --clauses` runs.
"""


def add_parsers(subparsers: Subparsers) -> None:
    kinds = "; ".join(f"{letter} {meaning}" for letter, meaning in KINDS.items())
    parser = add_command(subparsers, "clauses", "the rules, and what checks them", DESCRIPTION)
    parser.epilog = f"kinds: {kinds}"
    parser.add_argument("globs", nargs="*", metavar="GLOB", help="only clauses whose id matches")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    globs = [part for glob in arguments.globs for part in glob.split(",")] or ["intent:*"]
    clauses = [clause for clause in CLAUSES.values() if _matches(globs, clause.id)]
    readings = [name for name in READINGS if _matches(globs, name)]
    if not clauses and not readings:
        raise CommandError(f"no clause matches {' or '.join(globs)}; ids look like 5.2-g, intent:5.2-g or reading:4")
    checks = checked_by()
    if arguments.json:
        print(json.dumps([*(_clause_data(c, checks) for c in clauses), *map(_reading_data, readings)], indent=1))
        return OK
    for clause in clauses:
        print(_clause_text(clause, checks))
    for name in readings:
        print(_entry(name, "reading", READINGS[name]))
    return OK


def _matches(globs: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, canonical_id(glob)) for glob in globs)


def checked_by() -> dict[str, list[str]]:
    """For each clause what rests on it: names of operations, and ``"rejection tests"``."""
    found: dict[str, dict[str, None]] = {}
    for signature in signatures():
        for clause in operation(signature.op).clauses(signature):
            found.setdefault(clause, {})[signature.op] = None
    for _, refused in rejections():
        found.setdefault(refused.clause, {})["rejection tests"] = None
    return {clause: list(names) for clause, names in found.items()}


def _clause_data(clause: Clause, checks: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "id": clause.id,
        "kinds": clause.kinds,
        "chapter": clause.chapter,
        "rule": clause.rule,
        "status": clause.status,
        "later": clause.later,
        "checked_by": checks.get(clause.id, []),
    }


def _reading_data(name: str) -> dict[str, Any]:
    return {"id": name, "kinds": "", "chapter": "", "rule": READINGS[name], "status": "reading"}


def _clause_text(clause: Clause, checks: dict[str, list[str]]) -> str:
    by = checks.get(clause.id)
    state = f"planned: {clause.later}" if clause.later else "checked" + (f" by {', '.join(by)}" if by else "")
    return _entry(clause.id, f"{clause.kinds:<3} {state}", clause.rule)


def _entry(name: str, about: str, rule: str) -> str:
    indent = " " * 15
    head = textwrap.fill(f"{name:<15}{about}", 100, subsequent_indent=indent + "    ", drop_whitespace=True)
    return f"{head}\n{textwrap.fill(rule, 100, initial_indent=indent, subsequent_indent=indent)}"
