"""Wrong ways to compile for CUDA: lowerings with one method replaced, and rewrites of kernels.

The first line of each docstring says what is wrong, and is the suspect's summary; ``cuda`` has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfulp.backends.common import code as abstract
from halfulp.backends.common import lower_cast, lower_int, lower_random
from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Reg
from halfulp.backends.common.lower_cast import F32, F64
from halfulp.backends.common.types import SCALARS, Scalar
from halfulp.backends.cuda.cpp import Code
from halfulp.backends.cuda.functions import CudaLowering
from halfulp.oracle.kernel import Apply, Kernel, Value

# Instructions of PTX that the backend has no use for.

_LETTERS = {"i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d"}


def _asm(code: abstract.Code, text: str, type_: str, *args: Reg) -> Reg:
    """Append PTX whose result is ``%0`` and whose operands are ``%1``, ``%2`` and so on; i8 has no register."""
    assert isinstance(code, Code)
    result = code.emit(type_, "0")
    operands = ",".join(f'"{_LETTERS[arg.type]}"({arg.name})' for arg in args)
    code.lines.append(f'asm("{text};":"={_LETTERS[type_]}"({result.name}):{operands});')
    return result


def _float(code: abstract.Code, x: Reg, dtype: Scalar) -> Reg:
    """The value of a code, as ``double`` for f64 and as ``float`` for the others."""
    return code.convert("bitcast", x, "double") if dtype is F64 else lower_cast.widen(code, x, dtype)


def _f32(code: abstract.Code, value: Reg) -> Reg:
    """The code of a ``float``."""
    return code.convert("bitcast", value, "i32")


# Functions and approximate operations.


class TanhApproximate(CudaLowering):
    """The default tanh of f32 is the approximate one."""

    def function(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        if op == "tanh" and x.type == "float":
            return self.approximate(code, op, x, mode)
        return super().function(code, op, x, mode)


class Exp2Flushing(CudaLowering):
    """The default exp2 of f32 is the approximate one that flushes."""

    def function(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        if op == "exp2" and x.type == "float" and not mode:
            return _asm(code, "ex2.approx.ftz.f32 %0,%1", "float", x)
        return super().function(code, op, x, mode)


class Exp2Approximate(CudaLowering):
    """The default exp2 of f32 is the approximate instruction, good to 2 ulp as the library's is."""

    def function(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        if op == "exp2" and x.type == "float" and not mode:
            return self.approximate(code, op, x, mode)
        return super().function(code, op, x, mode)


class Exp2FlushLost(CudaLowering):
    """exp2 does not flush where it was asked to."""

    def approximate(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        return super().approximate(code, op, x, "approximate")


class Exp2FlushGained(CudaLowering):
    """Every approximate exp2 flushes."""

    def approximate(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        return super().approximate(code, op, x, "flushing")


class DivisionFlushLost(CudaLowering):
    """Approximate division does not flush where it was asked to."""

    def divide(self, code: abstract.Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        return _asm(code, "div.approx.f32 %0,%1,%2", "float", a, b)


class DivisionFlushGained(CudaLowering):
    """Every approximate division flushes."""

    def divide(self, code: abstract.Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        return super().divide(code, a, b, "flushing")


class DivisionFullRange(CudaLowering):
    """Approximate division scales divisors above 2^126 instead of making zero."""

    def divide(self, code: abstract.Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        return _asm(code, f"div.full{'.ftz' if mode == 'flushing' else ''}.f32 %0,%1,%2", "float", a, b)


class DivisionOrdinary(CudaLowering):
    """Approximate division that need not flush is the ordinary one, above 2^126 too."""

    def divide(self, code: abstract.Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        return super().divide(code, a, b, mode) if mode == "flushing" else code.float_op("fdiv", a, b)


def beyond_bound(op: str, bound: int) -> type[CudaLowering]:
    """A function of f32 whose result is moved by more than its bound, at one input of 64."""

    class Beyond(CudaLowering):
        def function(self, code: abstract.Code, name: str, x: Reg, mode: Mode) -> Reg:
            result = super().function(code, name, x, mode)
            if name != op or x.type != "float":
                return result
            bits = _f32(code, result)
            chosen = code.icmp("eq", code.and_(_f32(code, x), 63), 33)
            # Zeros, infinities and NaN stay what they are.
            magnitude = code.and_(bits, F32.magnitude_mask)
            finite = code.icmp("ult", code.sub(magnitude, 1), F32.max_finite - bound - 2)
            moved = code.add(bits, bound + 1)
            return code.convert("bitcast", code.select(code.and_(chosen, finite), moved, bits), "float")

    Beyond.__doc__ = f"{op} of f32 is {bound + 1} ulp beside the library's result at one input of 64."
    return Beyond


# Arithmetic.


class _Arithmetic(CudaLowering):
    """Replaces one operation on f32."""

    replaced: tuple[str, ...] = ()

    def arithmetic(self, code: abstract.Code, op: str, dtype: Scalar, args: Sequence[Reg]) -> Reg:
        if op not in self.replaced or dtype is not F32:
            return super().arithmetic(code, op, dtype, args)
        return _f32(code, self.replacement(code, op, [_float(code, arg, dtype) for arg in args]))

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        raise NotImplementedError


class DivisionIntrinsic(_Arithmetic):
    """`/` of f32 is __fdividef."""

    replaced = ("div",)

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        assert isinstance(code, Code)
        return code.emit("float", f"__fdividef({values[0].name},{values[1].name})")


class DivisionByReciprocal(_Arithmetic):
    """`/` of f32 multiplies by the rounded reciprocal."""

    replaced = ("div",)

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        return code.float_op("fmul", values[0], _asm(code, "rcp.rn.f32 %0,%1", "float", values[1]))


class RootByReciprocalRoot(_Arithmetic):
    """The root of f32 is x times the approximate reciprocal root."""

    replaced = ("sqrt",)

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        return code.float_op("fmul", values[0], _asm(code, "rsqrt.approx.f32 %0,%1", "float", values[0]))


class SumTowardZero(_Arithmetic):
    """Sums of f32 are rounded toward zero."""

    replaced = ("add",)

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        return _asm(code, "add.rz.f32 %0,%1,%2", "float", *values)


class NegationFromZero(_Arithmetic):
    """-x is 0 - x: the negative of +0 is +0."""

    replaced = ("neg",)

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        return code.float_op("fsub", code.real("float", 0.0), values[0])


class MaximumDropsNan(_Arithmetic):
    """maximum and minimum of f32 are PTX's max and min, which ignore a NaN."""

    replaced = ("maximum", "minimum")

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        return _asm(code, f"{op[:3]}.f32 %0,%1,%2", "float", *values)


class MaximumNumKeepsNan(_Arithmetic):
    """maximum_num and minimum_num of f32 hand a NaN on."""

    replaced = ("maximum_num", "minimum_num")

    def replacement(self, code: abstract.Code, op: str, values: Sequence[Reg]) -> Reg:
        return _asm(code, f"{op[:3]}.NaN.f32 %0,%1,%2", "float", *values)


# Casts.


class _Casts(CudaLowering):
    """Replaces the ordinary casts between some dtypes; ``cast_saturate`` stays."""

    pairs: tuple[tuple[str, str], ...] = ()

    def cast(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar, *, saturate: bool) -> Reg:
        if saturate or (source.name, target.name) not in self.pairs:
            return super().cast(code, x, source, target, saturate=saturate)
        return self.replacement(code, x, source, target)

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        raise NotImplementedError


class _SaturatingF8(_Casts):
    """The conversion that PTX has: it saturates. The other half of the pair is zero."""

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        kind = {"f8e5m2": "e5m2x2", "f8e4m3fn": "e4m3x2"}[target.name]
        zero, value = code.real("float", 0.0), _float(code, x, source)
        return code.convert("trunc", _asm(code, f"cvt.rn.satfinite.{kind}.f32 %0,%1,%2", "i16", zero, value), "i8")


class F8E5M2Saturates(_SaturatingF8):
    """A cast to f8e5m2 overflows to the largest number."""

    pairs = (("f32", "f8e5m2"), ("f16", "f8e5m2"), ("bf16", "f8e5m2"))


class F8E4M3Saturates(_SaturatingF8):
    """A cast to f8e4m3fn beyond its range gives the largest number: nothing is promised there."""

    pairs = (("f32", "f8e4m3fn"), ("f16", "f8e4m3fn"), ("bf16", "f8e4m3fn"))


class RoundsTwiceToF16(_Casts):
    """A cast of f64 to f16 goes through f32."""

    pairs = (("f64", "f16"),)

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        return _asm(code, "cvt.rn.f16.f32 %0,%1", "i16", code.convert("fptrunc", _float(code, x, source), "float"))


class RoundsTwiceToBf16(_Casts):
    """A cast of f64 to bf16 goes through f32."""

    pairs = (("f64", "bf16"),)

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        value = code.convert("fptrunc", _float(code, x, source), "float")
        return super().cast(code, _f32(code, value), F32, target, saturate=False)


class RoundsTwiceFromI64(_Casts):
    """A cast of a 64-bit integer to f32 goes through f64."""

    pairs = (("i64", "f32"), ("u64", "f32"), ("index", "f32"))

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        value = code.convert("sitofp" if source.signed else "uitofp", x, "double")
        return _f32(code, code.convert("fptrunc", value, "float"))


class CastTowardZero(_Casts):
    """A cast of f32 to f16 is rounded toward zero."""

    pairs = (("f32", "f16"),)

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        return _asm(code, "cvt.rz.f16.f32 %0,%1", "i16", _float(code, x, source))


class ToIntegerRounds(_Casts):
    """A cast of f32 to i32 rounds to the nearest integer."""

    pairs = (("f32", "i32"),)

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        return _asm(code, "cvt.rni.s32.f32 %0,%1", "i32", _float(code, x, source))


class IntegerCastSaturates(_Casts):
    """A cast of i32 to i8 clamps."""

    pairs = (("i32", "i8"),)

    def replacement(self, code: abstract.Code, x: Reg, source: Scalar, target: Scalar) -> Reg:
        return code.convert("trunc", _asm(code, "cvt.sat.s8.s32 %0,%1", "i32", x), "i8")


# Integers and random bits.


class _Integers(CudaLowering):
    """Replaces operations on i32."""

    replaced: tuple[str, ...] = ()

    def operation(
        self, code: abstract.Code, op: str, operands: Sequence[Scalar], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        if op in self.replaced and operands[0].name == "i32":
            return self.replacement(code, op, args)
        return super().operation(code, op, operands, result, mode, args)

    def replacement(self, code: abstract.Code, op: str, args: Sequence[Reg]) -> Reg:
        raise NotImplementedError


class AdditionSaturates(_Integers):
    """Sums of i32 clamp."""

    replaced = ("add",)

    def replacement(self, code: abstract.Code, op: str, args: Sequence[Reg]) -> Reg:
        return _asm(code, "add.sat.s32 %0,%1,%2", "i32", *args)


class QuotientThroughFloat(_Integers):
    """// of i32 divides floats."""

    replaced = ("floordiv",)

    def replacement(self, code: abstract.Code, op: str, args: Sequence[Reg]) -> Reg:
        a, b = (code.convert("sitofp", arg, "float") for arg in args)
        return code.truncate(code.floor(code.float_op("fdiv", a, b)), "i32", signed=True)


class ShiftSaturates(_Integers):
    """<< of i32 gives the largest or the smallest number where bits are lost."""

    replaced = ("shl",)

    def replacement(self, code: abstract.Code, op: str, args: Sequence[Reg]) -> Reg:
        x, amount = args
        dtype = SCALARS["i32"]
        shifted = lower_int.lower(code, "shl", dtype, args)
        kept = code.icmp("eq", lower_int.lower(code, "shr", dtype, (shifted, amount)), x)
        limit = code.select(code.icmp("slt", x, 0), dtype.min_int, dtype.max_int, "i32")
        return code.select(kept, shifted, limit)


class ShiftAmountUnmasked(_Integers):
    """<< of i32 is PTX's, which clamps the amount: of legal ones it is none the worse."""

    replaced = ("shl",)

    def replacement(self, code: abstract.Code, op: str, args: Sequence[Reg]) -> Reg:
        return _asm(code, "shl.b32 %0,%1,%2", "i32", *args)


class ShiftLogical(_Integers):
    """>> of i32 moves zeros in."""

    replaced = ("shr",)

    def replacement(self, code: abstract.Code, op: str, args: Sequence[Reg]) -> Reg:
        return lower_int.lower(code, op, SCALARS["u32"], args)


class NineRounds(CudaLowering):
    """Philox with nine rounds."""

    def operation(
        self, code: abstract.Code, op: str, operands: Sequence[Scalar], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        if op not in lower_random.OPERATIONS:
            return super().operation(code, op, operands, result, mode, args)
        rounds = lower_random.ROUNDS
        try:
            lower_random.ROUNDS = rounds - 1
            return super().operation(code, op, operands, result, mode, args)
        finally:
            lower_random.ROUNDS = rounds


# Kernels rewritten before they are compiled.


class _Rewriter:
    """A copy of a kernel in the making. Arguments are positions of the copy.

    Attributes:
        moved: where each value of the kernel is in the copy.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.values: list[Value] = []
        self.moved: dict[int, int] = {}

    def add(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def args(self, node: Apply) -> tuple[int, ...]:
        return tuple(self.moved[arg] for arg in node.args)

    def rewrite(self, change: Callable[[_Rewriter, Apply], int | None]) -> Kernel:
        """``change`` writes an operation in another way, and returns where its result is; None to leave it."""
        for at, value in enumerate(self.kernel.values):
            place = change(self, value) if isinstance(value, Apply) else None
            if place is None:
                if isinstance(value, Apply):
                    value = Apply(value.op, self.args(value), value.dtype, value.attrs)
                place = self.add(value)
            self.moved[at] = place
        return Kernel(tuple(self.values), tuple(self.moved[output] for output in self.kernel.outputs))

    def operation(self, at: int, op: str) -> Apply | None:
        """The operation of that name at a position of the kernel, if it is one."""
        value = self.kernel.values[at]
        return value if isinstance(value, Apply) and value.op == op else None


def modes_merged(kernel: Kernel) -> Kernel:
    """An ordinary operation beside its approximate twin on the same operands is that twin: one value for both."""

    def key(node: Apply) -> tuple[str, tuple[int, ...]]:
        return "fdiv" if node.op == "div" else node.op, node.args

    twins = {key(v): v for v in kernel.values if isinstance(v, Apply) and dict(v.attrs).get("approximate")}
    places: dict[Apply, int] = {}

    def change(copy: _Rewriter, node: Apply) -> int | None:
        twin = node if dict(node.attrs).get("approximate") else twins.get(key(node))
        if twin is None:
            return None
        if twin not in places:
            places[twin] = copy.add(Apply(twin.op, copy.args(twin), twin.dtype, twin.attrs))
        return places[twin]

    return _Rewriter(kernel).rewrite(change)


def fused_across_casts(kernel: Kernel) -> Kernel:
    """A product that is widened becomes the product of the widened factors, which may be fused."""

    def change(copy: _Rewriter, node: Apply) -> int | None:
        product = copy.operation(node.args[0], "mul") if node.op == "cast" and node.dtype == "f64" else None
        if product is None:
            return None
        factors = tuple(copy.add(Apply("cast", (factor,), "f64")) for factor in copy.args(product))
        return copy.add(Apply("mul", factors, "f64"))

    return _Rewriter(kernel).rewrite(change)


def sums_regrouped(kernel: Kernel) -> Kernel:
    """(x + y) + z becomes x + (y + z)."""

    def change(copy: _Rewriter, node: Apply) -> int | None:
        inner = copy.operation(node.args[0], "add") if node.op == "add" else None
        if inner is None:
            return None
        (x, y), z = copy.args(inner), copy.args(node)[1]
        return copy.add(Apply("add", (x, copy.add(Apply("add", (y, z), node.dtype))), node.dtype))

    return _Rewriter(kernel).rewrite(change)
