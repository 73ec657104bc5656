"""Wrong integer arithmetic (``intent:4``): wrap-around, division, shifts, bits, signedness of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.suspects.casts import flipped
from halfulp.oracle.suspects.record import Scope, Suspect, compute, convert, intent, right, wrong

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
ORDERINGS = ("lt", "le", "gt", "ge")

LLVM = "https://github.com/llvm/llvm-project/issues/"
NUMBA = "https://github.com/numba/numba/issues/"

BitsRule = Callable[[Signature, Sequence[Bits]], Bits]


def integer(*names: str, where: Callable[[Format], bool] = lambda fmt: True) -> Scope:
    """Operations on integers of one format."""

    def scope(signature: Signature) -> bool:
        fmt = signature.formats[-1]
        return signature.op in names and fmt.is_int and where(fmt)

    return scope


def signed(fmt: Format) -> bool:
    return fmt.signed


def unsigned(fmt: Format) -> bool:
    return not fmt.signed


def wide(fmt: Format) -> bool:
    return fmt.width == 64


def of_values(rule: Callable[[Signature, Format, Any, Any], Any]) -> BitsRule:
    """A rule on the values (int64, or uint64 for u64) of two operands, done with numpy's wrap-around."""

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        fmt = signature.formats[0]
        a, b = (codes.int_values(fmt, bits) for bits in operands)
        with np.errstate(all="ignore"):
            return codes.from_ints(signature.result_format, rule(signature, fmt, a, b))

    return bits_rule


