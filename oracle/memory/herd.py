"""The litmus format of herd7 and litmus7 (C dialect), so that others can check our verdicts with their tools.

What the format lacks is written as C has it. A compare-exchange takes a pointer to the expected value: a location
``expected_T_N`` of its own holds it, is written before and read afterwards for the old value. ``max`` and ``min`` have
the names of C++26, which herd7 does not know. Only what this module writes, and the same in other spacing and with
other names, can be read: loads, stores, read-modify-writes, compare-exchanges, and ``if`` on a register; no fences,
loops or arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from halfulp.oracle.memory.program import (
    Cas,
    If,
    Instruction,
    Load,
    Location,
    Operand,
    Program,
    Rmw,
    Store,
    accesses_of,
    written_registers,
)

TYPES = {"i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t"}
"""Our dtypes as types of C."""

_DTYPES = {name: dtype for dtype, name in TYPES.items()} | {"int": "i32", "atomic_int": "i32"}

_FETCH = {kind: f"atomic_fetch_{kind}_explicit" for kind in ("add", "max", "min", "and", "or", "xor")}
_KINDS = {name: kind for kind, name in _FETCH.items()} | {"atomic_exchange_explicit": "exchange"}
_CAS = "atomic_compare_exchange_strong_explicit"
_EXPECTED = re.compile(r"expected_\d+_\d+")


# Writing.


def to_herd(program: Program) -> str:
    """The program in the C dialect.

    Raises:
        ValueError: the format cannot say it: an access has a scope, or an order that C does not have.
    """
    writer = _Writer(program)
    bodies = [writer.thread(number) for number in range(len(program.threads))]
    initial = " ".join(f"[{location.name}] = {location.initial};" for location in program.locations)
    weak = " /\\ ".join(f"{name}={value}" for name, value in program.weak) or "true"
    observe = " ".join(f"{name};" for name in program.observe)
    text = [f"C {program.name}", f"{{ {initial} }}", *bodies, f"locations [{observe}]", f"exists ({weak})"]
    return "\n\n".join(text) + "\n"


@dataclass
class _Writer:
    program: Program
    number: int = 0
    expected: dict[str, str] = field(default_factory=dict)

    def thread(self, number: int) -> str:
        thread = self.program.threads[number]
        self.number, self.expected = number, {}
        dtypes: dict[str, str] = {}
        for access in accesses_of(thread):
            dtype = TYPES[self.program.location(access.location).dtype]
            for register in written_registers(access):
                is_success = isinstance(access, Cas) and register == access.success
                dtypes[register] = "int" if is_success else dtype
        body = [f"  {line}" for line in self.block(thread)]
        declared = [f"  {dtype} {register} = 0;" for register, dtype in dtypes.items()]
        used = dict.fromkeys(access.location for access in accesses_of(thread))
        parameters = [f"_Atomic {TYPES[self.program.location(name).dtype]}* {name}" for name in used]
        parameters += [f"{dtype}* {name}" for name, dtype in self.expected.items()]
        return "\n".join([f"P{number} ({', '.join(parameters)}) {{", *declared, *body, "}"])

    def block(self, block: tuple[Instruction, ...]) -> Iterator[str]:
        for instruction in block:
            if isinstance(instruction, If):
                yield f"if ({instruction.register} == {instruction.equals}) {{"
                yield from (f"  {line}" for line in self.block(instruction.then))
                if instruction.otherwise:
                    yield "} else {"
                    yield from (f"  {line}" for line in self.block(instruction.otherwise))
                yield "}"
            else:
                yield from self.access(instruction)

    def access(self, access: Load | Store | Rmw | Cas) -> Iterator[str]:
        if access.scope:
            raise ValueError(f"{self.program.name}: the litmus format has no scopes")
        order, place = f"memory_order_{access.order}", access.location
        match access:
            case Load(order=None):
                yield f"{access.register} = *{place};"
            case Load():
                yield f"{access.register} = atomic_load_explicit({place}, {order});"
            case Store(order=None):
                yield f"*{place} = {access.value};"
            case Store():
                yield f"atomic_store_explicit({place}, {access.value}, {order});"
            case Rmw():
                name = _FETCH.get(access.kind, "atomic_exchange_explicit")
                left = f"{access.register} = " if access.register else ""
                yield f"{left}{name}({place}, {access.value}, {order});"
            case Cas():
                if access.order == "seq_cst":
                    raise ValueError(f"{self.program.name}: no failure order follows from seq_cst")
                holder = f"expected_{self.number}_{len(self.expected)}"
                self.expected[holder] = TYPES[self.program.location(place).dtype]
                failure = f"memory_order_{access.failure_order}"
                left = f"{access.success} = " if access.success else ""
                yield f"*{holder} = {access.expected};"
                yield f"{left}{_CAS}({place}, {holder}, {access.desired}, {order}, {failure});"
                if access.register:
                    yield f"{access.register} = *{holder};"


# Reading.


def from_herd(text: str) -> Program:
    """The inverse of ``to_herd``.

    Raises:
        ValueError: the text is no litmus test in the C dialect, or uses what this module does not know. The message
            says what.
    """
    return _Reader(text).program()


_TOKEN = re.compile(r"\s*(\d+:\w+|-?\d+|[A-Za-z_]\w*|/\\|==|[\[\](){};,=*.~&|!<>+/-])")


class _Reader:
    def __init__(self, text: str) -> None:
        text = re.sub(r"\(\*.*?\*\)|/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
        head = re.match(r"\s*C[ \t]+(\S+)[^\n]*\n(?:\s*\"[^\"]*\")?", text)
        if head is None:
            raise ValueError("a litmus test in C starts with a line `C NAME`")
        self.name = head.group(1)
        self.tokens: list[str] = []
        at = head.end()
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"cannot read {text[at:].split()[0]!r}")
            self.tokens.append(found.group(1))
            at = found.end()
        self.initial: dict[str, int] = {}
        self.dtypes: dict[str, str] = {}
        self.registers: set[str] = set()
        self.holders: set[str] = set()
        self.held: dict[str, Operand] = {}

    # Tokens.

    @property
    def next(self) -> str:
        return self.tokens[0] if self.tokens else "the end"

    def take(self, *expected: str) -> str:
        if (expected and self.next not in expected) or not self.tokens:
            raise ValueError(f"{self.name}: expected {' or '.join(expected) or 'more'}, found {self.next!r}")
        return self.tokens.pop(0)

    def skip(self, token: str) -> bool:
        if self.next == token:
            self.tokens.pop(0)
            return True
        return False

    # Parts.

    def program(self) -> Program:
        self.initial_state()
        threads: list[tuple[Instruction, ...]] = []
        while re.fullmatch(r"P\d+", self.next):
            if self.take() != f"P{len(threads)}":
                raise ValueError(f"{self.name}: the threads are to be P0, P1, ... in this order")
            threads.append(self.thread())
        observe = []
        if self.skip("locations"):
            self.take("[")
            while not self.skip("]"):
                observe.append(self.take())
                self.skip(";")
        weak = self.condition()
        locations = tuple(
            Location(name, dtype, self.initial.get(name, 0))
            for name, dtype in self.dtypes.items()
            if name not in self.holders
        )
        return Program(self.name, self.in_order(locations), tuple(threads), weak, tuple(observe))

    def in_order(self, locations: tuple[Location, ...]) -> tuple[Location, ...]:
        """Those of the initial state first, in its order."""
        order = list(self.initial)
        return tuple(sorted(locations, key=lambda loc: order.index(loc.name) if loc.name in order else len(order)))

    def initial_state(self) -> None:
        self.take("{")
        while not self.skip("}"):
            words = []
            while self.next not in ("=", ";", "}"):
                words.append(self.take())
            names = [word for word in words if word not in ("[", "]", "*") and word not in _DTYPES]
            if len(names) != 1:
                raise ValueError(f"{self.name}: cannot read {' '.join(words)!r} in the initial state")
            self.initial[names[0]] = int(self.take()) if self.skip("=") else 0
            self.skip(";")

    def thread(self) -> tuple[Instruction, ...]:
        self.take("(")
        self.registers = set()
        while not self.skip(")"):
            words = []
            while self.next not in (",", ")"):
                words.append(self.take())
            self.skip(",")
            *kind, name = words
            types = [word for word in kind if word in _DTYPES]
            if len(types) != 1 or "*" not in kind:
                raise ValueError(f"{self.name}: a parameter is a pointer to an integer, not {' '.join(words)}")
            if self.dtypes.setdefault(name, _DTYPES[types[0]]) != _DTYPES[types[0]]:
                raise ValueError(f"{self.name}: {name} has two types")
            if _EXPECTED.fullmatch(name):
                self.holders.add(name)
        return self.block()

    def block(self) -> tuple[Instruction, ...]:
        self.take("{")
        found: list[Instruction] = []
        while not self.skip("}"):
            if self.skip("if"):
                found.append(self.branch())
            else:
                self.statement(found)
        return tuple(found)

    def branch(self) -> If:
        self.take("(")
        register = self.take()
        self.take("==")
        value = int(self.take())
        self.take(")")
        then = self.block()
        return If(register, value, then, self.block() if self.skip("else") else ())

    def statement(self, found: list[Instruction]) -> None:
        if self.skip("*"):
            name = self.take()
            self.take("=")
            value = self.operand()
            if name in self.holders:
                self.held[name] = value
            else:
                found.append(Store(name, value, None))
        else:
            declared = self.next in _DTYPES
            if declared:
                self.take()
            register = None
            if len(self.tokens) > 1 and self.tokens[1] == "=":
                register = self.take()
                self.take("=")
            if declared and re.fullmatch(r"-?\d+", self.next):
                if self.take() != "0":
                    raise ValueError(f"{self.name}: registers start at 0")
            else:
                self.expression(register, found)
        self.take(";")

    def expression(self, register: str | None, found: list[Instruction]) -> None:
        if self.skip("*"):
            name = self.take()
            if register is None:
                raise ValueError(f"{self.name}: the value of {name} is not used")
            if name not in self.holders:
                found.append(Load(register, name, None))
                return
            last = found[-1] if found else None
            if not isinstance(last, Cas) or self.held.get(name) is None:
                raise ValueError(f"{self.name}: {name} is read elsewhere than after its compare-exchange")
            found[-1] = Cas(register, last.success, last.location, last.expected, last.desired, last.order)
            return
        function = self.take()
        self.take("(")
        place = self.take()
        if function == "atomic_load_explicit" and register is not None:
            self.take(",")
            found.append(Load(register, place, self.order()))
        elif function == "atomic_store_explicit" and register is None:
            self.take(",")
            value = self.operand()
            self.take(",")
            found.append(Store(place, value, self.order()))
        elif function in _KINDS:
            self.take(",")
            value = self.operand()
            self.take(",")
            found.append(Rmw(register, _KINDS[function], place, value, self.order()))
        elif function == _CAS:
            found.append(self.compare_exchange(register, place))
        else:
            raise ValueError(f"{self.name}: {function} is not known here")
        self.take(")")

    def compare_exchange(self, register: str | None, place: str) -> Cas:
        self.take(",")
        holder = self.take()
        if holder not in self.held:
            raise ValueError(f"{self.name}: {holder} is to be named expected_T_N, and written before it is used")
        self.take(",")
        desired = self.operand()
        self.take(",")
        order = self.order()
        self.take(",")
        failure = self.order()
        exchange = Cas(None, register, place, self.held[holder], desired, order)
        if order != "seq_cst" and exchange.failure_order != failure:
            raise ValueError(f"{self.name}: the failure order of {order} is {exchange.failure_order}, not {failure}")
        return exchange

    def operand(self) -> Operand:
        token = self.take()
        return int(token) if re.fullmatch(r"-?\d+", token) else token

    def order(self) -> str:
        token = self.take()
        if not token.startswith("memory_order_"):
            raise ValueError(f"{self.name}: {token} is no memory order")
        return token.removeprefix("memory_order_")

    def condition(self) -> tuple[tuple[str, int], ...]:
        """The weak outcome: a conjunction, whatever the quantifier."""
        self.skip("~")
        self.take("exists", "forall")
        weak: dict[str, int] = {}
        if "true" in self.tokens:
            return ()
        while self.tokens:
            token = self.take()
            if token in ("(", ")", "/\\", "[", "]"):
                continue
            self.skip("]")
            self.take("=")
            weak[token] = int(self.take())
        return tuple(weak.items())
