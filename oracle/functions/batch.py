"""Many operands at once: one ball for each, and one vectorised rounding for all.

Most balls agree on the leading bits of the value. Those bits, with the fact that something follows, are all that
rounding needs (`oracle.rounding_array.round_array`, ``sticky``). What they do not decide, and what is known without
approximation, goes through `oracle.functions.ziv` one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.functions.record import TINY, Function, argument
from halfulp.oracle.functions.ziv import middle_and_radius
from halfulp.oracle.rounding import Mode
from halfulp.oracle.rounding_array import round_array

Leading = tuple[bool, int, int]
"""Sign, significand and exponent: the magnitude is strictly between ``s * 2**e`` and ``(s + 1) * 2**e``."""


def leading_bits(ball: arb, keep: int, factor: int = 1) -> Leading | None:
    """The ``keep`` leading bits that all numbers of the ball share, times ``factor``; None where they do not."""
    found = middle_and_radius(ball)
    if found is None:
        return None
    middle, radius, exponent = found
    low, high = (abs(middle) - radius) * factor, (abs(middle) + radius) * factor
    shift = high.bit_length() - keep
    if low <= 0 or shift <= 0:
        return None
    leading = low >> shift
    if leading != high >> shift or leading << shift == low:
        return None
    return middle < 0, leading, exponent + shift


def rounded(
    function: Function,
    fmt: Format,
    codes: list[int],
    one: Callable[[int], int],
    *,
    mode: Mode = "nearest_even",
    factor: Fraction = Fraction(1),
) -> Bits:
    """The function times ``factor``, rounded once, for each of ``codes``.

    Args:
        one: answers for a single code.
        mode: a direction among those that treat both signs alike, or one that refers to the magnitude.
        factor: a positive number of a binary format.
    """
    results = np.zeros(len(codes), fmt.storage)
    one_code = fmt.bias << fmt.fraction_bits
    # Codes of magnitudes below 2**-(precision + 4): see `Function.near_zero`.
    close = max(one_code - (fmt.precision + 4 << fmt.fraction_bits), 0) if function.near_zero else 0
    if mode != "nearest_even" or factor != 1:
        close = 0
    places, signs, significands, exponents = [], [], [], []
    keep, scale = fmt.precision + 2, factor.denominator.bit_length() - 1
    before = ctx.prec
    try:
        ctx.prec = keep + 38
        for place, code in enumerate(codes):
            if 0 < code & fmt.magnitude_mask < close:
                results[place] = code if function.near_zero == "operand" else one_code
                continue
            x = argument(fmt, code)
            found, known = None, function.known(x)
            if known is TINY and mode == "nearest_even":
                continue  # rounds to +0
            if known is None:
                found = leading_bits(function.ball(x.value), keep, factor.numerator)
            if found is None:
                results[place] = one(code)
            else:
                places.append(place)
                signs.append(found[0])
                significands.append(found[1])
                exponents.append(found[2] - scale)
    finally:
        ctx.prec = before
    if places:
        magnitude = round_array(
            fmt,
            np.zeros(len(places), bool),
            np.array(significands, np.uint64),
            np.array(exponents, np.int64),
            sticky=np.ones(len(places), bool),
            mode=mode,
        ).bits
        results[places] = np.where(signs, magnitude | fmt.storage.type(fmt.sign_mask), magnitude)
    return results


class Memory:
    """Results by code, forgotten when there are too many."""

    def __init__(self, limit: int = 1 << 18) -> None:
        self.limit = limit
        self._found: dict[int, int] = {}

    def look_up(self, bits: Bits, compute: Callable[[list[int]], Bits]) -> Bits:
        """The result for each code, computed once for each that is new."""
        distinct, back = np.unique(bits, return_inverse=True)
        wanted = distinct.tolist()
        missing = [code for code in wanted if code not in self._found]
        if missing:
            if len(self._found) + len(missing) > self.limit:
                self._found.clear()
                missing = wanted
            self._found.update(zip(missing, compute(missing).tolist(), strict=True))
        found = self._found
        return np.array([found[code] for code in wanted], bits.dtype)[back].reshape(bits.shape)
