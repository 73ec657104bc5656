"""Which clauses of the specification the outcomes of a program fall under."""

from __future__ import annotations

from halfulp.oracle.memory.program import Cas, Program


def clauses_of(program: Program) -> tuple[str, ...]:
    """The clauses that an outcome of a program is judged under, sorted."""
    found = ["intent:11-a", "intent:11-b"]
    if any(isinstance(access, Cas) for access in program.accesses):
        found.append("intent:11-c")
    if any(access.order not in (None, "relaxed") for access in program.accesses):
        found.append("intent:11-d")
    if any(isinstance(access, Cas) and access.order in ("acquire", "acq_rel") for access in program.accesses):
        found.append("intent:11-f")
    return tuple(found)
