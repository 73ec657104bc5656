"""The oracle asked directly: what may an operation return for these bits, and is this result right?

``halfulp ask`` and ``halfulp judge`` are this module over JSON lines. The objects that go in and come out are
described in ``docs/reference/json-protocols.md``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.certify.show import plural
from halfulp.oracle import codes
from halfulp.oracle.formats import FORMATS, WIDE, Bits, Format, format_of
from halfulp.oracle.ops import OPERATIONS, typed
from halfulp.oracle.ops.record import Attrs, Operation, Refused, Signature, Undecided
from halfulp.oracle.sets import AllowedSet, Mask, Verdict
from halfulp.oracle.suspects import SUSPECTS

VERDICTS: dict[int, str] = {
    Verdict.ALLOWED: "allowed",
    Verdict.NO_CLAIM: "no_claim",
    Verdict.UNSPECIFIED: "unspecified",
    Verdict.FORBIDDEN: "forbidden",
}
NOT_A_DISTANCE = (1 << 64) - 1
"""What `AllowedSet.distance` gives between a NaN and a number."""

_HEX = re.compile(r"0[xX][0-9a-fA-F]+")
_FIELDS = ("op", "args", "result", "attrs", "got")
_LOW = 0xFFFFFFFFFFFFFFFF

Pair = list[str]


class QuestionError(ValueError):
    """The question cannot be answered; the message says what is wrong with it."""


@dataclass(frozen=True)
class Question:
    """A question in the oracle's own terms.

    Attributes:
        operands: one array of bit patterns for each operand, all of shape (n,).
        single: the bits were given as single values, so the answer's fields are no lists.
        got: the results to be judged, shape (n,); None where only the allowed set is asked for.
    """

    signature: Signature
    operands: tuple[Bits, ...]
    single: bool
    got: Bits | None = None


# Reading a question.


def read_question(data: Any, *, judging: bool) -> Question:
    """Turn JSON data into a question.

    Args:
        data: what a line of input holds.
        judging: a result has to be given under ``"got"``; otherwise it is ignored.

    Raises:
        QuestionError: the data is no question that the dialect has an answer to.
    """
    if not isinstance(data, Mapping):
        raise QuestionError(f'a question is an object such as {{"op": ..., "args": [...]}}, not {_kind(data)}')
    for name in data:
        if name not in _FIELDS:
            raise QuestionError(f"unknown field {name!r}{_hint(name, _FIELDS)}; the fields are {', '.join(_FIELDS)}")
    record = _operation(data.get("op"))
    dtypes, given = _arguments(record, data.get("args"))
    attrs = _attrs(record, data.get("attrs"))
    # What is not true is the default, and the default is not written out in signatures.
    stated = tuple((name, setting) for name, setting in attrs if setting is not False)
    signature = Signature(record.name, dtypes, _result(record, dtypes, data, attrs), stated)
    columns = [
        _read_bits(format_of(dtype), bits, f"argument {position}")
        for position, (dtype, bits) in enumerate(zip(dtypes, given, strict=True))
    ]
    if judging:
        if "got" not in data:
            raise QuestionError('there is no "got": the result to be judged')
        given = [*given, data["got"]]
        columns.append(_read_bits(signature.result_format, data["got"], '"got"'))
    single = not any(isinstance(bits, list) for bits in given)
    n = _common_length(columns, given)
    columns = [column if len(column) == n else np.repeat(column, n) for column in columns]
    got = columns.pop() if judging else None
    return Question(signature, tuple(columns), single, got)


def _operation(name: Any) -> Operation:
    if not isinstance(name, str):
        raise QuestionError('there is no "op": the name of an operation, as text')
    if name not in OPERATIONS:
        raise QuestionError(
            f"there is no operation {name!r}{_hint(name, OPERATIONS)}; `halfulp ask --list` names them all"
        )
    return OPERATIONS[name]


def _arguments(record: Operation, args: Any) -> tuple[tuple[str, ...], list[Any]]:
    if not isinstance(args, list):
        raise QuestionError('there is no "args": a list of {"dtype": ..., "bits": ...}, one for each operand')
    if len(args) != record.arity:
        raise QuestionError(f"{record.name} takes {plural(record.arity, 'operand')}, but {len(args)} given")
    dtypes, given = [], []
    for position, arg in enumerate(args):
        if not isinstance(arg, Mapping) or set(arg) != {"dtype", "bits"}:
            raise QuestionError(f'argument {position} has to be {{"dtype": FORMAT, "bits": HEX or list of HEX}}')
        dtypes.append(_format_name(arg["dtype"], f"argument {position}"))
        given.append(arg["bits"])
    return tuple(dtypes), given


def _format_name(name: Any, where: str) -> str:
    if not isinstance(name, str) or name not in FORMATS:
        hint = _hint(name, FORMATS) if isinstance(name, str) else ""
        raise QuestionError(f"{where}: there is no format {name!r}{hint}; `halfulp ask --list` names them all")
    return name


def _attrs(record: Operation, attrs: Any) -> Attrs:
    if attrs is None or attrs == {}:
        return ()
    if not isinstance(attrs, Mapping):
        raise QuestionError(f'"attrs" is an object of named values, not {_kind(attrs)}')
    known = sorted(record.attributes)
    for name in attrs:
        if name not in known and name != "flush_to_zero":  # of which the text speaks for every operation
            others = f"its attributes are {', '.join(known)}" if known else "it has none at all"
            raise QuestionError(f"{record.name} has no attribute {name!r}; {others}")
    return tuple(sorted(attrs.items()))


def _result(record: Operation, dtypes: tuple[str, ...], data: Mapping[str, Any], attrs: Attrs) -> str:
    """The format of the result: stated for conversions, found by typing for all others.

    The formats that the oracle alone knows are no element types of the language (``intent:1-a``), but converting
    from and to them is a question with an answer, so that refusal is lifted here.
    """
    stated = data.get("result")
    if stated is not None:
        _format_name(stated, '"result"')
    if record.converts:
        if stated is None:
            raise QuestionError(f'{record.name} converts to a format: name it under "result"')
        if record.arity == 1 and not all(format_of(name).canonical for name in (*dtypes, stated)):
            return _oracle_conversion(record, dtypes[0], str(stated))
    verdict = typed(record, dtypes, stated if record.converts else None, attrs)
    if isinstance(verdict, Refused):
        raise QuestionError(f"the language refuses this program under {verdict.clause}: {verdict.reason}")
    if verdict.result is None:
        reason = verdict.reason if isinstance(verdict, Undecided) else "it has no result"
        raise QuestionError(f"{record.name} of {', '.join(dtypes)} has no result to ask for: {reason}")
    if stated is not None and stated != verdict.result:
        raise QuestionError(f'{record.name} of {", ".join(dtypes)} is {verdict.result}, but "result" says {stated}')
    return verdict.result


def _oracle_conversion(record: Operation, src: str, dst: str) -> str:
    others = [name for name in (src, dst) if not format_of(name).canonical]
    if record.name == "bitcast":
        if format_of(src).width != format_of(dst).width:
            raise QuestionError(f"bitcast needs equal widths (intent:5.2-j); {src} and {dst} differ")
    elif "f32" not in (src, dst) and src != dst:
        raise QuestionError(f"{others[0]} is converted from and to f32 alone, not {src} to {dst}")
    return dst


def _read_bits(fmt: Format, bits: Any, where: str) -> Bits:
    texts = bits if isinstance(bits, list) else [bits]
    for position, text in enumerate(texts):
        if not isinstance(text, str) or not _HEX.fullmatch(text):
            at = f", element {position}" if isinstance(bits, list) else ""
            raise QuestionError(f'{where}{at}: {text!r} is no bit pattern; write hex text such as "{fmt.hex(0)}"')
    numbers = [int(text, 16) for text in texts]
    if numbers and max(numbers) >= fmt.code_count:
        wide = next(text for text, number in zip(texts, numbers, strict=True) if number >= fmt.code_count)
        raise QuestionError(f"{where}: {wide} is wider than {fmt.name}, which has {plural(fmt.width, 'bit')}")
    if fmt.storage == WIDE:
        return np.array([(number & _LOW, number >> 64) for number in numbers], WIDE)
    return np.array(numbers, np.uint64).astype(fmt.storage)


def _common_length(columns: Sequence[Bits], given: Sequence[Any]) -> int:
    lengths = {len(column) for column, bits in zip(columns, given, strict=True) if isinstance(bits, list)}
    if len(lengths) > 1:
        counts = ", ".join(str(length) for length in sorted(lengths))
        raise QuestionError(f"lists of bits have to be equally long; these have {counts} elements")
    return lengths.pop() if lengths else 1


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _kind(data: Any) -> str:
    names = {list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(data), "a number")


# Answering.


def answer(question: Question) -> dict[str, Any]:
    """What may come out: an object for JSON. With lists of bits every field is a list."""
    signature = question.signature
    record = OPERATIONS[signature.op]
    with np.errstate(all="ignore"):
        allowed = record.allowed(signature, question.operands)
    fields = describe(allowed)
    fields["clauses"] = _clauses(record, question)
    if question.got is not None:
        fields = {**_judgement(question, allowed, question.got), **fields}
    return {name: column[0] for name, column in fields.items()} if question.single else fields


def drop_empty_unspecified(fields: dict[str, Any], single: bool) -> dict[str, Any]:
    """``unspecified`` is absent where there is nothing in it."""
    empty = not fields["unspecified"] if single else not any(fields["unspecified"])
    if empty:
        del fields["unspecified"]
    return fields


def describe(allowed: AllowedSet) -> dict[str, list[Any]]:
    """The sets as columns: ``claim``, ``allowed``, ``unspecified``, ``nan`` and ``nearest``, one entry for each row."""
    fmt, n = allowed.format, len(allowed)
    nearest = hex_texts(fmt, allowed.nearest)
    claimed = allowed.claimed
    plain = claimed.copy() if allowed.member is None else claimed & allowed.member
    for low, high in (*allowed.ranges, *allowed.unspecified):
        plain &= low > high
    for mask in (allowed.nan, allowed.unspecified_nan, allowed.anything):
        if mask is not None:
            plain &= ~mask
    nan = codes.is_nan(fmt, allowed.nearest) if fmt.is_float and allowed.free_nan else np.zeros(n, bool)
    claims: list[str] = ["exact"] * n
    sets: list[list[Pair]] = [[[text, text]] for text in nearest]
    unspecified: list[list[Pair]] = [[] for _ in range(n)]
    nans = (nan & plain).tolist()
    for row in np.flatnonzero(nan & plain).tolist():
        claims[row], sets[row] = "nan", []
    for row in np.flatnonzero(~claimed).tolist():
        claims[row], sets[row], nearest[row] = "none", [], None  # type: ignore[call-overload]
    odd = np.flatnonzero(claimed & ~plain)
    if len(odd):
        rows = _odd_rows(allowed.take(odd))
        for row, (claim, accepted, open_to, any_nan) in zip(odd.tolist(), rows, strict=True):
            claims[row], sets[row], unspecified[row], nans[row] = claim, accepted, open_to, any_nan
    return {"claim": claims, "allowed": sets, "unspecified": unspecified, "nan": nans, "nearest": nearest}


def _odd_rows(allowed: AllowedSet) -> Iterable[tuple[str, list[Pair], list[Pair], bool]]:
    """Rows with more than one result, or none that is required."""
    fmt, n = allowed.format, len(allowed)
    is_nan = codes.is_nan(fmt, allowed.nearest) if fmt.is_float else np.zeros(n, bool)
    member = np.ones(n, bool) if allowed.member is None else allowed.member
    at = codes.ordinal(fmt, allowed.nearest)
    nearest: Any = (at, np.where(member & ~is_nan, at, at - 1))
    accepted = [_columns(span) for span in (nearest, *allowed.ranges)]
    open_to = [_columns(span) for span in allowed.unspecified_ranges]
    some_nan = allowed.accepts_nan.tolist()
    open_nan = allowed.unspecifies_nan.tolist()
    for row in range(n):
        spans = _merged([span[row] for span in accepted])
        ranges = _subtracted(_merged([span[row] for span in open_to]), spans)
        pairs = [_pair(fmt, span) for span in ranges]
        if open_nan[row] and not some_nan[row]:
            below, above = _nan_codes(fmt)
            pairs = [*below, *pairs, *above]
        yield _claim(spans, some_nan[row]), [_pair(fmt, span) for span in spans], pairs, some_nan[row]


def _columns(span: tuple[Any, Any]) -> list[tuple[int, int]]:
    return list(zip(span[0].tolist(), span[1].tolist(), strict=True))


def _claim(spans: list[tuple[int, int]], nan: bool) -> str:
    if not spans:
        return "nan" if nan else "unspecified"
    if any(low < high for low, high in spans):
        return "range"
    return "exact" if len(spans) == 1 and not nan else "oneof"


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping ranges joined, empty ones dropped, in value order. Neighbouring points stay apart."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[0] <= span[1]):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _subtracted(spans: list[tuple[int, int]], taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What remains of ``spans``: a value that is accepted is not unspecified."""
    for low, high in taken:
        pieces = []
        for start, stop in spans:
            pieces += [(start, min(stop, low - 1)), (max(start, high + 1), stop)]
        spans = [(start, stop) for start, stop in pieces if start <= stop]
    return sorted(set(spans))


