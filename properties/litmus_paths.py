"""Paths through the instructions of a function, whatever their language: blocks of accesses, and where they go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from halfulp.properties.litmus_accesses import Emitted, Path, UnreadableError
from halfulp.properties.litmus_wanted import Fact

MOST_PATHS = 1 << 10
"""More paths than this are not looked at."""

Condition = tuple[str, int, bool]
"""What is known on a way: a name, the number that it is compared with, and whether it is that number."""


@dataclass
class Block:
    """A basic block: its accesses, each with the name of its result, and where it goes on.

    Attributes:
        ways: labels, each with what is known of the way there.
    """

    accesses: list[tuple[str, Emitted]] = field(default_factory=list)
    ways: list[tuple[str, tuple[Condition, ...]]] = field(default_factory=list)
    returns: bool = False


class Flow:
    """The blocks of a function by label; that of the entry is ``""``.

    Attributes:
        values: for a name that is a part of a result, the name of the result and which part: ``"value"`` or
            ``"success"``.
    """

    def __init__(self) -> None:
        self.blocks: dict[str, Block] = {"": Block()}
        self.values: dict[str, tuple[str, str]] = {}

    def paths(self) -> Iterator[Path]:
        """The paths from the entry to a return that take no block twice.

        Raises:
            UnreadableError: a label is missing, or there are too many paths.
        """
        pending: list[tuple[str, tuple[str, ...], tuple[Condition, ...]]] = [("", (), ())]
        count = 0
        while pending:
            label, before, known = pending.pop()
            block = self.blocks.get(label)
            if block is None:
                raise UnreadableError(f"there is no block {label}")
            taken = (*before, label)
            if block.returns:
                count += 1
                if count > MOST_PATHS:
                    raise UnreadableError(f"more than {MOST_PATHS:,} paths")
                yield self._path(taken, known)
            ways = [(way, (*known, *said)) for way, said in block.ways if way not in taken]
            pending += [(way, taken, facts) for way, facts in reversed(ways)]

    def _path(self, labels: tuple[str, ...], known: tuple[Condition, ...]) -> Path:
        accesses = [access for label in labels for access in self.blocks[label].accesses]
        places = {name: at for at, (name, _) in enumerate(accesses) if name}
        facts = []
        for name, number, holds in known:
            result, what = self.values.get(name, (name, "value"))
            if result in places:
                facts.append(Fact(places[result], what, number, holds))
        return Path(tuple(emitted for _, emitted in accesses), tuple(facts))
