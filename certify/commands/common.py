"""What the subcommands share."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from halfulp.certify.status import FOUND as FOUND
from halfulp.certify.status import MALFORMED as MALFORMED
from halfulp.certify.status import OK as OK
from halfulp.certify.status import CommandError as CommandError

Subparsers = Any
"""What ``ArgumentParser.add_subparsers`` returns; argparse keeps its type private."""


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
