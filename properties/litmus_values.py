"""Litmus programs about the values of atomic operations: whole, of the right sign and width, before and after."""

from __future__ import annotations

from collections.abc import Iterator

from halfulp.oracle.formats import format_of
from halfulp.oracle.memory.program import DTYPES, RMW_KINDS, Cas, Instruction, Load, Location, Program, Rmw, Store, wrap
from halfulp.oracle.memory.program import bounds as range_of


def interesting(dtype: str) -> tuple[int, ...]:
    """Both ends of the range, around zero, both halves alike, the halves apart."""
    low, high = range_of(dtype)
    half = format_of(dtype).width // 2
    pattern = wrap((1 << half) + 1, dtype)
    upper = wrap(3 << half, dtype)
    return tuple(dict.fromkeys((0, 1, high, low, wrap(-1, dtype), pattern, upper, high - 1)))


def value_programs(dtype: str) -> Iterator[Program]:
    """Programs of one thread on one location, and readers of wide stores."""
    values = interesting(dtype)
    for kind in RMW_KINDS:
        for place, initial in enumerate(values):
            operand = values[-1 - place]
            steps: tuple[Instruction, ...] = (
                Rmw("r0", kind, "x", operand, "acq_rel"),
                Rmw("r1", kind, "x", initial),
                Rmw(None, kind, "x", values[(place + 3) % len(values)], "release"),
            )
            yield _one_thread(f"value-{kind}-{place}", dtype, initial, steps)
    half = format_of(dtype).width // 2
    for place, initial in enumerate(values):
        near = wrap(initial ^ (1 << half), dtype)
        other = wrap(initial ^ 1, dtype)
        steps = (
            Cas("r0", "s0", "x", near, other, "acquire"),  # differs in the upper half: fails
            Cas("r1", "s1", "x", other, near, "release"),  # differs in the last bit: fails
            Cas("r2", "s2", "x", initial, other, "acq_rel"),  # takes place
            Cas("r3", "s3", "x", initial, near),  # not any more: fails
            Cas("r4", "s4", "x", other, other),  # takes place, and writes what was there
        )
        yield _one_thread(f"value-cas-{place}", dtype, initial, steps)
    zeros, ones = 0, wrap(-1, dtype)
    for name, order in (("relaxed", "relaxed"), ("ordered", None)):
        write, read = order or "release", order or "acquire"
        readers = (Load("r0", "x", read), Load("r1", "x", read))
        writers = (Store("x", ones, write), Store("x", zeros, write), Store("x", ones, write))
        yield _program(f"whole-store-{name}", dtype, zeros, (writers, readers))
    exchanges = (Rmw("r0", "exchange", "x", ones), Rmw("r1", "exchange", "x", zeros))
    yield _program("whole-exchange", dtype, zeros, (exchanges, (Load("r0", "x"), Load("r1", "x"))))


def _program(name: str, dtype: str, initial: int, threads: tuple[tuple[Instruction, ...], ...]) -> Program:
    return Program(name, (Location("x", dtype, initial),), threads)


def _one_thread(name: str, dtype: str, initial: int, steps: tuple[Instruction, ...]) -> Program:
    program = _program(name, dtype, initial, (steps,))
    return Program(program.name, program.locations, program.threads, (), (*program.registers, "x"))


def order_programs(dtype: str) -> Iterator[Program]:
    """Programs that use every access with every order, for a look at the instructions."""
    cells = (Location("x", dtype), Location("y", dtype))
    for order in ("relaxed", "acquire", "release", "acq_rel"):
        read = order if order == "acquire" else "relaxed"
        write = order if order == "release" else "relaxed"
        publish: tuple[Instruction, ...] = (Store("x", 1, None), Store("y", 1, write), Load("a", "x", None))
        observe: tuple[Instruction, ...] = (Load("b", "y", read), Load("c", "x", "relaxed"), Store("x", 2, "relaxed"))
        updates: tuple[Instruction, ...] = (
            *(Rmw(f"r{place}", kind, "y", place, order) for place, kind in enumerate(RMW_KINDS)),
            Rmw(None, "exchange", "x", 3, order),  # the old value is not used
            Rmw(None, "add", "y", 1, order),
            Rmw("n", "add", "x", 0, order),  # nothing changes
            Cas("o", "s", "y", 1, 2, order),
            Cas(None, None, "x", 1, 2, order),
        )
        observed = ("0:a", "1:b", "1:c", *(f"2:r{place}" for place in range(len(RMW_KINDS))), "2:n", "2:o", "2:s")
        yield Program(f"orders-{order}", cells, (publish, observe, updates), (), observed)


ORDER_PROGRAMS: dict[str, tuple[Program, ...]] = {dtype: tuple(order_programs(dtype)) for dtype in DTYPES}
"""By dtype."""

VALUE_PROGRAMS: dict[str, tuple[Program, ...]] = {dtype: tuple(value_programs(dtype)) for dtype in DTYPES}
"""By dtype."""
