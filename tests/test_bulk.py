"""The bulk path under attack: enclosures against Arb, tables against their verifier, the native judge against numpy.

Default: 10**4 arguments a function; with ``HALFULP_DEEP`` set, 10**6.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from bulk_attack import HARD, INF, NAN, SIGN, STARTS, attack, breaches, codes_of, judge, spoiled, table

from halfulp.certify import tables
from halfulp.oracle import functions
from halfulp.oracle.bulk import TARGETS, BulkJudge, Kind, Limits, Summary, Table, UnprovenError, build, evaluate, verify
from halfulp.oracle.bulk.bounds import LARGEST_WIDTH
from halfulp.oracle.bulk.kernel import FAR, Native
from halfulp.oracle.bulk.table import HIGH, LEADING, LOW, SCALE, SHIFT
from halfulp.oracle.formats import FORMATS

F32 = FORMATS["f32"]
NAMES = tuple(TARGETS)
DEEP = bool(os.environ.get("HALFULP_DEEP"))
COUNT = int(os.environ.get("HALFULP_BULK_COUNT", 10**6 if DEEP else 10**4))


@pytest.mark.parametrize("name", NAMES)
def test_table_covers_and_is_proven(name: str) -> None:
    t = table(name)
    verify(t)
    polynomial = t.rows[t.kinds < Kind.VALUE]
    assert (polynomial[:, HIGH] - polynomial[:, LOW]).max() < LARGEST_WIDTH
    assert len(t.starts) < 10_000
    assert t.nbytes < 1 << 20


def test_building_is_deterministic() -> None:
    assert build("asin").digest == build("asin").digest == table("asin").digest


@pytest.mark.parametrize("name", NAMES)
def test_exact_values_lie_within_the_enclosures(name: str) -> None:
    codes = attack(name, COUNT, 1)
    wrong, compared, undecided = breaches(name, codes)
    assert not wrong
    assert compared > len(codes) // 4
    assert undecided < 10 + len(codes) // 10_000


@pytest.mark.parametrize("name", HARD)
def test_hard_to_round_points_are_undecided_or_right(name: str) -> None:
    codes = codes_of(HARD[name])
    found = evaluate(table(name), codes)
    assert found.undecided[0]
    assert judge(name).nearest(codes)[0] == functions.nearest_by_mpmath(name, F32, HARD[name])


def test_known_results() -> None:
    i0 = judge("i0").nearest(codes_of(0x39FFFFFF, 0x3A000001, 0x42B7CD31, 0x42B7CD32, 0xC2B7CD31, 0xFF800000))
    assert i0[0] == 0x3F800000
    assert i0[2] == i0[4] < INF
    assert i0[3] == i0[5] == INF
    lgamma = judge("lgamma").nearest(codes_of(0x3F800000, 0x40000000, 0x80000000, 0xC0000000, 0x7C44AF8D, 0x7C44AF8E))
    assert lgamma.tolist() == [0, 0, INF, INF, functions.nearest("lgamma", F32, 0x7C44AF8D), INF]
    zeros = codes_of(0, SIGN)
    for name in ("asin", "log1p", "tanh"):
        assert judge(name).nearest(zeros).tolist() == [0, SIGN]


def test_truncated_series_are_refused() -> None:
    """Arb's series have ten terms unless asked for more; taking what is missing for zero would prove anything."""
    before = flint.ctx.cap
    try:
        flint.ctx.cap = 10
        with pytest.raises(ArithmeticError, match="10 of 13"):
            TARGETS["asin"].taylor(flint.arb(0.25), flint.arb(1), 13)
    finally:
        flint.ctx.cap = before


# The verifier.


def polynomial_run(t: Table, kind: Kind = Kind.POLYNOMIAL) -> int:
    """The index of the widest of the runs with many codes."""
    many = (t.last_codes() - t.starts > 1000) & (t.kinds == kind)
    return int(np.argmax(np.where(many, t.rows[:, HIGH] - t.rows[:, LOW], 0)))


def changed(t: Table, run: int, column: int, value: float) -> Table:
    rows = t.rows.copy()
    rows[run, column] = value
    return replace(t, rows=rows)


def refused(t: Table, run: Any) -> None:
    with pytest.raises(UnprovenError, match=f"run {run}"):
        verify(t, np.array([run]))


CASES = [(name, Kind.POLYNOMIAL) for name in NAMES] + [("lgamma", Kind.REFLECTION)]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_shrunk_widths_are_caught(name: str, kind: Kind) -> None:
    t = table(name)
    run = polynomial_run(t, kind)
    verify(t, np.array([run]))
    for column in (LOW, HIGH):
        refused(changed(t, run, column, 1 + (t.rows[run, column] - 1) * 2 / 3), run)
        refused(changed(t, run, column, 1.0), run)
    refused(changed(t, run, HIGH, 1 + LARGEST_WIDTH * 1.01), run)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_perturbed_coefficients_are_caught(name: str, kind: Kind) -> None:
    """Every coefficient, by a relative change that moves the value by more than the width somewhere on the run."""
    t = table(name)
    run = polynomial_run(t, kind)
    width = t.rows[run, HIGH] - t.rows[run, LOW]
    size = abs(evaluate(t, t.starts[run : run + 1]).y[0])
    for column in range(LEADING, t.rows.shape[1]):
        step = 1.01 * width * size
        refused(changed(t, run, column, t.rows[run, column] + step), run)
        refused(changed(t, run, column, t.rows[run, column] - step), run)
    for column in (SCALE, SHIFT):
        refused(changed(t, run, column, t.rows[run, column] * (1 + 2.0**-20)), run)
        refused(changed(t, run, column, t.rows[run, column] * 2 + 2.0**-30), run)


