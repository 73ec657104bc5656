"""What one certification run found, gathered on the process that reports it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from halfulp.certify.show import plural
from halfulp.properties.results import Example, Finding, Tally, Trial


def trial_to_plain(trial: Trial) -> dict[str, Any]:
    """The trial as JSON data: how it travels from a worker process to the one that reports."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(trial), default=_plain_number))
    return plain


def _plain_number(value: Any) -> Any:
    """numpy scalars, which count things in trials, as Python numbers."""
    return value.item()


def trial_from_plain(data: Mapping[str, Any]) -> Trial:
    """The inverse of `trial_to_plain`."""
    return Trial(
        tallies=[Tally(**{**item, "max_argument": tuple(item["max_argument"])}) for item in data["tallies"]],
        findings=[_finding(item) for item in data["findings"]],
    )


def _finding(data: Mapping[str, Any]) -> Finding:
    changed = {
        "dtypes": tuple(data["dtypes"]),
        "simplest": _example(data["simplest"]),
        "worst": _example(data["worst"]),
        "suspects": [(name, explained, contradicted) for name, explained, contradicted in data["suspects"]],
    }
    return Finding(**{**data, **changed})


def _example(data: Mapping[str, Any] | None) -> Example | None:
    if data is None:
        return None
    return Example(
        inputs=tuple(data["inputs"]),
        got=tuple(data["got"]),
        allowed=tuple(data["allowed"]),
        distance_ulp=data["distance_ulp"],
    )


@dataclass(frozen=True)
class Trouble:
    """A property that ended without a verdict.

    Attributes:
        item: pytest's name of it.
        what: ``"error"``, ``"skipped"`` or ``"no result"``.
        reason: one line.
    """

    item: str
    what: str
    reason: str


@dataclass
class Outcome:
    """All trials of a run, and the verdict that follows from them.

    Attributes:
        backend: how the backend was named on the command line.
        facts: what the adapter declares, see ``adapters.protocol.Facts``.
        versions: what the verdict depends on: halfulp, Python, numpy, and what the adapter names.
        clauses: the selection made with ``--clauses``; empty for all.
        deselected: properties left out by it, and by pytest's own ``-k``, ``-m`` and the like.
        tallies, findings: of all trials.
        troubles: properties that ended without a verdict.
        stopped: why the run did not reach its end; empty where it did.
        seconds: wall time.
    """

    backend: str
    dialect: str
    seed: int
    depth: str
    clauses: tuple[str, ...] = ()
    facts: dict[str, bool | None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    deselected: int = 0
    tallies: list[Tally] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    stopped: str = ""
    seconds: float = 0.0

    def add(self, trial: Trial) -> None:
        self.tallies += trial.tallies
        self.findings += trial.findings

    @property
    def forbidden(self) -> int:
        return sum(tally.forbidden for tally in self.tallies)

    @property
    def judged(self) -> int:
        """Results with a claim: whose value could have been forbidden or unspecified."""
        return sum(tally.judged for tally in self.tallies)

    @property
    def programs(self) -> int:
        """Programs that were run, or judged as accepted or refused."""
        return sum(tally.state == "run" for tally in self.tallies)

    @property
    def objections(self) -> list[str]:
        """Why the backend is not certified, most important first; empty where it is."""
        found = []
        if self.forbidden:
            guilty = sum(tally.forbidden > 0 for tally in self.tallies)
            found.append(f"{plural(self.forbidden, 'forbidden result')} in {plural(guilty, 'program')}")
        elif self.findings:
            found.append(plural(len(self.findings), "breach").replace("breachs", "breaches"))
        errors = [trouble for trouble in self.troubles if trouble.what != "skipped"]
        if errors:
            found.append(f"{len(errors):,} propert{'y' if len(errors) == 1 else 'ies'} ended without a verdict")
        if self.stopped:
            found.append(f"the run did not reach its end ({self.stopped})")
        if not found and not self.judged:
            found.append("nothing was claimed, so nothing was tested")
        return found

    @property
    def certified(self) -> bool:
        return not self.objections

    @property
    def verdict(self) -> str:
        """The closing line of every report."""
        if self.objections:
            return "NOT CERTIFIED: " + "; ".join(self.objections)
        scope = f" (only clauses {', '.join(self.clauses)})" if self.clauses else ""
        skipped = [trouble for trouble in self.troubles if trouble.what == "skipped"]
        but = f"; {len(skipped):,} skipped, see above" if skipped else ""
        return (
            f"CERTIFIED{scope}: 0 forbidden results among {self.judged:,} judged, "
            f"{plural(self.programs, 'program')}{but}"
        )


def chapter_key(chapter: str) -> tuple[list[int], str]:
    """Order of chapters: 4, 4/5, 5, 5.1, 5.2, 5.10, then those without a number."""
    numbers = [int(number) for number in re.findall(r"\d+", chapter.split("/")[0])]
    return (numbers or [sys.maxsize], chapter)


def by_chapter(tallies: Iterable[Tally]) -> dict[str, list[Tally]]:
    """Tallies grouped by chapter, in the order of the text."""
    groups: dict[str, list[Tally]] = {}
    for tally in tallies:
        groups.setdefault(tally.chapter, []).append(tally)
    return {chapter: groups[chapter] for chapter in sorted(groups, key=chapter_key)}


def signature_of(tally_id: str) -> str:
    """The part of an id before its mode: ``cast[f64->bf16]`` of ``cast[f64->bf16]/array/O3``."""
    head, bracket, _ = tally_id.partition("]")
    return head + bracket if bracket else tally_id.split("/")[0]
