"""The proof: how far a polynomial, evaluated in float64, can be from the function on a whole run.

A run is a set of consecutive f32 codes with a centre c and a power of two s such that ``t = (x - c) * s`` has
``|t| <= 1``. Both steps are exact in float64, since x and c are multiples of a common power of two and fewer than
2**53 of it apart. The polynomial is evaluated as ``y = t*q + c_0``, and q from c_1, ..., c_d in Estrin's order:
neighbours are joined as ``c_i + t*c_(i+1)``, the results as ``r_i + t**2 * r_(i+1)``, and so on with t**4. Each step
has one rounding (fused) or two; the bounds hold for both, since they count two. With u = 2**-53, Taylor coefficients
a_i of f(c + t/s) in balls, and f = a_0 + t*Q(t):

* ``e0 = |a_0 - c_0|``
* ``e1 >= |Q(t) - q|``, the sum of three bounds:
  the *difference* of the polynomials sum a_{i+1} t^i (N terms) and sum c_{i+1} t^i, as the sum of the magnitudes of its
  Chebyshev coefficients, which holds for every |t| <= 1 and any choice of the c_i;
  the *remainder* M of the Taylor series after N+1 terms (Lagrange), ``|f^(N+1)| / (N+1)! * s^-(N+1)``;
  the *rounding* errors of q and of the product t*q, by a running bound with |t| <= 1 (`_rounding`), where every
  operation that underflows adds at most 2**-1074, together far less than `UNDERFLOW` times |t|.
* Then ``|y - f| <= e0 + |t|*e1 + u*|y|``: the last rounding is that of the final sum, relative to its result.

`relative_error` divides by the least value of |f| that the coefficients allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any, NamedTuple

from flint import arb, arb_mat, ctx

EXTRA_TERMS = 5
"""Taylor coefficients beyond the degree that are taken into account before the remainder is bounded."""

PRECISION = 256
"""Bits of the ball arithmetic. Everything is relative to 2**-53, so half of them may be lost on the way."""

UNDERFLOW = arb((1, -900))
"""16 * 2**-1074 is at most this times 2**-149, the least |t| that is not zero."""

LARGEST_ERROR = 2.0**-46
"""Runs are split until the relative error is at most this: half the width of an enclosure of 2**-21 ulp."""

LARGEST_WIDTH = 2.0**-40
"""The claim: an enclosure's total width relative to its value, at most 2**-16 ulp of any f32 result."""


class working_precision:
    """A context in which Arb works with `PRECISION` bits and series have as many terms as are needed."""

    def __enter__(self) -> None:
        self._before = ctx.prec, ctx.cap
        ctx.prec, ctx.cap = PRECISION, 32

    def __exit__(self, *_: object) -> None:
        ctx.prec, ctx.cap = self._before


def exact(value: float) -> arb:
    """A float64 as an exact ball."""
    return arb(value)


def _u() -> arb:
    return arb((1, -53))


