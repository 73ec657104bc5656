"""Settings of launches: what makes the roles of an instance meet in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np


@dataclass(frozen=True)
class Knobs:
    """How a launch is laid out. None of it changes which outcomes are allowed.

    Attributes:
        size: log2 of the instances of a launch.
        chunk: log2 of the instances whose roles are played by blocks next to each other.
        block: threads of a block.
        steps: instances that a thread takes part in, one after the other.
        rotate: a thread plays another role in each step.
        waits: cycles that each role waits first; role r waits ``waits[r % len(waits)]``.
        jitter: cycles that a warp may wait beyond that, at random.
        spacing: bytes between the cells of a location, a power of two; at least the width of the dtype.
        shuffle: cells of neighbouring instances are not neighbours.
        before: reads and writes elsewhere before each step.
        stress_every, stress: of so many blocks one does nothing but so many reads and writes elsewhere; 0: none.
    """

    size: int = 17
    chunk: int = 13
    block: int = 256
    steps: int = 1
    rotate: bool = False
    waits: tuple[int, ...] = (0,)
    jitter: int = 0
    spacing: int = 64
    shuffle: bool = False
    before: int = 0
    stress_every: int = 0
    stress: int = 0

    def __str__(self) -> str:
        """What differs from the defaults: ``chunk=10 waits=0,800``."""
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                text = ",".join(map(str, value)) if isinstance(value, tuple) else str(int(value))
                shown.append(f"{field.name}={text}")
        return " ".join(shown) or "defaults"


PORTFOLIO: tuple[Knobs, ...] = (
    Knobs(size=15),
    Knobs(size=15, before=8),
    Knobs(size=15, chunk=10, jitter=1000, rotate=True),
    Knobs(size=15, chunk=11, waits=(0, 600, 1200, 1800)),
    Knobs(size=15, chunk=11, waits=(1800, 1200, 600, 0), rotate=True),
    Knobs(size=15, chunk=9, block=128, jitter=3000, stress_every=4, stress=32),
)
"""What short runs take, in turns."""


def drawn(generator: np.random.Generator, roles: int, steps: Sequence[int]) -> Knobs:
    """A setting at random."""

    def one(*choices: int) -> int:
        return int(choices[generator.integers(len(choices))])

    return Knobs(
        size=one(15, 16, 17),
        chunk=one(9, 10, 11, 12, 13, 14, 15),
        block=one(64, 128, 256, 512),
        steps=one(*steps),
        rotate=bool(one(0, 1)),
        waits=tuple(one(0, 0, 100, 200, 400, 800, 1600, 3200) for _ in range(roles)),
        jitter=one(0, 0, 256, 1024, 4096),
        spacing=one(8, 16, 32, 64, 128),
        shuffle=bool(one(0, 1)),
        before=one(0, 0, 4, 16),
        stress_every=(stressed := one(0, 0, 0, 4, 8)),
        stress=one(16, 64) if stressed else 0,
    )


def varied(knobs: Knobs, generator: np.random.Generator, roles: int, steps: Sequence[int]) -> Knobs:
    """The setting with the waits changed by up to a factor of two, and one other knob drawn anew."""
    waits = tuple(int(wait * generator.uniform(0.5, 2) + generator.integers(0, 100)) for wait in knobs.waits)
    fresh = drawn(generator, roles, steps)
    names = ("chunk", "block", "steps", "jitter", "spacing", "before", "size")
    name = names[int(generator.integers(len(names)))]
    return replace(knobs, waits=waits, **{name: getattr(fresh, name)})
