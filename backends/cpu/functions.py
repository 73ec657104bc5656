"""Functions and approximate operations on the CPU.

f32 has kernels of its own, which compute in double precision (`math_f32`); f64 uses the system's library, and kernels
for i0, which that does not have, and for tanh, where it is not accurate enough (`math_f64`).

The approximate modes are as accurate as the ordinary ones. What they have of their own is done exactly: flushing, and
the divisors above 2**126 of ``fdiv``.
"""

from __future__ import annotations

from halfulp.backends.common import lower_math, math_f64
from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Code, Reg
from halfulp.backends.common.lower_cast import F32
from halfulp.backends.common.lowering import Lowering


class CpuLowering(Lowering):
    """See the module."""

    def function(self, code: Code, op: str, x: Reg, mode: Mode) -> Reg:
        if x.type == "double":
            return lower_math.double(code, op, x) if op in math_f64.KERNELS else code.call_library(op, x)
        if mode != "flushing":
            return lower_math.single(code, op, x)
        return lower_math.flush(code, lower_math.single(code, op, lower_math.flush(code, x)))

    def divide(self, code: Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        """``intent:5.1-g``, ``reading:13``.

        As a product with the reciprocal, which is zero for divisors above 2**126: finite numbers give a zero with the
        quotient's sign, infinite ones NaN. Elsewhere the quotient is the correctly rounded one.
        """
        if mode == "flushing":
            a, b = lower_math.flush(code, a), lower_math.flush(code, b)
        divisor = code.convert("bitcast", b, "i32")
        size = code.and_(divisor, F32.magnitude_mask)
        large = code.and_(code.icmp("ugt", size, lower_math.LARGE_DIVISOR), code.icmp("ult", size, F32.max_number))
        quotient = code.float_op("fdiv", a, b)
        zero = code.convert("bitcast", code.and_(divisor, F32.sign_bit), "float")
        result = code.select(large, code.float_op("fmul", a, zero), quotient)
        return lower_math.flush(code, result) if mode == "flushing" else result
