"""Philox: the known answers, the algorithm word by word, and a vectorised oracle that agrees with both."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from halfulp.adapters.protocol import Array, Compiled
from halfulp.certify.saboteurs.reference import ReferenceAdapter
from halfulp.oracle import random
from halfulp.oracle.formats import FORMATS, Bits
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import OPERATIONS, Accepted, Refused, Signature, Undecided
from halfulp.oracle.rounding import value_of
from halfulp.properties.launches import COUNT, try_launches
from halfulp.properties.plan import Plan

U32 = 0xFFFFFFFF
BITS = Signature("random_bits", ("u64", "u64"), "u32")
OF_INDEX = Signature("random_bits", ("u64", "index"), "u32")
UNIFORM = Signature("random_uniform", ("u64", "u64"), "f32")


def u64(*values: int) -> Bits:
    return np.array(values, np.uint64)


def word_by_word(seed: int, counter: int) -> int:
    """``intent:12-a`` as it is written, with Python integers."""
    block, word = divmod(counter, 4)
    c = [block & U32, block >> 32, 0, 0]
    k = [seed & U32, seed >> 32]
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & U32, (k[1] + 0xBB67AE85) & U32]
    return c[word]


@pytest.mark.parametrize("seed", random.KNOWN_ANSWERS)
def test_known_answers(seed: int) -> None:
    answers = random.KNOWN_ANSWERS[seed]
    counters = u64(*random.KNOWN_COUNTERS)
    assert random.bits(np.full(len(counters), seed, np.uint64), counters).tolist() == list(answers)
    for counter, answer in zip(random.KNOWN_COUNTERS, answers, strict=True):
        assert random.words(seed, counter, 1).tolist() == [answer] == [word_by_word(seed, counter)]


# Vectors of the generator itself, from the library that introduced it: counter, key, words.
VECTORS = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((U32, U32, U32, U32), (U32, U32), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@pytest.mark.parametrize(("counter", "key", "words"), VECTORS)
def test_vectors_of_the_generator(counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]) -> None:
    """With all four counter words: `intent` uses two of them."""
    found = random.philox([u64(word) for word in counter], key)
    assert tuple(int(word[0]) for word in found) == words


def test_runs_and_single_elements_agree() -> None:
    """Every start within a block, across the carries of 32 and 62 bits, and around pieces that are computed at once."""
    for start in (0, 1, 2, 3, (1 << 32) - 9, (1 << 34) - 7, (1 << 63) - 2, (1 << 64) - 40):
        for count in (0, 1, 2, 3, 4, 5, 33):
            run = random.words(7, start, count)
            assert run.tolist() == [word_by_word(7, (start + i) % (1 << 64)) for i in range(count)]
    n = 4 * random.PIECE + 11
    counters = np.arange(n, dtype=np.uint64) + np.uint64((1 << 34) - 13)
    seeds = np.full(n, 0xFEDCBA9876543210, np.uint64)
    run = random.bits(seeds, counters)
    assert (run[::-1] == random.bits(seeds, counters[::-1])).all()
    for at in (0, 12, 13, n - 12, n - 1):
        assert run[at] == word_by_word(int(seeds[0]), int(counters[at]))


def test_a_run_goes_on_at_zero_after_the_last_counter() -> None:
    assert random.words(1, (1 << 64) - 1, 3).tolist() == [0x09449A36, 0xE3E80670, 0xE50A0EBC]


def test_elements_of_different_seeds() -> None:
    rng = np.random.default_rng(1)
    seeds, counters = rng.integers(0, 1 << 64, (2, 500), dtype=np.uint64)
    seeds[::7] >>= np.uint64(40)
    counters[::5] >>= np.uint64(30)
    expected = [word_by_word(s, c) for s, c in zip(seeds.tolist(), counters.tolist(), strict=True)]
    assert random.bits(seeds, counters).tolist() == expected


def test_uniform_is_exact() -> None:
    patterns = np.array([0, 1, 255, 256, 257, 1 << 31, U32, U32 - 255, U32 - 256, 0x7FFFFFFF, 0x12345678], np.uint32)
    for bits, code in zip(patterns.tolist(), random.uniform(patterns).tolist(), strict=True):
        assert value_of(FORMATS["f32"], code) == Fraction(bits >> 8, 1 << 24)


def test_uniform_stays_below_one() -> None:
    codes = OPERATIONS["random_uniform"].allowed(UNIFORM, (u64(0x0123456789ABCDEF), u64(172559880))).nearest
    assert codes.tolist() == [0x3F7FFFFF]


def test_a_negative_index_is_no_counter() -> None:
    operands = (u64(0, 0, 0), u64(5, (1 << 63) - 1, 1 << 63))
    assert OPERATIONS["random_bits"].allowed(OF_INDEX, operands).claimed.tolist() == [True, True, False]
    assert OPERATIONS["random_bits"].allowed(BITS, operands).claimed.all()


def test_typing() -> None:
    typing, of_uniform = OPERATIONS["random_bits"].typing, OPERATIONS["random_uniform"].typing
    assert typing(("u64", "u64"), None, ()) == Accepted("u32")
    assert of_uniform(("u64", "index"), "f32", ()) == Accepted("f32")
    for args in (("u64", "i64"), ("i64", "u64"), ("index", "u64"), ("u32", "u64"), ("u64", "u32"), ("u64", "f32")):
        for answer in (typing(args, None, ()), of_uniform(args, "f32", ())):
            assert isinstance(answer, Refused)
            assert answer.clause == "intent:12-c"
    for dtype in ("f64", "f16", "bf16", "f8e5m2"):
        assert isinstance(of_uniform(("u64", "u64"), dtype, ()), Undecided)


def test_critical_points_reach_every_carry() -> None:
    """Two counters on both sides of each carry that an implementation could lose, with the same seed."""
    seeds, counters = OPERATIONS["random_bits"].critical(BITS)
    rows = set(zip(seeds.tolist(), counters.tolist(), strict=True))
    for edge in (1 << 32, 1 << 34, (1 << 34) + 4, 1 << 63):
        assert {(1, edge - 1), (1, edge)} <= rows
    assert {(1, (1 << 64) - 1), (1, 0)} <= rows
    words = random.bits(seeds, counters)
    assert (words == U32).any()
    assert (words < 256).any()


# Launches.


class CountsCalls(ReferenceAdapter):
    """A generator with a state: every call goes on where the last one ended."""

    def _program(self, kernel: Kernel) -> Compiled:
        calls = itertools.count()

        def call(*inputs: Array) -> Sequence[Array]:
            shift = np.uint64(next(calls))
            return evaluate(kernel, (inputs[0], inputs[1] + shift))

        return call


class DependsOnLane(ReferenceAdapter):
    """Vectors of eight: the last word of the remainder of an array is wrong."""

    def _program(self, kernel: Kernel) -> Compiled:
        def call(*inputs: Array) -> Sequence[Array]:
            (out,) = evaluate(kernel, inputs)
            if len(out) % 8:
                out[-1] ^= out.dtype.type(1)
            return [out]

        return call


def test_launches_of_the_reference_agree() -> None:
    trial = try_launches(ReferenceAdapter((0,)), Plan(0, "quick"))
    assert not trial.findings
    assert len(trial.tallies) == 4
    assert all(tally.cases == {"intent:12-d": 7 * COUNT} for tally in trial.tallies)


@pytest.mark.parametrize(
    ("backend", "way"), [(CountsCalls((0,)), "once more"), (DependsOnLane((0,)), "in reverse order")]
)
def test_launches_notice_what_they_should(backend: ReferenceAdapter, way: str) -> None:
    findings = try_launches(backend, Plan(0, "quick")).findings
    assert len(findings) == 4
    for finding in findings:
        assert finding.clause == "intent:12-d"
        assert way in finding.message
