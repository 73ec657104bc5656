"""Division: the quotient of two numbers, a rational number (IEEE 754-2019 clauses 5.4.1, 6 and 7)."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from halfulp.oracle.functions.record import Argument, Function, Known


def _known(a: Argument, b: Argument) -> Known:
    negative = a.negative != b.negative
    if "nan" in (a.kind, b.kind):
        return "nan"
    if a.kind != "number":
        return "nan" if b.kind != "number" else ("-inf" if negative else "+inf")
    if b.kind != "number":
        return "-0" if negative else "+0"
    if not b.value:
        return "nan" if not a.value else ("-inf" if negative else "+inf")
    if not a.value:
        return "-0" if negative else "+0"
    return a.value / b.value


def _never(a: Fraction, b: Fraction) -> NoReturn:
    raise AssertionError("every quotient is known exactly")


DIVISION = Function("fdiv", _known, _never, _never, arity=2)
