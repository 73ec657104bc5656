"""Independent sources of the functions' values, and the operands on which they are compared.

mpmath and Arb are the oracle's own; the third is MPFR, or a power series in integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np

from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.functions import nearest_by_mpmath, nearest_many
from halfulp.oracle.functions.record import argument
from halfulp.oracle.ops.function_points import critical_points
from halfulp.oracle.rounding import power_of_two, round_exact

UNARY = ("lgamma", "asin", "log1p", "erfc", "i0", "exp2", "tanh")

USUAL = {"lgamma": 200.0, "asin": 1.0, "log1p": 1e6, "erfc": 28.0, "i0": 720.0, "exp2": 1100.0, "tanh": 20.0}
"""Magnitudes up to which a function has something to say."""


def drawn(name: str, fmt: Format, count: int, seed: int) -> list[int]:
    """Half of the operands with any bits, half spread over the magnitudes that matter."""
    rng = np.random.default_rng(seed)
    wild = np.frombuffer(rng.bytes(fmt.storage.itemsize * (count // 2)), fmt.storage)
    exponents = rng.uniform(-12, np.log2(USUAL[name]), count - count // 2)
    values = 2.0**exponents * rng.choice((-1.0, 1.0), len(exponents))
    tame = [round_exact(fmt, Fraction(v), overflow="saturate") for v in values.tolist()]
    return [*wild.tolist(), *tame]


def operands(name: str, fmt: Format, count: int, seed: int = 0) -> list[int]:
    (critical,) = critical_points(name, fmt)
    return [*critical.tolist(), *drawn(name, fmt, count, seed=1000 * seed + len(name) + fmt.width)]


# The third source.


def mpfr_context(fmt: Format) -> Any:
    """MPFR computing in a format: its precision, its exponents, its subnormal numbers.

    MPFR's number is 0.m * 2**e where IEEE 754 writes 1.m * 2**e, so its exponents are one larger.
    """
    return gmpy2.context(
        precision=fmt.precision,
        emax=fmt.max_exponent + 1,
        emin=fmt.quantum_exponent + 1,
        subnormalize=True,
        round=gmpy2.RoundToNearest,
    )


def mpfr_argument(fmt: Format, code: int) -> Any:
    x = argument(fmt, code)
    if x.kind != "number":
        return gmpy2.mpfr({"+inf": "inf", "-inf": "-inf", "nan": "nan"}[x.kind])
    if x.zero:
        return gmpy2.mpfr("-0.0" if x.negative else "0.0")
    return gmpy2.mpfr(gmpy2.mpq(x.value.numerator, x.value.denominator))


def mpfr_function(name: str) -> Callable[[Any], Any] | None:
    """MPFR's function, in the context of the time of its call; None for i0, which it does not have."""
    if name == "lgamma":  # log|Gamma| and the sign
        return lambda x: gmpy2.lgamma(x)[0]
    return getattr(gmpy2, name, None)


def by_mpfr(name: str, fmt: Format, code: int) -> int:
    """The code that MPFR computes."""
    function = mpfr_function(name)
    assert function is not None
    with mpfr_context(fmt):
        result = function(mpfr_argument(fmt, code))
        if gmpy2.is_nan(result):
            return fmt.nan_bits
        sign = fmt.sign_mask if gmpy2.is_signed(result) else 0
        if gmpy2.is_infinite(result):
            return sign | (fmt.infinity_bits if fmt.infinity else fmt.max_finite_bits)
        numerator, denominator = result.as_integer_ratio()
    exact = Fraction(int(numerator), int(denominator))
    return sign | round_exact(fmt, abs(exact), overflow="infinity" if fmt.infinity else "saturate")


def by_series(fmt: Format, code: int) -> int:
    """i0 by its power series in integers: all terms are positive, the rest is below a geometric series."""
    x = argument(fmt, code)
    if x.kind != "number":
        return fmt.nan_bits if x.kind == "nan" else fmt.infinity_bits
    magnitude = abs(x.value)
    if magnitude > 720:
        return fmt.infinity_bits if fmt.infinity else fmt.max_finite_bits
    if magnitude < power_of_two(-200):
        return round_exact(fmt, 1)
    bits = 600
    quarter = magnitude * magnitude / 4
    one = 1 << bits
    ratio = (quarter.numerator << bits) // quarter.denominator
    term = total = one
    k = 0
    while term > 1 or quarter > k * k / 2:
        k += 1
        term = (term * ratio >> bits) // (k * k)
        total += term
    # Each term is less than 1 + 720^2 units of the last place too small by what was cut off; the rest is below 2 terms.
    error = 2 * k * (1 + 720 * 720) * (1 + (total >> bits))
    ends = [Fraction(total, one), Fraction(total + error, one)]
    low, high = (round_exact(fmt, end, overflow="infinity" if fmt.infinity else "saturate") for end in ends)
    assert low == high
    return low


def disagreements(name: str, fmt: Format, found: list[int]) -> list[str]:
    """Where mpmath, Arb and the third source do not give one code, with all three; the third knows no saturation."""
    texts = []
    results = nearest_many(name, fmt, np.array(found, fmt.storage)).tolist()
    for code, by_arb in zip(found, results, strict=True):
        by_mpmath = nearest_by_mpmath(name, fmt, code)
        third = by_series(fmt, code) if name == "i0" else by_mpfr(name, fmt, code)
        if not fmt.infinity and (by_mpmath & fmt.magnitude_mask) >= fmt.max_finite_bits:
            third = by_mpmath if (third & fmt.magnitude_mask) >= fmt.max_finite_bits else third
        if not by_mpmath == by_arb == third:
            shown = [fmt.hex(each) for each in (by_mpmath, by_arb, third)]
            texts.append(f"{name} {fmt.name} {fmt.hex(code)}: mpmath, Arb, third are {shown}")
    return texts


SHARES = {"f64": 0.43, "f32": 0.43, "f16": 0.07, "bf16": 0.07, "f8e4m3fn": 0.0, "f8e5m2": 0.0}
"""How operands are divided over the formats. Where the share holds all codes, and in f8, all are taken."""


def shared_out(name: str, count: int, seed: int = 0) -> dict[str, list[int]]:
    """About ``count`` operands, by format."""
    found = {}
    for dtype, share in SHARES.items():
        fmt, wanted = FORMATS[dtype], int(count * share)
        every = fmt.width == 8 or wanted >= fmt.code_count
        found[dtype] = list(range(fmt.code_count)) if every else operands(name, fmt, wanted, seed)
    return found
