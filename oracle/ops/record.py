"""The record of an operation: everything that is known about it, in one place.

Signatures, rejection tests, properties, ``ask`` and ``judge``, and the coverage page are derived from records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.kernel import Kernel, one_node
from halfulp.oracle.sets import AllowedSet, Mask

Attrs = tuple[tuple[str, bool | int | str], ...]


@dataclass(frozen=True)
class Signature:
    """An operation with the dtypes of its operands and of its result."""

    op: str
    args: tuple[str, ...]
    result: str
    attrs: Attrs = ()

    @property
    def id(self) -> str:
        """Our name for it in reports, tokens and ledgers: ``cast[f64->bf16]``."""
        attrs = "".join(f";{name}={setting}" for name, setting in self.attrs)
        return f"{self.op}[{','.join(self.args)}->{self.result}{attrs}]"

    @property
    def formats(self) -> tuple[Format, ...]:
        return tuple(format_of(name) for name in self.args)

    @property
    def result_format(self) -> Format:
        return format_of(self.result)


@dataclass(frozen=True)
class Accepted:
    """The program is well typed."""

    result: str


@dataclass(frozen=True)
class Refused:
    """The language refuses the program."""

    clause: str
    reason: str


@dataclass(frozen=True)
class Undecided:
    """The text does not say whether the program is well typed."""

    reason: str
    result: str | None = None


TypingAnswer = Accepted | Refused | Undecided


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: the name used in kernels, ``ask`` and reports.
        arity: number of operands.
        chapter: section of the dialect that defines it, e.g. ``"5.2"``.
        summary: the rule in one sentence.
        typing: ``typing(args, dtype, attrs)`` answers whether the operand dtypes are accepted and what the result
            is. ``dtype`` is the requested target of a conversion and None for other operations.
        allowed: ``allowed(signature, operands)`` is the set of results. Operands have shape (n,).
        clauses: ``clauses(signature)`` lists the clauses that govern elements of it: a run whose elements leave one of
            them without a claim is vacuous and fails.
        cases: ``cases(signature, operands)`` maps each of those clauses to the mask of elements it governs. Masks
            may overlap; an element may be governed by none.
        critical: ``critical(signature)`` lists, for each operand, the values to try besides enumeration and random
            draws: equally long arrays, element i of each forming one tuple.
        converts: the target dtype is an argument of the operation (casts).
        attrs: the attributes that it may carry, one tuple for each choice that has a meaning of its own; the default
            is the empty one. An attribute that is False may also be written out.
        build: builds the kernel; one node of the same name by default.
        window: exponents of the operand between which the operation is neither trivial nor out of range: draws dwell
            there. None: all of them.
        costly: the oracle takes microseconds, not nanoseconds, for each new element of a signature.
    """

    name: str
    arity: int
    chapter: str
    summary: str
    typing: Callable[[tuple[str, ...], str | None, Attrs], TypingAnswer]
    allowed: Callable[[Signature, Sequence[Bits]], AllowedSet]
    clauses: Callable[[Signature], tuple[str, ...]]
    cases: Callable[[Signature, Sequence[Bits]], Mapping[str, Mask]]
    critical: Callable[[Signature], Sequence[Bits]]
    converts: bool = False
    attrs: tuple[Attrs, ...] = ((),)
    build: Callable[[Signature], Kernel] | None = None
    window: tuple[int, int] | None = None
    costly: Callable[[Signature], bool] = lambda signature: False

    @property
    def attributes(self) -> frozenset[str]:
        """The names of its attributes."""
        return frozenset(name for choice in self.attrs for name, _ in choice)

    def kernel(self, signature: Signature) -> Kernel:
        """The kernel that computes this operation on run-time arrays."""
        if self.build is not None:
            return self.build(signature)
        attrs: Mapping[str, Any] = dict(signature.attrs)
        return one_node(signature.op, signature.args, signature.result, attrs=attrs)
