"""The memory model: axioms, enumeration, verdicts, refutations, mutants, formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import HealthCheck, given, settings

from halfulp.oracle.memory import catalogue as tests_of
from halfulp.oracle.memory import herd, typing
from halfulp.oracle.memory.catalogue import FAMILIES, FIRST, Test, catalogue, find, minimal_set
from halfulp.oracle.memory.cycles import (
    STRENGTH,
    canonical,
    cycle,
    cycle_name,
    minimal_orders,
    necklaces,
    strongest,
    variants,
    with_orders,
)
from halfulp.oracle.memory.interleaving import interleaved, sequential
from halfulp.oracle.memory.model import INITIAL, MODEL, Candidate
from halfulp.oracle.memory.mutants import MUTANTS, PUBLISHED, VARIANTS, cover, kills, shows
from halfulp.oracle.memory.program import (
    DTYPES,
    RMW_KINDS,
    Cas,
    If,
    Load,
    Location,
    Outcome,
    Program,
    Rmw,
    Store,
    bounds,
    from_json,
    map_accesses,
    to_json,
    wrap,
)
from halfulp.oracle.memory.refute import forbidden_outcomes, why_not
from halfulp.oracle.memory.relation import Relation
from halfulp.oracle.memory.search import Execution, allowed, candidates, verdict
from halfulp.oracle.ops.record import Accepted, Refused
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus_programs import programs

ALL = catalogue()
FORBIDDEN = [test for test in ALL if test.verdict is Verdict.FORBIDDEN]
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def name_of(test: Test) -> str:
    return test.name


# A second checker, by the letter: the axioms as they stand in the papers, and every modification order tried.


def by_the_letter(x: Candidate, mo: Mapping[str, tuple[int, ...]]) -> bool:
    """Consistency of RC20 without SC and without porf: irreflexive(hb; eco?), and no write inside an update."""
    n = len(x.events)
    order = {write: place for writes in mo.values() for place, write in enumerate(writes)}
    pairs = set(product(range(n), repeat=2))
    sb = {
        (a, b)
        for a, b in pairs
        if x.events[b].thread != INITIAL
        and (x.events[a].thread == INITIAL or (x.events[a].thread == x.events[b].thread and a < b))
    }
    rf = {(source, read) for read, source in enumerate(x.rf) if source >= 0}
    before = {(a, b) for a, b in pairs if a in order and b in order and x.at[a] == x.at[b] and order[a] < order[b]}
    fr = {(read, w) for source, read in rf for a, w in before if a == source and w != read}
    # rs: a write, and every update that reads from it or from a member.
    rs = {(w, w) for w in order}
    while True:
        more = {(w, u) for w, m in rs for source, u in rf if source == m and x.events[u].is_rmw} - rs
        if not more:
            break
        rs |= more
    sw = {
        (w, r)
        for w, m in rs
        for source, r in rf
        if source == m and x.events[w].order in ("release", "acq_rel") and x.events[r].order in ("acquire", "acq_rel")
    }
    hb = closed(sb | sw)
    eco = closed(rf | before | fr)
    if any(a == b for a, b in hb) or any((b, a) in eco for a, b in hb) or any(a == b for a, b in eco):
        return False
    return all(not ((u, w) in fr and (w, u) in before) for u in range(n) if x.events[u].is_rmw for w in order)


def closed(relation: set[tuple[int, int]]) -> set[tuple[int, int]]:
    relation = set(relation)
    while True:
        more = {(a, d) for a, b in relation for c, d in relation if b == c} - relation
        if not more:
            return relation
        relation |= more


def outcomes_by_the_letter(program: Program) -> set[Outcome]:
    found = set()
    for x, registers in candidates(program):
        writes = [
            [i for i, event in enumerate(x.events) if event.location == loc.name and event.writes is not None]
            for loc in program.locations
        ]
        orders = [[(ws[0], *rest) for rest in permutations(ws[1:])] for ws in writes]
        for chosen in product(*orders):
            mo = {loc.name: order for loc, order in zip(program.locations, chosen, strict=True)}
            values = dict(registers) | {name: x.events[order[-1]].writes for name, order in mo.items()}
            outcome = tuple((name, values.get(name, 0) or 0) for name in sorted(program.observe))
            if outcome not in found and by_the_letter(x, mo):
                found.add(outcome)
    return found


def everything_observed(program: Program) -> Program:
    return replace(program, observe=(*program.registers, *(location.name for location in program.locations)))


@pytest.mark.parametrize("segments", list(necklaces(2)), ids=cycle_name)
def test_outcomes_are_those_of_the_letter_on_cycles(segments: tuple[str, ...]) -> None:
    shape = everything_observed(cycle(segments))
    every = list(variants(shape))
    for program in (every[0], *every[1 : -1 : max(1, len(every) // 3)], every[-1]):
        found = allowed(program)
        assert {*found.allowed, *found.unspecified} == outcomes_by_the_letter(program)


@QUICK
@given(programs(events=6, threads=3, updates=3))
def test_outcomes_are_those_of_the_letter(program: Program) -> None:
    found = allowed(program)
    assert {*found.allowed, *found.unspecified} == outcomes_by_the_letter(program)


def check_witness(execution: Execution) -> None:
    assert by_the_letter(execution.candidate, execution.mo)
    rf, events = execution.candidate.rf, execution.events
    for read, source in enumerate(rf):
        assert source < 0 or events[source].writes == events[read].reads
    for name, value in execution.outcome:
        if ":" not in name:
            assert events[execution.mo[name][-1]].writes == value


@QUICK
@given(programs(events=6, plain=True))
def test_witnesses_are_consistent_and_interleavings_are_allowed(program: Program) -> None:
    found = allowed(program)
    for execution in (*found.allowed.values(), *found.unspecified.values()):
        check_witness(execution)
    turns = interleaved(program)
    assert turns
    assert sequential(program) <= turns <= set(found.allowed)
    for outcome, execution in found.unspecified.items():
        assert execution.band
        assert outcome not in turns


@QUICK
@given(programs(events=6))
def test_the_quick_verdict_is_the_full_one(program: Program) -> None:
    found = allowed(program)
    for outcome in (*found.allowed, *found.unspecified, *forbidden_outcomes(program, found)[:5]):
        assert verdict(program, outcome) == found.verdict(outcome)
        assert verdict(program, outcome[:1]) == found.verdict(outcome[:1])


@QUICK
@given(programs(events=6))
def test_stronger_orders_allow_less(program: Program) -> None:
    weakest = with_orders(program, ["relaxed"] * len(program.accesses))
    strong, given_, weak = (allowed(p) for p in (strongest(program), program, weakest))
    assert set(strong.allowed) <= set(given_.allowed) <= set(weak.allowed)
    assert {*strong.allowed, *strong.unspecified} <= {*weak.allowed, *weak.unspecified}


@QUICK
@given(programs(events=6))
def test_every_forbidden_outcome_has_a_refutation(program: Program) -> None:
    found = allowed(program)
    for outcome in forbidden_outcomes(program, found)[:4]:
        refutation = why_not(program, outcome)
        assert refutation.missing or refutation.contradictions
        for contradiction in refutation.contradictions:
            steps = contradiction.cycle
            assert [step.second for step in steps] == [*(step.first for step in steps[1:]), steps[0].first]
            assert contradiction.axioms
    for outcome in found.allowed:
        with pytest.raises(ValueError, match="is not forbidden but allowed"):
            why_not(program, outcome)


# The catalogue.


def test_the_catalogue_has_what_the_table_has() -> None:
    said = {test.name: test.verdict for test in ALL}
    shapes = {cycle_name(s) for k in (2, 3) for s in necklaces(k)}
    assert {test.family for test in ALL} == set(FAMILIES)
    assert len(shapes) == 15 + 45
    for name in shapes:
        assert any(test == name or test.startswith(name + "+") for test in said), name
    for kind in RMW_KINDS:
        assert said[f"lost-update-{kind}"] is said[f"store-between-{kind}"] is Verdict.FORBIDDEN
        assert any(name.startswith(f"RS-{kind}+") for name in said)


@pytest.mark.parametrize("size", [2, 3])
def test_a_cycle_can_be_forbidden_iff_all_segments_but_one_are_handovers(size: int) -> None:
    for segments in necklaces(size):
        assert bool(minimal_orders(cycle(segments))) == (segments.count("Rfe") >= size - 1), segments


def weaker_or_equal(first: Program, second: Program) -> bool:
    """Whether no access of ``first`` has an order that the same access of ``second`` lacks."""
    pairs = zip(first.accesses, second.accesses, strict=True)
    return all(a.order == b.order or a.order == "relaxed" or b.order == "acq_rel" for a, b in pairs)


def test_minimal_orders_are_all_and_minimal() -> None:
    """Against all assignments: those found are forbidden, and so is exactly what is above them."""
    for shape in (cycle(("Rfe", "Rfe")), cycle(("Coe", "Rfe"), {(0, "start"): "rmw", (0, "end"): "rmw"})):
        found = minimal_orders(shape)
        assert len(found) == 2
        for variant in variants(shape):
            above = any(weaker_or_equal(known, variant) for known in found)
            assert (verdict(variant) is Verdict.FORBIDDEN) == above


EXPECTED_ORDERS = {
    "MP": ["rlx-rel+acq-rlx"],
    "S": ["rlx-rel+acq-rlx"],
    "LB": ["rlx-rel+acq-rlx"],
    "WRC": ["rlx+rlx-rel+acq-rlx"],
    "WWC": ["rlx+rlx-rel+acq-rlx"],
    "ISA2": ["rlx-rel+acq-rel+acq-rlx"],
    "RS-add": ["rlx-rel+rlx+acq-rlx"],
    "MP-plain": ["plain-rel+acq-plain"],
}
"""Known from the literature: which orders these tests need."""


@pytest.mark.parametrize("shape", EXPECTED_ORDERS)
def test_orders_that_are_known_to_be_needed(shape: str) -> None:
    found = [test.name.removeprefix(shape + "+") for test in ALL if test.name.startswith(shape + "+")]
    assert found == EXPECTED_ORDERS[shape]


@pytest.mark.parametrize("shape", ["SB", "R", "2+2W", "IRIW", "RWC", "WRW+2W", "Z6.3", "3.2W", "W+RWC", "3.SB"])
def test_what_no_order_forbids(shape: str) -> None:
    (test,) = (test for test in ALL if test.name.startswith(shape + "+r"))
    assert test.verdict is Verdict.ALLOWED
    assert test.program == replace(strongest(test.program), name=test.name)


@pytest.mark.parametrize("test", [test for test in FORBIDDEN if test.family != "failure order"], ids=name_of)
def test_orders_are_minimal(test: Test) -> None:
    """Each single order that is weakened makes the outcome possible, or leaves a race."""
    for position, access in enumerate(test.program.accesses):
        for weaker in typing.weakened(access):
            changed = map_accesses(test.program, lambda i, a, p=position, w=weaker: w if i == p else a)  # type: ignore[misc]
            assert verdict(changed) is not Verdict.FORBIDDEN


def test_failure_orders() -> None:
    said = {test.name: test.verdict for test in ALL if test.family == "failure order"}
    assert said == {
        "MP-cas-failure+rlx-rel+rlx-rlx": Verdict.ALLOWED,
        "MP-cas-failure+rlx-rel+acq-rlx": Verdict.FORBIDDEN,
        "MP-cas-failure+rlx-rel+rel-rlx": Verdict.ALLOWED,
        "MP-cas-failure+rlx-rel+ar-rlx": Verdict.FORBIDDEN,
        "LB-cas-failure+rlx-rel+acq-rlx": Verdict.FORBIDDEN,
        "LB-cas-failure+rlx-rel+rel-rlx": Verdict.UNSPECIFIED,
    }


def test_thin_air() -> None:
    said = {test.name: test.verdict for test in ALL if test.family == "thin air"}
    forbidden = {name for name, it in said.items() if it is Verdict.FORBIDDEN}
    assert forbidden == {"LB-data-data", "LB-ctrl-ctrl", "LB-data-ctrl"}
    assert {said[name] for name in set(said) - forbidden} == {Verdict.UNSPECIFIED}


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel"])
def test_a_store_after_an_update_differs_only_if_the_update_hands_on(order: str) -> None:
    """Where the update is itself a release that has acquired, C++11 lets its thread's next store continue from it."""
    shape = find("RS-update-store+rel-rel+ar-rlx+acq-acq").program
    changed = with_orders(shape, ["release", "release", order, "relaxed", "acquire", "acquire"])
    assert verdict(changed) is Verdict.ALLOWED
    (older,) = VARIANTS.values()
    assert verdict(changed, model=older) is (Verdict.FORBIDDEN if order == "acq_rel" else Verdict.ALLOWED)


