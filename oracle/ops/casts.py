"""Casts: ``cast``, ``cast_saturate``, ``bitcast`` (``intent:5.2``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from halfulp.oracle import codes, limbs, rounding_array
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops.record import Accepted, Attrs, Operation, Refused, Signature, TypingAnswer, Undecided
from halfulp.oracle.ops.rules import as_bits, not_elements, special_codes
from halfulp.oracle.sets import AllowedSet, Mask, Range, exactly, mark_unspecified, only_where, together


def widens(src: Format, dst: Format) -> bool:
    """Every number of ``src`` is a number of ``dst``, and so are its infinities and NaNs."""
    return (
        src.precision <= dst.precision
        and src.quantum_exponent >= dst.quantum_exponent
        and src.max_exponent <= dst.max_exponent
        and (dst.infinity or not src.infinity)
        and (dst.nan != "none" or src.nan == "none")
        and (dst.has_negative_zero or not src.has_negative_zero)
    )


# Typing.


def _type_conversion(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    (src,) = args
    if dtype is None:
        return Undecided("a cast names its target")
    refused = not_elements((src, dtype))
    if refused:
        return refused
    if "bool" in (src, dtype):
        return Undecided("casts from and to bool are listed nowhere (intent:5.2-o)", dtype)
    return Accepted(dtype)


def _type_saturating(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    answer = _type_conversion(args, dtype, attrs)
    # No text gives a saturating cast of a bool any meaning: there is no result to ask for.
    return Undecided(answer.reason) if isinstance(answer, Undecided) else answer


def _type_bitcast(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    (src,) = args
    if dtype is None:
        return Undecided("a bitcast names its target")
    refused = not_elements((src, dtype))
    if refused:
        return refused
    if "bool" in (src, dtype):
        return Undecided("the text gives bool no number of bits")
    if format_of(src).width != format_of(dtype).width:
        return Refused("intent:5.2-j", f"bitcast needs equal widths; {src} and {dtype} differ")
    return Accepted(dtype)


# Values.


def _from_bool(dst: Format, bits: Bits) -> Bits:
    one = dst.bias << dst.fraction_bits if dst.is_float else 1
    return np.where(bits != 0, one, 0).astype(dst.storage)


def _to_bool(src: Format, bits: Bits) -> Bits:
    return (~codes.is_zero(src, bits)).astype(np.uint8)


def _bool_cast(src: Format, dst: Format, bits: Bits) -> AllowedSet:
    """``intent:5.2-o``, ``reading:7``: nothing is required; true is expected to be 1, non-zero to be true."""
    nearest = _to_bool(src, bits) if dst.kind == "bool" else _from_bool(dst, bits)
    return mark_unspecified(exactly(dst, nearest), np.ones(len(bits), bool))


def finite_range(allowed: AllowedSet, rounded: rounding_array.Rounded, infinite: Mask | None) -> AllowedSet:
    """What ``reading:4`` and ``intent:5.2-f`` leave of a result in a format without infinities.

    Beyond the threshold that rounds to the largest finite number the input is illegal; between that number and the
    threshold, and for an infinite exact result (``infinite``), every result is unspecified.
    """
    if allowed.format.infinity or not allowed.format.is_float:
        return allowed
    overflow, zone = rounded.overflow, rounded.beyond & ~rounded.overflow
    if infinite is not None:
        overflow, zone = overflow & ~infinite, zone | infinite
    if overflow.any():
        allowed = replace(allowed, claim=together((allowed.claim, ~overflow)))
    return mark_unspecified(allowed, zone)


def cast_range(src: Format, dst: Format, span: Range) -> tuple[Range, Mask]:
    """A range of one float format through one cast to another, and where it holds a value that the cast does not take.

    Rounding is monotone. To a format that has no number which ``src`` lacks, the image is all between the ends. A
    wider format has more numbers in between: then the range is a superset of the image.
    """
    some = span[0] <= span[1]
    ends = []
    beyond = np.zeros(len(some), bool)
    for end in span:
        rounded = rounding_array.cast_float(src, dst, codes.from_ordinal(src, np.where(some, end, 0)))
        ends.append(codes.ordinal(dst, rounded.bits))
        if not dst.infinity:
            beyond |= some & rounded.beyond
    return only_where(ends[0], ends[1], some), beyond


def cast_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    src, dst, (bits,) = signature.formats[0], signature.result_format, operands
    if "bool" in (src.kind, dst.kind):
        return _bool_cast(src, dst, bits)
    if src.is_int and dst.is_int:
        return exactly(dst, codes.from_ints(dst, codes.int_values(src, bits)))
    if src.is_float and dst.is_int:
        truncated, legal = rounding_array.cast_float_to_int(src, dst, bits)
        return exactly(dst, truncated, claim=None if legal.all() else legal)
    if src.is_int:
        rounded = rounding_array.cast_int_to_float(src, dst, bits)
        return finite_range(exactly(dst, rounded.bits), rounded, None)
    rounded = rounding_array.cast_float(src, dst, bits)
    allowed = exactly(dst, rounded.bits)
    infinite = codes.is_infinite(src, bits) if src.infinity and not dst.infinity else None
    return _where_there_is_a_code(dst, finite_range(allowed, rounded, infinite), rounded)


def _where_there_is_a_code(dst: Format, allowed: AllowedSet, rounded: rounding_array.Rounded) -> AllowedSet:
    """No claim where the format has nothing for the value: NaN, zero or a sign that it lacks."""
    if (dst.nan == "none" or not dst.has_zero) and rounded.invalid.any():
        return replace(allowed, claim=together((allowed.claim, ~rounded.invalid)))
    return allowed


def saturate_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    """``intent:5.2-i``, ``reading:26``."""
    src, dst, (bits,) = signature.formats[0], signature.result_format, operands
    if dst.is_float:
        if src.is_int:
            return exactly(dst, rounding_array.cast_int_to_float(src, dst, bits, overflow="saturate").bits)
        if not dst.infinity:
            rounded = rounding_array.cast_float(src, dst, bits, overflow="saturate")
            return _where_there_is_a_code(dst, exactly(dst, rounded.bits), rounded)
        plain = rounding_array.cast_float(src, dst, bits).bits
        # The largest finite number is the code below infinity's.
        return exactly(dst, plain - codes.is_infinite(dst, plain))
    if src.is_int:
        return exactly(dst, _clamp_ints(src, dst, bits))
    truncated, legal = rounding_array.cast_float_to_int(src, dst, bits)
    low, high = codes.from_ints(dst, _extreme(dst.min_int)), codes.from_ints(dst, _extreme(dst.max_int))
    clamped = np.where(codes.is_negative(src, bits), low, high)
    result = np.where(legal, truncated, clamped)
    return mark_unspecified(exactly(dst, result), codes.is_nan(src, bits))


def _extreme(value: int) -> np.ndarray[tuple[int], np.dtype[Any]]:
    """An integer of up to 128 bits, as Python's own where numpy has none so wide."""
    return np.array([value], object)


