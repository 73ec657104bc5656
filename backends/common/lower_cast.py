"""Conversions (``intent:5.2``). Every one rounds once.

Values come and go as integers (see ``types``). Narrow floats (f16, bf16, f8e4m3fn, f8e5m2) are widened exactly to
``float`` and rounded back by integer code, the same on every target.
"""

from __future__ import annotations

from halfulp.backends.common.code import Code, Conversion, Reg
from halfulp.backends.common.types import SCALARS, Scalar

F32, F64 = SCALARS["f32"], SCALARS["f64"]


def lower(code: Code, x: Reg, source: Scalar, target: Scalar, *, saturate: bool) -> Reg:
    """``cast`` and ``cast_saturate``.

    Integer targets of ``cast_saturate`` clamp to their range, float targets to the largest finite magnitude, infinite
    operands included; NaN stays NaN (``reading:26``). A conversion from or to bool cannot overflow: true is 1, and
    whatever is not zero is true (``reading:7``).
    """
    if target.is_bool:
        return _to_bool(code, x, source)
    if source.is_bool:
        if target.is_int:
            return code.convert("zext", x, target.register)
        return code.select(x, target.one, 0, target.register)
    if target.is_int:
        if source.is_float:
            # Out of range: clamped, NaN to zero. Illegal in ``cast``, the rule in ``cast_saturate``.
            return _float_to_int(code, x, source, target)
        if saturate:
            x = _clamp(code, x, source, target)
        return code.resize(x, target.register, signed=source.signed)
    if source.is_int:
        result = _int_to_float(code, x, source, target, saturate=saturate)
    else:
        result = _float_to_float(code, x, source, target, saturate=saturate)
    if saturate and target.infinite:
        magnitude = code.and_(result, target.magnitude_mask)
        is_infinite = code.icmp("eq", magnitude, target.max_number)
        result = code.select(is_infinite, code.sub(result, 1), result)  # the code before infinity
    return result


def is_nan(code: Code, x: Reg, dtype: Scalar) -> Reg:
    """Whether the code ``x`` is a NaN, as ``i1``."""
    return code.icmp("ugt", code.and_(x, dtype.magnitude_mask), dtype.max_number)


def _to_bool(code: Code, x: Reg, source: Scalar) -> Reg:
    if source.is_bool:
        return x
    return code.icmp("ne", code.and_(x, source.magnitude_mask) if source.is_float else x, 0)


