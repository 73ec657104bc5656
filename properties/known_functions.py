"""Programs with functions, approximate operations and random bits, whose neighbours must not notice them.

An ordinary operation beside its approximate twin on the same operands: what merges, clones or hoists them, or lets a
mode leak from one to the other, shows where the rules of the two exclude each other (``intent:5.1-j``, ``5.1-l``).

* fdiv: above 2^126 a divisor gives zero or the rounded quotient; everywhere the plain quotient is rounded correctly.
* exp2 with and without flushing: subnormal results. The default and the approximate one cannot be told apart: within
  2 ulp both are right, and what the default one may be beyond that is unspecified (``reading:9``).
* tanh: nothing within 2^-11 is forbidden to the default one either, so that a merge of the two is invisible where they
  are computed. Their special values and subnormal operands are judged all the same.
"""

from __future__ import annotations

import numpy as np

from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.functions import APPROXIMATE, FLUSHING
from halfulp.properties import draws
from halfulp.properties.build import Builder
from halfulp.properties.known_program import Draw, Known, register
from halfulp.properties.programs import program_inputs

FUNCTIONS: list[Known] = []
"""In the order of the chapters."""

IEEE = ("f16", "bf16", "f32", "f64")


# Inputs.


def _dwelling(name: str) -> Draw:
    """Half of the operands where the function is not trivial, half as in any program."""

    def draw(kernel: Kernel, rng: np.random.Generator, count: int) -> tuple[Bits, ...]:
        window = operation(name).window
        columns = []
        for type_, column in zip(kernel.input_types, program_inputs(kernel, rng, count), strict=True):
            inside = draws.floats(rng, format_of(type_.dtype), count, window)
            columns.append(np.where(rng.random(count) < 0.5, inside, column))
        return tuple(columns)

    return draw


def _underflowing(fmt: Format, rng: np.random.Generator, count: int) -> Bits:
    """Numbers between which 2**x leaves the normal numbers and the format, of f32."""
    inside = draws.floats(rng, fmt, count, (6, 7)) | fmt.storage.type(fmt.sign_mask)
    return np.where(rng.random(count) < 0.75, inside, draws.floats(rng, fmt, count, (-24, 8)))


def _for_exp2(kernel: Kernel, rng: np.random.Generator, count: int) -> tuple[Bits, ...]:
    return tuple(_underflowing(format_of(type_.dtype), rng, count) for type_ in kernel.input_types)


def _for_division(kernel: Kernel, rng: np.random.Generator, count: int) -> tuple[Bits, ...]:
    """Dividend and divisor of any magnitude, a quarter of the divisors above 2**126, a quarter of the quotients
    subnormal; further operands as in any program."""
    fmt = format_of(kernel.input_types[0].dtype)
    above, below, *others = program_inputs(kernel, rng, count)
    kind = rng.integers(0, 4, count)
    large = draws.floats(rng, fmt, count, (126, 127))
    below = np.where(kind == 0, large, below)
    above = np.where(kind == 1, draws.floats(rng, fmt, count, (-70, -64)), above)
    below = np.where(kind == 1, draws.floats(rng, fmt, count, (64, 70)), below)
    return (above, below, *others)


