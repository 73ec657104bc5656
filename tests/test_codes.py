"""Facts of codes against the scalar definition of their values, for every code of every format of up to 16 bits."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from halfulp.oracle import codes
from halfulp.oracle.codes import Kind
from halfulp.oracle.formats import FORMATS, WIDE, Bits, Format
from halfulp.oracle.rounding import floor_log2, power_of_two, value_of, value_of_scaled
from halfulp.properties import draws

SHORT = [fmt for fmt in FORMATS.values() if fmt.width <= 16]
SHORT_FLOATS = [fmt for fmt in SHORT if fmt.is_float]
LONG = [FORMATS[name] for name in ("f32", "f64", "i32", "u32", "i64", "u64", "index")]
LONG_FLOATS = [FORMATS["f32"], FORMATS["f64"]]


def each(formats: list[Format]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fmt", formats, ids=lambda fmt: fmt.name)


def every_code(fmt: Format) -> Bits:
    return np.arange(fmt.code_count, dtype=fmt.storage)


def some_codes(fmt: Format, count: int = 2000) -> Bits:
    return draws.values(np.random.default_rng(7), fmt, count)


@cache
def values(fmt: Format) -> list[Any]:
    """Fractions, or names of special values; Python integers for the integers of 16 bits, which is faster."""
    if fmt.is_int and fmt.width == 16:
        return [code - fmt.code_count if code > fmt.max_int else code for code in range(fmt.code_count)]
    return [value_of(fmt, code) for code in range(fmt.code_count)]


@cache
def in_order(fmt: Format) -> list[int]:
    """The codes of finite numbers by increasing value, -0 before +0: sorted, not computed."""
    finite = [code for code in range(fmt.code_count) if not isinstance(values(fmt)[code], str)]
    return sorted(finite, key=lambda code: (values(fmt)[code], not code & fmt.sign_mask))


def unpacked_value(unpacked: codes.Unpacked, i: int) -> Any:
    match Kind(int(unpacked.kind[i])):
        case Kind.NAN:
            return "nan"
        case Kind.INFINITE:
            return "-inf" if unpacked.sign[i] else "+inf"
        case kind:
            value = value_of_scaled(int(unpacked.sig[i]), int(unpacked.exp[i]))
            assert (kind == Kind.ZERO) == (value == 0)
            return -value if unpacked.sign[i] else value


@each(SHORT)
def test_decode_agrees_with_the_definition(fmt: Format) -> None:
    """In float64, which holds every value of at most 16 bits."""
    kind, sign, sig, exp = codes.decode(fmt, every_code(fmt))
    got = np.ldexp(np.where(sign, -1.0, 1.0) * sig.astype(np.float64), exp)
    for code, value in enumerate(values(fmt)):
        if isinstance(value, str):
            assert kind[code] == (Kind.NAN if value == "nan" else Kind.INFINITE)
            assert value == "nan" or sign[code] == (value == "-inf")
        else:
            assert kind[code] == (Kind.FINITE if value else Kind.ZERO)
            assert got[code] == float(value)


@each(LONG)
def test_decode_agrees_with_the_definition_on_samples(fmt: Format) -> None:
    bits = some_codes(fmt)
    unpacked = codes.decode(fmt, bits)
    assert [unpacked_value(unpacked, i) for i in range(len(bits))] == [value_of(fmt, int(code)) for code in bits]


@each(SHORT)
def test_classes(fmt: Format) -> None:
    bits = every_code(fmt)
    smallest_normal = power_of_two(fmt.emin)
    expected = {
        codes.is_nan: [value == "nan" for value in values(fmt)],
        codes.is_infinite: [value in ("+inf", "-inf") for value in values(fmt)],
        codes.is_zero: [value == 0 for value in values(fmt)],
        codes.is_subnormal: [
            fmt.is_float and not isinstance(value, str) and 0 < abs(value) < smallest_normal for value in values(fmt)
        ],
    }
    for function, mask in expected.items():
        assert function(fmt, bits).tolist() == mask, function.__name__
    negative = [bool(code & fmt.sign_mask) if fmt.is_float else value < 0 for code, value in enumerate(values(fmt))]
    assert codes.is_negative(fmt, bits).tolist() == negative


@each(SHORT_FLOATS + LONG_FLOATS)
def test_float64_values_are_exact(fmt: Format) -> None:
    bits = every_code(fmt)[:: 1 if fmt.width <= 8 else 7] if fmt.width <= 16 else some_codes(fmt)
    got = codes.float64_values(fmt, bits)
    assert got.dtype == np.float64
    for code, value in zip(bits.tolist(), got.tolist(), strict=True):
        expected = value_of(fmt, code)
        if expected == "nan":
            assert value != value
        elif isinstance(expected, str):
            assert value == float(expected)
        else:
            assert Fraction(value) == expected
            assert bool(np.signbit(value)) == bool(code & fmt.sign_mask)


@each(SHORT)
def test_ordinals_follow_the_order_of_values(fmt: Format) -> None:
    order = np.array(in_order(fmt), fmt.storage)
    at = codes.ordinal(fmt, order)
    assert at.dtype == np.int64
    steps = np.diff(at)
    # Where a format has no -0, the place of -0 stays empty.
    empty = fmt.is_float and fmt.signed and not fmt.has_negative_zero
    assert sorted(set(steps.tolist())) == ([1, 2] if empty else [1])
    assert np.count_nonzero(steps == 2) == int(empty)
    low, high = codes.ordinal_span(fmt)
    assert (low, high) == (at[0] - fmt.infinity, at[-1] + fmt.infinity)
    assert np.array_equal(codes.from_ordinal(fmt, at), order)


@each(SHORT + LONG)
def test_from_ordinal_inverts_ordinal(fmt: Format) -> None:
    bits = every_code(fmt) if fmt.width <= 16 else some_codes(fmt)
    bits = bits[~codes.is_nan(fmt, bits)]
    back = codes.from_ordinal(fmt, codes.ordinal(fmt, bits))
    assert back.dtype == fmt.storage
    assert np.array_equal(back, bits)


@each(SHORT_FLOATS)
def test_neighbours(fmt: Format) -> None:
    order = in_order(fmt)
    pairs = [(a, b) for a, b in pairwise(order) if values(fmt)[a] != values(fmt)[b]]
    up = codes.next_up(fmt, every_code(fmt)).tolist()
    down = codes.next_down(fmt, every_code(fmt)).tolist()
    zeros = {code for code in order if values(fmt)[code] == 0}
    for a, b in pairs:
        # The neighbour is zero with the sign of the side it is entered from.
        assert up[a] == b or (b in zeros and up[a] in zeros)
        assert down[b] == a or (a in zeros and down[b] in zeros)
    if fmt.has_zero:
        for zero in zeros:
            assert values(fmt)[up[zero]] == power_of_two(fmt.quantum_exponent)
            assert values(fmt)[down[zero]] == -power_of_two(fmt.quantum_exponent)
        assert down[1] == 0
        assert up[fmt.sign_mask | 1] == (fmt.sign_mask if fmt.has_negative_zero else 0)
    largest = fmt.infinity_bits if fmt.infinity else fmt.max_finite_bits
    assert up[fmt.max_finite_bits] == largest
    assert up[largest] == largest
    for code, value in enumerate(values(fmt)):
        if value == "nan":
            assert up[code] == down[code] == code


@pytest.mark.parametrize("fmt", [FORMATS[name] for name in ("i8", "u8", "i4", "bool")], ids=str)
def test_neighbours_of_integers_stop_at_the_ends(fmt: Format) -> None:
    bits = every_code(fmt)
    n = [int(value) for value in codes.int_values(fmt, bits)]
    up = [int(value) for value in codes.int_values(fmt, codes.next_up(fmt, bits))]
    down = [int(value) for value in codes.int_values(fmt, codes.next_down(fmt, bits))]
    assert up == [min(value + 1, fmt.max_int) for value in n]
    assert down == [max(value - 1, fmt.min_int) for value in n]


@each(SHORT_FLOATS)
def test_ulp_and_midpoint(fmt: Format) -> None:
    bits = every_code(fmt)
    step = codes.ulp_exponent(fmt, bits).tolist()
    above = codes.midpoint_above(fmt, bits)
    # Every fifth code of the 16-bit formats: 5 divides no power of two.
    for code in range(0, fmt.code_count, 1 if fmt.width <= 8 else 5):
        value = values(fmt)[code]
        middle = unpacked_value(above, code)
        if isinstance(value, str):
            assert middle == value
            continue
        exponent = max(floor_log2(abs(value)), fmt.emin) if value else fmt.emin
        assert step[code] == exponent - fmt.fraction_bits
        assert abs(middle) == abs(value) + power_of_two(step[code] - 1)
        magnitude = code & fmt.magnitude_mask
        if magnitude != fmt.max_finite_bits:
            assert abs(middle) == (abs(value) + abs(values(fmt)[magnitude + 1])) / 2
    if fmt.infinity:
        assert step[fmt.infinity_bits] == fmt.max_exponent + 1 - fmt.fraction_bits


@each([fmt for fmt in SHORT_FLOATS if fmt.width <= 8])
def test_distance_counts_steps(fmt: Format) -> None:
    """Against positions in the sorted list of distinct values, infinities at its ends."""
    distinct = sorted({values(fmt)[code] for code in in_order(fmt)})
    position = {value: i for i, value in enumerate(distinct)}
    position |= {"-inf": -1, "+inf": len(distinct)}
    every = every_code(fmt)
    a, b = np.repeat(every, len(every)), np.tile(every, len(every))
    got = codes.distance(fmt, a, b).reshape(len(every), len(every)).tolist()
    for x, value in enumerate(values(fmt)):
        for y, other in enumerate(values(fmt)):
            if value == "nan" or other == "nan":
                expected = 0 if value == other else codes.NAN_DISTANCE
            else:
                expected = abs(position[value] - position[other])
            assert got[x][y] == expected, (x, y)


def test_distance_of_far_values_does_not_wrap() -> None:
    f64 = FORMATS["f64"]
    ends = np.array([f64.infinity_bits], np.uint64), np.array([f64.infinity_bits | f64.sign_mask], np.uint64)
    assert codes.distance(f64, *ends).tolist() == [2 * f64.infinity_bits]
    i64 = FORMATS["i64"]
    ends = codes.from_ints(i64, [i64.min_int]), codes.from_ints(i64, [i64.max_int])
    assert codes.distance(i64, *ends).tolist() == [(1 << 64) - 1]


@each([fmt for fmt in FORMATS.values() if not fmt.is_float])
def test_integers_keep_their_low_bits(fmt: Format) -> None:
    numbers = [0, 1, -1, 5, -7, fmt.min_int, fmt.max_int, fmt.max_int + 1, fmt.min_int - 1, 3 << 130]
    bits = codes.from_ints(fmt, np.array(numbers, object))
    assert bits.dtype == fmt.storage
    wide = fmt.storage == WIDE
    raw = [int(row["hi"]) << 64 | int(row["lo"]) for row in bits] if wide else bits.tolist()
    assert raw == [number % fmt.code_count for number in numbers]
    assert codes.is_zero(fmt, bits).tolist() == [code == 0 for code in raw]
    expected = [code - fmt.code_count if fmt.signed and code > fmt.max_int else code for code in raw]
    assert codes.is_negative(fmt, bits).tolist() == [value < 0 for value in expected]
    small = codes.from_ints(fmt, np.array([0, 1, -1, -2], np.int64))
    assert np.array_equal(small, codes.from_ints(fmt, np.array([0, 1, -1, -2], object)))
    if not wide:
        assert codes.int_values(fmt, bits).tolist() == expected


def test_wide_and_mismatched_formats_are_refused() -> None:
    i128, f32 = FORMATS["i128"], FORMATS["f32"]
    for function in (codes.decode, codes.int_values, codes.ordinal, codes.float64_values):
        with pytest.raises(ValueError, match="128-bit"):
            function(i128, np.zeros(1, WIDE))
    with pytest.raises(ValueError, match="not an integer format"):
        codes.int_values(f32, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="not a float format"):
        codes.midpoint_above(FORMATS["i8"], np.zeros(1, np.uint8))