def test_shifted_runs_are_caught() -> None:
    """A run that reaches two codes into its neighbour has |t| > 1, where its bound says nothing (one: t = 1)."""
    t = table("log1p")
    run = polynomial_run(t)
    starts = t.starts.copy()
    starts[run + 1] += 2
    refused(replace(t, starts=starts), run)
    starts = t.starts.copy()
    starts[run + 1] = starts[run]
    with pytest.raises(UnprovenError, match="order"):
        verify(replace(t, starts=starts))


def test_wrong_constants_are_caught() -> None:
    t = table("tanh")
    for run in np.flatnonzero(t.kinds >= Kind.VALUE):
        codes, positions = t.codes.copy(), t.positions.copy()
        codes[run] ^= 1
        positions[run] += 1
        refused(replace(t, codes=codes), run)
        refused(replace(t, positions=positions), run)
    overflow = table("exp2")
    first = int(np.flatnonzero(overflow.positions > INF)[0])
    positions = overflow.positions.copy()
    positions[first] -= 1
    refused(replace(overflow, positions=positions), first)


def test_wrong_reflection_rows_are_caught() -> None:
    t = table("lgamma")
    run = polynomial_run(t, Kind.REFLECTION)
    reflected = t.reflected.copy()
    reflected[100, -1] += 2.0**-40
    refused(replace(t, reflected=reflected), run)
    reflected = t.reflected.copy()
    reflected[100, 0] *= 2
    with pytest.raises(UnprovenError, match="W: row 100"):
        verify(replace(t, reflected=reflected), np.array([run]))


# The native judge.


def by_elements(name: str, codes: Any, got: Any, limits: Limits) -> Summary:
    """The summary from single elements, counted plainly."""
    found = judge(name).elements(codes, got)
    distance = found.distance
    wrong = found.wrong
    assert limits.steps is not None
    steps, ulps = distance > limits.steps, found.ulps > limits.steps
    bins = np.bincount(np.minimum(distance[~wrong], 8), minlength=9)
    errors = np.where(np.isnan(found.error), -1, found.error)
    return Summary(
        len(codes),
        tuple(bins.tolist()),
        int(wrong.sum()),
        int((wrong | (steps & ulps)).sum()),
        int(((steps != ulps) & ~wrong).sum()),
        0,
        int(((found.nearest & 0x7FFF_FFFF == 0) & (found.nearest ^ got == SIGN) & (distance == 0)).sum()),
        int(found.undecided.sum()),
        int(distance.max()),
        int(codes[np.argmax(distance)]) if distance.max() >= 0 else None,
        float(errors.max()),
        int(codes[np.argmax(errors)]) if errors.max() >= 0 else None,
    )


@pytest.mark.parametrize("name", NAMES)
def test_native_judge_agrees_with_single_elements(name: str) -> None:
    rng = np.random.default_rng(3)
    for start in STARTS:
        first = start + int(rng.integers(0, 9))
        n = int(rng.integers(3000, 6000))
        codes = (first + np.arange(n)).astype(np.uint32)
        got = spoiled(name, codes, rng)
        for limits in (Limits(1), Limits(4)):
            native, plain = judge(name).sweep(first, got, limits), by_elements(name, codes, got, limits)
            for field in ("inputs", "histogram", "wrong", "forbidden", "unspecified", "zero_sign", "max_distance"):
                assert getattr(native, field) == getattr(plain, field), f"{name} from {first:#x}: {field}"
            assert native.max_distance_at == plain.max_distance_at or plain.max_distance == FAR
            assert native.max_error == pytest.approx(plain.max_error, abs=2.0**-16, rel=2.0**-30)


@pytest.mark.parametrize("name", NAMES)
def test_sweep_counts_what_the_slow_path_says(name: str) -> None:
    """Independent of the code above: distances from exact results of the slow path."""
    rng = np.random.default_rng(4)
    for start in STARTS:
        codes = (start + np.arange(200)).astype(np.uint32)
        got = functions.nearest_many(name, F32, codes)
        nan = (got & 0x7FFF_FFFF) > INF
        exact = table(name).kinds[table(name).run_of(codes)] == Kind.EXACT
        exact |= got == INF
        free = ~nan & ~exact & ((got & 0x7FFF_FFFF) > 16) & ((got & 0x7FFF_FFFF) < 0x7F7FFF00)
        moved = np.where(free, rng.integers(0, 9, 200), 0)
        got = got + moved.astype(np.uint32)
        summary = judge(name).sweep(start, got, Limits(2))
        assert summary.histogram == tuple(np.bincount(moved, minlength=9).tolist())
        assert summary.wrong == 0


