"""What the host's own f32 and f64 arithmetic is used for, and whether it may be.

IEEE 754 arithmetic in the host is the fastest correct rounder there is, if it is in its default state:
nearest-even, subnormals kept. A shared library built for fast arithmetic can change that state for a whole
thread, so it is looked at before every use. Where the host is not to be trusted, callers take the exact
integer path, which is slower and gives the same results.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from halfulp.oracle.codes import F64
from halfulp.oracle.formats import Bits, Format

F32 = np.ndarray[Any, np.dtype[np.float32]]

_TINY = [2.0**-1022, 2.0**-1074, 1.0, 2.0**-53, 1.0 + 2.0**-52]
_STEP = [2.0**-1023, 2.0**-1022 + 2.0**-1074]


def in_default_state() -> bool:
    """Whether this thread rounds to nearest-even and keeps subnormal operands and results, at this moment.

    Six float64 operations. Processors of today control f32 and f64 together.
    """
    smallest_normal, smallest, one, half_ulp, after_one = _TINY
    half_normal, after_normal = _STEP
    return (
        smallest_normal * 0.5 == half_normal
        and half_normal != 0.0
        and smallest_normal + smallest == after_normal
        and one + half_ulp == one
        and after_one + half_ulp > after_one
        and -after_one - half_ulp < -after_one
    )


# Operand and correctly rounded result, as f32 codes, each for one way of being wrong.
_F32_SUMS = (
    (0x3F800000, 0x33800000, 0x3F800000),  # 1 + 2**-24: a tie, to even, down
    (0x3F800001, 0x33800000, 0x3F800002),  # 1 + 2**-23 + 2**-24: a tie, to even, up
    (0xBF800001, 0xB3800000, 0xBF800002),  # the same, negative
    (0x3F800000, 0x33800001, 0x3F800001),  # just above a tie
    (0x00800000, 0x80000001, 0x007FFFFF),  # smallest normal less smallest subnormal
    (0x7F7FFFFF, 0x73000000, 0x7F800000),  # overflow at a tie
    (0x3F800000, 0xBF800000, 0x00000000),  # exact zero: +0
    (0x80000000, 0x80000000, 0x80000000),  # -0 + -0
)
_F32_PRODUCTS = (
    (0x00800000, 0x3F000000, 0x00400000),  # subnormal result
    (0x00000001, 0x3F000000, 0x00000000),  # half the smallest: a tie, to zero
    (0x00000003, 0x3F000000, 0x00000002),  # a tie, to even, up
    (0x00000001, 0x7F000000, 0x34800000),  # subnormal operand
    (0x3F800001, 0x3F800001, 0x3F800002),  # inexact, down
)


@cache
def host_is_ieee() -> bool:
    """Whether numpy's f32 and f64 operations and conversions give the results that IEEE 754 asks for.

    A start-up test on the cases that are got wrong when something is: ties, subnormals, overflow, zeros.
    """

    def single(codes: tuple[int, ...]) -> F32:
        return np.array(codes, np.uint32).view(np.float32)

    with np.errstate(all="ignore"):
        for table, function in ((_F32_SUMS, np.add), (_F32_PRODUCTS, np.multiply)):
            a, b, expected = (single(column) for column in zip(*table, strict=True))
            # Repeated, so that the vectorised part of the loop is tested as well as its remainder.
            got = function(np.repeat(a, 33), np.repeat(b, 33)).view(np.uint32)
            if not np.array_equal(got, np.repeat(expected, 33).view(np.uint32)):
                return False
        third = (np.full(33, 1, np.float32) / np.full(33, 3, np.float32)).view(np.uint32)
        root = np.sqrt(np.full(33, 2, np.float32)).view(np.uint32)
        tiny = np.full(33, 2.0**-149 * 1.5).astype(np.float32).view(np.uint32)
        wide = np.full(33, 1, np.uint32).view(np.float32).astype(np.float64)
        third64 = (np.full(33, 1.0) / np.full(33, 3.0)).view(np.uint64)
        root64 = np.sqrt(np.full(33, 2.0)).view(np.uint64)
    return bool(
        in_default_state()
        and (third == 0x3EAAAAAB).all()
        and (root == 0x3FB504F3).all()
        and (tiny == 2).all()
        and (wide == 2.0**-149).all()
        and (third64 == 0x3FD5555555555555).all()
        and (root64 == 0x3FF6A09E667F3BCD).all()
    )


def trusted() -> bool:
    """Whether host arithmetic may be used now."""
    return host_is_ieee() and in_default_state()


_UNARY_AND_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
}


def canonical_nan(fmt: Format, values: Any) -> Bits:
    """The codes of f32 or f64 values, with the one NaN of the format for every NaN. Overwrites ``values``."""
    nan = values != values
    bits: Bits = values.view(fmt.storage)
    if nan.any():
        bits[nan] = fmt.nan_bits
    return bits


def arithmetic(op: str, fmt: Format, operands: tuple[Bits, ...]) -> Bits:
    """``op`` in the host's own f32 or f64."""
    view = f"f{fmt.width // 8}"
    with np.errstate(all="ignore"):
        result = _UNARY_AND_BINARY[op](*(bits.view(view) for bits in operands))
    return canonical_nan(fmt, result)


