"""Arithmetic and conversions against MPFR, an independent implementation of correct rounding.

10,000 adversarial operand tuples for each operation and format, 2,000 for each pair of formats of a
conversion; ``HALFULP_DEEP=1``: a million for each operation and for the conversions, spread over the formats.
MPFR emulates a format with its own precision and exponent range; ``subnormalize`` rounds a subnormal result
once, from the direction of the first rounding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gmpy2
import numpy as np
import pytest
from function_sources import mpfr_context

from halfulp.oracle import codes
from halfulp.oracle import rounding_array as twin
from halfulp.oracle.formats import FORMATS, Bits, Format
from halfulp.properties import draws

IEEE = [FORMATS[name] for name in ("f8e5m2", "f16", "bf16", "f32", "f64")]
"""The formats with infinities: MPFR overflows to them."""

SOURCES = [*IEEE, *(FORMATS[name] for name in ("f8e4m3fn", "i16", "i32", "u32", "i64", "u64"))]

DEEP = bool(os.environ.get("HALFULP_DEEP"))


def share(of: int, each: int) -> int:
    """How many operand tuples one of ``of`` tests takes: ``each``, or its part of a million."""
    return 1_000_000 // of if DEEP else each


def mpfr_values(fmt: Format, bits: Bits) -> list[Any]:
    """The exact values, at the precision they need."""
    if fmt.is_float:
        return [gmpy2.mpfr(value, 53) for value in codes.float64_values(fmt, bits).tolist()]
    with gmpy2.context(precision=64):
        return [gmpy2.mpfr(int(value)) for value in codes.int_values(fmt, bits)]


def assert_equal(fmt: Format, got: Bits, expected: Sequence[Any], args: Sequence[Bits]) -> None:
    """Every result is a float64 number, so the comparison is one of float64 values and signs."""
    want = np.array([float(value) for value in expected])
    have = codes.float64_values(fmt, got)
    same = (have == want) & (np.signbit(have) == np.signbit(want)) | (np.isnan(have) & np.isnan(want))
    wrong = np.flatnonzero(~same)
    shown = [([hex(int(arg[i])) for arg in args], fmt.hex(int(got[i])), want[i]) for i in wrong[:5]]
    assert not len(wrong), f"{len(wrong)} differ, e.g. (operands, got, expected): {shown}"


OPERATIONS = ("add", "sub", "mul", "div", "sqrt", "fma")


@pytest.mark.parametrize("fmt", IEEE, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("op", OPERATIONS)
def test_arithmetic(op: str, fmt: Format) -> None:
    rng = np.random.default_rng([OPERATIONS.index(op), IEEE.index(fmt)])
    count = share(len(IEEE), 10_000)
    args: tuple[Bits, ...]
    if op == "sqrt":
        args = (draws.values(rng, fmt, count),)
    else:
        args = draws.triples(rng, fmt, count) if op == "fma" else draws.pairs(rng, fmt, count)
    columns = [mpfr_values(fmt, bits) for bits in args]
    rule = getattr(mpfr_context(fmt), op)
    expected = [rule(*row) for row in zip(*columns, strict=True)]
    fast = twin.fma(fmt, *args) if op == "fma" else getattr(twin, op)(fmt, *args)
    assert_equal(fmt, fast.bits, expected, args)
    assert_equal(fmt, twin.arithmetic_generic(op, fmt, args).bits, expected, args)


@pytest.mark.parametrize("dst", IEEE, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("src", SOURCES, ids=lambda fmt: fmt.name)
def test_conversions(src: Format, dst: Format) -> None:
    rng = np.random.default_rng([SOURCES.index(src), IEEE.index(dst)])
    bits = draws.around_targets(rng, src, dst, share(len(SOURCES) * len(IEEE), 2_000))
    bits = np.concatenate([bits, draws.values(rng, src, len(bits) // 4)])
    rule = mpfr_context(dst).plus
    expected = [rule(value) for value in mpfr_values(src, bits)]
    if src.is_float:
        fast, generic = twin.cast_float(src, dst, bits), twin.cast_float_generic(src, dst, bits)
    else:
        fast, generic = twin.cast_int_to_float(src, dst, bits), twin.cast_int_to_float_generic(src, dst, bits)
    assert_equal(dst, fast.bits, expected, (bits,))
    assert_equal(dst, generic.bits, expected, (bits,))
