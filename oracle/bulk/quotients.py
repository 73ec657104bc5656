"""Whether f32 quotients are the correctly rounded ones, by two products each: no division is trusted.

A result q of magnitude m is RN(a/b) if and only if |a|/|b| lies between the midpoints below and above m, a midpoint
itself going to the even one of its neighbours. For 0 < |b| < infinity that is

    low(m) |b| <= |a| <= high(m) |b|,  with equality only where the code of m is even.

A midpoint has 25 bits and |b| has 24, so the products have 49 at most; their exponents lie between -299 and 256. Both
are exact in float64, and so are the two comparisons. The midpoint above the largest number is 2^128 - 2^103: there an
infinity stands for 2^128, and nothing is above it. Nothing is below zero.

The same comparisons serve for special operands, with the rules of float64 for its infinities: they hold for an infinite
or a zero result exactly where that is the quotient. Where there is none (NaN, 0/0, infinity/infinity) float64's own
quotient is a NaN, and the result has to be one.

Two more rules of division (``reading:13``) fit in. A divisor above 2^126 gives what an infinite one does. Where
subnormal numbers are flushed, so are the operands, and a zero stands for everything that rounds to below the smallest
normal number.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from halfulp.oracle import hardware
from halfulp.oracle.bulk.kernel import LANES, Lanes
from halfulp.oracle.bulk.machine_code import Code
from halfulp.oracle.formats import FORMATS, Bits

F32 = FORMATS["f32"]

PIECE = 1 << 12
"""Elements that share a row of what is found."""

_I32, _I64, _F32, _F64 = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
_POINTER = ir.PointerType()
_MAGNITUDE, _INFINITY, _NORMAL = F32.magnitude_mask, F32.infinity_bits, F32.min_normal_bits
_SMALLEST_NORMAL = 2.0**-126
_LARGE_DIVISOR = 2.0**126
_TOP = 2.0**128
_ROW = 3
"""64-bit words of a row: elements that are not clear; the largest error (float64); where."""


class Found(NamedTuple):
    """What is found of pieces of `PIECE` elements, one row each; the last piece may be shorter.

    Attributes:
        doubtful: int64, how many results are not the correctly rounded one.
        error: float64, the largest ``|got - a/b| / ulp(a/b)`` within 2**-28, where a result is not stated exactly and
            not doubtful; -1: none.
        at: int64, the first element of all that has it.
    """

    doubtful: np.ndarray[Any, np.dtype[np.int64]]
    error: np.ndarray[Any, np.dtype[np.float64]]
    at: np.ndarray[Any, np.dtype[np.int64]]


class _Check:
    """The function ``check(n, a, b, got, rows)``."""

    def __init__(self, module: Any, approximate: bool, flush: bool) -> None:
        self.approximate, self.flush = approximate, flush
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64, *[_POINTER] * 4]), "check")
        self.n, self.a, self.b_, self.got, self.rows = function.args
        entry, piece, done = (function.append_basic_block(name) for name in ("entry", "piece", "done"))
        self.function = function
        self.b = b = ir.IRBuilder(entry)
        zero = ir.Constant(_I64, 0)
        b.cbranch(b.icmp_signed("<", zero, self.n), piece, done)
        b.position_at_end(piece)
        start, row = b.phi(_I64), b.phi(_POINTER)
        start.add_incoming(zero, entry)
        row.add_incoming(self.rows, entry)
        following = b.add(start, ir.Constant(_I64, PIECE))
        end = b.select(b.icmp_signed("<", following, self.n), following, self.n)
        whole = b.add(start, b.and_(b.sub(end, start), ir.Constant(_I64, -LANES)))
        self._loop(LANES, start, whole, row)
        self._loop(1, whole, end, row)
        start.add_incoming(following, b.block)
        row.add_incoming(b.gep(row, [ir.Constant(_I64, _ROW)], source_etype=_I64), b.block)
        b.cbranch(b.icmp_signed("<", following, self.n), piece, done)
        b.position_at_end(done)
        b.ret_void()

    def _loop(self, width: int, start: Any, end: Any, row: Any) -> None:
        b, lanes = self.b, Lanes(self.b, width)
        first = {
            "doubtful": lanes.const(_I32, 0),
            "error": lanes.const(_F64, -1.0),
            "at": lanes.const(_I64, 0),
        }
        body, after, done = (self.function.append_basic_block(f"{name}{width}") for name in ("body", "after", "done"))
        before = b.block
        b.cbranch(b.icmp_signed("<", start, end), body, done)
        b.position_at_end(body)
        i = b.phi(_I64)
        i.add_incoming(start, before)
        state = {name: b.phi(initial.type) for name, initial in first.items()}
        for name, phi in state.items():
            phi.add_incoming(first[name], before)
        clear, error = self._element(lanes, *(self._load(lanes, base, i) for base in (self.a, self.b_, self.got)))
        doubtful = b.add(state["doubtful"], lanes.number(b.not_(clear)))
        larger = b.and_(clear, b.fcmp_ordered(">", error, state["error"]))
        index = b.add(lanes.spread(i), ir.Constant(lanes.type(_I64), list(range(width))))
        now = {
            "doubtful": doubtful,
            "error": b.select(larger, error, state["error"]),
            "at": b.select(larger, index, state["at"]),
        }
        following = b.add(i, ir.Constant(_I64, width))
        i.add_incoming(following, b.block)
        for name, phi in state.items():
            phi.add_incoming(now[name], b.block)
        b.cbranch(b.icmp_signed("<", following, end), body, after)
        b.position_at_end(after)
        self._reduce(lanes, now, row)
        b.branch(done)
        b.position_at_end(done)

    def _load(self, lanes: Lanes, base: Any, i: Any) -> Any:
        return self.b.load(self.b.gep(base, [i], source_etype=_I32), typ=lanes.type(_I32), align=4)

    def _value(self, lanes: Lanes, magnitude: Any) -> Any:
        """float64 values of magnitude codes; infinity stays."""
        return self.b.fpext(lanes.bits(magnitude, _F32), lanes.type(_F64))

    def _finite(self, lanes: Lanes, magnitude: Any) -> Any:
        """The same, 2**128 for infinity. NaN stays."""
        value = self._value(lanes, magnitude)
        infinite = self.b.icmp_signed("==", magnitude, lanes.i32(_INFINITY))
        return self.b.select(infinite, lanes.const(_F64, _TOP), value)

    def _element(self, lanes: Lanes, a: Any, b_: Any, got: Any) -> tuple[Any, Any]:
        """Whether a result is right, and its error, NaN where there is none."""
        b = self.b
        size = lanes.i32(_MAGNITUDE)
        dividend, divisor = (self._value(lanes, b.and_(code, size)) for code in (a, b_))
        if self.flush:
            dividend, divisor = (self._flushed(lanes, value) for value in (dividend, divisor))
        if self.approximate:
            large = b.fcmp_ordered(">", divisor, lanes.const(_F64, _LARGE_DIVISOR))
            divisor = b.select(large, lanes.const(_F64, float("inf")), divisor)
        quotient = b.fdiv(dividend, divisor)
        magnitude = b.and_(got, size)
        value = self._finite(lanes, magnitude)
        low, high = self._midpoints(lanes, magnitude, value)
        odd = b.icmp_signed("!=", b.and_(magnitude, lanes.i32(1)), lanes.i32(0))
        tie = b.not_(odd)
        zero = b.icmp_signed("==", magnitude, lanes.i32(0))
        upper_tie = b.and_(tie, b.not_(zero)) if self.flush else tie
        least, most = b.fmul(low, divisor), b.fmul(high, divisor)
        above = b.or_(b.fcmp_ordered("<", least, dividend), b.and_(tie, b.fcmp_ordered("==", least, dividend)))
        below = b.or_(b.fcmp_ordered("<", dividend, most), b.and_(upper_tie, b.fcmp_ordered("==", dividend, most)))
        infinite = b.icmp_signed("==", magnitude, lanes.i32(_INFINITY))
        inside = b.and_(b.or_(zero, above), b.or_(infinite, below))
        inside = b.and_(inside, b.icmp_signed(">=", b.xor(b.xor(a, b_), got), lanes.i32(0)))  # the sign is right
        if self.flush:
            subnormal = b.icmp_unsigned("<", b.sub(magnitude, lanes.i32(1)), lanes.i32(_NORMAL - 1))
            inside = b.and_(inside, b.not_(subnormal))
        no_quotient = b.fcmp_unordered("uno", quotient, quotient)
        nan = b.icmp_signed(">", magnitude, lanes.i32(_INFINITY))
        clear = b.select(no_quotient, nan, b.and_(inside, b.not_(nan)))
        return clear, self._error(lanes, value, quotient)

    def _flushed(self, lanes: Lanes, value: Any) -> Any:
        subnormal = self.b.fcmp_ordered("<", value, lanes.const(_F64, _SMALLEST_NORMAL))
        return self.b.select(subnormal, lanes.const(_F64, 0.0), value)

    def _midpoints(self, lanes: Lanes, magnitude: Any, value: Any) -> tuple[Any, Any]:
        """The midpoints below and above; that below zero, and that above infinity, are not used."""
        b = self.b
        half, one = lanes.const(_F64, 0.5), lanes.i32(1)
        before = self._value(lanes, b.sub(magnitude, one))
        after = self._finite(lanes, b.add(magnitude, one))
        low, high = b.fmul(half, b.fadd(before, value)), b.fmul(half, b.fadd(value, after))
        if self.flush:  # what rounds to a subnormal number becomes a zero
            zero = b.icmp_signed("==", magnitude, lanes.i32(0))
            high = b.select(zero, lanes.const(_F64, _SMALLEST_NORMAL - 2.0**-150), high)
        return low, high

    def _error(self, lanes: Lanes, value: Any, quotient: Any) -> Any:
        """``|value - quotient| / ulp(quotient)``; an infinite result counts as 2**128, or as what lies beyond."""
        b = self.b
        beyond = b.and_(
            b.fcmp_ordered("==", value, lanes.const(_F64, _TOP)),
            b.fcmp_ordered(">", quotient, lanes.const(_F64, _TOP)),
        )
        error = lanes.call("llvm.fabs", b.fsub(b.select(beyond, quotient, value), quotient))
        power = b.and_(lanes.bits(quotient, _I64), lanes.const(_I64, 0x7FF0_0000_0000_0000))
        power = lanes.max_float(lanes.bits(power, _F64), lanes.const(_F64, _SMALLEST_NORMAL))
        inverse = b.sub(lanes.const(_I64, ((2 * 1023 + F32.fraction_bits) << 52) - (1 << 64)), lanes.bits(power, _I64))
        error = b.fmul(error, lanes.bits(inverse, _F64))
        least = lanes.const(_F64, _SMALLEST_NORMAL if self.flush else 2.0**-400)
        measured = b.and_(
            b.fcmp_ordered(">=", quotient, least), b.fcmp_ordered("<", quotient, lanes.const(_F64, float("inf")))
        )
        return b.select(measured, error, lanes.const(_F64, float("nan")))

    def _reduce(self, lanes: Lanes, state: dict[str, Any], row: Any) -> None:
        """Adds what the lanes hold to the row."""
        b = self.b
        words = [b.gep(row, [ir.Constant(_I64, k)], source_etype=_I64) for k in range(_ROW)]
        b.store(b.add(b.load(words[0], typ=_I64), b.zext(lanes.sum(state["doubtful"]), _I64)), words[0])
        best, at = b.load(words[1], typ=_F64), b.load(words[2], typ=_I64)
        for k in range(lanes.width):
            error, place = (b.extract_element(state[name], ir.Constant(_I32, k)) for name in ("error", "at"))
            earlier = b.and_(b.fcmp_ordered("==", error, best), b.icmp_signed("<", place, at))
            better = b.or_(b.fcmp_ordered(">", error, best), earlier)
            best, at = b.select(better, error, best), b.select(better, place, at)
        b.store(best, words[1])
        b.store(at, words[2])


class Quotients:
    """The check of one kind of division.

    Args:
        approximate: divisors above 2^126 count as infinite.
        flush: subnormal operands and results are zeros.
    """

    def __init__(self, *, approximate: bool = False, flush: bool = False) -> None:
        module = ir.Module("halfulp_quotients")
        _Check(module, approximate, flush)
        self._code = Code(str(module))
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 4)
        self._check: Callable[..., None] = prototype(self._code.address("check"))

    def check(self, a: Bits, b: Bits, got: Bits) -> Found:
        """Look at results.

        Args:
            a, b, got: uint32 of one shape (n,).

        Raises:
            RuntimeError: float arithmetic is not in its default state on this thread.
        """
        if not hardware.in_default_state():
            raise RuntimeError("float64 arithmetic is not in its default state: no product would be exact")
        a, b, got = (np.ascontiguousarray(column, np.uint32) for column in (a, b, got))
        if not a.shape == b.shape == got.shape == (len(a),):
            raise ValueError(f"operands and results of shapes {a.shape}, {b.shape}, {got.shape}")
        rows = np.zeros((-(-len(a) // PIECE), _ROW), np.int64)
        rows.view(np.float64)[:, 1] = -1.0
        self._check(len(a), *(array.ctypes.data for array in (a, b, got, rows)))
        return Found(rows[:, 0], rows.view(np.float64)[:, 1], rows[:, 2])


@cache
def quotients(approximate: bool, flush: bool) -> Quotients:
    """The check of a kind of division, compiled once."""
    return Quotients(approximate=approximate, flush=flush)