@cache
def _to_chebyshev(n: int) -> Any:
    """The n x n matrix that takes coefficients of 1, t, ..., t**(n-1) to those of T_0, ..., T_(n-1)."""
    entries = [[Fraction(0)] * n for _ in range(n)]
    for power in range(n):
        for k in range(power, -1, -2):
            share = Fraction(comb(power, (power - k) // 2), 1 << power)
            entries[k][power] = share if k == 0 else 2 * share
    return arb_mat(n, n, [arb(e.numerator) / e.denominator for row in entries for e in row])


@cache
def _economiser(n: int, keep: int) -> Any:
    """Drops all but the first ``keep`` Chebyshev coefficients of a polynomial of n terms; ``keep x n``."""
    chebyshev: list[list[int]] = [[1], [0, 1]]
    while len(chebyshev) < keep:
        a, b = chebyshev[-2:]
        doubled = [0, *(2 * x for x in b)]
        chebyshev.append([d - (a[i] if i < len(a) else 0) for i, d in enumerate(doubled)])
    back = arb_mat(keep, keep, [arb(chebyshev[k][i] if i <= k else 0) for i in range(keep) for k in range(keep)])
    full = _to_chebyshev(n)
    return back * arb_mat(keep, n, [full[k, j] for k in range(keep) for j in range(n)])


def economised(taylor: Sequence[arb], degree: int) -> list[float]:
    """Good float64 coefficients of that degree. Nothing is proven here."""
    n = len(taylor) - 1
    q = _economiser(n, degree) * arb_mat(n, 1, list(taylor[1:]))
    return [float(taylor[0].mid()), *(float(q[i, 0].mid()) for i in range(degree))]


def _rounding(coefficients: Sequence[arb]) -> tuple[arb, arb]:
    """Bounds of the error and of the magnitude of the computed q, apart from underflow.

    A join ``low + p*high`` uses a power p of t computed with an error of at most ``off`` (0 for t; a square doubles it
    and adds u, since no magnitude exceeds 1). Of the parts' computed magnitudes and errors: the errors add up, p adds
    ``off`` times the magnitude of ``high``, the product and the sum add u times theirs.
    """
    u = _u()
    parts = [(abs(c), arb(0)) for c in coefficients]  # magnitude of the computed value, error
    off = arb(0)
    while len(parts) > 1:
        joined = []
        for low, high in zip(parts[::2], parts[1::2], strict=False):
            product = high[0] * (1 + u)
            total = (low[0] + product) * (1 + u)
            joined.append((total, low[1] + high[1] + off * (high[0] + high[1]) + u * (high[0] + total)))
        if len(parts) % 2:
            joined.append(parts[-1])
        parts, off = joined, 2 * off + u
    size, error = parts[0]
    return error, size


class Errors(NamedTuple):
    """See the head of the module. ``slope`` is a lower bound of |Q|, ``spread`` an upper bound of |Q|."""

    e0: arb
    e1: arb
    slope: arb
    spread: arb


def errors(taylor: Sequence[arb], remainder: arb, coefficients: Sequence[float]) -> Errors:
    """The bounds for given coefficients.

    Args:
        taylor: balls for a_0, ..., a_N.
        remainder: an upper bound of M.
        coefficients: c_0, ..., c_d with d <= N.
    """
    c = [exact(value) for value in coefficients]
    n = len(taylor) - 1
    difference = [taylor[i] - c[i] if i < len(c) else taylor[i] for i in range(1, n + 1)]
    in_chebyshev = _to_chebyshev(n) * arb_mat(n, 1, difference)
    e1: arb = remainder + sum((abs(in_chebyshev[k, 0]) for k in range(n)), arb(0))
    rounding, size = _rounding(c[1:])
    e1 += rounding + _u() * size + UNDERFLOW
    rest = remainder + sum((abs(a) for a in taylor[2:]), arb(0))
    return Errors(abs(taylor[0] - c[0]), e1, abs(taylor[1]) - rest, abs(taylor[1]) + rest)


def relative_error(found: Errors, a0: arb, least_t: arb | None = None) -> arb | None:
    """A bound of ``|y - f| / |y|`` on the run; None where the bounds do not exclude that f is zero.

    Args:
        least_t: the function has a zero near the centre, and this is the least non-zero |t| of the run. With ``a0``
            exactly zero (t = 0 is then no member of the run, or its result is exact) it is not used.
    """
    u = _u()
    if least_t is None:
        worst, least = found.e0 + found.e1, abs(a0) - found.spread
    elif a0 == 0:
        if found.e0 != 0:
            return None
        worst, least = found.e1, found.slope
    else:
        # Divided by |t|, for t not 0. At t = 0, y is c_0 exactly, and the bound is e0 over |c_0|.
        worst, least = found.e0 / least_t + found.e1, found.slope - abs(a0) / least_t
        if not found.e0 < abs(a0) * arb((1, -50)):
            return None
    least = least - worst
    if not least > 0:
        return None
    return worst * (1 + u) / least + (u if least_t is None or a0 == 0 else arb((1, -49)))


def representable(coefficients: Sequence[float]) -> bool:
    """Whether no operation of the evaluation can overflow, and underflow is as harmless as `UNDERFLOW` says.

    At most 16 operations, none of which enlarges an error since ``|t| <= 1``; t is zero or at least 2**-149.
    """
    return len(coefficients) <= 9 and all(abs(c) <= 2.0**400 for c in coefficients)


def upper_float(value: arb) -> float:
    """A float64 not below any number in the ball."""
    return float(value.abs_upper()) * (1 + 2.0**-50)


def multipliers(error: float) -> tuple[float, float]:
    """Float64 factors (low, high) that enclose: f lies between ``fl(y*low)`` and ``fl(y*high)``. See `encloses`."""
    return 1.0 - (error + 2.0**-53 + 2.0**-55), 1.0 + (error + 2.0**-52 + 2.0**-55)


def encloses(low: float, high: float, error: arb) -> bool:
    """Whether ``fl(y*low)`` and ``fl(y*high)`` lie on either side of every f with ``|y - f| <= error*|y|``.

    A product is rounded by at most u times its exact magnitude.
    """
    u = _u()
    return bool(exact(low) > 0 and exact(low) * (1 + u) <= 1 - error and exact(high) * (1 - u) >= 1 + error)
