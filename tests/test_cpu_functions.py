"""Functions, approximate operations and random bits of the CPU backend.

What is stated exactly is written here; the rest is compared with correctly rounded values, and with the allowed sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cpu_kernels import ADAPTER, build

from halfulp.adapters.protocol import Options, Rejected, Unsupported
from halfulp.backends.common import coefficients, derive
from halfulp.backends.cpu import jit
from halfulp.oracle import codes, functions
from halfulp.oracle.formats import FORMATS, Bits
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.function_points import critical_points
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import Verdict
from halfulp.oracle.source import Call, Expression, Literal, Parameter, Source

LEVELS = (0, 3)
NAMES = ("lgamma", "asin", "log1p", "erfc", "i0", "exp2", "tanh")
NARROW = ("f16", "bf16", "f8e4m3fn", "f8e5m2")
APPROXIMATE = {"approximate": True}
FLUSHING = {"approximate": True, "flush_to_zero": True}
NATIVE = {"f32": np.float32, "f64": np.float64}

INF, NAN = math.inf, math.nan


def run(
    op: str,
    dtypes: Sequence[str],
    *inputs: Bits,
    result: str | None = None,
    attrs: Mapping[str, bool] | None = None,
    level: int = 3,
) -> Bits:
    (compiled,) = build(one_node(op, dtypes, result or dtypes[-1], attrs=attrs), level=level)
    return np.asarray(compiled(*inputs)[0])


def encode(dtype: str, values: Sequence[float]) -> Bits:
    native = NATIVE[dtype]
    return np.array(values, native).view(FORMATS[dtype].storage)


def assert_same(dtype: str, got: Bits, want: Bits, where: object) -> None:
    """Bit for bit; any NaN is as good as another."""
    fmt = FORMATS[dtype]
    same = (got == want) | (codes.is_nan(fmt, got) & codes.is_nan(fmt, want))
    assert same.all(), (where, [(fmt.hex(int(g)), fmt.hex(int(w))) for g, w in zip(got, want, strict=True) if g != w])


# Special values.

SPECIAL: dict[str, tuple[tuple[float, float], ...]] = {
    "lgamma": (
        *((0.0, INF), (-0.0, INF), (1.0, 0.0), (2.0, 0.0), (-1.0, INF), (-2.0, INF), (-17.0, INF), (-(2.0**23), INF)),
        *((-(2.0**24) - 2, INF), (INF, INF), (-INF, INF), (NAN, NAN)),
    ),
    "asin": ((0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1.5, NAN), (-2.0, NAN)),
    "log1p": (
        *((0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)),
        *((1e-40, 1e-40), (-1e-40, -1e-40)),
    ),
    "erfc": ((0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (40.0, 0.0), (-40.0, 2.0)),
    "i0": ((0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-750.0, INF), (1e-30, 1.0)),
    "exp2": (
        *((0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (10.0, 1024.0), (-3.0, 0.125)),
        *((-149.0, 2.0**-149), (-130.0, 2.0**-130), (2000.0, INF), (-2000.0, 0.0)),
    ),
    "tanh": (
        *((0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (30.0, 1.0), (-30.0, -1.0)),
        *((1e-40, 1e-40), (-1e-40, -1e-40)),
    ),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str, dtype: str, level: int) -> None:
    operands, results = zip(*SPECIAL[name], strict=True)
    got = run(name, [dtype], encode(dtype, operands), level=level)
    assert_same(dtype, got, encode(dtype, results), (name, operands))


@pytest.mark.parametrize("level", LEVELS)
def test_ends_of_the_range(level: int) -> None:
    def one(name: str, bits: int) -> int:
        return int(run(name, ["f32"], np.array([bits], np.uint32), level=level)[0])

    assert one("lgamma", 0x7C44AF8D) < 0x7F800000
    assert one("lgamma", 0x7C44AF8E) == 0x7F800000
    assert one("i0", 0x42B7CD31) < 0x7F800000
    assert one("i0", 0x42B7CD32) == one("i0", 0xC2B7CD32) == 0x7F800000
    assert one("i0", 0x39FFFFFF) == 0x3F800000
    assert one("asin", 0x3F800000) == 0x3FC90FDB  # RN(pi/2)
    assert one("asin", 0xBF800000) == 0xBFC90FDB
    assert one("erfc", 0x4120DDFB) == 1  # subnormal results are not flushed
    assert one("erfc", 0x4120DDFC) == 0
    assert one("exp2", 0xC3160000) == 0  # -150 is half way to the smallest number: to even
    assert one("exp2", 0xC315FFFF) == 1
    assert one("tanh", 0x41102CB4) == 0x3F800000
    overflow = np.array([0x40864FF7A8A6D2B8, 0x7FEFFFFFFFFFFFFF], np.uint64)  # 713.9959..., largest finite
    assert run("i0", ["f64"], overflow, level=level)[1] == 0x7FF0000000000000


# Accuracy.

STEPS: dict[str, dict[str, int]] = {
    # The f32 kernels are correctly rounded but for operands next to midpoints.
    "f32": dict.fromkeys(NAMES, 1),
    # Clauses: log1p 1, erfc 5, i0 6. Published bounds: asin 2, exp2 1, tanh 1, lgamma 4 where it is not near a zero.
    "f64": {"lgamma": 4, "asin": 2, "log1p": 1, "erfc": 5, "i0": 6, "exp2": 1, "tanh": 1},
}


def sample(name: str, dtype: str, count: int, seed: int) -> Bits:
    """Critical operands, random codes, and numbers of ordinary size."""
    fmt = FORMATS[dtype]
    rng = np.random.default_rng(seed)
    wild = rng.integers(0, 1 << fmt.width, count, np.uint64).astype(fmt.storage)
    scale = rng.choice([0.3, 3.0, 30.0], count)
    tame = (rng.normal(size=count) * scale).astype(NATIVE[dtype]).view(fmt.storage)
    return np.concatenate([critical_points(name, fmt)[0], wild, tame])


def steps(dtype: str, got: Bits, want: Bits) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return codes.distance(FORMATS[dtype], got, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", NAMES)
def test_accuracy(name: str, dtype: str) -> None:
    fmt = FORMATS[dtype]
    operands = sample(name, dtype, 1500, 7)
    if (name, dtype) == ("lgamma", "f64"):  # the system's, which need not be accurate next to its zeros
        value = codes.float64_values(fmt, operands)
        operands = operands[~((value < -2) & (value > -24))]
    want = functions.nearest_many(name, fmt, operands)
    found = {level: run(name, [dtype], operands, level=level) for level in LEVELS}
    for got in found.values():
        worst = int(steps(dtype, got, want).max())
        assert worst <= STEPS[dtype][name], (name, dtype, worst)
        zeros = codes.is_zero(fmt, want)
        assert (got[zeros] == want[zeros]).all()
        assert (codes.is_nan(fmt, got) == codes.is_nan(fmt, want)).all()


def test_f32_kernels_against_wider_ones() -> None:
    """More operands than the definition can be asked for: the f64 kernels, rounded to f32."""
    operands = (np.arange(1 << 20, dtype=np.uint64) * 4093 % (1 << 32)).astype(np.uint32)
    with np.errstate(all="ignore"):
        wide = operands.view(np.float32).astype(np.float64).view(np.uint64)
        for name in NAMES:
            got = run(name, ["f32"], operands)
            want = run(name, ["f64"], wide).view(np.float64).astype(np.float32).view(np.uint32)
            apart = steps("f32", got, want)
            assert int(apart.max()) <= 1, name
            assert (apart == 0).mean() > 0.9999, name


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", NAMES)
def test_narrow_formats(name: str, dtype: str) -> None:
    """Computed in f32, then one cast: every code of the byte formats, every 37th of the others."""
    fmt = FORMATS[dtype]
    operands = np.arange(0, fmt.code_count, 1 if fmt.width == 8 else 37, dtype=fmt.storage)
    wide = run("cast", [dtype], operands, result="f32")
    want = run("cast", ["f32"], run(name, ["f32"], wide), result=dtype)
    for level in LEVELS:
        assert (run(name, [dtype], operands, level=level) == want).all()
    allowed = OPERATIONS[name].allowed(Signature(name, (dtype,), dtype), [operands])
    assert not np.isin(allowed.judge(want), [Verdict.FORBIDDEN, Verdict.UNSPECIFIED]).any(), name


# Approximate operations.

F32 = FORMATS["f32"]


def verdicts(op: str, attrs: Mapping[str, bool], *operands: Bits) -> set[Verdict]:
    """The verdicts given to the backend's results, at both levels."""
    record = OPERATIONS[op]
    signature = Signature(op, ("f32",) * len(operands), "f32", tuple(sorted(attrs.items())))
    allowed = record.allowed(signature, operands)
    found: set[Verdict] = set()
    for level in LEVELS:
        got = run(op, signature.args, *operands, attrs=attrs, level=level)
        found |= {Verdict(verdict) for verdict in allowed.judge(got).tolist()}
    return found


