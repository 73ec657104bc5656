"""The bulk judge on a CUDA device: the rows of the native judge, for results that lie in the device's memory.

The bounds hold wherever float64 addition, multiplication, fused multiply-add and conversion are IEEE 754's. That is
tested on the device first (`check_arithmetic`), with the oracle's exact arithmetic as the reference. The caller judges
a part of what the device judged by the native judge too, and compares bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from halfulp.backends.cuda.driver import Buffer, Device, Function, Timer, device
from halfulp.backends.cuda.nvrtc import compile_source
from halfulp.certify.sweep.part import Array
from halfulp.oracle import codes, rounding_array
from halfulp.oracle.bulk import BulkJudge, Limits, Pieces, digest
from halfulp.oracle.bulk.cuda_source import COLUMNS, STRICT, WARP, judge_source
from halfulp.oracle.bulk.kernel import RESULT
from halfulp.oracle.formats import FORMATS, Bits, Format

BLOCK = 256
"""Threads of a block."""

VECTORS = 1 << 16
"""Random operands of the test of arithmetic, for each kind of drawing."""


class UnfitDeviceError(RuntimeError):
    """The arithmetic of the device is not what the proofs need. The message says where."""


ARITHMETIC = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
extern "C" __global__ void arithmetic(
    u32 n, const double *a, const double *b, const double *c, const float *s,
    double *sum, double *product, double *fused, float *narrow, double *wide)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sum[i] = a[i] + b[i];
    product[i] = a[i] * b[i];
    fused[i] = fma(a[i], b[i], c[i]);
    narrow[i] = __double2float_rn(a[i]);
    wide[i] = (double)s[i];
}
"""

_EDGES = (
    *(0, 1, 2, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x0010000000000001, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000),
    *(0x3FF0000000000001, 0x4000000000000000, 0x4340000000000000, 0x36A0000000000000, 0x3690000000000000),
    *(0x3690000000000001, 0x380FFFFFE0000000, 0x380FFFFFF0000000, 0x3810000000000000, 0x47EFFFFFE0000000),
    *(0x47EFFFFFF0000000, 0x47EFFFFFEFFFFFFF, 0x47F0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000),
    0x7FF8000000000000,
)
"""Codes of f64 where an operation changes: zeros, subnormals, powers of two, the ends of f32, infinity, NaN."""


