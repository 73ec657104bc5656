"""Litmus programs: a few threads, a few shared locations, and the question of which outcomes are possible.

A program is plain data. Construction checks its *structure* (names, ranges of values); whether each access has an
order that the language admits is a question for ``oracle.memory.typing``, so that ill-typed programs can be given to
a backend that has to refuse them.

A value is a Python integer in the range of its location's dtype. Every register holds 0 before it is written, and so
does the outcome of a register that its path never writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from halfulp.oracle.formats import format_of

DTYPES = ("i32", "u32", "i64", "u64")
"""Dtypes on which atomics are judged (``reading:21``)."""

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
"""The orders of the language, weakest first. There is no sequentially consistent one (``intent:11-e``)."""

RMW_KINDS = ("exchange", "add", "max", "min", "and", "or", "xor")
"""Read-modify-write operations (``intent:11-a``)."""

FAILURE_ORDERS: Mapping[str, str] = {
    "relaxed": "relaxed",
    "acquire": "acquire",
    "release": "relaxed",
    "acq_rel": "acquire",
}
"""The order of a compare-exchange that fails, derived from the order that it names (``intent:11-f``)."""

Operand = int | str
"""A constant, or the name of a register of the same thread."""

Outcome = tuple[tuple[str, int], ...]
"""What was observed, sorted by name: ``"1:r0"`` is register r0 of thread 1 at its end, ``"x"`` is location x after
all threads have ended."""


@dataclass(frozen=True)
class Location:
    """A shared location and its value before any thread starts."""

    name: str
    dtype: str = "u32"
    initial: int = 0


@dataclass(frozen=True)
class Load:
    """``register = location``.

    Attributes:
        order: one of `ORDERS`; None makes it an ordinary (plain) access.
        scope: empty in well-typed programs; the language has no scope argument (``intent:11-g``).
    """

    register: str
    location: str
    order: str | None = "relaxed"
    scope: str = ""


@dataclass(frozen=True)
class Store:
    """``location = value``. ``order`` and ``scope`` are those of `Load`."""

    location: str
    value: Operand
    order: str | None = "relaxed"
    scope: str = ""


@dataclass(frozen=True)
class Rmw:
    """``register = location; location = kind(location, value)`` in one indivisible step (``intent:11-b``).

    Attributes:
        register: receives the old value; None where it is not used.
        kind: one of `RMW_KINDS`.
    """

    register: str | None
    kind: str
    location: str
    value: Operand
    order: str = "relaxed"
    scope: str = ""


@dataclass(frozen=True)
class Cas:
    """Compare-exchange (``intent:11-c``): if the location holds ``expected``, it receives ``desired``.

    Attributes:
        register: receives the old value; None where it is not used.
        success: register that receives 1 if the exchange took place and 0 if not; None where it is not used.
    """

    register: str | None
    success: str | None
    location: str
    expected: Operand
    desired: Operand
    order: str = "relaxed"
    scope: str = ""

    @property
    def failure_order(self) -> str:
        """The order of the read where the exchange does not take place. KeyError if ``order`` is none of ours."""
        return FAILURE_ORDERS[self.order]


@dataclass(frozen=True)
class If:
    """``if register == equals: then else: otherwise``."""

    register: str
    equals: int
    then: tuple[Instruction, ...]
    otherwise: tuple[Instruction, ...] = ()


Access = Load | Store | Rmw | Cas
"""An instruction that touches memory."""

Instruction = Access | If

Thread = tuple[Instruction, ...]


@dataclass(frozen=True)
class Program:
    """A litmus program.

    Attributes:
        name: e.g. ``"MP"``.
        locations: shared locations.
        threads: one tuple of instructions for each thread, run once, in any interleaving.
        weak: the outcome that the test is about, as far as it matters: what a sound implementation never shows, or
            what a test of freedom expects to be allowed.
        observe: names of what is observed (see `Outcome`); by default all registers, and the locations in ``weak``.

    Raises:
        ValueError: a name is unknown or used twice, a register is read before it is written, or a value is out of
            its range.
    """

    name: str
    locations: tuple[Location, ...]
    threads: tuple[Thread, ...]
    weak: Outcome = ()
    observe: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len({location.name for location in self.locations}) != len(self.locations):
            raise ValueError(f"{self.name}: two locations share a name")
        for location in self.locations:
            if location.dtype not in DTYPES:
                raise ValueError(f"{self.name}: atomics are judged on {', '.join(DTYPES)}, not on {location.dtype}")
            _in_range(location.initial, location.dtype, f"{self.name}: initial value of {location.name}")
        names = {location.name: location.dtype for location in self.locations}
        for thread in self.threads:
            _check_block(thread, names, {})
        known = {*self.registers, *names}
        object.__setattr__(self, "weak", tuple(sorted(self.weak)))
        if not self.observe:
            memory = [name for name, _ in self.weak if name in names]
            object.__setattr__(self, "observe", (*self.registers, *memory))
        for name in (*self.observe, *(name for name, _ in self.weak)):
            if name not in known:
                raise ValueError(f"{self.name}: {name!r} is neither a register (as 0:r0) nor a location")
        missing = {name for name, _ in self.weak} - set(self.observe)
        if missing:
            raise ValueError(f"{self.name}: the weak outcome names {', '.join(sorted(missing))}, not observed")

    @property
    def registers(self) -> tuple[str, ...]:
        """All registers that some path writes, as names of observations, by thread and first appearance."""
        found: dict[str, None] = {}
        for number, thread in enumerate(self.threads):
            for access in accesses_of(thread):
                for register in written_registers(access):
                    found[f"{number}:{register}"] = None
        return tuple(found)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Every access, thread by thread, in the order of the text (branches: ``then`` first)."""
        return tuple(access for thread in self.threads for access in accesses_of(thread))

    def location(self, name: str) -> Location:
        """The location of that name. KeyError if there is none."""
        for location in self.locations:
            if location.name == name:
                return location
        raise KeyError(name)

    def __str__(self) -> str:
        return listing(self)


