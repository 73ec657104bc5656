"""The golden vectors: the files that are kept are right, complete, and what the generator writes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from halfulp.certify import cli
from halfulp.oracle import hardware
from halfulp.oracle.clauses import CLAUSES, READINGS
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.functions.source import SlowPath, use
from halfulp.oracle.memory.mutants import MUTANTS
from halfulp.oracle.ops import OPERATIONS, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import value_of
from halfulp.oracle.sets import Verdict
from halfulp.oracle.suspects import FAULTS
from halfulp.vectors import bulk, digests, draw, flat, generate, lint, operations, select, slow, sources, verify
from halfulp.vectors import catalogue as catalogue_of
from halfulp.vectors.files import DATA, SCHEMA, Content, Settings, VectorFileError, cases_of, read, text_of
from halfulp.vectors.flags import FLAGS
from halfulp.vectors.identity import asked
from halfulp.vectors.judge import judge
from halfulp.vectors.ranges import holds, rows, sign_bit

NAMES = sorted(verify.vector_files(DATA))

PARTS = 20
"""Parts into which the files are divided where each change looks at one: see `rotating`."""

DEEP = bool(os.environ.get("HALFULP_DEEP"))


@cache
def kept(name: str) -> Content:
    return read(DATA / f"{name}.json")


@cache
def schema() -> Any:
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def inlined(node: Any, within: tuple[str, ...] = ()) -> Any:
    """A schema with its references written out, but for those that contain themselves: several times as fast."""
    if isinstance(node, list):
        return [inlined(one, within) for one in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name and name not in (*within, "Expression", "Instruction"):
        rest = {field: value for field, value in node.items() if field != "$ref"}
        return inlined(schema()["$defs"][name], (*within, name)) | rest
    return {field: inlined(value, within) for field, value in node.items()}


@cache
def validator(kind: str) -> Any:
    """Of the files of one kind, which is a constant of the schema."""
    definition = schema()["$defs"][f"{kind.capitalize()}File"]
    assert definition["properties"]["kind"] == {"const": kind}
    return jsonschema.Draft202012Validator({**inlined(definition), "$defs": schema()["$defs"]})


def every_case() -> Iterator[tuple[Content, dict[str, Any]]]:
    for name in NAMES:
        for case in cases_of(kept(name)):
            yield kept(name), case


def rotating(names: list[str], parts: int) -> list[str]:
    """A share of the files that differs from change to change: decided by what the files are."""
    turn = int(hashlib.sha256((DATA / generate.SUMS).read_bytes()).hexdigest(), 16)
    return names[turn % parts :: parts]


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


# The files that are kept.


def test_every_file_follows_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    for name in NAMES:
        error = next(validator(kept(name)["kind"]).iter_errors(kept(name)), None)
        assert error is None, f"{name}: {error.message[:300]}"


def test_the_schema_is_strict() -> None:
    """Every object has its fields listed, and no others; optional are only those that the reference page says."""
    optional: set[str] = set()
    for definition in schema()["$defs"].values():
        if definition.get("type") == "object" and "properties" in definition:
            assert definition["additionalProperties"] is False
            optional |= set(definition["properties"]) - set(definition["required"])
    assert optional <= {"source", "note", "elaborated", "attrs", "dtype", "scope"}
    broken = json.loads(json.dumps(kept("casts/cast-f32-bf16")))
    whole = jsonschema.Draft202012Validator(schema())
    assert whole.is_valid(broken)
    broken["groups"][0]["cases"][0]["more"] = 1
    assert not whole.is_valid(broken)
    assert not validator("operation").is_valid(broken)


def test_the_set_has_every_file_and_is_small() -> None:
    assert sorted(catalogue_of.files()) == NAMES
    sizes = [path.stat().st_size for path in verify.vector_files(DATA).values()]
    assert max(sizes) < 1_000_000
    assert sum(sizes) < 9_000_000


def test_lint_has_nothing_to_say() -> None:
    assert list(lint.lint(DATA)) == []


def test_ids_are_unique_and_listed() -> None:
    found: dict[str, str] = {}
    for data, case in every_case():
        assert found.setdefault(case["id"], data["name"]) == data["name"]
        assert len(case["id"]) == 16
    listed = generate.read_ids(DATA / generate.IDS)
    assert {one for ids in listed.values() for one in ids} == set(found)


def test_an_id_is_the_hash_of_the_question() -> None:
    """As the reference page defines it, spelt out."""
    data = kept("functions/fdiv-f32-approximate")
    for case in cases_of(data):
        text = f"fdiv[f32,f32->f32;approximate=true]({case['inputs'][0]},{case['inputs'][1]})"
        assert case["id"] == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_every_suspect_of_an_operation_is_killed() -> None:
    for name in NAMES:
        assert lint.alive(kept(name)) == [], name


def test_every_suspect_is_killed_somewhere() -> None:
    killed = {victim for name in NAMES for victim in kept(name)["suspects"]}
    assert killed == {*FAULTS, *MUTANTS}


def test_a_case_kills_whom_it_names() -> None:
    """The suspects' results on the inputs of some files are forbidden by what the files say, and no others."""
    for name in rotating([n for n in NAMES if kept(n)["kind"] in ("operation", "function")], PARTS):
        data = kept(name)
        signature = verify.signature_of(data)
        cases = sorted(cases_of(data), key=lambda case: [int(text, 16) for text in case["inputs"]])
        columns = [
            operations.as_bits(fmt, [int(case["inputs"][place], 16) for case in cases])
            for place, fmt in enumerate(signature.formats)
        ]
        for record in select.suspects_of(signature):
            with np.errstate(all="ignore"):
                got = record.override(signature, columns)
            assert got is not None
            for case, code in zip(cases, operations.integers(got), strict=True):
                verdict = judge(data, case, [f"{code:#x}"])
                assert (verdict == "forbidden") == (record.name in case["kills"]), (name, case["id"], record.name)


