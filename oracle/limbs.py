"""Integers of 128 bits as pairs of uint64 arrays, and the shifts that exact arithmetic needs.

*Jamming* means that a right shift puts "some bit that was lost was one" into the lowest bit that is kept. As
long as that bit lies at least two places below the last bit of the rounded result, a jammed integer rounds as
the exact one does, in every direction.

A shift of uint64 by 64 or more gives 0 in numpy (C leaves it undefined), which makes the shifts of pairs free
of cases. It is checked below, when this module is imported.
"""

from __future__ import annotations

import numpy as np

from halfulp.oracle.codes import I64, U64, Mask

ONE = np.uint64(1)
MAX = (1 << 64) - 1
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)

Pair = tuple[U64, U64]
"""High and low 64 bits."""

_WIDTH = np.uint64(64)


def _long_shifts_give_zero() -> bool:
    by = np.arange(64, 164, dtype=np.uint64)
    ones = np.full(100, MAX, np.uint64)
    return not ((ones << by).any() or (ones >> by).any() or (ones << (by - by - ONE)).any())


if not _long_shifts_give_zero():
    raise ImportError("this numpy does not give 0 for a shift of uint64 by 64 or more")


def bit_length(x: U64) -> I64:
    """Position of the leading one plus one; 0 for 0.

    A bit that follows a one is cleared first, so the conversion to float64 cannot round up to the next power
    of two.
    """
    thinned = x & ~(x >> ONE)
    length = (thinned.astype(np.float64).view(np.int64) >> 52) - 1022
    return np.asarray(np.maximum(length, 0))


def _amount(n: I64) -> U64:
    """A shift amount that is not negative, as numpy wants it."""
    return n.view(np.uint64)


def normalise(x: U64) -> tuple[U64, I64]:
    """``x`` shifted left until bit 63 is set, and its bit length. Zero stays zero."""
    length = bit_length(x)
    return x << _amount(64 - length), length


def shift_right_jam(x: U64, n: I64) -> U64:
    """``x >> n`` with jamming, for any n >= 0."""
    by = _amount(n)
    kept = x >> by
    return np.asarray(kept | ((kept << by) != x))


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
    return a[0] + b[0] + (low < a[1]), low


def subtract(a: Pair, b: Pair) -> Pair:
    """The difference modulo 2**128."""
    return a[0] - b[0] - (a[1] < b[1]), a[1] - b[1]


def less(a: Pair, b: Pair) -> Mask:
    """``a < b``."""
    return np.asarray((a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1])))


def negate(a: Pair) -> Pair:
    """``-a`` modulo 2**128."""
    low = ~a[1] + ONE
    return ~a[0] + (low == 0), low


def choose(where: Mask, a: Pair, b: Pair) -> Pair:
    return np.where(where, a[0], b[0]), np.where(where, a[1], b[1])


def pair_bit_length(a: Pair) -> I64:
    """Bit length of a 128-bit integer."""
    in_high = a[0] != 0
    return bit_length(np.where(in_high, a[0], a[1])) + np.where(in_high, 64, 0)


def pair_shift_left(a: Pair, n: I64) -> Pair:
    """``a << n`` for n >= 0; bits shifted out are lost.

    Of the parts that make up the upper half, those that do not apply have a shift of 64 or more, or a
    negative one, which is a huge one in uint64: they vanish.
    """
    high, low = a
    by = _amount(n)
    return (high << by) | (low >> (_WIDTH - by)) | (low << (by - _WIDTH)), low << by


def pair_shift_right_jam(a: Pair, n: I64) -> Pair:
    """``a >> n`` with jamming, for any n >= 0. The parts are those of `pair_shift_left`, mirrored."""
    high, low = a
    by = _amount(np.minimum(n, 128))
    lost = (low << (_WIDTH - np.minimum(by, _WIDTH))) | (high << (np.uint64(128) - by))
    shifted = (low >> by) | (high << (_WIDTH - by)) | (high >> (by - _WIDTH))
    return high >> by, shifted | (lost != 0)


def pair_to_single(a: Pair) -> tuple[U64, I64]:
    """The 64 leading bits, jammed, and the exponent to go with them: the value is ``single *
    2**exponent``."""
    length = pair_bit_length(a)
    high, low = pair_shift_left(a, 128 - length)
    return high | (low != 0), length - 64
