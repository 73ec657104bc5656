"""Which inputs become cases: few, and each for a reason.

Candidates are the critical points of an operation's record, inputs that somebody found, and draws. Of them are taken:
all that are forced; for each suspect those that tell it from the truth, first those that tell it from other suspects
too; one of each class of operands and results; and then others until there are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import STORAGE_ONLY, WIDE, Bits, Format
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import AllowedSet, Mask, Verdict
from halfulp.oracle.suspects import FAULTS
from halfulp.oracle.suspects.record import Suspect
from halfulp.vectors import draw

KILLERS = 2
"""Cases for each suspect, where as many exist."""


@dataclass
class Pool:
    """Candidates for the cases of one file.

    Attributes:
        columns: the operands, shape (n,) each; no tuple twice, and something is required of each.
        kinds: operands and results with their formats.
        single: shape (n,), whether just one result is right.
        forced: positions that are taken in any case.
        kills: for each suspect where it is wrong for sure.
        chosen: positions taken so far.
    """

    columns: list[Bits]
    kinds: list[tuple[Format, Bits]]
    single: Mask
    forced: list[int]
    kills: dict[str, Mask]
    chosen: dict[int, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.single)


def suspects_of(signature: Signature) -> list[Suspect]:
    """The wrong rules that have something to say of an operation.

    They are written for the 16 scalars. In another format one may ask for a NaN or a zero that is not there: then it
    says nothing.
    """
    found = [record for record in FAULTS.values() if record.rule is not None and record.applies(signature)]
    if not {*signature.args, signature.result} & set(STORAGE_ONLY):
        return found
    return [record for record in found if _speaks(record, signature)]


def _speaks(suspect: Suspect, signature: Signature) -> bool:
    try:
        with np.errstate(all="ignore"):
            suspect.override(signature, OPERATIONS[signature.op].critical(signature))
    except (ValueError, OverflowError, TypeError):
        return False
    return True


def killed(suspect: Suspect, signature: Signature, columns: Sequence[Bits], allowed: AllowedSet) -> Mask:
    """Where a suspect's result is forbidden."""
    wrong = suspect.override(signature, columns)
    assert wrong is not None
    return np.asarray(allowed.judge(wrong) == Verdict.FORBIDDEN)


def distinct(columns: Sequence[Bits]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The positions of the first of equal tuples, ascending."""
    # Columns may be structured (128 bits); rows are compared as bytes.
    table = np.concatenate([np.ascontiguousarray(c).view(np.uint8).reshape(len(c), -1) for c in columns], axis=1)
    rows = np.ascontiguousarray(table).view([("", f"V{table.shape[1]}")]).ravel()
    _, first = np.unique(rows, return_index=True)
    return np.sort(first)


def pool(signature: Signature, columns: Sequence[Bits], forced: int) -> tuple[Pool, AllowedSet]:
    """Candidates for an operation, without those of which nothing is required; the first ``forced`` are forced."""
    keep = distinct(columns)
    some = [column[keep] for column in columns]
    with np.errstate(all="ignore"):
        allowed = OPERATIONS[signature.op].allowed(signature, some)
        # Where every result is at least unspecified no result is wrong, and nothing can be tested.
        useful = np.flatnonzero(allowed.claimed if allowed.anything is None else allowed.claimed & ~allowed.anything)
        some = [np.ascontiguousarray(column[useful]) for column in some]
        allowed = allowed.take(useful)
        must = np.flatnonzero(keep[useful] < forced).tolist()
        kills = {record.name: killed(record, signature, some, allowed) for record in suspects_of(signature)}
    kinds = list(zip((*signature.formats, signature.result_format), (*some, allowed.nearest), strict=True))
    return Pool(some, kinds, allowed.single, must, kills), allowed


def _classes(fmt: Format, bits: Bits) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A small number for what kind of value each code is."""
    if fmt.storage == WIDE:
        return np.asarray((bits["hi"] >> np.uint64(62)).astype(np.int64))
    if not fmt.is_float:
        value = bits.astype(np.uint64)
        top = np.uint64(fmt.code_count - 1)
        edge = np.uint64(1 << (fmt.width - 1))
        return np.select([value == 0, value == 1, value == top, value == edge, value < edge], [0, 1, 2, 3, 4], 5)
    zero, subnormal = codes.is_zero(fmt, bits), codes.is_subnormal(fmt, bits)
    infinite, nan = codes.is_infinite(fmt, bits), codes.is_nan(fmt, bits)
    kind = np.select([nan, infinite, zero, subnormal], [1, 2, 3, 4], 5)
    return np.where(nan, kind, kind + 8 * codes.is_negative(fmt, bits))


def _take(found: Pool, positions: Iterable[int], count: int) -> None:
    for position in positions:
        if count <= 0:
            return
        if position not in found.chosen:
            found.chosen[position] = None
            count -= 1


def select(found: Pool, wanted: int) -> list[int]:
    """The positions that become cases, ascending: ``wanted`` of them, or more where that takes more."""
    if len(found) <= wanted:
        found.chosen = dict.fromkeys(range(len(found)))
        return list(found.chosen)
    found.chosen = dict.fromkeys(found.forced)
    order = np.argsort(draw.mixed(found.columns), kind="stable")
    total = np.zeros(len(found), np.int64)
    for mask in found.kills.values():
        total += mask
    # A case that kills few suspects says more of the one that it kills.
    sharp = order[np.argsort(total[order], kind="stable")]
    for mask in found.kills.values():
        missing = KILLERS - sum(1 for position in found.chosen if mask[position])
        _take(found, sharp[mask[sharp]].tolist(), missing)
    key = np.zeros(len(found), np.int64)
    for fmt, bits in found.kinds:
        key = key * 16 + _classes(fmt, bits)
    key = key * 2 + found.single
    _, first = np.unique(key[order], return_index=True)
    _take(found, order[np.sort(first)].tolist(), min(len(first), max(0, wanted - len(found.chosen))))
    _take(found, order.tolist(), wanted - len(found.chosen))
    return sorted(found.chosen)


def alive(found: Pool) -> list[str]:
    """Suspects that no chosen case kills."""
    return [name for name, mask in found.kills.items() if not any(mask[position] for position in found.chosen)]