def test_other_release_sequences_are_informative() -> None:
    differ = {test.name.partition("+")[0] for test in ALL if test.informative}
    assert differ == {"RS-same-thread", "RS-update-store"}
    assert all(test.verdict is Verdict.ALLOWED for test in ALL if test.informative)


def test_spurious_failure_is_unspecified() -> None:
    once = Program("once", (Location("x"),), ((Cas("r", "s", "x", 0, 1),),), observe=("0:r", "0:s", "x"))
    found = allowed(once)
    assert list(found.allowed) == [(("0:r", 0), ("0:s", 1), ("x", 1))]
    assert list(found.unspecified) == [(("0:r", 0), ("0:s", 0), ("x", 0))]
    assert found.verdict({"0:s": 0, "x": 1}) is Verdict.FORBIDDEN


def test_races() -> None:
    test = find("MP-plain+plain-rel+acq-plain")
    assert test.verdict is Verdict.FORBIDDEN
    relaxed = map_accesses(test.program, lambda _, a: a if a.order is None else replace(a, order="relaxed"))
    found = allowed(relaxed)
    (race,) = found.races
    assert {race.first.location, race.second.location} == {"x"}
    assert {race.first.thread, race.second.thread} == {0, 1}
    for outcome in ({"1:r0": 0}, {"1:r0": 17}):
        assert found.verdict(outcome) is Verdict.NO_CLAIM
    # Mixed accesses race only if they are unordered.
    mixed = Program("mixed", (Location("x"),), ((Store("x", 1, None),), (Load("r", "x"),)))
    assert allowed(mixed).races
    alone = Program("alone", (Location("x"),), ((Store("x", 1, None), Load("r", "x")),))
    assert list(allowed(alone).allowed) == [(("0:r", 1),)]


