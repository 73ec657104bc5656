"""Backends that do atomics wrongly in exactly one way.

Most of them are the CPU backend with one method of `Accesses` replaced: they run in threads, and their instructions can
be looked at. The others run no threads: they give the outcomes that a broken memory model allows, for this machine may
never show them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from halfulp.adapters.protocol import Adapter, LitmusOptions, LitmusRun, Rejected, Unsupported
from halfulp.backends.cpu.litmus_adapter import LitmusMethods
from halfulp.backends.cpu.litmus_lower import Accesses
from halfulp.certify.saboteurs import atomics_code as wrong
from halfulp.certify.saboteurs.orders import HALVED
from halfulp.certify.saboteurs.reference import ReferenceAdapter
from halfulp.oracle.memory.model import MODEL, Model
from halfulp.oracle.memory.mutants import MUTANTS
from halfulp.oracle.memory.program import Access, Load, Program, Store, map_accesses
from halfulp.oracle.memory.search import allowed
from halfulp.oracle.memory.typing import check
from halfulp.oracle.ops import Refused


class LitmusSaboteur(LitmusMethods, ReferenceAdapter):
    """Litmus programs and contests as the CPU backend does them, with other accesses; all else as the reference."""

    def __init__(self, name: str, kind: type[Accesses] = Accesses) -> None:
        super().__init__()
        self.name = f"saboteur:{name}"
        self.accesses = kind


class LaxTyping(LitmusSaboteur):
    """Takes ill-typed programs for the well-typed ones that ``mend`` makes of them."""

    def __init__(self, name: str, mend: Callable[[Access], Access]) -> None:
        super().__init__(name)
        self._mend = mend

    def run_litmus(self, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported:
        return super().run_litmus(map_accesses(program, lambda _, access: self._mend(access)), options)


class StrictTyping(LitmusSaboteur):
    """Refuses acquire-release."""

    def run_litmus(self, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported:
        if any(access.order == "acq_rel" for access in program.accesses):
            return Rejected("acq_rel")
        return super().run_litmus(program, options)


class ModelDevice(ReferenceAdapter):
    """Shows each outcome that a memory model allows, and no other, equally often; all else as the reference.

    It is a device for tests: what it runs on cannot hide anything.
    """

    def __init__(self, model: Model = MODEL) -> None:
        super().__init__((0,))
        self.model = model
        self.name = f"model:{model.name}" if model is MODEL else f"saboteur:model_{model.name}"

    def run_litmus(self, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported:
        answer = check(program)
        if isinstance(answer, Refused):
            return Rejected(f"{answer.clause}: {answer.reason}")
        shown = allowed(program, self.model).allowed
        each = -(-options.instances // len(shown))
        return LitmusRun(dict.fromkeys(shown, each), 1e-6 * options.instances)


@dataclass(frozen=True)
class LitmusSuspect:
    """A named wrong way to do atomics.

    Attributes:
        name, summary, clauses: as in `halfulp.oracle.suspects.Suspect`.
        make: the backend with this fault.
        fault: False where the language leaves it open: the suite must not report it.
    """

    name: str
    summary: str
    clauses: tuple[str, ...]
    make: Callable[[], Adapter]
    fault: bool = True


def _lowered(name: str, kind: type[Accesses], clause: str, *, fault: bool = True) -> LitmusSuspect:
    summary = (kind.__doc__ or "").splitlines()[0]
    clauses = (f"intent:{clause}",) if fault else ()
    return LitmusSuspect(name, summary, clauses, lambda: LitmusSaboteur(name, kind), fault)


def _mend_order(access: Access) -> Access:
    if access.order in ("seq_cst", "consume"):
        order = "release" if isinstance(access, Store) else "acquire" if isinstance(access, Load) else "acq_rel"
        return replace(access, order=order)
    return access


def _mend_load(access: Access) -> Access:
    return replace(access, order="acquire") if isinstance(access, Load) and access.order == "acq_rel" else access


def _lax(name: str, summary: str, clause: str, mend: Callable[[Access], Access]) -> LitmusSuspect:
    return LitmusSuspect(name, summary, (f"intent:{clause}",), lambda: LaxTyping(name, mend))


_BROKEN = {
    "failure_order_relaxed": "11-f",
    "cas_success_inverted": "11-c",
    "cas_compares_half": "11-c",
    "cas_always_exchanges": "11-c",
    **dict.fromkeys(("not_atomic", "no_coww", "no_corw", "no_cowr", "no_corr"), "11-b"),
    **dict.fromkeys(("no_program_order_of_a_location", "rmw_returns_new", "wrong_signedness", "add_saturates"), "11-b"),
    **dict.fromkeys(("rmw_stores_operand", "invents_values"), "11-b"),
}
"""The clauses that model mutants break, where it is not that of the orders."""


def _device(model: Model) -> LitmusSuspect:
    clause = _BROKEN.get(model.name, "11-d")
    name = f"model_{model.name}"
    return LitmusSuspect(name, model.summary, (f"intent:{clause}",), lambda: ModelDevice(model))


LITMUS_SUSPECTS: dict[str, LitmusSuspect] = {
    suspect.name: suspect
    for suspect in (
        _lowered("rmw_as_load_and_store", wrong.RmwLoadStore, "11-b"),
        _lowered("rmw_tried_once", wrong.RmwTriedOnce, "11-b"),
        _lowered("cas_as_load_and_store", wrong.CasLoadStore, "11-b"),
        _lowered("rmw_returns_new", wrong.RmwReturnsNew, "11-b"),
        _lowered("cas_returns_new", wrong.CasReturnsNew, "11-c"),
        _lowered("cas_returns_expected", wrong.CasReturnsExpected, "11-c"),
        _lowered("cas_success_inverted", wrong.CasSuccessInverted, "11-c"),
        _lowered("cas_always_succeeds", wrong.CasAlwaysSucceeds, "11-c"),
        _lowered("cas_writes_on_failure", wrong.CasWritesOnFailure, "11-c"),
        _lowered("cas_compares_low_half", wrong.CasComparesLowHalf, "11-c"),
        _lowered("cas_fails_spuriously", wrong.CasSpurious, "11-c", fault=False),
        _lowered("max_min_signedness_swapped", wrong.SignednessSwapped, "11-b"),
        _lowered("max_is_min", wrong.MaxAsMin, "11-b"),
        _lowered("atomic_xor_is_or", wrong.XorAsOr, "11-b"),
        _lowered("exchange_skips_equal", wrong.ExchangeSkipsEqual, "11-b"),
        _lowered("idempotent_update_elided", wrong.IdempotentElided, "11-b"),
        _lowered("atomic_add_saturates", wrong.AddSaturates, "11-b"),
        _lowered("atomic_add_loses_carry", wrong.CarryLost, "11-b"),
        _lowered("store_in_halves", wrong.StoreInHalves, "11-b"),
        _lowered("load_in_halves", wrong.LoadInHalves, "11-b"),
        _lowered("rmw_on_low_half", wrong.RmwLowHalf, "11-b"),
        _lowered("release_store_relaxed", wrong.StoreRelaxed, "11-d"),
        _lowered("acquire_load_relaxed", wrong.LoadRelaxed, "11-d"),
        _lowered("relaxed_load_unordered", wrong.LoadUnordered, "11-d"),
        _lowered("atomic_store_plain", wrong.StorePlain, "11-a"),
        _lowered("atomic_load_plain", wrong.LoadPlain, "11-a"),
        _lowered("cas_failure_relaxed", wrong.CasFailureRelaxed, "11-f"),
        _lowered("cas_failure_only_from_acquire", wrong.CasFailureOnlyAcquire, "11-f"),
        _lowered("scope_too_narrow", wrong.ScopeTooNarrow, "11-h"),
        _lowered("payload_sinks_below_release", wrong.PayloadSinks, "11-d"),
        _lowered("guarded_release_relaxed", wrong.BranchedReleaseRelaxed, "11-d"),
        _lowered("guarded_load_before_acquire", wrong.GuardedLoadHoisted, "11-d"),
        _lowered("guarded_store_always", wrong.GuardedStoreAlways, "11-d"),
        *(_lowered(name, wrong.update_with(*how), "11-d") for name, how in HALVED.items()),
        _lax("accepts_seq_cst", "Sequentially consistent orders are accepted.", "11-e", _mend_order),
        _lax("accepts_acq_rel_load", "A load may be acquire-release.", "11-e", _mend_load),
        _lax("accepts_scope", "A scope is accepted.", "11-g", lambda access: replace(access, scope="")),
        LitmusSuspect(
            "refuses_acq_rel", "Acquire-release is refused.", ("intent:11-e",), lambda: StrictTyping("refuses_acq_rel")
        ),
        *(_device(model) for model in MUTANTS.values()),
    )
}
"""All of them, by name."""
