"""The CPU backend against expectations that are written here, in Python integers, fractions and numpy."""

from __future__ import annotations

import ast
import operator
import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_kernels import ADAPTER, build

from halfulp.adapters.protocol import Options, Rejected
from halfulp.backends import common as shared
from halfulp.backends.common.check import OPERATIONS
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cpu import jit
from halfulp.oracle.formats import CANONICAL, FLOATS, FORMATS, INTS, Format
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.source import Call, Expression, Formed, Literal, Parameter, Source

LEVELS = (0, 3)
NARROW = ("f16", "bf16", "f8e4m3fn", "f8e5m2")

Array = np.ndarray[Any, np.dtype[Any]]


def run(op: str, dtypes: Sequence[str], result: str, *inputs: Array, level: int = 3) -> Array:
    (compiled,) = build(one_node(op, dtypes, result), level=level)
    return compiled(*inputs)[0]


def codes(dtype: str, values: Sequence[int]) -> Array:
    """Bit patterns: the low bits of Python ints."""
    fmt = FORMATS[dtype]
    return np.array([value & (fmt.code_count - 1) for value in values], fmt.storage)


def scalar(dtype: str, value: int) -> Array:
    return codes(dtype, [value]).reshape(())


def cast_one(source: str, target: str, bits: int, op: str = "cast") -> int:
    answers = {int(run(op, [source], target, codes(source, [bits] * 9), level=level)[8]) for level in LEVELS}
    assert len(answers) == 1
    return answers.pop()


# Values of codes, written from the definition of the fields.


def number(fmt: Format, code: int) -> Fraction | None:
    """The finite value of a code, None for infinities and NaN."""
    if not fmt.is_float:
        return Fraction(code - fmt.code_count if fmt.signed and code >> (fmt.width - 1) else code)
    sign = -1 if code >> (fmt.width - 1) else 1
    field = code >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
    fraction = code & ((1 << fmt.fraction_bits) - 1)
    if fmt.name == "f8e4m3fn":
        if field == 15 and fraction == 7:
            return None
    elif field == (1 << fmt.exponent_bits) - 1:
        return None
    significand = fraction if field == 0 else fraction + (1 << fmt.fraction_bits)
    return sign * significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_bits)


