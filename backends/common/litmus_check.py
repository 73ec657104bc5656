"""Which orders an atomic access may name, as the backends read the dialect (``intent:11-e``, ``intent:11-g``)."""

from __future__ import annotations

from halfulp.backends.common.check import TypeRefusal
from halfulp.oracle.memory.program import Access, Cas, Load, Program, Rmw, Store

ADMITTED: dict[type[Access], tuple[str | None, ...]] = {
    Load: (None, "relaxed", "acquire"),
    Store: (None, "relaxed", "release"),
    Rmw: ("relaxed", "acquire", "release", "acq_rel"),
    Cas: ("relaxed", "acquire", "release", "acq_rel"),
}
"""None stands for an ordinary access."""


def check_access(access: Access) -> None:
    """Raises TypeRefusal where the order is not one of the operation's, or a scope is given."""
    name = type(access).__name__.lower()
    if access.order not in ADMITTED[type(access)]:
        raise TypeRefusal(f"intent:11-e: an atomic {name} has no order {access.order}")
    if access.scope:
        raise TypeRefusal(f"intent:11-g: an atomic {name} has no scope argument, and here it is {access.scope!r}")


def check_program(program: Program) -> None:
    """Raises TypeRefusal for the first access that is ill-typed."""
    for access in program.accesses:
        check_access(access)
