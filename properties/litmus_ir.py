"""Reads the LLVM IR that a backend made of a litmus program: the accesses along each path of each thread.

`litmus_accesses` judges them.
"""

from __future__ import annotations

import re

from halfulp.properties.litmus_accesses import Emitted, Path, UnreadableError
from halfulp.properties.litmus_paths import Block, Condition, Flow

_FUNCTION = re.compile(r"^define [^\n]*@thread(\d+)\(([^\n]*)\)[^\n)]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_POINTER = re.compile(r"\bptr\b[^%]*(%[\w.\"$-]+)")
_ORDER = r"(?:syncscope\(\"(?P<scope>[^\"]*)\"\) )?(?P<order>unordered|monotonic|acquire|release|acq_rel|seq_cst)"
_PATTERNS = {
    "load": re.compile(
        rf"^(?P<result>%\S+) = load (?:atomic )?(?:volatile )?i(?P<width>\d+), ptr (?P<at>%[^\s,]+)(?: {_ORDER})?"
    ),
    "store": re.compile(
        rf"^store (?:atomic )?(?:volatile )?i(?P<width>\d+) [^\s,]+, ptr (?P<at>%[^\s,]+)(?: {_ORDER})?"
    ),
    "rmw": re.compile(
        rf"^(?P<result>%\S+) = atomicrmw (?:volatile )?\w+ ptr (?P<at>%[^\s,]+), i(?P<width>\d+) [^\s,]+ {_ORDER}"
    ),
    "cas": re.compile(
        r"^(?P<result>%\S+) = cmpxchg (?P<weak>weak )?(?:volatile )?ptr (?P<at>%[^\s,]+), i(?P<width>\d+) [^\s,]+, "
        rf"i\d+ [^\s,]+ {_ORDER} (?P<failure>\w+)"
    ),
    "fence": re.compile(rf"^fence {_ORDER}"),
}
_TOUCHES_MEMORY = re.compile(
    r"^(?:%\S+ = )?(?:tail |musttail |notail )?(?:load|store|atomicrmw|cmpxchg|fence|call|invoke)\b"
)
_LABEL = re.compile(r"^([-\w.$\"]+):(?:\s*;.*)?$")
_EXTRACT = re.compile(r"^(%\S+) = extractvalue \{ i\d+, i1 \} (%\S+), ([01])$")
_COMPARE = re.compile(r"^(%\S+) = icmp (eq|ne) i(\d+) (%[^\s,]+), (-?\d+|true|false)$")
_BRANCH = re.compile(r"^br i1 (%[^\s,]+|true|false), label %([^\s,]+), label %([^\s,]+)")
_JUMP = re.compile(r"^br label %([^\s,]+)")
_SWITCH = re.compile(r"^switch i(\d+) (%[^\s,]+), label %([^\s,]+) \[(.*)\]")
_CASE = re.compile(r"i\d+ (-?\d+), label %([^\s,\]]+)")


def read(text: str, locations: int) -> dict[int, list[Path]]:
    """The memory instructions of each thread, along each path that takes no block twice.

    Accesses to other pointers than the parameters (locals, output registers) are left out.

    Raises:
        UnreadableError: there is no thread function, or it has an instruction that this module does not know.
    """
    threads = {
        int(number): list(_Function(parameters, body, locations).paths())
        for number, parameters, body in _FUNCTION.findall(text)
    }
    if not threads:
        raise UnreadableError("there is no function thread0")
    return threads


class _Function(Flow):
    """One thread: its blocks, and what its conditions say."""

    def __init__(self, parameters: str, body: str, locations: int) -> None:
        super().__init__()
        lines = [line.strip() for line in re.sub(r"\[\s*\n([^\]]*)\]", _one_line, body).splitlines()]
        pointers = _POINTER.findall(parameters)
        self.cells = {name: place for place, name in enumerate(pointers[:locations])}
        self.others = set(pointers[locations:])
        self.conditions: dict[str, Condition] = {}
        for line in lines:
            self._define(line)
        block = self.blocks[""]
        for line in lines:
            label = _LABEL.match(line)
            if label:
                first = not block.accesses and not block.ways and not block.returns
                block = self.blocks.setdefault(label[1].strip('"'), Block())
                if first and len(self.blocks) == 2:
                    self.blocks[""].ways.append((label[1].strip('"'), ()))
            elif line and not line.startswith(";"):
                self._append(block, line)

    def _define(self, line: str) -> None:
        """Note pointers, parts of results, and comparisons of them."""
        derived = re.match(r"^(%\S+) = (?:getelementptr|alloca)\b(?:[^%]*ptr (%[^\s,]+))?", line)
        if derived and derived[2] in self.cells:
            self.cells[derived[1]] = -1
        elif derived:
            self.others.add(derived[1])
        part = _EXTRACT.match(line)
        if part:
            self.values[part[1]] = (part[2], "success" if part[3] == "1" else "value")
        compared = _COMPARE.match(line)
        if compared:
            number = {"true": 1, "false": 0}.get(compared[5])
            number = int(compared[5]) % (1 << int(compared[3])) if number is None else number
            self.conditions[compared[1]] = (compared[4], number, compared[2] == "eq")

    def _append(self, block: Block, line: str) -> None:
        branch, jump, switch = _BRANCH.match(line), _JUMP.match(line), _SWITCH.match(line)
        if branch and branch[1] in ("true", "false"):
            block.ways.append((branch[2 if branch[1] == "true" else 3], ()))
        elif branch:
            name, number, equal = self.conditions.get(branch[1], (branch[1], 1, True))
            block.ways += [(branch[2], ((name, number, equal),)), (branch[3], ((name, number, not equal),))]
        elif jump:
            block.ways.append((jump[1], ()))
        elif switch:
            cases = [(label, int(number) % (1 << int(switch[1]))) for number, label in _CASE.findall(switch[4])]
            block.ways += [(label, ((switch[2], number, True),)) for label, number in cases]
            block.ways.append((switch[3], tuple((switch[2], number, False) for _, number in cases)))
        elif line.startswith("ret "):
            block.returns = True
        elif line.startswith("unreachable"):
            pass  # no execution comes here
        elif _TOUCHES_MEMORY.match(line):
            access = self._instruction(line)
            if access is not None:
                block.accesses.append(access)
            elif not any(re.search(rf"ptr {re.escape(name)}(?![\w.])", line) for name in self.others):
                raise UnreadableError(f"cannot judge `{line}`")
        elif re.match(r"^(indirectbr|callbr|catchswitch|resume)\b", line):
            raise UnreadableError(f"cannot judge `{line}`")

    def _instruction(self, line: str) -> tuple[str, Emitted] | None:
        for op, pattern in _PATTERNS.items():
            match = pattern.match(line)
            if match is None:
                continue
            parts = match.groupdict()
            if op != "fence" and parts["at"] not in self.cells:
                return None
            emitted = Emitted(
                op,
                self.cells.get(parts.get("at") or "", -1),
                int(parts.get("width") or 0),
                _order(parts["order"]),
                line,
                _order(parts.get("failure")),
                parts["scope"] or "",
                bool(parts.get("weak")),
            )
            return parts.get("result") or "", emitted
        return None


def _one_line(match: re.Match[str]) -> str:
    """The cases of a switch, which stand on a line each."""
    return "[ " + " ".join(match[1].split()) + " ]"


def _order(word: str | None) -> str:
    """LLVM's word in ours; ``unordered`` has none and stays."""
    return "relaxed" if word == "monotonic" else word or ""
