"""Adapters: discovery, the eager base class, NumPy as a backend, and the check of an adapter against its contract."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfulp.adapters import (
    AdapterError,
    EagerAdapter,
    Facts,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
    assert_adapter,
    available,
    check_adapter,
    load,
)
from halfulp.adapters.numpy_adapter import NumpyAdapter
from halfulp.adapters.protocol import Adapter, Closes, HasArtifact
from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.source import Call, Formed, Literal, Parameter, Source

Array = np.ndarray[Any, np.dtype[Any]]


def compile_one(adapter: Adapter, program: Kernel | Source) -> Any:
    (answer,) = adapter.compile([program], Options())
    return answer


def read_only(values: Sequence[int], dtype: str) -> Array:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


# Discovery.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory that Python does not search yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    return tmp_path


@pytest.fixture
def registered(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with four entry points."""
    info = here / "toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[halfulp.adapters]\n"
        "toy-plain = toys_registered:Plain\n"
        "toy-made = toys_registered:make\n"
        "toy-needs = toys_needing:Plain\n"
        "toy-gone = toys_registered:Gone\n"
    )
    (here / "toys_registered.py").write_text(
        "from halfulp.adapters import Facts\n"
        "class Plain:\n"
        "    name, opt_levels, facts = 'plain', (0,), Facts()\n"
        "    def compile(self, programs, options): return []\n"
        "def make(argument):\n"
        "    adapter = Plain()\n"
        "    adapter.name = argument\n"
        "    return adapter\n"
    )
    (here / "toys_needing.py").write_text("import a_package_that_is_missing\n")
    monkeypatch.syspath_prepend(str(here))
    return here


def test_entry_points_by_name_and_with_an_argument(registered: Path) -> None:
    assert load("toy-plain").name == "plain"
    assert load("toy-made:ARGUMENT:with a colon").name == "ARGUMENT:with a colon"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("toy-plane", ["no adapter 'toy-plane'", "did you mean toy-plain", "registered:", "module:Class"]),
        ("toy-needs", ["'toy-needs'", "'toys_needing' was found", "'a_package_that_is_missing'", "install"]),
        ("toy-gone", ["'toy-gone'", "toys_registered has no 'Gone'", "it has Plain"]),
        ("toy-made", ["calling it with no argument raised TypeError"]),
        ("toy-plain:x", ["calling it with the argument 'x' raised TypeError"]),
        ("nowhere_at_all:Adapter", ["no module 'nowhere_at_all'", "current directory"]),
        ("toy_plain:Adapter", ["no module 'toy_plain'", "did you mean toy-plain"]),
        ("toys_registered:Plian", ["has no 'Plian'", "did you mean Plain?"]),
        ("toys_registered:", ["no class after the colon", "module:Class"]),
        (":Class", ["no adapter is named", "pipe:COMMAND"]),
        ("pipe:", ["names no command"]),
        ("pipe:'unclosed", ["cannot be split", "quotation"]),
        ("pipe:./there-is-no-such-runner --flag", ["cannot start './there-is-no-such-runner'", "No such file"]),
    ],
)
def test_failures_say_what_why_and_what_to_do(registered: Path, spec: str, words: list[str]) -> None:
    with pytest.raises(AdapterError) as caught:
        load(spec)
    for word in words:
        assert word in str(caught.value)


def test_without_any_entry_point_the_message_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfulp.adapters.discovery.entry_points", lambda group: ())
    with pytest.raises(AdapterError, match=r"not installed .*pip install -e"):
        load("numpy")


def test_available_lists_all_and_says_why_not(registered: Path) -> None:
    found = {name: (where, status) for name, where, status in available()}
    assert found["toy-plain"] == ("toys_registered:Plain (toys 1.0)", "ok")
    assert "a_package_that_is_missing" in found["toy-needs"][1]
    assert "has no 'Gone'" in found["toy-gone"][1]


def test_classes_of_the_current_directory(here: Path) -> None:
    (here / "mine_here.py").write_text(
        "from halfulp.adapters.numpy_adapter import NumpyAdapter\n"
        "class Outer:\n"
        "    class Inner(NumpyAdapter): name = 'inner'\n"
        "ready = NumpyAdapter()\n"
    )
    assert load("mine_here:Outer.Inner").name == "inner"
    assert load("mine_here:ready").name == "numpy"