@pytest.mark.parametrize(("op", "attrs"), [("exp2", APPROXIMATE), ("exp2", FLUSHING), ("tanh", APPROXIMATE)])
def test_approximate_functions(op: str, attrs: Mapping[str, bool]) -> None:
    operands = sample(op, "f32", 1000, 11)
    assert verdicts(op, attrs, operands) == {Verdict.ALLOWED}


@pytest.mark.parametrize("attrs", [{}, APPROXIMATE, FLUSHING], ids=["ordinary", "approximate", "flushing"])
def test_fdiv(attrs: Mapping[str, bool]) -> None:
    rng = np.random.default_rng(3)
    a, b = OPERATIONS["fdiv"].critical(Signature("fdiv", ("f32", "f32"), "f32"))
    wild = rng.integers(0, 1 << 32, (2, 20000), np.uint64).astype(np.uint32)
    large = (rng.integers(0x7E7FFF00, 0x7F800001, 20000) | rng.choice([0, 1 << 31], 20000)).astype(np.uint32)
    tiny = rng.integers(0, 0x00800010, 20000, np.uint64).astype(np.uint32)
    left = np.concatenate([a, wild[0], wild[0], wild[0], tiny])
    right = np.concatenate([b, wild[1], large, tiny, wild[1]])
    assert verdicts("fdiv", attrs, left, right) == {Verdict.ALLOWED}


