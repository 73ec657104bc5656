"""The table of a function: its runs, and the plain evaluation that the native one is compared with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from halfulp.oracle.formats import Bits

Array = np.ndarray[Any, np.dtype[Any]]
F64 = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

INFINITY = 0x7F80_0000
SIGN = 0x8000_0000


class Kind(IntEnum):
    """How a run is judged.

    POLYNOMIAL: by its row. REFLECTION: by its row plus the row of the distance to the nearest integer, which is a
    pole. VALUE: all arguments have one correctly rounded result. EXACT: all have one result, without tolerance.
    """

    POLYNOMIAL = 0
    REFLECTION = 1
    VALUE = 2
    EXACT = 3


SCALE, SHIFT, LOW, HIGH, LEADING = range(5)
"""Columns of a row: s, -c*s, the two factors of the enclosure; then the coefficients, the highest power first.

In runs of constants: the exact value (or so near to it that no f32 lies between), and 1/ulp of it, in the first two.
"""

BEYOND = 64
"""Overflowing results up to so many steps beyond the largest finite number have runs of their own."""

REFLECTED_BITS = 5
REFLECTED_FIRST = (127 - 24) << REFLECTED_BITS
REFLECTED_ROWS = (23 << REFLECTED_BITS) + 1
"""Rows of W(w), 2**REFLECTED_BITS to a binade, for w from 2**-24 to 1/2, found by the upper bits of w as an f32."""

REFLECTED_SHIFT = 23 - REFLECTED_BITS


@dataclass(frozen=True)
class Table:
    """All runs of a function over all 2**32 f32 codes, in the order of codes.

    Attributes:
        name: the function.
        degree: of the polynomials.
        starts: (n,) uint32, the first code of each run; the first is 0, the last run ends at 0xffffffff.
        kinds: (n,) uint8, `Kind`.
        rows: (n, LEADING + degree + 1) float64.
        codes: (n,) uint32, the result of runs of constants.
        positions: (n,) int32, its ordinal with zeros merged; beyond the largest finite number as if the exponent were
            unbounded (``reading:1``), where it is a lower bound once it is 64 steps beyond.
        reflected: (REFLECTED_ROWS or 0, 2 + degree + 1) float64: scale, shift and coefficients of W.
    """

    name: str
    degree: int
    starts: Array
    kinds: Array
    rows: Array
    codes: Array
    positions: Array
    reflected: Array

    def arrays(self) -> dict[str, Array]:
        """What a cache has to keep."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("name", "degree")}

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, Array]) -> Table:
        return cls(name, arrays["rows"].shape[1] - LEADING - 1, **arrays)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content."""
        state = hashlib.sha256(self.name.encode())
        for key, array in self.arrays().items():
            state.update(f"{key} {array.dtype.str} {array.shape}".encode())
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def run_of(self, codes: Bits) -> Array:
        """The index of the run of each code."""
        return np.searchsorted(self.starts, codes, side="right") - 1

    def last_codes(self) -> Array:
        """The last code of each run, as int64."""
        return np.append(self.starts[1:].astype(np.int64), 1 << 32) - 1


class Evaluated(NamedTuple):
    """The enclosures of some arguments.

    Attributes:
        nearest: uint32, the correctly rounded results where decided; else one of the two candidates.
        undecided: the enclosure contains a rounding boundary.
        y: float64, the approximate value; within its bound of the exact one. NaN where the result is.
        low, high: float64 bounds of the exact value (in either order).
    """

    nearest: Bits
    undecided: Mask
    y: F64
    low: F64
    high: F64


def evaluate(table: Table, codes: Bits) -> Evaluated:
    """The enclosures of arbitrary arguments, by numpy: two roundings a step, where the native evaluation may fuse."""
    run = table.run_of(codes)
    kinds = table.kinds[run]
    rows = table.rows[run]
    with np.errstate(all="ignore"):
        x = codes.view(np.float32).astype(np.float64)
        y = _polynomial(rows[:, LEADING:], x * rows[:, SCALE] + rows[:, SHIFT])
        reflect = np.flatnonzero(kinds == Kind.REFLECTION)
        poles = reflect[:0]
        if len(reflect):
            values, at_pole = _reflected(table, codes[reflect])
            y[reflect] += values
            poles = reflect[at_pole]
        low, high = y * rows[:, LOW], y * rows[:, HIGH]
        nearest = low.astype(np.float32).view(np.uint32)
        undecided = nearest != high.astype(np.float32).view(np.uint32)
    constant = kinds >= Kind.VALUE
    if constant.any():
        nearest[constant] = table.codes[run[constant]]
        y[constant] = low[constant] = high[constant] = rows[constant, SCALE]
        undecided[constant] = False
    y[poles] = low[poles] = high[poles] = np.inf
    nearest[poles], undecided[poles] = INFINITY, False
    return Evaluated(nearest, undecided, y, low, high)


def _polynomial(coefficients: F64, t: F64) -> F64:
    """In the order of operations that `oracle.bulk.bounds` describes; column k belongs to the power d - k."""
    parts = [coefficients[:, k] for k in range(coefficients.shape[1] - 2, -1, -1)]
    power = t
    while len(parts) > 1:
        joined = [low + power * high for low, high in zip(parts[::2], parts[1::2], strict=False)]
        parts = joined + parts[len(joined) * 2 :]
        power = power * power
    return np.asarray(t * parts[0] + coefficients[:, -1])


def _reflected(table: Table, codes: Bits) -> tuple[F64, Mask]:
    """W of the distance to the nearest integer, which is exact in f32; and where it is zero."""
    x = codes.view(np.float32)
    w = np.abs(x - np.rint(x))
    index = (w.view(np.uint32) >> REFLECTED_SHIFT).astype(np.int64) - REFLECTED_FIRST
    rows = table.reflected[np.maximum(index, 0)]
    return _polynomial(rows[:, 2:], w.astype(np.float64) * rows[:, 0] + rows[:, 1]), w == 0
