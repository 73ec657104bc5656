"""Wrong random numbers (``intent:12``): a generator that is almost Philox, and numbers that are almost uniform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.oracle import random
from halfulp.oracle.formats import Bits
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.suspects.record import BitsRule, Scope, Suspect, intent, operation, right, wrong
from halfulp.oracle.suspects.typing import checker, ignoring

U64 = np.ndarray[Any, np.dtype[np.uint64]]
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)

BITS = operation("random_bits")
UNIFORM = operation("random_uniform")
NUMBERS = operation("random_bits", "random_uniform")


def generated(
    seeds: U64,
    counters: U64,
    *,
    rounds: int = random.ROUNDS,
    bump_first: bool = False,
    halves_swapped: bool = False,
    multipliers: tuple[int, int] = random.MULTIPLIERS,
    key_swapped: bool = False,
    block: U64 | None = None,
    word: U64 | None = None,
) -> Bits:
    """Philox with something wrong in it, element by element.

    Args:
        rounds: how many.
        bump_first: the key grows before each round instead of after it.
        halves_swapped: high and low halves of the products are exchanged.
        multipliers: of the two products.
        key_swapped: the high half of the seed comes first.
        block, word: which block of words to compute, and which word of it to take; by default what the counter says.
    """
    block = counters >> np.uint64(2) if block is None else block
    word = counters & np.uint64(3) if word is None else word
    c = [block & LOW, block >> HALF, np.zeros_like(block), np.zeros_like(block)]
    k = [seeds & LOW, seeds >> HALF]
    if key_swapped:
        k.reverse()
    for _ in range(rounds):
        bumped = [(key + np.uint64(bump)) & LOW for key, bump in zip(k, random.BUMPS, strict=True)]
        k = bumped if bump_first else k
        products = [c[0] * np.uint64(multipliers[0]), c[2] * np.uint64(multipliers[1])]
        high, low = [p >> HALF for p in products], [p & LOW for p in products]
        if halves_swapped:
            high, low = low, high
        c = [high[1] ^ c[1] ^ k[0], low[1], high[0] ^ c[3] ^ k[1], low[0]]
        k = bumped
    return np.choose(word.astype(np.intp), c).astype(np.uint32)


def _of(**settings: Any) -> BitsRule:
    """The operation with a generator that is wrong in the same way for all elements."""
    return lambda signature, operands: _finished(signature, generated(operands[0], operands[1], **settings))


def _finished(signature: Signature, words: Bits) -> Bits:
    return random.uniform(words) if signature.op == "random_uniform" else words


def _words_reversed(signature: Signature, operands: Sequence[Bits]) -> Bits:
    seeds, counters = operands
    return _finished(signature, generated(seeds, counters, word=np.uint64(3) - (counters & np.uint64(3))))


def _first_words_exchanged(signature: Signature, operands: Sequence[Bits]) -> Bits:
    seeds, counters = operands
    return _finished(signature, generated(seeds, counters, word=(counters & np.uint64(3)) ^ np.uint64(1)))


def _counter_of_32_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    seeds, counters = operands
    return right(signature, (seeds, counters & LOW))


def _block_of_32_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    seeds, counters = operands
    return _finished(signature, generated(seeds, counters, block=counters >> np.uint64(2) & LOW))


def _seed_of_32_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return right(signature, (operands[0] & LOW, operands[1]))


def _seed_of_53_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """A seed that has been a double."""
    seeds, counters = operands
    clear = np.uint64((1 << 64) - 1) << np.maximum(_length(seeds) - 53, 0).astype(np.uint64)
    return right(signature, (seeds & clear, counters))


def _length(values: U64) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Bits of each value; exact, since the halves are."""
    high, low = (np.frexp(half.astype(np.float64))[1].astype(np.int64) for half in (values >> HALF, values & LOW))
    return np.where(high > 0, high + 32, low)


def _a_block_each(signature: Signature, operands: Sequence[Bits]) -> Bits:
    seeds, counters = operands
    return _finished(signature, generated(seeds, counters, block=counters, word=np.zeros_like(counters)))


def _first_seed(signature: Signature, operands: Sequence[Bits]) -> Bits:
    seeds, counters = operands
    return right(signature, (np.broadcast_to(seeds[:1], seeds.shape), counters))


def _words_of(operands: Sequence[Bits]) -> Bits:
    return random.bits(*operands)


def _codes(values: np.ndarray[Any, np.dtype[np.float32]]) -> Bits:
    return values.astype(np.float32).view(np.uint32)


def _all_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return _codes(_words_of(operands).astype(np.float32) * np.float32(2.0**-32))


