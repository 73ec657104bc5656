"""The catalogue of litmus tests with everything that is computed about it, kept on disk between runs.

Verdicts, weakest orders and who kills which mutant take seconds to compute. They depend on nothing but the sources of
`oracle.memory`, so the name of the file holds a hash of these: whoever changes a rule or a test gets everything
computed anew. A file that is damaged is replaced, and any of them can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from halfulp.certify.questions import VERDICTS
from halfulp.certify.tables import directory
from halfulp.oracle import formats, memory
from halfulp.oracle.memory.catalogue import catalogue, minimal_set
from halfulp.oracle.memory.program import Program, from_json, to_json

Told = Callable[[int, int], None]
"""Told how many tests of how many are done."""


@dataclass(frozen=True)
class Entry:
    """One test.

    Attributes:
        program, family: as in `oracle.memory.catalogue.Test`.
        verdict: of the weak outcome: ``"allowed"``, ``"unspecified"``, ``"forbidden"`` or ``"no_claim"``.
        kills: the model mutants that show the weak outcome, which is forbidden.
        differs_under: other models in use under which the verdict is another one.
        in_minimal_set: it belongs to a smallest set of tests that kills every mutant.
    """

    program: Program
    family: str
    verdict: str
    kills: tuple[str, ...]
    differs_under: tuple[str, ...]
    in_minimal_set: bool

    @property
    def name(self) -> str:
        return self.program.name


@cache
def sources_hash() -> str:
    """A hash of the sources that the table is computed by."""
    assert formats.__file__ is not None
    state = hashlib.sha256()
    own = Path(__file__)
    for source in (own, Path(formats.__file__), *sorted(Path(memory.__path__[0]).glob("*.py"))):
        state.update(source.name.encode() + b"\0" + source.read_bytes())
    return state.hexdigest()[:16]


def entries(dtype: str, told: Told | None = None, where: Path | None = None) -> tuple[Entry, ...]:
    """All tests on locations of one dtype, in the order of the catalogue."""
    path = (where or directory()) / f"litmus-{dtype}-{sources_hash()}.json"
    found = _read(path)
    if found is None:
        found = computed(dtype, told)
        with contextlib.suppress(OSError):  # then it is computed anew next time
            _write(found, path)
    return found


def computed(dtype: str, told: Told | None = None) -> tuple[Entry, ...]:
    """The same, from the model."""
    if told:
        told(0, 1)
    tests = catalogue(dtype)
    rows = []
    for number, test in enumerate(tests):
        if told:
            told(number, len(tests))
        rows.append((test.program, test.family, VERDICTS[test.verdict], test.kills, test.informative))
    first = set(minimal_set(dtype))
    return tuple(Entry(*row, row[0].name in first) for row in rows)


def _read(path: Path) -> tuple[Entry, ...] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(data["tests"], separators=(",", ":"))
        if hashlib.sha256(text.encode()).hexdigest() != data["sha256"]:
            return None
        return tuple(_entry(row) for row in data["tests"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _entry(row: dict[str, Any]) -> Entry:
    lists = {name: tuple(row[name]) for name in ("kills", "differs_under")}
    return Entry(**{**row, **lists, "program": from_json(row["program"])})


def _write(found: tuple[Entry, ...], path: Path) -> None:
    """Aside, then renamed: processes may share a directory."""
    rows = [{**asdict(entry), "program": to_json(entry.program)} for entry in found]
    text = json.dumps(rows, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'{{"sha256":"{digest}","tests":{text}}}')
    os.replace(name, path)
