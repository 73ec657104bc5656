"""A search for larger errors, where inputs cannot be enumerated: bracket an input that is bad, and narrow down.

Around each of the worst inputs found so far, inputs are drawn from a bracket of neighbouring codes; the worst of them
becomes the new centre and the bracket a quarter as wide, until it holds nothing new. What it finds is a lower bound.
"""

from __future__ import annotations

import hashlib

import numpy as np

from halfulp.certify.sweep.job import Job, run_points
from halfulp.certify.sweep.part import Part
from halfulp.oracle import codes

WIDEST = 48
"""The first bracket holds 2**48 codes to either side, which is 1/16 of a binade of f64."""

TRIED = 24
"""Inputs tried in a bracket at once."""


def search(job: Job, starts: list[tuple[int, ...]], seed: int) -> Part:
    """Search around some inputs of an operation of one operand.

    Args:
        starts: the worst inputs so far.
        seed: the draws depend on it.

    Returns:
        counts and extremes of the inputs that were tried, and at ``worst`` the worst of them.
    """
    fmt = job.signature.formats[0]
    digest = hashlib.sha256(f"{seed}\0search\0{job.signature.id}".encode()).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
    low, high = codes.ordinal_span(fmt)
    centres = [int(codes.ordinal(fmt, np.array([start[0]], fmt.storage))[0]) for start in starts]
    total = Part()
    for bits in range(min(WIDEST, fmt.width - 8), -1, -2):
        width = 1 << bits
        for place, centre in enumerate(centres):
            drawn = rng.integers(max(low, centre - width), min(high, centre + width), TRIED, endpoint=True)
            tried = np.unique(np.append(drawn, centre))
            found = run_points(job, [(code,) for code in codes.from_ordinal(fmt, tried).tolist()])
            if found.worst:
                worst = np.array([found.worst[0].operands[0]], fmt.storage)
                centres[place] = int(codes.ordinal(fmt, worst)[0])
            total.add(found)
    return total
