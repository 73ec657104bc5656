"""Contests on the device: threads that update one location, again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfulp.adapters.protocol import Contest, ContestRun, LitmusOptions
from halfulp.backends.common.litmus_check import NUMPY
from halfulp.backends.cuda.driver import Buffer, Function, Timer


@dataclass
class ContestCode:
    """A compiled contest."""

    dtype: str
    function: Function

    def run(self, contest: Contest, options: LitmusOptions) -> ContestRun:
        threads = len(contest.operands)
        dtype = np.dtype(NUMPY[self.dtype])
        lengths = [len(array) for array in contest.operands]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
        total = int(offsets[-1])
        sizes = (total * dtype.itemsize, total * dtype.itemsize, total, offsets.nbytes, 8)
        operands, olds, flags, places, cell = map(Buffer, sizes)
        operands.put(np.concatenate([np.asarray(array, dtype) for array in contest.operands]))
        places.put(offsets)
        initial = np.array(contest.initial, dtype)
        cell.put(initial.reshape(1))
        block, spread = _contest_shape(options.placement, threads)
        unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
        grid = -(-threads * spread // block)
        with Timer() as timer:
            self.function.launch(
                grid,
                block,
                operands,
                olds,
                flags,
                places,
                cell,
                initial.view(unsigned),
                np.uint32(threads),
                np.uint32(spread),
            )
        cuts = offsets[1:-1].astype(np.int64)
        found = tuple(np.split(olds.get(dtype, total), cuts))
        successes = tuple(np.split(flags.get(np.uint8, total) != 0, cuts)) if contest.kind == "cas" else ()
        return ContestRun(found, successes, int(cell.get(dtype, 1)[0]), timer.seconds)


def _contest_shape(placement: str, threads: int) -> tuple[int, int]:
    """Threads of a block, and the distance of contestants: in blocks of their own, in warps, or side by side."""
    if placement == "together":
        return 32, 1
    if placement == "free":
        return min(1024, 32 * threads), 32
    return (32, 32) if threads <= 4096 else (256, 1)
