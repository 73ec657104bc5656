"""``+ - * /``, neg, abs, sqrt, floor and ``a*b+c`` (``intent:4-a``, ``5-a``, ``5-b``, ``5.5``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from halfulp.oracle import codes, hardware, rounding_array
from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.kernel import Apply, Input, Kernel, Type
from halfulp.oracle.ops.casts import finite_range
from halfulp.oracle.ops.record import Accepted, Attrs, Operation, Refused, Signature, TypingAnswer, Undecided
from halfulp.oracle.ops.rules import (
    as_bits,
    bool_is_no_number,
    crossed_specials,
    same_dtype,
    special_codes,
    subnormal_anywhere,
)
from halfulp.oracle.rounding_array import Rounded
from halfulp.oracle.sets import AllowedSet, Mask, exactly, mark_unspecified, together, union

FloatRule = Callable[..., Rounded]

INDEX = "intent:2-a"
"""Index arithmetic is 64-bit and signed, whatever address width a target chooses."""


def integer_clauses(signature: Signature, *clauses: str) -> tuple[str, ...]:
    return (*clauses, INDEX) if signature.args[-1] == "index" else clauses


# Floats.


def _infinite_exactly(op: str, fmt: Format, operands: Sequence[Bits]) -> Mask | None:
    """Elements whose exact result is an infinity, in a format that cannot say so: x/0."""
    if fmt.infinity or op != "div":
        return None
    numerator, divisor = operands
    return codes.is_zero(fmt, divisor) & ~codes.is_zero(fmt, numerator) & ~codes.is_nan(fmt, numerator)


def _float_rule(op: str, rule: FloatRule) -> Callable[[Signature, Sequence[Bits]], AllowedSet]:
    def allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        fmt = signature.result_format
        rounded = rule(fmt, *operands)
        return finite_range(exactly(fmt, rounded.bits), rounded, _infinite_exactly(op, fmt, operands))

    return allowed


FLOAT_CLAUSES = ("intent:5-a", "intent:5-b", "intent:5.2-m", "intent:5.2-n")


def float_cases(signature: Signature, operands: Sequence[Bits], nearest: Bits) -> dict[str, Mask]:
    """NaN results, zero results, elements that a flush of subnormals would change, and all the rest."""
    fmt = signature.result_format
    nan = codes.is_nan(fmt, nearest)
    zero = codes.is_zero(fmt, nearest)
    subnormal = subnormal_anywhere(fmt, *operands, nearest) & ~nan
    return {
        "intent:5-a": ~nan & ~zero & ~subnormal,
        "intent:5-b": subnormal,
        "intent:5.2-m": zero & ~subnormal,
        "intent:5.2-n": nan,
    }


def _numeric_clauses(integer_clause: str) -> Callable[[Signature], tuple[str, ...]]:
    def clauses(signature: Signature) -> tuple[str, ...]:
        if signature.result_format.is_float:
            return FLOAT_CLAUSES
        return integer_clauses(signature, integer_clause)

    return clauses


def _binary(
    name: str,
    summary: str,
    float_rule: FloatRule,
    int_rule: Callable[[Bits, Bits], Bits] | None,
    *,
    refuse: Callable[[Format], Refused | None] = bool_is_no_number,
) -> Operation:
    of_floats = _float_rule(name, float_rule)

    def allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        if signature.result_format.is_float:
            return of_floats(signature, operands)
        assert int_rule is not None
        return exactly(signature.result_format, int_rule(*operands))

    def cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
        if signature.result_format.is_float:
            return float_cases(signature, operands, float_rule(signature.result_format, *operands).bits)
        return {clause: np.ones(len(operands[0]), bool) for clause in clauses(signature)}

    clauses = _numeric_clauses("intent:4-a")
    return Operation(
        name=name,
        arity=2,
        chapter="4/5",
        summary=summary,
        typing=same_dtype(refuse=refuse),
        allowed=allowed,
        clauses=clauses,
        cases=cases,
        critical=crossed_specials,
    )


def _no_integer_division(fmt: Format) -> Refused | None:
    if fmt.is_int:
        return Refused("intent:4-d", "`/` is not defined on integers; cast first or use `//`")
    return bool_is_no_number(fmt)


ADD = _binary("add", "Sum: integers wrap, floats round once to nearest even.", rounding_array.add, lambda a, b: a + b)
SUB = _binary(
    "sub",
    "Difference: integers wrap, floats round once to nearest even.",
    rounding_array.sub,
    lambda a, b: a - b,
)
MUL = _binary(
    "mul",
    "Product: integers wrap, floats round once to nearest even.",
    rounding_array.mul,
    lambda a, b: a * b,
)
DIV = _binary(
    "div",
    "Quotient of floats, rounded once to nearest even; not defined on integers.",
    rounding_array.div,
    None,
    refuse=_no_integer_division,
)


# Unary.


def _negated(fmt: Format, bits: Bits) -> Bits:
    """The sign bit flipped; a format without -0 keeps its zero."""
    flipped = bits ^ fmt.storage.type(fmt.sign_mask)
    return flipped if fmt.has_negative_zero else np.where(codes.is_zero(fmt, bits), bits, flipped)


def _neg_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt, (bits,) = signature.result_format, operands
    if fmt.is_float:
        return exactly(fmt, _negated(fmt, bits))
    allowed = exactly(fmt, fmt.storage.type(0) - bits)
    # reading:28: neg of an unsigned integer is unspecified.
    return allowed if fmt.signed else mark_unspecified(allowed, np.ones(len(bits), bool))


def _abs_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt, (bits,) = signature.result_format, operands
    if fmt.is_float:
        return exactly(fmt, bits & fmt.storage.type(fmt.magnitude_mask))
    if not fmt.signed:
        return exactly(fmt, bits)
    allowed = exactly(fmt, np.where(codes.is_negative(fmt, bits), fmt.storage.type(0) - bits, bits))
    return mark_unspecified(allowed, bits == fmt.storage.type(1 << (fmt.width - 1)))


def _unsigned_sign(name: str) -> Callable[[Format], str | None]:
    def reason(fmt: Format) -> str | None:
        return f"the text gives {name} of an unsigned integer no meaning" if fmt.is_int and not fmt.signed else None

    return reason


def _sign_operation(name: str, summary: str, allowed: Callable[[Signature, Sequence[Bits]], AllowedSet]) -> Operation:
    def clauses(signature: Signature) -> tuple[str, ...]:
        if signature.result_format.is_float:
            return FLOAT_CLAUSES
        return integer_clauses(signature, "reading:28")

    def cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
        if signature.result_format.is_float:
            return float_cases(signature, operands, allowed(signature, operands).nearest)
        return {clause: np.ones(len(operands[0]), bool) for clause in clauses(signature)}

    return Operation(
        name=name,
        arity=1,
        chapter="4/5",
        summary=summary,
        typing=same_dtype(refuse=bool_is_no_number, undecided=_unsigned_sign(name)),
        allowed=allowed,
        clauses=clauses,
        cases=cases,
        critical=crossed_specials,
    )


NEG = _sign_operation("neg", "The sign of a float flipped; 0 - x on integers.", _neg_allowed)
ABS = _sign_operation("abs", "The sign of a float cleared; the magnitude of an integer.", _abs_allowed)


def _not_on_integers(name: str) -> Callable[[tuple[str, ...], str | None, Attrs], TypingAnswer]:
    typed = same_dtype(refuse=bool_is_no_number)

    def rule(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
        answer = typed(args, dtype, attrs)
        if isinstance(answer, Accepted) and args[0] not in _FLOAT_NAMES:
            return Undecided(f"the text does not give {name} of an integer any meaning")
        return answer

    return rule


_FLOAT_NAMES = frozenset(("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2"))


def _sqrt_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    return exactly(signature.result_format, rounding_array.sqrt(signature.result_format, *operands).bits)


def _floor_bits(fmt: Format, bits: Bits) -> Bits:
    """Round to an integral value toward minus infinity; exact, and keeps the sign of zero and every NaN."""
    one = np.uint64(fmt.bias << fmt.fraction_bits)
    wide = bits.astype(np.uint64)
    magnitude = wide & np.uint64(fmt.magnitude_mask)
    negative = codes.is_negative(fmt, bits)
    exponent = (magnitude >> np.uint64(fmt.fraction_bits)).astype(np.int64) - fmt.bias
    kept = np.clip(fmt.fraction_bits - exponent, 0, fmt.fraction_bits).astype(np.uint64)
    fraction = (np.uint64(1) << kept) - np.uint64(1)
    # Away from zero for negative numbers: adding `fraction` before clearing it carries into the next binade.
    stepped = np.where(negative, magnitude + fraction, magnitude) & ~fraction
    below_one = np.where(negative & (magnitude != 0), one, np.uint64(0))
    whole = np.where(exponent < 0, below_one, stepped)
    result = np.where(codes.is_nan(fmt, bits) | codes.is_infinite(fmt, bits), magnitude, whole)
    return (result | np.where(negative, np.uint64(fmt.sign_mask), np.uint64(0))).astype(fmt.storage)


def _floor_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt = signature.result_format
    if fmt.width >= 32 and hardware.trusted():
        return exactly(fmt, hardware.arithmetic("floor", fmt, tuple(operands)))  # nothing is rounded
    return exactly(fmt, _floor_bits(fmt, operands[0]))


def _unary_float(name: str, summary: str, allowed: Callable[[Signature, Sequence[Bits]], AllowedSet]) -> Operation:
    return Operation(
        name=name,
        arity=1,
        chapter="5",
        summary=summary,
        typing=_not_on_integers(name),
        allowed=allowed,
        clauses=lambda signature: FLOAT_CLAUSES,
        cases=lambda signature, operands: float_cases(signature, operands, allowed(signature, operands).nearest),
        critical=crossed_specials,
    )


SQRT = _unary_float("sqrt", "Square root, rounded once to nearest even; -0 stays -0.", _sqrt_allowed)
FLOOR = _unary_float("floor", "The largest integral value not above x; keeps the sign of zero.", _floor_allowed)


# a*b + c.


def _muladd_kernel(signature: Signature) -> Kernel:
    dtype = signature.result
    inputs = tuple(Input(Type(dtype)) for _ in range(3))
    return Kernel((*inputs, Apply("mul", (0, 1), dtype), Apply("add", (3, 2), dtype)), (4,))


def _muladd_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    """``intent:5.5-a``: one rounding or two, chosen by the element."""
    fmt, (a, b, c) = signature.result_format, operands
    product = rounding_array.mul(fmt, a, b)
    forms = (rounding_array.fma(fmt, a, b, c), rounding_array.add(fmt, product.bits, c))
    fused, separate = (finite_range(exactly(fmt, form.bits), form, None) for form in forms)
    allowed = union(fused, separate)
    if fmt.infinity:
        return allowed
    settled = finite_range(exactly(fmt, product.bits), product, None).single
    return replace(allowed, claim=together((allowed.claim, settled)))


def _muladd_cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
    allowed = _muladd_allowed(signature, operands)
    two = allowed.claimed & ~allowed.single & ~allowed.only_unspecified
    return {"intent:5.5-a": two, "intent:5-b": ~two & allowed.claimed}


def _muladd_typing(args: tuple[str, ...], dtype: str | None, attrs: Attrs) -> TypingAnswer:
    answer = same_dtype(refuse=bool_is_no_number)(args, dtype, attrs)
    if isinstance(answer, Accepted) and args[0] not in _FLOAT_NAMES:
        return Undecided("a*b+c on integers is two operations, each of which wraps")
    return answer


def _muladd_critical(signature: Signature) -> Sequence[Bits]:
    fmt = signature.result_format
    chosen = special_codes(fmt)[::3]
    rows = [(a, b, c) for a in chosen for b in chosen for c in chosen]
    rows += _hair_below_half_a_step(fmt)
    return tuple(as_bits(fmt, list(column)) for column in zip(*rows, strict=True))


def _hair_below_half_a_step(fmt: Format) -> list[tuple[int, int, int]]:
    """(1 + u)(1 - u) times half the smallest step, beside addends near the smallest normal number.

    The exact sum lies a hair from a tie. A fused operation in a wider format that drops the hair rounds to even, which
    is neither form of ``intent:5.5-a``.
    """
    one, total = fmt.bias << fmt.fraction_bits, fmt.quantum_exponent - 1
    left = one + 1 + ((total // 2) << fmt.fraction_bits)
    right = one - 2 + ((total - total // 2) << fmt.fraction_bits)
    addends = [fmt.min_normal_bits + step for step in (-3, -2, -1, 0, 1, 2, 3)]
    signs = (0, fmt.sign_mask)
    return [(left | s, right, c | t) for s in signs for t in signs for c in addends]


MULADD = Operation(
    name="muladd",
    arity=3,
    chapter="5.5",
    summary="a*b + c in one float dtype: rounded once (fused) or twice.",
    typing=_muladd_typing,
    allowed=_muladd_allowed,
    clauses=lambda signature: ("intent:5.5-a", "intent:5-b"),
    cases=_muladd_cases,
    critical=_muladd_critical,
    build=_muladd_kernel,
)

ARITHMETIC = (ADD, SUB, MUL, DIV, NEG, ABS, SQRT, FLOOR, MULADD)
