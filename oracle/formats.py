"""Formats as data: one record each.

A *format* says how a fixed number of bits encodes a value. The 16 canonical scalars of ``intent:1-a`` are run on
backends; the others are known to the oracle alone. Everything that differs between two formats is a field of the
record; no other module asks a format for its name.

Sources: IEEE 754-2019 (f16, f32, f64), ``intent:5.2-f`` and ``-g`` (f8e4m3fn, f8e5m2), ``intent:7-a`` and ``-d``
(e2m1, e8m0), the OCP Microscaling Formats 1.0 specification (e2m3fn, e3m2fn) and the FNUZ proposal of
arXiv:2206.02915 (e4m3fnuz, e4m3b11fnuz).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

Bits = np.ndarray[Any, np.dtype[Any]]
"""An array of bit patterns, in the storage dtype of its format."""

WIDE = np.dtype([("lo", "<u8"), ("hi", "<u8")])
"""Storage of the 128-bit integers: numpy has no 128-bit scalar."""


@dataclass(frozen=True)
class Format:
    """One scalar format.

    Attributes:
        name: the token used everywhere, e.g. ``"f8e4m3fn"``.
        kind: ``"bool"``, ``"int"`` or ``"float"``.
        width: total number of bits.
        signed: two's complement for integers; has a sign bit for floats.
        canonical: one of the 16 scalars of ``intent:1-a``.
        exponent_bits, fraction_bits, bias: the fields of a float; zero for the others.
        infinity: an all-ones exponent with a zero fraction is an infinity.
        nan: which codes are NaN. ``"ieee"``: all-ones exponent, non-zero fraction. ``"all_ones"``: every bit but
            the sign is one. ``"negative_zero"``: only the code of -0 (the FNUZ formats). ``"none"``: no code.
        subnormals: an all-zero exponent field means zero or a subnormal (e8m0 alone has neither).
    """

    name: str
    kind: Literal["bool", "int", "float"]
    width: int
    signed: bool
    canonical: bool
    exponent_bits: int = 0
    fraction_bits: int = 0
    bias: int = 0
    infinity: bool = False
    nan: Literal["ieee", "all_ones", "negative_zero", "none"] = "none"
    subnormals: bool = True

    def __repr__(self) -> str:
        return f"<format {self.name}>"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind == "int"

    @cached_property
    def storage(self) -> np.dtype[Any]:
        """The unsigned numpy dtype that carries one bit pattern."""
        if self.width > 64:
            return WIDE
        return np.dtype(f"u{1 << max(0, (self.width - 1).bit_length() - 3)}")

    @property
    def code_count(self) -> int:
        return 1 << self.width

    @property
    def hex_digits(self) -> int:
        return (self.width + 3) // 4

    def hex(self, bits: int) -> str:
        """The bit pattern as text, in the width of the format: ``0x3f80`` for 1.0 in bf16."""
        return f"0x{bits:0{self.hex_digits}x}"

    # Integers.

    @property
    def min_int(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def max_int(self) -> int:
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1

    # Floats. Exponents are those of a value 1.fraction * 2**e.

    @property
    def precision(self) -> int:
        """Bits of the significand, the leading one included."""
        return self.fraction_bits + 1

    @property
    def sign_mask(self) -> int:
        return 1 << (self.width - 1) if self.signed else 0

    @property
    def magnitude_mask(self) -> int:
        return (1 << (self.width - int(self.signed))) - 1

    @property
    def fraction_mask(self) -> int:
        return (1 << self.fraction_bits) - 1

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number."""
        return (1 if self.subnormals else 0) - self.bias

    @property
    def quantum_exponent(self) -> int:
        """The smallest positive step is 2**quantum_exponent."""
        return self.emin - self.fraction_bits

    @property
    def has_negative_zero(self) -> bool:
        return self.is_float and self.signed and self.nan != "negative_zero"

    @property
    def has_zero(self) -> bool:
        return self.subnormals

    @cached_property
    def infinity_bits(self) -> int:
        """The code of +infinity."""
        if not self.infinity:
            raise ValueError(f"{self.name} has no infinity")
        return self.magnitude_mask & ~self.fraction_mask

    @cached_property
    def nan_bits(self) -> int:
        """One quiet NaN, the one that reports print."""
        match self.nan:
            case "ieee":
                return self.infinity_bits | 1 << (self.fraction_bits - 1)
            case "all_ones":
                return self.magnitude_mask
            case "negative_zero":
                return self.sign_mask
            case "none":
                raise ValueError(f"{self.name} has no NaN")

    @cached_property
    def max_finite_bits(self) -> int:
        """The code of the largest finite number."""
        if self.infinity:
            return self.infinity_bits - 1
        if self.nan == "all_ones":
            return self.magnitude_mask - 1
        return self.magnitude_mask

    @cached_property
    def max_exponent(self) -> int:
        """Exponent of the largest finite number."""
        return (self.max_finite_bits >> self.fraction_bits) - self.bias

    @property
    def min_normal_bits(self) -> int:
        return 1 << self.fraction_bits if self.subnormals else 0


