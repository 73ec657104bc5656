"""Approximate f64 values, good enough to tell which of many inputs look worst. Nothing here is proven.

f64 inputs cannot be enumerated. A device computes a result and a reference for a thousand million of them, and keeps
those with the largest errors; these are judged by ball arithmetic. The reference is a table of Taylor polynomials, like
the bulk path's, with leading coefficients in double-double, accurate to about 2**-70 of the value. A reference that is
wrong loses a bad input, or costs a good one its time; it decides nothing.

A row covers consecutive codes of one sign and binade. Beside zeros and poles rows become short, down to `SHORTEST`;
what would need shorter ones, and binades where a function is trivial, are not covered: an ordinary sample has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from halfulp.oracle.bulk.bounds import working_precision
from halfulp.oracle.bulk.targets import TARGETS, Target

DEGREE = 12
DOUBLE = 6
"""So many leading coefficients are double-double."""

COLUMNS = 2 + DEGREE + 1 + DOUBLE
"""Of a row: centre, scale, high parts of all coefficients from the constant one on, low parts of the leading ones."""

ACCURACY = 2.0**-72
"""Of the truncated series, relative to the value."""

LEAST, GREATEST = -900, 1020
"""Exponents of the values that are covered."""

SHORTEST = 28
"""Rows hold at least 2**28 codes."""

FRACTION = 52
BIAS = 1023

EXPONENTS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "log1p": ((0, -54, 1023), (1, -54, -1)),
    "exp2": ((0, -54, 9), (1, -54, 9)),
    "tanh": ((0, -28, 4),),
    "erfc": ((0, -54, 4), (1, -54, 2)),
    "asin": ((0, -27, -1),),
    "i0": ((0, -10, 9),),
    "lgamma": ((0, -54, 1013), (1, -54, 3)),
}
"""For each function: sign, first and last exponent of what is covered; both signs where it has a parity. Below, it is
its first Taylor term or two."""

EVERY, BUSY = 8, (-20, 12)
"""Beyond these exponents a function looks the same in each binade, and every eighth is enough."""


@dataclass(frozen=True)
class Rows:
    """All rows of a function.

    Attributes:
        name: the function.
        firsts, lasts: (n,) uint64, the codes that each covers.
        binades: (n,) int64: sign and exponent, as the upper 12 bits of the codes.
        table: (n, COLUMNS) float64.
    """

    name: str
    firsts: np.ndarray[Any, np.dtype[np.uint64]]
    lasts: np.ndarray[Any, np.dtype[np.uint64]]
    binades: np.ndarray[Any, np.dtype[np.int64]]
    table: np.ndarray[Any, np.dtype[np.float64]]


def _value(code: int) -> float:
    return float(np.uint64(code).view(np.float64))


def binades(name: str) -> Iterator[int]:
    """The upper 12 bits of the codes that are covered."""
    for sign, low, high in EXPONENTS[name]:
        for exponent in range(low, high + 1):
            if BUSY[0] <= exponent <= BUSY[1] or exponent % EVERY == 0 or exponent in (low, high):
                yield sign << 11 | exponent + BIAS


Row = tuple[int, int, list[float]]
"""First and last code, and the numbers."""


def of_binade(name: str, binade: int) -> list[Row]:
    """The rows of a binade."""
    found: list[Row] = []
    with working_precision():
        _split(TARGETS[name], binade << FRACTION, (binade + 1 << FRACTION) - 1, found)
    return found


def build(name: str, run: Callable[..., Iterable[list[Row]]] = map) -> Rows:
    """The rows of a function.

    Args:
        run: like `map`; that of an executor with processes makes it faster.
    """
    target = TARGETS[name]
    which = list(binades(name))
    found = [row for rows in run(of_binade, [name] * len(which), which) for row in rows]
    firsts = np.array([row[0] for row in found], np.uint64)
    lasts = np.array([row[1] for row in found], np.uint64)
    table = np.array([row[2] for row in found], np.float64)
    if target.parity:
        sign = np.uint64(1 << 63)
        firsts, lasts = np.append(firsts, firsts | sign), np.append(lasts, lasts | sign)
        table = np.concatenate([table, _mirrored(table, target.parity)])
    return Rows(name, firsts, lasts, (firsts >> np.uint64(FRACTION)).astype(np.int64), table)


def _mirrored(table: np.ndarray[Any, np.dtype[np.float64]], parity: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The rows of the negated arguments of an odd or even function."""
    powers = np.concatenate([np.arange(DEGREE + 1), np.arange(DOUBLE)])
    signs = np.where(powers % 2 == (1 if parity == "odd" else 0), 1.0, -1.0)
    return np.concatenate([-table[:, :1], table[:, 1:2], table[:, 2:] * signs], axis=1)


