"""``halfulp backends``."""

from __future__ import annotations

import argparse
import json

from halfulp.adapters.discovery import available
from halfulp.certify.commands.common import OK, Subparsers, add_command

DESCRIPTION = """
What can stand after --backend: the adapters that installed packages register, and whether they can be loaded here.

Besides these, --backend takes MODULE:CLASS (a class of your own; the current folder is importable) and
pipe:COMMAND (a program in any language that speaks the pipe protocol).
"""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "backends", "what can stand after --backend", DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    found = available()
    if arguments.json:
        rows = [{"name": entry.name, "where": entry.where, "status": entry.status} for entry in found]
        print(json.dumps(rows, indent=1))
        return OK
    width = max((len(entry.name) for entry in found), default=0) + 2
    for entry in found:
        print(f"{entry.name:<{width}}{entry.where}")
        if entry.status != "ok":
            print(f"{'':<{width}}cannot be used: {entry.status}")
    if not found:
        print("no adapter is registered in this environment")
    print("\nalso: MODULE:CLASS for a class of your own, pipe:COMMAND for a program in any language")
    return OK
