"""Orders of atomics, and ways to lose them: the same for every target."""

from __future__ import annotations

CLAUSES = ("intent:11-a", "intent:11-d", "intent:11-f", "intent:11-h")
"""Clauses of which tests about orders have to tell; values tell of the others."""


def reading(order: str) -> str:
    """The order of the load half of an update."""
    return "acquire" if order in ("acquire", "acq_rel") else "relaxed"


def writing(order: str) -> str:
    """The order of the store half of an update."""
    return "release" if order in ("release", "acq_rel") else "relaxed"


HALVED: dict[str, tuple[dict[str, str], str]] = {
    "acq_rel_loses_release": ({"acq_rel": "acquire"}, "An acquire-release update only acquires."),
    "acq_rel_loses_acquire": ({"acq_rel": "release"}, "An acquire-release update only releases."),
    "update_acquire_relaxed": ({"acquire": "relaxed"}, "An acquire update is relaxed."),
    "update_release_relaxed": ({"release": "relaxed"}, "A release update is relaxed."),
}
"""Suspects of updates: for each the orders that are others, and the summary."""