def test_a_module_that_fails_is_named_with_the_line(here: Path) -> None:
    (here / "failing_here.py").write_text("x = 1\nraise RuntimeError('no device')\n")
    with pytest.raises(AdapterError, match=r"raised RuntimeError: no device \(at .*failing_here.py:2\)"):
        load("failing_here:Adapter")


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ("./nofile.py:X", "is not the name of a module (for a class of that file write nofile:Class); an adapter"),
        ("nofile.py:X", "there is no module 'nofile' (for a class of that file write nofile:Class); modules"),
        ("some/where/file.py:X", "write file:Class, in some/where or with that folder in PYTHONPATH); an adapter"),
        ("my-adapter:X", "'my-adapter' is not the name of a module; an adapter is"),
        (".relative:X", "'.relative' is not the name of a module; an adapter is"),
    ],
)
def test_what_is_no_module_is_named(spec: str, advice: str) -> None:
    with pytest.raises(AdapterError, match=re.escape(advice)):
        load(spec)


def test_missing_members_are_listed(here: Path) -> None:
    (here / "partial_here.py").write_text("class Partial:\n    name = 'partial'\n    def compile(self): pass\n")
    with pytest.raises(AdapterError, match="Partial has no opt_levels, no facts"):
        load("partial_here:Partial")


# The eager base class.

NAMES = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64, "bool": np.bool_}


class Small(EagerAdapter):
    """As in the how-to: a few formats and operations."""

    name = "small"

    def from_bits(self, dtype: str, bits: Array) -> Any:
        if dtype not in NAMES:
            raise UnsupportedError(f"no {dtype} here")
        return bits.view(NAMES[dtype])

    def to_bits(self, dtype: str, value: Any) -> Array:
        array = np.asarray(value)
        return array.view(f"u{array.dtype.itemsize}")

    def has_dtype(self, value: Any, dtype: str) -> bool:
        return dtype in NAMES and bool(value.dtype == NAMES[dtype])

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def and_(self, a: Any, b: Any) -> Any:
        return a & b

    def sub(self, a: Any, b: Any) -> Any:
        return (a - b).astype(np.float64)  # promotes

    def div(self, a: Any, b: Any) -> Any:
        return a / b

    def neg(self, a: Any, *, exact: bool = False) -> Any:
        return a if exact else -a

    def floor(self, a: Any) -> Any:
        raise RuntimeError("no kernel image")

    def sqrt(self, a: Any) -> Any:
        raise NotImplementedError

    def cast(self, value: Any, dtype: str) -> Any:
        return value.astype(NAMES[dtype])


def test_the_graph_is_walked_with_scalars_and_constants() -> None:
    kernel = Kernel(
        (
            Input(Type("i32")),
            Input(Type("i32", SCALAR)),
            Constant("i32", 5),
            Apply("add", (0, 1), "i32"),
            Apply("and", (3, 2), "i32"),
        ),
        (4, 1, 2),
    )
    run = compile_one(Small(), kernel)
    outputs = run(read_only([1, 2, 0xFFFFFFFF], "u4"), read_only([], "u4").sum(dtype="u4").reshape(()) + np.uint32(6))
    assert [output.tolist() for output in outputs] == [[5, 0, 5], 6, 5]
    assert all(output.dtype == np.uint32 and output.flags.writeable for output in outputs)


@pytest.mark.parametrize(
    ("kernel", "answer", "reason"),
    [
        (one_node("mul", ("i32", "i32"), "i32"), Unsupported, "does not offer mul"),
        (one_node("compile", ("i32", "i32"), "i32"), Unsupported, "does not offer compile"),
        (one_node("_code", ("i32",), "i32"), Unsupported, "does not offer _code"),
        (one_node("add", ("f16", "f16"), "f16"), Unsupported, "no f16 here"),
        (one_node("and", ("f32", "f32"), "f32"), Rejected, "and: .*not supported"),
        (one_node("add", ("i32",), "i32"), Rejected, "add with 1 operands"),
        (one_node("neg", ("i32",), "i32", attrs={"fast": True}), Unsupported, "no attribute 'fast'"),
        (one_node("sub", ("f32", "f32"), "f32"), Unsupported, "sub of f32 gives f64 in small, never f32"),
        (one_node("add", ("f32", "f32"), "f64"), Unsupported, "add of f32 gives f32 in small, never f64"),
        (one_node("floor", ("f32",), "f32"), Unsupported, "RuntimeError: no kernel image"),
        (one_node("sqrt", ("f32",), "f32"), Unsupported, "does not implement"),
    ],
)
def test_what_an_eager_library_refuses(kernel: Kernel, answer: type[Rejected | Unsupported], reason: str) -> None:
    got = compile_one(Small(), kernel)
    assert isinstance(got, answer)
    assert re.search(reason, got.reason), got.reason


