"""The ledger: what error was measured, per operation, format, mode, device class and backend.

It stands apart from the bounds of the language: a function may be within its bound and yet have become worse. An entry
is a measured maximum with its argument and what it rests on; it falls by itself and rises only with a reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from halfulp.certify.report import write_text
from halfulp.certify.show import value_text
from halfulp.oracle.formats import format_of
from halfulp.oracle.ops.functions import FUNCTIONS
from halfulp.oracle.ops.record import Attrs, Signature
from halfulp.properties.results import Tally

SCHEMA = "halfulp-ulp-ledger-1"
"""Identifies the layout of the file; a change that breaks readers changes it."""

MEASURED = frozenset(record.name for record in FUNCTIONS)
"""The operations that the ledger is about: those with a tolerance. All others are right or wrong."""

FOLDED = "/folded"


class LedgerError(Exception):
    """The ledger cannot be used. The message says what, why and what to do."""


def in_ci() -> bool:
    """Whether this is a run of continuous integration, where nothing is ever written: ``CI`` is set."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


@dataclass(frozen=True, order=True)
class Key:
    """What an entry is about.

    Attributes:
        operation, format: of the operands.
        mode: ``default``, ``approximate`` or ``approximate+flush_to_zero``; with ``/folded`` for operands known at
            compile time, since what folds them may be another library.
        device: a class of devices, see `certify.device`.
        backend: as named on the command line.
    """

    operation: str
    format: str
    mode: str
    device: str
    backend: str

    @property
    def what(self) -> str:
        return f"{self.operation} {self.format} {self.mode}"


@dataclass(frozen=True)
class Entry:
    """A measured maximum.

    Attributes:
        max_distance: steps from the correctly rounded result (``reading:1``).
        argument: operands that have it, as hex text.
        inputs: how many were tried.
        exhaustive: every input was; otherwise the maximum is a lower bound.
        date: of the measurement, in UTC.
        versions: of what the results depend on.
        reason: why it was accepted when it rose; empty where it never did.
    """

    key: Key
    max_distance: int
    argument: tuple[str, ...]
    inputs: int
    exhaustive: bool
    date: str
    versions: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def plain(self) -> dict[str, Any]:
        data = asdict(self)
        found = {**data.pop("key"), **data, "argument": list(self.argument), "versions": dict(self.versions)}
        return found if self.reason else {name: value for name, value in found.items() if name != "reason"}

    @property
    def shown(self) -> str:
        """``2 ulp at 0x3e6ee50c (0.233...)``."""
        fmt = format_of(self.key.format)
        texts = [f"{text} ({value_text(fmt, int(text, 16))})" for text in self.argument]
        return f"{self.max_distance:,} ulp" + (f" at {', '.join(texts)}" if texts else "")

    @property
    def evidence(self) -> str:
        """``all 65,536 inputs, 2026-11-30``."""
        number = f"all {self.inputs:,}" if self.exhaustive else f"{self.inputs:,}"
        return f"{number} inputs, {self.date[:10]}"


Entries = dict[Key, Entry]


def mode_of(attrs: Attrs) -> str:
    return "+".join(name for name, setting in attrs if setting) or "default"


def key_of(signature: Signature, device: str, backend: str, *, folded: bool = False) -> Key:
    mode = mode_of(signature.attrs) + (FOLDED if folded else "")
    return Key(signature.op, signature.args[0], mode, device, backend)


# Files.


