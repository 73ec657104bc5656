"""Random bits: Philox 4x32 with ten rounds, and the numbers in [0, 1) made of them (``intent:12``).

A counter-based generator: block ``counter // 4`` of a seed is four words, and the bits of a counter are word
``counter % 4`` of its block. Runs of consecutive counters are computed block by block, everything else element by
element; the words are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.oracle.formats import Bits

U64 = np.ndarray[Any, np.dtype[np.uint64]]
U32 = np.ndarray[Any, np.dtype[np.uint32]]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
BUMPS = (0x9E3779B9, 0xBB67AE85)
"""What the two key words grow by after each round."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

PIECE = 1 << 14
"""Blocks that are computed at once: their words and the products, 8 bytes each, stay in a cache of a megabyte."""

KNOWN_COUNTERS = (0, 1, 2, 3, 4, (1 << 34) + 3, (1 << 64) - 1)
KNOWN_ANSWERS: dict[int, tuple[int, ...]] = {
    0: (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8, 0xF8E4CCA4, 0x074944B3, 0x31EB18F7),
    1: (0xE3E80670, 0xE50A0EBC, 0x95F222C0, 0xB615AA27, 0xAC08141B, 0x0B334B07, 0x09449A36),
    0x0123456789ABCDEF: (0xB850222E, 0xC58CB04B, 0x14A7A020, 0x7A84FFF9, 0xADCA1466, 0x5D27DDD9, 0xEF9CEEA3),
    (1 << 64) - 1: (0x72A47709, 0x15474739, 0x9F41B01F, 0x22799A5A, 0x19FED511, 0x402BD930, 0x3915061C),
}
"""``intent:12-b``: for some seeds, the words at `KNOWN_COUNTERS`."""


def philox(counter: Sequence[U64], key: Sequence[Any]) -> list[U64]:
    """Ten rounds on arrays of four counter words and two key words, all of 32 bits in uint64.

    Args:
        counter: four arrays of one shape, which are overwritten.
        key: two arrays of that shape, or two integers for all elements.

    Returns:
        four arrays, the words of each block.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = (np.asarray(word, np.uint64) for word in key)
    first, second = (np.uint64(multiplier) for multiplier in MULTIPLIERS)
    high = np.empty_like(c0)
    for _ in range(ROUNDS):
        # The low halves of both products become c1 and c3. Their high halves are cut off where they are next used.
        np.multiply(c0, first, out=c0)
        np.multiply(c2, second, out=c2)
        np.right_shift(c2, HALF, out=high)
        np.bitwise_xor(high, c1, out=c1)
        np.bitwise_xor(c1, k0, out=c1)
        np.bitwise_and(c1, LOW, out=c1)
        np.right_shift(c0, HALF, out=high)
        np.bitwise_xor(high, c3, out=c3)
        np.bitwise_xor(c3, k1, out=c3)
        np.bitwise_and(c3, LOW, out=c3)
        c0, c1, c2, c3 = c1, c2, c3, c0
        k0, k1 = ((k + np.uint64(bump)) & LOW for k, bump in zip((k0, k1), BUMPS, strict=True))
    return [c0, c1 & LOW, c2, c3 & LOW]


def _halves(values: U64) -> tuple[U64, U64]:
    return values & LOW, values >> HALF


def words(seed: int, first: int, count: int) -> U32:
    """The bits of ``count`` consecutive counters from ``first`` on, modulo 2**64.

    Args:
        seed, first: 0 to 2**64 - 1.

    Returns:
        shape (count,), uint32.
    """
    start, skipped = divmod(first, 4)
    blocks = -(-(skipped + count) // 4)
    result = np.empty((blocks, 4), np.uint32)
    key = (seed & 0xFFFFFFFF, seed >> 32)
    for at in range(0, blocks, PIECE):
        piece = result[at : at + PIECE]
        # Blocks have 62 bits: after the last counter comes counter 0.
        block = np.arange(len(piece), dtype=np.uint64) + np.uint64((start + at) % (1 << 62))
        low, high = _halves(block & np.uint64((1 << 62) - 1))
        for place, word in enumerate(philox((low, high, np.zeros_like(low), np.zeros_like(low)), key)):
            piece[:, place] = word
    return result.reshape(-1)[skipped : skipped + count]


def bits(seeds: Bits, counters: Bits) -> U32:
    """The bits of each pair of a seed and a counter.

    Args:
        seeds, counters: shape (n,), uint64.

    Returns:
        shape (n,), uint32.
    """
    n = len(counters)
    if n and (seeds == seeds[0]).all() and (np.diff(counters) == 1).all():
        return words(int(seeds[0]), int(counters[0]), n)
    result = np.empty(n, np.uint32)
    for at in range(0, n, PIECE):
        piece = slice(at, at + PIECE)
        counter = counters[piece]
        low, high = _halves(counter >> np.uint64(2))
        block = philox((low, high, np.zeros_like(low), np.zeros_like(low)), _halves(seeds[piece]))
        result[piece] = np.choose((counter & np.uint64(3)).astype(np.intp), block)
    return result


def uniform(random_bits: U32) -> U32:
    """``intent:12-e``: the upper 24 bits times 2**-24, as f32 codes. Both steps are exact."""
    return ((random_bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)).view(np.uint32)
