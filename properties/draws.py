"""Vectorised generators of bit patterns.

Uniform draws, and the float strategies of general-purpose libraries, rarely meet a tie, a cancellation or the border
of a format. The generators here draw the sign, the exponent (uniform) and a *pattern* of the fraction one by one, and
build operands that belong together: sums that cancel, products and quotients next to a midpoint, the midpoints of a
conversion's target. All results are arrays of shape (count,) in the storage dtype of their format, which has at most
64 bits and, if it is a float, a sign bit and subnormals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from halfulp.oracle import rounding_array
from halfulp.oracle.formats import Bits, Format

U64 = np.ndarray[Any, np.dtype[np.uint64]]
I64 = np.ndarray[Any, np.dtype[np.int64]]
Rng = np.random.Generator

_ONE = np.uint64(1)


def _mask(width: int) -> np.uint64:
    return np.uint64((1 << width) - 1)


def _below(rng: Rng, bits: int, count: int) -> U64:
    """Uniform integers of ``bits`` bits."""
    return rng.integers(0, 1 << bits, count, dtype=np.uint64, endpoint=False) if bits else np.zeros(count, np.uint64)


def _bit_length(value: U64) -> I64:
    """Bits of each value; 0 for 0. The conversion to f64 may round up to the next power of two: corrected."""
    _, length = np.frexp(value.astype(np.float64))
    length = length.astype(np.int64)
    top = np.maximum(length - 1, 0)
    too_long = (length > 64) | (value >> np.minimum(top, 63).astype(np.uint64) == 0)
    return np.where((value != 0) & too_long, length - 1, np.where(value == 0, 0, length))


def _shift(value: U64, by: I64) -> U64:
    """``floor(value * 2**by)``, modulo 2**64."""
    left = value << np.clip(by, 0, 63).astype(np.uint64)
    right = value >> np.clip(-by, 0, 63).astype(np.uint64)
    return np.where(by >= 0, np.where(by > 63, 0, left), np.where(by < -63, 0, right)).astype(np.uint64)


# Single operands.


def fractions(rng: Rng, bits: int, count: int) -> U64:
    """Fields of ``bits`` bits: zeros, ones, single bits, runs, few leading bits, ties and their neighbours, random."""
    ones = np.full(count, _mask(bits))
    noise = _below(rng, bits, count)
    at = rng.integers(0, max(bits, 1), count).astype(np.uint64)
    single = (_ONE << at) & ones
    below = single - (single != 0)
    leading = noise & ~below & ~single
    tie = leading | single
    patterns = [
        ones ^ ones,
        ones,
        single,
        ones ^ single,
        below,
        ones ^ below,
        leading,
        tie,
        tie - (tie != 0),
        tie + 1,
    ]
    kind = rng.integers(0, len(patterns) + 6, count)
    chosen: U64 = np.select([kind == i for i in range(len(patterns))], patterns, noise)
    return chosen & ones


def special_floats(fmt: Format) -> Bits:
    """The values at which a format changes its ways, with both signs."""
    one = fmt.bias << fmt.fraction_bits
    step = 1 << fmt.fraction_bits
    small = fmt.min_normal_bits
    codes = [0, 1, 2, small - 1, small, small + 1, fmt.max_finite_bits - 1, fmt.max_finite_bits]
    codes += [one, one - 1, one + 1, one + step, one - step, one + step // 2, one + step + step // 2]
    if fmt.infinity:
        signalling = fmt.infinity_bits | 1
        codes += [fmt.infinity_bits, fmt.nan_bits, signalling, fmt.magnitude_mask]
    else:
        codes.append(fmt.nan_bits)
    both = [code | sign for code in codes for sign in (0, fmt.sign_mask)]
    return np.array(sorted(set(both)), fmt.storage)


def special_ints(fmt: Format) -> Bits:
    """Ends of the range and of the narrower ranges inside it, small numbers, powers of two and their neighbours."""
    values = {
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        fmt.width - 1,
        fmt.width,
        fmt.min_int,
        fmt.min_int + 1,
        fmt.max_int,
        fmt.max_int - 1,
    }
    for bits in (7, 8, 15, 16, 31, 32, 63):
        values |= {(1 << bits) + d for d in (-1, 0, 1)}
    values |= {-v for v in values}
    return np.array(sorted({v % fmt.code_count for v in values if fmt.min_int <= v <= fmt.max_int}), fmt.storage)


def specials(fmt: Format) -> Bits:
    """Every value worth trying with every other."""
    if fmt.kind == "bool":
        return np.array([0, 1], fmt.storage)
    return special_floats(fmt) if fmt.is_float else special_ints(fmt)


def floats(rng: Rng, fmt: Format, count: int, exponents: tuple[int, int] | None = None) -> Bits:
    """Sign, exponent and pattern of the fraction drawn one by one, with some special values.

    ``exponents`` bounds the exponent e of 1.fraction * 2**e, inclusively; None: every exponent field, and special
    values too.
    """
    top = fmt.magnitude_mask >> fmt.fraction_bits
    if exponents is None:
        field = rng.integers(0, top + 1, count).astype(np.uint64)
    else:
        low, high = (min(max(e + fmt.bias, 0), top - 1) for e in exponents)
        field = rng.integers(low, high + 1, count).astype(np.uint64)
    codes = (field << np.uint64(fmt.fraction_bits)) | fractions(rng, fmt.fraction_bits, count)
    codes |= _below(rng, 1, count) << np.uint64(fmt.width - 1)
    bits = codes.astype(fmt.storage)
    if exponents is None:
        pool = special_floats(fmt)
        bits = np.where(rng.random(count) < 0.125, pool[rng.integers(0, len(pool), count)], bits)
    return bits


def ints(rng: Rng, fmt: Format, count: int) -> Bits:
    """Bit lengths drawn uniformly, then a pattern; some special values and some small ones."""
    length = rng.integers(0, fmt.width + 1, count)
    span = _shift(np.full(count, np.uint64(2**64 - 1)), length - 64)
    noise = rng.integers(0, 2**64, count, dtype=np.uint64)
    top = span ^ (span >> _ONE)
    kind = rng.integers(0, 8, count)
    near = top + rng.integers(-2, 3, count).astype(np.uint64)
    value = np.select([kind == 0, kind == 1, kind == 2], [span, near, noise & top * 0x8000], (noise & span) | top)
    if fmt.signed:
        value = np.where(_below(rng, 1, count) == 1, np.uint64(0) - value, value)
    bits = (value & _mask(fmt.width)).astype(fmt.storage)
    pool = special_ints(fmt)
    bits = np.where(rng.random(count) < 0.125, pool[rng.integers(0, len(pool), count)], bits)
    small = rng.integers(0, fmt.width, count).astype(fmt.storage)
    return np.where(rng.random(count) < 0.0625, small, bits)


def values(rng: Rng, fmt: Format, count: int) -> Bits:
    """Codes of any format."""
    if fmt.kind == "bool":
        return _below(rng, 1, count).astype(fmt.storage)
    return floats(rng, fmt, count) if fmt.is_float else ints(rng, fmt, count)


# Steps and exact values.


def step(rng: Rng, fmt: Format, bits: Bits, most: int = 3) -> Bits:
    """Each value moved by up to ``most`` steps of its format; floats keep their sign and do not become NaN."""
    by = rng.integers(-most, most + 1, len(bits))
    if not fmt.is_float:
        return ((bits.astype(np.uint64) + by.astype(np.uint64)) & _mask(fmt.width)).astype(fmt.storage)
    code: U64 = bits.astype(np.uint64)
    sign = code & np.uint64(fmt.sign_mask)
    magnitude = (code ^ sign).astype(np.int64)
    end = fmt.infinity_bits if fmt.infinity else fmt.max_finite_bits
    moved = np.where(magnitude > end, magnitude, np.clip(magnitude + by, 0, end))
    return (moved.astype(np.uint64) | sign).astype(fmt.storage)


def parts(fmt: Format, bits: Bits) -> tuple[U64, I64]:
    """Significand and exponent of the last place of each finite float; the sign is left out."""
    magnitude = bits.astype(np.uint64) & np.uint64(fmt.magnitude_mask)
    field = (magnitude >> np.uint64(fmt.fraction_bits)).astype(np.int64)
    hidden = (field > 0).astype(np.uint64) << np.uint64(fmt.fraction_bits)
    significand = (magnitude & np.uint64(fmt.fraction_mask)) | hidden
    return significand, np.maximum(field, 1) - fmt.bias - fmt.fraction_bits


def truncated(fmt: Format, negative: np.ndarray[Any, np.dtype[np.bool_]], significand: U64, exponent: I64) -> Bits:
    """``significand * 2**exponent`` cut to the format, the largest finite value where it is beyond the range."""
    length = _bit_length(significand)
    if fmt.is_float:
        last = np.maximum(length + exponent - fmt.precision, fmt.quantum_exponent)
        digits = _shift(significand, exponent - last)
        code = ((last - fmt.quantum_exponent).astype(np.uint64) << np.uint64(fmt.fraction_bits)) + digits
        beyond = length + exponent > fmt.max_exponent + 1
        code = np.where(beyond, np.uint64(fmt.max_finite_bits), np.minimum(code, np.uint64(fmt.max_finite_bits)))
        sign = negative.astype(np.uint64) << np.uint64(fmt.width - 1)
        signed: U64 = np.where(significand == 0, np.uint64(0), code) | sign
        return signed.astype(fmt.storage)
    most = np.uint64(fmt.max_int)
    number = np.where(length + exponent > fmt.width, most, np.minimum(_shift(significand, exponent), most))
    if fmt.signed:
        number = np.where(negative, np.uint64(0) - number, number)
    return (number & _mask(fmt.width)).astype(fmt.storage)


# Conversions.


def around_targets(rng: Rng, source: Format, target: Format, count: int) -> Bits:
    """Codes of ``source`` on and next to the values and midpoints of ``target``, its borders among them.

    The midpoint of two neighbours of the target, cut to the source, then moved by a few of the source's steps: where
    the source is finer, that is the midpoint and its nearest neighbours, on which double rounding shows.
    """
    negative = rng.random(count) < 0.5
    if target.is_float:
        code = floats(rng, target, count).astype(np.uint64) & np.uint64(target.magnitude_mask)
        small, end = target.min_normal_bits, target.max_finite_bits
        borders = np.array([0, 1, small - 1, small, small + 1, end - 1, end], np.uint64)
        code = np.where(rng.random(count) < 0.25, borders[rng.integers(0, len(borders), count)], code)
        significand, exponent = parts(target, np.minimum(code, np.uint64(end)))
        significand = 2 * significand + (rng.random(count) < 0.75).astype(np.uint64)
        exponent = exponent - 1
    else:
        number = ints(rng, target, count).astype(np.uint64)
        minus = (number >> np.uint64(target.width - 1) == 1) & target.signed
        negative = minus | (rng.random(count) < 0.0625)
        magnitude = np.where(minus, (np.uint64(0) - number) & _mask(target.width), number)
        magnitude = np.where(rng.random(count) < 0.125, np.uint64(target.max_int), magnitude)
        halves = magnitude < np.uint64(1 << 62)
        odd = (rng.random(count) < 0.5).astype(np.uint64)
        significand = np.where(halves, 2 * magnitude + odd, magnitude)
        exponent = np.where(halves, -1, 0)
    bits = truncated(source, negative, significand, exponent)
    return step(rng, source, bits, 2)


# Operands that belong together.


def pairs(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """Two operands of one format: unrelated, near each other, or with a sum, product or quotient at a border."""
    if fmt.kind == "bool":
        return values(rng, fmt, count), values(rng, fmt, count)
    recipes = (
        [_unrelated, _near, _similar, _half_step, _product, _quotient]
        if fmt.is_float
        else [_unrelated, _near, _small, _factors]
    )
    share = -(-count // len(recipes))
    made = [recipe(rng, fmt, share) for recipe in recipes]
    left, right = (np.concatenate(side) for side in zip(*made, strict=True))
    swap = rng.random(len(left)) < 0.25
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    order = rng.permutation(len(left))[:count]
    return left[order], right[order]


def _signs(rng: Rng, fmt: Format, bits: Bits) -> Bits:
    flip = rng.integers(0, 2, len(bits)).astype(bool)
    return np.where(flip, bits ^ fmt.storage.type(fmt.sign_mask), bits)


def _unrelated(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    pool = specials(fmt)
    left, right = values(rng, fmt, count), values(rng, fmt, count)
    special = rng.random(count) < 0.25
    left = np.where(special, pool[rng.integers(0, len(pool), count)], left)
    right = np.where(special, pool[rng.integers(0, len(pool), count)], right)
    return left, right


def _near(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """Equal or almost equal, of either sign: sums cancel, comparisons decide by one step."""
    left = values(rng, fmt, count)
    right = step(rng, fmt, left)
    if fmt.is_float:
        return left, _signs(rng, fmt, right)
    if not fmt.signed:
        return left, right
    minus = ((np.uint64(0) - right.astype(np.uint64)) & _mask(fmt.width)).astype(fmt.storage)
    return left, np.where(rng.random(count) < 0.5, right, minus)


def _similar(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """Exponents at most a significand apart: every bit of the sum depends on both."""
    left = floats(rng, fmt, count)
    field = (left.astype(np.uint64) & np.uint64(fmt.magnitude_mask)) >> np.uint64(fmt.fraction_bits)
    reach = fmt.precision + 2
    top = fmt.magnitude_mask >> fmt.fraction_bits
    other = np.clip(field.astype(np.int64) + rng.integers(-reach, reach + 1, count), 0, top - 1).astype(np.uint64)
    right = (other << np.uint64(fmt.fraction_bits)) | fractions(rng, fmt.fraction_bits, count)
    return left, _signs(rng, fmt, right.astype(fmt.storage))


def _half_step(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """The second operand is half (or a quarter) of the first one's last place, or next to that: sums that tie."""
    left = floats(rng, fmt, count)
    border = rng.random(count) < 0.125
    left = np.where(border, fmt.storage.type(fmt.max_finite_bits), left)
    _, exponent = parts(fmt, left)
    odd = rng.integers(0, 4, count).astype(np.uint64)
    right = truncated(fmt, np.zeros(count, bool), 2 * odd + _ONE, exponent - rng.integers(1, 3, count))
    return left, _signs(rng, fmt, step(rng, fmt, right, 1))


