"""i0: the modified Bessel function of the first kind of order 0 (``intent:5-g``)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from halfulp.oracle.functions.record import (
    HUGE,
    NEAR_ZERO,
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
    """Near zero I0(x) = 1 + x^2/4 + x^4/64 + ...; beyond 3000 it is above exp(x) / (3 sqrt(x)) > 2^4300."""
    if x.kind == "nan":
        return "nan"
    if x.kind != "number":
        return "+inf"
    if x.zero:
        return Fraction(1)
    if abs(x.value) < NEAR_ZERO:
        return Between(Fraction(1), 1 + x.value**2)
    return HUGE if abs(x.value) > 3000 else None


def _value(x: Fraction) -> Approximation:
    return within_guard(mp.besseli(0, to_mpf(abs(x))))


def _ball(x: Fraction) -> arb:
    return to_arb(abs(x)).bessel_i(0)


I0 = Function("i0", _known, _value, _ball, near_zero="one")
