"""Wrong functions (``intent:5-c`` to ``5-k``) and wrong approximate operations (``intent:5.1``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halfulp.oracle import codes, rounding_array
from halfulp.oracle.formats import FORMATS, Bits, Format
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Apply, Kernel
from halfulp.oracle.ops.functions import APPROXIMATE, FLUSHING
from halfulp.oracle.ops.record import Attrs, Signature
from halfulp.oracle.sets import Mask
from halfulp.oracle.suspects.arithmetic import (
    BINARY,
    BitsRule,
    chopped,
    computed_in,
    flushed,
    has_infinity,
    one,
    patched,
    sign_of,
)
from halfulp.oracle.suspects.record import CLASSIC, KernelRule, Scope, Suspect, compute, convert, intent, right, wrong
from halfulp.oracle.suspects.rewrite import Builder, NodeRule, pass_over

F32, F64 = FORMATS["f32"], FORMATS["f64"]
F64Array = np.ndarray[Any, np.dtype[np.float64]]

LOG_2 = float.fromhex("0x1.62e42fefa39efp-1")

PLAIN: Attrs = ()
UNARY = ("lgamma", "asin", "log1p", "erfc", "i0", "exp2", "tanh")


def reading(*numbers: int) -> tuple[str, ...]:
    return tuple(f"reading:{number}" for number in numbers)


def of(*names: str, where: Callable[[Format], bool] = lambda fmt: True, attrs: Sequence[Attrs] = (PLAIN,)) -> Scope:
    """Functions in formats, in modes."""
    return lambda s: s.op in names and s.attrs in attrs and where(s.result_format)


def in_formats(*names: str) -> Callable[[Format], bool]:
    return lambda fmt: fmt.name in names


WIDE = in_formats("f32", "f64")
SHORT = in_formats("f16", "bf16")
ANY_MODE = (PLAIN, APPROXIMATE, FLUSHING)
APPROXIMATELY = (APPROXIMATE, FLUSHING)


def values(fmt: Format, bits: Bits) -> F64Array:
    return codes.float64_values(fmt, bits)


def rounded(fmt: Format, exact: F64Array) -> Bits:
    """Numbers of f64 in another float format."""
    return rounding_array.cast_float(F64, fmt, np.ascontiguousarray(exact, np.float64).view(np.uint64)).bits


def code(fmt: Format, value: float) -> int:
    return int(rounded(fmt, np.array([value]))[0])


def finite(fmt: Format, bits: Bits) -> Mask:
    return ~(codes.is_nan(fmt, bits) | codes.is_infinite(fmt, bits))


def moved(steps: int) -> BitsRule:
    """The right result moved away from zero by some steps, where it is finite and no zero."""
    return patched(
        lambda fmt, answer, *operands: finite(fmt, answer) & ~codes.is_zero(fmt, answer),
        lambda fmt, answer, *operands: answer + answer.dtype.type(steps),
    )


def nan_in(fmt: Format, answer: Bits, *operands: Bits) -> Mask:
    return codes.is_nan(fmt, operands[0])


def _subnormal_result(fmt: Format, answer: Bits, *operands: Bits) -> Mask:
    return codes.is_subnormal(fmt, answer)


def at_infinity(negative: bool) -> Callable[..., Mask]:
    def where(fmt: Format, answer: Bits, bits: Bits) -> Mask:
        return np.asarray(codes.is_infinite(fmt, bits) & (codes.is_negative(fmt, bits) == negative))

    return where


def nan(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    return np.full(len(answer), fmt.nan_bits, fmt.storage)


def constant(value: float) -> Callable[..., Bits]:
    return lambda fmt, answer, *operands: np.full(len(answer), code(fmt, value), fmt.storage)


def negated(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    return np.asarray(answer ^ fmt.storage.type(fmt.sign_mask))


def largest(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    return np.asarray(sign_of(fmt, answer) | fmt.storage.type(fmt.max_finite_bits))


def below_minus_one(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    return np.asarray(values(fmt, bits) < -1)


def of_magnitude(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The function of |x| where x is negative, but for poles and infinities."""
    fmt, (bits,) = signature.result_format, operands
    magnitude = bits & fmt.storage.type(fmt.magnitude_mask)
    answer = right(signature, operands)
    kept = ~finite(fmt, answer) | ~finite(fmt, bits)
    return np.where(kept, answer, right(signature, (magnitude,)))


