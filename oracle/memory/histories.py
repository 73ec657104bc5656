"""Large histories: many updates of one location, judged exactly in O(n log n) (``intent:11-b``, ``11-c``).

Threads apply one kind of read-modify-write (or compare-exchange) to one location, again and again, and record the
values returned. If no value ever returns to the location once it has left it, the outputs alone tell modification
order: every update that changes the value leaves a different one, so that the old values and the final one are the
chain. Updates that change nothing, and compare-exchanges that fail, read some value of the chain. The history is
allowed iff the chain is one path from the initial to the final value, and each thread goes along it and never back.

Which operands make sure that no value returns: ``max``, ``min``, ``and``, ``or`` always; ``add`` if all operands have
one sign and their sum stays below 2**width; ``exchange`` and compare-exchange if all values written are different from
each other and from the initial one; ``xor`` if no two operands share a bit. Others are refused, as they would not be
decided exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.oracle.formats import format_of
from halfulp.oracle.memory.program import DTYPES, RMW_KINDS
from halfulp.oracle.sets import Verdict

Array = np.ndarray[Any, np.dtype[Any]]
Indices = np.ndarray[Any, np.dtype[np.int64]]

KINDS = (*RMW_KINDS, "cas")


@dataclass(frozen=True)
class History:
    """What threads did to one location, and what they saw.

    Attributes:
        kind: one of `RMW_KINDS`, or ``"cas"``.
        dtype: one of `DTYPES`.
        initial, final: the value before all operations, and after them.
        operands: one array for each thread, in program order; the desired values for ``"cas"``.
        olds: the values returned, likewise.
        expected, successes: for ``"cas"`` the expected values, and whether the exchange was reported to take place.

    Arrays of values are of the integer dtype. All arrays of one thread have one length.
    """

    kind: str
    dtype: str
    initial: int
    final: int
    operands: tuple[Array, ...]
    olds: tuple[Array, ...]
    expected: tuple[Array, ...] = ()
    successes: tuple[Array, ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.operands))


@dataclass(frozen=True)
class Judgement:
    """What is said of a history.

    Attributes:
        verdict: ALLOWED, FORBIDDEN, or UNSPECIFIED (spurious failures, ``reading:21``).
        clause: the clause that is broken, or that the verdict rests on.
        reason: what is wrong, with the operations concerned; empty if nothing is.
    """

    verdict: Verdict
    clause: str
    reason: str = ""


class Undecided(ValueError):
    """The operands do not make the order recoverable from the outputs."""


class _Wrong(Exception):
    def __init__(self, reason: str, clause: str = "intent:11-b") -> None:
        super().__init__(reason)
        self.clause = clause


def judge(history: History) -> Judgement:
    """Whether some modification order explains a history.

    Raises:
        Undecided: the operands do not exclude that a value returns; see the text above.
        ValueError: arrays do not fit together.
    """
    return _Check(history).judgement()


def contest_expected(
    initial: int, operands: Sequence[Array], olds: Sequence[Array], successes: Sequence[Array]
) -> tuple[Array, ...]:
    """The expected values of a contest of compare-exchanges in which each thread goes by what it last knew.

    That is ``initial`` at first, then the desired value after a success and the old value after a failure.
    """
    found = []
    for desired, old, success in zip(operands, olds, successes, strict=True):
        expected = np.empty_like(desired)
        expected[:1] = initial
        expected[1:] = np.where(success[:-1], desired[:-1], old[:-1])
        found.append(expected)
    return tuple(found)


class _Check:
    def __init__(self, history: History) -> None:
        if history.kind not in KINDS or history.dtype not in DTYPES:
            raise ValueError(f"no histories of {history.kind} on {history.dtype}")
        self.history = history
        self.fmt = format_of(history.dtype)
        numbers = np.dtype(f"{'i' if self.fmt.signed else 'u'}{self.fmt.width // 8}")
        self.unsigned = np.dtype(f"u{self.fmt.width // 8}")

        def joined(arrays: Sequence[Array], kind: np.dtype[Any], what: str) -> Array:
            if [len(array) for array in arrays] != [len(array) for array in history.operands]:
                raise ValueError(f"{what}: one array for each thread, as long as its operands")
            for array in arrays:
                if array.dtype != kind:
                    raise ValueError(f"{what} are {array.dtype}, not {kind}")
            return np.concatenate(arrays) if arrays else np.empty(0, kind)

        self.operands = joined(history.operands, numbers, "operands")
        self.olds = joined(history.olds, numbers, "olds")
        self.ends = np.cumsum([len(array) for array in history.operands], dtype=np.int64)
        self.initial, self.final = numbers.type(history.initial), numbers.type(history.final)
        self.spurious = 0
        if history.kind == "cas":
            self.expected = joined(history.expected, numbers, "expected")
            self.successes = joined(history.successes, np.dtype(bool), "successes")

    def judgement(self) -> Judgement:
        self.refuse()
        try:
            self.check()
        except _Wrong as wrong:
            return Judgement(Verdict.FORBIDDEN, wrong.clause, str(wrong))
        if self.spurious:
            reason = f"{self.spurious} compare-exchanges read the expected value and failed"
            return Judgement(Verdict.UNSPECIFIED, "reading:21", reason)
        return Judgement(Verdict.ALLOWED, "intent:11-c" if self.history.kind == "cas" else "intent:11-b")

    def refuse(self) -> None:
        """Raise `Undecided` unless the operands exclude that a value returns."""
        kind, operands = self.history.kind, self.operands
        if kind == "add":
            if (operands < 0).any() and (operands > 0).any():
                raise Undecided("operands of both signs may bring a value back")
            if abs(_total(operands)) >= 1 << self.fmt.width:
                raise Undecided(f"the sum of the operands wraps past 2**{self.fmt.width}")
        elif kind in ("exchange", "cas"):
            values = np.sort(operands)
            if (values[1:] == values[:-1]).any() or (values == self.initial).any():
                raise Undecided("the values written have to differ from each other and from the initial one")
        elif kind == "xor":
            used = 0
            for operand in operands[operands != 0][: self.fmt.width + 1].view(self.unsigned).tolist():
                if used & operand:
                    raise Undecided("no two operands may share a bit")
                used |= operand

    def check(self) -> None:
        news = self.news()
        changes = news != self.olds
        if self.history.kind == "cas":
            changes = self.successes
        movers = np.flatnonzero(changes)
        levels = self.chain(movers, news[movers])
        self.along(movers, levels)

    def news(self) -> Array:
        """The value that each operation leaves behind, given the one that it read."""
        olds, operands = self.olds, self.operands
        match self.history.kind:
            case "exchange":
                return operands
            case "add":
                sums: Array = olds.view(self.unsigned) + operands.view(self.unsigned)
                return sums.view(olds.dtype)
            case "max":
                return np.maximum(olds, operands)
            case "min":
                return np.minimum(olds, operands)
            case "and":
                return olds & operands
            case "or":
                return olds | operands
            case "xor":
                return olds ^ operands
        equal = olds == self.expected
        lying = np.flatnonzero(self.successes & ~equal)
        if len(lying):
            one = lying[0]
            raise _Wrong(
                f"{self.where(one)} succeeds, though it returns {olds[one]} and expects {self.expected[one]}",
                "intent:11-c",
            )
        self.spurious = int(np.count_nonzero(~self.successes & equal))
        return np.where(self.successes, operands, olds)

    def key(self, values: Array) -> Array | None:
        """Numbers that grow along the chain, where there are any; None where only the links tell the order."""
        since: Array
        match self.history.kind:
            case "add":
                down = (self.operands < 0).any()
                since = values.view(self.unsigned) - self.initial.view(self.unsigned)
                return np.negative(since) if down else since
            case "max":
                return values
            case "min":
                return ~values  # reverses the order, signed or not
            case "and" | "or" | "xor":
                since = values ^ self.initial
                return since.view(self.unsigned)
        return None

    def chain(self, movers: Indices, news: Array) -> Indices:
        """The level of each mover: how many changes come before it.

        Side effect: ``self.values`` are the values of the chain, or their keys, in ascending order, and
        ``self.value_levels`` the levels that they belong to.
        """
        olds = self.olds[movers]
        count = len(movers)
        key = self.key(olds)
        order = _sorting(olds if key is None else key)
        left = olds[order]
        double = np.flatnonzero(left[1:] == left[:-1])
        if len(double):
            first, second = movers[order[double[0]]], movers[order[double[0] + 1]]
            raise _Wrong(f"{self.where(first)} and {self.where(second)} both update {left[double[0]]}")
        again = np.flatnonzero(olds == self.final)
        if len(again):
            raise _Wrong(f"the final value is {self.final}, which {self.where(movers[again[0]])} has updated")
        if not count and self.initial != self.final:
            raise _Wrong(f"nothing writes the final value {self.final}")
        start = np.flatnonzero(olds == self.initial)
        if count and not len(start):
            raise _Wrong(f"nothing updates the initial value {self.initial}")
        if key is None:
            levels = self.linked(movers, order, left, news, start)
            at = np.searchsorted(left, self.final)
            self.values = np.insert(left, at, self.final)
            self.value_levels = np.insert(levels[order], at, count)
            return levels
        following = np.append(left, self.final)
        wrong = np.flatnonzero(news[order] != following[1:])
        if following[0] != self.initial or len(wrong):
            one = order[wrong[0]] if len(wrong) else order[0]
            what = f"{self.where(movers[one])} updates {olds[one]} to {news[one]}"
            raise _Wrong(f"{what}, and the next value that is read is {following[wrong[0] + 1] if len(wrong) else '?'}")
        levels = np.empty(count, np.int64)
        levels[order] = np.arange(count)
        self.values = self.keyed(following)
        self.value_levels = np.arange(count + 1)
        return levels

    def keyed(self, values: Array) -> Array:
        """The keys of values, or the values themselves where there are no keys."""
        key = self.key(values)
        return values if key is None else key

    def linked(self, movers: Indices, order: Indices, left: Array, news: Array, start: Indices) -> Indices:
        """Levels from links alone: the mover that comes next is the one that reads what this one writes.

        Args:
            order, left: the movers by old value, and their old values.
            start: position of the mover that reads the initial value, if there is any mover.
        """
        count = len(movers)
        # Written and read values are the same but for the two ends of the chain.
        writers = _sorting(news)
        written = news[writers]
        ends = written == self.final
        writers, written = writers[~ends], written[~ends]
        inner = left != self.initial
        readers, read = order[inner], left[inner]
        common = min(len(written), len(read))
        differs = np.flatnonzero(written[:common] != read[:common])
        if len(differs) or len(written) != len(read):
            one = int(differs[0]) if len(differs) else common
            if one == len(written) or (one < len(read) and read[one] < written[one]):
                raise _Wrong(f"{self.where(movers[readers[one]])} reads {read[one]}, which nothing writes")
            what = f"{self.where(movers[writers[one]])} writes {written[one]}"
            raise _Wrong(f"{what}, which nothing reads and which is not the final value")
        step = np.full(count, count, np.int64)  # ``count`` is the end
        step[writers] = readers
        levels = _levels(step, start)
        lost = np.flatnonzero(levels < 0)
        if len(lost):
            raise _Wrong(f"{self.where(movers[lost[0]])} is in a circle that the initial value does not enter")
        return levels

    def along(self, movers: Indices, levels: Indices) -> None:
        """Each thread goes along the chain: at a level it may look, and then be the one that leaves it."""
        position = np.empty(len(self.olds), np.int64)
        moves = np.zeros(len(self.olds), bool)
        moves[movers] = True
        position[movers] = 2 * levels + 1
        lookers = np.flatnonzero(~moves)
        seen = self.keyed(self.olds[lookers])
        order = np.argsort(seen)  # sorted needles are found several times faster
        at = np.empty(len(seen), np.int64)
        at[order] = np.searchsorted(self.values, seen[order])
        at[at == len(self.values)] = 0
        strange = np.flatnonzero(self.values[at] != seen)
        if len(strange):
            one = lookers[strange[0]]
            raise _Wrong(f"{self.where(one)} reads {self.olds[one]}, which the location never holds")
        position[lookers] = 2 * self.value_levels[at]
        back = position[1:] < position[:-1]
        starts = self.ends[:-1]
        back[starts[(starts > 0) & (starts < len(position))] - 1] = False
        wrong = np.flatnonzero(back)
        if len(wrong):
            one = int(wrong[0])
            text = f"{self.where(one)} reads {self.olds[one]}, and {self.where(one + 1)} reads {self.olds[one + 1]}"
            raise _Wrong(f"{text}, which came before it")

    def where(self, index: int | np.integer[Any]) -> str:
        thread = int(np.searchsorted(self.ends, index, side="right"))
        start = int(self.ends[thread - 1]) if thread else 0
        return f"operation {int(index) - start} of thread {thread}"


def _total(values: Array) -> int:
    """The exact sum of integers of up to 64 bits."""
    if values.dtype.itemsize < 8:
        return int(values.sum(dtype=np.int64))
    high, low = values >> 32, values & values.dtype.type(0xFFFFFFFF)
    return (int(high.sum(dtype=values.dtype)) << 32) + int(low.sum(dtype=values.dtype))


def _sorting(values: Array) -> Indices:
    """The permutation that sorts values; linear where they are dense and differ, as tickets and ids are."""
    count = len(values)
    if count:
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * count:
            offset = (values - values.dtype.type(low)).astype(np.int64)
            slots = np.full(high - low + 1, -1, np.int64)
            slots[offset] = np.arange(count)
            found = slots[slots >= 0]
            if len(found) == count:
                return found
    return np.argsort(values)


def _levels(step: Indices, start: Indices) -> Indices:
    """The position of each node on the list that begins at ``start``; -1 where it is not on it.

    Args:
        step: for each node the one that follows; ``len(step)`` ends a list. No two nodes have the same successor.

    Many pieces of the list are walked at once, from random nodes to the next of these nodes; then the pieces are put
    together (list ranking by splitters).
    """
    count = len(step)
    levels = np.full(count, -1, np.int64)
    if not count:
        return levels
    picked = np.random.default_rng(0).integers(0, count, count // 256)
    splitters = np.unique(np.append(picked, start))
    piece = np.full(count + 1, -1, np.int64)  # which piece a node is in; the heads of pieces, and the end, stop a walk
    piece[splitters] = np.arange(len(splitters))
    piece[count] = len(splitters)
    levels[splitters] = 0
    length = np.zeros(len(splitters), np.int64)
    next_piece = np.full(len(splitters), -1, np.int64)
    lanes, at = np.arange(len(splitters)), splitters
    distance = 0
    while len(lanes):
        distance += 1
        at = step[at]
        ended = piece[at] >= 0
        if ended.any():
            length[lanes[ended]] = distance
            next_piece[lanes[ended]] = piece[at[ended]]
            lanes, at = lanes[~ended], at[~ended]
        piece[at] = lanes
        levels[at] = distance
    base = np.full(len(splitters), -1, np.int64)
    here, reached = int(piece[start[0]]), 0
    lengths, following = length.tolist(), next_piece.tolist()
    while here < len(splitters):
        base[here] = reached
        reached += lengths[here]
        here = following[here]
    found = piece[:count] >= 0
    found[found] = base[piece[:count][found]] >= 0
    levels[found] += base[piece[:count][found]]
    levels[~found] = -1
    return levels
