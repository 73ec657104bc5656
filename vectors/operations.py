"""Files of single operations: casts, integers, arithmetic, functions, random bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from halfulp.oracle import codes, functions
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.functions.source import SlowPath, use
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.functions import is_approximate
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.ops.rules import as_bits
from halfulp.vectors import draw, select
from halfulp.vectors.files import Case, Content, Group, Settings, content
from halfulp.vectors.flags import in_order
from halfulp.vectors.identity import operation_id, texts
from halfulp.vectors.ranges import Row, integers, rows
from halfulp.vectors.select import Pool

DRAWN = 1024
DRAWN_COSTLY = 64
"""Draws among the candidates; fewer of functions, whose exact values take longer."""

EXTRA_BITS = 32
"""Bits of an exact result beyond its format."""


BY_FRACTIONS = "exact rational arithmetic, rounded once"
BY_ZIV = (
    "Arb and mpmath at 64 bits and more, until the bounds of the exact value decide its rounding; the significand of "
    "the exact result is certain to its last bit"
)


def attribute_suffix(signature: Signature) -> str:
    return "".join(f"-{name}" for name, setting in signature.attrs if setting)


def file_name(signature: Signature) -> str:
    """``cast-f32-bf16``; operations that do not convert have one format in their name."""
    record = OPERATIONS[signature.op]
    formats = (*signature.args, signature.result) if record.converts and record.arity == 1 else signature.args[-1:]
    return "-".join((signature.op, *formats)) + attribute_suffix(signature)


def exact_fields(signature: Signature, codes_of: Sequence[int]) -> dict[str, Any]:
    """The exact result of a function."""
    fmt = signature.result_format
    found = functions.extended(signature.op, fmt, *codes_of, extra_bits=EXTRA_BITS)
    return {
        "kind": found.kind,
        "negative": found.negative,
        "significand": f"{found.significand:#x}",
        "exponent": found.exponent,
        "inexact": not found.exact,
    }


def has_exact(signature: Signature) -> bool:
    return signature.op in functions.FUNCTIONS


def range_fields(row: Row, dtype: str) -> dict[str, Any]:
    fmt = format_of(dtype)
    return {
        "allowed": [[fmt.hex(low), fmt.hex(high)] for low, high in row.allowed],
        "unspecified": [[fmt.hex(low), fmt.hex(high)] for low, high in row.unspecified],
    }


def value_flags(signature: Signature, columns: Sequence[Bits], nearest: Bits) -> list[set[str]]:
    """What can be seen of operands and results, for each element."""
    n = len(nearest)
    found: list[set[str]] = [set() for _ in range(n)]

    def mark(name: str, mask: Any) -> None:
        for position in np.flatnonzero(mask).tolist():
            found[position].add(name)

    finite, nonzero = np.ones(n, bool), np.ones(n, bool)
    for fmt, bits in zip(signature.formats, columns, strict=True):
        if fmt.is_float:
            nan, infinite, zero = codes.is_nan(fmt, bits), codes.is_infinite(fmt, bits), codes.is_zero(fmt, bits)
            mark("nan_operand", nan)
            mark("infinite_operand", infinite)
            mark("zero_operand", zero)
            mark("subnormal_operand", codes.is_subnormal(fmt, bits))
            finite &= ~nan & ~infinite
            nonzero &= ~zero & ~nan
        elif fmt.is_int:
            edges = {fmt.min_int % fmt.code_count, fmt.max_int, 0, 1, fmt.code_count - 1}
            zero = np.array([code == 0 for code in integers(bits)], bool)
            mark("integer_edge", [code in edges for code in integers(bits)])
            nonzero &= ~zero
    fmt = signature.result_format
    if fmt.is_float:
        largest = (nearest & fmt.storage.type(fmt.magnitude_mask)) == fmt.max_finite_bits
        mark("largest_result", largest)
        mark("overflow", finite & codes.is_infinite(fmt, nearest))
        mark("subnormal_result", codes.is_subnormal(fmt, nearest))
        mark("underflow", nonzero & codes.is_zero(fmt, nearest) & np.array(signature.op in _UNDERFLOWS))
    return found


_UNDERFLOWS = ("cast", "cast_saturate", "mul", "div", "fdiv", "exp2", "erfc", "muladd")


def candidates(signature: Signature, settings: Settings) -> tuple[list[Bits], int]:
    """Operands in question, and how many of the first are forced."""
    record = OPERATIONS[signature.op]
    critical = [np.ascontiguousarray(column) for column in record.critical(signature)]
    count = DRAWN_COSTLY if record.costly(signature) else DRAWN
    label = f"halfulp vectors {settings.seed} {signature.id}"
    drawn = draw.tuples(signature.formats, label, count, record.window)
    return [np.concatenate(column) for column in zip(critical, drawn, strict=True)], 0


def wanted(signature: Signature, settings: Settings) -> int:
    small = 64 if has_exact(signature) else 24
    return max(small, settings.size)


def selected(signature: Signature, settings: Settings) -> tuple[Pool, list[int]]:
    columns, forced = candidates(signature, settings)
    found = select.pool(signature, columns, forced)
    return found, select.select(found, wanted(signature, settings))


def _cases(found: Pool, chosen: Sequence[int]) -> Iterator[tuple[tuple[str, ...], Case]]:
    """Each case with the clauses that govern it."""
    signature = found.signature
    record = OPERATIONS[signature.op]
    columns = [column[list(chosen)] for column in found.columns]
    with np.errstate(all="ignore"):
        masks = record.cases(signature, columns)
    otherwise = record.clauses(signature)
    allowed = found.allowed.take(list(chosen))
    flags = value_flags(signature, columns, allowed.nearest)
    values = list(zip(*map(integers, columns), strict=True))
    for at, row in enumerate(rows(allowed)):
        assert row is not None
        clauses = tuple(clause for clause, mask in masks.items() if mask[at]) or otherwise
        inputs = texts(signature.args, values[at])
        case: Case = {
            "id": operation_id(signature, inputs),
            "inputs": inputs,
            "nearest": signature.result_format.hex(row.nearest),
            **range_fields(row, signature.result),
        }
        if has_exact(signature):
            case["exact"] = exact_fields(signature, values[at])
        if len(row.allowed) != 1 or row.allowed[0][0] != row.allowed[0][1]:
            flags[at].add("several")
        if row.unspecified:
            flags[at].add("open")
        case["flags"] = in_order(flags[at])
        case["kills"] = [name for name, mask in found.kills.items() if mask[chosen[at]]]
        yield clauses, case


def operation_fields(signature: Signature) -> dict[str, Any]:
    return {
        "op": signature.op,
        "args": list(signature.args),
        "result": signature.result,
        "attrs": dict(signature.attrs),
    }


def generate(signature: Signature, folder: str, settings: Settings) -> Content:
    """The file of one operation."""
    record = OPERATIONS[signature.op]
    with use(SlowPath()):
        found, chosen = selected(signature, settings)
        groups: dict[tuple[str, ...], list[Case]] = {}
        for clauses, case in _cases(found, chosen):
            groups.setdefault(clauses, []).append(case)
    return content(
        "function" if has_exact(signature) else "operation",
        f"{folder}/{file_name(signature)}",
        record.summary,
        [Group(", ".join(clauses), clauses, cases) for clauses, cases in sorted(groups.items())],
        settings,
        oracle=BY_ZIV if has_exact(signature) else BY_FRACTIONS,
        formats=(*signature.args, signature.result),
        operation=operation_fields(signature),
    )


__all__ = ["as_bits", "file_name", "generate", "is_approximate"]
