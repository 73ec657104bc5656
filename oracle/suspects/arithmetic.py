"""Wrong IEEE arithmetic (``intent:5``): rounding, subnormals, signs of zero, NaN, comparison, choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import Mask
from halfulp.oracle.suspects.integers import COMPARISONS, ORDERINGS
from halfulp.oracle.suspects.record import Scope, Suspect, compute, convert, intent, right, wrong

BitsRule = Callable[[Signature, Sequence[Bits]], Bits]

BINARY = ("add", "sub", "mul", "div")
ROUNDED = (*BINARY, "sqrt")
EXTREMA = ("maximum", "minimum", "maximum_num", "minimum_num")

JAX = "https://github.com/jax-ml/jax/issues/"


def on_floats(*names: str, where: Callable[[Format], bool] = lambda fmt: True) -> Scope:
    """Operations on floats of one format."""

    def scope(signature: Signature) -> bool:
        fmt = signature.formats[-1]
        return signature.op in names and fmt.is_float and where(fmt)

    return scope


def has_infinity(fmt: Format) -> bool:
    return fmt.infinity


def patched(where: Callable[..., Mask], value: Callable[..., Bits | int]) -> BitsRule:
    """The right answer, replaced where ``where(fmt, right, *operands)`` holds by ``value(...)``.

    ``fmt`` is the format of the operands.
    """

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        fmt, answer = signature.formats[-1], right(signature, operands)
        mask = where(fmt, answer, *operands)
        instead = np.asarray(value(fmt, answer, *operands), signature.result_format.storage)
        return np.where(mask, instead, answer)

    return bits_rule


def sign_of(fmt: Format, bits: Bits) -> Bits:
    return np.asarray(bits & fmt.storage.type(fmt.sign_mask))


def flushed(fmt: Format, bits: Bits) -> Bits:
    return np.where(codes.is_subnormal(fmt, bits), sign_of(fmt, bits), bits)


def any_nan(fmt: Format, answer: Bits, *operands: Bits) -> Mask:
    result = codes.is_nan(fmt, operands[0])
    for bits in operands[1:]:
        result = result | codes.is_nan(fmt, bits)
    return result


# Rounding.


def chopped(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Toward zero: step back from the nearest result where it lies beyond the exact one.

    The side is that of the same operation in f64: for operands of at most 24 bits a product is exact there, and a
    quotient or root that is no f32 value keeps its side. A sum may be inexact in f64, and then its own error decides.
    """
    fmt, answer = signature.result_format, right(signature, operands)
    wide = [codes.float64_values(fmt, bits) for bits in operands]
    with np.errstate(all="ignore"):
        match signature.op:
            case "add" | "sub":
                a, b = wide[0], wide[1] if signature.op == "add" else -wide[1]
                exact = a + b
                back = exact - a
                error = (a - (exact - back)) + (b - back)
            case "mul":
                exact, error = wide[0] * wide[1], np.zeros(len(answer))
            case "div":
                exact, error = wide[0] / wide[1], np.zeros(len(answer))
            case _:
                exact, error = np.sqrt(wide[0]), np.zeros(len(answer))
        near = codes.float64_values(fmt, answer)
        size, bound = np.abs(near), np.abs(exact)
        beyond = (size > bound) | ((size == bound) & (error * exact < 0))
        beyond &= np.isfinite(exact)
    return np.where(beyond, answer - answer.dtype.type(1), answer)


def _reciprocal(signature: Signature, operands: Sequence[Bits]) -> Bits:
    name, (a, b) = signature.result, operands
    return compute("mul", name, a, compute("div", name, one(signature.result_format, b), b))


def one(fmt: Format, like: Bits) -> Bits:
    """The number 1 in every element."""
    return np.full(len(like), fmt.bias << fmt.fraction_bits, fmt.storage)


