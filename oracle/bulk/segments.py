"""From regions to runs: a region is split until the bound of `oracle.bulk.bounds` holds on every part.

The splits follow the binades, then halve codes, so most runs hold a power of two of codes. A run beside an exact zero
of the function, or around an inexact one (lgamma's negative zeros), is expanded about the float nearest to the zero,
so that the error stays relative to the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from flint import arb

from halfulp.oracle.bulk.bounds import (
    EXTRA_TERMS,
    LARGEST_ERROR,
    Errors,
    economised,
    encloses,
    errors,
    exact,
    multipliers,
    relative_error,
    representable,
    upper_float,
)
from halfulp.oracle.bulk.table import REFLECTED_FIRST, REFLECTED_ROWS, REFLECTED_SHIFT, Kind
from halfulp.oracle.bulk.targets import REFLECTED, SIGN, Region, Target, distance_to_integer, lgamma_positive


class Run(NamedTuple):
    """One run with a polynomial: what a row of the table holds."""

    first: int
    last: int
    kind: Kind
    scale: float
    shift: float
    low: float
    high: float
    coefficients: tuple[float, ...]


class UnprovenError(ValueError):
    """The bound does not hold where it has to."""


def value_of(code: int) -> float:
    """The f32 of a code, as a float64."""
    return float(np.uint32(code).view(np.float32))


def placed(first: int, last: int, centre: float) -> float:
    """The scale s = 2**k of a run about a centre: the greatest with ``|x - c| * s <= 1``. 1 for a single point."""
    reach = max(abs(value_of(first) - centre), abs(value_of(last) - centre))
    if reach == 0:
        return 1.0
    mantissa, exponent = np.frexp(reach)
    return float(np.ldexp(1.0, int(1 - exponent if mantissa == 0.5 else -exponent)))


def well_placed(run: Run) -> bool:
    """Whether t is exact and at most 1 in magnitude on a run, however its numbers were found.

    The centre is an f32, the scale a power of two, and x - c, a multiple of the smaller ulp of the two, has fewer than
    53 bits.
    """
    if run.first == run.last:
        return run.shift == -value_of(run.first) and run.scale == 1.0
    if not 2.0**-200 < run.scale < 2.0**200 or np.frexp(run.scale)[0] != 0.5:
        return False
    centre = -run.shift / run.scale
    if float(np.float32(centre)) != centre or run.scale > placed(run.first, run.last, centre):
        return False
    ends = [abs(value_of(run.first)), abs(value_of(run.last))]
    smallest = min([*ends, abs(centre)] if centre else ends)  # 0 - x is exact in any case
    grid = max(float(np.spacing(np.float32(smallest))), 2.0**-149)
    return centre == 0 or max(abs(end) for end in ends) + abs(centre) <= grid * 2.0**52


class Model(NamedTuple):
    """A function on a run in the variable t: Taylor coefficients, remainder, and its zero's place if it has one.

    ``least_t`` is as for `relative_error`.
    """

    taylor: list[arb]
    remainder: arb
    least_t: arb | None


def _span(first: int, last: int) -> tuple[arb, arb]:
    a, b = exact(value_of(first)), exact(value_of(last))
    return (a, b) if a < b else (b, a)


def model(target: Target, first: int, last: int, centre: float, scale: float) -> Model | None:
    """None where there is a pole in the way, or a zero far from the centre."""
    terms = target.degree + EXTRA_TERMS + 1
    c, h = exact(centre), 1 / exact(scale)
    if first == last:
        return Model([target.value(c)] + [arb(0)] * (terms - 1), arb(0), None)
    taylor = target.taylor(c, h, terms)
    least_t = None
    if any(value_of(zero) == centre for zero in target.zeros):
        taylor[0] = arb(0)
        least_t = arb(0)
    elif target.name == "lgamma" and changes_sign(target, first, last):
        least_t = min(abs(exact(value_of(code)) - c) for code in _neighbours(centre)) * exact(scale)
    low, high = _span(first, last)
    low, high = min(low, c), max(high, c)
    return Model(taylor, target.tail(low, high, terms) * h**terms, least_t)


def _neighbours(centre: float) -> tuple[int, int]:
    code = int(np.float32(centre).view(np.uint32))
    return code - 1, code + 1


def changes_sign(target: Target, first: int, last: int) -> bool:
    return bool((target.value(exact(value_of(first))) > 0) != (target.value(exact(value_of(last))) > 0))


def nearest_to_zero(target: Target, first: int, last: int) -> int:
    """The code where |f| is least next to its one change of sign between two codes."""
    positive = bool(target.value(exact(value_of(first))) > 0)
    a, b = first, last
    while b - a > 1:
        middle = (a + b) // 2
        if bool(target.value(exact(value_of(middle))) > 0) == positive:
            a = middle
        else:
            b = middle
    return min(a, b, key=lambda code: abs(float(target.value(exact(value_of(code))).mid())))


def contains_integer(first: int, last: int) -> bool:
    a, b = sorted((value_of(first), value_of(last)))
    return float(np.ceil(a)) <= b


def polynomial_error(target: Target, run: Run) -> arb | None:
    """A bound of the relative error of a run's polynomial, from its coefficients alone; None where there is none."""
    if not representable(run.coefficients) or not well_placed(run):
        return None
    centre = -run.shift / run.scale
    found = model(target, run.first, run.last, centre, run.scale)
    if found is None:
        return None
    bound = errors(found.taylor, found.remainder, run.coefficients)
    return relative_error(bound, found.taylor[0], found.least_t)


