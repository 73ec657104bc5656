"""Contests: many read-modify-writes of several threads on one location, judged from what they returned.

The operands are such that the values returned give the order of modification away; `oracle.memory.histories` decides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from halfulp.adapters.protocol import (
    Adapter,
    Array,
    Contest,
    ContestRun,
    HasContests,
    LitmusOptions,
    Rejected,
    Unsupported,
)
from halfulp.oracle.memory.histories import KINDS, History, contest_expected, judge
from halfulp.oracle.memory.program import DTYPES, bounds
from halfulp.oracle.sets import Verdict
from halfulp.properties.execute import answered
from halfulp.properties.plan import Plan, generator
from halfulp.properties.replay import RecordedContest, encode
from halfulp.properties.results import Finding, Tally, Trial

NO_CONTESTS = "contests on one location are not offered"


NUMPY = {"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8"}


def length(plan: Plan) -> int:
    """Operations of one thread."""
    return {"quick": 1 << 12, "standard": 1 << 13, "deep": 1 << 19}[plan.depth]


def contest(kind: str, dtype: str, plan: Plan, threads: int = 2, order: str = "relaxed") -> Contest:
    """A contest whose history says everything: no value returns to the location once it has left it."""
    return replace(_contest(kind, dtype, plan, threads), order=order)


def _contest(kind: str, dtype: str, plan: Plan, threads: int) -> Contest:
    n = length(plan)
    draw = generator(plan, "contest", kind, dtype)
    low, high = bounds(dtype)
    unsigned = np.dtype(f"u{np.dtype(NUMPY[dtype]).itemsize}")
    if kind == "add":  # ones, across the place where the dtype wraps
        operands = [np.ones(n, unsigned)] * threads
        return _made(kind, dtype, high - n // 2, operands)
    if kind in ("exchange", "cas"):  # numbers of their own, spread over all bits
        ids = np.arange(1, n * threads + 1, dtype=np.uint64)
        with np.errstate(over="ignore"):
            ids = (ids * np.uint64(0x9E3779B97F4A7C15 if unsigned.itemsize == 8 else 0x9E3779B1)).astype(unsigned)
        draw.shuffle(ids)
        return _made(kind, dtype, 0, np.split(ids, threads))
    if kind == "xor":  # every bit once, by one thread; zeros in between only look
        bits = draw.permutation(8 * unsigned.itemsize)
        operands = []
        for mine in np.array_split(bits, threads):
            part = np.zeros(n, unsigned)
            part[draw.choice(n, len(mine), replace=False)] = unsigned.type(1) << mine.astype(unsigned)
            operands.append(part)
        return _made(kind, dtype, 0, operands)
    if kind in ("or", "and"):  # a bit at a time, in an order of its own for each thread
        width = 8 * unsigned.itemsize
        operands = []
        for _ in range(threads):
            bits = np.resize(draw.permutation(width), n)
            bits[draw.random(n) < 0.5] = bits[0]
            operands.append(unsigned.type(1) << bits.astype(unsigned))
        if kind == "and":
            operands = [~bits for bits in operands]
        return _made(kind, dtype, 0 if kind == "or" else (-1 if low < 0 else high), operands)
    # max, min: upwards, or downwards, through the whole range, with steps back
    steps = np.linspace(low // 2, high // 2, n * threads)
    steps = steps.astype(NUMPY[dtype]) if low else np.linspace(0, high / 2, n * threads).astype(unsigned)
    steps[draw.random(len(steps)) < 0.3] = steps[len(steps) // 2]
    rising = [steps[thread::threads] for thread in range(threads)]
    operands = [part.astype(NUMPY[dtype]) for part in (rising if kind == "max" else [part[::-1] for part in rising])]
    return Contest(kind, dtype, low if kind == "max" else high, tuple(map(np.ascontiguousarray, operands)))


def _made(kind: str, dtype: str, initial: int, operands: Sequence[Array]) -> Contest:
    return Contest(kind, dtype, initial, tuple(part.astype(NUMPY[dtype]) for part in operands))


def history(asked: Contest, run: ContestRun) -> History:
    """The answer as the oracle takes it."""
    expected = contest_expected(asked.initial, asked.operands, run.olds, run.successes) if run.successes else ()
    return History(
        asked.kind, asked.dtype, asked.initial, run.final, asked.operands, run.olds, expected, tuple(run.successes)
    )


def try_contest(adapter: Adapter, kind: str, dtype: str, plan: Plan) -> Trial:
    """Run a contest at every optimisation level, with the weakest and with the strongest order."""
    trial = Trial()
    for level in adapter.opt_levels:
        tally = Tally(f"contest[{kind},{dtype}]/O{level}", "11")
        trial.tallies.append(tally)
        for order in ("relaxed", "acq_rel"):
            finding = run(adapter, contest(kind, dtype, plan, order=order), level, tally)
            if finding is not None:
                recorded = RecordedContest(tally.id, finding.clause, kind, dtype, order, plan, level)
                finding.token = encode(recorded)
                trial.findings.append(finding)
                break
            if tally.state == "unsupported":
                break
    return trial


def run(adapter: Adapter, asked: Contest, level: int, tally: Tally) -> Finding | None:
    """Run a contest once; counts go into ``tally``, what is wrong comes back."""
    start = time.perf_counter()
    answer = ask(adapter, asked, LitmusOptions(opt_level=level))
    clause = "intent:11-c" if asked.kind == "cas" else "intent:11-b"
    n = sum(map(len, asked.operands))
    text = (
        f"{len(asked.operands)} threads: {len(asked.operands[0])} times {asked.kind}.{asked.order} on one {asked.dtype}"
    )
    if isinstance(answer, Unsupported):
        tally.state, tally.reason = "unsupported", answer.reason
        return None
    if isinstance(answer, Rejected):
        tally.state, tally.reason = "rejected", answer.reason
        return Finding(tally.id, "intent:11-a", text, message=f"refused: {answer.reason}")
    if isinstance(answer, str):
        return Finding(tally.id, "intent:11-a", text, message=answer)
    judgement = judge(history(asked, answer))
    match judgement.verdict:
        case Verdict.ALLOWED:
            tally.allowed += n
        case Verdict.UNSPECIFIED:
            tally.unspecified += n
        case _:
            tally.forbidden += n
    tally.cases[clause] = tally.cases.get(clause, 0) + n
    tally.evidence = {
        "instances": n,
        "per_second": round(n / max(answer.seconds, 1e-9)),
        "interleaved": switches(asked, answer),
    }
    tally.seconds += time.perf_counter() - start
    if judgement.verdict is not Verdict.FORBIDDEN:
        return None
    message = f"The history of this run is impossible: {judgement.reason}."
    blame = judgement.clause
    return Finding(tally.id, blame, text, forbidden=n, judged=n, message=message, clauses={blame: n})


def ask(adapter: Adapter, asked: Contest, options: LitmusOptions) -> ContestRun | Rejected | Unsupported | str:
    """What the adapter answers; a text that says what is wrong where it broke down or gave no history."""
    if not isinstance(adapter, HasContests):
        return Unsupported(NO_CONTESTS)
    answer = answered(lambda: adapter.run_contest(asked, options))
    if isinstance(answer, ContestRun):
        shapes = [len(array) for array in asked.operands]
        flags = shapes if asked.kind == "cas" else []
        if [len(a) for a in answer.olds] != shapes or [len(a) for a in answer.successes] != flags:
            return "the history has other lengths than the operands"
    return answer


def switches(asked: Contest, run: ContestRun) -> float:
    """The share of operations that returned something else than the operation before them in their thread.

    Of compare-exchanges that failed, and of exchanges that another thread came before. Other kinds say less.
    """
    if asked.kind == "cas":
        missed = sum(int((~flags).sum()) for flags in run.successes)
    else:
        left = asked.operands if asked.kind == "exchange" else run.olds
        pairs = zip(run.olds, left, strict=True)
        missed = sum(int((olds[1:] != before[:-1]).sum()) for olds, before in pairs)
    return round(missed / max(1, sum(map(len, run.olds))), 6)


GROUPS = tuple((kind, dtype) for kind in KINDS for dtype in DTYPES)
"""What is tried: every kind on every dtype."""