def test_power_of_two_steps_and_ulps_differ() -> None:
    """exp2 just below 0: the nearest result of 1 - 2**-25... is 1; two steps below are one ulp of 1 (``reading:1``)."""
    code = 0xB2000000
    assert functions.nearest("exp2", F32, code) == 0x3F800000
    below = judge("exp2").sweep(code, codes_of(0x3F800000 - 2), Limits(1))
    assert (below.forbidden, below.unspecified, below.max_distance) == (0, 1, 2)
    above = judge("exp2").sweep(code, codes_of(0x3F800000 + 2), Limits(1))
    assert (above.forbidden, above.unspecified, above.max_distance) == (1, 0, 2)


def test_infinity_stands_for_everything_beyond() -> None:
    first = 0x7C44AF8E
    summary = judge("lgamma").sweep(first, codes_of(*[INF] * 8), Limits(0))
    assert summary.histogram[0] == 8
    largest = judge("lgamma").sweep(first, codes_of(*[0x7F7FFFFF] * 8), Limits(6))
    exact = [functions.unbounded_magnitude("lgamma", F32, first + i) - 0x7F7FFFFF for i in range(8)]
    assert largest.max_distance == max(exact)
    assert largest.histogram[1] == exact.count(1)
    early = judge("lgamma").sweep(first - 3, codes_of(INF, INF, INF), Limits(6))
    assert early.max_distance == INF - functions.nearest("lgamma", F32, first - 3)


def test_exact_results_have_no_tolerance() -> None:
    assert judge("lgamma").sweep(0x3F800000, codes_of(1), Limits(6)).wrong == 1
    assert judge("lgamma").sweep(0xC0000000, codes_of(0x7F7FFFFF), Limits(6)).wrong == 1
    assert judge("lgamma").sweep(0xC0000000, codes_of(NAN), Limits(6)).forbidden == 1
    assert judge("asin").sweep(0x80000000, codes_of(0), Limits(6)).forbidden == 1
    assert judge("log1p").sweep(0xBF800000, codes_of(INF), Limits(6)).forbidden == 1
    nan = judge("tanh").sweep(NAN, codes_of(NAN | SIGN, NAN | SIGN | 5), Limits(0))
    assert (nan.forbidden, nan.zero_sign, nan.histogram[0]) == (0, 0, 2)
    assert judge("erfc").sweep(0x41300000, codes_of(SIGN), Limits(4)).zero_sign == 1


def test_relative_limit() -> None:
    """``reading:12``: 2**-11 relative; a value just inside is not counted, one just outside is."""
    first = 0x3F000000
    codes = (first + np.arange(4000)).astype(np.uint32)
    exact = judge("tanh").array(codes).y
    for factor, expected in ((1 + 2.0**-11 - 2.0**-20, 0), (1 + 2.0**-11 + 2.0**-20, 4000)):
        got = (exact * factor).astype(np.float32).view(np.uint32)
        assert judge("tanh").sweep(first, got, Limits(None, 2.0**-11)).beyond == expected


@pytest.mark.parametrize("name", ["log1p", "lgamma"])
def test_without_fused_multiply_add(name: str) -> None:
    """The bounds hold for two roundings a step too, and both codes give the same decisions."""
    plain = BulkJudge(table(name), code=Native(table(name).degree, fused=False))
    assert "llvm.fma" not in Native(table(name).degree, fused=False).ir
    rng = np.random.default_rng(5)
    for start in STARTS:
        codes = (start + np.arange(4096)).astype(np.uint32)
        got = spoiled(name, codes, rng)
        a, b = plain.sweep(start, got, Limits(2)), judge(name).sweep(start, got, Limits(2))
        assert a.histogram == b.histogram
        assert a.forbidden == b.forbidden


def test_summaries_add_up() -> None:
    first, n = 0x3EFF0000, 100_003
    codes = (first + np.arange(n)).astype(np.uint32)
    got = spoiled("erfc", codes, np.random.default_rng(6))
    whole = judge("erfc").sweep(first, got, Limits(4))
    cut = 12_345
    parts = judge("erfc").sweep(first + cut, got[cut:], Limits(4)) + judge("erfc").sweep(first, got[:cut], Limits(4))
    assert parts == whole


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="uint32"):
        judge("tanh").sweep(0, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="codes from"):
        judge("tanh").sweep(0xFFFFFFFF, np.zeros(2, np.uint32))
    with pytest.raises(ValueError, match="8 steps"):
        Limits(8)


# The cache.


def test_cache_keeps_and_heals(tmp_path: Path) -> None:
    built = tables.table("asin", tmp_path)
    (path,) = tmp_path.iterdir()
    assert tables.read("asin", path).digest == built.digest  # type: ignore[union-attr]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert tables.read("asin", path) is None
    assert tables.table("asin", tmp_path).digest == built.digest
    assert tables.read("asin", path) is not None
    path.write_bytes(b"")
    assert tables.read("asin", path) is None
    assert tables.read("tanh", path) is None


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.warns(RuntimeWarning, match="not kept"):
        assert tables.table("asin", blocked).name == "asin"
