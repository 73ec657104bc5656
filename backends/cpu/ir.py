"""LLVM IR as text, written one instruction at a time.

Text costs a few microseconds an instruction here and is parsed by LLVM itself, which makes it several times cheaper
than a tree of Python objects. Integer operands may be Python ints; they take the type of the other operand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Predicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


@dataclass(frozen=True)
class Reg:
    """A value: its LLVM type and its name (or literal text)."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def width(self) -> int:
        """Bits of an integer type."""
        return int(self.type[1:])


Operand = Reg | int


def _same(a: Reg, b: Operand) -> str:
    """``b`` as an operand beside ``a``: an int is wrapped to the signed range of the type."""
    if isinstance(b, Reg):
        return b.name
    return constant(a.type, b).name


def constant(type_: str, value: int) -> Reg:
    """An integer constant of ``type_``; only its low bits count."""
    if type_ == "i1":
        return Reg(type_, "true" if value & 1 else "false")
    width = int(type_[1:])
    value &= (1 << width) - 1
    return Reg(type_, str(value - (1 << width) if value >> (width - 1) else value))


@dataclass
class Code:
    """Straight-line code under construction.

    Attributes:
        lines: the instructions so far.
        declarations: LLVM intrinsics used.
        prefix: starts every name, so that two pieces of code fit into one function.
    """

    prefix: str = "v"
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    count: int = 0

    def emit(self, type_: str, text: str) -> Reg:
        """Append an instruction that gives a value of ``type_``."""
        name = f"%{self.prefix}{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return Reg(type_, name)

    def binary(self, op: str, a: Reg, b: Operand) -> Reg:
        return self.emit(a.type, f"{op} {a}, {_same(a, b)}")

    def add(self, a: Reg, b: Operand) -> Reg:
        return self.binary("add", a, b)

    def sub(self, a: Reg, b: Operand) -> Reg:
        return self.binary("sub", a, b)

    def and_(self, a: Reg, b: Operand) -> Reg:
        return self.binary("and", a, b)

    def or_(self, a: Reg, b: Operand) -> Reg:
        return self.binary("or", a, b)

    def xor(self, a: Reg, b: Operand) -> Reg:
        return self.binary("xor", a, b)

    def shl(self, a: Reg, b: Operand) -> Reg:
        return self.binary("shl", a, b)

    def lshr(self, a: Reg, b: Operand) -> Reg:
        return self.binary("lshr", a, b)

    def icmp(self, predicate: Predicate, a: Reg, b: Operand) -> Reg:
        return self.emit("i1", f"icmp {predicate} {a}, {_same(a, b)}")

    def fcmp(self, predicate: str, a: Reg, b: Reg) -> Reg:
        return self.emit("i1", f"fcmp {predicate} {a}, {b.name}")

    def select(self, condition: Reg, a: Operand, b: Operand, type_: str | None = None) -> Reg:
        """``type_`` is needed where both arms are ints."""
        if isinstance(a, Reg):
            type_ = a.type
        elif isinstance(b, Reg):
            type_ = b.type
        assert type_ is not None
        left, right = (arm if isinstance(arm, Reg) else constant(type_, arm) for arm in (a, b))
        return self.emit(type_, f"select {condition}, {left}, {right}")

    def convert(self, op: str, a: Reg, type_: str) -> Reg:
        """A conversion instruction; none where the type stays."""
        return a if a.type == type_ else self.emit(type_, f"{op} {a} to {type_}")

    def resize(self, a: Reg, type_: str, *, signed: bool) -> Reg:
        """An integer in another width: its low bits, or extended by its sign or by zeros."""
        if a.width > int(type_[1:]):
            return self.convert("trunc", a, type_)
        return self.convert("sext" if signed else "zext", a, type_)

    def intrinsic(self, name: str, type_: str, *args: Reg) -> Reg:
        """A call of an LLVM intrinsic, declared as a side effect."""
        self.declarations.add(f"declare {type_} @{name}({', '.join(arg.type for arg in args)})")
        return self.emit(type_, f"call {type_} @{name}({', '.join(map(str, args))})")
