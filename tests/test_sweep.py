"""Sweeps: the judges agree with the definition, and a record depends on nothing but the inputs and the backend.

With ``HALFULP_DEEP`` set a worker of a Dask cluster is killed during a sweep, too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import halfulp
from halfulp.adapters.discovery import load
from halfulp.adapters.protocol import Options
from halfulp.certify import cli
from halfulp.certify.device import device_class
from halfulp.certify.sweep import engine, job, judges, known
from halfulp.certify.sweep.domain import CHUNK, Codes, Listed, Pairs, Sample, domain_from_plain
from halfulp.certify.sweep.judges import FunctionJudge, SetJudge, bulk_judge, error_in_ulp, judge_of
from halfulp.certify.sweep.part import Part, part_from_plain
from halfulp.certify.sweep.record import summary_text
from halfulp.oracle import codes
from halfulp.oracle.bulk import TARGETS, digest, narrow
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.ops import OPERATIONS, Signature, operation, signatures
from halfulp.oracle.rounding import value_of

F32 = FORMATS["f32"]
DEEP = bool(os.environ.get("HALFULP_DEEP"))

STUBS = '''
import os
import time

import numpy as np

from halfulp.adapters.protocol import Facts, Unsupported
from halfulp.backends.cpu import CpuAdapter


class Wrapped(CpuAdapter):
    """The CPU backend, and something done to its results."""

    def compile(self, programs, options):
        return [self.wrap(p) if callable(p) else p for p in super().compile(programs, options)]

    def wrap(self, program):
        return lambda *inputs: self.change(inputs, [np.array(output) for output in program(*inputs)])

    def change(self, inputs, outputs):
        return outputs


class OneInput(Wrapped):
    """Two codes off at a single input."""

    def change(self, inputs, outputs):
        outputs[0][inputs[0] == 0x3f812345] += 2
        return outputs


class Slow(Wrapped):
    """Slow, and counts its calls in a file."""

    def change(self, inputs, outputs):
        with open(os.path.join(os.path.dirname(__file__), "calls"), "a") as file:
            file.write(".")
        time.sleep(0.02)
        return outputs


class Fickle(Wrapped):
    """Other results each time."""

    count = 0

    def change(self, inputs, outputs):
        Fickle.count += 1
        outputs[0][:] += np.uint32(Fickle.count)
        return outputs


class Short(Wrapped):
    def change(self, inputs, outputs):
        return [outputs[0][1:]]


class Raises(Wrapped):
    def change(self, inputs, outputs):
        raise RuntimeError("out of luck")


class Dies(Wrapped):
    def change(self, inputs, outputs):
        os._exit(3)
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own with the stubs; the tables stay where they are."""
    (tmp_path / "stubs.py").write_text(STUBS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "stubs", raising=False)
    package = Path(halfulp.__path__[0]).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(package)]))
    monkeypatch.chdir(tmp_path)
    job.target_of.cache_clear()
    yield tmp_path
    sys.modules.pop("stubs", None)


def sweep(*options: str) -> int:
    return cli.main(["sweep", *options, "--quiet", "--state", "state"])


def record(capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> dict[str, Any]:
    """The record that a sweep prints, checked against its schema."""
    capsys.readouterr()
    assert sweep(*options, "--json") == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, schema("sweep-record"))
    return found


def schema(name: str) -> Any:
    return json.loads((resources.files("halfulp.certify") / "data" / f"{name}.schema.json").read_text("utf-8"))


def timeless(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("time", "date")}


# Judges.

FUNCTIONS = [s for s in signatures(tuple(TARGETS)) if s.args == ("f32",)]


def disturbed(signature: Signature, bits: Any, rng: np.random.Generator) -> Any:
    """Correctly rounded results, most of them then moved by a few steps, or made something else altogether."""
    nearest = operation(signature.op).allowed(signature, [bits]).nearest
    kind = rng.integers(0, 8, len(bits))
    steps = rng.integers(-9, 10, len(bits))
    moved = codes.from_ordinal(F32, np.clip(codes.ordinal(F32, nearest) + steps, *codes.ordinal_span(F32)))
    got = np.where(codes.is_nan(F32, nearest) | (kind < 2), nearest, moved)
    got = np.where(kind == 5, nearest ^ np.uint32(F32.sign_mask), got)
    got = np.where(kind == 6, rng.choice(np.array([0, 0x80000000, 0x7F800000, 0x7FC00000, 0x3F800000]), len(bits)), got)
    return np.where(kind == 7, bits, got).astype(np.uint32)