@cache
def ladder(name: str) -> list[Fraction]:
    """The non-negative values of a narrow format in order; the last is where an infinity would stand."""
    fmt = FORMATS[name]
    values = [number(fmt, code) for code in range(fmt.code_count // 2)]
    finite = [value for value in values if value is not None]
    return [*finite, 2 * finite[-1] - finite[-2]]


def rounded(name: str, value: Fraction, negative: bool) -> int:
    """The code nearest to a value, by search among all codes, ties to the even one."""
    steps = ladder(name)
    magnitude = abs(value)
    above = min(bisect_left(steps, magnitude), len(steps) - 1)
    code = above
    if steps[above] > magnitude:
        gap = (steps[above] - magnitude) - (magnitude - steps[above - 1])
        code = above if gap < 0 or (gap == 0 and above % 2 == 0) else above - 1
    return code | (FORMATS[name].sign_mask if negative else 0)


def neighbourhood(source: str, target: str, rng: random.Random, count: int) -> list[int]:
    """Codes of ``source`` next to values and midpoints of ``target``, and others."""
    fmt = FORMATS[source]
    steps = ladder(target)
    found = []
    for _ in range(count):
        at = rng.randrange(len(steps) - 1)
        point = rng.choice([steps[at], (steps[at] + steps[at + 1]) / 2])
        if fmt.is_float:
            as_double = float(point)
            bits = int(np.array(as_double).view("u8") if source == "f64" else np.array(as_double, "f4").view("u4"))
        else:
            bits = int(point)
            if fmt.width > 16 and rng.random() < 0.5:  # the same significand, higher up
                bits <<= rng.randrange(fmt.width - 1)
            if fmt.signed and rng.random() < 0.5:
                bits = -bits
        found.append((bits + rng.choice((-1, 0, 0, 1))) & (fmt.code_count - 1))
    return found


def test_it_shares_no_judging_code_with_the_oracle() -> None:
    allowed = {f"halfulp.oracle.{name}" for name in ("formats", "kernel", "source", "memory.program")}
    seen = set()
    for path in Path(shared.__file__).parent.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                seen.add(node.module or "")
            elif isinstance(node, ast.Import):
                seen.update(alias.name for alias in node.names)
    assert "halfulp.oracle.kernel" in seen
    assert {name for name in seen if name.startswith("halfulp.oracle")} <= allowed
    assert not {name for name in seen if name.startswith(("halfulp.properties", "halfulp.certify"))}


# Integers.

INTEGER_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_all_pairs_of_bytes(dtype: str, level: int) -> None:
    fmt = FORMATS[dtype]
    left, right = (grid.ravel() for grid in np.meshgrid(np.arange(256), np.arange(256)))
    a, b = left.astype(np.uint8), right.astype(np.uint8)
    values = [number(fmt, code) for code in range(256)]
    ints = [int(value) for value in values if value is not None]
    for op, function in INTEGER_OPERATIONS.items():
        result = "bool" if op in ("eq", "ne", "lt", "le", "gt", "ge") else dtype
        got = run(op, [dtype, dtype], result, a, b, level=level).tolist()
        checked = 0
        for x, y, answer in zip(left.tolist(), right.tolist(), got, strict=True):
            second = ints[y]
            if (op in ("floordiv", "mod") and second == 0) or (op in ("shl", "shr") and not 0 <= second < 8):
                continue  # illegal; that it came back at all is what is asked
            assert answer == function(ints[x], second) & (1 if result == "bool" else 255), (op, x, y)
            checked += 1
        assert checked == {"floordiv": 65280, "mod": 65280, "shl": 2048, "shr": 2048}.get(op, 65536)


@pytest.mark.parametrize("level", LEVELS)
def test_wide_integers(level: int) -> None:
    rng = random.Random(1)
    for dtype in INTS:
        fmt = FORMATS[dtype]
        edges = [fmt.min_int, fmt.min_int + 1, fmt.max_int, 0, 1, 2, 3, 7, *([-1, -2, -7] if fmt.signed else [])]
        pairs = [(x, y) for x in edges for y in edges]
        pairs += [(rng.randint(fmt.min_int, fmt.max_int), rng.choice(edges)) for _ in range(200)]
        legal = [(x, y) for x, y in pairs if y != 0]
        a, b = (codes(dtype, side) for side in zip(*legal, strict=True))
        for op in ("add", "sub", "mul", "floordiv", "mod"):
            want = codes(dtype, [INTEGER_OPERATIONS[op](x, y) for x, y in legal])
            assert (run(op, [dtype, dtype], dtype, a, b, level=level) == want).all(), (op, dtype)
        want = codes(dtype, [abs(x) for x, _ in legal])
        assert (run("abs", [dtype], dtype, a, level=level) == want).all()
        assert (run("neg", [dtype], dtype, a, level=level) == codes(dtype, [-x for x, _ in legal])).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", INTS)
def test_illegal_operands_neither_crash_nor_spread(dtype: str, level: int) -> None:
    fmt = FORMATS[dtype]
    numerators = [fmt.min_int, 17, fmt.max_int, 17, 17] * 13
    for op, bad, good in (("floordiv", (0, -1), 5), ("mod", (0, -1), 5), ("shl", (fmt.width, -1), 3)):
        divisors = [good, bad[0], good, bad[1], good] * 13
        got = run(op, [dtype, dtype], dtype, codes(dtype, numerators), codes(dtype, divisors), level=level)
        want = codes(dtype, [INTEGER_OPERATIONS[op](x, good) for x in numerators])
        legal = np.array([divisor == good for divisor in divisors])
        assert (got[legal] == want[legal]).all()
        # The same with constants, where the compiler divides.
        values = (Constant(dtype, int(codes(dtype, [fmt.min_int])[0])), Constant(dtype, int(codes(dtype, [bad[0]])[0])))
        (folded,) = build(Kernel((*values, Apply(op, (0, 1), dtype)), (2,)), level=level)
        assert folded()[0].shape == ()


@pytest.mark.parametrize("level", LEVELS)
def test_floats_out_of_range_of_an_integer(level: int) -> None:
    values = np.array([1e30, 2.5, np.nan, -3.9, -np.inf, 100.0, np.inf, -1e30] * 9, "f4")
    legal = np.isfinite(values) & (abs(values) < 1e3)
    for target in INTS:
        lanes = legal & (values > (-1 if not FORMATS[target].signed else -1e3))
        got = run("cast", ["f32"], target, values.view("u4"), level=level)
        assert (got[lanes] == codes(target, [int(value) for value in values[lanes]])).all()
        saturated = run("cast_saturate", ["f32"], target, values.view("u4"), level=level)
        fmt = FORMATS[target]
        assert (saturated[values == np.inf] == codes(target, [fmt.max_int])[0]).all()
        assert (saturated[values == -np.inf] == codes(target, [fmt.min_int])[0]).all()


# Casts.


@pytest.mark.parametrize(
    ("source", "target", "bits", "want"),
    [
        ("i32", "bf16", 0x01010001, 0x4B81),
        ("i64", "bf16", 0xFFFFFFFFFEFD0001, 0xCB81),
        ("f64", "bf16", 0x3FF0100000001000, 0x3F81),
        ("f64", "f8e4m3fn", 0xC07AFFFFFFFFFFFF, 0xFD),
        ("f64", "f16", 0x3F0FFBFFFFFFFFFC, 0x03FF),
        ("f64", "f16", 0x40EFFE0000000000, 0x7C00),  # 65520 overflows
        ("f32", "f16", 0x477FEFFF, 0x7BFF),  # the number before it does not
        ("f32", "f8e5m2", 0x47700000, 0x7C),  # 61440
        ("i32", "f16", 65520, 0x7C00),
        ("f64", "f32", 0x8000000000000001, 0x80000000),  # an underflow keeps its sign
        ("f32", "f16", 0x80000000, 0x8000),
        ("f16", "f64", 0x0001, 0x3E70000000000000),
        ("f8e5m2", "f32", 0xFC, 0xFF800000),
        ("i8", "u64", 0xFF, 0xFFFFFFFFFFFFFFFF),
        ("u8", "i64", 0xFF, 0xFF),
        ("bool", "bf16", 1, 0x3F80),
        ("bool", "i32", 1, 1),
        ("f32", "bool", 0x00000001, 1),
        ("f32", "bool", 0x80000000, 0),
        ("u64", "f32", 0xFFFFFF7FFFFFFFFF, 0x5F7FFFFF),
        ("u64", "f64", 0xFFFFFFFFFFFFFBFF, 0x43EFFFFFFFFFFFFF),
    ],
)
def test_single_casts(source: str, target: str, bits: int, want: int) -> None:
    assert cast_one(source, target, bits) == want


@pytest.mark.parametrize(
    ("source", "target", "bits", "want"),
    [
        ("f32", "f16", 0x7F800000, 0x7BFF),
        ("f32", "f16", 0xFF7FFFFF, 0xFBFF),
        ("f32", "f8e4m3fn", 0x7F800000, 0x7E),
        ("f32", "f8e4m3fn", 0x43FA0000, 0x7E),  # 500
        ("f64", "f32", 0xFFF0000000000000, 0xFF7FFFFF),
        ("f16", "f32", 0x7C00, 0x7F7FFFFF),
        ("f32", "f32", 0x7F800000, 0x7F7FFFFF),
        ("i64", "f16", -(1 << 62), 0xFBFF),
        ("i64", "i8", 300, 127),
        ("i8", "u32", -5, 0),
        ("u64", "i64", (1 << 64) - 1, (1 << 63) - 1),
        ("f64", "u8", 0x406FFE6666666666, 255),  # 255.95 truncates into the range
    ],
)
def test_saturating_casts(source: str, target: str, bits: int, want: int) -> None:
    assert cast_one(source, target, bits & (FORMATS[source].code_count - 1), "cast_saturate") == want


@pytest.mark.parametrize("target", NARROW)
def test_casts_to_narrow_floats_round_once(target: str) -> None:
    rng = random.Random(target)
    sources = ("f64", "f32", "i64", "u64", "i32", "u32", "i16")
    programs = [one_node("cast", [source], target) for source in sources]
    both = [build(*programs, level=level) for level in LEVELS]
    for source, plain, optimised in zip(sources, *both, strict=True):
        fmt = FORMATS[source]
        bits = neighbourhood(source, target, rng, 1000)
        values = [number(fmt, code) for code in bits]
        inputs = codes(source, bits)
        got, same = plain(inputs)[0], optimised(inputs)[0]
        assert (got == same).all()
        claimed = 0
        for code, value, answer in zip(bits, values, got.tolist(), strict=True):
            if value is None or (target == "f8e4m3fn" and abs(value) > 464):
                continue
            negative = bool(code >> (fmt.width - 1)) if fmt.signed else False
            assert answer == rounded(target, value, negative), (source, hex(code))
            claimed += 1
        assert claimed > 450


def test_widening_is_exact() -> None:
    for source in NARROW:
        fmt = FORMATS[source]
        everything = np.arange(fmt.code_count).astype(fmt.storage)
        for level in LEVELS:
            with np.errstate(invalid="ignore"):
                wide = run("cast", [source], "f32", everything, level=level).view("f4").astype("f8")
            double = run("cast", [source], "f64", everything, level=level).view("f8")
            for code in range(0, fmt.code_count, 13 if fmt.width == 16 else 1):
                value = number(fmt, code)
                if value is None:
                    infinite = fmt.infinity and code & fmt.magnitude_mask == fmt.infinity_bits
                    assert np.isinf(double[code]) == np.isinf(wide[code]) == infinite
                    assert np.isnan(double[code]) == np.isnan(wide[code]) == (not infinite)
                else:
                    assert double[code] == wide[code] == float(value)
                    assert np.signbit(double[code]) == np.signbit(wide[code]) == (code >= fmt.code_count // 2)
            back = run("cast", ["f64"], source, double.view("u8"), level=level)
            nan = np.isnan(double)
            assert (back[~nan] == everything[~nan]).all()
            assert np.isnan(run("cast", [source], "f32", back).view("f4")[nan]).all()


@pytest.mark.parametrize("level", LEVELS)
def test_integers_to_single_and_double(level: int) -> None:
    """Against Python's conversion to double, which rounds to nearest even, and the neighbours of a single."""
    rng = random.Random(3)
    for source in ("i64", "u64", "i32", "u32"):
        fmt = FORMATS[source]
        values = [rng.randint(fmt.min_int, fmt.max_int) >> rng.randrange(fmt.width - 1) for _ in range(400)]
        got = run("cast", [source], "f64", codes(source, values), level=level).view("f8")
        assert (got == np.array([float(value) for value in values])).all()
        single = run("cast", [source], "f32", codes(source, values), level=level).view("f4").tolist()
        for value, answer in zip(values, single, strict=True):
            low, high = (float(np.nextafter(np.float32(answer), np.float32(end))) for end in (-np.inf, np.inf))
            error = abs(Fraction(answer) - value)
            other = min(abs(Fraction(low) - value), abs(Fraction(high) - value))
            even = int(np.float32(answer).view("u4")) % 2 == 0
            assert error < other or (error == other and even)


# Floating-point arithmetic.


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_arithmetic_rounds_once(dtype: str) -> None:
    fmt = FORMATS[dtype]
    rng = random.Random(dtype)
    a_codes = [rng.randrange(fmt.code_count) for _ in range(1500)]
    b_codes = [rng.choice((rng.randrange(fmt.code_count), code ^ rng.randrange(16))) for code in a_codes]
    a, b = codes(dtype, a_codes), codes(dtype, b_codes)
    sign = fmt.code_count // 2
    for op in ("add", "sub", "mul", "div"):
        got = [run(op, [dtype, dtype], dtype, a, b, level=level).tolist() for level in LEVELS]
        assert got[0] == got[1]
        claimed = 0
        for i, (x_code, y_code) in enumerate(zip(a_codes, b_codes, strict=True)):
            x, y = number(fmt, x_code), number(fmt, y_code)
            if x is None or y is None or (op == "div" and y == 0):
                continue
            exact: Fraction = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}.get(op, operator.truediv)(
                x, y
            )
            if op in ("mul", "div"):
                negative = (x_code ^ y_code) >= sign
            elif exact == 0:
                negative = x_code >= sign and (y_code >= sign) == (op == "add")
            else:
                negative = exact < 0
            if dtype == "f8e4m3fn" and abs(exact) > 464:
                continue
            assert got[0][i] == rounded(dtype, exact, negative), (op, hex(x_code), hex(y_code))
            claimed += 1
        assert claimed > 700


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("dtype", "native"), [("f32", "f4"), ("f64", "f8")])
def test_machine_arithmetic(dtype: str, native: str, level: int) -> None:
    fmt = FORMATS[dtype]
    rng = np.random.default_rng(11)
    special = codes(
        dtype, [0, 1, fmt.max_finite_bits, fmt.infinity_bits, fmt.nan_bits, fmt.sign_mask, fmt.sign_mask | 1]
    )
    drawn = rng.integers(0, fmt.code_count - 1, 3000, dtype=fmt.storage, endpoint=True)
    a = np.concatenate([drawn, np.repeat(special, len(special)), drawn & ~fmt.storage.type(fmt.infinity_bits)])
    b = np.concatenate([drawn[::-1], np.tile(special, len(special)), drawn[::-1]])
    x, y = a.view(native), b.view(native)
    with np.errstate(all="ignore"):
        expected = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y}
        unary = {"sqrt": np.sqrt(x), "floor": np.floor(x), "neg": -x, "abs": abs(x)}
        order = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    for op, want in (*expected.items(), *unary.items()):
        inputs = (a,) if op in unary else (a, b)
        got = run(op, [dtype] * len(inputs), dtype, *inputs, level=level)
        nan = np.isnan(want)
        assert (np.isnan(got.view(native)) == nan).all()
        assert (got[~nan] == want.view(fmt.storage)[~nan]).all(), op
    for op, truth in order.items():
        assert (run(op, [dtype, dtype], "bool", a, b, level=level) == truth).all(), op


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema(dtype: str, level: int) -> None:
    fmt = FORMATS[dtype]
    one, two, nan, minus = 1 << fmt.fraction_bits, 2 << fmt.fraction_bits, fmt.nan_bits, fmt.sign_mask
    a = codes(dtype, [one, minus | one, nan, two, nan, minus | 1])
    b = codes(dtype, [two, one, one, nan, nan, 0])
    got = {
        op: run(op, [dtype, dtype], dtype, a, b, level=level).tolist()
        for op in ("maximum", "minimum", "maximum_num", "minimum_num")
    }
    assert got["maximum"] == [two, one, nan, nan, nan, 0]
    assert got["minimum"] == [one, minus | one, nan, nan, nan, minus | 1]
    assert got["maximum_num"] == [two, one, one, two, nan, 0]
    assert got["minimum_num"] == [one, minus | one, one, two, nan, minus | 1]


