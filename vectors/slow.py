"""The slow path: what one operation may return for one tuple of operands, derived anew.

Rational numbers, Python's integers and mpmath's values with a stated error: no arrays, no machine floats, and nothing
of the rules in `oracle.ops`. The files are made by those rules, and `halfulp vectors verify` compares every set with
what is said here. Short enough to be read beside the clauses it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import Overflow, round_exact, value_of
from halfulp.vectors import slow_functions
from halfulp.vectors.ranges import Row, nan_spans, row


class Operand(NamedTuple):
    """A decoded operand.

    Attributes:
        kind: ``"number"`` (zeros too), ``"infinity"`` or ``"nan"``.
        value: of a number.
        negative: the sign, which for zeros and infinities is all there is.
    """

    kind: str
    value: Fraction
    negative: bool


NAN = Operand("nan", Fraction(0), False)


def infinity(negative: bool) -> Operand:
    return Operand("infinity", Fraction(0), negative)


def number(value: Fraction | int, negative_zero: bool = False) -> Operand:
    return Operand("number", Fraction(value), value < 0 or (value == 0 and negative_zero))


def decoded(fmt: Format, code: int) -> Operand:
    value = value_of(fmt, code)
    if value == "nan":
        return NAN
    if isinstance(value, str):
        return infinity(value == "-inf")
    return number(value, fmt.is_float and bool(code & fmt.sign_mask))


# From an exact result to a row. None: nothing is required, or nothing is claimed.


def one(code: int) -> Row:
    return Row(code, ((code, code),))


def delivered(fmt: Format, exact: Operand, *, saturate: bool = False) -> Row | None:
    """An exact result rounded once to a float format (``intent:5.2-d`` to ``5.2-g``, ``reading:4``, ``reading:27``)."""
    if exact.kind == "nan":
        return row(fmt, fmt.nan_bits, nan_spans(fmt)) if fmt.nan != "none" else None
    if exact.negative and not fmt.signed:
        return None
    sign = fmt.sign_mask if exact.negative else 0
    largest = value_of(fmt, fmt.max_finite_bits)
    assert isinstance(largest, Fraction)
    if exact.kind == "infinity":
        if saturate:
            return one(sign | fmt.max_finite_bits)
        return one(sign | fmt.infinity_bits) if fmt.infinity else None
    if abs(exact.value) > largest and not fmt.infinity and not saturate:
        return None
    try:
        overflow: Overflow = "saturate" if saturate else "infinity"
        return one(round_exact(fmt, exact.value, overflow=overflow, negative_zero=exact.negative))
    except ValueError:  # e8m0 has no zero, and nothing below its least number
        return None


def as_code(fmt: Format, value: int) -> int:
    return value % fmt.code_count


# Conversions.


def cast(src: Format, dst: Format, code: int) -> Row | None:
    """``intent:5.2-a`` to ``5.2-h``: rounded once to floats; to integers modulo 2**width, from floats toward zero."""
    if "bool" in (src.kind, dst.kind):
        return None  # intent:5.2-o
    x = decoded(src, code)
    if dst.is_float:
        return delivered(dst, x)
    if src.is_int:
        return one(as_code(dst, int(x.value)))  # intent:5.2-a
    whole = int(x.value)  # toward zero: intent:5.2-c
    legal = x.kind == "number" and dst.min_int <= whole <= dst.max_int
    return one(as_code(dst, whole)) if legal else None


def cast_saturate(src: Format, dst: Format, code: int) -> Row | None:
    """``intent:5.2-i``, ``reading:26``."""
    x = decoded(src, code)
    if dst.is_float:
        return delivered(dst, x, saturate=True)
    if x.kind == "nan":
        return None
    if x.kind == "infinity":
        return one(as_code(dst, dst.min_int if x.negative else dst.max_int))
    return one(as_code(dst, min(max(int(x.value), dst.min_int), dst.max_int)))


# Float arithmetic: exact results.


def add(x: Operand, y: Operand) -> Operand:
    if "nan" in (x.kind, y.kind):
        return NAN
    if "infinity" in (x.kind, y.kind):
        if x.kind == y.kind and x.negative != y.negative:
            return NAN
        return x if x.kind == "infinity" else y
    # An exact zero is +0 unless both operands are negative zeros.
    return number(x.value + y.value, x.negative and y.negative)


def negated(x: Operand) -> Operand:
    return x._replace(value=-x.value, negative=not x.negative)


def multiply(x: Operand, y: Operand) -> Operand:
    """``intent:5-a``, ``5.2-m``: the exact product, zeros and infinities signed; zero times infinity is NaN."""
    if "nan" in (x.kind, y.kind):
        return NAN
    negative = x.negative != y.negative
    if "infinity" in (x.kind, y.kind):
        zero = any(z.kind == "number" and z.value == 0 for z in (x, y))
        return NAN if zero else infinity(negative)
    return number(x.value * y.value, negative)


def divide(x: Operand, y: Operand) -> Operand:
    """``intent:5-a``, ``5.2-m``: the exact quotient; x/0 is infinite, 0/0 and infinity/infinity are NaN."""
    if "nan" in (x.kind, y.kind):
        return NAN
    negative = x.negative != y.negative
    if x.kind == "infinity":
        return NAN if y.kind == "infinity" else infinity(negative)
    if y.kind == "infinity":
        return number(0, negative)
    if y.value == 0:
        return NAN if x.value == 0 else infinity(negative)
    return number(x.value / y.value, negative)


EXACT: dict[str, Callable[[Operand, Operand], Operand]] = {
    "add": add,
    "sub": lambda x, y: add(x, negated(y)),
    "mul": multiply,
    "div": divide,
    "fdiv": divide,
}


def square_root(fmt: Format, code: int) -> Row | None:
    """The code whose neighbourhood of half a step holds the root: found by comparing squares."""
    x = decoded(fmt, code)
    if x.kind == "nan" or (x.negative and (x.value != 0 or x.kind == "infinity")):
        return delivered(fmt, NAN)
    if x.kind == "infinity" or x.value == 0:
        return delivered(fmt, x)
    low, high = 0, fmt.max_finite_bits
    while low < high:  # the greatest code whose square is at most x
        middle = (low + high + 1) // 2
        if _value(fmt, middle) ** 2 <= x.value:
            low = middle
        else:
            high = middle - 1
    midpoint = (_value(fmt, low) + _value(fmt, low + 1)) / 2 if low < fmt.max_finite_bits else None
    if midpoint is not None and (midpoint**2 < x.value or (midpoint**2 == x.value and low % 2 == 1)):
        low += 1
    return one(low)


def _value(fmt: Format, code: int) -> Fraction:
    value = value_of(fmt, code)
    assert isinstance(value, Fraction)
    return value


def floor(fmt: Format, code: int) -> Row | None:
    x = decoded(fmt, code)
    if x.kind != "number":
        return delivered(fmt, x)
    return delivered(fmt, number(x.value.numerator // x.value.denominator, x.negative))


def muladd(fmt: Format, codes: Sequence[int]) -> Row | None:
    """``intent:5.5-a``: fused, or rounded twice."""
    x, y, z = (decoded(fmt, code) for code in codes)
    product = multiply(x, y)
    rounded = delivered(fmt, product)
    if rounded is None:
        return None
    fused = delivered(fmt, add(product, z))
    separate = delivered(fmt, add(decoded(fmt, rounded.nearest), z))
    if fused is None or separate is None:
        return None
    return row(fmt, fused.nearest, (*fused.allowed, *separate.allowed))


# Comparison, choice.


def compare(op: str, fmt: Format, a: int, b: int) -> Row | None:
    """``intent:3-h``, ``5-a``: 1 where the relation holds; a NaN is unordered and unequal to all, -0 equals +0."""
    if fmt.kind == "bool":
        return None
    x, y = (decoded(fmt, code) for code in (a, b))
    if "nan" in (x.kind, y.kind):
        return one(int(op == "ne"))
    first, second = (_order(z) for z in (x, y))
    truth = {
        "eq": first == second,
        "ne": first != second,
        "lt": first < second,
        "le": first <= second,
        "gt": first > second,
        "ge": first >= second,
    }
    return one(int(truth[op]))


def _order(x: Operand) -> tuple[int, Fraction]:
    """Infinities stand outside all numbers."""
    return ((-1 if x.negative else 1) if x.kind == "infinity" else 0, x.value)


def extremum(op: str, fmt: Format, a: int, b: int) -> Row | None:
    """``intent:5.2-k`` and ``-l``, ``reading:6``."""
    x, y = (decoded(fmt, code) for code in (a, b))
    if "nan" in (x.kind, y.kind):
        if not op.endswith("_num") or x.kind == y.kind:
            return delivered(fmt, NAN)
        return one(b if x.kind == "nan" else a)
    largest = op.startswith("maximum")
    if a != b and x.kind == y.kind == "number" and x.value == y.value:
        return row(fmt, a if y.negative == largest else b, ((a, a), (b, b)))
    return one(a if (_order(x) >= _order(y)) == largest else b)


# Integers.


def integer(op: str, fmt: Format, codes: Sequence[int]) -> Row | None:
    """``intent:4``."""
    x, *rest = (int(_value(fmt, code)) for code in codes)
    y = rest[0] if rest else 0
    shift_is_legal = 0 <= y < fmt.width
    match op:
        case "add":
            result: int | None = x + y
        case "sub":
            result = x - y
        case "mul":
            result = x * y
        case "floordiv":
            quotient = x // y if y else None
            result = quotient if quotient is not None and quotient <= fmt.max_int else None
        case "mod":
            result = x % y if y and not (x == fmt.min_int < 0 and y == -1) else None
        case "shl":
            result = x << y if shift_is_legal else None
        case "shr":
            result = x >> y if shift_is_legal else None
        case "and":
            result = x & y
        case "or":
            result = x | y
        case "xor":
            result = x ^ y
        case "not":
            result = ~x
        case "neg":
            result = -x if fmt.signed else None  # reading:28
        case "abs":
            result = abs(x) if abs(x) <= fmt.max_int else None
        case _:
            raise ValueError(f"no rule for {op} of integers")
    return None if result is None else one(as_code(fmt, result))


# Random bits.


def philox(seed: int, counter: int) -> int:
    """``intent:12``: word ``counter % 4`` of block ``counter // 4``, Philox 4x32-10 (Salmon and others, 2011)."""
    low = (1 << 32) - 1
    block = counter >> 2
    c0, c1, c2, c3 = block & low, block >> 32, 0, 0
    k0, k1 = seed & low, seed >> 32
    for _ in range(10):
        p, q = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (q >> 32) ^ c1 ^ k0, q & low, (p >> 32) ^ c3 ^ k1, p & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return (c0, c1, c2, c3)[counter & 3]


