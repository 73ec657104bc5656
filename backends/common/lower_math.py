"""Functions (``intent:5-c`` to ``5-k``), computed by the kernels of `math_f32` and `math_f64`, and flushing.

Which function a target takes from here and which from its library is the target's choice (`lowering`).
"""

from __future__ import annotations

from halfulp.backends.common import math_f32, math_f64
from halfulp.backends.common.code import Code, Reg
from halfulp.backends.common.lower_cast import F32
from halfulp.backends.common.real import Real

FUNCTIONS = frozenset(math_f32.KERNELS)
LARGE_DIVISOR = 0x7E800000
"""2**126 in f32."""


def single(code: Code, op: str, x: Reg) -> Reg:
    """A function of a ``float``, computed in double precision and rounded once."""
    operand = Real(code, code.convert("fpext", x, "double"))
    return code.convert("fptrunc", math_f32.KERNELS[op](operand).reg, "float")


def double(code: Code, op: str, x: Reg) -> Reg:
    """A function of a ``double``; those of ``math_f64.KERNELS`` alone."""
    return math_f64.KERNELS[op](Real(code, x)).reg


def flush(code: Code, x: Reg) -> Reg:
    """A ``float``, a subnormal one made the zero of its sign (``intent:5.1-h``)."""
    bits = code.convert("bitcast", x, "i32")
    smallest_normal = 1 << F32.fraction_bits
    subnormal = code.icmp("ult", code.and_(bits, F32.magnitude_mask), smallest_normal)
    return code.convert("bitcast", code.select(subnormal, code.and_(bits, F32.sign_bit), bits), "float")
