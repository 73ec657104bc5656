"""The command ``halfulp``."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence

from halfulp import __version__
from halfulp.certify.commands import backends, certify, clauses, ledger, litmus, questions, replay, sweep, vectors
from halfulp.certify.status import MALFORMED, CommandError

DESCRIPTION = """
halfulp decides whether a kernel compiler computes what its language says it computes.

  halfulp certify --backend cpu          put a backend on trial
  halfulp sweep log1p --backend cpu      try all 2^32 inputs of a function
  halfulp ledger show ulp-ledger.json    what errors were measured
  halfulp ask add f32:0x3f800000 f32:0x33800000
                                         what may this operation return for these bits?
  halfulp judge < results.jsonl          which of these results are wrong?
  halfulp vectors generate --out DIR     golden vectors, for programs in any language
  halfulp litmus MP                      what may a program with atomics do?
  halfulp replay TOKEN --backend cpu     run one failure of a report again, alone
  halfulp clauses 5.2*                   the rules, and what checks them
  halfulp backends                       what can stand after --backend

`halfulp COMMAND --help` explains a command.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, complete: the reference page is checked against it."""
    top = argparse.ArgumentParser(
        prog="halfulp",
        description=textwrap.dedent(DESCRIPTION).strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"halfulp {__version__}")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in (certify, sweep, ledger, litmus, questions, vectors, replay, clauses, backends):
        module.add_parsers(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0 fine, 1 something is forbidden, 2 makes no sense."""
    top = parser()
    arguments = top.parse_args(argv)
    if arguments.command is None:
        top.print_help()
        return MALFORMED
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"halfulp {arguments.command}: {error}", file=sys.stderr)
        return MALFORMED
    except BrokenPipeError:
        # The reader has gone (`halfulp clauses | head`). What is left in the buffer must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        print("halfulp: interrupted", file=sys.stderr)
        return 128 + 2


if __name__ == "__main__":
    sys.exit(main())
