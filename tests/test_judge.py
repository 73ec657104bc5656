"""Judging kernels of several operations: FMA freedom, zeros, NaN bits, certainty."""

from __future__ import annotations

import numpy as np
import pytest

from halfulp.oracle import codes
from halfulp.oracle.formats import format_of
from halfulp.oracle.judge import allowed_sets, evaluate, judge
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.ops import OPERATIONS, Signature
from halfulp.oracle.sets import Verdict

F32 = Input(Type("f32"))
A, U, F, N = Verdict.ALLOWED, Verdict.UNSPECIFIED, Verdict.FORBIDDEN, Verdict.NO_CLAIM


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32)


# 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: the last bit is lost when the product is rounded.
ALMOST_ONE = 1 + 2.0**-12
SQUARE = np.float32(ALMOST_ONE) * np.float32(ALMOST_ONE)
FUSED = 2.0**-24  # of a*a - RN(a*a)

SUM = Kernel((F32, F32, F32, Apply("mul", (0, 1), "f32"), Apply("add", (3, 2), "f32")), (4,))
SUM_AND_PRODUCT = Kernel(SUM.values, (4, 3))


def test_a_sum_may_be_fused_or_not() -> None:
    inputs = [f32(ALMOST_ONE)] * 2 + [f32(-SQUARE)]
    for got, verdict in ((0.0, A), (FUSED, A), (2.0**-23, F)):
        assert judge(SUM, inputs, [f32(got)])[0][0] == verdict


def test_a_fused_use_does_not_change_the_product() -> None:
    """intent:5.5-c."""
    inputs = [f32(ALMOST_ONE)] * 2 + [f32(-SQUARE)]
    for product, verdict in ((SQUARE, A), (np.nextafter(SQUARE, np.float32(2)), F)):
        assert judge(SUM_AND_PRODUCT, inputs, [f32(FUSED), f32(product)])[1][0] == verdict


@pytest.mark.parametrize(
    ("op", "args"), [("add", (3, 2)), ("add", (2, 3)), ("sub", (3, 2)), ("sub", (2, 3))], ids=lambda x: str(x)
)
def test_all_four_shapes(op: str, args: tuple[int, int]) -> None:
    kernel = Kernel((F32, F32, F32, Apply("mul", (0, 1), "f32"), Apply(op, args, "f32")), (4,))
    c = -SQUARE if op == "add" else SQUARE
    sign = -1 if (op, args) == ("sub", (2, 3)) else 1
    inputs = [f32(ALMOST_ONE)] * 2 + [f32(c)]
    assert judge(kernel, inputs, [f32(sign * FUSED)])[0][0] == A
    assert judge(kernel, inputs, [f32(-sign * FUSED)])[0][0] == F


def test_two_products_have_three_forms() -> None:
    kernel = Kernel(
        (F32, F32, F32, F32, Apply("mul", (0, 1), "f32"), Apply("mul", (2, 3), "f32"), Apply("sub", (4, 5), "f32")),
        (6,),
    )
    inputs = [f32(ALMOST_ONE)] * 4
    for got, verdict in ((0.0, A), (FUSED, A), (-FUSED, A), (2 * FUSED, F)):
        assert judge(kernel, inputs, [f32(got)])[0][0] == verdict


def test_one_choice_must_explain_all_outputs() -> None:
    """The sum computed once is one value: both users see the same rounding."""
    kernel = Kernel((*SUM.values, Apply("neg", (4,), "f32")), (4, 5))
    inputs = [f32(ALMOST_ONE)] * 2 + [f32(-SQUARE)]
    assert [v[0] for v in judge(kernel, inputs, [f32(FUSED), f32(-FUSED)])] == [A, A]
    mixed = [v[0] for v in judge(kernel, inputs, [f32(FUSED), f32(-0.0)])]
    assert U in mixed  # only recomputation explains it (reading:31)
    assert F not in mixed


def test_fusing_through_a_negation_is_unspecified() -> None:
    kernel = Kernel(
        (F32, F32, F32, Apply("mul", (0, 1), "f32"), Apply("neg", (3,), "f32"), Apply("add", (4, 2), "f32")), (5,)
    )
    inputs = [f32(ALMOST_ONE)] * 2 + [f32(SQUARE)]
    for got, verdict in ((0.0, A), (-FUSED, U), (FUSED, F)):
        assert judge(kernel, inputs, [f32(got)])[0][0] == verdict


