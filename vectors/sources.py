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
    """Inputs of cases that the generator once chose and would no longer choose: files are append-only."""
    found: Mapping[str, Any] = _load("kept.json")["files"]
    return found


def attrs_of(record: Mapping[str, Any]) -> Attrs:
    return tuple(sorted(record.get("attrs", {}).items()))


def reports_on(signature: Signature) -> Iterator[Found]:
    for record in public_reports():
        if record["kind"] != "operation" or record["op"] != signature.op or attrs_of(record) != signature.attrs:
            continue
        if (tuple(record["args"]), record["result"]) == (signature.args, signature.result):
            yield Found(_codes(record["inputs"]), "public_report", record["words"], record["source"])


def found_inputs(signature: Signature, file: str) -> list[Found]:
    """What is known of an operation beyond its record; attributes make no difference to worst inputs."""
    found = list(reports_on(signature))
    for entry in _worst().get(signature.op, {}).get(signature.args[0], ()):
        found.append(Found(_codes(entry["operands"]), "known_worst", entry["why"]))
    found += [Found(_codes(inputs)) for inputs in kept().get(file, ())]
    return found


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
