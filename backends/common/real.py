"""Double-precision arithmetic written as formulas: what the kernels of functions are made of.

A `Real` stands for a ``double`` in a piece of code; operators append instructions. Nothing here branches, so that
loops over it are vectorised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halfulp.backends.common.code import Code, FloatOp, Predicate, Reg

SIGN = 1 << 63
MAGNITUDE = SIGN - 1
ONE = 1023 << 52
"""The code of 1.0, and the bias of exponents in its place."""


@dataclass(frozen=True)
class Real:
    """A double in ``code``. Operators round to nearest, ties to even."""

    code: Code
    reg: Reg

    def _of(self, other: Real | float) -> Reg:
        return other.reg if isinstance(other, Real) else self.code.real("double", other)

    def _binary(self, op: FloatOp, left: Reg, right: Reg) -> Real:
        return Real(self.code, self.code.float_op(op, left, right))

    def __add__(self, other: Real | float) -> Real:
        return self._binary("fadd", self.reg, self._of(other))

    def __radd__(self, other: float) -> Real:
        return self._binary("fadd", self.reg, self._of(other))

    def __sub__(self, other: Real | float) -> Real:
        return self._binary("fsub", self.reg, self._of(other))

    def __rsub__(self, other: float) -> Real:
        return self._binary("fsub", self._of(other), self.reg)

    def __mul__(self, other: Real | float) -> Real:
        return self._binary("fmul", self.reg, self._of(other))

    def __rmul__(self, other: float) -> Real:
        return self._binary("fmul", self.reg, self._of(other))

    def __truediv__(self, other: Real | float) -> Real:
        return self._binary("fdiv", self.reg, self._of(other))

    def __rtruediv__(self, other: float) -> Real:
        return self._binary("fdiv", self._of(other), self.reg)

    def __neg__(self) -> Real:
        return Real(self.code, self.code.fneg(self.reg))

    def times_plus(self, factor: Real | float, term: Real | float) -> Real:
        """``self * factor + term``, rounded once where the machine has an instruction for it."""
        return Real(self.code, self.code.multiply_add(self.reg, self._of(factor), self._of(term)))

    def fma(self, factor: Real | float, term: Real | float) -> Real:
        """``self * factor + term``, rounded once on every machine, slowly where it has no instruction for it."""
        return Real(self.code, self.code.fma(self.reg, self._of(factor), self._of(term)))

    def sqrt(self) -> Real:
        return Real(self.code, self.code.sqrt(self.reg))

    def floor(self) -> Real:
        return Real(self.code, self.code.floor(self.reg))

    def call_library(self, name: str) -> Real:
        """A function of the target's mathematical library."""
        return Real(self.code, self.code.call_library(name, self.reg))

    def polynomial(self, coefficients: Sequence[float]) -> Real:
        """The polynomial with these coefficients, constant first, by Horner's rule."""
        *rest, last = coefficients
        result = real(self.code, last)
        for coefficient in reversed(rest):
            result = result.times_plus(self, coefficient)
        return result

    # Comparison and choice.

    def __lt__(self, other: Real | float) -> Reg:
        return self.code.fcmp("olt", self.reg, self._of(other))

    def __gt__(self, other: Real | float) -> Reg:
        return self.code.fcmp("ogt", self.reg, self._of(other))

    def not_below(self, other: float) -> Reg:
        """At least ``other``, or NaN."""
        return self.code.fcmp("uge", self.reg, self._of(other))

    def equals(self, other: Real | float) -> Reg:
        return self.code.fcmp("oeq", self.reg, self._of(other))

    def unless(self, condition: Reg, other: Real | float) -> Real:
        """``other`` where the condition holds, self elsewhere."""
        return Real(self.code, self.code.select(condition, self._of(other), self.reg))

    def at_most(self, limit: float) -> Real:
        """The smaller of the two; NaN stays NaN."""
        return self.unless(self > limit, limit)

    def at_least(self, limit: float) -> Real:
        """The greater of the two; NaN stays NaN."""
        return self.unless(self < limit, limit)

    # Codes.

    def bits(self) -> Reg:
        return self.code.convert("bitcast", self.reg, "i64")

    def magnitude(self) -> Real:
        return from_bits(self.code, self.code.and_(self.bits(), MAGNITUDE))

    def sign(self) -> Reg:
        """The sign bit in its place, the others zero."""
        return self.code.and_(self.bits(), SIGN)

    def with_sign(self, sign: Reg) -> Real:
        """A number that is not negative, with a sign bit put in."""
        return from_bits(self.code, self.code.or_(self.bits(), sign))

    def compare_bits(self, predicate: Predicate, value: int) -> Reg:
        return self.code.icmp(predicate, self.bits(), value)


def real(code: Code, value: float) -> Real:
    """A constant."""
    return Real(code, code.real("double", value))


def from_bits(code: Code, bits: Reg) -> Real:
    """The double with that code."""
    return Real(code, code.convert("bitcast", bits, "double"))
