"""Litmus programs on the CUDA backend, as far as that needs no GPU: the PTX and its judge, suspects, launches."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from halfulp.adapters.discovery import AdapterError
from halfulp.adapters.protocol import (
    Contest,
    HasContests,
    HasLitmus,
    HasLitmusArtifact,
    LitmusOptions,
    Options,
    PreparesLitmus,
    Rejected,
    Unsupported,
    UnsupportedError,
)
from halfulp.backends.common.check import NotOffered
from halfulp.backends.common.litmus_check import check_contest
from halfulp.backends.cuda import CudaAdapter, litmus_launch
from halfulp.backends.cuda import litmus_native as native
from halfulp.backends.cuda.litmus import Overlap
from halfulp.backends.cuda.litmus_knobs import PORTFOLIO, Knobs, drawn, varied
from halfulp.backends.cuda.litmus_launch import OPTIONS, Kernel, Launches
from halfulp.backends.cuda.litmus_shelf import source
from halfulp.backends.cuda.nvrtc import NvrtcMissingError, compile_source, nvrtc_version
from halfulp.certify.detection.cuda_atomics import by_ptx, forbidding_suite, value_suite
from halfulp.certify.saboteurs.cuda import CudaSaboteur
from halfulp.certify.saboteurs.cuda_atomics import CUDA_LITMUS_SUSPECTS
from halfulp.oracle.memory.program import RMW_KINDS, Cas, If, Load, Location, Program, Rmw, Store
from halfulp.oracle.memory.search import verdict
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus import inspect, try_orders
from halfulp.properties.litmus_accesses import UnreadableError
from halfulp.properties.litmus_items import programs, try_family_instructions, try_orders_of
from halfulp.properties.litmus_ptx import read
from halfulp.properties.plan import Plan
from halfulp.properties.ptx import is_ptx

try:
    nvrtc_version()
except NvrtcMissingError as missing:  # counted by pytest, and named
    pytest.skip(str(missing), allow_module_level=True)

CUDA = CudaAdapter("compile-only")
QUICK = Plan(0, "quick")
X, Y = Location("x"), Location("y")


def one_thread(dtype: str, *accesses: Any) -> Program:
    return Program("one", (Location("x", dtype), Location("y", dtype)), (accesses,))


def ptx(program: Program) -> str:
    return CUDA.litmus_artifact(program, Options())


def accesses_in(text: str) -> list[str]:
    """The instructions of inline PTX, without their operands."""
    return re.findall(r"^\s*((?:ld|st|atom)\.\S+\.global\.\S+)", text, re.MULTILINE)


def test_the_backend_offers_it_all() -> None:
    for protocol in (HasLitmus, HasLitmusArtifact, HasContests, PreparesLitmus):
        assert isinstance(CUDA, protocol)


# Lowering.


@pytest.mark.parametrize(
    ("dtype", "sign", "width"), [("i32", "s", 32), ("u32", "u", 32), ("i64", "s", 64), ("u64", "u", 64)]
)
def test_every_access_becomes_one_instruction(dtype: str, sign: str, width: int) -> None:
    program = one_thread(
        dtype,
        Load("a", "x", None),
        Load("b", "x", "acquire"),
        Store("x", 1, "release"),
        Store("y", "b", None),
        *(Rmw(f"r{place}", kind, "x", 1, "acq_rel") for place, kind in enumerate(RMW_KINDS)),
        Rmw(None, "exchange", "x", -1 if sign == "s" else 1),
        Cas("o", "s", "x", "b", 2, "acquire"),
    )
    names = {
        "exchange": f"exch.b{width}",
        "add": f"add.u{width}",
        "max": f"max.{sign}{width}",
        "min": f"min.{sign}{width}",
    }
    assert [one for one in accesses_in(ptx(program)) if not one.startswith("st.global")] == [
        f"ld.weak.global.b{width}",
        f"ld.acquire.gpu.global.b{width}",
        f"st.release.gpu.global.b{width}",
        f"st.weak.global.b{width}",
        *(f"atom.acq_rel.gpu.global.{names.get(kind, f'{kind}.b{width}')}" for kind in RMW_KINDS),
        f"atom.relaxed.gpu.global.exch.b{width}",
        f"atom.acquire.gpu.global.cas.b{width}",
    ]


def test_what_runs_has_the_same_accesses_as_what_is_looked_at() -> None:
    for program in (programs("failure order", "i64")[-1], programs("thin air", "u32")[-1]):
        launched = compile_source(source([program]), ptx=True, options=OPTIONS).decode()
        kernel = launched[launched.index(".entry litmus") :]
        inline = re.findall(r"// begin inline asm\n\s*(.*?);?\n\s*// end inline asm", kernel)
        strong = [one.split(" ")[0] for one in inline if one.startswith(("ld", "st", "atom"))]
        looked_at = [one for one in accesses_in(ptx(program)) if not one.startswith("st.global")]
        assert Counter(strong) == Counter(looked_at)


@pytest.mark.parametrize("dtype", ["i32", "u64"])
def test_the_backend_keeps_every_order(dtype: str) -> None:
    trial = try_orders_of(CUDA, dtype)
    assert not trial.findings
    assert all(tally.allowed >= 70 for tally in trial.tallies)


@pytest.mark.parametrize("family", ["failure order", "thin air", "plain", "release sequence"])
def test_the_instructions_of_families_are_right(family: str) -> None:
    trial = try_family_instructions(CUDA, family, QUICK)
    assert not trial.findings
    assert all(tally.allowed and not tally.no_claim for tally in trial.tallies)


# Suspects.


def test_there_are_enough_suspects() -> None:
    assert sum(suspect.fault for suspect in CUDA_LITMUS_SUSPECTS.values()) >= 25
    assert any(not suspect.fault for suspect in CUDA_LITMUS_SUSPECTS.values())


@pytest.mark.parametrize("name", CUDA_LITMUS_SUSPECTS)
def test_the_ptx_shows_what_it_can_show(name: str) -> None:
    row = by_ptx(name)
    assert row.right
    assert row.judged > 100
    assert bool(row.where) == (row.fault and row.due)


def test_the_suite_for_runs_has_all_kinds_of_programs() -> None:
    names = {program.name for program in (*value_suite(), *forbidding_suite())}
    assert all(verdict(program) is Verdict.FORBIDDEN for program in forbidding_suite())
    assert any(name.startswith("value-cas") for name in names)
    assert any(name.startswith("lost-update") for name in names)
    assert any(name.startswith("MP-cas-failure") for name in names)


def test_the_table_of_suspects_is_current() -> None:
    root = Path(__file__).resolve().parent.parent
    page = (root / "docs" / "how-to" / "litmus-on-a-gpu.md").read_text(encoding="utf-8")
    record = json.loads((root / "docs" / "results" / "litmus-cuda.json").read_text(encoding="utf-8"))
    ran = {row["suspect"]: row["where"] for row in record["suspects"] if row["means"] == "gpu"}
    for name, suspect in CUDA_LITMUS_SUSPECTS.items():
        clause = suspect.clause.removeprefix("intent:") or "nothing"
        shown = "yes" if suspect.fault and suspect.ptx else "no"
        where = f"`{ran[name].partition('+')[0]}`" if ran[name] else "no"
        assert f"| `{name}` | {suspect.summary} | {clause} | {shown} | {where} |" in page.splitlines()


def test_unknown_suspects_are_named() -> None:
    with pytest.raises(AdapterError, match="scope_of_block"):
        CudaSaboteur("scope_of_blocks:compile-only")


# Reading PTX.


def kernel(*lines: str, parameters: int = 4) -> str:
    """A module with a ``thread0`` on two locations, x at %rd1 and y at %rd2."""
    names = [f"thread0_param_{place}" for place in range(parameters)]
    declared = ",\n".join(f"\t.param .u64 {name}" for name in names)
    loads = [f"ld.param.u64 %rd{10 + place}, [{name}];" for place, name in enumerate(names)]
    heads = [*loads, "cvta.to.global.u64 %rd1, %rd10;", "mov.u64 %rd9, %rd11;", "cvta.to.global.u64 %rd2, %rd9;"]
    body = "\n".join((*heads, *lines, "ret;"))
    return f".version 8.0\n.target sm_90\n\n.visible .entry thread0(\n{declared}\n)\n{{\n{body}\n\n}}\n"


RELEASE = Program("release", (X, Y), ((Store("x", 1, None), Store("y", 1, "release")),))
ACQUIRE = Program("acquire", (X, Y), ((Load("r0", "y", "acquire"), Load("r1", "x")),))
EXCHANGE = Program("exchange", (X, Y), ((Cas("o", "s", "y", 1, 2, "acquire"),),))
PLAIN = "st.global.u32 [%rd1], %r1;"


@pytest.mark.parametrize(
    ("flag", "clauses"),
    [
        (["st.release.gpu.global.u32 [%rd2], %r1;"], []),
        (["st.release.sys.u32 [%rd2], %r1;"], []),
        (["fence.acq_rel.gpu;", "st.relaxed.gpu.global.b32 [%rd2], %r1;"], []),
        (["membar.gl;", "st.volatile.global.u32 [%rd2], %r1;"], []),
        (["fence.sc.sys;", "st.relaxed.sys.u32 [%rd2], %r1;"], []),
        (["st.relaxed.gpu.global.u32 [%rd2], %r1;"], ["11-d"]),
        (["fence.acq_rel.cta;", "st.relaxed.gpu.global.u32 [%rd2], %r1;"], ["11-d"]),
        (["membar.cta;", "st.relaxed.gpu.global.u32 [%rd2], %r1;"], ["11-d"]),
        (["st.release.cta.global.u32 [%rd2], %r1;"], ["11-h"]),
        (["st.release.cluster.global.u32 [%rd2], %r1;"], ["11-h"]),
        (["st.relaxed.cta.global.u32 [%rd2], %r1;"], ["11-h", "11-d"]),
        (["st.global.u32 [%rd2], %r1;"], ["11-a"]),
        (["st.weak.global.u32 [%rd2], %r1;"], ["11-a"]),
        (["st.release.gpu.global.u64 [%rd2], %rd3;"], ["11-b"]),
        (["st.release.gpu.global.u16 [%rd2], %rs1;", "st.release.gpu.global.u16 [%rd2+2], %rs2;"], ["11-b"]),
        (["st.release.gpu.global.u32 [%rd1], %r1;"], ["11-b"]),
        ([], ["11-a"]),
    ],
)
def test_judging_a_release_store(flag: list[str], clauses: list[str]) -> None:
    assert [fault.clause for fault in inspect(RELEASE, kernel(PLAIN, *flag))] == [f"intent:{one}" for one in clauses]


def test_a_payload_that_moved() -> None:
    faults = inspect(RELEASE, kernel("st.release.gpu.global.u32 [%rd2], %r1;", PLAIN))
    assert [fault.clause for fault in faults] == ["intent:11-d"]


@pytest.mark.parametrize(
    ("load", "clauses"),
    [
        (["ld.acquire.gpu.global.u32 %r1, [%rd2];"], []),
        (["ld.relaxed.gpu.u32 %r1, [%rd2];", "fence.acq_rel.gpu;"], []),
        (["ld.volatile.global.u32 %r1, [%rd2];"], ["11-d"]),
        (["@%p7 ld.acquire.gpu.global.u32 %r1, [%rd2];"], ["11-b"]),
    ],
)
def test_judging_an_acquire_load(load: list[str], clauses: list[str]) -> None:
    text = kernel(*load, "ld.relaxed.gpu.global.u32 %r2, [%rd1];", "st.global.u32 [%rd12], %r1;")
    assert [fault.clause for fault in inspect(ACQUIRE, text)] == [f"intent:{one}" for one in clauses]


@pytest.mark.parametrize(
    ("lines", "clauses"),
    [
        (["atom.acquire.gpu.global.cas.b32 %r1, [%rd2], %r5, %r6;"], []),
        (["atom.acq_rel.sys.cas.b32 %r1, [%rd2], 1, 2;"], []),
        (["atom.relaxed.gpu.global.cas.b32 %r1, [%rd2], %r5, %r6;", "fence.acq_rel.gpu;"], []),
        (["atom.relaxed.gpu.global.cas.b32 %r1, [%rd2], %r5, %r6;"], ["11-d", "11-f"]),
        (["atom.global.cas.b32 %r1, [%rd2], %r5, %r6;"], ["11-d", "11-f"]),
        (
            [
                "atom.relaxed.gpu.global.cas.b32 %r1, [%rd2], %r5, %r6;",
                "setp.eq.s32 %p1, %r1, 1;",
                "@%p1 fence.acq_rel.gpu;",
            ],
            ["11-f"],
        ),
        (
            [
                "atom.relaxed.gpu.global.cas.b32 %r1, [%rd2], %r5, %r6;",
                "setp.ne.s32 %p1, %r1, %r5;",
                "@%p1 bra $L1;",
                "fence.acq_rel.gpu;",
                "$L1:",
            ],
            ["11-f"],
        ),
        (
            [
                "atom.relaxed.gpu.global.cas.b32 %r1, [%rd2], %r5, %r6;",
                "setp.ne.s32 %p1, %r1, %r5;",
                "@%p1 fence.acq_rel.gpu;",
            ],
            ["11-d"],
        ),
    ],
)
def test_judging_a_compare_exchange(lines: list[str], clauses: list[str]) -> None:
    text = kernel("mov.u32 %r5, 1;", "mov.u32 %r6, 2;", *lines)
    assert [fault.clause for fault in inspect(EXCHANGE, text)] == [f"intent:{one}" for one in clauses]


@pytest.mark.parametrize(
    ("line", "clauses"),
    [
        ("atom.relaxed.gpu.global.max.s32 %r1, [%rd2], 1;", []),
        ("red.relaxed.gpu.global.max.s32 [%rd2], 1;", []),
        ("red.global.max.s32 [%rd2], 1;", []),
        ("atom.relaxed.gpu.global.max.u32 %r1, [%rd2], 1;", ["11-b"]),
        ("atom.relaxed.gpu.global.min.s32 %r1, [%rd2], 1;", ["11-b"]),
        ("atom.relaxed.cta.global.max.s32 %r1, [%rd2], 1;", ["11-h"]),
        ("atom.relaxed.gpu.global.max.s64 %rd5, [%rd2], 1;", ["11-b"]),
    ],
)
def test_judging_an_update(line: str, clauses: list[str]) -> None:
    program = Program("max", (Location("x", "i32"), Location("y", "i32")), ((Rmw(None, "max", "y", 1),),))
    assert [fault.clause for fault in inspect(program, kernel(line))] == [f"intent:{one}" for one in clauses]


def test_branches_of_ptx_are_followed() -> None:
    branch = If("r0", 1, (Store("x", 1, "release"),), (Store("x", 2),))
    program = Program("branch", (X, Y), ((Load("r0", "y"), branch),))
    assert inspect(program, ptx(program)) == []
    swapped = (
        ptx(program).replace("st.release", "st.SWAP").replace("st.relaxed", "st.release").replace("SWAP", "relaxed")
    )
    assert "intent:11-d" in {fault.clause for fault in inspect(program, swapped)}


@pytest.mark.parametrize(
    "line",
    ["ld.global.v2.u32 {%r1, %r2}, [%rd1];", "call.uni foo, ();", "cp.async.ca.shared.global [%r1], [%rd1], 4;"],
)
def test_what_cannot_be_read_is_not_judged(line: str) -> None:
    with pytest.raises(UnreadableError, match="cannot judge"):
        inspect(RELEASE, kernel(line))


def test_text_that_is_no_ptx() -> None:
    assert is_ptx(kernel())
    assert not is_ptx("define void @thread0(ptr %x) {\n  ret void\n}\n")
    with pytest.raises(UnreadableError, match="no kernel"):
        read(".version 8.0\n", 2)


# What is refused.


def test_nothing_runs_without_a_device() -> None:
    answer = CUDA.run_litmus(RELEASE, LitmusOptions())
    assert isinstance(answer, Unsupported)
    assert "compiles only" in answer.reason
    contest = Contest("add", "u32", 0, (np.ones(2, np.uint32),) * 2)
    assert isinstance(CUDA.run_contest(contest, LitmusOptions()), Unsupported)


@pytest.mark.parametrize("clause", ["intent:11-e", "intent:11-g"])
def test_typing_is_judged_without_a_device(clause: str) -> None:
    trial = try_orders(CUDA, clause)
    assert not trial.findings
    assert trial.tallies[0].cases[clause] > 0


def test_ill_typed_and_large_programs() -> None:
    ill = one_thread("u32", Store("x", 1, "acquire"))
    assert isinstance(CUDA.run_litmus(ill, LitmusOptions()), Rejected)
    with pytest.raises(UnsupportedError, match="no order acquire"):
        CUDA.litmus_artifact(ill, Options())
    crowd = Program("crowd", (X,), ((Store("x", 1),),) * 9)
    CUDA.prepare_litmus([ill, crowd], Options(), runs=False)  # says nothing of them
    with pytest.raises(Exception, match="more than 8 threads"):
        source([crowd])
    for kind, dtype, order in (("nand", "u32", "relaxed"), ("add", "f32", "relaxed"), ("add", "u32", "seq_cst")):
        with pytest.raises(Exception, match="no "):
            check_contest(kind, dtype, order)


# Launches. What the device does with a plan is repeated here in numpy.


class Recorder:
    """Stands in for a function of the device."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, Any]] = []

    def launch(self, grid: int, block: int, *arguments: Any) -> None:
        self.calls.append((grid, block, arguments[0].copy()))


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    buffers = {name: SimpleNamespace(address=0) for name in ("scratch", "small", "keys", "counts", "values", "lost")}
    space = SimpleNamespace(**buffers, tally=Recorder(), arena=lambda size: 1 << 20)
    monkeypatch.setattr(litmus_launch, "workspace", lambda: space)
    monkeypatch.setattr(litmus_launch, "device", lambda: SimpleNamespace(processors=4))
    return space