def interesting(signature: Signature, rng: np.random.Generator, count: int) -> Any:
    """Critical points, ends of strict stretches, and random codes."""
    edges = [edge + d for stretch in judges.strict_stretches(signature) for edge in stretch for d in (-2, -1, 0, 1, 2)]
    critical = operation(signature.op).critical(signature)[0]
    drawn = rng.integers(0, 1 << 32, count)
    busy = rng.integers(0x3A000000, 0x42000000, count) | (rng.integers(0, 2, count) << 31)
    everything = np.concatenate([np.array(edges, np.int64), critical.astype(np.int64), drawn, busy])
    return np.unique(everything & 0xFFFFFFFF).astype(np.uint32)


@pytest.mark.parametrize("signature", FUNCTIONS, ids=lambda s: s.id)
def test_bulk_verdicts_are_those_of_the_sets(signature: Signature) -> None:
    rng = np.random.default_rng(7)
    bits = interesting(signature, rng, 150)
    got = disturbed(signature, bits, rng)
    fast, slow = FunctionJudge(signature).assess([bits], got), SetJudge(signature).assess([bits], got)
    different = np.flatnonzero(fast.verdict != slow.verdict)
    assert not len(different), [(hex(bits[i]), hex(got[i])) for i in different[:3]]
    assert len(set(fast.verdict.tolist())) >= 2
    same = codes.distance(F32, fast.nearest, slow.nearest)
    assert not same.any()


@pytest.mark.parametrize("signature", FUNCTIONS, ids=lambda s: s.id)
def test_runs_are_judged_as_single_elements_are(signature: Signature) -> None:
    """Where everything is clear and where one element is not; across the ends of strict stretches."""
    rng = np.random.default_rng(11)
    starts = [0x3F800000, 0xC2FBFF00, 0x007FFF80, 0x80000000, 0xC3160000 - 64]
    for start in starts:
        bits = np.arange(start, start + 256, dtype=np.uint64).astype(np.uint32)
        right = operation(signature.op).allowed(signature, [bits]).nearest
        one = right.copy()
        one[rng.integers(0, 256)] ^= np.uint32(0x80000001)
        for got in (right, one, disturbed(signature, bits, rng)):
            judge = FunctionJudge(signature)
            run, single = judge.judge_run(start, [bits], np.ascontiguousarray(got)), judge.judge([bits], got)
            names = ("inputs", "claimed", "allowed", "forbidden", "unspecified")
            assert [getattr(run, n) for n in names] == [getattr(single, n) for n in names], hex(start)
            assert run.breaches == single.breaches


@pytest.mark.parametrize("attrs", [s.attrs for s in signatures(("fdiv",)) if s.args[0] == "f32"], ids=str)
def test_quotients_are_judged_by_their_sets(attrs: Any) -> None:
    signature = Signature("fdiv", ("f32", "f32"), "f32", attrs)
    a, b = operation("fdiv").critical(signature)
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        got = (a.view(np.float32) / b.view(np.float32)).view(np.uint32)
    got = np.where(rng.integers(0, 2, len(a)) == 1, got, got + rng.integers(-3, 4, len(a)).astype(np.uint32))
    fast, slow = judge_of(signature).assess([a, b], got), SetJudge(signature).assess([a, b], got)  # type: ignore[attr-defined]
    assert (fast.verdict == slow.verdict).all()
    assert (fast.distance == slow.distance).all()


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f8e5m2", "f8e4m3fn"])
def test_fractional_errors(name: str) -> None:
    fmt = FORMATS[name]
    rng = np.random.default_rng(5)
    got = rng.integers(0, fmt.code_count, 400).astype(fmt.storage)
    with np.errstate(invalid="ignore"):
        exact = codes.float64_values(fmt, got) * (1 + rng.normal(size=400) * 2.0 ** -(fmt.fraction_bits + 1))
    found = error_in_ulp(fmt, exact, got)
    for code, value, error in zip(got.tolist(), exact.tolist(), found.tolist(), strict=True):
        number = value_of(fmt, code)
        if not isinstance(number, Fraction):
            assert error != error
            continue
        size = abs(Fraction(value))
        exponent = fmt.emin
        while size >= Fraction(2) ** (exponent + 1):
            exponent += 1
        expected = abs(number - Fraction(value)) / Fraction(2) ** (exponent - fmt.fraction_bits)
        assert error == pytest.approx(float(expected), rel=2**-40)


