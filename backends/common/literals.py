"""Python literals and the dtypes they take (``intent:3-a`` to ``3-d``).

Where the dialect leaves a literal unspecified, this front end decides: 1.0 goes into an integer (the value is
representable), True does not (bool is no number here), an integer that a float format cannot hold exactly is rounded
to nearest, ties to even, like any other inexact literal, and so is a value that rounds to the largest finite number.
"""

from __future__ import annotations

import math
from fractions import Fraction

from halfulp.backends.common.check import TypeRefusal
from halfulp.backends.common.types import SCALARS, Scalar


def default_type(value: bool | int | float) -> Scalar:
    """The dtype of a run-time value made from a literal that no dtype is expected of: bool, i64 or f64."""
    if isinstance(value, bool):
        return SCALARS["bool"]
    return SCALARS["i64" if isinstance(value, int) else "f64"]


def encode(value: bool | int | float, dtype: Scalar) -> int:
    """The bit pattern of a literal in the dtype that its position expects.

    Raises:
        TypeRefusal: the value is not representable (``intent:3-b``).
    """
    if isinstance(value, bool) or dtype.is_bool:
        if isinstance(value, bool) and dtype.is_bool:
            return int(value)
        raise TypeRefusal(f"literal {value!r} where {dtype.name} is expected")
    if dtype.is_int:
        if isinstance(value, float) and not value.is_integer():  # also infinity and NaN
            raise TypeRefusal(f"literal {value!r} where {dtype.name} is expected")
        number = int(value)
        if not dtype.min_int <= number <= dtype.max_int:
            raise TypeRefusal(f"literal {value!r} is out of range of {dtype.name}")
        return number & ((1 << dtype.width) - 1)
    if isinstance(value, float) and math.isnan(value):
        return dtype.nan
    negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    if isinstance(value, float) and math.isinf(value):
        if not dtype.infinite:
            raise TypeRefusal(f"{dtype.name} has no infinity")
        magnitude = dtype.max_number
    else:
        magnitude = _round(abs(Fraction(value)), dtype)
        if magnitude > dtype.max_finite:
            raise TypeRefusal(f"literal {value!r} overflows {dtype.name}")
    return magnitude | (dtype.sign_bit if negative else 0)


def _round(value: Fraction, dtype: Scalar) -> int:
    """The code of ``value``, rounded to nearest, ties to even; codes go on upwards where the value overflows."""
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    exponent = max(exponent, dtype.min_normal_exponent)
    steps = round(value / Fraction(2) ** (exponent - dtype.fraction_bits))  # ties to even
    # The leading bit of a normal number adds one to the exponent field, so the field starts one lower.
    return ((exponent - dtype.min_normal_exponent) << dtype.fraction_bits) + steps
