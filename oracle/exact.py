"""The five operations of IEEE 754 on decoded values, before rounding.

Operands are `Unpacked` values of one format with at most 53 bits of precision. A result is an integer of up
to 64 bits times a power of two. Where the mathematical result needs more bits, the integer has at least 61 of
them and its lowest bit is jammed (see `oracle.limbs`), so rounding it to at most 53 bits gives what the exact
result gives.

Source: IEEE 754-2019 clause 5.4.1 (operations), 6.1 and 6.3 (infinities, zeros and their signs, for the
direction nearest-even), 7.2 (invalid operations).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfulp.oracle import limbs
from halfulp.oracle.codes import I64, U64, Kind, Mask, Unpacked


class Exact(NamedTuple):
    """``(-1)**sign * sig * 2**exp``, as in `Unpacked` but with i64 exponents."""

    kind: np.ndarray[Any, np.dtype[np.uint8]]
    sign: Mask
    sig: U64
    exp: I64


def _result(nan: Mask, infinite: Mask, sign: Mask, sig: U64, exp: I64) -> Exact:
    kind = (sig != 0).astype(np.uint8)
    if infinite.any():
        kind[infinite] = Kind.INFINITE
    if nan.any():
        kind[nan] = Kind.NAN
    return Exact(kind, sign, sig, exp)


def add(x: Unpacked, y: Unpacked) -> Exact:
    """x + y. An exact sum of zero is +0 unless both operands are negative (clause 6.3)."""
    ex, ey = x.exp.astype(np.int64), y.exp.astype(np.int64)
    swap = (ey > ex) | ((ey == ex) & (y.sig > x.sig))
    spread = np.uint64(10)
    big = np.where(swap, y.sig, x.sig) << spread
    small = np.where(swap, x.sig, y.sig) << spread
    small = limbs.shift_right_jam(small, np.abs(ex - ey))
    opposite = x.sign ^ y.sign
    sig = np.where(opposite, big - small, big + small)
    infinite_x, infinite_y = x.kind == Kind.INFINITE, y.kind == Kind.INFINITE
    sign = np.where(sig == 0, x.sign & y.sign, np.where(swap, y.sign, x.sign))
    sign = np.where(infinite_x, x.sign, np.where(infinite_y, y.sign, sign))
    nan = (x.kind == Kind.NAN) | (y.kind == Kind.NAN) | (infinite_x & infinite_y & opposite)
    return _result(nan, infinite_x | infinite_y, sign, sig, np.maximum(ex, ey) - 10)


def negated(x: Unpacked) -> Unpacked:
    """-x, which never rounds."""
    return x._replace(sign=~x.sign)


def multiply(x: Unpacked, y: Unpacked) -> Exact:
    """x * y."""
    sig, exp = limbs.pair_to_single(limbs.multiply(x.sig, y.sig))
    infinite = (x.kind == Kind.INFINITE) | (y.kind == Kind.INFINITE)
    zero = (x.kind == Kind.ZERO) | (y.kind == Kind.ZERO)
    nan = (x.kind == Kind.NAN) | (y.kind == Kind.NAN) | (infinite & zero)
    return _result(nan, infinite, x.sign ^ y.sign, sig, exp + x.exp + y.exp)


def _to_53_bits(x: Unpacked) -> tuple[U64, I64]:
    """The significand shifted to exactly 53 bits, and its exponent. A zero significand becomes 2**52."""
    sig = np.where(x.sig == 0, np.uint64(1), x.sig)
    up = 53 - limbs.bit_length(sig)
    return np.asarray(sig << up.astype(np.uint64)), np.asarray(x.exp - up)


def divide(x: Unpacked, y: Unpacked) -> Exact:
    """x / y. A finite number by zero is an infinity.

    The host's float64 quotient is only a first guess, wrong by a few units; one exact integer remainder
    corrects it, whatever the host's rounding is.
    """
    a, ea = _to_53_bits(x)
    b, eb = _to_53_bits(y)
    quotient = (a.astype(np.float64) / b.astype(np.float64) * 2.0**53).astype(np.int64)
    divisor = b.view(np.int64)
    remainder = ((a << np.uint64(53)) - quotient.view(np.uint64) * b).view(np.int64)
    correction = remainder // divisor
    quotient += correction
    remainder -= correction * divisor
    more = remainder << 8
    tail = more // divisor
    lost = tail * divisor != more
    sig = ((quotient << 8) | tail | lost).view(np.uint64)
    zero_x, zero_y = x.kind == Kind.ZERO, y.kind == Kind.ZERO
    infinite_x, infinite_y = x.kind == Kind.INFINITE, y.kind == Kind.INFINITE
    nan = (x.kind == Kind.NAN) | (y.kind == Kind.NAN) | (zero_x & zero_y) | (infinite_x & infinite_y)
    sig = np.where(zero_x | infinite_y, np.uint64(0), sig)
    return _result(nan, infinite_x | zero_y, x.sign ^ y.sign, sig, ea - eb - 61)


def square_root(x: Unpacked) -> Exact:
    """The square root; of -0 it is -0, of any other negative number NaN.

    The root of a 106-bit integer, found from a float64 guess and corrected exactly, with one more bit and a
    jammed one behind it.
    """
    a, exp = _to_53_bits(x)
    odd = (exp & 1).astype(np.uint64)
    # The radicand is a * 2**(52 + odd) and the exponent that goes with it even; the remainder n - r*r stays far
    # below 2**63 in magnitude, so it is right modulo 2**64.
    radicand = a << (np.uint64(52) + odd)
    guess = np.sqrt(a.astype(np.float64) * np.where(odd == 1, 2.0, 1.0)) * 2.0**26
    root = guess.astype(np.int64)
    remainder = (radicand - (root * root).view(np.uint64)).view(np.int64)
    while (low := remainder < 0).any():
        root -= low
        remainder += np.where(low, 2 * root + 1, 0)
    while (high := remainder > 2 * root).any():
        remainder -= np.where(high, 2 * root + 1, 0)
        root += high
    half = remainder > root
    sig = ((root << 10) | (half.astype(np.int64) << 9) | (remainder != 0)).view(np.uint64)
    sig = np.where(x.sig == 0, np.uint64(0), sig)
    nan = (x.kind == Kind.NAN) | (x.sign & (x.kind != Kind.ZERO))
    half_exp = (exp - odd.view(np.int64) - 52) >> 1
    return _result(nan, x.kind == Kind.INFINITE, x.sign, sig, half_exp - 10)


_FAR = np.int64(-(1 << 20))
"""Exponent of a zero operand of a sum: it is never the larger one."""


def _at_top(a: limbs.Pair, exp: I64) -> tuple[limbs.Pair, I64]:
    """A 128-bit integer shifted until bit 126 is its leading one, and its exponent."""
    up = 127 - limbs.pair_bit_length(a)
    zero = (a[0] | a[1]) == 0
    return limbs.pair_shift_left(a, np.where(zero, 0, up)), np.where(zero, _FAR, exp - up)


def fused_multiply_add(x: Unpacked, y: Unpacked, z: Unpacked) -> Exact:
    """x * y + z without an intermediate rounding.

    The product has at most 106 bits, z at most 53. Both are moved to the top of 128 bits and the smaller one
    is shifted right with jamming. Bits are lost only when it lies at least 22 places lower, and then at most
    one leading bit cancels: the jammed bit stays far below the result's last bit.
    """
    product, ep = _at_top(limbs.multiply(x.sig, y.sig), x.exp.astype(np.int64) + y.exp)
    addend, ez = _at_top((z.sig, np.zeros_like(z.sig)), z.exp.astype(np.int64) - 64)
    sign_p = x.sign ^ y.sign
    swap = (ez > ep) | ((ez == ep) & limbs.less(product, addend))
    big = limbs.choose(swap, addend, product)
    small = limbs.pair_shift_right_jam(limbs.choose(swap, product, addend), np.abs(ep - ez))
    opposite = sign_p ^ z.sign
    total = limbs.choose(opposite, limbs.subtract(big, small), limbs.add(big, small))
    sig, exp = limbs.pair_to_single(total)
    infinite_p = (x.kind == Kind.INFINITE) | (y.kind == Kind.INFINITE)
    zero_p = (x.kind == Kind.ZERO) | (y.kind == Kind.ZERO)
    infinite_z = z.kind == Kind.INFINITE
    sign = np.where(sig == 0, sign_p & z.sign, np.where(swap, z.sign, sign_p))
    sign = np.where(infinite_p, sign_p, np.where(infinite_z, z.sign, sign))
    nan = (x.kind == Kind.NAN) | (y.kind == Kind.NAN) | (z.kind == Kind.NAN)
    nan |= (infinite_p & zero_p) | (infinite_p & infinite_z & opposite)
    return _result(nan, infinite_p | infinite_z, sign, sig, exp + np.maximum(ep, ez))
