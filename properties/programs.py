"""Trials of programs of several operations: what a compiler may not do *between* operations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.adapters.protocol import Adapter, Rejected, Unsupported
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.judge import allowed_sets, judge
from halfulp.oracle.kernel import Apply, Kernel
from halfulp.oracle.sets import Verdict
from halfulp.properties import draws
from halfulp.properties.execute import Broken, Program, compile_all
from halfulp.properties.failing import ALONE, Failing, Verdicts, allowed_text, diagnosed, distance, least_complex
from halfulp.properties.minimise import Element
from halfulp.properties.results import Example, Finding, Tally, Trial

Rows = np.ndarray[Any, np.dtype[np.intp]]


@dataclass(frozen=True)
class Subject:
    """A program on trial.

    Attributes:
        id: ours, without the optimisation level.
        chapter: section of the dialect.
        clause: what a wrong result breaks.
        kernel: the program.
        inputs: what it is called with: shape (n,) or () as the kernel says.
    """

    id: str
    chapter: str
    clause: str
    kernel: Kernel
    inputs: tuple[Bits, ...]


def try_programs(adapter: Adapter, subjects: Sequence[Subject], *, explain: bool = True) -> Trial:
    """Run each program at the lowest and the highest optimisation level; one compilation for all, per level.

    Without ``explain`` findings have no simplest element, token or suspects.
    """
    trial = Trial()
    broken: set[str] = set()
    for level in sorted({min(adapter.opt_levels), max(adapter.opt_levels)}):
        programs = compile_all(adapter, [subject.kernel for subject in subjects], level)
        for subject, program in zip(subjects, programs, strict=True):
            tally = Tally(f"{subject.id}/O{level}", subject.chapter)
            trial.tallies.append(tally)
            start = time.perf_counter()
            finding = _try_program(subject, level, program, tally, explain and subject.id not in broken)
            tally.seconds = time.perf_counter() - start
            if finding is not None and subject.id not in broken:
                broken.add(subject.id)
                trial.findings.append(finding)
    return trial


def _try_program(
    subject: Subject, level: int, program: Program | Rejected | Unsupported | Broken, tally: Tally, explain: bool
) -> Finding | None:
    outputs = program(subject.inputs) if callable(program) else program
    kernel = subject.kernel
    dtypes = tuple(type_.dtype for type_ in (*kernel.input_types, *kernel.output_types))
    finding = Finding(tally.id, subject.clause, kernel=str(kernel), dtypes=dtypes)
    match outputs:
        case Unsupported():
            tally.state, tally.reason = "unsupported", outputs.reason
            return None
        case Rejected():
            tally.state, tally.reason = "rejected", outputs.reason
            finding.message = f"a program that the language accepts was refused: {outputs.reason.rstrip('.')}."
            return finding
        case Broken():
            tally.state, tally.reason = "not run", outputs.message
            finding.message = f"{outputs.message.rstrip('.')}."
            return finding
    verdicts = judge(kernel, subject.inputs, outputs)
    for one in verdicts:
        counts = np.bincount(one, minlength=4)
        tally.allowed += int(counts[Verdict.ALLOWED])
        tally.forbidden += int(counts[Verdict.FORBIDDEN])
        tally.unspecified += int(counts[Verdict.UNSPECIFIED])
        tally.no_claim += int(counts[Verdict.NO_CLAIM])
    tally.cases[subject.clause] = tally.judged
    if not tally.forbidden:
        return None
    finding.forbidden, finding.judged = tally.forbidden, tally.judged
    finding.clauses = {subject.clause: tally.forbidden}
    if explain and callable(program):
        _explain(finding, subject, level, program, outputs, verdicts)
    return finding


def _explain(
    finding: Finding,
    subject: Subject,
    level: int,
    program: Program,
    outputs: Sequence[Bits],
    verdicts: Sequence[Verdicts],
) -> None:
    length = max((len(one) for one in verdicts), default=1)
    wrong = np.zeros(length, bool)
    for one in verdicts:
        wrong |= one == Verdict.FORBIDDEN
    rows = np.flatnonzero(wrong)
    columns = [np.broadcast_to(bits, (length,))[rows] for bits in subject.inputs]
    failing = Failing(subject.kernel, program)
    start = least_complex(failing.formats, columns)
    end = failing.simplest(start)
    copies = failing.reproduces(end)
    if copies is None:
        end, copies = start, failing.reproduces(start)
    if copies is None:
        finding.message = "The element fails in the run, but not in a short array of its own."
        copies = max(ALONE)
    finding.simplest = failing.example(end, copies)
    finding.token = failing.token(finding.id, finding.clause, level, end, copies)
    finding.worst = _worst(subject, outputs, rows, length)
    finding.suspects = diagnosed(subject.kernel, subject.inputs, outputs, verdicts)


def _worst(subject: Subject, outputs: Sequence[Bits], rows: Rows, length: int) -> Example:
    """The failing element whose result is farthest from the nearest one, with what came out in the run."""
    kernel = subject.kernel
    sets = allowed_sets(kernel, subject.inputs)
    worst, farthest = int(rows[0]), -1
    for row in rows[:: max(1, len(rows) // 256)].tolist():
        steps = [
            distance(one.take(np.array([row % len(one)])), int(out.reshape(-1)[row % out.size]))
            for one, out in zip(sets, outputs, strict=True)
        ]
        most = max((step for step in steps if step is not None), default=0)
        if most > farthest:
            worst, farthest = row, most
    element: Element = tuple(int(bits.reshape(-1)[worst % bits.size]) for bits in subject.inputs)
    formats = [format_of(type_.dtype) for type_ in kernel.input_types]
    results = [format_of(type_.dtype) for type_ in kernel.output_types]
    got = tuple(f.hex(int(out.reshape(-1)[worst % out.size])) for f, out in zip(results, outputs, strict=True))
    return Example(
        tuple(f.hex(code) for f, code in zip(formats, element, strict=True)),
        got,
        tuple(allowed_text(one, worst % len(one)) for one in sets),
        farthest if any(f.is_float for f in results) else None,
    )


# Inputs.


def program_inputs(kernel: Kernel, rng: np.random.Generator, count: int) -> tuple[Bits, ...]:
    """Operands for a whole program: columns of one dtype are drawn together, so that they interact."""
    types = kernel.input_types
    columns: list[Bits | None] = [None] * len(types)
    for dtype in dict.fromkeys(type_.dtype for type_ in types):
        places = [at for at, type_ in enumerate(types) if type_.dtype == dtype]
        for at, column in zip(places, together(rng, format_of(dtype), len(places), count), strict=True):
            columns[at] = np.ascontiguousarray(column)
    return tuple(
        column if type_.dims else column[:1].reshape(())
        for type_, column in zip(types, columns, strict=True)
        if column is not None
    )


def together(rng: np.random.Generator, fmt: Format, width: int, count: int) -> list[Bits]:
    """``width`` columns of one format. Floats: pairs and triples that belong together, numbers of nearby exponents
    (sums and products of which stay in the range), and unrelated ones."""
    if not fmt.is_float:
        made: list[Bits] = []
        while len(made) < width:
            made += draws.pairs(rng, fmt, count)
        return made[:width]
    related: list[Bits] = []
    while len(related) < width:
        related += draws.triples(rng, fmt, count) if width - len(related) > 2 else draws.pairs(rng, fmt, count)
    reach = max(2, min(fmt.max_exponent // 3, 6))
    near = [draws.floats(rng, fmt, count, (-reach, reach)) for _ in range(width)]
    far = [draws.floats(rng, fmt, count) for _ in range(width)]
    kind = rng.integers(0, 8, count)
    return [
        np.select([kind < 4, kind < 7], [close, tied], apart)
        for close, tied, apart in zip(near, related, far, strict=False)
    ]


def is_fusible(kernel: Kernel) -> bool:
    """Whether some float sum has a product as an operand."""
    return any(
        isinstance(value, Apply)
        and value.op in ("add", "sub")
        and format_of(value.dtype).is_float
        and any(getattr(kernel.values[arg], "op", "") == "mul" for arg in value.args)
        for value in kernel.values
    )
