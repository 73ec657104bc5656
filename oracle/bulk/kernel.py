"""The native judge: enclosures, distances and their statistics in one pass over consecutive arguments.

The code is generated for one degree, as LLVM IR with explicit vectors of eight lanes, and compiled for this machine.
No fast-math flag is set and nothing is contracted behind our back: the multiply-adds of the polynomial are
``llvm.fma`` where the processor has the instruction and two operations elsewhere (`oracle.bulk.bounds` holds for
both). Everything else is exact, or a comparison.

A *piece* is a part of a run. For each the pass writes one row of `RESULT` 64-bit words, see the `Word` constants.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from halfulp.oracle.bulk.machine_code import Code
from halfulp.oracle.bulk.table import (
    HIGH,
    INFINITY,
    LEADING,
    LOW,
    REFLECTED_FIRST,
    REFLECTED_SHIFT,
    SCALE,
    SHIFT,
    Kind,
)

LANES = 8
BINS = 8
"""Distances 0 to 7 are counted one by one; what is missing from the total is 8 steps or more."""


class Word:
    """Offsets in a row of results.

    Counts: of distances (from 0), of undecided elements, of elements in another binade than the nearest result or of
    the other sign, of elements beyond the relative limit, of zeros with the wrong sign, of results without a distance
    (NaN for a number, the reverse, a breach of an exact result). Then the greatest distance and its index in the
    piece, the greatest fractional error and its argument (float64 bits).
    """

    UNDECIDED, MIXED, BEYOND, ZERO_SIGN, WRONG, DISTANCE, INDEX, FRACTION, ARGUMENT = range(BINS, BINS + 9)


RESULT = BINS + 9
LONGEST_PIECE = 255 * LANES
"""Distances are counted in bytes, one step of the loop at a time."""

FAR = 0x7FFF_FFFE
"""Distances are cut off here."""

_I1, _I8, _I32, _I64, _F32, _F64 = (
    ir.IntType(1),
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.FloatType(),
    ir.DoubleType(),
)
_POINTER = ir.PointerType()
_INTRINSIC_SUFFIX = {_I32: "i32", _I64: "i64", _F32: "f32", _F64: "f64"}
_EXPONENT_F64 = 0x7FF0_0000_0000_0000
_NO_FRACTION = -1.0


class Lanes:
    """Instructions on vectors of ``width`` lanes; Python numbers and scalars are spread over the lanes."""

    def __init__(self, builder: Any, width: int) -> None:
        self.b, self.width = builder, width

    def type(self, scalar: Any) -> Any:
        return ir.VectorType(scalar, self.width)

    def const(self, scalar: Any, value: float) -> Any:
        return ir.Constant(self.type(scalar), [value] * self.width)

    def i32(self, value: int) -> Any:
        return self.const(_I32, value)

    def spread(self, value: Any) -> Any:
        first = self.b.insert_element(ir.Constant(self.type(value.type), ir.Undefined), value, ir.Constant(_I32, 0))
        return self.b.shuffle_vector(first, first, ir.Constant(self.type(_I32), [0] * self.width))

    def call(self, name: str, *operands: Any) -> Any:
        """An intrinsic whose result has the type of its operands."""
        type_ = operands[0].type
        full = f"{name}.v{self.width}{_INTRINSIC_SUFFIX[type_.element]}"
        module = self.b.module
        function = module.globals.get(full)
        if function is None:
            function = ir.Function(module, ir.FunctionType(type_, [type_] * len(operands)), full)
        return self.b.call(function, operands)

    def sum(self, values: Any) -> Any:
        """The sum of all lanes, modulo the range of their type."""
        type_ = values.type
        full = f"llvm.vector.reduce.add.v{self.width}{_INTRINSIC_SUFFIX[type_.element]}"
        function = self.b.module.globals.get(full)
        if function is None:
            function = ir.Function(self.b.module, ir.FunctionType(type_.element, [type_]), full)
        return self.b.call(function, [values])

    def bits(self, value: Any, scalar: Any) -> Any:
        return self.b.bitcast(value, self.type(scalar))

    def max_float(self, a: Any, b: Any) -> Any:
        """The greater; b where a is NaN."""
        return self.b.select(self.b.fcmp_ordered(">", a, b), a, b)

    def number(self, mask: Any) -> Any:
        """A mask as 0 or 1 in 32 bits."""
        return self.b.zext(mask, self.type(_I32))


class _Found(NamedTuple):
    """What is found of some lanes: conditions to be counted by name; the greater ones of the rest are kept.

    ``distance`` is -1 where there is none.
    """

    masks: dict[str, Any]
    beyond: Any
    distance: Any
    fraction: Any


class _Piece:
    """The function for pieces of one kind of run: ``void(got, n, first, row, reflected, code, position, ...)``.

    Args:
        kind: of the runs. VALUE serves EXACT too.
        degree: of the polynomials.
        fused: multiply-adds are one operation.
    """

    def __init__(self, module: Any, kind: Kind, degree: int, fused: bool) -> None:
        self.kind, self.degree, self.fused = kind, degree, fused
        parameters = [
            _POINTER, _I64, _I32, _POINTER, _POINTER, _I32, _I32, _I1, _F64, _F64, _POINTER,
        ]  # fmt: skip
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), f"piece_{kind.name.lower()}")
        self.function.linkage = "internal"
        names = "got n first row reflected code position exact relative least out"
        self.given: dict[str, Any] = dict(zip(names.split(), self.function.args, strict=True))
        for name, argument in self.given.items():
            argument.name = name
        self.b = b = ir.IRBuilder(self.function.append_basic_block("entry"))
        whole = b.and_(self.given["n"], ir.Constant(_I64, -LANES))
        self._loop(LANES, ir.Constant(_I64, 0), whole)
        self._loop(1, whole, self.given["n"])
        self.b.ret_void()

    def _element(self, column: int) -> Any:
        address = self.b.gep(self.given["row"], [ir.Constant(_I64, column)], source_etype=_F64)
        return self.b.load(address, typ=_F64)

    def _loop(self, width: int, start: Any, end: Any) -> None:
        lanes = Lanes(self.b, width)
        before = self.b.block
        row = {c: lanes.spread(self._element(c)) for c in range(LEADING + self.degree + 1)}
        scalars = {
            name: lanes.spread(self.given[name]) for name in ("code", "position", "exact", "relative", "least", "first")
        }
        starts: list[tuple[str, Any]] = [
            (name, lanes.i32(0)) for name in ("bins0", "bins4", "undecided", "mixed", "zero_sign")
        ]
        starts += [
            ("wrong", lanes.i32(0)),
            ("beyond", lanes.const(_I64, 0)),
            ("distance", lanes.i32(-1)),
            ("index", lanes.i32(0)),
        ]
        starts += [("fraction", lanes.const(_F64, _NO_FRACTION)), ("argument", lanes.const(_F64, 0.0))]
        body = self.function.append_basic_block(f"body{width}")
        done = self.function.append_basic_block(f"done{width}")
        reduce = self.function.append_basic_block(f"reduce{width}")
        preheader = self.b.block
        assert preheader is before
        self.b.cbranch(self.b.icmp_signed("<", start, end), body, done)
        self.b.position_at_end(body)
        i = self.b.phi(_I64)
        i.add_incoming(start, preheader)
        state = {}
        for name, initial in starts:
            phi = self.b.phi(initial.type)
            phi.add_incoming(initial, preheader)
            state[name] = phi
        after = self._body(lanes, i, row, scalars, state)
        following = self.b.add(i, ir.Constant(_I64, width))
        i.add_incoming(following, body)
        for name, phi in state.items():
            phi.add_incoming(after[name], body)
        self.b.cbranch(self.b.icmp_signed("<", following, end), body, reduce)
        self.b.position_at_end(reduce)
        self._reduce(lanes, after)
        self.b.branch(done)
        self.b.position_at_end(done)

    def _multiply_add(self, lanes: Lanes, x: Any, y: Any, z: Any) -> Any:
        if self.fused:
            return lanes.call("llvm.fma", x, y, z)
        return self.b.fadd(self.b.fmul(x, y), z)

    def _body(self, lanes: Lanes, i: Any, row: dict[int, Any], scalars: dict[str, Any], state: dict[str, Any]) -> Any:
        b = self.b
        iota = ir.Constant(lanes.type(_I32), list(range(lanes.width)))
        index = b.add(lanes.spread(b.trunc(i, _I32)), iota)
        x32 = lanes.bits(b.add(scalars["first"], index), _F32)
        x = b.fpext(x32, lanes.type(_F64))
        address = b.gep(self.given["got"], [i], source_etype=_I32)
        got = b.load(address, typ=lanes.type(_I32), align=4)
        judge = self._of_constant if self.kind >= Kind.VALUE else self._of_polynomial
        found = judge(lanes, got, x, x32, row, scalars)
        after = dict(state)
        for name, mask in found.masks.items():
            after[name] = b.add(state[name], lanes.number(mask))
        after["beyond"] = b.add(state["beyond"], b.zext(found.beyond, lanes.type(_I64)))
        for name, base in (("bins0", 0), ("bins4", 4)):
            # Four counters of a byte each in a lane: a piece has at most 255 steps.
            place = b.sub(found.distance, lanes.const(_I32, base))
            one = b.shl(lanes.const(_I32, 1), b.shl(place, lanes.const(_I32, 3)))
            inside = b.icmp_unsigned("<", place, lanes.const(_I32, 4))
            after[name] = b.add(state[name], b.select(inside, one, lanes.const(_I32, 0)))
        longer = b.icmp_signed(">", found.distance, state["distance"])
        after["distance"] = b.select(longer, found.distance, state["distance"])
        after["index"] = b.select(longer, index, state["index"])
        larger = b.fcmp_ordered(">", found.fraction, state["fraction"])
        after["fraction"] = b.select(larger, found.fraction, state["fraction"])
        after["argument"] = b.select(larger, x, state["argument"])
        return after

    def _value(self, lanes: Lanes, code: Any) -> Any:
        return self.b.fpext(lanes.bits(code, _F32), lanes.type(_F64))

    def _other_binade(self, lanes: Lanes, a: Any, b: Any) -> Any:
        """Where the signs or the exponent fields of two codes differ."""
        upper = self.b.and_(self.b.xor(a, b), lanes.i32(INFINITY - (1 << 31)))
        return self.b.icmp_signed("!=", upper, lanes.i32(0))

    def _past(self, lanes: Lanes, error: Any, y: Any, scalars: dict[str, Any]) -> Any:
        """Where the error is beyond the relative limit, or NaN."""
        size = lanes.max_float(lanes.call("llvm.fabs", y), scalars["least"])
        return self.b.fcmp_unordered(">", error, self.b.fmul(scalars["relative"], size))

    def _of_polynomial(
        self, lanes: Lanes, got: Any, x: Any, x32: Any, row: dict[int, Any], scalars: dict[str, Any]
    ) -> _Found:
        """For results that differ from the nearest in sign or binade, for infinities and for NaN, what comes out is not
        meant to be right: such pieces are marked (``mixed``, ``beyond`` or an infinite fraction) and judged again."""
        b = self.b
        y = self._polynomial(lanes, x, row)
        got_value = self._value(lanes, got)
        masks = {}
        if self.kind == Kind.REFLECTION:
            w, pole = self._distance_to_integer(lanes, x32)
            y = b.fadd(y, self._gathered(lanes, w))
            got_value = b.select(pole, y, got_value)
            at_pole = lanes.const(_I32, INFINITY)
            masks["wrong"] = b.and_(pole, b.icmp_signed("!=", got, at_pole))
        nearest = lanes.bits(b.fptrunc(b.fmul(y, row[LOW]), lanes.type(_F32)), _I32)
        other = lanes.bits(b.fptrunc(b.fmul(y, row[HIGH]), lanes.type(_F32)), _I32)
        if self.kind == Kind.REFLECTION:
            nearest, other = b.select(pole, at_pole, nearest), b.select(pole, at_pole, other)
        masks["undecided"] = b.icmp_signed("!=", nearest, other)
        difference = b.sub(got, nearest)
        distance = lanes.call("llvm.smax", difference, b.sub(lanes.const(_I32, 0), difference))
        masks["mixed"] = self._other_binade(lanes, got, nearest)
        error = lanes.call("llvm.fabs", b.fsub(got_value, y))
        fraction = b.fmul(error, self._inverse_ulp(lanes, y))
        return _Found(masks, self._past(lanes, error, y, scalars), distance, fraction)

    def _of_constant(
        self, lanes: Lanes, got: Any, x: Any, x32: Any, row: dict[int, Any], scalars: dict[str, Any]
    ) -> _Found:
        b = self.b
        true = lanes.const(_I1, 1)
        magnitude_mask, end = lanes.i32(0x7FFF_FFFF), lanes.i32(INFINITY)
        nearest, position, y = scalars["code"], scalars["position"], row[SCALE]
        magnitude = b.and_(got, magnitude_mask)
        nan = b.icmp_signed(">", magnitude, end)
        nearest_nan = b.icmp_signed(">", b.and_(nearest, magnitude_mask), end)
        sign = b.ashr(got, lanes.i32(31))
        ordinal = b.sub(b.xor(magnitude, sign), sign)
        overflow = b.and_(b.icmp_signed("==", got, end), b.icmp_signed(">=", position, end))
        ordinal = b.select(overflow, position, ordinal)
        got_value = self._value(lanes, got)
        for bound, sign_ in ((2.0**128, ">"), (-(2.0**128), "<")):
            limit = lanes.const(_F64, bound)
            got_value = b.select(b.fcmp_ordered(sign_, got_value, limit), limit, got_value)
        got_value = b.select(overflow, lanes.max_float(got_value, y), got_value)
        unequal = b.icmp_signed("!=", got, nearest)
        breach = b.and_(b.and_(scalars["exact"], unequal), b.xor(nearest_nan, true))
        wrong = b.or_(b.xor(nan, nearest_nan), breach)
        low, high = lanes.call("llvm.smin", ordinal, position), lanes.call("llvm.smax", ordinal, position)
        distance = lanes.call("llvm.umin", b.sub(high, low), lanes.i32(FAR))
        distance = b.select(wrong, lanes.i32(-1), b.select(nan, lanes.i32(0), distance))
        same = b.icmp_signed("==", distance, lanes.i32(0))
        other_sign = b.icmp_signed("==", b.xor(got, nearest), lanes.i32(-(1 << 31)))
        opposite = b.and_(other_sign, b.icmp_signed("==", position, lanes.i32(0)))
        error = lanes.call("llvm.fabs", b.fsub(got_value, y))
        past = b.and_(self._past(lanes, error, y, scalars), b.xor(same, true))
        # Steps and ulps differ by a factor of two at most, so beyond twice every bound they agree.
        close = b.icmp_unsigned("<", b.sub(distance, lanes.i32(1)), lanes.i32(2 * BINS))
        masks = {"wrong": wrong, "zero_sign": b.and_(opposite, same)}
        masks["mixed"] = b.and_(close, self._other_binade(lanes, got, nearest))
        return _Found(masks, past, distance, b.fmul(error, row[SHIFT]))

    def _inverse_ulp(self, lanes: Lanes, y: Any) -> Any:
        """1/ulp of the f32 binade of y: from its power of two p, 2**23 / p, by subtraction of exponents."""
        power = self.b.and_(lanes.bits(y, _I64), lanes.const(_I64, _EXPONENT_F64))
        power = lanes.max_float(lanes.bits(power, _F64), lanes.const(_F64, 2.0**-126))
        constant = ((2 * 1023 + 23) << 52) - (1 << 64)
        return lanes.bits(self.b.sub(lanes.const(_I64, constant), lanes.bits(power, _I64)), _F64)

    def _evaluated(self, lanes: Lanes, t: Any, coefficients: list[Any]) -> Any:
        """In the order that `oracle.bulk.bounds` describes; the highest power comes first."""
        parts = coefficients[-2::-1]
        power = t
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            joined = [self._multiply_add(lanes, power, high, low) for low, high in pairs]
            parts = joined + parts[len(joined) * 2 :]
            if len(parts) > 1:
                power = self.b.fmul(power, power)
        return self._multiply_add(lanes, t, parts[0], coefficients[-1])

    def _polynomial(self, lanes: Lanes, x: Any, row: dict[int, Any]) -> Any:
        t = self._multiply_add(lanes, x, row[SCALE], row[SHIFT])  # exact
        return self._evaluated(lanes, t, [row[LEADING + i] for i in range(self.degree + 1)])

    def _distance_to_integer(self, lanes: Lanes, x: Any) -> tuple[Any, Any]:
        w = lanes.call("llvm.fabs", self.b.fsub(x, lanes.call("llvm.rint", x)))
        return w, self.b.fcmp_ordered("==", w, lanes.const(_F32, 0.0))

    def _gathered(self, lanes: Lanes, w: Any) -> Any:
        """W from the row that the upper bits of w name. w = 0 takes the first row; its result is not used."""
        b = self.b
        index = b.lshr(lanes.bits(w, _I32), lanes.const(_I32, REFLECTED_SHIFT))
        index = lanes.call("llvm.smax", b.sub(index, lanes.const(_I32, REFLECTED_FIRST)), lanes.const(_I32, 0))
        columns = 2 + self.degree + 1
        offset = b.mul(index, lanes.const(_I32, columns))

        def column(k: int) -> Any:
            elements = ir.Constant(lanes.type(_F64), ir.Undefined)
            for lane in range(lanes.width):
                place = ir.Constant(_I32, lane)
                at = b.add(b.extract_element(offset, place), ir.Constant(_I32, k))
                address = b.gep(self.given["reflected"], [at], source_etype=_F64)
                elements = b.insert_element(elements, b.load(address, typ=_F64), place)
            return elements

        t = self._multiply_add(lanes, b.fpext(w, lanes.type(_F64)), column(0), column(1))
        return self._evaluated(lanes, t, [column(k) for k in range(2, columns)])

    def _reduce(self, lanes: Lanes, after: dict[str, Any]) -> None:
        """Adds what the lanes hold to the row of results."""
        b = self.b

        def word(k: int) -> Any:
            return b.gep(self.given["out"], [ir.Constant(_I64, k)], source_etype=_I64)

        def lane(name: str, k: int) -> Any:
            return b.extract_element(after[name], ir.Constant(_I32, k))

        def magnitude(value: Any) -> Any:
            return b.select(b.fcmp_ordered("<", value, ir.Constant(_F64, 0.0)), b.fneg(value), value)

        def add(k: int, values: Any) -> None:
            total = lanes.sum(values)
            if total.type is not _I64:
                total = b.zext(total, _I64)
            b.store(b.add(b.load(word(k), typ=_I64), total), word(k))

        for k in range(BINS):
            packed = after["bins0" if k < 4 else "bins4"]
            shifted = b.lshr(packed, lanes.const(_I32, 8 * (k % 4)))
            add(k, b.and_(shifted, lanes.const(_I32, 0xFF)))
        add(Word.UNDECIDED, after["undecided"])
        add(Word.MIXED, after["mixed"])
        add(Word.BEYOND, after["beyond"])
        add(Word.ZERO_SIGN, after["zero_sign"])
        add(Word.WRONG, after["wrong"])
        pairs: tuple[tuple[str, str, int, Any, Callable[..., Any]], ...] = (
            ("distance", "index", Word.DISTANCE, _I64, b.icmp_signed),
            ("fraction", "argument", Word.FRACTION, _F64, b.fcmp_ordered),
        )
        for name, where, k, type_, compare in pairs:
            best, at = b.load(word(k), typ=type_), b.load(word(k + 1), typ=type_)
            for j in range(lanes.width):
                value, place = lane(name, j), lane(where, j)
                if type_ is _I64:
                    value, place = b.sext(value, _I64), b.zext(place, _I64)
                # Of equals the first. The arguments of a piece have one sign, and grow in magnitude with their codes.
                earlier = (place, at) if type_ is _I64 else (magnitude(place), magnitude(at))
                better = b.or_(compare(">", value, best), b.and_(compare("==", value, best), compare("<", *earlier)))
                best, at = b.select(better, value, best), b.select(better, place, at)
            b.store(best, word(k))
            b.store(at, word(k + 1))


def _module(degree: int, fused: bool) -> Any:
    """``judge(pieces, offsets, lengths, firsts, runs, kinds, got, rows, reflected, codes, positions, limits, out)``.

    ``pieces``: their number. ``offsets, lengths, firsts, runs``: int64 arrays, one element for each piece. ``limits``:
    the relative limit and its least magnitude as float64. ``out``: rows of results, to be initialised by the caller.
    """
    module = ir.Module(f"halfulp_judge_{degree}")
    functions = {k: _Piece(module, k, degree, fused) for k in (Kind.POLYNOMIAL, Kind.REFLECTION, Kind.VALUE)}
    judge = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64] + [_POINTER] * 12), "judge")
    count, *pointers = judge.args
    offsets, lengths, firsts, runs, kinds, got, rows, reflected, codes, positions, limits, out = pointers
    entry, loop, done = (judge.append_basic_block(name) for name in ("entry", "loop", "done"))
    b = ir.IRBuilder(entry)

    def element(base: Any, at: Any, type_: Any) -> Any:
        return b.load(b.gep(base, [at], source_etype=type_), typ=type_)

    relative, least = (element(limits, ir.Constant(_I64, k), _F64) for k in range(2))
    b.cbranch(b.icmp_signed("<", ir.Constant(_I64, 0), count), loop, done)
    b.position_at_end(loop)
    i = b.phi(_I64)
    i.add_incoming(ir.Constant(_I64, 0), entry)
    offset, length, first, run = (element(base, i, _I64) for base in (offsets, lengths, firsts, runs))
    kind = element(kinds, run, _I8)
    stride = ir.Constant(_I64, LEADING + degree + 1)
    arguments = [
        b.gep(got, [offset], source_etype=_I32), length, b.trunc(first, _I32),
        b.gep(rows, [b.mul(run, stride)], source_etype=_F64), reflected,
        element(codes, run, _I32), element(positions, run, _I32),
        b.icmp_signed("==", kind, ir.Constant(_I8, Kind.EXACT)), relative, least,
        b.gep(out, [b.mul(i, ir.Constant(_I64, RESULT))], source_etype=_I64),
    ]  # fmt: skip
    following_block = judge.append_basic_block("next")
    blocks = {k: judge.append_basic_block(k.name.lower()) for k in functions}
    switch = b.switch(kind, blocks[Kind.VALUE])
    for k, block in blocks.items():
        if k != Kind.VALUE:
            switch.add_case(ir.Constant(_I8, k), block)
        b.position_at_end(block)
        b.call(functions[k].function, arguments)
        b.branch(following_block)
    b.position_at_end(following_block)
    following = b.add(i, ir.Constant(_I64, 1))
    i.add_incoming(following, following_block)
    b.cbranch(b.icmp_signed("<", following, count), loop, done)
    b.position_at_end(done)
    b.ret_void()
    return module


def has_fma() -> bool:
    """Whether this processor has an instruction for ``a*b + c`` with one rounding."""
    if llvm.get_process_triple().startswith(("aarch64", "arm64")):
        return True
    return bool(llvm.get_host_cpu_features().get("fma", False))


class Native:
    """The compiled judge of one degree. The code is freed with the object.

    Args:
        degree: of the polynomials.
        fused: use multiply-adds with one rounding. None: if the processor has them.
    """

    def __init__(self, degree: int, fused: bool | None = None) -> None:
        self._code = Code(str(_module(degree, has_fma() if fused is None else fused)))
        self.ir = self._code.ir
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 12)
        self.judge: Callable[..., None] = prototype(self._code.address("judge"))


@cache
def native(degree: int) -> Native:
    """The judge for a degree, compiled once."""
    return Native(degree)
