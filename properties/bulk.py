"""The runs of a signature: which programs are called with which elements, and what each result may be.

Nothing here depends on a backend, so that the runs of a signature are made once and used for every backend, mode and
optimisation level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import AllowedSet
from halfulp.properties import inputs, modes
from halfulp.properties.plan import Plan

LENGTHS = (1, 7, 33)
"""Short arrays, run besides the full ones: below, next to and above the width of a vector."""

CONSTANTS = 16
"""Lanes of a program with constants beside run-time operands."""

FOLDED = 64
"""Lanes of a program that consists of constants alone: one element each."""

SCALARS = 4
"""Values of a scalar operand, one call each."""


@dataclass(frozen=True)
class Run:
    """One call of a program.

    Attributes:
        inputs: what is passed, in the order of the program's inputs.
        operands: the operation's operands for each result, shape (n,): the results are the outputs one after another.
        allowed: the set of each result.
        cases: claimed results per clause. Empty for repetitions of elements that another run counts.
    """

    inputs: tuple[Bits, ...]
    operands: tuple[Bits, ...]
    allowed: AllowedSet
    cases: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Form:
    """A signature in one mode.

    Attributes:
        mode: ``"array"``, ``"const<i>"`` or ``"scalar<i>"``.
        kernel: the program.
        runs: its calls. Empty where no constant has a claim with any element.
        fixed: position of the operand that is a constant or a scalar.
    """

    mode: str
    kernel: Kernel
    runs: tuple[Run, ...]
    fixed: int | None = None


def chapter_of(signature: Signature) -> str:
    """The chapter a signature is reported under: of operations on integers and floats, 4 or 5 by the operands."""
    chapter = operation(signature.op).chapter
    if chapter != "4/5":
        return chapter
    return "5" if format_of(signature.args[-1]).is_float else "4"


def _run(signature: Signature, passed: Sequence[Bits], operands: Sequence[Bits]) -> Run:
    record = operation(signature.op)
    allowed = record.allowed(signature, operands)
    claimed = allowed.claim
    cases = {
        clause: int(np.count_nonzero(mask if claimed is None else mask & claimed))
        for clause, mask in record.cases(signature, operands).items()
    }
    return Run(tuple(passed), tuple(operands), allowed, cases)


def _prefix(run: Run, length: int) -> Run:
    head = slice(0, length)
    columns = tuple(np.ascontiguousarray(column[head]) for column in run.operands)
    return Run(columns, columns, run.allowed.take(head))


@lru_cache(maxsize=24)
def forms(signature: Signature, plan: Plan) -> tuple[Form, ...]:
    """Every mode of a signature, ``array`` first. The array form has the first block only; see `further_runs`."""
    kernel = operation(signature.op).kernel(signature)
    columns = inputs.elements(signature, plan)
    whole = _run(signature, columns, columns)
    short = tuple(_prefix(whole, length) for length in LENGTHS if length < len(columns[0]))
    found = [Form("array", kernel, (whole, *short))]
    for position in range(len(columns)):
        found.append(_constants(signature, kernel, columns, position))
        found.append(_scalars(signature, kernel, columns, position))
    return tuple(found)


def further_runs(signature: Signature, plan: Plan) -> Iterator[Run]:
    """The blocks of run-time arrays after the first."""
    blocks = inputs.blocks(signature, plan)
    next(blocks)
    for columns in blocks:
        yield _run(signature, columns, columns)


def _constants(signature: Signature, kernel: Kernel, columns: Sequence[Bits], position: int) -> Form:
    alone = len(columns) == 1
    codes = inputs.sharp_values(signature, position, columns, FOLDED if alone else CONSTANTS)
    if not len(codes):
        return Form(f"const{position}", kernel, ())
    program = modes.with_constants(kernel, position, codes)
    if alone:
        run = _run(signature, (), (codes,))
    else:
        thin = inputs.thinned(columns, len(columns[0]) // len(codes))
        n = len(thin[0])
        operands = [np.tile(column, len(codes)) for column in thin]
        operands[position] = np.repeat(codes, n)
        run = _run(signature, [c for at, c in enumerate(thin) if at != position], operands)
    return Form(f"const{position}", program, (run,), position)


def _scalars(signature: Signature, kernel: Kernel, columns: Sequence[Bits], position: int) -> Form:
    alone = len(columns) == 1
    codes = inputs.sharp_values(signature, position, columns, 4 * SCALARS if alone else 2 * SCALARS)
    codes = codes if alone else codes[:: max(1, len(codes) // SCALARS)][:SCALARS]
    runs = []
    thin = inputs.thinned(columns, len(columns[0]) // SCALARS)
    for code in codes:
        scalar = np.array(code, codes.dtype)
        operands = [scalar.reshape(1)] if alone else list(thin)
        if not alone:
            operands[position] = np.full(len(thin[0]), code, codes.dtype)
        passed = [scalar if at == position else column for at, column in enumerate(thin)]
        runs.append(_run(signature, passed, operands))
    return Form(f"scalar{position}", modes.with_scalar(kernel, position), tuple(runs), position)