def arithmetic_in_f64(op: str, operands: tuple[F64, ...]) -> F64:
    """``op`` on float64 values."""
    with np.errstate(all="ignore"):
        return np.asarray(_UNARY_AND_BINARY[op](*operands))


def to_odd_f64(total: F64, error: F64) -> F64:
    """The sum ``total + error`` rounded to odd, where ``total`` is that sum rounded to nearest.

    Rounding to odd: an inexact result whose last bit is zero moves one step towards the exact value. It keeps
    enough to be rounded once more, to any precision at least two bits shorter (Boldo and Melquiond 2008).
    """
    bits = total.view(np.int64)
    inexact = (error != 0) & (error == error) & ((bits & 1) == 0)
    step = np.where((total < 0) == (error < 0), np.int64(1), np.int64(-1))
    return (bits + np.where(inexact, step, np.int64(0))).view(np.float64)


def fused_multiply_add(a: F64, b: F64, c: F64) -> F64:
    """a*b + c rounded to odd in float64, for operands of at most 24 bits with the exponents of f32.

    The product is exact: 48 bits, and no exponent leaves float64. The error of the sum is found exactly
    (Knuth's TwoSum).
    """
    with np.errstate(all="ignore"):
        product = a * b
        total = product + c
        other = total - product
        error = (product - (total - other)) + (c - other)
        return to_odd_f64(total, error)


def f64_to_odd_f32(values: F64) -> Bits:
    """float64 values rounded to odd in f32, as f32 codes. NaN stays NaN, infinities stay."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
        back = single.astype(np.float64)
        below = np.abs(back) < np.abs(values)
    bits = single.view(np.uint32)
    fix = (back != values) & ((bits & 1) == 0)
    step = np.where(below, np.uint32(1), np.uint32(0xFFFF_FFFF))
    return np.asarray(bits + np.where(fix, step, np.uint32(0)))


def f32_to_odd_bf16(bits: Bits) -> Bits:
    """f32 codes rounded to odd in bf16: the upper half, its last bit set where the lower half is not zero.

    NaN stays NaN, infinities stay.
    """
    return np.asarray((bits >> 16).astype(np.uint16) | ((bits & 0xFFFF) != 0))


def f32_to_bf16(bits: Bits) -> Bits:
    """f32 codes rounded to nearest-even in bf16, by integer addition: the carry runs into the exponent by
    itself."""
    rounded = ((bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16).astype(np.uint16)
    nan = (bits & 0x7FFF_FFFF) > 0x7F80_0000
    if nan.any():
        rounded[nan] = 0x7FC0
    return np.asarray(rounded)


def f32_to_f16(bits: Bits) -> Bits:
    """f32 codes rounded to nearest-even in f16 by numpy's conversion."""
    with np.errstate(all="ignore"):
        half = bits.view(np.float32).astype(np.float16)
    out = half.view(np.uint16)
    nan = (out & 0x7FFF) > 0x7C00
    if nan.any():
        out[nan] = 0x7E00
    return np.asarray(out)
