"""Floating-point operations (``intent:5``).

f32 and f64 are computed by the machine, without fast-math flags. The narrow formats are widened to ``float``, computed
there and rounded once more. Two roundings equal one because f32 has at least 2p + 2 bits for every such p (f16: 11,
24 needed) for + - * / and sqrt (Figueroa, "When is double rounding innocuous?", 1995), as long as f32 itself does not
underflow. Only bf16 can make it: it has the exponents of f32. There sums are exact, and so are products that do not
round to zero (16 bits, and 2**-134, half the smallest bf16, is 2**15 of f32's smallest steps); a quotient that is not
itself halfway between two bf16 subnormals (odd multiples M of 2**-134) is at least 2**-142 away from it, more than
f32's rounding error of 2**-150, because numerator and denominator have 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.backends.common.code import Code, FloatOp, FloatPredicate, Reg
from halfulp.backends.common.lower_cast import F32, F64, is_nan, narrow, widen
from halfulp.backends.common.types import Scalar

_ARITHMETIC: dict[str, FloatOp] = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARISONS: dict[str, FloatPredicate] = {
    "eq": "oeq",
    "ne": "une",
    "lt": "olt",
    "le": "ole",
    "gt": "ogt",
    "ge": "oge",
}


def lower(code: Code, op: str, dtype: Scalar, args: Sequence[Reg]) -> Reg:
    """One operation on codes of ``dtype``; comparisons give ``i1``, the others a code."""
    a = args[0]
    if op == "neg":
        return code.xor(a, dtype.sign_bit)
    if op == "abs":
        return code.and_(a, dtype.magnitude_mask)
    if op.startswith(("maximum", "minimum")):
        return _extremum(code, op, dtype, a, args[1])
    values = [_value(code, arg, dtype) for arg in args]
    if op in _COMPARISONS:
        return code.fcmp(_COMPARISONS[op], values[0], values[1])
    if op in _ARITHMETIC:
        result = code.float_op(_ARITHMETIC[op], values[0], values[1])
    elif op == "sqrt":
        result = code.sqrt(values[0])
    elif op == "floor":
        result = code.floor(values[0])
    else:  # a*b + c, a*b - c or c - a*b, rounded once; f32 and f64 alone
        a, b, c = values
        if op == "fused_sub":
            c = code.fneg(c)
        elif op == "fused_rsub":
            a = code.fneg(a)
        result = code.fma(a, b, c)
    wide = F64 if dtype is F64 else F32
    bits = code.convert("bitcast", result, wide.register)
    return bits if dtype.native else narrow(code, bits, F32, dtype)


def _value(code: Code, x: Reg, dtype: Scalar) -> Reg:
    return code.convert("bitcast", x, "double") if dtype is F64 else widen(code, x, dtype)


def _extremum(code: Code, op: str, dtype: Scalar, a: Reg, b: Reg) -> Reg:
    """``maximum`` gives a NaN where either is one, ``maximum_num`` where both are (``intent:5.2-k``, ``5.2-l``).

    Codes are compared as integers: the magnitude bits of negative numbers are inverted, which orders them, with -0
    below +0.
    """

    def key(x: Reg) -> Reg:
        negative = code.ashr(x, dtype.width - 1)
        return code.xor(x, code.and_(negative, dtype.magnitude_mask))

    first = code.icmp("sgt" if op.startswith("maximum") else "slt", key(a), key(b))
    nan_a, nan_b = is_nan(code, a, dtype), is_nan(code, b, dtype)
    if op.endswith("_num"):
        take_a = code.or_(code.and_(first, code.xor(nan_a, 1)), nan_b)
    else:
        take_a = code.or_(code.and_(first, code.xor(nan_b, 1)), nan_a)
    return code.select(take_a, a, b)