def test_flushing() -> None:
    """Subnormal operands and results become the zero of their sign, and nothing else does."""
    operands = encode("f32", [1e-40, -1e-40, -126.0, -126.5, -140.0, -INF])
    got = run("exp2", ["f32"], operands, attrs=FLUSHING)
    assert_same("f32", got, encode("f32", [1.0, 1.0, 2.0**-126, 0.0, 0.0, 0.0]), "exp2")
    left = encode("f32", [1e-40, -1e-40, 1.0, -1.0, -(2.0**-126), 2.0**-126, 1e-40])
    right = encode("f32", [1.0, 1.0, 1e-40, 1e-40, 2.0, 1.0, 1e-40])
    got = run("fdiv", ["f32", "f32"], left, right, attrs=FLUSHING)
    assert_same("f32", got, encode("f32", [0.0, -0.0, INF, -INF, -0.0, 2.0**-126, NAN]), "fdiv")


@pytest.mark.parametrize("attrs", [APPROXIMATE, FLUSHING])
def test_large_divisors(attrs: Mapping[str, bool]) -> None:
    """``intent:5.1-g``: above 2**126 finite numbers give a zero, infinite ones NaN."""
    largest = float(np.finfo(np.float32).max)
    rows = [
        *((2.0**127, 2.0**126, 2.0), (1.0, -largest, -0.0), (-largest, 2.0**127, -0.0), (0.0, -(2.0**127), -0.0)),
        *((INF, 2.0**127, NAN), (-INF, largest, NAN), (INF, 2.0**126, INF), (1.0, INF, 0.0), (INF, INF, NAN)),
        *((NAN, 2.0**127, NAN), (1.0, NAN, NAN), (1.0, -0.0, -INF), (0.0, 0.0, NAN)),
    ]
    left, right, want = (encode("f32", column) for column in zip(*rows, strict=True))
    for level in LEVELS:
        got = run("fdiv", ["f32", "f32"], left, right, attrs=attrs, level=level)
        assert_same("f32", got, want, attrs)


