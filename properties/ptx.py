"""A reader of PTX, NVIDIA's virtual instruction set: the instructions of a kernel, and which value flows into which.

It reads what compilers write: one entry, functions that it calls, straight lines, branches and loops. Calls are
replaced by what they call, so that the rest is one list of instructions over one set of names. Data flow pays no heed
to control flow: a name that is written in several places may hold any of them. Nothing here knows what is right; the
judgement is in ``ptx_rules``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

_JUMPS = frozenset(["bra", "brx", "exit", "ret"])
NO_RESULT = _JUMPS | frozenset(
    ["st", "red", "call", "trap", "bar", "barrier", "membar", "fence", "prefetch", "prefetchu", "discard", "nanosleep"]
)
"""Instructions whose first operand is not a result."""

DEEPEST = 16
"""Calls within calls that are followed."""


class UnreadableError(ValueError):
    """The text is not PTX, or not of a form that this module understands. The message says what is in the way."""


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: its first word: ``"cvt"``.
        modifiers: the words after it, in order: ``("rn", "ftz", "f16", "f32")``.
        operands: as they stand there, vectors as ``{a, b}`` and addresses as ``[%rd1+4]``. The first is the result,
            except for `NO_RESULT`.
        guard: the predicate under which it is carried out, ``""`` for always.
        text: the instruction as it was written.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str
    text: str

    def has(self, *modifiers: str) -> bool:
        """Whether it has one of these modifiers."""
        return any(modifier in self.modifiers for modifier in modifiers)

    @property
    def types(self) -> tuple[str, ...]:
        """Its type suffixes: ``("f16", "f32")`` of a conversion, destination first."""
        return tuple(modifier for modifier in self.modifiers if _TYPE.fullmatch(modifier))

    @property
    def space(self) -> str:
        """The state space of a memory instruction: ``"global"``, ``"param"``; ``"generic"`` where none is named."""
        return next((word for word in self.modifiers if word in _SPACES), "generic")

    @property
    def results(self) -> tuple[str, ...]:
        """The names that it writes. A store to a parameter writes the parameter."""
        if self.opcode == "st" and self.space == "param":
            return (_cell(self.operands[0]),)
        if self.opcode in NO_RESULT or not self.operands:
            return ()
        return tuple(_names(self.operands[0]))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names that its value is made of: not those of an address, unless it reads a parameter."""
        if self.opcode == "ld" and self.space == "param":
            return (_cell(self.operands[1]),)
        operands = self.operands if self.opcode in NO_RESULT else self.operands[1:]
        return tuple(name for operand in operands if not operand.startswith("[") for name in _names(operand))

    @property
    def address(self) -> str:
        """The operand that is an address, ``""`` where there is none."""
        return next((operand for operand in self.operands if operand.startswith("[")), "")


_TYPE = re.compile(r"(?:[fbsu](?:8|16|32|64)|f16x2|bf16|bf16x2|tf32|e4m3x2|e5m2x2|e4m3|e5m2|pred)")
_SPACES = frozenset(["param", "global", "shared", "local", "const"])
_NAME = re.compile(r"%[\w$#/]+(?:\.[xyzw])?")


def _names(operand: str) -> Iterator[str]:
    yield from _NAME.findall(operand)


def _cell(address: str) -> str:
    """The parameter that an address in parameter space stands for: ``param0+0``."""
    name, _, offset = address.strip("[]").partition("+")
    return f"{name.strip()}+{offset.strip() or 0}"


@dataclass(frozen=True)
class _Function:
    name: str
    entry: bool
    returns: tuple[str, ...]
    parameters: tuple[str, ...]
    body: tuple[Instruction, ...]


# From text to functions.

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADER = re.compile(
    r"(?:\.(?:visible|weak|extern)\s+)*\.(?P<kind>entry|func)\s*(?:\((?P<returns>[^)]*)\)\s*)?"
    r"(?P<name>[\w$.]+)\s*\((?P<parameters>[^)]*)\)(?P<rest>[^{};]*)(?P<end>[{;])"
)
_PARAMETER = re.compile(r"\.(?:param|reg)\b[^,]*?\s([%\w$]+)(?:\[\d+\])?\s*(?=,|$)")
_DECLARED = re.compile(r"\.(?:reg|param)\b.*?\s([%\w$]+)(?:\[\d+\])?$")
_LABEL = re.compile(r"\s*[\w$%]+:(?!:)")


def is_ptx(text: str) -> bool:
    """Whether a text begins as PTX has to: with the directive that names its version."""
    return _COMMENT.sub("", text).lstrip().startswith(".version")


def _functions(text: str) -> dict[str, _Function]:
    text = _COMMENT.sub("", text)
    found: dict[str, _Function] = {}
    for match in _HEADER.finditer(text):
        if match["end"] == ";":
            continue
        body = tuple(_body(text, match.end()))
        parameters = tuple(_PARAMETER.findall(match["parameters"]))
        returns = tuple(_PARAMETER.findall(match["returns"] or ""))
        found[match["name"]] = _Function(match["name"], match["kind"] == "entry", returns, parameters, body)
    return found


