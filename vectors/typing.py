"""Files of type rules: programs that the language accepts, and programs that it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from halfulp.oracle import kernel as kernels
from halfulp.oracle import source as sources
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import Refused
from halfulp.oracle.source import Call, Literal, Parameter, Source
from halfulp.oracle.suspects import FAULTS
from halfulp.oracle.typing import acceptances, check, elaborate, rejections
from halfulp.vectors.files import Case, Content, Group, Settings, VectorFileError, content
from halfulp.vectors.identity import program_id
from halfulp.vectors.sources import kept, typing_reports

KILLERS = 3
"""Programs for each suspect."""

PER_KIND = 2
"""Programs for each clause and operation; accepted ones for each operation."""

Program = Kernel | Source
SUSPECTS = {name: record.typing_rule for name, record in FAULTS.items() if record.typing_rule is not None}


def as_json(program: Program) -> dict[str, Any]:
    if isinstance(program, Kernel):
        return {"kernel": kernels.to_json(program)}
    return sources.to_json(program)


def from_json(data: dict[str, Any]) -> Program:
    """The inverse of `as_json`."""
    return kernels.from_json(data["kernel"]) if "kernel" in data else sources.from_json(data)


def _killed(program: Program, *, accepted: bool) -> list[str]:
    """Suspects that say the opposite."""
    return sorted(name for name, rule in SUSPECTS.items() if rule(program) is not None and rule(program) != accepted)


def _operation(program: Program) -> str:
    if isinstance(program, Source):
        return program.result.op if isinstance(program.result, Call) else "literal"
    return next((value.op for value in program.values if isinstance(value, kernels.Apply)), "")


def _selected(programs: Sequence[tuple[Program, str]], *, accepted: bool) -> Iterator[tuple[int, list[str]]]:
    """Positions of the programs that are kept, with the suspects that each kills."""
    order = sorted(range(len(programs)), key=lambda i: program_id(as_json(programs[i][0])))
    killers: dict[str, int] = {}
    kinds: dict[tuple[str, str, type], int] = {}
    for position in order:
        program, clause = programs[position]
        killed = _killed(program, accepted=accepted)
        kind = (clause, _operation(program), type(program))
        fresh = [name for name in killed if killers.get(name, 0) < KILLERS]
        if fresh or kinds.get(kind, 0) < PER_KIND:
            kinds[kind] = kinds.get(kind, 0) + 1
            for name in killed:
                killers[name] = killers.get(name, 0) + 1
            yield position, killed


def _case(program: Program, clause: str, reason: str, killed: list[str]) -> Case:
    data = as_json(program)
    return {
        "id": program_id(data),
        "program": data,
        "verdict": "rejected" if clause else "accepted",
        "clause": clause,
        "reason": reason,
        "flags": ["rejected" if clause else "accepted"],
        "kills": killed,
    }


def _reported() -> Iterator[Case]:
    for record, found in typing_reports():
        literal = Literal(json.loads(record["literal"]))
        program = Source(Call(record["op"], (Parameter("x", record["operand"]), literal)))
        answer = elaborate(program)
        if not isinstance(answer, Refused):
            raise VectorFileError(f"report {record['id']}: the language does not refuse {program}")
        case = _case(program, answer.clause, answer.reason, _killed(program, accepted=False))
        case["flags"] = ["public_report", "rejected"]
        yield case | {"source": found.source, "note": found.note}


def _kept(file: str) -> Iterator[Case]:
    """Programs of an earlier generator."""
    for data in kept().get(file, ()):
        program = from_json(data)
        answer = check(program) if isinstance(program, Kernel) else elaborate(program)
        if isinstance(answer, Refused):
            yield _case(program, answer.clause, answer.reason, _killed(program, accepted=False))
        elif isinstance(answer, Kernel):
            case = _case(program, "", "", _killed(program, accepted=True))
            yield case | {"elaborated": kernels.to_json(answer)}


@cache
def _rejected() -> tuple[Case, ...]:
    found = {case["id"]: case for case in (*_reported(), *_kept("typing/rejected"))}
    programs = rejections()
    for position, killed in _selected([(p, refused.clause) for p, refused in programs], accepted=False):
        program, refused = programs[position]
        case = _case(program, refused.clause, refused.reason, killed)
        found.setdefault(case["id"], case)
    return tuple(sorted(found.values(), key=lambda case: str(case["id"])))


@cache
def _accepted() -> tuple[Case, ...]:
    programs = acceptances()
    found = {case["id"]: case for case in _kept("typing/accepted")}
    for position, killed in _selected([(p, "") for p, _ in programs], accepted=True):
        program, elaborated = programs[position]
        case = _case(program, "", "", killed) | {"elaborated": kernels.to_json(elaborated)}
        found.setdefault(case["id"], case)
    return tuple(sorted(found.values(), key=lambda case: str(case["id"])))


NAMES = ("typing/rejected", "typing/accepted")


def generate(name: str, settings: Settings) -> Content:
    """The programs of one verdict."""
    rejected = name == "typing/rejected"
    groups: dict[str, list[Case]] = {}
    for case in _rejected() if rejected else _accepted():
        groups.setdefault(case["clause"], []).append(case)
    return content(
        "typing",
        name,
        "Programs that the language refuses." if rejected else "Programs that it accepts, and what they mean.",
        [Group(clause or "accepted", (clause,) if clause else (), cases) for clause, cases in sorted(groups.items())],
        settings,
        oracle="typing rules",
    )


def slow_case(case: Case) -> list[str]:
    """What is wrong with a case: its one program is typed by itself, apart from the tables that it was taken from."""
    program = from_json(case["program"])
    answer = check(program) if isinstance(program, Kernel) else elaborate(program)
    if case["verdict"] == "rejected":
        if not isinstance(answer, Refused):
            return ["the language does not refuse the program"]
        return [] if answer.clause == case["clause"] else [f"{answer.clause} refuses it, not {case['clause']}"]
    if not isinstance(answer, Kernel):
        return ["the language does not accept the program"]
    return [] if kernels.to_json(answer) == case["elaborated"] else ["it means another kernel"]