@pytest.mark.parametrize("level", LEVELS)
def test_modes_of_the_same_operands_stay_apart(level: int) -> None:
    """``intent:5.1-j``, ``5.1-l``: plain and approximate operations side by side in one kernel."""
    x, y = Input(Type("f32")), Input(Type("f32"))
    modes: list[tuple[tuple[str, bool], ...]] = [(), (("approximate", True),), tuple(sorted(FLUSHING.items()))]
    divisions = [Apply("fdiv", (0, 1), "f32", mode) for mode in modes]
    powers = [Apply("exp2", (0,), "f32", mode) for mode in modes]
    kernel = Kernel((x, y, *divisions, *powers, Apply("div", (0, 1), "f32")), tuple(range(2, 9)))
    (compiled,) = build(kernel, level=level)
    left, right = encode("f32", [1.0, -130.0, 2.0**-126]), encode("f32", [2.0**127, 1.0, 4.0])
    got = [np.asarray(output).view(np.float32).tolist() for output in compiled(left, right)]
    assert got[0] == got[6] == [2.0**-127, -130.0, 2.0**-128]
    assert got[1] == [0.0, -130.0, 2.0**-128]
    assert got[2] == [0.0, -130.0, 0.0]
    assert got[3] == got[4] == [2.0, 2.0**-130, 1.0]
    assert got[5] == [2.0, 0.0, 1.0]


# Typing.

X = {dtype: Parameter("x", dtype) for dtype in FORMATS}


def call(op: str, *args: Expression, **attrs: Any) -> Source:
    return Source(Call(op, args, attrs=tuple(sorted(attrs.items()))))


REFUSED: list[Kernel | Source] = [
    *(one_node(name, [dtype], dtype) for name in NAMES for dtype in ("bool", "i32", "u8", "index")),
    *(one_node(name, ["f32"], "f64") for name in NAMES),
    one_node("fdiv", ["i32", "i32"], "i32"),
    one_node("fdiv", ["f32", "f16"], "f32"),
    *(
        one_node(op, [dtype] * arity, dtype, attrs=attrs)
        for op, arity, attrs in (("exp2", 1, APPROXIMATE), ("exp2", 1, FLUSHING), ("tanh", 1, APPROXIMATE))
        for dtype in ("f16", "bf16", "f64", "f8e4m3fn", "f8e5m2")
    ),
    *(one_node("fdiv", [dtype] * 2, dtype, attrs=APPROXIMATE) for dtype in ("f16", "f64")),
    one_node("exp2", ["f32"], "f32", attrs={"flush_to_zero": True}),
    one_node("exp2", ["f32"], "f32", attrs={"approximate": False, "flush_to_zero": True}),
    one_node("tanh", ["f32"], "f32", attrs={"flush_to_zero": False}),
    one_node("tanh", ["f32"], "f32", attrs=FLUSHING),
    one_node("exp2", ["f32"], "f32", attrs={"approximate": 1}),
    one_node("exp2", ["f32"], "f32", attrs={"approximate": 0}),
    one_node("fdiv", ["f32", "f32"], "f32", attrs={"approximate": True, "flush_to_zero": 1}),
    one_node("exp2", ["f32"], "f32", attrs={"approximate": "True"}),
    *(one_node(name, ["f32"], "f32", attrs=APPROXIMATE) for name in ("lgamma", "asin", "log1p", "erfc", "i0")),
    one_node("div", ["f32", "f32"], "f32", attrs=APPROXIMATE),
    call("exp2", X["f64"], approximate=True),
    call("tanh", X["f32"], approximate=1),
    call("fdiv", X["f32"], X["f32"], flush_to_zero=True),
    call("exp2", Literal(1.0), approximate=True),  # an f64, where nothing is expected
    call("erfc", Literal(1)),
    one_node("random_bits", ["i64", "u64"], "u32"),
    one_node("random_bits", ["u32", "u64"], "u32"),
    one_node("random_bits", ["index", "index"], "u32"),
    one_node("random_bits", ["u64", "i64"], "u32"),
    one_node("random_bits", ["u64", "u32"], "u32"),
    one_node("random_bits", ["u64", "u64"], "u64"),
    one_node("random_uniform", ["u64", "i64"], "f32"),
    one_node("random_bits", ["u64", "u64"], "u32", attrs=APPROXIMATE),
]


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: str(program).replace("\n", "; "))
def test_refused(program: Kernel | Source) -> None:
    (answer,) = ADAPTER.compile([program], Options(3))
    assert isinstance(answer, Rejected), answer


