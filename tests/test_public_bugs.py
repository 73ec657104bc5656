"""Public bug reports, reduced to bits: the oracle says what is right, and a suspect says what went wrong.

``vectors/sources/public-bugs.json`` has one record for each report, in words of our own: the program, the right result,
the wrong one, what the oracle says of both, and the suspect that gives the wrong one. Reports of what the language or
the suite does not have say so, and are counted.
"""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.judge import evaluate, judge
from halfulp.oracle.kernel import Kernel, from_json, one_node
from halfulp.oracle.memory.catalogue import find
from halfulp.oracle.memory.cycles import with_orders
from halfulp.oracle.memory.search import verdict as memory_verdict
from halfulp.oracle.ops import OPERATIONS, Refused
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import round_exact, value_of
from halfulp.oracle.sets import Verdict
from halfulp.oracle.source import Call, Literal, Parameter, Source
from halfulp.oracle.suspects import SUSPECTS, suspect
from halfulp.oracle.typing import elaborate

RECORDS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "sources" / "public-bugs.json").read_text(encoding="utf-8")
)

COUNTS = {
    "operation": 55,
    "kernel": 15,
    "rounding": 2,
    "refused": 3,
    "class": 1,
    "litmus": 1,
    "not applicable": 25,
}
"""Records of each kind. Together they are all 102 of the list: none is left out without a word."""


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(record, id=record["id"]) for record in RECORDS if record["kind"] in kinds]


def one_code(dtype: str, text: str) -> Bits:
    return np.array([int(text, 16)], format_of(dtype).storage)


def test_every_record_is_accounted_for() -> None:
    assert Counter(record["kind"] for record in RECORDS) == COUNTS
    assert sum(COUNTS.values()) == len({record["id"] for record in RECORDS}) == 102
    for record in RECORDS:
        assert record["source"].startswith("https://")
        assert record["words"].endswith("."), record["id"]


def program(record: dict[str, Any]) -> Kernel:
    if record["kind"] == "kernel":
        return from_json(record["kernel"])
    return one_node(record["op"], record["args"], record["result"])


def by_suspect(name: str, kernel: Kernel, inputs: list[Bits]) -> Bits:
    """What a backend with this suspect gives."""
    chosen = suspect(name)
    if chosen.kernel_rule is not None:
        outputs = chosen.kernel_rule(kernel, inputs)
        assert outputs is not None, f"{name} finds nothing to do in this program"
    else:
        outputs = evaluate(kernel, inputs, chosen.override)
    return np.atleast_1d(outputs[0])


def verdict(record: dict[str, Any], kernel: Kernel, inputs: list[Bits], text: str) -> Verdict:
    result = one_code(kernel.output_types[0].dtype, text)
    if record["kind"] == "operation":  # also for formats that no kernel of the language may hold
        signature = Signature(record["op"], tuple(record["args"]), record["result"])
        return Verdict(int(OPERATIONS[record["op"]].allowed(signature, inputs).judge(result)[0]))
    return Verdict(int(judge(kernel, inputs, [result])[0][0]))


@pytest.mark.parametrize("record", of_kind("operation", "kernel"))
def test_value(record: dict[str, Any]) -> None:
    kernel = program(record)
    types = kernel.input_types
    inputs = [one_code(type_.dtype, text) for type_, text in zip(types, record["inputs"], strict=True)]
    assert verdict(record, kernel, inputs, record["right"]) == Verdict[record["right_is"].upper()]
    if record["wrong"] is None:
        return
    assert verdict(record, kernel, inputs, record["wrong"]) == Verdict[record["wrong_is"].upper()]
    if record["suspect"] is None:
        return
    got = by_suspect(record["suspect"], kernel, inputs)
    fmt = format_of(kernel.output_types[0].dtype)
    wrong = one_code(fmt.name, record["wrong"])
    both_nan = fmt.is_float and codes.is_nan(fmt, got)[0] and codes.is_nan(fmt, wrong)[0]
    assert both_nan or got[0] == wrong[0], f"{record['suspect']} gives {fmt.hex(int(got[0]))}"


def test_wrong_semantics_have_a_suspect() -> None:
    """A forbidden result without a suspect is a fault of a build, or of one formula; those are named here."""
    without = [r["id"] for r in RECORDS if r.get("wrong_is") == "forbidden" and r["wrong"] and not r["suspect"]]
    assert without == ["E043", "E124", "E125"]
    for record in RECORDS:
        if record.get("suspect") and record.get("wrong_is") == "forbidden":
            assert SUSPECTS[record["suspect"]].fault, record["id"]


@pytest.mark.parametrize("record", of_kind("rounding"))
def test_rounding(record: dict[str, Any]) -> None:
    """Directed modes: no operation of the language has them yet, the rounder does."""
    value = value_of(format_of(record["src"]), int(record["input"], 16))
    assert isinstance(value, Fraction)
    rounded = round_exact(format_of(record["dst"]), value, mode=record["mode"])
    assert rounded == int(record["right"], 16) != int(record["wrong"], 16)


@pytest.mark.parametrize("record", of_kind("refused"))
def test_refused(record: dict[str, Any]) -> None:
    literal = Literal(json.loads(record["literal"]))
    source = Source(Call(record["op"], (Parameter("x", record["operand"]), literal)))
    answer = elaborate(source)
    assert isinstance(answer, Refused)
    assert answer.clause == record["clause"]
    rule = suspect(record["suspect"]).typing_rule
    assert rule is not None
    assert rule(source) is True


@pytest.mark.parametrize("record", of_kind("litmus"))
def test_litmus(record: dict[str, Any]) -> None:
    """With the orders of the report the outcome is allowed, which is why the program was wrong."""
    program = find(record["test"]).program
    assert memory_verdict(program) is Verdict.FORBIDDEN
    assert memory_verdict(with_orders(program, record["orders"])) is Verdict[record["weak_is"].upper()]


@pytest.mark.parametrize("record", of_kind("class"))
def test_class(record: dict[str, Any]) -> None:
    assert record["right"] == "nan"
    fmt = format_of(record["format"])
    every = np.arange(fmt.code_count, dtype=fmt.storage)
    assert np.flatnonzero(codes.is_nan(fmt, every)).tolist() == [int(record["input"], 16)]


def test_every_source_of_a_suspect_is_a_record() -> None:
    """A suspect's birth certificate is a report of the list."""
    known = {record["source"] for record in RECORDS}
    for chosen in SUSPECTS.values():
        assert chosen.source == "classic" or chosen.source in known, chosen.name
