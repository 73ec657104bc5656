"""Wrong ways to do atomics on a GPU: lowerings of accesses with one method replaced.

The first line of each docstring says what is wrong, and is the suspect's summary; ``cuda_atomics`` has the table.
"""

from __future__ import annotations

from collections.abc import Mapping

from halfulp.backends.cuda.litmus_lower import Accesses, AccessesOf
from halfulp.certify.saboteurs.orders import reading, writing


class _Parts(Accesses):
    """What several suspects are made of."""

    def combined(self, kind: str, old: str, value: str) -> str:
        """What a read-modify-write writes, as an expression."""
        match kind:
            case "exchange":
                return value
            case "max" | "min":
                signed = f"({'long long' if self.width == 64 else 'int'})" if self.signed else ""
                return f"({signed}{old} {'>' if kind == 'max' else '<'} {signed}{value} ? {old} : {value})"
        return f"({old} {({'add': '+', 'and': '&', 'or': '|', 'xor': '^'})[kind]} {value})"

    def local(self, name: str, value: str = "0") -> str:
        return f"{self.type} {name} = {value};"


# What is not one step, or not the right one.


class RmwLoadStore(_Parts):
    """A read-modify-write is a load and a store."""

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        write = self.store(cell, "changed", writing(order))
        given = self.local("given", value)  # the operand may be the register that is written
        changed = self.local("changed", self.combined(kind, to, "given"))
        return f"{{ {given} {self.load(to, cell, reading(order))} {changed} {write} }}"


class RmwTriedOnce(_Parts):
    """A read-modify-write is a compare-exchange that is not tried again."""

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        exchange = self.cas(to, "done", cell, "seen", "changed", order)
        changed = self.local("changed", self.combined(kind, "seen", value))
        return f"{{ {self.local('seen')} u32 done; {self.load('seen', cell, 'relaxed')} {changed} {exchange} }}"


class CasLoadStore(_Parts):
    """A compare-exchange is a load, a comparison and a store."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        look = f"{self.local('asked', expected)} {self.load(to, cell, reading(order))} {success} = {to} == asked;"
        kept = self.local("kept", f"{success} ? {desired} : {to}")
        return f"{{ {look} {kept} {self.store(cell, 'kept', writing(order))} }}"


class RmwReturnsNew(_Parts):
    """A read-modify-write returns the value after it."""

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        update = super().rmw(kind, to, cell, "given", order)
        return f"{{ {self.local('given', value)} {update} {to} = {self.combined(kind, to, 'given')}; }}"


class CasReturnsNew(Accesses):
    """A compare-exchange that takes place returns the value after it."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        return f"{super().cas(to, success, cell, expected, desired, order)} if ({success}) {to} = {desired};"


class CasReturnsExpected(Accesses):
    """A compare-exchange returns the expected value even where it was not there."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        return f"{super().cas(to, success, cell, expected, desired, order)} {to} = {expected};"


class CasSuccessInverted(Accesses):
    """A compare-exchange reports success where it fails, and the reverse."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        return f"{super().cas(to, success, cell, expected, desired, order)} {success} ^= 1;"


