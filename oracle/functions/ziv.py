"""Rounding a function's exact value once: raise the precision until every candidate rounds to the same code.

Ziv's loop, twice. `definition` takes mpmath's value with a stated error; `by_arb` takes a rigorous ball. Nothing
passes through a machine float on the way: the bounds are exact rational numbers, which `oracle.rounding` rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Literal, NamedTuple

from flint import arb, ctx

from halfulp.oracle.formats import Format
from halfulp.oracle.functions.record import Argument, Between, Function, Known, mp
from halfulp.oracle.rounding import Mode, power_of_two, round_exact, value_of, value_of_scaled

MPMATH_PRECISIONS = tuple(100 << step for step in range(9))
ARB_PRECISIONS = (64, 100, 200, 400, 800, 1600, 3200, 6400)

Bounds = tuple[Fraction, Fraction]


class UndecidedRoundingError(ArithmeticError):
    """The highest precision did not decide. Either the value is rational and `Function.known` misses it, or it lies
    closer to a boundary than any known hard case."""


# From bounds to a code.


def _grid(fmt: Format, bound: Fraction) -> Fraction:
    """Half a unit of a grid on which the bound lies, and every number and midpoint of the format."""
    return power_of_two(-max(bound.denominator.bit_length() - 1, 1 - fmt.quantum_exponent) - 1)


def _round(fmt: Format, value: Fraction, mode: Mode, *, negative: bool) -> int:
    """`round_exact`; a format without infinities gives its largest number where others overflow."""
    overflow: Literal["infinity", "saturate"] = "infinity" if fmt.infinity else "saturate"
    return round_exact(fmt, value, mode=mode, overflow=overflow, negative_zero=negative and value == 0)


def decided(fmt: Format, bounds: Bounds, mode: Mode) -> int | None:
    """The code that every value from the first to the second bound rounds to, if there is one.

    Rounding is monotone, so the two ends decide. The ends themselves count as values.
    """
    low, high = bounds
    negative = high < 0 or low + high < 0
    code = _round(fmt, low, mode, negative=negative)
    return code if code == _round(fmt, high, mode, negative=negative) else None


def _of_known(fmt: Format, known: Known, mode: Mode) -> int | None:
    """The code of an answer that needs no approximation; None where its bounds are too wide for this format."""
    sign = fmt.sign_mask
    match known:
        case "nan":
            return fmt.nan_bits
        case "+inf" | "-inf":
            top = fmt.infinity_bits if fmt.infinity else fmt.max_finite_bits
            return top | (sign if known == "-inf" else 0)
        case "+0":
            return 0
        case "-0":
            return sign if fmt.has_negative_zero else 0
        case Between(low, None):
            return _round(fmt, low, mode, negative=False)
        case Between(low, Fraction() as high):
            return decided(fmt, (low + _grid(fmt, low), high - _grid(fmt, high)), mode)
        case Fraction():
            return _round(fmt, known, mode, negative=known < 0)
    raise AssertionError(known)


# Bounds.


def _exact(value: object) -> Fraction:
    """An mpf as the rational number that it is. ``float()`` would round, twice for subnormal numbers."""
    sign, man, exponent, _ = value._mpf_  # type: ignore[attr-defined]
    return value_of_scaled(-int(man) if sign else int(man), int(exponent))


def mpmath_bounds(function: Function, values: tuple[Fraction, ...], bits: int) -> Bounds:
    """The value, less and plus its stated error, at a working precision of ``bits``."""
    with mp.workprec(bits):
        value, error = function.value(*values)
        middle, radius = _exact(value), _exact(error)
    return middle - radius, middle + radius


def middle_and_radius(ball: arb) -> tuple[int, int, int] | None:
    """Integers m, r and e such that the ball is within ``(m +- r) * 2**e``; None where the ball is useless.

    Useless is one without ends, or of a size that no integer should be asked to have. A radius that is astronomically
    small is made larger.
    """
    if not ball.is_finite():
        return None
    (m, e), (r, f) = (tuple(map(int, part.man_exp())) for part in (ball.mid(), ball.rad()))
    if r == 0 or m == 0:
        exponent = e if r == 0 else f
        return (m, r, exponent) if abs(exponent) < _LONGEST else None
    if abs(e) > _LONGEST or f - e > _LONGEST:
        return None
    if e - f > 2 * _LONGEST:  # the radius has 30 bits: far below one unit of the new exponent
        r, f = 1, e - _LONGEST
    exponent = min(e, f)
    return m << e - exponent, r << f - exponent, exponent


_LONGEST = 1 << 16
"""Exponents that are written out as bits."""


def ball_bounds(ball: arb) -> Bounds | None:
    """The ends of a ball, or of a slightly larger one; None where it is useless."""
    found = middle_and_radius(ball)
    if found is None:
        return None
    middle, radius, exponent = found
    return value_of_scaled(middle - radius, exponent), value_of_scaled(middle + radius, exponent)


def ball_at(function: Function, values: tuple[Fraction, ...], bits: int) -> arb:
    """The function's ball at a working precision of ``bits``."""
    before = ctx.prec
    try:
        ctx.prec = bits
        return function.ball(*values)
    finally:
        ctx.prec = before


