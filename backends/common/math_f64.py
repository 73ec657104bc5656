"""Functions of f64 that libraries lack, or do not compute accurately enough."""

from __future__ import annotations

from collections.abc import Callable

from halfulp.backends.common import coefficients as table
from halfulp.backends.common.math_f32 import LOG2_E, NEAREST
from halfulp.backends.common.real import ONE, Real, from_bits, real

LOG_2_UPPER = float.fromhex("0x1.62e42feep-1")
LOG_2_LOWER = float.fromhex("0x1.a39ef35793c76p-33")
"""log(2) in two parts, the first of 32 bits."""


def _power_of_two(n: Real) -> Real:
    """``2**n`` of an integer between -1000 and 1000."""
    code = n.code
    return from_bits(code, code.add(code.shl((n + NEAREST).bits(), 52), ONE))


def _fast_two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """The rounded sum and its error, which is exact where ``|a| >= |b|`` or a is zero (Dekker)."""
    total = a + b
    return total, b - (total - a)


def _two_sum(a: Real, b: Real | float) -> tuple[Real, Real]:
    """The rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exp(x: Real) -> tuple[Real, Real, Real]:
    """``exp(x) = 2**n (1 + r + t)`` for 0 <= x < 1000 as n, r and t.

    ``r`` is the rounded ``x - n log(2)``, at most 0.35; n times the upper part of log(2) has no rounding error. t holds
    the error of r and the rest of the series; it is small beside r, so that its own rounding errors hardly count.
    """
    n = (x * LOG2_E + NEAREST) - NEAREST
    upper = n.times_plus(-LOG_2_UPPER, x)
    r, r_low = _fast_two_sum(upper, n * -LOG_2_LOWER)
    return n, r, (r * r).fma(r.polynomial(table.EXPM1).times_plus(r, 0.5), r_low)


def _expm1(x: Real) -> tuple[Real, Real]:
    """``exp(x) - 1`` for 0 <= x < 700 as an unevaluated sum, within a quarter of an ulp of its first part."""
    n, r, tail = _exp(x)
    p = _power_of_two(n)
    first, error = _fast_two_sum(p - 1.0, p * r)
    return _fast_two_sum(first, p.times_plus(tail, error))


def tanh(x: Real) -> Real:
    """``e / (e + 2)`` with ``e = exp(2x) - 1``; the quotient of two unevaluated sums, within one ulp."""
    high, low = _expm1((x.magnitude() * 2.0).at_most(44.0))  # 1 to the last bit from 19.1 on
    below, error = _two_sum(high, 2.0)
    quotient = high / below
    # What is left of the numerator.
    rest = (-quotient).fma(below, high) + (-quotient).times_plus(error + low, low)
    return (quotient + rest / below).with_sign(x.sign())


def i0(x: Real) -> Real:
    """As in f32, with longer polynomials.

    Up to 10 a polynomial in ``(x / 2)**2``. The error of the square would count five times; what was rounded off goes
    into the result through the derivative. All terms are positive.

    Beyond, the polynomial, the root, the quotient and the product with exp(x) round, by half an ulp each. exp(x) itself
    would overflow before i0 does: its power of two is put in last, in two steps.
    """
    a = x.magnitude().at_most(720.0)  # infinite from 713.99 on
    half = a * 0.5
    square = half * half
    rest = half.fma(half, -square)
    slope = [k * coefficient for k, coefficient in enumerate(table.I0_SMALL_64)][1:]
    small = rest.times_plus(square.polynomial(slope), square.polynomial(table.I0_SMALL_64))
    far = a.at_least(10.0)
    scale = (1.0 / far).polynomial(table.I0_LARGE_64) / far.sqrt()
    n, r, tail = _exp(far)
    large = scale.times_plus(r + tail, scale) * _power_of_two(n - 32.0) * 2.0**32
    return small.unless(a > 10.0, large)


def _two_product(a: Real, b: Real) -> tuple[Real, Real]:
    """The rounded product and its exact error."""
    product = a * b
    return product, a.fma(b, -product)


NEGATIVE = (-24.0, -2.0)
"""Where `_lgamma_negative` holds; both ends are outside."""


def lgamma(x: Real) -> Real:
    """The library's, except between -24 and -2, where many libraries lose all digits next to the zeros."""
    low, high = NEGATIVE
    code = x.code
    inside = code.and_(code.and_(x > low, x < high), x > x.floor())  # the poles are the library's
    return x.call_library("lgamma").unless(inside, _lgamma_negative(x.at_least(low).at_most(high)))


def _lgamma_negative(x: Real) -> Real:
    """log|Gamma(x)| between -24 and -2, but not at the integers. Two zeros lie between any neighbouring two of them.

    There ``log|Gamma(x)|`` is the small difference of large logarithms, so that it is computed as one logarithm, of
    ``q = |x (x + 1) ... (x + n - 1)| / Gamma(x + n)`` with x + n in [1, 2): ``-log(q)``. All factors are exact; their
    product and the reciprocal of Gamma are unevaluated sums of two doubles, with a relative error near 2**-101. Next to
    a zero q is near 1, and ``q - 1`` keeps what the sum has beyond a double.
    """
    code = x.code
    fraction = x - x.floor()
    t = fraction - 0.5
    product, error = real(code, 1.0), real(code, 0.0)
    for step in range(1 - int(NEGATIVE[0])):
        factor = x + float(step)
        factor = factor.unless(factor.not_below(1.0), 1.0)
        first, rest = _two_product(product, factor)
        product, error = _fast_two_sum(first, error.fma(factor, rest))
    pairs = len(table.RGAMMA_LOW)
    gamma = t.polynomial(table.RGAMMA[pairs:])
    gamma_error = real(code, 0.0)
    for upper, lower in zip(reversed(table.RGAMMA[:pairs]), reversed(table.RGAMMA_LOW), strict=True):
        first, rest = _two_product(gamma, t)
        gamma, carry = _two_sum(first, upper)
        gamma, gamma_error = _fast_two_sum(gamma, carry + gamma_error.fma(t, rest + lower))
    first, rest = _two_product(product, gamma)
    rest = rest + product.times_plus(gamma_error, error * gamma)
    q, q_error = _fast_two_sum(first, rest)
    # The sign of q is that of the product.
    negative = q < 0.0
    q, q_error = q.unless(negative, -q), q_error.unless(negative, -q_error)
    less_one, carry = _two_sum(q, -1.0)
    w, w_error = _fast_two_sum(less_one, carry + q_error)
    logarithm = q.call_library("log") + q_error / q
    near_one = code.and_(q > 0.5, q < 2.0)
    return -logarithm.unless(near_one, w.call_library("log1p") + w_error / q)


KERNELS: dict[str, Callable[[Real], Real]] = {"i0": i0, "lgamma": lgamma, "tanh": tanh}
"""The kernels by name."""