@pytest.mark.parametrize("level", LEVELS)
def test_copies_carry_every_bit(level: int) -> None:
    """A signalling NaN is neither quieted by ``select`` nor by ``bitcast``."""
    for dtype in FLOATS:
        fmt = FORMATS[dtype]
        signalling = codes(dtype, [fmt.magnitude_mask & ~(1 << max(0, fmt.fraction_bits - 1)) | 1, fmt.sign_mask] * 9)
        other = codes(dtype, [1] * 18)
        condition = codes("bool", [1] * 18)
        got = run("select", ["bool", dtype, dtype], dtype, condition, signalling, other, level=level)
        assert (got == signalling).all()
        assert (run("bitcast", [dtype], f"u{fmt.width}", signalling, level=level) == signalling).all()


def test_source_order_is_kept() -> None:
    values = (Input(Type("f32")), Input(Type("f32")), Apply("add", (0, 1), "f32"), Apply("add", (2, 1), "f32"))
    big, one = np.array([2.0**24] * 9, "f4").view("u4"), np.array([1.0] * 9, "f4").view("u4")
    for level in LEVELS:
        (compiled,) = build(Kernel(values, (3,)), level=level)
        assert (compiled(big, one)[0] == big).all()


@pytest.mark.parametrize("kind", ["add", "sub", "rsub"])
def test_a_fused_use_leaves_the_product_alone(kind: str) -> None:
    a = b = np.array([1 + 2.0**-12, 3.0] * 9, "f4")
    c = np.array([-(1 + 2.0**-11), 1.0] * 9, "f4")
    last = Apply("add" if kind == "add" else "sub", (3, 2) if kind != "rsub" else (2, 3), "f32")
    f32 = Input(Type("f32"))
    values = (f32, f32, f32, Apply("mul", (0, 1), "f32"), last)
    product = (a * b).astype("f8")
    exact = a.astype("f8") * b.astype("f8")
    signs = {"add": (1, 1), "sub": (1, -1), "rsub": (-1, 1)}[kind]
    for level in LEVELS:
        (compiled,) = build(Kernel(values, (3, 4)), level=level)
        got_product, got = compiled(a.view("u4"), b.view("u4"), c.view("u4"))
        assert (got_product == (a * b).view("u4")).all()
        factor = exact if level == 3 and ADAPTER.facts.fuses_multiply_add else product
        assert (got.view("f4") == (signs[0] * factor + signs[1] * c.astype("f8")).astype("f4")).all()


