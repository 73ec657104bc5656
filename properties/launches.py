"""Random bits do not depend on how they are asked for (``intent:12-d``).

The same seeds and counters are passed again, in another order, in pieces, one by one, with the seed as a scalar and
beside those of another seed. What comes out is compared with what came out first; the oracle has no part in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from halfulp.adapters.protocol import Adapter, Rejected, Unsupported
from halfulp.oracle.formats import Bits
from halfulp.oracle.ops import operation, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.properties import modes
from halfulp.properties.execute import Broken, Program, compile_all
from halfulp.properties.plan import Plan, generator
from halfulp.properties.results import Finding, Tally, Trial

CLAUSE = "intent:12-d"

COUNT = 2053
"""Counters of a launch: no multiple of a vector, a block of words or a page."""

PIECES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 33, 64, 101, 256)

Launch = Callable[[Bits, Bits], Bits]
"""Runs a program on seeds and counters of shape (n,)."""


class _Stopped(Exception):
    """The program did not run to its end."""

    def __init__(self, answer: Unsupported | Broken) -> None:
        self.answer = answer


def _launch(program: Program, *, scalar: bool = False) -> Launch:
    def call(seeds: Bits, counters: Bits) -> Bits:
        outputs = program((seeds[:1].reshape(()) if scalar else seeds, counters))
        if isinstance(outputs, (Unsupported, Broken)):
            raise _Stopped(outputs)
        return outputs[0]

    return call


def _in_pieces(launch: Launch, seeds: Bits, counters: Bits, lengths: Sequence[int]) -> Bits:
    found, at = [], 0
    while at < len(counters):
        for length in lengths:
            part = slice(at, at + length)
            if at < len(counters):
                found.append(launch(np.ascontiguousarray(seeds[part]), np.ascontiguousarray(counters[part])))
            at += length
    return np.concatenate(found)


def _ways(
    arrays: Launch, scalar: Launch, seeds: Bits, counters: Bits, rng: np.random.Generator
) -> Iterator[tuple[str, Bits]]:
    """Other ways to ask for the same words, each with what comes out, in the order of the first launch."""
    yield "once more", arrays(seeds, counters)
    yield "in reverse order", arrays(seeds, np.ascontiguousarray(counters[::-1]))[::-1]
    order = rng.permutation(len(counters))
    shuffled = np.empty(len(counters), arrays(seeds[:1], counters[:1]).dtype)
    shuffled[order] = arrays(seeds, counters[order])
    yield "in random order", shuffled
    yield "in pieces", _in_pieces(arrays, seeds, counters, PIECES)
    yield (
        "one by one",
        np.concatenate([_in_pieces(arrays, seeds[:33], counters[:33], (1,)), arrays(seeds[33:], counters[33:])]),
    )
    yield "with the seed as a scalar", scalar(seeds, counters)
    turns = np.repeat(seeds, 2)
    turns[1::2] ^= np.uint64(0x8000000000000001)
    yield "beside those of another seed", arrays(turns, np.repeat(counters, 2))[::2]


def try_launches(adapter: Adapter, plan: Plan) -> Trial:
    """Launch each random operation in many ways, at the lowest and the highest optimisation level."""
    trial = Trial()
    for signature in signatures(("random_bits", "random_uniform")):
        kernel = operation(signature.op).kernel(signature)
        for level in sorted({min(adapter.opt_levels), max(adapter.opt_levels)}):
            tally = Tally(f"launches[{signature.op},{signature.args[1]}]/O{level}", "12")
            trial.tallies.append(tally)
            start = time.perf_counter()
            answers = compile_all(adapter, [kernel, modes.with_scalar(kernel, 0)], level)
            finding = _compared(signature, answers, generator(plan, tally.id), tally)
            tally.seconds = time.perf_counter() - start
            if finding is not None:
                finding.kernel = str(kernel)
                finding.dtypes = (*signature.args, signature.result)
                trial.findings.append(finding)
    return trial


def _compared(
    signature: Signature,
    answers: Sequence[Program | Rejected | Unsupported | Broken],
    rng: np.random.Generator,
    tally: Tally,
) -> Finding | None:
    programs: list[Program] = []
    for answer in answers:
        if not callable(answer):
            return _not_run(answer, tally)
        programs.append(answer)
    seeds = np.full(COUNT, rng.integers(0, 1 << 63, dtype=np.uint64), np.uint64)
    counters = np.arange(COUNT, dtype=np.uint64) + np.uint64((1 << 34) - 1026)
    try:
        arrays, scalar = _launch(programs[0]), _launch(programs[1], scalar=True)
        first = arrays(seeds, counters)
        for way, found in _ways(arrays, scalar, seeds, counters, rng):
            wrong = int(np.count_nonzero(found != first))
            tally.allowed += COUNT - wrong
            tally.forbidden += wrong
            if wrong:
                message = f"{wrong} of {COUNT} words differ when the same counters are passed {way}."
                return Finding(
                    tally.id, CLAUSE, forbidden=wrong, judged=COUNT, message=message, clauses={CLAUSE: wrong}
                )
    except _Stopped as stopped:
        return _not_run(stopped.answer, tally)
    finally:
        tally.cases[CLAUSE] = tally.allowed + tally.forbidden
    return None


def _not_run(answer: Rejected | Unsupported | Broken, tally: Tally) -> Finding | None:
    """A refusal is a finding of the operation itself; here it means that nothing could be compared."""
    if isinstance(answer, Broken):
        tally.state, tally.reason = "not run", answer.message
        return Finding(tally.id, CLAUSE, message=f"{answer.message.rstrip('.')}.")
    tally.state, tally.reason = "unsupported" if isinstance(answer, Unsupported) else "rejected", answer.reason
    return None