def test_an_infinite_result_is_as_far_as_the_power_above_the_largest_number() -> None:
    most = codes.float64_values(F32, np.array([F32.max_finite_bits], np.uint32))
    infinity = np.array([F32.infinity_bits], np.uint32)
    assert error_in_ulp(F32, most, infinity)[0] == 1.0
    assert error_in_ulp(F32, np.array([2.0**128]), infinity)[0] == 0.0
    assert error_in_ulp(F32, np.array([2.0**130]), infinity)[0] == 0.0


# Domains.


def test_domains_number_their_inputs() -> None:
    assert Codes("f16", 5, 10).columns(2, 3)[0].tolist() == [7, 8, 9]
    listed = Listed("f32", 1, (7, 9), 100, 3)
    assert listed.inputs == 6
    running, fixed = listed.columns(1, 5)
    assert running.tolist() == [101, 102, 100, 101, 102]
    assert fixed.tolist() == [7, 7, 9, 9, 9]
    top = Codes("f32", 0, 1 << 32)
    assert top.exhaustive
    assert top.columns((1 << 32) - 2, 2)[0].tolist() == [0xFFFFFFFE, 0xFFFFFFFF]


def test_samples_depend_on_seed_and_chunk_alone() -> None:
    signature = Signature("tanh", ("f64",), "f64")
    sample = Sample(signature, ((1,), (2,)), CHUNK + 10, 3)
    (first,) = sample.columns(0, 1000)
    assert first[:2].tolist() == [1, 2]
    (again,) = domain_from_plain(signature, json.loads(json.dumps(sample.plain()))).columns(0, 1000)
    assert (first == again).all()
    (second,) = sample.columns(CHUNK, 12)
    assert len(np.intersect1d(first, second)) == 0
    exponents = (first >> np.uint64(52)) & np.uint64(0x7FF)
    assert len(np.unique(exponents)) > 300


def test_parts_survive_json() -> None:
    signature = Signature("erfc", ("f32",), "f32")
    bits = np.array([0x3F800000, 0x7F800000, 0], np.uint32)
    part = FunctionJudge(signature).judge([bits], np.array([0x7F800000, 1, 0x3F800000], np.uint32))
    part.profile = [(0, float("inf"))]
    assert part.forbidden == 2
    assert part_from_plain(json.loads(json.dumps(part.plain()))) == part


# Records.


def test_the_record_of_a_whole_format(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, "erfc", "--format", "f16", "--processes", "1")
    assert found["inputs"] == found["claimed"] == 65536 == sum(found["histogram"].values())
    assert found["exhaustive"]
    assert (found["forbidden"], found["undecided"], found["repeatable"]) == (0, 0, True)
    assert found["bound"] == {"ulp": 4, "of": "f32", "stated": True}
    assert found["convention"] == "reading:1"
    assert found["max_fractional_error"] >= 0.49
    signature = Signature("erfc", ("f16",), "f16")
    adapter = load("cpu")
    (program,) = adapter.compile([operation("erfc").kernel(signature)], Options(max(adapter.opt_levels)))
    assert callable(program)
    (output,) = program(np.arange(65536, dtype=np.uint16))
    chunk = hashlib.sha256(np.ascontiguousarray(output).data).digest()
    assert found["digest"] == hashlib.sha256(chunk).hexdigest()
    worst = int(found["max_fractional_error_argument"], 16)
    assert found["worst"][0]["argument"] == found["max_fractional_error_argument"]
    assert found["worst"][0]["got"] == FORMATS["f16"].hex(int(output[worst]))
    assert len(found["worst"]) == 10


