"""Where the rules of functions get their exact values from: the slow path, until something faster takes its place.

The rules (`oracle.ops.functions`) need three things of an exact value, always for whole arrays and in f32 or f64.
A faster source that answers the same, by proof, may be put in with `use`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from halfulp.oracle import functions
from halfulp.oracle.formats import Bits, Format

Magnitudes = np.ndarray[Any, np.dtype[np.int64]]


class Source(Protocol):
    """Exact values, as the rules ask for them. All arrays have the shape of ``bits``."""

    def is_fast(self, name: str, fmt: Format) -> bool:
        """Whether new operands take nanoseconds each, so that a run can afford millions of them."""
        ...

    def nearest(self, name: str, fmt: Format, bits: Bits) -> Bits:
        """The correctly rounded results; any NaN where the result is one."""
        ...

    def unbounded(self, name: str, fmt: Format, bits: Bits) -> Magnitudes:
        """`functions.unbounded_magnitude` of finite operands whose correctly rounded result is infinite.

        A source may answer ``cap(fmt)`` wherever the magnitude is at least that.
        """
        ...

    def within(self, name: str, fmt: Format, bits: Bits, relative: Fraction) -> tuple[Bits, Bits]:
        """`functions.within_many`."""
        ...


def cap(fmt: Format) -> int:
    """A magnitude code beyond which no rule tells values apart: 2**(emax + 1) times 1 + 1/16."""
    return fmt.infinity_bits + (1 << (fmt.fraction_bits - 4))


class SlowPath:
    """The definition, one operand after the other; equal operands once."""

    def is_fast(self, name: str, fmt: Format) -> bool:
        return False

    def nearest(self, name: str, fmt: Format, bits: Bits) -> Bits:
        return functions.nearest_many(name, fmt, bits)

    def unbounded(self, name: str, fmt: Format, bits: Bits) -> Magnitudes:
        """Functions that overflow are monotone in the magnitude of the operand where they do: far out it is ``cap``."""
        magnitude = (bits & fmt.magnitude_mask).astype(np.int64)
        result = np.full(bits.shape, cap(fmt), np.int64)
        near = np.flatnonzero(magnitude < _far_out(name, fmt))
        result[near] = [min(functions.unbounded_magnitude(name, fmt, code), cap(fmt)) for code in bits[near].tolist()]
        return result

    def within(self, name: str, fmt: Format, bits: Bits, relative: Fraction) -> tuple[Bits, Bits]:
        return functions.within_many(name, fmt, bits, relative)


_FAR_OUT: dict[tuple[str, str], int] = {}


def _far_out(name: str, fmt: Format) -> int:
    """The least positive operand whose result is at least ``cap``, as a code, by bisection."""
    key = (name, fmt.name)
    if key not in _FAR_OUT:
        low, high = (fmt.bias + 2) << fmt.fraction_bits, fmt.max_finite_bits
        while low < high:
            middle = (low + high) // 2
            if functions.unbounded_magnitude(name, fmt, middle) >= cap(fmt):
                high = middle
            else:
                low = middle + 1
        _FAR_OUT[key] = low
    return _FAR_OUT[key]


_sources: list[Source] = [SlowPath()]


def current() -> Source:
    """The source in use."""
    return _sources[-1]


@contextmanager
def use(source: Source) -> Iterator[None]:
    """Use another source for a while (``with source.use(SlowPath()): ...`` compares two)."""
    _sources.append(source)
    try:
        yield
    finally:
        _sources.remove(source)
