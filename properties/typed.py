"""Trials of the type checker: what the language refuses must be refused, what it accepts must be accepted."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from halfulp.adapters.protocol import Adapter, Rejected, Unsupported
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.judge import judge
from halfulp.oracle.kernel import Apply, Kernel, Type
from halfulp.oracle.ops.record import Refused
from halfulp.oracle.sets import Verdict
from halfulp.oracle.source import Call, Expression, Formed, Literal, Source
from halfulp.oracle.typing import acceptances, rejections
from halfulp.properties.execute import Broken, compile_all
from halfulp.properties.failing import ALONE, Failing, diagnosed, least_complex
from halfulp.properties.plan import Plan, generator
from halfulp.properties.programs import program_inputs
from halfulp.properties.replay import Recorded, encode
from halfulp.properties.results import Finding, Tally, Trial

SHOWN = 3
"""Programs that a finding names; the others are counted."""

ELEMENTS = 64
"""Elements that an accepted source program is run on."""


@cache
def rejection_table() -> dict[str, tuple[tuple[Kernel | Source, Refused], ...]]:
    """The programs that the language refuses, by the clause that does."""
    table: dict[str, list[tuple[Kernel | Source, Refused]]] = {}
    for program, refused in rejections():
        table.setdefault(refused.clause, []).append((program, refused))
    return {clause: tuple(table[clause]) for clause in sorted(table)}


@cache
def acceptance_table() -> dict[str, tuple[tuple[Source, Kernel], ...]]:
    """The source programs that the language accepts, by the clause that a refusal or a wrong literal breaks."""
    table: dict[str, list[tuple[Source, Kernel]]] = {}
    for source, kernel in acceptances():
        table.setdefault(accepting_clause(source, kernel), []).append((source, kernel))
    return {clause: tuple(table[clause]) for clause in sorted(table)}


def accepting_clause(source: Source, kernel: Kernel) -> str:
    """Formed values ``intent:3-c``, literals ``3-a``, comparisons ``3-h``, operands of one dtype ``3-f``."""
    nodes = list(_nodes(source.result))
    if any(isinstance(node, Formed) for node in nodes):
        return "intent:3-c"
    if any(isinstance(node, Literal) for node in nodes):
        return "intent:3-a"
    last = kernel.values[kernel.outputs[0]]
    return "intent:3-h" if isinstance(last, Apply) and last.dtype == "bool" else "intent:3-f"


def _nodes(node: Expression) -> list[Expression]:
    below = node.args if isinstance(node, Call) else ()
    return [node, *(found for arg in below for found in _nodes(arg))]


def chapter_of(clause: str) -> str:
    """``"5.2"`` of ``"intent:5.2-j"``."""
    return clause.partition(":")[2].partition("-")[0]


def try_rejections(adapter: Adapter, clause: str) -> Trial:
    """Compile every program that ``clause`` refuses; each that is accepted is a breach."""
    level = min(adapter.opt_levels)
    table = rejection_table()[clause]
    tally = Tally(f"refuses[{clause.partition(':')[2]}]/O{level}", chapter_of(clause))
    start = time.perf_counter()
    answers = compile_all(adapter, [program for program, _ in table], level)
    tally.seconds = time.perf_counter() - start
    accepted: list[tuple[Kernel | Source, str]] = []
    crashed: list[tuple[Kernel | Source, str]] = []
    reasons: list[str] = []
    for (program, refused), answer in zip(table, answers, strict=True):
        match answer:
            case Rejected():
                tally.allowed += 1
            case Unsupported():
                reasons.append(answer.reason)
                tally.no_claim += 1
            case Broken():
                crashed.append((program, answer.message))
            case _:
                accepted.append((program, refused.reason))
    tally.forbidden = len(accepted)
    judged = tally.allowed + tally.forbidden
    tally.cases[clause] = judged
    if not judged and not crashed:
        tally.state, tally.reason = "unsupported", reasons[0] if reasons else "nothing to compile"
    trial = Trial([tally])
    if accepted:
        what = f"{len(accepted)} of {judged} programs that the language refuses were accepted"
        trial.findings.append(_table_finding(tally.id, clause, level, what, accepted))
    if crashed:
        what = f"{len(crashed)} of {len(table)} programs brought the compiler down instead of being refused"
        trial.findings.append(_table_finding(tally.id, clause, level, what, crashed))
    return trial


def _table_finding(
    id_: str, clause: str, level: int, what: str, programs: list[tuple[Kernel | Source, str]]
) -> Finding:
    programs = sorted(programs, key=lambda item: len(str(item[0])))
    program, reason = programs[0]
    others = "; ".join(" ".join(str(other).split()) for other, _ in programs[1:SHOWN])
    message = f"{what}. The first: {reason.rstrip('.')}." + (f" Others: {others}." if others else "")
    # Only to be compiled again: the inputs of the token say nothing.
    inputs = tuple(_zeros(type_) for type_ in program.input_types) if isinstance(program, Kernel) else ()
    token = encode(Recorded(id_, clause, program, level, inputs))
    return Finding(id_, clause, kernel=str(program), message=message, token=token)


def _zeros(type_: Type) -> Bits:
    return np.zeros(1 if type_.dims else (), format_of(type_.dtype).storage)


def try_acceptances(adapter: Adapter, clause: str, plan: Plan, *, explain: bool = True) -> Trial:
    """Compile and run every source program under ``clause``; a refusal or a wrong result is a breach."""
    level = min(adapter.opt_levels)
    table = acceptance_table()[clause]
    tally = Tally(f"accepts[{clause.partition(':')[2]}]/O{level}", chapter_of(clause))
    start = time.perf_counter()
    answers = compile_all(adapter, [source for source, _ in table], level, [kernel for _, kernel in table])
    refused: list[tuple[Kernel | Source, str]] = []
    broken: list[tuple[Kernel | Source, str]] = []
    reasons: list[str] = []
    ran = 0
    trial = Trial([tally])
    for (source, kernel), answer in zip(table, answers, strict=True):
        if isinstance(answer, Unsupported):
            reasons.append(answer.reason)
            continue
        if isinstance(answer, Rejected):
            refused.append((source, answer.reason))
            continue
        if isinstance(answer, Broken):
            broken.append((source, answer.message))
            continue
        inputs = program_inputs(kernel, generator(plan, tally.id, str(source)), ELEMENTS)
        outputs = answer(inputs)
        if isinstance(outputs, Unsupported):
            reasons.append(outputs.reason)
            continue
        if isinstance(outputs, Broken):
            broken.append((source, outputs.message))
            continue
        ran += 1
        (verdicts,) = judge(kernel, inputs, outputs)
        tally.allowed += int((verdicts == Verdict.ALLOWED).sum())
        tally.unspecified += int((verdicts == Verdict.UNSPECIFIED).sum())
        tally.no_claim += int((verdicts == Verdict.NO_CLAIM).sum())
        wrong = verdicts == Verdict.FORBIDDEN
        tally.forbidden += int(wrong.sum())
        if wrong.any() and not trial.findings:
            finding = Finding(tally.id, clause, str(source), forbidden=int(wrong.sum()), judged=len(verdicts))
            finding.dtypes = tuple(type_.dtype for type_ in (*kernel.input_types, *kernel.output_types))
            finding.clauses = {clause: finding.forbidden}
            if explain:
                failing = Failing(kernel, answer)
                columns = [bits[wrong] for bits in inputs]
                element = failing.simplest(least_complex(failing.formats, columns))
                length = failing.reproduces(element) or max(ALONE)
                finding.simplest = failing.example(element, length)
                finding.suspects = diagnosed(kernel, inputs, outputs, [verdicts])
                again = tuple(failing.passed(failing.columns(element, length)))
                finding.token = encode(Recorded(tally.id, clause, source, level, again))
            trial.findings.append(finding)
    tally.seconds = time.perf_counter() - start
    tally.cases[clause] = tally.judged
    if not ran and not refused and not broken:
        tally.state, tally.reason = "unsupported", reasons[0] if reasons else "nothing to compile"
    if refused:
        what = f"{len(refused)} of {len(table)} programs that the language accepts were refused"
        trial.findings.append(_table_finding(tally.id, clause, level, what, refused))
    if broken:
        what = f"{len(broken)} of {len(table)} programs that the language accepts gave no result"
        trial.findings.append(_table_finding(tally.id, clause, level, what, broken))
    return trial
