"""The command ``halfulp``: what it prints, and how it ends."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halfulp
from halfulp.certify import cli
from halfulp.certify.questions import answer, hex_texts, read_question
from halfulp.oracle import codes
from halfulp.oracle.formats import FORMATS, STORAGE_ONLY, format_of
from halfulp.oracle.kernel import one_node
from halfulp.oracle.ops import OPERATIONS, signatures
from halfulp.oracle.sets import Verdict
from halfulp.oracle.source import Call, Literal, Parameter, Source
from halfulp.properties.replay import Recorded, encode

STUBS = '''
import numpy as np
from halfulp.adapters.protocol import Facts, Rejected, Unsupported
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops.record import Refused
from halfulp.oracle.typing import check, elaborate


class Right:
    name, opt_levels, facts = "right", (0,), Facts()

    def compile(self, programs, options):
        return [self.one(program) for program in programs]

    def one(self, program):
        kernel = program if isinstance(program, Kernel) else elaborate(program)
        verdict = check(kernel) if isinstance(kernel, Kernel) else kernel
        if isinstance(verdict, Refused):
            return Rejected(verdict.reason)
        return lambda *inputs: self.run(kernel, inputs)

    def run(self, kernel, inputs):
        return evaluate(kernel, inputs)


class Flips(Right):
    """Flips the lowest bit of every f16."""

    def run(self, kernel, inputs):
        types = kernel.output_types
        return [np.asarray(o ^ o.dtype.type(t.dtype == "f16")) for o, t in zip(evaluate(kernel, inputs), types)]


class TakesAll(Right):
    """Refuses nothing."""

    def one(self, program):
        return lambda *inputs: [inputs[0].copy()]


class NoFrontEnd(Right):
    def one(self, program):
        return super().one(program) if isinstance(program, Kernel) else Unsupported("no front end")
'''


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cli_stubs.py").write_text(STUBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def ask(*arguments: str, capsys: pytest.CaptureFixture[str], status: int = 0) -> Any:
    assert cli.main(arguments) == status
    (reply,) = lines_of(capsys)
    return reply


# ask


def test_ask_takes_json_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """The example that defines the protocol."""
    expected = '{"claim":"exact","allowed":[["0xfd","0xfd"]],"nan":false,"nearest":"0xfd","clauses":["intent:5.2-f"]}\n'
    question = '{"op":"cast","args":[{"dtype":"f64","bits":"0xc07affffffffffff"}],"result":"f8e4m3fn"}'
    assert cli.main(["ask", question]) == 0
    assert capsys.readouterr().out == expected
    assert cli.main(["ask", "cast", "f64:0xc07affffffffffff", "--result", "f8e4m3fn"]) == 0
    assert capsys.readouterr().out == expected


def test_ask_reads_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [
        {"op": "add", "args": [{"dtype": "i8", "bits": "0x7f"}, {"dtype": "i8", "bits": "0x01"}]},
        {"op": "neg", "args": [{"dtype": "f16", "bits": ["0x3c00", "0x8000"]}], "attrs": {}},
    ]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(map(json.dumps, questions)) + "\n\n"))
    assert cli.main(["ask"]) == 0
    first, second = lines_of(capsys)
    assert (first["claim"], first["nearest"]) == ("exact", "0x80")
    assert second["nearest"] == ["0xbc00", "0x0000"]
    assert second["claim"] == ["exact", "exact"]
    assert all(len(second[field]) == 2 for field in second)


CLAIMS = [
    # Two zeros are two points, from the lower to the higher.
    ("maximum f32:0x80000000 f32:0x0", "oneof", [["0x80000000"] * 2, ["0x00000000"] * 2], False),
    ("maximum f32:0x7fc00000 f32:0x0", "nan", [], True),
    ("maximum_num f32:0x7fc00000 f32:0x0", "exact", [["0x00000000"] * 2], False),
    # (1 + 2^-12)^2 - (1 + 2^-11): 0 after two roundings, 2^-24 fused.
    ("muladd f32:0x3f800800 f32:0x3f800800 f32:0xbf801000", "oneof", [["0x00000000"] * 2, ["0x33800000"] * 2], False),
    ("cast f32:0x7fc00000 --result i8", "none", [], False),
    ("cast f32:0x7fc00001 --result f16", "nan", [], True),
    ("select bool:0x1 f32:0x7fc00001 f32:0x0", "exact", [["0x7fc00001"] * 2], False),
    ("bitcast u32:0x7f800001 --result f32", "exact", [["0x7f800001"] * 2], False),
    ("cast f32:0x7f800000 --result f8e4m3fn", "unspecified", [], False),
    ("abs i8:0x80", "unspecified", [], False),
    ("cast f32:0xc2000000 --result i128", "exact", [["0x" + "f" * 30 + "e0"] * 2], False),
    ("cast i4:0xf --result f32", "exact", [["0xbf800000"] * 2], False),
]


@pytest.mark.parametrize(("words", "claim", "allowed", "nan"), CLAIMS, ids=[words for words, *_ in CLAIMS])
def test_kinds_of_claims(
    words: str, claim: str, allowed: list[list[str]], nan: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = ask("ask", *words.split(), capsys=capsys)
    assert (reply["claim"], reply["allowed"], reply["nan"]) == (claim, allowed, nan)
    assert (reply["nearest"] is None) == (claim == "none")
    assert ("unspecified" in reply) == (claim == "unspecified")
    assert reply["clauses"]


def test_unspecified_values_are_listed_with_the_nans(capsys: pytest.CaptureFixture[str]) -> None:
    reply = ask("ask", "cast", "f32:0x7f800000", "--result", "f8e4m3fn", capsys=capsys)
    assert reply["unspecified"] == [["0xff", "0xff"], ["0xfe", "0x7e"], ["0x7f", "0x7f"]]
    reply = ask("ask", "abs", "i8:0x80,0x81", capsys=capsys)
    assert reply["unspecified"] == [[["0x80", "0x7f"]], []]


def test_ask_covers_every_operation_and_storage_format(capsys: pytest.CaptureFixture[str]) -> None:
    names = (
        "cast cast_saturate bitcast add sub mul div floordiv mod shl shr and or xor not neg abs sqrt floor eq ne lt le"
    )
    names += " gt ge maximum minimum maximum_num minimum_num select muladd"
    names += " lgamma asin log1p erfc i0 exp2 tanh fdiv random_bits random_uniform"
    assert sorted(OPERATIONS) == sorted(names.split())
    for record in OPERATIONS.values():
        signature = next(s for s in signatures() if s.op == record.name)
        words = [f"{dtype}:0x1" for dtype in signature.args]
        ask("ask", record.name, *words, "--result", signature.result, capsys=capsys)
    for name in STORAGE_ONLY:
        assert ask("ask", "cast", f"{name}:0x1", "--result", "f32", capsys=capsys)["claim"] == "exact"
        assert ask("ask", "cast", "f32:0x3f800000", "--result", name, capsys=capsys)["claim"] == "exact"


def test_the_listing_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ask", "--list"]) == 0
    words = capsys.readouterr().out.split()
    assert set(OPERATIONS) | set(FORMATS) <= set(words)
    assert cli.main(["ask", "--list", "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listing["operations"]] == list(OPERATIONS)
    assert [entry["name"] for entry in listing["formats"]] == list(FORMATS)


def holds(code: int, name: str, pairs: list[list[str]], any_nan: bool) -> bool:
    """Whether a reader of the protocol finds a code in a list of ranges."""
    fmt = format_of(name)
    if fmt.is_float and any_nan and codes.is_nan(fmt, np.array([code], fmt.storage))[0]:
        return True

    def order(bits: int) -> int:
        if fmt.is_float:
            magnitude = bits & fmt.magnitude_mask
            return ~magnitude if bits & fmt.sign_mask else magnitude
        return bits - fmt.code_count if fmt.signed and bits > fmt.max_int else bits

    return any(order(int(low, 16)) <= order(code) <= order(int(high, 16)) for low, high in pairs)


SMALL = [
    s
    for s in signatures()
    if s.result in ("f8e4m3fn", "f8e5m2", "i8", "u8", "bool") and all(format_of(a).width <= 16 for a in s.args)
]


@pytest.mark.parametrize("op", sorted({s.op for s in SMALL}))
def test_answers_say_what_the_set_says(op: str) -> None:
    """For results of 8 bits: a reader of the ranges comes to the verdict of the judge, for every code."""
    generator = np.random.default_rng(12)
    for signature in (s for s in SMALL if s.op == op):
        record = OPERATIONS[op]
        critical = [c.tolist() for c in record.critical(signature)]
        rows = generator.integers(0, len(critical[0]), 5).tolist() if critical[0] else []
        args = []
        for position, dtype in enumerate(signature.args):
            fmt = format_of(dtype)
            some = [critical[position][row] for row in rows] + generator.integers(0, fmt.code_count, 2).tolist()
            args.append({"dtype": dtype, "bits": [fmt.hex(code) for code in some]})
        question = read_question({"op": op, "args": args, "result": signature.result}, judging=False)
        reply = answer(question)
        allowed = record.allowed(signature, question.operands)
        fmt = signature.result_format
        for code in range(fmt.code_count):
            verdicts = allowed.judge(np.full(len(allowed), code, fmt.storage))
            for row, verdict in enumerate(verdicts.tolist()):
                name = fmt.name
                if reply["claim"][row] == "none":
                    found = Verdict.NO_CLAIM
                elif holds(code, name, reply["allowed"][row], reply["nan"][row]):
                    found = Verdict.ALLOWED
                elif holds(code, name, reply["unspecified"][row], False):
                    found = Verdict.UNSPECIFIED
                else:
                    found = Verdict.FORBIDDEN
                assert found == verdict, (signature.id, fmt.hex(code), {k: v[row] for k, v in reply.items()})


def test_a_hundred_thousand_elements() -> None:
    generator = np.random.default_rng(5)
    f32 = format_of("f32")
    args = [{"dtype": "f32", "bits": hex_texts(f32, generator.integers(0, 1 << 32, 100_000, np.uint32))} for _ in "abc"]
    reply = json.dumps(answer(read_question({"op": "muladd", "args": args}, judging=False)))
    assert reply.count('"nan"') > 100


# judge


def test_judge_finds_the_suspect(capsys: pytest.CaptureFixture[str]) -> None:
    question = '{"op":"cast","args":[{"dtype":"f64","bits":"0xc07affffffffffff"}],"result":"f8e4m3fn","got":"0xfe"}'
    reply = ask("judge", question, capsys=capsys, status=1)
    assert (reply["verdict"], reply["distance_ulp"]) == ("forbidden", 1)
    assert "round_via_f32" in reply["suspects"]
    assert reply["allowed"] == [["0xfd", "0xfd"]]
    assert ask("judge", "cast", "f64:0xc07affffffffffff", "--result", "f8e4m3fn", "--got", "0xfd", capsys=capsys) == {
        "verdict": "allowed",
        "distance_ulp": 0,
        "suspects": [],
        "claim": "exact",
        "allowed": [["0xfd", "0xfd"]],
        "nan": False,
        "nearest": "0xfd",
        "clauses": ["intent:5.2-f"],
    }


@pytest.mark.parametrize(
    ("words", "verdict", "distance", "status"),
    [
        ("add i32:0x7fffffff i32:0x1 --got 0x7fffffff", "forbidden", None, 1),
        ("add f32:0x7f800000 f32:0xff800000 --got 0x0", "forbidden", None, 1),
        ("add f32:0x7f800000 f32:0xff800000 --got 0xffffffff", "allowed", 0, 0),
        ("cast f32:0x7f800000 --result i8 --got 0x0", "no_claim", None, 0),
        ("cast f32:0x7f800000 --result f32 --got 0x7f800000", "allowed", 0, 0),
        ("cast f32:0x43e10000 --result f8e4m3fn --got 0x7f", "unspecified", None, 0),
        ("cast f32:0x43e10000 --result f8e4m3fn --got 0x7d", "unspecified", 1, 0),
        ("floordiv i8:0x80 i8:0x00 --got 0x12", "no_claim", None, 0),
    ],
)
def test_verdicts(
    words: str, verdict: str, distance: int | None, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = ask("judge", *words.split(), capsys=capsys, status=status)
    assert (reply["verdict"], reply["distance_ulp"]) == (verdict, distance)


def test_judge_works_on_lists(capsys: pytest.CaptureFixture[str]) -> None:
    reply = ask("judge", "add", "u8:0xff,0x01,0x02", "u8:0x01", "--got", "0x00,0xff,0x03", capsys=capsys, status=1)
    assert reply["verdict"] == ["allowed", "forbidden", "allowed"]
    assert reply["distance_ulp"] == [None] * 3
    assert reply["nearest"] == ["0x00", "0x02", "0x03"]


def test_malformed_lines_are_named_and_the_others_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = '{"op":"not","args":[{"dtype":"u8","bits":"0x00"}],"got":"0x00"}'
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{good}\n\n{{nonsense\n{good}\n"))
    assert cli.main(["judge"]) == 2
    out, err = capsys.readouterr()
    first, error, second = map(json.loads, out.splitlines())
    assert first == second
    assert first["verdict"] == "forbidden"
    assert error["line"] == 3
    assert err == f"halfulp judge: line 3: {error['error']}\n"


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("erfc f32:0x3f800000", {"claim": "range", "allowed": [["0x3e211307", "0x3e21130f"]]}),
        ("exp2 f32:0xc2fd0000", {"claim": "range", "nearest": "0x005a827a"}),
        ("exp2 f32:0xc2fd0000 --attr approximate=true", {"claim": "range", "nearest": "0x005a827a"}),
        (
            "exp2 f32:0xc2fd0000 --attr approximate=true --attr flush_to_zero=true",
            {"claim": "exact", "allowed": [["0x00000000"] * 2], "clauses": ["intent:5.1-h"]},
        ),
        ("fdiv f32:0x3f800000 f32:0x7f000000", {"claim": "exact", "nearest": "0x00400000"}),
        ("fdiv f32:0x3f800000 f32:0x7f000000 --attr approximate=true", {"claim": "exact", "nearest": "0x00000000"}),
        ("fdiv f16:0x3c00 f16:0x4200 --attr approximate=false", {"claim": "exact", "nearest": "0x3555"}),
        ("tanh f32:0x00000001 --attr approximate=true", {"claim": "exact", "nearest": "0x00000001"}),
        ("i0 bf16:0x7f7f", {"claim": "exact", "nearest": "0x7f80"}),
        ("log1p f64:0xbff0000000000000", {"claim": "exact", "nearest": "0xfff0000000000000"}),
        ("random_bits u64:0x1 u64:0xffffffffffffffff", {"claim": "exact", "nearest": "0x09449a36"}),
        ("random_bits u64:0x1 index:0xffffffffffffffff", {"claim": "none"}),
        ("random_uniform u64:0x0123456789abcdef u64:0xa490e08 --result f32", {"nearest": "0x3f7fffff"}),
    ],
)
def test_functions_and_random_bits(words: str, fields: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ask", *words.split()]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert {name: answered[name] for name in fields} == fields


MALFORMED = [
    ("nonsense", "there is no operation 'nonsense'"),
    ("dvi f32:0x0 f32:0x0", "did you mean div?"),
    ("add f32:0x0", "add takes 2 operands, but 1 given"),
    ("add f23:0x0 f32:0x0", "argument 0: there is no format 'f23' (did you mean f32?)"),
    ("add f32:1.5 f32:0x0", "argument 0: '1.5' is no bit pattern"),
    ("add f32:0x100000000 f32:0x0", "argument 0: 0x100000000 is wider than f32, which has 32 bits"),
    ("add f32:0x0,0x1 f32:0x0,0x1,0x2", "equally long; these have 2, 3 elements"),
    ("add i32:0x0 u32:0x0", "refuses this program under intent:3-g"),
    ("div i32:0x1 i32:0x1", "refuses this program under intent:4-d"),
    ("cast f32:0x0", 'name it under "result"'),
    ("cast f16:0x0 --result e2m1", "converted from and to f32 alone"),
    ("bitcast f32:0x0 --result u16", "intent:5.2-j"),
    ("add f32:0x0 f32:0x0 --result f64", 'is f32, but "result" says f64'),
    ("add f32:0x0 f32:0x0 --attr fast=true", "add has no attribute 'fast'"),
    ("add f32:0x0 f32:0x0 --attr flush_to_zero=true", "intent:5.1-b: add has no flush_to_zero"),
    ("tanh f32:0x0 --attr fast=true", "tanh has no attribute 'fast'; its attributes are approximate"),
    ("exp2 f32:0x0 --attr flush_to_zero=true", "intent:5.1-b: flush_to_zero needs approximate=True"),
    ("exp2 f32:0x0 --attr approximate=1", "intent:5.1-c"),
    ("fdiv f64:0x0 f64:0x0 --attr approximate=true", "intent:5.1-d"),
    ("erfc i32:0x0", "intent:5-k"),
    ("random_bits u64:0x0 i64:0x0", "intent:12-c: a counter is u64 or index, not i64"),
    ("random_uniform u64:0x0 u64:0x0", 'name it under "result"'),
    ("random_uniform u64:0x0 u64:0x0 --result f16", "has no result to ask for"),
    ("add f32", "write FORMAT:BITS"),
    ("--result f32", "name its operation first"),
    ("[]", "not a list"),
    ('{"op":"add","arg":[]}', "unknown field 'arg' (did you mean args?)"),
    ('{"op":1}', 'there is no "op"'),
    ('{"op":"neg"}', 'there is no "args"'),
    ('{"op":"neg","args":[1]}', "argument 0 has to be"),
    ('{"op":"neg","args":[{"dtype":"f32","bits":1}]}', "argument 0: 1 is no bit pattern"),
    ('{"op":"neg","args":[{"dtype":"f32","bits":["0x0",null]}]}', "argument 0, element 1: None is no bit pattern"),
]


@pytest.mark.parametrize(("words", "message"), MALFORMED, ids=[words for words, _ in MALFORMED])
def test_malformed_questions_are_explained(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [words] if words.startswith(("{", "[")) else words.split()
    assert cli.main(["ask", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("halfulp ask: ")
    assert message in err


def test_judge_wants_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["judge", "neg", "f32:0x0"]) == 2
    assert 'there is no "got"' in capsys.readouterr().err


# replay

WRONG = Recorded(
    "cast[f32->f16]/array/O0",
    "intent:5.2-d",
    one_node("cast", ("f32",), "f16"),
    0,
    (np.array([0x3F800000], np.uint32),),
)
ILL_TYPED = Recorded("typing", "intent:4-d", one_node("div", ("i32", "i32"), "i32"), 0, (np.zeros(1, np.uint32),) * 2)
LITERAL = Recorded("literals", "intent:3-b", Source(Call("add", (Parameter("x", "i8"), Literal(300)))), 0)


@pytest.mark.parametrize(
    ("recorded", "backend", "status", "text"),
    [
        (WRONG, "Right", 0, "1 result, all allowed; the first is 0x3c00 (1.0)."),
        (WRONG, "Flips", 1, "got       f16 0x3c01 (1.0009765625 = 0x1.004p+0)"),
        (ILL_TYPED, "Right", 0, "refused, as intent:4-d wants it"),
        (ILL_TYPED, "TakesAll", 1, "accepted, although the language refuses it"),
        (LITERAL, "Right", 0, "refused, as intent:3-b wants it"),
        (LITERAL, "TakesAll", 1, "accepted, although the language refuses it"),
        (LITERAL, "NoFrontEnd", 2, "does not offer what the program uses: no front end"),
        (WRONG, "Absent", 2, "has no 'Absent'"),
    ],
)
def test_replay(
    recorded: Recorded, backend: str, status: int, text: str, stubs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["replay", encode(recorded), "--backend", f"cli_stubs:{backend}"]) == status
    out, err = capsys.readouterr()
    assert text in out + err


def test_replay_shows_what_a_token_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", encode(WRONG), "--show"]) == 0
    out = capsys.readouterr().out
    for text in ("cast[f32->f16]/array/O0", "intent:5.2-d", "%1 = cast %0 : f16", "f32 0x3f800000 (1.0)"):
        assert text in out
    assert cli.main(["replay", encode(WRONG)]) == 2
    assert "no backend is named" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["abc", "hu1-", "hu1-xyz", encode(WRONG)[:-4]])
def test_damaged_tokens(token: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", token, "--backend", "cpu"]) == 2
    assert "token" in capsys.readouterr().err


# clauses, backends, and the command itself


def test_clauses(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["clauses", "5.2-f", "reading:4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("intent:5.2-f ")
    assert "checked by cast" in out
    assert "reading:4" in out
    assert max(map(len, out.splitlines())) <= 100
    assert cli.main(["clauses", "--json", "5.2*"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"5.2"} == {entry["chapter"] for entry in found}
    assert {"id", "kinds", "rule", "status", "checked_by"} <= set(found[0])
    assert cli.main(["clauses", "77"]) == 2
    assert "no clause matches 77" in capsys.readouterr().err


def test_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["backends"]) == 0
    assert "pipe:COMMAND" in capsys.readouterr().out
    assert cli.main(["backends", "--json"]) == 0
    assert "cpu" in {entry["name"] for entry in json.loads(capsys.readouterr().out)}


def test_the_page_names_every_option() -> None:
    page = Path(__file__).parent.parent.joinpath("docs", "reference", "command-line.md").read_text(encoding="utf-8")
    (commands,) = (a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        assert f"## {name}" in page or name in ("ask", "judge")
        options = [a.option_strings[0] for a in command._actions if a.option_strings and a.dest != "help"]
        assert [option for option in options if f"`{option}" not in page and f"[{option}]" not in page] == []


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("certify", "ask", "judge", "replay", "clauses", "backends"):
        with pytest.raises(SystemExit) as end:
            cli.main([command, "--help"])
        assert end.value.code == 0
        out = capsys.readouterr().out
        assert f"halfulp {command}" in out
        assert command == "backends" or out.count(f"halfulp {command}") >= 3  # usage, and examples
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"halfulp {halfulp.__version__}\n"
    assert cli.main([]) == 2


def run_command(*words: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    package = Path(halfulp.__path__[0]).parent
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTEST_ADDOPTS": "--nonsense", "COLUMNS": "100"}
    command = [sys.executable, "-m", "halfulp.certify.cli", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more)


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    package = Path(halfulp.__path__[0]).parent
    script = f"{sys.executable} -m halfulp.certify.cli clauses --json | head -1"
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(
        script, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[\n"
    assert done.stderr == ""


# certify


def test_certify_in_a_foreign_folder(stubs: Path) -> None:
    """Away from the checkout, beside a hostile configuration; nothing but the reports is left behind."""
    (stubs / "pytest.ini").write_text("[pytest]\naddopts = --also-nonsense\n")
    (stubs / "conftest.py").write_text("raise RuntimeError('this conftest is none of ours')\n")
    before = sorted(path.name for path in stubs.iterdir())
    done = run_command(
        *("certify", "--backend", "cli_stubs:Right", "--depth", "quick", "--clauses", "5.2-h", "-n", "1"),
        *("--json", "out.json", "--junit", "out.xml"),
        cwd=stubs,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CERTIFIED (only clauses 5.2-h): 0 forbidden results" in done.stdout
    report = json.loads((stubs / "out.json").read_text())
    assert report["certified"] is True
    assert report["claims"]["intent:5.2-h"] > 0
    assert "<testsuite" in (stubs / "out.xml").read_text()
    after = sorted(path.name for path in stubs.iterdir() if path.name != "__pycache__")
    assert after == sorted([*before, "out.json", "out.xml"])


def test_certify_finds_and_explains(stubs: Path) -> None:
    done = run_command(
        *("certify", "--backend", "cli_stubs:Flips", "--depth", "quick", "--clauses", "5.2-h", "-n", "2"),
        *("--", "-k", "f8e5m2-"),
        cwd=stubs,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "--backend cli_stubs:Flips" in done.stdout
    assert "NOT CERTIFIED: " in done.stdout
    token = next(line.split()[3] for line in done.stdout.splitlines() if line.startswith("replay "))
    assert cli.main(["replay", token, "--backend", "cli_stubs:Flips"]) == 1
    assert cli.main(["replay", token, "--backend", "cli_stubs:Right"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--backend", "x", "--json", "no/where.json"), "there is no folder"),
        (("--backend", "x", "--junit", "."), "that is a folder"),
    ],
)
def test_certify_checks_its_targets_first(
    words: tuple[str, ...], message: str, stubs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["certify", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--backend", "x", "-n", "0"), ("--backend", "x", "-n", "two"), ()])
def test_certify_refuses_nonsense(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["certify", *words])
    assert end.value.code == 2
    assert "halfulp certify: error: " in capsys.readouterr().err