def arb_bounds(function: Function, values: tuple[Fraction, ...], bits: int) -> Bounds | None:
    """The ends of the function's ball at a working precision of ``bits``; None where the ball is useless."""
    return ball_bounds(ball_at(function, values, bits))


# The loops.


def _loop(
    function: Function,
    arguments: tuple[Argument, ...],
    fmt: Format,
    mode: Mode,
    bounds_at: Callable[[Function, tuple[Fraction, ...], int], Bounds | None],
    precisions: tuple[int, ...],
) -> int:
    known = function.known(*arguments)
    code = None if known is None else _of_known(fmt, known, mode)
    if code is not None:
        return code
    values = tuple(x.value for x in arguments)
    for bits in precisions:
        bounds = bounds_at(function, values, bits)
        code = None if bounds is None else decided(fmt, bounds, mode)
        if code is not None:
            return code
    raise UndecidedRoundingError(f"{function.name} of {values} is not decided in {fmt.name} by {precisions[-1]} bits")


def definition(function: Function, arguments: tuple[Argument, ...], fmt: Format, mode: Mode = "nearest_even") -> int:
    """The correctly rounded code: the definition, by mpmath.

    Args:
        arguments: decoded operands, of any format.
        fmt: the format of the result. Where it has no infinity its largest number stands for one.
        mode: the rounding direction.

    Raises:
        UndecidedRoundingError: see there.
    """
    return _loop(function, arguments, fmt, mode, mpmath_bounds, MPMATH_PRECISIONS)


def by_arb(function: Function, arguments: tuple[Argument, ...], fmt: Format, mode: Mode = "nearest_even") -> int:
    """The same by Arb: rigorous, and several times faster. Arguments and errors as for `definition`."""
    return _loop(function, arguments, fmt, mode, arb_bounds, ARB_PRECISIONS)


# Formats of more digits or of a longer range, in which an exact value is rounded for other purposes.


@cache
def unbounded(fmt: Format) -> Format:
    """The format with its exponents continued upwards (2**1 times as many codes).

    Magnitude codes agree up to the largest finite number; what is the infinity here is there 2**(emax + 1).
    """
    return Format(
        f"{fmt.name}, unbounded",
        "float",
        fmt.width + 1,
        True,
        False,
        fmt.exponent_bits + 1,
        fmt.fraction_bits,
        fmt.bias,
        infinity=True,
        nan="ieee",
    )


@cache
def _finer(fmt: Format, extra_bits: int) -> Format:
    """The unbounded format with ``extra_bits`` more bits of fraction."""
    return Format(
        f"{fmt.name} and {extra_bits} bits",
        "float",
        fmt.width + 1 + extra_bits,
        True,
        False,
        fmt.exponent_bits + 1,
        fmt.fraction_bits + extra_bits,
        fmt.bias,
        infinity=True,
        nan="ieee",
    )


class Extended(NamedTuple):
    """An exact value cut off some bits beyond a format: ``(-1)**negative * (significand + r) * 2**exponent``.

    Attributes:
        kind: ``"nan"``, ``"infinity"``, ``"zero"`` (exactly), ``"huge"`` (finite, but beyond twice the format's range
            of exponents; the other fields are 0) or ``"number"``.
        exact: r is 0, else 0 < r < 1.
    """

    kind: Literal["nan", "infinity", "zero", "huge", "number"]
    negative: bool
    significand: int
    exponent: int
    exact: bool


def extended(function: Function, arguments: tuple[Argument, ...], fmt: Format, extra_bits: int) -> Extended:
    """The exact value, with ``extra_bits`` bits more than the format has, toward zero."""
    known = function.known(*arguments)
    if isinstance(known, str):
        kinds: dict[str, Literal["nan", "infinity", "zero"]] = {"nan": "nan", "+0": "zero", "-0": "zero"}
        return Extended(kinds.get(known, "infinity"), known.startswith("-"), 0, 0, True)
    finer = _finer(fmt, extra_bits)
    if isinstance(known, Between) and known.high is None:
        return Extended("huge", False, 0, 0, False)
    down = by_arb(function, arguments, finer, "toward_zero")
    negative, magnitude = bool(down & finer.sign_mask), down & finer.magnitude_mask
    value = value_of(finer, magnitude)
    exact = isinstance(known, Fraction) and abs(known) == value
    if magnitude == finer.max_finite_bits and not exact:
        return Extended("huge", negative, 0, 0, False)
    field = max(magnitude >> finer.fraction_bits, 1)
    exponent = field - finer.bias - finer.fraction_bits
    significand = magnitude - (field - 1 << finer.fraction_bits)
    return Extended("number", negative, significand, exponent, exact)
