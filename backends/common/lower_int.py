"""Integer and bool operations (``intent:4``).

No instruction here has undefined behaviour or gives poison for any input: illegal operands (a zero divisor, a shift
amount out of range) give some value, and leave their neighbours alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.backends.common.code import Code, IntegerOp, Predicate, Reg
from halfulp.backends.common.types import Scalar

_SIMPLE: dict[str, IntegerOp] = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}

_SIGNED: dict[str, Predicate] = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNSIGNED: dict[str, Predicate] = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"}


def lower(code: Code, op: str, dtype: Scalar, args: Sequence[Reg]) -> Reg:
    """One operation on operands of ``dtype``; comparisons give ``i1``, the others ``dtype``."""
    a = args[0]
    match op:
        case "neg":  # wraps, as 0 - a
            return code.sub(code.constant(a.type, 0), a)
        case "abs":  # wraps; the identity on unsigned types
            if not dtype.signed:
                return a
            return code.absolute(a)
        case "not":
            return code.xor(a, -1)
    b = args[1]
    match op:
        case "floordiv" | "mod":
            return _divide(code, op, dtype, a, b)
        case "shl" | "shr":
            amount = code.and_(b, dtype.width - 1)
            return code.integer("shl" if op == "shl" else "ashr" if dtype.signed else "lshr", a, amount)
    if op in _SIMPLE:
        return code.integer(_SIMPLE[op], a, b)
    return code.icmp((_SIGNED if dtype.signed else _UNSIGNED)[op], a, b)


def _divide(code: Code, op: str, dtype: Scalar, a: Reg, b: Reg) -> Reg:
    """Floor division and its remainder, which has the divisor's sign (``intent:4-b``, ``intent:4-c``)."""
    trap = code.icmp("eq", b, 0)
    if dtype.signed:
        overflow = code.and_(code.icmp("eq", a, dtype.min_int), code.icmp("eq", b, -1))
        trap = code.or_(trap, overflow)  # min // 1 is what min // -1 wraps to, and its remainder is 0
    divisor = code.select(trap, 1, b)
    quotient = code.integer("sdiv" if dtype.signed else "udiv", a, divisor)
    if op == "floordiv" and not dtype.signed:
        return quotient
    remainder = code.sub(a, code.mul(quotient, divisor))
    if not dtype.signed:
        return remainder
    # The machine truncates. Where the remainder is not zero and its sign is not the divisor's, go one down.
    wrong = code.and_(code.icmp("ne", remainder, 0), code.icmp("slt", code.xor(remainder, divisor), 0))
    if op == "floordiv":
        return code.add(quotient, code.convert("sext", wrong, a.type))
    return code.add(remainder, code.select(wrong, divisor, 0))