def test_races_of_unspecified_executions_alone() -> None:
    """A race that only load buffering leads to: nothing is forbidden, and what is allowed stays allowed."""
    first = (Load("a", "x"), Store("y", 1), If("a", 1, (Store("z", 1, None),)))
    second = (Load("b", "y"), Store("x", 1), If("b", 1, (Store("z", 2, None),)))
    program = Program("both", tuple(map(Location, "xyz")), (first, second), observe=("0:a", "1:b", "z"))
    found = allowed(program)
    assert not found.races
    assert found.band_races
    assert found.verdict({"0:a": 0, "1:b": 0, "z": 0}) is Verdict.ALLOWED
    assert found.verdict({"0:a": 5}) is Verdict.UNSPECIFIED


@pytest.mark.parametrize("dtype", DTYPES)
def test_verdicts_of_every_dtype(dtype: str) -> None:
    for test in catalogue(dtype):
        if test.family == "operation":
            assert test.verdict is Verdict.FORBIDDEN, test.name
            assert test.kills, test.name
    assert [test.name for test in catalogue(dtype)] == [test.name for test in ALL]


def test_names_are_unique_and_programs_too() -> None:
    assert len({test.name for test in ALL}) == len(ALL)
    with pytest.raises(KeyError):
        find("nothing")
    for test in ALL:
        assert repr(canonical(test.program)) == repr(canonical(turned(test.program)))


