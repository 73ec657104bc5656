"""The ledger: a function that loses accuracy is noticed, even within its bound, and nothing rises by itself."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import halfulp
from halfulp.certify import cli, ledger
from halfulp.certify.device import cpu_class, device_class, isa_level
from halfulp.certify.ledger import Change, Entry, Key
from halfulp.oracle.ops import Signature, signatures
from halfulp.properties.results import Tally

pytest_plugins = ["pytester"]

STUBS = '''
import os

import numpy as np

from halfulp.adapters.protocol import Facts
from halfulp.backends.cpu import CpuAdapter


class Cpu(CpuAdapter):
    """The CPU backend. PLANT=off: asin is 1 ulp off from 1/4 to 1/2. PLANT=wrong: it is NaN there."""

    def compile(self, programs, options):
        answers = super().compile(programs, options)
        return [self.plant(p, a) if callable(a) else a for p, a in zip(programs, answers)]

    def plant(self, program, compiled):
        plant = os.environ.get("PLANT")
        if not plant or " asin " not in str(program) or "f32" not in str(program) or not program.input_types:
            return compiled

        def call(*inputs):
            (output,) = compiled(*inputs)
            where = (inputs[0] >= 0x3E800000) & (inputs[0] < 0x3F000000)
            planted = output + np.uint32(1) if plant == "off" else np.uint32(0x7FC00000)
            return [np.asarray(np.where(where, planted, output))]

        return call
'''

PROPERTIES = """
import pytest

from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature
from halfulp.properties.trial import try_signature

SIGNATURES = [Signature(op, (fmt,), fmt) for op, fmt in (("asin", "f32"), ("tanh", "f8e5m2"), ("neg", "f32"))]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.op)
def test_values(signature, backend, plan, report_trial):
    report_trial(try_signature(backend, signature, plan))


test_values = pytest.mark.clauses("5-d")(test_values)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(stubs=STUBS, test_properties=PROPERTIES)
    pytester.makeini("[pytest]\n")
    monkeypatch.syspath_prepend(str(pytester.path))
    package = Path(halfulp.__path__[0]).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), str(package)]))
    for name in ("PYTEST_ADDOPTS", "CI", "GITHUB_ACTIONS", "PLANT"):
        monkeypatch.delenv(name, raising=False)
    return pytester