# Programs and calls.


def ill_typed() -> list[Kernel | Source]:
    x, y = Parameter("x", "i32"), Parameter("y", "f32")
    kernels: list[Kernel | Source] = [
        one_node("add", ["i32", "u32"], "i32"),
        one_node("add", ["index", "i64"], "index"),
        one_node("add", ["f32", "f64"], "f64"),
        one_node("add", ["bool", "bool"], "bool"),
        one_node("add", ["i32", "i32"], "i64"),
        one_node("add", ["i32"], "i32"),
        one_node("div", ["i32", "i32"], "i32"),
        one_node("mod", ["f32", "f32"], "f32"),
        one_node("floordiv", ["f32", "f32"], "f32"),
        one_node("and", ["f32", "f32"], "f32"),
        one_node("shl", ["i32", "i64"], "i32"),
        one_node("sqrt", ["i32"], "i32"),
        one_node("lt", ["i32", "i32"], "i32"),
        one_node("eq", ["f16", "bf16"], "bool"),
        one_node("bitcast", ["f32"], "u64"),
        one_node("bitcast", ["bool"], "u8"),
        one_node("select", ["i32", "f32", "f32"], "f32"),
        one_node("select", ["bool", "f32", "f16"], "f32"),
        one_node("add", ["i4", "i4"], "i4"),
        one_node("cast", ["f32"], "e2m1"),
        one_node("add", ["f32", "f32"], "f32", attrs={"approximate": True}),
    ]
    sources: list[Expression] = [
        Call("add", (x, y)),
        Call("add", (Call("lt", (x, x)), x)),
        Call("add", (Parameter("x", "i8"), Literal(128))),
        Call("add", (Parameter("x", "u8"), Literal(-1))),
        Call("add", (x, Literal(1.5))),
        Call("add", (Parameter("x", "f16"), Literal(1e6))),
        Call("mul", (Formed(Literal(1.0)), y)),
        Call("mul", (Formed(Literal(1)), x)),
        Call("div", (x, Literal(2))),
        Call("cast", (x,), "fp4"),
        Call("cast", (x,)),
        Call("select", (Literal(1), y, y)),
        Call("add", (x, Parameter("x", "f32"))),
        Parameter("x", "i4"),
    ]
    return kernels + [Source(expression) for expression in sources]