def reflection_error(run: Run, reflected_error: arb) -> arb | None:
    """The same for a run whose result is its polynomial plus W of the distance to the nearest integer.

    The polynomial stands for -lgamma(1 - x), and each of the two has an absolute error. Poles are exact, so the value
    has to be bounded away from zero over the other arguments only, whose distance to an integer is at least the
    spacing of the floats.
    """
    if run.first == run.last or not representable(run.coefficients) or not well_placed(run):
        return None
    centre = -run.shift / run.scale
    terms = len(run.coefficients) + EXTRA_TERMS
    c, h = exact(centre), 1 / exact(run.scale)
    taylor = [-a if i % 2 == 0 else a for i, a in enumerate(lgamma_positive(1 - c, h, terms))]
    nearest = 1 - max(exact(value_of(run.first)), c)  # the least argument of lgamma
    n = terms
    tail = (1 / nearest**n + 1 / ((n - 1) * nearest ** (n - 1))) / n * h**n
    bound = errors(taylor, tail, run.coefficients)
    spread = bound.spread
    ends = [distance_to_integer(exact(value_of(code))) for code in (run.first, run.last)]
    spacing = exact(value_of(run.first)) - exact(value_of(run.first + 1))
    closest = spacing if contains_integer(run.first, run.last) else min(*ends, key=float)
    halved = contains_half(run.first, run.last)
    furthest = arb(0.5) if halved else max(*ends, key=float)
    if furthest == 0:
        return None
    lower = taylor[0] - spread + REFLECTED.value(furthest)
    upper = taylor[0] + spread + REFLECTED.value(closest)
    least = lower if lower > 0 else -upper
    u = arb((1, -53))
    worst = bound.e0 + bound.e1 + reflected_error + u * (abs(taylor[0]) + spread + bound.e0 + bound.e1)
    least = least - worst
    return worst * (1 + u) / least + u if least > 0 else None


def contains_half(first: int, last: int) -> bool:
    """Whether a number n + 1/2 lies between."""
    a, b = sorted((value_of(first), value_of(last)))
    return float(np.ceil(a - 0.5)) <= b - 0.5


def _finished(run: Run, error: arb | None) -> Run | None:
    if error is None or not error < LARGEST_ERROR:
        return None
    bound = upper_float(error)
    low, high = multipliers(bound)
    while not encloses(low, high, exact(bound)):  # at most once: they are rounded to nearest
        low, high = float(np.nextafter(low, 0)), float(np.nextafter(high, 2))
    return run._replace(low=low, high=high)