def test_one_wrong_input_is_found_in_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("log1p", "--backend", "stubs:OneInput", "--range", "0x3f700000:0x3f900000", "--processes", "1")
    found = record(capsys, *options, status=1)
    assert found["inputs"] == 2 * CHUNK
    assert found["forbidden"] == 1
    assert found["max_argument"] == "0x3f812345"
    assert found["max_distance"] == 2
    (breach,) = found["breaches"]
    assert (breach["argument"], breach["distance"], breach["clause"]) == ("0x3f812345", 2, "intent:5-e")
    assert found["worst"][0]["argument"] == "0x3f812345"
    assert sweep(*options) == 1
    assert "FORBIDDEN    0x3f812345" in capsys.readouterr().out


def test_f64_is_sampled_and_searched(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, "tanh", "--format", "f64", "--sample", "800", "--processes", "1")
    assert not found["exhaustive"]
    assert found["maxima"].startswith("lower bounds")
    assert found["search"]["inputs"] > 1000
    assert found["inputs"] > 1800
    assert found["max_fractional_error"] >= found["search"]["max_fractional_error"]
    sample = Sample(Signature("tanh", ("f64",), "f64"), (), 800, 0)
    assert "lower bounds" in summary_text(job.Job("cpu", sample.signature, sample), found)


def test_fdiv_over_a_list_and_over_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("fdiv", "--approximate", "--processes", "1")
    found = record(capsys, *options, "--rhs", "3,0x7e800001", "--range", "0:0x1000")
    assert found["inputs"] == 0x2000
    assert found["domain"]["values"] == ["0x40400000", "0x7e800001"]
    assert found["forbidden"] == 0
    found = record(capsys, *options, "--sample", "1e4", "--flush-to-zero", "--seed", "5")
    assert found["domain"]["draws"] == 10000
    assert found["forbidden"] == 0
    assert isinstance(found["max_argument"], list)


def test_casts_and_other_exact_operations(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, "cast", "--result", "f8e4m3fn", "--range", "0x43000000:0x44000000", "--processes", "1")
    assert found["claimed"] < found["inputs"]
    assert found["no_claim"] + found["claimed"] == found["inputs"]
    assert found["max_distance"] == 0
    assert found["max_fractional_error"] is None
    found = record(capsys, "neg", "--format", "f8e5m2", "--processes", "1")
    assert (found["inputs"], found["exhaustive"]) == (256, True)


