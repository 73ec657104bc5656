"""``halfulp ledger``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from halfulp.certify import ledger, ledger_text
from halfulp.certify.commands.common import FOUND, OK, CommandError, Subparsers, add_command
from halfulp.certify.ledger import Change, Difference, Entries, LedgerError

DESCRIPTION = """
The ledger of measured errors: who measured how much, where.

  halfulp ledger show ulp-ledger.json             a table, in Markdown
  halfulp ledger diff OLD NEW                     what changed, as a table for a review
  halfulp ledger diff OLD NEW --format github     the same as annotations
  halfulp ledger merge ulp-ledger.json log1p.json add the records of sweeps

A ledger is kept by `pytest --backend=NAME --ulp-ledger=FILE` or `halfulp certify --backend NAME --ulp-ledger FILE`.

Exit status of show: 0. Of diff: 1 if a maximum rose and no reason is given for it. Of merge: 1 if one rose and
--accept-regression gives no reason; nothing is written where CI is set. Of all: 2 if a file is no ledger.
"""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "ledger", "show or compare measured errors", DESCRIPTION)
    parser.add_argument("action", choices=("show", "diff", "merge"), metavar="ACTION", help="show, diff or merge")
    parser.add_argument("files", nargs="+", metavar="FILE", help="one ledger; two of them; a ledger and sweep records")
    parser.add_argument(
        "--format",
        choices=("markdown", "json", "github"),
        default="markdown",
        help="how to print: markdown (the default), json, or github for annotations",
    )
    parser.add_argument("--accept-regression", metavar="REASON", help="with merge: why a maximum may rise")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    paths = [Path(name) for name in arguments.files]
    try:
        if arguments.action == "show":
            _number(paths, 1, 1, "show takes one ledger")
            return _show(paths[0], arguments.format)
        if arguments.action == "diff":
            _number(paths, 2, 2, "diff takes two ledgers, the old one first")
            return _diff(paths[0], paths[1], arguments.format)
        _number(paths, 2, None, "merge takes a ledger and the records of one or more sweeps")
        return _merge(paths[0], paths[1:], arguments.accept_regression)
    except LedgerError as error:
        raise CommandError(str(error)) from None


def _number(paths: list[Path], least: int, most: int | None, message: str) -> None:
    if len(paths) < least or (most is not None and len(paths) > most):
        raise CommandError(f"{message}; {len(paths)} given")


def _show(path: Path, style: str) -> int:
    entries = ledger.read(path)
    if style == "github":
        raise CommandError("--format github is for diff: annotations say what changed")
    if style == "json":
        print(json.dumps([entries[key].plain() for key in sorted(entries)], indent=1))
    else:
        print("\n".join(ledger_text.table(entries.values())))
    return OK


def _diff(before: Path, after: Path, style: str) -> int:
    differences = ledger.against(ledger.read(before), new := ledger.read(after))
    if style == "github":
        lines = _lines(after, new)
        for one in differences:
            print(ledger_text.annotation(one, after, lines.get(one.key, 1)))
    elif style == "json":
        print(json.dumps([_plain(one) for one in differences], indent=1))
    elif differences:
        print("\n".join(ledger_text.difference_table(differences)))
    else:
        print("the ledgers say the same")
    rises = [one for one in differences if one.change is Change.RISE and one.new is not None and not one.new.reason]
    return FOUND if rises else OK


def _lines(path: Path, entries: Entries) -> dict[ledger.Key, int]:
    """The line of each entry in the file."""
    text = path.read_text(encoding="utf-8").splitlines()
    numbers = {line.rstrip(","): number for number, line in enumerate(text, 1)}
    return {key: numbers.get(ledger.line_of(entry), 1) for key, entry in entries.items()}


def _plain(one: Difference) -> dict[str, object]:
    return {
        "change": one.change.value,
        "old": None if one.old is None else one.old.plain(),
        "new": None if one.new is None else one.new.plain(),
    }


def _merge(path: Path, records: list[Path], reason: str | None) -> int:
    if ledger.in_ci():
        raise CommandError("nothing is written where CI is set; merge elsewhere, and commit")
    if reason is not None and not reason.strip():
        raise CommandError("--accept-regression is empty; say why the error may rise")
    entries = ledger.read(path) if path.exists() else {}
    measured: Entries = {}
    for name in records:
        entry = _measured(name)
        measured[entry.key] = ledger.merged(measured[entry.key], entry) if entry.key in measured else entry
    differences = [one for one in ledger.compare(entries, measured) if one.change is not Change.UNUSED]
    ledger.write(path, ledger.updated(entries, differences, reason))
    rises = [one for one in differences if one.change is Change.RISE]
    for one in rises:
        print("\n".join(ledger_text.regression_lines(one)))
    if rises and reason is None:
        print("not written; accept it where it was intended: --accept-regression 'REASON'")
        return FOUND
    return OK


def _measured(path: Path) -> ledger.Entry:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        entry = ledger.entry_of_record(record)
        forbidden = int(record["forbidden"])
    except OSError as error:
        raise CommandError(f"{path}: it cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise CommandError(f"{path} is not the record of a sweep; `halfulp sweep ... --json FILE` writes one") from None
    if forbidden:
        raise CommandError(f"{path} has {forbidden:,} forbidden results; a breach is mended, not recorded")
    if entry.key.operation not in ledger.MEASURED:
        raise CommandError(f"{path}: {entry.key.operation} has one right result; the ledger is about tolerances")
    return entry