@pytest.mark.parametrize("program", ill_typed(), ids=str)
def test_refused(program: Kernel | Source) -> None:
    (answer,) = ADAPTER.compile([program], Options(0))
    assert isinstance(answer, Rejected)
    assert answer.reason


def test_a_bad_program_does_not_fail_its_batch() -> None:
    good = one_node("neg", ["i8"], "i8")
    batch = [good, one_node("div", ["i8", "i8"], "i8"), one_node("sin", ["f32"], "f32"), good]
    answers = ADAPTER.compile(batch, Options(3))
    assert [type(answer).__name__ for answer in answers] == ["Program", "Rejected", "Unsupported", "Program"]
    assert ADAPTER.compile([], Options(0)) == []
    with pytest.raises(ValueError, match="level 2"):
        ADAPTER.compile([], Options(2))


@pytest.mark.parametrize(
    ("expression", "inputs", "want"),
    [
        (Call("add", (Parameter("x", "i8"), Literal(-128))), [codes("i8", [1])], 0x81),
        (Call("sub", (Literal(1), Parameter("x", "u8"))), [codes("u8", [2])], 0xFF),
        (Call("mul", (Parameter("x", "f32"), Literal(0.1))), [codes("f32", [0x3F800000])], 0x3DCCCCCD),
        (Call("add", (Parameter("x", "f32"), Literal(16777217))), [codes("f32", [0])], 0x4B800000),
        (Call("add", (Parameter("x", "f16"), Literal(65505))), [codes("f16", [0])], 0x7BFF),
        (Call("mul", (Parameter("x", "f16"), Literal(-0.0))), [codes("f16", [0x3C00])], 0x8000),
        (Call("add", (Parameter("x", "f8e5m2"), Literal(2.0**-16))), [codes("f8e5m2", [0])], 0x01),
        (Call("select", (Call("lt", (Parameter("x", "i32"), Literal(0))), Literal(1), Parameter("x", "i32"))),
         [codes("i32", [-5])], 1),
        (Call("cast", (Literal(300),), "i8"), [], 44),
        (Formed(Literal(True)), [], 1),
        (Call("add", (Formed(Literal(1.0)), Literal(2))), [], 0x4008000000000000),
        (Call("add", (Literal(1), Literal(2))), [], 3),
    ],
    ids=str,
)  # fmt: skip
def test_source_programs(expression: Expression, inputs: list[Array], want: int) -> None:
    for level in LEVELS:
        (compiled,) = build(Source(expression), level=level)
        assert int(compiled(*inputs)[0].ravel()[0]) == want


