"""Binary relations over a handful of events, as bit matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Relation:
    """A relation over ``0 .. size - 1``: bit b of ``rows[a]`` is set where a is related to b. Never mutated."""

    __slots__ = ("rows",)

    def __init__(self, rows: Iterable[int]) -> None:
        self.rows = tuple(rows)

    @classmethod
    def of(cls, size: int, pairs: Iterable[tuple[int, int]]) -> Relation:
        """The relation that holds just these pairs."""
        rows = [0] * size
        for a, b in pairs:
            rows[a] |= 1 << b
        return cls(rows)

    def __contains__(self, pair: tuple[int, int]) -> bool:
        return bool(self.rows[pair[0]] >> pair[1] & 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for a, row in enumerate(self.rows):
            for b in members(row):
                yield a, b

    def __or__(self, other: Relation) -> Relation:
        return Relation(mine | theirs for mine, theirs in zip(self.rows, other.rows, strict=True))

    def then(self, other: Relation) -> Relation:
        """Composition: a self m and m other b for some m."""
        rows = []
        for row in self.rows:
            reached = 0
            for middle in members(row):
                reached |= other.rows[middle]
            rows.append(reached)
        return Relation(rows)

    def only(self, domain: int = -1, range_: int = -1) -> Relation:
        """The pairs whose first member is in the set ``domain`` and whose second one is in ``range_`` (bit sets)."""
        return Relation(row & range_ if domain >> a & 1 else 0 for a, row in enumerate(self.rows))

    def reflexive(self) -> Relation:
        """With every element related to itself: the ``?`` of relational algebra."""
        return Relation(row | 1 << a for a, row in enumerate(self.rows))

    def closure(self) -> Relation:
        """The transitive closure (Warshall)."""
        rows = list(self.rows)
        for middle in range(len(rows)):
            if reached := rows[middle]:
                for a, row in enumerate(rows):
                    if row >> middle & 1:
                        rows[a] = row | reached
        return Relation(rows)

    @property
    def irreflexive(self) -> bool:
        return not any(row >> a & 1 for a, row in enumerate(self.rows))

    @property
    def acyclic(self) -> bool:
        return self.closure().irreflexive

    def path(self, start: int, end: int) -> list[int]:
        """A shortest path of one step or more, both ends included; empty where there is none."""
        before: dict[int, int] = {}
        frontier = [start]
        while frontier and end not in before:
            reached = []
            for a in frontier:
                for b in members(self.rows[a]):
                    if b not in before:
                        before[b] = a
                        reached.append(b)
            frontier = reached
        if end not in before:
            return []
        path = [end]
        while len(path) == 1 or path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]


def members(bits: int) -> Iterator[int]:
    """The elements of a bit set, least first."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
