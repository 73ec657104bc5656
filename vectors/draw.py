"""Draws of our own: the same on every platform and with every version of every library.

Words come from SHAKE-128 of a label. A float is drawn by its fields: any exponent is as likely as any other, and the
fraction is often one at which rounding goes wrong. Operands beside others are often related to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.oracle.formats import WIDE, Bits, Format

U64 = np.ndarray[Any, np.dtype[np.uint64]]

_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Shifts and multipliers of the finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""


def words(label: str, count: int) -> U64:
    """``count`` words of 64 bits that depend on the label alone."""
    return np.frombuffer(hashlib.shake_128(label.encode()).digest(8 * count), "<u8").astype(np.uint64)


def mixed(columns: Sequence[Bits]) -> U64:
    """A number for each tuple of operands that depends on nothing else: an order without a pattern."""
    state = np.full(len(columns[0]), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        halves = (column["lo"], column["hi"]) if column.dtype == WIDE else (column,)
        for half in halves:
            state = state * np.uint64(31) + half.astype(np.uint64)
            for shift, multiplier in _MIX:
                state = (state ^ (state >> np.uint64(shift))) * np.uint64(multiplier)
    return state


def packed(fmt: Format, low: U64, high: U64 | None = None) -> Bits:
    """Codes of a format of the low bits of words."""
    if fmt.storage == WIDE:
        wide = np.zeros(len(low), WIDE)
        wide["lo"], wide["hi"] = low, low if high is None else high
        return wide
    return (low & np.uint64(fmt.code_count - 1 if fmt.width < 64 else (1 << 64) - 1)).astype(fmt.storage)


def integers(fmt: Format, label: str, count: int) -> Bits:
    """Numbers of every length, of both signs."""
    kind, value = words(f"{label}/kind", count), words(f"{label}/value", count)
    length = kind % np.uint64(min(fmt.width, 64)) + np.uint64(1)
    number = value >> (np.uint64(64) - length)
    flipped = np.where(kind >> np.uint64(63) == 1, ~number, number)
    return packed(fmt, flipped, np.where(kind >> np.uint64(62) & np.uint64(1) == 1, ~np.uint64(0), value))


def _fractions(fmt: Format, kind: U64, value: U64) -> U64:
    """Fractions: random, at the ends, a few leading bits, a tie at any length with or without its last bit."""
    bits = fmt.fraction_bits
    if not bits:
        return np.zeros(len(kind), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    cut = (kind >> np.uint64(8)) % np.uint64(bits)
    lead = ~((np.uint64(1) << cut) - np.uint64(1))
    half = np.uint64(1) << cut >> np.uint64(1)
    last = (value >> np.uint64(62)) - np.uint64(1)  # -1, 0, 1 or 2
    choice = (kind >> np.uint64(16)) % np.uint64(6)
    picked = np.select(
        [choice == k for k in range(5)],
        [value, value & lead, (value & lead) + half, (value & lead) + half + last, -(value % np.uint64(3))],
        value % np.uint64(3),
    )
    result: U64 = picked & mask
    return result


def floats(fmt: Format, label: str, count: int, exponents: tuple[int, int] | None = None) -> Bits:
    """Finite numbers, or with ``exponents`` those whose exponent lies between the two, as far as the format has it."""
    kind, value = words(f"{label}/kind", count), words(f"{label}/value", count)
    top = fmt.max_finite_bits >> fmt.fraction_bits
    low, high = 0, top
    if exponents is not None:
        low, high = (min(max(e + fmt.bias, 0), top) for e in exponents)
    field = np.uint64(low) + (kind >> np.uint64(24)) % np.uint64(high - low + 1)
    magnitude = (field << np.uint64(fmt.fraction_bits)) | _fractions(fmt, kind, value)
    magnitude = np.minimum(magnitude, np.uint64(fmt.max_finite_bits))
    sign = np.where(kind >> np.uint64(63) == 1, np.uint64(fmt.sign_mask), np.uint64(0))
    return packed(fmt, magnitude | sign)


def values(fmt: Format, label: str, count: int) -> Bits:
    """Numbers of any format."""
    if fmt.kind == "bool":
        return packed(fmt, words(label, count))
    return floats(fmt, label, count) if fmt.is_float else integers(fmt, label, count)


def beside(fmt: Format, first: Bits, label: str) -> Bits:
    """An operand beside another one of the same format: half of the time of an exponent, or a value, nearby."""
    count = len(first)
    other = values(fmt, f"{label}/other", count)
    kind = words(f"{label}/near", count)
    if fmt.is_float:
        step = (kind >> np.uint64(8)) % np.uint64(2 * fmt.precision + 7)
        moved = (first & np.uint64(fmt.magnitude_mask)).astype(np.int64)
        moved = moved + ((step.astype(np.int64) - (fmt.precision + 3)) << fmt.fraction_bits)
        fraction = other & fmt.storage.type(fmt.fraction_mask)
        moved = np.clip(moved & ~np.int64(fmt.fraction_mask), 0, fmt.max_finite_bits & ~fmt.fraction_mask)
        near = (other & fmt.storage.type(fmt.sign_mask)) | moved.astype(fmt.storage) | fraction
        fits = (near & fmt.storage.type(fmt.magnitude_mask)) <= fmt.max_finite_bits
        near = np.where(fits, near, other)
    else:
        step = (kind >> np.uint64(8)) % np.uint64(5) - np.uint64(2)
        near = packed(fmt, first.astype(np.uint64) + step)
        small = packed(fmt, (kind >> np.uint64(16)) % np.uint64(fmt.width + 2))
        near = np.where(kind & np.uint64(2) == 0, near, small)
    return np.where(kind & np.uint64(1) == 0, other, near).astype(fmt.storage)


def tuples(formats: Sequence[Format], label: str, count: int, window: tuple[int, int] | None = None) -> list[Bits]:
    """Operands for an operation; ``window`` as `Operation.window`, where three of four first operands dwell."""
    first = values(formats[0], f"{label}/0", count)
    if window is not None and formats[0].is_float:
        inside = floats(formats[0], f"{label}/inside", count, window)
        first = np.where(words(f"{label}/dwell", count) & np.uint64(3) == 0, first, inside)
    columns = [first]
    for place, fmt in enumerate(formats[1:], 1):
        related = fmt is formats[place - 1]
        columns.append(
            beside(fmt, columns[-1], f"{label}/{place}") if related else values(fmt, f"{label}/{place}", count)
        )
    return columns
