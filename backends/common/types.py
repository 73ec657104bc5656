"""The scalars of the language, and how a value of each is carried in memory and in registers.

In memory a value is the unsigned integer of its bit pattern; bool takes a byte, 0 or 1. In registers it is the same
integer (``i1`` for bool), floats too: copies, selects and bitcasts then carry every bit, signalling NaNs included,
whatever the calling convention of the target does to floating-point registers. An operation that computes in ``float``
or ``double`` bitcasts its operands and its result; a compiler removes the pairs that meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Scalar:
    """One scalar type.

    Attributes:
        name: its token.
        kind: ``"bool"``, ``"int"`` or ``"float"``.
        width: number of bits.
        signed: two's complement (integers).
        exponent_bits, fraction_bits: fields of a float.
        infinite: the all-ones exponent stands for infinity and NaN; otherwise (f8e4m3fn) only the code with every
            bit but the sign set is a NaN, and there is no infinity.
    """

    name: str
    kind: Literal["bool", "int", "float"]
    width: int
    signed: bool = False
    exponent_bits: int = 0
    fraction_bits: int = 0
    infinite: bool = True

    @property
    def is_int(self) -> bool:
        return self.kind == "int"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def register(self) -> str:
        """The type of `code` that carries a value."""
        return f"i{self.width}"

    @property
    def memory(self) -> str:
        """The type of `code` of an array element."""
        return "i8" if self.is_bool else self.register

    @property
    def bytes(self) -> int:
        return max(1, self.width // 8)

    # Floats.

    @property
    def native(self) -> str | None:
        """The type of `code` in which every target computes this format, None where there is none.

        There is none for the narrow formats, although some targets have instructions for f16 and bf16: others need
        library calls for them, and their conversions from integers are not rounded once on every target.
        """
        return {"f32": "float", "f64": "double"}.get(self.name)

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)

    @property
    def magnitude_mask(self) -> int:
        return self.sign_bit - 1

    @property
    def max_number(self) -> int:
        """The code of the greatest magnitude that is not a NaN: infinity, or 448 in f8e4m3fn."""
        if self.infinite:
            return ((1 << self.exponent_bits) - 1) << self.fraction_bits
        return self.magnitude_mask - 1

    @property
    def max_finite(self) -> int:
        return self.max_number - 1 if self.infinite else self.max_number

    @property
    def nan(self) -> int:
        """The code of a quiet NaN."""
        return self.max_number | 1 << (self.fraction_bits - 1) if self.infinite else self.magnitude_mask

    @property
    def one(self) -> int:
        return self.bias << self.fraction_bits

    @property
    def min_normal_exponent(self) -> int:
        return 1 - self.bias

    @property
    def quantum_exponent(self) -> int:
        """The subnormals are multiples of 2**quantum_exponent."""
        return self.min_normal_exponent - self.fraction_bits

    # Integers.

    @property
    def min_int(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def max_int(self) -> int:
        return (1 << (self.width - int(self.signed))) - 1


SCALARS: dict[str, Scalar] = {
    scalar.name: scalar
    for scalar in (
        Scalar("bool", "bool", 1),
        Scalar("index", "int", 64, signed=True),
        *(Scalar(f"i{width}", "int", width, signed=True) for width in (8, 16, 32, 64)),
        *(Scalar(f"u{width}", "int", width) for width in (8, 16, 32, 64)),
        Scalar("f16", "float", 16, True, 5, 10),
        Scalar("bf16", "float", 16, True, 8, 7),
        Scalar("f32", "float", 32, True, 8, 23),
        Scalar("f64", "float", 64, True, 11, 52),
        Scalar("f8e4m3fn", "float", 8, True, 4, 3, infinite=False),
        Scalar("f8e5m2", "float", 8, True, 5, 2),
    )
}
"""The scalars of ``intent:1-a``, by name."""
