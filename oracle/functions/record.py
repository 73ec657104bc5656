"""What is known of a function, apart from how precisely a format wants its value.

A function of real numbers is described by three things: the values that need no approximation (`Function.known`), an
approximation by mpmath with a stated error (`Function.value`), and an enclosure by Arb (`Function.ball`). The second
is the definition; the third is rigorous and faster, and the two have to agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from flint import arb
from mpmath import MPContext
from mpmath.libmp import from_man_exp

from halfulp.oracle.formats import Format
from halfulp.oracle.rounding import power_of_two, value_of

mp = MPContext()
"""A context of our own: nobody else's precision changes ours."""

Special = Literal["nan", "+inf", "-inf", "+0", "-0"]


class Between(NamedTuple):
    """A value strictly between two bounds; None stands for no upper bound.

    For values so close to a simple number, so large or so small that computing their digits would be a waste.
    """

    low: Fraction
    high: Fraction | None

    def __neg__(self) -> Between:
        if self.high is None:
            raise ValueError("a value without an upper bound has no negative here")
        return Between(-self.high, -self.low)


class Argument(NamedTuple):
    """A decoded operand.

    Attributes:
        kind: ``"number"`` (zeros included), ``"+inf"``, ``"-inf"`` or ``"nan"``.
        value: the value of a number, else 0.
        negative: the sign bit; for zeros this is all that tells them apart.
    """

    kind: Literal["number", "+inf", "-inf", "nan"]
    value: Fraction
    negative: bool

    @property
    def zero(self) -> Special | None:
        """The zero that the argument is, with its sign."""
        if self.kind != "number" or self.value:
            return None
        return "-0" if self.negative else "+0"


def argument(fmt: Format, code: int) -> Argument:
    """Decode an operand."""
    value = value_of(fmt, code)
    negative = bool(code & fmt.sign_mask)
    if isinstance(value, Fraction):
        return Argument("number", value, negative)
    return Argument(value, Fraction(0), negative)


Known = Special | Fraction | Between
"""An answer that needs no approximation. A `Fraction` is not 0: zeros are written with their sign."""

HUGE = Between(power_of_two(4000), None)
"""Larger than every number of every format, however far beyond its range one counts."""

TINY_BOUND = power_of_two(-1290)
TINY = Between(Fraction(0), TINY_BOUND)
"""Positive, and far below every positive number of every format, with a hundred bits more."""

NEAR_ZERO = power_of_two(-40)
"""Below this magnitude the functions that are simple near zero are bounded by their first two Taylor terms."""


class Approximation(NamedTuple):
    """An mpmath value, and a bound on its distance to the exact one."""

    value: Any
    error: Any


GUARD = 16
"""mpmath's functions are assumed right to 2**GUARD units in the last place of its working precision.

That is a statement about mpmath, which proves nothing; it documents a few units. The tests compare every value with
a rigorous enclosure.
"""


def within_guard(value: Any, scale: Any = None) -> Approximation:
    """A value with the standard allowance, relative to the value, or to ``scale`` where terms cancelled."""
    size = abs(value if scale is None else scale)
    return Approximation(value, mp.ldexp(size, GUARD - mp.prec))


def to_mpf(value: Fraction) -> Any:
    """A number of a binary format, exactly: no rounding to the working precision."""
    exponent = value.denominator.bit_length() - 1
    return mp.make_mpf(from_man_exp(value.numerator, -exponent))


def to_arb(value: Fraction) -> arb:
    """A number of a binary format as an exact ball."""
    return arb((value.numerator, 1 - value.denominator.bit_length()))


def split_integer(value: Fraction) -> tuple[int, Fraction]:
    """The nearest integer and what is left: ``value = n + f`` with ``|f| <= 1/2``."""
    n = round(value)
    return n, value - n


@dataclass(frozen=True)
class Function:
    """A function of one real number, or of two.

    Attributes:
        name: the name of the operation.
        known: the answer for operands that need no approximation, else None. Every operand for which the exact value
            is a rational number has to be among them, or Ziv's loop would not end. Bounds may be too wide for a
            format; then the approximations are asked.
        value: ``value(x)`` at mpmath's working precision, for finite operands that ``known`` does not settle.
        ball: ``ball(x)`` at Arb's working precision, likewise. Only has to be an enclosure: it may be useless.
        near_zero: ``"operand"`` or ``"one"`` where the function differs from it by less than 2 x^2 or 2 |x| near zero
            (the Taylor terms in ``known`` say so): rounded to nearest, the result is then the operand or 1 for
            magnitudes below 2**-(precision + 4), that is with an error of less than an eighth of an ulp.
    """

    name: str
    known: Callable[..., Known | None]
    value: Callable[..., Approximation]
    ball: Callable[..., arb]
    near_zero: Literal["operand", "one"] | None = None
    arity: int = 1


def odd(x: Argument, known: Callable[[Fraction], Known | None]) -> Known | None:
    """An odd function from its answer for positive numbers; zeros keep their sign."""
    if x.zero:
        return x.zero
    answer = known(abs(x.value))
    if answer is None or x.value > 0:
        return answer
    assert not isinstance(answer, str)
    return -answer
