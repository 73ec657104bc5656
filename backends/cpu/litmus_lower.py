"""Litmus threads as LLVM IR: atomic accesses as instructions (``intent:11``), and what stands between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from halfulp.backends.common.litmus_check import check_program
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cpu.ir import Code, Operand, Reg, constant
from halfulp.oracle.memory.program import Cas, If, Instruction, Load, Program, Rmw, Store

ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
"""LLVM's names of the orders."""

FAILURES = {"relaxed": "relaxed", "acquire": "acquire", "release": "relaxed", "acq_rel": "acquire"}
"""The order of a compare-exchange that fails, derived from that of one that succeeds (``intent:11-f``)."""

_RMW = {"exchange": "xchg", "add": "add", "and": "and", "or": "or", "xor": "xor"}
_EXTREMA = {"max": ("umax", "max"), "min": ("umin", "min")}


class Accesses:
    """The accesses to cells of one dtype. ``cell`` is always the ``ptr`` of the location.

    One method for each kind of access, so that a backend with another rule overrides exactly one of them.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = SCALARS[dtype]
        self.align = self.dtype.bytes

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


AccessesOf = Callable[[str], Accesses]
"""How the accesses to locations of a dtype are lowered."""


@dataclass(frozen=True)
class Registers:
    """The registers of one thread that are observed: names as in outcomes, and dtypes."""

    names: tuple[str, ...]
    dtypes: tuple[str, ...]


class ThreadCode:
    """One thread of a program, as a function of one instance."""

    def __init__(self, program: Program, number: int, accesses: AccessesOf) -> None:
        self._program = program
        self._accesses = accesses
        self._cells = {
            location.name: Reg("ptr", f"%cell{place}.{_plain(location.name)}")
            for place, location in enumerate(program.locations)
        }
        self._code = Code()
        self._labels = 0
        self._dtypes: dict[str, str] = {}
        values = self._run(program.threads[number], {})
        observed = [name for name in program.observe if name.startswith(f"{number}:")]
        self.registers = Registers(tuple(observed), tuple(self._dtypes[name.partition(":")[2]] for name in observed))
        outputs = [Reg("ptr", f"%to{place}") for place in range(len(observed))]
        for name, dtype, output in zip(observed, self.registers.dtypes, outputs, strict=True):
            value = values.get(name.partition(":")[2], self._zero(dtype))
            if dtype == "bool":
                value = self._code.convert("zext", value, "i8")
            self._code.lines.append(f"  store {value}, {output}")
        parameters = ", ".join(map(str, (*self._cells.values(), *outputs)))
        body = "\n".join(self._code.lines)
        self.text = f"define void @thread{number}({parameters}) alwaysinline {{\nentry:\n{body}\n  ret void\n}}\n"

    def _run(self, block: Sequence[Instruction], values: dict[str, Reg]) -> dict[str, Reg]:
        """Append a block; the registers after it."""
        for instruction in block:
            match instruction:
                case Load():
                    accesses, cell = self._at(instruction.location)
                    if instruction.order is None:
                        value = accesses.plain_load(self._code, cell)
                    else:
                        value = accesses.load(self._code, cell, instruction.order)
                    self._write(values, instruction.register, value, accesses.dtype.name)
                case Store():
                    accesses, cell = self._at(instruction.location)
                    if instruction.order is None:
                        accesses.plain_store(self._code, cell, _operand(instruction.value, values))
                    else:
                        accesses.store(self._code, cell, _operand(instruction.value, values), instruction.order)
                case Rmw():
                    accesses, cell = self._at(instruction.location)
                    operand = _operand(instruction.value, values)
                    value = accesses.rmw(self._code, instruction.kind, cell, operand, instruction.order)
                    self._write(values, instruction.register, value, accesses.dtype.name)
                case Cas():
                    accesses, cell = self._at(instruction.location)
                    expected, desired = (_operand(v, values) for v in (instruction.expected, instruction.desired))
                    value, success = accesses.cas(self._code, cell, expected, desired, instruction.order)
                    self._write(values, instruction.register, value, accesses.dtype.name)
                    self._write(values, instruction.success, success, "bool")
                case If():
                    values = self._branch(instruction, values)
        return values

    def _at(self, location: str) -> tuple[Accesses, Reg]:
        return self._accesses(self._program.location(location).dtype), self._cells[location]

    def _write(self, values: dict[str, Reg], register: str | None, value: Reg, dtype: str) -> None:
        if register:
            values[register] = value
            self._dtypes[register] = dtype

    def _branch(self, instruction: If, values: dict[str, Reg]) -> dict[str, Reg]:
        code = self._code
        self._labels += 1
        then, otherwise, after = (f"{name}{self._labels}" for name in ("then", "else", "after"))
        equal = code.icmp("eq", values[instruction.register], instruction.equals)
        code.lines.append(f"  br {equal}, label %{then}, label %{otherwise}")
        ends: list[tuple[str, dict[str, Reg]]] = []
        for label, block in ((then, instruction.then), (otherwise, instruction.otherwise)):
            self._start(label)
            left = self._run(block, dict(values))
            ends.append((self._current_block(), left))
            code.lines.append(f"  br label %{after}")
        self._start(after)
        joined: dict[str, Reg] = {}
        for name in dict.fromkeys((*ends[0][1], *ends[1][1])):
            zero = self._zero(self._dtypes[name])
            (first_label, first), (second_label, second) = ((label, left.get(name, zero)) for label, left in ends)
            if first == second:
                joined[name] = first
            else:
                arms = f"[ {first.name}, %{first_label} ], [ {second.name}, %{second_label} ]"
                joined[name] = code.emit(first.type, f"phi {first.type} {arms}")
        return joined

    def _start(self, label: str) -> None:
        self._code.lines.append(f"{label}:")

    def _current_block(self) -> str:
        """The label of the block that is being written."""
        return next((line[:-1] for line in reversed(self._code.lines) if line.endswith(":")), "entry")

    def _zero(self, dtype: str) -> Reg:
        return constant(SCALARS[dtype].register, 0)


def _operand(operand: int | str, values: Mapping[str, Reg]) -> Operand:
    return values[operand] if isinstance(operand, str) else operand


def _plain(name: str) -> str:
    """A location's name with only what LLVM admits in a name."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def thread_codes(program: Program, accesses: AccessesOf = Accesses) -> list[ThreadCode]:
    """The threads as functions.

    Raises:
        TypeRefusal: an access is ill-typed.
        NotOffered: a location has a dtype on which this backend has no atomics.
    """
    check_program(program)
    return [ThreadCode(program, number, accesses) for number in range(len(program.threads))]