def test_shapes_and_lengths() -> None:
    kernel = Kernel(
        (Input(Type("f32")), Input(Type("f32", ())), Constant("f32", 0x40000000),
         Apply("mul", (1, 2), "f32"), Apply("add", (0, 3), "f32")),
        (4, 3, 0, 2),
    )  # fmt: skip
    for level in LEVELS:
        (compiled,) = build(kernel, level=level)
        for length in (0, 1, 7, 64, 1000):
            x = np.arange(length, dtype="f4")
            x.flags.writeable = False
            total, scaled, same, constant = compiled(x.view("u4"), scalar("f32", 0x40400000))
            assert (total.view("f4") == x + 6).all()
            assert scaled.shape == constant.shape == ()
            assert (int(scaled), int(constant)) == (0x40C00000, 0x40000000)
            assert (same.view("f4") == x).all()
            assert same.base is not x


def test_bool_arrays_hold_zero_or_one() -> None:
    for level in LEVELS:
        got = run("not", ["bool"], "bool", codes("bool", [0, 1] * 20), level=level)
        assert (got.dtype, got.tolist()) == (np.dtype("u1"), [1, 0] * 20)


def test_many_constant_lanes() -> None:
    for level in LEVELS:
        values: list[Constant | Apply] = []
        outputs = []
        for lane in range(64):
            values += [Constant("f64", int(np.array(lane / 3).view("u8"))), Apply("cast", (2 * lane,), "bf16")]
            outputs.append(2 * lane + 1)
        (compiled,) = build(Kernel(tuple(values), tuple(outputs)), level=level)
        assert [int(got) for got in compiled()] == [rounded("bf16", Fraction(lane / 3), False) for lane in range(64)]


