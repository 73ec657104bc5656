"""Which litmus programs a run tries: the catalogue and the programs about values, by family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from halfulp.adapters.protocol import Adapter, HasLitmus, Options, PreparesLitmus
from halfulp.oracle.memory.catalogue import FAMILIES, FIRST, catalogue, operations
from halfulp.oracle.memory.program import DTYPES, Program, with_dtype
from halfulp.properties.litmus import NO_LITMUS, try_instructions, try_litmus
from halfulp.properties.litmus_mutants import mutant_of
from halfulp.properties.litmus_values import ORDER_PROGRAMS, VALUE_PROGRAMS
from halfulp.properties.plan import Plan
from halfulp.properties.results import Tally, Trial

VALUES = "values"
"""The family of `VALUE_PROGRAMS`."""

MINIMAL = "minimal set"
"""The tests of the catalogue that together kill every mutant of the model: they run before all others."""

GROUPS = (MINIMAL, *FAMILIES, VALUES)
"""Groups of programs: the minimal set, what else is in each family of the catalogue, and values."""


@cache
def programs(family: str, dtype: str) -> tuple[Program, ...]:
    """The programs of a group on one dtype."""
    if family == VALUES:
        return VALUE_PROGRAMS[dtype]
    tests = [(test.family, test.program) for test in catalogue() if test.family != "operation"]
    tests += [("operation", program) for program in operations(dtype)]
    return tuple(with_dtype(one, dtype) for of, one in tests if family == (MINIMAL if one.name in FIRST else of))


def try_family(adapter: Adapter, family: str, plan: Plan) -> Trial:
    """Run a family; see `family_trials`."""
    trial = Trial()
    for tried in family_trials(adapter, family, plan):
        trial.tallies += tried.tallies
        trial.findings += tried.findings
    return trial


def family_trials(adapter: Adapter, family: str, plan: Plan) -> Iterator[Trial]:
    """The trials of a family, program by program.

    A deep run tries every program on every dtype. Otherwise each is tried on one of them, in turn: the values of the
    catalogue fit into all, and no order depends on the width. Optimisation levels take turns in the same way.
    """
    if not isinstance(adapter, HasLitmus):
        yield Trial([Tally(f"litmus[{family}]", "11", "unsupported", NO_LITMUS)])
        return
    columns = [programs(family, dtype) for dtype in DTYPES]
    levels = tuple(adapter.opt_levels)
    jobs: dict[int, list[Program]] = {}
    for place, column in enumerate(columns):
        for number, program in enumerate(column):
            if plan.depth == "deep" or place == (number + plan.seed) % len(columns):
                level = levels[0] if plan.depth == "quick" else levels[(number // len(columns) + place) % len(levels)]
                jobs.setdefault(level, []).append(program)
    evidence = plan.depth != "quick"
    for level, chosen in jobs.items():
        if isinstance(adapter, PreparesLitmus):
            beside = [mutant_of(program) for program in chosen if evidence and program.weak]
            adapter.prepare_litmus([*chosen, *(m.program for m in beside if m)], Options(level), runs=True)
        for program in chosen:
            yield try_litmus(adapter, program, plan, level=level, evidence=evidence)


def try_family_instructions(adapter: Adapter, family: str, plan: Plan) -> Trial:
    """Look at the instructions of a family, on one dtype: the others differ in width only, see `try_orders_of`."""
    dtype = DTYPES[plan.seed % len(DTYPES)]
    return try_instructions(adapter, programs(family, dtype), f"{family},{dtype}".replace(" ", "-"))


def try_orders_of(adapter: Adapter, dtype: str) -> Trial:
    """Look at the instructions of every access with every order."""
    return try_instructions(adapter, ORDER_PROGRAMS[dtype], f"orders,{dtype}")