def operands() -> tuple[Bits, Bits, Bits, Bits]:
    """Three columns of f64 codes and one of f32 codes: edges against edges, then drawn with a fixed seed.

    Drawn are codes of any value, operands of like magnitude (sums that cancel), products near the border of the
    subnormal numbers, addends that cancel a product, and values that round to subnormal f32.
    """
    edges = np.array(_EDGES, np.uint64)
    edges = np.concatenate([edges, edges | np.uint64(1 << 63)])
    grid = np.meshgrid(edges, edges, edges[::3], indexing="ij")
    rng = np.random.Generator(np.random.PCG64(1754))

    def drawn(low: int, high: int) -> Bits:
        """Any sign and fraction, biased exponents from ``low`` to ``high``."""
        found: Bits = rng.integers(0, 1 << 52, VECTORS, np.uint64)
        found |= rng.integers(low, high + 1, VECTORS).astype(np.uint64) << np.uint64(52)
        found |= rng.integers(0, 2, VECTORS).astype(np.uint64) << np.uint64(63)
        return found

    def product(a: Bits, b: Bits) -> Bits:
        with np.errstate(all="ignore"):
            found: Bits = (-(a.view(np.float64) * b.view(np.float64))).view(np.uint64)
        return found

    like = drawn(1000, 1060), drawn(1000, 1060)
    small = drawn(0, 60), drawn(1023 - 60, 1023)
    rows = [
        tuple(g.ravel() for g in grid),
        (drawn(0, 2046), drawn(0, 2046), drawn(0, 2046)),
        (*like, drawn(1000, 1060)),
        (*like, product(*like)),
        (*small, drawn(0, 60)),
        (drawn(1023 - 152, 1023 - 124), drawn(1020, 1026), drawn(860, 900)),
    ]
    a, b, c = (np.concatenate(column) for column in zip(*rows, strict=True))
    singles = rng.integers(0, 1 << 32, len(a), np.uint64).astype(np.uint32)
    subnormal = rng.integers(0, 1 << 23, len(a) // 4, np.uint64).astype(np.uint32)
    singles[: len(subnormal)] = subnormal | rng.integers(0, 2, len(subnormal)).astype(np.uint32) << np.uint32(31)
    return a, b, c, singles


F32, F64 = FORMATS["f32"], FORMATS["f64"]

RESULTS: tuple[tuple[str, Format, tuple[int, ...], Callable[..., Bits]], ...] = (
    ("a + b", F64, (0, 1), lambda a, b: rounding_array.arithmetic_generic("add", F64, (a, b)).bits),
    ("a * b", F64, (0, 1), lambda a, b: rounding_array.arithmetic_generic("mul", F64, (a, b)).bits),
    ("fma(a, b, c)", F64, (0, 1, 2), lambda *abc: rounding_array.arithmetic_generic("fma", F64, abc).bits),
    ("a rounded to f32", F32, (0,), lambda a: rounding_array.cast_float_generic(F64, F32, a).bits),
    ("s as f64", F64, (3,), lambda s: rounding_array.cast_float_generic(F32, F64, s).bits),
)
"""What is tested: its name, format, operands, and the exact result of an integer path that uses no float arithmetic."""


def check_results(columns: Sequence[Bits], results: Sequence[Bits]) -> int:
    """Compare what a device computed with the oracle.

    Args:
        columns: operands, as `operands` gives them.
        results: one column for each of `RESULTS`.

    Returns:
        the number of results compared.

    Raises:
        UnfitDeviceError: one differs. NaN is as good as any other NaN.
    """
    for (name, fmt, places, exact), got in zip(RESULTS, results, strict=True):
        given = [columns[place] for place in places]
        nearest = exact(*given)
        different = np.flatnonzero((got != nearest) & ~(codes.is_nan(fmt, got) & codes.is_nan(fmt, nearest)))
        if len(different):
            at = int(different[0])
            shown = ", ".join(f"{int(column[at]):#x}" for column in given)
            raise UnfitDeviceError(
                f"{len(different):,} of {len(got):,} results of {name} are not IEEE 754's, the first for {shown}: "
                f"{fmt.hex(int(got[at]))} instead of {fmt.hex(int(nearest[at]))}; the judge's bounds would not hold "
                "on this device. Judge on the host: --judge host"
            )
    return sum(len(result) for result in results)


@cache
def check_arithmetic() -> int:
    """Test float64 arithmetic of the device, once in each process. Returns the number of results compared.

    Raises:
        UnfitDeviceError: it is not IEEE 754's.
    """
    columns = operands()
    n = len(columns[0])
    function = compiled(ARITHMETIC, "arithmetic")
    dtypes = [fmt.storage for _, fmt, _, _ in RESULTS]
    given = [uploaded(column) for column in columns]
    results = [Buffer(n * dtype.itemsize) for dtype in dtypes]
    function.launch(-(-n // BLOCK), BLOCK, np.uint32(n), *given, *results)
    return check_results(columns, [r.get(dtype, n) for r, dtype in zip(results, dtypes, strict=True)])


def compiled(text: str, name: str) -> Function:
    """A kernel of some CUDA C++, on the device."""
    here: Device = device()
    return here.load(compile_source(text, arch=here.arch)).function(name)


def uploaded(array: Array) -> Buffer:
    """A copy on the device."""
    buffer = Buffer(array.nbytes)
    buffer.put(array)
    return buffer


class Judged(NamedTuple):
    """What the device says of consecutive arguments.

    Attributes:
        rows: (pieces, RESULT) int64, as from `BulkJudge.rows`.
        sums: (pieces, 2) uint64, the digests of the pieces.
        seconds: time of the kernel.
    """

    rows: Array
    sums: Array
    seconds: float


class DeviceJudge:
    """The judge of one function in f32, on the device.

    Args:
        judge: the native judge, whose table is used.

    Raises:
        UnfitDeviceError: see `check_arithmetic`.
    """

    def __init__(self, judge: BulkJudge) -> None:
        check_arithmetic()
        table = judge.table
        self._judge = compiled(judge_source(table.degree, digest.CUDA), "judge")
        columns = (table.kinds, table.rows, table.reflected, table.codes, table.positions)
        self._table = [uploaded(np.ascontiguousarray(column)) for column in columns]

    def judge(self, first: int, got: Buffer, pieces: Pieces, strict: Array, limits: Limits) -> Judged:
        """Judge the results of consecutive arguments.

        Args:
            first: the code of the first argument.
            got: their results, uint32, at offset 0.
            pieces: as `BulkJudge.pieces` gives them.
            strict: (pieces,) bool: the relative limit does not apply.
            limits: only the relative limit is used.
        """
        n = len(pieces.runs)
        runs = pieces.runs.astype(np.uint32) | np.where(strict, np.uint32(STRICT), np.uint32(0))
        given = [uploaded(c) for c in (pieces.offsets.astype(np.uint32), pieces.lengths.astype(np.uint32), runs)]
        kinds, rows, reflected, codes_, positions = self._table
        out = Buffer(n * COLUMNS * 8)
        with Timer() as timer:
            self._judge.launch(
                -(-n * WARP // BLOCK),
                BLOCK,
                np.uint64(n),
                *given,
                np.uint32(first),
                kinds,
                got,
                rows,
                reflected,
                codes_,
                positions,
                np.float64(limits.largest),
                np.float64(limits.least),
                out,
            )
        found = out.get(np.int64, n * COLUMNS).reshape(n, COLUMNS)
        return Judged(found[:, :RESULT], found[:, RESULT:].view(np.uint64), timer.seconds)
