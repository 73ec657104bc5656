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

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from halfulp.oracle.formats import Bits, Format
from halfulp.oracle.ops.record import Signature

Digest = tuple[int, int]

NONE: Digest = (0, 0)


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
    folded = max(_size(signature.formats), _size(result)) > 4
    sums: list[Digest] = []
    for _, _, multiplier in CONSTANTS if folded else CONSTANTS[:1]:
        x = word_of(signature.formats, columns, multiplier)
        sums.append(_sums(x, word_of(result, [got], multiplier)))
    return sums[0][0], sums[-1][1]


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
    """``call(n, x, y, out)``: adds the mixes of n words to two sums. A plain loop, left to LLVM to make vectors of."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(str(_module()), llvm.create_context())
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=3,
            codemodel="jitdefault",
            jit=True,
        )
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 3)
        self.call: Callable[..., None] = prototype(self._engine.get_function_address("sums"))


@cache
def _native() -> _Native:
    return _Native()


def _module() -> Any:
    i32, i64, pointer = ir.IntType(32), ir.IntType(64), ir.PointerType()
    module = ir.Module("halfulp_digest")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [i64, pointer, pointer, pointer]), "sums")
    n, xs, ys, out = function.args
    entry, loop, done = (function.append_basic_block(name) for name in ("entry", "loop", "done"))
    b = ir.IRBuilder(entry)
    b.cbranch(b.icmp_signed("<", ir.Constant(i64, 0), n), loop, done)
    b.position_at_end(loop)
    i = b.phi(i64)
    i.add_incoming(ir.Constant(i64, 0), entry)
    totals = [b.phi(i64) for _ in CONSTANTS]
    x, y = (b.load(b.gep(base, [i], source_etype=i32), typ=i32, align=4) for base in (xs, ys))
    results = []
    for total, (first, second, _) in zip(totals, CONSTANTS, strict=True):
        total.add_incoming(ir.Constant(i64, 0), entry)
        p = b.add(b.mul(x, ir.Constant(i32, first)), y)
        q = b.add(b.mul(y, ir.Constant(i32, second)), x)
        p = b.xor(p, b.lshr(p, ir.Constant(i32, 16)))
        q = b.xor(q, b.lshr(q, ir.Constant(i32, 15)))
        added = b.add(total, b.mul(b.zext(p, i64), b.zext(q, i64)))
        total.add_incoming(added, loop)
        results.append(added)
    following = b.add(i, ir.Constant(i64, 1))
    i.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, n), loop, done)
    b.position_at_end(done)
    finals = [b.phi(i64) for _ in results]
    for k, (final, added) in enumerate(zip(finals, results, strict=True)):
        final.add_incoming(ir.Constant(i64, 0), entry)
        final.add_incoming(added, loop)
        b.store(final, b.gep(out, [ir.Constant(i64, k)], source_etype=i64))
    b.ret_void()
    return module
