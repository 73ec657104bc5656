"""Runs of litmus programs for the command line: each configuration piece by piece, and what is reported of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from halfulp.adapters.protocol import Adapter, LitmusOptions, LitmusRun
from halfulp.certify.questions import VERDICTS
from halfulp.certify.status import CommandError
from halfulp.oracle.memory.interleaving import interleaved, sequential
from halfulp.oracle.memory.program import Outcome, Program
from halfulp.oracle.sets import Verdict
from halfulp.properties.litmus import ALONE, CONFIGURATIONS, ask, describe, mutant_rate, outcomes

CHUNK = 1 << 17
"""Instances between two signs of progress, at first."""

BRIEF = 0.2
"""Seconds; after a piece that took less, the next one is twice as large: devices do millions in no time."""


@dataclass(frozen=True)
class Ran:
    """What came out in one configuration, so far or in the end.

    Attributes:
        options: the last piece's; their seed is that of the whole.
        histogram: how often each outcome came out.
        seconds: time that the instances took.
    """

    options: LitmusOptions
    histogram: Counter[Outcome]
    seconds: float

    @property
    def instances(self) -> int:
        return self.histogram.total()


Progress = Callable[[Ran, float], None]
"""Told what is being run, and the share of all configurations that is done."""


def configurations(
    adapter: Adapter, program: Program, instances: int, seed: int, *, progress: Progress | None = None
) -> Iterator[Ran]:
    """The result of each configuration; one, and few instances, for a program of one thread.

    Raises:
        CommandError: the backend does not run the program.
    """
    alone = len(program.threads) == 1
    chosen = CONFIGURATIONS[:1] if alone else CONFIGURATIONS
    wanted = min(instances, ALONE) if alone else instances
    for number, configuration in enumerate(chosen):
        histogram: Counter[Outcome] = Counter()
        seconds = 0.0
        options = replace(configuration, seed=seed, opt_level=max(adapter.opt_levels))
        size = CHUNK
        while (done := histogram.total()) < wanted:
            piece = replace(options, instances=min(size, wanted - done), seed=seed + done)
            answer = ask(adapter, program, piece)
            if not isinstance(answer, LitmusRun):
                reason = answer if isinstance(answer, str) else answer.reason
                raise CommandError(f"{adapter.name} did not run {program.name}: {reason}")
            histogram.update(answer.histogram)
            seconds += answer.seconds
            if answer.seconds < BRIEF:
                size *= 2
            if progress:
                share = (number + min(1.0, histogram.total() / wanted)) / len(chosen)
                progress(Ran(options, histogram, seconds), share)
        yield Ran(replace(options, instances=histogram.total()), histogram, seconds)


def forbidden(program: Program, ran: Ran) -> dict[Outcome, int]:
    """The outcomes of a run that the language forbids, most frequent first."""
    judged = outcomes(program)
    found = {outcome: n for outcome, n in ran.histogram.items() if judged.verdict(outcome) is Verdict.FORBIDDEN}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def evidence(program: Program, ran: Ran, mutant: float | None) -> dict[str, Any]:
    """What a run says, and how hard it has looked; see docs/reference/litmus.md."""
    total = ran.instances
    apart, turns = sequential(program), interleaved(program)
    weak = set(program.weak)
    return {
        "configuration": describe(ran.options),
        "instances": total,
        "per_second": round(total / max(ran.seconds, 1e-9)),
        "not_sequential": round(sum(n for o, n in ran.histogram.items() if o not in apart) / total, 9),
        "not_interleaved": round(sum(n for o, n in ran.histogram.items() if o not in turns) / total, 9),
        "weak": sum(n for o, n in ran.histogram.items() if weak and weak <= set(o)),
        "mutant_rate": mutant,
    }


def mutant_of(adapter: Adapter, program: Program, ran: Ran, instances: int) -> float | None:
    """How often a mutant shows the weak outcome in a run of the same kind; None where the test forbids nothing."""
    if not program.weak or outcomes(program).verdict(program.weak) is not Verdict.FORBIDDEN:
        return None
    return mutant_rate(adapter, program, replace(ran.options, instances=instances))


def counts(program: Program, ran: Ran) -> list[dict[str, Any]]:
    """The histogram with verdicts."""
    judged = outcomes(program)
    return [
        {"outcome": dict(o), "count": n, "verdict": VERDICTS[judged.verdict(o)]}
        for o, n in sorted(ran.histogram.items())
    ]
