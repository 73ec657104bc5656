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
from halfulp.oracle.formats import FORMATS, Bits, Format

F32 = np.ndarray[Any, np.dtype[np.float32]]


def keep_freed_memory() -> None:
    """Let the C library keep the memory of temporary arrays instead of returning it to the kernel each time.

    glibc maps blocks from 128 KiB on anew for each allocation, until a larger one has been freed; then it
    raises its threshold. With blocks of 32 K elements that is a factor of two to three in speed. Elsewhere
    this does nothing.
    """
    np.empty(31 << 20, np.uint8)


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

    A test, made once and in the default state, on the cases that are got wrong when something is: ties,
    subnormals, overflow, zeros.
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
        (third == 0x3EAAAAAB).all()
        and (root == 0x3FB504F3).all()
        and (tiny == 2).all()
        and (wide == 2.0**-149).all()
        and (third64 == 0x3FD5555555555555).all()
        and (root64 == 0x3FF6A09E667F3BCD).all()
    )


def trusted() -> bool:
    """Whether host arithmetic may be used now."""
    return in_default_state() and host_is_ieee()


_UNARY_AND_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "floor": np.floor,
}


def canonical_nan(fmt: Format, values: Any) -> Bits:
    """The codes of f32 or f64 values, with the one NaN of the format for every NaN. Overwrites ``values``."""
    nan = values != values
    bits: Bits = values.view(fmt.storage)
    if nan.any():
        np.copyto(bits, fmt.nan_bits, where=nan)
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
    bits, error_bits = total.view(np.int64), error.view(np.int64)
    inexact = (np.abs(error) > 0) & ((bits & 1) == 0)
    away = ((bits ^ error_bits) >> 63) | 1
    return np.asarray((bits + away * inexact).view(np.float64))


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


def fused_multiply_add_f32(a: Bits, b: Bits, c: Bits) -> Bits:
    """a*b + c of f32 codes, rounded once.

    The product is exact in float64, and the sum rounded there is nearly always on the same side of every midpoint of
    f32 as the exact one: rounding is monotone, and those midpoints are float64 numbers. It can only land on one: where
    its last 29 bits are those of a midpoint, or below the normal numbers of f32, where midpoints lie elsewhere, the sum
    is done again and rounded to odd.
    """
    with np.errstate(all="ignore"):
        x, y, z = (bits.view(np.float32).astype(np.float64) for bits in (a, b, c))
        total = x * y
        total += z
        bits = canonical_nan(FORMATS["f32"], total.astype(np.float32))
    code = total.view(np.uint64)
    doubtful = (code & _BELOW_F32) == _HALF_OF_F32
    doubtful |= (code & _F64_MAGNITUDE) < _F32_NORMAL_IN_F64
    rows = np.flatnonzero(doubtful)
    if len(rows):
        again = fused_multiply_add(x[rows], y[rows], z[rows])
        with np.errstate(all="ignore"):
            bits[rows] = canonical_nan(FORMATS["f32"], again.astype(np.float32))
    return bits


_BELOW_F32 = np.uint64((1 << 29) - 1)
_HALF_OF_F32 = np.uint64(1 << 28)
_F64_MAGNITUDE = np.uint64((1 << 63) - 1)
_F32_NORMAL_IN_F64 = np.uint64((1023 - 126) << 52)


def f64_to_odd_f32(values: F64) -> Bits:
    """float64 values rounded to odd in f32, as f32 codes. NaN stays NaN, infinities stay."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
        back = single.astype(np.float64)
        below = np.abs(back) < np.abs(values)
    bits = single.view(np.uint32)
    inexact = (back != values) & ((bits & 1) == 0)
    # One step away from zero or, modulo 2**32, towards it.
    step = below.astype(np.uint32) * np.uint32(2) - np.uint32(1)
    return np.asarray(bits + step * inexact)


def f32_to_odd_bf16(bits: Bits) -> Bits:
    """f32 codes rounded to odd in bf16: the upper half, its last bit set where the lower half is not zero.

    NaN stays NaN, infinities stay.
    """
    return np.asarray((bits >> 16).astype(np.uint16) | ((bits & 0xFFFF) != 0))


_F32_INFINITY = np.uint32(0x7F80_0000)
_F32_MAGNITUDE = np.uint32(0x7FFF_FFFF)


def f32_to_bf16(bits: Bits) -> Bits:
    """f32 codes rounded to nearest-even in bf16, by integer addition: a carry runs into the exponent."""
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    nan = (bits & _F32_MAGNITUDE) > _F32_INFINITY
    if nan.any():
        np.copyto(rounded, 0x7FC0, where=nan)
    return np.asarray(rounded.astype(np.uint16))


_F16_OVERFLOW = np.uint32(0x4780_0000)
"""2**16 as an f32 code: all from here on is infinite in f16."""

_F16_NORMAL = np.uint32(0x3880_0000)
"""2**-14, f16's smallest normal number."""

_F32_EXPONENT = np.uint32(0x7F80_0000)


def f32_to_f16(bits: Bits) -> Bits:
    """f32 codes rounded to nearest-even in f16, by one f32 addition.

    For |x| of exponent e (at least -14, where the quantum stops shrinking) the sum with m = 2**(e + 13) has
    the last place 2**(e - 10), which is f16's quantum at x: the host rounds just there, and the sum's code is
    that of m plus the significand of the result, carry included.
    """
    magnitude = bits & _F32_MAGNITUDE
    nan = magnitude > _F32_INFINITY
    np.minimum(magnitude, _F16_OVERFLOW, out=magnitude)
    spacer = np.maximum(magnitude & _F32_EXPONENT, _F16_NORMAL)
    spacer += np.uint32(13 << 23)
    rounded = (magnitude.view(np.float32) + spacer.view(np.float32)).view(np.uint32)
    rounded -= spacer
    spacer -= np.uint32((127 - 14 + 13) << 23)
    spacer >>= 13
    rounded += spacer
    sign = bits >> 16
    sign &= 0x8000
    rounded |= sign
    if nan.any():
        np.copyto(rounded, 0x7E00, where=nan)
    return np.asarray(rounded.astype(np.uint16))
