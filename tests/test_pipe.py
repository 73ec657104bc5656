"""The pipe: arrays and programs as JSON, runners that misbehave, and the example runners."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp.adapters import Options, Rejected, Unsupported, UnsupportedError, assert_adapter, load
from halfulp.adapters.pipe import PipeAdapter, PipeError, PipeWarning
from halfulp.adapters.protocol import Closes, HasArtifact
from halfulp.adapters.wire import WireError, array_from_json, array_to_json
from halfulp.oracle import source as sources
from halfulp.oracle.formats import CANONICAL, FORMATS, WIDE, format_of
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.source import Call, Formed, Literal, Parameter, Source

EXAMPLES = Path(__file__).parent.parent / "examples"
Array = np.ndarray[Any, np.dtype[Any]]

ADD = one_node("add", ("i32", "i32"), "i32")


def words(*values: int) -> Array:
    return np.array(values, np.uint32)


# Arrays.


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,)])
def test_arrays_survive_the_wire(name: str, shape: tuple[int, ...]) -> None:
    fmt = format_of(name)
    count = shape[0] if shape else 1
    if fmt.storage == WIDE:
        bits = np.array([(i + 1, 2 * i + (1 << 63)) for i in range(count)], WIDE).reshape(shape)
    else:
        codes = [(0x0123456789ABCDEF * (i + 1)) % fmt.code_count for i in range(count)]
        bits = np.array(codes, fmt.storage).reshape(shape)
    data = json.loads(json.dumps(array_to_json(name, bits)))
    assert len(data["bits"]) == 2 * fmt.storage.itemsize * count
    dtype, back = array_from_json(data, name, shape)
    assert dtype == name
    assert back.dtype == fmt.storage
    assert back.shape == shape
    assert np.array_equal(back, bits)
    assert back.flags.writeable


def test_most_significant_digit_first() -> None:
    assert array_to_json("f16", np.array([0x3C00, 0x8000], np.uint16)) == {
        "dtype": "f16",
        "shape": [2],
        "bits": "3c008000",
    }
    wide = np.array([(1, 2)], WIDE)
    assert array_to_json("u128", wide)["bits"] == "0000000000000002" + "0000000000000001"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "is a list, not an object"),
        ({"dtype": "f32"}, "has no shape, no bits"),
        ({"dtype": "i32", "shape": [1], "bits": "00000000"}, "dtype 'i32' where 'f32'"),
        ({"dtype": "f32", "shape": [2], "bits": ""}, r"shape \[2\] where \[1\]"),
        ({"dtype": "f32", "shape": 1, "bits": ""}, r"shape 1, which is neither"),
        ({"dtype": "f32", "shape": [True], "bits": ""}, "which is neither"),
        ({"dtype": "f32", "shape": [-1], "bits": ""}, "which is neither"),
        ({"dtype": "f32", "shape": [1], "bits": "3f8000"}, "6 hexadecimal digits where 1 elements of f32 take 8"),
        ({"dtype": "f32", "shape": [1], "bits": "3f80000g"}, "not hexadecimal"),
        ({"dtype": "f32", "shape": [1], "bits": "3f 80 00"}, "not hexadecimal"),
        ({"dtype": "f32", "shape": [1], "bits": 1}, "a number, not text"),
    ],
)
def test_malformed_arrays_are_described(data: Any, message: str) -> None:
    with pytest.raises(WireError, match=message):
        array_from_json(data, "f32", (1,))


def test_a_code_that_the_format_has_not_is_refused() -> None:
    with pytest.raises(WireError, match="0x2, which is no code of bool"):
        array_from_json({"dtype": "bool", "shape": [2], "bits": "0002"})
    with pytest.raises(WireError, match="unknown format 'f31'"):
        array_from_json({"dtype": "f31", "shape": [0], "bits": ""})


# Source programs.


@pytest.mark.parametrize(
    "source",
    [
        Source(Call("add", (Parameter("x", "i8"), Literal(300)))),
        Source(Call("mul", (Parameter("x", "f32"), Formed(Literal(1.0))))),
        Source(Call("cast", (Parameter("x", "f32"),), "i8")),
        Source(Call("fdiv", (Literal(float("inf")), Literal(True)), None, (("approximate", 1), ("flush", True)))),
        Source(Literal(1 << 200)),
        Source(Literal(0.1)),
    ],
)
def test_source_programs_survive_json(source: Source) -> None:
    back = sources.from_json(json.loads(json.dumps(sources.to_json(source))))
    assert repr(back) == repr(source)  # repr tells True from 1


@pytest.mark.parametrize("data", [{}, {"source": 1}, {"source": {"literal": {"kind": "str", "text": "x"}}}])
def test_malformed_source_programs(data: Any) -> None:
    with pytest.raises(ValueError, match=r"not a source program|no literal"):
        sources.from_json(data)


# Runners that misbehave. Each is a Python program made of an ordinary runner and a few lines that spoil it.

RUNNER = """
import json, os, signal, sys, time
handles = {}
started = os.path.join(os.path.dirname(__file__), "starts")
open(started, "a").write("x")
starts = os.path.getsize(started)

