"""Critical cycles: the shapes of litmus tests over two and three locations.

A critical cycle visits each location once. At a location it goes from an access of one thread to an access of another
one by a *segment*: Rfe (is read by), Fre (reads before it is overwritten by), Coe (is overwritten by), Fre;Rfe and
Coe;Rfe (the same, seen by a further thread). Between locations it follows a thread from one access to the next. Every
classic shape over k locations is such a cycle of k segments, up to rotation; names are those of diy (herdtools).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import Any, Literal

from halfulp.oracle.memory.model import MODEL, Model
from halfulp.oracle.memory.program import (
    Access,
    Cas,
    If,
    Instruction,
    Load,
    Location,
    Program,
    Rmw,
    Store,
    Thread,
    map_accesses,
    written_registers,
)
from halfulp.oracle.memory.search import verdict
from halfulp.oracle.sets import Verdict

SEGMENTS = ("Fre", "Coe", "Fre;Rfe", "Coe;Rfe", "Rfe")
"""The ways from one thread to the next at a location."""

CLASSIC: Mapping[tuple[str, ...], str] = {
    ("Rfe", "Rfe"): "LB",
    ("Fre", "Rfe"): "MP",
    ("Coe", "Rfe"): "S",
    ("Fre", "Fre"): "SB",
    ("Fre", "Coe"): "R",
    ("Coe", "Coe"): "2+2W",
    ("Fre;Rfe", "Rfe"): "WRC",
    ("Coe;Rfe", "Rfe"): "WWC",
    ("Fre", "Fre;Rfe"): "RWC",
    ("Fre", "Coe;Rfe"): "WRR+2W",
    ("Coe", "Fre;Rfe"): "WRW+WR",
    ("Coe", "Coe;Rfe"): "WRW+2W",
    ("Fre;Rfe", "Fre;Rfe"): "IRIW",
    ("Fre;Rfe", "Coe;Rfe"): "IRRWIW",
    ("Coe;Rfe", "Coe;Rfe"): "IRWIW",
    ("Rfe", "Rfe", "Rfe"): "3.LB",
    ("Fre", "Fre", "Fre"): "3.SB",
    ("Coe", "Coe", "Coe"): "3.2W",
    ("Fre", "Rfe", "Rfe"): "ISA2",
    ("Fre", "Rfe", "Coe"): "Z6.0",
    ("Coe", "Coe", "Rfe"): "Z6.1",
    ("Coe", "Rfe", "Rfe"): "Z6.2",
    ("Fre", "Coe", "Rfe"): "Z6.3",
    ("Fre", "Fre", "Coe"): "Z6.4",
    ("Fre", "Coe", "Coe"): "Z6.5",
    ("Fre", "Fre", "Rfe"): "W+RWC",
}
"""Names in use, by segments in canonical rotation."""

Form = Literal["atomic", "rmw", "cas", "cas_failure"]
"""What may stand for an access of a cycle: a load or store; a read-modify-write; a compare-exchange that takes place;
for a read, one that does not."""


def necklaces(size: int) -> Iterator[tuple[str, ...]]:
    """Every choice of ``size`` segments, one of each class of rotations: the least in the order of `SEGMENTS`."""
    for segments in product(SEGMENTS, repeat=size):
        if segments == canonical_rotation(segments):
            yield segments


def canonical_rotation(segments: Sequence[str]) -> tuple[str, ...]:
    rotations = (tuple(segments[i:]) + tuple(segments[:i]) for i in range(len(segments)))
    return min(rotations, key=lambda rotation: [SEGMENTS.index(segment) for segment in rotation])


def cycle_name(segments: Sequence[str]) -> str:
    """The name in use, or the segments: ``Fre-CoeRfe-Rfe``."""
    return CLASSIC.get(tuple(segments)) or "-".join(segment.replace(";", "") for segment in segments)


@dataclass
class Builder:
    """A program in the making: accesses are added to threads, and what they have to show to the weak outcome."""

    threads: list[list[Instruction]] = field(default_factory=list)
    weak: dict[str, int] = field(default_factory=dict)

    def thread(self) -> int:
        self.threads.append([])
        return len(self.threads) - 1

    def register(self, thread: int, letter: str, value: int) -> str:
        """A new register of a thread, which the weak outcome wants to have this value."""
        prefix = f"{thread}:{letter}"
        name = f"{letter}{sum(known.startswith(prefix) for known in self.weak)}"
        self.weak[f"{thread}:{name}"] = value
        return name

    def read(self, thread: int, location: str, value: int, how: Form = "atomic") -> None:
        """An access that has to read ``value``."""
        register = self.register(thread, "r", value)
        access: Access
        match how:
            case "atomic":
                access = Load(register, location)
            case "rmw":
                access = Rmw(register, "add", location, 0)
            case "cas":
                access = Cas(register, self.register(thread, "s", 1), location, value, value)
            case _:
                access = Cas(register, self.register(thread, "s", 0), location, value + 6, value + 7)
        self.threads[thread].append(access)

    def write(self, thread: int, location: str, value: int, how: Form = "atomic") -> None:
        """An access that writes ``value``; where it reads too, it has to read ``value - 1``."""
        access: Access
        match how:
            case "atomic":
                access = Store(location, value)
            case "rmw":
                access = Rmw(self.register(thread, "r", value - 1), "exchange", location, value)
            case _:
                register = self.register(thread, "r", value - 1)
                access = Cas(register, self.register(thread, "s", 1), location, value - 1, value)
        self.threads[thread].append(access)

    def program(self, name: str, locations: Sequence[str], dtype: str = "u32") -> Program:
        return Program(
            name,
            tuple(Location(location, dtype) for location in locations),
            tuple(tuple(thread) for thread in self.threads),
            tuple(self.weak.items()),
        )


How = Mapping[tuple[int, str], Form]
"""For some accesses of a cycle, what stands for them: by the number of the location and ``"start"``, ``"middle"`` or
``"end"`` of its segment."""


def cycle(segments: Sequence[str], how: How | None = None, name: str = "") -> Program:
    """The program of a critical cycle; its weak outcome is the cycle. All orders are relaxed.

    Args:
        segments: segment i is at location i, from the thread before to thread i.
        how: accesses that are no plain load or store.
    """
    chosen = how or {}
    size = len(segments)
    locations = [*"xyzuvw"[:size]]
    build = Builder()
    for i in range(size):
        follows = (i + 1) % size
        # The further thread of a segment that ends here stands before the thread that looks at it.
        if ";" in segments[i]:
            value = _written(segments[i], "middle")
            build.write(build.thread(), locations[i], value, chosen.get((i, "middle"), "atomic"))
        thread = build.thread()
        for at, part in ((i, "end"), (follows, "start")):
            value = _written(segments[at], part)
            add = build.read if _reads(segments[at], part) else build.write
            add(thread, locations[at], value, chosen.get((at, part), "atomic"))
    for location, segment in zip(locations, segments, strict=True):
        if segment.startswith("Coe"):
            build.weak[location] = 2
    return build.program(name or cycle_name(segments), locations)


def _reads(segment: str, part: str) -> bool:
    """Whether the access at this end of a segment reads."""
    return segment.startswith("Fre") if part == "start" else segment.endswith("Rfe")


def _written(segment: str, part: str) -> int:
    """The value that this access of a segment writes or reads."""
    if part == "start":
        return 0 if segment.startswith("Fre") else 1
    return 2 if segment.startswith("Coe") else 1


# Orders.

STRENGTH: Mapping[str | None, int] = {None: 0, "relaxed": 0, "acquire": 1, "release": 1, "acq_rel": 2}

SHORT: Mapping[str | None, str] = {
    None: "plain",
    "relaxed": "rlx",
    "acquire": "acq",
    "release": "rel",
    "acq_rel": "ar",
}
"""Orders as they stand in names of tests."""


def orders_of(access: Access) -> tuple[str | None, ...]:
    """The orders that the language admits for an access, weakest first (``intent:11-e``); a plain access stays."""
    if access.order is None:
        return (None,)
    match access:
        case Load():
            return ("relaxed", "acquire")
        case Store():
            return ("relaxed", "release")
    return ("relaxed", "acquire", "release", "acq_rel")


def with_orders(program: Program, orders: Sequence[str | None]) -> Program:
    """The program with these orders, one for each access in the order of the text, and a name that tells them."""

    def change(position: int, access: Access) -> Access:
        order = orders[position]
        if isinstance(access, Load | Store):
            return replace(access, order=order)
        assert order is not None
        return replace(access, order=order)

    return map_accesses(program, change)


def named_by_orders(program: Program) -> Program:
    """The program, its name followed by the orders unless all are relaxed: ``MP+rlx-rel+acq-rlx``."""
    if all(STRENGTH[access.order] == 0 for access in program.accesses):
        return program
    parts = []
    for thread in program.threads:
        orders = [access.order for access in replace(program, threads=(thread,), weak=(), observe=()).accesses]
        parts.append("-".join(SHORT[order] for order in orders))
    return replace(program, name="+".join((program.name, *parts)))


def variants(program: Program) -> Iterator[Program]:
    """The program with every assignment of orders, weaker ones first."""
    choices = product(*(orders_of(access) for access in program.accesses))
    for orders in sorted(choices, key=lambda orders: sum(STRENGTH[order] for order in orders)):
        yield with_orders(program, orders)


def strongest(program: Program) -> Program:
    """The program with the strongest orders that the language admits."""
    return with_orders(program, [orders_of(access)[-1] for access in program.accesses])


def minimal_orders(program: Program, model: Model = MODEL) -> tuple[Program, ...]:
    """The weakest assignments of orders under which the weak outcome is forbidden; none if there are none.

    Stronger orders only add to happens-before, so that everything above a forbidden assignment is forbidden. An
    assignment is a set of halves (acquire, release) here. One minimal set is found by leaving out what can be left out;
    any other one lacks a member of it (Reiter's hitting set tree).
    """
    top = strongest(program)
    halves = [
        (position, half)
        for position, access in enumerate(top.accesses)
        for half in ("acquire", "release")
        if access.order in (half, "acq_rel")
    ]

    def assigned(chosen: Iterable[tuple[int, str]]) -> Program:
        orders: list[str | None] = [access.order and "relaxed" for access in top.accesses]
        for position, half in chosen:
            orders[position] = half if orders[position] == "relaxed" else "acq_rel"
        return with_orders(program, orders)

    def forbidden(chosen: Iterable[tuple[int, str]]) -> bool:
        return verdict(assigned(chosen), model=model) is Verdict.FORBIDDEN

    found: list[list[tuple[int, str]]] = []
    without: list[frozenset[tuple[int, str]]] = [frozenset()]
    for removed in without:  # grows
        minimal = next((known for known in found if removed.isdisjoint(known)), None)
        if minimal is None:
            minimal = [half for half in halves if half not in removed]
            if not forbidden(minimal):
                continue
            for half in tuple(minimal):
                if forbidden(rest := [other for other in minimal if other != half]):
                    minimal = rest
            found.append(minimal)
        without += [more for half in minimal if (more := removed | {half}) not in without]
    return tuple(assigned(chosen) for chosen in found)


# Symmetry.


def canonical(program: Program) -> Program:
    """The same program for all programs that differ only in the order of threads and in names."""
    return min((_renamed(program, order) for order in permutations(range(len(program.threads)))), key=repr)


def _renamed(program: Program, order: Sequence[int]) -> Program:
    places: dict[str, str] = {}
    names: dict[str, str] = {}
    threads = []
    for new, old in enumerate(order):
        registers: dict[str, str] = {}

        def block(instructions: Thread, registers: dict[str, str] = registers) -> Thread:
            copy: list[Instruction] = []
            for instruction in instructions:
                if isinstance(instruction, If):
                    register = registers[instruction.register]
                    then, otherwise = block(instruction.then), block(instruction.otherwise)
                    copy.append(replace(instruction, register=register, then=then, otherwise=otherwise))
                    continue
                place = places.setdefault(instruction.location, f"m{len(places)}")
                for register in written_registers(instruction):
                    registers.setdefault(register, f"r{len(registers)}")
                changes: dict[str, Any] = {
                    name: registers[value]
                    for name in ("register", "success", "value", "expected", "desired")
                    if isinstance(value := getattr(instruction, name, None), str)
                }
                copy.append(replace(instruction, location=place, **changes))
            return tuple(copy)

        threads.append(block(program.threads[old]))
        names.update({f"{old}:{register}": f"{new}:{fresh}" for register, fresh in registers.items()})
    for location in program.locations:
        places.setdefault(location.name, f"m{len(places)}")
    names.update(places)
    locations = sorted((replace(loc, name=places[loc.name]) for loc in program.locations), key=lambda loc: loc.name)
    weak = tuple((names[name], value) for name, value in program.weak)
    observe = tuple(sorted(names[name] for name in program.observe))
    return Program("", tuple(locations), tuple(threads), weak, observe)