def turned(program: Program) -> Program:
    """The threads in reverse order."""
    last = len(program.threads) - 1

    def name(old: str) -> str:
        thread, colon, register = old.rpartition(":")
        return f"{last - int(thread)}:{register}" if colon else old

    weak = tuple((name(key), value) for key, value in program.weak)
    return replace(program, threads=program.threads[::-1], weak=weak, observe=tuple(map(name, program.observe)))


def test_all_orders_of_all_cycles() -> None:
    """480 programs over two locations and a part of the 8128 over three; `benchmarks/memory_model.py` times them."""
    count = sum(1 for segments in necklaces(2) for program in variants(cycle(segments)) if verdict(program) is not None)
    assert count == 480
    three = list(necklaces(3))
    assert sum(2 ** len(cycle(segments).accesses) for segments in three) == 8128
    for segments in three[::9]:
        assert all(verdict(program) is not None for program in variants(cycle(segments)))


# Mutants.


@pytest.mark.parametrize("test", FORBIDDEN, ids=name_of)
def test_no_test_is_vacuous(test: Test) -> None:
    assert test.kills


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_killed(name: str) -> None:
    assert any(name in test.kills for test in ALL)


def test_mutants_of_orders_and_axioms() -> None:
    assert len(PUBLISHED) == 14
    table = {test.name: [name for name in test.kills if name in {m.name for m in PUBLISHED}] for test in ALL}
    assert {name for killed in table.values() for name in killed} == {mutant.name for mutant in PUBLISHED}
    smallest = cover(table)
    assert len(smallest) <= 6
    # What only few can see: these tests are why the catalogue has them.
    assert all("cas-failure" in name for name, killed in table.items() if "failure_order_relaxed" in killed)
    assert "no_corr" in table["CoRR"]
    assert "not_transitive" in next(killed for name, killed in table.items() if name.startswith("ISA2+"))
    assert "release_orders_only_stores" in table["LB+rlx-rel+acq-rlx"]
    assert "no_release_sequence" in next(killed for name, killed in table.items() if name.startswith("RS-add+"))