def dtype(program): return program["values"][0].get("input", "")
def op(program): return program["values"][-1].get("op", "")

def hello(m): return {"halfulp": 1, "name": "toy"}
def compile_one(p):
    handles[len(handles)] = p
    return {"ok": len(handles) - 1}
def compile(m): return {"answers": [compile_one(p) for p in m["programs"]]}
def run(m):
    return {"outputs": [m["inputs"][0] for o in handles[m["handle"]]["outputs"]]}
def release(m):
    for handle in m["handles"]: del handles[handle]
    return {}
def artifact(m): return {"artifact": op(m["program"])}
def send(answer): print(json.dumps(answer), flush=True)
def answer(m): return {"id": m["id"], **globals()[m["type"]](m)}
def serve():
    for line in sys.stdin:
        m = json.loads(line)
        send(answer(m))
"""

Start = Callable[..., PipeAdapter]


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Start]:
    """Start a runner that differs from the ordinary one by some lines of Python."""
    adapters: list[PipeAdapter] = []

    def start(spoil: str = "", timeout: float | None = 20.0) -> PipeAdapter:
        script = tmp_path / "runner.py"
        script.write_text(RUNNER + textwrap.dedent(spoil) + "\nserve()\n")
        adapters.append(PipeAdapter([sys.executable, str(script)], timeout))
        return adapters[-1]

    yield start
    for adapter in adapters:
        adapter.close()


def starts(tmp_path: Path) -> int:
    return (tmp_path / "starts").stat().st_size


def compile_one(adapter: PipeAdapter, program: Kernel | Source) -> Any:
    (answer,) = adapter.compile([program], Options())
    return answer


def copy(dtype: str) -> Kernel:
    return Kernel((Input(Type(dtype)),), (0,))


def test_an_ordinary_runner(runner: Start, tmp_path: Path) -> None:
    adapter = runner()
    assert isinstance(adapter, HasArtifact)
    assert isinstance(adapter, Closes)
    assert (adapter.name, list(adapter.opt_levels)) == ("toy", [0])
    assert adapter.compile([], Options()) == []
    assert compile_one(adapter, copy("f32"))(words(1, 2, 3))[0].tolist() == [1, 2, 3]
    assert adapter.artifact(ADD, Options()) == "add"
    assert starts(tmp_path) == 1
    adapter.close()
    adapter.close()


def test_facts_and_levels_are_read(runner: Start) -> None:
    adapter = runner(
        """
        def hello(m):
            facts = {"flushes_subnormals": True, "fuses_multiply_add": None, "versions": {"toy": "2"}}
            return {"halfulp": 1, "name": "toy", "opt_levels": [0, 3], "facts": facts}
        """
    )
    assert list(adapter.opt_levels) == [0, 3]
    assert adapter.facts.flushes_subnormals is True
    assert adapter.facts.fuses_multiply_add is None
    assert adapter.facts.versions == {"toy": "2"}


def test_the_optimisation_level_arrives(runner: Start) -> None:
    adapter = runner("def compile(m): return {'answers': [{'rejected': str(m['options'])}]}")
    assert adapter.compile([ADD], Options(opt_level=3)) == [Rejected("{'opt_level': 3}")]


def test_large_arrays_and_chatty_runners_do_not_deadlock(runner: Start) -> None:
    adapter = runner(
        """
        def run(m):
            sys.stderr.write("y" * 300_000 + "\\n" * 2)
            sys.stdout.write(" " * 200_000)
            return {"outputs": m["inputs"]}
        """
    )
    bits = np.arange(300_000, dtype=np.uint32)
    run = compile_one(adapter, copy("f32"))
    for _ in range(3):
        assert np.array_equal(run(bits)[0], bits)


def test_unused_programs_are_released(runner: Start) -> None:
    adapter = runner("def compile(m): return {'answers': [{'unsupported': str(len(handles))}] if len(m['programs']) > 1"
                     " else [compile_one(m['programs'][0])]}\n"
                     "def artifact(m): return {'artifact': str(len(handles))}")  # fmt: skip
    kept = [compile_one(adapter, ADD) for _ in range(3)]
    assert adapter.artifact(ADD, Options()) == "3"
    del kept[1:]
    gc.collect()
    assert adapter.artifact(ADD, Options()) == "3"  # nothing is sent while garbage is collected
    kept.append(compile_one(adapter, ADD))
    assert adapter.artifact(ADD, Options()) == "2"


def test_unsupported_and_errors_of_a_run(runner: Start) -> None:
    adapter = runner(
        """
        def run(m):
            if m["inputs"][0]["dtype"] == "f32": return {"unsupported": "no lanes"}
            return {"error": "out of memory"}
        """
    )
    with pytest.raises(UnsupportedError, match="no lanes"):
        compile_one(adapter, copy("f32"))(words(1))
    with pytest.raises(PipeError, match="reports an error for a run request: out of memory"):
        compile_one(adapter, copy("i32"))(words(1))


# Death.


def test_one_deadly_program_does_not_take_the_batch_with_it(runner: Start, tmp_path: Path) -> None:
    adapter = runner(
        """
        def compile_one(p, plain=compile_one):
            if dtype(p) == "f64":
                print("assertion failed: vector width", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGSEGV)
            return plain(p)
        """
    )
    with pytest.warns(PipeWarning, match="SIGSEGV.*started again"):
        answers = adapter.compile([copy(name) for name in ("f32", "i32", "f64", "u32", "u8")], Options())
    assert [callable(answer) for answer in answers] == [True, True, False, True, True]
    dead = answers[2]
    assert isinstance(dead, Unsupported)
    assert "toy was ended by signal 11 (SIGSEGV)" in dead.reason
    assert "assertion failed: vector width" in dead.reason
    for answer in (answers[0], answers[1], answers[3]):
        assert callable(answer)
        assert answer(words(4))[0].tolist() == [4]


def test_a_death_while_running_is_tried_once_more_and_reported_once(runner: Start, tmp_path: Path) -> None:
    adapter = runner(
        """
        def run(m, plain=run):
            if m["inputs"][0]["dtype"] == "f32": sys.exit("cannot go on")
            return plain(m)
        """
    )
    bad, good = adapter.compile([copy("f32"), copy("i32")], Options())
    assert callable(bad)
    assert callable(good)
    with pytest.warns(PipeWarning), pytest.raises(UnsupportedError, match=r"exit status 1; .*cannot go on"):
        bad(words(1))
    assert starts(tmp_path) == 2
    with pytest.raises(UnsupportedError, match="exit status 1"):
        bad(words(1))
    assert starts(tmp_path) == 2  # known to be deadly: not sent again
    assert good(words(7))[0].tolist() == [7]  # compiled again where it now runs
    assert starts(tmp_path) == 3


def test_a_death_that_does_not_repeat_costs_a_warning(runner: Start, tmp_path: Path) -> None:
    adapter = runner("def run(m, plain=run): return os._exit(9) if starts == 1 else plain(m)")
    run = compile_one(adapter, copy("f32"))
    with pytest.warns(PipeWarning, match="exit status 9; nothing on standard error; it is started again"):
        assert run(words(5))[0].tolist() == [5]
    assert starts(tmp_path) == 2


def test_a_runner_that_does_not_start_again(runner: Start) -> None:
    adapter = runner("def run(m): os._exit(3)\nif starts > 1: sys.exit('licence expired')")
    run = compile_one(adapter, copy("f32"))
    with pytest.warns(PipeWarning), pytest.raises(UnsupportedError, match="licence expired"):
        run(words(1))
    with pytest.warns(PipeWarning):
        answer = adapter.compile([copy("f32")], Options())[0]
    assert isinstance(answer, Unsupported)
    assert "licence expired" in answer.reason


def test_a_closed_output_is_a_death(runner: Start) -> None:
    adapter = runner("def run(m): os.close(1); time.sleep(60)")
    run = compile_one(adapter, copy("f32"))
    with pytest.warns(PipeWarning), pytest.raises(UnsupportedError, match="closed its standard output and was ended"):
        run(words(1))


def test_a_time_out_is_not_repeated(runner: Start, tmp_path: Path) -> None:
    adapter = runner(
        """
        def run(m, plain=run):
            if m["inputs"][0]["dtype"] == "f32": time.sleep(60)
            return plain(m)
        """,
        timeout=1.0,
    )
    bad, good = adapter.compile([copy("f32"), copy("i32")], Options())
    assert callable(bad)
    assert callable(good)
    before = time.monotonic()
    with pytest.raises(UnsupportedError, match="gave no answer within 1 s"):
        bad(words(1))
    assert time.monotonic() - before < 5
    assert good(words(7))[0].tolist() == [7]
    assert starts(tmp_path) == 2


def test_a_runner_that_does_not_read_is_timed_out(runner: Start) -> None:
    adapter = runner("def compile(m, plain=compile): send({'id': m['id'], **plain(m)}); time.sleep(60)", timeout=1.0)
    run = compile_one(adapter, copy("f32"))
    with pytest.raises(UnsupportedError, match="gave no answer"):
        run(np.zeros(1_000_000, np.uint32))


def test_a_batch_that_takes_too_long_is_halved(runner: Start) -> None:
    adapter = runner(
        """
        def compile_one(p, plain=compile_one):
            if dtype(p) == "f64": time.sleep(60)
            return plain(p)
        """,
        timeout=0.7,
    )
    answers = adapter.compile([copy("f64"), copy("i32"), copy("f32")], Options())
    assert [callable(answer) for answer in answers] == [False, True, True]


def test_children_of_the_runner_end_with_it(runner: Start, tmp_path: Path) -> None:
    adapter = runner(
        """
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        def run(m): time.sleep(60)
        def artifact(m): return {"artifact": str(child.pid)}
        """,
        timeout=1.0,
    )
    pid = int(adapter.artifact(ADD, Options()))
    with pytest.raises(UnsupportedError):
        compile_one(adapter, copy("f32"))(words(1))
    state = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 5
    while state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_time_limit_is_an_environment_variable(runner: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_PIPE_TIMEOUT", "0.5")
    adapter = runner("def compile(m): time.sleep(60)", timeout=None)
    assert "within 0.5 s" in compile_one(adapter, ADD).reason
    monkeypatch.setenv("HALFULP_PIPE_TIMEOUT", "soon")
    with pytest.raises(PipeError, match="'soon', not a positive number"):
        runner(timeout=None)


def test_an_interrupted_request_leaves_no_answer_behind(runner: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = runner()
    run = compile_one(adapter, copy("f32"))

    def interrupted(self: Any, line: bytes, timeout: float) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("halfulp.adapters.process.LineProcess.ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(words(1))
    assert run(words(2))[0].tolist() == [2]


# Answers against the protocol.


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("def hello(m): print('Toy 1.0'); return {}", "not a line of JSON: 'Toy 1.0'.*standard output carries"),
        ("def answer(m): return []", r"not a JSON object: '\[\]'"),
        ("def answer(m): return {'id': 7}", "its id is 7, the request had 1"),
        ("def answer(m): return {}", "its id is None, the request had 1"),
        ("def answer(m): return {'id': True}", "its id is True"),
        ("def answer(m): return {'id': None, 'error': 'what?'}", "the error 'what[?]' without an id"),
        ("def hello(m): return {}", "halfulp is None, not the version 1"),
        ("def hello(m): return {'halfulp': 1}", "name is None"),
        ("def hello(m): return {'halfulp': 1, 'name': 'x', 'opt_levels': []}", r"opt_levels is \[\]"),
        ("def hello(m): return {'halfulp': 1, 'name': 'x', 'opt_levels': 0}", "opt_levels is 0"),
        ("def hello(m): return {'halfulp': 1, 'name': 'x', 'facts': []}", r"facts is \[\]"),
        ("def hello(m): return {'halfulp': 1, 'name': 'x', 'facts': {'flushes_subnormals': 1}}", "is 1, not true"),
        ("def hello(m): return {'halfulp': 1, 'name': 'x', 'facts': {'ftz': True}}", "no fact 'ftz'; known"),
        ("def hello(m): return {'halfulp': 1, 'name': 'x', 'facts': {'versions': {'x': 1}}}", "versions is"),
        ("def hello(m): return {'error': 'no device'}", "reports an error for a hello request: no device"),
        ("sys.exit(4)", "exit status 4.* instead of answering hello"),
    ],
)
def test_a_bad_hello(runner: Start, spoil: str, message: str) -> None:
    with pytest.raises(PipeError, match=message):
        runner(spoil)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("{}", "answers must be a list of 1, got None"),
        ("{'answers': []}", "a list of 1, got 0 of them"),
        ("{'answers': [{'ok': '0'}]}", "answer 0 is .*not one of"),
        ("{'answers': [{'ok': True}]}", "not one of"),
        ("{'answers': [{'ok': 0, 'rejected': 'x'}]}", "not one of"),
        ("{'answers': [None]}", "answer 0 is 'null', not one of"),
        ("{'error': 'out of memory'}", "reports an error for a compile request: out of memory"),
    ],
)
def test_bad_answers_to_compile(runner: Start, answers: str, message: str) -> None:
    adapter = runner(f"def compile(m): return {answers}")
    with pytest.raises(PipeError, match=message):
        adapter.compile([ADD], Options())


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("{}", "neither outputs .* nor unsupported"),
        ("{'outputs': {}}", "neither outputs"),
        ("{'outputs': []}", "0 outputs where the program has 1"),
        ("{'outputs': ['3f800000']}", "output 0 is text, not an object"),
        ("{'outputs': [{'dtype': 'i32', 'shape': [2], 'bits': ''}]}", "output 0 has dtype 'i32' where 'f32'"),
        ("{'outputs': [{'dtype': 'f32', 'shape': [1], 'bits': ''}]}", r"output 0 has the shape \[1\] where \[2\]"),
        ("{'outputs': [{'dtype': 'f32', 'shape': [2], 'bits': '00'}]}", "output 0 has 2 hexadecimal digits"),
    ],
)
def test_bad_answers_to_run_and_what_follows(runner: Start, tmp_path: Path, outputs: str, message: str) -> None:
    adapter = runner(f"def run(m, plain=run): return {outputs} if starts == 1 else plain(m)")
    run = compile_one(adapter, copy("f32"))
    with pytest.raises(PipeError, match=message):
        run(words(1, 2))
    assert run(words(1, 2))[0].tolist() == [1, 2]  # on a program started anew
    assert starts(tmp_path) == 2


def test_a_second_line_is_not_taken_for_the_next_answer(runner: Start) -> None:
    adapter = runner("def run(m, plain=run): send({'id': m['id'], **plain(m)}); return plain(m)")
    run = compile_one(adapter, copy("f32"))
    run(words(1))
    with pytest.raises(PipeError, match="its id is 3, the request had 4"):
        run(words(2))


def test_standard_error_is_passed_on(runner: Start, capfd: pytest.CaptureFixture[str]) -> None:
    adapter = runner("print('warming up', file=sys.stderr, flush=True)")
    compile_one(adapter, ADD)
    assert "warming up" in capfd.readouterr().err


# The runner in C.


@pytest.fixture(scope="module")
def c_runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler is needed"
    target = tmp_path_factory.mktemp("c") / "pipe_runner"
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = [compiler, *flags, "-o", str(target), str(EXAMPLES / "pipe_runner.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def c_adapter(c_runner: Path) -> Iterator[Any]:
    adapter = load(f"pipe:{c_runner}")
    assert isinstance(adapter, PipeAdapter)
    yield adapter
    adapter.close()


def test_c_runner_keeps_the_contract(c_adapter: Any) -> None:
    assert_adapter(c_adapter)


def test_c_runner_is_certified(c_runner: Path, tmp_path: Path) -> None:
    """By the command that its author would use; `test_a_wrong_c_runner_is_not` shows that this can fail."""
    done = certify(c_runner, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 forbidden results among" in done.stdout.splitlines()[-1]


def test_a_wrong_c_runner_is_not(c_runner: Path, tmp_path: Path) -> None:
    """The same source, with one rule spoilt: `//` without the correction that makes it a floor."""
    source = (EXAMPLES / "pipe_runner.c").read_text()
    spoilt = source.replace("quotient--;", "")
    assert spoilt != source
    (tmp_path / "wrong.c").write_text(spoilt)
    target = tmp_path / "wrong"
    compiler = shutil.which("cc") or shutil.which("gcc") or "clang"
    subprocess.run([compiler, "-std=c99", "-o", str(target), str(tmp_path / "wrong.c"), "-lm"], check=True)
    done = certify(target, tmp_path)
    assert done.returncode == 1
    assert "floordiv" in done.stdout
    assert "intent:4-b" in done.stdout


def certify(runner: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "halfulp.certify.cli", "certify", "--backend", f"pipe:{runner}"]
    command += ["--depth", "quick", "--clauses", "4-b,5.2-g", "-n", "1"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def call(adapter: Any, op: str, dtypes: Sequence[str], result: str, *operands: Array) -> Array:
    run = compile_one(adapter, one_node(op, dtypes, result))
    assert callable(run), run
    output: Array = run(*operands)[0]
    return output


def all_pairs_of_bytes() -> tuple[Array, Array]:
    a, b = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    return a.ravel(), b.ravel()


INTEGER_RULES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "maximum": max,
    "minimum": min,
}


@pytest.mark.parametrize("op", INTEGER_RULES)
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u32", "i64", "u64", "index"])
def test_c_integers(c_adapter: Any, op: str, dtype: str) -> None:
    """All pairs at 8 bits, edges and random ones elsewhere, against Python's integers."""
    fmt = format_of(dtype)
    if fmt.width == 8:
        a, b = all_pairs_of_bytes()
    else:
        rng = np.random.default_rng(7)
        edges = [0, 1, 2, 7, fmt.code_count // 2 - 1, fmt.code_count // 2, fmt.code_count - 1]
        some = np.array([*edges, *rng.integers(0, fmt.code_count, 33, np.uint64, endpoint=False)], np.uint64)
        grid = np.meshgrid(some, some)
        a, b = (side.ravel().astype(fmt.storage) for side in grid)
    signed = f"i{fmt.storage.itemsize}" if fmt.signed else fmt.storage
    pairs = list(zip(a.view(signed).tolist(), b.view(signed).tolist(), strict=True))
    if op in ("shl", "shr"):
        legal = [0 <= y < fmt.width for _, y in pairs]
    elif op in ("floordiv", "mod"):
        legal = [y != 0 and not (fmt.signed and y == -1 and x == fmt.min_int) for x, y in pairs]
    else:
        legal = [True] * len(pairs)
    got = call(c_adapter, op, (dtype, dtype), dtype, a, b).tolist()
    rule = INTEGER_RULES[op]
    for (x, y), judged, z in zip(pairs, legal, got, strict=True):
        assert not judged or z == rule(x, y) % fmt.code_count, (x, y)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_c_floats_equal_the_machines(c_adapter: Any, dtype: str, op: str) -> None:
    fmt = format_of(dtype)
    rng = np.random.default_rng(11)
    a, b = (rng.integers(0, fmt.code_count, 4000, np.uint64).astype(fmt.storage) for _ in range(2))
    real = f"f{fmt.storage.itemsize}"
    ufunc = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op]
    with np.errstate(all="ignore"):
        want = ufunc(a.view(real), b.view(real))
    got = call(c_adapter, op, (dtype, dtype), dtype, a, b)
    assert np.array_equal(got.view(real), want, equal_nan=True)
    assert np.array_equal(np.signbit(got.view(real))[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


NARROW = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
}


@pytest.mark.parametrize("narrow", NARROW)
def test_c_casts_from_narrow_floats_are_exact(c_adapter: Any, narrow: str) -> None:
    fmt = format_of(narrow)
    codes = np.arange(fmt.code_count, dtype=fmt.storage)
    got = call(c_adapter, "cast", (narrow,), "f64", codes).view("f8")
    with np.errstate(invalid="ignore"):
        want = codes.view(NARROW[narrow]).astype("f8")
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("wide", ["f64", "f32"])
def test_c_casts_to_narrow_floats_round_once(c_adapter: Any, narrow: str, wide: str) -> None:
    """Midpoints of neighbours, and the source's next numbers on both sides: up, down, and to the even code."""
    fmt, source = format_of(narrow), format_of(wide)
    codes = np.arange(0, fmt.max_finite_bits, max(1, fmt.max_finite_bits // 500), dtype=fmt.storage)
    above = (codes + 1).astype(fmt.storage)
    low, high = (side.view(NARROW[narrow]).astype("f8") for side in (codes, above))
    real = f"f{source.storage.itemsize}"
    middle = ((low + high) / 2).astype(real)
    exact = np.array([2 * Fraction(float(m)) == Fraction(float(x)) + Fraction(float(y))
                      for m, x, y in zip(middle, low, high, strict=True)])  # fmt: skip
    codes, above, middle = codes[exact], above[exact], middle[exact]
    assert len(middle) > 100 or fmt.width == 8
    bits = middle.view(source.storage)
    even = np.where(codes % 2 == 0, codes, above)
    for offset, want in ((0, even), (1, above), (-1, codes)):
        operand = (bits.astype("i8") + offset).astype(source.storage)
        assert np.array_equal(call(c_adapter, "cast", (wide,), narrow, operand), want)
        sign = source.storage.type(source.sign_mask)
        got = call(c_adapter, "cast", (wide,), narrow, operand | sign)
        assert np.array_equal(got, want | fmt.storage.type(fmt.sign_mask))


def test_c_casts_beyond_the_range(c_adapter: Any) -> None:
    wide = np.array([65519.99, 65520.0, np.inf, -np.inf, 1e300, np.nan]).view("u8")
    assert call(c_adapter, "cast", ("f64",), "f16", wide).tolist() == [0x7BFF, 0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x7E00]
    wide = np.array([61439.9, 61440.0, -1e300, 2.0**-17, 1.5 * 2.0**-17]).view("u8")
    assert call(c_adapter, "cast", ("f64",), "f8e5m2", wide).tolist() == [0x7B, 0x7C, 0xFC, 0, 1]
    wide = np.array([448.0, 463.9, -0.0, 2.0**-10, 2.0**-9]).view("u8")
    assert call(c_adapter, "cast", ("f64",), "f8e4m3fn", wide).tolist() == [0x7E, 0x7E, 0x80, 0, 1]


def test_c_casts_of_integers(c_adapter: Any) -> None:
    """i64 -> f32 is not rounded through f64: 2^60 + 2^36 + 1 lies just above a midpoint."""
    value = np.array([(1 << 60) + (1 << 36) + 1, -(1 << 63), (1 << 63) - 1], "i8").view("u8")
    got = call(c_adapter, "cast", ("i64",), "f32", value)
    assert got.tolist() == [0x5D800001, 0xDF000000, 0x5F000000]
    back = call(c_adapter, "cast", ("f64",), "u64", np.array([2.0**63, 1.99, -0.99]).view("u8"))
    assert back.tolist() == [1 << 63, 1, 0]
    low = call(c_adapter, "cast", ("f32",), "i8", np.array([-128.9, 127.9, 1e9, np.nan], "f4").view("u4"))
    assert low.tolist() == [0x80, 0x7F, 0, 0]
    assert call(c_adapter, "cast", ("i8",), "u64", np.array([0xFF], "u1")).tolist() == [(1 << 64) - 1]


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_c_comparisons(c_adapter: Any, op: str) -> None:
    a, b = all_pairs_of_bytes()
    ufunc = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater}.get(
        op, np.greater_equal
    )
    for name in ("f8e4m3fn", "f8e5m2"):
        x, y = (side.view(NARROW[name]).astype("f4") for side in (a, b))
        assert np.array_equal(call(c_adapter, op, (name, name), "bool", a, b), ufunc(x, y).astype("u1"))
    signed = ufunc(a.view("i1"), b.view("i1")).astype("u1")
    assert np.array_equal(call(c_adapter, op, ("i8", "i8"), "bool", a, b), signed)


@pytest.mark.parametrize(
    "kernel",
    [
        one_node("add", ("i32", "u32"), "i32"),
        one_node("add", ("index", "i64"), "i64"),
        one_node("add", ("bool", "bool"), "bool"),
        one_node("div", ("i32", "i32"), "i32"),
        one_node("mod", ("f32", "f32"), "f32"),
        one_node("and", ("f32", "f32"), "f32"),
        one_node("sqrt", ("i32",), "i32"),
        one_node("lt", ("f32", "f32"), "f32"),
        one_node("add", ("f32", "f32"), "f64"),
        one_node("bitcast", ("f32",), "f64"),
        one_node("select", ("i32", "f32", "f32"), "f32"),
        one_node("add", ("e2m1", "e2m1"), "e2m1"),
        one_node("add", ("i32",), "i32"),
    ],
    ids=str,
)
def test_c_runner_has_a_type_checker(c_adapter: Any, kernel: Kernel) -> None:
    assert isinstance(compile_one(c_adapter, kernel), Rejected)


def test_c_runner_says_what_it_does_not_offer(c_adapter: Any) -> None:
    for program in (
        one_node("cast_saturate", ("f32",), "i8"),
        one_node("add", ("f32", "f32"), "f32", attrs={"approximate": True}),
        Source(Literal(1)),
    ):
        assert isinstance(compile_one(c_adapter, program), Unsupported)


def test_c_kernels_of_several_nodes(c_adapter: Any) -> None:
    """A product that is used twice, a constant, a scalar, outputs out of order."""
    kernel = Kernel(
        (
            Input(Type("f32")),
            Input(Type("f32", SCALAR)),
            Constant("f32", 0x3F000000),
            Apply("mul", (0, 1), "f32"),
            Apply("add", (3, 2), "f32"),
            Apply("sub", (4, 3), "f32"),
        ),
        (5, 4, 1),
    )
    x, y = np.arange(5, dtype="f4"), np.array(3, "f4")
    outputs = compile_one(c_adapter, kernel)(x.view("u4"), y.view("u4"))
    assert outputs[0].view("f4").tolist() == [0.5] * 5
    assert outputs[1].view("f4").tolist() == [0.5, 3.5, 6.5, 9.5, 12.5]
    assert outputs[2].view("f4").tolist() == 3.0


@pytest.mark.parametrize("dtype", CANONICAL)
def test_c_copies_keep_every_bit(c_adapter: Any, dtype: str) -> None:
    fmt = format_of(dtype)
    codes = np.random.default_rng(3).integers(0, fmt.code_count, 1000, np.uint64, endpoint=False).astype(fmt.storage)
    assert np.array_equal(compile_one(c_adapter, copy(dtype))(codes)[0], codes)


def test_c_runner_survives_what_is_not_the_protocol(c_runner: Path) -> None:
    lines = [
        "not json",
        "{",
        "[]",
        '{"id":5,"type":"dance"}',
        '{"id":6,"type":"run","handle":99,"inputs":[]}',
        '{"id":7,"type":"compile","programs":[{},{"values":[{"op":"add"}],"outputs":[0]}]}',
        "[" * 100000,
    ]
    done = subprocess.run([c_runner], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=20)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert len(answers) == len(lines)
    assert answers[3] == {"id": 5, "unsupported": "this type of request is not offered"}
    assert answers[4] == {"id": 6, "error": "there is no such handle"}
    assert [list(answer) for answer in answers[5]["answers"]] == [["rejected"], ["rejected"]]


# The runner in Python.


def test_python_runner() -> None:
    adapter = load(f"pipe:{sys.executable} {EXAMPLES / 'pipe_runner.py'}")
    assert isinstance(adapter, PipeAdapter)
    assert adapter.name == "python-example"
    assert call(adapter, "add", ("i32", "i32"), "i32", words(0xFFFFFFFF, 2), words(1, 3)).tolist() == [0, 5]
    assert isinstance(compile_one(adapter, one_node("mul", ("i32", "i32"), "i32")), Unsupported)
    assert_adapter(adapter)
    adapter.close()


def test_two_adapters_at_a_time(runner: Start) -> None:
    """As under pytest-xdist: a program for each."""
    first, second = runner(), runner()
    results: dict[int, list[int]] = {}

    def work(key: int, adapter: PipeAdapter) -> None:
        run = compile_one(adapter, copy("f32"))
        results[key] = [int(run(words(i))[0][0]) for i in range(20)]

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == {0: list(range(20)), 1: list(range(20))}
