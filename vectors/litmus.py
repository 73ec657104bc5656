"""Files of litmus programs: what threads that share memory may observe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from halfulp.oracle.memory.catalogue import FAMILIES, Test, catalogue, find
from halfulp.oracle.memory.clauses import clauses_of
from halfulp.oracle.memory.cycles import named_by_orders, with_orders
from halfulp.oracle.memory.interleaving import interleaved
from halfulp.oracle.memory.mutants import MUTANTS, kills
from halfulp.oracle.memory.program import Outcome, Program, to_json
from halfulp.oracle.memory.search import allowed, verdict
from halfulp.oracle.sets import Verdict
from halfulp.vectors.files import Case, Content, Group, Settings, content
from halfulp.vectors.flags import in_order
from halfulp.vectors.identity import program_id
from halfulp.vectors.sources import litmus_reports

WEAK_IS = {
    Verdict.ALLOWED: "allowed",
    Verdict.FORBIDDEN: "forbidden",
    Verdict.UNSPECIFIED: "unspecified",
    Verdict.NO_CLAIM: "no_claim",
}
DTYPES = ("u32", "i32")
"""Locations of the tests; in the second only those whose meaning depends on the dtype."""

BY_DTYPE = "operation"
"""The family that depends on the dtype."""


def file_of(family: str, dtype: str) -> str:
    return f"litmus/{family.replace(' ', '-')}" + (f"-{dtype}" if family == BY_DTYPE else "")


@cache
def names() -> dict[str, tuple[str, str]]:
    """File names with the family and the dtype of their tests."""
    found = {file_of(family, dtype): (family, dtype) for family in FAMILIES for dtype in DTYPES}
    return {name: (family, "u32" if family != BY_DTYPE else dtype) for name, (family, dtype) in found.items()} | {
        "litmus/race": ("race", "u32"),
        "litmus/report": ("report", "u32"),
    }


def _rests_on(program: Program) -> tuple[str, ...]:
    """The clauses that a case rests on: with plain accesses also that those have no race, or what a race means."""
    plain = any(access.order is None for access in program.accesses)
    return (*clauses_of(program), *(["intent:11-i"] if plain else []))


def _programs(family: str, dtype: str) -> Iterator[tuple[Program, dict[str, str]]]:
    """Programs, each with what a case says of where it comes from."""
    if family == "race":
        for test in catalogue(dtype):
            if test.family == "plain":
                yield _unordered(test), {}
    elif family == "report":
        for record, found in litmus_reports():
            test = find(record["test"])
            orders = record["orders"]
            program = replace(with_orders(test.program, orders), name=f"report-{record['id'].lower()}")
            yield program, {"source": found.source, "note": found.note}
    else:
        yield from ((test.program, {}) for test in catalogue(dtype) if test.family == family)


def _unordered(test: Test) -> Program:
    """The same program with relaxed orders: nothing orders its plain accesses any more."""
    program = test.program
    orders = [None if access.order is None else "relaxed" for access in program.accesses]
    plain = replace(with_orders(program, orders), name=f"{program.name.partition('+')[0]}-unordered")
    return named_by_orders(plain)


def _values(program: Program, outcome: Outcome) -> list[int]:
    found = dict(outcome)
    return [found[name] for name in program.observe]


def case_of(program: Program, origin: dict[str, str]) -> Case:
    outcomes = allowed(program)
    killed = kills(program)
    weak = outcomes.verdict(program.weak)
    racy = bool(outcomes.races)
    flags = {"racy"} if racy else {"mutant"} if killed else set()
    flags |= {"public_report"} if "source" in origin else set()
    # Outcomes of a program with a race are left out: nothing is claimed of them.
    return {
        "id": program_id(to_json(program)),
        "program": to_json(program),
        "racy": racy,
        "allowed": sorted(_values(program, outcome) for outcome in outcomes.allowed) if not racy else [],
        "unspecified": sorted(_values(program, outcome) for outcome in outcomes.unspecified) if not racy else [],
        "unspecified_races": bool(outcomes.band_races),
        "weak_is": WEAK_IS[weak],
        "flags": in_order(flags),
        "kills": sorted(killed),
        **origin,
    }


def suspects() -> dict[str, Any]:
    """What is said of models that differ from the language's in one axiom."""
    return {
        name: {"summary": f"{model.summary[0].upper()}{model.summary[1:]}.", "clauses": [], "source": "classic"}
        for name, model in MUTANTS.items()
    }


def generate(name: str, settings: Settings) -> Content:
    """The file of one family."""
    family, dtype = names()[name]
    groups: dict[tuple[str, ...], list[Case]] = {}
    distinct: dict[str, None] = {}
    for program, origin in _programs(family, dtype):
        case = case_of(program, origin)
        if case["id"] not in distinct:
            distinct[case["id"]] = None
            groups.setdefault(_rests_on(program), []).append(case)
    about = {"race": "plain accesses that nothing orders", "report": "programs of public reports"} | FAMILIES
    return content(
        "litmus",
        name,
        about[family][0].upper() + about[family][1:] + ".",
        [Group(", ".join(clauses), clauses, cases) for clauses, cases in sorted(groups.items())],
        settings,
        oracle="an axiomatic memory model; all its consistent executions",
        formats=(dtype,),
        suspects=suspects(),
    )


def slow_case(program: Program, case: Case) -> list[str]:
    """What is wrong with the outcomes of a case, by other ways than the one that made it.

    Every interleaving is an execution, so its outcome has to be allowed; and each outcome is asked for by itself, by a
    search that looks for that one.
    """
    faults = []
    if case["racy"]:
        return [] if allowed(program).races else ["no race is found"]
    listed = {tuple(outcome) for outcome in case["allowed"]}
    for outcome in interleaved(program):
        if tuple(_values(program, outcome)) not in listed:
            faults.append(f"the interleaved outcome {_values(program, outcome)} is not in allowed")
    plain = any(access.order is None for access in program.accesses)
    for expected, field in ((Verdict.ALLOWED, "allowed"), (Verdict.UNSPECIFIED, "unspecified")):
        for values in case[field] if not plain else ():
            one = tuple(sorted(zip(program.observe, values, strict=True)))
            if verdict(program, one) is not expected:
                faults.append(f"{field} outcome {values} is {verdict(program, one).name.lower()}")
    weak = WEAK_IS[verdict(program)]
    if weak != case["weak_is"]:
        faults.append(f"the weak outcome is {weak}, not {case['weak_is']}")
    return faults
