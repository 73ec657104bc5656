"""Rounding, arithmetic and conversions over arrays: the fast twin of `oracle.rounding`.

Three kinds of path, all giving the same results:

* *generic*: integers of 64 or 128 bits (`oracle.exact`, `round_array`), for every format, direction and policy;
* *tables*: all codes of a short format, computed once by the generic path;
* *host*: the processor's own f32 and f64 (`oracle.hardware`), nearest-even only.

Which path is taken is decided in `cast_float`, `cast_int_to_float`, `cast_float_to_int` and `_arithmetic`;
the argument why a shorter path gives the same result stands there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np

from halfulp.oracle import codes, exact, hardware, limbs
from halfulp.oracle.codes import U64, Kind, Mask
from halfulp.oracle.exact import Exact
from halfulp.oracle.formats import FORMATS, WIDE, Bits, Format
from halfulp.oracle.rounding import Mode, Overflow

hardware.keep_freed_memory()

_F32, _F64, _BF16 = FORMATS["f32"], FORMATS["f64"], FORMATS["bf16"]


_OVERFLOW, _BEYOND, _INVALID = 1, 2, 4

Flags = np.ndarray[Any, np.dtype[np.uint8]]


class Rounded:
    """Rounded results, with what happened on the way. The masks are computed when one is first asked for.

    Attributes:
        bits: the results. Where the policy gives none, or the format cannot hold an infinity, the largest
            finite number with the sign of the exact value.
    """

    def __init__(self, bits: Bits, find_flags: Callable[[], Flags]) -> None:
        self.bits = bits
        self._find_flags = find_flags

    @cached_property
    def flags(self) -> Flags:
        return self._find_flags()

    @cached_property
    def overflow(self) -> Mask:
        """The magnitude, rounded with an unbounded exponent, exceeds the largest finite number.

        Also where an exact infinity is no result: the format has none, or the policy saturates.
        """
        return np.asarray((self.flags & _OVERFLOW) != 0)

    @cached_property
    def beyond(self) -> Mask:
        """The exact magnitude exceeds the largest finite number.

        True everywhere in ``overflow``, and in the half step (448 to 464 in f8e4m3fn) that rounds down to the
        largest number.
        """
        return np.asarray((self.flags & _BEYOND) != 0)

    @cached_property
    def invalid(self) -> Mask:
        """The format has nothing for the value.

        NaN where there is no NaN (the bits are 0); in e8m0 zero, a negative number, or one below 2**-127 (the
        bits are NaN).
        """
        return np.asarray((self.flags & _INVALID) != 0)


def round_array(
    fmt: Format,
    sign: Mask,
    sig: U64,
    exp: Any,
    *,
    sticky: Mask | None = None,
    mode: Mode = "nearest_even",
    overflow: Overflow = "infinity",
) -> Rounded:
    """Round ``(-1)**sign * sig * 2**exp`` to a float format, once; the twin of `oracle.rounding.round_exact`.

    Args:
        sign: bool, shape (n,).
        sig: uint64, shape (n,).
        exp: int32 or int64, shape (n,).
        sticky: where True, the magnitude is a little more than ``sig * 2**exp``: by less than one unit in the
            lowest place of ``sig``, which must then have two bits more than the format's precision. None:
            nowhere.
        mode: the direction.
        overflow: see `oracle.rounding.Overflow`. With ``"illegal"`` the bits are those of the largest finite
            number and the mask tells.
    """
    number = Exact((sig != 0).astype(np.uint8), sign, sig, np.asarray(exp).astype(np.int64))
    return deliver(fmt, number, sticky=sticky, mode=mode, overflow=overflow)


def deliver(
    fmt: Format,
    number: Exact,
    *,
    sticky: Mask | None = None,
    mode: Mode = "nearest_even",
    overflow: Overflow = "infinity",
) -> Rounded:
    """Round an exact result to a float format, infinities and NaNs included. Arguments as for
    `round_array`."""
    kind, sign, sig, exp = number
    precision_gap = np.int64(63 - fmt.fraction_bits)
    top, length = limbs.normalise(sig)
    lead = np.where(sig != 0, exp + (length - 1), fmt.emin)
    # Bits to discard, so that the last bit kept is the quantum; more of them below the normal numbers.
    discard = precision_gap + np.maximum(fmt.emin - lead, 0)
    by = (discard - 1).view(np.uint64)
    halves = top >> by
    rest = (halves << by) != top
    if sticky is not None:
        rest = rest | sticky
    significand = halves >> limbs.ONE
    half = (halves & limbs.ONE) != 0
    inexact = half | rest
    match mode:
        case "nearest_even":
            away = half & (rest | ((significand & limbs.ONE) != 0))
        case "nearest_away":
            away = half
        case "toward_zero":
            away = np.zeros(sig.shape, bool)
        case "up":
            away = inexact & ~sign
        case "down":
            away = inexact & sign
    # One binade above the largest number is as good as any: it overflows.
    step = np.clip(lead, fmt.emin, fmt.max_exponent + 1) - fmt.emin
    base = step.astype(np.uint64) << np.uint64(fmt.fraction_bits)
    hidden = np.uint64(0 if fmt.subnormals else 1 << fmt.fraction_bits)
    floor = base + significand - hidden
    magnitude = floor + away
    largest = np.uint64(fmt.max_finite_bits)
    finite = kind <= Kind.FINITE
    nonzero = kind == Kind.FINITE
    too_large = nonzero & (magnitude > largest)
    limit = _overflow_results(fmt, sign, mode) if overflow == "infinity" and fmt.infinity else largest
    magnitude = np.where(too_large, limit, magnitude)
    if not finite.all():
        at_infinity = fmt.infinity_bits if fmt.infinity and overflow != "saturate" else fmt.max_finite_bits
        magnitude = np.where(kind == Kind.INFINITE, np.uint64(at_infinity), magnitude)
    if fmt.signed:
        signed = sign if fmt.has_negative_zero else sign & (magnitude != 0)
        magnitude = magnitude | np.where(signed, np.uint64(fmt.sign_mask), np.uint64(0))
    nan = kind == Kind.NAN
    unheld = np.zeros(sig.shape, bool)
    if not fmt.has_zero:
        unheld = ~nan & (sign | (kind == Kind.ZERO) | (nonzero & (lead < fmt.emin)))
    no_number = nan | unheld
    if no_number.any():
        magnitude = np.where(no_number, np.uint64(0 if fmt.nan == "none" else fmt.nan_bits), magnitude)

    def flags() -> Flags:
        keeps_infinity = fmt.infinity and overflow != "saturate"
        lost = np.zeros(sig.shape, bool) if keeps_infinity else (kind == Kind.INFINITE) & ~unheld
        over = lost | (too_large & ~unheld)
        above = over | (nonzero & ~unheld & ((floor > largest) | ((floor == largest) & inexact)))
        invalid = unheld | nan if fmt.nan == "none" else unheld
        return np.asarray(over * np.uint8(_OVERFLOW) | above * np.uint8(_BEYOND) | invalid * np.uint8(_INVALID))

    return Rounded(magnitude.astype(fmt.storage), flags)


def _overflow_results(fmt: Format, sign: Mask, mode: Mode) -> Any:
    """IEEE 754 clause 7.4, as magnitudes."""
    infinity, largest = np.uint64(fmt.infinity_bits), np.uint64(fmt.max_finite_bits)
    match mode:
        case "nearest_even" | "nearest_away":
            return infinity
        case "toward_zero":
            return largest
        case "up":
            return np.where(sign, largest, infinity)
        case "down":
            return np.where(sign, infinity, largest)


def _unpacked(fmt: Format, bits: Bits) -> Exact:
    kind, sign, sig, exp = codes.decode(fmt, bits)
    return Exact(kind, sign, sig, exp.astype(np.int64))


def _take(table: Any, index: Any) -> Any:
    """``table[index]`` for an index that is always in range; ``"clip"`` only spares numpy the test."""
    return np.take(table, index, mode="clip")


def _looked_up(table: Rounded, index: Any) -> Rounded:
    """Rows of a table."""
    return Rounded(_take(table.bits, index), lambda: _take(table.flags, index))


# Float to float.


def cast_float(
    src: Format, dst: Format, bits: Bits, *, mode: Mode = "nearest_even", overflow: Overflow = "infinity"
) -> Rounded:
    """Convert between float formats with one rounding.

    NaN gives the NaN of the destination (0 where it has none), an infinity an infinity where there is one.
    """
    if src.width <= 16:
        return _looked_up(_cast_table(src, dst, mode, overflow), bits)
    if src is dst and overflow != "saturate":
        return _same(src, bits)
    if src.width == 32:
        if dst.fraction_bits <= _BF16.fraction_bits - 2:
            # Rounding to odd keeps all that matters to a precision two bits shorter. Every number, midpoint and
            # threshold of such a destination is an even bf16 code, subnormal ones too.
            return _looked_up(_cast_table(_BF16, dst, mode, overflow), hardware.f32_to_odd_bf16(bits))
        usual = mode == "nearest_even" and overflow == "infinity"
        if usual and dst.name in _FROM_F32 and hardware.trusted():
            return Rounded(_FROM_F32[dst.name](bits), lambda: cast_float_generic(src, dst, bits).flags)
        return cast_float_generic(src, dst, bits, mode=mode, overflow=overflow)
    # What lies beyond f32 becomes f32's largest number, an odd code. Rounded to nearest that still overflows every
    # shorter format; otherwise only those of a smaller range.
    within = dst.max_exponent < _F32.max_exponent or mode in ("nearest_even", "nearest_away")
    if dst.width < 32 and within and hardware.trusted():
        # Likewise: the midpoints of at most 12 bits are even f32 codes.
        odd = hardware.f64_to_odd_f32(bits.view(np.float64))
        return cast_float(_F32, dst, odd, mode=mode, overflow=overflow)
    if dst.name == "f32" and mode == "nearest_even" and overflow == "infinity" and hardware.trusted():
        with np.errstate(all="ignore"):
            single = bits.view(np.float64).astype(np.float32)
        return Rounded(hardware.canonical_nan(dst, single), lambda: cast_float_generic(src, dst, bits).flags)
    return cast_float_generic(src, dst, bits, mode=mode, overflow=overflow)


def _same(fmt: Format, bits: Bits) -> Rounded:
    """A conversion to the same format: nothing happens, but every NaN becomes the one NaN."""
    return Rounded(
        np.where(codes.is_nan(fmt, bits), fmt.storage.type(fmt.nan_bits), bits),
        lambda: np.zeros(bits.shape, np.uint8),
    )


def cast_float_generic(
    src: Format, dst: Format, bits: Bits, *, mode: Mode = "nearest_even", overflow: Overflow = "infinity"
) -> Rounded:
    """`cast_float` by integers alone."""
    return deliver(dst, _unpacked(src, bits), mode=mode, overflow=overflow)


def _f32_to_f64(bits: Bits) -> Bits:
    return hardware.canonical_nan(_F64, codes.float64_values(_F32, bits))


_FROM_F32: dict[str, Callable[[Bits], Bits]] = {
    "bf16": hardware.f32_to_bf16,
    "f16": hardware.f32_to_f16,
    "f64": _f32_to_f64,
}


@cache
def _cast_table(src: Format, dst: Format, mode: Mode, overflow: Overflow) -> Rounded:
    return cast_float_generic(src, dst, np.arange(src.code_count, dtype=src.storage), mode=mode, overflow=overflow)


# Integers.


def cast_int_to_float(
    src: Format, dst: Format, bits: Bits, *, mode: Mode = "nearest_even", overflow: Overflow = "infinity"
) -> Rounded:
    """Convert integers (bool: 0 and 1) of up to 128 bits with one rounding. Zero gives +0."""
    if src.width <= 16:
        return _looked_up(_int_to_float_table(src, dst, mode, overflow), bits)
    if src.width == 32 and hardware.trusted():
        # Exact in float64, so only the second step rounds.
        values = codes.float64_values(src, bits).view(np.uint64)
        return cast_float(_F64, dst, values, mode=mode, overflow=overflow)
    return cast_int_to_float_generic(src, dst, bits, mode=mode, overflow=overflow)


def cast_int_to_float_generic(
    src: Format, dst: Format, bits: Bits, *, mode: Mode = "nearest_even", overflow: Overflow = "infinity"
) -> Rounded:
    """`cast_int_to_float` by integers alone."""
    if src.storage != WIDE:
        return deliver(dst, _unpacked(src, bits), mode=mode, overflow=overflow)
    sign = codes.is_negative(src, bits)
    pair = (bits["hi"], bits["lo"])
    sig, exp = limbs.pair_to_single(limbs.choose(sign, limbs.negate(pair), pair))
    return round_array(dst, sign, sig, exp, mode=mode, overflow=overflow)


@cache
def _int_to_float_table(src: Format, dst: Format, mode: Mode, overflow: Overflow) -> Rounded:
    every = np.arange(src.code_count, dtype=src.storage)
    return cast_int_to_float_generic(src, dst, every, mode=mode, overflow=overflow)


def cast_float_to_int(src: Format, dst: Format, bits: Bits) -> tuple[Bits, Mask]:
    """Convert to an integer (or bool: 0 and 1) by truncation toward zero.

    Returns:
        the results, and whether each conversion is legal: the truncated value is in range (``reading:5``).
        Where it is not, and for NaN and infinities, the result is 0.
    """
    if src.width <= 16:
        table, legal = _float_to_int_table(src, dst)
        return _take(table, bits), _take(legal, bits)
    if dst.storage != WIDE and hardware.trusted():
        return _float_to_int_by_host(src, dst, bits)
    return cast_float_to_int_generic(src, dst, bits)


def _float_to_int_by_host(src: Format, dst: Format, bits: Bits) -> tuple[Bits, Mask]:
    """By the host's truncating conversion, which is exact where the value is in range; elsewhere it sees a
    0."""
    values = bits.view(f"f{src.width // 8}")
    kind = values.dtype.type
    below, above = kind(dst.min_int - 1), kind(dst.max_int + 1)
    # max_int + 1 is a power of two. min_int - 1 is exact or else rounds to min_int itself, which is legal.
    with np.errstate(all="ignore"):
        legal = values > below if int(below) == dst.min_int - 1 else values >= below
        legal &= values < above
    inside = values if legal.all() else (bits & -legal.astype(bits.dtype)).view(kind)
    if not dst.signed:
        return inside.astype(dst.storage), legal
    whole = inside.astype(np.int32 if dst.width <= 32 else np.int64)
    return codes.from_ints(dst, whole), legal


def cast_float_to_int_generic(src: Format, dst: Format, bits: Bits) -> tuple[Bits, Mask]:
    """`cast_float_to_int` by integers alone."""
    kind, sign, sig, exp = codes.decode(src, bits)
    shift = exp.astype(np.int64)
    whole = sig >> np.clip(-shift, 0, 63).astype(np.uint64)
    up = np.maximum(shift, 0)
    # Longer than 128 bits is out of every range; the shift is kept below 128 for the pair.
    short = (kind == Kind.ZERO) | ((kind == Kind.FINITE) & (limbs.bit_length(whole) + up <= 128))
    high, low = limbs.pair_shift_left((np.zeros_like(whole), whole), np.minimum(up, 127))
    limit = (-dst.min_int, dst.max_int)
    bound_high, bound_low = (
        np.where(sign, np.uint64(limit[0] >> part & limbs.MAX), np.uint64(limit[1] >> part & limbs.MAX))
        for part in (64, 0)
    )
    legal = short & ~limbs.less((bound_high, bound_low), (high, low))
    pair = limbs.choose(sign, limbs.negate((high, low)), (high, low))
    high, low = (np.where(legal, part, np.uint64(0)) for part in pair)
    if dst.storage == WIDE:
        out = np.empty(bits.shape, WIDE)
        out["lo"], out["hi"] = low, high
        return out, legal
    return codes.from_ints(dst, low), legal


@cache
def _float_to_int_table(src: Format, dst: Format) -> tuple[Bits, Mask]:
    return cast_float_to_int_generic(src, dst, np.arange(src.code_count, dtype=src.storage))


# Arithmetic.


def add(fmt: Format, a: Bits, b: Bits) -> Rounded:
    """a + b, rounded to nearest-even."""
    return _arithmetic("add", fmt, (a, b))


def sub(fmt: Format, a: Bits, b: Bits) -> Rounded:
    """a - b, rounded to nearest-even."""
    return _arithmetic("sub", fmt, (a, b))


def mul(fmt: Format, a: Bits, b: Bits) -> Rounded:
    """a * b, rounded to nearest-even."""
    return _arithmetic("mul", fmt, (a, b))


def div(fmt: Format, a: Bits, b: Bits) -> Rounded:
    """a / b, rounded to nearest-even. A finite number by zero is an infinity, 0/0 a NaN."""
    return _arithmetic("div", fmt, (a, b))


def sqrt(fmt: Format, a: Bits) -> Rounded:
    """The square root, rounded to nearest-even."""
    return _arithmetic("sqrt", fmt, (a,))


def fma(fmt: Format, a: Bits, b: Bits, c: Bits) -> Rounded:
    """a*b + c, rounded once to nearest-even (IEEE 754 fusedMultiplyAdd).

    Up to 24 bits of precision by float64 and rounding to odd, which leaves enough for the one rounding that
    follows; f64 by 128-bit integers.
    """
    if fmt.width > 32 or not fmt.signed or not hardware.trusted():
        return arithmetic_generic("fma", fmt, (a, b, c))
    if fmt.name == "f32":
        bits = hardware.fused_multiply_add_f32(a, b, c)
        return Rounded(bits, lambda: arithmetic_generic("fma", fmt, (a, b, c)).flags)
    total = hardware.fused_multiply_add(*(codes.float64_values(fmt, bits) for bits in (a, b, c)))
    rounded = cast_float(_F64, fmt, total.view(np.uint64))
    return Rounded(rounded.bits, lambda: arithmetic_generic("fma", fmt, (a, b, c)).flags)


_EXACT: dict[str, Callable[..., Exact]] = {
    "add": exact.add,
    "sub": lambda x, y: exact.add(x, exact.negated(y)),
    "mul": exact.multiply,
    "div": exact.divide,
    "sqrt": exact.square_root,
    "fma": exact.fused_multiply_add,
}


def arithmetic_generic(op: str, fmt: Format, operands: tuple[Bits, ...]) -> Rounded:
    """``op`` (add, sub, mul, div, sqrt or fma) by integers alone."""
    return deliver(fmt, _EXACT[op](*(codes.decode(fmt, bits) for bits in operands)))


def _arithmetic(op: str, fmt: Format, operands: tuple[Bits, ...]) -> Rounded:
    """Choose the path.

    f32 and f64: the host's own. Up to 8 bits: a table of all operands. f16 and bf16: float64, then one
    rounding. Why the two roundings are one: with p bits of precision, p <= 11, sums below the normal numbers
    and all products are exact in float64. Otherwise (and there is no subnormal root) an exact sum, quotient
    or root that is no midpoint of the p-bit numbers, of full or of reduced precision, differs from every
    midpoint by more than 2**-(2p + 2) relative to it, and float64 moves it by at most 2**-53 (Figueroa 1995
    for the normal numbers; for a subnormal quotient a/b and a midpoint m of fewer bits, a - m*b is a non-zero
    integer multiple of the product of two last places, so the gap only grows).
    """
    if fmt.width <= 8:
        table = _arithmetic_table(op, fmt)
        if len(operands) == 1:
            return _looked_up(table, operands[0])
        return _looked_up(table, (operands[0].astype(np.uint16) << fmt.width) | operands[1])
    if not hardware.trusted():
        return arithmetic_generic(op, fmt, operands)
    if fmt.width >= 32:
        bits = hardware.arithmetic(op, fmt, operands)
    else:
        values = tuple(codes.float64_values(fmt, operand) for operand in operands)
        bits = cast_float(_F64, fmt, hardware.arithmetic_in_f64(op, values).view(np.uint64)).bits
    return Rounded(bits, lambda: arithmetic_generic(op, fmt, operands).flags)


@cache
def _arithmetic_table(op: str, fmt: Format) -> Rounded:
    every = np.arange(fmt.code_count, dtype=fmt.storage)
    if op == "sqrt":
        return arithmetic_generic(op, fmt, (every,))
    return arithmetic_generic(op, fmt, (np.repeat(every, len(every)), np.tile(every, len(every))))
