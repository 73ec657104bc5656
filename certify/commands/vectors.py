"""``halfulp vectors`` and the results of ``halfulp judge --vectors``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from halfulp.certify.commands.common import FOUND, MALFORMED, OK, CommandError, Subparsers, add_command
from halfulp.vectors import catalogue, lint, sources, verify
from halfulp.vectors.files import DATA, Case, Content, Settings, VectorFileError, cases_of, read
from halfulp.vectors.generate import archive, generate, keep_lost
from halfulp.vectors.judge import judge

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

SHOWN = 20
"""Faults that are printed in full."""


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
    one.set_defaults(run=_generate)

    one = add_command(commands, "verify", "derive every allowed set again", VERIFY)
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    _add_only(one)
    one.add_argument("--exhaustive", action="store_true", help="digests whole, 2^32 results too: minutes each")
    one.set_defaults(run=_verify)

    one = add_command(commands, "list", "the files there are", "The name, kind and size of every vector file.")
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    _add_only(one)
    one.set_defaults(run=_list)

    one = add_command(commands, "show", "one case", "One case with its file, its clauses, and what it is there for.")
    one.add_argument("id", metavar="ID", help="16 hexadecimal digits, or the first few of them")
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    one.add_argument("--json", action="store_true", help="the case as it stands in its file")
    one.set_defaults(run=_show)

    one = add_command(commands, "lint", "shape, counts, ids, coverage", lint.__doc__ or "")
    one.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder that generate has written")
    one.set_defaults(run=_lint)


def _add_only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="only files whose name matches")


def folder_of(given: Path | None) -> Path:
    """The folder named, or the set that comes with a checkout."""
    folder = DATA if given is None else given
    if not folder.is_dir():
        where = "the set that comes with a checkout is not installed" if given is None else f"{folder} is no folder"
        raise CommandError(f"{where}; write one with `halfulp vectors generate --out DIR` and name it")
    return folder


class _Progress:
    """One line on a terminal, rewritten; nothing elsewhere."""

    def __init__(self, verb: str) -> None:
        self.verb, self.shown, self.on = verb, 0.0, sys.stderr.isatty()

    def __call__(self, done: int, total: int, name: str) -> None:
        if self.on and time.monotonic() - self.shown > 0.1:
            self.shown = time.monotonic()
            print(f"\r\033[K{self.verb} {done + 1} of {total}: {name}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.on and self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _generate(arguments: argparse.Namespace) -> int:
    if arguments.size < 0 or arguments.seed < 0:
        raise CommandError("--size and --seed are counts: 0 or more")
    if arguments.out.exists() and not arguments.out.is_dir():
        raise CommandError(f"--out {arguments.out} is a file; name a folder, which is made if there is none")
    progress, start = _Progress("writing"), time.monotonic()
    try:
        if arguments.keep:
            kept = keep_lost(arguments.out, arguments.only)
            print(f"{kept or 'no'} cases of {arguments.out} would have vanished" + ("; generate again" if kept else ""))
            return OK
        settings = Settings(arguments.seed, arguments.size)
        done = generate(arguments.out, arguments.only, settings, arguments.format, progress)
        packed = archive(arguments.out, arguments.archive) if arguments.archive else ""
    except (VectorFileError, sources.LostError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot write to {arguments.out}: {error}") from error
    finally:
        progress.end()
    seconds = time.monotonic() - start
    print(f"{done.files} files, {done.cases:,} cases, {done.size / 1e6:.2f} MB in {arguments.out}, {seconds:.1f} s")
    if done.left_out:
        print(f"{len(done.left_out)} files have no such form: {_some(done.left_out)}")
    if packed:
        print(f"{arguments.archive}: SHA-256 of the tar inside {packed}")
    return OK


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _files(folder: Path, only: Sequence[str]) -> dict[str, Path]:
    found = verify.vector_files(folder)
    if not found:
        raise CommandError(
            f"{folder} holds no JSON vector files; write some with `halfulp vectors generate --out {folder}`"
        )
    try:
        return {name: found[name] for name in catalogue.matching(only, found)}
    except VectorFileError as error:
        raise CommandError(str(error)) from error


def _read(path: Path) -> Content:
    try:
        return read(path)
    except VectorFileError as error:
        raise CommandError(str(error)) from error


def _verify(arguments: argparse.Namespace) -> int:
    folder = folder_of(arguments.folder)
    found = _files(folder, arguments.only)
    progress, start = _Progress("verifying"), time.monotonic()
    cases = wrong = 0
    kinds: Counter[str] = Counter()
    for done, (name, path) in enumerate(found.items()):
        progress(done, len(found), name)
        data = _read(path)
        try:
            faults = list(verify.faults(data, exhaustive=arguments.exhaustive))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CommandError(
                f"{path} does not follow the schema ({type(error).__name__}: {error}); `halfulp vectors lint {folder}` "
                "says more"
            ) from error
        cases += data["count"]
        kinds[data["kind"]] += data["count"]
        for one, words in faults:
            if wrong < SHOWN:
                progress.end()
                print(f"{name} {one}: {words}")
            wrong += 1
    progress.end()
    seconds = time.monotonic() - start
    by_kind = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{len(found)} files, {cases:,} cases ({by_kind}), {seconds:.1f} s: {wrong or 'none'} wrong")
    return FOUND if wrong else OK


def _list(arguments: argparse.Namespace) -> int:
    if arguments.folder is None and not DATA.is_dir():
        for name in _named(arguments.only):
            print(name)
        return OK
    for name, path in _files(folder_of(arguments.folder), arguments.only).items():
        data = _read(path)
        print(f"{name:<48} {data['kind']:<10}{data['count']:>6} cases {path.stat().st_size:>8} bytes")
    return OK


def _named(only: Sequence[str]) -> list[str]:
    try:
        return catalogue.matching(only, catalogue.files())
    except VectorFileError as error:
        raise CommandError(str(error)) from error


def _found(folder: Path, prefix: str) -> Iterator[tuple[Content, tuple[str, ...], Case]]:
    for path in verify.vector_files(folder).values():
        if prefix in path.read_text(encoding="ascii", errors="replace"):
            data = _read(path)
            for group in data["groups"]:
                for case in group["cases"]:
                    if case["id"].startswith(prefix):
                        yield data, tuple(group["clauses"]), case


def _show(arguments: argparse.Namespace) -> int:
    folder = folder_of(arguments.folder)
    prefix = arguments.id.lower()
    found = list(_found(folder, prefix))
    if not found:
        raise CommandError(f"no case in {folder} has the id {arguments.id}; ids are 16 hexadecimal digits")
    if len(found) > 1:
        several = ", ".join(case["id"] for _, _, case in found[:5])
        raise CommandError(f"{len(found)} cases begin with {arguments.id} ({several}); write more digits")
    data, clauses, case = found[0]
    print(json.dumps(case, indent=1) if arguments.json else "\n".join(_words(data, clauses, case)))
    return OK


def _words(data: Content, clauses: Sequence[str], case: Case) -> Iterator[str]:
    yield f"{case['id']}  {data['name']}"
    for clause in clauses:
        yield f"  rule       {clause}: {data['clauses'][clause]}"
    if "operation" in data:
        operation = data["operation"]
        attrs = "".join(f" {name}={str(value).lower()}" for name, value in operation["attrs"].items())
        yield f"  operation  {operation['op']} {', '.join(operation['args'])} -> {operation['result']}{attrs}"
    for field in (
        "inputs",
        "nearest",
        "allowed",
        "unspecified",
        "alternatives",
        "exact",
        "program",
        "verdict",
        "outputs",
    ):
        if field in case:
            yield f"  {field:<10} {json.dumps(case[field])}"
    for flag in case.get("flags", ()):
        yield f"  {flag}: {data['flags'][flag]}"
    for name in case.get("kills", ()):
        yield f"  kills {name}: {data['suspects'][name]['summary']}"
    for field in ("note", "source"):
        if field in case:
            yield f"  {field:<10} {case[field]}"


def _lint(arguments: argparse.Namespace) -> int:
    folder = folder_of(arguments.folder)
    faults = 0
    for fault in lint.lint(folder):
        print(fault)
        faults += 1
    print(f"{folder}: {faults or 'nothing'} to complain of")
    return FOUND if faults else OK


# Results of other programs.


def judge_results(folder: Path, lines: Iterable[str]) -> int:
    """``halfulp judge --vectors``: judge results by the sets in the files.

    A line is ``ID BITS`` (``BITS`` for each output), or ``{"id": ID, "got": BITS or [BITS, ...]}``. Prints one line of
    JSON for each that is not allowed, and a summary on standard error.
    """
    cases: dict[str, tuple[Content, Case]] = {}
    for path in _files(folder_of(folder), ()).values():
        data = _read(path)
        cases |= {case["id"]: (data, case) for case in cases_of(data)}
    verdicts: Counter[str] = Counter()
    blamed: Counter[str] = Counter()
    malformed = 0
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            one, got = _result(line)
            if one not in cases:
                raise VectorFileError(f"no case in {folder} has the id {one}")
            data, case = cases[one]
            verdict = judge(data, case, got)
        except VectorFileError as error:
            print(f"halfulp judge: line {number}: {error}", file=sys.stderr)
            malformed += 1
            continue
        seen.add(one)
        verdicts[verdict] += 1
        if verdict != "allowed":
            if verdict == "forbidden":
                blamed.update(case.get("kills", ()))
            print(json.dumps(_reply(data, case, got, verdict), separators=(",", ":")), flush=True)
    counts = ", ".join(f"{verdicts[name]:,} {name}" for name in ("allowed", "unspecified", "forbidden"))
    print(
        f"{sum(verdicts.values()):,} results: {counts}; {len(cases) - len(seen):,} cases without one", file=sys.stderr
    )
    if blamed:
        names = ", ".join(f"{name} ({count})" for name, count in blamed.most_common(5))
        print(f"suspects that those cases were made for: {names}", file=sys.stderr)
    return MALFORMED if malformed else FOUND if verdicts["forbidden"] else OK


def _reply(data: Content, case: Case, got: Sequence[str], verdict: str) -> dict[str, Any]:
    fields = ("inputs", "nearest", "allowed", "unspecified", "alternatives")
    return {
        "id": case["id"],
        "file": data["name"],
        "verdict": verdict,
        "got": list(got),
        **{field: case[field] for field in fields if field in case},
        "kills": case.get("kills", []),
    }


def _result(line: str) -> tuple[str, list[str]]:
    """The id and the results of one line."""
    if not line.lstrip().startswith("{"):
        one, *got = line.split()
        return one, got
    try:
        data = json.loads(line)
        got = data["got"]
        return str(data["id"]), [got] if isinstance(got, str) else [str(text) for text in got]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise VectorFileError('write `ID BITS`, or {"id": ID, "got": BITS}') from error
