"""Typing rules and small pieces that several families of operations share.

The clauses named here are those of dialect *intent* sections 1, 3 and 4: where a rule of the text refuses a program the
answer is `Refused`; where no text decides it is `Undecided`, and the suite asserts nothing about acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import CANONICAL, Bits, Format, format_of
from halfulp.oracle.ops.record import Accepted, Attrs, Refused, Signature, TypingAnswer, Undecided
from halfulp.oracle.sets import Mask

Typing = Callable[[tuple[str, ...], str | None, Attrs], TypingAnswer]


def element_type(dtype: str) -> Refused | None:
    """``intent:1-a`` and ``1-b``: what may be the dtype of a tensor at all."""
    if dtype in CANONICAL:
        return None
    if format_of(dtype).width < 8:
        return Refused("intent:1-b", f"{dtype} is not an addressable element type; carry it packed in u8")
    return Refused("intent:1-a", f"{dtype} is none of the 16 scalar types")


def not_elements(dtypes: Iterable[str]) -> Refused | None:
    return next((refused for dtype in dtypes if (refused := element_type(dtype))), None)


def mixed(dtypes: Sequence[str]) -> Refused | None:
    """``intent:3-g``: operands of different dtypes need an explicit cast."""
    if len(set(dtypes)) == 1:
        return None
    return Refused("intent:3-g", f"operands of different dtypes ({', '.join(dtypes)}) need a cast")


def same_dtype(
    *,
    refuse: Callable[[Format], Refused | None] = lambda fmt: None,
    undecided: Callable[[Format], str | None] = lambda fmt: None,
    result: str | None = None,
) -> Typing:
    """Operands of one dtype; the result has it too, unless ``result`` names another.

    Mixed dtypes are refused first, then what ``refuse`` refuses; ``undecided`` gives the reason why the text does
    not decide about a format.
    """

    def rule(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
        refused = not_elements(args) or mixed(args) or refuse(format_of(args[0]))
        if refused:
            return refused
        outcome = result or args[0]
        reason = undecided(format_of(args[0]))
        return Undecided(reason, outcome) if reason else Accepted(outcome)

    return rule


def bool_is_no_number(fmt: Format) -> Refused | None:
    """``intent:3-h``: the bool of a comparison is not a number."""
    if fmt.kind == "bool":
        return Refused("intent:3-h", "a bool is not a number; cast it or select between numbers")
    return None


def any_of(*shape_masks: Mask) -> Mask:
    result = shape_masks[0]
    for mask in shape_masks[1:]:
        result = result | mask
    return result


def subnormal_anywhere(fmt: Format, *arrays: Bits) -> Mask:
    return any_of(*(codes.is_subnormal(fmt, bits) for bits in arrays))


def special_codes(fmt: Format) -> list[int]:
    """The codes at which implementations part: ends of the range, of the binades and of the classes."""
    if not fmt.is_float:
        half, top = fmt.code_count >> 1, fmt.code_count - 1
        wanted = [0, 1, 2, 3, 7, 8, fmt.width - 1, half - 2, half - 1, half, half + 1, top - 2, top - 1, top]
        return sorted({code for code in wanted if 0 <= code <= top})
    one = fmt.bias << fmt.fraction_bits
    magnitudes = {0, 1, 2, 3, one - 1, one, one + 1, one + (1 << fmt.fraction_bits) // 2, fmt.max_finite_bits}
    for edge in (fmt.min_normal_bits, fmt.max_finite_bits, 2 << fmt.fraction_bits):
        magnitudes |= {edge - 1, edge, edge + 1}
    if fmt.infinity:
        magnitudes |= {fmt.infinity_bits, fmt.infinity_bits + 1}
    if fmt.nan in ("ieee", "all_ones"):
        magnitudes |= {fmt.nan_bits, fmt.magnitude_mask}
    kept = {m for m in magnitudes if 0 <= m <= fmt.magnitude_mask}
    return sorted(kept | {m | fmt.sign_mask for m in kept})


def as_bits(fmt: Format, values: Sequence[int]) -> Bits:
    """Codes as an array in the format's storage dtype."""
    if fmt.width > 64:
        rows = [(value & 0xFFFFFFFFFFFFFFFF, value >> 64) for value in values]
        return np.array(rows, fmt.storage)
    return np.array(values, np.uint64).astype(fmt.storage)


def crossed_specials(signature: Signature) -> tuple[Bits, ...]:
    """Every combination of special codes of the operands; of three operands, a diagonal of the third."""
    lists = [special_codes(fmt) for fmt in signature.formats]
    rows: list[tuple[int, ...]]
    if len(lists) == 3:
        pairs = [(a, b) for a in lists[1] for b in lists[2]]
        rows = [(lists[0][i % len(lists[0])], a, b) for i, (a, b) in enumerate(pairs)]
        if len(lists[0]) == 2:  # a condition: both ways
            rows = [(c, a, b) for c in lists[0] for a, b in pairs]
    elif len(lists) == 2:
        rows = [(a, b) for a in lists[0] for b in lists[1]]
    else:
        rows = [(a,) for a in lists[0]]
    return tuple(
        as_bits(fmt, list(column)) for fmt, column in zip(signature.formats, zip(*rows, strict=True), strict=True)
    )