def _body(text: str, start: int) -> Iterator[Instruction]:
    """The instructions from ``start`` to the brace that closes the function; names of inner blocks made unique."""
    scopes: list[dict[str, str]] = [{}]
    numbers, blocks = [0], 0
    statement = ""
    vector = 0
    for char in text[start:]:
        blank = not statement.strip()
        if char == "{" and blank:
            blocks += 1
            scopes.append({})
            numbers.append(blocks)
        elif char == "}" and blank:
            scopes.pop()
            numbers.pop()
            if not scopes:
                return
        elif char == ";" and not vector:
            yield from _statement(statement, scopes, numbers[-1])
            statement = ""
        elif char == ":" and _LABEL.fullmatch(f"{statement}:"):
            statement = ""
        else:
            vector += (char == "{") - (char == "}")
            statement += char
    raise UnreadableError("a function has no end")


def _statement(statement: str, scopes: list[dict[str, str]], block: int) -> Iterator[Instruction]:
    words = " ".join(statement.split())
    if words.startswith("."):
        declared = _DECLARED.fullmatch(words)
        if declared and len(scopes) > 1:
            scopes[-1][declared[1]] = f"{declared[1]}#{block}"
        return
    known = {old: new for scope in scopes for old, new in scope.items()}
    if known:
        words = re.sub(r"[%\w$]+", lambda match: known.get(match[0], match[0]), words)
    yield _instruction(words)


def _instruction(text: str) -> Instruction:
    guard = ""
    rest = text
    if rest.startswith("@"):
        guard, _, rest = rest[1:].partition(" ")
    word, _, operands = rest.strip().partition(" ")
    opcode, *modifiers = word.split(".")
    modifiers = [part for modifier in modifiers for part in modifier.split("::")[:1]]
    return Instruction(opcode, tuple(modifiers), tuple(_operands(operands)), guard, text)


def _operands(text: str) -> Iterator[str]:
    depth, part = 0, ""
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += char
    if part.strip():
        yield part.strip()


# From functions to one list.


def _renamed(instruction: Instruction, prefix: str, cells: dict[str, str]) -> Instruction:
    """The instruction in the names of its caller: registers with a prefix, parameters by what is passed."""

    def rename(match: re.Match[str]) -> str:
        name = match[0]
        if name in cells:
            return cells[name]
        local = name.startswith("%") and "." not in name and not _SPECIAL.match(name)
        return f"%{prefix}{name[1:]}" if local else f"{prefix}{name}" if "#" in name else name

    operands = tuple(re.sub(r"[%\w$#/]+(?:\.[xyzw])?", rename, operand) for operand in instruction.operands)
    guard = re.sub(r"%[\w$#/]+", rename, instruction.guard)
    return replace(instruction, operands=operands, guard=guard)


_SPECIAL = re.compile(r"%(?:n?tid|n?ctaid|laneid|warpid|clock|globaltimer|gridid|smid|lanemask|pm\d|envreg)")


def _inlined(functions: dict[str, _Function], function: _Function, depth: int = 0) -> Iterator[Instruction]:
    calls = 0
    for instruction in function.body:
        if instruction.opcode != "call":
            yield instruction
            continue
        # call (results), name, (arguments)   or   call name, (arguments)   or   call name
        parts = list(instruction.operands)
        results = parts.pop(0).strip("() ") if parts and parts[0].startswith("(") else ""
        callee = functions.get(parts[0] if parts else "")
        if callee is None or depth == DEEPEST:
            raise UnreadableError(f"cannot follow `{instruction.text}`")
        arguments = parts[1].strip("() ") if len(parts) > 1 else ""
        passed = [*_split(results), *_split(arguments)]
        cells = dict(zip((*callee.returns, *callee.parameters), passed, strict=False))
        prefix = f"{callee.name}/{calls}/"
        calls += 1
        for inner in _inlined(functions, callee, depth + 1):
            yield _renamed(inner, prefix, cells)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


# Data flow.


@dataclass(frozen=True)
class Parameter:
    """A parameter of the entry, or the part of one from a byte on."""

    position: int
    offset: int


