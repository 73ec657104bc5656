"""Reads the PTX that a backend made of a litmus program: the accesses along each path of each thread.

`litmus_accesses` judges them. Locations may be used by every thread of the grid, so that a scope below that of the
device is too narrow (``intent:11-h``). A compare-exchange has one order in PTX; if it fails, it acquires where that
order does.
"""

from __future__ import annotations

import re
from collections import Counter

from halfulp.properties.litmus_accesses import ACQUIRING, Emitted, Path, UnreadableError
from halfulp.properties.litmus_paths import Block, Condition, Flow

_KERNEL = re.compile(r"^(?:\.visible )?\.entry thread(\d+)\((.*?)\)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r"\.param [^,\n]*?([\w$]+)\s*(?:,|$)", re.MULTILINE)
_NAME = r"[%\w$]+"
_ADDRESS = rf"\[(?P<at>{_NAME})(?:\+(?P<offset>-?\d+))?\]"
_ORDERS = r"relaxed|acquire|release|acq_rel"
_SCOPES = r"cta|cluster|gpu|sys"
_PATTERNS = {
    "load": re.compile(
        rf"^ld(?:\.(?P<order>weak|volatile|{_ORDERS}))?(?:\.(?P<scope>{_SCOPES}))?(?:\.global)?"
        rf"\.[busf](?P<width>\d+) (?P<result>{_NAME}), {_ADDRESS}$"
    ),
    "store": re.compile(
        rf"^st(?:\.(?P<order>weak|volatile|{_ORDERS}))?(?:\.(?P<scope>{_SCOPES}))?(?:\.global)?"
        rf"\.[busf](?P<width>\d+) {_ADDRESS}, \S+$"
    ),
    "cas": re.compile(
        rf"^atom(?:\.(?P<order>{_ORDERS}))?(?:\.(?P<scope>{_SCOPES}))?(?:\.global)?\.cas"
        rf"\.[busf](?P<width>\d+) (?P<result>{_NAME}), {_ADDRESS}, (?P<expected>\S+), \S+$"
    ),
    "rmw": re.compile(
        rf"^(?:atom|red)(?:\.(?P<order>{_ORDERS}))?(?:\.(?P<scope>{_SCOPES}))?(?:\.global)?"
        rf"\.(?P<kind>exch|add|min|max|and|or|xor)\.(?P<type>[busf])(?P<width>\d+) "
        rf"(?:(?P<result>{_NAME}), )?{_ADDRESS}, \S+$"
    ),
    "fence": re.compile(rf"^fence\.(?P<order>sc|{_ORDERS})\.(?P<scope>{_SCOPES})$"),
    "membar": re.compile(r"^membar\.(?P<level>cta|gl|sys)$"),
}
_BRANCH = re.compile(rf"^bra(?:\.uni)?\s+({_NAME})$")
_GUARD = re.compile(rf"^@(!?)({_NAME})\s+(.*)$")
_COMPARE = re.compile(rf"^setp\.(eq|ne)\.[bsu](\d+) ({_NAME}), ({_NAME}), (\S+)$")
_ASSIGNS = re.compile(rf"^[a-z][\w.]*\s+({_NAME})\s*,")
_COPY = re.compile(rf"^(?:mov\.[bus]64|cvta(?:\.to)?\.global\.u64)\s+({_NAME}), ({_NAME})$")
_CONSTANT = re.compile(rf"^mov\.[bus](\d+)\s+({_NAME}), (-?\d+)$")
_PARAMETER_LOAD = re.compile(rf"^ld\.param\.\w+\s+({_NAME}), \[({_NAME})\]$")
_OFFSET = re.compile(rf"^(?:add|sub)\.[su]64\s+({_NAME}), ({_NAME}), \S+$")
_MEMORY = re.compile(r"^(ld|st|atom|red|fence|membar|call|multimem|cp|ldu|prefetch|barrier|bar)\b(?!\.param)")
_LOCAL = re.compile(r"^(ld|st)\.(local|const|shared)\b")


def read(text: str, locations: int) -> dict[int, list[Path]]:
    """The memory instructions of each kernel ``threadN``, along each path that takes no block twice.

    Accesses to other pointers than the parameters are left out.

    Raises:
        UnreadableError: there is no kernel, or it has an instruction that this module does not know.
    """
    threads = {
        int(number): list(_Kernel(_PARAMETER.findall(parameters), body, locations).paths())
        for number, parameters, body in _KERNEL.findall(text)
    }
    if not threads:
        raise UnreadableError("there is no kernel thread0")
    return threads


class _Kernel(Flow):
    """One thread. A block ends at a label, a branch, or an instruction under a condition of its own."""

    def __init__(self, parameters: list[str], body: str, locations: int) -> None:
        super().__init__()
        lines = [line for line in (_statement(line) for line in body.splitlines()) if line]
        # A register that is assigned twice holds a result on some paths only: nothing is concluded from it.
        assigned = Counter(match[1] for match in map(_ASSIGNS.match, lines) if match)
        self.once = {name for name, count in assigned.items() if count == 1}
        self.constants: dict[str, int] = {}
        self.addresses: dict[str, int | None] = dict(zip(parameters, range(locations), strict=False))
        self.expected: dict[str, str] = {}
        self.conditions: dict[str, Condition] = {}
        for line in lines:
            self._define(line)
        self.fresh = 0
        self.block: Block | None = self.blocks[""]
        for line in lines:
            self._define(line)  # once more: a predicate of an inline block may be defined again after its use
            if line.endswith(":"):
                self._start(line[:-1])
            elif self.block is not None:  # else nobody comes here
                self._append(line)

    def _define(self, line: str) -> None:
        """Note addresses, constants and comparisons."""
        if match := _PARAMETER_LOAD.match(line):
            self.addresses[match[1]] = self.addresses.get(match[2])
        elif match := _CONSTANT.match(line):
            self.constants[match[2]] = int(match[3]) % (1 << int(match[1]))
        elif match := _COPY.match(line):
            self.addresses[match[1]] = self.addresses.get(match[2])
        elif match := _OFFSET.match(line):
            self.addresses[match[1]] = None if self.addresses.get(match[2]) is None else -1
        elif match := _PATTERNS["cas"].match(line):
            self.expected[match["result"]] = match["expected"]
            self.values[_success(match["result"])] = (match["result"], "success")
        elif match := _COMPARE.match(line):
            self._compare(match[1] == "eq", 1 << int(match[2]), match[3], match[4], match[5])

    def _compare(self, equal: bool, modulus: int, predicate: str, left: str, right: str) -> None:
        if right in self.expected:
            left, right = right, left
        number = self._number(right)
        expected = self.expected.get(left, "")
        if expected and (right == expected or (number is not None and self._number(expected) == number % modulus)):
            self.conditions[predicate] = (_success(left), 1, equal)
        elif number is not None and left in self.once:
            self.conditions[predicate] = (left, number % modulus, equal)

    def _number(self, operand: str) -> int | None:
        if re.fullmatch(r"-?\d+", operand):
            return int(operand)
        return self.constants.get(operand) if operand in self.once else None

    def _start(self, label: str) -> None:
        """A new block; the one before it goes on there."""
        if self.block is not None:
            self.block.ways.append((label, ()))
        self.block = self.blocks.setdefault(label, Block())

    def _append(self, line: str) -> None:
        assert self.block is not None
        guard = _GUARD.match(line)
        if guard:
            self._guarded(guard[2], guard[1] == "", guard[3])
        elif branch := _BRANCH.match(line):
            self.block.ways.append((branch[1], ()))
            self.block = None
        elif line in ("ret", "exit"):
            self.block.returns = True
            self.block = None
        elif line == "trap":
            self.block = None
        elif re.match(r"^brx\b", line):
            raise UnreadableError(f"cannot judge `{line}`")
        elif _MEMORY.match(line) and not _LOCAL.match(line):
            access = self._instruction(line)
            if access is not None:
                self.block.accesses.append(access)

    def _guarded(self, predicate: str, positive: bool, rest: str) -> None:
        """An instruction under a condition: two ways, one of which passes it by."""
        if not (_MEMORY.match(rest) or _BRANCH.match(rest) or rest in ("ret", "exit")):
            return
        assert self.block is not None
        name, number, equal = self.conditions.get(predicate, (predicate, 1, True))
        self.fresh += 1
        on, by = f"{self.fresh}.on", f"{self.fresh}.by"
        self.block.ways += [(on, ((name, number, equal == positive),)), (by, ((name, number, equal != positive),))]
        self.block = self.blocks.setdefault(on, Block())
        self._append(rest)
        self._start(by)

    def _instruction(self, line: str) -> tuple[str, Emitted] | None:
        """An access with the name of its result; None where it is not one to a location."""
        for op, pattern in _PATTERNS.items():
            match = pattern.match(line)
            if match is None:
                continue
            parts = match.groupdict()
            if op == "membar":
                scope = {"cta": "cta"}.get(parts["level"], "")
                return "", Emitted("fence", -1, 0, "seq_cst", line, scope=scope)
            order, scope = _order(op, parts["order"], parts["scope"])
            if op == "fence":
                return "", Emitted("fence", -1, 0, order, line, scope=scope)
            place = self.addresses.get(parts["at"])
            if place is None:
                return None
            return parts.get("result") or "", Emitted(
                op,
                place if parts["offset"] in (None, "0") else -1,
                int(parts["width"]),
                order,
                line,
                failure=("acquire" if order in ACQUIRING else "relaxed") if op == "cas" else "",
                scope=scope,
                kind=_kind(parts["kind"], parts["type"]) if op == "rmw" else "",
            )
        raise UnreadableError(f"cannot judge `{line}`")


def _success(result: str) -> str:
    """A name for whether the compare-exchange with that result took place; no register has it."""
    return f"{result} as expected"


def _statement(line: str) -> str:
    """A line without its comment, braces and the final semicolon; single spaces."""
    return " ".join(re.sub(r"//.*", "", line).replace("{", " ").replace("}", " ").split()).rstrip(";").rstrip()


def _order(op: str, word: str | None, scope: str | None) -> tuple[str, str]:
    """Order and scope in the words of `litmus_accesses`.

    A load or store without an order is weak, a volatile one relaxed for the whole system; an update without one is
    relaxed, and its scope is the device where it names none.
    """
    if word == "volatile":
        return "relaxed", ""
    if op in ("load", "store"):
        word = "" if word == "weak" else word or ""
    order = {"sc": "seq_cst", None: "relaxed"}.get(word, word or "")
    return order, scope if scope in ("cta", "cluster") else ""


def _kind(name: str, type_: str) -> str:
    """PTX's kind of an update in ours, with the sign where it matters."""
    if name in ("max", "min"):
        return f"{name} {'signed' if type_ == 's' else 'unsigned'}"
    return {"exch": "exchange"}.get(name, name)