def test_attributes_are_keyword_arguments() -> None:
    run = compile_one(Small(), one_node("neg", ("i32",), "i32", attrs={"exact": True}))
    assert run(read_only([3], "u4"))[0].tolist() == [3]


def test_a_promotion_of_ill_typed_operands_is_accepted_and_converted() -> None:
    mixed = compile_one(Small(), one_node("add", ("i32", "f64"), "i32"))
    assert mixed(read_only([3], "u4"), np.array([1.5]).view("u8"))[0].tolist() == [4]
    divided = compile_one(Small(), one_node("div", ("i32", "i32"), "i32"))
    assert divided(read_only([7], "u4"), read_only([2], "u4"))[0].tolist() == [3]


def test_outputs_never_share_memory() -> None:
    kernel = Kernel((Input(Type("f32")), Apply("add", (0, 0), "f32")), (0, 0, 1, 1))
    bits = read_only([0x3F800000], "u4")
    outputs = compile_one(Small(), kernel)(bits)
    for position, output in enumerate(outputs):
        assert output.flags.writeable
        assert not any(np.shares_memory(output, other) for other in (bits, *outputs[:position]))


def test_source_programs_need_literals() -> None:
    answer = compile_one(Small(), Source(Call("add", (Parameter("x", "i32"), Literal(1)))))
    assert answer == Unsupported("small has no front end for source programs")


# NumPy.


@pytest.mark.parametrize(
    ("op", "dtypes", "result", "operands", "expected"),
    [
        ("add", ("i8", "i8"), "i8", [[127], [1]], [128]),
        ("sub", ("u16", "u16"), "u16", [[0], [1]], [0xFFFF]),
        ("floordiv", ("i32", "i32"), "i32", [[0xFFFFFFF9], [2]], [0xFFFFFFFC]),
        ("mod", ("i32", "i32"), "i32", [[0xFFFFFFF9], [2]], [1]),
        ("shr", ("i8", "i8"), "i8", [[0x80], [7]], [0xFF]),
        ("shl", ("u8", "u8"), "u8", [[0xFF], [4]], [0xF0]),
        ("not", ("bool",), "bool", [[0, 1]], [1, 0]),
        ("not", ("i8",), "i8", [[0]], [0xFF]),
        ("and", ("u8", "u8"), "u8", [[0xCC], [0xAA]], [0x88]),
        ("neg", ("f16",), "f16", [[0]], [0x8000]),
        ("sqrt", ("bf16",), "bf16", [[0x4080]], [0x4000]),
        ("maximum", ("f32", "f32"), "f32", [[0x7FC00000], [0]], [0x7FC00000]),
        ("maximum_num", ("f32", "f32"), "f32", [[0x7FC00000], [0]], [0]),
        ("minimum_num", ("f8e5m2", "f8e5m2"), "f8e5m2", [[0x7F], [0x3C]], [0x3C]),
        ("ge", ("index", "index"), "bool", [[1], [2]], [0]),
        ("select", ("bool", "f64", "f64"), "f64", [[1, 0], [1, 2], [3, 4]], [1, 4]),
        ("bitcast", ("f32",), "u32", [[0x7F800001]], [0x7F800001]),
        ("cast", ("f32",), "f8e4m3fn", [[0x3F800000]], [0x38]),
        ("cast", ("u64",), "i8", [[0x1FF]], [0xFF]),
        ("cast_saturate", ("i32",), "i8", [[1000, 0xFFFFFC18]], [0x7F, 0x80]),
        ("cast_saturate", ("f32",), "f8e4m3fn", [[0x7F800000, 0xC61C4000]], [0x7E, 0xFE]),
        ("cast_saturate", ("u64",), "bf16", [[(1 << 64) - 1]], [0x5F80]),
    ],
)
def test_numpy_operations(
    op: str, dtypes: tuple[str, ...], result: str, operands: list[list[int]], expected: list[int]
) -> None:
    kernel = one_node(op, dtypes, result)
    run = compile_one(NumpyAdapter(), kernel)
    inputs = [read_only(v, format_of(d).storage.str) for v, d in zip(operands, dtypes, strict=True)]
    assert run(*inputs)[0].tolist() == expected