class Code:
    """The instructions of one kernel, and what flows where.

    Attributes:
        instructions: those of the entry, calls replaced by what they call.
        parameters: names of the entry's parameters.

    Raises:
        UnreadableError: the text is not PTX, has no entry or more than one, or calls what is not in it.
    """

    def __init__(self, text: str) -> None:
        if not is_ptx(text):
            raise UnreadableError("the text does not begin as PTX does")
        functions = _functions(text)
        entries = [function for function in functions.values() if function.entry]
        if len(entries) != 1:
            raise UnreadableError(f"{len(entries)} entries where one kernel was asked for")
        self.parameters = entries[0].parameters
        self.instructions = tuple(_inlined(functions, entries[0]))

    @cached_property
    def _writers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, instruction in enumerate(self.instructions):
            for name in instruction.results:
                found.setdefault(name, []).append(at)
        return found

    @cached_property
    def _readers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, instruction in enumerate(self.instructions):
            for name in instruction.sources:
                found.setdefault(name, []).append(at)
        return found

    def writers(self, name: str) -> Sequence[int]:
        """Positions of the instructions that write a name."""
        return self._writers.get(name, ())

    def only_writer(self, name: str) -> int | None:
        """The instruction whose result a name always is, None where there may be several."""
        found = self.writers(name)
        return found[0] if found and not self.chosen(name) else None

    def origin(self, address: str) -> Parameter | None:
        """The parameter that an address starts from, None where it is no parameter."""
        pending, seen = list(_names(address)), set[str]()
        while pending:
            name = pending.pop(0)
            if name in seen:
                continue
            seen.add(name)
            for at in self.writers(name):
                instruction = self.instructions[at]
                if instruction.opcode == "ld" and instruction.space == "param" and instruction.has("u64", "b64", "s64"):
                    cell, _, offset = instruction.sources[0].rpartition("+")
                    if cell in self.parameters and self._is_pointer(name):
                        return Parameter(self.parameters.index(cell), int(offset))
                elif instruction.opcode in ("add", "mov", "cvta", "sub"):
                    pending += instruction.sources
                elif instruction.opcode == "mad":
                    pending += _names(instruction.operands[-1])
        return None

    def _is_pointer(self, name: str) -> bool:
        """Whether a parameter is made a pointer somewhere; true of all where the text has no such conversions."""
        conversions = [one for one in self.instructions if one.opcode == "cvta"]
        return not conversions or any(name in one.sources for one in conversions)

    @cached_property
    def stores(self) -> dict[Parameter, list[int]]:
        """The stores through each parameter, in the order of the parameters.

        Raises:
            UnreadableError: the address of a store starts from no parameter.
        """
        found: dict[Parameter, list[int]] = {}
        for at, instruction in enumerate(self.instructions):
            if instruction.opcode == "st" and instruction.space in ("global", "generic"):
                parameter = self.origin(instruction.address)
                if parameter is None:
                    raise UnreadableError(f"cannot tell where `{instruction.text}` stores to")
                found.setdefault(parameter, []).append(at)
        return dict(sorted(found.items(), key=lambda item: (item[0].position, item[0].offset)))

    @cached_property
    def loads(self) -> dict[int, Parameter]:
        """The parameter that each load of an input reads through."""
        found: dict[int, Parameter] = {}
        for at, instruction in enumerate(self.instructions):
            if instruction.opcode == "ld" and instruction.space in ("global", "generic"):
                parameter = self.origin(instruction.address)
                if parameter is not None:
                    found[at] = parameter
        return found

    @cached_property
    def _conditions(self) -> frozenset[str]:
        """Every predicate that a branch depends on."""
        guards = (one.guard for one in self.instructions if one.guard and one.opcode in _JUMPS)
        return frozenset(name for guard in guards for name in _names(guard))

    def flow_into(self, positions: Sequence[int], stop: Container[int] = ()) -> frozenset[int]:
        """The instructions whose results the values at ``positions`` are made of, with those.

        Addresses of inputs are left out; an address in a table is part of the value. What may come from several places
        depends on every condition of a branch, too: more than it really does, never less.

        Args:
            stop: instructions that are not looked behind.
        """
        seen: set[int] = set()
        pending = list(positions)
        if len(positions) > 1:
            pending += [at for name in self._conditions for at in self.writers(name)]
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            if at not in stop:
                for name in self._needed(at):
                    pending += self.writers(name)
        return frozenset(seen)

    def _needed(self, at: int) -> set[str]:
        """The names that the result of an instruction depends on."""
        instruction = self.instructions[at]
        names = {*instruction.sources, *_names(instruction.guard)}
        if instruction.opcode == "ld" and instruction.space != "param" and at not in self.loads:
            names |= set(_names(instruction.address))
        if any(self.chosen(name) for name in instruction.results):
            names |= self._conditions
        return names

    def chosen(self, name: str) -> bool:
        """Whether it depends on a branch, or on a guard, what a name holds."""
        found = self.writers(name)
        return len(found) > 1 or any(self.instructions[at].guard for at in found)

    def flow_from(self, position: int) -> frozenset[int]:
        """The instructions that the result at ``position`` flows into."""
        seen: set[int] = set()
        pending = [position]
        while pending:
            for name in self.instructions[pending.pop()].results:
                for at in self._readers.get(name, ()):
                    if at not in seen:
                        seen.add(at)
                        pending.append(at)
        return frozenset(seen)

    def constant(self, operand: str) -> str | None:
        """The literal that an operand always is, None where it is no literal."""
        for _ in range(DEEPEST):
            if not operand.startswith("%"):
                return operand
            at = self.only_writer(operand)
            if at is None or self.instructions[at].opcode != "mov":
                return None
            operand = self.instructions[at].operands[1]
        return None
