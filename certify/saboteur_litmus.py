"""Backends that do atomics wrongly in exactly one way.

Most of them are the CPU backend with one method of `Accesses` replaced: they run in threads, and their instructions can
be looked at. The others run no threads: they give the outcomes that a broken memory model allows, for this machine may
never show them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from halfulp.adapters.protocol import Adapter, LitmusOptions, LitmusRun, Rejected, Unsupported
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cpu.ir import Code, Operand, Reg
from halfulp.backends.cpu.litmus_adapter import LitmusMethods
from halfulp.backends.cpu.litmus_lower import FAILURES, ORDERS, Accesses
from halfulp.certify.saboteur import ReferenceAdapter
from halfulp.oracle.memory.model import MODEL, Model
from halfulp.oracle.memory.mutants import MUTANTS
from halfulp.oracle.memory.program import Access, Load, Program, Store, map_accesses
from halfulp.oracle.memory.search import allowed
from halfulp.oracle.memory.typing import check
from halfulp.oracle.ops import Refused

# What is not one step, or not the right one.


def combine(code: Code, kind: str, old: Reg, value: Reg, *, signed: bool) -> Reg:
    """What a read-modify-write writes."""
    match kind:
        case "exchange":
            return value
        case "max":
            return code.select(code.icmp("sgt" if signed else "ugt", old, value), old, value)
        case "min":
            return code.select(code.icmp("slt" if signed else "ult", old, value), old, value)
    return code.emit(old.type, f"{kind} {old}, {value.name}")


class RmwLoadStore(Accesses):
    """A read-modify-write is a load and a store."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        old = self.load(code, cell, "acquire" if order in ("acquire", "acq_rel") else "relaxed")
        new = combine(code, kind, old, self.value(value), signed=self.dtype.signed)
        self.store(code, cell, new, "release" if order in ("release", "acq_rel") else "relaxed")
        return old


class RmwTriedOnce(Accesses):
    """A read-modify-write is a compare-exchange that is not tried again."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        seen = self.load(code, cell, "relaxed")
        new = combine(code, kind, seen, self.value(value), signed=self.dtype.signed)
        return self.cas(code, cell, seen, new, order)[0]


class CasLoadStore(Accesses):
    """A compare-exchange is a load, a comparison and a store."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        old = self.load(code, cell, "acquire" if order in ("acquire", "acq_rel") else "relaxed")
        equal = code.icmp("eq", old, self.value(expected))
        kept = code.select(equal, self.value(new), old)
        self.store(code, cell, kept, "release" if order in ("release", "acq_rel") else "relaxed")
        return old, equal


class RmwReturnsNew(Accesses):
    """A read-modify-write returns the value after it."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        old = super().rmw(code, kind, cell, value, order)
        return combine(code, kind, old, self.value(value), signed=self.dtype.signed)


class CasReturnsNew(Accesses):
    """A compare-exchange that takes place returns the value after it."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        old, success = super().cas(code, cell, expected, new, order)
        return code.select(success, self.value(new), old), success


class CasReturnsExpected(Accesses):
    """A compare-exchange returns the expected value even where it was not there."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        return self.value(expected), super().cas(code, cell, expected, new, order)[1]


class CasSuccessInverted(Accesses):
    """A compare-exchange reports success where it fails, and the reverse."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        old, success = super().cas(code, cell, expected, new, order)
        return old, code.xor(success, 1)


class CasAlwaysSucceeds(Accesses):
    """A compare-exchange always reports success."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        old, success = super().cas(code, cell, expected, new, order)
        return old, code.or_(success, 1)


class CasWritesOnFailure(Accesses):
    """A compare-exchange writes in any case."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        old = self.rmw(code, "exchange", cell, new, order)
        return old, code.icmp("eq", old, self.value(expected))


class CasComparesLowHalf(Accesses):
    """A compare-exchange compares the lower half of the bits."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        mask = (1 << self.dtype.width // 2) - 1
        upper = code.and_(self.load(code, cell, "relaxed"), ~mask)
        return super().cas(code, cell, code.or_(upper, code.and_(self.value(expected), mask)), new, order)


class CasSpurious(Accesses):
    """A compare-exchange to an odd value fails, whatever is there: allowed of a weak one, and so unspecified."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        odd = code.convert("trunc", self.value(new), "i1")
        # It exchanges a value that nobody uses for itself, which changes nothing.
        unused = 0x5A5A5A5A
        asked, desired = (code.select(odd, unused, self.value(operand)) for operand in (expected, new))
        orders = ORDERS[order], ORDERS[FAILURES[order]]
        old, success = self.exchange_if(code, cell, asked, desired, *orders, weak=True)
        return old, code.and_(success, code.xor(odd, 1))


