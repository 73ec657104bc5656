"""Which named wrong rules explain a failure?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Apply, Constant, Kernel
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import Mask, Verdict
from halfulp.oracle.suspects.record import Suspect

SAMPLE = 4096
"""Failing elements, and passing ones, that are looked at."""

CARRY_BITS = ("select", "bitcast")
"""Operations whose NaN results are told apart."""

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]
Ranked = tuple[str, float, float]


def diagnose(
    suspects: Iterable[Suspect],
    kernel: Kernel,
    inputs: Sequence[Bits],
    outputs: Sequence[Bits],
    verdicts: Sequence[Verdicts],
) -> list[Ranked]:
    """Rank suspects by what they explain.

    Args:
        suspects: those to try, in the order that decides between equals.
        kernel: the program that ran.
        inputs, outputs: what went in and came out: shape (n,) or (), as the kernel says.
        verdicts: the verdict on each output, shape (n,) or (1,).

    Returns:
        (name, share of forbidden results that the suspect gives too, share of allowed results that it does not give),
        best first. Only suspects that explain a larger share than they contradict.
    """
    rows = _sample(inputs, verdicts)
    some = [bits if bits.ndim == 0 else bits[rows] for bits in inputs]
    got = [_pick(bits, rows) for bits in outputs]
    verdict = [_pick(array, rows) for array in verdicts]
    failing = [array == Verdict.FORBIDDEN for array in verdict]
    passing = [array == Verdict.ALLOWED for array in verdict]
    found: list[Ranked] = []
    if not _count(failing):
        return found
    for suspect in suspects:
        agrees = _agreement(suspect, kernel, some, got)
        if agrees is None:
            continue
        explained = _count(f & a for f, a in zip(failing, agrees, strict=True)) / _count(failing)
        against = _count(p & ~a for p, a in zip(passing, agrees, strict=True))
        contradicted = against / max(1, _count(passing))
        if explained > contradicted:
            found.append((suspect.name, explained, contradicted))
    return sorted(found, key=lambda entry: (entry[2] - entry[1], entry[2]))


def _count(masks: Iterable[Mask]) -> int:
    return sum(int(np.count_nonzero(mask)) for mask in masks)


def _sample(inputs: Sequence[Bits], verdicts: Sequence[Verdicts]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Rows of the arrays: evenly spaced failing ones, and as many others."""
    length = max([len(bits) for bits in inputs if bits.ndim] + [len(array) for array in verdicts])
    failed = np.zeros(length, bool)
    for array in verdicts:
        failed |= np.broadcast_to(array == Verdict.FORBIDDEN, (length,)) if len(array) in (1, length) else False
    picked = []
    for rows in (np.flatnonzero(failed), np.flatnonzero(~failed)):
        picked.append(rows[:: max(1, -(-len(rows) // SAMPLE))])
    return np.sort(np.concatenate(picked))


def _pick(array: Any, rows: np.ndarray[Any, np.dtype[np.intp]]) -> Any:
    """The sampled rows of a result, or its only one."""
    array = np.atleast_1d(array)
    return array if len(array) == 1 else array[rows]


def nodes(kernel: Kernel) -> Iterator[Signature]:
    """The operations of a kernel."""
    for value in kernel.values:
        if isinstance(value, Apply):
            args = tuple(kernel.type_of(arg).dtype for arg in value.args)
            yield Signature(value.op, args, value.dtype, value.attrs)


def _agreement(suspect: Suspect, kernel: Kernel, inputs: Sequence[Bits], got: Sequence[Bits]) -> list[Mask] | None:
    """Where each output is what the suspect gives; None where it has no part in the kernel."""
    if suspect.kernel_rule is not None:
        outputs = suspect.kernel_rule(kernel, inputs)
        return None if outputs is None else _equal(kernel, outputs, got)
    if suspect.rule is None or not any(map(suspect.applies, nodes(kernel))):
        return None
    signature = _single(kernel)
    if signature is None:
        return _equal(kernel, evaluate(kernel, inputs, suspect.override), got)
    # One operation on run-time arrays: the suspect's whole set counts, not its likeliest value alone.
    return [suspect.rule(signature, inputs).judge(got[0]) == Verdict.ALLOWED]


def _single(kernel: Kernel) -> Signature | None:
    """The signature of a kernel that is one operation on its inputs in order, else None."""
    node = kernel.values[-1]
    arity = len(kernel.values) - 1
    if not isinstance(node, Apply) or any(isinstance(v, (Apply, Constant)) for v in kernel.values[:-1]):
        return None
    if node.args != tuple(range(arity)) or kernel.outputs != (arity,) or len({t.dims for t in kernel.input_types}) > 1:
        return None
    if kernel.input_types[0].dims == ():
        return None
    return next(nodes(kernel))


def _equal(kernel: Kernel, outputs: Sequence[Bits], got: Sequence[Bits]) -> list[Mask]:
    agrees = []
    for position, mine, theirs in zip(kernel.outputs, outputs, got, strict=True):
        same = np.atleast_1d(mine) == theirs
        fmt, node = format_of(kernel.type_of(position).dtype), kernel.values[position]
        if fmt.is_float and not (isinstance(node, Apply) and node.op in CARRY_BITS):
            same = same | (codes.is_nan(fmt, np.atleast_1d(mine)) & codes.is_nan(fmt, theirs))
        agrees.append(np.broadcast_to(same, theirs.shape))
    return agrees
