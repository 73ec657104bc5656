"""The inputs: enumeration is complete, draws are seeded and sharp, and every clause gets elements with a claim."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from halfulp.oracle import codes
from halfulp.oracle.formats import FLOATS, INTS, Bits, Format, format_of
from halfulp.oracle.ops import operation, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import value_of
from halfulp.properties import draws, inputs
from halfulp.properties.plan import BLOCK, Plan, generator

QUICK = Plan(5, "quick")
SIGNATURES = {signature.id: signature for signature in signatures()}


def rng(name: str) -> np.random.Generator:
    return generator(QUICK, name)


@pytest.mark.parametrize("id_", SIGNATURES)
def test_every_clause_has_claimed_elements(id_: str) -> None:
    signature = SIGNATURES[id_]
    record = operation(signature.op)
    columns = inputs.elements(signature, QUICK)
    claimed = inputs.claimed(signature, columns)
    assert len({len(column) for column in columns}) == 1
    assert [column.dtype for column in columns] == [fmt.storage for fmt in signature.formats]
    assert not any(column.flags.writeable for column in columns)
    cases = record.cases(signature, columns)
    counts = {clause: int((mask & claimed).sum()) for clause, mask in cases.items()}
    assert set(counts) == set(record.clauses(signature))
    assert all(counts.values()), f"vacuous: {counts}"
    for fmt, column in zip(signature.formats, columns, strict=True):
        if fmt.kind == "bool":
            assert (column <= 1).all()


@pytest.mark.parametrize("id_", [id_ for id_ in SIGNATURES if any(t in id_ for t in ("64", "32"))])
def test_most_drawn_elements_have_a_claim(id_: str) -> None:
    signature = SIGNATURES[id_]
    if np.prod([float(fmt.code_count) for fmt in signature.formats]) <= QUICK.enumerate_up_to:
        return  # enumerated: as many are illegal as there are
    drawn = next(inputs.blocks(signature, Plan(6, "quick")))
    assert inputs.claimed(signature, drawn).mean() > 0.85


def test_enumeration_is_complete() -> None:
    standard = Plan(0, "standard")
    (bits,) = inputs.elements(Signature("cast", ("bf16",), "f8e5m2"), standard)
    assert np.array_equal(np.sort(bits), np.arange(1 << 16))
    a, b = inputs.elements(Signature("mul", ("f8e5m2", "f8e5m2"), "f8e5m2"), standard)
    assert len(np.unique(a.astype(np.uint32) << 8 | b)) == 1 << 16
    (bits,) = inputs.elements(Signature("cast", ("i8",), "f64"), QUICK)
    assert np.array_equal(np.sort(bits), np.arange(1 << 8))


def test_equal_plans_give_equal_elements_and_other_seeds_others() -> None:
    signature = Signature("add", ("f32", "f32"), "f32")
    first, again = inputs.elements(signature, Plan(1, "quick")), inputs.elements(signature, Plan(1, "quick"))
    other = inputs.elements(signature, Plan(2, "quick"))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_deep_plans_come_in_different_blocks() -> None:
    blocks = inputs.blocks(Signature("cast", ("f64",), "f32"), Plan(0, "deep"))
    first, second, third = next(blocks), next(blocks), next(blocks)
    assert abs(len(second[0]) - BLOCK) < 100
    assert not np.array_equal(second[0], third[0])
    assert not np.array_equal(first[0][: len(second[0])], second[0])


# Draws.


@pytest.mark.parametrize("name", FLOATS)
def test_floats_reach_every_exponent_and_class(name: str) -> None:
    fmt = format_of(name)
    bits = draws.floats(rng(name), fmt, 60_000)
    fields = (bits.astype(np.uint64) & np.uint64(fmt.magnitude_mask)) >> np.uint64(fmt.fraction_bits)
    assert len(np.unique(fields)) == (fmt.magnitude_mask >> fmt.fraction_bits) + 1
    assert set(draws.special_floats(fmt).tolist()) <= set(bits.tolist())
    assert 0.4 < codes.is_negative(fmt, bits).mean() < 0.6


@pytest.mark.parametrize("name", FLOATS)
def test_bounded_floats_stay_in_their_bounds(name: str) -> None:
    fmt = format_of(name)
    bits = draws.floats(rng(name), fmt, 500, (-2, 1))
    sizes = np.abs(codes.float64_values(fmt, bits))
    assert ((sizes >= 0.25) & (sizes < 4)).all()


@pytest.mark.parametrize("name", INTS)
def test_integers_of_every_length(name: str) -> None:
    fmt = format_of(name)
    values = codes.int_values(fmt, draws.ints(rng(name), fmt, 20_000))
    lengths = {abs(int(value)).bit_length() for value in values}
    most = fmt.width - 1 if fmt.signed else fmt.width
    assert set(range(most + 1)) <= lengths
    assert {fmt.min_int, fmt.max_int, fmt.max_int - 1} <= {int(value) for value in values}


def _exact(fmt: Format, code: int) -> Fraction | None:
    if not fmt.is_float:
        return Fraction(code - fmt.code_count if fmt.signed and code > fmt.max_int else code)
    value = value_of(fmt, code)
    return value if isinstance(value, Fraction) else None


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", [*FLOATS, *INTS])
def test_midpoints_of_the_target_and_their_neighbours(source: str, target: str) -> None:
    """Every cast pair whose source is fine enough meets exact midpoints and both neighbours, at every border."""
    src, dst = format_of(source), format_of(target)
    bits = draws.around_targets(rng(source + target), src, dst, 4000)
    if src.is_float and (src.precision <= dst.precision or src.max_exponent < 2):
        return
    if not src.is_float and src.width - 1 <= dst.precision + 1:
        return
    drawn = {_exact(src, int(code)) for code in bits} - {None}
    ends = (
        [dst.max_finite_bits]
        if not src.is_float
        else [0, dst.min_normal_bits - 1, dst.min_normal_bits, dst.max_finite_bits]
    )
    for code in ends:
        low = value_of(dst, code)
        assert isinstance(low, Fraction)
        middle = low + Fraction(2) ** (max(code >> dst.fraction_bits, 1) - dst.bias - dst.fraction_bits - 1)
        held = src.quantum_exponent <= dst.quantum_exponent - 1 if src.is_float else middle <= src.max_int
        if not held or (src.is_float and middle > (_exact(src, src.max_finite_bits) or 0)):
            continue
        assert middle in drawn
        assert any(value is not None and middle < value < middle * Fraction(65, 64) + 1 for value in drawn)
        assert any(value is not None and middle * Fraction(63, 64) - 1 < value < middle for value in drawn)


@pytest.mark.parametrize("target", INTS)
@pytest.mark.parametrize("source", FLOATS)
def test_integers_and_their_halves(source: str, target: str) -> None:
    src, dst = format_of(source), format_of(target)
    bits = draws.around_targets(rng(source + target), src, dst, 4000)
    values = codes.float64_values(src, bits)
    values = values[np.isfinite(values)]
    assert (np.abs(values) <= 2.0 ** (dst.width + 1)).all()
    assert (values % 1 == 0.5).any()
    assert (values == 1).any()
    if src.max_exponent > dst.width:
        assert (values >= dst.max_int).any()


def test_pairs_cancel_tie_and_reach_midpoints() -> None:
    fmt = format_of("f32")
    left, right = draws.pairs(rng("pairs"), fmt, 6000)
    with np.errstate(all="ignore"):
        a, b = left.view(np.float32).astype(np.float64), right.view(np.float32).astype(np.float64)
        assert (np.abs(a + b) < np.abs(a) * 2.0**-20).mean() > 0.02, "cancellation"
        product = a * b  # exact in f64 where it does not underflow
        assert (_bits_below(product, 24) == 1).mean() > 0.02, "products of 25 bits: ties"
        quotient = a / b
        near = np.isfinite(quotient) & (np.abs(quotient) > 2.0**-120) & (np.abs(quotient) < 2.0**120)
        _, exponent = np.frexp(quotient[near])
        part = np.abs(quotient[near]) * 2.0 ** (24.0 - exponent) % 1
        assert (np.abs(part - 0.5) < 2.0**-20).mean() > 0.02, "quotients next to a midpoint"


def _bits_below(values: Bits, precision: int) -> Bits:
    """1 where a finite non-zero number has exactly one more significant bit than ``precision``."""
    mantissa, _ = np.frexp(np.where(np.isfinite(values), values, 0))
    scaled = np.abs(mantissa) * 2.0 ** (precision + 1)
    one_more: Bits = ((scaled % 2 == 1) & (scaled > 0)).astype(int)
    return one_more


def test_triples_cancel_the_product() -> None:
    fmt = format_of("f32")
    with np.errstate(all="ignore"):
        a, b, c = (bits.view(np.float32).astype(np.float64) for bits in draws.triples(rng("triples"), fmt, 4000))
        rest = a * b + c
        assert ((rest != 0) & (np.abs(rest) < np.abs(a * b) * 2.0**-20)).mean() > 0.05


@pytest.mark.parametrize("name", ["i32", "u64"])
def test_integer_pairs_shift_and_divide(name: str) -> None:
    fmt = format_of(name)
    left, right = draws.pairs(rng(name), fmt, 4000)
    assert (right < fmt.width).mean() > 0.2
    assert {0, 1, fmt.width - 1} <= set(right[right < fmt.width].tolist())
    a, b = (codes.int_values(fmt, bits).tolist() for bits in (left, right))
    remainders = [x % y for x, y in zip(a, b, strict=True) if abs(y) > 2]
    assert remainders.count(0) > 50


def test_steps_keep_sign_and_class() -> None:
    fmt = format_of("f16")
    bits = np.arange(1 << 16, dtype=np.uint16)
    moved = draws.step(rng("step"), fmt, bits)
    assert np.array_equal(codes.is_nan(fmt, bits), codes.is_nan(fmt, moved))
    assert np.array_equal(bits >> 15, moved >> 15)


@pytest.mark.parametrize("name", FLOATS)
def test_truncation_agrees_with_exact_values(name: str) -> None:
    fmt = format_of(name)
    generator_ = rng("cut" + name)
    significand = generator_.integers(0, 2**63, 300, dtype=np.uint64) >> generator_.integers(0, 63, 300).astype(
        np.uint64
    )
    exponent = generator_.integers(fmt.quantum_exponent - 40, fmt.max_exponent, 300)
    cut = draws.truncated(fmt, np.zeros(300, bool), significand, exponent)
    for code, digits, power in zip(cut.tolist(), significand.tolist(), exponent.tolist(), strict=True):
        exact = digits * Fraction(2) ** power
        below = value_of(fmt, code)
        assert isinstance(below, Fraction)
        assert below <= exact
        if code < fmt.max_finite_bits:
            above = value_of(fmt, code + 1)
            assert isinstance(above, Fraction)
            assert exact < above


def test_sharp_values_are_legal_somewhere() -> None:
    signature = Signature("shl", ("i32", "i32"), "i32")
    columns = inputs.elements(signature, QUICK)
    amounts = inputs.sharp_values(signature, 1, columns, 16)
    assert len(amounts) >= 8
    assert (amounts < 32).all()
    divisors = inputs.sharp_values(Signature("floordiv", ("i8", "i8"), "i8"), 1, columns=_all_pairs(), count=16)
    assert len(divisors) == 16
    assert 0 not in divisors


def _all_pairs() -> list[Bits]:
    return inputs.every_tuple([format_of("i8"), format_of("i8")])
