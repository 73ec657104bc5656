"""Bit patterns and numbers as people read them."""

from __future__ import annotations

import re

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Format, format_of

_HEX = re.compile(r"0x[0-9a-fA-F]+")


def value_text(fmt: Format, code: int) -> str:
    """What a bit pattern stands for.

    Integers in decimal. Floats in decimal with as many digits as tell the number apart from its neighbours in f64,
    in which every float format is exact, and in hexadecimal where the decimal form does not show the binary digits.
    """
    if fmt.kind == "bool":
        return {0: "false", 1: "true"}.get(code, "neither 0 nor 1")
    if fmt.is_int:
        negative = fmt.signed and code >> (fmt.width - 1)
        return str(code - fmt.code_count if negative else code)
    number = float(codes.float64_values(fmt, np.array([code], fmt.storage))[0])
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)
    decimal = repr(number)
    return decimal if number == int(number) and abs(number) < 2**24 else f"{decimal} = {_hexfloat(number)}"


def _hexfloat(number: float) -> str:
    """``0x1.01p+0``: as C prints it, without trailing zeros."""
    mantissa, exponent = number.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def bits_text(dtype: str, text: str) -> str:
    """A bit pattern given as hex text, followed by what it stands for. Any other text is returned as it is."""
    if not _HEX.fullmatch(text):
        return text
    fmt = format_of(dtype)
    code = int(text, 16)
    return f"{fmt.hex(code)} ({value_text(fmt, code)})" if code < fmt.code_count else text


def count_text(count: int) -> str:
    """A count in at most seven characters: ``12,345``, ``1.234 M``."""
    if count < 100_000:
        return f"{count:,}"
    size = float(count)
    for suffix in ("k", "M", "G", "T"):
        size /= 1000
        if size < 999.95 or suffix == "T":
            break
    return f"{size:.3g} {suffix}" if size < 100 else f"{size:.0f} {suffix}"


def percent_text(share: float) -> str:
    """A share in percent, never rounded to 0 or 100 % unless it is."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.3g} %"


def plural(count: int, noun: str) -> str:
    """``1 program``, ``1,234 programs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
