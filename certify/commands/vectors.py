"""``halfulp vectors``: the command line. What it does is in `halfulp.certify.vectors`, imported when needed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from halfulp.certify.commands.common import Subparsers, add_command

DESCRIPTION = """
Golden vectors: inputs with all the results that the language allows, for programs in any language.

  halfulp vectors generate --out DIR             write them, 7 MB of JSON; the same bytes everywhere
  halfulp vectors generate --out DIR --only 'cast-*' --format flat
                                                 some of them, as text without JSON
  halfulp vectors verify DIR                     derive every allowed set again, by the slow path
  halfulp vectors list                           the files there are
  halfulp vectors show ID                        one case, in words
  halfulp vectors lint DIR                       shape, counts, ids, coverage
  halfulp judge --vectors DIR < results.txt      which of your results are wrong? `ID BITS` on each line

The format is described in docs/reference/vector-format.md.
"""

GENERATE = """
Write vector files into a folder. Files appear when all are made: an interrupted run changes nothing. The same command
writes the same bytes on every platform and with every version of Python.

  halfulp vectors generate --out vectors
  halfulp vectors generate --out bulk --only 'functions/*' --size 10000 --format npz
  halfulp vectors generate --out vectors --archive vectors.tar.gz

Exit status: 0; 2 if a file cannot be made, and then nothing has been written.
"""

VERIFY = """
Derive every set of a folder of JSON files again, case by case: by rational numbers, Python's integers and mpmath's
values with a stated error, by other code than the one that writes the files. Without a folder: the set that comes with
a checkout.

Exit status: 0; 1 if a case is wrong; 2 if a file cannot be read.
"""

LINT = "Complain of files whose shape, counts, ids or digests are off, and of suspects that no case kills."


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "vectors", "golden vectors: write, verify, look up", DESCRIPTION)
    commands = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)

    one = add_command(commands, "generate", "write vector files", GENERATE)
    one.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write them")
    _add_only(one)
    one.add_argument(
        "--size", type=int, default=0, metavar="N", help="cases of each file at least; default: a few dozen"
    )
    one.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all that is drawn (default 0)")
    one.add_argument(
        "--format", choices=("json", "npz", "flat"), default="json", help="form of the files (default json)"
    )
    one.add_argument("--archive", type=Path, metavar="FILE", help="also pack the folder into FILE, a .tar.gz")
    one.add_argument(
        "--keep",
        action="store_true",
        help="write nothing but vectors/sources/kept.json: cases of DIR that would vanish are asked again",
    )
    one.set_defaults(run=_later("run_generate"))

    one = add_command(commands, "verify", "derive every allowed set again", VERIFY)
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    _add_only(one)
    one.add_argument("--exhaustive", action="store_true", help="digests whole, 2^32 results too: minutes each")
    one.set_defaults(run=_later("run_verify"))

    one = add_command(commands, "list", "the files there are", "The name, kind and size of every vector file.")
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    _add_only(one)
    one.set_defaults(run=_later("run_list"))

    one = add_command(commands, "show", "one case", "One case with its file, its clauses, and what it is there for.")
    one.add_argument("id", metavar="ID", help="16 hexadecimal digits, or the first few of them")
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    one.add_argument("--json", action="store_true", help="the case as it stands in its file")
    one.set_defaults(run=_later("run_show"))

    one = add_command(commands, "lint", "shape, counts, ids, coverage", LINT)
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    one.set_defaults(run=_later("run_lint"))


def _add_only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="only files whose name matches")


def _later(action: str) -> Callable[[argparse.Namespace], int]:
    """The action; its modules take half a second to import, which other commands need not wait for."""

    def run(arguments: argparse.Namespace) -> int:
        status: int = getattr(import_module("halfulp.certify.vectors"), action)(arguments)
        return status

    return run


def judge_results(folder: Path, lines: Iterable[str]) -> int:
    """``halfulp judge --vectors``; see `halfulp.certify.vectors.judge_results`."""
    status: int = import_module("halfulp.certify.vectors").judge_results(folder, lines)
    return status
