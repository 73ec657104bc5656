"""The definition of rounding: one exact value to one code, in rational arithmetic.

Slow and short, so that it can be read next to IEEE 754-2019 clause 4.3. Everything faster
(`oracle.rounding_array`) is compared with this. The value is divided by the quantum, the distance of two
neighbouring numbers where the value lies; the quotient is rounded to an integer, whose parity decides ties.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from halfulp.oracle.formats import Format

Mode = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down"]
"""The rounding directions of IEEE 754-2019 clause 4.3."""

Overflow = Literal["infinity", "saturate", "illegal"]
"""What becomes of a magnitude that, rounded with an unbounded exponent, exceeds the largest finite number.

``"infinity"``: as IEEE 754 clause 7.4 says (a direction that leads toward zero gives the largest finite
number). ``"saturate"``: the largest finite number. ``"illegal"``: there is no result. A format without
infinities, and every integer format, reads ``"infinity"`` as ``"illegal"``.
"""

MODES: tuple[Mode, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
OVERFLOWS: tuple[Overflow, ...] = ("infinity", "saturate", "illegal")

Special = Literal["nan", "+inf", "-inf"]


def power_of_two(exponent: int) -> Fraction:
    """2**exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def value_of_scaled(n: int, exponent: int) -> Fraction:
    """n * 2**exponent."""
    return n * power_of_two(exponent)


def value_of(fmt: Format, code: int) -> Fraction | Special:
    """The value of a code. Both zeros give 0: the sign is in the code.

    Raises:
        ValueError: ``code`` is not a code of the format.
    """
    if not 0 <= code < fmt.code_count:
        raise ValueError(f"{code:#x} is not a code of {fmt.name}")
    if not fmt.is_float:
        return Fraction(code - fmt.code_count if fmt.signed and code > fmt.max_int else code)
    negative = bool(code & fmt.sign_mask)
    magnitude = code & fmt.magnitude_mask
    if fmt.nan == "negative_zero" and code == fmt.sign_mask:
        return "nan"
    if magnitude > fmt.max_finite_bits:
        if fmt.infinity and magnitude == fmt.infinity_bits:
            return "-inf" if negative else "+inf"
        return "nan"
    field = magnitude >> fmt.fraction_bits
    significand = magnitude & fmt.fraction_mask
    if field == 0 and fmt.subnormals:
        exponent = fmt.emin
    else:
        exponent = field - fmt.bias
        significand |= 1 << fmt.fraction_bits
    value = value_of_scaled(significand, exponent - fmt.fraction_bits)
    return -value if negative else value


def floor_log2(value: Fraction) -> int:
    """The greatest e with 2**e <= value, for a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= power_of_two(exponent) else exponent - 1


def round_to_integer(magnitude: Fraction, mode: Mode, *, negative: bool) -> int:
    """A non-negative rational rounded to an integer; ``negative`` is the sign of the whole value."""
    below, remainder = divmod(magnitude.numerator, magnitude.denominator)
    if remainder == 0:
        return below
    half = 2 * remainder - magnitude.denominator
    match mode:
        case "nearest_even":
            away = half > 0 or (half == 0 and below % 2 == 1)
        case "nearest_away":
            away = half >= 0
        case "toward_zero":
            away = False
        case "up":
            away = not negative
        case "down":
            away = negative
    return below + 1 if away else below


def overflow_gives_infinity(mode: Mode, *, negative: bool) -> bool:
    """IEEE 754 clause 7.4: whether overflow delivers an infinity, rather than the largest finite number."""
    match mode:
        case "nearest_even" | "nearest_away":
            return True
        case "toward_zero":
            return False
        case "up":
            return not negative
        case "down":
            return negative


def round_exact(
    fmt: Format,
    value: Fraction | int,
    *,
    mode: Mode = "nearest_even",
    overflow: Overflow = "infinity",
    negative_zero: bool = False,
) -> int:
    """The code of an exact value rounded once to a format.

    Args:
        fmt: any float, integer or bool format.
        value: the exact value.
        mode: the rounding direction.
        overflow: see `Overflow`.
        negative_zero: a value of 0 is -0. A format without -0 gives +0, as it does for negative underflow.

    Raises:
        OverflowError: there is no result (see `Overflow`).
        ValueError: the format has no sign or no zero, and the value needs it: e8m0 holds no value below
        2**-127.
    """
    value = Fraction(value)
    if not fmt.is_float:
        return _round_to_int_format(fmt, value, mode, overflow)
    negative = value < 0 or (value == 0 and negative_zero)
    magnitude = abs(value)
    if (negative and not fmt.signed) or (not fmt.has_zero and magnitude < power_of_two(fmt.emin)):
        raise ValueError(f"{fmt.name} cannot hold {value}")
    code = _round_magnitude(fmt, magnitude, mode, negative=negative)
    if code > fmt.max_finite_bits:
        if overflow == "illegal" or (overflow == "infinity" and not fmt.infinity):
            raise OverflowError(f"{value} is beyond the largest finite number of {fmt.name}")
        to_infinity = overflow == "infinity" and overflow_gives_infinity(mode, negative=negative)
        code = fmt.infinity_bits if to_infinity else fmt.max_finite_bits
    if negative and (code != 0 or fmt.has_negative_zero):
        code |= fmt.sign_mask
    return code


def _round_magnitude(fmt: Format, magnitude: Fraction, mode: Mode, *, negative: bool) -> int:
    """The code of a magnitude, as if the exponent field were as wide as it takes.

    Codes of neighbouring numbers are neighbours, so a carry out of the significand moves into the exponent
    field by itself. The exponent of the quantum is floored: below the normal numbers the quantum stays the
    same.
    """
    if magnitude == 0:
        return 0
    exponent = max(floor_log2(magnitude), fmt.emin)
    quantum = power_of_two(exponent - fmt.fraction_bits)
    significand = round_to_integer(magnitude / quantum, mode, negative=negative)
    hidden = 0 if fmt.subnormals else 1 << fmt.fraction_bits
    return ((exponent - fmt.emin) << fmt.fraction_bits) + significand - hidden


def _round_to_int_format(fmt: Format, value: Fraction, mode: Mode, overflow: Overflow) -> int:
    negative = value < 0
    magnitude = round_to_integer(abs(value), mode, negative=negative)
    n = -magnitude if negative else magnitude
    if not fmt.min_int <= n <= fmt.max_int:
        if overflow != "saturate":
            raise OverflowError(f"{value} is out of range of {fmt.name}")
        n = fmt.min_int if negative else fmt.max_int
    return n % fmt.code_count