def certify(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess(
        *("-p", "halfulp.certify.plugin", "-p", "no:cacheprovider", "--backend=stubs:Cpu", "--depth=quick"),
        *options,
    )


def entries(path: str = "ledger.json") -> dict[tuple[str, str, str], dict[str, Any]]:
    data = json.loads(Path(path).read_text())
    jsonschema.validate(data, schema())
    return {(row["operation"], row["format"], row["mode"]): row for row in data["entries"]}


def schema() -> Any:
    return json.loads((resources.files("halfulp.certify") / "data" / "ulp-ledger.schema.json").read_text("utf-8"))


def rewrite(change: Any, path: str = "ledger.json") -> None:
    data = json.loads(Path(path).read_text())
    for row in data["entries"]:
        change(row)
    Path(path).write_text(json.dumps(data))


def test_the_life_of_a_ledger(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Created, kept, broken by a planted regression of 1 ulp, accepted, and fallen again."""
    # There is none, and it is not made without being asked for.
    result = certify(project, "--ulp-ledger=ledger.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ulp-ledger: *ledger.json: there is no such file; *--update-ledger*"])

    # Made.
    result = certify(project, "--ulp-ledger=ledger.json", "--update-ledger")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["4 entries are written to *ledger.json", "CERTIFIED: *", "ULP LEDGER KEPT: 4 maxima*"])
    made = entries()
    assert set(made) == {
        (o, f, m) for o, f in (("asin", "f32"), ("tanh", "f8e5m2")) for m in ("default", "default/folded")
    }
    assert made["asin", "f32", "default"]["max_distance"] == 0
    assert made["tanh", "f8e5m2", "default"]["exhaustive"]
    assert made["tanh", "f8e5m2", "default"]["inputs"] == 256
    assert made["asin", "f32", "default"]["device"] == cpu_class()
    text = Path("ledger.json").read_text()

    # Kept; and nothing is written, asked or not.
    for options in ((), ("--update-ledger",)):
        result = certify(project, "--halfulp-ulp-ledger=ledger.json", *options)
        assert result.ret == 0
        assert Path("ledger.json").read_text() == text

    # A regression within the bound: the backend is certified, the job fails all the same.
    monkeypatch.setenv("PLANT", "off")
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = certify(project, "--ulp-ledger=ledger.json", "--accept-regression=never mind")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*= ulp ledger =*",
            f"asin f32 default on stubs:Cpu ({cpu_class()}): the error rose from 0 to 1 ulp",
            "    before  0 ulp; * inputs, 20??-??-??",
            "    now     1 ulp at 0x3e* (0.*); * inputs, 20??-??-??",
            "    changed no version that is recorded",
            "mend it, or accept it where it was intended: --accept-regression 'REASON', and commit",
            "nothing is written, because CI is set; *",
            "::error title=ulp ledger%3A asin f32 default on stubs%3ACpu::0 ulp -> 1 ulp at 0x3e*",
            "CERTIFIED: *",
            "ULP LEDGER BROKEN: 1 regression",
        ]
    )
    assert Path("ledger.json").read_text() == text
    monkeypatch.delenv("CI")
    monkeypatch.delenv("GITHUB_ACTIONS")

    # An update alone does not accept it.
    assert certify(project, "--ulp-ledger=ledger.json", "--update-ledger").ret == 1
    assert Path("ledger.json").read_text() == text

    # A reason does.
    result = certify(project, "--ulp-ledger=ledger.json", "--accept-regression=half the time")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["accepted: half the time", "ULP LEDGER KEPT: *"])
    risen = entries()["asin", "f32", "default"]
    assert (risen["max_distance"], risen["reason"]) == (1, "half the time")
    assert int(risen["argument"][0], 16) in range(0x3E800000, 0x3F000000)

    # Mended: it falls by itself, and the reason with it.
    monkeypatch.delenv("PLANT")
    assert certify(project, "--ulp-ledger=ledger.json", "--update-ledger").ret == 0
    fallen = entries()["asin", "f32", "default"]
    assert (fallen["max_distance"], fallen.get("reason")) == (0, None)


def test_what_is_missing_new_or_unused(project: pytest.Pytester) -> None:
    assert certify(project, "--ulp-ledger=ledger.json", "--update-ledger").ret == 0
    data = json.loads(Path("ledger.json").read_text())

    # An entry is missing: the job fails, and the line to add is printed.
    Path("ledger.json").write_text(json.dumps({**data, "entries": data["entries"][1:]}))
    result = certify(project, "--ulp-ledger=ledger.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["1 entry is missing; *", '{"operation": "asin", "format": "f32", *},', "ULP LEDGER BROKEN: 1 entry is missing"]
    )

    # An entry is unused: a warning. Not where only some properties were run.
    extra = {**data["entries"][0], "operation": "erfc"}
    Path("ledger.json").write_text(json.dumps({**data, "entries": [*data["entries"], extra]}))
    result = certify(project, "--ulp-ledger=ledger.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["warning: unused entry erfc f32 default on stubs:Cpu (no longer measured)*"])
    result = certify(project, "--ulp-ledger=ledger.json", "-k", "asin")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("warning: unused*")

    # Nothing of this device class: a warning, and the lines to add.
    Path("ledger.json").write_text(json.dumps(data))
    rewrite(lambda row: row.update(device="armv9/sve2/musl"))
    result = certify(project, "--ulp-ledger=ledger.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [f"warning: the ledger has nothing of stubs:Cpu on the device class {cpu_class()}; *", '{"operation": *},']
    )


def test_breaches_are_not_recorded(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANT", "wrong")
    result = certify(project, "--ulp-ledger=ledger.json", "--accept-regression=no")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["not written: asin f32 default (* forbidden results)"])
    assert ("asin", "f32", "default") not in entries()


def test_arguments_of_the_ledger_are_tried_again(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that no draw hits is found, because the ledger knows it."""
    assert certify(project, "--ulp-ledger=ledger.json", "--update-ledger").ret == 0
    monkeypatch.setenv("PLANT", "off")
    monkeypatch.setattr(ledger, "measure", _nothing_measured(ledger.measure))
    rewrite(lambda row: row.update(argument=["0x3ec12345"]) if row["operation"] == "asin" else None)
    result = certify(project, "--ulp-ledger=ledger.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["    now     1 ulp at 0x3e*"])


def _nothing_measured(measure: Any) -> Any:
    """As if no input of the run had shown an error."""

    def blind(*arguments: Any) -> Any:
        found, signatures, not_measured = measure(*arguments)
        return {k: ledger.replace(e, max_distance=0, argument=()) for k, e in found.items()}, signatures, not_measured

    return blind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--update-ledger"], "*--update-ledger changes a ledger; name it with --ulp-ledger=FILE"),
        (["--accept-regression=x"], "*--accept-regression changes a ledger*"),
        (["--ulp-ledger=l.json", "--accept-regression= "], "*--accept-regression is empty*"),
        (["--ulp-ledger=stubs.py"], "*stubs.py: this is no JSON*"),
        (["--ulp-ledger=no/l.json", "--update-ledger"], "*no/l.json: there is no such file*"),
    ],
)
def test_options_that_make_no_sense(project: pytest.Pytester, options: list[str], message: str) -> None:
    result = certify(project, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


# Without pytest.

KEY = Key("tanh", "f32", "default", "a/b/c", "cpu")


def entry(distance: int, inputs: int = 100, *, exhaustive: bool = False, key: Key = KEY, **more: Any) -> Entry:
    return Entry(key, distance, ("0x3f800000",), inputs, exhaustive, "2030-01-02T03:04:05+00:00", **more)


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (entry(1), entry(2), Change.RISE),
        (entry(1, 1000, exhaustive=True), entry(2), Change.RISE),
        (entry(2), entry(1), Change.FALL),
        (entry(2, 1000), entry(1, 100), Change.SAME),
        (entry(2, 1000, exhaustive=True), entry(1, 5000), Change.SAME),
        (entry(2, 1000), entry(1, 500, exhaustive=True), Change.FALL),
        (entry(1), entry(1), Change.SAME),
        (entry(1), entry(1, 200), Change.BETTER_KNOWN),
        (entry(1, 9000), entry(1, 200, exhaustive=True), Change.BETTER_KNOWN),
        (entry(1, 200, exhaustive=True), entry(1, 9000), Change.SAME),
    ],
)
def test_changes(old: Entry, new: Entry, change: Change) -> None:
    (difference,) = ledger.compare({KEY: old}, {KEY: new})
    assert difference.change is change
    after = ledger.updated({KEY: old}, [difference], None)[KEY]
    assert after == (new if change in (Change.FALL, Change.BETTER_KNOWN) else old)


