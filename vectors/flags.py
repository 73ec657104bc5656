"""What a case is there for: flags, each with the kind of mistake that it catches."""

from __future__ import annotations

FLAGS: dict[str, str] = {
    "nan_operand": "An operand is NaN: implementations that compare before they look, or replace NaN by a number.",
    "infinite_operand": "An operand is infinite: formulas that give inf - inf or 0 * inf.",
    "zero_operand": "An operand is a zero, of either sign: the sign of zero is lost, or a division is refused.",
    "subnormal_operand": "An operand is subnormal: operands that are flushed to zero.",
    "subnormal_result": "The result is subnormal: results that are flushed, or rounded at the wrong place.",
    "overflow": "Finite operands, and a result that is infinite or the largest number.",
    "underflow": "Operands that are not zero, and a result that is.",
    "largest_result": "The result is the largest finite number: the threshold of overflow is near.",
    "tie": "The exact result is half way between two numbers: ties away from zero, ties to odd, truncation.",
    "near_tie": "The exact result is a hair from half way: double rounding, sticky bits that are dropped.",
    "exact": "The exact result is a number of the format: nothing may be rounded.",
    "integer_edge": "An operand is the least or the greatest integer, 0, 1 or -1: overflow, signs, wrap-around.",
    "several": "More than one result is allowed.",
    "open": "About some results the text leaves a choice: a consumer should accept them and may count them.",
    "hard_to_round": "The exact value is within 2^-24 ulp of half way: more precision is needed than is usual.",
    "known_worst": "An input at which some library is at its worst, or next to which implementations change method.",
    "public_report": "Reduced from a public bug report.",
    "multiple_outputs": "Several outputs that one choice has to explain together.",
    "mutant": "The weak outcome distinguishes memory models that differ from the language in one axiom.",
    "racy": "Two plain accesses race: nothing is claimed of any outcome.",
    "rejected": "The language refuses the program: type checkers that accept too much.",
    "accepted": "The language accepts the program: type checkers that refuse too much.",
    "sequence": "Consecutive elements of one stream: state where there has to be none, swapped words, lost carries.",
}
"""By name, in the order in which cases list them."""


def in_order(names: set[str]) -> list[str]:
    """Flags as a case lists them."""
    return [name for name in FLAGS if name in names]