def test_no_variant_is_killed() -> None:
    """A freedom of the language that looks like a fault is in no `kills`."""
    assert {victim for name in NAMES for victim in kept(name)["suspects"]}.isdisjoint(
        name for name, record in select.FAULTS.items() if not record.fault
    )


def test_every_report_that_is_covered_is_there() -> None:
    """Of reports on operations, programs, types and memory only those are left out of which nothing is claimed."""
    there = {(data["name"], case["source"]) for data, case in every_case() if "source" in case}
    addresses = {source for _, source in there}
    left_out = []
    for record in sources.public_reports():
        if record["kind"] not in ("operation", "kernel", "refused", "litmus"):
            continue
        if record.get("right_is") == "no_claim":
            left_out.append(record["id"])
            continue
        assert record["source"] in addresses, record["id"]
    assert left_out == ["E037", "E038", "E041", "E052", "E053", "E079", "E083", "E085", "E086"]


def test_a_report_says_what_was_wrong() -> None:
    """Where a report names a result that is wrong, its case forbids it, and allows the right one."""
    cases = {case["id"]: (data, case) for data, case in every_case() if "source" in case}
    tried = 0
    for record in sources.public_reports():
        if record["kind"] == "operation" and record["right_is"] == "allowed":
            signature = Signature(record["op"], tuple(record["args"]), record["result"], sources.attrs_of(record))
            data, case = cases[operations.operation_id(signature, record["inputs"])]
            assert judge(data, case, [record["right"]]) == "allowed"
            if record["wrong"] is not None:
                assert judge(data, case, [record["wrong"]]) == record["wrong_is"]
                tried += 1
    assert tried > 30


def test_twins_share_inputs() -> None:
    """A cast and its saturating twin are asked the same, but for inputs of which one of them says nothing."""
    for signature in signatures(("cast",)):
        twin = Signature("cast_saturate", signature.args, signature.result)
        names = [operations.path_of(one) for one in (signature, twin)]
        if not all(name in NAMES for name in names):
            continue
        first, second = ({tuple(case["inputs"]) for case in cases_of(kept(name))} for name in names)
        for inputs, one in ((second - first, signature), (first - second, twin)):
            for texts in inputs:
                assert slow.expected(one, [int(text, 16) for text in texts]) is None, (names, texts)


