"""The typing of dialect intent: what is accepted, what is refused and by which clause."""

from __future__ import annotations

from collections import Counter

import pytest

from halfulp.oracle import typing
from halfulp.oracle.formats import CANONICAL
from halfulp.oracle.kernel import Apply, Input, Kernel, Type, one_node
from halfulp.oracle.ops import OPERATIONS, Accepted, Refused, Undecided, decided, signatures
from halfulp.oracle.source import Call, Formed, Literal, Parameter, Source

X32 = Parameter("x", "f32")


def refusal(program: Kernel | Source) -> str | None:
    found = typing.check(program) if isinstance(program, Kernel) else typing.elaborate(program)
    return found.clause if isinstance(found, Refused) else None


@pytest.mark.parametrize(
    ("op", "args", "result", "clause"),
    [
        ("add", ("f32", "f64"), "f64", "intent:3-g"),
        ("add", ("i32", "u32"), "i32", "intent:3-g"),
        ("add", ("index", "i64"), "i64", "intent:3-g"),
        ("add", ("bool", "bool"), "bool", "intent:3-h"),
        ("div", ("i32", "i32"), "i32", "intent:4-d"),
        ("mod", ("f32", "f32"), "f32", "intent:4-k"),
        ("shl", ("i32", "u32"), "i32", "intent:3-g"),
        ("bitcast", ("f32",), "i64", "intent:5.2-j"),
        ("add", ("i4", "i4"), "i4", "intent:1-b"),
        ("add", ("e2m1", "e2m1"), "e2m1", "intent:1-b"),
        ("add", ("e4m3fnuz", "e4m3fnuz"), "e4m3fnuz", "intent:1-a"),
        ("lt", ("f32", "f32"), "f32", "intent:3-e"),
        ("add", ("f32", "f32"), "f64", "intent:3-e"),
        ("select", ("bool", "f32", "f64"), "f64", "intent:3-g"),
    ],
)
def test_refused_kernels(op: str, args: tuple[str, ...], result: str, clause: str) -> None:
    assert refusal(one_node(op, args, result)) == clause


@pytest.mark.parametrize(
    ("value", "dtype", "clause"),
    [
        (300, "i8", "intent:3-b"),
        (-129, "i8", "intent:3-b"),
        (-1, "u8", "intent:3-b"),
        (256, "u8", "intent:3-b"),
        (1.5, "i32", "intent:3-b"),
        (1e6, "f16", "intent:3-b"),
        (65520.0, "f16", "intent:3-b"),
        (-128, "i8", None),
        (255, "u8", None),
        (0.1, "f32", None),
        (1, "f8e4m3fn", None),
    ],
)
def test_literals(value: float, dtype: str, clause: str | None) -> None:
    source = Source(Call("add", (Parameter("x", dtype), Literal(value))))
    found = typing.elaborate(source)
    assert isinstance(found, Kernel if clause is None else Refused)
    assert refusal(source) == clause


@pytest.mark.parametrize(
    ("value", "dtype"), [(16777217, "f32"), (1.0, "i32"), (True, "i32"), (65505.0, "f16"), (65504.5, "f16")]
)
def test_unspecified_literals(value: float, dtype: str) -> None:
    """reading:8."""
    assert isinstance(typing.elaborate(Source(Call("add", (Parameter("x", dtype), Literal(value))))), Undecided)


def test_inexact_literal_rounds_to_nearest_even() -> None:
    kernel = typing.elaborate(Source(Call("add", (X32, Literal(0.1)))))
    assert isinstance(kernel, Kernel)
    assert kernel.values[1].bits == 0x3DCCCCCD  # type: ignore[union-attr]


def test_formed_values_keep_their_dtype() -> None:
    """intent:3-c and 3-d."""
    assert refusal(Source(Call("mul", (Formed(Literal(1.0)), X32)))) == "intent:3-d"
    accepted = typing.elaborate(Source(Call("mul", (Formed(Literal(1.0)), Parameter("x", "f64")))))
    assert isinstance(accepted, Kernel)
    assert isinstance(typing.elaborate(Source(Call("add", (Formed(Literal(1)), Parameter("x", "i64"))))), Kernel)
    assert refusal(Source(Call("add", (Formed(Literal(1)), Parameter("x", "index"))))) == "intent:3-d"


def test_a_comparison_is_no_number() -> None:
    assert refusal(Source(Call("add", (Call("lt", (X32, X32)), Literal(1))))) is not None
    assert refusal(Source(Call("add", (Call("lt", (X32, X32)), X32)))) == "intent:3-g"


def test_inner_nodes_are_checked() -> None:
    f32, i32 = Input(Type("f32")), Input(Type("i32"))
    kernel = Kernel(
        (f32, i32, Apply("div", (1, 1), "i32"), Apply("cast", (2,), "f32"), Apply("add", (0, 3), "f32")), (4,)
    )
    assert refusal(kernel) == "intent:4-d"


def test_every_signature_is_accepted_by_check() -> None:
    for signature in signatures():
        verdict = typing.check(OPERATIONS[signature.op].kernel(signature))
        assert isinstance(verdict, Accepted if decided(signature) else Undecided), signature.id


def test_every_rejection_is_refused_and_every_clause_present() -> None:
    table = typing.rejections()
    assert all(refusal(program) == refused.clause for program, refused in table)
    clauses = Counter(refused.clause for _, refused in table)
    assert set(clauses) == {
        *("intent:1-a", "intent:1-b", "intent:3-b", "intent:3-d", "intent:3-e", "intent:3-g", "intent:3-h"),
        *("intent:4-d", "intent:4-k", "intent:5.2-j"),
        *("intent:5-k", "intent:5.1-b", "intent:5.1-c", "intent:5.1-d", "intent:12-c"),
    }


def test_signatures_cover_every_cast_pair() -> None:
    pairs = {(s.args[0], s.result) for s in signatures(("cast",))}
    assert pairs == {(a, b) for a in CANONICAL for b in CANONICAL}


def test_acceptances_are_well_typed() -> None:
    assert len(typing.acceptances()) > 300
    for source, kernel in typing.acceptances():
        assert isinstance(typing.check(kernel), Accepted), str(source)