def as_other_signedness(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The operation done on the integer type of equal width and other signedness."""
    other = flipped(signature.formats[0])
    result = signature.result if signature.result == "bool" else other
    return right(Signature(signature.op, (other,) * len(operands), result), operands)


# Wrap-around.


def _saturate(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Clamp the exact result. Python integers: 64-bit products do not fit anything else."""
    fmt = signature.result_format
    a, b = (codes.int_values(fmt, bits).astype(object) for bits in operands)
    exact = a + b if signature.op == "add" else a - b if signature.op == "sub" else a * b
    clamped = np.minimum(np.maximum(exact, fmt.min_int), fmt.max_int)
    return codes.from_ints(fmt, clamped & (fmt.code_count - 1))


def _mul_in_f64(signature: Signature, operands: Sequence[Bits]) -> Bits:
    a, b = (convert(signature.result, "f64", bits) for bits in operands)
    exact = compute("mul", "f64", a, b)
    return right(Signature("cast_saturate", ("f64",), signature.result), (exact,))


def _low_words(signature: Signature, operands: Sequence[Bits]) -> Bits:
    a, b = (bits & np.uint64(0xFFFFFFFF) for bits in operands)
    return a * b


def _high_words(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt = signature.result_format
    a, b = (codes.int_values(fmt, bits) for bits in operands)
    return codes.from_ints(fmt, (a * b) >> a.dtype.type(fmt.width))


def _halves_without_carry(signature: Signature, operands: Sequence[Bits]) -> Bits:
    a, b = operands
    low, high = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF00000000)
    rule = np.add if signature.op == "add" else np.subtract
    return np.asarray((rule(a & low, b & low) & low) | (rule(a & high, b & high) & high))


def _index_in_32_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    narrow = [convert("index", "i32", bits) for bits in operands]
    return convert("i32", "index", right(Signature(signature.op, ("i32",) * len(narrow), "i32"), narrow))


WRAPPING = (
    wrong(
        "integer_saturates",
        "Integer + - * clamp to the range instead of wrapping.",
        intent("4-a"),
        integer("add", "sub", "mul"),
        _saturate,
    ),
    wrong(
        "integer_mul_in_f64",
        "A 64-bit product is computed in f64.",
        intent("4-a"),
        integer("mul", where=wide),
        _mul_in_f64,
    ),
    wrong(
        "integer_mul_low_words",
        "A 64-bit product is that of the low 32-bit words.",
        intent("4-a"),
        integer("mul", where=wide),
        _low_words,
    ),
    wrong(
        "integer_mul_high_half",
        "A product gives the high half.",
        intent("4-a"),
        integer("mul", where=lambda fmt: fmt.width <= 32),
        _high_words,
    ),
    wrong(
        "lost_carry_between_words",
        "A 64-bit + or - works on two 32-bit words and drops the carry between them.",
        intent("4-a"),
        integer("add", "sub", where=wide),
        _halves_without_carry,
    ),
    wrong(
        "index_in_32_bits",
        "Index arithmetic is done in 32 bits.",
        intent("2-a"),
        lambda signature: signature.op in ("add", "sub", "mul") and signature.result == "index",
        _index_in_32_bits,
    ),
    wrong(
        "integer_neg_is_complement",
        "Negation flips the bits and forgets to add one.",
        ("reading:28",),
        integer("neg", where=signed),
        lambda signature, operands: np.where(operands[0] == 0, operands[0], ~operands[0]),
    ),
    wrong(
        "integer_neg_saturates",
        "Negation of the smallest integer gives the largest.",
        ("reading:28",),
        integer("neg", where=signed),
        lambda signature, operands: np.where(
            operands[0] == 1 << (signature.result_format.width - 1),
            signature.result_format.storage.type(signature.result_format.max_int),
            right(signature, operands),
        ),
    ),
    wrong(
        "integer_abs_ignored",
        "The magnitude of a signed integer is computed as if it were unsigned.",
        ("reading:28",),
        integer("abs", where=signed),
        lambda signature, operands: operands[0],
        source=NUMBA + "9929",
    ),
)


# Division.


def truncated(signature: Signature, fmt: Format, a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient toward zero and remainder with the sign of the dividend; an illegal divisor counts as one."""
    b = np.where(b == 0, b.dtype.type(1), b)
    rest = np.fmod(a, b)
    return np.floor_divide(a - rest, b), rest


def _zero_corrected(signature: Signature, fmt: Format, a: Any, b: Any) -> Any:
    """Add the divisor wherever the remainder has not its sign, and count zero as positive."""
    rest = truncated(signature, fmt, a, b)[1]
    return np.where((rest < 0) != (b < 0), rest + b, rest)


def _ceiling(signature: Signature, fmt: Format, a: Any, b: Any) -> Any:
    quotient, rest = truncated(signature, fmt, a, b)
    up = (rest != 0) & ((rest < 0) == (b < 0))
    return quotient + up.astype(quotient.dtype)


def _float_quotient(signature: Signature, fmt: Format, a: Any, b: Any) -> Any:
    """Floor of the rounded quotient: in f64 for 64-bit integers, in f32 for 32-bit ones."""
    dtype = np.float64 if fmt.width == 64 else np.float32
    b = np.where(b == 0, b.dtype.type(1), b)
    quotient = np.floor(a.astype(dtype) / b.astype(dtype)).astype(np.float64)
    bits = right(Signature("cast_saturate", ("f64",), signature.result), (quotient.view(np.uint64),))
    return codes.int_values(fmt, bits)


def _absolute_rest(signature: Signature, fmt: Format, a: Any, b: Any) -> Any:
    rest = truncated(signature, fmt, a, b)[1]
    return np.where(rest < 0, rest + np.abs(b), rest)


DIVISION = (
    wrong(
        "floordiv_truncates",
        "`//` rounds toward zero.",
        intent("4-b"),
        integer("floordiv", where=signed),
        of_values(lambda signature, fmt, a, b: truncated(signature, fmt, a, b)[0]),
        source="https://github.com/NVIDIA/warp/issues/1918",
    ),
    wrong(
        "floordiv_ceils",
        "`//` rounds toward plus infinity.",
        intent("4-b", "4-c"),
        integer("floordiv"),
        of_values(_ceiling),
        source=LLVM + "106519",
    ),
    wrong(
        "mod_truncates",
        "`%` has the sign of the dividend.",
        intent("4-b"),
        integer("mod", where=signed),
        of_values(lambda signature, fmt, a, b: truncated(signature, fmt, a, b)[1]),
        source="https://github.com/NVIDIA/warp/issues/1918",
    ),
    wrong(
        "mod_corrects_zero",
        "`%` adds a negative divisor to a remainder that is zero.",
        intent("4-b"),
        integer("mod", where=signed),
        of_values(_zero_corrected),
        source=NUMBA + "151",
    ),
    wrong(
        "mod_never_negative",
        "`%` is never negative (Euclidean remainder).",
        intent("4-b"),
        integer("mod", where=signed),
        of_values(_absolute_rest),
    ),
    wrong(
        "signed_division_as_unsigned",
        "`//` and `%` of signed integers use the unsigned instruction.",
        intent("4-b"),
        integer("floordiv", "mod", where=signed),
        as_other_signedness,
        source="https://github.com/NVIDIA/cuda-quantum/issues/5159",
    ),
    wrong(
        "unsigned_division_as_signed",
        "`//` and `%` of unsigned integers use the signed instruction.",
        intent("4-c"),
        integer("floordiv", "mod", where=unsigned),
        as_other_signedness,
    ),
    wrong(
        "floordiv_in_float",
        "`//` floors a rounded float quotient (f32 for 32-bit operands, f64 for 64-bit ones).",
        intent("4-b", "4-c"),
        integer("floordiv", where=lambda fmt: fmt.width >= 32),
        of_values(_float_quotient),
        source="https://github.com/cupy/cupy/issues/7737",
    ),
)


# Shifts and bits.


def _shl_keeps_sign(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt = signature.result_format
    top = fmt.storage.type(1 << (fmt.width - 1))
    return np.asarray((right(signature, operands) & ~top) | (operands[0] & top))


def _shl_saturates(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt = signature.result_format
    answer = right(signature, operands)
    back = right(Signature("shr", signature.args, signature.result), (answer, operands[1]))
    low, high = (fmt.storage.type(end & (fmt.code_count - 1)) for end in (fmt.min_int, fmt.max_int))
    end = np.where(codes.is_negative(fmt, operands[0]), low, high)
    return np.where(back == operands[0], answer, end)


def _shr_divides(signature: Signature, operands: Sequence[Bits]) -> Bits:
    fmt, (bits, amount) = signature.result_format, operands
    minus = codes.is_negative(fmt, bits)
    magnitude = np.where(minus, fmt.storage.type(0) - bits, bits).astype(fmt.storage)
    moved = right(Signature("shr", (flipped(fmt),) * 2, flipped(fmt)), (magnitude, amount))
    return np.where(minus, fmt.storage.type(0) - moved, moved).astype(fmt.storage)


def _amount_modulo(modulus: Callable[[Format], int]) -> BitsRule:
    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        fmt, (bits, amount) = signature.result_format, operands
        return right(signature, (bits, amount & fmt.storage.type(modulus(fmt) - 1)))

    return bits_rule


def _swapped(pairs: dict[str, str]) -> BitsRule:
    return lambda signature, operands: right(Signature(pairs[signature.op], signature.args, signature.result), operands)


BITWISE = (
    wrong(
        "shr_logical_on_signed",
        "`>>` of a signed integer fills with zeros.",
        intent("4-e"),
        integer("shr", where=signed),
        as_other_signedness,
    ),
    wrong(
        "shr_arithmetic_on_unsigned",
        "`>>` of an unsigned integer copies its top bit.",
        intent("4-e"),
        integer("shr", where=unsigned),
        as_other_signedness,
    ),
    wrong(
        "shr_divides",
        "`>>` of a signed integer is a division by a power of two that truncates.",
        intent("4-e"),
        integer("shr", where=signed),
        _shr_divides,
    ),
    wrong(
        "shl_keeps_sign",
        "`<<` of a signed integer leaves its sign bit in place.",
        intent("4-f"),
        integer("shl", where=signed),
        _shl_keeps_sign,
    ),
    wrong(
        "shl_saturates",
        "`<<` clamps to the range instead of dropping high bits.",
        intent("4-f"),
        integer("shl"),
        _shl_saturates,
    ),
    wrong(
        "shift_amount_modulo_32",
        "The amount of a 64-bit shift is taken modulo 32.",
        intent("4-e", "4-f"),
        integer("shl", "shr", where=wide),
        _amount_modulo(lambda fmt: 32),
    ),
    wrong(
        "and_or_swapped",
        "`&` and `|` are exchanged.",
        intent("4-g"),
        integer("and", "or"),
        _swapped({"and": "or", "or": "and"}),
    ),
    wrong(
        "xor_is_or",
        "`^` is computed as `|`.",
        intent("4-g"),
        integer("xor"),
        _swapped({"xor": "or"}),
    ),
    wrong(
        "not_is_logical",
        "`~` asks whether the integer is zero.",
        intent("4-g"),
        integer("not"),
        lambda signature, operands: operands[0] == 0,
    ),
)


# Comparisons.


def _compared_in_f64(signature: Signature, operands: Sequence[Bits]) -> Bits:
    wide_operands = [convert(signature.args[0], "f64", bits) for bits in operands]
    return right(Signature(signature.op, ("f64", "f64"), "bool"), wide_operands)


def _by_subtraction(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The sign of a - b, which wraps."""
    fmt = format_of(signature.args[0])
    difference = operands[0] - operands[1]
    return right(signature, (difference, np.zeros_like(difference, fmt.storage)))


COMPARING = (
    wrong(
        "unsigned_compared_as_signed",
        "Unsigned integers are ordered by the signed instruction.",
        intent("3-h"),
        integer(*ORDERINGS, where=unsigned),
        as_other_signedness,
    ),
    wrong(
        "signed_compared_as_unsigned",
        "Signed integers are ordered by the unsigned instruction.",
        intent("3-h"),
        integer(*ORDERINGS, where=signed),
        as_other_signedness,
    ),
    wrong(
        "int64_compared_in_f64",
        "64-bit integers are compared after conversion to f64.",
        intent("3-h"),
        integer(*COMPARISONS, where=wide),
        _compared_in_f64,
        source=NUMBA + "10151",
    ),
    wrong(
        "int64_compared_low_half",
        "64-bit integers are compared by their low 32 bits.",
        intent("3-h"),
        integer(*COMPARISONS, where=wide),
        lambda signature, operands: right(
            Signature(signature.op, ("i32", "i32"), "bool"),
            [convert(signature.args[0], "i32", bits) for bits in operands],
        ),
    ),
    wrong(
        "compared_by_subtraction",
        "Signed integers are ordered by the sign of their wrapped difference.",
        intent("3-h"),
        integer(*ORDERINGS, where=signed),
        _by_subtraction,
    ),
)

SUSPECTS: tuple[Suspect, ...] = (*WRAPPING, *DIVISION, *BITWISE, *COMPARING)
