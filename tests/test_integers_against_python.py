"""The oracle's integer operations against Python's own integers, which share no code with it.

10,000 adversarial operand tuples for each operation, spread over its formats; a million with ``HALFULP_DEEP=1``.
"""

from __future__ import annotations

import operator
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfulp.oracle.formats import INTS, Format, format_of
from halfulp.oracle.ops import OPERATIONS, Signature, signatures
from halfulp.oracle.ops.rules import as_bits

TOTAL = 1_000_000 if os.environ.get("HALFULP_DEEP") else 10_000

Rule = Callable[..., int]


def value(fmt: Format, code: int) -> int:
    return code - fmt.code_count if fmt.signed and code >> (fmt.width - 1) else code


def draw(fmt: Format, rng: random.Random) -> int:
    """A code: an edge, a power of two and its neighbours, or uniform in a uniform number of bits."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(
            [0, 1, 2, fmt.code_count - 1, fmt.code_count - 2, fmt.code_count // 2, fmt.code_count // 2 - 1]
        )
    if kind == 1:
        return ((1 << rng.randrange(fmt.width)) + rng.randrange(-1, 2)) % fmt.code_count
    low_bits = rng.getrandbits(rng.randrange(1, fmt.width + 1))
    return low_bits if kind == 2 else (-low_bits) % fmt.code_count


ARITHMETIC: dict[str, Rule] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "abs": abs,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
}
COMPARISONS: dict[str, Rule] = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def legal(op: str, fmt: Format, args: list[int]) -> bool:
    if op in ("floordiv", "mod"):
        return args[1] != 0 and not (args[1] == -1 and args[0] == fmt.min_int and fmt.signed)
    if op in ("shl", "shr"):
        return 0 <= args[1] < fmt.width
    return not (op == "abs" and fmt.signed and args[0] == fmt.min_int)


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS])
def test_operation(op: str) -> None:
    rng = random.Random(op)
    rule = (ARITHMETIC | COMPARISONS)[op]
    judged = 0
    chosen = [s for s in signatures((op,)) if s.args[0] in INTS]
    for signature in chosen:
        fmt = signature.formats[0]
        count = TOTAL // len(chosen) + 1
        columns = [[draw(fmt, rng) for _ in range(count)] for _ in signature.args]
        if op in ("shl", "shr"):
            columns[1] = [code % (fmt.width + 1) for code in columns[1]]
        allowed = OPERATIONS[op].allowed(signature, [as_bits(fmt, column) for column in columns])
        nearest, certain = allowed.nearest.tolist(), allowed.single.tolist()
        for row, got, claimed in zip(zip(*columns, strict=True), nearest, certain, strict=True):
            args = [value(fmt, code) for code in row]
            if not legal(op, fmt, args):
                assert not claimed, (signature.id, args)
                continue
            right = int(rule(*args)) % signature.result_format.code_count
            assert got == right, (signature.id, args)
            if not (op == "neg" and not fmt.signed):
                assert claimed, (signature.id, args)
                judged += 1
    assert judged > TOTAL // 3


@pytest.mark.parametrize("op", ["cast", "cast_saturate"])
def test_casts_between_integers(op: str) -> None:
    rng = random.Random(op)
    pairs = [(a, b) for a in INTS for b in INTS]
    for source, target in pairs:
        src, dst = format_of(source), format_of(target)
        column = [draw(src, rng) for _ in range(TOTAL // len(pairs) + 1)]
        signature = Signature(op, (source,), target)
        nearest = OPERATIONS[op].allowed(signature, [as_bits(src, column)]).nearest.tolist()
        for code, got in zip(column, nearest, strict=True):
            exact = value(src, code)
            if op == "cast_saturate":
                exact = min(max(exact, dst.min_int), dst.max_int)
            assert got == exact % dst.code_count, (signature.id, exact)


def test_wide_arrays_are_used_where_they_must_be() -> None:
    """The operand generator reaches what a 64-bit product or a shift can get wrong."""
    rng = random.Random(0)
    fmt = format_of("i64")
    drawn: Any = np.array([draw(fmt, rng) for _ in range(2000)], np.uint64)
    assert (drawn >> np.uint64(63)).any()
    assert (drawn == 1 << 63).any()


@pytest.mark.parametrize("result", ["i128", "u128", "i64", "u8"])
def test_saturating_casts_from_floats(result: str) -> None:
    """Also where numpy has no integer so wide."""
    fmt, source = format_of(result), format_of("f64")
    values = [
        0.0,
        -0.5,
        1.5,
        -2.0,
        255.0,
        256.0,
        2.0**63,
        2.0**64,
        -(2.0**63),
        1e38,
        2.0**127,
        2.0**128,
        -(2.0**127),
        1e300,
    ]
    signature = Signature("cast_saturate", ("f64",), result)
    codes = np.array(values).view(source.storage)
    allowed = OPERATIONS["cast_saturate"].allowed(signature, (codes,))
    expected = [min(max(int(value), fmt.min_int), fmt.max_int) % fmt.code_count for value in values]
    assert allowed.nearest.tolist() == as_bits(fmt, expected).tolist()