class CasWritesOnFailure(Accesses):
    """A compare-exchange writes in any case."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        update = self.rmw("exchange", to, cell, desired, order)
        return f"{{ const {self.type} asked = {expected}; {update} {success} = {to} == asked; }}"


class CasComparesLowHalf(_Parts):
    """A compare-exchange compares the lower half of the bits."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        mask = f"(({self.type})-1 >> {self.width // 2})"
        look = f"{self.local('seen')} {self.load('seen', cell, 'relaxed')}"
        asked = self.local("asked", f"(seen & ~{mask}) | ({expected} & {mask})")
        return f"{{ {look} {asked} {super().cas(to, success, cell, 'asked', desired, order)} }}"


class SignednessSwapped(Accesses):
    """max and min take signed values for unsigned ones, and the reverse."""

    def rmw_name(self, kind: str) -> str:
        if kind in ("max", "min"):
            return f"{kind}.{'u' if self.signed else 's'}{self.width}"
        return super().rmw_name(kind)


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

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        update = super().rmw(kind, to, cell, value if kind != "exchange" else "given", order)
        if kind != "exchange":
            return update
        return f"{{ {self.type} given = {value}; {self.load(to, cell, 'relaxed')} if ({to} != given) {{ {update} }} }}"


class IdempotentElided(Accesses):
    """A read-modify-write that changes no value is a load."""

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        if value in ("0x0u", "0x0ull") and kind in ("add", "or", "xor"):
            return self.load(to, cell, reading(order))
        return super().rmw(kind, to, cell, value, order)


class AddSaturates(_Parts):
    """add stops at the ends of the range: a compare-exchange loop, right but for what it writes."""

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        if kind != "add":
            return super().rmw(kind, to, cell, value, order)
        sign = f"{self.type} sign = ({self.type})1 << {self.width - 1};"
        if self.signed:
            over = "(~(seen ^ given) & (seen ^ sum)) & sign"
            end = "(seen & sign) ? sign : ~sign"
        else:
            over, end = "sum < seen", f"({self.type})-1"
        body = (
            f"{self.load('seen', cell, 'relaxed')} {self.local('sum', 'seen + given')} if ({over}) sum = {end}; "
            f"{self.cas(to, 'done', cell, 'seen', 'sum', order)}"
        )
        return (
            f"{{ {sign} {self.local('given', value)} {self.local('seen')} u32 done; do {{ {body} }} while (!done); }}"
        )


# What is not whole.


class _Halves(_Parts):
    """Accesses to the two halves of a cell."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self.half = f"u{self.width // 2}"
        self.half_bits = f"b{self.width // 2}"
        self.half_letter = "h" if self.width == 32 else "r"

    def half_load(self, to: str, cell: str, order: str) -> str:
        text = f"ld.{order}.{self.scope}.global.{self.half_bits} %0, [%1];"
        return f'asm volatile("{text}" : "={self.half_letter}"({to}) : "l"({cell}) : "memory");'

    def half_store(self, cell: str, value: str, order: str) -> str:
        text = f"st.{order}.{self.scope}.global.{self.half_bits} [%0], %1;"
        return f'asm volatile("{text}" :: "l"({cell}), "{self.half_letter}"(({self.half})({value})) : "memory");'

    @property
    def step(self) -> int:
        return self.width // 16


class StoreInHalves(_Halves):
    """A store writes one half after the other."""

    def store(self, cell: str, value: str, order: str) -> str:
        upper = self.half_store(f"{cell} + {self.step}", f"({value}) >> {self.width // 2}", order)
        return f"{self.half_store(cell, value, order)} {upper}"


class LoadInHalves(_Halves):
    """A load reads one half after the other."""

    def load(self, to: str, cell: str, order: str) -> str:
        parts = f"{self.half_load('low', cell, order)} {self.half_load('high', f'{cell} + {self.step}', order)}"
        return f"{{ {self.half} low, high; {parts} {to} = ({self.type})high << {self.width // 2} | low; }}"


class RmwLowHalf(_Parts):
    """A read-modify-write of a 64-bit cell acts on its lower half."""

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        if self.width == 32:
            return super().rmw(kind, to, cell, value, order)
        small = Accesses("i32" if self.signed else "u32")
        update = small.rmw(kind, "low", cell, f"(u32)({value})", order)
        return f"{{ u32 low; {self.load(to, cell, 'relaxed')} {update} {to} = ({to} >> 32 << 32) | low; }}"


# Orders that are lost.


class StoreRelaxed(Accesses):
    """A release store is relaxed."""

    def store(self, cell: str, value: str, order: str) -> str:
        return super().store(cell, value, "relaxed")


class LoadRelaxed(Accesses):
    """An acquire load is relaxed."""

    def load(self, to: str, cell: str, order: str) -> str:
        return super().load(to, cell, "relaxed")


class StorePlain(Accesses):
    """An atomic store is an ordinary one."""

    def store(self, cell: str, value: str, order: str) -> str:
        return self.plain_store(cell, value)


class LoadPlain(Accesses):
    """An atomic load is an ordinary one."""

    def load(self, to: str, cell: str, order: str) -> str:
        return self.plain_load(to, cell)


class RelaxedLoadPlain(Accesses):
    """A relaxed load is an ordinary one."""

    def load(self, to: str, cell: str, order: str) -> str:
        return self.plain_load(to, cell) if order == "relaxed" else super().load(to, cell, order)


class BlockScope(Accesses):
    """Atomics synchronise with the threads of a block only."""

    scope = "cta"


class ClusterScope(Accesses):
    """Atomics synchronise with the threads of a cluster of blocks only."""

    scope = "cluster"


class CasFailureRelaxed(Accesses):
    """A compare-exchange acquires by a fence, and only if it takes place."""

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        exchange = super().cas(to, success, cell, expected, desired, writing(order))
        if reading(order) == "relaxed":
            return exchange
        return f'{exchange} if ({success}) asm volatile("fence.acq_rel.{self.scope};" ::: "memory");'


class FencesOfBlock(Accesses):
    """Releases and acquires are relaxed, with a fence that orders within a block."""

    fence_scope = "cta"

    @property
    def _fence(self) -> str:
        return f'asm volatile("fence.acq_rel.{self.fence_scope};" ::: "memory");'

    def load(self, to: str, cell: str, order: str) -> str:
        relaxed = super().load(to, cell, "relaxed")
        return f"{relaxed} {self._fence}" if order == "acquire" else relaxed

    def store(self, cell: str, value: str, order: str) -> str:
        relaxed = super().store(cell, value, "relaxed")
        return f"{self._fence} {relaxed}" if order == "release" else relaxed


class FencesOfDevice(FencesOfBlock):
    """Releases and acquires are relaxed, with a fence of the whole device beside them: right, and slower."""

    fence_scope = "gpu"


class RelaxedVolatile(Accesses):
    """Relaxed loads and stores are volatile ones, which PTX defines as relaxed for the whole system: right."""

    def load(self, to: str, cell: str, order: str) -> str:
        if order != "relaxed":
            return super().load(to, cell, order)
        return self.asm(f"ld.volatile.global.{self.bits} {{to}}, [{{cell}}];", [cell], to)

    def store(self, cell: str, value: str, order: str) -> str:
        if order != "relaxed":
            return super().store(cell, value, order)
        return self.asm(f"st.volatile.global.{self.bits} [{{cell}}], {{a}};", [cell, value])


def update_with(changes: Mapping[str, str], summary: str) -> AccessesOf:
    """Read-modify-writes and compare-exchanges with other orders."""

    class Weakened(Accesses):
        def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
            return super().rmw(kind, to, cell, value, changes.get(order, order))

        def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
            return super().cas(to, success, cell, expected, desired, changes.get(order, order))

    Weakened.__doc__ = summary
    return Weakened
