"""Outcomes of several outputs: which sets are right together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Any

from halfulp.oracle.formats import Format
from halfulp.vectors.ranges import Row, row

MOST_POINTS = 8
"""Results of one output that are listed one by one. An output with more is one that has no choice to share."""

Joint = tuple[int, ...]
"""One result for each output that has a choice."""


def points(one: Row) -> list[int] | None:
    """The results of an output that has a choice between a few; None where it has none, or many."""
    count = sum(high - low + 1 for low, high in one.allowed)
    if count < 2 or count > MOST_POINTS:
        return None
    return [code for low, high in one.allowed for code in range(low, high + 1)]


def joined(formats: Sequence[Format], separate: Sequence[Row], together: Iterable[Joint]) -> list[list[Row]]:
    """Alternatives, each with one row for each output.

    Args:
        separate: what each output may be on its own.
        together: the combinations of results that are right, of the outputs that have `points`, in order.
    """
    choices = {place: found for place, one in enumerate(separate) if (found := points(one)) is not None}
    right = sorted(set(together))
    if len(right) == prod(len(found) for found in choices.values()):
        return [list(separate)]
    alternatives = []
    for joint in right:
        results = dict(zip(choices, joint, strict=True))
        alternatives.append(
            [
                row(formats[place], results[place], [(results[place],) * 2]) if place in choices else one
                for place, one in enumerate(separate)
            ]
        )
    # Combinations of results that belong to different choices: an output computed anew for another user.
    alternatives.append(
        [
            Row(one.nearest, (), row(formats[place], 0, [*one.allowed, *one.unspecified]).allowed)
            if place in choices
            else one
            for place, one in enumerate(separate)
        ]
    )
    return alternatives


def combinations(separate: Sequence[Row]) -> Iterable[Joint]:
    """Every combination of results of the outputs that have `points`."""
    return product(*(found for one in separate if (found := points(one)) is not None))


def as_fields(formats: Sequence[Format], alternatives: Iterable[Sequence[Row]]) -> list[list[dict[str, Any]]]:
    """Alternatives as JSON data."""
    return [
        [
            {
                "allowed": [[fmt.hex(low), fmt.hex(high)] for low, high in one.allowed],
                "unspecified": [[fmt.hex(low), fmt.hex(high)] for low, high in one.unspecified],
            }
            for fmt, one in zip(formats, alternative, strict=True)
        ]
        for alternative in alternatives
    ]
