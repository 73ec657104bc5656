"""The judge for a device is the native judge, bit for bit: its text, compiled for the host, and the sweep around it.

The text is CUDA C++ that a compiler for the host takes too, where a loop stands for the lanes of a warp; what is not
covered so is the exchange between lanes, and that the device's arithmetic is IEEE 754's, which is tested on the device
before every use. NVRTC compiles the text here, and its PTX is looked at.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bulk_attack import STARTS, judge, spoiled

from halfulp.adapters.discovery import load
from halfulp.adapters.protocol import Options
from halfulp.backends.cuda import driver, nvrtc
from halfulp.certify import cli
from halfulp.certify.sweep import device_judge, filtering, job, on_device
from halfulp.certify.sweep.device_judge import UnfitDeviceError, check_results
from halfulp.certify.sweep.domain import Sample
from halfulp.oracle import rounding_array
from halfulp.oracle.bulk import TARGETS, Limits, digest, ranking
from halfulp.oracle.bulk.cuda_source import COLUMNS, STRICT, judge_source, prelude
from halfulp.oracle.bulk.kernel import RESULT, Word
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.functions import enclosure, nearest_many
from halfulp.oracle.ops import Signature, operation

COMPILER = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to build the judge's text with")


def built(text: str, folder: Path) -> Any:
    """The function ``judge`` of the text for the host. Nothing is contracted beside the calls of fma."""
    source, library = folder / "judge.cpp", folder / "judge.so"
    source.write_text(text, encoding="utf-8")
    assert COMPILER is not None
    options = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
    native = ["-march=native"] if Path("/proc/cpuinfo").exists() else []
    subprocess.run([COMPILER, *options, *native, "-o", str(library), str(source)], check=True)
    function = ctypes.CDLL(str(library)).judge
    pointer = ctypes.c_void_p
    function.argtypes = [
        *(ctypes.c_uint64, pointer, pointer, pointer, ctypes.c_uint32),
        *([pointer] * 6),
        *(ctypes.c_double, ctypes.c_double, pointer),
    ]
    function.restype = None
    return function


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return built(judge_source(7, digest.CUDA, host=True), tmp_path_factory.mktemp("judge"))


def rows_of(function: Any, name: str, first: int, got: Any, limits: Limits, strict: bool = False) -> Any:
    """All words of all rows, by a compiled text."""
    bulk, table = judge(name), judge(name).table
    pieces = bulk.pieces(first, len(got))
    offsets, lengths, runs = (
        np.ascontiguousarray(c.astype(np.uint32)) for c in (pieces.offsets, pieces.lengths, pieces.runs)
    )
    if strict:
        runs |= np.uint32(STRICT)
    rows, reflected = np.ascontiguousarray(table.rows), np.ascontiguousarray(table.reflected)
    out = np.full((len(runs), COLUMNS), -7, np.int64)
    addresses = [a.ctypes.data for a in (table.kinds, got, rows, reflected, table.codes, table.positions)]
    where = [a.ctypes.data for a in (offsets, lengths, runs)]
    function(len(runs), *where, first, *addresses, limits.largest, limits.least, out.ctypes.data)
    return out


@needs_compiler
@pytest.mark.parametrize("name", TARGETS)
def test_rows_are_those_of_the_native_judge(name: str, host: Any) -> None:
    rng = np.random.default_rng(17)
    for start in STARTS:
        n = int(rng.integers(2000, 5000))
        codes = (start + np.arange(n)).astype(np.uint32)
        got = spoiled(name, codes, rng)
        for limits in (Limits(1), Limits(relative=2.0**-11)):
            expected = judge(name).rows(judge(name).pieces(start, n), got, limits)
            found = rows_of(host, name, start, got, limits)
            assert np.array_equal(found[:, :RESULT], expected), f"{name} from {start:#x}"
            strict = rows_of(host, name, start, got, limits, strict=True)
            plain = judge(name).rows(judge(name).pieces(start, n), got, Limits())
            assert np.array_equal(strict[:, :RESULT], plain), f"{name} from {start:#x}"
            signature = Signature(name, ("f32",), "f32")
            sums = found[:, RESULT:].view(np.uint64).sum(axis=0)
            assert tuple(sums.tolist()) == digest.digest_of(signature, [codes], got)


SABOTAGE = {
    "not fused": ("using std::fma;", "#define fma(a, b, c) ((a) * (b) + (c))"),
    "one bound": ("other = bits_of(narrow(y * high))", "other = bits_of(narrow(y * low))"),
    "the last of equals": ("distance > seen.distance) {", "distance >= seen.distance) {"),
    "ulp of the binade above": ("(1023 - 126) << 20", "(1023 - 125) << 20"),
    "signs of zero": ("position == 0 && same", "position == 1 && same"),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("what", SABOTAGE)
def test_a_judge_that_differs_is_found_out(what: str, tmp_path: Path) -> None:
    before, after = SABOTAGE[what]
    text = judge_source(7, digest.CUDA, host=True)
    assert before in text
    wrong = built(text.replace(before, after), tmp_path)
    rng = np.random.default_rng(17)
    different = 0
    busy = rng.integers(0x3E000000, 0x42000000, 40).tolist()
    for name in ("erfc", "tanh", "exp2"):
        for start in (*STARTS, *busy):
            codes = (start + np.arange(4000)).astype(np.uint32)
            got = spoiled(name, codes, rng)
            expected = judge(name).rows(judge(name).pieces(start, 4000), got, Limits(1))
            different += int((rows_of(wrong, name, start, got, Limits(1))[:, :RESULT] != expected).any(axis=1).sum())
    assert different


# What NVRTC makes of it.


def operations_in(ptx: str) -> Counter[str]:
    return Counter(re.findall(r"\b(?:fma|mad|mul|add|sub|cvt|div|rcp|ex2|lg2|sqrt)\.[a-z0-9.]*f(?:64|32)[.f0-9]*", ptx))


def test_ptx_rounds_as_the_text_says() -> None:
    """One fma for each call, products and sums apart, conversions to nearest, nothing flushed or approximate."""
    text = judge_source(7, digest.CUDA)
    found = operations_in(nvrtc.compile_source(text, ptx=True).decode())
    exact = {"fma.rn.f64", "mul.rn.f64", "add.rn.f64", "sub.rn.f64", "sub.rn.f32", "cvt.f64.f32",
                          "cvt.rn.f32.f64", "cvt.rni.f32.f32"}  # fmt: skip
    assert set(found) <= exact
    assert found["fma.rn.f64"] % 8 == 0
    assert found["fma.rn.f64"] >= 3 * 8
    assert nvrtc.compile_source(text)
    flushing = operations_in(nvrtc.compile_source(text, ptx=True, options=["--ftz=true"]).decode())
    assert not set(flushing) <= exact


def test_arithmetic_is_checked_before_use() -> None:
    """Exact results pass; two roundings for one, flushing either way, and a last bit are each found."""
    assert operations_in(nvrtc.compile_source(device_judge.ARITHMETIC, ptx=True).decode())["fma.rn.f64"] == 1
    columns = device_judge.operands()
    right = [exact(*(columns[place] for place in places)) for _, _, places, exact in device_judge.RESULTS]
    assert check_results(columns, right) == 5 * len(columns[0])
    f64 = FORMATS["f64"]
    product = rounding_array.mul(f64, columns[0], columns[1]).bits
    separate = rounding_array.add(f64, product, columns[2]).bits
    subnormal = np.uint32(0x7F800000)
    suspects = {
        2: separate,
        1: np.where((right[1] >> np.uint64(52)) & np.uint64(0x7FF) == 0, np.uint64(0), right[1]),
        3: np.where(right[3] & subnormal == 0, right[3] & np.uint32(1 << 31), right[3]),
        4: np.where(columns[3] & subnormal == 0, np.uint64(0), right[4]),
        0: right[0] ^ (np.arange(len(right[0])) == 12345).astype(np.uint64),
    }
    for place, wrong in suspects.items():
        with pytest.raises(UnfitDeviceError, match="would not hold"):
            check_results(columns, [*right[:place], wrong, *right[place + 1 :]])


# References in f64.

RANKER = """
extern "C" void judge(u64 n, const double *x, const double *got, const u32 *rows, const double *table,
                      double *highs, double *lows, double *errors)
{
    for (u64 i = 0; i < n; ++i) {
        reference(table + rows[i] * COLUMNS_OF_A_ROW, x[i], highs[i], lows[i]);
        errors[i] = error_in_ulp(got[i], highs[i], lows[i]);
    }
}
"""
BINADES = {"log1p": (0x3FF, 0x7F0, 0xBFE), "exp2": (0x404, 0xC04), "tanh": (0x3FF,), "erfc": (0x400, 0xBFF),
           "asin": (0x3FE,), "i0": (0x402,), "lgamma": (0x3FF, 0x400, 0xC00, 0x43F)}  # fmt: skip


@needs_compiler
def test_references_tell_which_results_look_worst(tmp_path: Path) -> None:
    """They are within 2**-66 of the value, and errors in ulp follow; rows reach up to zeros, poles and ends."""
    text = prelude(host=True) + ranking.CUDA + RANKER.replace("COLUMNS_OF_A_ROW", str(ranking.COLUMNS))
    function = built(text, tmp_path)
    function.argtypes = [ctypes.c_uint64, *[ctypes.c_void_p] * 7]
    rng = np.random.default_rng(23)
    f64 = FORMATS["f64"]
    for name, places in BINADES.items():
        found = [row for binade in places for row in ranking.of_binade(name, binade)]
        assert sum(last - first + 1 for first, last, _ in found) > 0.4 * len(places) * 2.0**52, name
        table = np.array([numbers for _, _, numbers in found])
        which = np.append(rng.integers(0, len(found), 60), [0, len(found) - 1]).astype(np.uint32)
        codes = [rng.integers(found[k][0], found[k][1], endpoint=True, dtype=np.uint64) for k in which.tolist()]
        x = np.array(codes, np.uint64)
        nearest = nearest_many(name, f64, x)
        got = nearest + rng.integers(0, 3, len(x)).astype(np.uint64)
        highs, lows, errors = (np.empty(len(x)) for _ in range(3))
        function(len(x), *(a.ctypes.data for a in (x, got, which, table, highs, lows, errors)))
        for i, code in enumerate(x.tolist()):
            low, high = enclosure(name, f64, code, 120)
            exact = (Fraction(low) + Fraction(high)) / 2
            value = Fraction(highs[i]) + Fraction(lows[i])
            assert abs(value - exact) <= abs(exact) / 2**66, (name, hex(code))
            ulp = Fraction(2) ** (max(int(np.frexp(highs[i])[1]) - 1, -1022) - 52)
            true = abs(Fraction(float(got.view(np.float64)[i])) - exact) / ulp
            assert abs(Fraction(errors[i]) - true) < Fraction(1, 2**10), (name, hex(code))


def test_kernels_of_the_filter_compile() -> None:
    found = operations_in(nvrtc.compile_source(filtering.source(), ptx=True).decode())
    assert set(found) <= {"fma.rn.f64", "mul.rn.f64", "add.rn.f64", "sub.rn.f64"}


def test_the_worst_are_kept_without_one_place_hiding_the_others() -> None:
    worst = filtering.Worst()
    rng = np.random.default_rng(29)
    for _ in range(3):
        codes = rng.integers(0, 1 << 50, 20_000, np.uint64)
        worst.add(codes, (codes % 300).astype(np.int64), 1.0 / (1 + codes % 300) + (codes % 7).astype(np.float64))
    assert len(worst.codes) == filtering.JUDGED
    assert (np.diff(worst.errors) <= 0).all()
    assert np.bincount(worst.rows).max() <= filtering.OF_A_ROW
    worst.add(np.array([5], np.uint64), np.array([1]), np.array([np.inf]))
    assert (worst.codes[0], worst.errors[0]) == (5, np.inf)


def test_candidates_lie_in_their_rows() -> None:
    """Everywhere, around listed points, and around the worst so far."""
    signature = Signature("log1p", ("f64",), "f64")
    one = 0x3FF0_0000_0000_0000
    sample = Sample(signature, ((one,), (one + 12345,), (0xBFEF_FFFF_FFFF_FFFF,), (0x7FF0_0000_0000_0000,)), 0, 0)
    found = [row for binade in (0x3FF, 0xBFE) for row in ranking.of_binade("log1p", binade)]
    firsts, lasts = (np.array([row[k] for row in found], np.uint64) for k in (0, 1))
    search: Any = object.__new__(filtering._Search)
    search.job, search.rng = job.Job("cuda", signature, sample), np.random.default_rng(1)
    search.rows = ranking.Rows("log1p", firsts, lasts, firsts >> np.uint64(52), np.array([row[2] for row in found]))
    search.worst = filtering.Worst()
    search.worst.add(firsts[:3], np.arange(3), np.ones(3))
    assert search._points()[0].tolist() == [one, one + 12345]
    strata = list(search._strata(3 * len(filtering.NEIGHBOURHOODS) * 50))
    assert len(strata) == 2 + len(filtering.NEIGHBOURHOODS)
    for rows, low, high in strata:
        assert (low >= firsts[rows]).all()
        assert (high <= lasts[rows]).all()
        assert (low <= high).all()
    assert len(np.unique(strata[0][0])) > 20
    spans = strata[1][2] - strata[1][1]
    assert spans.min() < 1 << 12 < 1 << 40 < spans.max()


# The sweep around it, with the host in the place of a device.


class Memory:
    """Memory of the host that behaves like `driver.Buffer`."""

    def __init__(self, size: int) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.address = self.bytes.ctypes.data

    def put(self, array: Any, offset: int = 0) -> None:
        self.bytes[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)

    def get(self, dtype: Any, count: int, offset: int = 0) -> Any:
        size = count * np.dtype(dtype).itemsize
        return self.bytes[offset : offset + size].view(dtype).copy()


class Clock:
    seconds = 0.25

    def __enter__(self) -> Clock:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Launch:
    """A compiled kernel; ``run`` does its work."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def launch(self, grid: int, block: int, *args: Any) -> None:
        self.run(*args)


