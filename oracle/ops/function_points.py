"""Where functions go wrong: poles, zeros, joins of usual implementations, ends of ranges, hard-to-round operands."""

from __future__ import annotations

from fractions import Fraction

from halfulp.oracle.formats import FORMATS, Bits, Format
from halfulp.oracle.ops.rules import as_bits, special_codes
from halfulp.oracle.rounding import Mode, round_exact, value_of

# Numbers of either sign are tried, with their neighbours in the format.
PLACES: dict[str, tuple[float, ...]] = {
    "lgamma": (
        *(0.5, 1.0, 1.4616321449683623, 1.5, 2.0, 2.5, 3.0, 7.0, 8.0, 10.001, 12.0, 20.0, 23.0001, 33.0, 35.0, 171.62),
        *(4.0, 5.0, 6.0, 9.0, 10.0, 2.264, 2.2637, 2.0**52, 2.5e305),
        # Zeros of lgamma on the negative axis.
        *(2.4570247382208006, 2.7476826467274127, 3.1435808883499798, 3.9552942848585979, 4.0393618397402705),
        *(4.9915446421000577, 5.0082181681929463, 5.9986074011400637, 6.0013882480341706, 7.0001983331654186),
    ),
    "asin": (0.5, 0.56, 0.70710678118654752, 0.9, 0.975, 1.0, 2.0**-12, 2.0**-27, 0.25, 0.75),
    "log1p": (
        *(1.0, 0.5, 0.29289321881345243, 0.41421356237309503, 2.0**-24, 2.0**-25, 2.0**-53, 2.0**-54, 0.999999),
        *(2.0, 3.0, 2.0**24, 2.0**53, 1e300, 0.25, 0.125),
    ),
    "erfc": (0.46875, 0.5, 0.84375, 1.25, 2.857142857142857, 3.92, 4.0, 6.0, 9.19, 10.05, 26.54, 27.22, 27.3, 28.0),
    "i0": (2.0**-11, 2.0**-26, 3.75, 7.75, 8.0, 15.0, 87.5, 88.5, 91.9, 500.0, 709.0, 713.98),
    "exp2": (
        *(0.5, 1.0, 2.0, 10.0, 15.0, 16.0, 24.0, 25.0, 126.0, 127.0, 128.0, 129.0, 132.0, 133.0, 134.0),
        *(149.0, 150.0, 151.0, 1022.0, 1023.0, 1024.0, 1074.0, 1075.0, 1076.0, 2.0**-25, 2.0**-54, 127.9, 126.5),
    ),
    "tanh": (0.5493061443340548, 0.55, 0.625, 1.0, 4.97, 9.01, 9.1, 19.06, 22.0, 2.0**-12, 2.0**-13, 2.0**-28, 2.0**-6),
}

WINDOWS: dict[str, tuple[int, int]] = {
    "lgamma": (-9, 7),
    "asin": (-14, -1),
    "log1p": (-26, 9),
    "erfc": (-5, 4),
    "i0": (-7, 9),
    "exp2": (-24, 10),
    "tanh": (-13, 4),
}
"""Exponents of the operands between which a function is neither trivial nor out of range, in f64 at the widest."""

# Operands whose result lies about 2^-33 ulp from a midpoint; the last ones of a stretch; worst ones of older libraries.
F32_CODES: dict[str, tuple[int, ...]] = {
    "lgamma": (0x7C44AF8D, 0x7C44AF8E, 0x7C44AF8F, 0xC07B1184),
    "asin": (0x3F0063E6,),
    "log1p": (0x3EFD81AD, 0x3ED413DA),
    "erfc": (0xB76C9F62, 0x3FA9BD3A, 0x41131CDF, 0x41131CE0, 0x4120DDFB, 0x4120DDFC),
    "i0": (0x39FFFFFF, 0x3A000000, 0x42B7CD31, 0x42B7CD32),
    "exp2": (0xBCF3A937, 0xBC23CAFC),
    "tanh": (0x41102CB3, 0x41102CB4, 0x3E6EE50C),
}


def _around(fmt: Format, value: Fraction) -> set[int]:
    """The codes at and next to a number, of both signs."""
    found: set[int] = set()
    modes: tuple[Mode, Mode] = ("down", "up")
    for mode in modes:
        code = round_exact(fmt, abs(value), mode=mode, overflow="saturate")
        found |= {m for m in (code - 1, code, code + 1) if 0 <= m <= fmt.max_finite_bits}
    return found | {code | fmt.sign_mask for code in found}


def critical_points(name: str, fmt: Format) -> tuple[Bits, ...]:
    """The special codes of the format and the places of the function: one array, in order of the codes."""
    found = set(special_codes(fmt))
    for place in PLACES[name]:
        found |= _around(fmt, Fraction(place))
    for code in F32_CODES[name]:
        value = value_of(FORMATS["f32"], code)
        assert isinstance(value, Fraction)
        found |= _around(fmt, value)
    return (as_bits(fmt, sorted(found)),)


DIVISORS = (
    *(0x00000001, 0x00000002, 0x001FFFFF, 0x00200000, 0x00200001, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001),
    *(0x3F800000, 0x3F800001, 0x3FFFFFFF, 0x40400000, 0x7E7FFFFF, 0x7E800000, 0x7E800001, 0x7F000000, 0x7F7FFFFF),
)
"""f32 codes at the ends of the ranges of ``reading:13``."""

DIVIDENDS = (
    *(0x00000001, 0x00000003, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x3F800000, 0x3F800001),
    *(0x3FC00000, 0x7E800000, 0x7F000000, 0x7F7FFFFF),
)


def division_points() -> tuple[Bits, Bits]:
    """Every dividend and special code over every divisor and special code, in f32."""
    fmt = FORMATS["f32"]
    sign = fmt.sign_mask
    above = sorted({*special_codes(fmt), *DIVIDENDS})
    below = sorted({*special_codes(fmt), *DIVISORS, *(code | sign for code in DIVISORS)})
    rows = [(a, b) for a in above for b in below]
    return as_bits(fmt, [a for a, _ in rows]), as_bits(fmt, [b for _, b in rows])