def _assemble(rng: Rng, fmt: Format, significand: U64, exponent: I64) -> Bits:
    return _signs(rng, fmt, truncated(fmt, np.zeros(len(significand), bool), significand, exponent))


def _product(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """Odd significands of k and of p + 1 - k bits: the product has p or p + 1 bits, and is a tie if p + 1.

    The exponents put the product anywhere in the range, half of the time at its lower or upper border; half of the
    pairs are moved off the tie by a step of one operand.
    """
    precision = fmt.precision
    first = rng.integers(1, precision + 1, count)
    second = precision + 1 - first

    def odd(bits: I64) -> U64:
        noise = rng.integers(0, 2**64, count, dtype=np.uint64)
        top: U64 = _ONE << (bits - 1).astype(np.uint64)
        return (noise & (top - _ONE)) | top | _ONE

    low, high = fmt.quantum_exponent - 1, fmt.max_exponent - precision + 1
    kind = rng.integers(0, 4, count)
    at = rng.integers(low, high + 1, count)
    at = np.where(kind == 0, rng.integers(low - precision, low + 4, count), at)
    at = np.where(kind == 1, rng.integers(high - 2, high + 2, count), at)
    split = at // 2 + rng.integers(-3, 4, count)
    left = _assemble(rng, fmt, odd(first), split)
    right = _assemble(rng, fmt, odd(second), at - split)
    moved = rng.random(count) < 0.5
    return left, np.where(moved, step(rng, fmt, right, 1), right)


def _quotient(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """Quotients as near to a midpoint as two significands allow, and products of representable numbers.

    With p bits, b odd and a small odd r, the congruence ``m * b = -r (mod 2**(p+1))`` has one odd solution m; then
    ``a = (m*b + r) / 2**(p+1)`` is an integer and a/b misses the midpoint m by r/b of a last place.
    """
    precision = fmt.precision
    modulus = 1 << (precision + 1)
    top = 1 << (precision - 1)
    divisors = (_below(rng, precision - 1, count) | np.uint64(top) | _ONE).tolist()
    residues = (2 * rng.integers(-2, 2, count) + 1).tolist()
    dividends = []
    for divisor, residue in zip(divisors, residues, strict=True):
        midpoint = -residue * pow(divisor, -1, modulus) % modulus
        dividends.append((midpoint * divisor + residue) // modulus)
    at = rng.integers(fmt.emin - precision, fmt.max_exponent - precision + 1, count)
    near = fmt.emin + rng.integers(-2, 3, count)
    at = np.where(rng.random(count) < 0.25, near, at)
    split = rng.integers(-3, 4, count) + at // 2
    right = _assemble(rng, fmt, np.array(divisors, np.uint64), split - precision)
    left = _assemble(rng, fmt, np.array(dividends, np.uint64), at - split)
    exact = rng.random(count) < 0.25
    factor = floats(rng, fmt, count, (fmt.emin - precision, fmt.max_exponent))
    return np.where(exact, rounding_array.mul(fmt, factor, right).bits, left), right


def _small(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """A second operand below the width: legal shift amounts, small divisors."""
    ends = np.array([0, 1, fmt.width // 2, fmt.width - 1])
    right = np.where(rng.random(count) < 0.25, ends[rng.integers(0, 4, count)], rng.integers(0, fmt.width, count))
    return ints(rng, fmt, count), right.astype(fmt.storage)


def _factors(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits]:
    """Dividends next to a multiple of the divisor, of either sign; products around the width."""
    mask = _mask(fmt.width)
    right = ints(rng, fmt, count).astype(np.uint64)
    factor = ints(rng, fmt, count).astype(np.uint64) >> rng.integers(0, fmt.width, count).astype(np.uint64)
    multiple = right * factor + rng.integers(-1, 2, count).astype(np.uint64)
    left = np.where(rng.random(count) < 0.5, multiple, factor)
    return (left & mask).astype(fmt.storage), (right & mask).astype(fmt.storage)


def triples(rng: Rng, fmt: Format, count: int) -> tuple[Bits, Bits, Bits]:
    """Factors and an addend of one float format: unrelated, cancelling, or deciding how the product's tie falls."""
    left, right = pairs(rng, fmt, count)
    product = rounding_array.mul(fmt, left, right).bits
    _, exponent = parts(fmt, product)
    tiny = np.array([0, 1, fmt.min_normal_bits], fmt.storage)[rng.integers(0, 3, count)]
    minus = step(rng, fmt, product ^ fmt.storage.type(fmt.sign_mask), 1)
    half = truncated(fmt, np.zeros(count, bool), np.ones(count, np.uint64), exponent - rng.integers(-1, 3, count))
    kind = rng.integers(0, 4, count)
    third = np.select(
        [kind == 0, kind == 1, kind == 2],
        [minus, _signs(rng, fmt, tiny), _signs(rng, fmt, step(rng, fmt, half, 1))],
        floats(rng, fmt, count),
    )
    return left, right, third
