"""Litmus programs drawn by hypothesis: run, looked at, and shrunk to a small one where something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import prod

from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from halfulp.adapters.protocol import Adapter, HasLitmus, HasLitmusArtifact
from halfulp.oracle.memory.program import Access, Cas, If, Load, Location, Program, Rmw, Store, Thread, map_accesses
from halfulp.oracle.memory.typing import weakened
from halfulp.properties.litmus import CONFIGURATIONS, NO_LITMUS, describe, instances, run, try_instructions
from halfulp.properties.litmus_programs import everything_observed, programs
from halfulp.properties.plan import Plan, generator
from halfulp.properties.replay import RecordedLitmus, encode
from halfulp.properties.results import Finding, Tally, Trial

EVENTS = 12
"""Accesses of a program at most."""

MOST_CANDIDATES = 1000
"""Choices of reads-from of a program at most: the model enumerates so many in about 0.3 s (`candidates`)."""

TRIES = 4
"""How often a smaller program is run before it counts as right: what threads show by chance need not show at once."""

MOST_STEPS = 200
"""Simpler programs that are tried at most."""

NAME = "drawn"


def number_of_programs(plan: Plan) -> int:
    """How many are drawn: compiling one takes longer than compiling a kernel."""
    return plan.kernels // 3


def candidates(program: Program) -> int:
    """About how many choices of reads-from there are: for each read the writes of its location that it may see."""
    writes = {location.name: 1 for location in program.locations}
    for access in program.accesses:
        writes[access.location] += not isinstance(access, Load)
    reads = (access for access in program.accesses if not isinstance(access, Store))
    return prod(writes[access.location] - (not isinstance(access, Load)) for access in reads)


def smaller(program: Program) -> Iterator[Program]:
    """Simpler programs, the boldest steps first.

    Without a thread; without an instruction; of a branch, with what is in it; with a load for an update; with a weaker
    order; with 0 for a value; on u32.
    """
    for number, thread in enumerate(program.threads):
        shorter: list[Thread] = [()]
        for at, instruction in enumerate(thread):
            blocks = (instruction.then, instruction.otherwise) if isinstance(instruction, If) else ()
            shorter += [(*thread[:at], *block, *thread[at + 1 :]) for block in ((), *blocks)]
        for block in shorter:
            threads = (*program.threads[:number], block, *program.threads[number + 1 :])
            yield from _valid(tuple(one for one in threads if one), program.locations)
    for position, access in enumerate(program.accesses):
        for simpler in _simpler(access):
            with suppress(ValueError):  # a register may not be written any more
                changed = map_accesses(program, lambda at, one, p=position, s=simpler: s if at == p else one)  # type: ignore[misc]
                yield everything_observed(changed.threads, program.locations)
    plain = tuple(replace(location, dtype="u32", initial=0) for location in program.locations)
    yield from _valid(program.threads, plain)
    yield from _valid(program.threads, tuple(replace(location, dtype="u32") for location in program.locations))


def _simpler(access: Access) -> Iterator[Access]:
    match access:
        case Rmw() | Cas():
            if access.register:
                yield Load(access.register, access.location)
    yield from weakened(access)
    match access:
        case Store() | Rmw():
            if access.value != 0:
                yield replace(access, value=0)
        case Cas():
            if access.expected != 0:
                yield replace(access, expected=0)
            if access.desired != 0:
                yield replace(access, desired=0)


def _valid(threads: tuple[Thread, ...], locations: tuple[Location, ...]) -> Iterator[Program]:
    """The program, unless it is none."""
    with suppress(ValueError):
        if threads:
            yield everything_observed(threads, locations)


class _Drawn:
    """One search: what was counted, and what was found."""

    def __init__(self, adapter: Adapter, plan: Plan) -> None:
        self.adapter = adapter
        self.plan = plan
        self.tallies: dict[str, Tally] = {}
        self.finding: Finding | None = None
        self.seen: set[Program] = set()

    def tried(self, program: Program) -> bool:
        """Look at a program and run it; whether something is wrong. Counts are kept."""
        if program not in self.seen:
            self.seen.add(program)
            self.finding = self._looked_at(program) or self._run(program)
        return self.finding is not None

    def shrink(self, program: Program) -> None:
        """Simplify a wrong program as long as the same way of trying it finds something."""
        looked = isinstance(self.finding, Finding) and self.finding.id.startswith("litmus-ir")
        seen = {program}
        pending = smaller(program)
        for _ in range(MOST_STEPS):
            simpler = next((one for one in pending if one not in seen), None)
            if simpler is None:
                return
            seen.add(simpler)
            for number in range(1 if looked else TRIES):
                finding = self._looked_at(simpler) if looked else self._run(simpler, number)
                if finding is not None:
                    self.finding = finding
                    pending = smaller(simpler)
                    break

    def _run(self, program: Program, number: int = 0) -> Finding | None:
        """Run it, each program in one way, in turn with the optimisation levels."""
        turn = len(self.seen) + number
        levels = tuple(self.adapter.opt_levels)
        options = CONFIGURATIONS[turn % len(CONFIGURATIONS)]
        options = replace(
            options,
            seed=self.plan.seed + number,
            opt_level=levels[turn // len(CONFIGURATIONS) % len(levels)],
            instances=instances(self.plan, options, len(program.threads)),
        )
        tally = Tally(f"litmus[{NAME}]/{describe(options)}/O{options.opt_level}", "11")
        finding = run(self.adapter, program, options, tally)
        self._count(tally)
        if finding is not None:
            finding.token = encode(RecordedLitmus(tally.id, finding.clause, program, options, finding.forbidden))
        return finding

    def _looked_at(self, program: Program) -> Finding | None:
        """Its instructions at every level, if the backend shows them."""
        if not isinstance(self.adapter, HasLitmusArtifact):
            return None
        trial = try_instructions(self.adapter, [program], NAME)
        for tally in trial.tallies:
            self._count(tally)
        return trial.findings[0] if trial.findings else None

    def _count(self, tally: Tally) -> None:
        if self.finding:
            return  # of simpler programs nothing is counted
        total = self.tallies.setdefault(tally.id, Tally(tally.id, tally.chapter, tally.state, tally.reason))
        if tally.state != "run":
            return
        total.state, total.reason = "run", ""
        for name in ("allowed", "forbidden", "unspecified", "no_claim", "seconds"):
            setattr(total, name, getattr(total, name) + getattr(tally, name))
        for clause, count in tally.cases.items():
            total.cases[clause] = total.cases.get(clause, 0) + count


def try_drawn(adapter: Adapter, plan: Plan) -> Trial:
    """Draw programs until one does something forbidden, and shrink it.

    Returns:
        A trial with the counts of all programs drawn, and the finding of the smallest one.
    """
    if not isinstance(adapter, HasLitmus):
        return Trial([Tally(f"litmus[{NAME}]", "11", "unsupported", NO_LITMUS)])
    search = _Drawn(adapter, plan)
    wrong: list[Program] = []

    # Shrinking is ours: hypothesis would run a program a thousand times, and what threads show by chance misleads it.
    @seed(int(generator(plan, "litmus", NAME).integers(0, 2**63)))
    @settings(
        max_examples=number_of_programs(plan),
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(events=EVENTS))
    def every_outcome_is_allowed(program: Program) -> None:
        assume(candidates(program) <= MOST_CANDIDATES)
        if not wrong and search.tried(program):
            wrong.append(program)

    every_outcome_is_allowed()
    if wrong:
        search.shrink(wrong[0])
    trial = Trial(list(search.tallies.values()), [search.finding] if search.finding else [])
    ran = [tally for tally in trial.tallies if tally.state == "run"]
    if ran and not trial.findings and not any(tally.allowed for tally in ran):
        trial.findings.append(Finding(f"litmus[{NAME}]", "intent:11-a", message="vacuous: no program had a claim."))
    return trial
