"""Litmus threads as CUDA C++ with inline PTX (``intent:11``).

Every access is one ``asm volatile`` statement that clobbers memory, so that the C++ compiler neither moves, merges nor
drops it. Locations are shared by the whole grid, wherever its threads run, and the language has no scope argument
(``intent:11-g``, ``11-h``): the scope is always that of the device, ``.gpu``.

Values are carried as unsigned integers of their width; signedness is in the instruction, where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halfulp.backends.common.litmus_check import check_program
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cuda.cpp import PRELUDE
from halfulp.oracle.memory.program import Access, Cas, If, Instruction, Load, Operand, Program, Rmw, Store


class Accesses:
    """The accesses to cells of one dtype, as C++ statements.

    ``cell`` is the name of a ``u64`` that holds the address in global memory; ``to`` and ``success`` are names of
    variables. One method for each kind of access, so that a backend with another rule overrides exactly one of them.
    """

    scope = "gpu"

    def __init__(self, dtype: str) -> None:
        self.signed = SCALARS[dtype].signed
        self.width = SCALARS[dtype].width
        self.type = f"u{self.width}"
        self.bits = f"b{self.width}"
        self.letter = "r" if self.width == 32 else "l"

    def constant(self, value: int) -> str:
        """A literal."""
        return f"{value & ((1 << self.width) - 1):#x}{'u' if self.width == 32 else 'ull'}"

    def asm(self, text: str, inputs: Sequence[str], to: str = "") -> str:
        """A statement: ``text`` with ``{to}``, ``{cell}``, ``{a}``, ``{b}``; ``inputs`` are the cell and the values."""
        places = {"to": "%0"} if to else {}
        names = ("cell", "a", "b")[: len(inputs)]
        places |= {name: f"%{number + len(places)}" for number, name in enumerate(names)}
        outputs = f'"={self.letter}"({to})' if to else ""
        operands = ", ".join(
            f'"{"l" if name == "cell" else self.letter}"({value})' for name, value in zip(names, inputs, strict=True)
        )
        return f'asm volatile("{text.format(**places)}" : {outputs} : {operands} : "memory");'

    def plain_load(self, to: str, cell: str) -> str:
        return self.asm(f"ld.weak.global.{self.bits} {{to}}, [{{cell}}];", [cell], to)

    def plain_store(self, cell: str, value: str) -> str:
        return self.asm(f"st.weak.global.{self.bits} [{{cell}}], {{a}};", [cell, value])

    def load(self, to: str, cell: str, order: str) -> str:
        return self.asm(f"ld.{order}.{self.scope}.global.{self.bits} {{to}}, [{{cell}}];", [cell], to)

    def store(self, cell: str, value: str, order: str) -> str:
        return self.asm(f"st.{order}.{self.scope}.global.{self.bits} [{{cell}}], {{a}};", [cell, value])

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        """A read-modify-write; ``to`` receives the value before it."""
        name = self.rmw_name(kind)
        return self.asm(f"atom.{order}.{self.scope}.global.{name} {{to}}, [{{cell}}], {{a}};", [cell, value], to)

    def rmw_name(self, kind: str) -> str:
        """PTX's name of the kind, with its type: wrapping sums are unsigned, max and min have the dtype's sign."""
        match kind:
            case "exchange":
                return f"exch.{self.bits}"
            case "add":
                return f"add.u{self.width}"
            case "max" | "min":
                return f"{kind}.{'s' if self.signed else 'u'}{self.width}"
        return f"{kind}.{self.bits}"

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        """A compare-exchange. PTX has one order for both ways it can go: a failed one acquires if the order does.

        ``expected`` may be the variable ``to`` itself.
        """
        text = f"atom.{order}.{self.scope}.global.cas.{self.bits} {{to}}, [{{cell}}], {{a}}, {{b}};"
        return (
            f"{{ const {self.type} wanted = {expected}; {self.asm(text, [cell, 'wanted', desired], to)} "
            f"{success} = {to} == wanted; }}"
        )


AccessesOf = type[Accesses]
"""How the accesses to locations of a dtype are lowered: ``Accesses`` or a class derived from it."""


@dataclass(frozen=True)
class Observed:
    """What a thread shows in the end: the name in outcomes, the variable, and the dtype (``"bool"`` for a flag)."""

    name: str
    variable: str
    dtype: str

    @property
    def width(self) -> int:
        """Bits of the variable, and of the column that it is written to."""
        return width_of(self.dtype)


def width_of(dtype: str) -> int:
    """Bits of a variable; a success flag takes 32."""
    return max(32, SCALARS[dtype].width)


class ThreadCode:
    """One thread of a program as C++ statements.

    Attributes:
        lines: declarations and statements. They use ``c0``, ``c1``, ...: the addresses of the locations.
        observed: the registers that are observed.
    """

    def __init__(self, program: Program, number: int, accesses: AccessesOf = Accesses) -> None:
        self._number = number
        self._cells = {location.name: f"c{place}" for place, location in enumerate(program.locations)}
        self._accesses = {location.name: accesses(location.dtype) for location in program.locations}
        self._dtype_of = {location.name: location.dtype for location in program.locations}
        self._variables: dict[str, str] = {}
        self._registers: dict[str, Observed] = {}
        body = self._block(program.threads[number], "  ")
        self.lines = [f"  {type_} {variable} = 0;" for variable, type_ in self._variables.items()] + body
        mine = [name.partition(":")[2] for name in program.observe if name.startswith(f"{number}:")]
        self.observed = [self._registers[register] for register in mine]

    def _block(self, block: Sequence[Instruction], indent: str) -> list[str]:
        lines: list[str] = []
        for instruction in block:
            if isinstance(instruction, If):
                register = self._registers[instruction.register]
                wanted = f"{instruction.equals & ((1 << register.width) - 1):#x}ull"
                lines.append(f"{indent}if ({register.variable} == {wanted}) {{")
                lines += self._block(instruction.then, indent + "  ")
                lines.append(f"{indent}}} else {{")
                lines += self._block(instruction.otherwise, indent + "  ")
                lines.append(f"{indent}}}")
            else:
                lines.append(indent + self._access(instruction))
        return lines

    def _access(self, access: Access) -> str:
        lower, cell = self._accesses[access.location], self._cells[access.location]
        dtype = self._dtype_of[access.location]

        def value(operand: Operand) -> str:
            return lower.constant(operand) if isinstance(operand, int) else self._registers[operand].variable

        match access:
            case Load():
                to = self._write(access.register, dtype)
                return lower.plain_load(to, cell) if access.order is None else lower.load(to, cell, access.order)
            case Store():
                given = value(access.value)
                if access.order is None:
                    return lower.plain_store(cell, given)
                return lower.store(cell, given, access.order)
            case Rmw():
                operand = value(access.value)
                return lower.rmw(access.kind, self._write(access.register, dtype), cell, operand, access.order)
            case Cas():
                expected, desired = value(access.expected), value(access.desired)
                to, success = self._write(access.register, dtype), self._write(access.success, "bool")
                return lower.cas(to, success, cell, expected, desired, access.order)

    def _write(self, register: str | None, dtype: str) -> str:
        """The variable of a register that is about to be written."""
        if register is None:
            variable = f"unused{width_of(dtype)}"
        else:
            fresh = Observed(f"{self._number}:{register}", f"r{len(self._registers)}", dtype)
            variable = self._registers.setdefault(register, fresh).variable
        self._variables[variable] = f"u{width_of(dtype)}"
        return variable


def thread_codes(program: Program, accesses: AccessesOf = Accesses) -> list[ThreadCode]:
    """The threads of a program.

    Raises:
        TypeRefusal: an access is ill-typed.
        NotOffered: a location has a dtype on which this backend has no atomics.
    """
    check_program(program)
    return [ThreadCode(program, number, accesses) for number in range(len(program.threads))]


def entries(program: Program, prefix: str = "", accesses: AccessesOf = Accesses) -> str:
    """Kernels ``threadN``, one for each thread, that do what it does in one instance: for a look at the instructions.

    Their first parameters are pointers to the locations, in the program's order; one for each observed register
    follows.
    """
    parts = []
    for number, code in enumerate(thread_codes(program, accesses)):
        cells = [f"u{SCALARS[location.dtype].width}* p{place}" for place, location in enumerate(program.locations)]
        outputs = [f"u{one.width}* to{place}" for place, one in enumerate(code.observed)]
        parts += [
            f'extern "C" __global__ void {prefix}thread{number}({", ".join((*cells, *outputs))}) {{',
            *(f"  const u64 c{place} = __cvta_generic_to_global(p{place});" for place in range(len(cells))),
            *code.lines,
            *(f"  *to{place} = {one.variable};" for place, one in enumerate(code.observed)),
            "}",
        ]
    return PRELUDE + "\n".join(parts) + "\n"