class SignednessSwapped(Accesses):
    """max and min take signed values for unsigned ones, and the reverse."""

    def rmw_name(self, kind: str) -> str:
        names = {"max": "umax", "min": "umin"} if self.dtype.signed else {"max": "max", "min": "min"}
        return names.get(kind) or super().rmw_name(kind)


class MaxAsMin(Accesses):
    """max is min."""

    def rmw_name(self, kind: str) -> str:
        return super().rmw_name("min" if kind == "max" else kind)


class XorAsOr(Accesses):
    """xor is or."""

    def rmw_name(self, kind: str) -> str:
        return super().rmw_name("or" if kind == "xor" else kind)


class ExchangeSkipsEqual(Accesses):
    """An exchange writes nothing where the location holds the value already: it publishes nothing either."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        if kind != "exchange":
            return super().rmw(code, kind, cell, value, order)
        seen = self.load(code, cell, "relaxed")
        differs = code.icmp("ne", seen, self.value(value))
        mark = code.count
        code.lines += [f"  br {differs}, label %do{mark}, label %skip{mark}", f"do{mark}:"]
        old = super().rmw(code, kind, cell, value, order)
        code.lines += [f"  br label %met{mark}", f"skip{mark}:", f"  br label %met{mark}", f"met{mark}:"]
        return code.emit(old.type, f"phi {old.type} [ {old.name}, %do{mark} ], [ {seen.name}, %skip{mark} ]")


class IdempotentElided(Accesses):
    """A read-modify-write that changes no value is a load."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        if value == 0 and kind in ("add", "or", "xor"):
            return self.load(code, cell, "acquire" if order in ("acquire", "acq_rel") else "relaxed")
        return super().rmw(code, kind, cell, value, order)


class _Loop(Accesses):
    """A read-modify-write in a compare-exchange loop, right but for what it writes."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        if kind != "add":
            return super().rmw(code, kind, cell, value, order)
        operand = self.value(value)
        mark = code.count
        code.lines += [f"  br label %try{mark}", f"try{mark}:"]
        seen = self.load(code, cell, "relaxed")
        old, success = self.cas(code, cell, seen, self.sum(code, seen, operand), order)
        code.lines += [f"  br {success}, label %met{mark}, label %try{mark}", f"met{mark}:"]
        return old

    def sum(self, code: Code, a: Reg, b: Reg) -> Reg:
        raise NotImplementedError


class AddSaturates(_Loop):
    """add stops at the ends of the range."""

    def sum(self, code: Code, a: Reg, b: Reg) -> Reg:
        total = code.add(a, b)
        if not self.dtype.signed:
            return code.select(code.icmp("ult", total, a), -1, total)
        same = code.icmp("slt", code.and_(code.xor(total, a), code.xor(total, b)), 0)
        end = code.select(code.icmp("slt", a, 0), self.dtype.min_int, self.dtype.max_int, self.type)
        return code.select(same, end, total)


class CarryLost(_Loop):
    """add works on the two halves apart."""

    def sum(self, code: Code, a: Reg, b: Reg) -> Reg:
        half = self.dtype.width // 2
        low = code.and_(code.add(a, b), (1 << half) - 1)
        high = code.shl(code.add(code.lshr(a, half), code.lshr(b, half)), half)
        return code.or_(high, low)


class _Halves(Accesses):
    """Accesses to the two halves of a cell."""

    @property
    def half(self) -> str:
        return f"i{self.dtype.width // 2}"

    def halves(self, code: Code, cell: Reg) -> list[Reg]:
        return [code.emit("ptr", f"getelementptr {self.half}, {cell}, i64 {place}") for place in (0, 1)]


class StoreInHalves(_Halves):
    """A store writes one half after the other."""

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        whole = self.value(value)
        upper = code.lshr(whole, self.dtype.width // 2)
        for part, place in zip((whole, upper), self.halves(code, cell), strict=True):
            small = code.convert("trunc", part, self.half)
            code.lines.append(f"  store atomic {small}, {place} {ORDERS[order]}, align {self.align // 2}")


class LoadInHalves(_Halves):
    """A load reads one half after the other."""

    def load(self, code: Code, cell: Reg, order: str) -> Reg:
        parts = [
            code.emit(self.half, f"load atomic {self.half}, {place} {ORDERS[order]}, align {self.align // 2}")
            for place in self.halves(code, cell)
        ]
        low, high = (code.convert("zext", part, self.type) for part in parts)
        return code.or_(low, code.shl(high, self.dtype.width // 2))


class RmwLowHalf(_Halves):
    """A read-modify-write acts on the lower half of the cell."""

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        small = code.convert("trunc", self.value(value), self.half)
        upper = code.and_(self.load(code, cell, "relaxed"), -(1 << self.dtype.width // 2))
        text = f"atomicrmw {self.rmw_name(kind)} {cell}, {small} {ORDERS[order]}, align {self.align // 2}"
        return code.or_(upper, code.convert("zext", code.emit(self.half, text), self.type))


# Orders that are lost.


class StoreRelaxed(Accesses):
    """A release store is relaxed."""

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        super().store(code, cell, value, "relaxed")


class LoadRelaxed(Accesses):
    """An acquire load is relaxed."""

    def load(self, code: Code, cell: Reg, order: str) -> Reg:
        return super().load(code, cell, "relaxed")


class LoadUnordered(Accesses):
    """A relaxed load is LLVM's ``unordered``, which has no coherence."""

    def load(self, code: Code, cell: Reg, order: str) -> Reg:
        found = super().load(code, cell, order)
        code.lines[-1] = code.lines[-1].replace(" monotonic,", " unordered,")
        return found