def test_a_default_may_be_written_out() -> None:
    half = {"approximate": False, "flush_to_zero": False}
    got = run("exp2", ["f16"], np.array([0x4000], np.uint16), attrs=half)
    assert got.tolist() == [0x4400]
    assert run("tanh", ["f64"], encode("f64", [-0.0]), attrs={"approximate": False}).tolist() == [1 << 63]


def test_source_programs_carry_attributes() -> None:
    programs = [
        call("fdiv", X["f32"], Literal(2.0**127)),
        call("fdiv", X["f32"], Literal(2.0**127), approximate=True),
        call("exp2", Call("exp2", (X["f32"],), attrs=tuple(FLUSHING.items())), approximate=True),
        Source(Call("random_bits", (Literal(1), Literal(4)))),
        Source(Call("random_uniform", (Literal(0), Parameter("n", "index")), "f32")),
    ]
    plain, approximate, nested, bits, uniform = build(*programs)
    one = encode("f32", [1.0])
    assert plain(one)[0].view(np.float32).tolist() == [2.0**-127]
    assert approximate(one)[0].view(np.float32).tolist() == [0.0]
    assert nested(encode("f32", [-130.0]))[0].view(np.float32).tolist() == [1.0]
    assert int(bits()[0]) == 0xAC08141B
    assert uniform(np.array([2], np.uint64))[0].view(np.float32).tolist() == [(0xBC57AC4C >> 8) / 2**24]


def test_no_uniform_numbers_in_other_formats() -> None:
    (answer,) = ADAPTER.compile([one_node("random_uniform", ["u64", "u64"], "f64")], Options(3))
    assert isinstance(answer, Unsupported)


# Random bits.

COUNTERS = (0, 1, 2, 3, 4, (1 << 34) + 3, (1 << 64) - 1)
KNOWN = {
    0: "6627e8d5 e169c58d bc57ac4c 9b00dbd8 f8e4cca4 074944b3 31eb18f7",
    1: "e3e80670 e50a0ebc 95f222c0 b615aa27 ac08141b 0b334b07 09449a36",
    0x0123456789ABCDEF: "b850222e c58cb04b 14a7a020 7a84fff9 adca1466 5d27ddd9 ef9ceea3",
    (1 << 64) - 1: "72a47709 15474739 9f41b01f 22799a5a 19fed511 402bd930 3915061c",
}