def test_exact_widenings_have_digests() -> None:
    covered = {asked(verify.digests.signature_of(case)) for case in cases_of(kept(digests.SHORT))}
    for signature in signatures(("cast", "bitcast")):
        if operations.is_exact_conversion(signature) and "bool" not in (*signature.args, signature.result):
            narrow = signature.formats[0].width <= 16
            assert (asked(signature) in covered) == narrow
            assert narrow or operations.path_of(signature) in NAMES


def test_the_nearest_outcome_is_allowed() -> None:
    for data, case in every_case():
        if data["kind"] in ("operation", "function", "kernel"):
            nearest = case["nearest"] if data["kind"] == "kernel" else [case["nearest"]]
            assert judge(data, case, nearest) == "allowed", (data["name"], case["id"])


def test_flags_and_clauses_are_explained() -> None:
    used = {flag for name in NAMES for flag in kept(name)["flags"]}
    assert used == set(FLAGS)
    for name in NAMES:
        for clause, rule in kept(name)["clauses"].items():
            assert rule == (CLAUSES[clause].rule if clause in CLAUSES else READINGS[clause])


# Regeneration.


@pytest.mark.parametrize("share", range(4))
def test_every_file_is_what_the_generator_writes(share: int) -> None:
    for name in NAMES[share::4]:
        assert text_of(catalogue_of.files()[name](Settings())).encode() == (DATA / f"{name}.json").read_bytes(), name