def test_inputs_are_validated() -> None:
    kernel = Kernel((Input(Type("f32")), Input(Type("f32")), Apply("add", (0, 1), "f32")), (2,))
    (compiled,) = build(kernel)
    x = np.zeros(4, "u4")
    with pytest.raises(TypeError, match="takes 2 inputs"):
        compiled(x)
    with pytest.raises(TypeError, match="input 1 \\(f32\\): float32"):
        compiled(x, x.view("f4"))
    with pytest.raises(ValueError, match="rank 0"):
        compiled(x, scalar("f32", 1))
    with pytest.raises(ValueError, match="not C-contiguous"):
        compiled(x, np.zeros(8, "u4")[::2])
    with pytest.raises(ValueError, match="3 elements where another input has 4"):
        compiled(x, x[:3])


def test_threads() -> None:
    def work(seed: int) -> bool:
        x = np.random.default_rng(seed).integers(0, 1 << 32, 5000, dtype="u4")
        return bool((run("neg", ["i32"], "i32", x, level=3 * (seed % 2)) == -x).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(16)))


def test_every_operation_compiles_on_some_type() -> None:
    programs = []
    for op, typing in OPERATIONS.items():
        dtype = "i32" if op in ("floordiv", "mod", "shl", "shr", "and", "or", "xor", "not") else "f32"
        operands = ("bool", dtype, dtype) if op == "select" else (dtype,) * typing.arity
        result = "bool" if op in ("eq", "ne", "lt", "le", "gt", "ge") else dtype
        if op.startswith("random"):
            operands, result = ("u64", "u64"), "u32" if op == "random_bits" else "f32"
        programs.append(one_node(op, operands, result))
    assert len(build(*programs)) == 40