def _rsqrt(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """x * (1 / sqrt x), with zero and infinity taken care of."""
    fmt, (x,) = signature.result_format, operands
    root = right(signature, operands)
    inverse = compute("div", signature.result, one(fmt, x), root)
    kept = codes.is_zero(fmt, x) | codes.is_infinite(fmt, x)
    return np.where(kept, root, compute("mul", signature.result, x, inverse))


def computed_in(mid: str) -> BitsRule:
    """Operands rounded to ``mid``, the operation done there, the result converted back."""

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        name = signature.result
        narrow = [convert(name, mid, bits) for bits in operands]
        return convert(mid, name, right(Signature(signature.op, (mid,) * len(narrow), mid), narrow))

    return bits_rule


def _tf32(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Operands cut to 10 fraction bits."""
    cut = [
        np.where(codes.is_nan(signature.result_format, bits), bits, bits & np.uint32(0xFFFFE000)) for bits in operands
    ]
    return right(signature, cut)


ROUNDING = (
    wrong(
        "arithmetic_truncates",
        "+ - * / sqrt round toward zero.",
        intent("5-a"),
        on_floats(*ROUNDED, where=lambda fmt: fmt.precision <= 24),
        chopped,
        source="https://github.com/ROCm/legacy-rocm-build/issues/1846",
    ),
    wrong(
        "division_by_reciprocal",
        "a / b is computed as a * (1 / b).",
        intent("5-a"),
        on_floats("div", where=has_infinity),
        _reciprocal,
        source="https://github.com/pytorch/pytorch/pull/115435",
    ),
    wrong(
        "sqrt_by_rsqrt",
        "sqrt x is computed as x * (1 / sqrt x).",
        intent("5-a"),
        on_floats("sqrt", where=has_infinity),
        _rsqrt,
    ),
    wrong(
        "f64_in_f32",
        "f64 arithmetic is done in f32.",
        intent("5-a"),
        on_floats(*ROUNDED, where=lambda fmt: fmt.name == "f64"),
        computed_in("f32"),
    ),
    wrong(
        "f16_in_bf16",
        "f16 arithmetic is done in bf16.",
        intent("5-a"),
        on_floats(*ROUNDED, where=lambda fmt: fmt.name == "f16"),
        computed_in("bf16"),
    ),
    wrong(
        "f32_product_in_tf32",
        "The operands of an f32 product are cut to 10 fraction bits.",
        intent("5-a"),
        on_floats("mul", where=lambda fmt: fmt.name == "f32"),
        _tf32,
    ),
    wrong(
        "arithmetic_saturates",
        "Results beyond the range become the largest finite number.",
        intent("5-a"),
        on_floats(*BINARY, where=has_infinity),
        patched(
            lambda fmt, answer, a, b: (
                codes.is_infinite(fmt, answer) & ~codes.is_infinite(fmt, a) & ~codes.is_infinite(fmt, b)
            ),
            lambda fmt, answer, a, b: sign_of(fmt, answer) | fmt.storage.type(fmt.max_finite_bits),
        ),
    ),
)


# Subnormals (intent:5-b).


def _flush_operands(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt = signature.formats[-1]
    return right(signature, [flushed(fmt, bits) for bits in operands])


SUBNORMALS = (
    wrong(
        "arithmetic_flushes_results",
        "+ - * / give a zero where the result is subnormal.",
        intent("5-b"),
        on_floats(*BINARY),
        lambda signature, operands: flushed(signature.result_format, right(signature, operands)),
        source=JAX + "37762",
    ),
    wrong(
        "arithmetic_flushes_operands",
        "+ - * / sqrt take subnormal operands for zeros.",
        intent("5-b"),
        on_floats(*ROUNDED),
        _flush_operands,
        source=JAX + "38632",
    ),
    wrong(
        "comparison_flushes_operands",
        "Comparisons take subnormal operands for zeros.",
        intent("5-b"),
        on_floats(*COMPARISONS),
        _flush_operands,
        source=JAX + "37762",
    ),
    wrong(
        "extremum_flushes_operands",
        "maximum and its kin take subnormal operands for zeros.",
        intent("5-b"),
        on_floats(*EXTREMA),
        _flush_operands,
        source=JAX + "37762",
    ),
)


# Zeros and their signs.


def _positive_zero(fmt: Format, answer: Bits, *operands: Bits) -> Bits | int:
    return 0


def _zero_result(fmt: Format, answer: Bits, *operands: Bits) -> Mask:
    return codes.is_zero(fmt, answer)


def _cancelled(fmt: Format, answer: Bits, *operands: Bits) -> Mask:
    """A zero from operands that are not zero."""
    return codes.is_zero(fmt, answer) & ~codes.is_zero(fmt, operands[0])


def _zero_minus(signature: Signature, operands: Sequence[Bits]) -> Bits:
    zero = np.zeros_like(operands[0])
    return compute("sub", signature.result, zero, operands[0])


ZEROS = (
    wrong(
        "arithmetic_loses_zero_sign",
        "+ - * / sqrt never give -0.",
        intent("5.2-m"),
        on_floats(*ROUNDED),
        patched(_zero_result, _positive_zero),
    ),
    wrong(
        "difference_gives_negative_zero",
        "x - x and x + -x are -0 (the rule of rounding toward minus infinity).",
        intent("5.2-m"),
        on_floats("add", "sub"),
        patched(_cancelled, lambda fmt, answer, a, b: fmt.sign_mask),
    ),
    wrong(
        "neg_as_subtraction",
        "-x is computed as 0 - x: the negation of +0 is +0.",
        intent("5.2-m"),
        on_floats("neg"),
        _zero_minus,
    ),
    wrong(
        "abs_by_comparison",
        "|x| is computed as x < 0 ? -x : x, which keeps -0.",
        intent("5.2-m"),
        on_floats("abs"),
        patched(_zero_result, lambda fmt, answer, x: x),
    ),
    wrong(
        "sqrt_of_negative_zero",
        "sqrt(-0) is NaN.",
        intent("5.2-m"),
        on_floats("sqrt"),
        patched(
            lambda fmt, answer, x: codes.is_zero(fmt, x) & (sign_of(fmt, x) != 0),
            lambda fmt, answer, x: fmt.nan_bits,
        ),
    ),
    wrong(
        "floor_loses_zero_sign",
        "floor(-0) is +0.",
        intent("5.2-m"),
        on_floats("floor"),
        patched(_zero_result, _positive_zero),
    ),
)


# NaN and infinity.


def _other_operand(fmt: Format, answer: Bits, a: Bits, b: Bits) -> Bits:
    return np.where(codes.is_nan(fmt, a), b, a)


def _invalid(fmt: Format, answer: Bits, *operands: Bits) -> Mask:
    """A NaN from operands that are none."""
    return codes.is_nan(fmt, answer) & ~any_nan(fmt, answer, *operands)


SPECIALS = (
    wrong(
        "division_by_zero_is_nan",
        "x / 0 is NaN.",
        intent("5-a"),
        on_floats("div", where=has_infinity),
        patched(lambda fmt, answer, a, b: codes.is_zero(fmt, b), lambda fmt, answer, a, b: fmt.nan_bits),
    ),
    wrong(
        "zero_by_zero_is_zero",
        "0 / x is folded to 0, and x * 0 as well.",
        intent("5.2-n"),
        lambda signature: on_floats("div")(signature) or on_floats("mul", where=has_infinity)(signature),
        patched(_invalid, _positive_zero),
        source="https://github.com/tile-ai/tilelang/issues/2638",
    ),
    wrong(
        "sqrt_clamps_negative",
        "sqrt of a negative number is zero.",
        intent("5.2-n"),
        on_floats("sqrt"),
        patched(_invalid, _positive_zero),
    ),
    wrong(
        "infinity_minus_infinity_is_zero",
        "The difference of equal infinities is zero.",
        intent("5.2-n"),
        on_floats("add", "sub", where=has_infinity),
        patched(_invalid, _positive_zero),
    ),
    wrong(
        "arithmetic_drops_nan",
        "+ - * / give the other operand where one is NaN.",
        intent("5.2-n"),
        on_floats(*BINARY),
        patched(any_nan, _other_operand),
    ),
)


# Floor.


def _floor_through_int(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Floor by way of a 32-bit integer: large values clamp, NaN is zero."""
    name = signature.result
    clamped = right(Signature("cast_saturate", (name,), "i32"), (right(signature, operands),))
    return convert("i32", name, clamped)


def _nearest_integral(rounding: Callable[[Any], Any]) -> BitsRule:
    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        fmt = signature.result_format
        with np.errstate(all="ignore"):
            whole = rounding(codes.float64_values(fmt, operands[0])).view(np.uint64)
        return np.where(codes.is_nan(fmt, operands[0]), operands[0], convert("f64", signature.result, whole))

    return bits_rule


FLOOR = (
    wrong(
        "floor_truncates",
        "floor rounds toward zero.",
        intent("5-a"),
        on_floats("floor"),
        _nearest_integral(np.trunc),
    ),
    wrong(
        "floor_rounds",
        "floor rounds to nearest.",
        intent("5-a"),
        on_floats("floor"),
        _nearest_integral(np.rint),
    ),
    wrong(
        "floor_through_int32",
        "floor goes through a 32-bit integer.",
        intent("5-a", "5.2-n"),
        on_floats("floor", where=lambda fmt: fmt.max_exponent > 31),
        _floor_through_int,
    ),
)


# Comparison.


def _negated_opposite(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """a < b as !(a >= b): true for NaN."""
    opposite = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}[signature.op]
    return right(Signature(opposite, signature.args, "bool"), operands) ^ np.uint8(1)


def _unordered_false(fmt: Format, answer: Bits, a: Bits, b: Bits) -> Mask:
    return any_nan(fmt, answer, a, b)


def _as_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    carrier = f"i{signature.formats[0].width}"
    return right(Signature(signature.op, (carrier, carrier), "bool"), operands)


def _by_difference(signature: Signature, operands: Sequence[Bits]) -> Bits:
    name = signature.args[0]
    difference = compute("sub", name, *operands)
    return right(signature, (difference, np.zeros_like(difference)))


COMPARING = (
    wrong(
        "unordered_is_true",
        "a < b is computed as not (a >= b), so it holds for NaN.",
        intent("5-a"),
        on_floats(*ORDERINGS),
        _negated_opposite,
    ),
    wrong(
        "ne_is_ordered",
        "a != b is false where an operand is NaN.",
        intent("5-a"),
        on_floats("ne"),
        patched(_unordered_false, lambda fmt, answer, a, b: 0),
    ),
    wrong(
        "equality_of_bits",
        "Floats are equal where their bits are: NaN equals itself, -0 differs from +0.",
        intent("5-a"),
        on_floats("eq", "ne"),
        _as_bits,
    ),
    wrong(
        "ordering_of_bits",
        "Floats are ordered by their bits as signed integers.",
        intent("5-a"),
        on_floats(*ORDERINGS),
        _as_bits,
        source="https://github.com/triton-lang/triton/issues/6376",
    ),
    wrong(
        "comparison_by_difference",
        "Floats are compared by the sign of their difference: equal infinities are unordered.",
        intent("5-a"),
        on_floats("eq", "ne", "le", "ge", where=has_infinity),
        _by_difference,
    ),
)


# maximum, minimum and select.


def _extremum(signature: Signature, operands: Sequence[Bits], op: str) -> Bits:
    return right(Signature(op, signature.args, signature.result), operands)


def _renamed(names: dict[str, str]) -> BitsRule:
    return lambda signature, operands: _extremum(signature, operands, names[signature.op])


def _by_ternary(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """a > b ? a : b, so that the second operand comes out where either is NaN."""
    relation = "gt" if signature.op.startswith("maximum") else "lt"
    first = right(Signature(relation, signature.args, "bool"), operands)
    return np.where(first != 0, operands[0], operands[1])


def _by_std_max(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """a < b ? b : a for the maximum and b < a ? b : a for the minimum: the first operand where either is NaN."""
    largest = signature.op.startswith("maximum")
    second = right(Signature("lt", signature.args, "bool"), operands if largest else operands[::-1])
    return np.where(second != 0, operands[1], operands[0])


def _integer_order(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The larger bit pattern as a signed integer, which reverses the order of negative numbers."""
    fmt, (a, b) = signature.result_format, operands
    carrier = format_of(f"i{fmt.width}")
    first = codes.int_values(carrier, a) > codes.int_values(carrier, b)
    if signature.op.startswith("minimum"):
        first = ~first
    chosen = np.where(first, a, b)
    return np.where(any_nan(fmt, chosen, a, b), right(signature, operands), chosen)


def _quieted(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt, answer = signature.result_format, right(signature, operands)
    return np.where(codes.is_nan(fmt, answer), answer | fmt.storage.type(fmt.nan_bits), answer)


def _by_arithmetic(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """c*a + (1 - c)*b: the lane not taken counts where it is NaN or infinite."""
    fmt, name, (condition, a, b) = signature.result_format, signature.result, operands
    unit = one(fmt, a)
    yes = np.where(condition != 0, unit, 0).astype(fmt.storage)
    no = np.where(condition != 0, 0, unit).astype(fmt.storage)
    return compute("add", name, compute("mul", name, yes, a), compute("mul", name, no, b))


CHOICE = (
    wrong(
        "maximum_drops_nan",
        "maximum and minimum ignore a one-sided NaN.",
        intent("5.2-k"),
        on_floats("maximum", "minimum"),
        _renamed({"maximum": "maximum_num", "minimum": "minimum_num"}),
        source="https://github.com/tile-ai/tilelang/issues/2697",
    ),
    wrong(
        "maximum_num_propagates_nan",
        "maximum_num and minimum_num give NaN where one operand is NaN.",
        intent("5.2-l"),
        on_floats("maximum_num", "minimum_num"),
        _renamed({"maximum_num": "maximum", "minimum_num": "minimum"}),
    ),
    wrong(
        "extremum_by_ternary",
        "maximum is a > b ? a : b: the second operand comes out where either is NaN.",
        intent("5.2-k", "5.2-l"),
        on_floats(*EXTREMA),
        _by_ternary,
        source="https://github.com/apache/tvm/issues/19540",
    ),
    wrong(
        "extremum_by_std_max",
        "maximum is a < b ? b : a: the first operand comes out where either is NaN.",
        intent("5.2-k", "5.2-l"),
        on_floats(*EXTREMA),
        _by_std_max,
        source="https://github.com/tile-ai/tilelang/issues/2882",
    ),
    wrong(
        "maximum_minimum_swapped",
        "maximum and minimum are exchanged.",
        intent("5-a"),
        on_floats(*EXTREMA),
        _renamed(
            {
                "maximum": "minimum",
                "minimum": "maximum",
                "maximum_num": "minimum_num",
                "minimum_num": "maximum_num",
            }
        ),
    ),
    wrong(
        "extremum_by_bits",
        "maximum compares bit patterns as signed integers.",
        intent("5-a"),
        on_floats(*EXTREMA),
        _integer_order,
        source="https://github.com/triton-lang/triton/issues/6376",
    ),
    wrong(
        "select_inverted",
        "select takes the other operand.",
        ("reading:29",),
        lambda signature: signature.op == "select",
        lambda signature, operands: np.where(operands[0] != 0, operands[2], operands[1]),
        carries_bits=True,
    ),
    wrong(
        "select_quiets_nan",
        "select sets the quiet bit of a signalling NaN.",
        ("reading:29",),
        on_floats("select", where=lambda fmt: fmt.nan == "ieee"),
        _quieted,
        carries_bits=True,
    ),
    wrong(
        "select_by_arithmetic",
        "select is c*a + (1 - c)*b: a NaN or infinity in the operand not taken spoils it.",
        ("reading:29",),
        on_floats("select", where=has_infinity),
        _by_arithmetic,
        carries_bits=True,
    ),
)


SUSPECTS: tuple[Suspect, ...] = (
    *ROUNDING,
    *SUBNORMALS,
    *ZEROS,
    *SPECIALS,
    *FLOOR,
    *COMPARING,
    *CHOICE,
)
