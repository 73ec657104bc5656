"""The record of a suspect: a named wrong rule.

A suspect is used twice. As a *saboteur* it is a backend that is wrong in exactly one way, which the suite must catch;
as a *diagnosis* it is tried on real failures. Like an operation's record it answers with a set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halfulp.oracle.formats import Bits
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import AllowedSet, exactly
from halfulp.oracle.source import Source

Rule = Callable[[Signature, Sequence[Bits]], AllowedSet]
KernelRule = Callable[[Kernel, Sequence[Bits]], "list[Bits] | None"]
TypingRule = Callable[[Kernel | Source], "bool | None"]
BitsRule = Callable[[Signature, Sequence[Bits]], Bits]
Scope = Callable[[Signature], bool]

CLASSIC = "classic"
"""Source of a mistake so common that no single report is its origin."""


def nowhere(signature: Signature) -> bool:
    return False


@dataclass(frozen=True)
class Suspect:
    """A wrong rule, or (``fault=False``) a freedom that looks like one.

    Exactly one of the three rules is given.

    Attributes:
        name: what reports call it, e.g. ``"round_via_f32"``.
        summary: the wrong rule in one sentence.
        clauses: the clauses it breaks. The property of each must catch it. Empty for an allowed variant.
        source: address of a public report of it, or ``"classic"``.
        fault: False where the language allows what the rule does: the suite must not report it.
        applies: the signatures on which ``rule`` answers.
        rule: ``rule(signature, operands)`` is the set of results of one operation. Operands have shape (n,).
        kernel_rule: ``kernel_rule(kernel, inputs)`` computes the outputs of a whole program wrongly, or answers None
            where the program has no place for the mistake.
        typing_rule: ``typing_rule(program)`` is True where the program is wrongly accepted, False where it is wrongly
            refused, None where the type checker does what the language says.
    """

    name: str
    summary: str
    clauses: tuple[str, ...]
    source: str = CLASSIC
    fault: bool = True
    applies: Scope = nowhere
    rule: Rule | None = None
    kernel_rule: KernelRule | None = None
    typing_rule: TypingRule | None = None

    @property
    def clause(self) -> str:
        """The first of the clauses it breaks; ``""`` for an allowed variant."""
        return self.clauses[0] if self.clauses else ""

    def override(self, signature: Signature, operands: Sequence[Bits]) -> Bits | None:
        """What a backend with this fault returns; None where the fault has no part in the operation."""
        if self.rule is None or not self.applies(signature):
            return None
        return self.rule(signature, operands).nearest


def intent(*numbers: str) -> tuple[str, ...]:
    """Clause ids of dialect *intent*."""
    return tuple(f"intent:{number}" for number in numbers)


def wrong(
    name: str,
    summary: str,
    clauses: tuple[str, ...],
    applies: Scope,
    bits: BitsRule,
    *,
    source: str = CLASSIC,
    fault: bool = True,
    carries_bits: bool = False,
) -> Suspect:
    """A suspect whose rule gives one result for each element.

    Args:
        bits: ``bits(signature, operands)`` computes the wrong results, shape (n,), storage dtype of the result.
        carries_bits: the payload of a NaN is part of the answer.
    """

    def rule(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        result = bits(signature, operands).astype(signature.result_format.storage, copy=False)
        return exactly(signature.result_format, result, carries_bits=carries_bits)

    return Suspect(name, summary, clauses, source, fault, applies, rule)


def right(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The correctly rounded result, from which most wrong rules start."""
    return OPERATIONS[signature.op].allowed(signature, operands).nearest


def compute(op: str, dtype: str, *operands: Bits) -> Bits:
    """An operation within one dtype, done right."""
    return right(Signature(op, (dtype,) * len(operands), dtype), operands)


def convert(src: str, dst: str, bits: Bits) -> Bits:
    """A cast, done right."""
    return bits if src == dst else right(Signature("cast", (src,), dst), (bits,))


def operation(*names: str) -> Scope:
    """Signatures of these operations."""
    return lambda signature: signature.op in names
