"""A digest of a complete output that does not depend on the order in which it was computed.

Each input and its result are mixed to 64 bits, and the sums over all inputs modulo 2**64 are the digest; twice, with
different constants. Outputs of two targets, or of the same one in other chunks, are the same, as far as 128 bits can
tell, if their digests are. It protects against accidents, not against somebody who wants two outputs to collide.

With x the input and y the result in words of 32 bits, A odd, B even and everything modulo 2**32::

    a = A*x + y         a ^= a >> 16
    b = B*y + x         b ^= b >> 15

and the mix is the product ``a * b`` in 64 bits. (x, y) -> (a, b) is one to one. Codes that do not fit a word are
folded, see `word_of`. ``docs/reference/sweep-record.md`` has the definition for others.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from halfulp.oracle.bulk.kernel import LANES, Lanes
from halfulp.oracle.bulk.machine_code import Code
from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.ops.record import Signature

Digest = tuple[int, int]

NONE: Digest = (0, 0)

BLOCK = 1 << 14
"""Elements that are folded at once, so that they stay in a cache."""


def _constants() -> tuple[tuple[int, int, int], ...]:
    """A, B and the multiplier of folding, for both sums: words of the SHA-256 of a name, so that nobody chose them."""
    words = np.frombuffer(hashlib.sha256(b"halfulp output digest").digest(), "<u4").tolist()
    return tuple((words[k] | 1, words[k + 1] & ~1, words[k + 2] | 1) for k in (0, 3))


CONSTANTS = _constants()

CUDA = "static __device__ __forceinline__ void add_up(u64 *sums, u32 input, u32 output) {\n" + "".join(
    f"    {{ u32 a = {a:#x}u * input + output, b = {b:#x}u * output + input;\n"
    f"      a ^= a >> 16; b ^= b >> 15; sums[{k}] += (u64)a * b; }}\n"
    for k, (a, b, _) in enumerate(CONSTANTS)
) + "}\n"  # fmt: skip
"""The sums for the judge of a device (`oracle.bulk.cuda_source.judge_source`)."""


def add(one: Digest, other: Digest) -> Digest:
    """The digest of two disjoint sets of inputs."""
    return tuple((a + b) % 2**64 for a, b in zip(one, other, strict=True))  # type: ignore[return-value]


def text(digest: Digest) -> list[str]:
    return [f"{part:#018x}" for part in digest]


def digest_of(signature: Signature, columns: Sequence[Bits], got: Bits) -> Digest:
    """The digest of some inputs and their results.

    Args:
        columns: operands, shape (n,) each.
        got: (n,) results, in the storage dtype of their format.
    """
    result = [signature.result_format]
    if max(_size(signature.formats), _size(result)) <= 4:
        return _sums(word_of(signature.formats, columns, 0), word_of(result, [got], 0))
    total = NONE
    for start in range(0, len(got), BLOCK):
        rows = slice(start, start + BLOCK)
        block = [column[rows] for column in columns]
        first, second = (
            _sums(word_of(signature.formats, block, multiplier), word_of(result, [got[rows]], multiplier))
            for _, _, multiplier in CONSTANTS
        )
        total = add(total, (first[0], second[1]))
    return total


def _size(formats: Sequence[Format]) -> int:
    """Bytes that the codes of an element take."""
    return sum(fmt.storage.itemsize for fmt in formats)


def word_of(formats: Sequence[Format], columns: Sequence[Bits], multiplier: int) -> Bits:
    """Codes as one word of 32 bits: as they are where all fit, the first lowest; else folded.

    Folding takes the words w of the codes, each code's lowest first, from the first on: ``z = w``, and for each further
    one ``z = (z ^ z >> 15) * multiplier + w``, modulo 2**32.
    """
    sizes = [fmt.storage.itemsize for fmt in formats]
    if _size(formats) <= 4:
        word = columns[0].astype(np.uint32, copy=False)
        shift = 8 * sizes[0]
        for column, size in zip(columns[1:], sizes[1:], strict=True):
            word = word | column.astype(np.uint32) << np.uint32(shift)
            shift += 8 * size
        return np.ascontiguousarray(word)
    words: list[Bits] = []
    for column, size in zip(columns, sizes, strict=True):
        words.append(column.astype(np.uint32))
        if size > 4:
            words.append((column >> np.uint64(32)).astype(np.uint32))
    folded = words[0]
    for word in words[1:]:
        folded = (folded ^ folded >> np.uint32(15)) * np.uint32(multiplier) + word
    return np.ascontiguousarray(folded)


def _sums(x: Bits, y: Bits) -> Digest:
    out = np.zeros(2, np.uint64)
    _native().call(len(x), x.ctypes.data, y.ctypes.data, out.ctypes.data)
    return int(out[0]), int(out[1])


class _Native:
    """``call(n, x, y, out)``: adds the mixes of n words to two sums. The code is freed with the object."""

    def __init__(self) -> None:
        self._code = Code(str(_module()))
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 3)
        self.call: Callable[..., None] = prototype(self._code.address("sums"))


@cache
def _native() -> _Native:
    return _Native()


_I32, _I64, _POINTER = ir.IntType(32), ir.IntType(64), ir.PointerType()


def _module() -> Any:
    module = ir.Module("halfulp_digest")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64, _POINTER, _POINTER, _POINTER]), "sums")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    whole = b.and_(function.args[0], ir.Constant(_I64, -LANES))
    _loop(b, function, LANES, ir.Constant(_I64, 0), whole)
    _loop(b, function, 1, whole, function.args[0])
    b.ret_void()
    return module


def _loop(b: Any, function: Any, width: int, start: Any, end: Any) -> None:
    """Add the mixes of the words from ``start`` to ``end``, ``width`` at once."""
    _, xs, ys, out = function.args
    lanes, wide = Lanes(b, width), Lanes(b, max(1, width // 2))
    before = b.block
    loop, done = (function.append_basic_block(f"{name}{width}") for name in ("loop", "done"))
    b.cbranch(b.icmp_signed("<", start, end), loop, done)
    b.position_at_end(loop)
    i = b.phi(_I64)
    i.add_incoming(start, before)
    totals = [b.phi(wide.type(_I64)) for _ in CONSTANTS]
    x, y = (b.load(b.gep(base, [i], source_etype=_I32), typ=lanes.type(_I32), align=4) for base in (xs, ys))
    results = []
    for total, (first, second, _) in zip(totals, CONSTANTS, strict=True):
        total.add_incoming(wide.const(_I64, 0), before)
        p = b.add(b.mul(x, lanes.i32(first)), y)
        q = b.add(b.mul(y, lanes.i32(second)), x)
        p = b.xor(p, b.lshr(p, lanes.i32(16)))
        q = b.xor(q, b.lshr(q, lanes.i32(15)))
        added = total
        for one, other in _as_words(b, wide, p, q):
            added = b.add(added, b.mul(one, other))
        total.add_incoming(added, loop)
        results.append(added)
    following = b.add(i, ir.Constant(_I64, width))
    i.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, end), loop, done)
    b.position_at_end(done)
    finals = [b.phi(wide.type(_I64)) for _ in CONSTANTS]
    for final, added in zip(finals, results, strict=True):
        final.add_incoming(wide.const(_I64, 0), before)
        final.add_incoming(added, loop)
    for k, final in enumerate(finals):
        place = b.gep(out, [ir.Constant(_I64, k)], source_etype=_I64)
        b.store(b.add(b.load(place, typ=_I64), wide.sum(final)), place)


def _as_words(b: Any, wide: Lanes, p: Any, q: Any) -> list[tuple[Any, Any]]:
    """Factors of 32 bits in lanes of 64: the even lanes of p and q, then the odd ones."""
    if wide.width == 1:
        return [(b.zext(p, wide.type(_I64)), b.zext(q, wide.type(_I64)))]
    p, q = wide.bits(p, _I64), wide.bits(q, _I64)
    low, half = wide.const(_I64, 0xFFFF_FFFF), wide.const(_I64, 32)
    return [(b.and_(p, low), b.and_(q, low)), (b.lshr(p, half), b.lshr(q, half))]