def _clamp(code: Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
    """An integer clamped to the values of ``target``, in the type of ``source``."""
    if target.max_int < source.max_int:
        above = code.icmp("sgt" if source.signed else "ugt", x, target.max_int)
        x = code.select(above, target.max_int, x)
    if target.min_int > source.min_int:
        x = code.select(code.icmp("slt", x, target.min_int), target.min_int, x)
    return x


def _float_to_int(code: Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
    value = code.convert("bitcast", x, "double") if source is F64 else widen(code, x, source)
    return code.truncate(value, target.register, signed=target.signed)


def _int_to_float(code: Code, x: Reg, source: Scalar, target: Scalar, *, saturate: bool) -> Reg:
    """One rounding from the exact integer (``intent:5.2-b``).

    Conversions to ``float`` and ``double`` round once on every machine. The narrow formats go through the one of these
    that holds the integer exactly, or through one rounded to odd: an inexact value is replaced by the neighbour whose
    last bit is one, which no tie and no representable number of the target is. That keeps a later rounding right if it
    drops at least two bits (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    conversion: Conversion = "sitofp" if source.signed else "uitofp"
    if target.native:
        value = code.convert(conversion, x, target.native)
        return code.convert("bitcast", value, target.register)
    via, precision = (F64, 53) if source.width == 64 else (F32, 24)
    if source.width > precision:
        x = _round_to_odd(code, x, source, precision)
    assert via.native is not None
    bits = code.convert("bitcast", code.convert(conversion, x, via.native), via.register)
    return narrow(code, bits, via, target, saturate=saturate)


def _round_to_odd(code: Code, x: Reg, source: Scalar, precision: int) -> Reg:
    """An integer that ``precision`` bits hold, equal to ``x`` or equivalent to it before a rounding to 11 bits.

    A magnitude of at least 2**precision loses as many low bits as a full register has too many: at least
    ``2 * precision - width`` leading bits stay (16 of 32 for f32, 42 of 64 for f64; 13 are needed). In two's
    complement clearing bits rounds down, and setting the lowest one left where any was lost gives the odd neighbour.
    """
    dropped = source.width - precision
    low = (1 << dropped) - 1
    sticky = code.and_(code.add(code.and_(x, low), low), low + 1)
    odd = code.or_(code.and_(x, ~low), sticky)
    if source.signed:
        large = code.icmp("uge", code.add(x, 1 << precision), 2 << precision)
    else:
        large = code.icmp("uge", x, 1 << precision)
    return code.select(large, odd, x)


def _float_to_float(code: Code, x: Reg, source: Scalar, target: Scalar, *, saturate: bool) -> Reg:
    if source == target:
        return x
    if source is F64:
        if target is F32:
            value = code.convert("fptrunc", code.convert("bitcast", x, "double"), "float")
            return code.convert("bitcast", value, "i32")
        return narrow(code, x, F64, target, saturate=saturate)
    value = widen(code, x, source)
    if target is F64:
        return code.convert("bitcast", code.convert("fpext", value, "double"), "i64")
    bits = code.convert("bitcast", value, "i32")
    return bits if target is F32 else narrow(code, bits, F32, target, saturate=saturate)


def widen(code: Code, x: Reg, source: Scalar) -> Reg:
    """The value of an f32 or of a narrow float as ``float``: exact (``intent:5.2-e``, ``intent:5.2-h``)."""
    if source is F32:
        return code.convert("bitcast", x, "float")
    wide = code.convert("zext", x, "i32")
    shift = F32.fraction_bits - source.fraction_bits
    if source.exponent_bits == F32.exponent_bits:  # bf16: the upper half
        return code.convert("bitcast", code.shl(wide, shift), "float")
    magnitude = code.and_(wide, source.magnitude_mask)
    sign = code.shl(code.and_(wide, source.sign_bit), 32 - source.width)
    # With its fields moved into place the number is too small by the difference of the biases, as a power of two. The
    # product is exact, and makes subnormals of the source normal.
    moved = code.shl(magnitude, shift)
    scale = code.real("float", 2.0 ** (F32.bias - source.bias))
    scaled = code.float_op("fmul", code.convert("bitcast", moved, "float"), scale)
    number = code.convert("bitcast", scaled, "i32")
    last = source.max_finite
    special = code.or_(moved, F32.max_number) if source.infinite else code.constant("i32", F32.nan)
    bits = code.select(code.icmp("ugt", magnitude, last), special, number)
    return code.convert("bitcast", code.or_(bits, sign), "float")


def narrow(code: Code, x: Reg, source: Scalar, target: Scalar, *, saturate: bool = False) -> Reg:
    """The code ``x`` of an f32 or f64 rounded to a narrow format, to nearest, ties to even.

    Where the format has no infinity, a value that rounds beyond its largest becomes NaN (an illegal input of
    ``cast``), or the largest when it saturates.
    """
    magnitude = code.and_(x, source.magnitude_mask)
    shift = source.fraction_bits - target.fraction_bits
    # Normal results: add just under half a step of the target, or half where the last bit kept is odd, and cut. A
    # carry out of the fraction goes into the exponent, as it should; then change the bias.
    odd = code.and_(code.lshr(magnitude, shift), 1)
    rounded = code.lshr(code.add(code.add(magnitude, (1 << (shift - 1)) - 1), odd), shift)
    result = code.sub(rounded, (source.bias - target.bias) << target.fraction_bits)
    largest = target.max_finite if saturate and not target.infinite else target.max_finite + 1
    result = code.select(code.icmp("ugt", result, largest), largest, result)
    if source.bias != target.bias:
        # Subnormal results: added to a power of two whose last bit counts the target's smallest step, the number is
        # rounded to that step by the addition. The difference of the codes is the count.
        assert source.native is not None
        anchor_exponent = target.quantum_exponent + source.fraction_bits
        anchor = code.real(source.native, 2.0**anchor_exponent)
        total = code.float_op("fadd", code.convert("bitcast", magnitude, source.native), anchor)
        anchor_code = (anchor_exponent + source.bias) << source.fraction_bits
        count = code.sub(code.convert("bitcast", total, source.register), anchor_code)
        min_normal = (target.min_normal_exponent + source.bias) << source.fraction_bits
        result = code.select(code.icmp("ult", magnitude, min_normal), count, result)
    result = code.select(code.icmp("ugt", magnitude, source.max_number), target.nan, result)
    sign = code.and_(code.lshr(x, source.width - target.width), target.sign_bit)
    return code.convert("trunc", code.or_(result, sign), target.register)
