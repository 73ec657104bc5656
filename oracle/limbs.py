"""Integers of 128 bits as pairs of uint64 arrays, and the shifts that exact arithmetic needs.

*Jamming* means that a right shift puts "some bit that was lost was one" into the lowest bit that is kept. As
long as that bit lies at least two places below the last bit of the rounded result, a jammed integer rounds as
the exact one does, in every direction.

Numpy leaves the result of shifting by the full width or more to the platform, so no shift here reaches 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from halfulp.oracle.codes import I64, U64, Mask

ONE = np.uint64(1)
MAX = (1 << 64) - 1
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)

Pair = tuple[U64, U64]
"""High and low 64 bits."""


def bit_length(x: U64) -> I64:
    """Position of the leading one plus one; 0 for 0.

    A bit that follows a one is cleared first, so the conversion to float64 cannot round up to the next power
    of two.
    """
    thinned = x & ~(x >> ONE)
    length = (thinned.astype(np.float64).view(np.int64) >> 52) - 1022
    return np.asarray(np.maximum(length, 0))


def _shift(n: Any) -> U64:
    amount: U64 = np.asarray(n, np.uint64)
    return amount


def normalise(x: U64) -> tuple[U64, I64]:
    """``x`` shifted left until bit 63 is set, and its bit length. Zero stays zero."""
    length = bit_length(x)
    return x << _shift(np.minimum(64 - length, 63)), length


def shift_right_jam(x: U64, n: I64) -> U64:
    """``x >> n`` with jamming, for any n >= 0."""
    by = _shift(np.minimum(n, 63))
    kept = x >> by
    lost = (kept << by) != x
    kept = np.where(n > 63, np.uint64(0), kept)
    lost = np.where(n > 63, x != 0, lost)
    return kept | lost.astype(np.uint64)


def multiply(a: U64, b: U64) -> Pair:
    """The product of two 64-bit integers, by the four products of their halves."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW_HALF, b >> _HALF, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW_HALF)


def add(a: Pair, b: Pair) -> Pair:
    """The sum modulo 2**128."""
    low = a[1] + b[1]
    return a[0] + b[0] + (low < a[1]).astype(np.uint64), low


def subtract(a: Pair, b: Pair) -> Pair:
    """The difference modulo 2**128."""
    return a[0] - b[0] - (a[1] < b[1]).astype(np.uint64), a[1] - b[1]


def less(a: Pair, b: Pair) -> Mask:
    """``a < b``."""
    return np.asarray((a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1])))


def negate(a: Pair) -> Pair:
    """``-a`` modulo 2**128."""
    low = ~a[1] + ONE
    return ~a[0] + (low == 0).astype(np.uint64), low


def choose(where: Mask, a: Pair, b: Pair) -> Pair:
    return np.where(where, a[0], b[0]), np.where(where, a[1], b[1])


def pair_bit_length(a: Pair) -> I64:
    """Bit length of a 128-bit integer."""
    in_high = a[0] != 0
    return bit_length(np.where(in_high, a[0], a[1])) + np.where(in_high, 64, 0)


def pair_shift_left(a: Pair, n: I64) -> Pair:
    """``a << n`` for 0 <= n < 128; bits shifted out are lost."""
    high, low = choose(n >= 64, (a[1], np.zeros_like(a[1])), a)
    by = _shift(n & 63)
    return (high << by) | ((low >> ONE) >> (np.uint64(63) - by)), low << by


def pair_shift_right_jam(a: Pair, n: I64) -> Pair:
    """``a >> n`` with jamming, for any n >= 0."""
    far = n >= 64
    high, low = choose(far, (np.zeros_like(a[0]), a[0]), a)
    gone = np.where(far, a[1], np.uint64(0))
    rest = np.maximum(np.where(far, n - 64, n), 0)
    by = _shift(np.minimum(rest, 63))
    lost = (((low >> by) << by) != low) | (gone != 0)
    low = (low >> by) | ((high << ONE) << (np.uint64(63) - by))
    high = high >> by
    beyond = rest > 63
    lost = np.where(beyond, (a[0] | a[1]) != 0, lost)
    low = np.where(beyond, np.uint64(0), low) | lost.astype(np.uint64)
    return np.where(beyond, np.uint64(0), high), low


def pair_to_single(a: Pair) -> tuple[U64, I64]:
    """The 64 leading bits, jammed, and the exponent to go with them: the value is ``single *
    2**exponent``."""
    length = pair_bit_length(a)
    high, low = pair_shift_left(a, np.minimum(128 - length, 127))
    return high | (low != 0).astype(np.uint64), length - 64
