"""CUDA compilers that are wrong in exactly one way.

Each is the CUDA backend itself, with another option for NVRTC, one method of its lowering replaced, or a rewrite of the
kernels before it. They are compiled and run as the backend is: ``--backend=cuda-suspect:NAME``, and without a GPU
``--backend=cuda-suspect:NAME:compile-only``, which is enough where the PTX shows the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halfulp.adapters.discovery import AdapterError
from halfulp.backends.cuda.adapter import CudaAdapter
from halfulp.backends.cuda.functions import CudaLowering
from halfulp.certify.saboteurs import cuda_code as wrong
from halfulp.certify.saboteurs.cuda_atomics import CUDA_LITMUS_SUSPECTS
from halfulp.oracle.kernel import Kernel


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
        options: for NVRTC, in place of the backend's of the same names.
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
        _lowered("f8e5m2_saturates", wrong.F8E5M2Saturates, ("5.2-g", "casts,f32", "cast[f32->f8e5m2]")),
        _lowered("f8e4m3_saturates", wrong.F8E4M3Saturates, ("5.2-f", "casts,f32", "cast[f32->f8e4m3fn]"), fault=False),
        _lowered("f64_to_f16_twice", wrong.RoundsTwiceToF16, ("5.2-d", "casts,f64", "cast[f64->f16]")),
        _lowered("f64_to_bf16_twice", wrong.RoundsTwiceToBf16, ("5.2-d", "casts,f64", "cast[f64->bf16]")),
        _lowered("i64_to_f32_twice", wrong.RoundsTwiceFromI64, ("5.2-b", "casts,i64", "cast[i64->f32]")),
        _lowered("f32_to_f16_truncates", wrong.CastTowardZero, ("5.2-d", "casts,f32", "cast[f32->f16]")),
        _lowered("f32_to_i32_rounds", wrong.ToIntegerRounds, ("5.2-c", "casts,f32", "cast[f32->i32]")),
        _lowered("i32_to_i8_saturates", wrong.IntegerCastSaturates, ("5.2-a", "casts,i32", "cast[i32->i8]")),
        _lowered("fdividef", wrong.DivisionIntrinsic, ("5-a", _F32, "div[f32,f32->f32]")),
        _lowered("division_by_reciprocal", wrong.DivisionByReciprocal, ("5-a", _F32, "div[f32,f32->f32]")),
        _lowered("root_by_rsqrt", wrong.RootByReciprocalRoot, ("5-a", _F32, "sqrt[f32->f32]")),
        _lowered("sum_toward_zero", wrong.SumTowardZero, ("5-a", _F32, "add[f32,f32->f32]")),
        _lowered("negation_from_zero", wrong.NegationFromZero, ("5.2-m", "", "neg[f32->f32]")),
        _lowered("maximum_drops_nan", wrong.MaximumDropsNan, ("5.2-k", _F32, "maximum[f32,f32->f32]")),
        _lowered("maximum_num_keeps_nan", wrong.MaximumNumKeepsNan, ("5.2-l", _F32, "maximum_num[f32,f32->f32]")),
        _lowered("tanh_approximate", wrong.TanhApproximate, ("5.1-a", "functions", "")),
        _lowered("exp2_flushing", wrong.Exp2Flushing, ("5-b", "functions", "")),
        _lowered(
            "exp2_approximate",
            wrong.Exp2Approximate,
            ("5.1-a", "functions", "exp2[f32->f32]"),
            ("5.1-j", "approximate", "exp2-in-all-modes"),
            fault=False,
        ),
        _lowered("exp2_flush_lost", wrong.Exp2FlushLost, ("5.1-h", "approximate", _EXP2 + _FLUSH)),
        _lowered("exp2_flush_gained", wrong.Exp2FlushGained, ("5.1-j", "approximate", ""), ("5.1-e", "", f"{_EXP2}]")),
        _lowered("fdiv_flush_lost", wrong.DivisionFlushLost, ("5.1-h", "approximate", _FDIV + _FLUSH)),
        _lowered(
            "fdiv_flush_gained", wrong.DivisionFlushGained, ("5.1-j", "approximate", ""), ("5.1-g", "", f"{_FDIV}]")
        ),
        _lowered("fdiv_full_range", wrong.DivisionFullRange, ("5.1-g", "approximate", f"{_FDIV}]")),
        _lowered("fdiv_ordinary", wrong.DivisionOrdinary, ("5.1-g", "approximate", f"{_FDIV}]")),
        _rewritten(
            "modes_merged",
            wrong.modes_merged,
            ("5.1-j", "approximate", "fdiv-in-all-modes"),
            ("5.1-l", "known-5.1,f32", "fdiv-approximate-first"),
        ),
        _rewritten("fused_across_casts", wrong.fused_across_casts, ("5.5-d", "known-5.5,f32", "widened-product-plus")),
        _rewritten("sums_regrouped", wrong.sums_regrouped, ("5-b", "", "sum-left")),
        _lowered("log1p_beyond_bound", wrong.beyond_bound("log1p", 1), ("5-e", "", "log1p[f32->f32]")),
        _lowered("erfc_beyond_bound", wrong.beyond_bound("erfc", 4), ("5-f", "", "erfc[f32->f32]")),
        _lowered("i0_beyond_bound", wrong.beyond_bound("i0", 6), ("5-g", "", "i0[f32->f32]")),
        _lowered("addition_saturates", wrong.AdditionSaturates, ("4-a", _I32, "add[i32,i32->i32]")),
        _lowered("quotient_through_float", wrong.QuotientThroughFloat, ("4-b", _I32, "floordiv[i32,i32->i32]")),
        _lowered("shift_saturates", wrong.ShiftSaturates, ("4-f", "", "shl[i32,i32->i32]")),
        _lowered("shift_logical", wrong.ShiftLogical, ("4-e", "", "shr[i32,i32->i32]")),
        _lowered("shift_amount_unmasked", wrong.ShiftAmountUnmasked, ("4-f", _I32, "shl[i32,i32->i32]"), fault=False),
        _lowered("nine_rounds", wrong.NineRounds, ("12-a", "random", "random_bits[u64,u64->u32]")),
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

    def __init__(self, spec: str = "") -> None:
        name, _, mode = spec.partition(":")
        atomics = CUDA_LITMUS_SUSPECTS.get(name)
        if atomics is not None:
            self.suspect = CudaSuspect(name, atomics.summary, ())
            self.accesses = atomics.accesses
        elif name in CUDA_SUSPECTS:
            self.suspect = CUDA_SUSPECTS[name]
        else:
            known = ", ".join((*CUDA_SUSPECTS, *CUDA_LITMUS_SUSPECTS))
            said = f"unknown suspect {name!r}" if name else "no suspect is named; write cuda-suspect:NAME"
            raise AdapterError(f"{said}; suspects of CUDA: {known}")
        self.lowering = self.suspect.lowering()
        super().__init__(mode, nvrtc_options=self.suspect.options)
        self.name = f"cuda-suspect:{spec}"

    def source(self, kernels: Sequence[Kernel], opt_level: int) -> str:
        rewrite = self.suspect.rewrite
        return super().source([rewrite(kernel) for kernel in kernels] if rewrite else kernels, opt_level)
