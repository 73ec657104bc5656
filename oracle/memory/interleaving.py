"""Interleavings: what a program does if its threads take turns, one access at a time (sequential consistency).

Not what the language promises, but a yardstick. A run in which every instance shows what threads would show one after
the other says little; the share of outcomes that need an interleaving, or that no interleaving gives, says how hard a
run has looked. Every outcome of an interleaving is allowed by the model, which the tests use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from halfulp.oracle.memory.model import MODEL
from halfulp.oracle.memory.program import Cas, If, Instruction, Load, Operand, Outcome, Program, Rmw, Store, Thread

Memory = tuple[tuple[str, int], ...]
State = tuple[tuple[Thread, ...], Memory, Memory]
"""What is left of each thread; the memory; the registers, by names of observations."""


def _start(program: Program) -> State:
    return program.threads, tuple((location.name, location.initial) for location in program.locations), ()


def _step(program: Program, state: State, number: int) -> State:
    """One access of a thread, after the branches before it; the thread has something left."""
    threads, memory, registers = state
    values, known = dict(memory), dict(registers)

    def value(operand: Operand) -> int:
        return operand if isinstance(operand, int) else known.get(f"{number}:{operand}", 0)

    left = _unfolded(threads[number], lambda register: known.get(f"{number}:{register}", 0))
    if left:
        access, left = left[0], left[1:]
        assert not isinstance(access, If)
        old = values[access.location]
        dtype = program.location(access.location).dtype
        match access:
            case Load():
                known[f"{number}:{access.register}"] = old
            case Store():
                values[access.location] = value(access.value)
            case Rmw():
                values[access.location] = MODEL.updated(access.kind, old, value(access.value), dtype)
                if access.register:
                    known[f"{number}:{access.register}"] = old
            case Cas():
                exchanged = old == value(access.expected)
                if exchanged:
                    values[access.location] = value(access.desired)
                if access.register:
                    known[f"{number}:{access.register}"] = old
                if access.success:
                    known[f"{number}:{access.success}"] = int(exchanged)
        left = _unfolded(left, lambda register: known.get(f"{number}:{register}", 0))
    rest = (*threads[:number], left, *threads[number + 1 :])
    return rest, tuple(sorted(values.items())), tuple(sorted(known.items()))


def _unfolded(block: tuple[Instruction, ...], register: Callable[[str], int]) -> tuple[Instruction, ...]:
    """The block with the branches at its beginning taken."""
    while block and isinstance(block[0], If):
        branch = block[0]
        block = (*(branch.then if register(branch.register) == branch.equals else branch.otherwise), *block[1:])
    return block


def _outcome(program: Program, state: State) -> Outcome:
    seen = dict(state[1]) | dict(state[2])
    return tuple((name, seen.get(name, 0)) for name in sorted(program.observe))


def interleaved(program: Program) -> frozenset[Outcome]:
    """The outcomes of all interleavings."""
    found: set[Outcome] = set()
    visited: set[State] = set()
    pending = [_start(program)]
    while pending:
        state = pending.pop()
        if state in visited:
            continue
        visited.add(state)
        active = [number for number, thread in enumerate(state[0]) if thread]
        if not active:
            found.add(_outcome(program, state))
        pending += [_step(program, state, number) for number in active]
    return frozenset(found)


def sequential(program: Program) -> frozenset[Outcome]:
    """The outcomes of running the threads one after the other, in any order."""
    return frozenset(_one_by_one(program))


def _one_by_one(program: Program) -> Iterator[Outcome]:
    for order in permutations(range(len(program.threads))):
        state = _start(program)
        for number in order:
            while state[0][number]:
                state = _step(program, state, number)
        yield _outcome(program, state)
