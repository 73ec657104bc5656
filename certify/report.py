"""Reports of a run: the summary on the terminal and the JSON file."""

from __future__ import annotations

import json
import os
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from halfulp.certify.outcome import Outcome, by_chapter, signature_of
from halfulp.certify.show import count_text, plural
from halfulp.oracle.clauses import CHAPTERS
from halfulp.properties.results import Finding, Tally

SCHEMA = "halfulp-report-1"
"""Identifies the layout of the JSON report; a change that breaks readers changes it."""

WIDTH = 100


def json_report(outcome: Outcome) -> dict[str, Any]:
    """The whole run as JSON data. ``docs/reference/json-protocols.md`` describes it.

    Counts are exact integers; bit patterns are hex text.
    """
    return {
        "schema": SCHEMA,
        "certified": outcome.certified,
        "verdict": outcome.verdict,
        "objections": outcome.objections,
        "backend": outcome.backend,
        "dialect": outcome.dialect,
        "seed": outcome.seed,
        "depth": outcome.depth,
        "clauses": list(outcome.clauses),
        "facts": outcome.facts,
        "versions": outcome.versions,
        "seconds": round(outcome.seconds, 3),
        "deselected": outcome.deselected,
        "totals": _totals(outcome.tallies),
        "chapters": {chapter: _totals(tallies) for chapter, tallies in by_chapter(outcome.tallies).items()},
        "claims": claims_per_clause(outcome.tallies),
        "tallies": [asdict(tally) for tally in sorted(outcome.tallies, key=lambda tally: tally.id)],
        "findings": [asdict(finding) for finding in sorted(outcome.findings, key=lambda finding: finding.id)],
        "troubles": [asdict(trouble) for trouble in outcome.troubles],
    }


def _totals(tallies: Sequence[Tally]) -> dict[str, int | float]:
    counts = ("allowed", "forbidden", "unspecified", "deviating", "no_claim")
    states = ("run", "unsupported", "rejected", "not run")
    totals: dict[str, int | float] = {name: sum(getattr(tally, name) for tally in tallies) for name in counts}
    for state in states:
        totals["programs_" + state.replace(" ", "_")] = sum(tally.state == state for tally in tallies)
    totals["signatures"] = len({signature_of(tally.id) for tally in tallies})
    totals["seconds"] = round(sum(tally.seconds for tally in tallies), 3)
    return totals