def test_measuring_from_tallies() -> None:
    tallies = [
        Tally("tanh[f16->f16]/array/O0", "5.1", allowed=65600, max_distance=0),
        Tally("tanh[f16->f16]/array/O3", "5.1", allowed=65600, max_distance=1, max_argument=("0x3c00",)),
        Tally("tanh[f16->f16]/scalar0/O3", "5.1", allowed=16, max_distance=0),
        Tally("tanh[f16->f16]/const0/O3", "5.1", allowed=64, max_distance=2, max_argument=("0x3c01",)),
        Tally("exp2[f32->f32;approximate=True;flush_to_zero=True]/array/O3", "5.1", allowed=10, max_distance=2),
        Tally("i0[f32->f32]/array/O3", "5", state="unsupported", reason="no Bessel functions"),
        Tally("add[f32,f32->f32]/array/O3", "5", allowed=10, max_distance=0),
        Tally("programs/1", "5", allowed=10),
    ]
    found, _, why = ledger.measure(tallies, "d", "b", {}, 1 << 16)
    rows = {(k.operation, k.mode): (e.max_distance, e.argument, e.inputs, e.exhaustive) for k, e in found.items()}
    assert rows == {
        ("tanh", "default"): (1, ("0x3c00",), 65536, True),
        ("tanh", "default/folded"): (2, ("0x3c01",), 64, False),
        ("exp2", "approximate+flush_to_zero"): (2, (), 10, False),
    }
    assert why == {Key("i0", "f32", "default", "d", "b"): "unsupported: no Bessel functions"}
    assert ledger.key_of(Signature("tanh", ("f16",), "f16"), "d", "b") in found


