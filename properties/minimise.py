"""Making a failing element simple.

In every round all simpler neighbours of the element are judged in one call, and the simplest one that still fails is
kept, until none does. Simple means: few set bits of the fraction, an exponent near that of 1, a positive sign; for
integers a small magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import product
from typing import Any

import numpy as np

from halfulp.oracle.formats import Bits, Format

Element = tuple[int, ...]
Fails = Callable[[list[Bits]], np.ndarray[Any, np.dtype[np.bool_]]]
"""Judges operands of shape (n,): True where the result is forbidden."""

ROUNDS = 30


def minimise(formats: Sequence[Format], element: Element, fails: Fails, frozen: Collection[int] = ()) -> Element:
    """The simplest element reached from ``element``, which fails, by steps that go on failing.

    Args:
        formats: formats of the operands.
        element: one code for each operand.
        fails: judges many elements at once.
        frozen: positions of operands that must stay (constants of the compiled program).
    """
    for _ in range(ROUNDS):
        cost = _cost(formats, element)
        candidates = {c for c in _neighbours(formats, element, frozen) if _cost(formats, c) < cost}
        if not candidates:
            break
        ordered = sorted(candidates, key=lambda c: (_cost(formats, c), c))
        columns = [
            np.array(column, np.uint64).astype(fmt.storage)
            for fmt, column in zip(formats, zip(*ordered, strict=True), strict=True)
        ]
        failing = np.flatnonzero(fails(columns))
        if not len(failing):
            break
        element = ordered[int(failing[0])]
    return element


def complexity(fmt: Format, code: int) -> int:
    """How hard a value is to read; 0 for the simplest."""
    if fmt.kind == "bool":
        return code
    if fmt.is_int:
        value = code - fmt.code_count if fmt.signed and code > fmt.max_int else code
        return 4 * abs(value).bit_length() + 2 * abs(value).bit_count() + (value < 0)
    sign = int(code & fmt.sign_mask != 0)
    magnitude = code & fmt.magnitude_mask
    if magnitude == 0:
        return sign
    if magnitude > fmt.max_finite_bits:
        return 6 + sign + 2 * (magnitude & fmt.fraction_mask).bit_count()
    fraction = magnitude & fmt.fraction_mask
    length = fmt.fraction_bits - (_trailing_zeros(fraction) if fraction else fmt.fraction_bits)
    away = abs((magnitude >> fmt.fraction_bits) - fmt.bias)
    return 2 + sign + 8 * fraction.bit_count() + length + 2 * away.bit_length() + min(away, 32)


def _cost(formats: Sequence[Format], element: Element) -> int:
    return sum(complexity(fmt, code) for fmt, code in zip(formats, element, strict=True))


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1


def _simpler(fmt: Format, code: int) -> set[int]:
    """Neighbours of one code."""
    if fmt.kind == "bool":
        return {0, 1}
    if fmt.is_int:
        mask = fmt.code_count - 1
        value = code - fmt.code_count if fmt.signed and code > fmt.max_int else code
        near = {0, 1, -value, value // 2, -(-value // 2), value - 1, value + 1, ~value}
        near |= {value & ~(1 << bit) for bit in range(fmt.width)} | {
            value & ((1 << bit) - 1) for bit in range(fmt.width)
        }
        near |= {(1 << bit) + d for bit in range(fmt.width) for d in (-1, 0, 1)}
        return {n & mask for n in near}
    sign, magnitude = code & fmt.sign_mask, code & fmt.magnitude_mask
    one = fmt.bias << fmt.fraction_bits
    fraction = magnitude & fmt.fraction_mask
    field = magnitude >> fmt.fraction_bits
    near = {0, one, magnitude, fmt.min_normal_bits, fmt.max_finite_bits, fmt.nan_bits, 1}
    near |= {magnitude & ~(1 << bit) for bit in range(fmt.fraction_bits)}
    near |= {magnitude & ~((1 << bit) - 1) for bit in range(fmt.fraction_bits)}
    near |= {(field << fmt.fraction_bits) | 1 << bit for bit in range(fmt.fraction_bits)}
    if fmt.infinity:
        near.add(fmt.infinity_bits)
    if magnitude <= fmt.max_finite_bits:
        away = field - fmt.bias
        for shorter in {0, away // 2, away - away // 4, away - 1 if away > 0 else away + 1}:
            near.add(((shorter + fmt.bias) << fmt.fraction_bits) | fraction)
    return {n for n in near if n >= 0} | {n | sign for n in near if n >= 0}


def _neighbours(formats: Sequence[Format], element: Element, frozen: Collection[int]) -> set[Element]:
    """Elements that differ in one operand, or in the exponent or the sign of several at once."""
    found: set[Element] = set()
    loose = [at for at in range(len(formats)) if at not in frozen]
    for at in loose:
        found |= {(*element[:at], code, *element[at + 1 :]) for code in _simpler(formats[at], element[at])}
    floats = [at for at in loose if formats[at].is_float]
    if 1 < len(floats) <= 4:
        # Moving two exponents together keeps a cancellation or a tie between the operands alive.
        for steps in product((-8, -1, 0, 1, 8), repeat=len(floats)):
            moved = list(element)
            for at, by in zip(floats, steps, strict=True):
                moved[at] = _scaled(formats[at], element[at], by)
            found.add(tuple(moved))
        flipped = list(element)
        for at in floats:
            flipped[at] ^= formats[at].sign_mask
        found.add(tuple(flipped))
    return found


def _scaled(fmt: Format, code: int, by: int) -> int:
    """A normal number times 2**by where that is a normal number too, else the same code."""
    field = (code & fmt.magnitude_mask) >> fmt.fraction_bits
    top = fmt.max_finite_bits >> fmt.fraction_bits
    moved = code + (by << fmt.fraction_bits)
    if not 1 <= field <= top or not 1 <= field + by <= top:
        return code
    return moved if (moved & fmt.magnitude_mask) <= fmt.max_finite_bits else code