def _clamp_ints(src: Format, dst: Format, bits: Bits) -> Bits:
    values = codes.int_values(src, bits)
    low, high = max(src.min_int, dst.min_int), min(src.max_int, dst.max_int)
    return codes.from_ints(dst, np.clip(values, values.dtype.type(low), values.dtype.type(high)))


def bitcast_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    """``intent:5.2-j``: the bits of the operand, a NaN's too (``reading:29``)."""
    return exactly(signature.result_format, operands[0], carries_bits=True)


# Cases.


def _main_clause(src: Format, dst: Format) -> str:
    if "bool" in (src.kind, dst.kind):
        return "intent:5.2-o"
    if dst.is_int:
        return "intent:5.2-a" if src.is_int else "intent:5.2-c"
    if src.is_int:
        return "intent:5.2-b"
    if src.width == 8 and widens(src, dst):
        return "intent:5.2-h"
    if widens(src, dst):
        return "intent:5.2-e"
    if not dst.infinity:
        return "intent:5.2-f"
    return "intent:5.2-g" if dst.width == 8 else "intent:5.2-d"


def _cast_clauses(signature: Signature) -> tuple[str, ...]:
    src, dst = signature.formats[0], signature.result_format
    main = _main_clause(src, dst)
    if src.is_float and dst.is_float:
        extra = ("intent:5.2-m",) if src.has_negative_zero and dst.has_negative_zero else ()
        return (main, *extra, *(("intent:5.2-n",) if src.nan != "none" and dst.nan != "none" else ()))
    return (main,)


def _cast_cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
    src, dst, (bits,) = signature.formats[0], signature.result_format, operands
    names = _cast_clauses(signature)
    if len(names) == 1:
        return {names[0]: np.ones(len(bits), bool)}
    nan = codes.is_nan(src, bits)
    zero = codes.is_zero(dst, rounding_array.cast_float(src, dst, bits).bits) & ~nan
    masks = {"intent:5.2-m": zero, "intent:5.2-n": nan}
    return {names[0]: ~zero & ~nan} | {name: masks[name] for name in names[1:]}


def _all_under(clause: str) -> dict[str, Any]:
    return {
        "clauses": lambda signature: (clause,),
        "cases": lambda signature, operands: {clause: np.ones(len(operands[0]), bool)},
    }


# Critical points.


