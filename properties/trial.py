"""Trials: a backend runs the elements of a signature in every mode, and every result gets a verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from halfulp.adapters.protocol import Adapter, Rejected, Unsupported
from halfulp.oracle import codes
from halfulp.oracle.formats import Bits
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import decided, operation
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import AllowedSet, Mask, Verdict
from halfulp.properties import modes
from halfulp.properties.bulk import Form, Run, chapter_of, forms, further_runs
from halfulp.properties.execute import Broken, Program, compile_all
from halfulp.properties.failing import (
    ALONE,
    NAN_MISMATCH,
    Failing,
    allowed_text,
    diagnosed,
    distance,
    least_complex,
)
from halfulp.properties.minimise import Element
from halfulp.properties.plan import Plan
from halfulp.properties.results import Example, Finding, Tally, Trial

__all__ = ["Plan", "Trial", "try_signature"]

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]

KEPT = 4096
"""Forbidden (and allowed) results kept for the choice of examples and for the diagnosis."""


@dataclass
class _Evidence:
    """Results of one program, for the examples and the diagnosis of a finding.

    Attributes:
        forbidden: columns of operands of forbidden results, and the results; up to `KEPT` of them.
        right: the same of allowed results of the same runs.
        worst: operands and result of the forbidden result of largest distance.
        farthest: that distance.
        clauses: how many forbidden results each clause governs.
        governed: how many results of the same runs each clause governs.
    """

    forbidden: list[tuple[list[Bits], Bits]] = field(default_factory=list)
    right: list[tuple[list[Bits], Bits]] = field(default_factory=list)
    worst: tuple[Element, int] | None = None
    farthest: int = -1
    clauses: dict[str, int] = field(default_factory=dict)
    governed: dict[str, int] = field(default_factory=dict)


# One signature.


def try_signature(adapter: Adapter, signature: Signature, plan: Plan, *, explain: bool = True) -> Trial:
    """Run a signature in every mode: arrays at the lowest and the highest optimisation level, else at the highest.

    Never raises for anything that the backend does; what it does wrong is a `Finding` of the trial. A clause of the
    signature under which no element has a claim is one too: such a run proves nothing. Without ``explain`` findings
    have counts and clauses, but no simplest element, token or suspects: that is many times faster.
    """
    trial = Trial()
    levels = sorted({min(adapter.opt_levels), max(adapter.opt_levels)})
    findings = _Findings()
    for level in levels:
        chosen = [form for form in forms(signature, plan) if form.mode == "array" or level == levels[-1]]
        programs = compile_all(adapter, [form.kernel for form in chosen], level)
        for form, program in zip(chosen, programs, strict=True):
            tally = Tally(f"{signature.id}/{form.mode}/O{level}", chapter_of(signature))
            trial.tallies.append(tally)
            work = _Work(adapter, signature, plan, form, level, tally, explain)
            finding = work.judge(program, findings)
            if finding is not None:
                findings.add(finding)
    trial.findings += findings.finished()
    trial.findings += _vacuous(signature, trial.tallies)
    return trial


class _Findings:
    """The findings of one trial. A mode that fails as an earlier one does is named there, not reported again."""

    def __init__(self) -> None:
        self._found: list[tuple[Finding, list[str]]] = []

    def repeats(self, found: Finding) -> bool:
        """Whether ``found`` breaks the same clause in the same way as an earlier finding, which then names it."""
        for other, likewise in self._found:
            if found.clause == other.clause and (found.forbidden > 0) == (other.forbidden > 0):
                mode = found.id.partition("]/")[2]
                likewise.append(f"{mode} ({found.forbidden} of {found.judged})" if found.forbidden else mode)
                return True
        return False

    def add(self, found: Finding) -> None:
        self._found.append((found, []))

    def finished(self) -> list[Finding]:
        for finding, likewise in self._found:
            if likewise:
                finding.message = f"{finding.message} Likewise in {', '.join(likewise)}.".strip()
        return [finding for finding, _ in self._found]


def _vacuous(signature: Signature, tallies: Sequence[Tally]) -> list[Finding]:
    """A clause that governs no claimed element of a whole run was not tested."""
    ran = [tally for tally in tallies if tally.state == "run"]
    if not ran:
        return []
    return [
        Finding(
            signature.id,
            clause,
            message="vacuous: not one element of this run has a claim under the clause, so nothing was tested.",
        )
        for clause in operation(signature.op).clauses(signature)
        if not any(tally.cases.get(clause) for tally in ran)
    ]


@dataclass
class _Work:
    """One form of a signature at one level."""

    adapter: Adapter
    signature: Signature
    plan: Plan
    form: Form
    level: int
    tally: Tally
    explain: bool

    def judge(self, program: Program | Rejected | Unsupported | Broken, earlier: _Findings) -> Finding | None:
        """Run and judge everything; the finding, unless an earlier one says the same of another mode."""
        clause = (operation(self.signature.op).clauses(self.signature) or ("",))[0]
        found: Finding | None
        if not self.form.runs:
            self.tally.state, self.tally.reason = "not run", "no constant has a claim with any element"
            return None
        if not callable(program):
            required = decided(self.signature)
            found = _not_compiled(program, self.tally, clause, self.form.kernel, required=required)
            return None if found is None or earlier.repeats(found) else found
        evidence = _Evidence()
        start = time.perf_counter()
        trouble = self._run(program, evidence)
        self.tally.seconds = time.perf_counter() - start
        if trouble is not None:
            found = _not_compiled(trouble, self.tally, clause, self.form.kernel, required=True)
            return None if found is None or earlier.repeats(found) else found
        if not self.tally.forbidden:
            return None
        found = self._counted(evidence)
        if earlier.repeats(found):
            return None
        if self.explain:
            self._explain(found, evidence, program)
        return found

    def _run(self, program: Program, evidence: _Evidence) -> Unsupported | Broken | None:
        runs = iter(self.form.runs)
        if self.form.mode == "array":
            runs = chain(runs, further_runs(self.signature, self.plan))
        for run in runs:
            trouble = _judge_run(self.signature, run, program, self.tally, evidence)
            if trouble is not None:
                return trouble
        return None

    def _counted(self, evidence: _Evidence) -> Finding:
        return Finding(
            id=self.tally.id,
            clause=governing(evidence.clauses, evidence.governed),
            kernel=str(self.form.kernel),
            dtypes=(*self.signature.args, self.signature.result),
            forbidden=self.tally.forbidden,
            judged=self.tally.judged,
            clauses={name: count for name, count in evidence.clauses.items() if count},
        )

    def _explain(self, finding: Finding, evidence: _Evidence, program: Program) -> None:
        """Minimise, and say which wrong rules fit."""
        columns = [np.concatenate(parts) for parts in zip(*(c for c, _ in evidence.forbidden), strict=True)]
        element = least_complex(self.signature.formats, columns)
        failing, start = self._alone(element, program)
        end = failing.simplest(start)
        length = failing.reproduces(end)
        if length is None:
            end = start
            length = failing.reproduces(end)
        if length is None:
            finding.message = "The element fails in the run, but not in a short array or program of its own."
            length = max(ALONE)
        finding.kernel = str(failing.kernel)
        finding.simplest = self._with_constant(failing.example(end, length), element)
        finding.token = failing.token(finding.id, finding.clause, self.level, end, length)
        assert evidence.worst is not None
        finding.worst = self._example(*evidence.worst)
        finding.suspects = self._suspects(evidence)

    def _alone(self, element: Element, program: Program) -> tuple[Failing, Element]:
        """The program that the element is minimised in, and the inputs there; of many lanes, the element's alone."""
        position = self.form.fixed
        if position is None or not self.form.mode.startswith("const"):
            return Failing(self.form.kernel, program), element
        kernel = operation(self.signature.op).kernel(self.signature)
        lane = modes.with_constant(kernel, position, element[position])
        (compiled,) = compile_all(self.adapter, [lane], self.level)
        inputs = (*element[:position], *element[position + 1 :])
        if callable(compiled):
            return Failing(lane, compiled), inputs
        return Failing(self.form.kernel, program), inputs

    def _with_constant(self, example: Example, element: Element) -> Example:
        """Examples show every operand of the operation, those that are constants of the program too."""
        position = self.form.fixed
        if position is None or not self.form.mode.startswith("const"):
            return example
        code = self.signature.formats[position].hex(element[position])
        inputs = (*example.inputs[:position], code, *example.inputs[position:])
        return replace(example, inputs=inputs, got=example.got[:1], allowed=example.allowed[:1])

    def _example(self, element: Element, got: int) -> Example:
        formats, fmt = self.signature.formats, self.signature.result_format
        columns = [np.array([code], f.storage) for code, f in zip(element, formats, strict=True)]
        allowed = operation(self.signature.op).allowed(self.signature, columns)
        inputs = tuple(f.hex(code) for f, code in zip(formats, element, strict=True))
        return Example(inputs, (fmt.hex(got),), (allowed_text(allowed, 0),), distance(allowed, got))

    def _suspects(self, evidence: _Evidence) -> list[tuple[str, float, float]]:
        record = operation(self.signature.op)
        rows = [*evidence.forbidden, *evidence.right]
        columns = [np.concatenate(parts) for parts in zip(*(c for c, _ in rows), strict=True)]
        got = np.concatenate([results for _, results in rows])
        verdicts = record.allowed(self.signature, columns).judge(got)
        return diagnosed(record.kernel(self.signature), columns, [got], [verdicts])