def test_the_minimal_set_kills_all_and_is_minimal() -> None:
    table = {test.name: test.kills for test in ALL}
    chosen = minimal_set()
    assert chosen == FIRST
    assert {mutant for name in chosen for mutant in table[name]} == set(MUTANTS)
    for left_out in chosen:
        assert {mutant for name in chosen if name != left_out for mutant in table[name]} != set(MUTANTS)


def test_cover_is_smallest() -> None:
    assert cover({"a": ["1", "2"], "b": ["2", "3"], "c": ["3"], "d": ["1", "2"]}) == ("a", "b")
    greedy_fails = {"big": "1234", "left": "125", "right": "346"}
    assert cover(greedy_fails) == ("left", "right")
    assert cover({"none": []}) == ()


def test_kills_of_what_is_not_forbidden() -> None:
    assert kills(cycle(("Fre", "Fre"))) == ()


@QUICK
@given(programs(events=6, updates=2))
def test_mutants_only_add_outcomes_where_they_only_lose_rules(program: Program) -> None:
    found = {*allowed(program).allowed, *allowed(program).unspecified}
    for mutant in PUBLISHED:
        mine = allowed(program, mutant)
        assert found <= {*mine.allowed, *mine.unspecified}, mutant.name


def test_the_model_itself_shows_nothing_that_it_forbids() -> None:
    assert not any(shows(test.program, MODEL) for test in FORBIDDEN)


# Programs as data.


@QUICK
@given(programs(events=8, plain=True))
def test_json_round_trip(program: Program) -> None:
    assert from_json(json.loads(json.dumps(to_json(program)))) == program


@QUICK
@given(programs(events=8, plain=True))
def test_herd_round_trip(program: Program) -> None:
    assert herd.from_herd(herd.to_herd(program)) == program


@pytest.mark.parametrize("dtype", DTYPES)
def test_herd_round_trip_of_the_catalogue(dtype: str) -> None:
    for test in catalogue(dtype):
        text = herd.to_herd(test.program)
        back = herd.from_herd(text)
        assert back == test.program
        assert herd.to_herd(back) == text