def test_a_cast_is_a_wall() -> None:
    """intent:5.5-d: no fusing across a cast."""
    half = Input(Type("f16"))
    kernel = Kernel(
        (half, half, F32, Apply("mul", (0, 1), "f16"), Apply("cast", (3,), "f32"), Apply("add", (4, 2), "f32")), (5,)
    )
    a = np.array([0x3C01], np.uint16)  # 1 + 2^-10; its square needs 21 bits
    exact = (1 + 2.0**-10) ** 2
    rounded = float(np.float16(exact))
    inputs = [a, a, f32(-rounded)]
    assert judge(kernel, inputs, [f32(0.0)])[0][0] == A
    assert judge(kernel, inputs, [f32(exact - rounded)])[0][0] == F


def test_no_reassociation() -> None:
    """intent:5-b: (2^24 + 1) + 1 is not 2^24 + 2."""
    kernel = Kernel((F32, F32, F32, Apply("add", (0, 1), "f32"), Apply("add", (3, 2), "f32")), (4,))
    inputs = [f32(2.0**24), f32(1.0), f32(1.0)]
    assert judge(kernel, inputs, [f32(2.0**24)])[0][0] == A
    assert judge(kernel, inputs, [f32(2.0**24 + 2)])[0][0] == F


def test_either_zero_of_a_maximum_and_what_follows() -> None:
    kernel = Kernel(
        (F32, F32, Constant("f32", 0x3F800000), Apply("maximum", (0, 1), "f32"), Apply("div", (2, 3), "f32")), (4,)
    )
    inputs = [f32(0.0), f32(-0.0)]
    for got, verdict in ((np.inf, A), (-np.inf, A), (0.0, F)):
        assert judge(kernel, inputs, [f32(got)])[0][0] == verdict


def test_bits_of_a_computed_nan_are_free_and_of_a_given_one_are_not() -> None:
    """reading:29."""
    computed = Kernel((F32, Apply("sqrt", (0,), "f32"), Apply("bitcast", (1,), "i32")), (2,))
    for bits, verdict in ((0x7FC00000, A), (0xFFC00000, A), (0x7F800001, A), (0x7F800000, F), (0x00000000, F)):
        assert judge(computed, [f32(-1.0)], [np.array([bits], np.uint32)])[0][0] == verdict
    given = one_node("bitcast", ("f32",), "i32")
    nan = np.array([0x7F800001], np.uint32)
    assert judge(given, [nan], [nan])[0][0] == A
    assert judge(given, [nan], [np.array([0x7FC00001], np.uint32)])[0][0] == F


def test_nothing_is_claimed_after_an_illegal_operand() -> None:
    i32 = Input(Type("i32"))
    kernel = Kernel((i32, i32, Apply("floordiv", (0, 1), "i32"), Apply("add", (2, 0), "i32")), (3,))
    inputs = [np.array([7, 7], np.uint32), np.array([0, 2], np.uint32)]
    assert list(judge(kernel, inputs, [np.array([99, 10], np.uint32)])[0]) == [N, A]


def test_scalars_and_constants_broadcast() -> None:
    scalar = Input(Type("f32", ()))
    kernel = Kernel(
        (F32, scalar, Constant("f32", 0x40000000), Apply("add", (0, 1), "f32"), Apply("mul", (3, 2), "f32")), (4,)
    )
    x = f32(1.0, 2.0, 3.0)
    (result,) = evaluate(kernel, [x, np.asarray(f32(1.0)[0])])
    assert list(result.view(np.float32)) == [4.0, 6.0, 8.0]
    assert not judge(kernel, [x, np.asarray(f32(1.0)[0])], [result])[0].any()


def test_a_kernel_of_constants_has_rank_zero() -> None:
    kernel = Kernel((Constant("f64", 0x3FF0100000001000), Apply("cast", (0,), "bf16")), (1,))
    (result,) = evaluate(kernel, [])
    assert result.shape == ()
    assert int(result) == 0x3F81
    assert judge(kernel, [], [result])[0][0] == A


def test_allowed_sets_are_the_union_of_the_choices() -> None:
    (allowed,) = allowed_sets(SUM, [f32(ALMOST_ONE), f32(ALMOST_ONE), f32(-SQUARE)])
    for got, verdict in ((0.0, A), (FUSED, A), (1.0, F)):
        assert allowed.judge(f32(got))[0] == verdict


