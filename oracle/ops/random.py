"""Random bits and uniform numbers (``intent:12``): functions of a seed and a counter, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from halfulp.oracle import random
from halfulp.oracle.formats import FORMATS, Bits, format_of
from halfulp.oracle.ops.record import Accepted, Attrs, Operation, Refused, Signature, TypingAnswer, Undecided
from halfulp.oracle.ops.rules import as_bits, not_elements
from halfulp.oracle.sets import AllowedSet, Mask, exactly

U64 = FORMATS["u64"]
COUNTERS = ("u64", "index")


def _operands(args: tuple[str, ...]) -> Refused | None:
    """``intent:12-c``."""
    refused = not_elements(args)
    if refused:
        return refused
    seed, counter = args
    if seed != "u64":
        return Refused("intent:12-c", f"a seed is u64, not {seed}")
    if counter not in COUNTERS:
        return Refused("intent:12-c", f"a counter is u64 or index, not {counter}")
    return None


def _typing_of_bits(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    return _operands(args) or Accepted("u32")


def _typing_of_uniform(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    """``dtype`` is an argument of the operation; the text defines it for f32 (``intent:12-e``)."""
    refused = _operands(args)
    if refused:
        return refused
    if dtype != "f32":
        return Undecided(f"the text defines uniform numbers in f32, not in {dtype or 'a dtype that is not named'}")
    return Accepted("f32")


def _legal(signature: Signature, counters: Bits) -> Mask | None:
    """A negative index is no counter (``intent:12-c``)."""
    return counters >> np.uint64(63) == 0 if signature.args[1] == "index" else None


def _allowed_bits(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    return exactly(signature.result_format, random.bits(*operands), claim=_legal(signature, operands[1]))


def _allowed_uniform(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    codes = random.uniform(random.bits(*operands))
    return exactly(signature.result_format, codes, claim=_legal(signature, operands[1]))


def _is_known(seeds: Bits, counters: Bits) -> Mask:
    """The operands of the fixed vectors (``intent:12-b``)."""
    return np.isin(seeds, as_bits(U64, list(random.KNOWN_ANSWERS))) & np.isin(
        counters, as_bits(U64, random.KNOWN_COUNTERS)
    )


def _cases_of_bits(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
    seeds, counters = operands
    everywhere = np.ones(len(seeds), bool)
    cases = {"intent:12-a": everywhere, "intent:12-b": _is_known(seeds, counters), "intent:12-d": everywhere}
    if signature.args[1] == "index":
        cases["intent:12-c"] = everywhere
    return cases


def _cases_of_uniform(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
    return {"intent:12-e": np.ones(len(operands[0]), bool)}


SEEDS = (*random.KNOWN_ANSWERS, 1 << 32, (1 << 32) - 1, 1 << 63, 0x9E3779B97F4A7C15)

EXTREME = (
    *((0, 141332358), (0x0123456789ABCDEF, 172559880), ((1 << 64) - 1, 41937076), ((1 << 64) - 1, 190077307)),
    *((1, 258532289), (0x0123456789ABCDEF, 93828841), (0, 222295960)),
)
"""Seeds and counters whose bits begin with at least 26 ones, 0xffffffff twice, or with at least 26 zeros: the greatest
and the least uniform numbers."""


def _critical(signature: Signature) -> Sequence[Bits]:
    """Seeds of unequal halves, and counters at every carry: of the word, of 32 bits of counter or block, of 64 bits."""
    carries = (1 << 2, 1 << 32, 1 << 33, 1 << 34, 1 << 35, 1 << 62, 1 << 63, 1 << 64)
    counters = {*random.KNOWN_COUNTERS, *((carry + d) % (1 << 64) for carry in carries for d in range(-5, 6))}
    rows = [*((seed, counter) for seed in SEEDS for counter in sorted(counters)), *EXTREME]
    return [
        as_bits(format_of(name), list(column))
        for name, column in zip(signature.args, zip(*rows, strict=True), strict=True)
    ]


RANDOM = (
    Operation(
        name="random_bits",
        arity=2,
        chapter="12",
        summary="The 32 bits that Philox 4x32 with ten rounds has for a seed and a counter.",
        typing=_typing_of_bits,
        allowed=_allowed_bits,
        clauses=lambda signature: tuple(_cases_of_bits(signature, [np.zeros(0, np.uint64)] * 2)),
        cases=_cases_of_bits,
        critical=_critical,
    ),
    Operation(
        name="random_uniform",
        arity=2,
        chapter="12",
        summary="A number in [0, 1): the upper 24 of the random bits times 2^-24.",
        typing=_typing_of_uniform,
        allowed=_allowed_uniform,
        clauses=lambda signature: tuple(_cases_of_uniform(signature, [np.zeros(0, np.uint64)] * 2)),
        cases=_cases_of_uniform,
        critical=_critical,
        converts=True,
    ),
)