@pytest.mark.parametrize("level", LEVELS)
def test_known_random_bits(level: int) -> None:
    """``intent:12-b``, with the seed as an array, a scalar and a constant."""
    counters = np.array(COUNTERS, np.uint64)
    for seed, words in KNOWN.items():
        want = [int(word, 16) for word in words.split()]
        seeds = np.full(len(counters), seed, np.uint64)
        assert run("random_bits", ["u64", "u64"], seeds, counters, result="u32", level=level).tolist() == want
        node = Apply("random_bits", (0, 1), "u32")
        scalar = Kernel((Input(Type("u64", ())), Input(Type("u64")), node), (2,))
        constant = Kernel((Constant("u64", seed), Input(Type("u64")), node), (2,))
        by_scalar, by_constant = build(scalar, constant, level=level)
        assert by_scalar(np.array(seed, np.uint64), counters)[0].tolist() == want
        assert by_constant(counters)[0].tolist() == want
        uniform = run("random_uniform", ["u64", "index"], seeds, counters, result="f32", level=level)
        assert uniform.view(np.float32)[:6].tolist() == [(word >> 8) / 2**24 for word in want[:6]]


def philox(seed: int, counter: int) -> int:
    """The definition, in Python integers."""
    low = (1 << 32) - 1
    c = [counter // 4 & low, counter // 4 >> 32, 0, 0]
    k = [seed & low, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & low, first >> 32 ^ c[3] ^ k[1], first & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c[counter % 4]


def test_random_bits_against_the_definition() -> None:
    rng = np.random.default_rng(5)
    seeds, counters = rng.integers(0, 1 << 64, (2, 2000), np.uint64)
    around = [(1 << 32) * 4 + offset for offset in range(-8, 8)] + [(1 << 64) - 1 - offset for offset in range(16)]
    counters[: len(around)] = around
    want = [philox(int(seed), int(counter)) for seed, counter in zip(seeds, counters, strict=True)]
    for level in LEVELS:
        got = run("random_bits", ["u64", "u64"], seeds, counters, result="u32", level=level)
        assert got.tolist() == want


def test_a_negative_counter_does_not_crash() -> None:
    seeds = np.zeros(3, np.uint64)
    counters = np.array([0, (1 << 64) - 1, 1], np.uint64)
    got = run("random_bits", ["u64", "index"], seeds, counters, result="u32")
    assert got[[0, 2]].tolist() == [0x6627E8D5, 0xE169C58D]


# The machinery.


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_threads(dtype: str) -> None:
    """lgamma of both signs from eight threads at once."""
    (compiled,) = build(one_node("lgamma", [dtype], dtype))
    operands = [sample("lgamma", dtype, 20000, seed) for seed in range(8)]
    alone = [np.asarray(compiled(operand)[0]) for operand in operands]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = list(pool.map(lambda operand: np.asarray(compiled(operand)[0]), operands))
            assert all((a == b).all() for a, b in zip(alone, together, strict=True))


def test_lgamma_writes_no_global() -> None:
    for level in LEVELS:
        text = ADAPTER.artifact(one_node("lgamma", ["f64"], "f64"), Options(level))
        assert "lgamma_r" in text
        assert "signgam" not in text


def test_coefficients_are_those_derived() -> None:
    for fit in derive.FITS:
        table, low = derive.coefficients(fit)
        assert tuple(table) == getattr(coefficients, fit.name), fit.name
        assert tuple(low) == getattr(coefficients, f"{fit.name}_LOW", ()), fit.name
        assert derive.error_bits(fit, table, low, 37) >= fit.bits, fit.name


def test_a_processor_without_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a fused multiply-add the results stay within the bounds."""
    name = "x86-64" if jit.host().triple.startswith("x86_64") else "generic"
    plain = jit.Host(jit.host().triple, name, "")
    monkeypatch.setattr(jit, "host", lambda: plain)
    for dtype in ("f32", "f64"):
        for function in ("lgamma", "i0", "tanh", "erfc"):
            operands = sample(function, dtype, 300, 13)
            if (function, dtype) == ("lgamma", "f64"):
                operands = operands[operands < 1 << 63]
            want = functions.nearest_many(function, FORMATS[dtype], operands)
            got = run(function, [dtype], operands)
            assert int(steps(dtype, got, want).max()) <= STEPS[dtype][function], (function, dtype)


def test_versions_name_the_library() -> None:
    assert ADAPTER.facts.versions["libm"]
