"""``halfulp litmus``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from halfulp.certify import cli, litmus_table
from halfulp.certify.commands import litmus, litmus_all
from halfulp.oracle.memory.catalogue import catalogue
from halfulp.oracle.memory.mutants import MUTANTS
from halfulp.oracle.memory.program import from_json


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "--list"]) == 0
    out = capsys.readouterr().out
    assert "MP+rlx-rel+acq-rlx" in out
    assert "RS-same-thread+rel-rel-rlx+acq-acq" in out
    assert "allowed (informative)" in out
    assert out.count("\n* ") >= 5
    for name in MUTANTS:
        assert re.search(rf"^  {name}: .*\n      killed by \w", out, re.MULTILINE)


def test_list_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "--list", "--json", "--dtype", "i64"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [test.name for test in catalogue("i64")]
    for row, test in zip(rows, catalogue("i64"), strict=True):
        assert from_json(row["program"]) == test.program
        assert (row["verdict"] == "forbidden") == bool(row["kills"])
    assert any(row["in_minimal_set"] for row in rows)


def test_one_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "MP"]) == 0
    out = capsys.readouterr().out
    assert out.count("\nallowed: ") == 3
    assert "forbidden: 1:r0=1, 1:r1=0" in out
    assert "-sw-> T1 reads y=1 (acquire)" in out
    assert "verdict on 1:r0=1, 1:r1=0: forbidden" in out
    assert max(map(len, out.splitlines())) < 160


def test_one_test_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "LB-relaxed", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "unspecified"
    assert len(data["allowed"]) == 3
    assert data["unspecified"][0]["outcome"] == {"0:r0": 1, "1:r0": 1}
    assert data["forbidden"] == data["kills"] == []


def test_export_and_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "ISA2-plain", "--export"]) == 0
    path = tmp_path / "isa2.litmus"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert cli.main(["litmus", str(path)]) == 0
    assert "verdict on 2:r0=1, 2:r1=0: forbidden" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8").replace("memory_order_acquire", "memory_order_relaxed")
    path.write_text(text, encoding="utf-8")
    assert cli.main(["litmus", str(path)]) == 0
    assert "no claim: the program has a race" in capsys.readouterr().out
    path.write_text(text.replace("memory_order_relaxed", "memory_order_seq_cst"), encoding="utf-8")
    assert cli.main(["litmus", str(path)]) == 2
    assert "cannot be seq_cst" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a test"),
        (["no-such"], "there is no test 'no-such'"),
        (["RS"], "tests begin with 'RS'"),
        (["missing.litmus"], "No such file"),
        (["MP", "--backend", "numpy", "--instances", "10"], "did not run"),
        (["MP", "--backend", "nothing"], "--backend nothing: there is no adapter"),
        (["MP", "--backend", "saboteur:nobody"], "unknown suspect 'nobody'"),
        (["--all"], "add --backend"),
        (["--all", "--backend", "numpy"], "runs no litmus programs"),
        (["--all", "--backend", "cpu", "--instances", "1", "--json", "/no/such/folder/x.json"], "No such file"),
        (["--all", "--list"], "exclude each other"),
        (["MP", "--all"], "'MP' is one"),
        (["--list", "--backend", "cpu"], "--list runs nothing"),
        (["--json", "MP"], "put the test before --json"),
        (["MP", "--json", "/no/such/folder/x.json"], "No such file"),
        (["MPP"], "did you mean MP"),
        (["mp"], "did you mean MP"),
    ],
)
def test_what_makes_no_sense(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", *words]) == 2
    assert message in capsys.readouterr().err


def test_verdicts_are_kept(tmp_path: Path) -> None:
    """Whatever the file holds, the answer is what the model says."""
    computed = litmus_table.computed("i64")
    assert litmus_table.entries("i64", where=tmp_path) == computed
    (path,) = tmp_path.iterdir()
    assert litmus_table.sources_hash() in path.name
    assert litmus_table.entries("i64", told=pytest.fail, where=tmp_path) == computed
    text = path.read_text(encoding="utf-8")
    for damaged in (text[:-9], text.replace("forbidden", "allowed", 1), "[]", "{}"):
        path.write_text(damaged, encoding="utf-8")
        assert litmus_table.entries("i64", where=tmp_path) == computed
        assert path.read_text(encoding="utf-8") == text
    for test, entry in zip(catalogue("i64"), computed, strict=True):
        assert (test.program, test.kills) == (entry.program, entry.kills)


def _tests(*names: str) -> list[litmus_table.Entry]:
    return [entry for entry in litmus_table.entries("u32") if entry.name in names]


def test_the_whole_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of it here: a record of what was seen, which an interruption leaves whole."""
    names = ("CoRR", "SB+rel-acq+rel-acq", "MP+rlx-rel+acq-rlx", "result-xor")  # CoRR is in the smallest set
    monkeypatch.setattr(litmus, "entries", lambda *_: _tests(*names))
    path = tmp_path / "record.json"
    words = ["litmus", "--all", "--backend", "cpu", "--instances", "4096", "--json", str(path)]
    assert cli.main(words) == 0
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["complete"]
    assert record["forbidden"] == 0
    assert {test["name"]: len(test["runs"]) for test in record["tests"]} == dict(zip(names, (3, 3, 3, 1), strict=True))
    assert record["instances"] == sum(run["instances"] for test in record["tests"] for run in test["runs"])
    assert record["mutant_instances"] == 2 * 3 * 1024
    assert all(
        (run["mutant_rate"] is None) == (test["name"][:2] in ("SB", "re"))
        for test in record["tests"]
        for run in test["runs"]
    )

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    real = litmus_all.configurations
    monkeypatch.setattr(
        litmus_all, "configurations", lambda a, p, *more: stop() if p.name.startswith("MP") else real(a, p, *more)
    )
    assert cli.main(words) == 130
    record = json.loads(path.read_text(encoding="utf-8"))
    assert not record["complete"]
    assert [test["name"] for test in record["tests"]] == list(names[:2])
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_the_whole_catalogue_on_a_wrong_backend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(litmus, "entries", lambda *_: _tests("CoRR"))
    assert cli.main(["litmus", "--all", "--backend", "saboteur:model_no_corr", "--instances", "100"]) == 1
    out = capsys.readouterr().out
    assert "1:r0=1, 1:r1=0 is forbidden, and came out" in out
    (token,) = re.findall(r"hu1-\S+", out)[:1]
    assert cli.main(["replay", token, "--backend", "saboteur:model_no_corr"]) == 1


