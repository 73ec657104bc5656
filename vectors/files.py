"""Vector files: their common header, their text, and how they are written and read.

The text of a file is a function of its content: ASCII, one case on each line, fields in the order of the schema, no
number that is not a whole one.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from halfulp.oracle.clauses import CLAUSES, READINGS
from halfulp.oracle.formats import Format, format_of
from halfulp.oracle.suspects import SUSPECTS
from halfulp.vectors.flags import FLAGS

FORMAT = "halfulp-vectors-1"
"""The version of the schema. Within it files only grow, and an id never changes its meaning."""

GENERATOR_VERSION = "1"
"""Raised when the same command gives other cases."""

HERE = Path(__file__).resolve().parent


def _data() -> Path:
    """The set of a checkout, or that of the distribution halfulp-vectors; where there is neither, no folder."""
    if not (HERE / "data").is_dir() and (found := find_spec("halfulp_vectors")) is not None and found.origin:
        return Path(found.origin).parent / "data"
    return HERE / "data"


DATA = _data()
SCHEMA = HERE / "schema" / f"{FORMAT}.schema.json"

Case = dict[str, Any]
Content = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Cases that rest on the same clauses."""

    about: str
    clauses: tuple[str, ...]
    cases: Sequence[Case]


@dataclass(frozen=True)
class Settings:
    """What a file depends on besides the version of the generator.

    Attributes:
        seed: of all draws.
        size: cases of each file that are wanted at least, 0 for the small set.
    """

    seed: int = 0
    size: int = 0


def clause_rule(name: str) -> str:
    """A clause or a reading in a sentence or two."""
    return CLAUSES[name].rule if name in CLAUSES else READINGS[name]


def format_fields(fmt: Format) -> dict[str, Any]:
    return {
        "kind": fmt.kind,
        "width": fmt.width,
        "signed": fmt.signed,
        "exponent_bits": fmt.exponent_bits,
        "fraction_bits": fmt.fraction_bits,
        "bias": fmt.bias,
        "infinity": fmt.infinity,
        "nan": fmt.nan,
        "subnormals": fmt.is_float and fmt.subnormals,
    }


def suspect_fields(name: str) -> dict[str, Any]:
    record = SUSPECTS[name]
    return {"summary": record.summary, "clauses": list(record.clauses), "source": record.source}


def content(
    kind: str,
    name: str,
    about: str,
    groups: Iterable[Group],
    settings: Settings,
    *,
    oracle: str,
    formats: Iterable[str] = (),
    suspects: Mapping[str, Any] | None = None,
    **subject: Any,
) -> Content:
    """A whole file as JSON data, in the order of the schema.

    Args:
        name: of the file, with its folder and without ``.json``.
        suspects: what is said of the suspects that cases name; by default what the oracle's records say.
    """
    kept = [group for group in groups if group.cases]
    cases = [case for group in kept for case in group.cases]
    killed = sorted({victim for case in cases for victim in case.get("kills", ())})
    clauses = sorted({clause for group in kept for clause in group.clauses})
    used = sorted({flag for case in cases for flag in case.get("flags", ())})
    size = f" --size {settings.size}" if settings.size else ""
    seed = f" --seed {settings.seed}" if settings.seed else ""
    return {
        "format": FORMAT,
        "kind": kind,
        "name": name,
        "about": about,
        "generator": {
            "name": "halfulp vectors",
            "version": GENERATOR_VERSION,
            "command": f"halfulp vectors generate --out DIR --only {name}{size}{seed}",
            "seed": settings.seed,
            "size": settings.size,
        },
        "oracle": oracle,
        "clauses": {clause: clause_rule(clause) for clause in clauses},
        "flags": {flag: FLAGS[flag] for flag in used},
        "suspects": {victim: suspects[victim] if suspects else suspect_fields(victim) for victim in killed},
        "formats": {key: format_fields(format_of(key)) for key in sorted(set(formats))},
        **subject,
        "count": len(cases),
        "groups": [
            {"about": group.about, "clauses": list(group.clauses), "cases": list(group.cases)} for group in kept
        ],
    }


# Text.


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def text_of(data: Content) -> str:
    """The file as text: header fields one to a line, maps one entry to a line, cases one to a line."""
    lines = []
    for field, value in data.items():
        if field == "groups":
            groups = []
            for group in value:
                cases = ",\n".join(_line(case) for case in group["cases"])
                head = f'{{"about":{_line(group["about"])},"clauses":{_line(group["clauses"])},"cases":['
                groups.append(f"{head}\n{cases}\n]}}")
            lines.append('"groups":[\n' + ",\n".join(groups) + "\n]")
        elif field in ("clauses", "flags", "suspects", "formats") and value:
            entries = ",\n".join(f" {_line(key)}:{_line(entry)}" for key, entry in value.items())
            lines.append(f"{_line(field)}:{{\n{entries}\n}}")
        else:
            lines.append(f"{_line(field)}:{_line(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


class VectorFileError(ValueError):
    """A file that is no vector file. The message names it and says what to do."""


def read(path: Path) -> Content:
    """The content of a JSON vector file.

    Raises:
        VectorFileError: it cannot be read, or is no vector file of this version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise VectorFileError(f"{path} cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise VectorFileError(
            f"{path} is no JSON ({error.msg} in line {error.lineno}); generate it anew with `halfulp vectors generate`"
        ) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else None
        raise VectorFileError(f'{path} is no vector file of this version: "format" is {found!r}, not {FORMAT!r}')
    return data


def cases_of(data: Content) -> Iterator[Case]:
    """All cases of a file."""
    for group in data["groups"]:
        yield from group["cases"]


# Writing: all or nothing.


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A fresh folder beside ``out`` to write to; its files move to ``out`` when the block ends well.

    Each file appears by a rename, whole or not at all. When the block is left by an exception, Ctrl-C too, nothing in
    ``out`` has changed.
    """
    out.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".vectors-", dir=out))
    try:
        yield place
        for path in sorted(place.rglob("*")):
            if path.is_file():
                target = out / path.relative_to(place)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write(place: Path, name: str, text: str) -> Path:
    """A text file below a folder, with Unix line ends everywhere."""
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("ascii"))
    return path