def test_the_machine_s_arithmetic_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers alone, as on a host whose floats the oracle does not trust, make the same files."""
    monkeypatch.setattr(hardware, "trusted", lambda: False)
    operations._chosen.cache_clear()
    for name in catalogue_of.matching(["arithmetic/*-f32", "arithmetic/muladd-f64", "kernels/*-error-f32"], NAMES):
        assert text_of(catalogue_of.files()[name](Settings())).encode() == (DATA / f"{name}.json").read_bytes(), name
    operations._chosen.cache_clear()


def test_nothing_asks_the_c_library_for_more_than_arithmetic() -> None:
    """Logarithms and their like differ between machines in the last place, and so would the files."""
    elsewhere = re.compile(r"\b(?:np|math)\.(?:log\w*|exp\w*|erfc?|l?gamma|sinh?|cosh?|tanh?|arc\w+|power|cbrt)\(")
    root = Path(draw.__file__).resolve().parent.parent
    files = [*root.glob("oracle/suspects/*.py"), *root.glob("oracle/ops/*.py"), *root.glob("vectors/*.py")]
    assert len(files) > 30
    assert [(path.name, hit) for path in files for hit in elsewhere.findall(path.read_text(encoding="utf-8"))] == []


def test_draws_are_for_ever() -> None:
    """Of the label alone: the first words, the codes made of them and the order of tuples, written down."""
    assert [hex(word) for word in draw.words("halfulp", 3).tolist()] == WORDS
    assert [hex(code) for code in draw.floats(FORMATS["f32"], "halfulp", 4).tolist()] == FLOATS
    assert [hex(word) for word in draw.mixed([np.arange(2, dtype=np.uint8)]).tolist()] == MIXED


WORDS = ["0x300ef8318899ee8", "0x917f77190f3877b0", "0x4587c235a107c612"]
FLOATS = ["0x33600000", "0xbada0002", "0xcc6fffff", "0x48000001"]
MIXED = ["0xf16952ee72f3454f", "0x990cd70b12c5d084"]


def test_a_large_set_holds_the_small_one(tmp_path: Path) -> None:
    names = ("arithmetic/add-f16", "casts/cast-f32-f8e4m3fn", "kernels/two-sum-error-f32")
    only = [word for name in names for word in ("--only", name)]
    assert run("vectors", "generate", "--out", str(tmp_path), *only, "--size", "300") == 0
    for name in names:
        large = read(tmp_path / f"{name}.json")
        assert large["count"] >= 300
        assert large["generator"]["command"].endswith("--size 300")
        assert not any(verify.faults(large))
        assert {case["id"] for case in cases_of(kept(name))} <= {case["id"] for case in cases_of(large)}
    assert not (tmp_path / generate.IDS).exists()


# Forms.


@pytest.mark.parametrize("form", ["npz", "flat"])
def test_a_form_says_what_json_says(form: str) -> None:
    kinds = bulk.KINDS if form == "npz" else flat.KINDS
    chosen = [*rotating(NAMES, 8), "casts/cast-f32-i128", "casts/cast-i128-f32", "functions/asin-f64"]
    tried: set[str] = set()
    for name in chosen:
        data = kept(name)
        if data["kind"] not in kinds:
            assert generate.encoded(data, form) is None
            continue
        tried.add(data["kind"])
        raw = generate.encoded(data, form)
        assert raw is not None
        got = list(bulk.cases(raw) if form == "npz" else flat.cases(raw.decode().splitlines()))
        expected = list(cases_of(data))
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert one == {field: other[field] for field in one}
            assert set(other) - set(one) <= {"source", "note", "flags", "kills", "program", "weak_is"}
        assert raw == generate.encoded(read(DATA / f"{name}.json"), form)
    assert {"operation", "function"} <= tried


# The slow path.


def test_some_files_are_verified() -> None:
    """All of them behind the switch: a minute."""
    for name in NAMES if DEEP else rotating(NAMES, PARTS):
        if DEEP or name != digests.LONG:  # seconds
            assert list(verify.faults(kept(name))) == [], name


def test_the_slow_path_agrees_on_candidates_too() -> None:
    """On candidates that became no cases: the two ways to a set are compared where nobody chose the inputs."""
    with use(SlowPath()):
        for signature in operations.offered()[::12]:
            columns, _ = operations.candidates(signature, Settings(seed=1))
            stride = max(1, len(columns[0]) // 40)
            found, allowed = select.pool(signature, [column[::stride] for column in columns], 0)
            for codes, row in zip(
                zip(*map(operations.integers, found.columns), strict=True), rows(allowed), strict=True
            ):
                expected = slow.expected(signature, codes)
                if expected is None:
                    assert set(signature.args) | {signature.result} & set(operations.STORAGE_ONLY)
                    continue
                assert row is not None
                ends = verify.slow_functions.has_open_ends(signature)
                assert verify.same(signature.result_format, expected, row, open_ends=ends), (signature.id, codes)


def changed(name: str, position: int, field: str, value: Any) -> Content:
    data: Content = json.loads(json.dumps(kept(name)))
    list(cases_of(data))[position][field] = value
    return data


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("casts/cast-f32-bf16", "allowed", [["0x0000", "0x0000"]]),
        ("casts/cast-f32-bf16", "nearest", "0x1234"),
        ("casts/cast-f32-bf16", "id", "0123456789abcdef"),
        ("functions/log1p-f32", "allowed", [["0x00000000", "0x7f7fffff"]]),
        ("functions/log1p-f32", "unspecified", [["0x70000000", "0x70000001"]]),
        (
            "functions/log1p-f32",
            "exact",
            {"kind": "number", "negative": False, "significand": "0x1", "exponent": -181, "inexact": True},
        ),
        ("kernels/two-sum-error-f32", "nearest", ["0x00000000", "0x12345678"]),
        ("kernels/product-plus-f32", "alternatives", [[{"allowed": [["0x0", "0x0"]], "unspecified": []}]]),
        ("typing/rejected", "clause", "intent:9-z"),
        ("typing/accepted", "elaborated", {"values": [], "outputs": []}),
        ("litmus/atomicity", "allowed", [[7, 7]]),
        ("digests/exhaustive-16", "sha256", "0" * 64),
        ("digests/exhaustive-16", "sample_sha256", "0" * 64),
    ],
)
def test_a_false_case_is_found(name: str, field: str, value: Any) -> None:
    data = changed(name, 3, field, value)
    victim = list(cases_of(data))[3]["id"]
    data["groups"] = [
        {**group, "cases": [case for case in group["cases"] if case["id"] == victim]} for group in data["groups"]
    ]
    assert [one for one, _ in verify.faults(data)] == [victim] * max(1, len(list(verify.faults(data))))
    assert list(verify.faults(data))


def test_outcomes_that_are_left_out_are_found() -> None:
    """An outcome that interleaving shows has to be among the allowed ones."""
    data = changed("litmus/coherence", 0, "allowed", [])
    assert any("interleaved" in words for _, words in verify.faults(data))


# Exact results: fractional errors with integers alone.


def ulps(fmt: Format, exact: dict[str, Any], code: int) -> int:
    """The error of a result in 2^-32 ulp, as the reference page has it; integers alone."""
    magnitude = code & fmt.magnitude_mask
    field = max(magnitude >> fmt.fraction_bits, 1)
    number = (magnitude & fmt.fraction_mask) | (1 << fmt.fraction_bits if magnitude >> fmt.fraction_bits else 0)
    shift = field - fmt.bias - fmt.fraction_bits - exact["exponent"]
    got = number << shift if shift >= 0 else number >> -shift
    got = -got if code & fmt.sign_mask else got
    significand = int(exact["significand"], 16)
    return abs(got - (-significand if exact["negative"] else significand))


def test_nearest_results_are_within_half_an_ulp() -> None:
    tried = 0
    for name in NAMES:
        data = kept(name)
        if data["kind"] != "function" or data["operation"]["attrs"]:
            continue
        fmt = FORMATS[data["operation"]["result"]]
        for case in cases_of(data):
            nearest = int(case["nearest"], 16)
            if case["exact"]["kind"] == "number" and not isinstance(value_of(fmt, nearest), str):
                assert ulps(fmt, case["exact"], nearest) <= (1 << 31) + 1, (name, case["id"])
                tried += 1
    assert tried > 1000


def test_hard_to_round_is_hard() -> None:
    found = [case for _, case in every_case() if "hard_to_round" in case.get("flags", ())]
    assert len(found) > 5


# Ranges.


def test_a_range_judges_as_the_oracle_does() -> None:
    """All codes of an f16 function's results, by ranges of bit patterns and by the oracle."""
    signature = Signature("tanh", ("f16",), "f16")
    fmt = signature.result_format
    columns = [np.arange(0, 1 << 16, 1500, dtype=np.uint16)]
    with use(SlowPath()):
        allowed = OPERATIONS["tanh"].allowed(signature, columns)
    every = np.arange(1 << 16, dtype=np.uint16)
    for at, row in enumerate(rows(allowed)):
        assert row is not None
        verdicts = allowed.take(np.full(len(every), at)).judge(every)
        for spans, verdict in ((row.allowed, Verdict.ALLOWED), (row.unspecified, Verdict.UNSPECIFIED)):
            inside = np.zeros(len(every), bool)
            for low, high in spans:
                assert (low < sign_bit(fmt)) == (high < sign_bit(fmt))
                inside[low : high + 1] = True
            assert (inside == (verdicts == verdict)).all()
        assert holds(row.allowed, row.nearest)


