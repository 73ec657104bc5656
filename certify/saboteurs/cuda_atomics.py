"""CUDA compilers that do atomics wrongly in exactly one way: the CUDA backend with one method of `Accesses` replaced.

They are compiled and run as the other suspects of CUDA are, see ``cuda``.
"""

from __future__ import annotations

from dataclasses import dataclass

from halfulp.backends.cuda.litmus_lower import AccessesOf
from halfulp.certify.saboteurs import cuda_atomics_code as wrong
from halfulp.certify.saboteurs.orders import HALVED


@dataclass(frozen=True)
class CudaLitmusSuspect:
    """A named wrong way to do atomics on the device.

    Attributes:
        name, summary: as in `halfulp.oracle.suspects.Suspect`.
        clause: what it breaks; ``""`` for a variant that breaks nothing.
        accesses: how it lowers accesses.
        ptx: the PTX shows it. Values do not stand in PTX: only a run shows them.
    """

    name: str
    summary: str
    clause: str
    accesses: AccessesOf
    ptx: bool = True

    @property
    def fault(self) -> bool:
        return bool(self.clause)


def _suspect(name: str, accesses: AccessesOf, clause: str, *, ptx: bool = True) -> CudaLitmusSuspect:
    summary = (accesses.__doc__ or "").splitlines()[0]
    return CudaLitmusSuspect(name, summary, f"intent:{clause}" if clause else "", accesses, ptx)


CUDA_LITMUS_SUSPECTS: dict[str, CudaLitmusSuspect] = {
    suspect.name: suspect
    for suspect in (
        _suspect("release_store_relaxed", wrong.StoreRelaxed, "11-d"),
        _suspect("acquire_load_relaxed", wrong.LoadRelaxed, "11-d"),
        *(_suspect(name, wrong.update_with(*how), "11-d") for name, how in HALVED.items()),
        _suspect("scope_of_block", wrong.BlockScope, "11-h"),
        _suspect("scope_of_cluster", wrong.ClusterScope, "11-h"),
        _suspect("fences_of_block", wrong.FencesOfBlock, "11-d"),
        _suspect("cas_failure_relaxed", wrong.CasFailureRelaxed, "11-f"),
        _suspect("atomic_store_plain", wrong.StorePlain, "11-a"),
        _suspect("atomic_load_plain", wrong.LoadPlain, "11-a"),
        _suspect("relaxed_load_plain", wrong.RelaxedLoadPlain, "11-a"),
        _suspect("rmw_as_load_and_store", wrong.RmwLoadStore, "11-b"),
        _suspect("rmw_tried_once", wrong.RmwTriedOnce, "11-b", ptx=False),
        _suspect("cas_as_load_and_store", wrong.CasLoadStore, "11-b"),
        _suspect("rmw_returns_new", wrong.RmwReturnsNew, "11-b", ptx=False),
        _suspect("max_min_signedness_swapped", wrong.SignednessSwapped, "11-b"),
        _suspect("max_is_min", wrong.MaxAsMin, "11-b"),
        _suspect("xor_is_or", wrong.XorAsOr, "11-b"),
        _suspect("exchange_skips_equal", wrong.ExchangeSkipsEqual, "11-b"),
        _suspect("idempotent_update_elided", wrong.IdempotentElided, "11-b"),
        _suspect("atomic_add_saturates", wrong.AddSaturates, "11-b", ptx=False),
        _suspect("store_in_halves", wrong.StoreInHalves, "11-b"),
        _suspect("load_in_halves", wrong.LoadInHalves, "11-b"),
        _suspect("rmw_on_low_half", wrong.RmwLowHalf, "11-b"),
        _suspect("cas_returns_new", wrong.CasReturnsNew, "11-c", ptx=False),
        _suspect("cas_returns_expected", wrong.CasReturnsExpected, "11-c", ptx=False),
        _suspect("cas_success_inverted", wrong.CasSuccessInverted, "11-c", ptx=False),
        _suspect("cas_writes_on_failure", wrong.CasWritesOnFailure, "11-b"),
        _suspect("cas_compares_low_half", wrong.CasComparesLowHalf, "11-b"),
        _suspect("orders_by_fences", wrong.FencesOfDevice, ""),
        _suspect("relaxed_as_volatile", wrong.RelaxedVolatile, ""),
    )
}
"""All of them, by name. Those without a clause have to pass."""
