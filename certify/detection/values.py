"""The detection table: every suspect, as a backend, put on trial by the suite itself.

A clause whose property no saboteur can trip is not tested. So each suspect names the clauses that it breaks, and a row
of the table says which program caught it under which of them. Allowed variants have rows too: nothing may catch them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from halfulp.certify.saboteurs.values import Saboteur
from halfulp.oracle.ops import operation, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.suspects import SUSPECTS, Suspect, suspect
from halfulp.oracle.suspects.diagnose import nodes
from halfulp.properties.known import KNOWN
from halfulp.properties.plan import Plan
from halfulp.properties.programs import Subject, try_programs
from halfulp.properties.results import Trial
from halfulp.properties.trial import try_signature
from halfulp.properties.typed import acceptance_table, rejection_table, try_acceptances, try_rejections

LEVELS = (0,)
"""A saboteur is equally wrong at every optimisation level."""

MOST_SIGNATURES = 3
"""Signatures that are tried at most for one clause of one suspect."""


@dataclass(frozen=True)
class Row:
    """What the suite says of one suspect under one clause.

    Attributes:
        suspect: its name.
        fault: False for an allowed variant.
        clause: the clause that must catch it; ``""`` for an allowed variant.
        program: id of the program that caught it, ``""`` where none did. For a variant, of a program that must not.
        forbidden, judged: forbidden results of that program, and results with a claim. For a variant, of all.
        depth: of the plan that caught it: the budget it takes.
    """

    suspect: str
    fault: bool
    clause: str
    program: str = ""
    forbidden: int = 0
    judged: int = 0
    depth: str = ""

    @property
    def caught(self) -> bool:
        return self.forbidden > 0

    @property
    def right(self) -> bool:
        """The suite does what it has to."""
        return self.caught == self.fault


def candidates(chosen: Suspect, clause: str) -> Iterator[Signature]:
    """Signatures on which a suspect acts and which a clause governs: the narrowest, the widest, then the middle one.

    ``clause`` may be empty: any.
    """
    found = [
        signature
        for signature in signatures()
        if chosen.applies(signature) and (not clause or clause in operation(signature.op).clauses(signature))
    ]
    found.sort(key=lambda signature: sum(fmt.width for fmt in (*signature.formats, signature.result_format)))
    picked = [found[at] for at in dict.fromkeys((0, len(found) - 1, len(found) // 2))] if found else []
    yield from picked[:MOST_SIGNATURES]


def trials(chosen: Suspect, clause: str, plan: Plan) -> Iterator[Trial]:
    """The trials that should find a suspect out under a clause (or, for an empty clause, leave it alone)."""
    backend = Saboteur(chosen.name, LEVELS)
    if chosen.typing_rule is not None:
        if clause in rejection_table():
            yield try_rejections(backend, clause)
        if clause in acceptance_table():
            yield try_acceptances(backend, clause, plan, explain=False)
        return
    for signature in candidates(chosen, clause):
        yield try_signature(backend, signature, plan, explain=False)
    if chosen.kernel_rule is not None or not clause:
        subjects = [subject for subject in _known_subjects(clause, plan) if _acts_on(chosen, subject)]
        if subjects:
            yield try_programs(backend, subjects, explain=False)


@cache
def _known_subjects(clause: str, plan: Plan) -> tuple[Subject, ...]:
    return tuple(s for known in KNOWN if clause in ("", known.clause) for s in known.subjects(plan))


def _acts_on(chosen: Suspect, subject: Subject) -> bool:
    """The suspect has a part in the program."""
    if chosen.kernel_rule is not None:
        return (
            chosen.kernel_rule(subject.kernel, [bits[:1] if bits.ndim else bits for bits in subject.inputs]) is not None
        )
    return any(map(chosen.applies, nodes(subject.kernel)))


def _row(chosen: Suspect, clause: str, plan: Plan) -> Row:
    judged = 0
    first = ""
    for trial in trials(chosen, clause, plan):
        judged += trial.judged
        first = first or next((tally.id for tally in trial.tallies), "")
        for finding in trial.findings:
            if not clause or clause == finding.clause or clause in finding.clauses:
                count = max(1, finding.forbidden)
                return Row(chosen.name, chosen.fault, clause, finding.id, count, finding.judged, plan.depth)
    return Row(chosen.name, chosen.fault, clause, "" if chosen.fault else first, 0, judged, plan.depth)


def detect(name: str, seed: int = 0) -> list[Row]:
    """The rows of one suspect: one for each of its clauses, or a single one for an allowed variant.

    The quick budget is tried first; a fault that it misses gets the default one.
    """
    chosen = suspect(name)
    rows = []
    for clause in chosen.clauses or ("",):
        row = _row(chosen, clause, Plan(seed, "quick"))
        rows.append(row if row.right or not row.fault else _row(chosen, clause, Plan(seed, "standard")))
    return rows


def detection_table(seed: int = 0, names: Iterable[str] = tuple(SUSPECTS)) -> list[Row]:
    """All rows, in the order of the suspects."""
    return [row for name in names for row in detect(name, seed)]


def as_markdown(rows: Sequence[Row]) -> str:
    """The table as a page shows it."""
    lines = ["| suspect | clause | caught by | forbidden of judged | budget |", "|---|---|---|---|---|"]
    for row in rows:
        where = f"`{row.program}`" if row.caught else "not caught" if row.fault else "allowed, and not reported"
        clause = row.clause or "none"
        lines.append(f"| `{row.suspect}` | {clause} | {where} | {row.forbidden} / {row.judged} | {row.depth} |")
    return "\n".join(lines) + "\n"
