"""A second opinion on the memory model: the same axioms, encoded independently for z3.

Shared with the oracle: the vocabulary of programs, and nothing else. Coherence is stated in another form (no
happens-before against extended communication order), modification order is a number for each write, happens-before any
transitive relation that is large enough, values are numbers that z3 chooses, and orders are switches, so that one
encoding serves all assignments of orders. Programs are straight-line and compute no operand from a register: values
then flow along updates of one location only, so that nothing can come out of thin air, and a cycle of program order and
reads-from is all there is to the unspecified band besides spurious failures.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import z3
from hypothesis import HealthCheck, given, settings

from halfulp.oracle.memory.catalogue import catalogue
from halfulp.oracle.memory.cycles import cycle, cycle_name, necklaces, variants
from halfulp.oracle.memory.interleaving import interleaved
from halfulp.oracle.memory.program import Access, If, Load, Outcome, Program, Rmw, Store, bounds
from halfulp.oracle.memory.refute import forbidden_outcomes
from halfulp.oracle.memory.search import allowed, verdict
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus_programs import programs

HALVES = ("acquire", "release")


@dataclass
class Slot:
    """One access, or one initial write, of an encoding."""

    thread: int
    location: str
    access: Access | None
    value_read: z3.ArithRef
    value_written: z3.ArithRef
    writes: z3.BoolRef | bool
    reads: bool
    acquires: z3.BoolRef | bool
    releases: z3.BoolRef | bool


class Encoding:
    """The constraints of a program whose orders are left open."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver = z3.SolverFor("QF_LIA")
        self.switches: list[dict[str, z3.BoolRef]] = []
        self.slots: list[Slot] = []
        self.spurious: list[z3.BoolRef] = []
        self.results: dict[str, z3.ArithRef] = {}
        self.dtypes = {location.name: location.dtype for location in program.locations}
        none = z3.IntVal(0)
        for location in program.locations:
            start = z3.IntVal(location.initial)
            self.slots.append(Slot(-1, location.name, None, none, start, True, False, False, False))
        for thread, block in enumerate(program.threads):
            for access in block:
                assert not isinstance(access, If)
                self.slots.append(self.slot(thread, access))
        self.axioms()

    def slot(self, thread: int, access: Access) -> Slot:
        number = len(self.switches)
        switch = {half: z3.Bool(f"{half}{number}") for half in HALVES}
        self.switches.append(switch)
        read, written = z3.Int(f"r{number}"), z3.Int(f"w{number}")
        add = self.solver.add

        def constant(operand: object) -> z3.ArithRef:
            assert isinstance(operand, int)
            return z3.IntVal(operand)

        match access:
            case Load():
                self.results[f"{thread}:{access.register}"] = read
                return Slot(thread, access.location, access, read, written, False, True, switch["acquire"], False)
            case Store():
                add(written == constant(access.value))
                return Slot(thread, access.location, access, read, written, True, False, False, switch["release"])
            case Rmw():
                add(written == self.updated(access, read, constant(access.value)))
                if access.register:
                    self.results[f"{thread}:{access.register}"] = read
                acquires, releases = switch["acquire"], switch["release"]
                return Slot(thread, access.location, access, read, written, True, True, acquires, releases)
        done = z3.Bool(f"done{number}")
        add(z3.Implies(done, read == constant(access.expected)), written == constant(access.desired))
        self.spurious.append(z3.And(z3.Not(done), read == constant(access.expected)))
        if access.register:
            self.results[f"{thread}:{access.register}"] = read
        if access.success:
            self.results[f"{thread}:{access.success}"] = z3.If(done, 1, 0)
        # Failure orders: the acquire half stays, the release half has nothing to publish.
        releases = z3.And(done, switch["release"])
        return Slot(thread, access.location, access, read, written, done, True, switch["acquire"], releases)

    def updated(self, access: Rmw, old: z3.ArithRef, value: z3.ArithRef) -> z3.ArithRef:
        low, high = bounds(self.dtypes[access.location])
        size = high - low + 1
        match access.kind:
            case "exchange":
                return value
            case "add":
                total = old + value
                return z3.If(total > high, total - size, z3.If(total < low, total + size, total))
            case "max":
                return z3.If(old > value, old, value)
            case "min":
                return z3.If(old < value, old, value)
        # Bitwise operations on the few bits that small values have.
        assert low == 0
        self.solver.add(old < 8, value < 8)
        total = z3.IntVal(0)
        for k in (1, 2, 4):
            a, b = (old / k) % 2 == 1, (value / k) % 2 == 1
            bit = {"and": z3.And(a, b), "or": z3.Or(a, b), "xor": a != b}[access.kind]
            total = total + z3.If(bit, k, 0)
        return total

    def axioms(self) -> None:
        slots, add = self.slots, self.solver.add
        n = len(slots)
        everything = range(n)
        false = z3.BoolVal(False)
        place = [z3.Int(f"mo{i}") for i in everything]
        hb = [[z3.Bool(f"hb{i},{j}") for j in everything] for i in everything]
        rf = [[false] * n for _ in everything]
        for r in everything:
            if slots[r].reads:
                choices = []
                for w in everything:
                    if w != r and slots[w].writes is not False and slots[w].location == slots[r].location:
                        rf[w][r] = z3.Bool(f"rf{w},{r}")
                        choices.append(rf[w][r])
                        add(
                            z3.Implies(rf[w][r], z3.And(slots[w].writes, slots[w].value_written == slots[r].value_read))
                        )
                add(z3.PbEq([(choice, 1) for choice in choices], 1))

        def same(i: int, j: int) -> bool:
            return slots[i].location == slots[j].location

        def is_write(i: int) -> bool:
            return slots[i].writes is not False

        for i in everything:
            if is_write(i):
                add(place[i] == 0 if slots[i].thread < 0 else place[i] > 0)
            for j in range(i):
                if is_write(i) and is_write(j) and same(i, j):
                    add(place[i] != place[j])

        def mo(i: int, j: int) -> z3.BoolRef:
            if i == j or not (is_write(i) and is_write(j) and same(i, j)):
                return false
            return z3.And(slots[i].writes, slots[j].writes, place[i] < place[j])

        def fr(r: int, w: int) -> z3.BoolRef:
            if r == w or not (slots[r].reads and is_write(w) and same(r, w)):
                return false
            return z3.Or(*(z3.And(rf[source][r], mo(source, w)) for source in everything))

        # Release sequences: a bit "is in the sequence of w" that updates hand on.
        within = [[z3.Bool(f"rs{w},{i}") for i in everything] for w in everything]
        for w in everything:
            for i in everything:
                if i == w:
                    add(within[w][i] == slots[w].writes)
                elif slots[i].reads and is_write(i):
                    handed = z3.Or(*(z3.And(rf[m][i], within[w][m]) for m in everything))
                    add(within[w][i] == z3.And(slots[i].writes, handed))
                else:
                    add(z3.Not(within[w][i]))
        for i in everything:
            for j in everything:
                if i != j:
                    if slots[j].thread >= 0 and (slots[i].thread < 0 or (slots[i].thread == slots[j].thread and i < j)):
                        add(hb[i][j])
                    for m in everything:
                        if slots[j].reads:
                            both = z3.And(slots[i].releases, slots[j].acquires)
                            add(z3.Implies(z3.And(both, within[i][m], rf[m][j]), hb[i][j]))
                for k in everything:
                    add(z3.Implies(z3.And(hb[i][j], hb[j][k]), hb[i][k]))
            add(z3.Not(hb[i][i]))
        # Communication: rf, mo, fr, and mo or fr followed by rf. No event may come before what happens before it.
        for a in everything:
            for b in everything:
                if not same(a, b):
                    continue
                direct = [rf[a][b], mo(a, b), fr(a, b)]
                through = [z3.And(z3.Or(mo(a, w), fr(a, w)), rf[w][b]) for w in everything if is_write(w)]
                eco = z3.Or(*direct, *through)
                add(z3.Not(eco) if a == b else z3.Implies(hb[b][a], z3.Not(eco)))
        # An update writes right after the write that it reads from.
        for u in everything:
            if slots[u].reads and is_write(u):
                for w in everything:
                    add(z3.Implies(slots[u].writes, z3.Not(z3.And(fr(u, w), mo(w, u)))))
        # The band, behind switches of its own.
        self.firm = z3.Bool("firm")
        when = [z3.Int(f"t{i}") for i in everything]
        for i in everything:
            for j in everything:
                if slots[j].thread >= 0 and (slots[i].thread < 0 or (slots[i].thread == slots[j].thread and i < j)):
                    add(z3.Implies(self.firm, when[i] < when[j]))
                if slots[j].reads:
                    add(z3.Implies(z3.And(self.firm, rf[i][j]), when[i] < when[j]))
        for failure in self.spurious:
            add(z3.Implies(self.firm, z3.Not(failure)))
        self.last: dict[str, list[tuple[z3.BoolRef, Slot]]] = {}
        for i in everything:
            if is_write(i):
                after = [mo(i, j) for j in everything]
                self.last.setdefault(slots[i].location, []).append(
                    (z3.And(slots[i].writes, z3.Not(z3.Or(*after))), slots[i])
                )

    def shows(self, outcome: Outcome) -> list[z3.BoolRef]:
        found = []
        for name, value in outcome:
            if name in self.results:
                found.append(self.results[name] == value)
            else:
                found.append(z3.Or(*(z3.And(last, slot.value_written == value) for last, slot in self.last[name])))
        return found

    def judge(self, program: Program, outcome: Outcome) -> Verdict:
        """The verdict under the orders of ``program``, which is the encoded one but for its orders."""
        fixed = []
        for access, switch in zip(program.accesses, self.switches, strict=True):
            for half in HALVES:
                fixed.append(switch[half] if access.order in (half, "acq_rel") else z3.Not(switch[half]))
        self.solver.push()
        self.solver.add(*self.shows(outcome))
        try:
            if self.solver.check(*fixed, self.firm) == z3.sat:
                return Verdict.ALLOWED
            return Verdict.UNSPECIFIED if self.solver.check(*fixed) == z3.sat else Verdict.FORBIDDEN
        finally:
            self.solver.pop()


