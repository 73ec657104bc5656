"""Litmus programs and contests on the CPU backend, and what judges them."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from halfulp.adapters.discovery import AdapterError, load
from halfulp.adapters.numpy_adapter import NumpyAdapter
from halfulp.adapters.protocol import (
    Contest,
    ContestRun,
    HasContests,
    HasLitmus,
    HasLitmusArtifact,
    LitmusOptions,
    LitmusRun,
    Options,
    Rejected,
    Stress,
    UnsupportedError,
)
from halfulp.backends.cpu import CpuAdapter
from halfulp.backends.cpu.litmus import Counter, Litmus
from halfulp.backends.cpu.litmus_native import Cells, Meeting, context, progress_counters
from halfulp.backends.cpu.litmus_threads import processors
from halfulp.certify.detection.atomics import detect
from halfulp.certify.failure import failure_text
from halfulp.certify.report import _evidence
from halfulp.certify.saboteurs.atomics import LITMUS_SUSPECTS, ModelDevice
from halfulp.oracle.kernel import one_node
from halfulp.oracle.memory.catalogue import catalogue, find
from halfulp.oracle.memory.histories import KINDS, judge
from halfulp.oracle.memory.interleaving import sequential
from halfulp.oracle.memory.program import DTYPES, Cas, If, Load, Location, Program, Rmw, Store, with_dtype
from halfulp.oracle.memory.search import allowed, verdict
from halfulp.oracle.sets import Verdict
from halfulp.oracle.suspects import SUSPECTS
from halfulp.properties import contests
from halfulp.properties.litmus import CONFIGURATIONS, inspect, try_instructions, try_litmus, try_orders
from halfulp.properties.litmus_accesses import UnreadableError, enough
from halfulp.properties.litmus_drawn import candidates, smaller, try_drawn
from halfulp.properties.litmus_items import try_family, try_orders_of
from halfulp.properties.litmus_mutants import mutant_of
from halfulp.properties.litmus_values import ORDER_PROGRAMS, VALUE_PROGRAMS
from halfulp.properties.litmus_wanted import wanted_paths
from halfulp.properties.plan import Plan
from halfulp.properties.replay import RecordedLitmus, decode

CPU = CpuAdapter()
QUICK = Plan(0, "quick")
X, Y = Location("x"), Location("y")
SB = Program(
    "SB",
    (X, Y),
    ((Store("x", 1), Load("r0", "y")), (Store("y", 1), Load("r0", "x"))),
    (("0:r0", 0), ("1:r0", 0)),
)
MP_NAME = "MP+rlx-rel+acq-rlx"
MP = Program(
    "MP",
    (X, Y),
    ((Store("x", 1), Store("y", 1, "release")), (Load("r0", "y", "acquire"), Load("r1", "x"))),
    (("1:r0", 1), ("1:r1", 0)),
)


def run(program: Program, options: LitmusOptions) -> LitmusRun:
    answer = CPU.run_litmus(program, options)
    assert isinstance(answer, LitmusRun)
    return answer


# The runner.


def test_the_backend_offers_it_all() -> None:
    assert isinstance(CPU, HasLitmus)
    assert isinstance(CPU, HasLitmusArtifact)
    assert isinstance(CPU, HasContests)
    assert not isinstance(NumpyAdapter(), HasLitmus)


@pytest.mark.parametrize("placement", ["apart", "together", "free"])
@pytest.mark.parametrize("synchronisation", ["each", "start"])
@pytest.mark.parametrize("level", [0, 3])
def test_every_way_to_run(placement: str, synchronisation: str, level: int) -> None:
    stress = Stress(shuffle=level == 0, spacing=8 << level, delay=7)
    options = LitmusOptions(1 << 10, placement, synchronisation, stress, 3, level)  # type: ignore[arg-type]
    for program in (SB, with_dtype(MP, "i64")):
        got = run(program, options)
        assert got.instances == 1 << 10
        assert got.seconds > 0
        assert set(got.histogram) <= set(allowed(program).allowed)


def test_rounds_add_up_and_use_fresh_cells() -> None:
    program = Program("count", (replace(X, initial=5),), ((Rmw("r0", "add", "x", 1),),), (), ("0:r0", "x"))
    got = run(program, LitmusOptions(100_000))
    assert got.instances >= 100_000
    assert list(got.histogram) == [(("0:r0", 5), ("x", 6))]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_have_their_dtype(dtype: str) -> None:
    for program in VALUE_PROGRAMS[dtype][::7]:
        if len(program.threads) == 1:
            assert set(run(program, LitmusOptions(8)).histogram) == sequential(program)


def test_branches_and_unwritten_registers() -> None:
    then = (Load("r1", "y"), If("r1", 7, (Store("y", 9),)))
    thread = (Cas("r0", "s0", "x", 0, 1), If("s0", 1, then, (Load("r2", "y"),)), Load("r3", "x"))
    for level in (0, 3):
        for x, y in ((0, 7), (0, 6), (3, 7)):
            program = Program("branch", (replace(X, initial=x), replace(Y, initial=y)), (thread,))
            program = replace(program, observe=(*program.registers, "x", "y"))
            assert set(run(program, LitmusOptions(4, opt_level=level)).histogram) == sequential(program)


def test_a_thread_whose_partner_never_comes_goes_on_alone() -> None:
    """Meeting is a matter of timing: with one of two threads missing, the other one ends all the same."""
    litmus = Litmus(SB, 3)
    cells = [Cells.make(64, "u4", 64) for _ in range(2)]
    out = np.full(64, 9, np.uint32)
    words = context(Meeting(2, each=True, spins=100), progress_counters(2), 1, cells, [out])
    thread = threading.Thread(target=lambda: litmus._functions[0](64, words.ctypes.data), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert out.tolist() == [0] * 64


def test_shuffled_cells_are_a_permutation() -> None:
    cells = Cells.make(128, "i8", 64, factor=38, shift=77)
    assert sorted(cells.order.tolist()) == list(range(128))
    assert cells.values.ctypes.data % 128 == 0


def test_processors() -> None:
    assert processors("free", 3, 0) == [None] * 3
    assert len(set(processors("together", 3, 0))) == 1
    assert len(processors("apart", 5, 1)) == 5


def test_counting_outcomes() -> None:
    counter = Counter(("b", "a"))
    counter.add(4, [np.array([1, 1, 1, -5], np.int64), np.array([2**63, 2**63, 3, 3], np.uint64)])
    counter.add(2, [np.array([1, 2], np.int64), np.array([3, 3], np.uint64)])
    assert counter.histogram() == {
        (("a", 3), ("b", -5)): 1,
        (("a", 3), ("b", 1)): 2,
        (("a", 3), ("b", 2)): 1,
        (("a", 2**63), ("b", 1)): 2,
    }
    empty = Counter(())
    empty.add(7, [])
    assert empty.histogram() == {(): 7}


def test_ill_typed_programs_are_rejected() -> None:
    for access in (Load("r", "x", "release"), Store("x", 1, "acq_rel"), Rmw("r", "add", "x", 1, "relaxed", "block")):
        program = Program("bad", (X,), ((access,),), (), ("x",))
        assert isinstance(CPU.run_litmus(program, LitmusOptions(1)), Rejected)
        with pytest.raises(UnsupportedError):
            CPU.litmus_artifact(program, Options(0))
    assert isinstance(CPU.run_contest(Contest("add", "i32", 0, (), "seq_cst"), LitmusOptions()), Rejected)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_contests_give_possible_histories(kind: str, threads: int) -> None:
    for dtype in ("i32", "u64"):
        asked = contests.contest(kind, dtype, QUICK, threads)
        got = CPU.run_contest(asked, LitmusOptions(opt_level=3))
        assert isinstance(got, ContestRun)
        assert judge(contests.history(asked, got)).verdict is Verdict.ALLOWED


# Instructions.


def test_orders_are_derived_in_the_artifact() -> None:
    for level in (0, 3):
        for order, failure in (("relaxed", "monotonic"), ("release", "monotonic"), ("acq_rel", "acquire")):
            program = Program("c", (X,), ((Cas("r", "s", "x", 0, 1, order),),))
            text = CPU.litmus_artifact(program, Options(level))
            assert f"{order.replace('relaxed', 'monotonic')} {failure}, align 4" in text


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_backend_keeps_every_order(dtype: str) -> None:
    trial = try_orders_of(CPU, dtype)
    assert not trial.findings
    assert all(tally.allowed for tally in trial.tallies)


def ir(*threads: str) -> str:
    return "\n".join(
        f"define void @thread{n}(ptr noundef captures(none) %x, ptr initializes((0, 4)) %y, ptr %out) #0 {{\n{t}\n"
        "  ret void\n}\n"
        for n, t in enumerate(threads)
    )


STORES = "  store atomic i32 1, ptr %x monotonic, align 4\n"
LOADS = "  %a = load atomic i32, ptr %y acquire, align 4\n  %b = load atomic i32, ptr %x monotonic, align 4"


@pytest.mark.parametrize(
    ("flag", "clause"),
    [
        ("  store atomic i32 1, ptr %y release, align 4", ""),
        ("  store atomic i32 1, ptr %y seq_cst, align 4", ""),
        ("  fence release\n  store atomic i32 1, ptr %y monotonic, align 4", ""),
        ("  store atomic i32 1, ptr %y monotonic, align 4\n  fence release", "intent:11-d"),
        ('  fence syncscope("singlethread") release\n  store atomic i32 1, ptr %y monotonic, align 4', "intent:11-d"),
        ("  store atomic i32 1, ptr %y monotonic, align 4", "intent:11-d"),
        ("  store atomic i32 1, ptr %y unordered, align 4", "intent:11-d"),
        ("  store i32 1, ptr %y, align 4", "intent:11-a"),
        ("  store atomic i64 1, ptr %y release, align 8", "intent:11-b"),
        ('  store atomic i32 1, ptr %y syncscope("agent") release, align 4', "intent:11-h"),
        ("", "intent:11-a"),
        ("  store atomic i32 1, ptr %y release, align 4\n  store atomic i32 2, ptr %y release, align 4", "intent:11-b"),
        ("  %p = getelementptr i8, ptr %y, i64 0\n  store atomic i32 1, ptr %p release, align 4", "intent:11-b"),
    ],
)
def test_judging_a_release_store(flag: str, clause: str) -> None:
    faults = inspect(MP, ir(STORES + flag, LOADS))
    assert [fault.clause for fault in faults] == ([clause] if clause else [])


def test_judging_a_read_modify_write() -> None:
    program = Program("rmw", (X, Y), ((Rmw("r", "max", "x", 3, "acq_rel"),),))
    loop = (
        "  %s = load atomic i32, ptr %x monotonic, align 4\n"
        "  %c = cmpxchg weak ptr %x, i32 %s, i32 %n acq_rel acquire, align 4"
    )
    assert not inspect(program, ir("  %a = atomicrmw umax ptr %x, i32 3 acq_rel, align 4"))
    assert not inspect(program, ir(loop))
    for wrong in (
        "  %a = atomicrmw umax ptr %x, i32 3 acquire, align 4",
        "  %a = atomicrmw umax ptr %y, i32 3 acq_rel, align 4",
        "  %a = load atomic i32, ptr %x acquire, align 4\n  store atomic i32 %b, ptr %x release, align 4",
        "  store atomic i32 3, ptr %x release, align 4",
    ):
        assert inspect(program, ir(wrong))


GUARDED = Program(
    "guarded",
    (X, Y),
    (
        (Store("x", 1, None), Store("y", 1, "release")),
        (
            Load("r0", "y", "acquire"),
            If("r0", 1, (Load("r1", "x", None), Store("x", 2, None), Store("y", 2, "release"))),
        ),
    ),
)
TESTED = "  %a = load atomic i32, ptr %y acquire, align 4\n  %c = icmp eq i32 %a, 1\n"
PAYLOAD = "  %b = load i32, ptr %x, align 4\n"
WRITES = "  store i32 2, ptr %x, align 4\n  store atomic i32 2, ptr %y release, align 4\n"
GO = "  br i1 %c, label %then, label %after\nthen:\n"
JOIN = "  br label %after\nafter:"


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (TESTED + GO + PAYLOAD + WRITES + JOIN, []),
        (TESTED + PAYLOAD + GO + WRITES + JOIN, []),  # a load too many on the other path
        (TESTED.replace("eq", "ne") + GO.replace("then, label %after", "after, label %then") + WRITES + JOIN, []),
        (
            TESTED
            + "  switch i32 %a, label %after [\n    i32 1, label %then\n    i32 3, label %after\n  ]\nthen:\n"
            + PAYLOAD
            + WRITES
            + JOIN,
            [],
        ),
        (PAYLOAD + TESTED + GO + WRITES + JOIN, ["intent:11-d"]),
        (TESTED + PAYLOAD + "  store i32 2, ptr %x, align 4\n" + GO + WRITES[31:] + JOIN, ["intent:11-d"]),
        (TESTED + GO + PAYLOAD + WRITES.replace("release", "monotonic") + JOIN, ["intent:11-d"]),
        (TESTED + GO + PAYLOAD + JOIN, ["intent:11-a"]),
        (TESTED + PAYLOAD + WRITES, ["intent:11-b"]),
        (TESTED.replace("eq", "ne") + GO + PAYLOAD + WRITES + JOIN, ["intent:11-a", "intent:11-b"]),
    ],
    ids=[
        "right",
        "load-early",
        "inverted-twice",
        "switch",
        "load-before-acquire",
        "store-always",
        "relaxed",
        "lost",
        "no-branch",
        "inverted",
    ],
)
def test_judging_branches(body: str, faults: list[str]) -> None:
    first = "  store i32 1, ptr %x, align 4\n  store atomic i32 1, ptr %y release, align 4"
    assert sorted({fault.clause for fault in inspect(GUARDED, ir(first, body))}) == faults


def test_paths_of_a_program() -> None:
    """What is not written on a path is 0 there; conditions that contradict each other are no path."""
    body = (
        Load("r0", "x"),
        If("r0", 1, (Cas("r1", "s1", "y", 0, 1),)),
        If("s1", 1, (Store("x", 2),)),
        If("r0", 1, (), (Store("x", 3),)),
    )
    program = Program("paths", (X, Y), (body,))
    paths = wanted_paths(program, body)
    assert [len(path.accesses) for path in paths] == [3, 2, 2]
    assert all(path.needed for path in paths)
    known = (Store("x", 1, None), Load("r0", "x", None), If("r0", 1, (Store("y", 1),)))
    assert not any(path.needed for path in wanted_paths(Program("known", (X, Y), (known,)), known))


@pytest.mark.parametrize("level", [0, 3])
def test_branches_of_the_backend_are_judged(level: int) -> None:
    for test in catalogue():
        if any(isinstance(instruction, If) for thread in test.program.threads for instruction in thread):
            assert inspect(test.program, CPU.litmus_artifact(test.program, Options(level))) == []


def test_what_cannot_be_read_is_not_judged() -> None:
    with pytest.raises(UnreadableError):
        inspect(MP, "ret void")
    with pytest.raises(UnreadableError):
        inspect(MP, ir(STORES + "  call void @publish(ptr %y)", LOADS))
    with pytest.raises(UnreadableError):
        inspect(MP, ir(STORES))


def test_strength_of_orders() -> None:
    table = {
        (emitted, wanted): enough(emitted, wanted)
        for emitted in ("relaxed", "acquire", "release", "acq_rel")
        for wanted in ("relaxed", "acquire", "release", "acq_rel")
    }
    assert sum(table.values()) == 4 + 2 + 2 + 1
    assert not enough("unordered", "relaxed")


# Evidence.


def test_mutants_may_show_the_weak_outcome() -> None:
    without = []
    for test in catalogue():
        if test.verdict is Verdict.FORBIDDEN:
            mutant = mutant_of(test.program)
            if mutant is None:
                without.append(test.family)
            else:
                assert verdict(mutant.program, test.program.weak) is Verdict.ALLOWED
    assert set(without) <= {"operation", "thin air"}  # what a program cannot do wrong, only an operation


def test_evidence_stands_beside_not_seen() -> None:
    trial = try_litmus(CPU, MP, QUICK)
    assert not trial.findings
    assert len(trial.tallies) == len(CONFIGURATIONS)
    for tally in trial.tallies:
        assert set(tally.evidence) == {"instances", "per_second", "interleaved", "mutant"}
        assert tally.evidence["instances"] == tally.allowed
        assert 0 <= tally.evidence["interleaved"] <= 1
    lines = "\n".join(_evidence(trial.tallies))
    assert "instances" in lines
    assert "forbidden outcomes were shown by a mutant" in lines
    assert "mutant" not in try_litmus(CPU, SB, QUICK).tallies[0].evidence
    assert _evidence([]) == []


def test_a_mutant_that_shows_the_outcome_is_counted() -> None:
    trial = try_litmus(ModelDevice(), MP, QUICK)
    assert not trial.findings
    assert trial.tallies[0].evidence["mutant"] == pytest.approx(0.25)


def test_a_forbidden_outcome_is_explained() -> None:
    trial = try_litmus(LITMUS_SUSPECTS["model_acquire_load_relaxed"].make(), MP, QUICK)
    (finding,) = trial.findings
    assert finding.clause == "intent:11-d"
    assert finding.forbidden > 0
    assert "1:r0=1, 1:r1=0 is forbidden" in finding.kernel
    assert "CoWR" in finding.kernel
    assert {name for name, *shares in finding.suspects if shares == [1, 0]} == set(find(MP_NAME).kills)
    assert "acquire_load_relaxed (an acquire load makes nothing visible)" in " ".join(
        failure_text(finding, "x").split()
    )


def test_backends_without_atomics_are_counted() -> None:
    backend = NumpyAdapter()
    trials = (
        try_family(backend, "coherence", QUICK),
        try_orders(backend, "intent:11-e"),
        try_instructions(backend, ORDER_PROGRAMS["i32"], "orders"),
        contests.try_contest(backend, "add", "i32", QUICK),
    )
    for trial in trials:
        assert not trial.findings
        assert {tally.state for tally in trial.tallies} == {"unsupported"}
        assert all(tally.reason for tally in trial.tallies)


# Drawn programs.


def test_drawn_programs_show_nothing_on_a_right_backend() -> None:
    for backend in (CPU, ModelDevice()):
        trial = try_drawn(backend, QUICK)
        assert not trial.findings
        assert sum(tally.allowed for tally in trial.tallies) > 10_000
    assert try_drawn(NumpyAdapter(), QUICK).tallies[0].state == "unsupported"


@pytest.mark.parametrize(
    ("name", "clause", "accesses"),
    [
        ("model_no_corr", "intent:11-b", 3),
        ("model_cas_success_inverted", "intent:11-c", 1),
        ("rmw_returns_new", "intent:11-b", 1),
        ("acquire_load_relaxed", "intent:11-d", 1),
        ("guarded_release_relaxed", "intent:11-d", 2),
    ],
)
def test_drawn_programs_shrink_to_a_small_one(name: str, clause: str, accesses: int) -> None:
    trial = try_drawn(LITMUS_SUSPECTS[name].make(), Plan(1, "standard"))
    (finding,) = trial.findings
    assert finding.clause == clause
    recorded = decode(finding.token)
    assert isinstance(recorded, RecordedLitmus)
    assert len(recorded.program.accesses) <= accesses
    assert all(access.order == "relaxed" for access in recorded.program.accesses) == (clause != "intent:11-d")


def test_simpler_programs_are_programs_on_what_they_use() -> None:
    thread = (Cas("r0", "s0", "x", 1, 2, "acq_rel"), If("s0", 1, (Store("y", 5), Load("r1", "y"))), Store("x", "r0"))
    program = Program("p", (replace(X, dtype="i64", initial=7), replace(Y, dtype="i64")), (thread, (Load("a", "x"),)))
    found = list(smaller(program))
    assert any(len(one.threads) == 1 for one in found)
    assert any(one.accesses[0].order == "release" for one in found)
    assert any(one.location("x").dtype == "u32" for one in found)
    assert all({location.name for location in one.locations} == {a.location for a in one.accesses} for one in found)
    assert not list(smaller(Program("least", (X,), ((Load("r", "x"),),))))[2:]


def test_what_is_drawn_can_be_enumerated() -> None:
    assert candidates(SB) == 2 * 2
    assert candidates(Program("inc", (X,), (((Rmw("r", "add", "x", 1),),) * 3))) == 3**3


# Suspects.


def test_there_are_enough_suspects() -> None:
    assert sum(suspect.fault for suspect in LITMUS_SUSPECTS.values()) >= 25
    assert all(suspect.summary and bool(suspect.clauses) == suspect.fault for suspect in LITMUS_SUSPECTS.values())


def test_suspects_are_backends_by_name() -> None:
    """Wrong in their atomics, and the reference in all else."""
    assert not set(LITMUS_SUSPECTS) & set(SUSPECTS)
    for name in ("rmw_tried_once", "model_no_corr"):
        backend = load(f"saboteur:{name}")
        assert backend.name == f"saboteur:{name}"
        assert isinstance(backend, HasLitmus)
        (compiled,) = backend.compile([one_node("neg", ("i32",), "i32")], Options())
        assert callable(compiled)
        assert compiled(np.array([1, 5], np.uint32))[0].tolist() == [2**32 - 1, 2**32 - 5]
    with pytest.raises(AdapterError, match="unknown suspect 'no_corr'; did you mean model_no_corr"):
        load("saboteur:no_corr")


def test_a_sum_that_is_not_atomic_is_seen_at_once() -> None:
    """Within a second: measured are 3 to 50 milliseconds, by the first contest, on two processors of a busy machine."""
    backend = LITMUS_SUSPECTS["rmw_as_load_and_store"].make()
    contests.try_contest(backend, "add", "i32", QUICK)  # compiled
    end = time.monotonic() + 1
    while not contests.try_contest(backend, "add", "i32", QUICK).findings:
        assert time.monotonic() < end


@pytest.mark.parametrize("name", LITMUS_SUSPECTS)
def test_every_suspect_is_detected(name: str) -> None:
    """Or, where the language allows it, left alone."""
    for row in detect(name):
        assert row.right, row