@cache
def destination_midpoints(src: Format, dst: Format) -> tuple[int, ...]:
    """Codes of ``src`` at and next to the points where rounding to ``dst`` changes its answer.

    Those are the midpoints of neighbouring numbers of a float destination (the overflow threshold is the last of
    them) and the integers of an integer destination. Each is taken at the borders of the destination's classes, and
    each with the source's neighbours on both sides.
    """
    points = _float_turning_points(src, dst) if dst.is_float else _int_turning_points(dst)
    steps = (-1, 0, 1, 2)  # from the source's number at or below the point
    if src.is_float:
        sig, exp = (list(column) for column in zip(*sorted(points), strict=True))
        positive = np.zeros(len(sig), bool)
        below = rounding_array.round_array(
            src, positive, np.array(sig, np.uint64), np.array(exp), mode="toward_zero", overflow="saturate"
        )
        near = {code + step for code in below.bits.tolist() for step in steps}
        magnitudes = {code for code in near if 0 <= code <= src.max_finite_bits}
        return tuple(sorted(magnitudes | {code | src.sign_mask for code in magnitudes}))
    whole = {sig << exp if exp >= 0 else sig >> -exp for sig, exp in points}
    values = {sign * (value + step) for value in whole for step in steps for sign in (1, -1)}
    return tuple(sorted(v % src.code_count for v in values if src.min_int <= v <= src.max_int))


def _float_turning_points(src: Format, dst: Format) -> set[tuple[int, int]]:
    """Numbers of ``dst`` and the midpoints above them, as integers (sig, exp) that stand for sig * 2**exp."""
    probes = {0, 1, 2, dst.max_finite_bits, dst.max_finite_bits - 1}
    for exponent in _exponents(src, dst):
        binade = (exponent + dst.bias) << dst.fraction_bits
        probes |= {binade + offset for offset in (-2, -1, 0, 1)}
    points = set()
    for code in probes:
        if 0 <= code <= dst.max_finite_bits:
            field = code >> dst.fraction_bits
            subnormal = dst.subnormals and field == 0
            sig = (code & dst.fraction_mask) | (0 if subnormal else 1 << dst.fraction_bits)
            exp = dst.quantum_exponent if subnormal else field - dst.bias - dst.fraction_bits
            points |= {(sig, exp), (2 * sig + 1, exp - 1)}
    return points


def _int_turning_points(dst: Format) -> set[tuple[int, int]]:
    """Integers at the ends of the range, with the halves between the small ones."""
    ends = (0, 1, 2, 3, dst.max_int, -dst.min_int, 1 << (dst.width - 2))
    wholes = {(end + step, 0) for end in ends for step in (-1, 0, 1) if 0 <= end + step <= limbs.MAX}
    return wholes | {(2 * end + 1, -1) for end, _ in wholes if end < 1 << 63}


def _exponents(src: Format, dst: Format) -> Iterable[int]:
    """Exponents of binades of ``dst``: all that an integer source reaches, of a float source some 50.

    The lowest and highest of the destination are among them, where subnormals begin and where numbers overflow.
    """
    if src.is_int:
        return range(0, min(src.width, dst.max_exponent) + 1)
    count = dst.max_exponent - dst.emin + 1
    evenly = range(dst.emin, dst.max_exponent + 1, max(1, count // 40))
    ends = (*range(dst.emin, dst.emin + 5), *range(dst.max_exponent - 3, dst.max_exponent + 1), -1, 0, 1)
    return sorted({e for e in (*evenly, *ends) if dst.emin <= e <= dst.max_exponent})


def _critical(signature: Signature) -> tuple[Bits, ...]:
    src, dst = signature.formats[0], signature.result_format
    found = set(special_codes(src))
    if "bool" not in (src.kind, dst.kind) and src.width > 8:
        found |= set(destination_midpoints(src, dst))
    return (as_bits(src, sorted(found)),)


def _bitcast_critical(signature: Signature) -> tuple[Bits, ...]:
    """What is special in either format: the bits of a signalling NaN are those of some integer."""
    found = {code for fmt in (signature.formats[0], signature.result_format) for code in special_codes(fmt)}
    return (as_bits(signature.formats[0], sorted(found)),)


CAST = Operation(
    name="cast",
    arity=1,
    chapter="5.2",
    summary="Convert a number: integers modulo 2^width, floats with one rounding to nearest even, floats to integers "
    "toward zero.",
    typing=_type_conversion,
    allowed=cast_allowed,
    clauses=_cast_clauses,
    cases=_cast_cases,
    critical=_critical,
    converts=True,
)

CAST_SATURATE = Operation(
    name="cast_saturate",
    arity=1,
    chapter="5.2",
    summary="Convert a number and clamp to the target's range; a NaN stays NaN in a float.",
    typing=_type_saturating,
    allowed=saturate_allowed,
    critical=_critical,
    converts=True,
    **_all_under("intent:5.2-i"),
)

BITCAST = Operation(
    name="bitcast",
    arity=1,
    chapter="5.2",
    summary="The same bits, read in another format of equal width.",
    typing=_type_bitcast,
    allowed=bitcast_allowed,
    critical=_bitcast_critical,
    converts=True,
    **_all_under("intent:5.2-j"),
)

CASTS = (CAST, CAST_SATURATE, BITCAST)
