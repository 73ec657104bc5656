"""The records of all operations, and the signatures derived from their typing rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product

from halfulp.oracle.formats import CANONICAL, FLOATS
from halfulp.oracle.ops.arithmetic import ARITHMETIC
from halfulp.oracle.ops.casts import CASTS
from halfulp.oracle.ops.choice import CHOICES
from halfulp.oracle.ops.functions import FUNCTIONS
from halfulp.oracle.ops.integers import INTEGERS
from halfulp.oracle.ops.random import RANDOM
from halfulp.oracle.ops.record import Accepted, Attrs, Operation, Refused, Signature, TypingAnswer, Undecided

__all__ = [
    "OPERATIONS",
    "Accepted",
    "Operation",
    "Refused",
    "Signature",
    "TypingAnswer",
    "Undecided",
    "answer",
    "attribute_misuse",
    "combinations",
    "decided",
    "operation",
    "signatures",
    "typed",
]

OPERATIONS: dict[str, Operation] = {
    record.name: record for record in (*CASTS, *ARITHMETIC, *INTEGERS, *CHOICES, *FUNCTIONS, *RANDOM)
}
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
    nothing new about a rule that compares dtypes. Of two operands and a target, only float targets.
    """
    targets: tuple[str | None, ...] = (None,)
    if record.converts:
        targets = CANONICAL if record.arity == 1 else FLOATS
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


def typed(record: Operation, args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    """The typing rule of a record, with what is said of attributes that the operation does not have.

    ``intent:5.1-b`` refuses a flush_to_zero on anything but fdiv and exp2; of other strange attributes no text speaks.
    """
    verdict = record.typing(args, dtype, attrs)
    strange = [name for name, _ in attrs if name not in record.attributes]
    if not strange or isinstance(verdict, Refused):
        return verdict
    if "flush_to_zero" in strange:
        return Refused("intent:5.1-b", f"{record.name} has no flush_to_zero")
    return Undecided(f"the text gives {record.name} no attribute {strange[0]}")


_FLUSH_ALONE: Attrs = (("flush_to_zero", True),)
_MISUSE: tuple[Attrs, ...] = (
    (("approximate", 1),),
    (("approximate", 0),),
    (("approximate", "x"),),  # the name of a run-time value
    _FLUSH_ALONE,
    (("approximate", False), ("flush_to_zero", True)),
    (("approximate", True), ("flush_to_zero", 1)),
    (("approximate", True), ("flush_to_zero", "x")),
    (("approximate", True), ("flush_to_zero", False)),
    (("approximate", True), ("flush_to_zero", True)),
    (("approximate", True),),
)


def attribute_misuse(record: Operation) -> Iterator[tuple[tuple[str, ...], Attrs]]:
    """Operands and attributes that look like a use of ``approximate`` and ``flush_to_zero``; most are refused."""
    if record.converts or record.build is not None:
        return
    if not record.attributes:
        args = ("bool", "f32", "f32") if record.name == "select" else ("f32",) * record.arity
        yield args, _FLUSH_ALONE
        return
    for dtype in FLOATS:
        for attrs in _MISUSE:
            yield (dtype,) * record.arity, attrs


@cache
def signatures(ops: tuple[str, ...] | None = None) -> tuple[Signature, ...]:
    """All signatures on the 16 scalars that the text accepts, or on which it is silent but a result is expected."""
    found = []
    for record in OPERATIONS.values():
        if ops is not None and record.name not in ops:
            continue
        for args, target in combinations(record):
            for attrs in record.attrs:
                verdict = typed(record, args, target, attrs)
                if isinstance(verdict, (Accepted, Undecided)) and verdict.result is not None:
                    found.append(Signature(record.name, args, verdict.result, attrs))
    return tuple(found)


def answer(signature: Signature) -> TypingAnswer:
    """What the text says about the operation on these dtypes."""
    record = operation(signature.op)
    return typed(record, signature.args, signature.result if record.converts else None, signature.attrs)


def decided(signature: Signature) -> bool:
    """False where the text is silent: a backend may refuse the program."""
    return isinstance(answer(signature), Accepted)