def test_the_record_of_muladd_agrees_with_the_graph() -> None:
    rng = np.random.default_rng(7)
    for dtype in ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2"):
        signature = Signature("muladd", (dtype,) * 3, dtype)
        record = OPERATIONS["muladd"]
        fmt = signature.result_format
        operands = [np.frombuffer(rng.bytes(4096 * fmt.storage.itemsize), fmt.storage) for _ in range(3)]
        alone, graph = record.allowed(signature, operands), allowed_sets(record.kernel(signature), operands)[0]
        assert np.array_equal(alone.claimed, graph.claimed)
        assert np.array_equal(alone.only_unspecified, graph.only_unspecified)
        for other in (alone.nearest, graph.nearest):
            kept = graph.claimed & ~graph.only_unspecified
            assert not alone.judge(other)[kept].any()
            assert not graph.judge(other)[kept].any()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_any_length_beside_a_scalar(n: int) -> None:
    kernel = Kernel((F32, Input(Type("f32", ())), Apply("mul", (0, 1), "f32"), Apply("add", (2, 1), "f32")), (3,))
    inputs = [np.zeros(n, np.uint32), np.asarray(np.uint32(0))]
    (result,) = evaluate(kernel, inputs)
    (verdicts,) = judge(kernel, inputs, [result])
    assert result.shape == verdicts.shape == (n,)
    assert len(allowed_sets(kernel, inputs)[0]) == n


# Ranges.


def _through_f32(name: str, dtype: str) -> Kernel:
    """What reading 10 says of functions below f32, as a program."""
    node = Apply(name, (1,), "f32")
    return Kernel((Input(Type(dtype)), Apply("cast", (0,), "f32"), node, Apply("cast", (2,), dtype)), (3,))


@pytest.mark.parametrize("dtype", ["f8e5m2", "f8e4m3fn", "bf16"])
@pytest.mark.parametrize("name", ["erfc", "i0", "log1p", "lgamma"])
def test_a_range_passes_through_a_cast(name: str, dtype: str) -> None:
    """The set of the f16 function is the image of the f32 set, wherever rounding twice does no harm."""
    fmt = format_of(dtype)
    operands = np.arange(fmt.code_count, dtype=fmt.storage)[:: 1 if fmt.width == 8 else 61]
    direct = OPERATIONS[name].allowed(Signature(name, (dtype,), dtype), (operands,))
    (image,) = allowed_sets(_through_f32(name, dtype), (operands,))
    same = direct.nearest == image.nearest
    assert same.mean() > 0.99
    for step in range(-3, 4):
        got = codes.from_ordinal(fmt, np.clip(codes.ordinal(fmt, direct.nearest) + step, *codes.ordinal_span(fmt)))
        got = np.where(codes.is_nan(fmt, direct.nearest), direct.nearest, got)
        claimed = direct.claimed & image.claimed & same
        assert (direct.judge(got) == image.judge(got))[claimed].all()


def test_a_range_passes_through_a_negation() -> None:
    """... and back, mirrored; the verdicts are those of the function itself. Through a sum it does not pass."""
    fmt = format_of("f32")
    operands = np.array([0x3F000000, 0x3FC00000, 0x41000000, 0xBF800000, 0x7FC00000], fmt.storage)
    plain = Kernel((Input(Type("f32")), Apply("erfc", (0,), "f32")), (1,))
    minus = Kernel((*plain.values, Apply("neg", (1,), "f32")), (2,))
    (right,) = evaluate(plain, (operands,))
    for step in range(-6, 7):
        got = right + np.uint32(step) if step >= 0 else right - np.uint32(-step)
        (direct,), (mirrored,) = judge(plain, (operands,), [got]), judge(minus, (operands,), [got ^ np.uint32(1 << 31)])
        assert (direct == mirrored).all()
    assert set(direct[:4]) == {Verdict.FORBIDDEN}
    total = Kernel((*plain.values, Apply("add", (1, 1), "f32")), (2,))
    assert set(judge(total, (operands,), evaluate(total, (operands,)))[0][:4]) == {Verdict.NO_CLAIM}


def test_a_range_that_a_cast_does_not_take_has_no_claim() -> None:
    """exp2 of numbers around log2(448): the range of f32 results reaches beyond f8e4m3fn's largest number."""
    operands = np.array([0x410CEAED, 0x410CEA00, 0x41000000], np.uint32)  # log2(448), somewhat less, and 8
    kernel = Kernel((Input(Type("f32")), Apply("exp2", (0,), "f32"), Apply("cast", (1,), "f8e4m3fn")), (2,))
    (found,) = allowed_sets(kernel, (operands,))
    assert found.claimed.tolist() == [False, False, True]