def _pair(fmt: Format, span: tuple[int, int]) -> Pair:
    return hex_texts(fmt, codes.from_ordinal(fmt, np.array(span, np.int64)))


def _nan_codes(fmt: Format) -> tuple[list[Pair], list[Pair]]:
    """The NaN codes as ranges: those that stand below the numbers, and those above them, by sign and magnitude."""
    match fmt.nan:
        case "none":
            return [], []
        case "negative_zero":
            return [], [[fmt.hex(fmt.sign_mask)] * 2]
    first = fmt.infinity_bits + 1 if fmt.infinity else fmt.magnitude_mask
    above = [[fmt.hex(first), fmt.hex(fmt.magnitude_mask)]]
    below = [[fmt.hex(fmt.sign_mask | fmt.magnitude_mask), fmt.hex(fmt.sign_mask | first)]] if fmt.signed else []
    return below, above


def hex_texts(fmt: Format, bits: Bits) -> list[str]:
    """Bit patterns as text, in the width of the format."""
    digits = fmt.hex_digits
    if bits.dtype == WIDE:
        return [f"0x{(high << 64) | low:0{digits}x}" for low, high in bits.tolist()]
    return [f"0x{code:0{digits}x}" for code in bits.tolist()]


def _clauses(record: Operation, question: Question) -> list[list[str]]:
    """For each element the clauses that govern it; those of the signature where no case singles it out."""
    n = len(question.operands[0])
    with np.errstate(all="ignore"):
        cases = record.cases(question.signature, question.operands)
    which: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(n, np.int64)
    for position, mask in enumerate(cases.values()):
        which |= mask.astype(np.int64) << position
    otherwise = list(record.clauses(question.signature))
    names = {
        key: [clause for position, clause in enumerate(cases) if key >> position & 1] or otherwise
        for key in np.unique(which).tolist()
    }
    return [names[key] for key in which.tolist()]


