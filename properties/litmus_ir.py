"""Judges the LLVM IR that a backend made of a litmus program.

On a machine that shows few reorderings, running cannot tell a release from a relaxed store. The instructions can: each
access has to be one instruction of the right width on the right location, at least as strong as the program says,
with the failure order that follows from it, and in its place. What is stronger, or stands in for a missing order as a
fence next to the access, is right too. Values are not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from halfulp.oracle.formats import format_of
from halfulp.oracle.memory.program import (
    FAILURE_ORDERS,
    Access,
    Cas,
    If,
    Load,
    Program,
    Rmw,
    Store,
    access_text,
    accesses_of,
    written_registers,
)

RELEASING = ("release", "acq_rel", "seq_cst")
ACQUIRING = ("acquire", "acq_rel", "seq_cst")
ATOMIC = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")
"""LLVM's orders; ``unordered`` is weaker than any of ours."""


@dataclass(frozen=True)
class Emitted:
    """One instruction.

    Attributes:
        op: ``"load"``, ``"store"``, ``"rmw"``, ``"cas"`` or ``"fence"``.
        location: position of the location in the program; -1 where the address is not simply one of them.
        width: bits.
        order: LLVM's word, ``""`` for a plain access. ``failure`` is that of a failed ``cmpxchg``.
        scope: the ``syncscope``, ``""`` for the whole system.
        weak: a ``cmpxchg`` that may fail spuriously.
    """

    op: str
    location: int
    width: int
    order: str
    text: str
    failure: str = ""
    scope: str = ""
    weak: bool = False


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


