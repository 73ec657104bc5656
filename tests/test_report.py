"""Reports: the text of a failure, the terminal summary, the verdict, the JSON file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

from halfulp.certify.failure import LONGEST, failure_text, suspects_text
from halfulp.certify.outcome import Outcome, Trouble, by_chapter, signature_of, trial_from_plain, trial_to_plain
from halfulp.certify.report import json_report, summary_lines, write_json
from halfulp.certify.show import bits_text, count_text, percent_text
from halfulp.properties.results import Example, Finding, Tally, Trial

FINDING = Finding(
    id="cast[f64->bf16]/array/O3",
    clause="intent:5.2-d",
    kernel="%0 = input f64[n]\n%1 = cast %0 : bf16\nreturn %1",
    dtypes=("f64", "bf16"),
    forbidden=412,
    judged=32768,
    simplest=Example(("0x3ff0100000000001",), ("0x3f80",), ("0x3f81",), 1),
    worst=Example(("0x7fefffffffffffff",), ("0x7f7f",), ("0x7f80 or 0x0001..0x0002 or NaN",), 2),
    suspects=[("round_via_f32", 1.0, 0.0), ("cast_truncates", 0.5, 0.25)],
    token="hu1-abc",
)


def test_failure_text() -> None:
    text = failure_text(FINDING, "pipe:./run --fast")
    lines = text.splitlines()
    assert lines[0].startswith("intent:5.2-d: To a narrower float")
    assert "cast[f64->bf16]/array/O3: 412 of 32768 results are forbidden." in lines
    assert "    %1 = cast %0 : bf16" in lines
    assert "simplest   input     f64 0x3ff0100000000001 (1.0039062500000002 = 0x1.0100000000001p+0)" in lines
    assert "           got       bf16 0x3f80 (1.0)" in lines
    assert "           allowed   bf16 0x3f81 (1.0078125 = 0x1.02p+0)" in lines
    assert "           distance  1 ulp" in lines
    assert any(line.startswith("worst      input     f64 0x7fefffffffffffff (") for line in lines)
    flat = " ".join(text.split())
    assert "allowed bf16 0x7f80 (inf) or 0x0001 (9.183549615799121e-41 = 0x1p-133) to 0x0002 (" in flat
    assert ") or NaN distance 2 ulp" in flat
    assert "suspects All 412 wrong results equal round_via_f32" in flat
    assert "no right result contradicts it." in flat
    assert "cast_truncates" not in flat  # a rule that fits without exception makes the others uninteresting
    assert lines[-1] == "replay     halfulp replay hu1-abc --backend 'pipe:./run --fast'"
    assert max(map(len, lines)) <= 100


def test_a_clamping_cast_is_held_to_the_reading_that_says_what_it_gives() -> None:
    """The clause says only that a plain cast does not clamp."""
    text = failure_text(replace(FINDING, clause="intent:5.2-i"), "numpy")
    assert text.startswith("intent:5.2-i, reading:26: Clamping is an operation of its own.")
    assert "Saturating casts clamp to" in text


def test_imperfect_suspects_come_with_their_shares() -> None:
    found = Finding("x", "intent:4-a", forbidden=8, judged=9, suspects=[("a", 1.0, 0.25), ("b", 0.5, 0.0)])
    assert suspects_text(found) == (
        "All 8 wrong results equal a; 25 % of the right results contradict it. "
        "50 % of the wrong results equal b; no right result contradicts it."
    )


def test_what_was_not_compared_is_not_claimed() -> None:
    """The diagnosis looks at a part of the wrong results where there are very many."""
    many = Finding("x", "intent:4-a", forbidden=10**6, judged=10**6, suspects=[("wrong_modulus", 1.0, 0.0)])
    assert "4096 wrong results compared" in suspects_text(many)
    assert suspects_text(Finding("x", "intent:4-a", forbidden=1, judged=9, suspects=[("s", 1.0, 0.0)])).startswith(
        "The wrong result equals s;"
    )
    compared = Finding("x", "intent:4-a", forbidden=3, judged=9, simplest=Example(("0x00",), ("0x01",), ("0x02",)))
    assert "none of the known wrong rules" in suspects_text(compared)
    assert suspects_text(Finding("x", "intent:11-b", forbidden=3, judged=9)) == ""


def test_failures_without_values() -> None:
    finding = Finding("div[i32,i32->i32]/array/O0", "intent:4-d", message="accepted, although ill-typed.", token="t")
    text = failure_text(finding, "cpu")
    assert "div[i32,i32->i32]/array/O0: accepted, although ill-typed." in text
    assert "suspects" not in text
    assert text.endswith("halfulp replay t --backend cpu")


def test_long_programs_are_cut() -> None:
    kernel = "\n".join(f"%{n} = constant u8 0x00" for n in range(500)) + "\nreturn " + ", ".join(["%1"] * 500)
    lines = failure_text(Finding("x", "intent:4-a", kernel=kernel, message="broken."), "cpu").splitlines()
    assert len(lines) < LONGEST + 10
    assert any("more lines" in line for line in lines)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("dtype", "bits", "text"),
    [
        ("f32", "0x3dcccccd", "0x3dcccccd (0.10000000149011612 = 0x1.99999ap-4)"),
        ("f32", "0x80000000", "0x80000000 (-0.0)"),
        ("f8e4m3fn", "0x7f", "0x7f (nan)"),
        ("f16", "0xfc00", "0xfc00 (-inf)"),
        ("f64", "0x1", "0x0000000000000001 (5e-324 = 0x0.0000000000001p-1022)"),
        ("i8", "0x80", "0x80 (-128)"),
        ("u128", "0x" + "f" * 32, "0x" + "f" * 32 + f" ({2**128 - 1})"),
        ("bool", "0x1", "0x1 (true)"),
        ("f32", "NaN", "NaN"),
    ],
)
def test_values_are_decoded(dtype: str, bits: str, text: str) -> None:
    assert bits_text(dtype, bits) == text


def test_counts_are_short_and_shares_honest() -> None:
    assert [count_text(n) for n in (0, 99_999, 100_000, 1_234_567, 999_960, 4_294_967_296, 5 * 10**15)] == [
        "0",
        "99,999",
        "100 k",
        "1.23 M",
        "1 M",
        "4.29 G",
        "5000 T",
    ]
    assert [percent_text(s) for s in (0.0, 1e-9, 0.5, 1 - 1e-9, 1.0)] == [
        "0 %",
        "under 0.1 %",
        "50 %",
        "over 99.9 %",
        "100 %",
    ]


def outcome(**changes: object) -> Outcome:
    made = Outcome("cpu", "intent", 3, "quick", facts={"fuses_multiply_add": True}, versions={"halfulp": "0"})
    made.tallies = [
        Tally("add[i8,i8->i8]/array/O0", "4", allowed=65536, cases={"intent:4-a": 65536}),
        Tally("cast[f32->f16]/array/O0", "5.2", allowed=90, unspecified=10, deviating=4, no_claim=7),
        Tally("cast[f32->f16]/const0/O0", "5.2", state="unsupported", reason="no constants"),
        Tally("cast[f32->bf16]/array/O0", "5.2", allowed=5, max_distance=2, max_argument=("0x00000001",)),
    ]
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_a_trial_survives_the_journey() -> None:
    trial = Trial([Tally("a", "4", allowed=np.int64(3), max_distance=np.uint64(2**63), cases={"c": 1})], [FINDING])  # type: ignore[arg-type]
    plain = json.loads(json.dumps(trial_to_plain(trial)))
    assert trial_from_plain(plain) == trial


def test_verdicts() -> None:
    assert outcome().verdict == "CERTIFIED: 0 forbidden results among 65,641 judged, 3 programs"
    assert outcome(clauses=("4-a",)).verdict.startswith("CERTIFIED (only clauses 4-a): ")
    assert outcome(tallies=[]).verdict == "NOT CERTIFIED: nothing was claimed, so nothing was tested"
    wrong = Tally("x", "4", forbidden=1, allowed=9)
    assert outcome(tallies=[wrong]).verdict == "NOT CERTIFIED: 1 forbidden result in 1 program"
    assert outcome(findings=[FINDING]).verdict == "NOT CERTIFIED: 1 breach"
    error = Trouble("item", "error", "it broke")
    assert "1 property ended without a verdict" in outcome(troubles=[error]).verdict
    skipped = outcome(troubles=[Trouble("item", "skipped", "not here")])
    assert skipped.certified
    assert skipped.verdict.endswith("; 1 skipped, see above")
    assert "did not reach its end (interrupted)" in outcome(stopped="interrupted").verdict


@pytest.mark.parametrize("width", [80, 100, 110])
def test_summary_is_readable(width: int) -> None:
    lines = summary_lines(outcome(findings=[FINDING], deselected=2), width)
    assert max(map(len, lines)) <= max(width, 100)
    table = lines[lines.index(next(line for line in lines if line.startswith("chapter"))) :][:4]
    assert max(map(len, table)) <= width
    text = "\n".join(lines)
    for part in (
        "declares  fuses multiply add: yes",
        "10 (4)",
        "1 program not offered by the backend\n  no constants: cast[f32->f16]/const0/O0",
        "5.2  2 ulp  cast[f32->bf16]/array/O0  at (0x00000001)",
        "intent:5.2-d: 412 wrong results, all explained by round_via_f32: cast[f64->bf16]/array/O3",
        "2 properties were left out",
    ):
        assert part in text


def test_chapters_stand_in_the_order_of_the_text() -> None:
    tallies = [Tally("x", chapter) for chapter in ("5.10", "5.2", "kernels", "4/5", "5", "4")]
    assert list(by_chapter(tallies)) == ["4", "4/5", "5", "5.2", "5.10", "kernels"]


def test_signature_of_an_id() -> None:
    assert signature_of("select[bool,f32,f32->f32]/const0/O3") == "select[bool,f32,f32->f32]"
    assert signature_of("typing/O0") == "typing"


REPORT_SCHEMA = {
    "type": "object",
    "required": [
        *("schema", "certified", "verdict", "objections", "backend", "dialect", "seed", "depth", "clauses", "facts"),
        *("versions", "seconds", "deselected", "totals", "chapters", "claims", "tallies", "findings", "troubles"),
    ],
    "additionalProperties": False,
    "properties": {
        "schema": {"const": "halfulp-report-1"},
        "certified": {"type": "boolean"},
        "verdict": {"type": "string"},
        "objections": {"type": "array", "items": {"type": "string"}},
        "backend": {"type": "string"},
        "dialect": {"type": "string"},
        "seed": {"type": "integer"},
        "depth": {"enum": ["quick", "standard", "deep"]},
        "clauses": {"type": "array"},
        "facts": {"type": "object", "additionalProperties": {"type": ["boolean", "null"]}},
        "versions": {"type": "object", "additionalProperties": {"type": "string"}},
        "seconds": {"type": "number"},
        "deselected": {"type": "integer"},
        "totals": {"type": "object", "additionalProperties": {"type": "number"}},
        "chapters": {"type": "object"},
        "claims": {"type": "object", "additionalProperties": {"type": "integer"}},
        "tallies": {"type": "array"},
        "findings": {"type": "array"},
        "troubles": {"type": "array"},
    },
}


def test_json_report() -> None:
    report = json.loads(json.dumps(json_report(outcome(findings=[FINDING]))))
    jsonschema.validate(report, REPORT_SCHEMA)
    assert report["totals"]["allowed"] == 65536 + 90 + 5
    assert report["totals"]["programs_unsupported"] == 1
    assert report["totals"]["signatures"] == 3
    assert report["chapters"]["5.2"]["unspecified"] == 10
    assert report["claims"] == {"intent:4-a": 65536}
    assert report["findings"][0]["simplest"]["got"] == ["0x3f80"]


def test_the_page_describes_every_field() -> None:
    page = Path(__file__).parent.parent.joinpath("docs", "reference", "json-protocols.md").read_text(encoding="utf-8")
    report = json_report(outcome(findings=[FINDING], troubles=[Trouble("i", "error", "r")]))
    fields = {*report, *report["totals"], *report["tallies"][0], *report["findings"][0], *report["troubles"][0]}
    fields |= set(report["findings"][0]["simplest"])
    assert sorted(field for field in fields if f"`{field}`" not in page) == []


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    write_json(target, {"a": 1})
    assert json.loads(target.read_text()) == {"a": 1}
    with pytest.raises(TypeError):
        write_json(target, {"a": object()})
    assert json.loads(target.read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
