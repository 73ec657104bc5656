"""The detection table of atomics: every suspect of chapter 11, as a backend, put on trial by the suite itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from halfulp.adapters.protocol import Adapter, HasLitmusArtifact
from halfulp.certify.detection.values import Row
from halfulp.certify.saboteurs import orders
from halfulp.certify.saboteurs.atomics import LITMUS_SUSPECTS
from halfulp.oracle.memory.catalogue import FAMILIES
from halfulp.oracle.memory.histories import KINDS
from halfulp.properties.contests import try_contest
from halfulp.properties.litmus import try_orders
from halfulp.properties.litmus_items import VALUES, family_trials, try_family_instructions, try_orders_of
from halfulp.properties.plan import Depth, Plan
from halfulp.properties.results import Trial

_TYPING = ("intent:11-e", "intent:11-g")
_LATE = ("three locations", "two locations", "update")
"""Families that take longest."""


def trials(backend: Adapter, clause: str, plan: Plan) -> Iterator[Trial]:
    """The properties that answer for a clause, those first that are most likely to find something.

    For an empty clause all of them.
    """
    if clause in _TYPING or not clause:
        for typing in _TYPING:
            if clause in (typing, ""):
                yield try_orders(backend, typing)
    if clause in _TYPING:
        return
    instructions = isinstance(backend, HasLitmusArtifact)
    if instructions and clause in orders.CLAUSES:
        yield try_orders_of(backend, "u64")
        yield try_family_instructions(backend, "plain", plan)
    if instructions and clause not in orders.CLAUSES:
        kinds = [kind for kind in KINDS if clause != "intent:11-c" or kind == "cas"]
        contests = [(kind, ("i32", "u64")[(place + half) % 2]) for half in (0, 1) for place, kind in enumerate(kinds)]
        yield from (try_contest(backend, *contest, plan) for contest in contests[: len(kinds)])
        yield try_orders_of(backend, "u64")
        yield from (try_contest(backend, *contest, plan) for contest in contests[len(kinds) :])
    early = [family for family in (VALUES, *FAMILIES) if family not in _LATE]
    late = [family for family in _LATE if clause or plan.depth != "quick"]
    for family in early[1:] if instructions else early:
        if clause or family == "operation":
            yield from family_trials(backend, family, plan)
    if instructions and clause not in orders.CLAUSES:
        yield from family_trials(backend, VALUES, plan)
    for family in late:
        yield from family_trials(backend, family, plan)


def _row(name: str, clause: str, plan: Plan) -> Row:
    chosen = LITMUS_SUSPECTS[name]
    judged = 0
    first = ""
    for trial in trials(chosen.make(), clause, plan):
        judged += trial.judged
        first = first or next((tally.id for tally in trial.tallies if tally.unspecified), "")
        for finding in trial.findings:
            if clause in ("", finding.clause) or clause in finding.clauses:
                return Row(
                    name, chosen.fault, clause, finding.id, max(1, finding.forbidden), finding.judged, plan.depth
                )
    return Row(name, chosen.fault, clause, "" if chosen.fault else first, 0, judged, plan.depth)


def detect(name: str, seed: int = 0, depths: Iterable[Depth] = ("quick", "standard")) -> list[Row]:
    """The rows of one suspect: one for each of its clauses, or a single one for an allowed variant.

    Whether threads meet at the right moment is a matter of luck: a fault that a budget misses gets the next one.
    """
    chosen = LITMUS_SUSPECTS[name]
    rows = []
    for clause in chosen.clauses or ("",):
        for depth in depths:
            row = _row(name, clause, Plan(seed, depth))
            if row.right:
                break
        rows.append(row)
    return rows


def detection_table(seed: int = 0, names: Iterable[str] = tuple(LITMUS_SUSPECTS)) -> list[Row]:
    """All rows, in the order of the suspects."""
    return [row for name in names for row in detect(name, seed)]