_FUNCTION = re.compile(r"^define [^\n]*@thread(\d+)\(([^\n]*)\)[^\n)]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_POINTER = re.compile(r"\bptr\b[^%]*(%[\w.\"$-]+)")
_ORDER = r"(?:syncscope\(\"(?P<scope>[^\"]*)\"\) )?(?P<order>unordered|monotonic|acquire|release|acq_rel|seq_cst)"
_PATTERNS = {
    "load": re.compile(rf"^%\S+ = load (?:atomic )?(?:volatile )?i(?P<width>\d+), ptr (?P<at>%[^\s,]+)(?: {_ORDER})?"),
    "store": re.compile(
        rf"^store (?:atomic )?(?:volatile )?i(?P<width>\d+) [^\s,]+, ptr (?P<at>%[^\s,]+)(?: {_ORDER})?"
    ),
    "rmw": re.compile(rf"^%\S+ = atomicrmw (?:volatile )?\w+ ptr (?P<at>%[^\s,]+), i(?P<width>\d+) [^\s,]+ {_ORDER}"),
    "cas": re.compile(
        r"^%\S+ = cmpxchg (?P<weak>weak )?(?:volatile )?ptr (?P<at>%[^\s,]+), i(?P<width>\d+) [^\s,]+, i\d+ [^\s,]+ "
        rf"{_ORDER} (?P<failure>\w+)"
    ),
    "fence": re.compile(rf"^fence {_ORDER}"),
}
_TOUCHES_MEMORY = re.compile(r"\b(load|store|atomicrmw|cmpxchg|fence|call)\b")


class UnreadableError(ValueError):
    """The text is not the LLVM IR of a litmus program."""


def read(text: str, locations: int) -> dict[int, list[Emitted]]:
    """The memory instructions of each thread, in the order of the text.

    Accesses to other pointers than the parameters (locals, output registers) are left out.

    Raises:
        UnreadableError: there is no thread function, or it has an instruction that this module does not know.
    """
    threads: dict[int, list[Emitted]] = {}
    for number, parameters, body in _FUNCTION.findall(text):
        pointers = _POINTER.findall(parameters)
        cells = {name: place for place, name in enumerate(pointers[:locations])}
        others = set(pointers[locations:])
        for line in map(str.strip, body.splitlines()):
            derived = re.match(r"^(%\S+) = (?:getelementptr|alloca)\b(?:[^%]*ptr (%[^\s,]+))?", line)
            if derived and derived[2] in cells:
                cells[derived[1]] = -1
            elif derived:
                others.add(derived[1])
        found = threads.setdefault(int(number), [])
        for line in map(str.strip, body.splitlines()):
            if not _TOUCHES_MEMORY.search(line) or line.startswith(";"):
                continue
            instruction = _instruction(line, cells)
            if instruction is not None:
                found.append(instruction)
            elif not any(re.search(rf"ptr {re.escape(name)}(?![\w.])", line) for name in others):
                raise UnreadableError(f"cannot judge `{line}`")
    if not threads:
        raise UnreadableError("there is no function thread0")
    return threads


def _instruction(line: str, cells: dict[str, int]) -> Emitted | None:
    for op, pattern in _PATTERNS.items():
        match = pattern.match(line)
        if match is None:
            continue
        parts = match.groupdict()
        if op != "fence" and parts["at"] not in cells:
            return None
        return Emitted(
            op,
            cells.get(parts.get("at") or "", -1),
            int(parts.get("width") or 0),
            parts["order"] or "",
            line,
            parts.get("failure") or "",
            parts["scope"] or "",
            bool(parts.get("weak")),
        )
    return None


def has_branches(program: Program) -> bool:
    """Whether the text of the IR, once optimised, may have another order than the program."""
    return any(isinstance(instruction, If) for thread in program.threads for instruction in thread)


def inspect(program: Program, text: str) -> list[Fault]:
    """What is wrong with the IR of a program; empty where nothing is.

    Raises:
        UnreadableError: see `read`.
    """
    threads = read(text, len(program.locations))
    found: list[Fault] = []
    for number, thread in enumerate(program.threads):
        if number not in threads:
            raise UnreadableError(f"there is no function thread{number}")
        expected = list(accesses_of(thread))
        found += _Thread(program, number, expected, _with_fences(threads[number])).faults()
    return found


def _with_fences(instructions: Sequence[Emitted]) -> list[Emitted]:
    """Fences merged into the access that they stand next to: before it for a release, after it for an acquire."""
    result: list[Emitted] = []
    pending = ""
    for instruction in instructions:
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
        result.append(instruction)
    return result


def _stronger(instruction: Emitted, *, acquires: bool = False, releases: bool = False) -> Emitted:
    acquires = acquires or instruction.order in ACQUIRING
    releases = releases or instruction.order in RELEASING
    order = "acq_rel" if acquires and releases else "acquire" if acquires else "release"
    failure = "acquire" if acquires and instruction.failure else instruction.failure
    return Emitted(
        instruction.op,
        instruction.location,
        instruction.width,
        order,
        instruction.text,
        failure,
        instruction.scope,
        instruction.weak,
    )


def enough(emitted: str, wanted: str) -> bool:
    """Whether LLVM's order is at least as strong as ours."""
    if emitted not in ATOMIC:
        return False
    needs = {
        "relaxed": (ATOMIC,),
        "acquire": (ACQUIRING,),
        "release": (RELEASING,),
        "acq_rel": (ACQUIRING, RELEASING),
    }[wanted]
    return all(emitted in group for group in needs)


_OPS: dict[type[Access], str] = {Load: "load", Store: "store", Rmw: "rmw", Cas: "cas"}


class _Thread:
    """Pairs the accesses of one thread with its instructions.

    Atomic accesses have to be there in the order of the program. A plain access, or a relaxed load that nobody looks
    at, may be gone; a plain one may have moved, but not out from before a release or from behind an acquire.
    """

    def __init__(self, program: Program, number: int, expected: list[Access], emitted: list[Emitted]) -> None:
        self.program = program
        self.number = number
        self.expected = expected
        self.emitted = emitted
        self.places = {location.name: place for place, location in enumerate(program.locations)}
        self.matched: dict[int, int] = {}

    def faults(self) -> list[Fault]:
        try:
            return [*self._atomics(), *self._plain()]
        except _Mismatch as mismatch:
            return [mismatch.fault]

    def _fault(self, access: Access, clause: str, message: str, instruction: str = "") -> Fault:
        return Fault(clause, self.number, access_text(access), message, instruction)

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
            found += self._judge(access, instruction)
        if position < len(rest):
            extra = rest[position][1]
            access = next((a for a in reversed(self.expected) if a.order is not None), self.expected[-1])
            raise _Mismatch(self._fault(access, "intent:11-b", "a further access after it", extra.text))
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

    def _judge(self, access: Access, instruction: Emitted) -> Iterator[Fault]:
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
        if not enough(instruction.order, wanted):
            yield self._fault(access, "intent:11-d", f"{instruction.order} instead of {wanted}", instruction.text)
        if isinstance(access, Cas) and not enough(instruction.failure, FAILURE_ORDERS[wanted]):
            message = f"{instruction.failure} on failure instead of {FAILURE_ORDERS[wanted]}"
            yield self._fault(access, "intent:11-f", message, instruction.text)

    def _plain(self) -> Iterator[Fault]:
        """Plain accesses that crossed an order that holds them."""
        for index, access in enumerate(self.expected):
            if access.order is not None:
                continue
            op, place = _OPS[type(access)], self.places[access.location]
            same = [
                at
                for at, one in enumerate(self.emitted)
                if not one.order and one.op == op and one.location == place and at not in self.matched.values()
            ]
            for other, at in self.matched.items():
                order = self.expected[other].order
                if other > index and order in RELEASING and any(mine > at for mine in same):
                    yield self._moved(access, "after", self.expected[other], self.emitted[max(same)].text)
                    break
                if other < index and order in ACQUIRING and any(mine < at for mine in same):
                    yield self._moved(access, "before", self.expected[other], self.emitted[min(same)].text)
                    break

    def _moved(self, access: Access, where: str, other: Access, instruction: str) -> Fault:
        return self._fault(access, "intent:11-d", f"moved to {where} `{access_text(other)}`", instruction)


def _same(expected: str, emitted: str) -> bool:
    """A compare-exchange loop is a way to do a read-modify-write."""
    return expected == emitted or (expected == "rmw" and emitted == "cas")


class _Mismatch(Exception):
    """Accesses and instructions do not pair up; what follows cannot be judged."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault
