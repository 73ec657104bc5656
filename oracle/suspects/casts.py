"""Wrong casts (``intent:5.2``): rounding, range, special values, signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from halfulp.oracle import codes, rounding_array
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops.casts import widens
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import value_of
from halfulp.oracle.sets import Mask
from halfulp.oracle.suspects.record import CLASSIC, Scope, Suspect, convert, intent, right, wrong
from halfulp.oracle.suspects.wrong_rounding import Increment, nearest_even, with_increment

ML_DTYPES = "https://github.com/jax-ml/ml_dtypes/pull/401"
TRITON = "https://github.com/triton-lang/triton/pull/"

ROUNDINGS = intent("5.2-b", "5.2-d", "5.2-f", "5.2-g")
"""Main clauses of casts that round."""

FROM_SUBNORMAL = intent("5.2-d", "5.2-e", "5.2-g", "5.2-h")

Pair = Callable[[Format, Format], bool]


# Where a mistake can show at all. A scope that is too wide would hold pairs on which the saboteur is right.


def cast_where(holds: Pair) -> Scope:
    """Casts between numbers of a pair of formats."""

    def scope(signature: Signature) -> bool:
        if signature.op != "cast" or "bool" in (signature.args[0], signature.result):
            return False
        src, dst = signature.formats[0], signature.result_format
        return src.name != dst.name and holds(src, dst)

    return scope


def both_float(src: Format, dst: Format) -> bool:
    return src.is_float and dst.is_float


def both_int(src: Format, dst: Format) -> bool:
    return src.is_int and dst.is_int


def magnitude_bits(fmt: Format) -> int:
    """Significant bits that a value may have."""
    return fmt.precision if fmt.is_float else fmt.width - int(fmt.signed)


def drops_bits(src: Format, dst: Format, count: int = 1) -> bool:
    """A float destination loses at least ``count`` bits of some normal number."""
    return dst.is_float and magnitude_bits(src) >= dst.precision + count


def underflows(src: Format, dst: Format, count: int = 1) -> bool:
    """The destination's smallest step is ``count`` or more binades above the source's."""
    return both_float(src, dst) and dst.subnormals and src.quantum_exponent <= dst.quantum_exponent - count


def rounds(src: Format, dst: Format, count: int = 1) -> bool:
    return drops_bits(src, dst, count) or underflows(src, dst, count)


def largest(fmt: Format) -> Fraction:
    """The largest magnitude of a finite value."""
    if fmt.is_int:
        return Fraction(max(-fmt.min_int, fmt.max_int))
    value = value_of(fmt, fmt.max_finite_bits)
    assert isinstance(value, Fraction)
    return value


def overflow_threshold(fmt: Format) -> Fraction:
    """The smallest magnitude that rounds to nearest beyond the finite numbers."""
    return Fraction(2) ** (fmt.max_exponent + 1) * (1 - Fraction(1, 2 ** (fmt.precision + 1)))


def overflows(src: Format, dst: Format) -> bool:
    """Some finite source value becomes an infinity."""
    return dst.is_float and dst.infinity and largest(src) >= overflow_threshold(dst)


def rebias_needed(src: Format, dst: Format) -> bool:
    return both_float(src, dst) and widens(src, dst) and dst.exponent_bits > src.exponent_bits


# Building blocks.


def _formats(signature: Signature) -> tuple[Format, Format]:
    return signature.formats[0], signature.result_format


def patched(
    where: Callable[[Format, Format, Bits, Bits], Mask], value: Callable[[Format, Format, Bits, Bits], Bits | int]
) -> Callable[[Signature, Sequence[Bits]], Bits]:
    """The right answer, replaced where ``where(src, dst, bits, right)`` holds by ``value(...)``."""

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        src, dst = _formats(signature)
        answer = right(signature, operands)
        mask = where(src, dst, operands[0], answer)
        instead = np.asarray(value(src, dst, operands[0], answer), dst.storage)
        return np.where(mask, instead, answer)

    return bits_rule


def signed(dst: Format, magnitude: int, src: Format, bits: Bits) -> Bits:
    """A code of ``dst`` with the sign of the source."""
    minus = codes.is_negative(src, bits)
    codes_of = np.array([magnitude, magnitude | dst.sign_mask], dst.storage)
    return np.asarray(codes_of[minus.astype(np.intp)])


def increment_rule(increment: Increment, *, carry_is_ored: bool = False) -> Callable[..., Bits]:
    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        src, dst = _formats(signature)
        answer = right(signature, operands)
        return with_increment(src, dst, operands[0], answer, increment, carry_is_ored=carry_is_ored)

    return bits_rule


# Rounding.


def _double_rounds(mid: Format) -> Pair:
    """Rounding to ``mid`` first can change the answer."""

    def holds(src: Format, dst: Format) -> bool:
        if mid.name in (src.name, dst.name) or not dst.is_float or not drops_bits(src, mid):
            return False
        if mid.precision <= dst.precision or mid.max_exponent < dst.max_exponent:
            return False
        # Integers that `mid` cannot hold have to lie within the destination's range.
        return src.is_float or dst.max_exponent >= mid.precision

    return holds


def _via(mid: str, source: str, *clauses: str) -> Suspect:
    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        return convert(mid, signature.result, convert(signature.args[0], mid, operands[0]))

    return wrong(
        f"round_via_{mid}",
        f"A cast rounds twice: first to {mid}, then to the destination.",
        intent(*clauses),
        cast_where(_double_rounds(format_of(mid))),
        bits_rule,
        source=source,
    )


def _top_32_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    (bits,) = operands
    cut = right(signature, (bits & np.uint64(0xFFFFFFFF00000000),))
    return np.where(codes.is_nan(signature.formats[0], bits), right(signature, operands), cut)


ROUNDING = (
    _via("f64", CLASSIC, "5.2-b"),
    _via("f32", ML_DTYPES, "5.2-b", "5.2-d", "5.2-f", "5.2-g"),
    _via("f16", TRITON + "10846", "5.2-b", "5.2-f", "5.2-g"),
    _via("bf16", CLASSIC, "5.2-b", "5.2-f", "5.2-g"),
    wrong(
        "cast_truncates",
        "A cast to a float drops the bits that do not fit (rounds toward zero).",
        ROUNDINGS,
        cast_where(rounds),
        increment_rule(lambda cut: np.zeros(len(cut.kept), bool)),
        source="https://github.com/NVlabs/cutile-rs/issues/250",
    ),
    wrong(
        "ties_away",
        "A cast rounds halfway cases away from zero.",
        ROUNDINGS,
        cast_where(rounds),
        increment_rule(lambda cut: cut.guard),
        source="https://github.com/microsoft/onnxruntime/pull/16940",
    ),
    wrong(
        "ties_up",
        "A cast rounds halfway cases toward plus infinity.",
        ROUNDINGS,
        cast_where(rounds),
        increment_rule(lambda cut: cut.guard & (cut.rest | ~cut.sign)),
        source=TRITON + "11753",
    ),
    wrong(
        "ties_toward_zero",
        "A cast rounds halfway cases toward zero.",
        ROUNDINGS,
        cast_where(rounds),
        increment_rule(lambda cut: cut.guard & cut.rest),
    ),
    wrong(
        "rounds_up_always",
        "A cast rounds every inexact value away from zero.",
        ROUNDINGS,
        cast_where(rounds),
        increment_rule(lambda cut: cut.guard | cut.rest),
    ),
    wrong(
        "lost_sticky",
        "A cast takes the first dropped bit for a tie whatever follows it.",
        ROUNDINGS,
        cast_where(lambda src, dst: rounds(src, dst, 2)),
        increment_rule(lambda cut: cut.guard & (cut.kept & np.uint64(1) > 0)),
        source="https://github.com/tenstorrent/tt-metal/issues/51971",
    ),
    wrong(
        "sticky_top_32",
        "A cast from f64 looks only at the top 32 bits when it rounds.",
        intent("5.2-d", "5.2-f", "5.2-g"),
        cast_where(lambda src, dst: src.name == "f64" and dst.is_float and dst.precision <= 20),
        _top_32_bits,
        source="https://github.com/VoidStarKat/half-rs/issues/151",
    ),
    wrong(
        "lost_carry",
        "The carry of a rounded-up fraction is ORed into the exponent instead of added.",
        ROUNDINGS,
        cast_where(drops_bits),
        increment_rule(nearest_even, carry_is_ored=True),
        source=TRITON + "9808",
    ),
)


# Range.


def _between(low: Fraction, high: Fraction) -> Callable[[Format, Bits], Mask]:
    """Elements with low < |x| < high, compared exactly: both ends are numbers of a narrow float format."""

    def holds(src: Format, bits: Bits) -> Mask:
        magnitude = np.abs(codes.float64_values(src, bits))
        return (magnitude > float(low)) & (magnitude < float(high))

    return holds


def _early(src: Format, dst: Format, bits: Bits, answer: Bits) -> Mask:
    return _between(largest(dst), overflow_threshold(dst))(src, bits)


def _late(src: Format, dst: Format, bits: Bits, answer: Bits) -> Mask:
    end = Fraction(2) ** (dst.max_exponent + 1)
    return codes.is_infinite(dst, answer) & _between(largest(dst), end)(src, bits)


def _finite_overflow(src: Format, dst: Format, bits: Bits, answer: Bits) -> Mask:
    return codes.is_infinite(dst, answer) & ~codes.is_infinite(src, bits)


def _spread_over_threshold(src: Format, dst: Format) -> bool:
    """The source has numbers between the largest finite number and the threshold, and is exact in f64 there."""
    return overflows(src, dst) and magnitude_bits(src) > dst.precision + 1 and dst.max_exponent < 1023


def _max_finite(src: Format, dst: Format, bits: Bits, answer: Bits) -> Bits:
    return signed(dst, dst.max_finite_bits, src, bits)


OVERFLOWS = intent("5.2-b", "5.2-d", "5.2-g")

RANGE = (
    wrong(
        "overflow_saturates",
        "A finite value beyond the range becomes the largest finite number instead of infinity.",
        OVERFLOWS,
        cast_where(overflows),
        patched(_finite_overflow, _max_finite),
        source="https://github.com/stillwater-sc/universal/issues/1302",
    ),
    wrong(
        "overflow_to_nan",
        "A finite value beyond the range becomes NaN instead of infinity.",
        OVERFLOWS,
        cast_where(overflows),
        patched(_finite_overflow, lambda src, dst, bits, answer: dst.nan_bits),
    ),
    wrong(
        "overflow_early",
        "A value above the largest finite number becomes infinity even where it rounds to that number.",
        OVERFLOWS,
        cast_where(_spread_over_threshold),
        patched(_early, lambda src, dst, bits, answer: signed(dst, dst.infinity_bits, src, bits)),
    ),
    wrong(
        "overflow_late",
        "A value in the largest binade that rounds beyond the range becomes the largest finite number.",
        OVERFLOWS,
        cast_where(_spread_over_threshold),
        patched(_late, _max_finite),
    ),
    wrong(
        "infinity_saturates",
        "An infinity becomes the largest finite number.",
        intent("5.2-d", "5.2-e", "5.2-g", "5.2-h"),
        cast_where(lambda src, dst: both_float(src, dst) and src.infinity and dst.infinity),
        patched(lambda src, dst, bits, answer: codes.is_infinite(src, bits), _max_finite),
    ),
    wrong(
        "top_binade_saturates",
        "A cast to f8e4m3fn takes the all-ones exponent for special: 256 and more become 448.",
        intent("5.2-b", "5.2-f"),
        cast_where(lambda src, dst: dst.name == "f8e4m3fn" and largest(src) >= 256),
        patched(lambda src, dst, bits, answer: ~codes.is_nan(dst, answer) & (answer & 0x7F >= 0x78), _max_finite),
        source="https://github.com/tile-ai/tilelang-metax/pull/140",
    ),
)


# Subnormals and zeros.


def _zero(src: Format, dst: Format, bits: Bits, answer: Bits) -> Bits:
    return signed(dst, 0, src, bits)


def _makes_subnormals(src: Format, dst: Format) -> bool:
    return both_float(src, dst) and dst.subnormals and src.quantum_exponent < dst.emin


def _keeps_subnormals(src: Format, dst: Format) -> bool:
    return both_float(src, dst) and src.subnormals and src.emin - 1 >= dst.quantum_exponent


SUBNORMALS = (
    wrong(
        "subnormal_results_flushed",
        "A cast whose result is subnormal gives zero.",
        intent("5.2-d", "5.2-e", "5.2-f", "5.2-g", "5.2-h"),
        cast_where(_makes_subnormals),
        patched(lambda src, dst, bits, answer: codes.is_subnormal(dst, answer), _zero),
        source="https://github.com/ahrefs/ocannl/issues/646",
    ),
    wrong(
        "subnormal_inputs_flushed",
        "A cast takes a subnormal operand for zero.",
        FROM_SUBNORMAL,
        cast_where(_keeps_subnormals),
        patched(lambda src, dst, bits, answer: codes.is_subnormal(src, bits), _zero),
        source="https://github.com/jax-ml/jax/issues/37762",
    ),
    wrong(
        "subnormals_read_as_normal",
        "A widening cast rebiases the exponent field of a subnormal as if it were a normal number.",
        intent("5.2-e", "5.2-h"),
        cast_where(rebias_needed),
        patched(
            lambda src, dst, bits, answer: codes.is_subnormal(src, bits),
            lambda src, dst, bits, answer: _rebiased(src, dst, bits),
        ),
    ),
    wrong(
        "cast_loses_zero_sign",
        "A cast whose result is -0 gives +0.",
        intent("5.2-m"),
        cast_where(lambda src, dst: both_float(src, dst) and dst.has_negative_zero),
        patched(lambda src, dst, bits, answer: codes.is_zero(dst, answer), lambda src, dst, bits, answer: 0),
        source="https://github.com/ahrefs/ocannl/issues/646",
    ),
)


# Special values.


def _rebiased(src: Format, dst: Format, bits: Bits) -> Bits:
    """Exponent field moved by the difference of the biases, fraction shifted, no special cases."""
    magnitude = (bits & src.magnitude_mask).astype(np.uint64)
    shift = np.uint64(dst.fraction_bits - src.fraction_bits)
    moved = (magnitude << shift) + np.uint64((dst.bias - src.bias) << dst.fraction_bits)
    sign = np.where(codes.is_negative(src, bits), np.uint64(dst.sign_mask), np.uint64(0))
    return (moved | sign).astype(dst.storage)


def _special(src: Format, dst: Format, bits: Bits, answer: Bits) -> Mask:
    return codes.is_infinite(src, bits) | codes.is_nan(src, bits)


def _nan(src: Format, dst: Format, bits: Bits, answer: Bits) -> Mask:
    return codes.is_nan(src, bits)


def _infinity(src: Format, dst: Format, bits: Bits, answer: Bits) -> Bits:
    return signed(dst, dst.infinity_bits, src, bits)


def _payload_cut(src: Format, dst: Format, bits: Bits, answer: Bits) -> Mask:
    kept = bits & src.fraction_mask
    return np.asarray(codes.is_nan(src, bits) & (kept >> (src.fraction_bits - dst.fraction_bits) == 0))


def _rounded_as_integer(signature: Signature, operands: Sequence[Bits]) -> Bits:
    wide = operands[0].astype(np.uint64)
    moved = (wide + np.uint64(0x7FFF) + ((wide >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return (moved & np.uint64(0xFFFF)).astype(np.uint16)


def _read_as(name: str) -> Callable[[Signature, Sequence[Bits]], Bits]:
    return lambda signature, operands: convert(name, signature.result, operands[0])


def _nans(src: Format, dst: Format) -> bool:
    return both_float(src, dst) and src.nan != "none" and dst.nan != "none"


SPECIALS = (
    wrong(
        "cast_nan_to_zero",
        "A cast turns NaN into zero.",
        intent("5.2-n"),
        cast_where(_nans),
        patched(_nan, lambda src, dst, bits, answer: 0),
    ),
    wrong(
        "cast_nan_saturates",
        "A cast turns NaN into the largest finite number.",
        intent("5.2-n"),
        cast_where(_nans),
        patched(_nan, _max_finite),
    ),
    wrong(
        "nan_payload_cut_to_infinity",
        "A narrowing cast keeps the top bits of a NaN's payload; where they are zero an infinity remains.",
        intent("5.2-n"),
        cast_where(
            lambda src, dst: (
                both_float(src, dst) and src.nan == dst.nan == "ieee" and src.fraction_bits > dst.fraction_bits
            )
        ),
        patched(_payload_cut, _infinity),
    ),
    wrong(
        "nan_rounded_as_integer",
        "f32 to bf16 adds the rounding constant to the bits of a NaN, which may carry into the sign.",
        intent("5.2-n"),
        cast_where(lambda src, dst: (src.name, dst.name) == ("f32", "bf16")),
        _rounded_as_integer,
    ),
    wrong(
        "specials_rebiased",
        "A widening cast rebiases the exponent of infinities and NaNs like any other: they become numbers.",
        intent("5.2-e", "5.2-h", "5.2-n"),
        cast_where(lambda src, dst: rebias_needed(src, dst) and src.infinity),
        patched(_special, lambda src, dst, bits, answer: _rebiased(src, dst, bits)),
        source=TRITON + "11784",
    ),
    wrong(
        "e4m3fn_read_as_ieee",
        "f8e4m3fn is read with IEEE rules: the top binade is infinity and NaN.",
        intent("5.2-h"),
        cast_where(lambda src, dst: src.name == "f8e4m3fn" and dst.is_float and dst.infinity),
        _read_as("e4m3"),
    ),
    wrong(
        "e4m3fn_read_as_fnuz",
        "f8e4m3fn is read as e4m3fnuz: every value is halved and -0 is NaN.",
        intent("5.2-h", "5.2-m"),
        cast_where(lambda src, dst: src.name == "f8e4m3fn" and dst.is_float and dst.nan != "none"),
        _read_as("e4m3fnuz"),
    ),
    wrong(
        "e4m3fn_nan_read_as_480",
        "The NaN codes of f8e4m3fn are read as the number 480.",
        intent("5.2-n"),
        cast_where(lambda src, dst: src.name == "f8e4m3fn" and dst.is_float and dst.max_exponent > 8),
        patched(
            _nan,
            lambda src, dst, bits, answer: signed(
                dst, int(convert("f32", dst.name, np.array([0x43F00000], np.uint32))[0]), src, bits
            ),
        ),
    ),
    wrong(
        "e5m2_nan_read_as_infinity",
        "The NaN codes of f8e5m2 are read as infinities.",
        intent("5.2-n"),
        cast_where(lambda src, dst: src.name == "f8e5m2" and dst.is_float and dst.infinity),
        patched(_nan, _infinity),
    ),
)


# Integers to integers, integers to floats, floats to integers.


def _through(mid: Callable[[Format], str]) -> Callable[[Signature, Sequence[Bits]], Bits]:
    """The source's bits read in another format of equal width, then converted."""
    return lambda signature, operands: convert(mid(signature.formats[0]), signature.result, operands[0])