def fit_polynomial(target: Target, first: int, last: int) -> Run | None:
    """The run with a polynomial and its proven width, or None."""
    if first == last:
        centre = value_of(first)
    elif first - 1 in target.zeros or last + 1 in target.zeros:
        centre = value_of(first - 1 if first - 1 in target.zeros else last + 1)
    elif target.regular_at_zero and first & ~SIGN == 0:
        centre = 0.0
    elif target.name == "lgamma" and first & SIGN and changes_sign(target, first, last):
        centre = value_of(nearest_to_zero(target, first, last))
    else:
        centre = value_of((first + last + 1) // 2)
    scale = placed(first, last, centre)
    found = model(target, first, last, centre, scale)
    if found is None:
        return None
    coefficients = economised(found.taylor, target.degree)
    if not all(np.isfinite(coefficients)):
        return None
    bound = errors(found.taylor, found.remainder, coefficients)
    error = relative_error(bound, found.taylor[0], found.least_t)
    run = Run(first, last, Kind.POLYNOMIAL, scale, -centre * scale, 1.0, 1.0, tuple(coefficients))
    return _finished(run, error) if representable(coefficients) else None


def fit_reflection(target: Target, first: int, last: int, reflected_error: arb) -> Run | None:
    if first == last:
        return None
    centre = value_of((first + last + 1) // 2)
    scale = placed(first, last, centre)
    terms = target.degree + EXTRA_TERMS + 1
    taylor = lgamma_positive(1 - exact(centre), 1 / exact(scale), terms)
    taylor = [-a if i % 2 == 0 else a for i, a in enumerate(taylor)]
    coefficients = tuple(economised(taylor, target.degree))
    run = Run(first, last, Kind.REFLECTION, scale, -centre * scale, 1.0, 1.0, coefficients)
    return _finished(run, reflection_error(run, reflected_error))


def _one_binade(first: int, last: int) -> bool:
    return first == last or _binade_start(last) <= first


def _binade_start(code: int) -> int:
    """The first code of the binade of a code; subnormal numbers have binades too."""
    magnitude = code & ~SIGN
    if magnitude >= 1 << 23:
        return code & ~0x7F_FFFF
    return code & SIGN | (1 << magnitude.bit_length() - 1 if magnitude else 0)


def split(target: Target, region: Region, reflected_error: arb | None) -> Iterator[Run]:
    """The runs of a region of kind ``"polynomial"`` or ``"reflection"``, in the order of codes.

    Raises:
        UnprovenError: the bound does not hold even for a single code.
    """
    pending = [(region.first, region.last)]
    while pending:
        first, last = pending.pop()
        # Beside zero, where one run may hold many binades; elsewhere binades are taken one by one.
        at_zero = target.regular_at_zero and first & ~SIGN <= 1
        run = None
        if at_zero or _one_binade(first, last):
            if region.kind == "reflection":
                if reflected_error is None:
                    raise ValueError("a region of reflection needs the error of W")
                if first == last and contains_integer(first, last):
                    yield Run(first, last, Kind.EXACT, 0.0, 0.0, 0.0, 0.0, ())
                    continue
                run = fit_reflection(target, first, last, reflected_error)
            if run is None and not (region.kind == "reflection" and contains_integer(first, last)):
                run = fit_polynomial(target, first, last)
        if run is not None:
            yield run
        elif first == last:
            raise UnprovenError(f"{target.name}: no bound at {first:#010x}")
        else:
            middle = (first + last + 1) // 2 if _one_binade(first, last) else _binade_start(last)
            pending += [(middle, last), (first, middle - 1)]


# W.


def reflected_rows(degree: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The rows of W, one for each value of the upper bits of w; scale, shift, then the highest power first."""
    rows = np.zeros((REFLECTED_ROWS, 3 + degree))
    for i in range(REFLECTED_ROWS):
        _, _, centre, scale = _reflected_place(i)
        taylor = REFLECTED.taylor(exact(centre), 1 / exact(scale), degree + EXTRA_TERMS + 1)
        rows[i, :2] = scale, -centre * scale
        rows[i, 2:] = economised(taylor, degree)[::-1]
    return rows


def _reflected_place(i: int) -> tuple[int, int, float, float]:
    first = (REFLECTED_FIRST + i) << REFLECTED_SHIFT
    last = first + (1 << REFLECTED_SHIFT) - 1
    centre = value_of((first + last + 1) // 2)
    return first, last, centre, placed(first, last, centre)


def reflected_error(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> arb:
    """A bound of the absolute error of W from its rows, over all of them.

    Raises:
        UnprovenError: a row is not in its place.
    """
    worst = arb(0)
    u = arb((1, -53))
    for i, row in enumerate(rows):
        first, last, centre, scale = _reflected_place(i)
        coefficients = row[:1:-1].tolist()
        if row[0] != scale or row[1] != -centre * scale or not representable(coefficients):
            raise UnprovenError(f"W: row {i} is not in its place")
        terms = len(coefficients) + EXTRA_TERMS
        h = 1 / exact(scale)
        taylor = REFLECTED.taylor(exact(centre), h, terms)
        tail = REFLECTED.tail(exact(value_of(first)), exact(value_of(last)), terms) * h**terms
        found: Errors = errors(taylor, tail, coefficients)
        size = abs(taylor[0]) + found.spread
        error = found.e0 + found.e1 + u * (size + found.e0 + found.e1)
        worst = max(worst, error)
    return arb(worst.abs_upper())
