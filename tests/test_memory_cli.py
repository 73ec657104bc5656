"""``halfulp litmus``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halfulp.certify import cli
from halfulp.oracle.memory.catalogue import catalogue
from halfulp.oracle.memory.program import from_json


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "--list"]) == 0
    out = capsys.readouterr().out
    assert "MP+rlx-rel+acq-rlx" in out
    assert "RS-same-thread+rel-rel-rlx+acq-acq" in out
    assert "allowed (informative)" in out
    assert out.count("\n* ") >= 5


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
    ],
)
def test_what_makes_no_sense(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", *words]) == 2
    assert message in capsys.readouterr().err


def test_on_a_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["litmus", "MP", "--backend", "cpu", "--instances", "4096"]) == 0
    out = capsys.readouterr().out
    assert "instances" in out
    assert "need an interleaving" in out
    assert "a mutant of the test" in out
    assert cli.main(["litmus", "MP", "--backend", "cpu", "--instances", "4096", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert all(run["instances"] >= 4096 and run["weak"] == 0 for run in data["runs"])
