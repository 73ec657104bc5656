"""The records of all operations, and the signatures derived from their typing rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product

from halfulp.oracle.formats import CANONICAL
from halfulp.oracle.ops.arithmetic import ARITHMETIC
from halfulp.oracle.ops.casts import CASTS
from halfulp.oracle.ops.choice import CHOICES
from halfulp.oracle.ops.integers import INTEGERS
from halfulp.oracle.ops.record import Accepted, Operation, Refused, Signature, TypingAnswer, Undecided

__all__ = [
    "OPERATIONS",
    "Accepted",
    "Operation",
    "Refused",
    "Signature",
    "TypingAnswer",
    "Undecided",
    "answer",
    "combinations",
    "decided",
    "operation",
    "signatures",
]

OPERATIONS: dict[str, Operation] = {record.name: record for record in (*CASTS, *ARITHMETIC, *INTEGERS, *CHOICES)}
"""Every operation by name."""


def operation(name: str) -> Operation:
    """Look an operation up by name.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    try:
        return OPERATIONS[name]
    except KeyError:
        raise ValueError(f"unknown operation {name!r}; known operations: {', '.join(OPERATIONS)}") from None


def combinations(record: Operation) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Every tuple of operand dtypes over the 16 scalars, with every target for a conversion.

    Of three operands only those tuples are listed that differ from a uniform one in a single place: more would say
    nothing new about a rule that compares dtypes.
    """
    targets: tuple[str | None, ...] = CANONICAL if record.converts else (None,)
    if record.arity < 3:
        tuples: Iterable[tuple[str, ...]] = product(CANONICAL, repeat=record.arity)
    elif record.name == "select":
        tuples = (("bool", a, b) for a, b in product(CANONICAL, repeat=2))
    else:
        tuples = dict.fromkeys(
            tuple(b if i == place else a for i in range(record.arity))
            for a, b in product(CANONICAL, repeat=2)
            for place in range(record.arity)
        )
    for args in tuples:
        for target in targets:
            yield args, target


@cache
def signatures(ops: tuple[str, ...] | None = None) -> tuple[Signature, ...]:
    """All signatures on the 16 scalars that the text accepts, or on which it is silent but a result is expected."""
    found = []
    for record in OPERATIONS.values():
        if ops is not None and record.name not in ops:
            continue
        for args, target in combinations(record):
            verdict = record.typing(args, target, ())
            if isinstance(verdict, (Accepted, Undecided)) and verdict.result is not None:
                found.append(Signature(record.name, args, verdict.result))
    return tuple(found)


def answer(signature: Signature) -> TypingAnswer:
    """What the text says about the operation on these dtypes."""
    record = operation(signature.op)
    return record.typing(signature.args, signature.result if record.converts else None, signature.attrs)


def decided(signature: Signature) -> bool:
    """False where the text is silent: a backend may refuse the program."""
    return isinstance(answer(signature), Accepted)