FOREIGN = """C MP+rel+acq
"a comment of diy"
(* nested nowhere *)
{ x = 0; int y; [z]=3; }

P0 (atomic_int* x, atomic_int* y) {
  // the payload
  atomic_store_explicit(x,1,memory_order_relaxed);
  atomic_store_explicit(y,1,memory_order_release);
}
P1 (atomic_int* y, atomic_int* x, volatile int* z) {
  int r0 = atomic_load_explicit(y,memory_order_acquire);
  if (r0 == 1) { int r1 = atomic_load_explicit(x,memory_order_relaxed); } else { *z = 4; }
}
~exists (1:r0=1 /\\ 1:r1=0)
"""


def test_a_file_in_the_style_of_others() -> None:
    program = herd.from_herd(FOREIGN)
    assert program.name == "MP+rel+acq"
    assert program.locations == (Location("x", "i32"), Location("y", "i32"), Location("z", "i32", 3))
    assert program.threads[1][1] == If("r0", 1, (Load("r1", "x"),), (Store("z", 4, None),))
    assert program.weak == (("1:r0", 1), ("1:r1", 0))
    assert verdict(program) is Verdict.FORBIDDEN


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("C MP", "X86 MP", "starts with a line"),
        ("atomic_load_explicit(y", "atomic_thread_fence(y", "atomic_thread_fence is not known here"),
        ("P1", "P2", "P0, P1"),
        ("atomic_int* y, atomic_int* x, vol", "float* y, atomic_int* x, vol", "pointer to an integer"),
        ("memory_order_acquire", "acquire", "acquire is no memory order"),
        ("~exists", "always", "expected exists or forall"),
        ("r0 == 1", "r0 != 1", "expected =="),
        ("1:r0=1", "1:r7=1", "neither a register"),
        ("(* nested", "@ (* nested", "cannot read '@'"),
    ],
)
def test_files_that_are_refused(old: str, new: str, message: str) -> None:
    assert old in FOREIGN
    with pytest.raises(ValueError, match=message):
        herd.from_herd(FOREIGN.replace(old, new))


def broken_programs() -> Iterator[tuple[tuple[object, ...], str]]:
    x = (Location("x"),)
    yield ("p", (Location("x"), Location("x")), ()), "share a name"
    yield ("p", (Location("x", "f32"),), ()), "not on f32"
    yield ("p", (Location("x", "u32", -1),), ()), "out of the range"
    yield ("p", x, ((Load("r", "y"),),)), "no location y"
    yield ("p", x, ((Store("x", 1 << 32),),)), "out of the range"
    yield ("p", x, ((Store("x", "r"),),)), "not a register"
    yield ("p", x, ((Rmw("r", "nand", "x", 1),),)), "nand is none of"
    yield ("p", x, ((If("r", 1, ()),),)), "tested before"
    yield ("p", x, ((Cas("r", "r", "x", 0, 1),),)), "two dtypes"
    yield ("p", x, ((Load("r", "x"),),), (("0:q", 1),)), "neither a register"
    yield ("p", x, ((Load("r", "x"),),), (("x", 1),), ("0:r",)), "not observed"


