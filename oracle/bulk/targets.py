"""What the bulk path knows of each function: Taylor coefficients, bounds of derivatives, and where what holds.

Three things are asked of a function: rigorous balls for its Taylor coefficients at a point (`Target.taylor`), a
rigorous bound of a Taylor coefficient anywhere between two points (`Target.tail`, which bounds the remainder by
Lagrange's form), and a list of regions of f32 codes (`Target.regions`). The bound of the remainder comes from a
property of the function that is stated next to it, not from evaluating on a wide ball, which overestimates high
derivatives badly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from flint import arb, arb_series

Coefficients = list[arb]

INFINITY = 0x7F80_0000
SIGN = 0x8000_0000
NAN = 0x7FC0_0000
ONE = 0x3F80_0000
TWO = 0x4000_0000


class Region(NamedTuple):
    """Consecutive f32 codes, in the order of codes, treated alike.

    ``"polynomial"``: to be split into runs. ``"reflection"``: likewise, with runs that may contain poles.
    ``"overflow"``: positive values of 2**128 and more, increasing along the codes.
    ``"flat"``: monotone, and correctly rounded to the one result ``code`` everywhere; judged like a value.
    ``"exact"``: exactly the result ``code``, without tolerance (``reading:1``).
    """

    first: int
    last: int
    kind: Literal["polynomial", "reflection", "overflow", "flat", "exact"]
    code: int = 0


@dataclass(frozen=True)
class Target:
    """One function.

    Attributes:
        name: as in `oracle.functions`.
        value: ``value(x)``: a ball for the function at a point.
        taylor: ``taylor(c, h, n)``: balls for the first n coefficients of f(c + h*t) in t.
        tail: ``tail(low, high, n)``: an upper bound of ``|f^(n)(x)| / n!`` for all x from ``low`` to ``high``, n >= 2.
        regions: all codes if ``parity`` is None, else those with a clear sign bit.
        degree: of the polynomials.
        parity: ``"odd"`` or ``"even"``: negative arguments mirror the positive ones, row by row.
        zeros: the codes where the function is exactly zero. Runs beside them are expanded about them.
        regular_at_zero: the function is analytic at 0, and one run may reach down to it through all binades.
    """

    name: str
    value: Callable[[arb], arb]
    taylor: Callable[[arb, arb, int], Coefficients]
    tail: Callable[[arb, arb, int], arb]
    regions: tuple[Region, ...]
    degree: int = 7
    parity: Literal["odd", "even"] | None = None
    zeros: frozenset[int] = frozenset()
    regular_at_zero: bool = True


def _coefficients(series: arb_series, n: int) -> Coefficients:
    """The first n coefficients; trailing zeros, which a series drops, are put back.

    Raises:
        ArithmeticError: the series is known to fewer terms. They depend on Arb's ``ctx.cap``, see `working_precision`.
    """
    if series.prec < n:
        raise ArithmeticError(f"only {series.prec} of {n} Taylor coefficients are known")
    found = [series[i] for i in range(min(n, len(series)))]
    return found + [arb(0)] * (n - len(found))


def _line(c: arb, h: arb, n: int) -> arb_series:
    """The series c + h*t, to n terms."""
    return arb_series([c, h], n)


def _elementary(function: Callable[[arb_series], arb_series]) -> Callable[[arb, arb, int], Coefficients]:
    return lambda c, h, n: _coefficients(function(_line(c, h, n)), n)


# log1p. The n-th coefficient is (-1)**(n-1) / (n * (1 + x)**n): largest in magnitude at the lower end.

_NANS = (Region(INFINITY + 1, SIGN - 1, "exact", NAN), Region(SIGN + INFINITY + 1, 0xFFFF_FFFF, "exact", NAN))
_POSITIVE_NANS = _NANS[:1]

LOG1P = Target(
    "log1p",
    value=lambda x: x.log1p(),
    taylor=lambda c, h, n: _coefficients((1 + _line(c, h, n)).log(), n),
    tail=lambda low, high, n: 1 / (n * (1 + low) ** n),
    regions=(
        Region(0, 0, "exact", 0),
        Region(1, INFINITY - 1, "polynomial"),
        Region(INFINITY, INFINITY, "exact", INFINITY),
        _NANS[0],
        Region(SIGN, SIGN, "exact", SIGN),
        Region(SIGN + 1, SIGN + ONE - 1, "polynomial"),
        Region(SIGN + ONE, SIGN + ONE, "exact", SIGN + INFINITY),
        Region(SIGN + ONE + 1, SIGN + INFINITY, "exact", NAN),
        _NANS[1],
    ),
    zeros=frozenset({0, SIGN}),
)


# exp2. The n-th coefficient is log(2)**n / n! * 2**x: largest at the upper end.


def _exp2(x: arb) -> arb:
    return (x * arb.const_log2()).exp()


EXP2 = Target(
    "exp2",
    value=_exp2,
    taylor=_elementary(lambda x: (x * arb.const_log2()).exp()),
    tail=lambda low, high, n: arb.const_log2() ** n / arb(n).fac() * _exp2(high),
    regions=(
        Region(0, 0x42FF_FFFF, "polynomial"),
        Region(0x4300_0000, INFINITY - 1, "overflow"),
        Region(INFINITY, INFINITY, "exact", INFINITY),
        _NANS[0],
        Region(SIGN, SIGN + 0x433F_FFFF, "polynomial"),  # above -192
        Region(SIGN + 0x4340_0000, SIGN + INFINITY - 1, "flat", 0),
        Region(SIGN + INFINITY, SIGN + INFINITY, "exact", 0),
        _NANS[1],
    ),
)


# tanh. In the strip |Im z| <= pi/4 its modulus is at most 1, since |tanh(x + iy)|**2 =
# (sinh(x)**2 + sin(y)**2) / (sinh(x)**2 + cos(y)**2); Cauchy's estimate on circles of that radius bounds the
# coefficients by (4/pi)**n.


def _tanh_taylor(c: arb, h: arb, n: int) -> Coefficients:
    return _coefficients(1 - 2 / ((2 * _line(c, h, n)).exp() + 1), n)


TANH = Target(
    "tanh",
    value=lambda x: x.tanh(),
    taylor=_tanh_taylor,
    tail=lambda low, high, n: (4 / arb.pi()) ** n,
    regions=(
        Region(0, 0, "exact", 0),
        Region(1, 0x41FF_FFFF, "polynomial"),  # below 32
        Region(0x4200_0000, INFINITY - 1, "flat", ONE),
        Region(INFINITY, INFINITY, "exact", ONE),
        *_POSITIVE_NANS,
    ),
    parity="odd",
    zeros=frozenset({0}),
)


# erfc. Its derivative is g(z) = -2/sqrt(pi) * exp(-z*z). On the circle of radius R about x, z = a + ib has
# a >= x - R and b <= R, so |g| <= 2/sqrt(pi) * exp(R*R - m*m) with m the least |a|; Cauchy's estimate bounds the
# coefficient n-1 of g by that over R**(n-1), and f's coefficient n is g's coefficient n-1 over n. Any R will do.


def _erfc_tail(low: arb, high: arb, n: int) -> arb:
    best = None
    for eighths in (2, 3, 4, 6, 8, 12, 16):
        radius = arb(eighths) / 8
        least = max(arb(0), low - radius, -high - radius)
        bound = 2 / arb.pi().sqrt() * (radius**2 - least**2).exp() / (radius ** (n - 1) * n)
        best = bound if best is None or bound < best else best
    assert best is not None
    return best


ERFC = Target(
    "erfc",
    value=lambda x: x.erfc(),
    taylor=_elementary(lambda x: x.erfc()),
    tail=_erfc_tail,
    regions=(
        Region(0, 0x412F_FFFF, "polynomial"),  # below 11: erfc is 2**-178 there
        Region(0x4130_0000, INFINITY - 1, "flat", 0),
        Region(INFINITY, INFINITY, "exact", 0),
        _NANS[0],
        Region(SIGN, SIGN + 0x40FF_FFFF, "polynomial"),  # above -8
        Region(SIGN + 0x4100_0000, SIGN + INFINITY - 1, "flat", TWO),
        Region(SIGN + INFINITY, SIGN + INFINITY, "exact", TWO),
        _NANS[1],
    ),
)


# asin. Its coefficients at 0 are not negative, so on [0, 1) every derivative is not negative and increases: the
# coefficient at the upper end is the bound.


def _asin_tail(low: arb, high: arb, n: int) -> arb:
    return _coefficients(_line(high, arb(1), n + 1).asin(), n + 1)[n]


ASIN = Target(
    "asin",
    value=lambda x: x.asin(),
    taylor=_elementary(lambda x: x.asin()),
    tail=_asin_tail,
    regions=(
        Region(0, 0, "exact", 0),
        Region(1, ONE, "polynomial"),
        Region(ONE + 1, INFINITY, "exact", NAN),
        *_POSITIVE_NANS,
    ),
    parity="odd",
    zeros=frozenset({0}),
)


# i0. I0(x) is the mean of exp(x*cos(a)) over all angles a, so its n-th derivative, the mean of
# cos(a)**n * exp(x*cos(a)), is at most I0(|x|) in magnitude.


def _i0_taylor(c: arb, h: arb, n: int) -> Coefficients:
    """At 0 by the power series; elsewhere by the recurrence that follows from x*y'' + y' = x*y."""
    if c == 0:
        return [arb(0) if k % 2 else (h / 2) ** k / arb(k // 2).fac() ** 2 for k in range(n)]
    a = [c.bessel_i(0), c.bessel_i(1)]
    for k in range(n - 2):
        before = a[k - 1] if k else arb(0)
        a.append((c * a[k] + before - (k + 1) ** 2 * a[k + 1]) / (c * ((k + 2) * (k + 1))))
    return [a[k] * h**k for k in range(n)]


I0 = Target(
    "i0",
    value=lambda x: x.bessel_i(0),
    taylor=_i0_taylor,
    tail=lambda low, high, n: high.bessel_i(0) / arb(n).fac(),
    regions=(
        Region(0, 0x42B7_CD31, "polynomial"),
        Region(0x42B7_CD32, INFINITY - 1, "overflow"),
        Region(INFINITY, INFINITY, "exact", INFINITY),
        *_POSITIVE_NANS,
    ),
    parity="even",
)


# lgamma. For n >= 2 the n-th derivative is, up to sign, (n-1)! times the sum of 1/(x+k)**n over all k >= 0, whose
# terms are the distances to the poles. For x > 0 the sum is at most 1/x**n + 1/((n-1)*x**(n-1)) (first term, and the
# integral over the rest), which decreases in x. For x < 0 with the nearest pole at the distance d the poles on either
# side are at d, d+1, ... at the nearest: at most twice the same with d for x.


def distance_to_integer(x: arb) -> arb:
    """From an exact x."""
    return abs(x - (x + arb(0.5)).floor())


def _lgamma_tail(low: arb, high: arb, n: int) -> arb:
    """Infinite where ``low`` to ``high`` contains a pole."""
    if low > 0:
        nearest, sides = low, 1
    elif high.floor() > low.floor() or high >= 0 or low == low.floor():
        return arb.pos_inf()
    else:
        nearest, sides = min(distance_to_integer(low), distance_to_integer(high)), 2
    return sides * (1 / nearest**n + 1 / ((n - 1) * nearest ** (n - 1))) / n


def lgamma_positive(c: arb, h: arb, n: int) -> Coefficients:
    return _coefficients(_line(c, h, n).lgamma(), n)


def _lgamma_taylor(c: arb, h: arb, n: int) -> Coefficients:
    """For negative arguments log|Gamma(x)| = log(pi) - log|sin(pi*x)| - lgamma(1 - x)."""
    if c > 0:
        return lgamma_positive(c, h, n)
    sine = _line(c, h, n).sin_pi()
    log_sine = (sine if sine[0] > 0 else -sine).log()
    return _coefficients(arb.pi().log() - log_sine - (1 - _line(c, h, n)).lgamma(), n)


def _lgamma_value(x: arb) -> arb:
    return x.lgamma() if x > 0 else abs(x.gamma()).log()


LGAMMA = Target(
    "lgamma",
    value=_lgamma_value,
    taylor=_lgamma_taylor,
    tail=_lgamma_tail,
    regions=(
        Region(0, 0, "exact", INFINITY),
        Region(1, ONE - 1, "polynomial"),
        Region(ONE, ONE, "exact", 0),
        Region(ONE + 1, TWO - 1, "polynomial"),
        Region(TWO, TWO, "exact", 0),
        Region(TWO + 1, 0x7C44_AF8D, "polynomial"),
        Region(0x7C44_AF8E, INFINITY - 1, "overflow"),
        Region(INFINITY, INFINITY, "exact", INFINITY),
        _NANS[0],
        Region(SIGN, SIGN, "exact", INFINITY),
        Region(SIGN + 1, SIGN + 0x3EFF_FFFF, "polynomial"),  # above -1/2
        Region(SIGN + 0x3F00_0000, SIGN + 0x4AFF_FFFF, "reflection"),
        Region(SIGN + 0x4B00_0000, SIGN + INFINITY, "exact", INFINITY),  # from -2**23 on all floats are integers
        _NANS[1],
    ),
    zeros=frozenset({ONE, TWO}),
    regular_at_zero=False,
)


TARGETS: dict[str, Target] = {t.name: t for t in (LGAMMA, ASIN, LOG1P, ERFC, I0, EXP2, TANH)}
"""Every function of the bulk path by name."""


# The part of lgamma's reflection that depends on the distance to the nearest integer alone:
# W(w) = log(pi / sin(pi*w)) for 0 < w <= 1/2, and a little beyond, since rows do not end at 1/2.


def _reflected_taylor(c: arb, h: arb, n: int) -> Coefficients:
    return _coefficients(arb.pi().log() - _line(c, h, n).sin_pi().log(), n)


def _reflected_tail(low: arb, high: arb, n: int) -> arb:
    """-log(sin(pi*w)) is, up to a constant, the sum of -log|w+k| over all integers k: two sides of poles."""
    nearest = min(low, 1 - high)
    return 2 * (1 / nearest**n + 1 / ((n - 1) * nearest ** (n - 1))) / n


REFLECTED = Target(
    "log(pi/sin(pi*w))",
    value=lambda w: (arb.pi() / w.sin_pi()).log(),
    taylor=_reflected_taylor,
    tail=_reflected_tail,
    regions=(),
)
