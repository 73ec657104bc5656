"""The slow path of functions: three sources agree bit for bit, and the facts that are known hold.

With ``HALFULP_DEEP`` set the agreement is tested on a million operands for each function instead of a thousand; a
number above 1 in it is taken as the count.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from function_sources import UNARY, disagreements, drawn, operands, shared_out

from halfulp.oracle import codes, functions
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.functions import arb_ball, enclosure, extended, nearest, nearest_by_mpmath, nearest_many, ziv
from halfulp.oracle.functions.record import argument
from halfulp.oracle.ops.function_points import F32_CODES
from halfulp.oracle.rounding import MODES, power_of_two, round_exact, value_of

FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2")
DEEP = os.environ.get("HALFULP_DEEP", "")
COUNT = int(DEEP) if DEEP.isdigit() and int(DEEP) > 1 else 1_000_000 if DEEP else 1_000
F32, F64 = FORMATS["f32"], FORMATS["f64"]


@pytest.mark.parametrize("name", UNARY)
def test_three_sources_agree(name: str) -> None:
    for dtype, found in shared_out(name, COUNT).items():
        assert not disagreements(name, FORMATS[dtype], found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", UNARY)
def test_directed_rounding_agrees(name: str, mode: Any) -> None:
    for dtype in FLOATS:
        fmt = FORMATS[dtype]
        for code in operands(name, fmt, 20)[::7]:
            assert nearest(name, fmt, code, mode=mode) == nearest_by_mpmath(name, fmt, code, mode=mode), fmt.hex(code)


@pytest.mark.parametrize("name", UNARY)
def test_a_rounded_value_is_within_the_enclosure(name: str) -> None:
    """Enclosures, balls, cut-off values and directed results are four views of one number."""
    for fmt in (F32, F64):
        for code in operands(name, fmt, 60):
            x = argument(fmt, code)
            known = functions.FUNCTIONS[name].known(x)
            if x.kind != "number" or isinstance(known, str) or (isinstance(known, tuple) and known.high is None):
                continue
            low, high = enclosure(name, fmt, code, 90)
            assert low <= high
            middle = (low + high) / 2
            if low and high:
                assert high - low <= abs(middle) * power_of_two(-89)
                ball = ziv.ball_bounds(arb_ball(name, x.value, 120))
                assert ball is None or (ball[0] <= high and low <= ball[1])
            cut = extended(name, fmt, code)
            if cut.kind != "number":
                assert cut.kind == "huge"
                continue
            unit = power_of_two(cut.exponent)
            assert cut.significand * unit <= max(abs(low), abs(high))
            assert (cut.significand + 1) * unit >= min(abs(low), abs(high))
            assert cut.negative == (middle < 0)
            assert cut.exact == (low == high == (-1) ** cut.negative * cut.significand * unit)


def test_extended_has_32_bits_more_than_the_format() -> None:
    for code in (0x3F000000, 0x3EFD81AD, 0x42000000):
        assert extended("log1p", F32, code).significand.bit_length() == 24 + 32
    smallest = extended("erfc", F32, 0x4120DDFB)
    assert smallest.exponent == F32.quantum_exponent - 32
    assert extended("exp2", F64, 0x7E37E43C8800759C).kind == "huge"
    assert extended("asin", F32, 0x40000000).kind == "nan"
    assert extended("erfc", F32, 0xFF800000) == ("number", False, 1 << 55, -54, True)


# Special values: the rows of the clauses.

INF, NAN = "inf", "nan"


def code_of(fmt: Format, value: float | str) -> int:
    match value:
        case "inf":
            return fmt.infinity_bits
        case "-inf":
            return fmt.infinity_bits | fmt.sign_mask
        case "nan":
            return fmt.nan_bits
        case _:
            return round_exact(fmt, Fraction(value), negative_zero=str(value).startswith("-"))


ROWS: dict[str, list[tuple[float | str, float | str]]] = {
    "lgamma": [
        *((1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-1.0, INF), (-2.0, INF), (-64.0, INF)),
        *((INF, INF), ("-inf", INF), (NAN, NAN)),
    ],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), ("-inf", NAN), (NAN, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, "-inf"), (-1.5, NAN), ("-inf", NAN), (INF, INF), (NAN, NAN)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), ("-inf", 2.0), (NAN, NAN)],
    "i0": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), ("-inf", INF), (NAN, NAN)],
    "exp2": [
        (0.0, 1.0),
        (-0.0, 1.0),
        (INF, INF),
        ("-inf", 0.0),
        (NAN, NAN),
        (3.0, 8.0),
        (-1.0, 0.5),
        (-14.0, 2.0**-14),
    ],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), ("-inf", -1.0), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "f8e5m2"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, dtype: str) -> None:
    fmt = FORMATS[dtype]
    for x, expected in ROWS[name]:
        code = code_of(fmt, x)
        assert nearest(name, fmt, code) == nearest_by_mpmath(name, fmt, code) == code_of(fmt, expected), (name, x)


@pytest.mark.parametrize("name", UNARY)
def test_every_nan_gives_nan(name: str) -> None:
    for code in (0x7F800001, 0x7FC00000, 0xFFC12345):
        assert nearest(name, F32, code) == F32.nan_bits


def test_symmetries() -> None:
    for name, even in (("i0", True), ("asin", False), ("tanh", False)):
        for code in drawn(name, F32, 200, seed=5):
            flipped, result = nearest(name, F32, code ^ F32.sign_mask), nearest(name, F32, code)
            if result != F32.nan_bits:
                assert flipped == (result if even else result ^ F32.sign_mask)


# Facts that are known from exhaustive runs of others, and astronomic operands.


def test_known_facts() -> None:
    one, largest, infinity = 0x3F800000, F32.max_finite_bits, F32.infinity_bits
    assert nearest("i0", F32, 0x39FFFFFF) == one < nearest("i0", F32, 0x3A000000)
    assert nearest("i0", F32, 0x42B7CD31) <= largest
    assert nearest("i0", F32, 0x42B7CD32) == infinity
    assert nearest("lgamma", F32, 0x7C44AF8D) <= largest
    assert nearest("lgamma", F32, 0x7C44AF8E) == infinity
    assert nearest("erfc", F32, 0x41131CDF) >= F32.min_normal_bits > nearest("erfc", F32, 0x41131CE0)
    assert nearest("erfc", F32, 0x4120DDFB) == 1
    assert nearest("erfc", F32, 0x4120DDFC) == 0
    assert nearest("tanh", F32, 0x41102CB2) == one - 1
    assert nearest("tanh", F32, 0x41102CB4) == one


@pytest.mark.parametrize(("name", "code"), [("erfc", 0xB76C9F62), ("log1p", 0x3EFD81AD), ("exp2", 0xBCF3A937)])
def test_hard_to_round(name: str, code: int) -> None:
    """2^-32 ulp or less from a midpoint, so 56 bits decide nothing."""
    low, high = enclosure(name, F32, code, 150)
    rounded = nearest(name, F32, code)
    neighbours = [rounded - 1, rounded + 1]
    middles = [(value_of(F32, rounded) + value_of(F32, other)) / 2 for other in neighbours]  # type: ignore[operator]
    ulp = power_of_two(int(codes.ulp_exponent(F32, np.array([rounded], np.uint32))[0]))
    assert min(abs(low - middle) for middle in middles) < ulp * power_of_two(-32)
    assert all(not low <= middle <= high for middle in middles)
    assert code in F32_CODES[name]


def test_astronomic_operands() -> None:
    def at(name: str, value: float) -> int:
        return nearest(name, F64, code_of(F64, value))

    infinity, one = F64.infinity_bits, 0x3FF0000000000000
    assert at("exp2", 1e300) == at("i0", -1e300) == at("lgamma", 1e307) == infinity
    assert at("exp2", -1e300) == at("erfc", 1e300) == 0
    assert at("erfc", -1e300) == 0x4000000000000000
    assert at("tanh", -1e300) == one | F64.sign_mask
    assert at("lgamma", -4503599627370495.5) == nearest_by_mpmath("lgamma", F64, code_of(F64, -4503599627370495.5))
    assert at("exp2", -1074.5) == 1
    assert at("log1p", 5e-324) == at("asin", 5e-324) == at("tanh", 5e-324) == 1
    assert nearest("erfc", F64, code_of(F64, -1e300), mode="down") == 0x3FFFFFFFFFFFFFFF
    assert nearest("exp2", F64, code_of(F64, -1e300), mode="up") == 1
    assert nearest("tanh", F64, 1, mode="toward_zero") == 0
    assert nearest("asin", F64, 1, mode="up") == 2
    assert nearest("log1p", F64, 1 | F64.sign_mask, mode="down") == 2 | F64.sign_mask


def test_quotients_are_those_of_ordinary_division() -> None:
    from halfulp.oracle import rounding_array

    rng = np.random.default_rng(3)
    for dtype in ("f32", "f16", "f8e5m2"):
        fmt = FORMATS[dtype]
        a, b = (np.frombuffer(rng.bytes(fmt.storage.itemsize * 400), fmt.storage) for _ in range(2))
        assert (nearest_many("fdiv", fmt, a, b) == rounding_array.div(fmt, a, b).bits).all()


def test_an_allowance_that_is_too_small_is_noticed() -> None:
    """The loop goes on while the candidates round apart: a ball of 40 bits decides no hard-to-round f32 operand."""
    x = argument(F32, 0xB76C9F62)
    erfc = functions.FUNCTIONS["erfc"]
    bounds = ziv.mpmath_bounds(erfc, (x.value,), 60)
    assert ziv.decided(F32, bounds, "nearest_even") is None
    bounds = ziv.mpmath_bounds(erfc, (x.value,), 120)
    assert ziv.decided(F32, bounds, "nearest_even") == nearest("erfc", F32, 0xB76C9F62)
