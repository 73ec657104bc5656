"""The rules of functions against their definition, one result at a time in rational arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from halfulp.certify.sweep.judges import Enclosures
from halfulp.oracle import codes, functions, hardware, rounding_array, typing
from halfulp.oracle.bulk import TARGETS
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.functions import source
from halfulp.oracle.functions.record import argument
from halfulp.oracle.functions.source import SlowPath
from halfulp.oracle.judge import judge
from halfulp.oracle.kernel import Apply, Input, Kernel, Type, one_node
from halfulp.oracle.ops import OPERATIONS, Accepted, Refused, Signature, approximate, signatures
from halfulp.oracle.ops.functions import RULES, Rule
from halfulp.oracle.ops.record import Attrs
from halfulp.oracle.rounding import power_of_two, round_exact, value_of
from halfulp.oracle.sets import Verdict
from halfulp.oracle.source import Call, Parameter, Source

A, N, U, F = Verdict.ALLOWED, Verdict.NO_CLAIM, Verdict.UNSPECIFIED, Verdict.FORBIDDEN
F32, F64 = FORMATS["f32"], FORMATS["f64"]
NAMES = ("lgamma", "asin", "log1p", "erfc", "i0", "exp2", "tanh", "fdiv")
APPROXIMATE: Attrs = (("approximate", True),)
FLUSHING: Attrs = (("approximate", True), ("flush_to_zero", True))


def signature(name: str, dtype: str, attrs: Attrs = ()) -> Signature:
    return Signature(name, (dtype,) * OPERATIONS[name].arity, dtype, attrs)


def verdicts(sig: Signature, operands: tuple[int, ...], got: list[int]) -> list[int]:
    fmt = sig.result_format
    arrays = [np.full(len(got), operand, fmt.storage) for operand in operands]
    return list(OPERATIONS[sig.op].allowed(sig, arrays).judge(np.array(got, fmt.storage)))


# Reading 1, as it is written.


def value_at(fmt: Format, position: int) -> Fraction:
    """The number at a position: a magnitude code with an unbounded exponent, signed, the zeros being one point."""
    size = abs(position)
    field = max(size >> fmt.fraction_bits, 1)
    significand = size - ((field - 1) << fmt.fraction_bits)
    value = significand * power_of_two(field - fmt.bias - fmt.fraction_bits)
    return -value if position < 0 else value


def position_of(fmt: Format, code: int) -> int:
    return -(code & fmt.magnitude_mask) if code & fmt.sign_mask else code


def ulp_at(fmt: Format, position: int) -> Fraction:
    return power_of_two(max(abs(position) >> fmt.fraction_bits, 1) - fmt.bias - fmt.fraction_bits)


def steps_and_distance(fmt: Format, exact: int, got: int) -> tuple[int, Fraction]:
    """Steps, and the distance in ulp of the rounded result. Infinity is the nearest point from 2^(emax+1) on."""
    at = position_of(fmt, got)
    if abs(at) == fmt.infinity_bits and at * exact > 0:
        at = max(abs(at), abs(exact)) * (1 if at > 0 else -1)
    distance = abs(value_at(fmt, at) - value_at(fmt, exact)) / ulp_at(fmt, exact)
    return abs(at - exact), distance


def by_reading_1(fmt: Format, exact: int, got: int, bound: int) -> Verdict:
    if (got & fmt.magnitude_mask) > fmt.infinity_bits:
        return F
    counts = [count <= bound for count in steps_and_distance(fmt, exact, got)]
    return A if all(counts) else U if any(counts) else F


def unbounded(name: str, fmt: Format, *operands: int) -> int:
    size = functions.unbounded_magnitude(name, fmt, *operands)
    return -size if functions.nearest(name, fmt, *operands) & fmt.sign_mask else size


def nearby(fmt: Format, position: int, reach: int = 14) -> Iterator[int]:
    """Results around a position, the zeros, infinities, a NaN, the largest numbers."""
    top = fmt.infinity_bits
    for at in range(position - reach, position + reach + 1):
        if abs(at) <= top:
            yield at if at > 0 else -at | fmt.sign_mask
    for code in (0, top, top - 1, top - 2, 1):
        yield from (code, code | fmt.sign_mask)
    yield fmt.nan_bits


def some_operands(sig: Signature, most: int) -> list[tuple[int, ...]]:
    columns = OPERATIONS[sig.op].critical(sig)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    rng = np.random.default_rng(7)
    return [rows[i] for i in sorted(rng.permutation(len(rows))[:most].tolist())]


def stated(name: str, fmt: Format, code: int) -> bool:
    """The text states the result exactly."""
    x = argument(fmt, code)
    if x.kind != "number" or x.value == 0:
        return True
    match name:
        case "lgamma":
            return x.value in (1, 2) or (x.value < 0 and x.value.denominator == 1)
        case "asin":
            return abs(x.value) > 1
        case "log1p":
            return x.value <= -1
    return False


def only_this(fmt: Format, expected: int, got: int) -> Verdict:
    if expected == fmt.nan_bits:
        return A if (got & fmt.magnitude_mask) > fmt.infinity_bits else F
    return A if got == expected else F


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["log1p", "erfc", "i0"])
def test_bounds_of_the_text(name: str, dtype: str) -> None:
    sig, fmt = signature(name, dtype), FORMATS[dtype]
    bound = {"log1p": (1, 1), "erfc": (4, 5), "i0": (6, 6)}[name][dtype == "f64"]
    for (x,) in some_operands(sig, 60):
        nearest = functions.nearest(name, fmt, x)
        if stated(name, fmt, x):
            got = list(nearby(fmt, position_of(fmt, nearest) if nearest != fmt.nan_bits else 0))
            assert verdicts(sig, (x,), got) == [only_this(fmt, nearest, g) for g in got], fmt.hex(x)
            continue
        exact = unbounded(name, fmt, x)
        got = list(nearby(fmt, exact))
        assert verdicts(sig, (x,), got) == [by_reading_1(fmt, exact, g, bound) for g in got], fmt.hex(x)


def test_both_sides_of_a_power_of_two() -> None:
    """erfc next to 1: below a power of two the steps are half as long, above it they are twice as long."""
    sig = signature("erfc", "f32")
    x = next(x for x in range(0x33000000, 0x34800000, 4096) if functions.nearest("erfc", F32, x) == 0x3F7FFFFF)
    assert verdicts(sig, (x,), [0x3F800001, 0x3F800002, 0x3F800003, 0x3F800004]) == [A, U, U, F]
    assert verdicts(sig, (x,), [0x3F7FFFFB, 0x3F7FFFFA]) == [A, F]
    assert functions.nearest("erfc", F32, 0x31000000) == 0x3F800000
    assert verdicts(sig, (0x31000000,), [0x3F800004, 0x3F800005]) == [A, F]
    assert verdicts(sig, (0x31000000,), [0x3F7FFFFC, 0x3F7FFFFB, 0x3F7FFFF8, 0x3F7FFFF7]) == [A, U, U, F]


def test_the_overflow_edge() -> None:
    """i0 of 0x42b7cd32 is a little above the largest number: within 6 steps that number is right too."""
    sig = signature("i0", "f32")
    over = functions.unbounded_magnitude("i0", F32, 0x42B7CD32) - F32.infinity_bits
    assert over >= 0
    edge = [F32.max_finite_bits, F32.infinity_bits, F32.nan_bits]
    assert verdicts(sig, (0x42B7CD32,), edge) == [A if over < 6 else F, A, F]
    assert verdicts(sig, (0x42B7CE00,), edge) == [F, A, F]
    assert verdicts(sig, (0x7F800000,), edge) == [F, A, F]
    under = F32.infinity_bits - functions.nearest("i0", F32, 0x42B7CD31)
    assert verdicts(sig, (0x42B7CD31,), [F32.infinity_bits]) == [A if under <= 6 else F]


# Reading 9.


def by_reading_9(name: str, fmt: Format, x: int, exact: int, got: int) -> Verdict | None:
    """None next to the limit, where the rounded value does not tell."""
    bound = {"lgamma": (6, 4), "asin": (2, 2), "exp2": (2, 1), "tanh": (2, 1)}[name][fmt.width == 64]
    if (got & fmt.magnitude_mask) > fmt.infinity_bits:
        return F
    at = position_of(fmt, got)
    if name != "lgamma" and at and (at > 0) != (not functions.nearest(name, fmt, x) & fmt.sign_mask):
        return F
    if name == "asin" and abs(at) > functions.nearest("asin", fmt, fmt.bias << fmt.fraction_bits):
        return F
    if name == "asin" and fmt.width == 64 and abs(at - exact) > 1 << 20:
        return F
    table = by_reading_1(fmt, exact, got, bound)
    if table is not F:
        return table
    if abs(at) == fmt.infinity_bits and at * exact > 0:
        at = max(abs(at), abs(exact))
    low, high = functions.enclosure(name, fmt, x, 100)
    value = (low + high) / 2
    limit = max(abs(value), Fraction(1, 64)) / 64
    error = abs(value_at(fmt, at) - value)
    if abs(error - limit) <= 4 * max(ulp_at(fmt, at), ulp_at(fmt, exact)):
        return None
    return U if error <= limit else F


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["lgamma", "asin", "exp2", "tanh"])
def test_functions_without_a_bound(name: str, dtype: str) -> None:
    sig, fmt = signature(name, dtype), FORMATS[dtype]
    rng = np.random.default_rng(3)
    for (x,) in some_operands(sig, 60):
        nearest = functions.nearest(name, fmt, x)
        if stated(name, fmt, x):
            got = list(nearby(fmt, position_of(fmt, nearest) if nearest != fmt.nan_bits else 0))
            assert verdicts(sig, (x,), got) == [only_this(fmt, nearest, g) for g in got], fmt.hex(x)
            continue
        exact = unbounded(name, fmt, x)
        if exact >= functions.ziv.unbounded(fmt).infinity_bits:
            assert verdicts(sig, (x,), [fmt.infinity_bits, fmt.max_finite_bits]) == [A, F]
            continue
        binade = 1 << fmt.fraction_bits
        far = [exact + int(d) for d in rng.uniform(-binade / 20, binade / 20, 20)]
        far += [exact + (1 << 20) + k for k in (-1, 0, 1)] + [exact - (1 << 20) + k for k in (-1, 0, 1)]
        flat = [round_exact(fmt, Fraction(v)) for v in rng.uniform(-(2.0**-10), 2.0**-10, 20).tolist()]
        far_codes = [p if p >= 0 else -p | fmt.sign_mask for p in far if abs(p) <= fmt.infinity_bits]
        got = [*nearby(fmt, exact), *far_codes, *flat]
        for g, verdict in zip(got, verdicts(sig, (x,), got), strict=True):
            expected = by_reading_9(name, fmt, x, exact, g)
            assert expected is None or verdict == expected, (fmt.hex(x), fmt.hex(g))


def test_asin_is_at_most_a_right_angle() -> None:
    for dtype, most in (("f32", 0x3FC90FDB), ("f64", 0x3FF921FB54442D18), ("f16", 0x3E48), ("bf16", 0x3FC9)):
        fmt = FORMATS[dtype]
        one = fmt.bias << fmt.fraction_bits
        for x in (one, one - 1):
            assert max(verdicts(signature("asin", dtype), (x,), [most + 1, most + 2])) == F
        assert verdicts(signature("asin", dtype), (one,), [most, most + 1, most | fmt.sign_mask]) == [A, F, F]
    assert verdicts(signature("asin", "f8e4m3fn"), (0x38,), [0x3D]) == [A]  # 1.625


def test_an_f64_asin_of_f32_accuracy_is_a_breach() -> None:
    x = 0x3FE0000000000000
    right = functions.nearest("asin", F64, x)
    single = int(np.array([np.float64(np.float32(np.arcsin(0.5)))]).view(np.uint64)[0])
    assert verdicts(signature("asin", "f64"), (x,), [right, single]) == [A, F]


# Reading 10.


def image(rule: Rule, fmt: Format, x: int) -> tuple[set[int], bool]:
    """The results of a shorter format by way of f32, enumerated, and whether one of them is not legal."""
    wide = round_exact(F32, value) if isinstance(value := value_of(fmt, x), Fraction) else None
    assert wide is not None
    exact = unbounded(rule.name, F32, wide)
    found, illegal = set(), False
    for got in range(exact - 2 * rule.bounds[0], exact + 2 * rule.bounds[0] + 1):
        code = min(abs(got), F32.infinity_bits) | (F32.sign_mask if got < 0 else 0)
        if by_reading_1(F32, exact, code, rule.bounds[0]) is not A:
            continue
        single = value_of(F32, code)
        for negative in (False, True) if single == 0 else (code & F32.sign_mask != 0,):
            sign = fmt.sign_mask if negative else 0
            if not isinstance(single, Fraction):
                illegal |= not fmt.infinity
                found.add(sign | (fmt.infinity_bits if fmt.infinity else 0))
            elif not fmt.infinity and abs(single) > 448:
                illegal = True
            else:
                found.add(sign | round_exact(fmt, abs(single)))
    return found, illegal


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3fn", "f8e5m2"])
@pytest.mark.parametrize("name", ["log1p", "erfc", "i0"])
def test_lower_precision_is_the_image_of_f32(name: str, dtype: str) -> None:
    fmt, rule = FORMATS[dtype], RULES[name]
    step = 3 if fmt.width == 8 else 1013
    for x in range(0, fmt.code_count, step):
        kind = argument(fmt, x).kind
        if kind != "number" or stated(name, fmt, x):
            continue
        found, illegal = image(rule, fmt, x)
        got = list(range(256)) if fmt.width == 8 else sorted({c ^ k for c in found for k in range(8)})
        answers = verdicts(signature(name, dtype), (x,), got)
        if illegal:
            assert set(answers) == {N}
        else:
            assert {g for g, v in zip(got, answers, strict=True) if v == A} == found, fmt.hex(x)


@pytest.mark.parametrize("name", RULES)
def test_the_nearest_result_below_f32_is_rounded_once(name: str) -> None:
    for dtype in ("f16", "bf16", "f8e5m2"):
        fmt = FORMATS[dtype]
        bits = np.arange(0, fmt.code_count, 97 if fmt.width == 16 else 1).astype(fmt.storage)
        found = OPERATIONS[name].allowed(signature(name, dtype), [bits])
        assert (found.nearest == functions.nearest_many(name, fmt, bits)).all()
        assert not found.judge(found.nearest).any()


@pytest.mark.parametrize(("name", "x"), [("erfc", 0x0B17), ("erfc", 0x8F17), ("log1p", 0x1E03), ("exp2", 0x11C5)])
def test_where_rounding_by_way_of_f32_rounds_twice(name: str, x: int) -> None:
    """The f32 result is a midpoint of f16. Both roundings are allowed, since f32 has an error; one is nearest."""
    fmt = FORMATS["f16"]
    (wide,) = rounding_array.cast_float(fmt, F32, np.array([x], np.uint16)).bits.tolist()
    single = np.array([functions.nearest(name, F32, wide)], np.uint32)
    twice = int(rounding_array.cast_float(F32, fmt, single).bits[0])
    once = functions.nearest(name, fmt, x)
    assert twice != once
    assert verdicts(signature(name, "f16"), (x,), [once, twice]) == [A, A]
    operand = [np.array([x], np.uint16)]
    assert OPERATIONS[name].allowed(signature(name, "f16"), operand).nearest[0] == once


def test_quotients_beyond_the_range() -> None:
    """Positions beyond the largest number: the vectorised count against the exact quotient."""
    rng = np.random.default_rng(11)
    b = (0x00800000 + rng.integers(0, 1 << 28, 600)).astype(np.uint32)
    scale = np.ldexp(rng.uniform(0.9999999, 1.000001, 600), 128)
    a = (np.minimum(scale * b.view(np.float32).astype(np.float64), 3.4e38)).astype(np.float32).view(np.uint32)
    nearest = rounding_array.div(F32, a, b).bits
    found = approximate.quotient_magnitude(a, b, nearest).tolist()
    assert sum(position >= F32.infinity_bits for position in found) > 100
    assert found == [
        functions.unbounded_magnitude("fdiv", F32, *row) for row in zip(a.tolist(), b.tolist(), strict=True)
    ]


def test_no_claim_where_f8e4m3fn_cannot_say() -> None:
    assert verdicts(signature("lgamma", "f8e4m3fn"), (0x00,), [0x7E]) == [N]
    assert verdicts(signature("log1p", "f8e4m3fn"), (0xB8,), [0xFE]) == [N]
    assert verdicts(signature("exp2", "f8e4m3fn"), (0x51,), [0x7E]) == [N]  # 2^9
    assert verdicts(signature("exp2", "f8e4m3fn"), (0x50,), [0x78, 0x7E]) == [A, F]  # 2^8
    assert verdicts(signature("asin", "f8e4m3fn"), (0x7F,), [0x7F, 0x00]) == [A, F]


# Approximate operations.


def exp2_definition(x: int, got: int, flush: bool) -> Verdict:
    """reading:11, by trying every result before the flush."""
    size = x & ~F32.sign_mask
    if flush and size < F32.min_normal_bits:
        x &= F32.sign_mask
    if stated("exp2", F32, x):
        return only_this(F32, functions.nearest("exp2", F32, x), got)
    exact = unbounded("exp2", F32, x)
    if not flush:
        return by_reading_1(F32, exact, got, 2)
    best = F
    for before in nearby(F32, exact):
        small = before & ~F32.sign_mask
        after = before & F32.sign_mask if small < F32.min_normal_bits else before
        if after == got:
            best = min(best, by_reading_1(F32, exact, before, 2), key=int)
    return best


@pytest.mark.parametrize("attrs", [APPROXIMATE, FLUSHING], ids=["keep", "flush"])
def test_approximate_exp2(attrs: Attrs) -> None:
    sig = signature("exp2", "f32", attrs)
    edge = [0xC2FC0000 + k for k in range(-40, 40, 3)]  # around -126
    for (x,) in [*some_operands(sig, 80), *((e,) for e in edge)]:
        exact = unbounded("exp2", F32, x) if argument(F32, x).kind != "nan" else 0
        got = [*nearby(F32, min(exact, F32.infinity_bits + 30)), 0x007FFFFF, 0x00800000, 0x00800001, 0x00800002]
        expected = [exp2_definition(x, g, attrs == FLUSHING) for g in got]
        assert verdicts(sig, (x,), got) == expected, F32.hex(x)


def test_flushing_at_the_smallest_normal_number() -> None:
    sig = signature("exp2", "f32", FLUSHING)
    assert verdicts(sig, (0xC2FC0000,), [0x00800000, 0x00000000, 0x007FFFFF, 0x80000000]) == [A, A, F, F]
    assert verdicts(sig, (0xC2FE0000,), [0x00000000, 0x00400000, 0x80000000]) == [A, F, F]
    assert verdicts(sig, (0x80000001,), [0x3F800000, 0x3F800001, 0x3F7FFFFF]) == [A, F, F]
    kept = signature("exp2", "f32", APPROXIMATE)
    assert verdicts(kept, (0xC2FE0000,), [functions.nearest("exp2", F32, 0xC2FE0000), 0]) == [A, F]
    assert verdicts(kept, (0x80000001,), [0x3F800000, 0x3F800001]) == [A, A]


@pytest.mark.parametrize("x", [0x3F000000, 0xBF000000, 0x40A00000, 0x3A800000, 0x00800000, 0x80800001, 0x20000000])
def test_approximate_tanh(x: int) -> None:
    sig = signature("tanh", "f32", APPROXIMATE)
    low, high = functions.enclosure("tanh", F32, x, 150)
    exact = abs(low + high) / 2
    centre = functions.nearest("tanh", F32, x)
    got = [centre + k for k in range(-9000, 9000) if 0 < (centre & ~F32.sign_mask) + k < F32.infinity_bits]
    for g, verdict in zip(got, verdicts(sig, (x,), got), strict=True):
        error = abs(value_at(F32, g & ~F32.sign_mask) - exact)
        assert verdict == (A if error * 2048 <= exact else F), F32.hex(g)
    others = [0, F32.sign_mask, centre ^ F32.sign_mask, F32.infinity_bits, F32.nan_bits]
    assert verdicts(sig, (x,), others) == [F] * 5


def test_approximate_tanh_of_special_and_subnormal_operands() -> None:
    sig = signature("tanh", "f32", APPROXIMATE)
    assert verdicts(sig, (0x00000000,), [0x00000000, 0x80000000, 1]) == [A, F, F]
    assert verdicts(sig, (0x80000000,), [0x80000000, 0x00000000]) == [A, F]
    assert verdicts(sig, (0x7F800000,), [0x3F800000, 0x3F7FFFFF]) == [A, F]
    assert verdicts(sig, (0xFF800000,), [0xBF800000, 0xBF7FFFFF]) == [A, F]
    assert verdicts(sig, (0x7FC00000,), [0xFFC00001, 0]) == [A, F]
    assert verdicts(sig, (0x00400000,), [0x00400000, 0x003FFFFF, 0x00400800, 0x00400801, 0]) == [A, U, F, F, F]
    assert verdicts(sig, (0x80000001,), [0x80000001, 0x80000000, 0x80000002, 0x00000001]) == [A, F, F, F]


def fdiv_definition(a: int, b: int, got: int, flush: bool) -> Verdict:
    """reading:13, sentence by sentence."""
    sign = F32.sign_mask

    def flushed(code: int) -> int:
        return code & sign if 0 < (code & ~sign) < F32.min_normal_bits else code

    if flush:
        a, b = flushed(a), flushed(b)
        candidates = {got}
        if not got & ~sign:
            candidates |= {got | 1, got | 2, got | 3, got | 0x007FFFFF, got | 0x007FFFFE}
            exact = functions.nearest("fdiv", F32, a, b)
            candidates |= {c for c in (exact - 2, exact - 1, exact, exact + 1, exact + 2) if flushed(c) == got}
        elif flushed(got) != got:
            return F
        return min((fdiv_definition_unflushed(a, b, c) for c in candidates), key=int)
    return fdiv_definition_unflushed(a, b, got)


def fdiv_definition_unflushed(a: int, b: int, got: int) -> Verdict:
    sign = F32.sign_mask
    x, y = argument(F32, a), argument(F32, b)
    own = (a ^ b) & sign
    size = abs(y.value)
    if y.kind == "number" and size > power_of_two(126):
        if x.kind == "number":
            return only_this(F32, own, got)
        return only_this(F32, F32.nan_bits, got)
    if x.kind != "number" or y.kind != "number" or not x.value or not y.value:
        return only_this(F32, functions.nearest("fdiv", F32, a, b), got)
    if (got & ~sign) > F32.infinity_bits or (got & sign) != own:
        return F
    exact = unbounded("fdiv", F32, a, b)
    bound = by_reading_1(F32, exact, got, 2)
    if size >= power_of_two(-126) or bound is not F:
        return bound
    finite = abs(exact) < F32.infinity_bits
    return F if (got & ~sign) == F32.infinity_bits and finite and size > power_of_two(-128) else U


@pytest.mark.parametrize("attrs", [APPROXIMATE, FLUSHING], ids=["keep", "flush"])
def test_approximate_fdiv(attrs: Attrs) -> None:
    sig = signature("fdiv", "f32", attrs)
    for a, b in some_operands(sig, 400):
        nearest = functions.nearest("fdiv", F32, a, b)
        centre = position_of(F32, nearest) if nearest != F32.nan_bits else 0
        got = list(nearby(F32, centre, reach=5))
        expected = [fdiv_definition(a, b, g, attrs == FLUSHING) for g in got]
        assert verdicts(sig, (a, b), got) == expected, (F32.hex(a), F32.hex(b))


def test_rows_of_approximate_fdiv() -> None:
    sig, flushing = signature("fdiv", "f32", APPROXIMATE), signature("fdiv", "f32", FLUSHING)
    large, one, infinity, nan = 0x7F000000, 0x3F800000, 0x7F800000, 0x7FC00000
    for s in (sig, flushing):
        assert verdicts(s, (one, large), [0, 0x80000000, 0x00400000]) == [A, F, F]
        assert verdicts(s, (one | F32.sign_mask, large), [0, 0x80000000]) == [F, A]
        assert verdicts(s, (infinity, large), [nan, infinity]) == [A, F]
        assert verdicts(s, (one, 0), [infinity, nan]) == [A, F]
        assert verdicts(s, (one, 0x80000000), [infinity | F32.sign_mask, infinity]) == [A, F]
        assert verdicts(s, (0, 0), [nan, 0]) == [A, F]
        assert verdicts(s, (infinity, infinity), [nan, one]) == [A, F]
        assert verdicts(s, (one, infinity), [0, nan]) == [A, F]
        assert verdicts(s, (nan, one), [nan, one]) == [A, F]
    assert verdicts(sig, (0, 1), [0, nan]) == [A, F]
    assert verdicts(flushing, (0, 1), [0, nan]) == [F, A]
    assert verdicts(sig, (1, 0x7E7FFFFF), [0, 1, 2, 3]) == [A, A, A, F]
    assert verdicts(flushing, (0x00800000, 0x40000000), [0, 0x00400000, 0x80000000]) == [A, F, F]


def test_ordinary_fdiv_is_division() -> None:
    for sig in (s for s in signatures(("fdiv",)) if not s.attrs):
        operands = OPERATIONS["div"].critical(sig)
        plain = OPERATIONS["div"].allowed(Signature("div", sig.args, sig.result), operands)
        ours = OPERATIONS["fdiv"].allowed(sig, operands)
        assert (plain.nearest == ours.nearest).all()
        assert (plain.claimed == ours.claimed).all()


def test_plain_and_approximate_in_one_kernel() -> None:
    """intent:5.1-j and 5.1-l: the approximate result is no excuse for the ordinary one."""
    x = Input(Type("f32"))
    kernel = Kernel(
        (x, x, Apply("fdiv", (0, 1), "f32"), Apply("fdiv", (0, 1), "f32", APPROXIMATE), Apply("div", (0, 1), "f32")),
        (2, 3, 4),
    )
    one, three = np.array([0x3F800000], np.uint32), np.array([0x40400000], np.uint32)
    right, near = np.array([0x3EAAAAAB], np.uint32), np.array([0x3EAAAAAA], np.uint32)
    assert [v[0] for v in judge(kernel, [one, three], [right, near, right])] == [A, A, A]
    assert [v[0] for v in judge(kernel, [one, three], [near, near, near])] == [F, A, F]


# Typing.


@pytest.mark.parametrize(
    ("op", "dtype", "attrs", "clause"),
    [
        ("lgamma", "i32", (), "intent:5-k"),
        ("i0", "index", (), "intent:5-k"),
        ("tanh", "u8", (), "intent:5-k"),
        ("erfc", "bool", (), "intent:3-h"),
        ("fdiv", "i32", (), "intent:4-d"),
        ("exp2", "f32", (("flush_to_zero", True),), "intent:5.1-b"),
        ("fdiv", "f32", (("approximate", False), ("flush_to_zero", True)), "intent:5.1-b"),
        ("tanh", "f32", FLUSHING, "intent:5.1-b"),
        ("tanh", "f32", (("approximate", True), ("flush_to_zero", False)), "intent:5.1-b"),
        ("lgamma", "f32", (("flush_to_zero", True),), "intent:5.1-b"),
        ("div", "f32", (("flush_to_zero", True),), "intent:5.1-b"),
        ("exp2", "f32", (("approximate", 1),), "intent:5.1-c"),
        ("fdiv", "f32", (("approximate", True), ("flush_to_zero", 0)), "intent:5.1-c"),
        ("tanh", "f32", (("approximate", "flag"),), "intent:5.1-c"),
        ("exp2", "f64", APPROXIMATE, "intent:5.1-d"),
        ("tanh", "f16", APPROXIMATE, "intent:5.1-d"),
        ("fdiv", "bf16", FLUSHING, "intent:5.1-d"),
    ],
)
def test_refusals(op: str, dtype: str, attrs: Attrs, clause: str) -> None:
    args = (dtype,) * OPERATIONS[op].arity
    found = typing.check(one_node(op, args, dtype, attrs=dict(attrs)))
    assert isinstance(found, Refused)
    assert found.clause == clause
    source = Source(Call(op, tuple(Parameter(n, dtype) for n in "xy"[: len(args)]), attrs=attrs))
    elaborated = typing.elaborate(source)
    assert isinstance(elaborated, Refused)
    assert elaborated.clause == clause


def test_attributes_reach_the_kernel() -> None:
    kernel = typing.elaborate(Source(Call("exp2", (Parameter("x", "f32"),), attrs=FLUSHING)))
    assert isinstance(kernel, Kernel)
    node = kernel.values[-1]
    assert isinstance(node, Apply)
    assert node.attrs == FLUSHING
    written = (("approximate", False), ("flush_to_zero", False))
    assert isinstance(typing.check(one_node("exp2", ("f64",), "f64", attrs=dict(written))), Accepted)
    assert (
        OPERATIONS["exp2"].allowed(signature("exp2", "f64", written), [np.zeros(1, np.uint64)]).nearest[0]
        == 0x3FF << 52
    )


def test_signatures_have_the_attributes() -> None:
    ids = [s.id for s in signatures(NAMES)]
    assert len(ids) == len(set(ids)) == 6 * 8 + 2 + 1 + 2
    assert "exp2[f32->f32;approximate=True;flush_to_zero=True]" in ids
    assert all("f32" in name for name in ids if "approximate" in name)


@pytest.mark.parametrize("sig", signatures(NAMES), ids=lambda s: s.id)
def test_every_clause_of_a_signature_has_elements(sig: Signature) -> None:
    record = OPERATIONS[sig.op]
    operands = record.critical(sig)
    allowed = record.allowed(sig, operands)
    cases = record.cases(sig, operands)
    assert set(cases) == set(record.clauses(sig))
    assert all((mask & allowed.claimed).any() for mask in cases.values())
    assert not (allowed.judge(allowed.nearest) == F).any()


def test_tables_give_the_same_sets_as_the_slow_path() -> None:
    """What certification uses, against the definition."""
    rng = np.random.default_rng(17)
    for sig in signatures(tuple(TARGETS)):
        fmt = sig.formats[0]
        (critical,) = OPERATIONS[sig.op].critical(sig)
        bits = np.concatenate([critical, np.frombuffer(rng.bytes(100 * fmt.storage.itemsize), fmt.storage)])
        with source.use(SlowPath()):
            slow = OPERATIONS[sig.op].allowed(sig, [bits])
        got = codes.from_ordinal(fmt, codes.ordinal(fmt, slow.nearest) + rng.integers(-3, 4, len(bits)))
        with source.use(Enclosures()):
            fast = OPERATIONS[sig.op].allowed(sig, [bits])
        both_nan = codes.is_nan(fmt, fast.nearest) & codes.is_nan(fmt, slow.nearest)
        assert ((fast.nearest == slow.nearest) | both_nan).all(), sig.id
        assert (fast.judge(got) == slow.judge(got)).all(), sig.id


def test_tables_are_left_alone_where_float_arithmetic_is_not_in_its_default_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hardware, "in_default_state", lambda: False)
    bits = np.array([0x3F000000, 0x3EFD81AD], np.uint32)
    assert Enclosures().nearest("log1p", F32, bits).tolist() == functions.nearest_many("log1p", F32, bits).tolist()