def test_artifact_is_the_optimised_code() -> None:
    program = one_node("add", ["f32", "f32"], "f32")
    assert "fadd" in ADAPTER.artifact(program, Options(0))
    optimised = ADAPTER.artifact(program, Options(3))
    assert "x float>" in optimised
    assert not {"fast", "reassoc", "contract", "nnan", "nsz"} & set(optimised.split())
    with pytest.raises(ValueError, match="not defined on i32"):
        ADAPTER.artifact(one_node("div", ["i32", "i32"], "i32"), Options(0))


def test_facts() -> None:
    assert ADAPTER.name == "cpu"
    assert ADAPTER.opt_levels == LEVELS
    assert ADAPTER.facts.flushes_subnormals is False
    assert "llvm" in ADAPTER.facts.versions
    assert set(SCALARS) == set(CANONICAL)
    for name, mine in SCALARS.items():
        theirs = FORMATS[name]
        assert (mine.kind, mine.width, mine.signed) == (theirs.kind, theirs.width, theirs.signed)
        if mine.is_float:
            codes_of_mine = (mine.max_finite, mine.nan, mine.bias, mine.quantum_exponent)
            assert codes_of_mine == (theirs.max_finite_bits, theirs.nan_bits, theirs.bias, theirs.quantum_exponent)


def test_a_processor_without_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline of the architecture: on x86-64 no F16C, no FMA, and ``floor`` is a call of the C library."""
    plain = jit.Host(jit.host().triple, "x86-64" if jit.host().triple.startswith("x86_64") else "generic", "")
    monkeypatch.setattr(jit, "host", lambda: plain)
    everything = np.arange(1 << 16).astype("u2")
    double = np.array([1.0009765625 + 2.0**-40, -2.5, 65520.0] * 5).view("u8")
    for level in LEVELS:
        assert run("cast", ["f64"], "f16", double, level=level).tolist() == [0x3C01, 0xC100, 0x7C00] * 5
        floor = run("floor", ["f16"], "f16", everything, level=level).view("f2")
        with np.errstate(all="ignore"):
            assert np.array_equal(floor, np.floor(everything.view("f2")), equal_nan=True)
            root = run("sqrt", ["f16"], "f16", everything, level=level).view("f2")
            assert np.array_equal(root, np.sqrt(everything.view("f2")), equal_nan=True)
