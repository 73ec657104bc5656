"""The ledger for people: tables in Markdown, a rise in words, annotations of a review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from halfulp.certify.ledger import Change, Difference, Entry
from halfulp.certify.show import count_text


def regression_lines(difference: Difference) -> list[str]:
    """A rise, in words."""
    old, new = difference.old, difference.new
    assert old is not None
    assert new is not None
    lines = [
        f"{old.key.what} on {old.key.backend} ({old.key.device}): the error rose from {old.max_distance:,} to "
        f"{new.max_distance:,} ulp",
        f"    before  {old.shown}; {old.evidence}",
        f"    now     {new.shown}; {new.evidence}",
    ]
    changed = [
        f"{name} {old.versions.get(name, 'none')} -> {new.versions.get(name, 'none')}"
        for name in sorted({*old.versions, *new.versions})
        if old.versions.get(name) != new.versions.get(name)
    ]
    lines.append(f"    changed {', '.join(changed) if changed else 'no version that is recorded'}")
    if new.inputs > 2 * old.inputs and not old.exhaustive:
        lines.append("    note    many more inputs were tried than before: the error may be older than it looks")
    return lines


def table(entries: Iterable[Entry]) -> list[str]:
    """Entries as a table in Markdown."""
    lines = [
        "| operation | format | mode | max ulp | at | inputs | device | backend | date |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for entry in sorted(entries, key=lambda entry: entry.key):
        key = entry.key
        inputs = f"all {count_text(entry.inputs)}" if entry.exhaustive else count_text(entry.inputs)
        cells = (key.operation, key.format, key.mode, f"{entry.max_distance:,}", _code(entry.argument), inputs)
        lines.append("| " + " | ".join((*cells, key.device, key.backend, entry.date[:10])) + " |")
    return lines


def _code(argument: Sequence[str]) -> str:
    return f"`{', '.join(argument)}`" if argument else ""


_SIGNS = {
    Change.RISE: "**rose**",
    Change.FALL: "fell",
    Change.BETTER_KNOWN: "other inputs",
    Change.MISSING: "new",
    Change.UNUSED: "gone",
}


def difference_table(differences: Sequence[Difference]) -> list[str]:
    """Differences of two ledgers as a table in Markdown."""
    lines = [
        "| operation | format | mode | before | now | at | change | device | backend |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in differences:
        key = one.key
        change = _SIGNS[one.change] + (f": {one.new.reason}" if one.new and one.new.reason else "")
        numbers = tuple("" if entry is None else f"{entry.max_distance:,}" for entry in (one.old, one.new))
        there = one.new or one.old
        at = _code(there.argument) if there else ""
        cells = (key.operation, key.format, key.mode, *numbers, at, change.replace("|", "\\|"), key.device, key.backend)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def annotation(difference: Difference, path: Path | None = None, line: int = 0) -> str:
    """A difference as an annotation of a review on GitHub: rises without a reason are errors."""
    old, new = difference.old, difference.new
    level = {Change.RISE: "error", Change.UNUSED: "warning"}.get(difference.change, "notice")
    if difference.change is Change.RISE and new is not None and new.reason:
        level = "warning"
    text = {
        Change.RISE: f"{old.shown if old else ''} -> {new.shown if new else ''}",
        Change.FALL: f"{old.shown if old else ''} -> {new.shown if new else ''}",
        Change.UNUSED: "the entry is gone" if old else "",
    }.get(difference.change, new.shown if new else "")
    if new is not None and new.reason:
        text += f" (accepted: {new.reason})"
    where = f"file={path},line={line}," if path is not None else ""
    title = f"ulp ledger: {difference.key.what} on {difference.key.backend}"
    return f"::{level} {where}title={_escaped(title, parameter=True)}::{_escaped(text)}"


def _escaped(text: str, *, parameter: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if parameter else text