def claims_per_clause(tallies: Iterable[Tally]) -> dict[str, int]:
    """How many results were judged under each clause."""
    claims: dict[str, int] = {}
    for tally in tallies:
        for clause, count in tally.cases.items():
            claims[clause] = claims.get(clause, 0) + count
    return dict(sorted(claims.items()))


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` so that the file is there whole or not at all.

    Raises:
        OSError: the folder is not there or cannot be written.
    """
    write_text(path, json.dumps(data, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file in one step: it is there whole or not at all.

    Raises:
        OSError: the folder is not there or cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


# The terminal.

_COLUMNS = ("signatures", "programs", "allowed", "forbidden", "unspec. (dev.)", "no claim", "unsup.", "time")


def summary_lines(outcome: Outcome, width: int = WIDTH) -> list[str]:
    """The terminal summary without its heading, as plain text and without the verdict.

    Args:
        width: columns that the table is made for, 80 or more.
    """
    lines = [f"{label:<10}{text}" for label, text in _circumstances(outcome)]
    if outcome.tallies:
        lines += ["", *_table(outcome.tallies, width)]
    for block in (
        _distances(outcome.tallies),
        _evidence(outcome.tallies),
        _not_judged(outcome.tallies),
        _troubles(outcome),
        _findings(outcome.findings),
    ):
        if block:
            lines += ["", *block]
    if outcome.deselected:
        left = f"{outcome.deselected:,} propert{'y was' if outcome.deselected == 1 else 'ies were'} left out"
        lines += ["", f"{left} by the selection on the command line."]
    return lines


def _circumstances(outcome: Outcome) -> Iterable[tuple[str, str]]:
    yield "backend", outcome.backend
    yield (
        "run",
        f"dialect {outcome.dialect}, seed {outcome.seed}, depth {outcome.depth}, {outcome.seconds:.1f} s",
    )
    words = {True: "yes", False: "no", None: "not known"}
    facts = "; ".join(f"{name.replace('_', ' ')}: {words[fact]}" for name, fact in outcome.facts.items())
    if facts:
        yield "declares", facts
    fixed = "\N{NO-BREAK SPACE}"  # keeps a name and its version on one line
    versions = ", ".join(f"{name}{fixed}{text}" for name, text in outcome.versions.items())
    for number, line in enumerate(textwrap.wrap(versions, WIDTH - 10)):
        yield "" if number else "versions", line.replace(fixed, " ")


def _title(chapter: str, width: int) -> str:
    """The number and the title of a chapter; a record that belongs to two of them (``4/5``) shows both."""
    titles = {known.number: known.title for known in CHAPTERS}
    words = ", ".join(titles[number] for number in chapter.split("/") if number in titles)
    return textwrap.shorten(f"{chapter:<4}{words}", width, placeholder="").rstrip(",") if words else chapter


def _row(tallies: Sequence[Tally]) -> tuple[str, ...]:
    totals = _totals(tallies)
    unspecified = count_text(int(totals["unspecified"]))
    if totals["deviating"]:
        unspecified += f" ({count_text(int(totals['deviating']))})"
    return (
        f"{totals['signatures']:,}",
        f"{totals['programs_run']:,}",
        count_text(int(totals["allowed"])),
        f"{totals['forbidden']:,}",
        unspecified,
        count_text(int(totals["no_claim"])),
        f"{totals['programs_unsupported']:,}",
        f"{totals['seconds']:.1f} s",
    )


def _table(tallies: Sequence[Tally], width: int) -> list[str]:
    groups = by_chapter(tallies)
    rows = [_COLUMNS, *(_row(group) for group in groups.values())]
    if len(groups) > 1:
        rows.append(_row(tallies))
    if width < 96:
        rows = [row[1:] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = max(12, width - sum(widths) - 2 * len(widths))
    titles = ["chapter", *(_title(chapter, min(room, 40)) for chapter in groups), "all"][: len(rows)]
    head = max(map(len, titles))
    return [
        f"{title:<{head}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for title, row in zip(titles, rows, strict=True)
    ]


def _distances(tallies: Sequence[Tally]) -> list[str]:
    """Per chapter the allowed or unspecified result farthest from the correctly rounded one."""
    lines = []
    for chapter, group in by_chapter(tallies).items():
        measured = [tally for tally in group if tally.max_distance]
        if measured:
            worst = max(measured, key=lambda tally: tally.max_distance or 0)
            argument = ", ".join(worst.max_argument)
            lines.append(f"  {chapter:<5}{worst.max_distance:,} ulp  {worst.id}  at ({argument})")
    return ["largest distance from the correctly rounded result", *lines] if lines else []


def _evidence(tallies: Sequence[Tally]) -> list[str]:
    """How hard litmus programs and contests were looked at: see ``properties.litmus``."""
    ran = [tally for tally in tallies if tally.evidence.get("instances")]
    if not ran:
        return []
    instances = sum(tally.evidence["instances"] for tally in ran)
    seconds = sum(tally.evidence["instances"] / max(tally.evidence["per_second"], 1) for tally in ran)
    mixed = sum(tally.evidence["instances"] * tally.evidence["interleaved"] for tally in ran)
    lines = ["how hard atomics were looked at"]
    rate = f"{instances / max(seconds, 1e-9) / 1e6:,.1f} million a second"
    lines += _bullet(f"{count_text(int(instances))} instances, {rate}; {mixed / instances:.2%} interleaved")
    best: dict[str, float] = {}
    for tally in ran:
        if "mutant" in tally.evidence:
            name = signature_of(tally.id)
            best[name] = max(best.get(name, 0.0), tally.evidence["mutant"])
    if best:
        blind = [name for name, share in best.items() if not share]
        lines += _bullet(
            f"{len(best) - len(blind)} of {len(best)} forbidden outcomes were shown by a mutant of the test"
        )
        if blind:
            lines += _bullet(f"not observable here, so not excluded by running: {_some(blind)}")
    return lines


_STATES = {
    "unsupported": "not offered by the backend",
    "rejected": "refused by the backend (a breach where the language accepts them)",
    "not run": "not run",
}


def _not_judged(tallies: Sequence[Tally]) -> list[str]:
    """Programs without a result, grouped by reason."""
    lines = []
    for state, meaning in _STATES.items():
        groups: dict[str, list[Tally]] = {}
        for tally in tallies:
            if tally.state == state:
                groups.setdefault(tally.reason or "no reason given", []).append(tally)
        if groups:
            count = sum(len(group) for group in groups.values())
            lines.append(f"{plural(count, 'program')} {meaning}")
        for reason, group in sorted(groups.items(), key=lambda item: -len(item[1])):
            lines += _bullet(f"{reason}: {_some([tally.id for tally in group])}")
    return lines


def _troubles(outcome: Outcome) -> list[str]:
    lines = []
    for what, heading in (
        ("error", "ended in an error"),
        ("no result", "ended without a result"),
        ("skipped", "skipped"),
    ):
        groups: dict[str, list[str]] = {}
        for trouble in outcome.troubles:
            if trouble.what == what:
                groups.setdefault(trouble.reason, []).append(trouble.item)
        if groups:
            count = sum(map(len, groups.values()))
            lines.append(f"{count:,} propert{'y' if count == 1 else 'ies'} {heading}")
        for reason, items in groups.items():
            lines += _bullet(f"{reason}: {_some(items)}")
    return lines


def _findings(findings: Sequence[Finding]) -> list[str]:
    """Breaches grouped by clause and by the wrong rule that explains them best."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        explained = finding.suspects[0][0] if finding.suspects and finding.suspects[0][1] >= 1 else ""
        groups.setdefault((finding.clause, explained), []).append(finding)
    lines = ["breaches, by clause and explanation (the full texts stand under FAILURES)"] if groups else []
    for (clause, suspect), group in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        results = sum(finding.forbidden for finding in group)
        what = f"{plural(results, 'wrong result')}" if results else (group[0].message or "broken")
        why = f", all explained by {suspect}" if suspect else ""
        lines += _bullet(f"{clause}: {what}{why}: {_some([finding.id for finding in group])}")
    return lines


def _some(ids: Sequence[str], limit: int = 3) -> str:
    """The first few ids, and how many more there are."""
    shown = ", ".join(ids[:limit])
    return shown if len(ids) <= limit else f"{shown} and {len(ids) - limit:,} more"


def _bullet(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
