"""Where `coefficients` comes from: ``python -m halfulp.backends.common.derive`` prints that module.

Each polynomial interpolates its function at the Chebyshev nodes of an interval, in 300-bit arithmetic (mpmath), and
its coefficients are rounded to double. That is within a small factor of the best polynomial of the degree. Functions
are divided by what they vanish like, so that relative errors stay small next to a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mpmath import MPContext

mp = MPContext()
mp.prec = 300

Real = Any
"""An mpmath number."""


@dataclass(frozen=True)
class Fit:
    """A polynomial to be found.

    Attributes:
        name: of the table.
        says: what it stands for, as a formula.
        function: of one mpmath number.
        low, high: the interval.
        degree: of the polynomial.
        bits: the relative error of the polynomial with rounded coefficients is below 2**-bits.
        pairs: so many coefficients, from the constant on, are sums of two doubles. What the first leaves is in a
            table of its own, whose name ends in ``_LOW``.
    """

    name: str
    says: str
    function: Callable[[Real], Real]
    low: Real
    high: Real
    degree: int
    bits: int
    pairs: int = 0


def interpolate(function: Callable[[Real], Real], low: Real, high: Real, degree: int) -> list[Real]:
    """Coefficients, constant first, of the polynomial through the Chebyshev nodes of ``[low, high]`` (Newton)."""
    count = degree + 1
    half, middle = (high - low) / 2, (high + low) / 2
    nodes = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    divided = [function(node) for node in nodes]
    for order in range(1, count):
        for k in range(degree, order - 1, -1):
            divided[k] = (divided[k] - divided[k - 1]) / (nodes[k] - nodes[k - order])
    result = [divided[degree]]
    for k in range(degree - 1, -1, -1):  # result * (x - nodes[k]) + divided[k]
        shifted = [mp.zero, *result]
        for i, coefficient in enumerate(result):
            shifted[i] -= nodes[k] * coefficient
        shifted[0] += divided[k]
        result = shifted
    return result


def error_bits(fit: Fit, coefficients: Sequence[float], low: Sequence[float] = (), points: int = 200) -> float:
    """-log2 of the greatest relative error seen at so many points."""
    worst = mp.zero
    for k in range(points + 1):
        x = fit.low + (fit.high - fit.low) * k / points
        value = fit.function(x)
        found = mp.zero
        for k in range(len(coefficients) - 1, -1, -1):
            found = found * x + coefficients[k] + (low[k] if k < len(low) else 0)
        worst = max(worst, abs(found / value - 1))
    return float(-mp.log(worst, 2))


def coefficients(fit: Fit) -> tuple[list[float], list[float]]:
    """The table of a fit, and that of what is left of the first `Fit.pairs` coefficients."""
    exact = interpolate(fit.function, fit.low, fit.high, fit.degree)
    return [float(c) for c in exact], [float(c - float(c)) for c in exact[: fit.pairs]]


def _near_zero(function: Callable[[Real], Real], limit: Callable[[], Real]) -> Callable[[Real], Real]:
    """A function whose formula is 0/0 at zero: the limit stands for what is too near for the cancellation."""
    return lambda x: function(x) if abs(x) > mp.ldexp(1, -60) else limit()


def _expm1_tail(r: Real) -> Real:
    return (mp.expm1(r) - r - r * r / 2) / r**3 if abs(r) > mp.ldexp(1, -60) else mp.one / 6


def _log_tail(z: Real) -> Real:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def _asin_tail(z: Real) -> Real:
    s = mp.sqrt(z)
    return (mp.asin(s) - s) / (s * z)


def _stirling_tail(v: Real) -> Real:
    y = 1 / mp.sqrt(v)
    return (mp.loggamma(y) - (y - mp.mpf(1) / 2) * mp.log(y) + y - mp.log(2 * mp.pi) / 2) * y


def _erfcx(t: Real) -> Real:
    x = 4 * (1 + t) / (1 - t)
    return mp.exp(x * x) * mp.erfc(x)


def _i0(q: Real) -> Real:
    return mp.besseli(0, 2 * mp.sqrt(q))


def _i0_scaled(w: Real) -> Real:
    if not w:
        return 1 / mp.sqrt(2 * mp.pi)
    return mp.exp(-1 / w) * mp.besseli(0, 1 / w) / mp.sqrt(w)


def _fits() -> tuple[Fit, ...]:
    half, zero = mp.mpf(1) / 2, mp.zero
    log_end = mp.mpf("0.02944")  # just above ((sqrt 2 - 1) / (sqrt 2 + 1))**2
    return (
        Fit("EXP2", "(2**r - 1) / r", _near_zero(lambda r: (2**r - 1) / r, lambda: mp.ln2), -half, half, 8, 43),
        Fit("EXPM1", "(exp(r) - 1 - r - r**2 / 2) / r**3", _expm1_tail, -mp.ln2 / 2, mp.ln2 / 2, 10, 50),
        Fit(
            "LOG", "(log(m) / s - 2) / z, z = s**2", _near_zero(_log_tail, lambda: mp.mpf(2) / 3), zero, log_end, 6, 50
        ),
        Fit(
            "ASIN",
            "(asin(s) - s) / s**3 in z = s**2",
            _near_zero(_asin_tail, lambda: mp.one / 6),
            zero,
            half / 2,
            10,
            45,
        ),
        Fit(
            "SINPI",
            "sin(pi r) / (pi r) in r**2",
            _near_zero(lambda q: mp.sin(mp.pi * mp.sqrt(q)) / (mp.pi * mp.sqrt(q)), lambda: mp.one),
            zero,
            half / 2,
            8,
            52,
        ),
        Fit(
            "ERFC",
            "exp(x**2) erfc(x) in t = (x - 4) / (x + 4), x up to 10.5",
            _erfcx,
            -mp.one,
            mp.mpf("6.5") / 14.5,
            16,
            43,
        ),
        Fit("I0_SMALL", "I0(x) in (x / 2)**2, x up to 8", _i0, zero, mp.mpf(16), 13, 42),
        Fit("I0_SMALL_64", "I0(x) in (x / 2)**2, x up to 10", _i0, zero, mp.mpf(25), 20, 53),
        Fit("I0_LARGE_64", "sqrt(x) exp(-x) I0(x) in 1 / x, x from 10", _i0_scaled, zero, mp.one / 10, 20, 53),
        Fit("I0_LARGE", "sqrt(x) exp(-x) I0(x) in 1 / x, x from 8 to 93", _i0_scaled, mp.one / 93, mp.one / 8, 12, 41),
        Fit(
            "LGAMMA",
            "lgamma(2 + d) / d",
            _near_zero(lambda d: mp.loggamma(2 + d) / d, lambda: mp.psi(0, 2)),
            -half,
            half,
            17,
            52,
        ),
        Fit(
            "RGAMMA",
            "1 / Gamma(3/2 + t)",
            lambda t: mp.rgamma(mp.mpf(3) / 2 + t),
            -half,
            half,
            26,
            103,
            pairs=18,
        ),
        Fit(
            "STIRLING",
            "(lgamma(y) - (y - 1/2) log(y) + y - log(2 pi) / 2) y in 1 / y**2, y from 6.5",
            _near_zero(_stirling_tail, lambda: mp.one / 12),
            zero,
            1 / mp.mpf("6.5") ** 2,
            6,
            49,
        ),
    )


FITS = _fits()


def _print_table(name: str, table: Sequence[float], says: str) -> None:
    print(f'\n{name} = _table("""')
    for value in table:
        print(f"    {value.hex()}")
    print('""")')
    print(f'"""{says}"""')


def main() -> None:
    """Print the module of coefficients."""
    print('"""Coefficients of polynomials, constant first. Written by `derive`; do not edit."""\n')
    print("from __future__ import annotations\n")
    print("\ndef _table(text: str) -> tuple[float, ...]:")
    print("    return tuple(float.fromhex(word) for word in text.split())\n")
    for fit in FITS:
        table, low = coefficients(fit)
        found = error_bits(fit, table, low)
        assert found >= fit.bits, (fit.name, found)
        _print_table(fit.name, table, f"{fit.says}: within a factor of 1 + 2**-{fit.bits}.")
        if low:
            _print_table(f"{fit.name}_LOW", low, f"What {fit.name} leaves of its first {fit.pairs} coefficients.")


if __name__ == "__main__":
    main()
