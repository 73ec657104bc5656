"""The native check of f32 quotients against allowed sets: what it clears is right, and it clears all that is right."""

from __future__ import annotations

import numpy as np
import pytest

from halfulp.certify.sweep.judges import QuotientJudge, SetJudge
from halfulp.oracle.bulk.quotients import PIECE, Quotients, quotients
from halfulp.oracle.formats import FORMATS, Bits
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.functions import APPROXIMATE, FLUSHING, flushes, is_approximate
from halfulp.oracle.ops.record import Attrs, Signature
from halfulp.oracle.sets import Verdict

F32 = FORMATS["f32"]
SIGN = np.uint32(F32.sign_mask)
MODES: tuple[Attrs, ...] = ((), APPROXIMATE, FLUSHING)
N = 5 * PIECE + 1234


def signature(attrs: Attrs) -> Signature:
    return Signature("fdiv", ("f32", "f32"), "f32", attrs)


def native(attrs: Attrs) -> Quotients:
    return quotients(is_approximate(attrs), flushes(attrs))


def pairs(seed: int) -> tuple[Bits, Bits]:
    """Any bits; critical ones; quotients near a given one, among them ties of subnormal results, and the overflow."""
    rng = np.random.default_rng(seed)
    a, b = (np.frombuffer(rng.bytes(4 * N), np.uint32).copy() for _ in range(2))
    critical = np.unique(np.concatenate(operation("fdiv").critical(signature(()))))
    kind = rng.integers(0, 6, N)
    a = np.where(kind == 1, rng.choice(critical, N), a)
    b = np.where((kind == 1) | (kind == 2), rng.choice(critical, N), b)
    edge = rng.choice([2.0**-150, 3 * 2.0**-150, 2.0**-126, 2.0**-126 - 2.0**-150, 2.0**128 - 2.0**103], N)
    with np.errstate(all="ignore"):
        short = np.ldexp(rng.integers(1, 1 << 12, N), rng.integers(-60, 100, N))
        a = np.where(kind == 3, (edge * short).astype(np.float32).view(np.uint32), a)
        b = np.where(kind == 3, short.astype(np.float32).view(np.uint32), b)
    return a, b


def is_nan(bits: Bits) -> np.ndarray:
    return (bits & ~SIGN) > F32.infinity_bits


def spoiled(nearest: Bits, seed: int) -> Bits:
    """Half of the results moved by a step or two, or in sign, or replaced by special ones."""
    rng = np.random.default_rng(seed)
    special = rng.choice(np.array([0, SIGN, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001], np.uint32), N)
    step = rng.choice(np.array([1, 2, -1, -2]), N).astype(np.int64)
    moved = ((nearest + step) & 0xFFFF_FFFF).astype(np.uint32)
    return np.choose(rng.integers(0, 8, N), [nearest] * 4 + [moved, moved, nearest ^ SIGN, special]).astype(np.uint32)


@pytest.mark.parametrize("attrs", MODES)
def test_clear_is_right_and_right_is_clear(attrs: Attrs) -> None:
    for seed in range(4):
        a, b = pairs(seed)
        allowed = operation("fdiv").allowed(signature(attrs), [a, b])
        assert not native(attrs).check(a, b, allowed.nearest).doubtful.any()
        got = spoiled(allowed.nearest, seed)
        right = (got == allowed.nearest) | (is_nan(got) & is_nan(allowed.nearest))
        assert N // 4 < right.sum() < N
        assert (allowed.judge(got)[right] == Verdict.ALLOWED).all()
        wrong = np.add.reduceat(~right, np.arange(0, N, PIECE), dtype=np.int64)
        assert native(attrs).check(a, b, got).doubtful.tolist() == wrong.tolist()


@pytest.mark.parametrize("attrs", MODES)
def test_one_wrong_result_is_noticed_wherever_it_is(attrs: Attrs) -> None:
    """Every place of a vector, and of what is left of one."""
    a = np.arange(0x3F800000, 0x3F800000 + 29, dtype=np.uint32)
    b = np.full(29, 0x40400000, np.uint32)
    right = operation("fdiv").allowed(signature(attrs), [a, b]).nearest
    for place in range(29):
        got = right.copy()
        got[place] += 1
        assert native(attrs).check(a, b, got).doubtful.tolist() == [1]


@pytest.mark.parametrize("attrs", MODES)
def test_judge_finds_what_sets_find(attrs: Attrs) -> None:
    a, b = pairs(11)
    nearest = operation("fdiv").allowed(signature(attrs), [a, b]).nearest
    mixed = nearest.copy()
    mixed[PIECE : 2 * PIECE] = spoiled(nearest, 12)[PIECE : 2 * PIECE]
    for got in (nearest, mixed):
        fast, slow = (judge(signature(attrs)).judge((a, b), got) for judge in (QuotientJudge, SetJudge))
        names = ("inputs", "claimed", "allowed", "forbidden", "unspecified", "wrong", "histogram", "max_distance")
        for name in names:
            assert getattr(fast, name) == getattr(slow, name), name
        assert fast.max_error == pytest.approx(slow.max_error, rel=2.0**-40)
        assert fast.max_error_argument == slow.max_error_argument
        assert fast.breaches == slow.breaches
        assert QuotientJudge(signature(attrs)).worst(None, (a, b), got) == slow.worst
    assert fast.forbidden


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes"):
        native(()).check(np.zeros(3, np.uint32), np.zeros(4, np.uint32), np.zeros(3, np.uint32))
    assert len(native(()).check(*[np.zeros(0, np.uint32)] * 3).doubtful) == 0
