"""Freedoms of the language that look like faults: the suite must not report any of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import Mask
from halfulp.oracle.suspects.arithmetic import EXTREMA, ROUNDED, computed_in, on_floats
from halfulp.oracle.suspects.casts import cast_where
from halfulp.oracle.suspects.graphs import VARIANTS as REWRITES
from halfulp.oracle.suspects.integers import integer, signed
from halfulp.oracle.suspects.record import BitsRule, Scope, Suspect, right, wrong

FREES_NAN = (*ROUNDED, "floor", *EXTREMA)


def allowed(name: str, summary: str, applies: Scope, bits: BitsRule) -> Suspect:
    return wrong(name, summary, (), applies, bits, fault=False, carries_bits=True)


def where_else(
    where: Callable[[Format, Format, Sequence[Bits]], Mask], value: Callable[[Format, Format], int]
) -> BitsRule:
    """The right answer but where ``where(operand format, result format, operands)`` holds."""

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        src, dst = signature.formats[-1], signature.result_format
        answer = right(signature, operands)
        return np.where(where(src, dst, operands), dst.storage.type(value(src, dst)), answer)

    return bits_rule


# NaN.


def _nan_as(code: Callable[[Format], int]) -> BitsRule:
    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        fmt, answer = signature.result_format, right(signature, operands)
        return np.where(codes.is_nan(fmt, answer), fmt.storage.type(code(fmt)), answer)

    return bits_rule


def _computes(signature: Signature) -> bool:
    if signature.op == "cast":
        return cast_where(lambda src, dst: src.is_float and dst.is_float and dst.nan != "none")(signature)
    return on_floats(*FREES_NAN)(signature)


def _negative_all_ones(fmt: Format) -> int:
    return fmt.sign_mask | fmt.magnitude_mask


def _signalling(fmt: Format) -> int:
    return fmt.infinity_bits | 1 if fmt.nan == "ieee" else fmt.nan_bits


# Where the text decides nothing.


def _opposite_zeros(fmt: Format, operands: Sequence[Bits]) -> Mask:
    return codes.is_zero(fmt, operands[0]) & codes.is_zero(fmt, operands[1])


def _zero_of(place: int) -> BitsRule:
    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        zeros = _opposite_zeros(signature.result_format, operands)
        return np.where(zeros, operands[place], right(signature, operands))

    return bits_rule


def _beyond_e4m3fn(src: Format, dst: Format, operands: Sequence[Bits]) -> Mask:
    return np.asarray(np.abs(codes.float64_values(src, operands[0])) > 448)


def _smallest(fmt: Format, bits: Bits) -> Mask:
    return np.asarray(bits == fmt.storage.type(1 << (fmt.width - 1)))


def _min_by_minus_one(src: Format, dst: Format, operands: Sequence[Bits]) -> Mask:
    return np.asarray(_smallest(src, operands[0]) & (operands[1] == src.storage.type(src.code_count - 1)))


def _by_zero(src: Format, dst: Format, operands: Sequence[Bits]) -> Mask:
    return np.asarray(operands[1] == 0)


def _out_of_range(src: Format, dst: Format, operands: Sequence[Bits]) -> Mask:
    values = codes.float64_values(src, operands[0])
    return ~((values > float(dst.min_int) - 1) & (values < float(dst.max_int) + 1))


def _masked_amount(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt, (bits, amount) = signature.result_format, operands
    return right(signature, (bits, amount & fmt.storage.type(fmt.width - 1)))


def _narrower(than: str) -> Callable[[Format], bool]:
    return lambda fmt: 2 * fmt.precision + 2 <= format_of(than).precision and fmt.width < format_of(than).width


VARIANTS: tuple[Suspect, ...] = (
    *REWRITES,
    allowed(
        "nan_negative_all_ones",
        "Every computed NaN has its sign and all payload bits set (0xffff in bf16).",
        _computes,
        _nan_as(_negative_all_ones),
    ),
    allowed(
        "nan_signalling",
        "Every computed NaN is signalling, with payload 1.",
        _computes,
        _nan_as(_signalling),
    ),
    allowed(
        "extremum_takes_first_zero",
        "maximum and minimum of two zeros give the first operand.",
        on_floats(*EXTREMA),
        _zero_of(0),
    ),
    allowed(
        "extremum_takes_second_zero",
        "maximum and minimum of two zeros give the second operand.",
        on_floats(*EXTREMA),
        _zero_of(1),
    ),
    allowed(
        "narrow_in_f32",
        "+ - * / sqrt of formats of at most 11 bits are computed in f32 and rounded again: harmless.",
        on_floats(*ROUNDED, where=_narrower("f32")),
        computed_in("f32"),
    ),
    allowed(
        "f8_in_f16",
        "+ - * / sqrt of 8-bit floats are computed in f16 and rounded again: harmless.",
        on_floats(*ROUNDED, where=lambda fmt: fmt.width == 8 and 2 * fmt.precision + 2 <= 11),
        computed_in("f16"),
    ),
    allowed(
        "f32_in_f64",
        "f32 arithmetic is done in f64 and rounded again: harmless.",
        on_floats(*ROUNDED, where=lambda fmt: fmt.name == "f32"),
        computed_in("f64"),
    ),
    allowed(
        "beyond_e4m3fn_is_nan",
        "Casts to f8e4m3fn give NaN for every magnitude above 448, also where it rounds to 448.",
        cast_where(lambda src, dst: dst.name == "f8e4m3fn"),
        where_else(_beyond_e4m3fn, lambda src, dst: dst.nan_bits),
    ),
    allowed(
        "beyond_e4m3fn_is_zero",
        "Casts to f8e4m3fn give zero for every magnitude above 448.",
        cast_where(lambda src, dst: dst.name == "f8e4m3fn"),
        where_else(_beyond_e4m3fn, lambda src, dst: 0),
    ),
    allowed(
        "saturating_nan_to_smallest",
        "A saturating cast of NaN to an integer gives the smallest integer.",
        lambda signature: (
            signature.op == "cast_saturate" and signature.formats[0].is_float and signature.result_format.is_int
        ),
        where_else(
            lambda src, dst, operands: codes.is_nan(src, operands[0]),
            lambda src, dst: dst.min_int % dst.code_count,
        ),
    ),
    allowed(
        "min_mod_minus_one",
        "The smallest integer % -1 gives the smallest integer.",
        integer("mod", where=signed),
        where_else(_min_by_minus_one, lambda src, dst: 1 << (dst.width - 1)),
    ),
    allowed(
        "min_floordiv_minus_one",
        "The smallest integer // -1 gives zero: illegal input.",
        integer("floordiv", where=signed),
        where_else(_min_by_minus_one, lambda src, dst: 0),
    ),
    allowed(
        "division_by_zero_is_minus_one",
        "Integer division by zero gives all ones: illegal input.",
        integer("floordiv", "mod"),
        where_else(_by_zero, lambda src, dst: dst.code_count - 1),
    ),
    allowed(
        "shift_amount_modulo_width",
        "A shift amount is taken modulo the width: amounts beyond it are illegal.",
        integer("shl", "shr"),
        _masked_amount,
    ),
    allowed(
        "float_to_int_out_of_range",
        "A cast to an integer gives the smallest integer for NaN, infinity and what is out of range: illegal input.",
        cast_where(lambda src, dst: src.is_float and dst.is_int),
        where_else(_out_of_range, lambda src, dst: dst.min_int % dst.code_count),
    ),
    allowed(
        "abs_of_smallest_saturates",
        "The magnitude of the smallest integer is the largest integer.",
        integer("abs", where=signed),
        where_else(lambda src, dst, operands: _smallest(src, operands[0]), lambda src, dst: dst.max_int),
    ),
    allowed(
        "bool_from_low_bit",
        "A cast to bool takes the lowest bit.",
        lambda signature: signature.op == "cast" and signature.result == "bool" and signature.args[0] != "bool",
        lambda signature, operands: (operands[0] & 1).astype(np.uint8),
    ),
    allowed(
        "true_is_minus_one",
        "A cast from bool turns true into -1 or all ones.",
        lambda signature: signature.op == "cast" and signature.args[0] == "bool" and signature.result_format.is_int,
        lambda signature, operands: np.where(
            operands[0] != 0, signature.result_format.storage.type(signature.result_format.code_count - 1), 0
        ),
    ),
)