def test_device_classes() -> None:
    v3 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
    assert isa_level("x86_64", frozenset(v3.split())) == "x86-64-v3"
    assert isa_level("x86_64", frozenset({"avx2"})) == "x86-64-v1"
    assert isa_level("aarch64", frozenset({"asimd", "fphp", "asimdhp", "sve"})) == "sve"
    assert isa_level("riscv64", frozenset()) == "riscv64"
    assert device_class({"device": "H100"}) == "H100"
    assert device_class({}) == cpu_class()
    assert cpu_class().count("/") == 2


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two ledgers: tanh rose, exp2 rose for a reason, erfc fell, i0 is gone, asin is new."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)

    def of(**distances: int) -> dict[Key, Entry]:
        keys = {name: Key(name, "f32", "default", "a/b/c", "cpu") for name in distances}
        return {keys[n]: entry(d, key=keys[n], reason="faster" if n == "exp2" else "") for n, d in distances.items()}

    ledger.write(Path("old.json"), of(tanh=1, exp2=1, erfc=3, i0=1, lgamma=2))
    ledger.write(Path("new.json"), of(tanh=2, exp2=2, erfc=2, asin=1, lgamma=2))
    return tmp_path


def test_show_and_diff(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old.json", "new.json"):
        jsonschema.validate(json.loads(Path(name).read_text()), schema())
    assert cli.main(["ledger", "show", "old.json"]) == 0
    assert "| tanh | f32 | default | 1 | `0x3f800000` | 100 | a/b/c | cpu | 2030-01-02 |" in capsys.readouterr().out
    assert cli.main(["ledger", "show", "old.json", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 5
    assert cli.main(["ledger", "diff", "old.json", "new.json"]) == 1
    table = capsys.readouterr().out
    assert "| tanh | f32 | default | 1 | 2 | `0x3f800000` | **rose** |" in table
    assert "**rose**: faster" in table
    assert "| gone |" in table
    assert "lgamma" not in table
    assert cli.main(["ledger", "diff", "old.json", "new.json", "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    number = next(i for i, line in enumerate(Path("new.json").read_text().splitlines(), 1) if '"tanh"' in line)
    expected = f"::error file=new.json,line={number},title=ulp ledger%3A tanh f32 default on cpu::1 ulp at 0x3f800000"
    assert any(line.startswith(expected) for line in lines)
    assert any(line.startswith("::warning") and line.endswith("(accepted: faster)") for line in lines)
    assert any(line.startswith("::notice") and "asin" in line for line in lines)
    assert cli.main(["ledger", "diff", "old.json", "new.json", "--format", "json"]) == 1
    changes = {row["change"] for row in json.loads(capsys.readouterr().out)}
    assert changes == {"rise", "fall", "missing", "unused"}
    assert cli.main(["ledger", "diff", "old.json", "old.json"]) == 0
    assert capsys.readouterr().out == "the ledgers say the same\n"


def test_merging_the_record_of_a_sweep(
    two: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = ["sweep", "tanh", "--format", "f8e5m2", "--processes", "1", "--quiet", "--json", "r.json"]
    assert cli.main(record) == 0
    assert cli.main(["ledger", "merge", "new.json", "r.json"]) == 0
    key = Key("tanh", "f8e5m2", "default", cpu_class(), "cpu")
    merged = ledger.read(Path("new.json"))[key]
    assert (merged.exhaustive, merged.inputs) == (True, 256)
    data = json.loads(Path("r.json").read_text())
    Path("r.json").write_text(json.dumps({**data, "max_distance": 5}))
    capsys.readouterr()
    assert cli.main(["ledger", "merge", "new.json", "r.json"]) == 1
    assert "the error rose from 0 to 5 ulp" in capsys.readouterr().out
    assert ledger.read(Path("new.json"))[key].max_distance == 0
    assert cli.main(["ledger", "merge", "new.json", "r.json", "--accept-regression", "why not"]) == 0
    assert ledger.read(Path("new.json"))[key].reason == "why not"
    monkeypatch.setenv("CI", "1")
    assert cli.main(["ledger", "merge", "new.json", "r.json"]) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "this is no JSON"),
        ("[]", "its layout is None"),
        ('{"schema": "other"}', "its layout is 'other'"),
        ('{"schema": "halfulp-ulp-ledger-1", "entries": [{"operation": "x"}]}', "entry 1 is not one"),
        ('{"schema": "halfulp-ulp-ledger-1", "entries": [LINE, LINE]}', "stands there twice"),
        ('{"schema": "halfulp-ulp-ledger-1", "entries": [WORSE]}', "entry 1 is not one"),
    ],
)
def test_files_that_are_no_ledger(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ledger.line_of(entry(1))
    path = tmp_path / "l.json"
    path.write_text(
        content.replace("LINE", line).replace("WORSE", line.replace('"max_distance": 1', '"max_distance": "1"'))
    )
    assert cli.main(["ledger", "show", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "a", "b"], "show takes one ledger; 2 given"),
        (["diff", "a"], "diff takes two ledgers"),
        (["merge", "a"], "merge takes a ledger and the records"),
        (["show", "nothing.json"], "there is no such file"),
        (["show", "old.json", "--format", "github"], "is for diff"),
        (["merge", "old.json", "old.json"], "is not the record of a sweep"),
        (["merge", "old.json", "new.json", "--accept-regression", ""], "is empty"),
    ],
)
def test_commands_that_make_no_sense(
    two: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ledger", *arguments]) == 2
    assert message in capsys.readouterr().err


# The ledger of the CPU backend.


def test_the_ledger_of_the_cpu_backend_holds_what_the_sweeps_found() -> None:
    root = Path(__file__).resolve().parent.parent
    data = json.loads((root / "ulp-ledger.json").read_text(encoding="utf-8"))
    jsonschema.validate(data, schema())
    found = ledger.read(root / "ulp-ledger.json")
    wanted = {(one.op, one.args[0], ledger.mode_of(one.attrs)) for one in signatures(tuple(ledger.MEASURED))}
    assert {(key.operation, key.format, key.mode) for key in found if key.backend == "cpu"} >= wanted
    records = [json.loads(path.read_text("utf-8")) for path in (root / "docs" / "results").glob("sweep-*.json")]
    of_all_inputs = 0
    for record in records:
        if record["op"] in ledger.MEASURED and record["backend"] == "cpu":
            swept = ledger.entry_of_record(record)
            entry = found.get(swept.key)
            if entry is not None:  # another device class is in nobody's way
                assert (entry.max_distance, entry.inputs) >= (swept.max_distance, swept.inputs), swept.key
                assert entry.exhaustive or not swept.exhaustive
                of_all_inputs += entry.exhaustive
    assert of_all_inputs >= 10
