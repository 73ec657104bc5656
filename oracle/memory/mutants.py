"""Model mutants: models that are wrong in one way, to prove that each test can fail.

A mutant is a device that breaks one rule and keeps the others. A test kills it if the mutant shows the outcome that the
test forbids. `VARIANTS` are other models in use that are not wrong: tests on which they differ are informative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from halfulp.oracle.memory.model import AXIOMS, RMW_RULES, Candidate, Event, Model, Required
from halfulp.oracle.memory.program import Program, bounds
from halfulp.oracle.memory.relation import Relation, members
from halfulp.oracle.memory.search import executions, verdict
from halfulp.oracle.sets import Verdict

# Orders that are lost.


class ReleaseStoreRelaxed(Model):
    name = "release_store_relaxed"
    summary = "a release store publishes nothing"

    def releases(self, event: Event) -> bool:
        return super().releases(event) and event.is_rmw


class AcquireLoadRelaxed(Model):
    name = "acquire_load_relaxed"
    summary = "an acquire load makes nothing visible"

    def acquires(self, event: Event) -> bool:
        # A failed compare-exchange is a read of its own kind: it has its own mutant.
        return super().acquires(event) and (event.is_rmw or event.failed)


class RmwLosesAcquire(Model):
    name = "rmw_loses_acquire"
    summary = "a read-modify-write makes nothing visible"

    def acquires(self, event: Event) -> bool:
        return super().acquires(event) and not event.is_rmw


class RmwLosesRelease(Model):
    name = "rmw_loses_release"
    summary = "a read-modify-write publishes nothing"

    def releases(self, event: Event) -> bool:
        return super().releases(event) and not event.is_rmw


class FailureOrderRelaxed(Model):
    name = "failure_order_relaxed"
    summary = "a compare-exchange that fails is relaxed, whatever its order"

    def failure_order(self, order: str) -> str:
        return "relaxed"


class NoReleaseSequence(Model):
    name = "no_release_sequence"
    summary = "an acquire has to read from the release itself, not from an update of it"

    def release_sequence(self, x: Candidate, member: int) -> list[int]:
        return [member]


class OnlyOneUpdate(Model):
    name = "release_sequence_of_one"
    summary = "a release sequence ends after its first update"

    def release_sequence(self, x: Candidate, member: int) -> list[int]:
        return super().release_sequence(x, member)[:2]


# Axioms that are lost.


class NotAtomic(Model):
    name = "not_atomic"
    summary = "a write may come between the read and the write of an update"
    axioms = frozenset(AXIOMS) - {"ATOM"}


class NoCoWW(Model):
    name = "no_coww"
    summary = "happens-before does not order two writes"
    axioms = frozenset(AXIOMS) - {"CoWW"}


class NoCoRW(Model):
    name = "no_corw"
    summary = "a read may see what is written after it"
    axioms = frozenset(AXIOMS) - {"CoRW"}


class NoCoWR(Model):
    name = "no_cowr"
    summary = "a read may miss a write that comes before it"
    axioms = frozenset(AXIOMS) - {"CoWR"}


class NoCoRR(Model):
    name = "no_corr"
    summary = "two reads may see two writes in the wrong order"
    axioms = frozenset(AXIOMS) - {"CoRR"}


class NoProgramOrder(Model):
    name = "no_program_order_of_a_location"
    summary = "two accesses of one thread to one location may change places"
    may_read_later = True

    def coherence(self, x: Candidate, hb: Relation) -> list[Required]:
        def one_thread(pair: Required) -> bool:
            first, second = pair.cause
            return pair.axiom != "RMW" and x.events[first].thread == x.events[second].thread

        return [pair for pair in super().coherence(x, hb) if not one_thread(pair)]


# Happens-before that is too small.


def handovers(x: Candidate, sw: Relation) -> Relation:
    """What one synchronization orders: everything up to the release before everything from the acquire on."""
    around = x.sb.reflexive()
    return around.then(sw).then(around)


class NotTransitive(Model):
    name = "not_transitive"
    summary = "what is known second hand is not handed on: two synchronizations do not add up"

    def happens_before(self, x: Candidate, sw: Relation) -> Relation:
        return x.sb | handovers(x, sw)


class ReleaseOrdersStores(Model):
    name = "release_orders_only_stores"
    summary = "a release keeps earlier writes in place, and lets earlier reads sink below it"

    def happens_before(self, x: Candidate, sw: Relation) -> Relation:
        return x.sb | handovers(x, sw).only(domain=x.writers).closure()


class AcquireOrdersLoads(Model):
    name = "acquire_orders_only_loads"
    summary = "an acquire keeps later reads in place, and lets later writes rise above it"

    def happens_before(self, x: Candidate, sw: Relation) -> Relation:
        return x.sb | handovers(x, sw).only(range_=x.readers).closure()


class PlainNotPublished(Model):
    name = "plain_not_published"
    summary = "release and acquire order atomic accesses only, not plain ones"

    def happens_before(self, x: Candidate, sw: Relation) -> Relation:
        atomic = sum(1 << i for i, event in enumerate(x.events) if event.order is not None)
        return x.sb | handovers(x, sw).only(atomic, atomic).closure()


# Operations that compute something else.


class ReturnsNew(Model):
    name = "rmw_returns_new"
    summary = "an update returns the value that it wrote"

    def returned(self, old: int, new: int) -> int:
        return new


class SuccessInverted(Model):
    name = "cas_success_inverted"
    summary = "a compare-exchange reports the opposite"

    def success(self, exchanged: bool) -> int:
        return int(not exchanged)


class ComparesHalf(Model):
    name = "cas_compares_half"
    summary = "a compare-exchange compares only the lower half of the bits"

    def equal(self, old: int, expected: int, dtype: str) -> bool:
        low, high = bounds(dtype)
        half = (high - low + 1).bit_length() // 2
        return (old ^ expected) & (1 << half) - 1 == 0


class AlwaysExchanges(Model):
    name = "cas_always_exchanges"
    summary = "a compare-exchange takes place whatever it reads"

    def equal(self, old: int, expected: int, dtype: str) -> bool:
        return True

    spurious_failures = False


class WrongSignedness(Model):
    name = "wrong_signedness"
    summary = "max and min compare as if the sign bit meant the opposite"

    def updated(self, kind: str, old: int, value: int, dtype: str) -> int:
        if kind not in ("max", "min"):
            return super().updated(kind, old, value, dtype)
        low, high = bounds(dtype)

        def other(number: int) -> int:
            """The same bits read with the other signedness."""
            if low < 0:
                return number % (high - low + 1)
            return number - (high + 1) if number > high >> 1 else number

        return (max if kind == "max" else min)(old, value, key=other)


class Saturates(Model):
    name = "add_saturates"
    summary = "add stops at the ends of the range and does not wrap"

    def updated(self, kind: str, old: int, value: int, dtype: str) -> int:
        low, high = bounds(dtype)
        return min(max(old + value, low), high) if kind == "add" else super().updated(kind, old, value, dtype)


class Exchanges(Model):
    name = "rmw_stores_operand"
    summary = "every update stores its operand, whatever its kind"

    def updated(self, kind: str, old: int, value: int, dtype: str) -> int:
        return RMW_RULES["exchange"](old, value, dtype)


class Invents(Model):
    name = "invents_values"
    summary = "a read may return 1 out of thin air"

    def invented(self, location: str) -> frozenset[int]:
        return frozenset({1})


PUBLISHED: tuple[Model, ...] = (
    ReleaseStoreRelaxed(),
    AcquireLoadRelaxed(),
    RmwLosesAcquire(),
    RmwLosesRelease(),
    FailureOrderRelaxed(),
    NoReleaseSequence(),
    NotAtomic(),
    NoCoRR(),
    NoCoRW(),
    NoCoWW(),
    NoCoWR(),
    NotTransitive(),
    ReleaseOrdersStores(),
    AcquireOrdersLoads(),
)
"""Mutants of orders and axioms."""

FURTHER: tuple[Model, ...] = (
    NoProgramOrder(),
    OnlyOneUpdate(),
    PlainNotPublished(),
    ReturnsNew(),
    SuccessInverted(),
    ComparesHalf(),
    AlwaysExchanges(),
    WrongSignedness(),
    Saturates(),
    Exchanges(),
    Invents(),
)
"""Mutants of what an operation computes, and finer ones of orders."""

MUTANTS: Mapping[str, Model] = {mutant.name: mutant for mutant in (*PUBLISHED, *FURTHER)}
"""All mutants by name."""


# Models in use that differ.


class SameThreadStores(Model):
    name = "c++11_release_sequence"
    summary = "later writes of the releasing thread continue a release sequence too (C++11, PTX)"

    def release_sequence(self, x: Candidate, member: int) -> list[int]:
        heads = super().release_sequence(x, member)
        for head in tuple(heads):
            heads += [w for w in members(x.writers & x.at[head]) if (w, head) in x.sb and w not in heads]
        return heads


VARIANTS: Mapping[str, Model] = {"c++11_release_sequence": SameThreadStores()}
"""Models in use that differ from ours: a test on which one of them differs is informative."""


# Who kills whom.


def shows(program: Program, model: Model) -> bool:
    """Whether a device that follows ``model`` can show the weak outcome of a program."""
    return next(executions(program, model, program.weak), None) is not None


def kills(program: Program, mutants: Iterable[Model] = tuple(MUTANTS.values())) -> tuple[str, ...]:
    """The mutants that show the weak outcome, which the language forbids. Empty if it does not forbid it."""
    if verdict(program) is not Verdict.FORBIDDEN:
        return ()
    return tuple(mutant.name for mutant in mutants if shows(program, mutant))


def cover(table: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A smallest choice of tests that together kill every mutant that any test kills.

    Args:
        table: for each test the mutants that it kills.

    Returns:
        Names of tests. Of equally small choices, the one that comes first in the order of the table.
    """
    order = {name: i for i, name in enumerate(table)}
    mutants = sorted({mutant for killed in table.values() for mutant in killed})
    bit = {mutant: 1 << i for i, mutant in enumerate(mutants)}
    # A test whose kills are among those of another one is not needed; of tests with equal kills the first is enough.
    masks: dict[int, str] = {}
    for name, killed in table.items():
        masks.setdefault(sum({bit[mutant] for mutant in killed}), name)
    useful = {mask: name for mask, name in masks.items() if not any(mask != o and mask & o == mask for o in masks)}
    everything = (1 << len(mutants)) - 1
    # What can be covered by 0, 1, 2, ... tests. Some test has to kill the mutant that the fewest tests kill.
    reached: dict[int, tuple[str, ...]] = {0: ()}
    while everything not in reached:
        further: dict[int, tuple[str, ...]] = {}
        for covered, chosen in reached.items():
            missing = (b for b in bit.values() if not covered & b)
            rarest = min(missing, key=lambda b: sum(1 for mask in useful if mask & b))
            for mask, name in useful.items():
                if mask & rarest:
                    further.setdefault(covered | mask, (*chosen, name))
        reached = further
    return tuple(sorted(reached[everything], key=order.__getitem__))