def random(op: str, signature: Signature, codes: Sequence[int]) -> Row | None:
    seed, counter = codes
    if signature.args[1] == "index" and counter >> 63:
        return None
    word = philox(seed, counter)
    if op == "random_bits":
        return one(word)
    return delivered(FORMATS["f32"], number(Fraction(word >> 8, 1 << 24)))


# All of them.


def expected(signature: Signature, codes: Sequence[int]) -> Row | None:
    """What an operation may return.

    Returns:
        None where nothing is required: illegal operands, or results of which the text says nothing. Of functions whose
        accuracy the text leaves open, the unspecified results are right up to a few steps at their far ends.
    """
    op, fmt = signature.op, signature.result_format
    src = signature.formats[0]
    if slow_functions.is_function(signature):
        return slow_functions.expected(signature, codes)
    match op:
        case "cast":
            return cast(src, fmt, codes[0])
        case "cast_saturate":
            return cast_saturate(src, fmt, codes[0])
        case "bitcast":
            return one(codes[0])
        case "select":
            return one(codes[1] if codes[0] else codes[2])
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            return compare(op, src, codes[0], codes[1])
        case "random_bits" | "random_uniform":
            return random(op, signature, codes)
    if src.kind == "bool":
        return None
    if src.is_int:
        return integer(op, fmt, codes)
    match op:
        case "maximum" | "minimum" | "maximum_num" | "minimum_num":
            return extremum(op, fmt, codes[0], codes[1])
        case "neg":
            return _sign(fmt, codes[0], codes[0] ^ fmt.sign_mask)
        case "abs":
            return _sign(fmt, codes[0], codes[0] & fmt.magnitude_mask)
        case "sqrt":
            return square_root(fmt, codes[0])
        case "floor":
            return floor(fmt, codes[0])
        case "muladd":
            return muladd(fmt, codes)
    return delivered(fmt, EXACT[op](*(decoded(fmt, code) for code in codes)))


def _sign(fmt: Format, code: int, changed: int) -> Row | None:
    x = decoded(fmt, code)
    return delivered(fmt, x) if x.kind == "nan" else one(changed)


def exact_value(signature: Signature, codes: Sequence[int]) -> Fraction | None:
    """The exact result of a conversion or of arithmetic, where it is a number."""
    if signature.op in ("cast", "cast_saturate"):
        exact = decoded(signature.formats[0], codes[0])
    elif signature.op in EXACT and signature.result_format.is_float:
        exact = EXACT[signature.op](*(decoded(signature.result_format, code) for code in codes))
    else:
        return None
    return exact.value if exact.kind == "number" else None
