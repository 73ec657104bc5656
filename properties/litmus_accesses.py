"""Judges what a backend made of the accesses of a litmus program: a sequence of instructions for each path of a thread.

On a machine that shows few reorderings, running cannot tell a release from a relaxed store. The instructions can: each
access has to be one instruction of the right width on the right location, at least as strong as the program says,
with the failure order that follows from it, and in its place. What is stronger, or stands in for a missing order as a
fence next to the access, is right too. Values are not judged here.

**Branches.** A thread with branches has several paths: sequences of accesses, each under conditions on what the reads
returned. Its instructions have paths too. Each path of the instructions has to be right for a path of the program, and
each path of the program that values can take needs a path of the instructions that is right for it; two paths whose
conditions contradict each other do not belong together. This finds nothing in a right translation: an execution takes
one path of either kind, their conditions hold together, and the accesses along them are the same. It may miss a fault
that is on no path without repetition, or that looks like what another path of the program asks for.

How instructions are read is a matter of their language (`litmus_ir` for LLVM's, `litmus_ptx` for PTX); here they are
data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from halfulp.oracle.formats import format_of
from halfulp.oracle.memory.program import (
    FAILURE_ORDERS,
    Access,
    Cas,
    Load,
    Program,
    Rmw,
    Store,
    access_text,
    written_registers,
)
from halfulp.properties.litmus_wanted import Fact, Wanted, consistent, implied, wanted_paths

RELEASING = ("release", "acq_rel", "seq_cst")
ACQUIRING = ("acquire", "acq_rel", "seq_cst")
ATOMIC = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
"""Orders of atomic accesses. Any other word is weaker than all of ours."""


@dataclass(frozen=True)
class Emitted:
    """One instruction.

    Attributes:
        op: ``"load"``, ``"store"``, ``"rmw"``, ``"cas"`` or ``"fence"``.
        location: position of the location in the program; -1 where the address is not simply one of them.
        width: bits.
        order: one of `ATOMIC`, ``""`` for a plain access; other words for what is weaker. ``failure`` is that of a
            compare-exchange that fails.
        text: the instruction as it stands.
        scope: ``""`` if it synchronises with every thread there may be, else the name of what it is limited to.
        weak: a compare-exchange that may fail spuriously.
        kind: of an update, as in the program, with ``" signed"`` or ``" unsigned"`` after max and min; ``""`` where
            the reader does not say.
    """

    op: str
    location: int
    width: int
    order: str
    text: str
    failure: str = ""
    scope: str = ""
    weak: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Path:
    """Instructions along one way through a thread, and what is known of their results. Facts may be left out."""

    instructions: tuple[Emitted, ...]
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Fault:
    """What is wrong with an access, the clause that says so, and the instruction where there is one."""

    clause: str
    thread: int
    access: str
    message: str
    instruction: str = ""

    def __str__(self) -> str:
        shown = f": `{self.instruction}`" if self.instruction else ""
        return f"thread {self.thread}, `{self.access}`: {self.message}{shown}"


class UnreadableError(ValueError):
    """The instructions of a litmus program cannot be read, or not be judged."""


def judge(program: Program, threads: Mapping[int, Sequence[Path]]) -> list[Fault]:
    """What is wrong with the instructions of a program; empty where nothing is.

    Args:
        threads: the paths of the instructions of each thread.

    Raises:
        UnreadableError: a thread is missing.
    """
    found: list[Fault] = []
    for number, thread in enumerate(program.threads):
        if number not in threads:
            raise UnreadableError(f"there is no function thread{number}")
        found += _judge_thread(program, number, wanted_paths(program, thread), threads[number])
    return found


def _judge_thread(program: Program, number: int, wanted: Sequence[Wanted], emitted: Sequence[Path]) -> list[Fault]:
    merged = [_with_fences(path) for path in emitted if consistent(path.facts)]
    pairs = [[_Pairing(program, number, want, path) for want in wanted] for path in merged]
    found: list[Fault] = []
    for row in pairs:
        together = [pairing for pairing in row if not pairing.contradicts]
        found += _least(together) if together else []  # no values lead along this path
    for want, column in zip(wanted, zip(*pairs, strict=True), strict=False):
        if want.needed:
            found += _least([pairing for pairing in column if not pairing.contradicts] or column)
    return list(dict.fromkeys(found))


def _least(pairings: Sequence[_Pairing]) -> list[Fault]:
    """The faults of the pairing that has fewest."""
    best = min(pairings, key=lambda pairing: (pairing.mismatch, len(pairing.faults), -len(pairing.matched)))
    return best.faults


# Fences.


def _with_fences(path: Path) -> Path:
    """Fences merged into the access that they stand next to: before it for a release, after it for an acquire."""
    result: list[Emitted] = []
    moved: dict[int, int] = {}
    pending = ""
    for at, instruction in enumerate(path.instructions):
        if instruction.op == "fence":
            if instruction.scope:
                continue
            if result and instruction.order in ACQUIRING and result[-1].order:
                result[-1] = _stronger(result[-1], acquires=True)
            pending = instruction.order
            continue
        if pending in RELEASING and instruction.order:
            instruction = _stronger(instruction, releases=True)
        pending = ""
        moved[at] = len(result)
        result.append(instruction)
    facts = tuple(replace(fact, at=moved[fact.at]) for fact in path.facts)
    return Path(tuple(result), facts)


def _stronger(instruction: Emitted, *, acquires: bool = False, releases: bool = False) -> Emitted:
    acquires = acquires or instruction.order in ACQUIRING
    releases = releases or instruction.order in RELEASING
    order = "acq_rel" if acquires and releases else "acquire" if acquires else "release"
    failure = "acquire" if acquires and instruction.failure else instruction.failure
    return replace(instruction, order=order, failure=failure)


def enough(emitted: str, wanted: str) -> bool:
    """Whether the order of an instruction is at least as strong as that of an access."""
    if emitted not in ATOMIC:
        return False
    needs = {
        "relaxed": (ATOMIC,),
        "acquire": (ACQUIRING,),
        "release": (RELEASING,),
        "acq_rel": (ACQUIRING, RELEASING),
    }[wanted]
    return all(emitted in group for group in needs)


# One path beside the other.

_OPS: dict[type[Access], str] = {Load: "load", Store: "store", Rmw: "rmw", Cas: "cas"}


class _Pairing:
    """Pairs the accesses of a path of the program with the instructions of a path of the backend's.

    Atomic accesses have to be there in the order of the program. A plain access, or a relaxed load that nobody looks
    at, may be gone; a plain one may have moved, but not out from before a release or from behind an acquire; a plain
    load may be there too many, a plain store only where there is one to its location.

    Attributes:
        faults: what is wrong.
        mismatch: accesses and instructions do not pair up, and what follows could not be judged.
        matched: for each atomic access that has an instruction, where that is.
        contradicts: the conditions of the two paths exclude each other.
    """

    def __init__(self, program: Program, number: int, wanted: Wanted, path: Path) -> None:
        self.program = program
        self.number = number
        self.expected = wanted.accesses
        self.emitted = path.instructions
        self.facts = path.facts
        self.places = {location.name: place for place, location in enumerate(program.locations)}
        self.matched: dict[int, int] = {}
        self.mismatch = False
        try:
            self.faults = [*self._atomics(), *self._plain(), *self._invented()]
        except _Mismatch as mismatch:
            self.faults = [mismatch.fault]
            self.mismatch = True
        accesses = {at: index for index, at in self.matched.items()}
        theirs = [replace(fact, at=accesses[fact.at]) for fact in path.facts if fact.at in accesses]
        facts = [*wanted.facts, *theirs]
        self.contradicts = not consistent([*facts, *implied(program, self.expected, facts)])

    def _fault(self, access: Access | None, clause: str, message: str, instruction: str = "") -> Fault:
        shown = access_text(access) if access else "(no access)"
        return Fault(clause, self.number, shown, message, instruction)

    @property
    def _last(self) -> Access | None:
        return self.expected[-1] if self.expected else None

    def _atomics(self) -> list[Fault]:
        found: list[Fault] = []
        atomic_cells = {access.location for access in self.expected if access.order is not None}
        plain_cells = {access.location for access in self.expected if access.order is None}
        rest = [
            (at, instruction)
            for at, instruction in enumerate(self.emitted)
            if instruction.order or self._name(instruction) in atomic_cells - plain_cells or instruction.location < 0
        ]
        position = 0
        for index, access in enumerate(self.expected):
            if access.order is None:
                continue
            op = _OPS[type(access)]
            if op == "rmw" and self._loop(rest[position:], access):
                position += 1  # the first look of a compare-exchange loop
            if position == len(rest):
                if self._unseen(access):
                    continue
                raise _Mismatch(self._fault(access, "intent:11-a", "no instruction for it"))
            at, instruction = rest[position]
            if instruction.location != self.places[access.location] or not _same(op, instruction.op):
                if self._unseen(access):
                    continue
                raise _Mismatch(self._wrong(access, op, [one for _, one in rest[position:]]))
            position += 1
            self.matched[index] = at
            found += self._judge(access, at)
        if position < len(rest):
            extra = rest[position][1]
            last = next((a for a in reversed(self.expected) if a.order is not None), self._last)
            raise _Mismatch(self._fault(last, "intent:11-b", "a further access after it", extra.text))
        return found

    def _name(self, instruction: Emitted) -> str:
        return self.program.locations[instruction.location].name if instruction.location >= 0 else ""

    def _loop(self, rest: Sequence[tuple[int, Emitted]], access: Access) -> bool:
        """A load of the location, then a compare-exchange on it."""
        place = self.places[access.location]
        ops = [instruction.op for _, instruction in rest[:2] if instruction.location == place]
        return ops == ["load", "cas"]

    def _unseen(self, access: Access) -> bool:
        if not isinstance(access, Load) or access.order != "relaxed":
            return False
        used = {f"{self.number}:{name}" for name in written_registers(access)}
        return not used & set(self.program.observe)

    def _wrong(self, access: Access, op: str, rest: Sequence[Emitted]) -> Fault:
        first = rest[0]
        if op == "rmw" and first.location == self.places[access.location]:
            what = {"load": "a load", "store": "a store"}.get(first.op, "another operation")
            both = first.op == "load" and len(rest) > 1 and rest[1].op == "store"
            message = "a load and a store instead of one instruction" if both else f"{what} instead of it"
            return self._fault(access, "intent:11-b", message, first.text)
        message = "another access in its place"
        if first.location < 0:
            message = "an access to part of a location in its place"
        return self._fault(access, "intent:11-b", message, first.text)

    def _judge(self, access: Access, at: int) -> Iterator[Fault]:
        instruction = self.emitted[at]
        width = format_of(self.program.location(access.location).dtype).width
        wanted = access.order
        assert wanted is not None
        if instruction.width != width:
            yield self._fault(
                access, "intent:11-b", f"{instruction.width} bits wide instead of {width}", instruction.text
            )
        if not instruction.order:
            yield self._fault(access, "intent:11-a", "an ordinary access instead of an atomic one", instruction.text)
            return
        if instruction.scope:
            yield self._fault(access, "intent:11-h", f"its scope is only {instruction.scope!r}", instruction.text)
        kind = _kind(access, self.program)
        if instruction.kind and kind and instruction.kind != kind:
            yield self._fault(access, "intent:11-b", f"{instruction.kind} instead of {kind}", instruction.text)
        ends = {fact.holds == bool(fact.equals) for fact in self.facts if fact.what == "success" and fact.at == at}
        if not enough(instruction.order, wanted) and False not in ends:
            yield self._fault(access, "intent:11-d", f"{instruction.order} instead of {wanted}", instruction.text)
        if isinstance(access, Cas) and True not in ends and not enough(instruction.failure, FAILURE_ORDERS[wanted]):
            message = f"{instruction.failure} on failure instead of {FAILURE_ORDERS[wanted]}"
            yield self._fault(access, "intent:11-f", message, instruction.text)

    def _plain(self) -> Iterator[Fault]:
        """Plain accesses that crossed an order that holds them.

        Each may be anywhere between the last acquire before it and the first release after it. Of several to one
        location some may be gone or doubled; as many as asked for are taken in their order.
        """
        kinds = dict.fromkeys((type(access), access.location) for access in self.expected if access.order is None)
        matched = set(self.matched.values())
        for kind, location in kinds:
            op, place = _OPS[kind], self.places[location]
            there = [
                at
                for at, one in enumerate(self.emitted)
                if not one.order and one.op == op and one.location == place and at not in matched
            ]
            asked = [
                (index, access)
                for index, access in enumerate(self.expected)
                if access.order is None and type(access) is kind and access.location == location
            ]
            for number, at in enumerate(there):
                mine = [asked[number]] if len(there) == len(asked) else asked
                crossed = [self._crossed(index, access, at) for index, access in mine]
                if all(crossed):
                    yield next(fault for fault in crossed if fault)

    def _crossed(self, index: int, access: Access, at: int) -> Fault | None:
        """What is wrong if the instruction at ``at`` is what became of a plain access; None if nothing is."""
        for other, place in self.matched.items():
            order = self.expected[other].order
            if other > index and order in RELEASING and at > place:
                return self._moved(access, "after", self.expected[other], self.emitted[at].text)
            if other < index and order in ACQUIRING and at < place:
                return self._moved(access, "before", self.expected[other], self.emitted[at].text)
        return None

    def _invented(self) -> Iterator[Fault]:
        """Plain stores to locations that nothing on this path stores to: others may see them, or lose their own."""
        stored = {access.location for access in self.expected if isinstance(access, Store) and access.order is None}
        matched = set(self.matched.values())
        for at, instruction in enumerate(self.emitted):
            plain = instruction.op == "store" and not instruction.order and at not in matched
            if plain and self._name(instruction) not in stored:
                message = "beside it a store that this path does not have"
                yield self._fault(self._last, "intent:11-d", message, instruction.text)

    def _moved(self, access: Access, where: str, other: Access, instruction: str) -> Fault:
        return self._fault(access, "intent:11-d", f"moved to {where} `{access_text(other)}`", instruction)


def _kind(access: Access, program: Program) -> str:
    """What an update is to be, in the words of `Emitted.kind`."""
    if not isinstance(access, Rmw):
        return ""
    signed = format_of(program.location(access.location).dtype).signed
    return f"{access.kind} {'signed' if signed else 'unsigned'}" if access.kind in ("max", "min") else access.kind


def _same(expected: str, emitted: str) -> bool:
    """A compare-exchange loop is a way to do a read-modify-write."""
    return expected == emitted or (expected == "rmw" and emitted == "cas")


class _Mismatch(Exception):
    """Accesses and instructions do not pair up; what follows cannot be judged."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault
