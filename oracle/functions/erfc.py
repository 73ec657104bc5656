"""erfc: 1 - erf(x) of the exact value (``intent:5-f``)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from halfulp.oracle.functions.record import (
    NEAR_ZERO,
    TINY,
    TINY_BOUND,
    Approximation,
    Argument,
    Between,
    Function,
    Known,
    mp,
    to_arb,
    to_mpf,
    within_guard,
)


def _known(x: Argument) -> Known | None:
    """Near zero erfc x = 1 - 1.128... x + ...; beyond 30 it is below exp(-x^2) < 2^-1298, as is 2 - erfc(-x)."""
    if x.kind == "nan":
        return "nan"
    if x.kind == "+inf":
        return "+0"
    if x.kind == "-inf":
        return Fraction(2)
    if x.zero:
        return Fraction(1)
    value = x.value
    if abs(value) < NEAR_ZERO:
        return Between(1 - 2 * value, Fraction(1)) if value > 0 else Between(Fraction(1), 1 - 2 * value)
    if value > 30:
        return TINY
    return Between(2 - TINY_BOUND, Fraction(2)) if value < -30 else None


def _value(x: Fraction) -> Approximation:
    return within_guard(mp.erfc(to_mpf(x)))


def _ball(x: Fraction) -> arb:
    return to_arb(x).erfc()


ERFC = Function("erfc", _known, _value, _ball, near_zero="one")
