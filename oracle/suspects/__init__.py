"""Suspects: named wrong rules, used as saboteurs (the suite must catch each) and as diagnosis of real failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.oracle.formats import Bits
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.suspects import arithmetic, casts, functions, graphs, integers, random, typing, variants
from halfulp.oracle.suspects.diagnose import Ranked
from halfulp.oracle.suspects.diagnose import diagnose as _diagnose
from halfulp.oracle.suspects.record import Suspect

__all__ = ["FAULTS", "SUSPECTS", "VARIANTS", "Ranked", "Suspect", "diagnose", "suspect"]

_ALL = (
    *casts.SUSPECTS,
    *integers.SUSPECTS,
    *arithmetic.SUSPECTS,
    *graphs.SUSPECTS,
    *functions.SUSPECTS,
    *random.SUSPECTS,
    *typing.SUSPECTS,
    *variants.VARIANTS,
    *functions.VARIANTS,
    *random.VARIANTS,
)

SUSPECTS: dict[str, Suspect] = {record.name: record for record in _ALL}
"""Every suspect by name, allowed variants included."""

assert len(SUSPECTS) == len(_ALL), "two suspects share a name"

FAULTS: dict[str, Suspect] = {name: record for name, record in SUSPECTS.items() if record.fault}
"""Suspects that break a clause."""

VARIANTS: dict[str, Suspect] = {name: record for name, record in SUSPECTS.items() if not record.fault}
"""Freedoms of the language that look like faults."""


def suspect(name: str) -> Suspect:
    """Look a suspect up by name.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    try:
        return SUSPECTS[name]
    except KeyError:
        raise ValueError(f"unknown suspect {name!r}; known suspects: {', '.join(SUSPECTS)}") from None


def diagnose(
    kernel: Kernel,
    inputs: Sequence[Bits],
    outputs: Sequence[Bits],
    verdicts: Sequence[np.ndarray[Any, np.dtype[np.uint8]]],
) -> list[Ranked]:
    """The faults that explain forbidden results, best first; see `halfulp.oracle.suspects.diagnose.diagnose`."""
    return _diagnose(FAULTS.values(), kernel, inputs, outputs, verdicts)
