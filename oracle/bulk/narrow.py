"""Whether sums, products and quotients of f16 and bf16 are the correctly rounded ones, natively.

The operation is done in float64, then rounded once more, by integers. That is right: float64 has more than 2p+2 bits,
so no result of two operands of p bits lies so close to a midpoint of the narrow format, without being one, that the
first rounding could move it there (Figueroa 1995); sums and products of f16, and products of bf16, are exact even. It
holds for subnormal results of the narrow format, too: they have fewer bits, and in float64 they are normal.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from halfulp.oracle import hardware
from halfulp.oracle.bulk.kernel import LANES, Lanes
from halfulp.oracle.bulk.machine_code import Code
from halfulp.oracle.formats import Bits, Format, format_of

OPERATIONS = ("add", "sub", "mul", "div")
FORMATS = ("f16", "bf16")

PIECE = 1 << 12
"""Elements that are counted together."""

_I16, _I32, _I64, _F32, _F64 = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
_POINTER = ir.PointerType()


class Narrow:
    """The check of one operation in one format.

    Args:
        op: one of `OPERATIONS`.
        name: one of `FORMATS`.
    """

    def __init__(self, op: str, name: str) -> None:
        self._code = Code(str(_Check(op, format_of(name)).module))
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 4)
        self._call: Callable[..., None] = prototype(self._code.address("check"))

    def doubtful(self, a: Bits, b: Bits, got: Bits) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many results of each `PIECE` elements are not the correctly rounded one; a NaN is as good as another.

        Args:
            a, b, got: (n,) uint16, contiguous.

        Raises:
            RuntimeError: float arithmetic is not in its default state on this thread.
        """
        if not hardware.in_default_state():
            raise RuntimeError("float64 arithmetic is not in its default state: results could not be checked")
        columns = [np.ascontiguousarray(column, np.uint16) for column in (a, b, got)]
        found = np.zeros(-(-len(got) // PIECE), np.int64)
        self._call(len(got), *(column.ctypes.data for column in columns), found.ctypes.data)
        return found


@cache
def narrow(op: str, name: str) -> Narrow:
    """The check of an operation, compiled once."""
    return Narrow(op, name)


class _Check:
    """The module with ``check(n, a, b, got, counts)``."""

    def __init__(self, op: str, fmt: Format) -> None:
        self.op, self.fmt = op, fmt
        self.module = ir.Module(f"halfulp_{op}_{fmt.name}")
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [_I64, *[_POINTER] * 4]), "check")
        self.function = function
        self.n, self.a, self.b_, self.got, self.counts = function.args
        entry, piece, done = (function.append_basic_block(name) for name in ("entry", "piece", "done"))
        self.b = b = ir.IRBuilder(entry)
        zero = ir.Constant(_I64, 0)
        b.cbranch(b.icmp_signed("<", zero, self.n), piece, done)
        b.position_at_end(piece)
        start = b.phi(_I64)
        start.add_incoming(zero, entry)
        following = b.add(start, ir.Constant(_I64, PIECE))
        end = b.select(b.icmp_signed("<", following, self.n), following, self.n)
        whole = b.add(start, b.and_(b.sub(end, start), ir.Constant(_I64, -LANES)))
        count = b.gep(self.counts, [b.sdiv(start, ir.Constant(_I64, PIECE))], source_etype=_I64)
        self._loop(LANES, start, whole, count)
        self._loop(1, whole, end, count)
        start.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, self.n), piece, done)
        b.position_at_end(done)
        b.ret_void()

    def _loop(self, width: int, start: Any, end: Any, count: Any) -> None:
        b, lanes = self.b, Lanes(self.b, width)
        body, done = (self.function.append_basic_block(f"{name}{width}") for name in ("body", "done"))
        before = b.block
        b.cbranch(b.icmp_signed("<", start, end), body, done)
        b.position_at_end(body)
        i, total = b.phi(_I64), b.phi(lanes.type(_I32))
        i.add_incoming(start, before)
        total.add_incoming(lanes.i32(0), before)
        wrong = self._wrong(lanes, *(self._load(lanes, base, i) for base in (self.a, self.b_, self.got)))
        now = b.add(total, lanes.number(wrong))
        following = b.add(i, ir.Constant(_I64, width))
        i.add_incoming(following, body)
        total.add_incoming(now, body)
        b.cbranch(b.icmp_signed("<", following, end), body, done)
        b.position_at_end(done)
        final = b.phi(lanes.type(_I32))
        final.add_incoming(lanes.i32(0), before)
        final.add_incoming(now, body)
        b.store(b.add(b.load(count, typ=_I64), b.zext(lanes.sum(final), _I64)), count)

    def _load(self, lanes: Lanes, base: Any, i: Any) -> Any:
        b = self.b
        loaded = b.load(b.gep(base, [i], source_etype=_I16), typ=lanes.type(_I16), align=2)
        return b.zext(loaded, lanes.type(_I32))

    def _wrong(self, lanes: Lanes, a: Any, b_: Any, got: Any) -> Any:
        b = self.b
        operation = {"add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv}[self.op]
        exact = operation(self._value(lanes, a), self._value(lanes, b_))
        nan = b.fcmp_unordered("uno", exact, exact)
        got_nan = b.icmp_signed(">", b.and_(got, lanes.i32(self.fmt.magnitude_mask)), lanes.i32(self.fmt.infinity_bits))
        same = b.icmp_signed("==", got, self._rounded(lanes, exact))
        return b.not_(b.select(nan, got_nan, same))

    def _value(self, lanes: Lanes, code: Any) -> Any:
        """The value as float64, by way of f32, which has every value of both formats."""
        b, fmt = self.b, self.fmt
        shift = 23 - fmt.fraction_bits
        if fmt.exponent_bits == 8:
            bits = b.shl(code, lanes.i32(shift))
            return b.fpext(lanes.bits(bits, _F32), lanes.type(_F64))
        magnitude = b.and_(code, lanes.i32(fmt.magnitude_mask))
        sign = b.shl(b.and_(code, lanes.i32(fmt.sign_mask)), lanes.i32(16))
        moved = b.shl(magnitude, lanes.i32(shift))
        normal = b.add(moved, lanes.i32(127 - fmt.bias << 23))
        # A subnormal number f * 2**emin as (1 + f) * 2**emin - 2**emin, which is exact.
        above = lanes.bits(b.add(moved, lanes.i32(128 - fmt.bias << 23)), _F32)
        small = lanes.bits(b.fsub(above, lanes.const(_F32, 2.0**fmt.emin)), _I32)
        bits = b.select(b.icmp_signed("<", magnitude, lanes.i32(fmt.min_normal_bits)), small, normal)
        special = b.or_(moved, lanes.i32(0x7F80_0000))
        bits = b.select(b.icmp_signed(">=", magnitude, lanes.i32(fmt.infinity_bits)), special, bits)
        return b.fpext(lanes.bits(b.or_(bits, sign), _F32), lanes.type(_F64))

    def _rounded(self, lanes: Lanes, value: Any) -> Any:
        """The code of a float64 that is no NaN, rounded to nearest, ties to even."""
        b, fmt = self.b, self.fmt
        bits = lanes.bits(value, _I64)
        magnitude = b.and_(bits, lanes.const(_I64, (1 << 63) - 1))
        shift = 52 - fmt.fraction_bits
        odd = b.and_(b.lshr(magnitude, lanes.const(_I64, shift)), lanes.const(_I64, 1))
        carried = b.add(b.add(magnitude, lanes.const(_I64, (1 << shift - 1) - 1)), odd)
        normal = b.sub(
            b.lshr(carried, lanes.const(_I64, shift)), lanes.const(_I64, 1023 - fmt.bias << fmt.fraction_bits)
        )
        # Next to 2**52 units of the least subnormal number a float64 has no fraction: the sum is rounded as is due.
        units = lanes.const(_F64, 2.0 ** (52 + fmt.emin - fmt.fraction_bits))
        size = lanes.bits(magnitude, _F64)
        small = b.and_(lanes.bits(b.fadd(size, units), _I64), lanes.const(_I64, 0xFFFF))
        below = b.fcmp_ordered("<", size, lanes.const(_F64, 2.0**fmt.emin))
        code = b.trunc(b.select(below, small, normal), lanes.type(_I32))
        code = lanes.call("llvm.smin", code, lanes.i32(fmt.infinity_bits))
        sign = b.trunc(b.lshr(bits, lanes.const(_I64, 48)), lanes.type(_I32))
        return b.or_(code, b.and_(sign, lanes.i32(fmt.sign_mask)))
