"""``halfulp certify``."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import halfulp.properties
from halfulp.certify import entrypoint
from halfulp.certify.commands.common import CommandError, Subparsers, add_command

DESCRIPTION = """
Put a backend on trial: run every property of the language on it and report what it breaks.

  halfulp certify --backend cpu                         a shipped or installed backend
  halfulp certify --backend mypackage.adapter:Adapter   a class of your own
  halfulp certify --backend 'pipe:./runner --fast'      a program in any language
  halfulp certify --backend cpu --clauses '5.2*'        casts only
  halfulp certify --backend cpu --depth quick --seed random
  halfulp certify --backend cpu --json report.json --junit report.xml
  halfulp certify --backend cpu -- -x -k bf16           options of pytest after --

It works in any folder and writes nothing but the reports asked for. The same run in a clone of the project is
`pytest --backend=cpu`.

Exit status: 0 if nothing forbidden was found and something was judged; 1 if not; 2 if it was interrupted; above 2 if
it could not start.
"""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "certify", "put a backend on trial", DESCRIPTION)
    parser.add_argument("--backend", required=True, metavar="SPEC", help="NAME, MODULE:CLASS or pipe:COMMAND")
    for setting in entrypoint.SETTINGS:
        if setting.name not in ("backend", "json"):
            parser.add_argument(setting.short, **setting.attributes())
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to FILE")
    parser.add_argument("--junit", metavar="FILE", help="write the results of all properties as JUnit XML to FILE")
    parser.add_argument(
        "-n", type=_workers, metavar="WORKERS", help="processes to run in parallel (default: one for each CPU)"
    )
    parser.add_argument("pytest_options", nargs="*", metavar="-- PYTEST_OPTION", help="passed on to pytest")
    parser.set_defaults(run=run)


def _workers(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes; give 1 or more")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run pytest in this process, on the properties alone, away from any configuration of the current folder."""
    targets = {
        option: _target(option, text)
        for option, text in (("--json", arguments.json), ("--junit", arguments.junit))
        if text is not None
    }
    os.environ.pop("PYTEST_ADDOPTS", None)
    with tempfile.TemporaryDirectory(prefix="halfulp-") as scratch:
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        return int(pytest.main(_pytest_arguments(arguments, targets, Path(scratch))))


def _pytest_arguments(arguments: argparse.Namespace, targets: Mapping[str, Path], scratch: Path) -> list[str]:
    folder = Path(halfulp.properties.__path__[0])
    configuration = scratch / "pytest.ini"
    configuration.write_text("[pytest]\n", encoding="utf-8")
    values = {
        **{setting: getattr(arguments, setting.dest, None) for setting in entrypoint.SETTINGS},
        **{setting: arguments.backend for setting in entrypoint.SETTINGS if setting.name == "backend"},
        **{setting: targets.get("--json") for setting in entrypoint.SETTINGS if setting.name == "json"},
    }
    workers = arguments.n or available_cpus()
    return [
        *("-c", str(configuration), "--rootdir", str(folder), "--import-mode=importlib", "--noconftest"),
        *("-p", entrypoint.PLUGIN, "-p", "no:cacheprovider", "-rN"),
        *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
        *(s.twin if s.flag else f"{s.twin}={value}" for s, value in values.items() if value is not None),
        *(("-n", str(workers), "--dist=worksteal") if workers > 1 else ()),
        *((f"--junitxml={targets['--junit']}",) if "--junit" in targets else ()),
        *arguments.pytest_options,
        *("--pyargs", halfulp.properties.__name__),
    ]


def available_cpus() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _target(option: str, text: str) -> Path:
    """Where a report goes, checked before an hour of work and not after.

    Raises:
        CommandError: nothing can be written there.
    """
    path = Path(text).absolute()
    if path.is_dir():
        raise CommandError(f"{option} {text}: that is a folder; name a file in it")
    if not path.parent.is_dir():
        raise CommandError(f"{option} {text}: there is no folder {path.parent}; create it first")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"{option} {text}: the folder {path.parent} cannot be written to")
    return path
