"""lgamma: log|Gamma(x)| (``intent:5-c``)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from halfulp.oracle.functions.record import (
    Approximation,
    Argument,
    Function,
    Known,
    mp,
    split_integer,
    to_arb,
    to_mpf,
    within_guard,
)


def _known(x: Argument) -> Known | None:
    """1 and 2 give +0; zeros and negative integers are poles, whose sign the absolute value removes."""
    if x.kind == "nan":
        return "nan"
    if x.kind != "number":
        return "+inf"
    if x.value in (1, 2):
        return "+0"
    return "+inf" if x.value <= 0 and x.value.denominator == 1 else None


def _value(x: Fraction) -> Approximation:
    """Negative x by reflection: log|Gamma(x)| = log(pi / |sin(pi x)|) - log Gamma(1 - x).

    The distance to the nearest integer is exact. Near a zero of the result the terms cancel, so the allowance is
    relative to the terms, and absolute where the result is small.
    """
    if x > 0:
        value = mp.loggamma(to_mpf(x))
        return within_guard(value, 1 + abs(value))
    _, rest = split_integer(x)
    sine = abs(mp.sin(mp.pi * to_mpf(rest)))
    first, second = mp.log(mp.pi / sine), mp.loggamma(to_mpf(1 - x))
    return within_guard(first - second, 1 + abs(first) + abs(second))


def _ball(x: Fraction) -> arb:
    return to_arb(x).lgamma() if x > 0 else abs(to_arb(x).gamma()).log()


LGAMMA = Function("lgamma", _known, _value, _ball)