def test_numpy_is_not_repaired() -> None:
    """1 + 2^-8 + 2^-40 lies above the midpoint in bf16; on the way through f32 it becomes the midpoint."""
    run = compile_one(NumpyAdapter(), one_node("cast", ("f64",), "bf16"))
    above = np.array([1 + 2.0**-8 + 2.0**-40]).view("u8")
    assert run(above)[0].tolist() == [0x3F80]


def test_numpy_has_no_saturating_cast_where_it_cannot_hold_the_bound() -> None:
    answer = compile_one(NumpyAdapter(), one_node("cast_saturate", ("f32",), "i32"))
    assert isinstance(answer, Unsupported)
    assert "cannot clip float32" in answer.reason


def source(*args: Any, op: str = "add") -> Source:
    return Source(Call(op, args))


@pytest.mark.parametrize(
    ("program", "accepted"),
    [
        (source(Parameter("x", "i8"), Literal(100)), True),
        (source(Parameter("x", "i8"), Literal(300)), False),
        (source(Parameter("x", "i8"), Literal(1.5)), True),  # promoted to f64: breaks intent:3-b
        (source(Parameter("x", "f32"), Formed(Literal(1.0))), True),  # promoted: breaks intent:3-d
        (source(Parameter("x", "f32"), Literal(1.0), op="and"), False),
    ],
)
def test_numpy_runs_source_programs_with_python_literals(program: Source, accepted: bool) -> None:
    answer = compile_one(NumpyAdapter(), program)
    assert callable(answer) is accepted
    assert isinstance(answer, Rejected) is not accepted


def test_numpy_result_of_a_source_program_has_numpys_dtype() -> None:
    run = compile_one(NumpyAdapter(), source(Parameter("x", "i8"), Literal(1.5)))
    assert run(read_only([1], "u1"))[0].view("f8").tolist() == [2.5]
    alone = compile_one(NumpyAdapter(), Source(Literal(True)))
    assert alone()[0].tolist() == 1


# The check of an adapter. One deliberately bad adapter for each rule.


class Wrapped(NumpyAdapter):
    """NumPy, with one thing spoilt by a subclass."""

    def outputs(self, program: Kernel | Source, inputs: Sequence[Array], outputs: list[Array]) -> Any:
        return outputs

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return [self._wrap(p, a) for p, a in zip(programs, super().compile(programs, options), strict=True)]

    def _wrap(self, program: Kernel | Source, answer: Any) -> Any:
        return (lambda *inputs: self.outputs(program, inputs, answer(*inputs))) if callable(answer) else answer


Spoil = Callable[[Kernel | Source, Sequence[Array], list[Array]], Any]


def spoilt(spoil: Spoil) -> type[Wrapped]:
    def outputs(self: Wrapped, program: Kernel | Source, inputs: Sequence[Array], good: list[Array]) -> Any:
        return spoil(program, inputs, good)

    return type("Spoilt", (Wrapped,), {"outputs": outputs})


def with_member(**members: Any) -> type[NumpyAdapter]:
    return type("Spoilt", (NumpyAdapter,), members)


class NotBuilt(NumpyAdapter):
    def __init__(self) -> None:
        raise OSError("no device")


