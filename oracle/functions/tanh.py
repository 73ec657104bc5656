"""tanh: the hyperbolic tangent (``intent:5.1``; the special values of IEEE 754-2019 clause 9.2)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from halfulp.oracle.functions.record import (
    NEAR_ZERO,
    TINY_BOUND,
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


def _positive(x: Fraction) -> Known | None:
    """Near zero tanh x = x - x^3/3 + ...; beyond 500, 1 - tanh x < 2 exp(-2x) < 2^-1440."""
    if x < NEAR_ZERO:
        return Between(x - x**3, x)
    return Between(1 - TINY_BOUND, Fraction(1)) if x > 500 else None


def _known(x: Argument) -> Known | None:
    match x.kind:
        case "nan":
            return "nan"
        case "+inf":
            return Fraction(1)
        case "-inf":
            return Fraction(-1)
    return odd(x, _positive)


def _value(x: Fraction) -> Approximation:
    return within_guard(mp.tanh(to_mpf(x)))


def _ball(x: Fraction) -> arb:
    return to_arb(x).tanh()


TANH = Function("tanh", _known, _value, _ball, near_zero="operand")
