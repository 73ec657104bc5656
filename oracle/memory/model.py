"""The memory model: what acquire, release, read-modify-writes and coherence mean (``intent:11-b`` to ``11-f``).

An *execution* is a set of events (reads, writes, and read-modify-writes, each of which is one event that reads and
writes) and two choices: *reads-from* (rf), the write that each read takes its value from, and for each location
*modification order* (mo), a total order of its writes. All else follows:

* *sequenced-before* (sb): the order of the program within a thread; the initial writes come before everything.
* *release sequence* of a write w: w, and every read-modify-write that reads from a member of it (``reading:19``).
* *synchronizes-with* (sw): a releasing write to an acquiring read that reads from its release sequence.
* *happens-before* (hb): the transitive closure of sb and sw.

An execution is consistent if

* hb is irreflexive;
* CoWW: w1 hb w2 on one location implies w1 mo w2;
* CoRW: r hb w on one location implies rf(r) mo w;
* CoWR: w hb r on one location implies w = rf(r) or w mo rf(r);
* CoRR: r1 hb r2 on one location implies rf(r1) = rf(r2) or rf(r1) mo rf(r2);
* RMW: a read-modify-write reads before it writes: rf(u) mo u;
* ATOM: and nothing comes between: what follows rf(u) follows u, what precedes u precedes rf(u).

Here rf(r) is the write that r reads from. The model is RC20 (Tunç et al., PLDI 2023) without sequential consistency,
fences, or the axiom that forbids cycles of sb and rf; such cycles are *unspecified* (``reading:20``), and so is a
compare-exchange that fails although it reads the expected value (``reading:21``). Two accesses to one location from
different threads, one of them a write and one of them plain, that are not ordered by hb are a race: the program has no
claim (``intent:11-i``, ``reading:22``).

Every axiom but the first says that one write comes before another in mo. So rf alone decides whether some mo makes the
execution consistent: iff what the axioms require has no cycle. Any write that need not precede another may be the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from halfulp.oracle.memory.program import FAILURE_ORDERS, wrap
from halfulp.oracle.memory.relation import Relation, members

INITIAL = -1
"""The thread number of initial writes."""


@dataclass(frozen=True, slots=True)
class Event:
    """One access as it took place.

    Attributes:
        thread: number of the thread, `INITIAL` for an initial write.
        access: position in ``Program.accesses``; -1 for an initial write.
        reads: the value read; None if it reads nothing.
        writes: the value written; None if it writes nothing.
        order: its memory order (that of a failed compare-exchange is the derived one); None for a plain access.
        failed: a compare-exchange that did not take place.
        spurious: one that did not, although it read the expected value.
    """

    thread: int
    access: int
    location: str
    reads: int | None
    writes: int | None
    order: str | None
    failed: bool = False
    spurious: bool = False

    @property
    def is_rmw(self) -> bool:
        return self.reads is not None and self.writes is not None

    def __str__(self) -> str:
        if self.thread == INITIAL:
            return f"initial {self.location}={self.writes}"
        if self.is_rmw:
            what = f"updates {self.location} {self.reads}->{self.writes}"
        elif self.reads is not None:
            what = f"reads {self.location}={self.reads}"
        else:
            what = f"writes {self.location}={self.writes}"
        return f"T{self.thread} {what} ({self.order or 'plain'})"


class Candidate:
    """Events of one run of every thread, with reads-from, and no modification order yet.

    Attributes:
        events: initial writes first, then thread by thread in program order.
        sb: sequenced-before, transitive.
        rf: for each event, the position of the write that it reads from; -1 for events that read nothing.
        readers, writers: bit sets of the events that read, and that write.
        at: for each event, the bit set of events at its location.
    """

    __slots__ = ("at", "events", "readers", "rf", "sb", "writers")

    def __init__(self, events: Sequence[Event], rf: Sequence[int] = ()) -> None:
        self.events = tuple(events)
        self.rf = tuple(rf)
        self.readers = self.writers = 0
        same: dict[str, int] = {}
        thread: dict[int, int] = {}
        for position, event in enumerate(self.events):
            bit = 1 << position
            if event.reads is not None:
                self.readers |= bit
            if event.writes is not None:
                self.writers |= bit
            same[event.location] = same.get(event.location, 0) | bit
            thread[event.thread] = thread.get(event.thread, 0) | bit
        self.at = tuple(same[event.location] for event in self.events)
        rest = (1 << len(self.events)) - 1 & ~thread.get(INITIAL, 0)
        self.sb = Relation(
            rest if event.thread == INITIAL else thread[event.thread] & -(2 << position)
            for position, event in enumerate(self.events)
        )

    def reading(self, rf: Sequence[int], readers: int = -1) -> Candidate:
        """The same events with another reads-from, of those events alone that are in ``readers``."""
        copy = Candidate.__new__(Candidate)
        copy.events, copy.sb, copy.at = self.events, self.sb, self.at
        copy.readers, copy.writers, copy.rf = self.readers & readers, self.writers, tuple(rf)
        return copy

    @property
    def reads_from(self) -> Relation:
        """rf as a relation from write to read."""
        size = len(self.events)
        return Relation.of(size, ((source, read) for read, source in enumerate(self.rf) if source >= 0))


@dataclass(frozen=True, slots=True)
class Required:
    """A pair of modification order that an axiom requires.

    Attributes:
        before, after: two writes; if they are one and the same, the axiom is violated at once.
        axiom: which axiom.
        cause: for coherence, the pair of events that is ordered by happens-before. For ATOM, the other pair that it
            follows from.
    """

    before: int
    after: int
    axiom: str
    cause: tuple[int, int]


COHERENCE = ("CoWW", "CoRW", "CoWR", "CoRR")
"""The four axioms of coherence."""

AXIOMS = ("hb", *COHERENCE, "RMW", "ATOM")
"""All axioms by name, in the order of the text above."""


class Model:
    """The model of the language. A variant or a mutant overrides one method or drops one axiom."""

    name = "intent"
    summary = "the model of the language"
    axioms: frozenset[str] = frozenset(AXIOMS)
    spurious_failures = True
    """A compare-exchange may fail though it reads the expected value; such executions are unspecified."""

    @property
    def may_read_later(self) -> bool:
        """Whether a read may see a later write of its own thread, which CoRW excludes."""
        return "CoRW" not in self.axioms

    # What each operation computes.

    def updated(self, kind: str, old: int, value: int, dtype: str) -> int:
        """What a read-modify-write writes. ``add`` wraps; ``max`` and ``min`` follow the signedness."""
        return RMW_RULES[kind](old, value, dtype)

    def returned(self, old: int, new: int) -> int:
        """What a read-modify-write returns."""
        return old

    def equal(self, old: int, expected: int, dtype: str) -> bool:
        """Whether a compare-exchange takes place."""
        return old == expected

    def success(self, exchanged: bool) -> int:
        """What a compare-exchange reports."""
        return int(exchanged)

    def failure_order(self, order: str) -> str:
        """The order of a compare-exchange that fails."""
        return FAILURE_ORDERS[order]

    def invented(self, location: str) -> frozenset[int]:
        """Values that a read of ``location`` may return though nothing can write them."""
        return frozenset()

    # Synchronization.

    def releases(self, event: Event) -> bool:
        """Whether a write publishes what came before it."""
        return event.order in ("release", "acq_rel")

    def acquires(self, event: Event) -> bool:
        """Whether a read makes visible what its source published."""
        return event.order in ("acquire", "acq_rel")

    def release_sequence(self, x: Candidate, member: int) -> list[int]:
        """The writes in whose release sequence ``member`` is: itself, and from a read-modify-write on back along rf."""
        heads = [member]
        while x.rf[heads[-1]] >= 0 and x.rf[heads[-1]] not in heads:
            heads.append(x.rf[heads[-1]])
        return heads

    def synchronizes_with(self, x: Candidate) -> Relation:
        """sw: releasing writes to acquiring reads of their release sequences."""
        pairs = []
        for read in members(x.readers):
            if self.acquires(x.events[read]):
                for write in self.release_sequence(x, x.rf[read]):
                    if self.releases(x.events[write]):
                        pairs.append((write, read))
        return Relation.of(len(x.events), pairs)

    def happens_before(self, x: Candidate, sw: Relation) -> Relation:
        """hb: the transitive closure of sb and sw."""
        return (x.sb | sw).closure() if any(sw.rows) else x.sb

    # What happens-before, reads-from and atomicity require of modification order.

    def coherence(self, x: Candidate, hb: Relation) -> list[Required]:
        """The pairs that CoWW, CoRW, CoWR, CoRR and RMW require."""
        updates = members(x.readers & x.writers)
        required = [Required(x.rf[update], update, "RMW", (update, update)) for update in updates]
        rf, readers, writers, axioms = x.rf, x.readers, x.writers, self.axioms
        for a, row in enumerate(hb.rows):
            for b in members(row & x.at[a]):
                a_reads, a_writes = readers >> a & 1, writers >> a & 1
                b_reads, b_writes = readers >> b & 1, writers >> b & 1
                if a_writes and b_writes and "CoWW" in axioms:
                    required.append(Required(a, b, "CoWW", (a, b)))
                if a_reads and b_writes and "CoRW" in axioms:
                    required.append(Required(rf[a], b, "CoRW", (a, b)))
                if a_writes and b_reads and a != rf[b] and "CoWR" in axioms:
                    required.append(Required(a, rf[b], "CoWR", (a, b)))
                if a_reads and b_reads and rf[a] != rf[b] and "CoRR" in axioms:
                    required.append(Required(rf[a], rf[b], "CoRR", (a, b)))
        return required

    def atomicity(self, x: Candidate, required: list[Required]) -> list[Required]:
        """``required``, and what follows from it by ATOM, again and again until nothing new does."""
        updates = [(x.rf[update], update) for update in members(x.readers & x.writers)]
        if not updates or "ATOM" not in self.axioms:
            return required
        known = {(pair.before, pair.after): pair for pair in reversed(required)}
        pending = list(known)
        while pending:
            before, after = pending.pop()
            for source, update in updates:
                if before == source and after not in (source, update):
                    new = (update, after)
                elif after == update and before not in (source, update):
                    new = (before, source)
                else:
                    continue
                if new not in known:
                    known[new] = Required(*new, "ATOM", (before, after))
                    pending.append(new)
        return list(known.values())

    def required(self, x: Candidate, hb: Relation) -> list[Required]:
        """All pairs of writes whose modification order the axioms fix."""
        return self.atomicity(x, self.coherence(x, hb))


def _exchange(old: int, value: int, dtype: str) -> int:
    return value


def _add(old: int, value: int, dtype: str) -> int:
    return wrap(old + value, dtype)


RMW_RULES: Mapping[str, Callable[[int, int, str], int]] = {
    "exchange": _exchange,
    "add": _add,
    "max": lambda old, value, dtype: max(old, value),
    "min": lambda old, value, dtype: min(old, value),
    "and": lambda old, value, dtype: old & value,
    "or": lambda old, value, dtype: old | value,
    "xor": lambda old, value, dtype: old ^ value,
}
"""What each kind of read-modify-write writes, from the old value and the operand (``intent:11-b``)."""

MODEL = Model()
"""The model that judges."""
