"""Integer division, shifts and bitwise operations (``intent:4``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.ops.arithmetic import integer_clauses
from halfulp.oracle.ops.record import Operation, Refused, Signature, TypingAnswer, Undecided
from halfulp.oracle.ops.rules import Typing, bool_is_no_number, crossed_specials, same_dtype
from halfulp.oracle.sets import AllowedSet, Mask, exactly, mark_unspecified


def _only_integers(name: str, refuse: Callable[[Format], Refused | None]) -> Typing:
    """Integers of one dtype. What the text says of other dtypes is in ``refuse``; the rest is undecided."""
    typed = same_dtype(refuse=refuse)

    def rule(args: tuple[str, ...], dtype: str | None, attrs: object) -> TypingAnswer:
        answer = typed(args, dtype, ())
        if isinstance(answer, Refused):
            return answer
        fmt = Signature("", args, args[0]).result_format
        if fmt.is_float:
            return Undecided(f"the text does not give {name} of floats any meaning")
        if fmt.kind == "bool":
            return Undecided(f"the text does not give {name} of bools any meaning", args[0])
        return answer

    return rule


def _no_float_remainder(fmt: Format) -> Refused | None:
    if fmt.is_float:
        return Refused("intent:4-k", "`%` is an integer operation; a float remainder needs a name of its own")
    return bool_is_no_number(fmt)


def _divide(fmt: Format, a: Bits, b: Bits) -> tuple[Bits, Bits, Mask]:
    """Floor quotient, remainder, and where the divisor is not zero. numpy's own ``//`` and ``%`` are not used.

    Truncating division on magnitudes in uint64, corrected by the signs: q = floor(a/b), r = a - q*b.
    """
    legal = ~codes.is_zero(fmt, b)
    if not fmt.signed:
        safe = np.where(legal, b, fmt.storage.type(1))
        return a // safe, a % safe, legal
    minus_a, minus_b = codes.is_negative(fmt, a), codes.is_negative(fmt, b)
    x = np.where(minus_a, fmt.storage.type(0) - a, a).astype(fmt.storage)
    y = np.where(minus_b, fmt.storage.type(0) - b, b).astype(fmt.storage)
    y = np.where(legal, y, fmt.storage.type(1))
    whole, rest = x // y, x % y
    opposite = minus_a != minus_b
    up = opposite & (rest != 0)
    quotient = np.where(opposite, fmt.storage.type(0) - whole - up.astype(fmt.storage), whole)
    # The remainder has the sign of b: |b| - rest where the signs differ and rest is not zero.
    size = np.where(up, y - rest, rest)
    remainder = np.where(minus_b, fmt.storage.type(0) - size, size)
    return quotient.astype(fmt.storage), remainder.astype(fmt.storage), legal


def _min_by_minus_one(fmt: Format, a: Bits, b: Bits) -> Mask:
    if not fmt.signed:
        return np.zeros(len(a), bool)
    result: Mask = (a == 1 << (fmt.width - 1)) & (b == fmt.code_count - 1)
    return result


def _floordiv_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt, (a, b) = signature.result_format, operands
    quotient, _, legal = _divide(fmt, a, b)
    return exactly(fmt, quotient, claim=legal & ~_min_by_minus_one(fmt, a, b))


def _mod_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt, (a, b) = signature.result_format, operands
    _, remainder, legal = _divide(fmt, a, b)
    # intent:4-j does not list signed_min % -1: unspecified.
    return mark_unspecified(exactly(fmt, remainder, claim=legal), _min_by_minus_one(fmt, a, b))


def _legal_shift(fmt: Format, amount: Bits) -> Mask:
    """``intent:4-h``; a negative amount is a large one as an unsigned bit pattern."""
    return np.less(amount, fmt.width)


def _shl_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt, (a, amount) = signature.result_format, operands
    legal = _legal_shift(fmt, amount)
    return exactly(fmt, a << np.where(legal, amount, fmt.storage.type(0)), claim=legal)


def _shr_allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
    fmt, (a, amount) = signature.result_format, operands
    legal = _legal_shift(fmt, amount)
    by = np.where(legal, amount, fmt.storage.type(0))
    if fmt.signed:
        # ~(~a >> by) shifts copies of the sign in, with logical shifts alone.
        minus = codes.is_negative(fmt, a)
        return exactly(fmt, np.where(minus, ~(~a >> by), a >> by), claim=legal)
    return exactly(fmt, a >> by, claim=legal)


def _everywhere(*clauses: str) -> dict[str, Any]:
    return _by_signature(lambda fmt: clauses)


def _by_signature(choose: Callable[[Format], tuple[str, ...]]) -> dict[str, Any]:
    def clauses(signature: Signature) -> tuple[str, ...]:
        return integer_clauses(signature, *choose(signature.result_format))

    def cases(signature: Signature, operands: Sequence[Bits]) -> Mapping[str, Mask]:
        return {clause: np.ones(len(operands[0]), bool) for clause in clauses(signature)}

    return {"clauses": clauses, "cases": cases}


def _integer(
    name: str,
    arity: int,
    summary: str,
    allowed: Callable[[Signature, Sequence[Bits]], AllowedSet],
    where: dict[str, Any],
    refuse: Callable[[Format], Refused | None] = bool_is_no_number,
) -> Operation:
    return Operation(
        name=name,
        arity=arity,
        chapter="4",
        summary=summary,
        typing=_only_integers(name, refuse),
        allowed=allowed,
        critical=crossed_specials,
        **where,
    )


def _bitwise_allowed(rule: Callable[..., Bits]) -> Callable[[Signature, Sequence[Bits]], AllowedSet]:
    def allowed(signature: Signature, operands: Sequence[Bits]) -> AllowedSet:
        fmt = signature.result_format
        nearest = rule(*operands) & fmt.storage.type(fmt.code_count - 1)
        result = exactly(fmt, nearest)
        # On bool the text is silent (4-g): nothing is required.
        return mark_unspecified(result, np.ones(len(result), bool)) if fmt.kind == "bool" else result

    return allowed


def _nothing_refused(fmt: Format) -> Refused | None:
    return None


def _signed_or_not(signed: str, unsigned: str) -> dict[str, Any]:
    return _by_signature(lambda fmt: (signed if fmt.signed else unsigned,))


INTEGERS = (
    _integer(
        "floordiv",
        2,
        "Quotient of integers rounded toward minus infinity.",
        _floordiv_allowed,
        _signed_or_not("intent:4-b", "intent:4-c"),
    ),
    _integer(
        "mod",
        2,
        "Remainder of the floor quotient: zero or the sign of the divisor.",
        _mod_allowed,
        _signed_or_not("intent:4-b", "intent:4-c"),
        _no_float_remainder,
    ),
    _integer("shl", 2, "Shift left, keeping the low bits.", _shl_allowed, _everywhere("intent:4-f")),
    _integer(
        "shr",
        2,
        "Shift right: arithmetic on signed, logical on unsigned integers.",
        _shr_allowed,
        _everywhere("intent:4-e"),
    ),
    _integer(
        "and",
        2,
        "Bitwise and.",
        _bitwise_allowed(lambda a, b: a & b),
        _everywhere("intent:4-g"),
        _nothing_refused,
    ),
    _integer(
        "or",
        2,
        "Bitwise or.",
        _bitwise_allowed(lambda a, b: a | b),
        _everywhere("intent:4-g"),
        _nothing_refused,
    ),
    _integer(
        "xor",
        2,
        "Bitwise exclusive or.",
        _bitwise_allowed(lambda a, b: a ^ b),
        _everywhere("intent:4-g"),
        _nothing_refused,
    ),
    _integer(
        "not",
        1,
        "Bitwise complement.",
        _bitwise_allowed(lambda a: ~a),
        _everywhere("intent:4-g"),
        _nothing_refused,
    ),
)
