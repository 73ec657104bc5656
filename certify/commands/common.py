"""What the subcommands share."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

Subparsers = Any
"""What ``ArgumentParser.add_subparsers`` returns; argparse keeps its type private."""

OK, FOUND, MALFORMED = 0, 1, 2
"""Exit statuses: nothing wrong; something forbidden; the command or its input makes no sense."""


class CommandError(Exception):
    """The command cannot do what was asked. The message says what, why and what to do; it is shown without a trace."""


def add_command(subparsers: Subparsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    """A subparser whose help keeps the line breaks of ``description``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=textwrap.dedent(description).strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return parser
