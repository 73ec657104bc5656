"""Functions (``intent:5-c`` to ``5-k``) and approximate operations (``intent:5.1``).

f32 has kernels of its own, which compute in double precision (`math_f32`); f64 uses the system's library, and a
kernel for i0, which that does not have (`math_f64`). The narrow formats are computed in f32 and rounded once more.

The approximate modes are as accurate as the ordinary ones. What they have of their own is done exactly: flushing, and
the divisors above 2**126 of ``fdiv``.
"""

from __future__ import annotations

from halfulp.backends.cpu import math_f32, math_f64
from halfulp.backends.cpu.check import Mode
from halfulp.backends.cpu.ir import Code, Reg
from halfulp.backends.cpu.lower_cast import F32, F64, narrow, widen
from halfulp.backends.cpu.real import Real
from halfulp.backends.cpu.types import Scalar

FUNCTIONS = frozenset(math_f32.KERNELS)
LARGE_DIVISOR = 0x7E800000
"""2**126 in f32."""


def lower(code: Code, op: str, dtype: Scalar, x: Reg, mode: Mode) -> Reg:
    """A function of the code ``x``."""
    if dtype is F64:
        value = math_f64.KERNELS[op](Real(code, code.convert("bitcast", x, "double")))
        return value.bits()
    if mode == "flushing":
        x = _flush(code, x)
    operand = code.convert("fpext", widen(code, x, dtype), "double")
    value = math_f32.KERNELS[op](Real(code, operand))
    result = code.convert("bitcast", code.convert("fptrunc", value.reg, "float"), "i32")
    if mode == "flushing":
        result = _flush(code, result)
    return result if dtype is F32 else narrow(code, result, F32, dtype)


def divide_approximately(code: Code, a: Reg, b: Reg, mode: Mode) -> Reg:
    """``fdiv`` in an approximate mode (``intent:5.1-g``, ``reading:13``).

    As a product with the reciprocal, which is zero for divisors above 2**126: finite numbers give a zero with the
    quotient's sign, infinite ones NaN. Elsewhere the quotient is the correctly rounded one.
    """
    if mode == "flushing":
        a, b = _flush(code, a), _flush(code, b)
    size = code.and_(b, F32.magnitude_mask)
    large = code.and_(code.icmp("ugt", size, LARGE_DIVISOR), code.icmp("ult", size, F32.max_number))
    left, right = (code.convert("bitcast", x, "float") for x in (a, b))
    quotient = code.binary("fdiv", left, right)
    zero = code.convert("bitcast", code.and_(b, F32.sign_bit), "float")
    product = code.binary("fmul", left, zero)
    result = code.convert("bitcast", code.select(large, product, quotient), "i32")
    return _flush(code, result) if mode == "flushing" else result


def _flush(code: Code, x: Reg) -> Reg:
    """An f32 code, a subnormal one made the zero of its sign (``intent:5.1-h``)."""
    smallest_normal = 1 << F32.fraction_bits
    subnormal = code.icmp("ult", code.and_(x, F32.magnitude_mask), smallest_normal)
    return code.select(subnormal, code.and_(x, F32.sign_bit), x)
