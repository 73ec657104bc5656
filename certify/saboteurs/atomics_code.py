"""Wrong ways to do atomics on a CPU: lowerings of accesses with one method replaced.

The first line of each docstring says what is wrong, and is the suspect's summary; ``atomics`` has the table.
"""

from __future__ import annotations

from halfulp.backends.cpu.ir import Code, Operand, Reg
from halfulp.backends.cpu.litmus_lower import FAILURES, ORDERS, Accesses
from halfulp.certify.saboteurs.orders import reading, writing

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
        old = self.load(code, cell, reading(order))
        new = combine(code, kind, old, self.value(value), signed=self.dtype.signed)
        self.store(code, cell, new, writing(order))
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
        old = self.load(code, cell, reading(order))
        equal = code.icmp("eq", old, self.value(expected))
        kept = code.select(equal, self.value(new), old)
        self.store(code, cell, kept, writing(order))
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
            return self.load(code, cell, reading(order))
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
        for order in ORDERS.values():
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


def update_with(changes: dict[str, str], summary: str) -> type[Accesses]:
    """Read-modify-writes (and compare-exchanges, where LLVM admits it) with other orders."""

    class Weakened(Accesses):
        def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
            return super().rmw(code, kind, cell, value, changes.get(order, order))

        def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
            failure = ORDERS[FAILURES[order]]  # stays: it has suspects of its own
            return self.exchange_if(code, cell, expected, new, ORDERS[changes.get(order, order)], failure)

    Weakened.__doc__ = summary
    return Weakened
