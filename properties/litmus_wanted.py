"""What a litmus program wants of the code of a thread: accesses along each way through it, and their conditions.

`litmus_accesses` holds the instructions of a backend against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from halfulp.oracle.formats import format_of
from halfulp.oracle.memory.program import Access, Cas, If, Program, Thread, written_registers


@dataclass(frozen=True)
class Fact:
    """What a path says of an access on it: its value, or whether a compare-exchange took place (1 or 0).

    Attributes:
        at: position of the access in the path.
        what: ``"value"`` or ``"success"``.
        equals: the number that it is compared with, modulo 2**width.
        holds: whether it is that number.
    """

    at: int
    what: str
    equals: int
    holds: bool


@dataclass(frozen=True)
class Wanted:
    """Accesses of a program along one way through a thread, and what is known of their results.

    Attributes:
        needed: False where perhaps no execution goes this way, so that it may be missing in the instructions.
    """

    accesses: tuple[Access, ...]
    facts: tuple[Fact, ...] = ()
    needed: bool = True


def wanted_paths(program: Program, thread: Thread) -> list[Wanted]:
    """The ways through a thread whose conditions do not contradict each other."""
    found: list[Wanted] = []

    def follow(
        rest: Thread, accesses: tuple[Access, ...], facts: tuple[Fact, ...], sources: Mapping[str, tuple[int, str]]
    ) -> None:
        if not rest:
            if consistent([*facts, *implied(program, accesses, facts)]):
                found.append(Wanted(accesses, facts, _certain(accesses, facts)))
            return
        first, rest = rest[0], rest[1:]
        if not isinstance(first, If):
            written = {register: (len(accesses), "value") for register in written_registers(first)}
            if isinstance(first, Cas) and first.success:
                written[first.success] = (len(accesses), "success")
            follow(rest, (*accesses, first), facts, {**sources, **written})
            return
        for holds, branch in ((True, first.then), (False, first.otherwise)):
            if first.register not in sources:  # not written on this path: it is 0
                if (first.equals == 0) == holds:
                    follow((*branch, *rest), accesses, facts, sources)
                continue
            at, what = sources[first.register]
            width = format_of(program.location(accesses[at].location).dtype).width
            fact = Fact(at, what, first.equals % (1 << width), holds)
            follow((*branch, *rest), accesses, (*facts, fact), sources)

    follow(thread, (), (), {})
    return found


def consistent(facts: Sequence[Fact]) -> bool:
    """Whether values can be as a path says."""
    values: dict[tuple[int, str], int] = {}
    excluded: dict[tuple[int, str], set[int]] = {}
    for fact in facts:
        place = (fact.at, fact.what)
        if not fact.holds:
            excluded.setdefault(place, set()).add(fact.equals)
        elif values.setdefault(place, fact.equals) != fact.equals:
            return False
    for place, value in values.items():
        if value in excluded.get(place, ()) or (place[1] == "success" and value not in (0, 1)):
            return False
    return not any(what == "success" and {0, 1} <= numbers for (_, what), numbers in excluded.items())


def implied(program: Program, accesses: Sequence[Access], facts: Sequence[Fact]) -> Iterator[Fact]:
    """What the success of a compare-exchange says of the value that it read."""
    for fact in facts:
        access = accesses[fact.at]
        if fact.what == "success" and isinstance(access, Cas) and isinstance(access.expected, int):
            width = format_of(program.location(access.location).dtype).width
            yield Fact(fact.at, "value", access.expected % (1 << width), fact.holds == (fact.equals == 1))


def _certain(accesses: Sequence[Access], facts: Sequence[Fact]) -> bool:
    """Whether other threads can bring about what the facts say, so that no compiler may leave this path out.

    Not if a value that is tested may be known: of an ordinary access, of a location that the thread has used before,
    or of a compare-exchange of which success is tested too.
    """
    for fact in facts:
        access = accesses[fact.at]
        used = {earlier.location for earlier in accesses[: fact.at]}
        both = {other.what for other in facts if other.at == fact.at}
        if access.order is None or access.location in used or len(both) > 1:
            return False
    return True