class OnHost:
    """A program of the CPU backend on `Memory`, with something done to its results."""

    def __init__(self, program: Any, change: Any) -> None:
        self.program, self.change = program, change
        self.device_program = self

    def __call__(self, codes: Any) -> Any:
        return [self.change(codes, np.array(self.program(codes)[0]))]

    def launch(self, inputs: Any, outputs: Any, n: int) -> None:
        outputs[0].put(self(inputs[0].get(np.uint32, n))[0])


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch, host: Any) -> Any:
    """Returns a function that sets what is done to the results of the target and to the rows of the judge."""

    def compiled(text: str, name: str) -> Launch:
        if name == "consecutive":
            return Launch(lambda out, first, n: out.put(first + np.arange(n, dtype=np.uint32)))
        assert text == judge_source(7, digest.CUDA)
        plain = lambda a: a.address if isinstance(a, Memory) else a.item()  # noqa: E731
        return Launch(lambda *args: host(*map(plain, args)))

    def install(change: Any = lambda codes, got: got) -> None:
        def target(backend: str, signature: Signature) -> job.Target:
            adapter = load("cpu")
            (program,) = adapter.compile([operation(signature.op).kernel(signature)], Options(3))
            return job.Target(adapter, OnHost(program, change), 3)

        for module in (job, on_device):
            monkeypatch.setattr(module, "target_of", target)
        monkeypatch.setattr("halfulp.certify.commands.sweep.target_of", target)

    monkeypatch.setattr(driver, "Buffer", Memory)
    monkeypatch.setattr(device_judge, "Buffer", Memory)
    monkeypatch.setattr(driver, "Timer", Clock)
    monkeypatch.setattr(device_judge, "Timer", Clock)
    monkeypatch.setattr(driver, "device", lambda: type("Device", (), {"processors": 1})())
    monkeypatch.setattr(device_judge, "compiled", compiled)
    monkeypatch.setattr(device_judge, "check_arithmetic", lambda: 1)
    return install


