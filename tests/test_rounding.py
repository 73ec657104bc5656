"""The definition of rounding against lists of values, and every faster path against the definition."""

from __future__ import annotations

import ctypes
import platform
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import isqrt
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfulp.oracle import codes, hardware
from halfulp.oracle import rounding_array as twin
from halfulp.oracle.formats import FORMATS, WIDE, Bits, Format
from halfulp.oracle.rounding import (
    MODES,
    OVERFLOWS,
    Mode,
    Overflow,
    power_of_two,
    round_exact,
    value_of,
    value_of_scaled,
)
from halfulp.properties import draws

FLOATS = [fmt for fmt in FORMATS.values() if fmt.is_float]
INTS = [fmt for fmt in FORMATS.values() if not fmt.is_float]
TINY_FLOATS = [fmt for fmt in FLOATS if fmt.width <= 8]
BULK = 4096


def each(name: str, formats: list[Format]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(name, formats, ids=lambda fmt: fmt.name)


each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the name of the test."""
    return np.random.default_rng(list(request.node.name.encode()))


# The definition.


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("f16", Fraction(65519), 0x7BFF),
        ("f16", Fraction(65520), 0x7C00),
        ("f16", Fraction(1, 1 << 25), 0x0000),
        ("f16", Fraction(3, 1 << 25), 0x0002),
        ("bf16", (2 - power_of_two(-8)) * power_of_two(127), 0x7F80),
        ("bf16", Fraction(16842752), 0x4B80),  # 2**24 + 2**16, a tie
        ("bf16", Fraction(16842753), 0x4B81),  # one more; through f32 it would tie
        ("f32", Fraction(16777217), 0x4B800000),
        ("f32", (2 - power_of_two(-24)) * power_of_two(127), 0x7F800000),
        ("f8e4m3fn", Fraction(464), 0x7E),
        ("f8e5m2", Fraction(61439), 0x7B),
        ("f8e5m2", Fraction(61440), 0x7C),
        ("e8m0", Fraction(3, 2), 0x80),  # the significand 1 is odd: ties go up
        ("e8m0", Fraction(1), 0x7F),
        ("e4m3fnuz", Fraction(-1, 1 << 12), 0x00),  # no -0
        ("e2m1", Fraction(5, 2), 0x4),
        ("e2m1", Fraction(7, 2), 0x6),
        ("i8", Fraction(5, 2), 2),
        ("i8", Fraction(-3, 2), 0xFE),
    ],
)
def test_known_roundings(name: str, value: Fraction, code: int) -> None:
    assert round_exact(FORMATS[name], value) == code


@pytest.mark.parametrize(
    ("mode", "sign", "code"),
    [
        ("nearest_even", 1, 0x7C00),
        ("nearest_away", -1, 0xFC00),
        ("toward_zero", 1, 0x7BFF),
        ("up", 1, 0x7C00),
        ("up", -1, 0xFBFF),
        ("down", 1, 0x7BFF),
        ("down", -1, 0xFC00),
    ],
)
def test_overflow_by_direction(mode: Mode, sign: int, code: int) -> None:
    """IEEE 754 clause 7.4."""
    f16 = FORMATS["f16"]
    assert round_exact(f16, Fraction(sign * 10**6), mode=mode) == code
    assert round_exact(f16, Fraction(10**6), mode=mode, overflow="saturate") == f16.max_finite_bits
    with pytest.raises(OverflowError, match="largest finite"):
        round_exact(f16, Fraction(10**6), mode=mode, overflow="illegal")


def test_what_has_no_result_is_refused() -> None:
    e4m3fn, e8m0 = FORMATS["f8e4m3fn"], FORMATS["e8m0"]
    with pytest.raises(OverflowError, match="f8e4m3fn"):
        round_exact(e4m3fn, Fraction(465))
    assert round_exact(e4m3fn, Fraction(465), mode="toward_zero") == 0x7E
    with pytest.raises(OverflowError, match="f8e4m3fn"):
        round_exact(e4m3fn, Fraction(480), mode="toward_zero")
    with pytest.raises(OverflowError, match="u8"):
        round_exact(FORMATS["u8"], Fraction(-1))
    assert round_exact(FORMATS["u8"], Fraction(-1, 2), mode="toward_zero") == 0
    assert round_exact(FORMATS["i8"], Fraction(-1000), overflow="saturate") == 0x80
    for value in (Fraction(0), Fraction(-1), power_of_two(-128)):
        with pytest.raises(ValueError, match="e8m0 cannot hold"):
            round_exact(e8m0, value)


@cache
def finite_values(fmt: Format) -> list[tuple[Fraction, int]]:
    """Distinct finite values with their codes, in order; of the zeros, +0."""
    found: dict[Fraction, int] = {}
    for code in range(fmt.code_count):
        value = value_of(fmt, code)
        if isinstance(value, Fraction):
            found.setdefault(value, code)
    return sorted(found.items())


def by_search(fmt: Format, value: Fraction, mode: Mode) -> int:
    """The magnitude of the result, found in the list of all values; ``value`` is within their range."""
    entries = finite_values(fmt)
    after = bisect_left(entries, value, key=itemgetter(0))
    above = entries[after]
    below = above if above[0] == value else entries[after - 1]
    toward, away = (below, above) if value >= 0 else (above, below)
    to_toward, to_away = abs(value - toward[0]), abs(away[0] - value)
    match mode:
        case "up":
            chosen = above
        case "down":
            chosen = below
        case "toward_zero":
            chosen = toward
        case "nearest_away":
            chosen = toward if to_toward < to_away else away
        case "nearest_even":
            # In e8m0 every significand is 1, which is odd: the standard's rule takes the larger one.
            even = toward if fmt.precision > 1 and toward[1] % 2 == 0 else away
            chosen = toward if to_toward < to_away else away if to_away < to_toward else even
    return chosen[1] & fmt.magnitude_mask


@each("fmt", TINY_FLOATS)
@each_mode
def test_definition_agrees_with_search(fmt: Format, mode: Mode) -> None:
    """On every value, every midpoint, and points a little beside them, by position in the list of all values."""
    entries = finite_values(fmt)
    step = 1 if len(entries) < 100 else 7
    for (low, _), (high, _) in list(pairwise(entries))[::step]:
        middle, gap = (low + high) / 2, (high - low) / 1000
        for value in (low, low + gap, middle - gap, middle, middle + gap, high - gap, high):
            code = round_exact(fmt, value, mode=mode)
            assert code & fmt.magnitude_mask == by_search(fmt, value, mode), value
            if value:
                assert bool(code & fmt.sign_mask) == (value < 0 and (fmt.has_negative_zero or code != 0))


@given(
    name=st.sampled_from([fmt.name for fmt in FLOATS if fmt.name != "e8m0"]),
    n=st.integers(-(2**120), 2**120),
    exponent=st.integers(-1200, 950),
)
@settings(max_examples=200, deadline=None)
def test_directions_bracket_the_value(name: str, n: int, exponent: int) -> None:
    """Down and up enclose the value, are at most one step apart, and the other directions take one of the two."""
    fmt = FORMATS[name]
    value = value_of_scaled(n, exponent)
    results = {mode: round_exact(fmt, value, mode=mode, overflow="saturate") for mode in MODES}
    down, up = (value_of(fmt, results[mode]) for mode in ("down", "up"))
    assert isinstance(down, Fraction)
    assert isinstance(up, Fraction)
    if abs(value) <= largest(fmt):
        assert down <= value <= up
        pair = np.array([results["down"], results["up"]], fmt.storage)
        assert codes.distance(fmt, pair[:1], pair[1:])[0] <= 1
    assert set(results.values()) <= {results["down"], results["up"]}
    assert value_of(fmt, results["toward_zero"]) == (down if value >= 0 else up)


# The twin.


Promise = tuple[int, bool, bool, bool]
"""A code, and whether it is flagged as overflow, beyond and invalid."""


def promised(fmt: Format, value: Any, negative: bool, mode: Mode, overflow: Overflow) -> Promise:
    """What the array functions promise for a value or the name of a special value."""
    sign = fmt.sign_mask if negative else 0
    no_number = 0 if fmt.nan == "none" else fmt.nan_bits
    if value == "nan":
        return no_number, False, False, fmt.nan == "none"
    if negative and not fmt.signed:
        return no_number, False, False, True
    if isinstance(value, str):
        lost = not fmt.infinity or overflow == "saturate"
        return sign | (fmt.max_finite_bits if lost else fmt.infinity_bits), lost, lost, False
    try:
        code = round_exact(fmt, value, mode=mode, overflow="illegal", negative_zero=negative)
    except ValueError:
        return no_number, False, False, True
    except OverflowError:
        legal = overflow == "saturate" or (overflow == "infinity" and fmt.infinity)
        code = round_exact(fmt, value, mode=mode, overflow=overflow) if legal else sign | fmt.max_finite_bits
        return code, True, True, False
    return code, False, abs(value) > largest(fmt), False


@cache
def largest(fmt: Format) -> Fraction:
    value = value_of(fmt, fmt.max_finite_bits)
    assert isinstance(value, Fraction)
    return value


def assert_rounded(
    rounded: twin.Rounded, dst: Format, exact: list[tuple[Any, bool]], mode: Mode, overflow: Overflow
) -> None:
    assert rounded.bits.dtype == dst.storage
    got = (column.tolist() for column in (rounded.bits, rounded.overflow, rounded.beyond, rounded.invalid))
    assert list(zip(*got, strict=True)) == [promised(dst, *item, mode, overflow) for item in exact]


def operands(rng: np.random.Generator, fmt: Format, count: int) -> Bits:
    """Codes of any format."""
    if fmt.storage == WIDE:
        lengths = rng.integers(1, fmt.width + 1, count)
        numbers = [int.from_bytes(rng.bytes(16)) >> (128 - int(length)) for length in lengths]
        signs = rng.integers(0, 2, count).tolist()
        return codes.from_ints(fmt, np.array([-n if s else n for n, s in zip(numbers, signs, strict=True)], object))
    if fmt.width <= 8:
        return rng.integers(0, fmt.code_count, count).astype(fmt.storage)
    return draws.values(rng, fmt, count)


def near(rng: np.random.Generator, src: Format, dst: Format, count: int) -> Bits:
    """Codes of ``src`` at the values and midpoints of ``dst`` and one or two steps beside them, and others.

    A format of at most 16 bits has its midpoints in float64; for longer ones the draws of the properties are used.
    """
    plain = operands(rng, src, count)
    if src.storage == WIDE or dst.storage == WIDE or not src.signed:
        return plain
    if dst.width > 16:
        around = draws.around_targets(rng, src, dst, count) if src.width >= 8 and src.subnormals else plain
    elif dst.is_float and src.is_float:
        targets = rng.integers(0, dst.max_finite_bits + 1, count).astype(dst.storage)
        above = codes.midpoint_above(dst, targets)
        middle = np.ldexp(above.sig.astype(np.float64), above.exp)
        value = np.where(rng.random(count) < 0.25, codes.float64_values(dst, targets), middle)
        value *= rng.choice([-1.0, 1.0], count)
        at = codes.ordinal(src, twin.cast_float(FORMATS["f64"], src, value.view(np.uint64), overflow="saturate").bits)
        low, high = codes.ordinal_span(src)
        around = codes.from_ordinal(src, np.clip(at + rng.integers(-2, 3, count), low, high))
    elif src.width >= 8 and dst.nan != "none" and dst.subnormals:
        around = draws.around_targets(rng, src, dst, count)
    else:
        around = plain
    return np.where(rng.random(count) < 0.75, around, plain)


def raw(fmt: Format, bits: Bits) -> list[int]:
    if fmt.storage == WIDE:
        return [int(row["hi"]) << 64 | int(row["lo"]) for row in bits]
    return [int(code) for code in bits]


def with_signs(fmt: Format, bits: Bits) -> list[tuple[Any, bool]]:
    signs = codes.is_negative(fmt, bits).tolist()
    return list(zip((value_of(fmt, code) for code in raw(fmt, bits)), signs, strict=True))


def test_twin_on_integers_times_powers_of_two(rng: np.random.Generator) -> None:
    """Significands of any length up to 64 bits, any exponent, with and without a little more."""
    count = 80
    for dst in FLOATS:
        sig = rng.integers(0, 2**64, count, dtype=np.uint64) >> rng.integers(0, 64, count, dtype=np.uint64)
        sig[:4] = [0, 1, 2**64 - 1, 2**63]
        low, high = dst.quantum_exponent - 70, dst.max_exponent + 4
        exp = rng.integers(low, high, count).astype(np.int32)
        sign = rng.integers(0, 2, count).astype(bool)
        # A little more than an integer needs an integer longer than the precision.
        more = (sig >> np.uint64(dst.precision + 1) != 0) & rng.integers(0, 2, count).astype(bool)
        exact = [
            ((-1) ** s * (value_of_scaled(n, e) + m * value_of_scaled(1, e - 9)), s)
            for n, e, s, m in zip(sig.tolist(), exp.tolist(), sign.tolist(), more.tolist(), strict=True)
        ]
        for mode in MODES:
            for overflow in OVERFLOWS:
                rounded = twin.round_array(dst, sign, sig, exp, sticky=more, mode=mode, overflow=overflow)
                assert_rounded(rounded, dst, exact, mode, overflow)


@each("dst", FLOATS)
def test_float_casts_follow_the_definition(dst: Format, rng: np.random.Generator) -> None:
    for src in FLOATS:
        bits = near(rng, src, dst, 40)
        exact = with_signs(src, bits)
        for mode in MODES:
            rounded = twin.cast_float_generic(src, dst, bits, mode=mode)
            assert_rounded(rounded, dst, exact, mode, "infinity")
        for overflow in OVERFLOWS:
            rounded = twin.cast_float(src, dst, bits, overflow=overflow)
            assert_rounded(rounded, dst, exact, "nearest_even", overflow)


@each("src", INTS)
def test_int_to_float_casts_follow_the_definition(src: Format, rng: np.random.Generator) -> None:
    for dst in FLOATS:
        bits = near(rng, src, dst, 40)
        exact = with_signs(src, bits)
        for mode in MODES:
            assert_rounded(twin.cast_int_to_float_generic(src, dst, bits, mode=mode), dst, exact, mode, "infinity")
        assert_rounded(twin.cast_int_to_float(src, dst, bits), dst, exact, "nearest_even", "infinity")


@each("dst", INTS)
def test_float_to_int_casts_follow_the_definition(dst: Format, rng: np.random.Generator) -> None:
    for src in FLOATS:
        bits = near(rng, src, dst, 100)
        if src.width >= 32:
            # Around the ends of the range too: from one below the least to one above the greatest.
            ends = [dst.min_int - 1, dst.min_int, dst.max_int, dst.max_int + 1]
            at = np.array([round_exact(src, Fraction(end), overflow="saturate") for end in ends], src.storage)
            bits = np.concatenate([bits, at, codes.next_up(src, at), codes.next_down(src, at)])
        expected = []
        for value, _ in with_signs(src, bits):
            try:
                code = None if isinstance(value, str) else round_exact(dst, value, mode="toward_zero")
            except OverflowError:
                code = None
            expected.append((code or 0, code is not None))
        for cast in (twin.cast_float_to_int, twin.cast_float_to_int_generic):
            got, legal = cast(src, dst, bits)
            assert got.dtype == dst.storage
            assert list(zip(raw(dst, got), legal.tolist(), strict=True)) == expected


# Arithmetic, from the rules of IEEE 754 clauses 6 and 7 over rationals.


def exact_sum(a: Any, sign_a: bool, b: Any, sign_b: bool) -> tuple[Any, bool]:
    infinite = isinstance(a, str), isinstance(b, str)
    if all(infinite) and sign_a != sign_b:
        return "nan", False
    if any(infinite):
        return "inf", sign_a if infinite[0] else sign_b
    total = a + b
    return total, total < 0 or (total == 0 and sign_a and sign_b)


def exact_product(a: Any, sign_a: bool, b: Any, sign_b: bool) -> tuple[Any, bool]:
    sign = sign_a != sign_b
    if isinstance(a, str) or isinstance(b, str):
        return ("nan", False) if a == 0 or b == 0 else ("inf", sign)
    return a * b, sign


def exact_quotient(a: Any, sign_a: bool, b: Any, sign_b: bool) -> tuple[Any, bool]:
    sign = sign_a != sign_b
    if isinstance(a, str):
        return ("nan", False) if isinstance(b, str) else ("inf", sign)
    if isinstance(b, str):
        return Fraction(0), sign
    if b == 0:
        return ("nan", False) if a == 0 else ("inf", sign)
    return a / b, sign


def exact_root(a: Any, sign_a: bool) -> tuple[Any, bool]:
    """A rational that rounds as the root does: exact, or odd in the last of many places."""
    if a == 0:
        return a, sign_a
    if sign_a:
        return "nan", False
    if isinstance(a, str):
        return "inf", False
    places = 1300
    scaled = (a.numerator << 2 * places) // a.denominator
    root = isqrt(scaled)
    inexact = root * root * a.denominator != a.numerator << 2 * places
    return Fraction(2 * root + inexact, 1 << places + 1), False


def exact_fused(a: Any, sign_a: bool, b: Any, sign_b: bool, c: Any, sign_c: bool) -> tuple[Any, bool]:
    product, sign = exact_product(a, sign_a, b, sign_b)
    return ("nan", False) if product == "nan" else exact_sum(product, sign, c, sign_c)


EXACT: dict[str, Callable[..., tuple[Any, bool]]] = {
    "add": exact_sum,
    "sub": lambda a, sign_a, b, sign_b: exact_sum(a, sign_a, b if isinstance(b, str) else -b, not sign_b),
    "mul": exact_product,
    "div": exact_quotient,
    "sqrt": exact_root,
    "fma": lambda a, sa, b, sb, c, sc: (
        exact_sum(*exact_product(a, sa, b, sb), c, sc)
        if "nan" not in (exact_product(a, sa, b, sb)[0],)
        else ("nan", False)
    ),
}


def reference(op: str, fmt: Format, args: tuple[Bits, ...]) -> list[tuple[Any, bool]]:
    columns = [with_signs(fmt, bits) for bits in args]
    out = []
    for row in zip(*columns, strict=True):
        flat = [part for item in row for part in item]
        out.append(("nan", False) if "nan" in flat else EXACT[op](*flat))
    return out


def arguments(rng: np.random.Generator, op: str, fmt: Format, count: int) -> tuple[Bits, ...]:
    if fmt.width <= 8:
        arity = {"sqrt": 1, "fma": 3}.get(op, 2)
        return tuple(rng.integers(0, fmt.code_count, count).astype(fmt.storage) for _ in range(arity))
    if op == "sqrt":
        return (draws.values(rng, fmt, count),)
    return draws.triples(rng, fmt, count) if op == "fma" else draws.pairs(rng, fmt, count)


FAST: dict[str, Callable[..., twin.Rounded]] = {
    "add": twin.add,
    "sub": twin.sub,
    "mul": twin.mul,
    "div": twin.div,
    "sqrt": twin.sqrt,
    "fma": twin.fma,
}


@each("fmt", FLOATS)
@pytest.mark.parametrize("op", EXACT)
def test_arithmetic_follows_the_definition(op: str, fmt: Format, rng: np.random.Generator) -> None:
    args = arguments(rng, op, fmt, 200)
    exact = reference(op, fmt, args)
    assert_rounded(twin.arithmetic_generic(op, fmt, args), fmt, exact, "nearest_even", "infinity")
    assert_rounded(FAST[op](fmt, *args), fmt, exact, "nearest_even", "infinity")


@pytest.mark.parametrize("op", ["add", "mul", "div"])
@each("fmt", [FORMATS["f8e4m3fn"], FORMATS["f8e5m2"]])
def test_all_pairs_of_8_bit_codes(op: str, fmt: Format) -> None:
    """Against rationals, on all pairs; and float64 with one more rounding, whose proof is in `_arithmetic`."""
    every = np.arange(fmt.code_count, dtype=fmt.storage)
    a, b = np.repeat(every, len(every)), np.tile(every, len(every))
    got = FAST[op](fmt, a, b)
    values = with_signs(fmt, every)

    known: dict[Any, int] = {}

    def rounded(x: tuple[Any, bool], y: tuple[Any, bool]) -> int:
        value, sign = ("nan", False) if "nan" in (x[0], y[0]) else EXACT[op](*x, *y)
        # Rationals hash slowly, their parts do not.
        key = (value if isinstance(value, str) else value.as_integer_ratio(), sign)
        if key not in known:
            known[key], *_ = promised(fmt, value, sign, "nearest_even", "infinity")
        return known[key]

    expected = [rounded(x, y) for x in values for y in values]
    assert got.bits.tolist() == expected
    in_f64 = hardware.arithmetic_in_f64(op, tuple(codes.float64_values(fmt, bits) for bits in (a, b)))
    assert np.array_equal(twin.cast_float_generic(FORMATS["f64"], fmt, in_f64.view(np.uint64)).bits, got.bits)


# Every shorter path against the generic one, in bulk.


def assert_same(fast: twin.Rounded, generic: twin.Rounded) -> None:
    assert np.array_equal(fast.bits, generic.bits)
    assert np.array_equal(fast.flags, generic.flags)


@each("fmt", FLOATS)
@pytest.mark.parametrize("op", EXACT)
def test_arithmetic_paths_agree(op: str, fmt: Format, rng: np.random.Generator) -> None:
    args = arguments(rng, op, fmt, BULK)
    assert_same(FAST[op](fmt, *args), twin.arithmetic_generic(op, fmt, args))


@each("src", [FORMATS["f32"], FORMATS["f64"]])
def test_float_cast_paths_agree(src: Format, rng: np.random.Generator) -> None:
    for dst in FLOATS:
        bits = near(rng, src, dst, BULK)
        for mode in MODES:
            assert_same(twin.cast_float(src, dst, bits, mode=mode), twin.cast_float_generic(src, dst, bits, mode=mode))
        for overflow in OVERFLOWS:
            assert_same(
                twin.cast_float(src, dst, bits, overflow=overflow),
                twin.cast_float_generic(src, dst, bits, overflow=overflow),
            )
    for dst in INTS:
        bits = near(rng, src, dst, BULK)
        fast, generic = twin.cast_float_to_int(src, dst, bits), twin.cast_float_to_int_generic(src, dst, bits)
        assert np.array_equal(fast[0], generic[0])
        assert np.array_equal(fast[1], generic[1])


@each("src", [FORMATS["i32"], FORMATS["u32"]])
def test_int_cast_paths_agree(src: Format, rng: np.random.Generator) -> None:
    for dst in FLOATS:
        bits = near(rng, src, dst, BULK)
        for mode in MODES:
            assert_same(
                twin.cast_int_to_float(src, dst, bits, mode=mode),
                twin.cast_int_to_float_generic(src, dst, bits, mode=mode),
            )


@each("dst", [FORMATS[name] for name in ("f16", "bf16", "f8e4m3fn", "f8e5m2")])
def test_f32_upper_halves_exhaustively(dst: Format) -> None:
    """All upper halves of f32 with the lower halves that decide: zero, one, just below, at and above a half, ones."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    for lower in (0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        bits = upper | np.uint32(lower)
        fast = twin.cast_float(FORMATS["f32"], dst, bits)
        assert np.array_equal(fast.bits, twin.cast_float_generic(FORMATS["f32"], dst, bits).bits)


# The host's state.


@contextmanager
def float_environment(change: Callable[[bytearray], None]) -> Iterator[None]:
    """The thread's floating-point environment, changed by poking the bytes that C's fegetenv gives."""
    libm = ctypes.CDLL("libm.so.6")
    saved = ctypes.create_string_buffer(64)
    assert libm.fegetenv(saved) == 0
    poked = bytearray(saved.raw)
    change(poked)
    try:
        assert libm.fesetenv(ctypes.create_string_buffer(bytes(poked), 64)) == 0
        yield
    finally:
        libm.fesetenv(saved)


def set_bits(offset: int, mask: int) -> Callable[[bytearray], None]:
    def change(environment: bytearray) -> None:
        word = int.from_bytes(environment[offset : offset + 4], "little") | mask
        environment[offset : offset + 4] = word.to_bytes(4, "little")

    return change


STATES = {
    # MXCSR is the last word of glibc's fenv_t: DAZ is bit 6, FTZ bit 15, rounding bits 13 and 14.
    "x86_64": {
        "operands flushed": set_bits(28, 1 << 6),
        "results flushed": set_bits(28, 1 << 15),
        "down": set_bits(28, 1 << 13),
        "up": set_bits(28, 2 << 13),
        "toward zero": set_bits(28, 3 << 13),
    },
    # FPCR is the first word: FZ is bit 24, rounding bits 22 and 23.
    "aarch64": {
        "flushed": set_bits(0, 1 << 24),
        "up": set_bits(0, 1 << 22),
        "down": set_bits(0, 2 << 22),
        "toward zero": set_bits(0, 3 << 22),
    },
}.get(platform.machine(), {})


@pytest.mark.parametrize("state", STATES or ["no state is known for this processor"])
def test_results_do_not_depend_on_the_state_of_the_host(state: str, rng: np.random.Generator) -> None:
    """A changed state is noticed, and the same results come from integers."""
    if not STATES:
        pytest.skip(f"how to change the state of a {platform.machine()} is not known here")
    f16, f32, f64 = (FORMATS[name] for name in ("f16", "f32", "f64"))
    pair = draws.pairs(rng, f32, 512)
    long = draws.triples(rng, f64, 512)
    narrow = draws.around_targets(rng, f64, f16, 512)

    def results() -> list[Bits]:
        out = [FAST[op](f32, *pair).bits for op in ("add", "sub", "mul", "div")]
        out += [twin.sqrt(f32, pair[0]).bits, twin.div(f64, *long[:2]).bits, twin.sqrt(f64, long[0]).bits]
        out += [twin.fma(f64, *long).bits, twin.fma(f32, *pair, pair[0]).bits]
        out += [twin.cast_float(f64, dst, narrow).bits for dst in (f16, f32)]
        return [*out, twin.cast_float(f32, f16, pair[0]).bits, twin.cast_float_to_int(f32, FORMATS["i8"], pair[0])[0]]

    assert hardware.trusted()
    usual = results()
    with float_environment(STATES[state]):
        noticed = not hardware.in_default_state()
        changed = results()
    assert noticed
    for before, after in zip(usual, changed, strict=True):
        assert np.array_equal(before, after)
    assert hardware.trusted()


def test_no_warning_escapes(rng: np.random.Generator) -> None:
    """Overflow, invalid operations and conversions of NaN are the daily bread here."""
    with np.errstate(all="raise"):
        for fmt in (FORMATS["f32"], FORMATS["f64"], FORMATS["f16"]):
            bits = draws.values(rng, fmt, 512)
            for op, function in FAST.items():
                function(fmt, *((bits,) * {"sqrt": 1, "fma": 3}.get(op, 2))).flags  # noqa: B018
            for dst in FORMATS.values():
                if dst.is_float:
                    twin.cast_float(fmt, dst, bits).flags  # noqa: B018
                else:
                    twin.cast_float_to_int(fmt, dst, bits)
