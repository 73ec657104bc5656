"""Replay tokens survive the way to a report and back."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

from halfulp.adapters.protocol import LitmusOptions, Stress
from halfulp.certify import cli
from halfulp.certify.saboteurs.atomics import LITMUS_SUSPECTS
from halfulp.oracle.formats import Bits
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.memory.catalogue import find
from halfulp.oracle.memory.program import with_dtype
from halfulp.oracle.source import Call, Formed, Literal, Parameter, Source
from halfulp.properties import contests, litmus
from halfulp.properties.plan import Plan
from halfulp.properties.replay import PREFIX, Recorded, RecordedContest, RecordedLitmus, decode, encode
from halfulp.properties.results import Finding

KERNEL = Kernel(
    (
        Input(Type("f16")),
        Input(Type("bool", SCALAR)),
        Constant("f16", 0x3C00),
        Apply("select", (1, 0, 2), "f16"),
    ),
    (3, 0),
)
INPUTS: tuple[Bits, ...] = (np.array([0x3C00, 0x7E01, 0x8000], np.uint16), np.array(1, np.uint8))


def test_kernel_round_trip() -> None:
    token = encode(Recorded("select[bool,f16,f16->f16]/const2/O3", "reading:29", KERNEL, 3, INPUTS))
    assert token.startswith(PREFIX)
    assert set(token) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    found = decode(f"  {token}\n")
    assert isinstance(found, Recorded)
    assert (found.id, found.clause, found.opt_level) == ("select[bool,f16,f16->f16]/const2/O3", "reading:29", 3)
    assert found.program == KERNEL
    for got, expected in zip(found.inputs, INPUTS, strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert np.array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["bool", "i8", "u64", "f64", "bf16", "i128", "e2m1"])
def test_every_width_round_trips(dtype: str) -> None:
    kernel = one_node("cast", (dtype,), "f32")
    fmt = kernel.input_types[0].dtype
    found = decode(encode(Recorded("x", "", kernel, 0, _codes(fmt))))
    assert isinstance(found, Recorded)
    assert np.array_equal(found.inputs[0], _codes(fmt)[0])


def _codes(dtype: str) -> tuple[Bits]:
    if dtype == "i128":
        return (np.array([(1, 2), (2**64 - 1, 2**63)], np.dtype([("lo", "<u8"), ("hi", "<u8")])),)
    top = {"bool": 1, "i8": 255, "u64": 2**64 - 1, "f64": 2**64 - 2, "bf16": 0xFFFF, "e2m1": 15}[dtype]
    storage = {"u64": np.uint64, "f64": np.uint64, "bf16": np.uint16}.get(dtype, np.uint8)
    return (np.array([0, 1, top], storage),)


@pytest.mark.parametrize("value", [True, False, 0, -129, 2**80, 0.1, -0.0, 1e6, float("inf"), float("-inf"), 5e-324])
def test_source_round_trip(value: bool | int | float) -> None:
    source = Source(Call("add", (Call("cast", (Parameter("x", "i8"),), "f32"), Formed(Literal(value)))))
    found = decode(encode(Recorded("refuses[3-b]/O0", "intent:3-b", source, 0)))
    assert isinstance(found, Recorded)
    assert found.program == source
    assert str(found.program) == str(source)
    assert found.inputs == ()


def test_source_with_inputs_round_trips() -> None:
    source = Source(Call("lt", (Parameter("x", "bf16"), Literal(0.1))))
    found = decode(encode(Recorded("accepts[3-a]/O0", "intent:3-a", source, 0, (np.array([5], np.uint16),))))
    assert isinstance(found, Recorded)
    assert found.program == source
    assert found.inputs[0].tolist() == [5]


def test_source_attributes_survive() -> None:
    source = Source(Call("fdiv", (Parameter("x", "f32"), Literal(1)), attrs=(("approximate", True), ("mode", "x"))))
    found = decode(encode(Recorded("x", "", source, 0)))
    assert isinstance(found, Recorded)
    assert found.program == source


def _token(data: object) -> str:
    return PREFIX + base64.urlsafe_b64encode(zlib.compress(json.dumps(data).encode())).decode().rstrip("=")


GOOD = {"id": "x", "clause": "", "opt": 0, "kernel": {"values": [{"input": "i8", "dims": ["n"]}], "outputs": [0]}}


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("", "starts with hu1-"),
        ("hu2-abc", "starts with hu1-"),
        ("hu1-", "damaged"),
        ("hu1-!!!!", "damaged"),
        ("hu1-abcd", "damaged"),
        (_token([]), "damaged"),
        (_token({}), "damaged"),
        (_token({**GOOD, "inputs": []}), "damaged"),
        (_token({**GOOD, "inputs": ["123"]}), "no whole number of i8"),
        (_token({**GOOD, "inputs": ["zz"]}), "damaged"),
        (_token({**GOOD, "inputs": ["00", "00"]}), "damaged"),
        (_token({"id": "x", "clause": "", "opt": 0, "kernel": {"values": [], "outputs": [0]}}), "damaged"),
        (_token({"id": "x", "clause": "", "opt": 0, "source": {"literal": "str", "value": "1"}}), "unknown literal"),
    ],
)
def test_damaged_tokens_say_so(token: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode(token)


def test_good_token_beside_the_damaged_ones() -> None:
    found = decode(_token({**GOOD, "inputs": ["0a0b"]}))
    assert isinstance(found, Recorded)
    assert found.inputs[0].tolist() == [10, 11]


def test_token_cut_short() -> None:
    token = encode(Recorded("x", "", KERNEL, 3, INPUTS))
    for length in range(len(PREFIX) + 1, len(token), 7):
        with pytest.raises(ValueError, match="damaged"):
            decode(token[:length])


def test_token_does_not_unpack_without_bound() -> None:
    bomb = PREFIX + base64.urlsafe_b64encode(zlib.compress(b" " * (1 << 26))).decode().rstrip("=")
    with pytest.raises(ValueError, match="damaged"):
        decode(bomb)


# Atomics.

OPTIONS = LitmusOptions(4096, "together", "start", Stress(shuffle=True, spacing=8, delay=7), 5, 3)
LITMUS = {"id": "x", "clause": "", "opt": 0, "seen": 1, "look": False}


def test_litmus_round_trip() -> None:
    for name in ("lock+acq-plain-plain-rel+acq-plain-plain-rel", "RS-cas+rlx-rel+rlx+acq-rlx", "LB-same-branches"):
        for program in (find(name).program, with_dtype(find(name).program, "i64")):
            recorded = RecordedLitmus("litmus[x]/O3", "intent:11-b", program, OPTIONS, 17)
            assert decode(encode(recorded)) == recorded
            assert decode(encode(replace(recorded, instructions=True))).opt_level == 3


def test_contest_round_trip() -> None:
    recorded = RecordedContest("contest[cas,u64]/O3", "intent:11-c", "cas", "u64", "acq_rel", Plan(7, "quick"), 3)
    assert decode(encode(recorded)) == recorded


@pytest.mark.parametrize(
    "change",
    [
        {"litmus": []},
        {"litmus": {}, "options": {}},
        {"contest": {}},
        {"contest": {"kind": "nand", "dtype": "i32", "order": "relaxed", "seed": 0, "depth": "quick"}},
        {"contest": {"kind": "add", "dtype": "i32", "order": "relaxed", "seed": 0, "depth": "forever"}},
    ],
)
def test_damaged_tokens_of_atomics_say_so(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="damaged"):
        decode(_token({**LITMUS, **change}))


def _finding(kind: str) -> tuple[str, Finding]:
    """A finding of each kind, and the backend that it was made on."""
    quick = Plan(0, "quick")
    if kind == "outcome":
        name = "model_no_corr"
        trial = litmus.try_litmus(LITMUS_SUSPECTS[name].make(), find("CoRR").program, quick)
    elif kind == "instructions":
        name = "guarded_load_before_acquire"
        program = find("MP-plain+plain-rel+acq-plain").program
        trial = litmus.try_instructions(LITMUS_SUSPECTS[name].make(), [program], "plain")
    elif kind == "contest":
        name = "rmw_returns_new"
        trial = contests.try_contest(LITMUS_SUSPECTS[name].make(), "exchange", "i32", quick)
    else:
        name = {"refused": "refuses_acq_rel", "accepted": "accepts_scope"}[kind]
        clause = {"refused": "intent:11-e", "accepted": "intent:11-g"}[kind]
        trial = litmus.try_orders(LITMUS_SUSPECTS[name].make(), clause)
    return f"saboteur:{name}", trial.findings[0]


@pytest.mark.parametrize("kind", ["outcome", "instructions", "contest", "refused", "accepted"])
def test_findings_of_atomics_are_replayed(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Once more on the backend that is wrong, and on one that is right."""
    backend, finding = _finding(kind)
    assert cli.main(["replay", finding.token, "--show", "--backend", backend]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"id       {finding.id}")
    assert finding.clause in out
    if kind in ("outcome", "contest"):
        assert re.search(r"seen again in run 1, after [\d,]+ (instances|operations); then it was", out)
    assert cli.main(["replay", finding.token, "--backend", "cpu", "--instances", "20000"]) == 0
    out = capsys.readouterr().out
    words = {
        "outcome": "nothing forbidden in",
        "instructions": "4 accesses, each with the instruction",
        "contest": "nothing forbidden in",
        "refused": "accepted and run",
        "accepted": "refused, as intent:11-g wants it",
    }
    assert words[kind] in out
    assert cli.main(["replay", finding.token, "--backend", "numpy"]) == 2
    assert "does not offer" in capsys.readouterr().err
