"""Digests: where every input has one right result, one line for all of them.

Outputs of up to 2^16 inputs are hashed whenever the files are generated. Those of 2^32 inputs take minutes; their
digests are kept in ``sources/digests-32.json``, and `halfulp vectors verify --exhaustive` derives them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import WIDE, Bits, Format
from halfulp.oracle.ops import OPERATIONS, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.vectors import slow
from halfulp.vectors.files import Case, Content, Group, Settings, content
from halfulp.vectors.identity import asked, identity
from halfulp.vectors.operations import operation_fields, storage_casts
from halfulp.vectors.ranges import nan_spans
from halfulp.vectors.sources import kept_digests

PIECE = 1 << 20
"""Results that are hashed together."""

SHORT_STRIDE, STRIDE = 97, 65537
"""Of 2^16 and of 2^32 inputs every so many is in the sample: primes, so that every field takes all its values."""

SHORT, LONG = "digests/exhaustive-16", "digests/exhaustive-32"

CARRY_BITS = ("bitcast", "select")
"""Operations whose NaN results are told apart."""


@cache
def short_signatures() -> tuple[Signature, ...]:
    """Operations with at most 2^16 tuples of operands, each of which has a single right result."""
    found = []
    for signature in (*signatures(), *storage_casts()):
        formats = signature.formats
        if prod(fmt.code_count for fmt in formats) <= 1 << 16 and not OPERATIONS[signature.op].costly(signature):
            with np.errstate(all="ignore"):
                allowed = OPERATIONS[signature.op].allowed(signature, inputs_at(formats, 0, 1 << 16))
            if allowed.single.all():
                found.append(signature)
    return tuple(sorted(found, key=asked))


def long_signatures() -> tuple[Signature, ...]:
    """Operations with 2^32 operands whose digests are kept."""
    found = [Signature("cast", ("f32",), dst) for dst in ("bf16", "f16", "f64", "f8e5m2")]
    found += [Signature("cast", (src,), "f32") for src in ("i32", "u32")]
    found += [Signature("cast_saturate", ("f32",), "f8e4m3fn"), Signature("sqrt", ("f32",), "f32")]
    return tuple(sorted(found, key=asked))


def count_of(formats: Sequence[Format]) -> int:
    return prod(fmt.code_count for fmt in formats)


def inputs_at(formats: Sequence[Format], first: int, count: int, stride: int = 1) -> list[Bits]:
    """Tuples of codes in order, the last operand running fastest: every ``stride``-th from position ``first`` on."""
    total = count_of(formats)
    at = np.arange(first, min(first + count * stride, total), stride, dtype=np.uint64)
    columns: list[Bits] = []
    for fmt in reversed(formats):
        columns.insert(0, (at & np.uint64(fmt.code_count - 1)).astype(fmt.storage))
        at = at >> np.uint64(fmt.width)
    return columns


Evaluate = Callable[[Signature, Sequence[Bits]], Bits]


def nan_of(signature: Signature) -> int | None:
    """What stands for every NaN of the results."""
    fmt = signature.result_format
    return fmt.nan_bits if fmt.is_float and fmt.nan != "none" and signature.op not in CARRY_BITS else None


def by_arrays(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The results by the rules of the records.

    Raises:
        ValueError: an operand has not one right result.
    """
    with np.errstate(all="ignore"):
        allowed = OPERATIONS[signature.op].allowed(signature, operands)
    if not (allowed.claim is None and allowed.member is None and not allowed.ranges) and not allowed.single.all():
        raise ValueError(f"{signature.id} has an operand with several right results, or none")
    fmt, nan = signature.result_format, nan_of(signature)
    if nan is None:
        return allowed.nearest
    return np.where(codes.is_nan(fmt, allowed.nearest), fmt.storage.type(nan), allowed.nearest)


def by_elements(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """The results by the slow path."""
    fmt = signature.result_format
    found = []
    for row in zip(*(column.tolist() for column in operands), strict=True):
        one = slow.expected(signature, row)
        if one is None or (one.allowed != ((one.nearest, one.nearest),) and one.allowed != nan_spans(fmt)):
            raise ValueError(f"{signature.id} of {row} has not one right result")
        found.append(one.nearest)
    return np.array(found, np.uint64).astype(fmt.storage)


def _bytes(results: Bits) -> bytes:
    return np.ascontiguousarray(results).astype(results.dtype.newbyteorder("<")).tobytes()


def digest(signature: Signature, evaluate: Evaluate = by_arrays, progress: Callable[[int], None] | None = None) -> str:
    """SHA-256 over the SHA-256s of pieces of 2^20 results."""
    total = hashlib.sha256()
    for first in range(0, count_of(signature.formats), PIECE):
        results = evaluate(signature, inputs_at(signature.formats, first, PIECE))
        total.update(hashlib.sha256(_bytes(results)).digest())
        if progress is not None:
            progress(first + PIECE)
    return total.hexdigest()


def stride_of(signature: Signature) -> int:
    return STRIDE if count_of(signature.formats) > 1 << 16 else SHORT_STRIDE


def sample(signature: Signature, evaluate: Evaluate = by_arrays) -> str:
    """SHA-256 of every `stride_of`-th result."""
    stride = stride_of(signature)
    count = -(-count_of(signature.formats) // stride)
    return hashlib.sha256(_bytes(evaluate(signature, inputs_at(signature.formats, 0, count, stride)))).hexdigest()


def digest_id(signature: Signature) -> str:
    return identity(f"digest {asked(signature)}")


def case_of(signature: Signature, sha256: str, of_sample: str) -> Case:
    nan = nan_of(signature)
    fmt = signature.result_format
    return {
        "id": digest_id(signature),
        "operation": operation_fields(signature),
        "inputs": f"{count_of(signature.formats):#x}",
        "element_bytes": 16 if fmt.storage == WIDE else fmt.storage.itemsize,
        "nan": "" if nan is None else fmt.hex(nan),
        "sha256": sha256,
        "sample_stride": stride_of(signature),
        "sample_sha256": of_sample,
    }


def _cases(name: str) -> Iterator[tuple[tuple[str, ...], Case]]:
    known = kept_digests()
    for signature in short_signatures() if name == SHORT else long_signatures():
        clauses = tuple(sorted(OPERATIONS[signature.op].clauses(signature)))
        if name == SHORT:
            yield clauses, case_of(signature, digest(signature), sample(signature))
        elif asked(signature) in known:
            yield clauses, case_of(signature, known[asked(signature)], sample(signature))


def generate(name: str, settings: Settings) -> Content:
    """The digests of one size."""
    groups: dict[tuple[str, ...], list[Case]] = {}
    for clauses, case in _cases(name):
        groups.setdefault(clauses, []).append(case)
    formats = {dtype for s in (*short_signatures(), *long_signatures()) for dtype in (*s.args, s.result)}
    size = "2^16" if name == SHORT else "2^32"
    return content(
        "digest",
        name,
        f"All results of operations with up to {size} inputs, where each has one right result.",
        [Group(", ".join(clauses), clauses, cases) for clauses, cases in sorted(groups.items())],
        settings,
        oracle="exact rational arithmetic, rounded once",
        formats=formats,
    )


def signature_of(case: Case) -> Signature:
    """The operation of a case."""
    fields: dict[str, Any] = case["operation"]
    return Signature(fields["op"], tuple(fields["args"]), fields["result"], tuple(sorted(fields["attrs"].items())))
