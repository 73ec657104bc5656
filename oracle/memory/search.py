"""Enumeration: every outcome of a litmus program, each with an execution that shows it, and refutations of the others.

The method is that of herd: the values that each location can hold are the least fixpoint of what the program can write
(``reading:20``); every thread is run with every read returning every such value; then every choice of reads-from is
tried, and the axioms decide. Meant for programs of up to about twelve events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from halfulp.oracle.memory.model import INITIAL, MODEL, Candidate, Event, Model
from halfulp.oracle.memory.program import (
    Cas,
    If,
    Instruction,
    Load,
    Operand,
    Outcome,
    Program,
    Rmw,
    Store,
    accesses_of,
)
from halfulp.oracle.memory.relation import Relation, members
from halfulp.oracle.sets import Verdict

Domain = Mapping[str, frozenset[int]]
"""The values that each location can hold."""

THIN_AIR = "a cycle of program order and reads-from"
SPURIOUS = "a compare-exchange fails though it reads the expected value"


# Runs of one thread.


@dataclass(frozen=True, slots=True)
class Run:
    """One way through a thread: its events, and the registers at its end (as a mapping from their names)."""

    events: tuple[Event, ...]
    registers: Mapping[str, int]


def runs(model: Model, program: Program, thread: int, domain: Domain) -> list[Run]:
    """Every run of a thread in which each read returns some value of the domain of its location."""
    dtypes = {location.name: location.dtype for location in program.locations}
    first = sum(1 for earlier in program.threads[:thread] for _ in accesses_of(earlier))
    states = _block(model, program.threads[thread], [Run((), {})], thread, first, domain, dtypes)
    return states


def _block(
    model: Model,
    block: tuple[Instruction, ...],
    states: list[Run],
    thread: int,
    position: int,
    domain: Domain,
    dtypes: Mapping[str, str],
) -> list[Run]:
    for instruction in block:
        if isinstance(instruction, If):
            middle = position + sum(1 for _ in accesses_of(instruction.then))
            taken: list[Run] = []
            other: list[Run] = []
            for state in states:
                chosen = state.registers.get(instruction.register, 0) == instruction.equals
                (taken if chosen else other).append(state)
            states = _block(model, instruction.then, taken, thread, position, domain, dtypes)
            states += _block(model, instruction.otherwise, other, thread, middle, domain, dtypes)
            position = middle + sum(1 for _ in accesses_of(instruction.otherwise))
            continue
        location = instruction.location
        dtype, values = dtypes[location], domain[location]
        after: list[Run] = []
        for state in states:
            if isinstance(instruction, Store):
                written = _value(instruction.value, state)
                event = Event(thread, position, location, None, written, instruction.order)
                after.append(Run((*state.events, event), state.registers))
                continue
            for old in values:
                for event, registers in _reads(model, instruction, old, state, thread, position, dtype):
                    after.append(Run((*state.events, event), {**state.registers, **registers}))
        states = after
        position += 1
    return states


def _value(operand: Operand, state: Run) -> int:
    return operand if isinstance(operand, int) else state.registers.get(operand, 0)


def _reads(
    model: Model, access: Load | Rmw | Cas, old: int, state: Run, thread: int, position: int, dtype: str
) -> Iterator[tuple[Event, dict[str, int]]]:
    """What an access that reads ``old`` may do: the event, and the registers that it writes."""
    location = access.location
    match access:
        case Load():
            yield Event(thread, position, location, old, None, access.order), {access.register: old}
        case Rmw():
            new = model.updated(access.kind, old, _value(access.value, state), dtype)
            registers = {access.register: model.returned(old, new)} if access.register else {}
            yield Event(thread, position, location, old, new, access.order), registers
        case Cas():
            expected = _value(access.expected, state)
            desired = _value(access.desired, state)
            equal = model.equal(old, expected, dtype)
            for exchanged in (True, False) if equal and model.spurious_failures else (equal,):
                order = access.order if exchanged else model.failure_order(access.order)
                registers = {}
                if access.register:
                    registers[access.register] = model.returned(old, desired if exchanged else old)
                if access.success:
                    registers[access.success] = model.success(exchanged)
                written = desired if exchanged else None
                failed, spurious = not exchanged, equal and not exchanged
                yield Event(thread, position, location, old, written, order, failed, spurious), registers


def domain_of(program: Program, model: Model = MODEL) -> Domain:
    """The values that each location can hold: the least fixpoint of what the program can write.

    Every access takes place once at most. So with each value go the sets of accesses that it may come from, and an
    access does not build on what it wrote itself; without this, an ``add`` would make values grow for ever.
    """
    known: dict[str, dict[int, frozenset[int]]] = {
        location.name: dict.fromkeys((location.initial, *model.invented(location.name)), frozenset({0}))
        for location in program.locations
    }
    while True:
        domain = {name: frozenset(values) for name, values in known.items()}
        before = {name: dict(values) for name, values in known.items()}
        for thread in range(len(program.threads)):
            for run in runs(model, program, thread, domain):
                origins = frozenset({0})  # bit sets of the accesses that what was read so far comes from
                for event in run.events:
                    if event.reads is not None:
                        source = before[event.location][event.reads]
                        origins = _least({mine | theirs for mine in origins for theirs in source})
                    if event.writes is not None:
                        fresh = {origin | 1 << event.access for origin in origins if not origin >> event.access & 1}
                        values = known[event.location]
                        if fresh:
                            values[event.writes] = _least(values.get(event.writes, frozenset()) | fresh)
        if known == before:
            return domain


def _least(sets: Iterable[int]) -> frozenset[int]:
    """The bit sets that contain no other one of them."""
    found = frozenset(sets)
    if len(found) == 1:
        return found
    return frozenset(one for one in found if not any(other != one and other & one == other for other in found))


def _coherent(model: Model, x: Candidate, sources: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """The choices of reads-from that program order alone does not rule out.

    One read after the other gets its source, as long as what the axioms then require, with program order for
    happens-before, has no cycle. Happens-before is never smaller, and what is required never becomes less.
    """
    open_reads = [read for read, choices in enumerate(sources) if len(choices) > 1]
    if len(open_reads) < 4:
        yield from product(*sources)
        return
    rf = [choices[0] if len(choices) == 1 else -1 for choices in sources]

    def possible(assigned: int) -> bool:
        partial = x.reading(rf, x.readers & assigned)
        required = model.required(partial, x.sb)
        return Relation.of(len(rf), ((pair.before, pair.after) for pair in required)).acyclic

    def assign(number: int, assigned: int) -> Iterator[tuple[int, ...]]:
        if not possible(assigned):
            return
        if number == len(open_reads):
            yield tuple(rf)
            return
        read = open_reads[number]
        for source in sources[read]:
            rf[read] = source
            yield from assign(number + 1, assigned | 1 << read)
        rf[read] = -1

    yield from assign(0, sum(1 << read for read in range(len(rf)) if read not in open_reads))


# Executions.


@dataclass(frozen=True)
class Execution:
    """A consistent execution.

    Attributes:
        candidate: events and reads-from.
        sw, hb: synchronizes-with and happens-before.
        mo: for each location its writes in modification order, as positions of events.
        outcome: what is observed.
        band: why the execution is unspecified; empty if it is allowed.
    """

    candidate: Candidate
    sw: Relation
    hb: Relation
    mo: Mapping[str, tuple[int, ...]]
    outcome: Outcome
    band: tuple[str, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        return self.candidate.events

    def __str__(self) -> str:
        events, rf = self.events, self.candidate.rf
        lines = [("reads-from", f"{events[read]}  <-  {events[rf[read]]}") for read in members(self.candidate.readers)]
        lines += [("synchronizes", f"{events[write]}  ->  {events[read]}") for write, read in self.sw]
        lines += [(f"order of {name}", "  <  ".join(str(events[w]) for w in order)) for name, order in self.mo.items()]
        lines += [("unspecified", reason) for reason in self.band]
        width = max((len(name) for name, _ in lines), default=0)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)


@dataclass(frozen=True)
class Race:
    """Two conflicting accesses that happens-before leaves unordered, and an execution in which they are."""

    first: Event
    second: Event
    execution: Execution

    def __str__(self) -> str:
        return f"{self.first}  and  {self.second}"


def candidates(
    program: Program, model: Model = MODEL, wanted: Outcome = (), *, hopeless: bool = False
) -> Iterator[tuple[Candidate, Outcome]]:
    """Every choice of runs and of reads-from, and the registers at the end, as names of observations.

    Args:
        wanted: only those whose registers have these values (locations in it are ignored).
        hopeless: those too that atomicity, or coherence within each thread, rules out.
    """
    domain = domain_of(program, model)
    initial = [Event(INITIAL, -1, loc.name, None, loc.initial, None) for loc in program.locations]
    choices = []
    for thread in range(len(program.threads)):
        mine = [(name.partition(":")[2], value) for name, value in wanted if name.startswith(f"{thread}:")]
        found = runs(model, program, thread, domain)
        choices.append([run for run in found if all(run.registers.get(name, 0) == value for name, value in mine)])
    written: Counter[Value] = Counter((event.location, event.writes) for event in initial)
    for chosen in _joined(model, dict(enumerate(choices)), {}, written, hopeless):
        events = initial + [event for run in chosen for event in run.events]
        sources = _sources(events, model)
        if sources is None:
            continue
        base = Candidate(events)
        registers = {f"{n}:{name}": value for n, run in enumerate(chosen) for name, value in run.registers.items()}
        final = tuple(registers.items())
        for rf in product(*sources) if hopeless else _coherent(model, base, sources):
            yield base.reading(rf), final


Value = tuple[str, int | None]
"""A location and a value of it."""


def _joined(
    model: Model, choices: Mapping[int, list[Run]], chosen: Mapping[int, Run], written: Counter[Value], hopeless: bool
) -> Iterator[tuple[Run, ...]]:
    """Every choice of one run for each thread in which each value that is read is also written.

    Where the chosen runs read what nothing chosen writes, the next thread to be chosen is one that writes it. This
    keeps programs with many updates of one location cheap.

    Args:
        choices: the runs of the threads that are not chosen yet.
        written: how often the chosen runs, and the initial writes, write each value.
    """
    wanting = _wanting(model, chosen.values(), written, hopeless)
    if not choices:
        if wanting is None:
            yield tuple(chosen[thread] for thread in sorted(chosen))
        return
    rest = dict(choices)
    for thread, found in choices.items():
        del rest[thread]
        for run in found:
            writes = Counter[Value]((e.location, e.writes) for e in run.events if e.writes is not None)
            if wanting is None or wanting in writes:
                yield from _joined(model, rest, {**chosen, thread: run}, written + writes, hopeless)
        if wanting is None:
            return
        # From here on another thread is the first to write it, and this one does not.
        rest[thread] = [run for run in found if all((e.location, e.writes) != wanting for e in run.events)]


def _wanting(model: Model, chosen: Iterable[Run], written: Counter[Value], hopeless: bool) -> Value | None:
    """A value that is read more often than it is written: each update needs a write of its own (ATOM)."""
    updates: Counter[Value] = Counter()
    for run in chosen:
        for event in run.events:
            if event.reads is None or event.reads in model.invented(event.location):
                continue
            value = (event.location, event.reads)
            updates[value] += event.is_rmw and "ATOM" in model.axioms and not hopeless
            if written[value] < max(1, updates[value]):
                return value
    return None


def _sources(events: list[Event], model: Model) -> list[list[int]] | None:
    """For each event the writes that it may read from (-1 for "reads nothing"); None if some read has none."""
    writes: dict[tuple[str, int], list[int]] = {}
    for position, event in enumerate(events):
        if event.writes is not None:
            writes.setdefault((event.location, event.writes), []).append(position)
    nothing = [-1]
    found = []
    for position, event in enumerate(events):
        if event.reads is None:
            found.append(nothing)
            continue
        sources = []
        for write in writes.get((event.location, event.reads), ()):
            # The model rules out a write that comes later in the thread, and the event itself: drop them early.
            later = write > position and events[write].thread == event.thread
            if write != position and (model.may_read_later or not later):
                sources.append(write)
        if not sources:
            invented = model.invented(event.location)
            if event.reads not in invented:
                return None
            sources = [next(i for i, e in enumerate(events) if e.location == event.location)]
        found.append(sources)
    return found


def solve(
    program: Program, model: Model, x: Candidate, registers: Outcome, wanted: Outcome = ()
) -> Iterator[Execution]:
    """The consistent executions of a candidate, one for each combination of last writes.

    Args:
        wanted: only executions that end with these values in memory (registers in it are ignored).
    """
    sw = model.synchronizes_with(x)
    hb = model.happens_before(x, sw)
    if not hb.irreflexive:
        return
    required = Relation.of(len(x.events), ((pair.before, pair.after) for pair in model.required(x, hb)))
    order = required.closure()
    if not order.irreflexive:
        return
    final = dict(wanted)
    names = [location.name for location in program.locations]
    observed = set(program.observe)
    lasts: list[list[int]] = []
    for position, name in enumerate(names):
        writes = x.at[position] & x.writers
        ends = [write for write in members(writes) if not order.rows[write]]
        if name in final:
            ends = [write for write in ends if x.events[write].writes == final[name]]
        elif name not in observed:
            ends = ends[:1]  # the last write is not observed: any will do
        lasts.append(ends)
    band = None
    for chosen in product(*lasts):
        if band is None:
            band = _band(x)
        mo = {
            name: _linear(model, x, order, members(x.at[position] & x.writers), last)
            for position, (name, last) in enumerate(zip(names, chosen, strict=True))
        }
        values = dict(registers)
        for name, last in zip(names, chosen, strict=True):
            values[name] = x.events[last].writes or 0
        outcome = tuple((name, values.get(name, 0)) for name in sorted(observed))
        yield Execution(x, sw, hb, mo, outcome, band)


def _band(x: Candidate) -> tuple[str, ...]:
    reasons = []
    if not (x.sb | x.reads_from).acyclic:
        reasons.append(THIN_AIR)
    if any(event.spurious for event in x.events):
        reasons.append(SPURIOUS)
    return tuple(reasons)


def _linear(model: Model, x: Candidate, order: Relation, writes: Iterable[int], last: int) -> tuple[int, ...]:
    """A total order of ``writes`` that contains ``order`` and ends with ``last``, which has to precede nothing.

    By ATOM, an update comes right after its source. What else precedes the update precedes the source, and what follows
    the source follows the update; so that a source and its updates can be placed as one.
    """
    updates = {x.rf[u]: u for u in members(x.readers & x.writers)} if "ATOM" in model.axioms else {}
    sources = {update: source for source, update in updates.items()}
    tail = [last]
    while tail[0] in sources:
        tail.insert(0, sources[tail[0]])
    rest = [write for write in writes if write not in tail]
    result: list[int] = []
    while rest:
        chosen = updates.get(result[-1], -1) if result else -1
        if chosen not in rest:
            chosen = next(w for w in rest if not any((other, w) in order for other in rest))
        result.append(chosen)
        rest.remove(chosen)
    return (*result, *tail)


# Questions.


@dataclass(frozen=True)
class Outcomes:
    """All that a program may do.

    Attributes:
        program: the program.
        allowed: the outcomes that have to be accepted, each with a witness.
        unspecified: further outcomes that only some readings allow, each with a witness.
        races: pairs of racing accesses. If there is one, nothing is claimed of any outcome.
        band_races: races in executions that are themselves unspecified. If there is one, no outcome is forbidden.
    """

    program: Program
    allowed: Mapping[Outcome, Execution]
    unspecified: Mapping[Outcome, Execution]
    races: tuple[Race, ...]
    band_races: tuple[Race, ...]

    def verdict(self, outcome: Outcome | Mapping[str, int]) -> Verdict:
        """What is said of an outcome; names that it leaves out may have any value."""
        if self.races:
            return Verdict.NO_CLAIM
        if self.witness(outcome, self.allowed):
            return Verdict.ALLOWED
        if self.band_races or self.witness(outcome, self.unspecified):
            return Verdict.UNSPECIFIED
        return Verdict.FORBIDDEN

    def witness(
        self, outcome: Outcome | Mapping[str, int], among: Mapping[Outcome, Execution] | None = None
    ) -> Execution | None:
        """An execution with this outcome, an allowed one if there is any; None if there is none."""
        asked = set(outcome.items() if isinstance(outcome, Mapping) else outcome)
        for table in (self.allowed, self.unspecified) if among is None else (among,):
            for full, execution in table.items():
                if asked <= set(full):
                    return execution
        return None


def executions(program: Program, model: Model = MODEL, wanted: Outcome = ()) -> Iterator[Execution]:
    """The consistent executions (for each choice of runs and reads-from, one for each combination of last writes)."""
    for x, registers in candidates(program, model, wanted):
        yield from solve(program, model, x, registers, wanted)


def allowed(program: Program, model: Model = MODEL) -> Outcomes:
    """Every outcome of a program, with witnesses."""
    good: dict[Outcome, Execution] = {}
    band: dict[Outcome, Execution] = {}
    races: dict[tuple[int, int], Race] = {}
    band_races: dict[tuple[int, int], Race] = {}
    plain = any(access_order is None for access_order in _orders(program))
    for x, registers in candidates(program, model):
        if not plain and _nothing_new(program, x, registers, good):
            continue
        for execution in solve(program, model, x, registers):
            (band if execution.band else good).setdefault(execution.outcome, execution)
            for race in _races(execution) if plain else ():
                key = (race.first.access, race.second.access)
                (band_races if execution.band else races).setdefault(key, race)
    order = sorted(good), sorted(outcome for outcome in band if outcome not in good)
    return Outcomes(
        program,
        {outcome: good[outcome] for outcome in order[0]},
        {outcome: band[outcome] for outcome in order[1]},
        tuple(races.values()),
        tuple(race for key, race in band_races.items() if key not in races),
    )


def _nothing_new(program: Program, x: Candidate, registers: Outcome, good: Mapping[Outcome, Execution]) -> bool:
    """Whether every outcome that a candidate could have has a witness already."""
    known = dict(registers)
    ends: list[set[int]] = []
    for name in sorted(program.observe):
        if ":" in name:
            ends.append({known.get(name, 0)})
        else:
            ends.append({event.writes for event in x.events if event.location == name and event.writes is not None})
    names = sorted(program.observe)
    return all(tuple(zip(names, values, strict=True)) in good for values in product(*ends))


def _orders(program: Program) -> Iterator[str | None]:
    return (access.order for access in program.accesses)


def _races(execution: Execution) -> Iterator[Race]:
    """Conflicting accesses, one of them plain, that happens-before does not order."""
    x, hb = execution.candidate, execution.hb
    for b, second in enumerate(x.events):
        for a in members(x.at[b] & (1 << b) - 1):
            first = x.events[a]
            if (
                INITIAL not in (first.thread, second.thread)
                and first.thread != second.thread
                and (first.writes is not None or second.writes is not None)
                and (first.order is None or second.order is None)
                and (a, b) not in hb
                and (b, a) not in hb
            ):
                yield Race(first, second, execution)


def verdict(program: Program, outcome: Outcome | None = None, model: Model = MODEL) -> Verdict:
    """The verdict on one outcome (the weak one by default), looking only at executions that show it.

    The same as ``allowed(program, model).verdict(outcome)``, and faster.
    """
    asked = program.weak if outcome is None else outcome
    if any(order is None for order in _orders(program)):
        return allowed(program, model).verdict(asked)
    found = Verdict.FORBIDDEN
    for execution in executions(program, model, asked):
        if not execution.band:
            return Verdict.ALLOWED
        found = Verdict.UNSPECIFIED
    return found
