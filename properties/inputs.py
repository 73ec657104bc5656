"""The elements that a signature is tried on.

Everything that can be enumerated is; the rest is drawn by generators of our own, seeded by the plan's seed and the
signature's id, together with the critical points of the operation's record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature
from halfulp.properties import draws
from halfulp.properties.plan import Plan, generator

ILLEGAL_SHARE = 1 / 32
"""How many drawn elements may be without a claim: enough to see that they do no harm."""

TAIL = 13
"""Elements beyond a round number, so that the remainder of every vector loop runs too."""


def elements(signature: Signature, plan: Plan) -> list[Bits]:
    """The operands of the first block, equally long arrays of shape (n,).

    Every tuple of codes where there are no more than ``plan.enumerate_up_to`` of them, else draws and critical
    points, n near ``plan.block``.
    """
    return next(blocks(signature, plan))


def blocks(signature: Signature, plan: Plan) -> Iterator[list[Bits]]:
    """Blocks of elements, ``plan.elements`` in all where the operands cannot be enumerated; fewer where it is slow to
    judge them."""
    formats = signature.formats
    if prod(fmt.code_count for fmt in formats) <= plan.enumerate_up_to:
        yield every_tuple(formats)
        return
    critical = _critical(signature)
    wanted = plan.costly_elements if operation(signature.op).costly(signature) else plan.elements
    block = min(plan.block, wanted)
    for number in range(wanted // block):
        rng = generator(plan, signature.id, str(number))
        drawn = _mostly_claimed(signature, rng, block + TAIL)
        if number:
            yield drawn
        else:
            yield [_packed(np.concatenate(column)) for column in zip(critical, drawn, strict=True)]


def every_tuple(formats: Sequence[Format]) -> list[Bits]:
    """All tuples of codes, the last operand running fastest."""
    columns = np.meshgrid(*(np.arange(fmt.code_count, dtype=np.uint64) for fmt in formats), indexing="ij")
    return [_packed(column.ravel().astype(fmt.storage)) for column, fmt in zip(columns, formats, strict=True)]


def sharp_values(signature: Signature, position: int, columns: Sequence[Bits], count: int) -> Bits:
    """Up to ``count`` values for an operand that becomes a constant or a scalar: special ones, then some of its column.

    Only values with which some element has a claim: a program in which a constant is always illegal may be refused.
    """
    fmt = signature.formats[position]
    pool = draws.specials(fmt)
    drawn = thinned(columns, 2 * count)[position]
    special = pool[np.linspace(0, len(pool) - 1, min(len(pool), count // 2 + count // 4)).astype(int)]
    # Specials first; dict keeps the order and drops repetitions.
    codes = list(dict.fromkeys(np.concatenate([special, drawn]).tolist()))
    sample = thinned(columns, 64)
    kept: list[int] = []
    for code in codes:
        if len(kept) == count:
            break
        trial = list(sample)
        trial[position] = np.full(len(sample[0]), code, fmt.storage)
        if claimed(signature, trial).any():
            kept.append(code)
    return np.array(kept, fmt.storage)


def thinned(columns: Sequence[Bits], count: int) -> list[Bits]:
    """Every k-th element, so that about ``count`` remain; k is odd, so that it shares no factor with a grid."""
    stride = max(1, len(columns[0]) // max(1, count)) | 1
    return [np.ascontiguousarray(column[::stride]) for column in columns]


def claimed(signature: Signature, operands: Sequence[Bits]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Shape (n,): elements of which the oracle claims something."""
    return operation(signature.op).allowed(signature, operands).claimed


def draw(signature: Signature, rng: np.random.Generator, count: int) -> list[Bits]:
    """``count`` tuples of operands, legal or not."""
    formats = signature.formats
    window = operation(signature.op).window
    if window is not None:
        return [_dwelling(rng, formats[0], window, count)]
    if len(formats) == 1:
        return [_single(rng, formats[0], signature.result_format, count)]
    if len(formats) == 3 and formats[0].is_float and len(set(formats)) == 1:
        return list(draws.triples(rng, formats[0], count))
    lead = [draws.values(rng, fmt, count) for fmt in formats[:-2]]
    return [*lead, *draws.pairs(rng, formats[-1], count)]


def _single(rng: np.random.Generator, source: Format, target: Format, count: int) -> Bits:
    """One operand: any value, values in the range of the result, and values around the result's midpoints."""
    if source.kind == "bool" or target.kind == "bool":
        return draws.values(rng, source, count)
    third = -(-count // 3)
    parts = [draws.values(rng, source, third), draws.around_targets(rng, source, target, third)]
    if source.is_float:
        if target.is_float:
            low, high = target.quantum_exponent - 3, target.max_exponent + 1
        else:
            low, high = -3, target.width
        parts.append(draws.floats(rng, source, third, (low, high)))
    else:
        parts.append(draws.ints(rng, source, third))
    return np.concatenate(parts)[rng.permutation(3 * third)[:count]]


def _dwelling(rng: np.random.Generator, fmt: Format, window: tuple[int, int], count: int) -> Bits:
    """One operand of a function: most of them where it is neither trivial nor out of range, some anywhere."""
    inside = draws.floats(rng, fmt, count, window)
    return np.where(rng.random(count) < 0.25, draws.values(rng, fmt, count), inside)


def _mostly_claimed(signature: Signature, rng: np.random.Generator, count: int) -> list[Bits]:
    """Draws of which all but a small share have a claim, as far as a few attempts can get there."""
    spare = round(count * ILLEGAL_SHARE)
    found: list[list[Bits]] = []
    have = 0
    for attempt in range(8):
        drawn = draw(signature, rng, count)
        legal = claimed(signature, drawn)
        keep = legal | (np.cumsum(~legal) <= spare) if attempt == 0 else legal
        found.append([column[keep] for column in drawn])
        have += int(keep.sum())
        if have >= count:
            break
    return [_packed(np.concatenate(column)[:count]) for column in zip(*found, strict=True)]


def _critical(signature: Signature) -> list[Bits]:
    """The record's critical points; conversions of one operand have few of them, others many."""
    return [np.asarray(column) for column in operation(signature.op).critical(signature)]


def _packed(column: Bits) -> Bits:
    """C-contiguous and read-only, as adapters get it."""
    packed = np.ascontiguousarray(column)
    packed.setflags(write=False)
    return packed
