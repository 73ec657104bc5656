"""LLVM IR as text, written one instruction at a time.

Text costs a few microseconds an instruction here and is parsed by LLVM itself, which makes it several times cheaper
than a tree of Python objects.
"""

from __future__ import annotations

import struct

from halfulp.backends.common import code
from halfulp.backends.common.code import Conversion, FloatOp, FloatPredicate, IntegerOp, Operand, Predicate, Reg
from halfulp.backends.cpu import libm

__all__ = ["Code", "Operand", "Predicate", "Reg", "constant"]

_SUFFIX = {"float": "f32", "double": "f64"}


def constant(type_: str, value: int) -> Reg:
    """An integer constant of ``type_``; only its low bits count."""
    if type_ == "i1":
        return Reg(type_, "true" if value & 1 else "false")
    width = int(type_[1:])
    value &= (1 << width) - 1
    return Reg(type_, str(value - (1 << width) if value >> (width - 1) else value))


class Code(code.Code):
    """Instructions of LLVM.

    Attributes:
        declarations: LLVM intrinsics used.
    """

    def __init__(self, prefix: str = "v") -> None:
        super().__init__(prefix)
        self.declarations: set[str] = set()

    def emit(self, type_: str, text: str) -> Reg:
        """Append an instruction that gives a value of ``type_``."""
        name = f"%{self.prefix}{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return Reg(type_, name)

    def constant(self, type_: str, value: int) -> Reg:
        return constant(type_, value)

    def real(self, type_: str, value: float) -> Reg:
        """LLVM writes literals of ``float`` as doubles too."""
        return Reg(type_, f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")

    def integer_op(self, op: IntegerOp, a: Reg, b: Reg) -> Reg:
        return self.emit(a.type, f"{op} {a}, {b.name}")

    def float_op(self, op: FloatOp, a: Reg, b: Reg) -> Reg:
        return self.emit(a.type, f"{op} {a}, {b.name}")

    def compare(self, predicate: Predicate, a: Reg, b: Reg) -> Reg:
        return self.emit("i1", f"icmp {predicate} {a}, {b.name}")

    def fcmp(self, predicate: FloatPredicate, a: Reg, b: Reg) -> Reg:
        return self.emit("i1", f"fcmp {predicate} {a}, {b.name}")

    def choose(self, condition: Reg, a: Reg, b: Reg) -> Reg:
        return self.emit(a.type, f"select {condition}, {a}, {b}")

    def converted(self, op: Conversion, a: Reg, type_: str) -> Reg:
        return self.emit(type_, f"{op} {a} to {type_}")

    def fneg(self, a: Reg) -> Reg:
        return self.emit(a.type, f"fneg {a}")

    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg:
        return self._overloaded("fma", a, b, c)

    def multiply_add(self, a: Reg, b: Reg, c: Reg) -> Reg:
        return self._overloaded("fmuladd", a, b, c)

    def sqrt(self, a: Reg) -> Reg:
        return self._overloaded("sqrt", a)

    def floor(self, a: Reg) -> Reg:
        return self._overloaded("floor", a)

    def absolute(self, a: Reg) -> Reg:
        return self.intrinsic(f"llvm.abs.{a.type}", a.type, a, constant("i1", 0))

    def truncate(self, a: Reg, type_: str, *, signed: bool) -> Reg:
        """The saturating intrinsics are defined on every input, where ``fptosi`` gives poison."""
        return self.intrinsic(f"llvm.fpto{'s' if signed else 'u'}i.sat.{type_}.{_SUFFIX[a.type]}", type_, a)

    def call_library(self, name: str, a: Reg) -> Reg:
        """Of the system's library, on ``double``.

        lgamma is called in its re-entrant form: the other writes the sign to a global, which is a race between threads.
        """
        if name == "lgamma":
            sign = self.emit("ptr", "alloca i32")
            symbol = f'"{libm.PREFIX}lgamma_r"'
            self.declarations.add(f"declare double @{symbol}(double, ptr) nounwind")
            return self.emit("double", f"call double @{symbol}({a}, {sign})")
        symbol = f'"{libm.PREFIX}{name}"'
        self.declarations.add(f"declare double @{symbol}(double) nounwind memory(none)")
        return self.emit("double", f"call double @{symbol}({a})")

    def _overloaded(self, name: str, *args: Reg) -> Reg:
        """An intrinsic on floats of one type."""
        return self.intrinsic(f"llvm.{name}.{_SUFFIX[args[0].type]}", args[0].type, *args)

    def intrinsic(self, name: str, type_: str, *args: Reg) -> Reg:
        """A call of an LLVM intrinsic, declared as a side effect."""
        self.declarations.add(f"declare {type_} @{name}({', '.join(arg.type for arg in args)})")
        return self.emit(type_, f"call {type_} @{name}({', '.join(map(str, args))})")
