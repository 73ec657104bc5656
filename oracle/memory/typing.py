"""Which litmus programs the language accepts: the orders that each operation admits (``intent:11-e``, ``11-g``).

Names, ranges of values and dtypes are checked by `program.Program` itself; what is left is what a type checker of the
language has to refuse, so that a backend can be tried on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product

from halfulp.oracle.memory.program import (
    DTYPES,
    ORDERS,
    RMW_KINDS,
    Access,
    Cas,
    Load,
    Location,
    Program,
    Rmw,
    Store,
)
from halfulp.oracle.ops.record import Accepted, Refused

ADMITTED: Mapping[type[Access], tuple[str, ...]] = {
    Load: ("relaxed", "acquire"),
    Store: ("relaxed", "release"),
    Rmw: ORDERS,
    Cas: ORDERS,
}
"""The orders that each operation admits (``intent:11-e``)."""

NAMES: Mapping[type[Access], str] = {
    Load: "atomic_load",
    Store: "atomic_store",
    Rmw: "atomic_rmw",
    Cas: "atomic_compare_exchange",
}


def check_access(access: Access) -> Refused | None:
    """Why the language refuses an access; None if it accepts it."""
    name = NAMES[type(access)]
    if access.scope:
        reason = f"{name} has no scope argument, and {access.scope!r} is given"
        return Refused("intent:11-g" if access.order is not None else "intent:10-k", reason)
    if access.order is None:
        if isinstance(access, Rmw | Cas):
            return Refused("intent:11-e", f"{name} needs a memory order")
        return None
    if access.order not in ADMITTED[type(access)]:
        admitted = ", ".join(ADMITTED[type(access)])
        return Refused("intent:11-e", f"{name} cannot be {access.order}; it can be {admitted}")
    return None


def check(program: Program) -> Accepted | Refused:
    """Whether the language accepts a program."""
    for access in program.accesses:
        refused = check_access(access)
        if refused is not None:
            return refused
    return Accepted("")


def _accesses(order: str, scope: str = "") -> Iterator[Access]:
    yield Load("r0", "x", order, scope)
    yield Store("x", 1, order, scope)
    for kind in RMW_KINDS:
        yield Rmw("r0", kind, "x", 1, order, scope)
    yield Cas("r0", "s0", "x", 0, 1, order, scope)


@cache
def typing_programs() -> tuple[tuple[Program, Accepted | Refused], ...]:
    """Every operation with every order on every dtype, with an order that does not exist here, and with a scope."""
    found = []
    for dtype, order, scope in (
        *product(DTYPES, (*ORDERS, "seq_cst"), ("",)),
        *product(DTYPES, ("relaxed",), ("block", "device", "system")),
    ):
        for access in _accesses(order, scope):
            kind = f"-{access.kind}" if isinstance(access, Rmw) else ""
            name = "-".join(filter(None, (NAMES[type(access)] + kind, order, scope, dtype)))
            program = Program(name, (Location("x", dtype),), ((access,),))
            found.append((program, check(program)))
    return tuple(found)


def rejections() -> tuple[tuple[Program, Refused], ...]:
    """Programs that the language refuses, each with the reason."""
    return tuple((program, answer) for program, answer in typing_programs() if isinstance(answer, Refused))


def acceptances() -> tuple[Program, ...]:
    """Programs that the language accepts: every operation with every order that it admits."""
    return tuple(program for program, answer in typing_programs() if isinstance(answer, Accepted))


def weakened(access: Access) -> tuple[Access, ...]:
    """The same access with each order that is weaker by one half."""
    weaker: Mapping[str | None, tuple[str, ...]] = {
        "acquire": ("relaxed",),
        "release": ("relaxed",),
        "acq_rel": ("acquire", "release"),
    }
    return tuple(replace(access, order=order) for order in weaker.get(access.order, ()))
