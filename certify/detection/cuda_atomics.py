"""The detection table of atomics on CUDA: every suspect, compiled; looked for in the PTX, and in runs on a device."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from halfulp.adapters.protocol import LitmusOptions
from halfulp.backends.cuda.litmus_shelf import Shelf
from halfulp.certify.saboteurs import orders
from halfulp.certify.saboteurs.cuda import CudaSaboteur
from halfulp.certify.saboteurs.cuda_atomics import CUDA_LITMUS_SUSPECTS
from halfulp.oracle.memory.catalogue import catalogue
from halfulp.oracle.memory.program import Instruction, Load, Location, Program, Rmw, Store
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus import judge_histogram
from halfulp.properties.litmus_items import try_orders_of
from halfulp.properties.litmus_values import VALUE_PROGRAMS
from halfulp.properties.results import Tally

INSTANCES = 1 << 20
"""Of each program about values, in each of two ways."""

SOUGHT = 1 << 24
"""Of each other program, with settings in which its weak outcome shows most, or which overlap best."""

TESTS = (
    "CoRR+",
    "MP+",
    "MP-cas-failure",
    "MP-flag-write-rmw",
    "MP-flag-read-rmw",
    "MP-flag-rmw",
    "RS-add+",
    "SB-rmw-x",
)
"""Beginnings of the names of tests in the suite, beside those of atomicity."""


@dataclass(frozen=True)
class Row:
    """What was found of one suspect.

    Attributes:
        suspect, clause, fault: as in `CudaLitmusSuspect`.
        means: ``"ptx"`` or ``"gpu"``.
        where: the property, or the program whose run showed it; ``""`` where nothing did.
        forbidden, judged: accesses or instances, of how many.
        seconds: until it was found, with compilation.
        due: these means have to show it. Orders and scopes need not show on every device.
    """

    suspect: str
    clause: str
    fault: bool
    means: str
    where: str
    forbidden: int
    judged: int
    seconds: float
    due: bool

    @property
    def right(self) -> bool:
        """Found where it has to be, and nothing found of a variant that breaks nothing."""
        return bool(self.where) or not self.due if self.fault else not self.where and self.judged > 0


def by_ptx(name: str) -> Row:
    """Look at every access with every order."""
    suspect = CUDA_LITMUS_SUSPECTS[name]
    start = time.perf_counter()
    trial = try_orders_of(CudaSaboteur(f"{name}:compile-only"), "u64")
    hits = [finding for finding in trial.findings if not suspect.fault or suspect.clause in finding.clauses]
    where = hits[0].id if hits else ""
    forbidden = sum(tally.forbidden for tally in trial.tallies) if hits else 0
    seconds = time.perf_counter() - start
    return Row(name, suspect.clause, suspect.fault, "ptx", where, forbidden, trial.judged, seconds, suspect.ptx)


@cache
def value_suite() -> tuple[Program, ...]:
    """Programs about values, on a signed and an unsigned dtype: some of each kind."""
    return tuple(
        program
        for dtype in ("u64", "i64")
        for program in VALUE_PROGRAMS[dtype]
        if not program.name[-1].isdigit() or int(program.name.rpartition("-")[2]) < 4
    )


@cache
def forbidding_suite() -> tuple[Program, ...]:
    """Programs with a forbidden outcome: atomicity, and orders of every kind of access."""
    tests = [
        test.program
        for test in catalogue("u64")
        if test.verdict is Verdict.FORBIDDEN and (test.family == "atomicity" or test.name.startswith(TESTS))
    ]
    return (*tests, exchanges("acq_rel"))


def exchanges(order: str) -> Program:
    """Store buffering with exchanges of a value for itself in between: whichever comes second has to see the first."""

    def thread(mine: str, other: str) -> tuple[Instruction, ...]:
        return Store(mine, 1), Rmw("r0", "exchange", "z", 0, order), Load("r1", other)

    locations = tuple(Location(name, "u64") for name in ("x", "y", "z"))
    weak = (("0:r1", 0), ("1:r1", 0))
    return Program(f"SB-exchange-{order}", locations, (thread("x", "y"), thread("y", "x")), weak)


def by_running(name: str) -> Row:
    """Run the programs until an outcome is forbidden, those first that are about the clause. Needs a device."""
    suspect = CUDA_LITMUS_SUSPECTS[name]
    shelf = Shelf.of(suspect.accesses)
    options = LitmusOptions(placement="apart", synchronisation="start")
    start = time.perf_counter()
    judged = forbidden = 0
    where = ""
    suites = (value_suite(), forbidding_suite())
    for programs in reversed(suites) if suspect.clause in orders.CLAUSES else suites:
        shelf.prepare(programs)
        for program in programs:
            litmus = shelf.litmus(program)
            if program.weak:
                settings = litmus.tune(options, litmus.showing(program.weak))
                run = litmus.run_with(settings, replace(options, instances=SOUGHT))
            else:
                run = litmus.run(replace(options, instances=INSTANCES))
            judged += run.instances
            tally = Tally(program.name, "11")
            if judge_histogram(program, run.histogram, tally) is not None:
                where, forbidden = program.name, tally.forbidden
                break
        if where:
            break
    seconds = time.perf_counter() - start
    return Row(name, suspect.clause, suspect.fault, "gpu", where, forbidden, judged, seconds, not suspect.ptx)


def detection_table(*, device: bool) -> Iterator[Row]:
    """All rows: of the PTX, and where there is a device of runs too."""
    for name in CUDA_LITMUS_SUSPECTS:
        yield by_ptx(name)
        if device:
            yield by_running(name)