def accesses_of(block: tuple[Instruction, ...]) -> Iterator[Access]:
    """The accesses of a block, in the order of the text."""
    for instruction in block:
        if isinstance(instruction, If):
            yield from accesses_of(instruction.then)
            yield from accesses_of(instruction.otherwise)
        else:
            yield instruction


def written_registers(access: Access) -> tuple[str, ...]:
    """The registers that an access writes."""
    match access:
        case Load():
            return (access.register,)
        case Store():
            return ()
        case Rmw():
            return (access.register,) if access.register else ()
        case Cas():
            return tuple(name for name in (access.register, access.success) if name)


def map_accesses(program: Program, change: Callable[[int, Access], Access]) -> Program:
    """A copy with accesses replaced in place; ``change`` gets the position in `Program.accesses` and the access."""
    position = -1

    def block(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        nonlocal position
        copy: list[Instruction] = []
        for instruction in instructions:
            if isinstance(instruction, If):
                copy.append(replace(instruction, then=block(instruction.then), otherwise=block(instruction.otherwise)))
            else:
                position += 1
                copy.append(change(position, instruction))
        return tuple(copy)

    return replace(program, threads=tuple(block(thread) for thread in program.threads))


def with_dtype(program: Program, dtype: str) -> Program:
    """The same program on locations of another dtype."""
    return replace(program, locations=tuple(replace(location, dtype=dtype) for location in program.locations))


def bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    fmt = format_of(dtype)
    return (-(1 << fmt.width - 1), (1 << fmt.width - 1) - 1) if fmt.signed else (0, (1 << fmt.width) - 1)


def wrap(value: int, dtype: str) -> int:
    """``value`` modulo 2**width, in the range of the dtype."""
    low, high = bounds(dtype)
    return (value - low) % (high - low + 1) + low


def _in_range(value: int, dtype: str, what: str) -> None:
    low, high = bounds(dtype)
    if not isinstance(value, int):
        raise ValueError(f"{what} is {value!r}, which is no integer")
    if not low <= value <= high:
        raise ValueError(f"{what} is {value}, out of the range of {dtype}")


def _check_block(block: tuple[Instruction, ...], locations: Mapping[str, str], registers: dict[str, str]) -> None:
    """Check names and ranges; ``registers`` maps those written so far to their dtypes and is updated."""
    for instruction in block:
        if isinstance(instruction, If):
            if instruction.register not in registers:
                raise ValueError(f"{instruction.register} is tested before it is written")
            branches = []
            for branch in (instruction.then, instruction.otherwise):
                branches.append(dict(registers))
                _check_block(branch, locations, branches[-1])
            # What only one branch writes is 0 after the other one.
            registers.update(branches[1] | branches[0])
            continue
        if instruction.location not in locations:
            raise ValueError(f"there is no location {instruction.location}")
        dtype = locations[instruction.location]
        match instruction:
            case Load():
                operands: tuple[Operand, ...] = ()
            case Store():
                operands = (instruction.value,)
            case Rmw():
                operands = (instruction.value,)
                if instruction.kind not in RMW_KINDS:
                    raise ValueError(f"{instruction.kind} is none of {', '.join(RMW_KINDS)}")
            case Cas():
                operands = (instruction.expected, instruction.desired)
        for operand in operands:
            if isinstance(operand, int):
                _in_range(operand, dtype, f"an operand on {instruction.location}")
            elif registers.get(operand) != dtype:
                raise ValueError(f"{operand} is not a register of dtype {dtype} that was written before")
        if isinstance(instruction, Cas) and instruction.register and instruction.register == instruction.success:
            raise ValueError(f"{instruction.register} is written with two dtypes, {dtype} and bool")
        for register in written_registers(instruction):
            success = isinstance(instruction, Cas) and register == instruction.success
            kind = "bool" if success else dtype
            if registers.setdefault(register, kind) != kind:
                raise ValueError(f"{register} is written with two dtypes, {registers[register]} and {kind}")


# Text.


def access_text(access: Access) -> str:
    """One access as it stands in listings: ``r0 = load.acquire y``."""
    order = "plain" if access.order is None else access.order
    suffix = f".{order}" + (f".{access.scope}" if access.scope else "")
    match access:
        case Load():
            return f"{access.register} = load{suffix} {access.location}"
        case Store():
            return f"store{suffix} {access.location} {access.value}"
        case Rmw():
            left = f"{access.register} = " if access.register else ""
            return f"{left}{access.kind}{suffix} {access.location} {access.value}"
        case Cas():
            left = ", ".join(name or "_" for name in (access.register, access.success))
            return f"{left} = cas{suffix} {access.location} {access.expected} -> {access.desired}"


def _lines(block: tuple[Instruction, ...], indent: str = "") -> Iterator[str]:
    for instruction in block:
        if isinstance(instruction, If):
            yield f"{indent}if {instruction.register} == {instruction.equals}:"
            yield from _lines(instruction.then, indent + "  ")
            if instruction.otherwise:
                yield f"{indent}else:"
                yield from _lines(instruction.otherwise, indent + "  ")
        else:
            yield indent + access_text(instruction)


def listing(program: Program) -> str:
    """The program as text: initial values, threads in columns, the weak outcome."""
    initial = ", ".join(f"{location.dtype} {location.name} = {location.initial}" for location in program.locations)
    columns = [[f"thread {number}", *_lines(thread)] for number, thread in enumerate(program.threads)]
    widths = [max(map(len, column)) for column in columns]
    rows = [
        " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in zip_longest(*columns, fillvalue="")
    ]
    weak = [f"outcome {outcome_text(program.weak)}"] if program.weak else []
    return "\n".join([f"{program.name}: {initial}", *rows, *weak])


def outcome_text(outcome: Outcome | Mapping[str, int]) -> str:
    """``1:r0=1, 1:r1=0``."""
    items = outcome.items() if isinstance(outcome, Mapping) else outcome
    return ", ".join(f"{name}={value}" for name, value in items)


# JSON.

_ACCESSES: Mapping[str, type[Access]] = {"load": Load, "store": Store, "rmw": Rmw, "cas": Cas}


def _block_to_json(block: tuple[Instruction, ...]) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = []
    for instruction in block:
        if isinstance(instruction, If):
            data.append(
                {
                    "op": "if",
                    "register": instruction.register,
                    "equals": instruction.equals,
                    "then": _block_to_json(instruction.then),
                    "otherwise": _block_to_json(instruction.otherwise),
                }
            )
        else:
            fields = {name: value for name, value in vars(instruction).items() if name != "scope" or value}
            data.append({"op": type(instruction).__name__.lower(), **fields})
    return data


def _block_from_json(data: list[dict[str, Any]]) -> tuple[Instruction, ...]:
    block: list[Instruction] = []
    for item in data:
        if not isinstance(item, Mapping):
            raise TypeError(f"{item!r} is no instruction")
        fields = dict(item)
        op = fields.pop("op")
        if op == "if":
            branches = (_block_from_json(fields["then"]), _block_from_json(fields["otherwise"]))
            block.append(If(fields["register"], fields["equals"], *branches))
        elif op in _ACCESSES:
            block.append(_ACCESSES[op](**fields))
        else:
            raise ValueError(f"{op!r} is no operation; there are {', '.join(_ACCESSES)} and if")
    return tuple(block)


def to_json(program: Program) -> dict[str, Any]:
    """The program as plain JSON data."""
    return {
        "name": program.name,
        "locations": [dict(vars(location)) for location in program.locations],
        "threads": [_block_to_json(thread) for thread in program.threads],
        "weak": dict(program.weak),
        "observe": list(program.observe),
    }


def from_json(data: Mapping[str, Any]) -> Program:
    """The inverse of ``to_json``; ``weak`` and ``observe`` may be left out.

    Raises:
        ValueError: ``data`` is not the JSON form of a litmus program.
    """
    try:
        return Program(
            data["name"],
            tuple(Location(**location) for location in data["locations"]),
            tuple(_block_from_json(thread) for thread in data["threads"]),
            tuple(data.get("weak", {}).items()),
            tuple(data.get("observe", ())),
        )
    except KeyError as error:
        raise ValueError(f"not a litmus program in JSON form: there is no field {error}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not a litmus program in JSON form: {error}") from error