def _clamped(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return np.minimum(_all_bits(signature, operands), np.uint32(0x3F7FFFFF))


def _low_bits(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return _codes((_words_of(operands) & np.uint32(0xFFFFFF)).astype(np.float32) * np.float32(2.0**-24))


def _between_one_and_two(signature: Signature, operands: Sequence[Bits]) -> Bits:
    one = np.uint32(0x3F800000)
    return _codes((one | _words_of(operands) >> np.uint32(9)).view(np.float32) - np.float32(1))


def _without_zero(signature: Signature, operands: Sequence[Bits]) -> Bits:
    upper = (_words_of(operands) >> np.uint32(8)) + np.uint32(1)
    return _codes(upper.astype(np.float32) * np.float32(2.0**-24))


def _over_largest(signature: Signature, operands: Sequence[Bits]) -> Bits:
    """Divided by the largest word instead of the number of words."""
    return _codes((_words_of(operands).astype(np.float64) / 4294967295.0).astype(np.float32))


def _signed(signature: Signature, operands: Sequence[Bits]) -> Bits:
    return _codes(_words_of(operands).view(np.int32).astype(np.float32) * np.float32(2.0**-32))


def _fault(name: str, summary: str, clauses: tuple[str, ...], scope: Scope, rule: BitsRule) -> Suspect:
    return wrong(name, summary, clauses, scope, rule)


def _of_index(signature: Signature) -> bool:
    return NUMBERS(signature) and signature.args[1] == "index"


SUSPECTS: tuple[Suspect, ...] = (
    _fault(
        "key_bumped_before_use",
        "Philox adds the constants to its key before each round instead of after it.",
        intent("12-a", "12-b"),
        NUMBERS,
        _of(bump_first=True),
    ),
    _fault(
        "seven_rounds",
        "Philox runs seven rounds.",
        intent("12-a", "12-b"),
        NUMBERS,
        _of(rounds=7),
    ),
    _fault(
        "product_halves_swapped",
        "The high and low halves of Philox's products are exchanged.",
        intent("12-a"),
        NUMBERS,
        _of(halves_swapped=True),
    ),
    _fault(
        "multipliers_swapped",
        "Philox's two multipliers are exchanged.",
        intent("12-a"),
        NUMBERS,
        _of(multipliers=random.MULTIPLIERS[::-1]),
    ),
    _fault(
        "seed_halves_swapped",
        "The high half of the seed is the first word of the key.",
        intent("12-a"),
        NUMBERS,
        _of(key_swapped=True),
    ),
    _fault(
        "words_reversed",
        "The words of a block are taken in reverse order.",
        intent("12-a", "12-b"),
        NUMBERS,
        _words_reversed,
    ),
    _fault(
        "words_exchanged_in_pairs",
        "Neighbouring words of a block are exchanged, as by a wrong order of bytes.",
        intent("12-a", "12-b"),
        NUMBERS,
        _first_words_exchanged,
    ),
    _fault(
        "block_for_each_counter",
        "Each counter has a block of its own, of which the first word is taken.",
        intent("12-a"),
        NUMBERS,
        _a_block_each,
    ),
    _fault(
        "counter_of_32_bits",
        "A counter is cut to 32 bits.",
        intent("12-a", "12-b"),
        NUMBERS,
        _counter_of_32_bits,
    ),
    _fault(
        "block_of_32_bits",
        "The number of a block is cut to 32 bits: counters repeat from 2^34 on.",
        intent("12-a", "12-b"),
        NUMBERS,
        _block_of_32_bits,
    ),
    _fault(
        "index_of_32_bits",
        "An index that serves as a counter is cut to 32 bits.",
        intent("12-c"),
        _of_index,
        _counter_of_32_bits,
    ),
    _fault(
        "seed_of_32_bits",
        "A seed is cut to 32 bits.",
        intent("12-a"),
        NUMBERS,
        _seed_of_32_bits,
    ),
    _fault(
        "seed_through_double",
        "A seed is cut to the 53 bits of a double.",
        intent("12-a"),
        NUMBERS,
        _seed_of_53_bits,
    ),
    _fault(
        "seed_of_first_lane",
        "The seed of the first element serves all of them.",
        intent("12-d"),
        NUMBERS,
        _first_seed,
    ),
    _fault(
        "uniform_rounds_to_one",
        "A uniform number is all 32 bits, rounded, times 2^-32: it may be 1.",
        intent("12-e"),
        UNIFORM,
        _all_bits,
    ),
    _fault(
        "uniform_clamped_below_one",
        "A uniform number is all 32 bits, rounded, times 2^-32, and 1 becomes the number below it.",
        intent("12-e"),
        UNIFORM,
        _clamped,
    ),
    _fault(
        "uniform_from_low_bits",
        "A uniform number is made of the lower 24 bits.",
        intent("12-e"),
        UNIFORM,
        _low_bits,
    ),
    _fault(
        "uniform_of_23_bits",
        "A uniform number is made of 23 bits: a fraction between 1 and 2, less 1.",
        intent("12-e"),
        UNIFORM,
        _between_one_and_two,
    ),
    _fault(
        "uniform_without_zero",
        "Uniform numbers are in (0, 1].",
        intent("12-e"),
        UNIFORM,
        _without_zero,
    ),
    _fault(
        "uniform_over_largest_word",
        "A uniform number is the word divided by 2^32 - 1.",
        intent("12-e"),
        UNIFORM,
        _over_largest,
    ),
    _fault(
        "uniform_of_signed_word",
        "The word is read as a signed number.",
        intent("12-e"),
        UNIFORM,
        _signed,
    ),
    checker(
        "accepts_any_counter",
        "Seeds and counters of any integer dtype are accepted.",
        intent("12-c"),
        ignoring("intent:12-c"),
    ),
)

VARIANTS: tuple[Suspect, ...] = (
    wrong(
        "negative_counter_is_zero",
        "A negative index that serves as a counter is taken for zero: illegal input.",
        (),
        _of_index,
        lambda signature, operands: right(
            signature, (operands[0], np.where(operands[1] >> np.uint64(63) == 0, operands[1], np.uint64(0)))
        ),
        fault=False,
    ),
)
