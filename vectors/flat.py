"""Vector files as lines of plain fields, for programs that have no JSON parser (docs/reference/vector-format.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from halfulp.vectors.files import Case, Content, cases_of

KINDS = ("operation", "function", "kernel", "litmus")
"""Kinds that have a flat form."""

Ranges = list[list[str]]


def _ranges(ranges: Ranges) -> list[str]:
    return [str(len(ranges)), *(end for pair in ranges for end in pair)]


def _set(entry: Any) -> list[str]:
    return _ranges(entry["allowed"]) + _ranges(entry["unspecified"])


def _line(kind: str, case: Case) -> str:
    if kind == "litmus":
        names = case["program"]["observe"]
        fields = [case["id"], str(int(case["racy"])), str(int(case["unspecified_races"])), str(len(names))]
        for outcomes in (case["allowed"], case["unspecified"]):
            fields += [str(len(outcomes)), *(str(value) for outcome in outcomes for value in outcome)]
        return " ".join(fields)
    fields = [case["id"], str(len(case["inputs"])), *case["inputs"]]
    if kind == "kernel":
        fields += [str(len(case["nearest"])), *case["nearest"], str(len(case["alternatives"]))]
        fields += [field for alternative in case["alternatives"] for entry in alternative for field in _set(entry)]
        return " ".join(fields)
    fields += [case["nearest"], *_set(case)]
    if kind == "function":
        exact = case["exact"]
        fields += [exact["kind"], str(int(exact["negative"])), exact["significand"], str(exact["exponent"])]
        fields.append(str(int(exact["inexact"])))
    return " ".join(fields)


def text_of(data: Content) -> str:
    """The file as text. KeyError for a kind that has no flat form."""
    if data["kind"] not in KINDS:
        raise KeyError(data["kind"])
    head = [f"# {data['format']} {data['kind']} {data['name']}", f"# {data['about']}"]
    if "operation" in data:
        operation = data["operation"]
        attrs = "".join(f" {name}={str(setting).lower()}" for name, setting in sorted(operation["attrs"].items()))
        head.append(f"# {operation['op']} {' '.join(operation['args'])} -> {operation['result']}{attrs}")
    head.append(f"# {data['count']} cases, {data['generator']['command']}")
    return "\n".join((*head, *(_line(data["kind"], case) for case in cases_of(data)))) + "\n"


# Reading, for the tests and as a model of how it is done.


class _Fields:
    def __init__(self, line: str) -> None:
        self.rest = line.split(" ")

    def one(self) -> str:
        return self.rest.pop(0)

    def count(self) -> int:
        return int(self.rest.pop(0))

    def many(self, count: int) -> list[str]:
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def ranges(self) -> Ranges:
        ends = self.many(2 * self.count())
        return [[low, high] for low, high in zip(ends[::2], ends[1::2], strict=True)]

    def set(self) -> dict[str, Ranges]:
        return {"allowed": self.ranges(), "unspecified": self.ranges()}

    def outcomes(self, names: int) -> list[list[int]]:
        return [[int(value) for value in self.many(names)] for _ in range(self.count())]


def _case(kind: str, line: str) -> Case:
    fields = _Fields(line)
    case: Case = {"id": fields.one()}
    if kind == "litmus":
        case |= {"racy": fields.one() == "1", "unspecified_races": fields.one() == "1"}
        names = fields.count()
        return case | {"allowed": fields.outcomes(names), "unspecified": fields.outcomes(names)}
    case["inputs"] = fields.many(fields.count())
    if kind == "kernel":
        outputs = fields.count()
        case["nearest"] = fields.many(outputs)
        case["alternatives"] = [[fields.set() for _ in range(outputs)] for _ in range(fields.count())]
        return case
    case |= {"nearest": fields.one(), **fields.set()}
    if kind == "function":
        case["exact"] = {
            "kind": fields.one(),
            "negative": fields.one() == "1",
            "significand": fields.one(),
            "exponent": fields.count(),
            "inexact": fields.one() == "1",
        }
    return case


def cases(lines: Sequence[str]) -> Iterator[Case]:
    """The cases of a flat file, with the fields that it has."""
    kind = lines[0].split(" ")[2]
    for line in lines:
        if not line.startswith("#"):
            yield _case(kind, line.rstrip("\n"))