class StorePlain(Accesses):
    """An atomic store is an ordinary one."""

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        self.plain_store(code, cell, value)


class LoadPlain(Accesses):
    """An atomic load is an ordinary one."""

    def load(self, code: Code, cell: Reg, order: str) -> Reg:
        return self.plain_load(code, cell)


class CasFailureRelaxed(Accesses):
    """A compare-exchange that fails is relaxed."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        return self.exchange_if(code, cell, expected, new, ORDERS[order], "monotonic")


class CasFailureOnlyAcquire(Accesses):
    """The failure order follows from acquire, but not from acquire-release."""

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        failure = "monotonic" if order == "acq_rel" else ORDERS[FAILURES[order]]
        return self.exchange_if(code, cell, expected, new, ORDERS[order], failure)


class ScopeTooNarrow(Accesses):
    """Atomics synchronise with the same thread only."""

    def emit_scope(self, code: Code) -> None:
        for order in (*ORDERS.values(),):
            code.lines[-1] = code.lines[-1].replace(f" {order},", f' syncscope("singlethread") {order},')

    def load(self, code: Code, cell: Reg, order: str) -> Reg:
        found = super().load(code, cell, order)
        self.emit_scope(code)
        return found

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        super().store(code, cell, value, order)
        self.emit_scope(code)


class PayloadSinks(Accesses):
    """An ordinary store may sink below a release."""

    held: tuple[Code, str] | None = None  # of the class: an object lives for one access only

    def plain_store(self, code: Code, cell: Reg, value: Operand) -> None:
        super().plain_store(code, cell, value)
        PayloadSinks.held = (code, code.lines.pop())

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        super().store(code, cell, value, order)
        if PayloadSinks.held and PayloadSinks.held[0] is code:
            code.lines.append(PayloadSinks.held[1])
        PayloadSinks.held = None


class BranchedReleaseRelaxed(Accesses):
    """A release store behind a branch is relaxed."""

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        branched = any(line.endswith(":") for line in code.lines)
        super().store(code, cell, value, "relaxed" if branched else order)


def hoist(code: Code, *, above: str) -> None:
    """Move the last line of a function to before the last one that has ``above`` in it, if there is one."""
    places = [at for at, line in enumerate(code.lines[:-1]) if above in line]
    if places:
        code.lines.insert(places[-1], code.lines.pop())


class GuardedLoadHoisted(Accesses):
    """An ordinary load is done before the acquire that it stands behind."""

    def plain_load(self, code: Code, cell: Reg) -> Reg:
        found = super().plain_load(code, cell)
        hoist(code, above="acquire")
        return found


class GuardedStoreAlways(Accesses):
    """An ordinary store behind a branch takes place in any case."""

    def plain_store(self, code: Code, cell: Reg, value: Operand) -> None:
        super().plain_store(code, cell, value)
        hoist(code, above="br i1")


def _update_with(changes: dict[str, str], summary: str) -> type[Accesses]:
    """Read-modify-writes (and compare-exchanges, where LLVM admits it) with other orders."""

    class Weakened(Accesses):
        def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
            return super().rmw(code, kind, cell, value, changes.get(order, order))

        def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
            failure = ORDERS[FAILURES[order]]  # stays: it has suspects of its own
            return self.exchange_if(code, cell, expected, new, ORDERS[changes.get(order, order)], failure)

    Weakened.__doc__ = summary
    return Weakened


# Backends.


class LitmusSaboteur(LitmusMethods, ReferenceAdapter):
    """Litmus programs and contests as the CPU backend does them, with other accesses; all else as the reference."""

    def __init__(self, name: str, kind: type[Accesses] = Accesses) -> None:
        super().__init__()
        self.name = f"saboteur:{name}"
        self.accesses = lambda dtype: kind(SCALARS[dtype])


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


_HALVED = {
    "acq_rel_loses_release": ({"acq_rel": "acquire"}, "An acquire-release update only acquires."),
    "acq_rel_loses_acquire": ({"acq_rel": "release"}, "An acquire-release update only releases."),
    "update_acquire_relaxed": ({"acquire": "relaxed"}, "An acquire update is relaxed."),
    "update_release_relaxed": ({"release": "relaxed"}, "A release update is relaxed."),
}

LITMUS_SUSPECTS: dict[str, LitmusSuspect] = {
    suspect.name: suspect
    for suspect in (
        _lowered("rmw_as_load_and_store", RmwLoadStore, "11-b"),
        _lowered("rmw_tried_once", RmwTriedOnce, "11-b"),
        _lowered("cas_as_load_and_store", CasLoadStore, "11-b"),
        _lowered("rmw_returns_new", RmwReturnsNew, "11-b"),
        _lowered("cas_returns_new", CasReturnsNew, "11-c"),
        _lowered("cas_returns_expected", CasReturnsExpected, "11-c"),
        _lowered("cas_success_inverted", CasSuccessInverted, "11-c"),
        _lowered("cas_always_succeeds", CasAlwaysSucceeds, "11-c"),
        _lowered("cas_writes_on_failure", CasWritesOnFailure, "11-c"),
        _lowered("cas_compares_low_half", CasComparesLowHalf, "11-c"),
        _lowered("cas_fails_spuriously", CasSpurious, "11-c", fault=False),
        _lowered("max_min_signedness_swapped", SignednessSwapped, "11-b"),
        _lowered("max_is_min", MaxAsMin, "11-b"),
        _lowered("atomic_xor_is_or", XorAsOr, "11-b"),
        _lowered("exchange_skips_equal", ExchangeSkipsEqual, "11-b"),
        _lowered("idempotent_update_elided", IdempotentElided, "11-b"),
        _lowered("atomic_add_saturates", AddSaturates, "11-b"),
        _lowered("atomic_add_loses_carry", CarryLost, "11-b"),
        _lowered("store_in_halves", StoreInHalves, "11-b"),
        _lowered("load_in_halves", LoadInHalves, "11-b"),
        _lowered("rmw_on_low_half", RmwLowHalf, "11-b"),
        _lowered("release_store_relaxed", StoreRelaxed, "11-d"),
        _lowered("acquire_load_relaxed", LoadRelaxed, "11-d"),
        _lowered("relaxed_load_unordered", LoadUnordered, "11-d"),
        _lowered("atomic_store_plain", StorePlain, "11-a"),
        _lowered("atomic_load_plain", LoadPlain, "11-a"),
        _lowered("cas_failure_relaxed", CasFailureRelaxed, "11-f"),
        _lowered("cas_failure_only_from_acquire", CasFailureOnlyAcquire, "11-f"),
        _lowered("scope_too_narrow", ScopeTooNarrow, "11-h"),
        _lowered("payload_sinks_below_release", PayloadSinks, "11-d"),
        _lowered("guarded_release_relaxed", BranchedReleaseRelaxed, "11-d"),
        _lowered("guarded_load_before_acquire", GuardedLoadHoisted, "11-d"),
        _lowered("guarded_store_always", GuardedStoreAlways, "11-d"),
        *(_lowered(name, _update_with(*how), "11-d") for name, how in _HALVED.items()),
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
