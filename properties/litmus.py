"""Trials of litmus programs: run many times, every outcome judged by the memory model, and how hard the run looked.

"Never seen" is evidence only with what stands beside it: the number of instances, how many of them overlapped in time
(outcomes that threads one after the other do not give), and how often a mutant of the test showed the weak outcome in
runs of the same kind. A mutant that shows nothing makes the outcome *not observable here*; then only the instructions
(`inspect`) tell whether orders are kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from halfulp.adapters.protocol import (
    Adapter,
    HasLitmus,
    HasLitmusArtifact,
    LitmusOptions,
    LitmusRun,
    Options,
    PreparesLitmus,
    Rejected,
    Stress,
    Unsupported,
    UnsupportedError,
)
from halfulp.oracle.memory.clauses import clauses_of
from halfulp.oracle.memory.interleaving import sequential
from halfulp.oracle.memory.model import MODEL
from halfulp.oracle.memory.mutants import MUTANTS, shows
from halfulp.oracle.memory.program import (
    DTYPES,
    Cas,
    Outcome,
    Program,
    Rmw,
    access_text,
    listing,
    outcome_text,
)
from halfulp.oracle.memory.refute import Refutation, why_not
from halfulp.oracle.memory.search import Outcomes, allowed
from halfulp.oracle.memory.typing import acceptances, rejections
from halfulp.oracle.sets import Verdict
from halfulp.properties import litmus_ir, litmus_ptx
from halfulp.properties.execute import answered
from halfulp.properties.litmus_accesses import Fault, UnreadableError, judge
from halfulp.properties.litmus_mutants import mutant_of
from halfulp.properties.plan import Plan
from halfulp.properties.ptx import is_ptx
from halfulp.properties.replay import RecordedLitmus, encode
from halfulp.properties.results import Finding, Tally, Trial

NO_LITMUS = "litmus programs are not offered"
NO_ARTIFACT = "no LLVM IR or PTX of litmus programs to look at"

CONFIGURATIONS: tuple[LitmusOptions, ...] = (
    LitmusOptions(placement="apart", synchronisation="start", stress=Stress(shuffle=True)),
    LitmusOptions(placement="apart", synchronisation="each", stress=Stress(shuffle=True, delay=63)),
    LitmusOptions(placement="free", synchronisation="start", stress=Stress(shuffle=True, spacing=8)),
)
"""How each program is run. Which way shows most depends on the test and on the machine."""


ALONE = 256
"""Instances of a program of one thread, whose outcome is always the same."""


def title(program: Program) -> str:
    """The name of a program and the dtypes of its locations: ``MP+rlx-rel+acq-rlx,u32``."""
    return ",".join((program.name, *dict.fromkeys(location.dtype for location in program.locations)))


def instances(plan: Plan, options: LitmusOptions, threads: int) -> int:
    """Instances of one program under one configuration.

    Threads that meet each time are several times slower, and many times where there are more of them than processors.
    """
    if threads == 1:
        return ALONE
    base = {"quick": 1 << 12, "standard": 1 << 12, "deep": 1 << 17}[plan.depth]
    return base >> 2 * (threads - 2) if options.synchronisation == "each" else 2 * base


def describe(options: LitmusOptions) -> str:
    """``apart-each``."""
    return f"{options.placement}-{options.synchronisation}"


@lru_cache(4096)
def outcomes(program: Program) -> Outcomes:
    """`oracle.memory.search.allowed`, kept: a program is run in several ways."""
    return allowed(program)


# Outcomes.


def try_litmus(
    adapter: Adapter,
    program: Program,
    plan: Plan,
    *,
    level: int | None = None,
    evidence: bool = True,
) -> Trial:
    """Run a program in each configuration, and judge every outcome.

    Args:
        level: the optimisation level; the highest one if None.
        evidence: run a mutant beside each test whose weak outcome is forbidden.
    """
    level = max(adapter.opt_levels) if level is None else level
    trial = Trial()
    alone = len(program.threads) == 1
    for options in CONFIGURATIONS[:1] if alone else CONFIGURATIONS:
        count = instances(plan, options, len(program.threads))
        options = replace(options, seed=plan.seed, opt_level=level, instances=count)
        tally = Tally(f"litmus[{title(program)}]/{describe(options)}/O{level}", "11")
        trial.tallies.append(tally)
        finding = run(adapter, program, options, tally, evidence=evidence)
        if finding is not None:
            finding.token = encode(RecordedLitmus(tally.id, finding.clause, program, options, finding.forbidden))
            trial.findings.append(finding)
            break  # the same again in other ways would only be noise
        if tally.state == "unsupported":
            break
    return trial


def run(
    adapter: Adapter, program: Program, options: LitmusOptions, tally: Tally, *, evidence: bool = False
) -> Finding | None:
    """Run a program once; counts go into ``tally``, what is wrong comes back."""
    start = time.perf_counter()
    answer = ask(adapter, program, options)
    if isinstance(answer, Unsupported):
        tally.state, tally.reason = "unsupported", answer.reason
        return None
    if isinstance(answer, Rejected):
        tally.state, tally.reason = "rejected", answer.reason
        message = f"a program that the language accepts was refused: {answer.reason}"
        return Finding(tally.id, "intent:11-a", listing(program), message=message)
    if isinstance(answer, str):
        return Finding(tally.id, "intent:11-a", listing(program), message=answer)
    tally.evidence = {
        "instances": answer.instances,
        "per_second": round(answer.instances / max(answer.seconds, 1e-9)),
        "interleaved": overlap(program, answer.histogram),
    }
    finding = judge_histogram(program, answer.histogram, tally)
    if evidence and finding is None and program.weak and outcomes(program).verdict(program.weak) is Verdict.FORBIDDEN:
        rate = mutant_rate(adapter, program, options)
        if rate is not None:
            tally.evidence["mutant"] = rate
    tally.seconds = time.perf_counter() - start
    return finding


def ask(adapter: Adapter, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported | str:
    """What the adapter answers; a text that says what is wrong where it broke down or gave no histogram."""
    if not isinstance(adapter, HasLitmus):
        return Unsupported(NO_LITMUS)
    answer = answered(lambda: adapter.run_litmus(program, options))
    if isinstance(answer, LitmusRun):
        names = tuple(sorted(program.observe))
        for outcome in answer.histogram:
            if tuple(name for name, _ in outcome) != names:
                return f"an outcome ({outcome_text(outcome)}) does not name {', '.join(names)}"
        if answer.instances < options.instances:
            return f"{answer.instances} instances were run where {options.instances} were asked for"
    return answer


def judge_histogram(program: Program, histogram: Mapping[Outcome, int], tally: Tally) -> Finding | None:
    """Count the outcomes in ``tally``; a finding for the most frequent forbidden one."""
    judged = outcomes(program)
    forbidden: dict[Outcome, int] = {}
    for outcome, count in histogram.items():
        match judged.verdict(outcome):
            case Verdict.ALLOWED:
                tally.allowed += count
            case Verdict.UNSPECIFIED:
                tally.unspecified += count
            case Verdict.NO_CLAIM:
                tally.no_claim += count
            case _:
                tally.forbidden += count
                forbidden[outcome] = count
    claims = tally.allowed + tally.unspecified + tally.forbidden
    tally.cases = dict.fromkeys(clauses_of(program), claims) if claims else {}
    if not forbidden:
        return None
    outcome = max(forbidden, key=lambda one: forbidden[one])
    reason = why_not(program, outcome)
    clause = blamed(program, reason)
    others = f" and {len(forbidden) - 1} other forbidden outcomes" if len(forbidden) > 1 else ""
    message = f"{outcome_text(outcome)} came out {forbidden[outcome]:,} times{others}."
    return Finding(
        tally.id,
        clause,
        f"{listing(program)}\n\n{reason}",
        forbidden=tally.forbidden,
        judged=claims,
        message=message,
        clauses={clause: tally.forbidden},
        suspects=explained_by(program, histogram),
    )


COMPARED = 6
"""Outcomes that are compared with what wrong models show: so many forbidden ones, and so many others."""

FEW = 3
"""Updates of a program that is compared."""


def explained_by(program: Program, histogram: Mapping[Outcome, int]) -> list[tuple[str, float, float]]:
    """The model mutants that show forbidden outcomes of a run, best first, as `Finding.suspects` has them.

    None for programs with many updates, on which this takes seconds.
    """
    if sum(isinstance(access, Rmw | Cas) for access in program.accesses) > FEW:
        return []
    judged = outcomes(program)
    ranked = sorted(histogram.items(), key=lambda item: -item[1])
    wrong = [item for item in ranked if judged.verdict(item[0]) is Verdict.FORBIDDEN][:COMPARED]
    right = [item for item in ranked if judged.verdict(item[0]) is Verdict.ALLOWED][:COMPARED]
    found = []
    for name, mutant in MUTANTS.items():
        explained = sum(n for outcome, n in wrong if shows(replace(program, weak=outcome), mutant))
        if explained:
            against = sum(n for outcome, n in right if not shows(replace(program, weak=outcome), mutant))
            found.append((name, explained / sum(n for _, n in wrong), against / max(1, sum(n for _, n in right))))
    return sorted(found, key=lambda one: (-one[1], one[2]))


def blamed(program: Program, reason: Refutation) -> str:
    """The clause that a refutation rests on most narrowly."""
    if not reason.contradictions:
        return "intent:11-c" if any(isinstance(access, Cas) for access in program.accesses) else "intent:11-b"
    if not any("-sw->" in str(contradiction) for contradiction in reason.contradictions):
        return "intent:11-b"
    for contradiction in reason.contradictions:
        events = contradiction.candidate.events
        for _, read in MODEL.synchronizes_with(contradiction.candidate):
            if isinstance(program.accesses[events[read].access], Cas) and events[read].writes is None:
                return "intent:11-f"
    return "intent:11-d"


def overlap(program: Program, histogram: Mapping[Outcome, int]) -> float:
    """The share of instances whose outcome no order of whole threads gives."""
    total = sum(histogram.values())
    apart = sequential(program)
    return round(sum(count for outcome, count in histogram.items() if outcome not in apart) / max(total, 1), 9)


def mutant_rate(adapter: Adapter, program: Program, options: LitmusOptions) -> float | None:
    """How often the weak outcome shows in a mutant that may show it; None if there is no mutant or it does not run."""
    mutant = mutant_of(program)
    if mutant is None:
        return None
    answer = ask(adapter, mutant.program, options)
    if not isinstance(answer, LitmusRun):
        return None
    weak = set(program.weak)
    seen = sum(count for outcome, count in answer.histogram.items() if weak <= set(outcome))
    return round(seen / max(answer.instances, 1), 9)


# Instructions.


def inspect(program: Program, text: str) -> list[Fault]:
    """What is wrong with the LLVM IR or PTX of a program; empty where nothing is.

    Raises:
        UnreadableError: it cannot be read, or a thread is missing.
    """
    read = litmus_ptx.read if is_ptx(text) else litmus_ir.read
    return judge(program, read(text, len(program.locations)))


def try_instructions(
    adapter: Adapter, programs: Sequence[Program], name: str, levels: Sequence[int] | None = None
) -> Trial:
    """Judge the LLVM IR or PTX of programs at some optimisation levels (all by default); one tally for each level."""
    trial = Trial()
    for level in adapter.opt_levels if levels is None else levels:
        tally = Tally(f"litmus-ir[{name}]/O{level}", "11")
        trial.tallies.append(tally)
        if not isinstance(adapter, HasLitmusArtifact):
            tally.state, tally.reason = "unsupported", NO_ARTIFACT
            continue
        start = time.perf_counter()
        finding: Finding | None = None
        reasons: list[str] = []
        if isinstance(adapter, PreparesLitmus):
            adapter.prepare_litmus(programs, Options(level), runs=False)
        for program in programs:
            try:
                faults = inspect(program, adapter.litmus_artifact(program, Options(level)))
            except (UnsupportedError, UnreadableError) as missing:
                reasons.append(str(missing))
                tally.no_claim += len(program.accesses)
                continue
            tally.allowed += len(program.accesses) - len(faults)
            tally.forbidden += len(faults)
            for clause in clauses_of(program):
                tally.cases[clause] = tally.cases.get(clause, 0) + len(program.accesses)
            if faults and finding is None:
                first = faults[0]
                finding = Finding(tally.id, first.clause, listing(program), message=f"{first}.")
                finding.token = look_token(tally.id, first.clause, program, level)
            if faults and finding is not None:
                finding.forbidden += len(faults)
                for fault in faults:
                    finding.clauses[fault.clause] = finding.clauses.get(fault.clause, 0) + 1
        tally.seconds = time.perf_counter() - start
        if reasons and not tally.allowed + tally.forbidden:
            tally.state, tally.reason = "unsupported", reasons[0]
        if finding is not None:
            finding.judged = tally.allowed + tally.forbidden
            trial.findings.append(finding)
    return trial


def look_token(name: str, clause: str, program: Program, level: int) -> str:
    """The token of a look at the instructions of a program."""
    return encode(RecordedLitmus(name, clause, program, LitmusOptions(1, opt_level=level), instructions=True))


# Typing.


def try_orders(adapter: Adapter, clause: str) -> Trial:
    """Every order (``intent:11-e``) or scope (``intent:11-g``) that is not the language's has to be refused.

    Under ``intent:11-e`` those that are have to be accepted; this is tried on one dtype.
    """
    level = min(adapter.opt_levels)
    tally = Tally(f"refuses[{clause.partition(':')[2]}]/O{level}", "11")
    options = LitmusOptions(instances=1, opt_level=level)
    wrong: list[str] = []
    first: Program | None = None
    cases = [(program, False) for program, refused in rejections() if refused.clause == clause]
    if clause == "intent:11-e":
        cases += [(program, True) for program in acceptances() if program.locations[0].dtype == DTYPES[0]]
    for program, welcome in cases:
        answer = ask(adapter, program, options)
        if isinstance(answer, Unsupported):
            tally.no_claim += 1
            tally.reason = answer.reason
        elif isinstance(answer, str) or isinstance(answer, Rejected) == welcome:
            tally.forbidden += 1
            what = answer if isinstance(answer, str) else "refused" if welcome else "accepted"
            wrong.append(f"`{access_text(program.accesses[0])}`: {what}")
            first = first or program
        else:
            tally.allowed += 1
    judged = tally.allowed + tally.forbidden
    if not judged:
        tally.state = "unsupported"
        return Trial([tally])
    tally.reason = ""
    tally.cases[clause] = judged
    trial = Trial([tally])
    if first is not None:
        shown = "; ".join(wrong[:3]) + ("; ..." if len(wrong) > 3 else "")
        message = f"{len(wrong)} of {judged} accesses were accepted or refused wrongly: {shown}."
        token = encode(RecordedLitmus(tally.id, clause, first, options))
        trial.findings.append(Finding(tally.id, clause, listing(first), message=message, token=token))
    return trial
