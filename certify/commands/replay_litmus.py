"""``halfulp replay`` of litmus programs, their instructions, and contests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halfulp.adapters.protocol import (
    Adapter,
    HasContests,
    HasLitmus,
    HasLitmusArtifact,
    LitmusOptions,
    Rejected,
    Unsupported,
)
from halfulp.certify.commands.common import FOUND, OK, CommandError
from halfulp.certify.commands.running import level_of
from halfulp.certify.failure import failure_text
from halfulp.oracle.memory.program import listing
from halfulp.oracle.memory.typing import check
from halfulp.oracle.ops.record import Refused
from halfulp.properties import contests, litmus
from halfulp.properties.replay import RecordedContest, RecordedLitmus
from halfulp.properties.results import Finding, Tally

MOST = 1 << 20
"""Instances, or operations, after which what does not show again is given up."""

Again = Callable[[int, Tally], Finding | None]
"""Runs it once more, with a number that tells one time from another."""


def contents(recorded: RecordedLitmus | RecordedContest) -> list[str]:
    """What a token holds, for people."""
    lines = [f"id       {recorded.id}", f"clause   {recorded.clause}", f"level    O{recorded.opt_level}"]
    if isinstance(recorded, RecordedContest):
        what = f"{recorded.kind}.{recorded.order} on {recorded.dtype}"
        return [*lines, f"contest  {what}, seed {recorded.plan.seed}, depth {recorded.plan.depth}"]
    lines += [
        f"program  {line}" if n == 0 else f"         {line}"
        for n, line in enumerate(listing(recorded.program).splitlines())
    ]
    if recorded.instructions:
        return [*lines, "look     at the instructions; nothing is run"]
    options, stress = recorded.options, recorded.options.stress
    return [
        *lines,
        f"run      {options.instances:,} instances, threads {options.placement}, meeting "
        f"{'before each instance' if options.synchronisation == 'each' else 'at the start of a round'}",
        f"stress   {'shuffled cells' if stress.shuffle else 'cells in order'}, {stress.spacing} bytes apart, "
        f"delays up to {stress.delay}; seed {options.seed}",
        f"seen     {recorded.seen:,} forbidden outcomes" if recorded.seen else "seen     accepted or refused wrongly",
    ]


def replay(recorded: RecordedLitmus | RecordedContest, adapter: Adapter, backend: str, instances: int | None) -> int:
    """Run it again until it shows, and say how often; the exit status."""
    needed: type
    needed, what = HasLitmus, "litmus programs"
    if isinstance(recorded, RecordedContest):
        needed, what = HasContests, "contests"
    elif recorded.instructions:
        needed, what = HasLitmusArtifact, "the instructions of litmus programs"
    if not isinstance(adapter, needed):
        raise CommandError(f"{adapter.name} does not offer {what}, so this cannot be replayed there")
    level = level_of(adapter, recorded.opt_level)
    if isinstance(recorded, RecordedContest):
        asked = contests.contest(recorded.kind, recorded.dtype, recorded.plan, order=recorded.order)
        return _until_seen(
            recorded,
            backend,
            instances or MOST,
            "operations",
            lambda _, tally: contests.run(adapter, asked, level, tally),
        )
    program, options = recorded.program, replace(recorded.options, opt_level=level)
    if recorded.instructions:
        return _look(recorded, adapter, backend, level)
    answer = check(program)
    if isinstance(answer, Refused):
        return _refused(recorded, adapter, backend, answer)
    if not recorded.seen:
        return _accepted(recorded, adapter, backend, options)

    def again(number: int, tally: Tally) -> Finding | None:
        return litmus.run(adapter, program, replace(options, seed=options.seed + number), tally)

    return _until_seen(recorded, backend, instances or max(MOST, 4 * options.instances), "instances", again)


def _until_seen(recorded: RecordedLitmus | RecordedContest, backend: str, most: int, what: str, again: Again) -> int:
    """Again and again, with the recorded seed first, until something is forbidden or ``most`` have been run."""
    done = runs = 0
    while done < most:
        tally = Tally(recorded.id, "11")
        finding = again(runs, tally)
        runs += 1
        if tally.state == "unsupported":
            raise CommandError(f"the backend does not offer what the program uses: {tally.reason}")
        done += tally.judged + tally.no_claim
        if finding is not None:
            print(failure_text(finding, backend))
            print(f"\nseen again in run {runs}, after {done:,} {what}; then {_recorded(recorded)}")
            return FOUND
    times = "one run" if runs == 1 else f"{runs:,} runs"
    print(f"{recorded.id}: nothing forbidden in {done:,} {what}, {times}; then {_recorded(recorded)}.")
    print(
        "Threads meet by chance, and less often on a busy machine: before you take it for repaired, give --instances."
    )
    return OK


def _recorded(recorded: RecordedLitmus | RecordedContest) -> str:
    """What the run saw that the token comes from."""
    if isinstance(recorded, RecordedContest):
        return "it was the whole history of one contest"
    return f"it was {recorded.seen:,} of {recorded.options.instances:,} instances"


def _look(recorded: RecordedLitmus, adapter: Adapter, backend: str, level: int) -> int:
    trial = litmus.try_instructions(adapter, [recorded.program], recorded.program.name, levels=(level,))
    (tally,) = trial.tallies
    if tally.state == "unsupported":
        raise CommandError(f"the instructions cannot be judged: {tally.reason}")
    for finding in trial.findings:
        print(failure_text(replace(finding, id=recorded.id, token=""), backend))
        return FOUND
    print(f"{recorded.id}: {tally.allowed} accesses, each with the instruction and the order that it needs.")
    return OK


def _refused(recorded: RecordedLitmus, adapter: Adapter, backend: str, refused: Refused) -> int:
    """A program that the language refuses."""
    options = replace(recorded.options, opt_level=level_of(adapter, recorded.opt_level))
    answer = litmus.ask(adapter, recorded.program, options)
    if isinstance(answer, Unsupported):
        raise CommandError(f"the backend does not offer what the program uses: {answer.reason}")
    if isinstance(answer, Rejected):
        print(f"{recorded.id}: refused, as {refused.clause} wants it: {answer.reason.rstrip('.')}.")
        return OK
    message = answer if isinstance(answer, str) else f"accepted, although the language refuses it: {refused.reason}"
    finding = Finding(recorded.id, recorded.clause, listing(recorded.program), message=f"{message.rstrip('.')}.")
    print(failure_text(finding, backend))
    return FOUND


def _accepted(recorded: RecordedLitmus, adapter: Adapter, backend: str, options: LitmusOptions) -> int:
    """A program that was refused, or that the backend broke down on: nothing of this is a matter of chance."""
    tally = Tally(recorded.id, "11")
    finding = litmus.run(adapter, recorded.program, options, tally)
    if tally.state == "unsupported":
        raise CommandError(f"the backend does not offer what the program uses: {tally.reason}")
    if finding is not None:
        print(failure_text(finding, backend))
        return FOUND
    print(f"{recorded.id}: accepted and run, {tally.allowed + tally.unspecified:,} instances, nothing forbidden.")
    return OK
