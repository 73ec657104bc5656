"""A rounder whose every step can go wrong.

The exact value of a source code is cut at the last bit that the destination keeps. What is then added, and how the
pieces are put together, is left to the suspect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.sets import Mask

Words = np.ndarray[Any, np.dtype[np.uint64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Cut:
    """Finite values cut at the destination's last place.

    Attributes:
        sign: the sign bit.
        kept: the bits that stay, as an integer below 2**precision.
        guard: the first bit that goes.
        rest: any later bit is set.
        binade: steps of the last place above that of the destination's subnormals.
        finite: the element is a number at all.
    """

    sign: Mask
    kept: Words
    guard: Mask
    rest: Mask
    binade: Integers
    finite: Mask


Increment = Callable[[Cut], Mask]
"""Where a unit in the last place is added."""


def bit_length(words: Words) -> Integers:
    """Shape (n,): position of the highest set bit plus one; 0 for 0."""
    length = np.zeros(len(words), np.int64)
    left = words.copy()
    for step in (32, 16, 8, 4, 2, 1):
        high = left >> np.uint64(step)
        taken = high > 0
        length += np.where(taken, step, 0)
        left = np.where(taken, high, left)
    return length + (left > 0)


def cut(src: Format, dst: Format, bits: Bits) -> Cut:
    """Cut the exact values of ``src`` codes for ``dst``."""
    value = codes.decode(src, bits)
    sig, exp = value.sig.astype(np.uint64), value.exp.astype(np.int64)
    last = np.maximum(exp + bit_length(sig) - dst.precision, dst.quantum_exponent)
    shift = last - exp
    right = np.clip(shift, 0, 63).astype(np.uint64)
    left = np.clip(-shift, 0, 63).astype(np.uint64)
    one = np.uint64(1)
    below = np.where(right > 0, right - one, 0).astype(np.uint64)
    kept = np.where(shift > 63, 0, (sig >> right) << left)
    guard = (shift > 0) & ((sig >> below) & one > 0) & (shift < 64)
    rest = np.where(shift > 63, sig > 0, (shift > 0) & (sig & ((one << below) - one) > 0))
    finite = (value.kind == 0) | (value.kind == 1)
    return Cut(value.sign, kept.astype(np.uint64), guard, rest, last - dst.quantum_exponent, finite)


def assemble(dst: Format, parts: Cut, up: Mask, *, carry_is_ored: bool = False) -> Bits:
    """Codes from cut values and the units to add. Overflow gives infinity, else NaN, else the maximum."""
    shift, mask = np.int64(dst.fraction_bits), np.int64(dst.fraction_mask)
    kept = parts.kept.astype(np.int64)
    if not dst.subnormals:
        kept = kept - (1 << dst.fraction_bits)  # the lowest code is a normal number
    if carry_is_ored:
        field, fraction = parts.binade + (kept >> shift), kept & mask
        carry = up & (fraction == mask)
        magnitude = ((field | carry) << shift) | np.where(carry, 0, fraction + up)
    else:
        magnitude = (parts.binade << shift) + kept + up
    no_infinity = dst.max_finite_bits if dst.nan == "none" else dst.nan_bits
    beyond = dst.infinity_bits if dst.infinity else no_infinity
    magnitude = np.where((magnitude > dst.max_finite_bits) | (magnitude < 0), beyond, magnitude)
    sign = np.where(parts.sign, np.uint64(dst.sign_mask), np.uint64(0))
    return (magnitude.astype(np.uint64) | sign).astype(dst.storage)


def with_increment(
    src: Format, dst: Format, bits: Bits, right: Bits, increment: Increment, *, carry_is_ored: bool = False
) -> Bits:
    """Round with a rule of one's own; infinities and NaNs stay as in ``right``."""
    parts = cut(src, dst, bits)
    return np.where(parts.finite, assemble(dst, parts, increment(parts), carry_is_ored=carry_is_ored), right)


def nearest_even(parts: Cut) -> Mask:
    return parts.guard & (parts.rest | (parts.kept & np.uint64(1) > 0))