MP = '{"name": "p", "locations": [{"name": "x"}], "threads": [[{"op": "load", "register": "r", "location": "x"}]]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "not a litmus program in JSON form"),
        ("{", "Expecting property name"),
        (MP.replace("name", "nome", 1), "there is no field 'name'"),
        (MP.replace("load", "jump"), "'jump' is no operation; there are load, store, rmw, cas and if"),
        (MP.replace('"location": "x"', '"place": "x"'), "unexpected keyword argument 'place'"),
        (MP.replace('"name": "x"', '"name": "x", "initial": "0"'), "initial value of x is '0', which is no integer"),
        (MP.replace('"name": "x"', '"name": "x", "dtype": "f32"'), "atomics are judged on i32"),
        (MP.replace("[[", "[").replace("]]", "]"), "not a litmus program in JSON form"),
        ('{"name": "p", "locations": [], "threads": []}', "no threads"),
    ],
)
def test_files_that_are_no_programs(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.json"
    path.write_text(text, encoding="utf-8")
    assert cli.main(["litmus", str(path)]) == 2
    assert message in capsys.readouterr().err
    path.write_text(MP, encoding="utf-8")
    assert cli.main(["litmus", str(path)]) == 0
    path.write_bytes(b"\xff\xfe")
    assert cli.main(["litmus", str(path)]) == 2
    assert "no text in UTF-8" in capsys.readouterr().err


def test_on_a_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "MP", "--backend", "cpu", "--instances", "4096"]) == 0
    out = capsys.readouterr().out
    assert "instances" in out
    assert "need an interleaving" in out
    assert "a mutant of the test" in out
    assert cli.main(["litmus", "MP", "--backend", "cpu", "--instances", "4096", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert all(run["instances"] >= 4096 and run["weak"] == 0 for run in data["runs"])
