"""Random litmus programs, as hypothesis strategies: what the catalogue does not think of.

They shrink towards few threads, few accesses, loads, relaxed orders and small values.
"""

from __future__ import annotations

from hypothesis import strategies as st

from halfulp.oracle.memory.program import (
    DTYPES,
    RMW_KINDS,
    Access,
    Cas,
    If,
    Instruction,
    Load,
    Location,
    Operand,
    Program,
    Rmw,
    Store,
    Thread,
    accesses_of,
)
from halfulp.oracle.memory.typing import ADMITTED

VALUES = st.integers(0, 2)


@st.composite
def accesses(
    draw: st.DrawFn, locations: tuple[str, ...], number: int, readable: tuple[str, ...], plain: bool, updates: bool
) -> Access:
    """One access.

    Args:
        number: makes its registers differ from those of other accesses.
        readable: registers that operands may name.
        plain: loads and stores may be plain accesses.
        updates: read-modify-writes and compare-exchanges may come.
    """
    kind = draw(st.sampled_from((Load, Store, Rmw, Cas) if updates else (Load, Store)))
    location = draw(st.sampled_from(locations))
    order = draw(st.sampled_from(ADMITTED[kind]))

    def operand() -> Operand:
        return draw(st.one_of(VALUES, st.sampled_from(readable)) if readable else VALUES)

    if kind is Load:
        return Load(f"r{number}", location, None if plain and draw(st.booleans()) else order)
    if kind is Store:
        return Store(location, operand(), None if plain and draw(st.booleans()) else order)
    if kind is Rmw:
        return Rmw(f"r{number}", draw(st.sampled_from(RMW_KINDS)), location, operand(), order)
    return Cas(f"r{number}", f"s{number}", location, operand(), operand(), order)


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    events: int = 8,
    threads: int = 4,
    plain: bool = False,
    updates: int = 3,
    branches: bool = True,
    data: bool = True,
) -> Program:
    """Programs of up to ``events`` accesses in up to ``threads`` threads, on one to three locations.

    Args:
        events: at most 12 keeps enumeration fast.
        plain: with plain accesses.
        updates: at most so many read-modify-writes and compare-exchanges: they make values grow.
        branches: with ``if`` on registers.
        data: with operands that are registers.
    """
    locations = ("x", "y", "z")[: draw(st.integers(1, 3))]
    dtype = draw(st.sampled_from(DTYPES[::-1])) if draw(st.booleans()) else "u32"
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=threads).filter(lambda s: sum(s) <= events))
    left = updates
    made: list[Thread] = []
    for size in sizes:
        thread: list[Instruction] = []
        readable: tuple[str, ...] = ()
        for number in range(size):
            access = draw(accesses(locations, number, readable if data else (), plain, left > 0))
            left -= isinstance(access, Rmw | Cas)
            if branches and readable and draw(st.integers(0, 3)) == 3:
                # Alone in its branch: what it reads is not used afterwards, so that every path defines what it uses.
                thread.append(If(draw(st.sampled_from(readable)), draw(VALUES), (access,)))
                continue
            thread.append(access)
            if isinstance(access, Load | Rmw | Cas):
                readable = (*readable, f"r{number}")
        made.append(tuple(thread))
    places = tuple(Location(name, dtype, draw(VALUES)) for name in locations)
    return everything_observed(tuple(made), places)


def everything_observed(threads: tuple[Thread, ...], locations: tuple[Location, ...]) -> Program:
    """A program on those locations that it uses; all registers and the memory are observed.

    Raises:
        ValueError: it is none.
    """
    used = {access.location for thread in threads for access in accesses_of(thread)}
    places = tuple(location for location in locations if location.name in used)
    registers = Program("drawn", places, threads).registers
    return Program("drawn", places, threads, observe=(*registers, *(place.name for place in places)))
