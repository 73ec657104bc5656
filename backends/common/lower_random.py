"""Philox4x32-10 (``intent:12``): random bits as a pure function of a seed and a counter."""

from __future__ import annotations

from halfulp.backends.common.code import Code, Reg

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
OPERATIONS = frozenset({"random_bits", "random_uniform"})


def lower(code: Code, op: str, seed: Reg, counter: Reg) -> Reg:
    """One of `OPERATIONS`, of two ``i64``: a code of 32 bits."""
    return (bits if op == "random_bits" else uniform)(code, seed, counter)


def bits(code: Code, seed: Reg, counter: Reg) -> Reg:
    """Word ``counter % 4`` of block ``counter // 4``, as ``i32``. Every seed and counter has one.

    The words of a block are kept in 64-bit registers, as numbers below 2**32: products need no widening.
    """
    low = (1 << 32) - 1
    block = code.lshr(counter, 2)
    c0, c1 = code.and_(block, low), code.lshr(block, 32)
    zero = code.constant("i64", 0)
    c2, c3 = zero, zero
    k0, k1 = code.and_(seed, low), code.lshr(seed, 32)
    for step in range(ROUNDS):
        if step:
            k0, k1 = (code.and_(code.add(key, weyl), low) for key, weyl in zip((k0, k1), WEYL, strict=True))
        first = code.mul(c0, MULTIPLIERS[0])
        second = code.mul(c2, MULTIPLIERS[1])
        c0 = code.xor(code.xor(code.lshr(second, 32), c1), k0)
        c2 = code.xor(code.xor(code.lshr(first, 32), c3), k1)
        c1, c3 = code.and_(second, low), code.and_(first, low)
    odd = code.icmp("ne", code.and_(counter, 1), 0)
    upper = code.icmp("ne", code.and_(counter, 2), 0)
    word = code.select(upper, code.select(odd, c3, c2), code.select(odd, c1, c0))
    return code.convert("trunc", word, "i32")


def uniform(code: Code, seed: Reg, counter: Reg) -> Reg:
    """The upper 24 bits as a fraction: an f32 code from 0 to 1 - 2**-24 (``intent:12-e``). Nothing is rounded."""
    upper = code.lshr(bits(code, seed, counter), 8)
    # Signed: the number is below 2**24, and there is an instruction for it on every machine.
    number = code.convert("sitofp", upper, "float")
    scaled = code.float_op("fmul", number, code.real("float", 2.0**-24))
    return code.convert("bitcast", scaled, "i32")
