"""Refutations: why a litmus program cannot show an outcome, as cycles that a person can follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from halfulp.oracle.memory.model import INITIAL, MODEL, Candidate, Event, Model, Required
from halfulp.oracle.memory.program import Outcome, Program, outcome_text
from halfulp.oracle.memory.relation import Relation, members
from halfulp.oracle.memory.search import Outcomes, candidates, domain_of, runs, verdict
from halfulp.oracle.sets import Verdict


@dataclass(frozen=True)
class Step:
    """One step of a cycle: ``first`` comes before ``second``, and why."""

    first: Event
    second: Event
    why: str

    def __str__(self) -> str:
        return f"{self.first}  before  {self.second}\n    {self.why}"


@dataclass(frozen=True)
class Contradiction:
    """Why one choice of reads-from is impossible: a cycle, and the axioms on it.

    Attributes:
        candidate: events and reads-from.
        axioms: the axioms that the cycle rests on.
        cycle: its steps. All are of modification order, or all of happens-before.
    """

    candidate: Candidate
    axioms: tuple[str, ...]
    cycle: tuple[Step, ...]

    def __str__(self) -> str:
        events, rf = self.candidate.events, self.candidate.rf
        lines = [f"  {events[read]}  <-  {events[rf[read]]}" for read in members(self.candidate.readers)]
        steps = [f"  {line}" for step in self.cycle for line in str(step).splitlines()]
        return "\n".join(("if", *lines, f"then {', '.join(self.axioms)} cannot hold:", *steps))


@dataclass(frozen=True)
class Refutation:
    """Why an outcome is impossible.

    Attributes:
        program, outcome: what was asked.
        contradictions: one for each choice of reads-from that would give the outcome.
        missing: where there is no such choice, values that nothing can write, or that go together in no run.
    """

    program: Program
    outcome: Outcome
    contradictions: tuple[Contradiction, ...]
    missing: str = ""

    def __str__(self) -> str:
        head = f"{outcome_text(self.outcome)} is forbidden"
        if self.missing:
            return f"{head}: {self.missing}"
        return "\n".join((head, *map(str, self.contradictions)))


def why_not(program: Program, outcome: Outcome | None = None, model: Model = MODEL) -> Refutation:
    """The axioms that an outcome (the weak one by default) violates, with the cycles.

    Raises:
        ValueError: the outcome is not forbidden.
    """
    asked = program.weak if outcome is None else outcome
    said = verdict(program, asked, model)
    if said is not Verdict.FORBIDDEN:
        raise ValueError(f"{outcome_text(asked)} is not forbidden but {said.name.lower().replace('_', ' ')}")
    found = [_contradiction(program, model, x, asked) for x, _ in candidates(program, model, asked, hopeless=True)]
    cycles = tuple(contradiction for contradiction in found if contradiction)
    return Refutation(program, asked, cycles, "" if cycles else _missing(program, model, asked))


def _missing(program: Program, model: Model, asked: Outcome) -> str:
    """Why no choice of runs and reads-from gives these registers."""
    domain = domain_of(program, model)
    for name, value in asked:
        thread, _, register = name.rpartition(":")
        if thread:
            seen = {run.registers.get(register, 0) for run in runs(model, program, int(thread), domain)}
        else:
            seen = set(domain[name])
        if value not in seen:
            return f"{name} can only be {', '.join(map(str, sorted(seen)))}, from what the program can write"
    return "no run of the threads gives these values, each read having a write to read from"


def _contradiction(program: Program, model: Model, x: Candidate, asked: Outcome) -> Contradiction | None:
    """Why no execution with these events and this reads-from has the outcome; None if it lacks a write."""
    sw = model.synchronizes_with(x)
    hb = model.happens_before(x, sw)
    for event in range(len(x.events)):
        if (event, event) in hb:
            path = (x.sb | sw).path(event, event)
            legs = (Step(x.events[a], x.events[b], _why_hb(x, sw, a, b)) for a, b in pairwise(path))
            return Contradiction(x, ("hb",), tuple(legs))
    required = {(pair.before, pair.after): pair for pair in model.required(x, hb)}
    names = {location.name for location in program.locations}
    ends = [(name, value) for name, value in asked if name in names]
    # Where the last write is asked for, any write of that value may be it. Each choice fails; the first is shown.
    for last in product(*(_writes_of(x, name, value) for name, value in ends)):
        final = {(w, e): Required(w, e, "final", (w, e)) for e in last for w in members(x.at[e] & x.writers) if w != e}
        pairs = {**final, **required}
        relation = Relation.of(len(x.events), pairs)
        # A cycle without initial writes is easier to follow.
        threads = sum(1 << i for i, event in enumerate(x.events) if event.thread != INITIAL)
        cycle = _cycle(relation.only(threads, threads)) or _cycle(relation)
        chain = [pairs[pair] for pair in cycle]
        steps = tuple(Step(x.events[p.before], x.events[p.after], _why(x, sw, required, p)) for p in chain)
        used: dict[str, None] = {}
        for pair in chain:
            _axioms(required, pair, used)
        return Contradiction(x, tuple(used), steps)
    return None  # nothing writes the value that is asked for


def _cycle(relation: Relation) -> list[tuple[int, int]]:
    """A shortest cycle, as pairs; empty if there is none."""
    paths = [relation.path(start, start) for start in range(len(relation.rows))]
    lengths = sorted((len(path), start) for start, path in enumerate(paths) if path)
    return list(pairwise(paths[lengths[0][1]])) if lengths else []


def _writes_of(x: Candidate, name: str, value: int) -> list[int]:
    return [i for i, event in enumerate(x.events) if event.location == name and event.writes == value]


def _axioms(required: Mapping[tuple[int, int], Required], pair: Required, used: dict[str, None]) -> None:
    """Collect the axioms that a pair rests on."""
    if pair.axiom == "ATOM":
        _axioms(required, required[pair.cause], used)
    if pair.axiom != "final":
        used[pair.axiom] = None


def _why(x: Candidate, sw: Relation, required: Mapping[tuple[int, int], Required], pair: Required) -> str:
    first, second = pair.cause
    match pair.axiom:
        case "final":
            return "the second is the last write"
        case "RMW":
            return "RMW: the one reads from the other"
        case "ATOM":
            base = f"({_why(x, sw, required, required[first, second])})"
            if second == pair.after:
                return f"ATOM: it comes right after {x.events[first]}, which is before {x.events[second]} {base}"
            return f"ATOM: {x.events[second]} comes right after {x.events[pair.after]}, and it is before that {base}"
    path = (x.sb | sw).path(first, second)
    legs = (f" -{'sw' if (a, b) in sw else 'sb'}-> {x.events[b]}" for a, b in pairwise(path))
    return f"{pair.axiom}: {x.events[first]}{''.join(legs)}"


def _why_hb(x: Candidate, sw: Relation, a: int, b: int) -> str:
    return "it synchronizes with it" if (a, b) in sw else "program order"


def forbidden_outcomes(program: Program, outcomes: Outcomes, limit: int = 4096) -> list[Outcome]:
    """The forbidden outcomes made of values that each name can have by itself; empty if there are more than ``limit``.

    All outcomes with other values are forbidden too.
    """
    domain = domain_of(program)
    possible = []
    for name in sorted(program.observe):
        thread, _, register = name.rpartition(":")
        if thread:
            found = {run.registers.get(register, 0) for run in runs(MODEL, program, int(thread), domain)}
        else:
            found = set(domain[name])
        possible.append([(name, value) for value in sorted(found)])
    if prod(map(len, possible)) > limit:
        return []
    return [outcome for outcome in product(*possible) if outcomes.verdict(outcome) is Verdict.FORBIDDEN]