@pytest.mark.parametrize("op", TARGETS)
def test_known_inputs_alone_take_no_time(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    bulk_judge(op)
    began = time.monotonic()
    found = record(capsys, op, "--sample", "0", "--processes", "1")
    assert time.monotonic() - began < 2
    assert found["known_inputs"]["inputs"] >= 2
    assert found["known_inputs"]["forbidden"] == 0


def test_known_inputs_are_codes_of_their_formats() -> None:
    for signature in signatures():
        for one in known.known_inputs(signature):
            assert len(one.operands) == operation(signature.op).arity
            assert all(0 <= c < f.code_count for c, f in zip(one.operands, signature.formats, strict=True))
            assert one.why
    assert {op for op in TARGETS if known.known_inputs(Signature(op, ("f32",), "f32"))} == set(TARGETS)
    assert set(known._content()) <= set(OPERATIONS)


def test_results_that_change_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(
        capsys, "exp2", "--backend", "stubs:Fickle", "--range", "0x3f800000:0x3f800100", "--processes", "1", status=1
    )
    assert not found["repeatable"]


# Executors and states.


class Shuffled(Executor):
    """Runs tasks in another order than that of their submission."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        self.tasks: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, fn, args))
        threading.Timer(0.02, self.work).start()
        return future

    def work(self) -> None:
        future, fn, args = self.tasks.pop(self.random.randrange(len(self.tasks)))
        future.set_result(fn(*args))


LONG = ("asin", "--range", "0x3e800000:0x3f000000")
"""Eight chunks."""


_EXPECTED: dict[str, Any] = {}


@pytest.fixture
def expected(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The record of `LONG`, made once, in this process."""
    if not _EXPECTED:
        _EXPECTED.update(timeless(record(capsys, *LONG, "--processes", "1")))
    return _EXPECTED


def test_the_order_of_chunks_makes_no_difference(
    expected: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def shuffled(processes: int) -> Iterator[tuple[Executor, int]]:
        yield Shuffled(), 3

    monkeypatch.setattr(engine, "local_executor", shuffled)
    assert timeless(record(capsys, *LONG)) == expected


def test_interruption_and_resumption_in_processes(
    expected: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real thing: a signal to a command with two worker processes; then the rest, and the same record."""
    options = ("asin", "--backend", "stubs:Slow", "--range", "0x3e800000:0x3f000000")
    command = [sys.executable, "-m", "halfulp.certify.cli", "sweep", *options, "--processes", "2", "--state", "state"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    calls = folder / "calls"
    while running.poll() is None and not (calls.exists() and calls.stat().st_size > 20):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=30)
    assert running.returncode == 2, error
    (state,) = (folder / "state").iterdir()
    assert f"halfulp sweep --resume {state}" in error
    assert "Traceback" not in error
    done = json.loads(state.read_text())["parts"]
    assert 0 < len(done) < 8
    capsys.readouterr()
    assert cli.main(["sweep", "--resume", str(state), "--processes", "1", "--quiet", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert not state.exists()
    assert timeless(resumed) == {**expected, "backend": "stubs:Slow"}


def test_an_interruption_at_any_moment_keeps_what_is_done(
    expected: dict[str, Any],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit, calls = engine.Inline.submit, []

    def third_time(self: engine.Inline, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        calls.append(fn)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return submit(self, fn, *args)

    monkeypatch.setattr(engine.Inline, "submit", third_time)
    assert sweep(*LONG, "--processes", "1") == 2
    (state,) = (folder / "state").iterdir()
    assert cli.main(["sweep", "--resume", str(state), "--processes", "1", "--quiet", "--json"]) == 0
    assert timeless(json.loads(capsys.readouterr().out)) == expected


def test_a_state_of_other_versions_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep_job = job.Job("cpu", Signature("asin", ("f32",), "f32"), Codes("f32", 0, 10))
    state = engine.State(sweep_job, folder / "s.json", {0: Part(digest="00")})
    state.versions["numpy"] = "0.1"
    state.save()
    assert cli.main(["sweep", "--resume", "s.json"]) == 2
    assert "was begun with numpy 0.1" in capsys.readouterr().err


# Dask.


@contextmanager
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as found:
        yield found


def test_a_dask_cluster_gives_the_same_record(expected: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with cluster() as found:
        got = record(capsys, *LONG, "--scheduler", found.scheduler_address)
    assert timeless(got) == expected


@pytest.mark.skipif(not DEEP, reason="takes a minute; set HALFULP_DEEP")
def test_a_dask_worker_may_die(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("asin", "--backend", "stubs:Slow", "--range", "0x3d000000:0x3f000000")
    whole = timeless(record(capsys, *options, "--processes", "2"))
    with cluster() as found:
        pids = [worker.process.pid for worker in found.workers.values()]
        killer = threading.Timer(8, os.kill, (pids[0], signal.SIGKILL))
        killer.start()
        got = record(capsys, *options, "--scheduler", found.scheduler_address)
        assert not killer.is_alive(), "the sweep was over before the worker was killed"
    assert timeless(got) == whole


# Pictures.


@pytest.mark.parametrize("name", ["p.svg", "p.png"])
def test_pictures(name: str, folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert sweep("erfc", "--format", "f16", "--processes", "1", "--plot", name) == 0
    content = (folder / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    if name.endswith("svg"):
        assert b"erfc[f16" in content or b"<path" in content


# Refusals.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name an operation"),
        (["nope"], "no operation 'nope'"),
        (["muladd"], "3 operands"),
        (["asin", "--format", "f33"], "no such format"),
        (["asin", "--format", "i32"], "the language refuses"),
        (["asin", "--flush-to-zero"], "intent:5.1-b"),
        (["asin", "--approximate", "--format", "f64"], "halfulp sweep:"),
        (["cast"], "needs --result"),
        (["asin", "--result", "f16"], "leave it out"),
        (["asin", "--range", "1"], "LO:HI"),
        (["asin", "--range", "5:5"], "LO below HI"),
        (["asin", "--range", "0:0x100000001"], "at most 0x100000000"),
        (["asin", "--range", "0:5", "--sample", "5"], "exclude each other"),
        (["asin", "--range", "0:5", "--seed", "5"], "--seed is for samples"),
        (["asin", "--sample", "many"], "give a number"),
        (["asin", "--sample", "5", "--seed", "x"], "a seed is an integer"),
        (["asin", "--rhs", "3"], "has one operand"),
        (["fdiv"], "two operands"),
        (["fdiv", "--rhs", "3", "--lhs", "3"], "exclude each other"),
        (["fdiv", "--rhs", "x"], "neither a bit pattern"),
        (["fdiv", "--rhs", "0x100000000"], "32 bits"),
        (["fdiv", "--rhs", ","], "is empty"),
        (["fdiv", "--rhs", "3", "--format", "f64"], "cannot be enumerated"),
        (["asin", "--processes", "0"], "give 1 or more"),
        (["asin", "--backend", "nobody"], "--backend nobody"),
        (["asin", "--backend", "saboteur:nothing"], "--backend saboteur:nothing"),
        (["asin", "--plot", "x.gif", "--range", "0:5"], ".svg or a .png"),
        (["asin", "--plot", "no/x.svg", "--range", "0:5"], "there is no folder"),
        (["asin", "--plot", "x.svg", "--sample", "5"], "no such picture"),
        (["asin", "--json", "no/x.json", "--range", "0:5"], "create it first"),
        (["--resume", "nothing.json"], "No such file"),
        (["--resume", "stubs.py"], "is not the state of a sweep"),
        (["asin", "--resume", "stubs.py"], "leave out op"),
        (["asin", "--range", "0:5", "--backend", "stubs:Raises"], "out of luck"),
        (["asin", "--range", "0:5", "--backend", "stubs:Short"], "one uint32 array of 5"),
        (["asin", "--range", "0:5", "--scheduler", "tcp://127.0.0.1:1", "--processes", "2"], "exclude each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_refusals_say_what_to_do(
    options: Sequence[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "_content", dict)
    processes = () if {"--processes", "--resume"} & set(options) else ("--processes", "1")
    state = () if "--resume" in options else ("--state", "state")
    assert cli.main(["sweep", *options, *processes, *state, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_worker_that_dies_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "_content", dict)
    assert sweep("neg", "--backend", "stubs:Dies", "--range", f"0:{4 * CHUNK}", "--processes", "2") == 2
    assert "a worker process died" in capsys.readouterr().err


def test_progress_has_rate_and_time_to_go() -> None:
    progress = engine.Progress(1000, 0, True)
    progress.advance(500)
    text = progress.text(progress.began + 2.0)
    assert "50.0 %" in text
    assert "500 of 1,000 inputs" in text
    assert "2 s to go" in text


def test_inline_reports_errors_like_other_executors() -> None:
    future = engine.Inline().submit(int, "x")
    wait([future])
    assert isinstance(future.exception(), ValueError)


def test_the_device_class_of_a_gpu() -> None:
    versions = {"nvrtc": "13.0", "gpu": "NVIDIA H200", "cuda driver": "13.0", "arch": "sm_90"}
    assert device_class(versions) == "NVIDIA H200/sm_90/nvrtc-13.0/driver-13.0"
    assert device_class({**versions, "device": "mine"}) == "mine"


# Digests without order, and pairs.


def plain_digest(signature: Signature, columns: Sequence[Any], got: Any) -> tuple[int, int]:
    """By the definition in ``docs/reference/sweep-record.md``, one input at a time."""
    sums = []
    for a_, b_, m in digest.CONSTANTS:
        total = 0
        for row in zip(*(column.tolist() for column in columns), got.tolist(), strict=True):
            words = []
            for codes_, formats in ((row[:-1], signature.formats), (row[-1:], [signature.result_format])):
                sizes = [max(8, fmt.width) for fmt in formats]
                if sum(sizes) <= 32:
                    word = sum(code << sum(sizes[:k]) for k, code in enumerate(codes_))
                else:
                    parts = []
                    for code, size in zip(codes_, sizes, strict=True):
                        parts += [code & 0xFFFFFFFF] + ([code >> 32] if size > 32 else [])
                    word = parts[0]
                    for part in parts[1:]:
                        word = ((word ^ word >> 15) * m + part) & 0xFFFFFFFF
                words.append(word)
            x, y = words
            a, b = (a_ * x + y) & 0xFFFFFFFF, (b_ * y + x) & 0xFFFFFFFF
            total += (a ^ a >> 16) * (b ^ b >> 15)
        sums.append(total % 2**64)
    return sums[0], sums[1]


@pytest.mark.parametrize(
    "signature",
    [
        Signature("cast", ("f32",), "f16"),
        Signature("add", ("bf16", "bf16"), "bf16"),
        Signature("fdiv", ("f32", "f32"), "f32"),
        Signature("tanh", ("f64",), "f64"),
        Signature("cast", ("f8e5m2",), "f64"),
    ],
    ids=lambda s: s.id,
)
def test_the_digest_is_the_one_that_is_documented(signature: Signature) -> None:
    rng = np.random.default_rng(31)

    def drawn(fmt: Any) -> Any:
        return rng.integers(0, fmt.code_count - 1, 77, np.uint64, endpoint=True).astype(fmt.storage)

    columns, got = [drawn(fmt) for fmt in signature.formats], drawn(signature.result_format)
    whole = digest.digest_of(signature, columns, got)
    assert whole == plain_digest(signature, columns, got)
    order = rng.permutation(77)
    parts = [digest.digest_of(signature, [c[p] for c in columns], got[p]) for p in (order[:20], order[20:])]
    assert digest.add(*parts) == whole
    for change in (1, 1 << (signature.result_format.width - 1)):
        other = got.copy()
        other[5] ^= got.dtype.type(change)
        assert all(a != b for a, b in zip(digest.digest_of(signature, columns, other), whole, strict=True))
    swapped = got.copy()
    swapped[[3, 4]] = swapped[[4, 3]] if swapped[3] != swapped[4] else swapped[[4, 3]] ^ got.dtype.type(1)
    assert digest.digest_of(signature, columns, swapped) != whole
    second = got.copy()  # of sums that are linear in the results, this is invisible
    second[[10, 11, 12]] += np.array([1, -2, 1]).astype(got.dtype)
    assert digest.digest_of(signature, columns, second) != whole


def test_pairs_of_narrow_formats(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Pairs("f16", 0x3C00FFFE, 100).columns(1, 3)
    assert (first.tolist(), second.tolist()) == ([0x3C00, 0x3C01, 0x3C01], [0xFFFF, 0, 1])
    assert Pairs("bf16", 0, 1 << 32).exhaustive
    top = Pairs("bf16", 0, 1 << 32).columns((1 << 32) - 1, 1)
    assert [column.tolist() for column in top] == [[0xFFFF], [0xFFFF]]
    found = record(capsys, "mul", "--format", "f8e5m2", "--processes", "1")
    assert (found["inputs"], found["exhaustive"], found["forbidden"]) == (65536, True, 0)
    found = record(capsys, "div", "--format", "f16", "--range", "0x3c000000:0x3c002000", "--processes", "1")
    assert found["domain"] == {"kind": "pairs", "first": ["0x3c00", "0x0000"], "last": ["0x3c00", "0x1fff"]}
    assert not found["exhaustive"]
    assert sweep("div", "--format", "f16", "--range", "0x3c000000:0x3c000100", "--processes", "1") == 0
    assert "all 256 pairs from 0x3c00, 0x0000" in capsys.readouterr().out
    assert record(capsys, "add", "--format", "bf16", "--sample", "100", "--processes", "1")["domain"]["draws"] == 100


# Records of a machine with a GPU.


def test_a_step_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parent.parent / "benchmarks" / "gpu_records.py"
    spec = importlib.util.spec_from_file_location("gpu_records", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_records", program)
    spec.loader.exec_module(program)
    assert len(list(program.functions())) == len(FUNCTIONS)
    assert len(list(program.casts())) == 12
    assert len(list(program.pairs())) == 6
    assert len(list(program.wide())) == len(TARGETS)

    def fails(options: Any) -> Any:
        raise RuntimeError("out of luck")

    signature = Signature("erfc", ("f16",), "f16")
    good = program.sweep_step(signature, Codes("f16", 0, 1 << 16))
    monkeypatch.setitem(program.STEPS, "functions", lambda: iter([("bad", fails), ("good", good)]))
    monkeypatch.setattr(program, "prepare", lambda executor: None)
    command = ["gpu_records.py", "--out", str(tmp_path), "--backend", "cpu", "--only", "functions", "--processes", "1"]
    monkeypatch.setattr(sys, "argv", command)
    assert program.main() == 1
    summary = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert summary["steps"]["bad"]["failed"] == "RuntimeError: out of luck"
    assert summary["steps"]["good"]["good"]
    jsonschema.validate(json.loads((tmp_path / "sweep-cuda-erfc-f16.json").read_text("utf-8")), schema("sweep-record"))
    sleeper = program.command_step("slow.json", ["-c", "import time; time.sleep(60)"], limit="litmus")
    writer = program.command_step("quick.json", ["-c", "open(r'{record}', 'w').close()"], limit="litmus")
    monkeypatch.setitem(program.STEPS, "litmus", lambda: iter([("slow", sleeper), ("quick", writer)]))
    monkeypatch.setattr(sys, "argv", [*command, "--only", "litmus", "--limits", "litmus=1.5"])
    assert program.main() == 1
    steps = json.loads((tmp_path / "summary.json").read_text("utf-8"))["steps"]
    assert (steps["slow"]["failed"], steps["slow"]["record"]) == ("interrupted after 2 s", False)
    assert steps["slow"]["seconds"] < 20
    assert steps["quick"]["good"]
    assert steps["quick"]["record"]
    monkeypatch.setattr(sys, "argv", [*command, "--budget", "-1"])
    assert program.main() == 1
    assert json.loads((tmp_path / "summary.json").read_text("utf-8"))["left_out"] == ["bad", "good"]


@pytest.mark.parametrize("op", narrow.OPERATIONS)
@pytest.mark.parametrize("fmt", narrow.FORMATS)
def test_narrow_arithmetic_is_judged_as_its_sets_say(op: str, fmt: str) -> None:
    """Edges against edges, operands that nearly cancel, and any; then with results wrong by a step or by their sign."""
    signature = Signature(op, (fmt, fmt), fmt)
    rng = np.random.default_rng(37)
    edges = np.array([0, 1, 2, 3, 0x7F, 0x80, 0x81, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x3F80, 0x7BFE, 0x7BFF,
                      0x7C00, 0x7E00, 0x7F7F, 0x7F80, 0x7FC0])  # fmt: skip
    edges = np.concatenate([edges, edges | 0x8000]).astype(np.uint16)
    grid = np.meshgrid(edges, edges)
    drawn = rng.integers(0, 1 << 16, (3, 20_000)).astype(np.uint16)
    near = (drawn[0] ^ np.uint16(0x8000)) + rng.integers(-40, 41, 20_000).astype(np.uint16)
    a = np.concatenate([grid[0].ravel(), drawn[0], drawn[1]])
    b = np.concatenate([grid[1].ravel(), near, drawn[2]])
    right = operation(op).allowed(signature, [a, b]).nearest
    fast, slow = judge_of(signature), SetJudge(signature)
    assert narrow.narrow(op, fmt).doubtful(a, b, right).sum() == 0
    assert fast.judge([a, b], right) == slow.judge([a, b], right)
    for change in (np.uint16(1), np.uint16(0x8000)):
        wrong = right.copy()
        places = rng.integers(0, len(a), 20)
        wrong[places] ^= change
        found = narrow.narrow(op, fmt).doubtful(a, b, wrong)
        assert found.sum() > 10
        assert fast.judge([a, b], wrong, worst=False) == slow.judge([a, b], wrong, worst=False)
        assert fast.judge([a, b], wrong).worst[0].distance == slow.judge([a, b], wrong).worst[0].distance
