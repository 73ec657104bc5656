"""Programs that compilers like to rewrite, each with the clause that says what must come out.

Every entry is an identity over the reals, a fusion, a wall or a round trip: something that an optimiser is tempted to
simplify and that floating point, or the width of an integer, forbids, or allows in one way only (``intent:5.5``).
"""

from __future__ import annotations

from collections.abc import Callable

from halfulp.oracle.formats import FLOATS
from halfulp.properties.build import Builder
from halfulp.properties.known_functions import FUNCTIONS
from halfulp.properties.known_program import Known, Write, register

__all__ = ["KNOWN", "Known"]

IEEE = ("f16", "bf16", "f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64", "index")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED


_KNOWN: list[Known] = []


def _known(name: str, clause: str, dtypes: tuple[str, ...]) -> Callable[[Write], Write]:
    return register(_KNOWN, name, clause, dtypes)


def _inputs(b: Builder, dtype: str, count: int) -> list[int]:
    return [b.input(dtype) for _ in range(count)]


# 5-b: order and dependencies are kept.


@_known("sum-left", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    return b.apply("add", b.apply("add", x, y), z)


@_known("sum-right", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    return b.apply("add", x, b.apply("add", y, z))


@_known("product-left", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    return b.apply("mul", b.apply("mul", x, y), z)


@_known("sum-of-four", "5-b", IEEE)
def _(b: Builder, t: str) -> int:
    w, x, y, z = _inputs(b, t, 4)
    return b.apply("add", b.apply("add", b.apply("add", w, x), y), z)


@_known("sum-minus-term", "5-b", IEEE)
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    return b.apply("sub", b.apply("add", x, y), y)


@_known("two-sum-error", "5-b", IEEE)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """The error term of Knuth's two-sum: zero over the reals."""
    x, y = _inputs(b, t, 2)
    total = b.apply("add", x, y)
    part = b.apply("sub", total, x)
    rest = b.apply("sub", x, b.apply("sub", total, part))
    return total, b.apply("add", rest, b.apply("sub", y, part))


@_known("common-factor", "5-b", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y, z = _inputs(b, t, 3)
    first, second = b.apply("mul", x, y), b.apply("mul", x, z)
    return b.apply("add", first, second), b.apply("sub", first, second)


@_known("difference-both-ways", "5-b", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    return b.apply("sub", x, y), b.apply("sub", y, x), b.apply("div", x, y), b.apply("div", y, x)


@_known("common-divisor", "5-b", IEEE)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    return b.apply("div", b.apply("add", x, y), z)


@_known("quotients-added", "5-b", IEEE)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    return b.apply("add", b.apply("div", x, z), b.apply("div", y, z))


@_known("quotient-times-divisor", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    return b.apply("mul", b.apply("div", x, y), y)


@_known("difference-with-itself", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x = b.input(t)
    return b.apply("sub", x, x)


@_known("quotient-with-itself", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x = b.input(t)
    return b.apply("div", x, x)


@_known("times-zero", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("mul", b.input(t), b.number(t, 0.0))


@_known("plus-zero", "5.2-m", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("add", b.input(t), b.number(t, 0.0))


@_known("minus-minus-zero", "5.2-m", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("sub", b.input(t), b.number(t, -0.0))


@_known("zero-minus", "5.2-m", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("sub", b.number(t, 0.0), b.input(t))


@_known("times-one", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("mul", b.input(t), b.number(t, 1.0))


@_known("times-minus-one", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("mul", b.input(t), b.number(t, -1.0))


@_known("double-and-halve", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("mul", b.apply("mul", b.input(t), b.number(t, 2.0)), b.number(t, 0.5))


@_known("halve-and-double", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("mul", b.apply("mul", b.input(t), b.number(t, 0.5)), b.number(t, 2.0))


@_known("divide-by-constant", "5-b", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    return tuple(b.apply("div", x, b.number(t, n)) for n in (3.0, 5.0, 10.0, 0.75, 4.0))


@_known("quotients-by-constant-added", "5-b", IEEE)
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    third = b.number(t, 3.0)
    return b.apply("add", b.apply("div", x, third), b.apply("div", y, third))


@_known("divide-by-scalar", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("div", b.input(t), b.input(t, scalar=True))


@_known("reciprocal", "5-b", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    inverse = b.apply("div", b.number(t, 1.0), y)
    return b.apply("mul", x, inverse), b.apply("div", x, y)


@_known("quotients-of-one-divisor", "5-b", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y, z = _inputs(b, t, 3)
    return b.apply("div", x, z), b.apply("div", y, z)


@_known("root-of-square", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    x = b.input(t)
    return b.apply("sqrt", b.apply("mul", x, x))


@_known("square-of-root", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    root = b.apply("sqrt", b.input(t))
    return b.apply("mul", root, root)


@_known("reciprocal-root", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("div", b.number(t, 1.0), b.apply("sqrt", b.input(t)))


@_known("negated-difference", "5.2-m", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    return b.apply("neg", b.apply("sub", x, y))


@_known("double-negation", "5-a", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    minus = b.apply("neg", x)
    return minus, b.apply("neg", minus), b.apply("abs", minus), b.apply("neg", b.apply("abs", x))


@_known("constants-alone", "5-a", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    one, three, ten = (b.number(t, n) for n in (1.0, 3.0, 10.0))
    third = b.apply("div", one, three)
    return third, b.apply("mul", third, ten), b.apply("sqrt", ten), b.apply("sub", third, third)


@_known("constants-after-constants", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    third = b.apply("div", b.number(t, 1.0), b.number(t, 3.0))
    return b.apply("mul", b.apply("mul", b.input(t), third), b.number(t, 3.0))


# Comparison and choice.


@_known("compare-with-itself", "5-a", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    return tuple(b.apply(op, x, x) for op in ("eq", "ne", "lt", "le", "ge"))


@_known("opposite-comparison", "5-a", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """not (x < y) is not x >= y where a NaN is compared: the branches of a select tell."""
    x, y = _inputs(b, t, 2)
    less = b.apply("lt", x, y)
    return b.apply("select", less, y, x), b.apply("ge", x, y), b.apply("select", less, x, y)


@_known("select-like-maximum", "5-a", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    return tuple(b.apply("select", b.apply(op, x, y), x, y) for op in ("gt", "ge", "lt", "le"))


@_known("chain-of-selects", "5-a", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    inner = b.apply("select", b.apply("lt", x, y), x, y)
    return b.apply("select", b.apply("lt", inner, z), inner, z)


@_known("extrema-together", "5.2-k", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    return b.apply("maximum", x, y), b.apply("minimum", x, y)


@_known("clamp", "5.2-k", FLOATS)
def _(b: Builder, t: str) -> int:
    low, high = b.number(t, -1.0), b.number(t, 1.0)
    return b.apply("minimum", b.apply("maximum", b.input(t), low), high)


@_known("num-extrema-together", "5.2-l", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    return b.apply("maximum_num", x, y), b.apply("minimum_num", x, y)


@_known("extrema-of-both-kinds", "5.2-l", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    return tuple(b.apply(op, x, y) for op in ("maximum", "maximum_num", "minimum", "minimum_num"))


@_known("zero-or-itself", "5.2-m", FLOATS)
def _(b: Builder, t: str) -> int:
    """x == 0 ? 0 : x loses the sign of -0; folding it to x does not."""
    x, zero = b.input(t), b.number(t, 0.0)
    return b.apply("select", b.apply("eq", x, zero), zero, x)


# 5.5: fused multiply-add.


def _fusion(name: str, op: str, *, product_first: bool) -> None:
    @_known(name, "5.5-a", FLOATS)
    def _(b: Builder, t: str) -> int:
        x, y, z = _inputs(b, t, 3)
        product = b.apply("mul", x, y)
        return b.apply(op, product, z) if product_first else b.apply(op, z, product)


_fusion("product-plus", "add", product_first=True)
_fusion("plus-product", "add", product_first=False)
_fusion("product-minus", "sub", product_first=True)
_fusion("minus-product", "sub", product_first=False)


@_known("product-used-twice", "5.5-c", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y, z = _inputs(b, t, 3)
    product = b.apply("mul", x, y)
    return product, b.apply("add", product, z)


@_known("product-in-two-sums", "5.5-c", FLOATS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y, z = _inputs(b, t, 3)
    product = b.apply("mul", x, y)
    return b.apply("add", product, z), b.apply("sub", product, z)


@_known("product-error", "5.5-c", IEEE)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """x*y - x*y: zero, or the rounding error of the product if one of the two is fused."""
    x, y = _inputs(b, t, 2)
    product = b.apply("mul", x, y)
    return product, b.apply("sub", b.apply("mul", x, y), product)


@_known("two-products", "5.5-a", FLOATS)
def _(b: Builder, t: str) -> int:
    w, x, y, z = _inputs(b, t, 4)
    return b.apply("add", b.apply("mul", w, x), b.apply("mul", y, z))


@_known("chain-of-products", "5.5-a", IEEE)
def _(b: Builder, t: str) -> int:
    w, x, y, z = _inputs(b, t, 4)
    inner = b.apply("add", b.apply("mul", w, x), y)
    return b.apply("add", b.apply("mul", inner, z), w)


@_known("negated-product", "5.5-d", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    return b.apply("add", b.apply("neg", b.apply("mul", x, y)), z)


@_known("product-of-sum", "5-b", FLOATS)
def _(b: Builder, t: str) -> int:
    """x*(y + 1) is no multiply-add of x*y + x."""
    x, y = _inputs(b, t, 2)
    return b.apply("mul", x, b.apply("add", y, b.number(t, 1.0)))


@_known("product-through-extremum", "5.5-d", IEEE)
def _(b: Builder, t: str) -> int:
    x, y, z = _inputs(b, t, 3)
    product = b.apply("mul", x, y)
    return b.apply("add", b.apply("maximum", product, product), z)


@_known("constant-product-plus", "5.5-a", FLOATS)
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    return b.apply("add", b.apply("mul", x, b.number(t, 3.0)), y)


@_known("scalar-product-plus", "5.5-a", FLOATS)
def _(b: Builder, t: str) -> int:
    return b.apply("add", b.apply("mul", b.input(t), b.input(t, scalar=True)), b.input(t))


WIDER = {"f8e4m3fn": "f16", "f8e5m2": "f32", "f16": "f32", "bf16": "f32", "f32": "f64"}
NARROWER = {"f64": "f32", "f32": "bf16", "f16": "f8e5m2"}


@_known("widened-product-plus", "5.5-d", tuple(WIDER))
def _(b: Builder, t: str) -> int:
    """The product is rounded before the cast: a wall."""
    x, y = _inputs(b, t, 2)
    wide = WIDER[t]
    return b.apply("add", b.cast(b.apply("mul", x, y), wide), b.input(wide))


@_known("narrowed-product-plus", "5.5-d", tuple(NARROWER))
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    narrow = NARROWER[t]
    return b.apply("add", b.cast(b.apply("mul", x, y), narrow), b.input(narrow))


@_known("product-of-widened", "5.5-a", tuple(WIDER))
def _(b: Builder, t: str) -> int:
    """Widening before the product: the product is exact, fused or not."""
    wide = WIDER[t]
    x, y = (b.cast(x, wide) for x in _inputs(b, t, 2))
    return b.apply("add", b.apply("mul", x, y), b.input(wide))


# 5.2: conversions.


def _round_trip(source: str, through: str, clause: str) -> None:
    @_known(f"round-trip-{source}-{through}", clause, (source,))
    def _(b: Builder, t: str) -> int:
        return b.cast(b.cast(b.input(t), through), t)


for _source, _through, _clause in (
    ("f32", "bf16", "5.2-d"),
    ("f32", "f16", "5.2-d"),
    ("f64", "f32", "5.2-d"),
    ("f64", "bf16", "5.2-d"),
    ("bf16", "f16", "5.2-d"),
    ("f16", "bf16", "5.2-d"),
    ("f16", "f8e5m2", "5.2-g"),
    ("f32", "f8e4m3fn", "5.2-f"),
    ("f16", "f32", "5.2-e"),
    ("bf16", "f32", "5.2-e"),
    ("f32", "f64", "5.2-e"),
    ("f8e5m2", "f16", "5.2-h"),
    ("f8e4m3fn", "f32", "5.2-h"),
    ("f32", "i32", "5.2-c"),
    ("f64", "i64", "5.2-c"),
    ("f16", "i8", "5.2-c"),
    ("i32", "f32", "5.2-b"),
    ("i64", "f64", "5.2-b"),
    ("i64", "f32", "5.2-b"),
    ("u64", "f64", "5.2-b"),
    ("i16", "bf16", "5.2-b"),
    ("u8", "f8e5m2", "5.2-b"),
    ("i64", "i8", "5.2-a"),
    ("i64", "u8", "5.2-a"),
    ("i32", "u16", "5.2-a"),
    ("u64", "i32", "5.2-a"),
    ("i8", "u8", "5.2-a"),
    ("i8", "u32", "5.2-a"),
    ("u32", "i8", "5.2-a"),
):
    _round_trip(_source, _through, _clause)


@_known("narrow-twice", "5.2-d", ("f64",))
def _(b: Builder, t: str) -> tuple[int, ...]:
    """Two roundings are two roundings, and one is one."""
    x = b.input(t)
    return b.cast(b.cast(x, "f32"), "bf16"), b.cast(x, "bf16"), b.cast(b.cast(x, "f32"), "f16"), b.cast(x, "f16")


@_known("sum-in-narrow", "5.2-d", ("f16", "bf16", "f8e5m2"))
def _(b: Builder, t: str) -> int:
    """Every sum is rounded to its own dtype; excess precision may not survive to the next."""
    x, y, z = _inputs(b, t, 3)
    return b.cast(b.apply("add", b.apply("add", x, y), z), "f32")


@_known("sum-in-wide", "5.2-d", ("f16", "bf16", "f8e5m2"))
def _(b: Builder, t: str) -> int:
    x, y, z = (b.cast(x, "f32") for x in _inputs(b, t, 3))
    return b.cast(b.apply("add", b.apply("add", x, y), z), t)


@_known("bits-of-product", "5.2-j", ("f32",))
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    return b.convert("bitcast", b.apply("mul", x, y), "u32")


# 4: integers.


@_known("quotient-and-remainder", "4-b", SIGNED)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    quotient, remainder = b.apply("floordiv", x, y), b.apply("mod", x, y)
    return quotient, remainder, b.apply("add", b.apply("mul", quotient, y), remainder)


@_known("unsigned-quotient-and-remainder", "4-c", UNSIGNED)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    quotient, remainder = b.apply("floordiv", x, y), b.apply("mod", x, y)
    return quotient, remainder, b.apply("add", b.apply("mul", quotient, y), remainder)


@_known("divide-by-constants", "4-b", SIGNED)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    numbers = [b.number(t, n) for n in (1, -1, 2, -2, 3, 7, 8, -8, 10, 100)]
    kept = [n for at, n in enumerate(numbers) if at != 1]  # signed_min // -1 is illegal
    return tuple(b.apply("floordiv", x, n) for n in kept) + tuple(b.apply("mod", x, n) for n in kept)


@_known("product-then-quotient", "4-a", INTEGERS)
def _(b: Builder, t: str) -> int:
    """x*4//4 is not x where the product wraps."""
    x = b.input(t)
    return b.apply("floordiv", b.apply("mul", x, b.number(t, 4)), b.number(t, 4))


@_known("successor-compare", "4-a", INTEGERS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """x + 1 > x is false at the end of the range."""
    x = b.input(t)
    return b.apply("gt", b.apply("add", x, b.number(t, 1)), x), b.apply("lt", b.apply("sub", x, b.number(t, 1)), x)


@_known("difference-compare", "4-a", INTEGERS)
def _(b: Builder, t: str) -> int:
    x, y = _inputs(b, t, 2)
    return b.apply("lt", b.apply("sub", x, y), b.number(t, 0))


@_known("shift-there-and-back", "4-f", INTEGERS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, three = b.input(t), b.number(t, 3)
    return b.apply("shr", b.apply("shl", x, three), three), b.apply("shl", b.apply("shr", x, three), three)


@_known("shift-like-quotient", "4-e", INTEGERS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    return b.apply("shr", x, b.number(t, 2)), b.apply("floordiv", x, b.number(t, 4))


@_known("wide-product-narrowed", "5.2-a", ("i8", "i16", "i32", "u8", "u16", "u32"))
def _(b: Builder, t: str) -> tuple[int, ...]:
    """The product in 64 bits keeps what the product in the narrow type loses."""
    wide = "i64" if t[0] == "i" else "u64"
    x, y = _inputs(b, t, 2)
    product = b.apply("mul", b.cast(x, wide), b.cast(y, wide))
    return product, b.cast(product, t), b.cast(b.apply("mul", x, y), wide)


@_known("index-beyond-32-bits", "2-a", ("index",))
def _(b: Builder, t: str) -> int:
    i, stride, offset = _inputs(b, t, 3)
    return b.apply("add", b.apply("mul", i, stride), offset)


@_known("absolute-difference", "4-a", SIGNED)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    difference = b.apply("sub", x, y)
    zero = b.number(t, 0)
    minus = b.apply("sub", zero, difference)
    return (b.apply("select", b.apply("lt", difference, zero), minus, difference),)


@_known("masks", "4-g", INTEGERS)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = _inputs(b, t, 2)
    either = b.apply("or", x, y)
    return b.apply("xor", either, b.apply("and", x, y)), b.apply("not", b.apply("and", b.apply("not", x), y))


KNOWN: tuple[Known, ...] = (*_KNOWN, *FUNCTIONS)
"""Every program, in the order of the chapters' interest."""
