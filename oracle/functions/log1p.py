"""log1p: log(1 + x) of the exact sum (``intent:5-e``)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from halfulp.oracle.functions.record import (
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
    """Near zero: log(1+x) = x - x^2/2 + x^3/3 - ..., so x - x^2 is below and x above, for either sign."""
    if x.kind == "nan" or x.kind == "-inf" or x.value < -1:
        return "nan"
    if x.kind == "+inf":
        return "+inf"
    if x.value == -1:
        return "-inf"
    if x.zero:
        return x.zero
    return Between(x.value - x.value**2, x.value) if abs(x.value) < NEAR_ZERO else None


def _value(x: Fraction) -> Approximation:
    return within_guard(mp.log1p(to_mpf(x)))


def _ball(x: Fraction) -> arb:
    return to_arb(x).log1p()


LOG1P = Function("log1p", _known, _value, _ball, near_zero="operand")