@pytest.mark.parametrize(("fields", "message"), tuple(broken_programs()))
def test_programs_are_checked_when_they_are_made(fields: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Program(*fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", DTYPES)
def test_updates_compute_what_their_names_say(dtype: str) -> None:
    low, high = bounds(dtype)
    assert wrap(high + 1, dtype) == low
    assert wrap(low - 1, dtype) == high
    rules = {kind: MODEL.updated(kind, high, 1, dtype) for kind in RMW_KINDS}
    assert rules == {"exchange": 1, "add": low, "max": high, "min": 1, "and": 1, "or": high, "xor": high - 1}
    if low < 0:
        assert MODEL.updated("max", -1, 1, dtype) == 1
        assert MODEL.updated("min", -1, 1, dtype) == MODEL.updated("or", -1, 1, dtype) == -1


# Typing.


def test_orders_that_operations_admit() -> None:
    refused = {program.name: answer.clause for program, answer in typing.rejections()}
    accepted = {program.name for program in typing.acceptances()}
    for dtype in DTYPES:
        assert refused[f"atomic_load-release-{dtype}"] == refused[f"atomic_load-acq_rel-{dtype}"] == "intent:11-e"
        assert refused[f"atomic_store-acquire-{dtype}"] == refused[f"atomic_store-acq_rel-{dtype}"] == "intent:11-e"
        for kind in (*(f"atomic_rmw-{kind}" for kind in RMW_KINDS), "atomic_compare_exchange"):
            assert refused[f"{kind}-seq_cst-{dtype}"] == "intent:11-e"
            assert refused[f"{kind}-relaxed-device-{dtype}"] == "intent:11-g"
            for order in STRENGTH:
                assert order is None or f"{kind}-{order}-{dtype}" in accepted
    assert not refused.keys() & accepted


@QUICK
@given(programs(events=8, plain=True))
def test_drawn_programs_are_well_typed(program: Program) -> None:
    assert isinstance(typing.check(program), Accepted)


def test_plain_accesses_take_no_scope_and_updates_are_never_plain() -> None:
    x = (Location("x"),)
    plain = typing.check(Program("p", x, ((Load("r", "x", None, "block"),),)))
    assert isinstance(plain, Refused)
    assert plain.clause == "intent:10-k"
    assert isinstance(typing.check(Program("p", x, ((Rmw("r", "add", "x", 1, None),),))), Refused)  # type: ignore[arg-type]
    assert typing.check(Program("p", x, ((Load("r", "x", None),),))) == Accepted("")


# Small parts.


def test_relations() -> None:
    chain = Relation.of(4, [(0, 1), (1, 2)])
    assert list(chain.closure()) == [(0, 1), (0, 2), (1, 2)]
    assert list(chain.then(chain)) == [(0, 2)]
    assert list(chain.only(range_=0b100)) == [(1, 2)]
    assert list(chain.reflexive()) == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (3, 3)]
    assert chain.acyclic
    assert chain.path(0, 2) == [0, 1, 2]
    assert chain.path(0, 0) == chain.path(2, 0) == []
    loop = chain | Relation.of(4, [(2, 0)])
    assert not loop.acyclic
    assert loop.path(1, 1) == [1, 2, 0, 1]
    assert loop.irreflexive
    assert not loop.closure().irreflexive


def test_refutation_of_message_passing() -> None:
    refutation = why_not(find("MP+rlx-rel+acq-rlx").program)
    (contradiction,) = refutation.contradictions
    assert set(contradiction.axioms) == {"CoWW", "CoWR"}
    assert "-sb-> T0 writes y=1 (release) -sw-> T1 reads y=1 (acquire) -sb-> T1 reads x=0" in str(refutation)
    invented = why_not(find("LB-ctrl-ctrl").program)
    assert invented.missing == "0:r0 can only be 0, from what the program can write"


def test_sequential_and_interleaved() -> None:
    buffering = everything_observed(cycle(("Fre", "Fre")))
    apart, turns, weak = sequential(buffering), interleaved(buffering), allowed(buffering).allowed
    assert (len(apart), len(turns), len(weak)) == (2, 3, 4)
    assert {tests_of.find("SB+rel-acq+rel-acq").verdict} == {Verdict.ALLOWED}


def test_twelve_events_are_enumerated() -> None:
    """Four threads and three locations: message passing through two updates, seen by two readers."""
    reader = (Load("r0", "z", "acquire"), Load("r1", "y"), Load("r2", "x"))
    writer = (Store("x", 1), Store("y", 1, "release"), Store("x", 2))
    middle = (Rmw("r0", "add", "y", 1, "acquire"), Rmw("r1", "max", "z", 2, "release"), Load("r2", "x"))
    program = Program("twelve", tuple(map(Location, "xyz")), (writer, middle, reader, reader))
    found = allowed(program)
    assert found.verdict({"1:r0": 1, "2:r0": 2, "2:r2": 0}) is Verdict.FORBIDDEN
    assert found.verdict({"1:r0": 0, "2:r0": 2, "2:r2": 0}) is Verdict.ALLOWED
    assert interleaved(program) <= set(found.allowed)
