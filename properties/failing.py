"""A program that a backend computes wrongly, taken apart: its simplest element, its token, the rules behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.adapters.protocol import Unsupported
from halfulp.oracle import codes, suspects
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.judge import allowed_sets, judge
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.sets import AllowedSet, Verdict
from halfulp.properties.execute import Broken, Program
from halfulp.properties.minimise import Element, complexity, minimise
from halfulp.properties.replay import Recorded, encode
from halfulp.properties.results import Example

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]

NAN_MISMATCH = 2**64 - 1
"""The distance between a number and a NaN."""

ALONE = (1, 64)
"""Lengths of the arrays in which a failing element is tried again: by itself, and filling vectors."""

CONSIDERED = 512
"""Failing elements among which the start of a minimisation is chosen."""


@dataclass(frozen=True)
class Failing:
    """A compiled program of which some element is forbidden.

    Attributes:
        kernel: the program.
        program: it, compiled.
    """

    kernel: Kernel
    program: Program

    @property
    def formats(self) -> list[Format]:
        return [format_of(type_.dtype) for type_ in self.kernel.input_types]

    def passed(self, columns: Sequence[Bits]) -> list[Bits]:
        """Inputs for columns of shape (n,): those of rank 0 get the first row."""
        types = self.kernel.input_types
        return [c if t.dims else c[:1].reshape(()) for c, t in zip(columns, types, strict=True)]

    def columns(self, element: Element, length: int) -> list[Bits]:
        return [np.full(length, code, fmt.storage) for code, fmt in zip(element, self.formats, strict=True)]

    def outputs(self, columns: Sequence[Bits]) -> list[Bits] | None:
        """What comes out; None where the backend gives up."""
        answer = self.program(self.passed(columns))
        return None if isinstance(answer, (Unsupported, Broken)) else answer

    def fails(self, columns: list[Bits]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Shape (n,): True where some output is forbidden."""
        length = len(columns[0]) if columns else 1
        wrong = np.zeros(length, bool)
        outputs = self.outputs(columns)
        if outputs is not None:
            for verdicts in judge(self.kernel, self.passed(columns), outputs):
                wrong |= verdicts == Verdict.FORBIDDEN
        return wrong

    def simplest(self, element: Element) -> Element:
        fixed = [at for at, type_ in enumerate(self.kernel.input_types) if not type_.dims]
        return minimise(self.formats, element, self.fails, fixed)

    def reproduces(self, element: Element) -> int | None:
        """The least length of an array of nothing but this element in which it fails; None if there is none."""
        return next((n for n in ALONE if self.fails(self.columns(element, n)).any()), None)

    def example(self, element: Element, length: int = 1) -> Example:
        """The element with what came out of an array of ``length`` copies of it."""
        columns = self.columns(element, length)
        outputs = self.outputs(columns)
        allowed = allowed_sets(self.kernel, self.passed(columns))
        inputs = tuple(fmt.hex(code) for fmt, code in zip(self.formats, element, strict=True))
        texts = tuple(allowed_text(one, 0) for one in allowed)
        if outputs is None:
            return Example(inputs, (), texts)
        row = int(self.fails(columns).argmax())
        got = [int(out.reshape(-1)[row if out.ndim else 0]) for out in outputs]
        steps = [distance(one.take(np.array([0])), code) for one, code in zip(allowed, got, strict=True)]
        known = [step for step in steps if step is not None]
        formats = [format_of(type_.dtype) for type_ in self.kernel.output_types]
        return Example(
            inputs,
            tuple(fmt.hex(code) for fmt, code in zip(formats, got, strict=True)),
            texts,
            max(known) if known else None,
        )

    def token(self, id_: str, clause: str, level: int, element: Element, length: int) -> str:
        inputs = self.passed(self.columns(element, length))
        return encode(Recorded(id_, clause, self.kernel, level, tuple(inputs)))


def distance(allowed: AllowedSet, code: int) -> int | None:
    """Steps from the nearest result of one element; None for integers and where a NaN meets a number."""
    if not allowed.format.is_float:
        return None
    steps = int(allowed.distance(np.array([code], allowed.format.storage))[0])
    return None if steps == NAN_MISMATCH else steps


def allowed_text(allowed: AllowedSet, row: int) -> str:
    """What an element may be, e.g. ``0x3f80 or 0x3f82..0x3f83``."""
    fmt = allowed.format
    one = allowed.take(np.array([row]))
    if not one.claimed[0]:
        return "anything"
    texts = []
    any_nan = bool(one.accepts_nan[0])
    near_nan = fmt.is_float and bool(codes.is_nan(fmt, one.nearest)[0])
    if (one.member is None or one.member[0]) and not (any_nan and near_nan):
        texts.append(fmt.hex(int(one.nearest[0])))
    for low, high in one.ranges:
        if low[0] <= high[0]:
            ends = [fmt.hex(int(codes.from_ordinal(fmt, end)[0])) for end in (low, high)]
            texts.append(ends[0] if ends[0] == ends[1] else f"{ends[0]}..{ends[1]}")
    if any_nan:
        texts.append("NaN")
    return " or ".join(dict.fromkeys(texts)) or "nothing"


def least_complex(formats: Sequence[Format], columns: Sequence[Bits]) -> Element:
    """The simplest of some failing elements."""
    if not columns:
        return ()
    rows = range(0, len(columns[0]), max(1, len(columns[0]) // CONSIDERED))
    found = [tuple(int(column[row]) for column in columns) for row in rows]
    return min(found, key=lambda e: sum(complexity(f, c) for f, c in zip(formats, e, strict=True)))


def diagnosed(
    kernel: Kernel, inputs: Sequence[Bits], outputs: Sequence[Bits], verdicts: Sequence[Verdicts]
) -> list[tuple[str, float, float]]:
    """The named wrong rules that explain forbidden results, best first, with the two shares of `Finding.suspects`."""
    ranked = suspects.diagnose(kernel, inputs, outputs, verdicts)
    return [(name, float(explained), float(contradicted)) for name, explained, contradicted in ranked]