def read(path: Path) -> Entries:
    """The entries of a file.

    Raises:
        LedgerError: it cannot be read, or is no ledger.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LedgerError(f"{path}: there is no such file; a run with --update-ledger writes it") from None
    except OSError as error:
        raise LedgerError(f"{path}: it cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise LedgerError(f"{path}: this is no JSON ({error}); a merge conflict in it, perhaps") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise LedgerError(f"{path}: its layout is {schema!r}, and this version reads {SCHEMA!r}")
    entries: Entries = {}
    for number, row in enumerate(data.get("entries", ())):
        try:
            entry = _entry(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LedgerError(f"{path}: entry {number + 1} is not one: {error!r}") from None
        if entry.key in entries:
            raise LedgerError(f"{path}: {entry.key.what} on {entry.key.backend} stands there twice; keep one of them")
        entries[entry.key] = entry
    return entries


def _entry(row: Mapping[str, Any]) -> Entry:
    key = Key(*(_text(row[name]) for name in ("operation", "format", "mode", "device", "backend")))
    format_of(key.format)
    argument = tuple(_text(text) for text in row["argument"])
    for text in argument:
        int(text, 16)
    distance, inputs = row["max_distance"], row["inputs"]
    if not isinstance(distance, int) or not isinstance(inputs, int) or distance < 0 or inputs < 0:
        raise ValueError("max_distance and inputs are counts")
    return Entry(
        key,
        distance,
        argument,
        inputs,
        bool(row["exhaustive"]),
        _text(row["date"]),
        dict(row.get("versions", {})),
        _text(row.get("reason", "")),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def line_of(entry: Entry) -> str:
    """The entry as it stands in a file: one line, so that a change of it is one line of a diff."""
    return json.dumps(entry.plain())


def write(path: Path, entries: Entries) -> None:
    """Write a ledger in one step, sorted.

    Raises:
        LedgerError: it cannot be written.
    """
    lines = ",\n".join(line_of(entries[key]) for key in sorted(entries))
    try:
        write_text(path, f'{{"schema": "{SCHEMA}",\n"entries": [\n{lines}\n]}}\n')
    except OSError as error:
        raise LedgerError(f"{path}: it cannot be written: {error.strerror}") from None


# Measuring.


def signature_of(tally: Tally) -> tuple[Signature, str] | None:
    """The signature and the form (``array``, ``const0``, ...) of a tally of a measured operation; else None."""
    head, bracket, rest = tally.id.partition("]/")
    op, opening, inside = head.partition("[")
    if op not in MEASURED or not bracket or not opening:
        return None
    types, *attrs = inside.split(";")
    args, _, result = types.partition("->")
    settings: Attrs = tuple((name, setting == "True") for name, _, setting in (a.partition("=") for a in attrs))
    return Signature(op, tuple(args.split(",")), result, settings), rest.split("/")[0]


def is_folded(form: str) -> bool:
    return form.startswith("const")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def measure(
    tallies: Iterable[Tally], device: str, backend: str, versions: Mapping[str, str], enumerated: int
) -> tuple[Entries, dict[Key, Signature], dict[Key, str]]:
    """What a run measured.

    Args:
        enumerated: a unary operation of no more codes than this was tried on all of them, as a run-time array.

    Returns:
        entries; the signature of each; and for keys that could not be measured, or whose results are forbidden, why.
    """
    entries: Entries = {}
    signatures: dict[Key, Signature] = {}
    not_measured: dict[Key, str] = {}
    for tally in tallies:
        parsed = signature_of(tally)
        if parsed is None:
            continue
        signature, form = parsed
        key = key_of(signature, device, backend, folded=is_folded(form))
        signatures[key] = signature
        if tally.state != "run":
            not_measured.setdefault(key, f"{tally.state}: {tally.reason}")
            continue
        if tally.forbidden:
            not_measured[key] = f"{tally.forbidden:,} forbidden results"
        if tally.max_distance is None:
            continue
        every = len(signature.args) == 1 and form == "array" and signature.formats[0].code_count <= enumerated
        inputs = tally.judged + tally.no_claim
        if every:
            inputs = signature.formats[0].code_count
        found = Entry(key, tally.max_distance, tuple(tally.max_argument), inputs, every, now(), dict(versions))
        entries[key] = merged(entries[key], found) if key in entries else found
    return entries, signatures, not_measured


def merged(first: Entry, second: Entry) -> Entry:
    """Two measurements of the same: the greater maximum, resting on both."""
    greater = second if second.max_distance > first.max_distance else first
    for one in (first, second):
        if one.exhaustive:
            return replace(greater, inputs=one.inputs, exhaustive=True)
    return replace(greater, inputs=first.inputs + second.inputs)


def entry_of_record(record: Mapping[str, Any]) -> Entry:
    """The measurement in the record of a sweep.

    Raises:
        KeyError, TypeError: it is none.
    """
    signature = Signature(record["op"], (record["format"],), record["result"], tuple(sorted(record["attrs"].items())))
    argument = record["max_argument"]
    return Entry(
        key_of(signature, record["device"], record["backend"]),
        record["max_distance"],
        (argument,) if isinstance(argument, str) else tuple(argument),
        record["inputs"],
        record["exhaustive"] and record["domain"]["kind"] == "codes",
        record["date"],
        dict(record["versions"]),
    )


# Comparing.


class Change(Enum):
    """What became of an entry."""

    RISE = "rise"
    FALL = "fall"
    BETTER_KNOWN = "better known"
    SAME = "same"
    MISSING = "missing"
    NEW_DEVICE = "new device class"
    UNUSED = "unused"


@dataclass(frozen=True)
class Difference:
    """One line of a comparison.

    Attributes:
        old, new: one of them may be None.
    """

    change: Change
    old: Entry | None
    new: Entry | None

    @property
    def key(self) -> Key:
        entry = self.new or self.old
        assert entry is not None
        return entry.key


def compare(ledger: Entries, measured: Entries) -> list[Difference]:
    """What a run says of the entries of its own device class and backend, in the order of the keys."""
    known = {(key.device, key.backend) for key in ledger}
    here = {(key.device, key.backend) for key in measured}
    found = []
    for key in sorted({*measured, *(key for key in ledger if (key.device, key.backend) in here)}):
        old, new = ledger.get(key), measured.get(key)
        found.append(Difference(_change(old, new, (key.device, key.backend) in known), old, new))
    return found


def _change(old: Entry | None, new: Entry | None, known_device: bool) -> Change:
    if old is None:
        return Change.MISSING if known_device else Change.NEW_DEVICE
    if new is None:
        return Change.UNUSED
    if new.max_distance > old.max_distance:
        return Change.RISE
    # A sample says nothing against a maximum over all inputs, and a small one little against a large one.
    stronger = new.exhaustive or (not old.exhaustive and new.inputs >= old.inputs)
    if new.max_distance < old.max_distance:
        return Change.FALL if stronger else Change.SAME
    gained = (new.exhaustive, new.inputs) > (old.exhaustive, old.inputs)
    return Change.BETTER_KNOWN if stronger and gained else Change.SAME


def updated(ledger: Entries, differences: Sequence[Difference], reason: str | None) -> Entries:
    """The ledger after a run: what is new, lower or better known is taken over; what rose only with a reason."""
    result = dict(ledger)
    for difference in differences:
        if difference.new is None:
            continue
        if difference.change is Change.RISE:
            if reason is not None:
                result[difference.key] = replace(difference.new, reason=reason)
        elif difference.change is Change.BETTER_KNOWN:
            assert difference.old is not None
            result[difference.key] = replace(difference.new, reason=difference.old.reason)
        elif difference.change is not Change.SAME:
            result[difference.key] = difference.new
    return result


def against(old: Entries, new: Entries) -> list[Difference]:
    """How one ledger differs from another: a rise is one whatever it rests on. Equal entries are left out."""
    found = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before is None:
            found.append(Difference(Change.MISSING, None, after))
        elif after is None:
            found.append(Difference(Change.UNUSED, before, None))
        elif after.max_distance != before.max_distance:
            change = Change.RISE if after.max_distance > before.max_distance else Change.FALL
            found.append(Difference(change, before, after))
        elif (after.exhaustive, after.inputs) != (before.exhaustive, before.inputs):
            found.append(Difference(Change.BETTER_KNOWN, before, after))
    return found
