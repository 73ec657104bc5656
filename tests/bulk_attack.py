"""The bulk path under attack: the arguments on which its enclosures are compared with the slow path."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from halfulp.certify import tables
from halfulp.oracle import functions
from halfulp.oracle.bulk import BulkJudge, Kind, Table, evaluate
from halfulp.oracle.formats import FORMATS

F32 = FORMATS["f32"]

INF, NAN, SIGN = 0x7F80_0000, 0x7FC0_0000, 0x8000_0000
HARD = {"erfc": 0xB76C9F62, "log1p": 0x3EFD81AD, "exp2": 0xBCF3A937}
"""About 2**-33 ulp from a rounding boundary (published worst cases)."""


@cache
def table(name: str) -> Table:
    return tables.table(name)


@cache
def judge(name: str) -> BulkJudge:
    return BulkJudge(table(name))


def attack(name: str, count: int, seed: int) -> Any:
    """Random codes, the ends and the middle of every run with their neighbours, and arguments near anything special."""
    t = table(name)
    rng = np.random.default_rng(seed)
    first, last = t.starts.astype(np.int64), t.last_codes()
    ends = np.concatenate([first, first + 1, last, last - 1, (first + last) // 2, (first + last) // 2 + 1])
    special = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x40000000, 0x7F7FFFFF, INF, NAN])
    near = (np.concatenate([special, special + SIGN])[:, None] + np.arange(-8, 9)).ravel()
    integers = np.arange(-40, 0).astype(np.float32).view(np.uint32).astype(np.int64)
    poles = (integers[:, None] + np.arange(-8, 9)).ravel()
    wide = rng.integers(0, 1 << 32, count)
    # Uniform over codes is uniform over exponents; half of the draws go where the function is neither flat nor trivial.
    busy = np.flatnonzero((t.kinds < Kind.VALUE) & (last - first < 1 << 22))
    chosen = rng.choice(busy, count)
    inside = first[chosen] + (rng.random(count) * (last - first + 1)[chosen]).astype(np.int64)
    if len(ends) > count // 2:
        ends = rng.choice(ends, count // 2)
    rest: list[Any] = [ends, near, poles, [HARD.get(name, 0)]]
    room = max(count - sum(len(part) for part in rest), 0) // 2
    everything = np.concatenate([*rest, wide[:room], inside[:room]])
    return (everything & 0xFFFF_FFFF).astype(np.uint32)


def breaches(name: str, codes: Any) -> tuple[list[str], int, int]:
    """Arb's enclosure of 80 bits lies within the one claimed; and the nearest result is the slow path's.

    Returns:
        what breaks that, in words; how many enclosures were compared; how many of them decide nothing.
    """
    found = evaluate(table(name), codes)
    kinds = table(name).kinds[table(name).run_of(codes)]
    number = (kinds < Kind.VALUE) & np.isfinite(found.y)
    low, high = np.minimum(found.low, found.high), np.maximum(found.low, found.high)
    wrong = []
    for i in np.flatnonzero(number):
        least, greatest = functions.enclosure(name, F32, int(codes[i]), 80)
        a, b = float(low[i]).as_integer_ratio(), float(high[i]).as_integer_ratio()
        if not (a[0] <= least * a[1] and greatest * b[1] <= b[0]):
            wrong.append(f"{name}({codes[i]:#010x}) is not enclosed")
    expected = functions.nearest_many(name, F32, codes)
    nan = (expected & 0x7FFF_FFFF) > INF
    same = (found.nearest == expected) | (nan & ((found.nearest & 0x7FFF_FFFF) > INF))
    wrong += [f"{name}({code:#010x}) is rounded wrongly" for code in codes[~found.undecided & ~same].tolist()]
    return wrong, int(number.sum()), int(found.undecided.sum())


def codes_of(*values: int) -> Any:
    return np.array(values, np.uint32)


STARTS = (0, 0x7FFF00, 0x39FFF000, 0x3F7FF800, 0x3FFFF000, 0x40490000, 0x41100000, 0x42B7C000, 0x42FFF800, 0x7C44AF00,
          0x7F7FF000, 0x80000000, 0xB76C9000, 0xBEFFF000, 0xBF7FF800, 0xC01D0000, 0xC1100000, 0xC3158000, 0xC77FF000,
          0xCAFFF800, 0xFF7FF800)  # fmt: skip
"""First codes of stretches where runs, kinds of runs or binades change."""


def spoiled(name: str, codes: Any, rng: Any) -> Any:
    """Correct results, a third of them moved by up to 9 steps, some replaced by anything at all."""
    got = judge(name).nearest(codes)
    moved = rng.random(len(codes)) < 0.3
    got = np.where(moved, got + rng.integers(-9, 10, len(codes)).astype(np.uint32), got)
    anything = rng.random(len(codes)) < 0.002
    special = rng.choice(codes_of(0, SIGN, INF, INF | SIGN, NAN, NAN | SIGN, 0x7F7FFFFF, 1), len(codes))
    return np.ascontiguousarray(np.where(anything, special, got).astype(np.uint32))
