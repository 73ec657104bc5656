"""What ``halfulp vectors`` and ``halfulp judge --vectors`` do."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from halfulp.certify.show import plural
from halfulp.certify.status import FOUND, MALFORMED, OK, CommandError
from halfulp.vectors import catalogue, sources
from halfulp.vectors import generate as writer
from halfulp.vectors import lint as linter
from halfulp.vectors import verify as verifier
from halfulp.vectors.files import DATA, Case, Content, Settings, VectorFileError, cases_of, read
from halfulp.vectors.judge import judge

SHOWN = 20
"""Faults that are printed in full."""


def folder_of(given: Path | None) -> Path:
    """The folder named, or the set of a checkout or of the distribution halfulp-vectors."""
    folder = DATA if given is None else given
    if not folder.is_dir():
        where = "this is no checkout, and halfulp-vectors is not here" if given is None else f"{folder} is no folder"
        raise CommandError(f"{where}; write a set with `halfulp vectors generate --out DIR` and name it")
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


def run_generate(arguments: argparse.Namespace) -> int:
    if arguments.size < 0 or arguments.seed < 0:
        raise CommandError("--size and --seed are counts: 0 or more")
    if arguments.out.exists() and not arguments.out.is_dir():
        raise CommandError(f"--out {arguments.out} is a file; name a folder, which is made if there is none")
    progress, start = _Progress("writing"), time.monotonic()
    try:
        if arguments.keep:
            kept = writer.keep_lost(arguments.out, arguments.only)
            print(f"{kept or 'no'} cases of {arguments.out} would have vanished" + ("; generate again" if kept else ""))
            return OK
        settings = Settings(arguments.seed, arguments.size)
        done = writer.generate(arguments.out, arguments.only, settings, arguments.format, progress)
        packed = writer.archive(arguments.out, arguments.archive) if arguments.archive else ""
    except (VectorFileError, sources.LostError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot write to {arguments.out}: {error}") from error
    finally:
        progress.end()
    seconds = time.monotonic() - start
    written = f"{plural(done.files, 'file')}, {plural(done.cases, 'case')}, {done.size / 1e6:.2f} MB"
    print(f"{written} in {arguments.out}, {seconds:.1f} s")
    if done.left_out:
        print(f"{len(done.left_out)} files have no such form: {_some(done.left_out)}")
    if packed:
        print(f"{arguments.archive}: SHA-256 of the tar inside {packed}")
    return OK


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _files(folder: Path, only: Sequence[str]) -> dict[str, Path]:
    found = verifier.vector_files(folder)
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


def run_verify(arguments: argparse.Namespace) -> int:
    folder = folder_of(arguments.folder)
    found = _files(folder, arguments.only)
    progress, start = _Progress("verifying"), time.monotonic()
    cases = wrong = 0
    kinds: Counter[str] = Counter()
    for done, (name, path) in enumerate(found.items()):
        progress(done, len(found), name)
        data = _read(path)
        try:
            faults = list(verifier.faults(data, exhaustive=arguments.exhaustive))
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
    print(
        f"{plural(len(found), 'file')}, {plural(cases, 'case')} ({by_kind}), {seconds:.1f} s: {wrong or 'none'} wrong"
    )
    return FOUND if wrong else OK


def run_list(arguments: argparse.Namespace) -> int:
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
    for path in verifier.vector_files(folder).values():
        if prefix in path.read_text(encoding="ascii", errors="replace"):
            data = _read(path)
            for group in data["groups"]:
                for case in group["cases"]:
                    if case["id"].startswith(prefix):
                        yield data, tuple(group["clauses"]), case


def run_show(arguments: argparse.Namespace) -> int:
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


def run_lint(arguments: argparse.Namespace) -> int:
    folder = folder_of(arguments.folder)
    faults = 0
    for fault in linter.lint(folder):
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
        f"{plural(sum(verdicts.values()), 'result')}: {counts}; {plural(len(cases) - len(seen), 'case')} without one",
        file=sys.stderr,
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
