"""Programs that differ from a litmus test in one way, and for that reason may show its weak outcome.

What a test has not seen is worth as much as the chance that it would have seen it. So beside each test whose weak
outcome is forbidden one of its mutants is run, in the same way: it says how often the outcome appears where it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations

from halfulp.oracle.memory.model import RMW_RULES
from halfulp.oracle.memory.program import (
    Cas,
    If,
    Instruction,
    Load,
    Location,
    Program,
    Rmw,
    Store,
    map_accesses,
)
from halfulp.oracle.memory.search import domain_of, verdict
from halfulp.oracle.sets import Verdict


@dataclass(frozen=True)
class Mutant:
    """``program`` may show the weak outcome of the test that it was made from; ``change`` says what was changed."""

    change: str
    program: Program


@lru_cache(1024)
def mutant_of(program: Program) -> Mutant | None:
    """The first mutant that the model allows to show the weak outcome; None if there is none of these kinds."""
    for mutant in _mutants(program):
        if verdict(mutant.program, program.weak) is Verdict.ALLOWED:
            return mutant
    return None


def _mutants(program: Program) -> Iterator[Mutant]:
    atomic = map_accesses(program, lambda _, access: access if access.order else replace(access, order="relaxed"))
    relaxed = map_accesses(atomic, lambda _, access: replace(access, order="relaxed"))
    yield Mutant("every order relaxed", relaxed)
    split = _split(program)
    if split is not None:
        yield Mutant("read-modify-writes as loads and stores", split)
        yield Mutant("every order relaxed, read-modify-writes as loads and stores", _split(relaxed) or relaxed)
    for number, thread in enumerate(relaxed.threads):
        for order in permutations(range(len(thread))):
            if list(order) == sorted(order):
                continue
            try:
                swapped = replace(
                    relaxed,
                    threads=tuple(
                        tuple(thread[at] for at in order) if n == number else other
                        for n, other in enumerate(relaxed.threads)
                    ),
                )
            except ValueError:  # a register would be read before it is written
                continue
            yield Mutant(f"every order relaxed, thread {number} in another order", swapped)


def _split(program: Program) -> Program | None:
    """Every read-modify-write as a load and a store; None if there is none to split."""
    if not any(isinstance(access, Rmw | Cas) for access in program.accesses):
        return None
    domain = domain_of(program)
    fresh = iter(range(1000))
    ones: dict[str, Location] = {}

    def block(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        copy: list[Instruction] = []
        for instruction in instructions:
            match instruction:
                case If():
                    inner = (block(instruction.then), block(instruction.otherwise))
                    copy.append(replace(instruction, then=inner[0], otherwise=inner[1]))
                case Rmw():
                    name = instruction.register or f"old{next(fresh)}"
                    load, order = Load(name, instruction.location, _reading(instruction.order)), instruction.order
                    copy.append(load)
                    dtype = program.location(instruction.location).dtype
                    if instruction.kind == "exchange":
                        copy.append(Store(instruction.location, instruction.value, _writing(order)))
                    elif isinstance(instruction.value, int):
                        rule = RMW_RULES[instruction.kind]
                        for old in sorted(domain[instruction.location]):
                            new = rule(old, instruction.value, dtype)
                            copy.append(If(name, old, (Store(instruction.location, new, _writing(order)),)))
                    else:
                        raise _NotSplitError
                case Cas():
                    if not isinstance(instruction.expected, int):
                        raise _NotSplitError
                    name = instruction.register or f"old{next(fresh)}"
                    copy.append(Load(name, instruction.location, _reading(instruction.order)))
                    then: tuple[Instruction, ...] = (
                        Store(instruction.location, instruction.desired, _writing(instruction.order)),
                    )
                    if instruction.success:  # the language has no constants for registers: read a 1 from somewhere
                        dtype = program.location(instruction.location).dtype
                        one = ones.setdefault(dtype, Location(f"one_{dtype}", dtype, 1))
                        then = (*then, Load(instruction.success, one.name))
                    copy.append(If(name, instruction.expected, then))
                case _:
                    copy.append(instruction)
        return tuple(copy)

    try:
        threads = tuple(block(thread) for thread in program.threads)
    except _NotSplitError:
        return None
    return replace(program, locations=(*program.locations, *ones.values()), threads=threads)


class _NotSplitError(Exception):
    """The program language has no words for the parts."""


def _reading(order: str) -> str:
    return "acquire" if order in ("acquire", "acq_rel") else "relaxed"


def _writing(order: str) -> str:
    return "release" if order in ("release", "acq_rel") else "relaxed"