def placed(grid: int, block: int, plan: Any, roles: int) -> list[tuple[int, int]]:
    """The role and the instance of every thread in every step."""
    blocks, threads = (part.ravel() for part in np.meshgrid(np.arange(grid), np.arange(block), indexing="ij"))
    every = int(plan["stress_every"])
    if every:
        kept = blocks % every != every - 1
        blocks, threads = blocks[kept], threads[kept]
        blocks = blocks - blocks // every
    found = []
    mul, add = plan["roles"]["mul"].astype(np.int64), plan["roles"]["add"].astype(np.int64)
    for step in range(int(plan["steps"])):
        turn = int(plan["rotate"]) * step
        steps, active = int(plan["steps"]), np.ones(len(blocks), bool)
        if plan["placement"] == 0:
            size = 1 << int(plan["chunk"])
            groups = size // block
            chunk, rest = np.divmod(blocks, roles * groups)
            role, slot = (rest % roles + turn) % roles, rest // roles * block + threads
            i = (chunk * steps + step) * size + ((slot * mul[role] + add[role]) & (size - 1))
        elif plan["placement"] == 1:
            size = block // roles
            role, slot = (threads // size + turn) % roles, threads % size
            i = (blocks * steps + step) * size + ((slot * mul[role] + add[role]) & (size - 1))
        else:
            size, lane, warp = 32 // roles, threads & 31, blocks * (block // 32) + threads // 32
            active = lane < size * roles
            role, i = (lane % roles + turn) % roles, (warp * steps + step) * size + lane // roles
        active &= i < int(plan["n"])
        found += list(zip(role[active].tolist(), i[active].tolist(), strict=True))
    return found


@pytest.mark.parametrize("placement", native.NAMES)
def test_every_role_plays_every_instance_once(space: SimpleNamespace, placement: str) -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    for roles in (1, 2, 3, 4, 6):
        program = Program("stores", (X,), ((Store("x", 1),),) * roles, (), ("x",))
        knobs = [drawn(generator, roles, (1, 2, 4, 8)) for _ in range(3)]
        for one in (*PORTFOLIO[:2], *knobs, varied(knobs[0], generator, roles, (1, 2))):
            function = Recorder()
            small = Knobs(**{**vars(one), "size": 11, "chunk": min(one.chunk, 11)})
            Launches(Kernel(program, function), small, placement, generator).repeat(1)  # type: ignore[arg-type]
            grid, block, plan = function.calls[0]
            assert block <= 512
            found = Counter(placed(grid, block, plan, roles))
            assert len(found) == roles << 11
            assert set(found.values()) == {1}


def test_cells_and_columns_do_not_overlap(space: SimpleNamespace) -> None:
    locations = (Location("x", "i32", -1), Location("y", "u64", 7))
    program = Program("mixed", locations, ((Load("a", "y"), Cas("b", "s", "x", 0, 1)),), (), ("x", "0:a", "0:b", "0:s"))
    function = Recorder()
    generator = np.random.Generator(np.random.PCG64(1))
    Launches(Kernel(program, function), Knobs(size=10, spacing=4, shuffle=True), "apart", generator).repeat(1)  # type: ignore[arg-type]
    tally = space.tally.calls[-1][2]
    used: list[tuple[int, int]] = []
    for cell in (*tally["cells"][:2], *tally["columns"][:3]):
        ends = [(int(cell["base"]) + place * int(cell["spacing"]), int(cell["width"]) // 8) for place in range(1 << 10)]
        used += [(at, at + size) for at, size in ends]
        assert cell["factor"] % 2 == 1
    used.sort()
    assert all(first[1] <= second[0] for first, second in pairwise(used))
    assert tally["cells"]["initial"][:2].tolist() == [(1 << 32) - 1, 7]
    assert tally["columns"][3] == tally["cells"][0]  # x comes last by name


def test_histograms_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program("values", (Location("x", "i32"),), ((Load("a", "x"),), (Load("b", "x"),)))
    small, keys = np.zeros(native.SMALL, np.uint64), np.zeros(native.SLOTS, np.uint64)
    counts, values = np.zeros(native.SLOTS, np.uint64), np.zeros((native.SLOTS, native.MAX_COLUMNS), np.uint64)
    small[(1 << 4) + 2], keys[5], counts[5], values[5, :2] = 7, 99, 3, ((1 << 32) - 1, 1000)
    lost = np.zeros(1, np.uint64)
    tables = {"small": small, "keys": keys, "counts": counts, "values": values.ravel(), "lost": lost}
    space = SimpleNamespace(**{n: SimpleNamespace(get=lambda d, c, t=t: t) for n, t in tables.items()})
    monkeypatch.setattr(litmus_launch, "workspace", lambda: space)
    kernel_ = Kernel(program, Recorder())  # type: ignore[arg-type]
    assert kernel_.histogram() == {(("0:a", -1), ("1:b", 1000)): 3, (("0:a", 1), ("1:b", 2)): 7}
    lost[0] = 1
    with pytest.raises(NotOffered, match="different outcomes"):
        kernel_.histogram()


def test_settings_are_shown_briefly() -> None:
    assert str(Knobs()) == "defaults"
    assert str(Knobs(chunk=10, waits=(0, 800), rotate=True)) == "chunk=10 rotate=1 waits=0,800"


def test_overlap_is_balanced_where_everything_is_common() -> None:
    one, two = (("r", 0),), (("r", 1),)
    even, lopsided = Overlap({one: 0.3, two: 0.3}, 0.4), Overlap({one: 1.0, two: 0.0}, 0.0)
    assert even.balance == pytest.approx(0.33, abs=0.01)
    assert lopsided.balance < 1e-3