def _judgement(question: Question, allowed: AllowedSet, got: Bits) -> dict[str, list[Any]]:
    verdicts = allowed.judge(got)
    n = len(got)
    distances: list[int | None] = [None] * n
    if allowed.format.is_float:
        steps = allowed.distance(got).tolist()
        claimed = allowed.claimed.tolist()
        distances = [s if c and s != NOT_A_DISTANCE else None for s, c in zip(steps, claimed, strict=True)]
    suspects: list[list[str]] = [[] for _ in range(n)]
    wrong = np.flatnonzero(verdicts == Verdict.FORBIDDEN)
    if len(wrong):
        for name, explained in explanations(question, got, wrong):
            for row in wrong[explained].tolist():
                suspects[row].append(name)
    return {
        "verdict": [VERDICTS[verdict] for verdict in verdicts.tolist()],
        "distance_ulp": distances,
        "suspects": suspects,
    }


def explanations(question: Question, got: Bits, rows: Any) -> Iterable[tuple[str, Mask]]:
    """The named wrong rules that give some of these results, each with the mask of ``rows`` that it gives."""
    operands = [column[rows] for column in question.operands]
    for name, suspect in SUSPECTS.items():
        if suspect.fault and suspect.rule is not None and suspect.applies(question.signature):
            with np.errstate(all="ignore"):
                answers = suspect.rule(question.signature, operands)
            if answers is not None:
                explained = answers.judge(got[rows]) == Verdict.ALLOWED
                if explained.any():
                    yield name, explained