def _int(name: str, width: int, *, signed: bool, canonical: bool = True) -> Format:
    return Format(name, "int", width, signed, canonical)


def _ieee(name: str, exponent_bits: int, fraction_bits: int, *, canonical: bool = True) -> Format:
    """A format built as IEEE 754 builds binary16."""
    return Format(
        name,
        "float",
        1 + exponent_bits + fraction_bits,
        True,
        canonical,
        exponent_bits,
        fraction_bits,
        bias=(1 << (exponent_bits - 1)) - 1,
        infinity=True,
        nan="ieee",
    )


def _finite(
    name: str,
    exponent_bits: int,
    fraction_bits: int,
    bias: int,
    nan: Literal["all_ones", "negative_zero", "none"],
    *,
    canonical: bool = False,
) -> Format:
    """A format without infinities."""
    width = 1 + exponent_bits + fraction_bits
    return Format(name, "float", width, True, canonical, exponent_bits, fraction_bits, bias, False, nan)


_RECORDS = (
    Format("bool", "bool", 1, False, True),
    _int("index", 64, signed=True),
    _int("i8", 8, signed=True),
    _int("i16", 16, signed=True),
    _int("i32", 32, signed=True),
    _int("i64", 64, signed=True),
    _int("u8", 8, signed=False),
    _int("u16", 16, signed=False),
    _int("u32", 32, signed=False),
    _int("u64", 64, signed=False),
    _ieee("f16", 5, 10),
    _ieee("bf16", 8, 7),
    _ieee("f32", 8, 23),
    _ieee("f64", 11, 52),
    _finite("f8e4m3fn", 4, 3, 7, "all_ones", canonical=True),
    _ieee("f8e5m2", 5, 2),
    # Known to the oracle alone.
    _int("i4", 4, signed=True, canonical=False),
    _int("i128", 128, signed=True, canonical=False),
    _int("u128", 128, signed=False, canonical=False),
    _finite("e2m1", 2, 1, 1, "none"),
    Format("e8m0", "float", 8, False, False, 8, 0, 127, nan="all_ones", subnormals=False),
    _finite("e4m3fnuz", 4, 3, 8, "negative_zero"),
    _finite("e4m3b11fnuz", 4, 3, 11, "negative_zero"),
    _ieee("e4m3", 4, 3, canonical=False),
    _finite("e2m3fn", 2, 3, 1, "none"),
    _finite("e3m2fn", 3, 2, 3, "none"),
)

FORMATS: dict[str, Format] = {record.name: record for record in _RECORDS}
"""Every format by name."""

CANONICAL: tuple[str, ...] = tuple(record.name for record in _RECORDS if record.canonical)
"""The 16 scalars of ``intent:1-a``."""

INTS: tuple[str, ...] = tuple(name for name in CANONICAL if FORMATS[name].is_int)
FLOATS: tuple[str, ...] = tuple(name for name in CANONICAL if FORMATS[name].is_float)
STORAGE_ONLY: tuple[str, ...] = tuple(record.name for record in _RECORDS if not record.canonical)


def format_of(name: str) -> Format:
    """Look a format up by name.

    Raises:
        ValueError: there is no such format; the message lists those there are.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"unknown format {name!r}; known formats: {', '.join(FORMATS)}") from None
