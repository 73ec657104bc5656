"""How much to try, and from which seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

Depth = Literal["quick", "standard", "deep"]

BLOCK = 1 << 15
"""Elements that are run and judged at once; larger blocks fall out of the caches and are slower per element."""


@dataclass(frozen=True)
class Plan:
    """What a run tries. Two runs with equal plans try the same elements, on any machine and in any order.

    Attributes:
        seed: printed with every report.
        depth: ``"quick"``, ``"standard"`` or ``"deep"``.
    """

    seed: int = 0
    depth: Depth = "standard"

    @property
    def elements(self) -> int:
        """Elements of one signature as run-time arrays, about."""
        return {"quick": 1 << 12, "standard": 1 << 15, "deep": 1 << 20}[self.depth]

    @property
    def costly_elements(self) -> int:
        """The same for a signature whose oracle is slow."""
        return {"quick": 1 << 12, "standard": 1 << 14, "deep": 1 << 18}[self.depth]

    @property
    def block(self) -> int:
        """Elements of one block: all of them, but `BLOCK` at most."""
        return min(self.elements, BLOCK)

    @property
    def enumerate_up_to(self) -> int:
        """Operand tuples are enumerated where there are no more of them than this."""
        return 1 << 12 if self.depth == "quick" else 1 << 16

    @property
    def kernels(self) -> int:
        """Kernels that one hypothesis test draws."""
        return {"quick": 30, "standard": 120, "deep": 2500}[self.depth]


def generator(plan: Plan, *names: str) -> np.random.Generator:
    """A random generator of its own for each seed and name, so that no item depends on which others ran.

    PCG64 and the distributions used here give the same stream on every platform.
    """
    digest = hashlib.sha256("\0".join((str(plan.seed), *names)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
