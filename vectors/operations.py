"""Files of single operations: casts, integers, arithmetic, functions, random bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

from halfulp.oracle import codes, functions
from halfulp.oracle.formats import STORAGE_ONLY, Bits, format_of
from halfulp.oracle.functions.source import SlowPath, use
from halfulp.oracle.ops import OPERATIONS, signatures
from halfulp.oracle.ops.casts import widens
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.ops.rules import as_bits
from halfulp.oracle.rounding import floor_log2, power_of_two
from halfulp.oracle.sets import AllowedSet
from halfulp.vectors import draw, select, slow
from halfulp.vectors.files import Case, Content, Group, Settings, VectorFileError, content
from halfulp.vectors.flags import in_order
from halfulp.vectors.identity import operation_id, texts
from halfulp.vectors.ranges import Row, integers, nan_spans, rows
from halfulp.vectors.select import Pool
from halfulp.vectors.sources import Found, found_inputs, kept_inputs, reported, reports_on

DRAWN = 1024
DRAWN_COSTLY = 64
"""Draws among the candidates; fewer of functions, whose exact values take longer."""

SEARCHES, SEARCHED = 6, 1024
"""Further draws, where a suspect is wrong on none of the first."""

SMALL, SMALL_FUNCTION = 24, 64
"""Cases of a small file at least, where as many inputs exist."""

EXTRA_BITS = 32
"""Bits of an exact result beyond its format."""

NEAR = 6
"""A near tie is within 2**-NEAR steps of half way."""


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


FOLDERS = {"5.2": "casts", "4": "integers", "5": "functions", "5.1": "functions", "5.5": "arithmetic", "12": "random"}
"""Folders by the section that defines an operation; sections 4/5 are sorted by what they work on."""


def folder_of(signature: Signature) -> str:
    record = OPERATIONS[signature.op]
    if signature.op in ("sqrt", "floor"):
        return "arithmetic"
    if record.arity > 1 and record.chapter == "5.2":
        return "choice"
    if record.chapter == "4/5":
        if signature.result != signature.args[-1] or signature.op == "select":
            return "choice"
        return "arithmetic" if signature.result_format.is_float else "integers"
    return FOLDERS[record.chapter]


def path_of(signature: Signature) -> str:
    """The name of the file, with its folder."""
    return f"{folder_of(signature)}/{file_name(signature)}"


# Which operations have a file.


def is_exact_conversion(signature: Signature) -> bool:
    """Every operand has a single result that needs no rounding: a digest says it all, if it can be had."""
    if signature.op == "bitcast":
        return True
    if signature.op not in ("cast", "cast_saturate"):
        return False
    src, dst = signature.formats[0], signature.result_format
    if src.is_float:
        return dst.is_float and widens(src, dst)
    if dst.is_float:
        return src.width - src.signed <= dst.precision and src.width - src.signed <= dst.max_exponent
    return dst.min_int <= src.min_int and src.max_int <= dst.max_int


def is_offered(signature: Signature) -> bool:
    """Whether an operation has a file of cases: something is required of some operands, and no digest says it all."""
    if is_exact_conversion(signature) and signature.formats[0].width <= 16 and not any(reports_on(signature)):
        return False
    record = OPERATIONS[signature.op]
    with np.errstate(all="ignore"):
        allowed = record.allowed(signature, record.critical(signature))
    useful = allowed.claimed if allowed.anything is None else allowed.claimed & ~allowed.anything
    return bool(useful.any())


def storage_casts() -> Iterator[Signature]:
    """Casts between f32 and the formats that are no element types."""
    for name in STORAGE_ONLY:
        for op in ("cast", "cast_saturate"):
            yield Signature(op, ("f32",), name)
            yield Signature(op, (name,), "f32")


@cache
def offered() -> tuple[Signature, ...]:
    """The operations that have a file, in the order of their paths."""
    with use(SlowPath()):
        asked = dict.fromkeys((*signatures(), *storage_casts(), *reported()))
        found = [signature for signature in asked if is_offered(signature)]
    return tuple(sorted(found, key=path_of))


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


def rounding_flags(signature: Signature, codes_of: Sequence[int]) -> set[str]:
    """Whether an exact result is a number of the format, or half way between two of them."""
    fmt = signature.result_format
    exact = slow.exact_value(signature, codes_of) if fmt.is_float else None
    if not exact:
        return set()
    quantum = max(floor_log2(abs(exact)), fmt.emin) - fmt.fraction_bits
    steps = abs(exact) / power_of_two(quantum)
    rest = steps - steps.numerator // steps.denominator
    if rest == 0:
        return {"exact"}
    off = abs(rest - Fraction(1, 2))
    return {"tie"} if off == 0 else {"near_tie"} if off <= Fraction(1, 1 << NEAR) else set()


# Inputs.


def _twin(signature: Signature) -> Signature | None:
    """The saturating cast beside a cast, and the reverse: the two are asked the same."""
    other = {"cast": "cast_saturate", "cast_saturate": "cast"}.get(signature.op)
    if other is None or "bool" in (*signature.args, signature.result):
        return None
    return replace(signature, op=other)


def candidates(signature: Signature, settings: Settings) -> tuple[list[Bits], int]:
    """Operands in question, and how many of the first are taken in any case."""
    record = OPERATIONS[signature.op]
    forced = {found.inputs: None for found in found_inputs(signature)}
    lead = [as_bits(fmt, [row[place] for row in forced]) for place, fmt in enumerate(signature.formats)]
    critical = [np.ascontiguousarray(column) for column in record.critical(signature)]
    small = DRAWN_COSTLY if record.costly(signature) else DRAWN
    label = f"halfulp vectors {settings.seed} {_drawn_for(signature)}"
    drawn = draw.tuples(signature.formats, label, max(small, 2 * settings.size), record.window)
    parts = [lead, critical, drawn] if forced else [critical, drawn]
    return [np.concatenate(column) for column in zip(*parts, strict=True)], len(forced)


def _drawn_for(signature: Signature) -> str:
    """Twins, and modes of one operation, are asked the same."""
    name = "cast" if signature.op == "cast_saturate" else signature.op
    return f"{name} {' '.join(signature.args)} {signature.result}"


def wanted(signature: Signature, settings: Settings) -> int:
    return max(SMALL_FUNCTION if has_exact(signature) else SMALL, settings.size)


@lru_cache(maxsize=4)
def _chosen(signature: Signature, settings: Settings) -> tuple[tuple[int, ...], ...]:
    """The inputs that this operation asks for.

    Raises:
        VectorFileError: a suspect is wrong nowhere, as far as was searched.
    """
    columns, forced = candidates(signature, settings)
    for search in range(SEARCHES + 1):
        found, _ = select.pool(signature, columns, forced)
        positions = select.select(found, wanted(signature, settings) + forced)
        left = select.alive(found)
        # In a format of one significant bit, say, ties to even are ties away: a suspect may be right there.
        if not left or {*signature.args, signature.result} & set(STORAGE_ONLY):
            rows_of = list(zip(*map(integers, found.columns), strict=True))
            return tuple(rows_of[position] for position in positions)
        label = f"halfulp vectors {settings.seed} {_drawn_for(signature)} search {search}"
        more = draw.tuples(signature.formats, label, SEARCHED, OPERATIONS[signature.op].window)
        columns = [np.concatenate(pair) for pair in zip(columns, more, strict=True)]
    raise VectorFileError(
        f"{path_of(signature)}: no input kills {', '.join(left)}; add a critical point to the record of "
        f"{signature.op}, or an input to vectors/sources/worst-inputs.json"
    )


def cases_of(signature: Signature, settings: Settings) -> tuple[Pool, AllowedSet]:
    """The inputs of a file, with what may come out."""
    both = [one for one in (signature, _twin(signature)) if one is signature or one in offered()]
    sizes = dict.fromkeys((replace(settings, size=0), settings))  # a large set holds the small one
    asked = dict.fromkeys(row for one in both if one for size in sizes for row in _chosen(one, size))
    inputs = sorted(asked | dict.fromkeys(kept_inputs(path_of(signature))))
    if {*signature.args, signature.result} & set(STORAGE_ONLY):
        # No text says what a saturating cast makes of a NaN, a sign or a zero that its target lacks.
        inputs = [row for row in inputs if slow.expected(signature, row) is not None]
    columns = [as_bits(fmt, [row[place] for row in inputs]) for place, fmt in enumerate(signature.formats)]
    return select.pool(signature, columns, len(inputs))


def _cases(signature: Signature, settings: Settings) -> Iterator[tuple[tuple[str, ...], Case]]:
    """Each case with the clauses that govern it."""
    found, allowed = cases_of(signature, settings)
    record = OPERATIONS[signature.op]
    with np.errstate(all="ignore"):
        masks = record.cases(signature, found.columns)
    otherwise = record.clauses(signature)
    flags = value_flags(signature, found.columns, allowed.nearest)
    values = list(zip(*map(integers, found.columns), strict=True))
    stories: dict[tuple[int, ...], list[Found]] = {}
    for story in found_inputs(signature):
        stories.setdefault(story.inputs, []).append(story)
    nans = set(nan_spans(signature.result_format)) if signature.result_format.is_float else set()
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
        flags[at] |= rounding_flags(signature, values[at])
        if has_exact(signature):
            case["exact"] = exact_fields(signature, values[at])
            flags[at] |= _exact_flags(case["exact"])
        numbers = [span for span in row.allowed if span not in nans]
        if len(numbers) + (len(numbers) < len(row.allowed)) > 1 or any(low < high for low, high in numbers):
            flags[at].add("several")
        if row.unspecified:
            flags[at].add("open")
        told = stories.get(values[at], [])
        flags[at] |= {story.flag for story in told if story.flag}
        case["flags"] = in_order(flags[at])
        case["kills"] = sorted(name for name, mask in found.kills.items() if mask[at])
        source = next((story.source for story in told if story.source), "")
        note = " ".join(dict.fromkeys(story.note for story in told if story.note))
        yield clauses, case | ({"source": source} if source else {}) | ({"note": note} if note else {})


def _exact_flags(exact: dict[str, Any]) -> set[str]:
    if exact["kind"] != "number":
        return set()
    if not exact["inexact"] and int(exact["significand"], 16) & _EXTRA_MASK == 0:
        return {"exact"}
    off = abs((int(exact["significand"], 16) & _EXTRA_MASK) - (1 << EXTRA_BITS - 1))
    return {"hard_to_round"} if off <= 1 << EXTRA_BITS - 24 else set()


_EXTRA_MASK = (1 << EXTRA_BITS) - 1


def operation_fields(signature: Signature) -> dict[str, Any]:
    return {
        "op": signature.op,
        "args": list(signature.args),
        "result": signature.result,
        "attrs": dict(signature.attrs),
    }


def generate(signature: Signature, settings: Settings) -> Content:
    """The file of one operation."""
    record = OPERATIONS[signature.op]
    with use(SlowPath()):
        groups: dict[tuple[str, ...], list[Case]] = {}
        for clauses, case in _cases(signature, settings):
            groups.setdefault(clauses, []).append(case)
    return content(
        "function" if has_exact(signature) else "operation",
        path_of(signature),
        record.summary,
        [Group(", ".join(clauses), clauses, cases) for clauses, cases in sorted(groups.items())],
        settings,
        oracle=BY_ZIV if has_exact(signature) else BY_FRACTIONS,
        formats=(*signature.args, signature.result),
        operation=operation_fields(signature),
    )
