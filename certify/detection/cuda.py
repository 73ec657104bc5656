"""The detection table of CUDA: every suspect compiled, and run where there is a GPU, by the suite itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from halfulp.adapters.protocol import Adapter
from halfulp.certify.saboteurs.cuda import CUDA_SUSPECTS, CudaSaboteur, CudaSuspect, Place
from halfulp.oracle.ops import signatures
from halfulp.oracle.ops.record import Signature
from halfulp.properties.known import KNOWN, Known
from halfulp.properties.plan import Plan
from halfulp.properties.programs import try_programs
from halfulp.properties.ptx_items import try_part
from halfulp.properties.results import Trial
from halfulp.properties.trial import try_signature

Means = Literal["ptx", "gpu"]


@dataclass(frozen=True)
class Row:
    """What one property says of one suspect.

    Attributes:
        suspect, fault: as in `CudaSuspect`.
        clause: what it breaks.
        means: how it is looked for: in the text of the code, or in results of a GPU.
        where: the kernel or the program that was tried.
        program: id of what caught it, ``""`` where nothing did.
        forbidden, judged: claims or results that do not hold, of how many.
        seconds: compilation, run and judgement together.
    """

    suspect: str
    fault: bool
    clause: str
    means: Means
    where: str
    program: str
    forbidden: int
    judged: int
    seconds: float

    @property
    def right(self) -> bool:
        """The suite does what it has to: it catches a fault, and tries a variant in vain."""
        return bool(self.program) if self.fault else not self.program and self.judged > 0


@cache
def _signatures() -> dict[str, Signature]:
    return {signature.id: signature for signature in signatures()}


@cache
def _known() -> dict[str, Known]:
    return {known.name: known for known in KNOWN}


def try_place(backend: Adapter, place: Place, means: Means, plan: Plan) -> Trial:
    """The property of a place."""
    if means == "ptx":
        return try_part(backend, place.ptx)
    if place.gpu in _signatures():
        return try_signature(backend, _signatures()[place.gpu], plan, explain=False)
    return try_programs(backend, _known()[place.gpu].subjects(plan), explain=False)


def _row(suspect: CudaSuspect, place: Place, means: Means, trial: Trial, seconds: float) -> Row:
    judged = trial.judged
    row = Row(suspect.name, suspect.fault, place.clause, means, getattr(place, means), "", 0, judged, seconds)
    for finding in trial.findings:
        if not suspect.fault or place.clause == finding.clause or place.clause in finding.clauses:
            count = finding.clauses.get(place.clause, finding.forbidden) or 1
            return Row(row.suspect, row.fault, row.clause, means, row.where, finding.id, count, finding.judged, seconds)
    return row


def detect(name: str, means: Means, plan: Plan) -> Iterator[Row]:
    """The rows of one suspect: one for each place where these means have to show it."""
    suspect = CUDA_SUSPECTS[name]
    places = [place for place in suspect.places if getattr(place, means)]
    if not places:
        return
    backend = CudaSaboteur(f"{name}:compile-only" if means == "ptx" else name)
    if suspect.fault:
        backend.opt_levels = (max(backend.opt_levels),)  # as wrong there as at any level
    try:
        for place in places:
            start = time.perf_counter()
            trial = try_place(backend, place, means, plan)
            yield _row(suspect, place, means, trial, time.perf_counter() - start)
    finally:
        backend.close()


def detection_table(means: Means, plan: Plan, names: Iterable[str] = tuple(CUDA_SUSPECTS)) -> list[Row]:
    """All rows, in the order of the suspects."""
    return [row for name in names for row in detect(name, means, plan)]


def as_markdown() -> str:
    """Which property has to see which suspect, as a page shows it: what `detect` then holds each of them to."""
    lines = ["| suspect | what it does | clause | seen in the code of | seen in results of |", "|---|---|---|---|---|"]
    for suspect in CUDA_SUSPECTS.values():
        for number, place in enumerate(suspect.places):
            name = "" if number else f"`{suspect.name}`"
            summary = "" if number else suspect.summary if suspect.fault else f"{suspect.summary} *Allowed.*"
            code = f"`{place.ptx}`" if place.ptx else "nothing"
            results = f"`{place.gpu}`" if place.gpu else "nothing"
            lines.append(f"| {name} | {summary} | {place.clause} | {code} | {results} |")
    return "\n".join(lines) + "\n"