def _not_compiled(
    answer: Rejected | Unsupported | Broken, tally: Tally, clause: str, kernel: Kernel, *, required: bool
) -> Finding | None:
    match answer:
        case Unsupported():
            tally.state, tally.reason = "unsupported", answer.reason
            return None
        case Rejected():
            if not required:
                tally.state, tally.reason = "not run", f"refused, which the text leaves open: {answer.reason}"
                return None
            tally.state, tally.reason = "rejected", answer.reason
            message = f"a program that the language accepts was refused: {answer.reason}"
        case Broken():
            tally.state, tally.reason = "not run", answer.message
            message = answer.message
    dtypes = tuple(type_.dtype for type_ in (*kernel.input_types, *kernel.output_types))
    return Finding(tally.id, clause, kernel=str(kernel), dtypes=dtypes, message=f"{message.rstrip('.')}.")


def _judge_run(
    signature: Signature, run: Run, program: Program, tally: Tally, evidence: _Evidence
) -> Unsupported | Broken | None:
    outputs = program(run.inputs)
    if isinstance(outputs, (Unsupported, Broken)):
        return outputs
    got = _joined(outputs)
    for clause, count in run.cases.items():
        tally.cases[clause] = tally.cases.get(clause, 0) + count
    verdicts = run.allowed.judge(got)
    _count(tally, run.allowed, run.operands, got, verdicts)
    wrong = np.flatnonzero(verdicts == Verdict.FORBIDDEN)
    if len(wrong):
        _collect(signature, run, got, verdicts, wrong, evidence)
    return None


