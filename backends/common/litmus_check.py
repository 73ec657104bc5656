"""Which atomics there are, as the backends read the dialect: dtypes, and orders (``intent:11-e``, ``intent:11-g``)."""

from __future__ import annotations

from halfulp.backends.common.check import NotOffered, TypeRefusal
from halfulp.oracle.memory.program import RMW_KINDS, Access, Cas, Load, Program, Rmw, Store

DTYPES = ("i32", "u32", "i64", "u64")
"""Dtypes with atomics."""

NUMPY = {"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "bool": "u1"}
"""Arrays of values; a success flag takes a byte."""

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


def check_dtype(dtype: str) -> None:
    """Raises NotOffered where there are no atomics on it."""
    if dtype not in DTYPES:
        raise NotOffered(f"no atomics on {dtype}")


def check_program(program: Program) -> None:
    """Raises TypeRefusal for the first access that is ill-typed; NotOffered for a location without atomics."""
    for access in program.accesses:
        check_access(access)
    for location in program.locations:
        check_dtype(location.dtype)


def check_contest(kind: str, dtype: str, order: str) -> None:
    """Raises TypeRefusal or NotOffered where the operation is ill-typed, or not of the backends."""
    check_dtype(dtype)
    if kind not in (*RMW_KINDS, "cas"):
        raise NotOffered(f"no read-modify-write {kind}")
    if order not in ADMITTED[Rmw]:
        raise TypeRefusal(f"intent:11-e: a read-modify-write has no order {order}")
