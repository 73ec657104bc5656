"""Functions of f32, computed in double precision and rounded once.

Every kernel takes the operand as a double and gives a double within about 2**-40 of the exact value, relatively, for
every f32 operand: the result of rounding it is the correctly rounded one except next to midpoints, and one step from
it there. Subnormal results are rounded once as well, since the double is a normal number. The tables are in
`coefficients`; `derive` says what they are.

Special operands need few extra instructions: NaN passes through the arithmetic, and limits on operands keep
intermediate numbers finite where the result has long been decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from halfulp.backends.common import coefficients as table
from halfulp.backends.common.real import ONE, Real, from_bits, real

LOG2_E = 1 / math.log(2)
LOG_2 = math.log(2)
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
NEAREST = 1.5 * 2.0**52
"""Added to a number below 2**51 it leaves the nearest integer in the last bits."""


def _power_of_two(x: Real) -> tuple[Real, Real]:
    """``2**x`` for -1000 < x < 1000 as a power of two ``p`` and a rest ``q``: ``2**x = p + p*q``, |q| < 0.42."""
    code = x.code
    shifted = x + NEAREST
    r = x - (shifted - NEAREST)
    p = from_bits(code, code.add(code.shl(shifted.bits(), 52), ONE))
    return p, r * r.polynomial(table.EXP2)


def _exp2(x: Real) -> Real:
    p, q = _power_of_two(x)
    return p.times_plus(q, p)


def _log(x: Real, near: Real | None = None) -> Real:
    """log(x) of a positive normal number.

    With ``x = 2**k m``, m within a factor sqrt(2) of 1: ``k log(2) + log(m)``, the latter by the series of
    ``2 atanh(s)``, ``s = (m - 1) / (m + 1)``. Near 1 k is 0, ``m - 1`` is exact, and the result has full relative
    accuracy. ``near`` is ``x - 1`` where x itself was rounded: it stands for ``m - 1`` where k is 0.
    """
    code = x.code
    bits = x.bits()
    root = 0x3FE6A09E667F3BCD  # sqrt(1/2)
    field = code.lshr(code.add(bits, ONE - root), 52)  # k + 1023
    # 2**52 + field as a double, without a conversion of 64-bit integers, which vector units often lack.
    k = from_bits(code, code.or_(field, 0x4330000000000000)) - (2.0**52 + 1023)
    m = from_bits(code, code.sub(bits, code.sub(code.shl(field, 52), ONE)))
    f = m - 1.0
    if near is not None:
        f = f.unless(k.equals(0.0), near)
    s = f / (f + 2.0)
    z = s * s
    return k.times_plus(LOG_2, s * z.times_plus(z.polynomial(table.LOG), 2.0))


def exp2(x: Real) -> Real:
    """Results are infinite from 128 and zero below -150; the limits lie beyond both."""
    return _exp2(x.at_most(200.0).at_least(-200.0))


def tanh(x: Real) -> Real:
    """``(e - 1) / (e + 1)`` with ``e = exp(2x)``; e - 1 without cancellation. 1 to the last bit from 10 on."""
    a = x.magnitude().at_most(20.0)
    p, q = _power_of_two(a * (2 * LOG2_E))
    less_one = p.times_plus(q, p - 1.0)
    return (less_one / (less_one + 2.0)).with_sign(x.sign())


def asin(x: Real) -> Real:
    """``s + s**3 P(s**2)`` with s = x below 1/2, and ``pi/2 - 2 asin(sqrt((1 - x) / 2))`` above. NaN beyond 1."""
    a = x.magnitude()
    above = a > 0.5
    z = (a * a).unless(above, (1.0 - a) * 0.5)
    s = a.unless(above, z.sqrt())
    value = (s * z).times_plus(z.polynomial(table.ASIN), s)
    return value.unless(above, value.times_plus(-2.0, math.pi / 2)).with_sign(x.sign())


def log1p(x: Real) -> Real:
    """``log(u)`` with ``u = 1 + x``, where ``u - 1`` is taken to be x itself near zero.

    u is exact for f32 operands from 2**-29 to 2**29, and for others it is right to 2**-53, which is enough: below
    that range only ``x`` counts.
    """
    u = x + 1.0
    value = _log(u, near=x)
    value = value.unless(u.equals(0.0), -math.inf)
    value = value.unless(u < 0.0, math.nan)
    value = value.unless(x.not_below(math.inf), x)  # the bits of NaN and infinity are no number to _log
    return value.unless(x.equals(0.0), x)


def erfc(x: Real) -> Real:
    """``exp(-x**2) G(t)`` for positive x, and 2 minus that of ``-x`` for negative ones. The square is exact."""
    a = x.magnitude().at_most(10.5)  # the result is zero from 10.06 on
    t = (a - 4.0) / (a + 4.0)
    tail = _exp2(a * a * -LOG2_E) * t.polynomial(table.ERFC)
    return tail.unless(x < 0.0, 2.0 - tail)


def i0(x: Real) -> Real:
    """A polynomial up to 8, and ``exp(x) / sqrt(x)`` times one in ``1 / x`` beyond. Infinite from 91.9 on."""
    a = x.magnitude().at_most(93.0)
    half = a * 0.5
    small = (half * half).polynomial(table.I0_SMALL)
    far = a.at_least(8.0)  # so that nothing overflows where it is not used
    large = _exp2(far * LOG2_E) / far.sqrt() * (1.0 / far).polynomial(table.I0_LARGE)
    return small.unless(a > 8.0, large)


def lgamma(x: Real) -> Real:
    """log|Gamma(x)|.

    For positive x: Stirling's formula from 6.5 on. Below, x is brought to ``2 + d``, |d| <= 1/2, by
    ``Gamma(x + 1) = x Gamma(x)``: the logarithm of a product is added or taken off. Next to the zero at 2 there is
    no product, and next to that at 1 both terms are small and accurate. For negative x: the reflection formula
    ``log|Gamma(x)| = -log|x sin(pi x) / pi| - log Gamma(-x)``.
    """
    code = x.code
    y = x.magnitude()
    below, far = y < 1.5, y > 6.5
    # Below 6.5: up from under 1.5, or down from above 2.5.
    product = real(code, 1.0).unless(below, y).unless(y < 0.5, y * (y + 1.0))
    z = y.unless(below, y + 1.0).unless(y < 0.5, y + 2.0)
    for step in (1.0, 2.0, 3.0, 4.0):
        reduced = y - step
        above = y > step + 1.5
        product = product.unless(above, product * reduced)
        z = z.unless(above, reduced)
    log = _log(product.unless(far, y))
    d = z - 2.0
    near_two = d * d.polynomial(table.LGAMMA)
    value = (near_two + log).unless(below, near_two - log)
    w = 1.0 / y
    stirling = (y - 0.5).times_plus(log - 1.0, w.times_plus((w * w).polynomial(table.STIRLING), HALF_LOG_2PI - 0.5))
    value = value.unless(far, stirling)
    # Negative operands.
    near = y.at_most(2.0**24)
    r = (near - ((near + NEAREST) - NEAREST)).magnitude()
    sine = r * (r * r).polynomial(table.SINPI)
    reflected = -(_log(near * sine) + value)
    negative = x.compare_bits("slt", 0)
    value = value.unless(negative, reflected)
    # Poles: zero and the negative integers, which all numbers below -2**23 are. The infinities belong to them.
    pole = code.and_(negative, code.or_(r.equals(0.0), y > 2.0**23))
    pole = code.or_(pole, y.equals(0.0))
    return value.unless(pole, math.inf)


KERNELS: dict[str, Callable[[Real], Real]] = {
    "lgamma": lgamma,
    "asin": asin,
    "log1p": log1p,
    "erfc": erfc,
    "i0": i0,
    "exp2": exp2,
    "tanh": tanh,
}
"""The kernels by name."""
