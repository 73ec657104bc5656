"""The catalogue of litmus tests.

A test is a program with an outcome of interest. What the catalogue fixes is which programs are worth running; every
verdict is computed from the model, and so are the orders: a test that forbids something is there in each weakest
assignment of orders that forbids it, so that losing any single order makes the outcome possible. Outcomes that no order
forbids are there with the strongest orders: whoever fails them asserts too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from halfulp.oracle.memory.cycles import (
    Form,
    canonical,
    cycle,
    cycle_name,
    minimal_orders,
    named_by_orders,
    necklaces,
    strongest,
    with_orders,
)
from halfulp.oracle.memory.model import RMW_RULES
from halfulp.oracle.memory.mutants import VARIANTS, cover, kills
from halfulp.oracle.memory.program import (
    RMW_KINDS,
    Cas,
    If,
    Instruction,
    Load,
    Location,
    Operand,
    Program,
    Rmw,
    Store,
    bounds,
    with_dtype,
)
from halfulp.oracle.memory.search import verdict
from halfulp.oracle.sets import Verdict

FAMILIES = {
    "coherence": "the writes of one location have one order, and no thread sees it otherwise",
    "atomicity": "an update is indivisible",
    "operation": "what an update or a compare-exchange computes and returns",
    "two locations": "critical cycles over two locations",
    "three locations": "critical cycles over three locations",
    "update": "critical cycles with updates or compare-exchanges for loads and stores",
    "release sequence": "a release is seen through the updates that follow it",
    "failure order": "the order of a compare-exchange that fails",
    "plain": "atomics that protect plain accesses",
    "thin air": "values that depend on themselves",
}
"""Families of tests, and what they are about."""


@dataclass(frozen=True)
class Test:
    """One test.

    Attributes:
        program: the program; its weak outcome is the one in question.
        family: one of `FAMILIES`.
    """

    program: Program
    family: str

    __test__ = False  # not one of pytest's

    @property
    def name(self) -> str:
        return self.program.name

    @cached_property
    def verdict(self) -> Verdict:
        """What the language says of the weak outcome."""
        return verdict(self.program)

    @cached_property
    def kills(self) -> tuple[str, ...]:
        """The model mutants that show the weak outcome, if it is forbidden."""
        return kills(self.program)

    @cached_property
    def informative(self) -> tuple[str, ...]:
        """Other models in use under which the verdict is another one."""
        return tuple(name for name, model in VARIANTS.items() if verdict(self.program, model=model) != self.verdict)


def program(
    name: str,
    weak: dict[str, int],
    *threads: tuple[Instruction, ...],
    dtype: str = "u32",
    **initial: int,
) -> Program:
    """A program; locations not named in ``initial`` start at 0."""
    names = {"x": 0} | initial
    for thread in threads:
        for instruction in _flat(thread):
            names.setdefault(instruction.location, 0)
    locations = tuple(Location(location, dtype, value) for location, value in names.items())
    return Program(name, locations, threads, tuple(weak.items()))


def _flat(block: tuple[Instruction, ...]) -> Iterator[Load | Store | Rmw | Cas]:
    for instruction in block:
        if isinstance(instruction, If):
            yield from _flat(instruction.then)
            yield from _flat(instruction.otherwise)
        else:
            yield instruction


def add(register: str | None, location: str, value: Operand = 1) -> Rmw:
    return Rmw(register, "add", location, value)


# Shapes, all orders relaxed.


def coherence() -> Iterator[Program]:
    write_1, write_2 = Store("x", 1), Store("x", 2)
    first, second = Load("r0", "x"), Load("r1", "x")
    two_reads = (first, second)
    yield program("CoWW", {"x": 1}, (write_1, write_2))
    yield program("CoWR-initial", {"0:r0": 0}, (write_1, first))
    yield program("CoWR", {"0:r0": 2, "x": 1}, (write_1, first), (write_2,))
    yield program("CoRW1", {"0:r0": 1}, (first, write_1))
    yield program("CoRW2", {"0:r0": 2, "x": 2}, (first, write_1), (write_2,))
    yield program("CoRR", {"1:r0": 1, "1:r1": 0}, (write_1,), two_reads)
    weak = {"2:r0": 1, "2:r1": 2, "3:r0": 2, "3:r1": 1}
    yield program("CoRR2", weak, (write_1,), (write_2,), two_reads, two_reads)
    updates = (add("r0", "x", 0), add("r1", "x", 0))
    yield program("CoRR+updates", {"1:r0": 1, "1:r1": 0}, (write_1,), updates)
    yield program("CoRR+update-read", {"1:r0": 1, "1:r1": 0}, (write_1,), (add("r0", "x", 0), second))
    yield program("CoRR+read-update", {"1:r0": 1, "1:r1": 0}, (write_1,), (first, add("r1", "x", 0)))
    yield program("CoWW+updates", {"0:r1": 0}, (add("r0", "x"), add("r1", "x")))


OPERANDS: dict[str, tuple[int, int, int]] = {
    "exchange": (0, 1, 2),
    "add": (0, 1, 2),
    "max": (0, 1, 2),
    "min": (3, 1, 2),
    "and": (3, 1, 2),
    "or": (0, 1, 2),
    "xor": (0, 1, 2),
}
"""For each kind, an initial value and two operands with which every order of two updates shows."""


def atomicity() -> Iterator[Program]:
    for kind, (initial, one, two) in OPERANDS.items():
        threads = ((Rmw("r0", kind, "x", one),), (Rmw("r0", kind, "x", two),))
        weak = {"0:r0": initial, "1:r0": initial}
        yield program(f"lost-update-{kind}", weak, *threads, x=initial)
    # A store of 4 comes between the read and the write of an update: the update reads the initial value, and wins.
    for kind, (initial, one, _) in OPERANDS.items():
        update, store = (Rmw("r0", kind, "x", one),), (Store("x", 4), Load("r0", "x"))
        weak = {"0:r0": initial, "1:r0": 4, "x": 1}
        yield program(f"store-between-{kind}", weak, update, store, x=initial)
    increments = ((add("r0", "x"),),) * 3
    yield program("three-increments", {"x": 2}, *increments)
    once = Cas("r0", "s0", "x", 0, 1), Cas("r0", "s0", "x", 0, 2)
    yield program("cas-once", {"0:s0": 1, "1:s0": 1}, (once[0],), (once[1],))
    weak = {"0:r0": 0, "0:s0": 1, "1:r0": 4, "x": 1}
    yield program("store-between-cas", weak, (once[0],), (Store("x", 4), Load("r0", "x")))
    yield program("cas-against-add", {"0:s0": 1, "1:r0": 0}, (Cas("r0", "s0", "x", 0, 4),), (add("r0", "x"),))


def operations(dtype: str) -> Iterator[Program]:
    low, high = bounds(dtype)
    minus_1 = -1 if low < 0 else high  # all bits are ones
    half = 1 << ((high - low).bit_length() // 2)

    def one(name: str, weak: dict[str, int], initial: int, access: Rmw | Cas) -> Program:
        return program(name, weak, (access,), dtype=dtype, x=initial)

    for kind, (initial, operand, _) in OPERANDS.items():
        yield one(f"returns-old-{kind}", {"0:r0": 1}, initial, Rmw("r0", kind, "x", operand))
    yield one("add-wraps", {"x": high}, high, add(None, "x"))
    yield one("max-signedness", {"x": min(minus_1, 1)}, minus_1, Rmw(None, "max", "x", 1))
    yield one("min-signedness", {"x": max(minus_1, 1)}, minus_1, Rmw(None, "min", "x", 1))
    results = {"add": (5, 1), "max": (5, 1), "min": (1, 5), "and": (6, 3), "or": (5, 2), "xor": (5, 3)}
    for kind, (initial, operand) in results.items():
        yield one(f"result-{kind}", {"x": operand}, initial, Rmw(None, kind, "x", operand))
    yield one("cas-success", {"0:s0": 0, "x": 1}, 0, Cas("r0", "s0", "x", 0, 1))
    yield one("cas-failure", {"x": 1}, 7, Cas("r0", "s0", "x", 0, 1))
    yield one("cas-failure-reported", {"0:s0": 1}, 7, Cas("r0", "s0", "x", 0, 1))
    yield one("cas-returns-old", {"0:r0": 1}, 0, Cas("r0", "s0", "x", 0, 1))
    yield one("cas-upper-half", {"0:s0": 1}, half, Cas("r0", "s0", "x", 0, 1))
    yield one("cas-lower-half", {"0:s0": 1}, 1, Cas("r0", "s0", "x", 0, 1))


def updates_in_cycles() -> Iterator[Program]:
    """Message passing with every access replaced, and every segment that is no Rfe between two updates."""
    message = ("Fre", "Rfe")
    updates: tuple[Form, ...] = ("rmw", "cas")
    names = {
        (0, "end"): "payload-write",
        (1, "start"): "flag-write",
        (1, "end"): "flag-read",
        (0, "start"): "payload-read",
    }
    for place, name in names.items():
        reads = name.endswith("read")
        for how in (*updates, "cas_failure") if reads else updates:
            if (place, how) != ((1, "end"), "cas_failure"):  # that one has a family of its own
                yield cycle(message, {place: how}, f"MP-{name}-{how.replace('_', '-')}")
    yield cycle(message, {(1, "start"): "rmw", (1, "end"): "rmw"}, "MP-flag-rmw")
    for segments in necklaces(2):
        for at, segment in enumerate(segments):
            if segment == "Rfe" or (at == 1 and segments[0] == segment):
                continue
            parts = ("start", "middle") if ";" in segment else ("start", "end")
            for how in updates:
                yield cycle(segments, {(at, part): how for part in parts}, f"{cycle_name(segments)}-{how}-{'xy'[at]}")


def release_sequences() -> Iterator[Program]:
    """Message passing where the flag, once released, is updated by others before it is acquired."""
    operands = {"exchange": 7, "add": 1, "max": 7, "min": 2, "and": 3, "or": 1, "xor": 1}
    for kind in RMW_KINDS:
        seen = RMW_RULES[kind](6, operands[kind], "u32")
        yield program(
            f"RS-{kind}",
            {"1:r0": 6, "2:r0": seen, "2:r1": 0},
            (Store("x", 1), Store("y", 6)),
            (Rmw("r0", kind, "y", operands[kind]),),
            (Load("r0", "y"), Load("r1", "x")),
            y=8,
        )
    release = (Store("x", 1), Store("y", 1))
    acquire = (Load("r0", "y"), Load("r1", "x"))
    exchange = Cas("r0", "s0", "y", 1, 2)
    yield program("RS-cas", {"1:s0": 1, "2:r0": 2, "2:r1": 0}, release, (exchange,), acquire)
    weak = {"1:r0": 1, "2:r0": 2, "3:r0": 3, "3:r1": 0}
    yield program("RS-add-add", weak, release, (add("r0", "y"),), (add("r0", "y"),), acquire)
    yield program("RS-cas-exchange", weak, release, (exchange,), (Rmw("r0", "exchange", "y", 3),), acquire)
    own = (*release, Rmw("r0", "exchange", "y", 2))
    yield program("RS-own-update", {"0:r0": 1, "1:r0": 2, "1:r1": 0}, own, acquire)
    by_update = (Store("x", 1), add("r0", "y"))
    weak = {"0:r0": 0, "1:r0": 1, "2:r0": 2, "2:r1": 0}
    yield program("RS-head-update", weak, by_update, (add("r0", "y"),), acquire)
    seen_by_update = (add("r0", "y", 0), Load("r1", "x"))
    weak = {"1:r0": 1, "2:r0": 2, "2:r1": 0}
    yield program("RS-acquire-update", weak, release, (add("r0", "y"),), seen_by_update)


def broken_release_sequences() -> Iterator[Program]:
    """A store of the flag ends the sequence, whoever does it (``reading:19``), unless it is itself a release."""
    release = (Store("x", 1, "release"), Store("y", 1, "release"))
    acquire = (Load("r0", "y", "acquire"), Load("r1", "x", "acquire"))
    update = Rmw("r0", "add", "y", 1, "acq_rel")
    yield program("RS-other-store", {"2:r0": 2, "2:r1": 0}, release, (Store("y", 2),), acquire)
    yield program("RS-same-thread", {"1:r0": 2, "1:r1": 0}, (*release, Store("y", 2)), acquire)
    weak = {"1:r0": 1, "2:r0": 3, "2:r1": 0}
    yield program("RS-update-store", weak, release, (update, Store("y", 3)), acquire)
    weak = {"2:r0": 2, "3:r0": 3, "3:r1": 0}
    yield program("RS-store-update", weak, release, (Store("y", 2),), (update,), acquire)


def failure_orders() -> Iterator[Program]:
    """A compare-exchange that fails reads the flag of message passing, with each of its orders."""
    shape = cycle(("Fre", "Rfe"), {(1, "end"): "cas_failure"}, "MP-cas-failure")
    for order in ("relaxed", "acquire", "release", "acq_rel"):
        yield with_orders(shape, ["relaxed", "release", order, "relaxed"])
    loop = cycle(("Rfe", "Rfe"), {(1, "end"): "cas_failure"}, "LB-cas-failure")
    for order in ("acquire", "release"):
        yield with_orders(loop, ["relaxed", "release", order, "relaxed"])


def plain_payload() -> Iterator[Program]:
    """Idioms: a plain payload is written before a flag is released, and read only where the flag was acquired."""
    write, flag = Store("x", 1, None), Store("y", 1)
    read = Load("r1", "x", None)

    def guarded(register: str, value: int, *then: Instruction) -> If:
        return If(register, value, then)

    reader = (Load("r0", "y"), guarded("r0", 1, read))
    weak = {"1:r0": 1, "1:r1": 0}
    yield program("MP-plain", weak, (write, flag), reader)
    yield program("MP-plain-exchange", weak, (write, Rmw(None, "exchange", "y", 1)), reader)
    taken = (Cas("r0", "s0", "y", 1, 2), guarded("s0", 1, read))
    yield program("MP-plain-cas", {"1:s0": 1, "1:r1": 0}, (write, flag), taken)
    lock = (Cas("r0", "s0", "y", 0, 1), guarded("s0", 1, Load("r1", "x", None), Store("x", 1, None), Store("y", 0)))
    yield program("lock", {"0:s0": 1, "0:r1": 0, "1:s0": 1, "1:r1": 0}, lock, lock)
    middle = (Load("r0", "y"), guarded("r0", 1, Store("z", 1)))
    last = (Load("r0", "z"), guarded("r0", 1, read))
    yield program("ISA2-plain", {"2:r0": 1, "2:r1": 0}, (write, flag), middle, last)
    seen = (Load("r0", "y"), guarded("r0", 2, read))
    yield program("RS-plain", {"2:r0": 2, "2:r1": 0}, (write, flag), (add("r0", "y"),), seen)
    overwrites = (Load("r0", "y"), guarded("r0", 1, Store("x", 2, None)))
    yield program("S-plain", {"1:r0": 1, "x": 1}, (write, flag), overwrites)
    reuses = (read, flag)
    yield program("LB-plain", {"0:r1": 1, "1:r0": 1}, reuses, (Load("r0", "y"), guarded("r0", 1, write)))


def thin_air() -> Iterator[Program]:
    copies = ((Load("r0", "x"), Store("y", "r0")), (Load("r0", "y"), Store("x", "r0")))
    both = {"0:r0": 1, "1:r0": 1}
    yield program("LB-data-data", both, *copies)
    controls = tuple((Load("r0", a), If("r0", 1, (Store(b, 1),))) for a, b in (("x", "y"), ("y", "x")))
    yield program("LB-ctrl-ctrl", both, *controls)
    yield program("LB-data-ctrl", both, copies[0], controls[1])
    yield program("LB-relaxed", both, (Load("r0", "x"), Store("y", 1)), (Load("r0", "y"), Store("x", 1)))
    yield program("LB-data", both, (Load("r0", "x"), Store("y", 1)), copies[1])
    alike = (Load("r0", "x"), If("r0", 1, (Store("y", 1),), (Store("y", 1),)))
    yield program("LB-same-branches", both, alike, copies[1])


# The catalogue.


def _weakest(shapes: Iterable[Program]) -> Iterator[Program]:
    """Each shape in every weakest assignment of orders that forbids it; the strongest one where none does."""
    for shape in shapes:
        found = minimal_orders(shape) or (strongest(shape),)
        seen = set()
        for variant in found:
            key = repr(canonical(variant))
            if key not in seen:
                seen.add(key)
                yield named_by_orders(variant)


@cache
def _shapes() -> tuple[tuple[Program, str], ...]:
    """All tests but those of operations, which depend on the dtype."""
    families: tuple[tuple[str, Iterable[Program]], ...] = (
        ("coherence", coherence()),
        ("atomicity", atomicity()),
        ("two locations", _weakest(cycle(segments) for segments in necklaces(2))),
        ("three locations", _weakest(cycle(segments) for segments in necklaces(3))),
        ("update", _weakest(updates_in_cycles())),
        ("release sequence", _weakest(release_sequences())),
        ("release sequence", map(named_by_orders, broken_release_sequences())),
        ("failure order", map(named_by_orders, failure_orders())),
        ("plain", _weakest(plain_payload())),
        ("thin air", thin_air()),
    )
    return tuple((shape, family) for family, shapes in families for shape in shapes)


@cache
def catalogue(dtype: str = "u32") -> tuple[Test, ...]:
    """Every test, on locations of one dtype (see `program.DTYPES`)."""
    found = [*_shapes(), *((shape, "operation") for shape in operations(dtype))]
    assert len({shape.name for shape, _ in found}) == len(found), "two tests share a name"
    return tuple(Test(with_dtype(shape, dtype), family) for shape, family in found)


def find(name: str, dtype: str = "u32") -> Test:
    """A test by name.

    Raises:
        KeyError: there is none.
    """
    for test in catalogue(dtype):
        if test.name == name:
            return test
    raise KeyError(name)


FIRST = (
    "CoRR",
    "WRR+2W-cas-x+acq-rlx+rlx+rlx-rel",
    "RS-add-add+rlx-rel+rlx+rlx+acq-rlx",
    "MP-cas-failure+rlx-rel+acq-rlx",
    "ISA2-plain+plain-rel+acq-rel+acq-plain",
    "returns-old-exchange",
    "add-wraps",
    "max-signedness",
    "cas-upper-half",
)
"""What `minimal_set` finds, which takes seconds; a test computes it again."""


@cache
def minimal_set(dtype: str = "u32") -> tuple[str, ...]:
    """The names of a smallest set of tests that kills every mutant: what to run first."""
    return cover({test.name: test.kills for test in catalogue(dtype)})