# The command.


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("vectors", "generate", "--out", str(tmp_path), "--only", "integers/add-*") == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    made = 0

    def interrupted(data: Content, form: str) -> bytes:
        nonlocal made
        made += 1
        if made == 3:
            raise KeyboardInterrupt
        return b"half"

    monkeypatch.setattr(generate, "encoded", interrupted)
    assert run("vectors", "generate", "--out", str(tmp_path), "--only", "integers/*") == 130
    assert made == 3
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not list(tmp_path.glob(".vectors-*"))


def test_a_case_that_would_vanish_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("vectors", "generate", "--out", str(tmp_path), "--only", "add-i8") == 0
    path = tmp_path / generate.IDS
    path.write_text(path.read_text().replace("\n", " 0123456789abcdef\n"))
    before = (tmp_path / "integers/add-i8.json").read_bytes()
    assert run("vectors", "generate", "--out", str(tmp_path), "--only", "add-i8") == 2
    message = capsys.readouterr().err
    assert "0123456789abcdef" in message
    assert "--keep" in message
    assert (tmp_path / "integers/add-i8.json").read_bytes() == before


def test_a_case_that_would_vanish_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of an earlier generator: `--keep` notes what it asks, and the next run asks it again."""
    here = tmp_path / "sources"
    here.mkdir()
    for path in sources.FOLDER.glob("*.json"):
        (here / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(sources, "FOLDER", here)
    out = tmp_path / "set"
    assert run("vectors", "generate", "--out", str(out), "--only", "add-i8") == 0
    data = read(out / "integers/add-i8.json")
    signature = verify.signature_of(data)
    extra = dict(next(cases_of(data)), inputs=["0x55", "0x2a"])
    extra["id"] = operations.operation_id(signature, extra["inputs"])
    assert extra["id"] not in [case["id"] for case in cases_of(data)]
    data["groups"][0]["cases"].append(extra)
    (out / "integers/add-i8.json").write_text(text_of(data))
    assert run("vectors", "generate", "--out", str(out), "--only", "add-i8", "--keep") == 0
    assert sources.kept()["integers/add-i8"] == [["0x55", "0x2a"]]
    operations._chosen.cache_clear()
    assert run("vectors", "generate", "--out", str(out), "--only", "add-i8") == 0
    assert extra["id"] in [case["id"] for case in cases_of(read(out / "integers/add-i8.json"))]
    monkeypatch.undo()
    sources.kept.cache_clear()
    operations._chosen.cache_clear()


def test_two_cases_with_one_id_are_refused() -> None:
    with pytest.raises(VectorFileError, match="two cases ask the same"):
        generate.refuse_repeated({"a/b": ["0" * 16], "c/d": ["0" * 16]})


def test_the_archive_is_the_same_each_time(tmp_path: Path) -> None:
    assert run("vectors", "generate", "--out", str(tmp_path / "set"), "--only", "choice/eq-*") == 0
    first = generate.archive(tmp_path / "set", tmp_path / "a.tar.gz")
    assert generate.archive(tmp_path / "set", tmp_path / "b.tar.gz") == first
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO((tmp_path / "a.tar.gz").read_bytes())) as tar:
        members = tar.getmembers()
    assert {member.mtime for member in members} == {0}
    assert "halfulp-vectors/choice/eq-f32.json" in [member.name for member in members]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate", "--out", "OUT", "--only", "sums/*"), "no vector file matches 'sums/*'"),
        (("generate", "--out", "OUT", "--size", "-1"), "--size and --seed are counts"),
        (("generate", "--out", "OUT", "--only", "typing/*", "--format", "flat"), "JSON is the form that all have"),
        (("verify", "OUT"), "holds no JSON vector files"),
        (("verify", "OUT/none"), "is no folder"),
        (("show", "zzzz", "OUT"), "ids are 16 hexadecimal digits"),
        (("list", "OUT"), "write some with"),
    ],
)
def test_errors_teach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert run("vectors", *(one.replace("OUT", str(tmp_path)) for one in arguments)) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err


def test_verify_counts_and_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("vectors", "generate", "--out", str(tmp_path), "--only", "add-i8", "--only", "MP*", "--only", "eq-f32") == 2
    )
    assert "no vector file matches 'MP*'" in capsys.readouterr().err
    assert run("vectors", "generate", "--out", str(tmp_path), "--only", "add-i8", "--only", "eq-f32") == 0
    assert run("vectors", "verify", str(tmp_path)) == 0
    assert "none wrong" in capsys.readouterr().out
    path = tmp_path / "choice/eq-f32.json"
    path.write_text(path.read_text().replace('[["0x1","0x1"]]', '[["0x0","0x0"]]', 1))
    assert run("vectors", "verify", str(tmp_path), "--only", "add-*") == 0
    assert run("vectors", "verify", str(tmp_path)) == 1
    shown = capsys.readouterr().out
    assert "choice/eq-f32" in shown
    assert "the slow path allows 0x1 (nearest 0x1), the file 0x0" in shown
    assert "1 wrong" in shown
    assert run("vectors", "list", str(tmp_path)) == 0
    assert "integers/add-i8" in capsys.readouterr().out


def test_files_that_are_none_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "casts").mkdir()
    target = tmp_path / "casts/cast-f32-bf16.json"
    target.write_text("{")
    assert run("vectors", "verify", str(tmp_path)) == 2
    assert "is no JSON" in capsys.readouterr().err
    target.write_text('{"format": "halfulp-vectors-9"}')
    assert run("vectors", "verify", str(tmp_path)) == 2
    assert "no vector file of this version" in capsys.readouterr().err
    target.write_text('{"format": "halfulp-vectors-1", "kind": "operation", "groups": 3}')
    assert run("vectors", "verify", str(tmp_path)) == 2
    assert run("vectors", "lint", str(tmp_path)) == 1
    assert "does not follow the schema" in capsys.readouterr().out


def test_lint_finds_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("vectors", "generate", "--out", str(tmp_path), "--only", "cast-f32-bf16") == 0
    path = tmp_path / "casts/cast-f32-bf16.json"
    good = read(path)
    case = next(cases_of(good))
    for field, value, words in (
        ("allowed", [["0x8000", "0x0000"]], "is empty, or of two signs"),
        ("allowed", [["0x0001", "0x0002"], ["0x0003", "0x0004"]], "touch"),
        ("allowed", [["0x1", "0x2"]], "digits of bf16"),
        ("allowed", [["0x1234", "0x1234"]], "the nearest result is not allowed"),
        ("flags", ["drawn"], "flags are unknown"),
        ("kills", [], "no case kills"),
    ):
        bad = json.loads(json.dumps(good))
        for one in cases_of(bad):
            if one["id"] == case["id"] or field == "kills":
                one[field] = value
        path.write_text(text_of(bad))
        assert run("vectors", "lint", str(tmp_path)) == 1
        assert words in capsys.readouterr().out
    path.write_text(text_of(good))
    assert run("vectors", "lint", str(tmp_path)) == 0


def test_show_tells_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in cases_of(kept("casts/cast-f64-bf16")) if "source" in case)
    assert run("vectors", "show", case["id"]) == 0
    shown = capsys.readouterr().out
    for words in (case["source"], "casts/cast-f64-bf16", "intent:5.2-d", "kills round_via_f32", case["inputs"][0]):
        assert words in shown
    assert run("vectors", "show", case["id"], "--json") == 0
    assert json.loads(capsys.readouterr().out) == case


def test_results_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A right and a wrong implementation of a cast, a function and a program, as text and as JSON."""
    out = str(tmp_path)
    only = ("--only", "cast-f32-bf16", "--only", "functions/log1p-f32", "--only", "two-sum-error-f32")
    assert run("vectors", "generate", "--out", out, *only) == 0
    cases = {
        case["id"]: case for name in verify.vector_files(tmp_path) for case in cases_of(read(tmp_path / f"{name}.json"))
    }
    right = [
        f"{one} {' '.join(case['nearest'])}" if isinstance(case["nearest"], list) else f"{one} {case['nearest']}"
        for one, case in cases.items()
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(right) + "\n"))
    capsys.readouterr()
    assert run("judge", "--vectors", out) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{len(cases)} results: {len(cases)} allowed" in captured.err

    cut = {one: f"0x{int(case['inputs'][0], 16) >> 16:04x}" for one, case in cases.items() if len(case["nearest"]) == 6}
    lines = [json.dumps({"id": one, "got": got}) for one, got in cut.items()]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert run("judge", "--vectors", out) == 1
    captured = capsys.readouterr()
    replies = [json.loads(line) for line in captured.out.splitlines()]
    assert {reply["verdict"] for reply in replies} == {"forbidden"}
    assert "cast_truncates" in captured.err

    monkeypatch.setattr("sys.stdin", io.StringIO("0123456789abcdef 0x0\nnonsense\n"))
    assert run("judge", "--vectors", out) == 2
    message = capsys.readouterr().err
    assert "line 1" in message
    assert "no case in" in message