def swept(capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["sweep", *options, "--quiet", "--json", "--processes", "1"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


RANGES = (
    ("log1p", "0x3f7f0000:0x3f810000"),
    ("lgamma", "0xc0000000:0xc0010000"),
    ("exp2", "0xc2fbf800:0xc2fc0800", "--approximate", "--flush-to-zero"),
    ("tanh", "0x007ff000:0x00801000", "--approximate"),
    ("asin", "0xbf7ff000:0xbf801000"),
    ("exp2", "0x33000000:0x33008000"),
)


@needs_compiler
@pytest.mark.parametrize("options", RANGES, ids=lambda o: o[0])
def test_the_record_is_that_of_the_host(options: Any, capsys: pytest.CaptureFixture[str], on_host: Any) -> None:
    op, span, *attrs = options
    first = int(span[:10], 16)

    def change(codes: Any, got: Any) -> Any:
        got[codes == first + 0x777] ^= np.uint32(0x80000001)  # one result that is wrong by any count
        got[codes == first + 0x123] += np.uint32(1)
        if first == 0x33000000:  # from 1 to the number below, in another binade, where the bound allows two steps
            got[(codes & 63) == 0] -= np.uint32(1)
        return got

    on_host(change)
    options = (op, *attrs, "--range", span)
    records = [swept(capsys, *options, "--judge", where, status=1) for where in ("device", "host")]
    device, plain = records
    how = device.pop("device_judge")
    assert how["checked_on_host"]["inputs"] > 0
    assert how["judged_on_host"] > 0
    if first == 0x33000000:
        assert how["judged_on_host"] <= 2 * 2040
    assert device.pop("digest") is None
    assert plain.pop("digest")
    for record in records:
        del record["time"], record["date"]
    assert device == plain
    assert plain["forbidden"] == 1


@needs_compiler
def test_judges_that_differ_end_the_sweep(
    capsys: pytest.CaptureFixture[str], on_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_host()
    honest = device_judge.DeviceJudge.judge

    def tampered(*args: Any) -> Any:
        found = honest(*args)
        found.rows[:, Word.FRACTION] += 1  # one last bit
        return found

    options = ["sweep", "tanh", "--range", "0x3f000000:0x3f008000", "--quiet", "--processes", "1"]
    monkeypatch.setattr(device_judge.DeviceJudge, "judge", tampered)
    assert cli.main(options) == 2
    assert "the judge on the device and that on the host differ" in capsys.readouterr().err

    def miscounted(*args: Any) -> Any:
        found = honest(*args)
        found.sums[:, 1] ^= np.uint64(1 << 40)
        return found

    monkeypatch.setattr(device_judge.DeviceJudge, "judge", miscounted)
    assert cli.main(options) == 2
    assert "differ" in capsys.readouterr().err

    def unfit() -> int:
        raise UnfitDeviceError("1 of 1 results of a + b are not IEEE 754's")

    monkeypatch.setattr(device_judge.DeviceJudge, "judge", honest)
    monkeypatch.setattr(device_judge, "check_arithmetic", unfit)
    assert cli.main(options) == 2
    assert "not IEEE 754's" in capsys.readouterr().err


@needs_compiler
def test_results_that_change_are_noticed(capsys: pytest.CaptureFixture[str], on_host: Any) -> None:
    calls = []

    def change(codes: Any, got: Any) -> Any:
        calls.append(len(codes))
        return got + np.uint32(len(calls) > 2)  # after the known inputs and the sweep itself

    on_host(change)
    found = swept(capsys, "log1p", "--range", "0x3f000000:0x3f008000", status=1)
    assert not found["repeatable"]
    assert found["forbidden"] == 0


def test_what_a_device_does_not_do_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in (
        (["tanh", "--range", "0:16", "--judge", "device"], "not tanh[f32->f32] on cpu"),
        (["tanh", "--range", "0:16", "--judge", "there"], "auto, host or device"),
        (["tanh", "--range", "0:16", "--filter", "1e9"], "leave it out"),
        (["tanh", "--format", "f64", "--sample", "0", "--filter", "many"], "give a number"),
    ):
        assert cli.main(["sweep", *options, "--quiet"]) == 2
        assert message in capsys.readouterr().err
