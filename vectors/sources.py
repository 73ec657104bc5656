"""Inputs that no rule finds: from public reports, from sweeps, and cases of earlier versions of the generator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from halfulp.oracle.ops.record import Attrs, Signature

FOLDER = Path(__file__).resolve().parent / "sources"


class LostError(ValueError):
    """A case would vanish and cannot be kept. The message says what to restore."""


@dataclass(frozen=True)
class Found:
    """Inputs with their story.

    Attributes:
        inputs: bit patterns.
        flag: of the case.
        note: what is known of them; may be empty.
        source: address of a public report; may be empty.
    """

    inputs: tuple[int, ...]
    flag: str = ""
    note: str = ""
    source: str = ""


def _load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@cache
def public_reports() -> tuple[Mapping[str, Any], ...]:
    """Every record of ``sources/public-bugs.json``."""
    return tuple(_load("public-bugs.json"))


@cache
def _worst() -> Mapping[str, Any]:
    found: Mapping[str, Any] = _load("worst-inputs.json")["operations"]
    return found


@cache
def kept() -> Mapping[str, Any]:
    """What cases ask that the generator once chose and would no longer choose: files are append-only.

    For each file a list: of inputs, or of programs where it is about typing.
    """
    found: Mapping[str, Any] = _load("kept.json")["files"]
    return found


def asked_by(file: str, case: Mapping[str, Any]) -> Any:
    """What `kept` holds of a case.

    Raises:
        LostError: cases of this kind cannot be kept that way.
    """
    for field in ("inputs", "program"):
        if field in case and "outputs" not in case and "racy" not in case:
            return case[field]
    raise LostError(f"{file}: cases of this kind are made from the records alone; restore what {case['id']} came from")


def write_kept(files: Mapping[str, Any]) -> None:
    """Write ``sources/kept.json``, and use it from now on."""
    entries = ",\n".join(f"{json.dumps(name)}: {json.dumps(files[name])}" for name in sorted(files))
    note = json.dumps(_load("kept.json")["note"])
    (FOLDER / "kept.json").write_text(f'{{\n"note": {note},\n"files": {{\n{entries}\n}}\n}}\n', encoding="utf-8")
    kept.cache_clear()


def attrs_of(record: Mapping[str, Any]) -> Attrs:
    return tuple(sorted(record.get("attrs", {}).items()))


def reports_on(signature: Signature) -> Iterator[Found]:
    for record in public_reports():
        if record["kind"] != "operation" or record["op"] != signature.op or attrs_of(record) != signature.attrs:
            continue
        if (tuple(record["args"]), record["result"]) == (signature.args, signature.result):
            yield Found(_codes(record["inputs"]), "public_report", record["words"], record["source"])


def reported() -> Iterator[Signature]:
    """The operations that a report is about."""
    for record in public_reports():
        if record["kind"] == "operation":
            yield Signature(record["op"], tuple(record["args"]), record["result"], attrs_of(record))


def found_inputs(signature: Signature) -> list[Found]:
    """What is known of an operation beyond its record; attributes make no difference to worst inputs."""
    found = list(reports_on(signature))
    for entry in _worst().get(signature.op, {}).get(signature.args[0], ()):
        found.append(Found(_codes(entry["operands"]), "known_worst", entry["why"]))
    return found


def kept_inputs(file: str) -> list[tuple[int, ...]]:
    """The inputs of a file that an earlier generator chose."""
    return [_codes(inputs) for inputs in kept().get(file, ())]


def _codes(texts: list[str]) -> tuple[int, ...]:
    return tuple(int(text, 16) for text in texts)


def kernel_reports() -> Iterator[tuple[Mapping[str, Any], Found]]:
    """Reports about programs of several operations."""
    for record in public_reports():
        if record["kind"] == "kernel":
            yield record, Found(_codes(record["inputs"]), "public_report", record["words"], record["source"])


@cache
def known_programs() -> tuple[Mapping[str, Any], ...]:
    """Every entry of ``sources/programs.json``."""
    return tuple(_load("programs.json")["programs"])


def typing_reports() -> Iterator[tuple[Mapping[str, Any], Found]]:
    """Reports about programs that the language refuses."""
    return _reports_of("refused")


def litmus_reports() -> Iterator[tuple[Mapping[str, Any], Found]]:
    """Reports about memory order."""
    return _reports_of("litmus")


def _reports_of(kind: str) -> Iterator[tuple[Mapping[str, Any], Found]]:
    for record in public_reports():
        if record["kind"] == kind:
            yield record, Found((), "public_report", record["words"], record["source"])


@cache
def kept_digests() -> Mapping[str, str]:
    """Digests of 2^32 results by operation: they take minutes."""
    found: Mapping[str, str] = _load("digests-32.json")["digests"]
    return found
