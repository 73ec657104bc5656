"""CUDA compilers that are wrong in exactly one way.

Each is the CUDA backend itself, with another option for NVRTC, one method of its lowering replaced, or a rewrite of the
kernels before it. They are compiled and run as the backend is: ``--backend=cuda-suspect:NAME``, and without a GPU
``--backend=cuda-suspect:NAME:compile-only``, which is enough where the PTX shows the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halfulp.adapters.discovery import AdapterError
from halfulp.backends.common import code as abstract
from halfulp.backends.common import lower_cast, lower_int, lower_random
from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Reg
from halfulp.backends.common.lower_cast import F32, F64
from halfulp.backends.common.types import SCALARS, Scalar
from halfulp.backends.cuda.adapter import CudaAdapter
from halfulp.backends.cuda.cpp import Code
from halfulp.backends.cuda.functions import CudaLowering
from halfulp.certify.saboteur_litmus_cuda import CUDA_LITMUS_SUSPECTS
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


def _beyond(op: str, bound: int) -> type[CudaLowering]:
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


# The table.


@dataclass(frozen=True)
class Place:
    """Where a suspect has to be caught (or a variant left alone) under a clause.

    Attributes:
        clause: what it breaks.
        ptx: the part of a group of ``properties.ptx_items`` whose code shows it; empty where PTX alone does not.
        gpu: id of the signature, or name of the known program, whose results show it; empty where they do not.
    """

    clause: str
    ptx: str = ""
    gpu: str = ""


@dataclass(frozen=True)
class CudaSuspect:
    """A named wrong way to compile for CUDA.

    Attributes:
        name, summary: as in `halfulp.oracle.suspects.Suspect`.
        places: where it is caught.
        lowering: the lowering in place of the backend's.
        options: for NVRTC, after the backend's.
        rewrite: what is done to every kernel first.
        fault: False where the language leaves it open: nothing may report it.
    """

    name: str
    summary: str
    places: tuple[Place, ...]
    lowering: type[CudaLowering] = CudaLowering
    options: tuple[str, ...] = ()
    rewrite: Callable[[Kernel], Kernel] | None = None
    fault: bool = True

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.clause for place in self.places))


def _places(*rows: tuple[str, str, str]) -> tuple[Place, ...]:
    return tuple(Place(f"intent:{clause}", ptx, gpu) for clause, ptx, gpu in rows)


def _flag(name: str, options: str, *rows: tuple[str, str, str], fault: bool = True) -> CudaSuspect:
    return CudaSuspect(name, f"Compiled with {options}.", _places(*rows), options=tuple(options.split()), fault=fault)


def _lowered(name: str, kind: type[CudaLowering], *rows: tuple[str, str, str], fault: bool = True) -> CudaSuspect:
    return CudaSuspect(name, (kind.__doc__ or "").splitlines()[0], _places(*rows), kind, fault=fault)


def _rewritten(name: str, rewrite: Callable[[Kernel], Kernel], *rows: tuple[str, str, str]) -> CudaSuspect:
    return CudaSuspect(name, (rewrite.__doc__ or "").splitlines()[0], _places(*rows), rewrite=rewrite)


_F32, _I32 = "arithmetic,f32", "integers,i32"
_EXP2, _FDIV = "exp2[f32->f32;approximate=True", "fdiv[f32,f32->f32;approximate=True"
_FLUSH = ";flush_to_zero=True]"

CUDA_SUSPECTS: dict[str, CudaSuspect] = {
    suspect.name: suspect
    for suspect in (
        _flag(
            "use_fast_math",
            # The first alone would not do: NVRTC lets the backend's own options stand.
            "--use_fast_math --ftz=true --prec-div=false --prec-sqrt=false --fmad=true",
            ("5-b", _F32, "add[f32,f32->f32]"),
            ("5-a", _F32, "div[f32,f32->f32]"),
            ("5.1-l", "known-5.1,f32", "flushing-beside-arithmetic"),
        ),
        _flag(
            "ftz_true",
            "--ftz=true",
            ("5-b", _F32, "add[f32,f32->f32]"),
            ("5-b", "casts,f32", ""),  # cvt.ftz.f64.f32 flushes by PTX's own text, and does not on an H200
            ("5-b", "arithmetic,bf16", "mul[bf16,bf16->bf16]"),
            ("5.1-l", "known-5.1,f32", "flushing-beside-arithmetic"),
        ),
        _flag(
            "prec_div_false",
            "--prec-div=false",
            ("5-a", _F32, "div[f32,f32->f32]"),
            ("5.1-l", "known-5.1,f32", "fdiv-approximate-first"),
        ),
        _flag("prec_sqrt_false", "--prec-sqrt=false", ("5-a", _F32, "sqrt[f32->f32]")),
        _flag(
            "fmad_true",
            "--fmad=true",
            ("5.5-a", "known-5.5,f32", "muladd[f32,f32,f32->f32]"),
            ("5.5-c", "known-5,f32", "product-used-twice"),
            ("5.5-d", "arithmetic,f64", "widened-product-plus"),
            fault=False,
        ),
        _lowered("f8e5m2_saturates", F8E5M2Saturates, ("5.2-g", "casts,f32", "cast[f32->f8e5m2]")),
        _lowered("f8e4m3_saturates", F8E4M3Saturates, ("5.2-f", "casts,f32", "cast[f32->f8e4m3fn]"), fault=False),
        _lowered("f64_to_f16_twice", RoundsTwiceToF16, ("5.2-d", "casts,f64", "cast[f64->f16]")),
        _lowered("f64_to_bf16_twice", RoundsTwiceToBf16, ("5.2-d", "casts,f64", "cast[f64->bf16]")),
        _lowered("i64_to_f32_twice", RoundsTwiceFromI64, ("5.2-b", "casts,i64", "cast[i64->f32]")),
        _lowered("f32_to_f16_truncates", CastTowardZero, ("5.2-d", "casts,f32", "cast[f32->f16]")),
        _lowered("f32_to_i32_rounds", ToIntegerRounds, ("5.2-c", "casts,f32", "cast[f32->i32]")),
        _lowered("i32_to_i8_saturates", IntegerCastSaturates, ("5.2-a", "casts,i32", "cast[i32->i8]")),
        _lowered("fdividef", DivisionIntrinsic, ("5-a", _F32, "div[f32,f32->f32]")),
        _lowered("division_by_reciprocal", DivisionByReciprocal, ("5-a", _F32, "div[f32,f32->f32]")),
        _lowered("root_by_rsqrt", RootByReciprocalRoot, ("5-a", _F32, "sqrt[f32->f32]")),
        _lowered("sum_toward_zero", SumTowardZero, ("5-a", _F32, "add[f32,f32->f32]")),
        _lowered("negation_from_zero", NegationFromZero, ("5.2-m", "", "neg[f32->f32]")),
        _lowered("maximum_drops_nan", MaximumDropsNan, ("5.2-k", _F32, "maximum[f32,f32->f32]")),
        _lowered("maximum_num_keeps_nan", MaximumNumKeepsNan, ("5.2-l", _F32, "maximum_num[f32,f32->f32]")),
        _lowered("tanh_approximate", TanhApproximate, ("5.1-a", "functions", "")),
        _lowered("exp2_flushing", Exp2Flushing, ("5-b", "functions", "")),
        _lowered(
            "exp2_approximate",
            Exp2Approximate,
            ("5.1-a", "functions", "exp2[f32->f32]"),
            ("5.1-j", "approximate", "exp2-in-all-modes"),
            fault=False,
        ),
        _lowered("exp2_flush_lost", Exp2FlushLost, ("5.1-h", "approximate", _EXP2 + _FLUSH)),
        _lowered("exp2_flush_gained", Exp2FlushGained, ("5.1-j", "approximate", ""), ("5.1-e", "", f"{_EXP2}]")),
        _lowered("fdiv_flush_lost", DivisionFlushLost, ("5.1-h", "approximate", _FDIV + _FLUSH)),
        _lowered("fdiv_flush_gained", DivisionFlushGained, ("5.1-j", "approximate", ""), ("5.1-g", "", f"{_FDIV}]")),
        _lowered("fdiv_full_range", DivisionFullRange, ("5.1-g", "approximate", f"{_FDIV}]")),
        _lowered("fdiv_ordinary", DivisionOrdinary, ("5.1-g", "approximate", f"{_FDIV}]")),
        _rewritten(
            "modes_merged",
            modes_merged,
            ("5.1-j", "approximate", "fdiv-in-all-modes"),
            ("5.1-l", "known-5.1,f32", "fdiv-approximate-first"),
        ),
        _rewritten("fused_across_casts", fused_across_casts, ("5.5-d", "known-5.5,f32", "widened-product-plus")),
        _rewritten("sums_regrouped", sums_regrouped, ("5-b", "", "sum-left")),
        _lowered("log1p_beyond_bound", _beyond("log1p", 1), ("5-e", "", "log1p[f32->f32]")),
        _lowered("erfc_beyond_bound", _beyond("erfc", 4), ("5-f", "", "erfc[f32->f32]")),
        _lowered("i0_beyond_bound", _beyond("i0", 6), ("5-g", "", "i0[f32->f32]")),
        _lowered("addition_saturates", AdditionSaturates, ("4-a", _I32, "add[i32,i32->i32]")),
        _lowered("quotient_through_float", QuotientThroughFloat, ("4-b", _I32, "floordiv[i32,i32->i32]")),
        _lowered("shift_saturates", ShiftSaturates, ("4-f", "", "shl[i32,i32->i32]")),
        _lowered("shift_logical", ShiftLogical, ("4-e", "", "shr[i32,i32->i32]")),
        _lowered("shift_amount_unmasked", ShiftAmountUnmasked, ("4-f", _I32, "shl[i32,i32->i32]"), fault=False),
        _lowered("nine_rounds", NineRounds, ("12-a", "random", "random_bits[u64,u64->u32]")),
    )
}
"""All of them, by name."""


class CudaSaboteur(CudaAdapter):
    """The CUDA backend with one suspect built in.

    Args:
        spec: ``NAME``, or ``NAME:compile-only`` to compile and run nothing.

    Raises:
        AdapterError: there is no such suspect, or no GPU to run it on.
    """

    def __init__(self, spec: str) -> None:
        name, _, mode = spec.partition(":")
        atomics = CUDA_LITMUS_SUSPECTS.get(name)
        if atomics is not None:
            self.suspect = CudaSuspect(name, atomics.summary, ())
            self.accesses = atomics.accesses
        elif name in CUDA_SUSPECTS:
            self.suspect = CUDA_SUSPECTS[name]
        else:
            known = ", ".join((*CUDA_SUSPECTS, *CUDA_LITMUS_SUSPECTS))
            raise AdapterError(f"unknown suspect {name!r}; suspects of CUDA: {known}")
        self.lowering = self.suspect.lowering()
        super().__init__(mode, nvrtc_options=self.suspect.options)
        self.name = f"cuda-suspect:{spec}"

    def source(self, kernels: Sequence[Kernel], opt_level: int) -> str:
        rewrite = self.suspect.rewrite
        return super().source([rewrite(kernel) for kernel in kernels] if rewrite else kernels, opt_level)
