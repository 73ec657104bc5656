"""asin: the principal value (``intent:5-d``)."""

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
    odd,
    to_arb,
    to_mpf,
    within_guard,
)


def _near_zero(x: Fraction) -> Known | None:
    """asin x = x + x^3/6 + 3 x^5/40 + ..., all terms positive."""
    return Between(x, x + x**3) if x < NEAR_ZERO else None


def _known(x: Argument) -> Known | None:
    if x.kind != "number" or abs(x.value) > 1:
        return "nan"
    return odd(x, _near_zero)


def _value(x: Fraction) -> Approximation:
    return within_guard(mp.asin(to_mpf(x)))


def _ball(x: Fraction) -> arb:
    return to_arb(x).asin()


ASIN = Function("asin", _known, _value, _ball, near_zero="operand")
