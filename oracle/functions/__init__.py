"""Functions of real numbers, correctly rounded: the slow path, which is the definition.

`nearest` answers for one operand, by Arb first and by mpmath where Arb does not decide; `nearest_by_mpmath` is the
definition itself, which the tests compare with it on everything they look at. See `oracle.functions.ziv`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from flint import arb

from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.functions import batch, ziv
from halfulp.oracle.functions.asin import ASIN
from halfulp.oracle.functions.division import DIVISION
from halfulp.oracle.functions.erfc import ERFC
from halfulp.oracle.functions.exp2 import EXP2
from halfulp.oracle.functions.i0 import I0
from halfulp.oracle.functions.lgamma import LGAMMA
from halfulp.oracle.functions.log1p import LOG1P
from halfulp.oracle.functions.record import Argument, Between, Function, Known, argument, to_arb
from halfulp.oracle.functions.tanh import TANH
from halfulp.oracle.functions.ziv import Extended, UndecidedRoundingError
from halfulp.oracle.rounding import Mode, power_of_two

__all__ = [
    "FUNCTIONS",
    "Extended",
    "Function",
    "UndecidedRoundingError",
    "arb_ball",
    "enclosure",
    "extended",
    "nearest",
    "nearest_by_mpmath",
    "nearest_many",
    "unbounded_magnitude",
    "within_many",
]

FUNCTIONS: dict[str, Function] = {
    record.name: record for record in (LGAMMA, ASIN, LOG1P, ERFC, I0, EXP2, TANH, DIVISION)
}
"""Every function by name."""


def _arguments(fmt: Format, codes: tuple[int, ...]) -> tuple[Argument, ...]:
    return tuple(argument(fmt, code) for code in codes)


def nearest_by_mpmath(name: str, fmt: Format | str, *codes: int, mode: Mode = "nearest_even") -> int:
    """`nearest` by the definition alone."""
    fmt = format_of(fmt) if isinstance(fmt, str) else fmt
    return ziv.definition(FUNCTIONS[name], _arguments(fmt, codes), fmt, mode)


def nearest(name: str, fmt: Format | str, *codes: int, mode: Mode = "nearest_even") -> int:
    """The correctly rounded result of a function.

    Args:
        name: one of `FUNCTIONS`.
        fmt: the format of operands and result.
        codes: the operands' bit patterns.
        mode: the rounding direction.

    Returns:
        the bit pattern; ``fmt.nan_bits`` for a NaN. Where the format has no infinity, its largest number stands for
        one, with the sign.

    Raises:
        UndecidedRoundingError: no precision tried decides. Not known to happen.
    """
    return _nearest(name, format_of(fmt) if isinstance(fmt, str) else fmt, codes, mode)


@lru_cache(maxsize=1 << 17)
def _nearest(name: str, fmt: Format, codes: tuple[int, ...], mode: Mode) -> int:
    function, arguments = FUNCTIONS[name], _arguments(fmt, codes)
    try:
        return ziv.by_arb(function, arguments, fmt, mode)
    except UndecidedRoundingError:
        return ziv.definition(function, arguments, fmt, mode)


def nearest_many(name: str, fmt: Format | str, *operands: Bits) -> Bits:
    """`nearest` for arrays of bit patterns of one shape. Results of functions of one operand are remembered."""
    fmt = format_of(fmt) if isinstance(fmt, str) else fmt
    if len(operands) > 1:
        rows = zip(*(operand.ravel().tolist() for operand in operands), strict=True)
        results = [_nearest(name, fmt, row, "nearest_even") for row in rows]
        return np.array(results, fmt.storage).reshape(operands[0].shape)

    def compute(codes: list[int]) -> Bits:
        return batch.rounded(FUNCTIONS[name], fmt, codes, lambda code: nearest(name, fmt, code))

    return _memory(name, fmt, "nearest").look_up(operands[0], compute)


@cache
def _memory(name: str, fmt: Format, what: object) -> batch.Memory:
    return batch.Memory()


@lru_cache(maxsize=1 << 16)
def unbounded_magnitude(name: str, fmt: Format, *codes: int) -> int:
    """The magnitude code of the result, rounded to nearest even as if the exponent had no upper limit.

    Where the result is finite that is its code without the sign; 2**(emax + 1) has the code of the infinity and the
    codes go on from there (``reading:1``). An infinite exact value, or one beyond twice the range of exponents, gives
    the infinity of `ziv.unbounded`. Meaningless for NaN.
    """
    wide = ziv.unbounded(fmt)
    return ziv.by_arb(FUNCTIONS[name], _arguments(fmt, codes), wide) & wide.magnitude_mask


def _scaled(function: Function, factor: Fraction) -> Function:
    """The function times a positive number."""

    def known(x: Argument) -> Known | None:
        answer = function.known(x)
        if isinstance(answer, Between):
            return Between(factor * answer.low, None if answer.high is None else factor * answer.high)
        return factor * answer if isinstance(answer, Fraction) else answer

    def ball(x: Fraction) -> arb:
        return function.ball(x) * to_arb(factor)

    return Function(function.name, known, function.value, ball)


def within_many(name: str, fmt: Format | str, bits: Bits, relative: Fraction) -> tuple[Bits, Bits]:
    """The numbers of least and of greatest magnitude with a relative error of at most ``relative``.

    Args:
        relative: a number of a binary format, less than 1.

    Returns:
        two arrays of bit patterns, both with the sign of the exact value. Where the exact value is zero, infinite or
        NaN it stands in both. Where no number is near enough the first exceeds the second in magnitude.
    """
    fmt = format_of(fmt) if isinstance(fmt, str) else fmt

    def end(factor: Fraction, mode: Literal["up", "down"]) -> Bits:
        scaled = _scaled(FUNCTIONS[name], factor)
        mirrored: Mode = "down" if mode == "up" else "up"

        def one(code: int) -> int:
            x = argument(fmt, code)
            negative = ziv.by_arb(scaled, (x,), fmt, "nearest_even") & fmt.sign_mask
            return ziv.by_arb(scaled, (x,), fmt, mirrored if negative else mode)

        def compute(codes: list[int]) -> Bits:
            return batch.rounded(FUNCTIONS[name], fmt, codes, one, mode=mode, factor=factor)

        return _memory(name, fmt, factor).look_up(bits, compute)

    return end(1 - relative, "up"), end(1 + relative, "down")


def extended(name: str, fmt: Format | str, *codes: int, extra_bits: int = 32) -> Extended:
    """The exact value cut off ``extra_bits`` bits beyond the format, toward zero."""
    fmt = format_of(fmt) if isinstance(fmt, str) else fmt
    return ziv.extended(FUNCTIONS[name], _arguments(fmt, codes), fmt, extra_bits)


def arb_ball(name: str, value: Fraction, prec: int) -> arb:
    """A rigorous enclosure of a function at a number, at a working precision of ``prec`` bits.

    The ball may be useless (infinite or NaN), and is at a pole. ``value`` is a number of a binary format.
    """
    return ziv.ball_at(FUNCTIONS[name], (value,), prec)


def enclosure(name: str, fmt: Format | str, code: int, bits: int) -> tuple[Fraction, Fraction]:
    """Rigorous bounds of the exact value, at most 2**-bits of it apart.

    Raises:
        ValueError: the exact value is no number (NaN, infinity).
        OverflowError: it is too large to be written down (exp2 of 1e300).
        UndecidedRoundingError: not reached at any precision tried.
    """
    fmt = format_of(fmt) if isinstance(fmt, str) else fmt
    function, (x,) = FUNCTIONS[name], _arguments(fmt, (code,))
    known = function.known(x)
    if known in ("+0", "-0"):
        return Fraction(0), Fraction(0)
    if isinstance(known, str):
        raise ValueError(f"{name} of {fmt.hex(code)} is {known}")
    if isinstance(known, Fraction):
        return known, known
    if isinstance(known, Between):
        if known.high is None:
            raise OverflowError(f"{name} of {fmt.hex(code)} is above {known.low.numerator.bit_length()} bits")
        if known.high - known.low <= power_of_two(-bits) * min(abs(known.low), abs(known.high)):
            return known.low, known.high
        if known.low == 0:  # an underflow beyond all formats: no digits are worth computing
            return known.low, known.high
    for precision in ziv.ARB_PRECISIONS:
        if precision >= bits:
            bounds = ziv.arb_bounds(function, (x.value,), precision)
            if bounds and bounds[1] - bounds[0] <= power_of_two(-bits) * min(abs(bounds[0]), abs(bounds[1])):
                return bounds
    raise UndecidedRoundingError(f"{name} of {fmt.hex(code)}: no enclosure of {bits} bits")
