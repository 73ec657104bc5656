"""Facts of codes, over arrays: what a bit pattern means, and how the bit patterns of a format are ordered.

Every function takes a format and arrays of bit patterns in the storage dtype of that format, of any shape,
and returns arrays of the same shape. Nothing here rounds.

Sources: IEEE 754-2019 clause 3.4 (encodings), clause 5.3.1 (nextUp), and the records of `oracle.formats`.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from halfulp.oracle.formats import WIDE, Bits, Format

Mask = np.ndarray[Any, np.dtype[np.bool_]]
U64 = np.ndarray[Any, np.dtype[np.uint64]]
I64 = np.ndarray[Any, np.dtype[np.int64]]
I32 = np.ndarray[Any, np.dtype[np.int32]]
F64 = np.ndarray[Any, np.dtype[np.float64]]

NAN_DISTANCE = (1 << 64) - 1
"""Distance between a NaN and a number."""


class Kind(IntEnum):
    """What a code stands for."""

    ZERO = 0
    FINITE = 1
    INFINITE = 2
    NAN = 3


class Unpacked(NamedTuple):
    """Decoded values: ``(-1)**sign * sig * 2**exp`` where ``kind`` is ``FINITE``; ``sig`` is 0 elsewhere.

    Attributes:
        kind: u8, values of `Kind`.
        sign: bool, the sign bit (also of zeros, infinities and NaNs).
        sig: u64, an integer significand, not normalised.
        exp: i32.
    """

    kind: np.ndarray[Any, np.dtype[np.uint8]]
    sign: Mask
    sig: U64
    exp: I32


# Classes.


def is_nan(fmt: Format, bits: Bits) -> Mask:
    """Whether the code is a NaN. Never for bool and integers."""
    match fmt.nan:
        case "ieee":
            return np.asarray((bits & fmt.magnitude_mask) > fmt.infinity_bits)
        case "all_ones":
            return np.asarray((bits & fmt.magnitude_mask) == fmt.magnitude_mask)
        case "negative_zero":
            return np.asarray(bits == fmt.sign_mask)
        case "none":
            return np.zeros(bits.shape, bool)


def is_infinite(fmt: Format, bits: Bits) -> Mask:
    """Whether the code is an infinity of either sign."""
    if not fmt.infinity:
        return np.zeros(bits.shape, bool)
    return np.asarray((bits & fmt.magnitude_mask) == fmt.infinity_bits)


def is_zero(fmt: Format, bits: Bits) -> Mask:
    """Whether the value is zero, of either sign."""
    if fmt.storage == WIDE:
        return np.asarray((bits["lo"] | bits["hi"]) == 0)
    if not fmt.is_float:
        return np.asarray(bits == 0)
    if not fmt.has_zero:
        return np.zeros(bits.shape, bool)
    if not fmt.has_negative_zero:
        return np.asarray(bits == 0)
    return np.asarray((bits & fmt.magnitude_mask) == 0)


def is_subnormal(fmt: Format, bits: Bits) -> Mask:
    """Whether the value is subnormal: not zero, but smaller in magnitude than every normal number."""
    if not fmt.is_float or not fmt.subnormals:
        return np.zeros(bits.shape, bool)
    magnitude = bits & fmt.magnitude_mask
    return np.asarray((magnitude != 0) & (magnitude < fmt.min_normal_bits))


def is_negative(fmt: Format, bits: Bits) -> Mask:
    """The sign bit of a float (of -0 and of a NaN too); whether an integer is below zero."""
    if not fmt.signed:
        return np.zeros(bits.shape, bool)
    if fmt.storage == WIDE:
        return np.asarray(bits["hi"] >= 1 << 63)
    return np.asarray((bits & (1 << (fmt.width - 1))) != 0)


# Values.


def _wide_refused(fmt: Format) -> None:
    if fmt.storage == WIDE:
        raise ValueError(f"{fmt.name}: 128-bit integers do not fit a 64-bit array")


def int_values(fmt: Format, bits: Bits) -> I64 | U64:
    """The values of integers (and of bool) as int64; as uint64 for the unsigned 64-bit format.

    Raises:
        ValueError: for floats and for 128-bit integers.
    """
    _wide_refused(fmt)
    if fmt.is_float:
        raise ValueError(f"{fmt.name} is not an integer format")
    if not fmt.signed:
        return bits.astype(np.uint64) if fmt.width == 64 else bits.astype(np.int64)
    pad = fmt.storage.itemsize * 8 - fmt.width
    moved = bits if pad == 0 else bits << pad
    return np.asarray((moved.view(f"i{fmt.storage.itemsize}") >> pad).astype(np.int64))


def from_ints(fmt: Format, values: Any) -> Bits:
    """The codes of integers reduced modulo 2**width, that is their low bits (two's complement).

    Args:
        values: an integer array; for 128-bit formats also an object array of Python integers.
    """
    values = np.asarray(values)
    if values.dtype != object and fmt.storage != WIDE:
        return _low_bits(fmt, values)
    if values.dtype == object:
        low = _object_low_bits(values)
        high = _object_low_bits(values >> 64) if fmt.storage == WIDE else low
    else:
        low = values.astype(np.uint64)
        high = np.where(values < 0, np.uint64((1 << 64) - 1), np.uint64(0))
    if fmt.storage == WIDE:
        out = np.empty(values.shape, WIDE)
        out["lo"], out["hi"] = low, high
        return out
    return _low_bits(fmt, low)


def _low_bits(fmt: Format, values: Any) -> Bits:
    """Conversion of numpy's integers to a shorter or unsigned type keeps the low bits."""
    stored: Bits = values.astype(fmt.storage)
    return stored if fmt.width == fmt.storage.itemsize * 8 else stored & fmt.storage.type(fmt.code_count - 1)


def _object_low_bits(values: Any) -> U64:
    return np.asarray((values & ((1 << 64) - 1)).astype(np.uint64))


def decode(fmt: Format, bits: Bits) -> Unpacked:
    """The values of the codes: of floats, bool, and integers up to 64 bits (``sig = |v|``, ``exp = 0``).

    Raises:
        ValueError: for 128-bit integers.
    """
    _wide_refused(fmt)
    sign = is_negative(fmt, bits)
    if not fmt.is_float:
        value = int_values(fmt, bits).astype(np.uint64)
        sig = np.where(sign, -value, value) if fmt.signed else value
        return Unpacked((sig != 0).astype(np.uint8), sign, sig, np.zeros(bits.shape, np.int32))
    magnitude = bits & fmt.magnitude_mask
    field = (magnitude >> fmt.fraction_bits).astype(np.int32)
    fraction = (magnitude & fmt.fraction_mask).astype(np.uint64)
    if fmt.subnormals:
        sig = fraction | ((field != 0).astype(np.uint64) << np.uint64(fmt.fraction_bits))
        exp = np.maximum(field, 1) - np.int32(fmt.bias + fmt.fraction_bits)
    else:
        sig = fraction | np.uint64(1 << fmt.fraction_bits)
        exp = field - np.int32(fmt.bias + fmt.fraction_bits)
    kind = (sig != 0).astype(np.uint8)
    nan, infinite = is_nan(fmt, bits), is_infinite(fmt, bits)
    special = nan | infinite
    if special.any():
        kind[nan] = Kind.NAN
        kind[infinite] = Kind.INFINITE
        sig[special] = 0
    return Unpacked(kind, sign, sig, exp)


def float64_values(fmt: Format, bits: Bits) -> F64:
    """The values as float64: exact for every float format, and for integers below 2**53 in magnitude.

    NaN codes give a NaN; an infinity or a negative zero gives the same in float64.
    """
    _wide_refused(fmt)
    if not fmt.is_float:
        return int_values(fmt, bits).astype(np.float64)
    if fmt.width <= 8:
        return _float64_table(fmt)[bits]
    if fmt.width == 64:
        return np.asarray(bits).view(np.float64)
    if fmt.fraction_bits == 7:
        single = (bits.astype(np.uint32) << 16).view(np.float32)
    else:
        single = np.asarray(bits).view(f"f{fmt.width // 8}")
    with np.errstate(all="ignore"):
        return np.asarray(single.astype(np.float64))


@cache
def _float64_table(fmt: Format) -> F64:
    """The values of all codes of a format of at most 8 bits. ``ldexp`` is exact here."""
    kind, sign, sig, exp = decode(fmt, np.arange(fmt.code_count, dtype=fmt.storage))
    table = np.ldexp(sig.astype(np.float64), exp)
    table[kind == Kind.INFINITE] = np.inf
    table[kind == Kind.NAN] = np.nan
    table = np.where(sign, -table, table)
    table.flags.writeable = False
    return table


# Order.


def ordinal(fmt: Format, bits: Bits) -> I64:
    """The position of each code in the order of values; neighbouring numbers differ by one.

    Floats: the code where the sign bit is clear, else the complement of the magnitude, so +0 is 0 and -0 is
    -1. Signed integers: the value. Unsigned integers: the value, but less 2**63 for the 64-bit format. NaN
    codes get a number too, outside `ordinal_span` (or, for the format whose only NaN is the code of -0, the
    number -1).

    Raises:
        ValueError: for 128-bit integers.
    """
    _wide_refused(fmt)
    if not fmt.is_float:
        value = int_values(fmt, bits)
        if value.dtype == np.uint64:
            return (value ^ np.uint64(1 << 63)).view(np.int64)
        return np.asarray(value, np.int64)
    if not fmt.signed:
        return bits.astype(np.int64)
    size = fmt.storage.itemsize
    pad = size * 8 - fmt.width
    moved = bits if pad == 0 else bits << pad
    value = (moved.view(f"i{size}") >> pad).astype(np.int64)
    return np.asarray(value ^ ((value >> 63) & fmt.magnitude_mask))


def from_ordinal(fmt: Format, position: I64) -> Bits:
    """The inverse of `ordinal`. Where the format has no -0, the position -1 gives +0."""
    _wide_refused(fmt)
    position = np.asarray(position, np.int64)
    if not fmt.is_float:
        if not fmt.signed and fmt.width == 64:
            return position.view(np.uint64) ^ np.uint64(1 << 63)
        return from_ints(fmt, position)
    if not fmt.signed:
        return position.astype(fmt.storage)
    code = np.where(position < 0, ~position | np.int64(-1 << (fmt.width - 1)), position)
    if not fmt.has_negative_zero:
        code = np.where(position == -1, 0, code)
    return from_ints(fmt, code)


def ordinal_span(fmt: Format) -> tuple[int, int]:
    """The lowest and the highest ordinal of all codes that are not NaN (infinities included)."""
    _wide_refused(fmt)
    if not fmt.is_float:
        offset = 1 << 63 if not fmt.signed and fmt.width == 64 else 0
        return fmt.min_int - offset, fmt.max_int - offset
    top = fmt.infinity_bits if fmt.infinity else fmt.max_finite_bits
    return (~top, top) if fmt.signed else (0, top)


def distance(fmt: Format, a: Bits, b: Bits) -> U64:
    """Steps between neighbouring representable numbers from ``a`` to ``b``; +0 and -0 are one point
    (``reading:1``).

    Where either is NaN: 0 if both are, else 2**64 - 1. For integers, the absolute difference.
    """
    at, to = ordinal(fmt, a), ordinal(fmt, b)
    if not fmt.is_float:
        return _gap(at, to)
    if fmt.signed:
        at, to = at + (at < 0), to + (to < 0)
    nan_a, nan_b = is_nan(fmt, a), is_nan(fmt, b)
    gap = np.where(nan_a ^ nan_b, np.uint64(NAN_DISTANCE), _gap(at, to))
    return np.where(nan_a & nan_b, np.uint64(0), gap)


def _gap(a: I64, b: I64) -> U64:
    """``|a - b|``, which always fits 64 unsigned bits."""
    high, low = np.maximum(a, b), np.minimum(a, b)
    return high.view(np.uint64) - low.view(np.uint64)


def next_up(fmt: Format, bits: Bits) -> Bits:
    """The least value above (IEEE 754 nextUp). The greatest value, and NaN, stay as they are.

    Both zeros go to the smallest positive number, the negative number of least magnitude to -0.
    """
    at = ordinal(fmt, bits)
    _, high = ordinal_span(fmt)
    after = np.minimum(at, high - 1) + 1
    if fmt.is_float and fmt.signed:
        after = np.where(at == -1, 1, after)
    return _moved(fmt, bits, after)


def next_down(fmt: Format, bits: Bits) -> Bits:
    """The greatest value below (nextDown(x) = -nextUp(-x)). The least value, and NaN, stay as they are.

    The smallest positive number goes to +0. In e8m0 the least value is 2**-127.
    """
    at = ordinal(fmt, bits)
    low, _ = ordinal_span(fmt)
    before = np.maximum(at, low + 1) - 1
    if fmt.is_float and fmt.signed:
        before = np.where(at == 0, -2, before)
    return _moved(fmt, bits, before)


def _moved(fmt: Format, bits: Bits, position: I64) -> Bits:
    moved = from_ordinal(fmt, position)
    return np.where(is_nan(fmt, bits), bits, moved) if fmt.is_float else moved


def ulp_exponent(fmt: Format, bits: Bits) -> I32:
    """The exponent e such that one step at this value, away from zero, is 2**e.

    Zeros and subnormals: the smallest step. Infinity: the step of 2**(emax+1). Integers: 0. Meaningless for
    NaN.
    """
    if not fmt.is_float:
        return np.zeros(bits.shape, np.int32)
    field = ((bits & fmt.magnitude_mask) >> fmt.fraction_bits).astype(np.int32)
    if fmt.subnormals:
        field = np.maximum(field, 1)
    return np.asarray(field - np.int32(fmt.bias + fmt.fraction_bits))


def midpoint_above(fmt: Format, bits: Bits) -> Unpacked:
    """The exact midpoint between each finite value and its neighbour away from zero.

    For the largest finite number that is the threshold of overflow: the neighbour is what would follow if the
    exponent were unbounded. The sign is that of the code. Infinities and NaNs come back as they are.

    Raises:
        ValueError: for integers.
    """
    if not fmt.is_float:
        raise ValueError(f"{fmt.name} is not a float format")
    kind, sign, sig, exp = decode(fmt, bits)
    finite = kind <= Kind.FINITE
    return Unpacked(
        np.where(finite, np.uint8(Kind.FINITE), kind),
        sign,
        np.where(finite, sig * np.uint64(2) + np.uint64(1), np.uint64(0)),
        np.asarray(exp - np.int32(1)),
    )
