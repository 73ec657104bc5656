"""Replay tokens survive the way to a report and back."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest

from halfulp.oracle.formats import Bits
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.source import Call, Formed, Literal, Parameter, Source
from halfulp.properties.replay import PREFIX, Recorded, decode, encode

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
    storage = decode(encode(Recorded("x", "", kernel, 0, _codes(fmt)))).inputs[0]
    assert np.array_equal(storage, _codes(fmt)[0])


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
    assert found.program == source
    assert str(found.program) == str(source)
    assert found.inputs == ()


def test_source_with_inputs_round_trips() -> None:
    source = Source(Call("lt", (Parameter("x", "bf16"), Literal(0.1))))
    found = decode(encode(Recorded("accepts[3-a]/O0", "intent:3-a", source, 0, (np.array([5], np.uint16),))))
    assert found.program == source
    assert found.inputs[0].tolist() == [5]


def test_source_attributes_survive() -> None:
    source = Source(Call("fdiv", (Parameter("x", "f32"), Literal(1)), attrs=(("approximate", True), ("mode", "x"))))
    assert decode(encode(Recorded("x", "", source, 0))).program == source


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
    assert decode(_token({**GOOD, "inputs": ["0a0b"]})).inputs[0].tolist() == [10, 11]


def test_token_cut_short() -> None:
    token = encode(Recorded("x", "", KERNEL, 3, INPUTS))
    for length in range(len(PREFIX) + 1, len(token), 7):
        with pytest.raises(ValueError, match="damaged"):
            decode(token[:length])


def test_token_does_not_unpack_without_bound() -> None:
    bomb = PREFIX + base64.urlsafe_b64encode(zlib.compress(b" " * (1 << 26))).decode().rstrip("=")
    with pytest.raises(ValueError, match="damaged"):
        decode(bomb)