def _split(target: Target, first: int, last: int, found: list[Row]) -> None:
    row = _row(target, first, last)
    if row is not None:
        if _in_range(row):
            found.append((first, last, row))
    elif last - first + 1 > 1 << SHORTEST:
        middle = (first + last + 1) // 2
        _split(target, first, middle - 1, found)
        _split(target, middle, last, found)


def _row(target: Target, first: int, last: int) -> list[float] | None:
    """None where the series is not accurate enough."""
    centre = _value((first + last + 1) // 2)
    ends = sorted((_value(first), _value(last)))
    reach = max(abs(end - centre) for end in ends)
    half = float(np.ldexp(1.0, int(np.ceil(np.log2(reach)))))
    c, h = arb(centre), arb(half)
    tail = target.tail(arb(ends[0]), arb(ends[1]), DEGREE + 1) * h ** (DEGREE + 1)
    if not tail.is_finite():
        return None  # there is a pole
    taylor = target.taylor(c, h, DEGREE + 1)
    least = abs(taylor[0]) - sum((abs(a) for a in taylor[1:]), arb(0))
    if not (least > 0 and tail < arb(ACCURACY) * least):
        return None
    values = [a.mid() for a in taylor]
    highs = [float(value) for value in values]
    lows = [float((value - arb(high)).mid()) for value, high in zip(values[:DOUBLE], highs, strict=False)]
    return [centre, 1 / half, *highs, *lows]


def _in_range(row: list[float]) -> bool:
    """Whether low parts of the values neither underflow nor overflow."""
    return 2.0**LEAST < abs(row[2]) < 2.0**GREATEST


# The evaluation, for a device.

CUDA = f"""
/* Reference values: a row is centre, scale, {DEGREE + 1} high parts, {DOUBLE} low parts. */
static __device__ __forceinline__ void reference(const double *row, double x, double &high, double &low)
{{
    const double t = (x - row[0]) * row[1];
    double p = row[{2 + DEGREE}];
#pragma unroll
    for (int k = {DEGREE - 1}; k >= {DOUBLE}; --k) p = fma(p, t, row[2 + k]);
    double rest = 0.0;
#pragma unroll
    for (int k = {DOUBLE - 1}; k >= 0; --k) {{
        const double product = p * t;
        const double below = fma(rest, t, fma(p, t, -product));
        const double a = row[2 + k], sum = a + product;
        const double part = sum - a;
        const double lost = (a - (sum - part)) + (product - part);
        const double tail = lost + (below + row[{3 + DEGREE} + k]);
        p = sum + tail;
        rest = tail - (p - sum);
    }}
    high = p;
    low = rest;
}}

/* |got - exact| / ulp(exact); an infinite or NaN result is as wrong as can be. */
static __device__ __forceinline__ double error_in_ulp(double got, double high, double low)
{{
    const u64 infinite = 0x7ff0000000000000ull;
    if ((bits_of(got) & infinite) == infinite) return double_of(infinite);
    const u64 power = bits_of(high) & infinite;
    return fabs((got - high) - low) * double_of(((u64)(2 * 1023 + 52) << 52) - power);
}}
"""
"""Needs what `oracle.bulk.cuda_source.prelude` defines."""
