"""exp2: 2 to the power x (``intent:5.1``; the special values of IEEE 754-2019 clause 9.2)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from halfulp.oracle.functions.record import (
    HUGE,
    NEAR_ZERO,
    TINY,
    Approximation,
    Argument,
    Between,
    Function,
    Known,
    mp,
    split_integer,
    to_arb,
    to_mpf,
    within_guard,
)
from halfulp.oracle.rounding import power_of_two


def _known(x: Argument) -> Known | None:
    """Integers give powers of two. Near zero 2^x = 1 + 0.69... x + ..., between 1 and 1 + x."""
    if x.kind == "nan":
        return "nan"
    if x.kind != "number":
        return "+inf" if x.kind == "+inf" else "+0"
    value = x.value
    if value > 4000:
        return HUGE
    if value < -1290:
        return TINY
    if value.denominator == 1:
        return power_of_two(value.numerator)
    if abs(value) < NEAR_ZERO:
        return Between(*sorted((Fraction(1), 1 + value)))
    return None


def _value(x: Fraction) -> Approximation:
    n, rest = split_integer(x)
    return within_guard(mp.ldexp(mp.exp(to_mpf(rest) * mp.ln2), n))


def _ball(x: Fraction) -> arb:
    n, rest = split_integer(x)
    return (to_arb(rest) * arb.const_log2()).exp() * arb((1, n))


EXP2 = Function("exp2", _known, _value, _ball, near_zero="one")