def _joined(outputs: Sequence[Bits]) -> Bits:
    return outputs[0].reshape(-1) if len(outputs) == 1 else np.concatenate([o.reshape(-1) for o in outputs])


def _count(tally: Tally, allowed: AllowedSet, operands: Sequence[Bits], got: Bits, verdicts: Verdicts) -> None:
    """Add one output's results to a tally."""
    counts = np.bincount(verdicts, minlength=4)
    tally.allowed += int(counts[Verdict.ALLOWED])
    tally.forbidden += int(counts[Verdict.FORBIDDEN])
    tally.no_claim += int(counts[Verdict.NO_CLAIM])
    loose = verdicts == Verdict.UNSPECIFIED
    tally.unspecified += int(counts[Verdict.UNSPECIFIED])
    if counts[Verdict.UNSPECIFIED]:
        other = loose & (got != allowed.nearest)
        if allowed.format.is_float:
            other &= ~(codes.is_nan(allowed.format, got) & codes.is_nan(allowed.format, allowed.nearest))
        tally.deviating += int(other.sum())
    if not allowed.format.is_float:
        return
    tally.max_distance = tally.max_distance or 0
    apart = (got != allowed.nearest) & (verdicts != Verdict.NO_CLAIM)
    if all((low >= high).all() for low, high in allowed.ranges):
        apart &= verdicts != Verdict.ALLOWED  # the set lists its values (fused or not, either zero): each is right
    rows = np.flatnonzero(apart)
    if len(rows) and allowed.ranges:
        rows = rows[~_alternative(allowed.take(rows), got[rows])]
    if not len(rows):
        return
    steps = allowed.take(rows).distance(got[rows])
    steps = np.where(steps == NAN_MISMATCH, np.uint64(0), steps)
    at = int(steps.argmax())
    if int(steps[at]) > tally.max_distance:
        tally.max_distance = int(steps[at])
        tally.max_argument = tuple(_hex(column, rows[at]) for column in operands)


def _alternative(allowed: AllowedSet, got: Bits) -> Mask:
    """Where a result is another of several exact answers (fused, the other zero): that is no error to be measured."""
    at = codes.ordinal(allowed.format, got)
    found = np.zeros(len(got), bool)
    for low, high in allowed.ranges:
        found |= (low == high) & (low == at)
    return found


def _hex(column: Bits, row: int) -> str:
    """A code in the width of its storage; bools alone are narrower than that."""
    return f"0x{int(column[row]):0{2 * column.dtype.itemsize}x}"


def _collect(signature: Signature, run: Run, got: Bits, verdicts: Verdicts, wrong: Any, evidence: _Evidence) -> None:
    for clause, mask in operation(signature.op).cases(signature, run.operands).items():
        evidence.clauses[clause] = evidence.clauses.get(clause, 0) + int(mask[wrong].sum())
        evidence.governed[clause] = evidence.governed.get(clause, 0) + int(mask.sum())
    right = np.flatnonzero(verdicts == Verdict.ALLOWED)
    for rows, kept in ((wrong, evidence.forbidden), (right, evidence.right)):
        room = KEPT - sum(len(results) for _, results in kept)
        some = rows[:: max(1, len(rows) // KEPT)][:room]
        if len(some):
            kept.append(([column[some] for column in run.operands], got[some]))
    if run.allowed.format.is_float:
        steps = run.allowed.take(wrong).distance(got[wrong])
    else:
        steps = np.zeros(len(wrong), np.uint64)
    at = int(steps.argmax())
    if int(steps[at]) > evidence.farthest:
        row = wrong[at]
        evidence.worst = (tuple(int(column[row]) for column in run.operands), int(got[row]))
        evidence.farthest = int(steps[at])


def governing(counts: Mapping[str, int], governed: Mapping[str, int]) -> str:
    """The clause that governs most of the failures; of several, the one that governs least besides."""
    return min(counts, key=lambda clause: (-counts[clause], governed.get(clause, 0)), default="")
