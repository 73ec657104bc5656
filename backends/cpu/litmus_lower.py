"""Atomic accesses as LLVM instructions (``intent:11``).

One method for each kind of access, so that a backend with another rule overrides exactly one of them.
"""

from __future__ import annotations

from halfulp.backends.common.types import Scalar
from halfulp.backends.cpu.ir import Code, Operand, Reg, constant

ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
"""LLVM's names of the orders."""

FAILURES = {"relaxed": "relaxed", "acquire": "acquire", "release": "relaxed", "acq_rel": "acquire"}
"""The order of a compare-exchange that fails, derived from that of one that succeeds (``intent:11-f``)."""

_RMW = {"exchange": "xchg", "add": "add", "and": "and", "or": "or", "xor": "xor"}
_EXTREMA = {"max": ("umax", "max"), "min": ("umin", "min")}


class Accesses:
    """The accesses to cells of one dtype. ``cell`` is always the ``ptr`` of the location."""

    def __init__(self, dtype: Scalar) -> None:
        self.dtype = dtype
        self.align = dtype.bytes

    @property
    def type(self) -> str:
        return self.dtype.register

    def value(self, value: Operand) -> Reg:
        """An operand as a value of the dtype."""
        return constant(self.type, value) if isinstance(value, int) else value

    def plain_load(self, code: Code, cell: Reg) -> Reg:
        return code.emit(self.type, f"load {self.type}, {cell}, align {self.align}")

    def plain_store(self, code: Code, cell: Reg, value: Operand) -> None:
        code.lines.append(f"  store {self.value(value)}, {cell}, align {self.align}")

    def load(self, code: Code, cell: Reg, order: str) -> Reg:
        return code.emit(self.type, f"load atomic {self.type}, {cell} {ORDERS[order]}, align {self.align}")

    def store(self, code: Code, cell: Reg, value: Operand, order: str) -> None:
        code.lines.append(f"  store atomic {self.value(value)}, {cell} {ORDERS[order]}, align {self.align}")

    def rmw(self, code: Code, kind: str, cell: Reg, value: Operand, order: str) -> Reg:
        """A read-modify-write; the value before it. max and min follow the signedness of the dtype."""
        name = self.rmw_name(kind)
        return code.emit(self.type, f"atomicrmw {name} {cell}, {self.value(value)} {ORDERS[order]}, align {self.align}")

    def rmw_name(self, kind: str) -> str:
        """LLVM's name of the kind."""
        return _RMW[kind] if kind in _RMW else _EXTREMA[kind][self.dtype.signed]

    def cas(self, code: Code, cell: Reg, expected: Operand, new: Operand, order: str) -> tuple[Reg, Reg]:
        """A strong compare-exchange; the old value, and an ``i1`` that says whether it was the expected one."""
        return self.exchange_if(code, cell, expected, new, ORDERS[order], ORDERS[FAILURES[order]])

    def exchange_if(
        self, code: Code, cell: Reg, expected: Operand, new: Operand, success: str, failure: str, *, weak: bool = False
    ) -> tuple[Reg, Reg]:
        """``cmpxchg`` with both orders given in LLVM's words."""
        pair = code.emit(
            f"{{ {self.type}, i1 }}",
            f"cmpxchg {'weak ' if weak else ''}{cell}, {self.value(expected)}, {self.value(new)} {success} {failure}, "
            f"align {self.align}",
        )
        return code.emit(self.type, f"extractvalue {pair}, 0"), code.emit("i1", f"extractvalue {pair}, 1")