# Functions by formulas that lose what matters.


def _right_f64(op: str, x: F64Array) -> F64Array:
    return right(Signature(op, ("f64",), "f64"), (np.ascontiguousarray(x).view(np.uint64),)).view(np.float64)


def logarithm(x: F64Array) -> F64Array:
    """log x to a few ulp, and the same on every machine: the C library's last bits differ from one to the next."""
    with np.errstate(all="ignore"):
        half, exponent = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
        low = half < math.sqrt(0.5)
        near_one, exponent = np.where(low, 2 * half, half), np.where(low, exponent - 1, exponent)
        found = _right_f64("log1p", near_one - 1) + exponent * LOG_2
        return np.where(x > 0, np.where(np.isinf(x), x, found), np.where(x == 0, -math.inf, math.nan))


def _log_of_sum(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The sum in f32, or in f64."""
    fmt, (bits,) = signature.result_format, operands
    x = values(fmt, bits)
    with np.errstate(all="ignore"):
        total = 1 + x if fmt.width == 64 else (np.float32(1) + x.astype(np.float32)).astype(np.float64)
        return rounded(fmt, logarithm(total))


def _log_of_short_sum(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The sum in the format of the operand."""
    fmt, (bits,) = signature.result_format, operands
    total = values(fmt, compute("add", fmt.name, one(fmt, bits), bits))
    return rounded(fmt, logarithm(total))


def _erf(x: F64Array) -> F64Array:
    """erf x as well as f64 has it beside 1, which is what it is subtracted from."""
    return 1 - _right_f64("erfc", x)


def _one_minus_erf(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt, (bits,) = signature.result_format, operands
    found = _erf(values(fmt, bits))
    if fmt.width < 64:
        found = found.astype(np.float32).astype(np.float64)
    return rounded(fmt, 1 - found)


def _only_logarithm(fmt: Format, answer: Bits, bits: Bits) -> Bits:
    return rounded(fmt, -logarithm(np.abs(values(fmt, bits))))


def _near_zero(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    magnitude = np.abs(values(fmt, bits))
    return np.asarray((magnitude > 0) & (magnitude < 0.25))


def _negative_gamma(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    """Gamma(x) is negative."""
    x = np.where(finite(fmt, bits), values(fmt, bits), 0)
    return np.asarray((x < 0) & (np.floor(x) % 2 == 1) & (np.floor(x) != x))


def _one_or_two(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    return np.isin(values(fmt, bits), (1, 2))


def _pole(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    return codes.is_infinite(fmt, answer) & finite(fmt, bits) & (values(fmt, bits) <= 0)


def _at(bits_of_operand: int) -> Callable[..., Mask]:
    return lambda fmt, answer, bits: np.asarray(bits == fmt.storage.type(bits_of_operand))


def _before_join(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    x = values(fmt, bits)
    return np.asarray((x >= 1.2) & (x < 1.25))


def _shifted(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    """Wrong from the 12th bit on."""
    return np.asarray(answer + answer.dtype.type(1 << (fmt.fraction_bits - 12)))


def _beyond_exp(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    limit = 709.78 if fmt.width == 64 else 88.72
    return (np.abs(values(fmt, bits)) > limit) & finite(fmt, bits)


def _infinite(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    return np.full(len(answer), fmt.infinity_bits, fmt.storage)


def _overflowed(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    return codes.is_infinite(fmt, answer) & finite(fmt, bits)


def _beyond_two(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    return np.asarray(np.abs(values(fmt, bits)) > 2)


def _signed_one(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    return sign_of(fmt, answer) | one(fmt, answer)


def _no_sign_of_zero(fmt: Format, answer: Bits, *operands: Bits) -> Bits:
    return np.asarray(answer & fmt.storage.type(fmt.magnitude_mask))


FORMULAS = (
    wrong(
        "log1p_of_rounded_sum",
        "log1p is log of the rounded sum 1 + x.",
        intent("5-e", "5-h"),
        of("log1p", where=in_formats("f16", "bf16", "f32", "f64")),
        _log_of_sum,
    ),
    wrong(
        "log1p_in_short_format",
        "log1p of f16 and bf16 adds 1 in that format.",
        intent("5-h"),
        of("log1p", where=SHORT),
        _log_of_short_sum,
    ),
    wrong(
        "erfc_by_one_minus_erf",
        "erfc is 1 minus the rounded erf.",
        intent("5-f", "5-h"),
        of("erfc", where=in_formats("bf16", "f32", "f64")),
        _one_minus_erf,
    ),
    wrong(
        "functions_of_f64_in_f32",
        "asin, log1p, erfc, i0 and fdiv of f64 are computed in f32.",
        intent("5-e", "5-f", "5-g", "5-h", "5.1-a"),
        of("asin", "log1p", "erfc", "i0", "fdiv", where=in_formats("f64")),
        computed_in("f32"),
    ),
    wrong(
        "log1p_wrong_at_one_operand",
        "log1p of f32 is 2 ulp off at one operand, 0x3efd81ad.",
        intent("5-e"),
        of("log1p", where=in_formats("f32")),
        patched(_at(0x3EFD81AD), lambda fmt, answer, bits: answer + np.uint32(2)),
    ),
    wrong(
        "erfc_join_misplaced",
        "erfc's formula for x >= 1.25 is used from 1.2 on, where it has 12 bits.",
        intent("5-f"),
        of("erfc", where=WIDE),
        patched(_before_join, _shifted),
    ),
    wrong(
        "lgamma_is_logarithm_near_zero",
        "lgamma is -log|x| up to |x| = 1/4.",
        reading(9, 10),
        of("lgamma", where=in_formats("f16", "bf16", "f32", "f64")),
        patched(_near_zero, _only_logarithm),
    ),
    wrong(
        "lgamma_without_reflection",
        "lgamma of a negative number is that of its magnitude.",
        reading(9, 10),
        of("lgamma"),
        of_magnitude,
    ),
    wrong(
        "lgamma_of_negative_gamma_nan",
        "lgamma is the logarithm of Gamma, and NaN where Gamma is negative.",
        reading(9, 10),
        of("lgamma"),
        patched(_negative_gamma, nan),
    ),
    wrong(
        "i0_overflows_with_exp",
        "i0 is exp|x| times a small number, and infinite where exp|x| overflows.",
        intent("5-g", "5-h"),
        of("i0", where=in_formats("bf16", "f32", "f64")),
        patched(_beyond_exp, _infinite),
    ),
    wrong(
        "tanh_saturates_early",
        "tanh is 1 beyond 2.",
        (*intent("5.1-a", "5.1-f"), *reading(10)),
        of("tanh", where=in_formats("f16", "bf16", "f32", "f64"), attrs=ANY_MODE),
        patched(_beyond_two, _signed_one),
    ),
)


# Special values.

SPECIAL = (
    wrong(
        "lgamma_zero_negative",
        "lgamma is -0 at 1 and 2.",
        intent("5-c"),
        of("lgamma"),
        patched(_one_or_two, negated),
    ),
    wrong(
        "lgamma_zero_inexact",
        "lgamma is 2^-21 at 1 and 2.",
        intent("5-c"),
        of("lgamma", where=in_formats("f16", "bf16", "f32", "f64")),
        patched(_one_or_two, constant(2.0**-21)),
    ),
    wrong(
        "lgamma_pole_negative",
        "lgamma is -infinity at its poles.",
        intent("5-c"),
        of("lgamma", where=has_infinity),
        patched(_pole, negated),
    ),
    wrong(
        "lgamma_pole_nan",
        "lgamma is NaN at its poles.",
        intent("5-c"),
        of("lgamma", where=has_infinity),
        patched(_pole, nan),
    ),
    wrong(
        "lgamma_of_minus_infinity_nan",
        "lgamma of -infinity is NaN.",
        intent("5-c"),
        of("lgamma", where=has_infinity),
        patched(at_infinity(True), nan),
    ),
    wrong(
        "asin_even",
        "asin of a negative number is that of its magnitude.",
        (*reading(9), *intent("5-h")),
        of("asin"),
        of_magnitude,
    ),
    wrong(
        "asin_beyond_right_angle",
        "asin of 1 is the next number above RN(pi/2).",
        (*reading(9), *intent("5-h")),
        of("asin"),
        patched(
            lambda fmt, answer, bits: np.abs(values(fmt, bits)) == 1,
            lambda fmt, answer, bits: answer + answer.dtype.type(1),
        ),
    ),
    wrong(
        "asin_clamps",
        "asin beyond 1 is pi/2.",
        intent("5-d"),
        of("asin"),
        patched(
            lambda fmt, answer, bits: np.abs(values(fmt, bits)) > 1,
            lambda fmt, answer, bits: sign_of(fmt, bits) | fmt.storage.type(code(fmt, math.pi / 2)),
        ),
    ),
    wrong(
        "log1p_below_minus_one_infinite",
        "log1p below -1 is -infinity.",
        intent("5-e"),
        of("log1p", where=has_infinity),
        patched(below_minus_one, constant(-math.inf)),
    ),
    wrong(
        "log1p_of_minus_one_nan",
        "log1p of -1 is NaN.",
        intent("5-e"),
        of("log1p", where=has_infinity),
        patched(lambda fmt, answer, bits: values(fmt, bits) == -1, nan),
    ),
    wrong(
        "erfc_even",
        "erfc of a negative number is that of its magnitude.",
        intent("5-f", "5-h"),
        of("erfc"),
        of_magnitude,
    ),
    wrong(
        "erfc_of_infinity_nan",
        "erfc of infinity is NaN: exp(-x*x) is 0, and what it is multiplied by infinite.",
        intent("5-f"),
        of("erfc", where=has_infinity),
        patched(at_infinity(False), nan),
    ),
    wrong(
        "erfc_of_minus_infinity_zero",
        "erfc of -infinity is 0.",
        intent("5-f"),
        of("erfc", where=has_infinity),
        patched(at_infinity(True), constant(0.0)),
    ),
    wrong(
        "i0_odd",
        "i0 has the sign of its operand.",
        intent("5-g", "5-h"),
        of("i0"),
        patched(lambda fmt, answer, bits: codes.is_negative(fmt, bits) & ~codes.is_nan(fmt, bits), negated),
    ),
    wrong(
        "i0_of_minus_infinity_zero",
        "i0 of -infinity is 0: exp(x) is.",
        intent("5-g"),
        of("i0", where=has_infinity),
        patched(at_infinity(True), constant(0.0)),
    ),
    wrong(
        "i0_saturates",
        "i0 beyond the range is the largest number.",
        intent("5-g", "5-h"),
        of("i0", where=has_infinity),
        patched(_overflowed, largest),
    ),
    wrong(
        "exp2_of_minus_infinity_tiny",
        "exp2 of -infinity is the smallest normal number.",
        intent("5-a", "5.1-e"),
        of("exp2", where=has_infinity, attrs=ANY_MODE),
        patched(at_infinity(True), lambda fmt, answer, bits: fmt.storage.type(fmt.min_normal_bits)),
    ),
    wrong(
        "exp2_of_infinity_finite",
        "exp2 of infinity is the largest number.",
        intent("5-a", "5.1-e"),
        of("exp2", where=has_infinity, attrs=ANY_MODE),
        patched(at_infinity(False), largest),
    ),
    wrong(
        "tanh_of_infinity_nan",
        "tanh of an infinity is NaN: a quotient of infinities.",
        intent("5-a", "5.1-f"),
        of("tanh", where=has_infinity, attrs=ANY_MODE),
        patched(lambda fmt, answer, bits: codes.is_infinite(fmt, bits), nan),
    ),
    wrong(
        "functions_swallow_nan",
        "A function of NaN is 0.",
        intent("5-a", "5-c", "5-d", "5-e", "5-f", "5-g", "5.1-e", "5.1-f"),
        of(*UNARY, attrs=ANY_MODE),
        patched(nan_in, constant(0.0)),
    ),
    wrong(
        "functions_lose_minus_zero",
        "asin, log1p and tanh of -0 are +0.",
        intent("5-a", "5-d", "5-e", "5.1-f"),
        of("asin", "log1p", "tanh", attrs=ANY_MODE),
        patched(lambda fmt, answer, bits: codes.is_zero(fmt, bits), _no_sign_of_zero),
    ),
    wrong(
        "functions_flush_results",
        "Subnormal results of log1p, erfc and approximate exp2 are zero, without flush_to_zero.",
        intent("5-e", "5-f", "5-h", "5.1-e"),
        lambda s: of("log1p", "erfc")(s) or of("exp2", attrs=(APPROXIMATE,))(s),
        patched(_subnormal_result, lambda fmt, answer, bits: sign_of(fmt, answer)),
    ),
)


# Approximate operations.


def _normal(fmt: Format, bits: Bits) -> Mask:
    return finite(fmt, bits) & ~codes.is_zero(fmt, bits) & ~codes.is_subnormal(fmt, bits)


def _huge(fmt: Format, bits: Bits) -> Mask:
    """Divisors above 2^126."""
    return finite(fmt, bits) & (np.abs(values(fmt, bits)) > 2.0**126)


def _plain_quotient(fmt: Format, answer: Bits, a: Bits, b: Bits) -> Bits:
    return compute("div", fmt.name, a, b)


def _by_reciprocal(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt, (a, b) = signature.result_format, operands
    return compute("mul", fmt.name, a, compute("div", fmt.name, one(fmt, b), b))


def _in_mode(attrs: Attrs, signature: Signature, operands: Sequence[Bits]) -> Bits:
    return right(Signature(signature.op, signature.args, signature.result, attrs), operands)


def _flushes_operands(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return _in_mode(APPROXIMATE, signature, [flushed(F32, bits) for bits in operands])


def _flushes_result(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return flushed(F32, _in_mode(APPROXIMATE, signature, operands))


def _flushes_divisor(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return right(signature, (operands[0], flushed(F32, operands[1])))


def _tenth_bit(fmt: Format, answer: Bits, bits: Bits) -> Bits:
    return answer + np.uint32(1 << 13)


ON_APPROXIMATE = (
    wrong(
        "approximate_exp2_three_ulp",
        "Approximate exp2 is 3 ulp off.",
        intent("5.1-e"),
        of("exp2", attrs=APPROXIMATELY),
        patched(
            lambda fmt, answer, bits: _normal(fmt, answer) & _normal(fmt, bits),
            lambda fmt, answer, bits: answer + np.uint32(3),
        ),
    ),
    wrong(
        "approximate_tanh_of_ten_bits",
        "Approximate tanh has a relative error of 2^-10.",
        intent("5.1-f"),
        of("tanh", attrs=(APPROXIMATE,)),
        patched(lambda fmt, answer, bits: _normal(fmt, answer) & (np.abs(values(fmt, bits)) < 2), _tenth_bit),
    ),
    wrong(
        "approximate_tanh_flushes",
        "Approximate tanh of a subnormal number is zero.",
        reading(12),
        of("tanh", attrs=(APPROXIMATE,)),
        patched(lambda fmt, answer, bits: codes.is_subnormal(fmt, bits), lambda fmt, answer, bits: sign_of(fmt, bits)),
    ),
    wrong(
        "fdiv_wrong_at_one_pair",
        "1/3 of f32 is one ulp off.",
        intent("5.1-a"),
        of("fdiv", where=in_formats("f32")),
        patched(
            lambda fmt, answer, a, b: (a == np.uint32(0x3F800000)) & (b == np.uint32(0x40400000)),
            lambda fmt, answer, a, b: answer + np.uint32(1),
        ),
    ),
    wrong(
        "fdiv_by_reciprocal",
        "fdiv is a product with the reciprocal also where approximate was not asked for.",
        intent("5.1-a"),
        of("fdiv", where=has_infinity),
        _by_reciprocal,
    ),
    wrong(
        "approximate_fdiv_of_huge_divisors",
        "Approximate fdiv of a finite number by one above 2^126 is the quotient, not zero.",
        intent("5.1-g"),
        of("fdiv", attrs=APPROXIMATELY),
        patched(lambda fmt, answer, a, b: _huge(fmt, b) & finite(fmt, a), _plain_quotient),
    ),
    wrong(
        "approximate_fdiv_infinity_by_huge",
        "Approximate fdiv of infinity by a number above 2^126 is infinity, not NaN.",
        intent("5.1-g"),
        of("fdiv", attrs=APPROXIMATELY),
        patched(lambda fmt, answer, a, b: _huge(fmt, b) & codes.is_infinite(fmt, a), _plain_quotient),
    ),
    wrong(
        "approximate_fdiv_zero_unsigned",
        "Approximate fdiv by a number above 2^126 is +0, whatever the signs.",
        intent("5.1-g"),
        of("fdiv", attrs=APPROXIMATELY),
        patched(lambda fmt, answer, a, b: _huge(fmt, b) & finite(fmt, a), constant(0.0)),
    ),
    wrong(
        "approximate_fdiv_swallows_nan",
        "Approximate fdiv of NaN is finite.",
        intent("5.1-g"),
        of("fdiv", attrs=APPROXIMATELY),
        patched(nan_in, constant(1.0)),
    ),
    wrong(
        "approximate_fdiv_three_ulp",
        "Approximate fdiv is 3 ulp off.",
        intent("5.1-g"),
        of("fdiv", attrs=APPROXIMATELY),
        patched(lambda fmt, answer, a, b: _normal(fmt, answer), lambda fmt, answer, a, b: answer + np.uint32(3)),
    ),
    wrong(
        "approximate_fdiv_flushes_divisor",
        "Approximate fdiv takes a subnormal divisor for zero, without flush_to_zero.",
        reading(13),
        of("fdiv", attrs=(APPROXIMATE,)),
        _flushes_divisor,
    ),
    wrong(
        "flushes_operands_only",
        "flush_to_zero flushes operands and leaves subnormal results.",
        intent("5.1-h"),
        of("exp2", "fdiv", attrs=(FLUSHING,)),
        _flushes_operands,
    ),
    wrong(
        "flushes_result_only",
        "flush_to_zero flushes results and leaves subnormal operands.",
        intent("5.1-h"),
        of("fdiv", attrs=(FLUSHING,)),
        _flushes_result,
    ),
    wrong(
        "flushes_to_plus_zero",
        "flush_to_zero turns negative subnormal numbers into +0.",
        intent("5.1-h"),
        of("fdiv", attrs=(FLUSHING,)),
        patched(lambda fmt, answer, a, b: codes.is_zero(fmt, answer), _no_sign_of_zero),
    ),
)


# What passes over a program do to attributes and to neighbours.


def _twins(first: Apply, second: Apply) -> bool:
    return first.op == second.op and first.args == second.args and first.attrs != second.attrs


def _merged(same: Callable[[Apply, Apply], bool]) -> NodeRule:
    """The first of two operations that are taken for the same serves both."""

    def rule(b: Builder, node: Apply) -> int | None:
        for position, value in enumerate(b.values):
            if isinstance(value, Apply) and value.dtype == node.dtype and same(value, node):
                return position
        return None

    return rule


def _differ_in_flushing(first: Apply, second: Apply) -> bool:
    def kept(node: Apply) -> Attrs:
        return tuple(pair for pair in node.attrs if pair[0] != "flush_to_zero")

    return _twins(first, second) and kept(first) == kept(second)


def _quotients(first: Apply, second: Apply) -> bool:
    return {first.op, second.op} == {"div", "fdiv"} and first.args == second.args and bool(first.attrs or second.attrs)


def _loses_attributes(b: Builder, node: Apply) -> int | None:
    """A copy of an operation whose operand has another user is made without the attributes."""
    users = sum(isinstance(v, Apply) and v.op == node.op and bool(v.attrs) for v in b.kernel.values)
    if not node.attrs or users < 2:
        return None
    return b.apply(node.op, node.dtype, *node.args)


def _approximate_spreads(b: Builder, node: Apply) -> int | None:
    """One approximate operation makes all quotients of the program approximate."""
    if node.dtype != "f32" or node.op not in ("div", "fdiv") or node.attrs:
        return None
    if not any(isinstance(value, Apply) and value.attrs for value in b.kernel.values):
        return None
    return b.add(Apply("fdiv", node.args, "f32", APPROXIMATE))


def _beside(present: Callable[[Apply], bool], ops: Sequence[str], change: BitsRule) -> KernelRule:
    """Float operations of a program that holds a certain other operation are changed."""

    def kernel_rule(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
        nodes = [value for value in kernel.values if isinstance(value, Apply)]
        if not any(map(present, nodes)) or not any(node.op in ops for node in nodes):
            return None

        def override(signature: Signature, operands: Sequence[Bits]) -> Bits | None:
            fits = signature.op in ops and signature.result_format.is_float and not signature.attrs
            return change(signature, operands) if fits else None

        return evaluate(kernel, inputs, override)

    return kernel_rule


def _flushes(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt = signature.result_format
    return flushed(fmt, right(signature, [flushed(fmt, bits) for bits in operands]))


def _truncates(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return chopped(signature, operands) if signature.result_format.precision <= 24 else right(signature, operands)


def _is_function(node: Apply) -> bool:
    return node.op in ("lgamma", "asin", "log1p", "erfc", "i0")


def _is_flushing(node: Apply) -> bool:
    return node.attrs == FLUSHING


def _pass(name: str, summary: str, clauses: tuple[str, ...], rule: KernelRule) -> Suspect:
    return Suspect(name, summary, clauses, CLASSIC, kernel_rule=rule)


PASSES = (
    _pass(
        "cse_ignores_attributes",
        "Operations that differ in attributes alone are merged: the first serves both.",
        intent("5.1-j"),
        pass_over(_merged(_twins)),
    ),
    _pass(
        "cse_ignores_flushing",
        "Operations that differ in flush_to_zero alone are merged.",
        intent("5.1-j"),
        pass_over(_merged(_differ_in_flushing)),
    ),
    _pass(
        "division_merged_with_approximate",
        "A division and an approximate fdiv of the same operands are merged.",
        intent("5.1-l"),
        pass_over(_merged(_quotients)),
    ),
    _pass(
        "clone_loses_attributes",
        "Where an operation occurs in several modes, copies are made without attributes.",
        intent("5.1-j"),
        pass_over(_loses_attributes),
    ),
    _pass(
        "approximation_spreads",
        "One approximate operation makes all f32 quotients of a program approximate.",
        intent("5.1-l"),
        pass_over(_approximate_spreads),
    ),
    _pass(
        "flushing_spreads",
        "One flushing operation makes all sums, products and quotients of a program flush.",
        intent("5.1-l"),
        _beside(_is_flushing, BINARY, _flushes),
    ),
    _pass(
        "function_sets_flushing",
        "A program with a function runs with subnormal numbers flushed.",
        intent("5-j"),
        _beside(_is_function, BINARY, _flushes),
    ),
    _pass(
        "function_leaves_truncation",
        "A function leaves the rounding mode at toward zero.",
        intent("5-j"),
        _beside(_is_function, BINARY, _truncates),
    ),
)

SUSPECTS: tuple[Suspect, ...] = (*FORMULAS, *SPECIAL, *ON_APPROXIMATE, *PASSES)


# Freedoms.


def _through_f32(signature: Signature, operands: Sequence[Bits]) -> Bits:
    name = signature.result
    wide = [convert(name, "f32", bits) for bits in operands]
    return convert("f32", name, right(Signature(signature.op, ("f32",), "f32"), wide))


def _below_f32(fmt: Format) -> bool:
    return fmt.width < 32


def _subnormal_operand(fmt: Format, answer: Bits, bits: Bits) -> Mask:
    return np.asarray(codes.is_subnormal(fmt, bits) & (bits & fmt.storage.type(fmt.magnitude_mask) > 0x2000))


VARIANTS: tuple[Suspect, ...] = (
    wrong(
        "functions_rounded_twice",
        "Functions below f32 are rounded to f32 and then again, as the text has them.",
        (),
        of(*UNARY, where=_below_f32),
        _through_f32,
        fault=False,
    ),
    wrong(
        "functions_one_ulp_off",
        "erfc and i0 are one ulp off.",
        (),
        of("erfc", "i0", where=WIDE),
        patched(
            lambda fmt, answer, bits: finite(fmt, answer) & finite(fmt, bits) & ~codes.is_zero(fmt, bits),
            lambda fmt, answer, bits: answer + answer.dtype.type(1),
        ),
        fault=False,
    ),
    wrong(
        "lgamma_and_tanh_rough",
        "lgamma, exp2 and tanh are 20 ulp off: unspecified, since the text has no bound.",
        (),
        of("lgamma", "exp2", "tanh", where=WIDE),
        patched(
            lambda fmt, answer, bits: _normal(fmt, answer) & _normal(fmt, bits) & (np.abs(values(fmt, answer)) != 1),
            lambda fmt, answer, bits: np.minimum(answer + answer.dtype.type(20), largest(fmt, answer)),
        ),
        fault=False,
    ),
    wrong(
        "exp2_flushes_by_default",
        "Subnormal results of default exp2 are zero: unspecified, since the text has no bound.",
        (),
        of("exp2", where=WIDE),
        patched(_subnormal_result, constant(0.0)),
        fault=False,
    ),
    wrong(
        "approximate_exp2_two_ulp",
        "Approximate exp2 is 2 ulp off.",
        (),
        of("exp2", attrs=APPROXIMATELY),
        patched(
            lambda fmt, answer, bits: _normal(fmt, answer) & _normal(fmt, bits),
            lambda fmt, answer, bits: np.minimum(answer + np.uint32(2), np.uint32(F32.infinity_bits)),
        ),
        fault=False,
    ),
    wrong(
        "approximate_tanh_of_eleven_bits",
        "Approximate tanh has a relative error of 2^-12.",
        (),
        of("tanh", attrs=(APPROXIMATE,)),
        patched(
            lambda fmt, answer, bits: _normal(fmt, answer) & _normal(fmt, bits) & finite(fmt, bits),
            lambda fmt, answer, bits: answer - np.uint32(1 << 11),
        ),
        fault=False,
    ),
    wrong(
        "approximate_tanh_of_subnormal_moves",
        "Approximate tanh of a subnormal number is the next one: unspecified.",
        (),
        of("tanh", attrs=(APPROXIMATE,)),
        patched(_subnormal_operand, lambda fmt, answer, bits: answer + np.uint32(1)),
        fault=False,
    ),
    wrong(
        "approximate_fdiv_by_tiny_divisor",
        "Approximate fdiv by a subnormal number is 5 ulp off: the text has no bound there.",
        (),
        of("fdiv", attrs=(APPROXIMATE,)),
        patched(
            lambda fmt, answer, a, b: codes.is_subnormal(fmt, b) & _normal(fmt, answer) & _normal(fmt, a),
            lambda fmt, answer, a, b: answer - np.uint32(5),
        ),
        fault=False,
    ),
)