class RaisesOnBatch(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        answers = super().compile(programs, options)
        bad = [answer for answer in answers if isinstance(answer, Unsupported)]
        if bad:
            raise ValueError(bad[0].reason)
        return answers


class OneBadSpoilsAll(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        answers = super().compile(programs, options)
        bad = [answer for answer in answers if isinstance(answer, Unsupported)]
        return [bad[0]] * len(answers) if bad else answers


class ForgetsOne(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return [answer for answer in super().compile(programs, options) if callable(answer)]


class ReturnsTuple(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return tuple(super().compile(programs, options))


class AnswersNone(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return [a if callable(a) else None for a in super().compile(programs, options)]


class NoReason(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return [a if callable(a) else Unsupported("") for a in super().compile(programs, options)]


class FailsOnEmptyBatch(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        first, *rest = programs
        return super().compile([first, *rest], options)


class NoneForEmptyBatch(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return super().compile(programs, options) if programs else None


class CompilesAnything(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return [a if callable(a) else (lambda *inputs: list(inputs)) for a in super().compile(programs, options)]


class OffersNothing(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        return [Unsupported("not today") for _ in programs]


class UnsupportedAtRunTime(NumpyAdapter):
    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        def run(*inputs: Array) -> Any:
            raise UnsupportedError("no device")

        return [run if callable(a) else a for a in super().compile(programs, options)]


class BadAtLevelThree(Wrapped):
    opt_levels = (0, 3)
    level = 0

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> Any:
        self.level = options.opt_level
        return super().compile(programs, options)

    def outputs(self, program: Kernel | Source, inputs: Sequence[Array], outputs: list[Array]) -> Any:
        return tuple(outputs) if self.level == 0 else iter(outputs)


class ReusesBuffers(Wrapped):
    def __init__(self) -> None:
        self.buffers: dict[Any, list[Array]] = {}

    def outputs(self, program: Kernel | Source, inputs: Sequence[Array], outputs: list[Array]) -> Any:
        key = (program, *(output.shape for output in outputs))
        kept = self.buffers.setdefault(key, outputs)
        for old, new in zip(kept, outputs, strict=True):
            old[...] = new
        return kept


class Counts(Wrapped):
    """Another result on every call."""

    def __init__(self) -> None:
        self.calls = 0

    def outputs(self, program: Kernel | Source, inputs: Sequence[Array], outputs: list[Array]) -> Any:
        self.calls += 1
        conversion = isinstance(program, Kernel) and program.output_types[0].dtype == "f16" and len(program.values) == 2
        return [o ^ o.dtype.type(self.calls & 1) for o in outputs] if conversion else outputs


class Keeps(Wrapped):
    """Writes to the results that it returned before."""

    def __init__(self) -> None:
        self.last: list[Array] = []

    def outputs(self, program: Kernel | Source, inputs: Sequence[Array], outputs: list[Array]) -> Any:
        for old in self.last:
            old.fill(0)
        self.last = outputs
        return outputs


def writes_to_input(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    for bits in inputs:
        bits.flags.writeable = True
        bits[...] = 1
        bits.flags.writeable = False
    return outputs


def refuses_read_only(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    if inputs and not inputs[0].flags.writeable:
        raise ValueError("buffer source array is read-only")
    return outputs


def refuses_empty(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    if any(bits.size == 0 for bits in inputs):
        raise IndexError("empty")
    return outputs


def broken_tail(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    """Elements beyond the last full vector of two are lost."""
    for output in outputs:
        if output.ndim and len(output) % 2:
            output[-1] = 0
    return outputs


def strided(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    return [np.repeat(output, 2)[::2] if output.ndim else output for output in outputs]


def true_is_255(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    types = program.output_types
    return [o * np.uint8(255) if t.dtype == "bool" else o for o, t in zip(outputs, types, strict=True)]


def shared(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    return [outputs[0]] * len(outputs) if len(set(program.outputs)) == 1 else outputs


def aliases_input(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    same = [bits for bits in inputs if np.array_equal(bits, outputs[0]) and bits.dtype == outputs[0].dtype]
    return [same[0], *outputs[1:]] if same and bool(same[0].size) else outputs


def turned(program: Any, inputs: Sequence[Array], outputs: list[Array]) -> Any:
    return [-o if program.values[-1] == Apply("sub", (0, 1), "i32") and o.dtype == np.uint32 else o for o in outputs]


BAD: dict[str, tuple[Any, str]] = {
    "cannot be made": (NotBuilt, r"NotBuilt\(\) raises OSError: no device"),
    "no name": (with_member(name=""), "name is ''"),
    "name of bytes": (with_member(name=b"x"), "name is b'x'"),
    "no levels": (with_member(opt_levels=()), "at least one"),
    "levels of text": (with_member(opt_levels=("0",)), "not rising integers"),
    "falling levels": (with_member(opt_levels=(3, 0)), "not rising integers"),
    "facts of a dict": (with_member(facts={}), "not a Facts"),
    "fact of a text": (with_member(facts=Facts(flushes_subnormals="no")), "flushes_subnormals is 'no'"),  # type: ignore[arg-type]
    "version of a number": (with_member(facts=Facts(versions={"numpy": 2})), "versions is"),  # type: ignore[dict-item]
    "no compile": (with_member(compile=None), "no method compile"),
    "artifact is no method": (with_member(artifact="text"), "artifact is there, but cannot be called"),
    "artifact of bytes": (with_member(artifact=lambda self, kernel, options: b"x"), "artifact returns bytes"),
    "artifact raises": (with_member(artifact=lambda self, kernel: ""), "artifact raises TypeError"),
    "raises for a bad program": (RaisesOnBatch, "raises ValueError: .*answered, not raised"),
    "one bad program spoils the batch": (OneBadSpoilsAll, "compiled alone is not compiled in a batch"),
    "answers fewer": (ForgetsOne, "list of 5 answers; it is a list of 4"),
    "answers a tuple": (ReturnsTuple, "not at all: tuple"),
    "answers None": (AnswersNone, "answers None: neither callable nor Rejected"),
    "no reason": (NoReason, "Unsupported without a reason"),
    "raises for an empty batch": (FailsOnEmptyBatch, "empty batch raises ValueError"),
    "None for an empty batch": (NoneForEmptyBatch, "empty batch returns None"),
    "compiles anything": (CompilesAnything, "unknown operation is compiled"),
    "offers nothing": (OffersNothing, "nothing was checked; reasons given: not today"),
    "unsupported at run time": (UnsupportedAtRunTime, "nothing was checked"),
    "bad at level 3 alone": (BadAtLevelThree, "returns list_iterator"),
    "reuses buffers": (ReusesBuffers, "share memory|first"),
    "not deterministic": (Counts, "another result on another call"),
    "writes to earlier results": (Keeps, "changes the result of the first"),
    "writes to an input": (spoilt(writes_to_input), "an input was modified"),
    "refuses read-only inputs": (spoilt(refuses_read_only), "read-only"),
    "fails on length 0": (spoilt(refuses_empty), "IndexError: empty"),
    "loses an odd tail": (spoilt(broken_tail), r"length 1\)"),
    "wrong count": (spoilt(lambda p, i, o: [*o, *o]), "2 outputs where the kernel has 1"),
    "a bare array": (spoilt(lambda p, i, o: o[0]), "returns ndarray"),
    "a list of numbers": (spoilt(lambda p, i, o: [x.tolist() for x in o]), "is a list, not an array"),
    "values instead of bits": (spoilt(lambda p, i, o: [x.astype("f8") for x in o]), "dtype float64"),
    "wrong width": (spoilt(lambda p, i, o: [x.astype("u8") for x in o]), "dtype uint64, not"),
    "rank 1 for a scalar": (spoilt(lambda p, i, o: [np.atleast_1d(x) for x in o]), r"shape \(1,\), not \(\)"),
    "not contiguous": (spoilt(strided), "not C-contiguous"),
    "true is 255": (spoilt(true_is_255), "0xff, which is no code of bool"),
    "outputs are one array": (spoilt(shared), "memory with another output"),
    "output is the input": (spoilt(aliases_input), "memory with an input"),
    "operands turned": (spoilt(turned), r"output 0 is \["),
    "outputs turned": (spoilt(lambda p, i, o: o[::-1]), "two outputs in turned order"),
}


@pytest.mark.parametrize("rule", BAD)
def test_each_bad_adapter_is_caught(rule: str) -> None:
    adapter, message = BAD[rule]
    problems = check_adapter(adapter)
    assert any(re.search(message, problem) for problem in problems), problems
    with pytest.raises(AssertionError, match="breaks its contract"):
        assert_adapter(adapter)


def test_good_adapters_pass() -> None:
    assert_adapter(NumpyAdapter)
    assert_adapter(NumpyAdapter())
    assert_adapter(Small)
    assert_adapter(Wrapped)


def test_the_optional_members_are_protocols() -> None:
    assert isinstance(NumpyAdapter(), Adapter)
    assert not isinstance(NumpyAdapter(), HasArtifact | Closes)
