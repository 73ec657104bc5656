"""Abstract instructions: what the lowering of every operation is written in.

An operation is lowered once, to calls of `Code`; a target's subclass writes each instruction in the target's language.
What all targets compute is then one text, and a fault of it shows on every one of them.

Values are typed: integers ``i1`` (a truth value), ``i8`` to ``i64``, without a sign of their own, and ``float`` and
``double``. No instruction has undefined behaviour for operands that a lowering gives it; those that would have in one
of the targets say so. Integer operands may be Python ints; they take the type of the other operand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

IntegerOp = Literal["add", "sub", "mul", "udiv", "sdiv", "and", "or", "xor", "shl", "lshr", "ashr"]
"""``udiv`` and ``sdiv`` take no zero divisor, and no minimum by -1; shifts take amounts below the width."""

FloatOp = Literal["fadd", "fsub", "fmul", "fdiv"]
"""Rounded to nearest, ties to even, and never contracted."""

Predicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]

FloatPredicate = Literal["oeq", "une", "olt", "ole", "ogt", "oge", "uge"]
"""``o``: false where an operand is NaN; ``u``: true there."""

Conversion = Literal["trunc", "zext", "sext", "bitcast", "fptrunc", "fpext", "sitofp", "uitofp"]
"""Those to a float round once, to nearest even. Of ``i1`` there are ``zext`` and ``sext``."""


@dataclass(frozen=True)
class Reg:
    """A value: its type and its name, or the text of a constant."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def width(self) -> int:
        """Bits of an integer type."""
        return int(self.type[1:])


Operand = Reg | int


class Code(ABC):
    """Straight-line code under construction.

    Attributes:
        prefix: starts every name, so that two pieces of code fit into one function.
        lines: the instructions so far.
    """

    def __init__(self, prefix: str = "v") -> None:
        self.prefix = prefix
        self.lines: list[str] = []
        self.count = 0

    # What a target writes.

    @abstractmethod
    def constant(self, type_: str, value: int) -> Reg:
        """An integer constant; only its low bits count."""

    @abstractmethod
    def real(self, type_: str, value: float) -> Reg:
        """A constant of ``float`` or ``double``. It is exact in the type; any NaN stands for every one."""

    @abstractmethod
    def integer_op(self, op: IntegerOp, a: Reg, b: Reg) -> Reg:
        """Of two integers of one type. Wraps."""

    @abstractmethod
    def float_op(self, op: FloatOp, a: Reg, b: Reg) -> Reg: ...

    @abstractmethod
    def compare(self, predicate: Predicate, a: Reg, b: Reg) -> Reg:
        """An ``i1``, of two integers."""

    @abstractmethod
    def fcmp(self, predicate: FloatPredicate, a: Reg, b: Reg) -> Reg:
        """An ``i1``, of two floats."""

    @abstractmethod
    def choose(self, condition: Reg, a: Reg, b: Reg) -> Reg:
        """a where the ``i1`` is true, else b. Both are computed."""

    @abstractmethod
    def converted(self, op: Conversion, a: Reg, type_: str) -> Reg:
        """A conversion to another type."""

    @abstractmethod
    def fneg(self, a: Reg) -> Reg: ...

    @abstractmethod
    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """``a*b + c``, rounded once."""

    @abstractmethod
    def multiply_add(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """``a*b + c``, rounded once where the machine has an instruction for it, else twice."""

    @abstractmethod
    def sqrt(self, a: Reg) -> Reg:
        """Correctly rounded."""

    @abstractmethod
    def floor(self, a: Reg) -> Reg: ...

    @abstractmethod
    def absolute(self, a: Reg) -> Reg:
        """Of an integer as a signed one; the minimum stays what it is."""

    @abstractmethod
    def truncate(self, a: Reg, type_: str, *, signed: bool) -> Reg:
        """A float as an integer, towards zero; clamped to the range, NaN to zero."""

    @abstractmethod
    def call_library(self, name: str, a: Reg) -> Reg:
        """A function of the target's mathematical library, of the float's type. Which it has is the target's matter."""

    # What is made of that.

    def operand(self, a: Reg, b: Operand) -> Reg:
        """``b`` as an operand beside ``a``."""
        return b if isinstance(b, Reg) else self.constant(a.type, b)

    def integer(self, op: IntegerOp, a: Reg, b: Operand) -> Reg:
        return self.integer_op(op, a, self.operand(a, b))

    def add(self, a: Reg, b: Operand) -> Reg:
        return self.integer("add", a, b)

    def sub(self, a: Reg, b: Operand) -> Reg:
        return self.integer("sub", a, b)

    def mul(self, a: Reg, b: Operand) -> Reg:
        return self.integer("mul", a, b)

    def and_(self, a: Reg, b: Operand) -> Reg:
        return self.integer("and", a, b)

    def or_(self, a: Reg, b: Operand) -> Reg:
        return self.integer("or", a, b)

    def xor(self, a: Reg, b: Operand) -> Reg:
        return self.integer("xor", a, b)

    def shl(self, a: Reg, b: Operand) -> Reg:
        return self.integer("shl", a, b)

    def lshr(self, a: Reg, b: Operand) -> Reg:
        return self.integer("lshr", a, b)

    def ashr(self, a: Reg, b: Operand) -> Reg:
        return self.integer("ashr", a, b)

    def icmp(self, predicate: Predicate, a: Reg, b: Operand) -> Reg:
        return self.compare(predicate, a, self.operand(a, b))

    def select(self, condition: Reg, a: Operand, b: Operand, type_: str | None = None) -> Reg:
        """``type_`` is needed where both arms are ints."""
        if isinstance(a, Reg):
            type_ = a.type
        elif isinstance(b, Reg):
            type_ = b.type
        assert type_ is not None
        left, right = (arm if isinstance(arm, Reg) else self.constant(type_, arm) for arm in (a, b))
        return self.choose(condition, left, right)

    def convert(self, op: Conversion, a: Reg, type_: str) -> Reg:
        """A conversion; none where the type stays."""
        return a if a.type == type_ else self.converted(op, a, type_)

    def resize(self, a: Reg, type_: str, *, signed: bool) -> Reg:
        """An integer in another width: its low bits, or extended by its sign or by zeros."""
        if a.width > int(type_[1:]):
            return self.convert("trunc", a, type_)
        return self.convert("sext" if signed else "zext", a, type_)
