"""NumPy, with the narrow formats of ml_dtypes, as an eager backend on trial.

Every operation is what a NumPy user would write. Nothing is repaired: NumPy converts i32, i64 and f64 to bf16 and f8
through f32 (two roundings), promotes operands of different dtypes instead of refusing them, and so on; finding that is
the suite's work.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from halfulp.adapters.eager import EagerAdapter
from halfulp.adapters.protocol import Array, Compiled, Facts, UnsupportedError
from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "i4": np.dtype(ml_dtypes.int4),
    "e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "e2m3fn": np.dtype(ml_dtypes.float6_e2m3fn),
    "e3m2fn": np.dtype(ml_dtypes.float6_e3m2fn),
}
"""The NumPy dtype of each format. NumPy has no index type of its own and nothing of 128 bits."""


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return DTYPES[name]
    except KeyError:
        raise UnsupportedError(f"numpy has no {name}") from None


def _limits(name: str) -> tuple[int | float, int | float]:
    """The smallest and the largest finite number of a format of at most 64 bits, exactly."""
    fmt = format_of(name)
    if fmt.is_int:
        return fmt.min_int, fmt.max_int
    info: Any = ml_dtypes.finfo
    return float(info(_dtype(name)).min), float(info(_dtype(name)).max)


def _exact(number: Any) -> int | float:
    """A NumPy scalar as a Python number; ``int()`` of a scalar of ml_dtypes loses what 64 bits do not hold."""
    value = float(number)
    return int(value) if value.is_integer() else value


class NumpyAdapter(EagerAdapter):
    """NumPy and ml_dtypes, eager, one optimisation level. Source programs run with Python literals (NEP 50)."""

    name = "numpy"
    facts = Facts(
        flushes_subnormals=False,
        fuses_multiply_add=False,
        versions={"numpy": np.__version__, "ml_dtypes": ml_dtypes.__version__},
    )
    literals = True

    # Conversions between bit patterns and arrays.

    def from_bits(self, dtype: str, bits: Array) -> Any:
        return bits.view(_dtype(dtype))

    def to_bits(self, dtype: str, value: Any) -> Array:
        array = np.asarray(value)
        return array.view(f"u{array.dtype.itemsize}")

    def has_dtype(self, value: Any, dtype: str) -> bool:
        return dtype in DTYPES and bool(value.dtype == DTYPES[dtype])

    def formed(self, value: bool | int | float) -> Any:
        return np.asarray(value)

    def _runner(self, program: Kernel | Source) -> Compiled:
        inner = super()._runner(program)

        def quiet(*inputs: Array) -> Any:
            with np.errstate(all="ignore"):
                return inner(*inputs)

        return quiet

    # Conversions.

    def cast(self, value: Any, dtype: str) -> Any:
        return np.asarray(value).astype(_dtype(dtype))

    def cast_saturate(self, value: Any, dtype: str) -> Any:
        """Clip to the range of the target, then convert.

        NumPy computes the clip in the source dtype. Where that cannot hold the bound exactly (2147483647 in f32,
        65504 in f8) there is no plain equivalent, and none is made up.
        """
        array, target = np.asarray(value), format_of(dtype)
        source = array.dtype
        if target.kind == "bool" or source == np.bool_:
            raise UnsupportedError("numpy has no saturating conversion from or to bool")
        low, high = _limits(dtype)
        if source.kind in "iu":
            info = np.iinfo(source)
            bounds: tuple[Any, Any] = (max(int(low), int(info.min)), min(int(high), int(info.max)))
        else:
            bounds = (source.type(float(low)), source.type(float(high)))
            if [_exact(bound) for bound in bounds] != [low, high]:
                raise UnsupportedError(f"numpy cannot clip {source} to the range of {dtype}")
        return np.clip(array, *bounds).astype(_dtype(dtype))

    def bitcast(self, value: Any, dtype: str) -> Any:
        return np.asarray(value).view(_dtype(dtype))

    # Arithmetic.

    def add(self, a: Any, b: Any) -> Any:
        return np.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return np.subtract(a, b)

    def mul(self, a: Any, b: Any) -> Any:
        return np.multiply(a, b)

    def div(self, a: Any, b: Any) -> Any:
        return np.divide(a, b)

    def floordiv(self, a: Any, b: Any) -> Any:
        return np.floor_divide(a, b)

    def mod(self, a: Any, b: Any) -> Any:
        return np.remainder(a, b)

    def neg(self, a: Any) -> Any:
        return np.negative(a)

    def abs(self, a: Any) -> Any:
        return np.absolute(a)

    def sqrt(self, a: Any) -> Any:
        return np.sqrt(a)

    def floor(self, a: Any) -> Any:
        return np.floor(a)

    # Functions: numpy has no erfc and no lgamma.

    def log1p(self, a: Any) -> Any:
        return np.log1p(a)

    def asin(self, a: Any) -> Any:
        return np.arcsin(a)

    def exp2(self, a: Any) -> Any:
        return np.exp2(a)

    def tanh(self, a: Any) -> Any:
        return np.tanh(a)

    def i0(self, a: Any) -> Any:
        return np.i0(a).astype(a.dtype)  # computed in f16 and f8e5m2 as in f32; bf16 and f8e4m3fn come back as f64

    # Bits.

    def shl(self, a: Any, b: Any) -> Any:
        return np.left_shift(a, b)

    def shr(self, a: Any, b: Any) -> Any:
        return np.right_shift(a, b)

    def and_(self, a: Any, b: Any) -> Any:
        return np.bitwise_and(a, b)

    def or_(self, a: Any, b: Any) -> Any:
        return np.bitwise_or(a, b)

    def xor(self, a: Any, b: Any) -> Any:
        return np.bitwise_xor(a, b)

    def not_(self, a: Any) -> Any:
        return np.invert(a)

    # Comparison and choice.

    def eq(self, a: Any, b: Any) -> Any:
        return np.equal(a, b)

    def ne(self, a: Any, b: Any) -> Any:
        return np.not_equal(a, b)

    def lt(self, a: Any, b: Any) -> Any:
        return np.less(a, b)

    def le(self, a: Any, b: Any) -> Any:
        return np.less_equal(a, b)

    def gt(self, a: Any, b: Any) -> Any:
        return np.greater(a, b)

    def ge(self, a: Any, b: Any) -> Any:
        return np.greater_equal(a, b)

    def maximum(self, a: Any, b: Any) -> Any:
        return np.maximum(a, b)

    def minimum(self, a: Any, b: Any) -> Any:
        return np.minimum(a, b)

    def maximum_num(self, a: Any, b: Any) -> Any:
        return np.fmax(a, b)

    def minimum_num(self, a: Any, b: Any) -> Any:
        return np.fmin(a, b)

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)