def _consecutive(kernel: Kernel, rng: np.random.Generator, count: int) -> tuple[Bits, ...]:
    """Runs of counters, forwards, backwards and in no order, across the carries; two seeds that take turns."""
    bases = (0, (1 << 32) - count // 8, (1 << 34) - count // 8, (1 << 62) + 1)
    part = -(-count // 4)
    runs = [np.arange(base, base + part, dtype=np.uint64) for base in bases]
    runs[1] = runs[1][::-1]
    runs[3] = rng.permutation(runs[3])
    seeds = rng.integers(0, 1 << 63, 2, dtype=np.uint64)
    return np.resize(seeds, count), np.ascontiguousarray(np.concatenate(runs)[:count])


# 5: functions and what stands beside them.


def _beside_arithmetic(name: str) -> None:
    @register(FUNCTIONS, f"{name}-beside-arithmetic", "5-j", IEEE, _dwelling(name))
    def _(b: Builder, t: str) -> tuple[int, ...]:
        """Sums, products and quotients that need every bit and every subnormal number."""
        x, y = b.input(t), b.input(t)
        found = b.apply(name, x)
        return found, b.apply("add", x, y), b.apply("mul", x, y), b.apply("div", x, y), b.apply("neg", found)


for _name in ("lgamma", "asin", "log1p", "erfc", "i0"):
    _beside_arithmetic(_name)


@register(FUNCTIONS, "log1p-beside-sum", "5-e", ("f32", "f64"), _dwelling("log1p"))
def _(b: Builder, t: str) -> tuple[int, ...]:
    """1 + x is rounded where it stands, and not where log1p has it."""
    x = b.input(t)
    return b.apply("add", x, b.number(t, 1.0)), b.apply("log1p", x)


def _through_f32(name: str) -> None:
    @register(FUNCTIONS, f"{name}-through-f32", "5-h", ("f16", "bf16", "f8e5m2"), _dwelling(name))
    def _(b: Builder, t: str) -> int:
        """What the text says of formats below f32, written out."""
        return b.cast(b.apply(name, b.cast(b.input(t), "f32")), t)


for _name in ("asin", "log1p", "erfc", "i0"):
    _through_f32(_name)


# 5.1: approximate operations beside ordinary ones.


@register(FUNCTIONS, "exp2-in-all-modes", "5.1-j", ("f32",), _for_exp2)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    return b.apply("exp2", x, attrs=APPROXIMATE), b.apply("exp2", x), b.apply("exp2", x, attrs=FLUSHING)


@register(FUNCTIONS, "exp2-flushing-first", "5.1-j", ("f32",), _for_exp2)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    return b.apply("exp2", x, attrs=FLUSHING), b.apply("exp2", x, attrs=APPROXIMATE)


@register(FUNCTIONS, "exp2-of-half-and-whole", "5.1-j", ("f32",), _for_exp2)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """The same mode on different operands, and different modes of one: nothing to hoist but the product."""
    x = b.input(t)
    half = b.apply("mul", x, b.number(t, 0.5))
    return (
        b.apply("exp2", half, attrs=FLUSHING),
        b.apply("exp2", half, attrs=APPROXIMATE),
        b.apply("exp2", x, attrs=APPROXIMATE),
        b.apply("neg", b.apply("exp2", x, attrs=FLUSHING)),
    )


@register(FUNCTIONS, "tanh-in-both-modes", "5.1-j", ("f32",), _dwelling("tanh"))
def _(b: Builder, t: str) -> tuple[int, ...]:
    x = b.input(t)
    return b.apply("tanh", x), b.apply("tanh", x, attrs=APPROXIMATE)


@register(FUNCTIONS, "fdiv-in-all-modes", "5.1-j", ("f32",), _for_division)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = b.input(t), b.input(t)
    return (
        b.apply("fdiv", x, y),
        b.apply("fdiv", x, y, attrs=APPROXIMATE),
        b.apply("fdiv", x, y, attrs=FLUSHING),
    )


@register(FUNCTIONS, "fdiv-approximate-first", "5.1-l", ("f32",), _for_division)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """The ordinary division of the same operands stays correctly rounded, under both of its names."""
    x, y = b.input(t), b.input(t)
    near = b.apply("fdiv", x, y, attrs=APPROXIMATE)
    return near, b.apply("div", x, y), b.apply("fdiv", x, y)


@register(FUNCTIONS, "quotients-beside-approximate-one", "5.1-l", ("f32",), _for_division)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """One divisor for an approximate and an ordinary quotient: the reciprocal is not shared."""
    x, y, z = b.input(t), b.input(t), b.input(t)
    return b.apply("fdiv", x, y, attrs=APPROXIMATE), b.apply("div", z, y), b.apply("div", b.number(t, 1.0), y)


@register(FUNCTIONS, "flushing-beside-arithmetic", "5.1-l", ("f32",), _for_division)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """Subnormal operands and results of the neighbours stay what they are."""
    x, y = b.input(t), b.input(t)
    flushed = b.apply("fdiv", x, y, attrs=FLUSHING)
    return (
        flushed,
        b.apply("div", x, y),
        b.apply("mul", x, y),
        b.apply("sub", x, y),
        b.apply("mul", x, b.number(t, 0.5)),
    )


@register(FUNCTIONS, "exp2-flushing-beside-arithmetic", "5.1-l", ("f32",), _for_exp2)
def _(b: Builder, t: str) -> tuple[int, ...]:
    x, y = b.input(t), b.input(t)
    tiny = b.number(t, 2.0**-126)
    return b.apply("exp2", x, attrs=FLUSHING), b.apply("mul", y, tiny), b.apply("div", tiny, y)


# 12: random bits.


@register(FUNCTIONS, "bits-beside-uniform", "12-d", ("u64", "index"), _consecutive)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """Bits of a counter and of its successor, and the number made of them."""
    seed, counter = b.input("u64"), b.input(t)
    after = b.apply("add", counter, b.number(t, 1))
    return (
        b.random("random_bits", seed, counter),
        b.random("random_uniform", seed, counter),
        b.random("random_bits", seed, after),
    )


@register(FUNCTIONS, "bits-of-two-seeds", "12-d", ("u64",), _consecutive)
def _(b: Builder, t: str) -> tuple[int, ...]:
    """Seed and counter exchanged, and twice the same."""
    seed, counter = b.input("u64"), b.input(t)
    return tuple(b.random("random_bits", *pair) for pair in ((seed, counter), (counter, seed), (counter, counter)))
