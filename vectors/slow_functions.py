"""The slow path of functions: mpmath's values with a stated error, and sets found by trying their members one by one.

A *position* counts numbers of a format away from zero on the side of the result's sign, as if exponents had no upper
end; negative positions are on the other side, and 0 is both zeros (``reading:1``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from halfulp.oracle import functions
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.functions import ziv
from halfulp.oracle.functions.record import Argument, argument
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import Mode, power_of_two, round_exact, value_of
from halfulp.vectors.ranges import Row, Span, nan_spans, row

F32 = FORMATS["f32"]

F64_ASIN_STEPS = 1 << 20
"""``intent:5-h``: an f64 asin further off has f32 accuracy, which would be about 2**29 steps."""

UNARY = ("lgamma", "asin", "log1p", "erfc", "i0", "exp2", "tanh")


@dataclass(frozen=True)
class Bound:
    """What is said of a function: the bounds in ulp for f32 and f64, and whether the text states them.

    Sources: ``intent:5-c`` to ``5-g``; where ``stated`` is false, the table that CUDA publishes (``reading:9``).
    """

    f32: int
    f64: int
    stated: bool
    own_sign: bool = False


BOUNDS = {
    "lgamma": Bound(6, 4, False),
    "asin": Bound(2, 2, False, True),
    "log1p": Bound(1, 1, True),
    "erfc": Bound(4, 5, True),
    "i0": Bound(6, 6, True),
    "exp2": Bound(2, 1, False, True),
    "tanh": Bound(2, 1, False, True),
}


def is_function(signature: Signature) -> bool:
    return signature.op in UNARY or (signature.op == "fdiv" and bool(signature.attrs))


# Exact values.


def rounded(name: str, fmt: Format, x: Argument, mode: Mode = "nearest_even") -> int:
    """The correctly rounded code, by the definition."""
    return ziv.definition(functions.FUNCTIONS[name], (x,), fmt, mode)


def _bounds(name: str, x: Argument, bits: int) -> tuple[Fraction, Fraction]:
    """Numbers below and above the exact value, 2^-bits of it apart; the value of an operand that is no special one."""
    known = functions.FUNCTIONS[name].known(x)
    if isinstance(known, Fraction):
        return known, known
    if known is not None and not isinstance(known, str) and known.high is not None:
        size = min(abs(known.low), abs(known.high))
        if known.low == 0 or known.high - known.low <= size * power_of_two(-bits):  # 0: far below every number
            hair = (known.high - known.low) / (1 << 64)  # the ends themselves are no values
            return known.low + hair, known.high - hair
    return ziv.mpmath_bounds(functions.FUNCTIONS[name], (x.value,), bits + 64)


# Positions.


def value_at(fmt: Format, position: int) -> Fraction:
    """The number at a position, with exponents that have no end."""
    wide = ziv.unbounded(fmt)
    value = value_of(wide, abs(position))
    assert isinstance(value, Fraction)
    return value if position >= 0 else -value


def ulp_at(fmt: Format, position: int) -> Fraction:
    field = max(abs(position) >> fmt.fraction_bits, 1)
    return power_of_two(field - fmt.bias - fmt.fraction_bits)


def codes_at(fmt: Format, position: int, negative: bool) -> set[int]:
    """The codes at a position; an infinity stands for all from its own on."""
    if position == 0:
        return {0, fmt.sign_mask}
    sign = fmt.sign_mask if negative == (position > 0) else 0
    return {sign | min(abs(position), fmt.infinity_bits)}


def within(fmt: Format, position: int, bound: int) -> tuple[set[int], set[int]]:
    """``reading:1``: positions within the bound by both counts, and by at least one."""
    both, either = set(), set()
    ulp = ulp_at(fmt, position)
    for candidate in range(position - 2 * bound - 2, position + 2 * bound + 3):
        steps = abs(candidate - position) <= bound
        value = abs(value_at(fmt, candidate) - value_at(fmt, position)) <= bound * ulp
        if steps and value:
            both.add(candidate)
        if steps or value:
            either.add(candidate)
    return both, either


def spans_of(codes: Iterable[int]) -> list[Span]:
    return [(code, code) for code in codes]


# Ordinary functions.


def position_of(name: str, fmt: Format, x: Argument, nearest: int) -> int:
    """The position of the correctly rounded result."""
    magnitude = nearest & fmt.magnitude_mask
    if magnitude != fmt.infinity_bits:
        return magnitude
    wide = ziv.unbounded(fmt)
    return min(rounded(name, wide, x) & wide.magnitude_mask, far_out(fmt))


def far_out(fmt: Format) -> int:
    """The position of 2**(emax + 1) and a sixteenth: from there on every result within any limit is infinite."""
    return fmt.infinity_bits + (1 << fmt.fraction_bits - 4)


def gross_spans(name: str, fmt: Format, x: Argument) -> list[Span]:
    """``reading:9``: what is no gross error, |got - exact| <= 2^-6 max(|exact|, 2^-6)."""
    low, high = _bounds(name, x, 128)
    slack = power_of_two(-6) * max(min(abs(low), abs(high)), power_of_two(-6))
    ends = [round_exact(fmt, low - slack, mode="up"), round_exact(fmt, high + slack, mode="down", negative_zero=True)]
    ends = [code if code & fmt.magnitude_mask else code & fmt.sign_mask for code in ends]
    below, above = (bool(code & fmt.sign_mask) for code in ends)
    if below == above:
        return [(min(ends), max(ends))]
    return [(fmt.sign_mask, ends[0]), (0, ends[1])]


def wide_row(name: str, fmt: Format, x: Argument) -> Row:
    """The rule in f32 or f64."""
    nearest = rounded(name, fmt, x)
    if x.kind != "number" or x.value == 0 or isinstance(functions.FUNCTIONS[name].known(x), str):
        magnitude = nearest & fmt.magnitude_mask
        return row(fmt, nearest, nan_spans(fmt) if magnitude > fmt.infinity_bits else ((nearest, nearest),))
    bound = BOUNDS[name]
    negative = bool(nearest & fmt.sign_mask)
    zeros = ((0, 0), (fmt.sign_mask, fmt.sign_mask))
    position = position_of(name, fmt, x, nearest)
    both, either = within(fmt, position, bound.f32 if fmt.width == 32 else bound.f64)
    beyond = spans_of(code for p in either for code in codes_at(fmt, p, negative))
    if not bound.stated and position < far_out(fmt):
        beyond += gross_spans(name, fmt, x)
    inside = spans_of(code for p in both for code in codes_at(fmt, p, negative))
    if bound.own_sign:
        sign = fmt.sign_mask if negative else 0
        own = (sign, sign | fmt.magnitude_mask)
        inside, beyond = (clipped(spans, (own, *zeros)) for spans in (inside, beyond))
    if name == "asin":
        right_angle = rounded(name, fmt, argument(fmt, fmt.bias << fmt.fraction_bits))
        most = ((0, right_angle), (fmt.sign_mask, fmt.sign_mask | right_angle))
        inside, beyond = (clipped(spans, most) for spans in (inside, beyond))
        if fmt.width == 64:  # intent:5-h: further off is the accuracy of f32
            sign = fmt.sign_mask if negative else 0
            near = (sign | max(position - F64_ASIN_STEPS, 0), sign | position + F64_ASIN_STEPS)
            beyond = clipped(beyond, (near, *(zeros if position <= F64_ASIN_STEPS else ())))
    return row(fmt, nearest, inside, beyond)


def clipped(spans: Iterable[Span], within_spans: Sequence[Span]) -> list[Span]:
    """The parts of spans inside others."""
    pairs = [(max(a, c), min(b, d)) for a, b in spans for c, d in within_spans]
    return [(low, high) for low, high in pairs if low <= high]


def _through(fmt: Format, spans: Iterable[Span]) -> list[Span] | None:
    """``reading:10``: the image of f32 results under a cast, which is monotone; None where one is not taken."""
    found = []
    for low, high in spans:
        ends = []
        for code in (low, high):
            value = value_of(F32, code)
            if isinstance(value, str):
                if not fmt.infinity:
                    return None
                ends.append(fmt.infinity_bits | (fmt.sign_mask if value == "-inf" else 0))
                continue
            largest = value_of(fmt, fmt.max_finite_bits)
            assert isinstance(largest, Fraction)
            if abs(value) > largest and not fmt.infinity:
                return None
            ends.append(round_exact(fmt, value, negative_zero=bool(code & F32.sign_mask)))
        found.append((min(ends), max(ends)))
    return found


def narrow_row(name: str, fmt: Format, x: Argument) -> Row | None:
    wide = wide_row(name, F32, x)
    if wide.nearest & F32.magnitude_mask > F32.infinity_bits:
        return row(fmt, fmt.nan_bits, nan_spans(fmt))
    inside, beyond = _through(fmt, wide.allowed), _through(fmt, wide.unspecified)
    if inside is None or beyond is None:
        return None
    nearest = rounded(name, fmt, x)
    return row(fmt, nearest, [*inside, (nearest, nearest)], beyond)


# Approximate operations, in f32.


def _flushed(code: int) -> int:
    subnormal = 0 < code & F32.magnitude_mask < F32.min_normal_bits
    return code & F32.sign_mask if subnormal else code


def _flush_spans(spans: Iterable[Span]) -> list[Span]:
    """Normal numbers as they are, and the zeros that the others become."""
    found = []
    for low, high in spans:
        sign = low & F32.sign_mask
        if low < sign | F32.min_normal_bits:
            found.append((sign, sign))
        if high >= sign | F32.min_normal_bits:
            found.append((max(low, sign | F32.min_normal_bits), high))
    return found


def flushed_row(wide: Row) -> Row:
    return row(F32, _flushed(wide.nearest), _flush_spans(wide.allowed), _flush_spans(wide.unspecified))


def _ulp_row(nearest: int, position: int, negative: bool, bound: int, own_zero: bool) -> Row:
    both, either = within(F32, position, bound)

    def codes(positions: Iterable[int]) -> list[Span]:
        found = {code for p in positions for code in codes_at(F32, p, negative)}
        if own_zero:
            found = {code for code in found if bool(code & F32.sign_mask) == negative}
        return spans_of(found)

    return row(F32, nearest, codes(both), codes(either))


def approximate_exp2(code: int, flush: bool) -> Row:
    """``intent:5.1-e``, ``reading:11``."""
    x = argument(F32, _flushed(code) if flush else code)
    nearest = rounded("exp2", F32, x)
    if x.kind == "nan":
        return row(F32, nearest, nan_spans(F32))
    if x.kind != "number" or x.value == 0:
        return Row(nearest, ((nearest, nearest),))
    wide = _ulp_row(nearest, position_of("exp2", F32, x, nearest), False, 2, False)
    return flushed_row(wide) if flush else wide


def approximate_tanh(code: int) -> Row:
    """``intent:5.1-f``, ``reading:12``."""
    x = argument(F32, code)
    nearest = rounded("tanh", F32, x)
    if x.kind == "nan":
        return row(F32, nearest, nan_spans(F32))
    if x.kind != "number" or x.value == 0:
        return Row(nearest, ((nearest, nearest),))
    low, high = (abs(end) for end in _bounds("tanh", x, 128))
    low, high = min(low, high), max(low, high)
    factor = power_of_two(-11)
    ends = [
        {round_exact(F32, value * (1 - factor), mode="up") for value in (low, high)},
        {round_exact(F32, value * (1 + factor), mode="down") for value in (low, high)},
    ]
    assert all(len(end) == 1 for end in ends), f"tanh of {F32.hex(code)} is not decided by 128 bits"
    sign = nearest & F32.sign_mask
    span = (ends[0].pop() | sign, ends[1].pop() | sign)
    near = [span] if span[0] <= span[1] else []
    if 0 < code & F32.magnitude_mask < F32.min_normal_bits:
        return row(F32, code, [(code, code)], near)
    return row(F32, nearest, [*near, (nearest, nearest)])


def approximate_fdiv(a: int, b: int, flush: bool) -> Row:
    """``intent:5.1-g``, ``reading:13``."""
    if flush:
        a, b = _flushed(a), _flushed(b)
    x, y = argument(F32, a), argument(F32, b)
    negative = bool((a ^ b) & F32.sign_mask)
    sign = F32.sign_mask if negative else 0
    nan = row(F32, F32.nan_bits, nan_spans(F32))
    if "nan" in (x.kind, y.kind):
        return nan
    if y.kind == "number" and abs(y.value) > power_of_two(126):
        return Row(sign, ((sign, sign),)) if x.kind == "number" else nan
    if x.kind != "number":
        return nan if y.kind != "number" else Row(sign | F32.infinity_bits, ((sign | F32.infinity_bits,) * 2,))
    if y.kind != "number":
        return Row(sign, ((sign, sign),))
    if y.value == 0:
        infinite = sign | F32.infinity_bits
        return nan if x.value == 0 else Row(infinite, ((infinite, infinite),))
    if x.value == 0:
        return Row(sign, ((sign, sign),))
    quotient = abs(x.value / y.value)
    nearest = round_exact(F32, -quotient if negative else quotient, negative_zero=negative)
    position = round_exact(ziv.unbounded(F32), quotient)
    wide = _ulp_row(nearest, position, negative, 2, True)
    if flush:
        return flushed_row(wide)
    if abs(y.value) < power_of_two(F32.emin):  # no bound: all that shows no broken rule
        top = F32.infinity_bits if abs(y.value) <= power_of_two(-128) else F32.max_finite_bits
        return row(F32, nearest, wide.allowed, [*wide.unspecified, (sign, sign | top)])
    return wide


def expected(signature: Signature, codes: Sequence[int]) -> Row | None:
    """What a function may return; see `slow.expected`."""
    name, fmt = signature.op, signature.result_format
    attrs = dict(signature.attrs)
    flush = bool(attrs.get("flush_to_zero"))
    if attrs.get("approximate"):
        match name:
            case "exp2":
                return approximate_exp2(codes[0], flush)
            case "tanh":
                return approximate_tanh(codes[0])
            case _:
                return approximate_fdiv(codes[0], codes[1], flush)
    x = argument(fmt, codes[0])
    return wide_row(name, fmt, x) if fmt.width >= 32 else narrow_row(name, fmt, x)


def has_open_ends(signature: Signature) -> bool:
    """Whether unspecified results reach up to the limit of a gross error, where a few steps do not matter."""
    return signature.op in UNARY and not signature.attrs and not BOUNDS[signature.op].stated