def is_encodable(program: Program) -> bool:
    """Straight-line, without plain accesses, operands all constants."""
    for thread in program.threads:
        for access in thread:
            if isinstance(access, If) or access.order is None:
                return False
            if any(isinstance(getattr(access, name, 0), str) for name in ("value", "expected", "desired")):
                return False
    return True


def compare(shape: Program, assignments: Sequence[Program]) -> None:
    encoding = Encoding(shape)
    for program in assignments:
        assert encoding.judge(program, program.weak) == verdict(program), str(program)


@pytest.mark.parametrize("segments", list(necklaces(2)), ids=cycle_name)
def test_two_locations_all_orders(segments: tuple[str, ...]) -> None:
    shape = cycle(segments)
    compare(shape, list(variants(shape)))


@pytest.mark.parametrize("segments", list(necklaces(3))[::4], ids=cycle_name)
def test_a_sample_of_three_locations(segments: tuple[str, ...]) -> None:
    shape = cycle(segments)
    every = list(variants(shape))
    compare(shape, [every[0], every[-1], *random.Random(cycle_name(segments)).sample(every, 5)])


@pytest.mark.parametrize("family", ["coherence", "atomicity", "update", "release sequence", "failure order"])
def test_the_catalogue(family: str) -> None:
    compared = 0
    mine = [test for test in catalogue() if test.family == family]
    for test in mine[:: 2 if len(mine) > 40 else 1]:
        small = max(abs(value) for _, value in test.program.weak) < 8
        if is_encodable(test.program) and small:
            assert Encoding(test.program).judge(test.program, test.program.weak) == test.verdict, test.name
            compared += 1
    assert compared >= 6


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(events=6, threads=3, updates=3, branches=False, data=False))
def test_drawn_programs(program: Program) -> None:
    bitwise = any(isinstance(a, Rmw) and a.kind in ("and", "or", "xor") for a in program.accesses)
    if bitwise and program.locations[0].dtype.startswith("i"):
        return
    encoding = Encoding(program)
    found = allowed(program)
    some = (*list(found.allowed)[:4], *list(found.unspecified)[:3], *forbidden_outcomes(program, found)[:4])
    for outcome in some:
        assert encoding.judge(program, outcome) == found.verdict(outcome), outcome


def test_the_encoding_can_disagree() -> None:
    """It notices a verdict that is wrong: the weak outcome of message passing under other orders than those asked."""
    shape = cycle(("Fre", "Rfe"))
    every = list(variants(shape))
    encoding = Encoding(shape)
    assert {encoding.judge(program, program.weak) for program in every} == {Verdict.ALLOWED, Verdict.FORBIDDEN}
    for outcome in interleaved(shape):
        assert encoding.judge(every[-1], outcome) is Verdict.ALLOWED
