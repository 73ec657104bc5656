"""Large histories: exact against brute force, fast, and every broken variant is caught."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfulp.oracle.memory.histories import KINDS, History, Undecided, contest_expected, judge
from halfulp.oracle.memory.model import RMW_RULES
from halfulp.oracle.memory.program import DTYPES, bounds
from halfulp.oracle.sets import Verdict

Array = np.ndarray[Any, np.dtype[Any]]


def numbers(dtype: str) -> np.dtype[Any]:
    return np.dtype(f"{dtype[0]}{int(dtype[1:]) // 8}")


def operands(kind: str, dtype: str, count: int, rng: np.random.Generator) -> tuple[int, Array]:
    """An initial value, and operands that make the order recoverable."""
    low, high = bounds(dtype)
    kindtype = numbers(dtype)
    match kind:
        case "add":
            return high - 3, np.ones(count, kindtype)
        case "exchange" | "cas":
            return 0, (rng.permutation(count) + 1).astype(kindtype)
        case "max" | "min":
            start = low if kind == "max" else high
            return start, rng.integers(low, high, count, dtype=kindtype, endpoint=True)
        case "or" | "xor":
            bits = np.zeros(count, kindtype)
            width = min(count, 8 * kindtype.itemsize)
            bits[:width] = np.left_shift(1, np.arange(width, dtype=np.uint64)).astype(kindtype)
            return 0, rng.permutation(bits)
    bits = np.full(count, -1 if low < 0 else high, kindtype)
    width = min(count, 8 * kindtype.itemsize)
    bits[:width] ^= np.left_shift(1, np.arange(width, dtype=np.uint64)).astype(kindtype)
    return (-1 if low < 0 else high), rng.permutation(bits)


def ran(kind: str, dtype: str, count: int, threads: int, seed: int) -> History:
    """The history of a correct location: threads take turns at random."""
    rng = np.random.default_rng(seed)
    initial, values = operands(kind, dtype, count, rng)
    who = rng.integers(0, threads, count)
    ok = np.zeros(count, bool)
    expected = np.zeros_like(values)
    olds = np.empty_like(values)
    value = initial
    known = [initial] * threads
    for i, operand in enumerate(values.tolist()):
        olds[i] = value
        if kind == "cas":
            expected[i] = known[who[i]]
            ok[i] = expected[i] == value
            known[who[i]] = operand if ok[i] else value
            value = operand if ok[i] else value
        else:
            value = RMW_RULES[kind](value, operand, dtype)
    parts = [tuple(array[who == thread] for thread in range(threads)) for array in (values, olds, expected, ok)]
    return History(kind, dtype, initial, value, *(parts if kind == "cas" else parts[:2]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_correct_histories_are_allowed(kind: str, dtype: str) -> None:
    for seed, count in enumerate((0, 1, 2, 30, 500)):
        history = ran(kind, dtype, count, 3, seed)
        assert judge(history).verdict is Verdict.ALLOWED, judge(history).reason
        if kind == "cas":
            derived = contest_expected(history.initial, history.operands, history.olds, history.successes)
            assert all((a == b).all() for a, b in zip(derived, history.expected, strict=True))


# Exact: against every interleaving.


def explained(history: History) -> bool:
    """Whether some interleaving of the threads gives this history (compare-exchanges may not fail spuriously)."""
    sizes = [len(thread) for thread in history.operands]

    def search(places: tuple[int, ...], value: int) -> bool:
        if all(place == size for place, size in zip(places, sizes, strict=True)):
            return value == history.final
        for thread, place in enumerate(places):
            if place == sizes[thread] or int(history.olds[thread][place]) != value:
                continue
            operand = int(history.operands[thread][place])
            if history.kind == "cas":
                exchanged = bool(history.successes[thread][place])
                if exchanged != (int(history.expected[thread][place]) == value):
                    continue
                after = operand if exchanged else value
            else:
                after = RMW_RULES[history.kind](value, operand, history.dtype)
            if search((*places[:thread], place + 1, *places[thread + 1 :]), after):
                return True
        return False

    return search((0,) * len(sizes), history.initial)


@st.composite
def small(draw: st.DrawFn) -> History:
    """A correct history of a few operations in which some returned values may have been changed."""
    kind, dtype = draw(st.sampled_from(KINDS)), draw(st.sampled_from(DTYPES))
    history = ran(kind, dtype, draw(st.integers(0, 7)), draw(st.integers(1, 3)), draw(st.integers(0, 99)))
    seen = sorted({int(v) for array in (*history.olds, *history.operands) for v in array} | {history.final})
    olds = tuple(array.copy() for array in history.olds)
    successes = tuple(array.copy() for array in history.successes)
    final = history.final
    for _ in range(draw(st.integers(0, 2))):
        where = draw(st.integers(0, len(olds) - 1))
        if len(olds[where]):
            at = draw(st.integers(0, len(olds[where]) - 1))
            what = draw(st.integers(0, 3))
            if what == 0 and kind == "cas":
                successes[where][at] ^= True
            elif what == 1:
                final = draw(st.sampled_from(seen))
            elif what == 2:
                other = draw(st.integers(0, len(olds[where]) - 1))
                olds[where][[at, other]] = olds[where][[other, at]]
            else:
                olds[where][at] = draw(st.sampled_from(seen))
    return History(kind, dtype, history.initial, final, history.operands, olds, history.expected, successes)


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(small())
def test_verdicts_are_those_of_brute_force(history: History) -> None:
    found = judge(history)
    if found.verdict is not Verdict.UNSPECIFIED:
        assert (found.verdict is Verdict.ALLOWED) == explained(history), found.reason
        assert bool(found.reason) == (found.verdict is Verdict.FORBIDDEN)


# Broken variants of long histories.


def joined(arrays: tuple[Array, ...]) -> Array:
    return np.concatenate(arrays)


def split(array: Array, like: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.split(array, np.cumsum([len(part) for part in like])[:-1]))


def broken(history: History) -> Iterator[tuple[str, History]]:
    """The history as wrong implementations would have made it."""
    kind, dtype, initial, final, ops, olds, expected, ok = vars(history).values()
    flat, values = joined(olds), joined(ops)
    middle = len(flat) // 2
    if ok:
        movers = np.flatnonzero(joined(ok))
    else:
        pairs = zip(flat.tolist(), values.tolist(), strict=True)
        news = np.array([RMW_RULES[kind](old, value, dtype) for old, value in pairs]).astype(flat.dtype)
        movers = np.flatnonzero(news != flat)

    def changed(olds: Array = flat, final: int = final, ok: tuple[Array, ...] = ok) -> History:
        return History(kind, dtype, initial, final, ops, split(olds, ops), expected, ok)

    one, other = movers[len(movers) // 3], movers[2 * len(movers) // 3]
    twice = flat.copy()
    twice[one] = flat[other]
    yield "an update is lost: two read the same value", changed(twice)
    swapped = flat.copy()
    swapped[[one, other]] = flat[[other, one]]
    if kind not in ("max", "min", "and", "or"):  # there the swapped values may be explained by another order
        yield "two returned values are swapped", changed(swapped)
    yield "the final value is an earlier one", changed(final=int(flat[movers[len(movers) // 2]]))
    if kind in ("exchange", "cas"):
        _, high = bounds(dtype)
        strange = flat.copy()
        strange[middle] = high
        yield "a value that nobody wrote", changed(strange)
        yield "the final value was never written", changed(final=high)
    if kind in ("add", "exchange", "xor"):
        yield "the new value is returned", changed(news)
    if kind == "cas":
        flipped = joined(ok).copy()
        flipped[one] = False
        flipped[np.flatnonzero(~flipped)[0]] = True
        yield "success is wrong", changed(ok=split(~joined(ok), ok))
        yield "a success is reported twice", changed(ok=split(flipped, ok))
    backwards = [array.copy() for array in olds]
    backwards[0] = backwards[0][::-1].copy()
    reversed_ops = (ops[0][::-1].copy(), *ops[1:])
    more = ((expected[0][::-1].copy(), *expected[1:]), (ok[0][::-1].copy(), *ok[1:])) if kind == "cas" else ((), ())
    yield "a thread goes backwards", History(kind, dtype, initial, final, reversed_ops, tuple(backwards), *more)


@pytest.mark.parametrize("dtype", ["u32", "i64"])
@pytest.mark.parametrize("kind", KINDS)
def test_broken_variants_are_caught(kind: str, dtype: str) -> None:
    history = ran(kind, dtype, 60 if kind in ("and", "or", "xor") else 5000, 4, 7)
    assert judge(history).verdict is Verdict.ALLOWED
    caught = 0
    for what, wrong in broken(history):
        found = judge(wrong)
        assert found.verdict is Verdict.FORBIDDEN, what
        assert found.reason, what
        assert found.clause in ("intent:11-b", "intent:11-c")
        caught += 1
    assert caught >= 3


def test_circles_are_caught() -> None:
    """Every value is written once and read once, and yet there are two chains."""
    ids, olds = np.arange(1, 7, dtype=np.uint32), np.array([0, 1, 2, 6, 4, 5], np.uint32)
    found = judge(History("exchange", "u32", 0, 3, (ids,), (olds,)))
    assert found.verdict is Verdict.FORBIDDEN
    assert "circle" in found.reason


def test_spurious_failures_are_unspecified() -> None:
    one = np.array([1], np.int32)
    zero, no = np.array([0], np.int32), np.array([False])
    found = judge(History("cas", "i32", 0, 0, (one,), (zero,), (zero,), (no,)))
    assert (found.verdict, found.clause) == (Verdict.UNSPECIFIED, "reading:21")
    lie = judge(History("cas", "i32", 0, 1, (one,), (zero,), (one,), (~no,)))
    assert (lie.verdict, lie.clause) == (Verdict.FORBIDDEN, "intent:11-c")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("exchange", [1, 2, 1]),
        ("exchange", [1, 0]),
        ("add", [1, -1]),
        ("add", [2**31 - 1, 2**31 - 1, 2]),
        ("xor", [3, 1]),
        ("xor", [1] * 40),
    ],
)
def test_what_cannot_be_decided_is_refused(kind: str, values: list[int]) -> None:
    array = np.array(values, np.int32)
    with pytest.raises(Undecided):
        judge(History(kind, "i32", 0, 0, (array,), (array,)))


def test_arrays_have_to_fit() -> None:
    one, two = np.ones(1, np.uint32), np.ones(2, np.uint32)
    with pytest.raises(ValueError, match="as long as its operands"):
        judge(History("add", "u32", 0, 1, (one,), (two,)))
    with pytest.raises(ValueError, match="not uint32"):
        judge(History("add", "u32", 0, 1, (one,), (one.astype(np.int32),)))
    with pytest.raises(ValueError, match="no histories of nand"):
        judge(History("nand", "u32", 0, 1, (one,), (one,)))


def test_a_million_operations_in_time() -> None:
    """10**7 take seconds; a tenth of them is tried here."""
    n, rng = 10**6, np.random.default_rng(1)
    who = rng.integers(0, 4, n)
    tickets = np.arange(n, dtype=np.uint32)
    ids = rng.permutation(n).astype(np.int64) + 1
    before = np.append(np.int64(0), ids[:-1])

    def parts(array: Array) -> tuple[Array, ...]:
        return tuple(array[who == thread] for thread in range(4))

    start = time.process_time()
    assert judge(History("add", "u32", 0, n, parts(np.ones(n, np.uint32)), parts(tickets))).verdict is Verdict.ALLOWED
    assert judge(History("exchange", "i64", 0, int(ids[-1]), parts(ids), parts(before))).verdict is Verdict.ALLOWED
    before[[5, 77]] = before[[77, 5]]
    assert judge(History("exchange", "i64", 0, int(ids[-1]), parts(ids), parts(before))).verdict is Verdict.FORBIDDEN
    assert time.process_time() - start < 6