def flipped(fmt: Format) -> str:
    """The integer format of equal width and other signedness."""
    return f"{'u' if fmt.signed else 'i'}{fmt.width}"


def _contains(dst: Format, src: Format) -> bool:
    return dst.min_int <= src.min_int and src.max_int <= dst.max_int


def _saturated(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return right(Signature("cast_saturate", signature.args, signature.result), operands)


def _wrong_modulus(signature: Signature, operands: Sequence[Bits]) -> Bits:
    src, dst = _formats(signature)
    values = codes.int_values(src, operands[0])
    modulus = values.dtype.type(dst.code_count - 1)
    inside = (values >= max(src.min_int, dst.min_int)) & (values <= min(src.max_int, dst.max_int))
    return codes.from_ints(dst, np.where(inside, values, values % modulus))


def _low_half(signature: Signature, operands: Sequence[Bits]) -> Bits:
    half = "i32" if signature.formats[0].signed else "u32"
    return convert(half, signature.result, convert(signature.args[0], half, operands[0]))


INTEGER_CASTS = (
    wrong(
        "integer_cast_saturates",
        "A plain cast between integers clamps to the target's range.",
        intent("5.2-a"),
        cast_where(lambda src, dst: both_int(src, dst) and not _contains(dst, src)),
        _saturated,
        source="https://github.com/tensorflow/tensorflow/issues/121242",
    ),
    wrong(
        "sign_extends_unsigned",
        "Widening an unsigned integer copies its top bit.",
        intent("5.2-a"),
        cast_where(lambda src, dst: both_int(src, dst) and not src.signed and dst.width > src.width),
        _through(flipped),
        source="https://github.com/numba/numba/issues/9929",
    ),
    wrong(
        "zero_extends_signed",
        "Widening a signed integer fills with zeros.",
        intent("5.2-a"),
        cast_where(lambda src, dst: both_int(src, dst) and src.signed and dst.width > src.width),
        _through(flipped),
    ),
    wrong(
        "wrong_modulus",
        "A cast between integers reduces modulo 2^width - 1.",
        intent("5.2-a"),
        cast_where(lambda src, dst: both_int(src, dst) and dst.width <= 32 and not _contains(dst, src)),
        _wrong_modulus,
    ),
    wrong(
        "unsigned_to_float_as_signed",
        "An unsigned integer is converted to a float as if it were signed.",
        intent("5.2-b"),
        cast_where(
            lambda src, dst: (
                src.is_int
                and dst.is_float
                and not src.signed
                and (dst.infinity or largest(dst) >= 2 ** (src.width - 1))
            )
        ),
        _through(flipped),
    ),
    wrong(
        "signed_to_float_as_unsigned",
        "A signed integer is converted to a float as if it were unsigned.",
        intent("5.2-b"),
        cast_where(lambda src, dst: src.is_int and dst.is_float and src.signed),
        _through(flipped),
    ),
    wrong(
        "int64_to_float_low_half",
        "A 64-bit integer is converted to a float from its low 32 bits.",
        intent("5.2-b"),
        cast_where(lambda src, dst: src.is_int and src.width == 64 and dst.is_float and dst.max_exponent >= 32),
        _low_half,
    ),
)


def _same_width(signature: Signature) -> bool:
    if signature.op != "cast":
        return False
    src, dst = _formats(signature)
    return src.width == dst.width and {src.kind, dst.kind} == {"int", "float"}


def _to_integer(src: Format, dst: Format) -> bool:
    return src.is_float and dst.is_int


def _rounded_to_integer(direction: str) -> Callable[[Signature, Sequence[Bits]], Bits]:
    """Round to an integral value first; results out of range are those of a wrap-around."""

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        src, dst = _formats(signature)
        with np.errstate(all="ignore"):
            values = codes.float64_values(src, operands[0])
            whole = np.rint(values) if direction == "nearest" else np.floor(values)
            moved = whole.view(np.uint64)
            changed = whole != np.trunc(values)
        wide = "u64" if dst.name == "u64" else "i64"
        wrapped = convert(wide, dst.name, convert("f64", wide, moved))
        return np.where(changed, wrapped, right(signature, operands))

    return bits_rule


def _through_narrower_integer(name: Callable[[Format], str]) -> Callable[[Signature, Sequence[Bits]], Bits]:
    """Out of range of the intermediate integer its extreme comes out."""

    def bits_rule(signature: Signature, operands: Sequence[Bits]) -> Bits:
        mid = name(signature.result_format)
        clamped = right(Signature("cast_saturate", signature.args, mid), operands)
        return convert(mid, signature.result, clamped)

    return bits_rule


def _through_f32(signature: Signature, operands: Sequence[Bits]) -> Bits:
    narrow = convert("f64", "f32", operands[0])
    return right(Signature("cast_saturate", ("f32",), signature.result), (narrow,))


FLOAT_TO_INTEGER = (
    wrong(
        "float_to_int_rounds",
        "A cast to an integer rounds to nearest instead of truncating.",
        intent("5.2-c"),
        cast_where(_to_integer),
        _rounded_to_integer("nearest"),
        source="https://github.com/ROCm/aiter/pull/4637",
    ),
    wrong(
        "float_to_int_floors",
        "A cast to a signed integer rounds toward minus infinity.",
        intent("5.2-c"),
        cast_where(lambda src, dst: _to_integer(src, dst) and dst.signed),
        _rounded_to_integer("floor"),
    ),
    wrong(
        "float_to_unsigned_via_signed",
        "A cast to an unsigned integer goes through the signed one of equal width.",
        intent("5.2-c"),
        cast_where(lambda src, dst: _to_integer(src, dst) and not dst.signed and largest(src) >= 2 ** (dst.width - 1)),
        _through_narrower_integer(lambda dst: f"i{dst.width}"),
    ),
    wrong(
        "float_to_int64_via_int32",
        "A cast to a 64-bit integer goes through the 32-bit one.",
        intent("5.2-c"),
        cast_where(lambda src, dst: _to_integer(src, dst) and dst.width == 64 and largest(src) >= 2**32),
        _through_narrower_integer(lambda dst: "i32" if dst.signed else "u32"),
    ),
    wrong(
        "float_to_int_via_f32",
        "A cast from f64 to an integer rounds to f32 first.",
        intent("5.2-c"),
        cast_where(lambda src, dst: src.name == "f64" and dst.is_int),
        _through_f32,
    ),
)


# Saturating casts and bitcasts.


def saturating(holds: Pair) -> Scope:
    return lambda signature: signature.op == "cast_saturate" and holds(signature.formats[0], signature.result_format)


def _wide_target(src: Format, dst: Format) -> bool:
    return src.is_float and dst.is_int and dst.width == 64


def _as_plain(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Integers wrap, floats overflow: what a plain cast does."""
    src, dst = _formats(signature)
    if src.is_float and dst.is_int:
        wide = "u64" if not dst.signed else "i64"
        clamped = right(Signature("cast_saturate", signature.args, wide), operands)
        return convert(wide, dst.name, clamped)
    if not dst.is_float or dst.infinity:
        return right(Signature("cast", signature.args, signature.result), operands)
    # A format without infinity: NaN beyond its range.
    if src.is_float:
        over = rounding_array.cast_float(src, dst, operands[0]).overflow | codes.is_infinite(src, operands[0])
    else:
        over = rounding_array.cast_int_to_float(src, dst, operands[0]).overflow
    return np.where(over, dst.storage.type(dst.nan_bits), right(signature, operands))


def _clamped_in_float(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Clamp to RN(max) in the source format, which is max + 1, then convert with wrap-around."""
    dst = signature.result_format
    answer = right(signature, operands)
    at_top = answer == dst.storage.type(dst.max_int)
    high = codes.float64_values(signature.formats[0], operands[0]) >= 2.0 ** (dst.width - int(dst.signed))
    wrapped = dst.storage.type(1 << (dst.width - 1) if dst.signed else 0)
    return np.where(at_top & high, wrapped, answer)


def _wrapped_after_rounding(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Values that truncation leaves in range and rounding takes out of it wrap; all others are rounded."""
    src, dst = _formats(signature)
    whole = _integral(src, operands[0])
    _, legal = rounding_array.cast_float_to_int(src, dst, operands[0])
    wrapped = convert("i64", dst.name, right(Signature("cast_saturate", signature.args, "i64"), (whole,)))
    return np.where(legal, wrapped, right(signature, operands))


KEPT_BITS = (
    wrong(
        "cast_keeps_bits",
        "A cast between an integer and a float of one width leaves the bits as they are.",
        intent("5.2-b", "5.2-c"),
        _same_width,
        lambda signature, operands: operands[0],
        source="https://github.com/NVIDIA/numba-cuda-mlir/issues/305",
    ),
)


SATURATING = (
    wrong(
        "saturating_cast_wraps",
        "A saturating cast behaves like a plain one: integers wrap, floats overflow.",
        intent("5.2-i"),
        saturating(
            # A float clamps at 64 bits before anything can wrap.
            lambda src, dst: (
                (not both_int(src, dst) and largest(src) > largest(dst) and not _wide_target(src, dst))
                or (both_int(src, dst) and not _contains(dst, src))
            )
        ),
        _as_plain,
    ),
    wrong(
        "saturating_cast_via_f32",
        "A saturating cast rounds twice: first to f32, then, clamping, to the destination.",
        intent("5.2-i"),
        saturating(_double_rounds(format_of("f32"))),
        lambda signature, operands: right(
            Signature("cast_saturate", ("f32",), signature.result), (convert(signature.args[0], "f32", operands[0]),)
        ),
        source=ML_DTYPES,
    ),
    wrong(
        "saturating_cast_keeps_infinity",
        "A saturating cast lets an infinity through.",
        intent("5.2-i"),
        saturating(lambda src, dst: both_float(src, dst) and src.infinity and dst.infinity),
        patched(lambda src, dst, bits, answer: codes.is_infinite(src, bits), _infinity),
    ),
    wrong(
        "saturating_cast_clamps_nan",
        "A saturating cast to a float turns NaN into the largest finite number.",
        intent("5.2-i"),
        saturating(_nans),
        patched(_nan, _max_finite),
    ),
    wrong(
        "saturating_cast_rounds",
        "A saturating cast to an integer rounds to nearest and then clamps.",
        intent("5.2-i"),
        saturating(_to_integer),
        lambda signature, operands: right(signature, (_integral(signature.formats[0], operands[0]),)),
    ),
    wrong(
        "saturating_cast_wraps_after_rounding",
        "A saturating cast to an integer clamps first, then rounds to nearest, and what rounds out of range wraps.",
        intent("5.2-i"),
        saturating(lambda src, dst: _to_integer(src, dst) and dst.width < 64),
        _wrapped_after_rounding,
        source="https://github.com/ROCm/aiter/pull/4637",
    ),
    wrong(
        "saturating_cast_clamps_in_float",
        "A saturating cast clamps to the rounded maximum, which is one too large, and then wraps.",
        intent("5.2-i"),
        saturating(
            lambda src, dst: (
                _to_integer(src, dst)
                and dst.width - int(dst.signed) > src.precision
                and largest(src) >= 2 ** (dst.width - int(dst.signed))
            )
        ),
        _clamped_in_float,
    ),
)


def _integral(src: Format, bits: Bits) -> Bits:
    """Round to an integral value, ties to even, within the format."""
    with np.errstate(all="ignore"):
        return convert("f64", src.name, np.rint(codes.float64_values(src, bits)).view(np.uint64))


def _bitcast_between(holds: Pair) -> Scope:
    return lambda signature: signature.op == "bitcast" and holds(signature.formats[0], signature.result_format)


def _quieted(signature: Signature, operands: Sequence[Bits]) -> Bits:
    src, dst = _formats(signature)
    bits = operands[0]
    for fmt in (src, dst):
        if fmt.nan == "ieee":
            bits = np.where(codes.is_nan(fmt, bits), bits | fmt.nan_bits, bits).astype(fmt.storage)
    return bits


BITCASTS = (
    wrong(
        "bitcast_converts",
        "A bitcast between an integer and a float converts the value.",
        intent("5.2-j"),
        _bitcast_between(lambda src, dst: src.is_int != dst.is_int),
        lambda signature, operands: right(Signature("cast", signature.args, signature.result), operands),
        carries_bits=True,
    ),
    wrong(
        "bitcast_quiets_nan",
        "A bitcast passes through a float register and sets the quiet bit of a signalling NaN.",
        intent("5.2-j"),
        _bitcast_between(lambda src, dst: "ieee" in (src.nan, dst.nan)),
        _quieted,
        carries_bits=True,
    ),
    wrong(
        "bitcast_swaps_bytes",
        "A bitcast reads the bytes in the other order.",
        intent("5.2-j"),
        _bitcast_between(lambda src, dst: src.width > 8 and src.name != dst.name),
        lambda signature, operands: operands[0].byteswap(),
        carries_bits=True,
    ),
)

SUSPECTS: tuple[Suspect, ...] = (
    *ROUNDING,
    *RANGE,
    *SUBNORMALS,
    *SPECIALS,
    *INTEGER_CASTS,
    *FLOAT_TO_INTEGER,
    *KEPT_BITS,
    *SATURATING,
    *BITCASTS,
)
