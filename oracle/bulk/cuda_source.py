"""The judge as CUDA C++: what `oracle.bulk.kernel` does natively, operation by operation, for a device.

Nothing here compiles or runs anything: the text is handed to whoever can. Where float64 additions, multiplications,
fused multiply-adds and conversions are IEEE 754's, the rows of results are those of the native judge, bit for bit, and
the proofs of `oracle.bulk.bounds` hold. The compiler must not contract and not flush: every fused operation is a call.

A warp judges a piece; its lanes share the row of the run, and read neighbouring results. Each lane keeps what it has
seen, and at the end the lanes merge. Ties go to the first element, so that the order of merging does not matter.

The text is C++ that a compiler for the host takes, too: without ``__CUDACC__`` the lanes of a warp are a loop.
"""

from __future__ import annotations

from halfulp.oracle.bulk.kernel import BINS, FAR, Word
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

STRICT = 1 << 31
"""Set in the number of a piece's run: the relative limit does not apply to it."""

SUMS = 2
"""Words of a row after those of `Word`: sums over the elements of the piece, of what the caller's text adds up."""

COLUMNS = BINS + 9 + SUMS
"""Words of a row of results."""

WARP = 32


def evaluation(count: int, coefficient: str, variable: str, indent: str = "    ") -> tuple[list[str], str]:
    """The statements and the expression that evaluate a polynomial in the order of `oracle.bulk.bounds`.

    Args:
        count: of coefficients, highest power first.
        coefficient: the array's name.
        variable: the variable's name.
    """
    lines: list[str] = []
    parts = [f"{coefficient}[{k}]" for k in range(count - 2, -1, -1)]
    power, level = variable, 0
    while len(parts) > 1:
        joined = []
        for k, (low, high) in enumerate(zip(parts[::2], parts[1::2], strict=False)):
            name = f"{variable}{level}_{k}"
            lines.append(f"{indent}const double {name} = fma({power}, {high}, {low});")
            joined.append(name)
        parts = joined + parts[len(joined) * 2 :]
        if len(parts) > 1:
            lines.append(f"{indent}const double {variable}_p{level} = {power} * {power};")
            power = f"{variable}_p{level}"
        level += 1
    return lines, f"fma({variable}, {parts[0]}, {coefficient}[{count - 1}])"


_HEAD = """
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
"""

_HOST = """
#include <cmath>
#include <cstring>
#define __device__
#define __forceinline__ inline
template <class To, class From> static To same_bits(From from) { To to; std::memcpy(&to, &from, sizeof to); return to; }
static double double_of(u64 bits) { return same_bits<double>(bits); }
static u64 bits_of(double value) { return same_bits<u64>(value); }
static float float_of(u32 bits) { return same_bits<float>(bits); }
static u32 bits_of(float value) { return same_bits<u32>(value); }
static float narrow(double value) { return (float)value; }
static float nearest_integer(float value) { return std::nearbyint(value); }
using std::fma;
using std::fabs;
"""

_DEVICE = """
static __device__ __forceinline__ double double_of(u64 bits) { return __longlong_as_double((i64)bits); }
static __device__ __forceinline__ u64 bits_of(double value) { return (u64)__double_as_longlong(value); }
static __device__ __forceinline__ float float_of(u32 bits) { return __uint_as_float(bits); }
static __device__ __forceinline__ u32 bits_of(float value) { return __float_as_uint(value); }
static __device__ __forceinline__ float narrow(double value) { return __double2float_rn(value); }
static __device__ __forceinline__ float nearest_integer(float value) { return rintf(value); }
"""

_SEEN = """
/* What a lane has seen of a piece. `bins`: eight counts of a byte each, a lane sees 64 elements at most.
   `counts`: UNDECIDED, MIXED, BEYOND, ZERO_SIGN and WRONG in 12 bits each, a piece has fewer than 4096 elements. */
struct Seen {
    u64 low_bins, high_bins, counts, sums[2];
    u32 bins[2];
    int distance;
    u32 index;
    double fraction;
    u32 at;
};

static __device__ __forceinline__ Seen nothing() {
    Seen seen;
    seen.low_bins = seen.high_bins = seen.counts = seen.sums[0] = seen.sums[1] = 0;
    seen.bins[0] = seen.bins[1] = 0;
    seen.distance = -1;
    seen.index = seen.at = 0;
    seen.fraction = -1.0;
    return seen;
}

/* The value 1 for a true condition, in the place of a count. */
static __device__ __forceinline__ u64 counted(bool condition, int place) { return (u64)condition << (12 * place); }

static __device__ __forceinline__ void see(Seen &seen, u32 index, int distance, double fraction) {
    const u32 one = 1u << ((distance & 3) << 3);
    seen.bins[0] += (u32)distance < 4u ? one : 0u;
    seen.bins[1] += (u32)distance - 4u < 4u ? one : 0u;
    if (distance > seen.distance) { seen.distance = distance; seen.index = index; }
    if (fraction > seen.fraction) { seen.fraction = fraction; seen.at = index; }
}

/* From bytes to 16 bits. */
static __device__ __forceinline__ u64 widened(u32 bytes) {
    return (u64)(bytes & 0xffu) | (u64)(bytes >> 8 & 0xffu) << 16 | (u64)(bytes >> 16 & 0xffu) << 32
         | (u64)(bytes >> 24) << 48;
}

static __device__ __forceinline__ void widen(Seen &seen) {
    seen.low_bins = widened(seen.bins[0]);
    seen.high_bins = widened(seen.bins[1]);
}

static __device__ __forceinline__ void merge(Seen &seen, const Seen &other) {
    seen.low_bins += other.low_bins;
    seen.high_bins += other.high_bins;
    seen.counts += other.counts;
    seen.sums[0] += other.sums[0];
    seen.sums[1] += other.sums[1];
    if (other.distance > seen.distance || (other.distance == seen.distance && other.index < seen.index)) {
        seen.distance = other.distance;
        seen.index = other.index;
    }
    if (other.fraction > seen.fraction || (other.fraction == seen.fraction && other.at < seen.at)) {
        seen.fraction = other.fraction;
        seen.at = other.at;
    }
}

static __device__ __forceinline__ void store(const Seen &seen, u32 first, u64 *row) {
    for (int k = 0; k < 4; ++k) {
        row[k] = seen.low_bins >> (16 * k) & 0xffffu;
        row[4 + k] = seen.high_bins >> (16 * k) & 0xffffu;
    }
    for (int k = 0; k < 5; ++k) row[UNDECIDED + k] = seen.counts >> (12 * k) & 0xfffu;
    row[DISTANCE] = (u64)(i64)seen.distance;
    row[INDEX] = seen.index;
    row[FRACTION] = bits_of(seen.fraction);
    row[ARGUMENT] = seen.fraction > -1.0 ? bits_of((double)float_of(first + seen.at)) : 0;
    row[SUMS] = seen.sums[0];
    row[SUMS + 1] = seen.sums[1];
}
"""

_ELEMENTS = """
/* Where the signs or the exponent fields of two codes differ. */
static __device__ __forceinline__ bool other_binade(u32 a, u32 b) { return ((a ^ b) & 0xff800000u) != 0; }

/* Where the error is beyond the relative limit, or NaN. */
static __device__ __forceinline__ bool past(double error, double y, double relative, double least) {
    const double size = fabs(y);
    return !(error <= relative * (size > least ? size : least));
}

/* 1/ulp of the f32 binade of y: from its power of two p, 2**23 / p, by subtraction of exponents. */
static __device__ __forceinline__ double inverse_ulp(double y) {
    const u32 power = (u32)(bits_of(y) >> 32) & 0x7ff00000u, least = (u32)(1023 - 126) << 20;
    return double_of((u64)(((u32)(2 * 1023 + 23) << 20) - (power > least ? power : least)) << 32);
}

static __device__ __forceinline__ double value(u32 code) { return (double)float_of(code); }

static __device__ __forceinline__ void see_polynomial(
    Seen &seen, u32 index, u32 got, double y, double low, double high, double relative, double least,
    bool pole, bool reflection)
{
    double got_value = value(got);
    u32 nearest = bits_of(narrow(y * low)), other = bits_of(narrow(y * high));
    bool wrong = false;
    if (reflection) {
        wrong = pole && got != INFINITY_CODE;
        if (pole) { got_value = y; nearest = other = INFINITY_CODE; }
    }
    const int difference = (int)(got - nearest), opposite = (int)(nearest - got);
    const int distance = difference > opposite ? difference : opposite;
    const double error = fabs(got_value - y);
    const bool undecided = nearest != other, mixed = other_binade(got, nearest);
    const bool beyond = past(error, y, relative, least);
    if (undecided || mixed || beyond || wrong)
        seen.counts += counted(undecided, 0) + counted(mixed, 1) + counted(beyond, 2) + counted(wrong, 4);
    see(seen, index, distance, error * inverse_ulp(y));
}

static __device__ __forceinline__ void see_constant(
    Seen &seen, u32 index, u32 got, u32 nearest, int position, bool exact, double y, double inverse,
    double relative, double least)
{
    const int end = (int)INFINITY_CODE;
    const int magnitude = (int)(got & 0x7fffffffu), nearest_magnitude = (int)(nearest & 0x7fffffffu);
    const bool nan = magnitude > end, nearest_nan = nearest_magnitude > end;
    const bool overflow = got == INFINITY_CODE && position >= end;
    const int ordinal = overflow ? position : (got >> 31 ? (int)(0u - (u32)magnitude) : magnitude);
    double got_value = value(got);
    got_value = got_value > LIMIT ? LIMIT : got_value;
    got_value = got_value < -LIMIT ? -LIMIT : got_value;
    if (overflow) got_value = got_value > y ? got_value : y;
    const bool wrong = nan != nearest_nan || (exact && got != nearest && !nearest_nan);
    const u32 steps = ordinal > position ? (u32)ordinal - (u32)position : (u32)position - (u32)ordinal;
    const int distance = wrong ? -1 : nan ? 0 : (int)(steps < FAR ? steps : FAR);
    const bool same = distance == 0;
    const bool zero_sign = (got ^ nearest) == 0x80000000u && position == 0 && same;
    const double error = fabs(got_value - y);
    const bool beyond = past(error, y, relative, least) && !same;
    /* Steps and ulps differ by a factor of two at most, so beyond twice every bound they agree. */
    const bool mixed = (u32)distance - 1u < 2u * BINS && other_binade(got, nearest);
    if (wrong || zero_sign || beyond || mixed)
        seen.counts += counted(mixed, 1) + counted(beyond, 2) + counted(zero_sign, 3) + counted(wrong, 4);
    see(seen, index, distance, error * inverse);
}
"""


def _constants() -> str:
    numbers = {
        "INFINITY_CODE": f"{INFINITY:#x}u",
        "FAR": f"{FAR:#x}u",
        "BINS": f"{BINS}u",
        "LIMIT": "340282366920938463463374607431768211456.0",  # 2**128
        **{name: str(getattr(Word, name)) for name in ("UNDECIDED", "DISTANCE", "INDEX", "FRACTION", "ARGUMENT")},
        "SUMS": str(BINS + 9),
        "COLUMNS": str(COLUMNS),
        "STRICT": f"{STRICT:#x}u",
    }
    return "\n".join(f"#define {name} {number}" for name, number in numbers.items())


def _piece(degree: int) -> str:
    """``judge_lane``: what one lane sees of a piece."""
    columns = LEADING + degree + 1
    run_lines, run_value = evaluation(degree + 1, "c", "t", "        ")
    w_lines, w_value = evaluation(degree + 1, "d", "v", "            ")
    return f"""
#define ROW {columns}
#define REFLECTED_ROW {2 + degree + 1}

static __device__ __forceinline__ Seen judge_lane(
    u32 lane, const u32 *got, u32 length, u32 first, const double *row, u32 kind, u32 code, int position,
    const double *reflected, double relative, double least)
{{
    Seen seen = nothing();
    if (kind >= {int(Kind.VALUE)}) {{
        const double y = row[{SCALE}], inverse = row[{SHIFT}];
        for (u32 i = lane; i < length; i += {WARP}) {{
            see_constant(seen, i, got[i], code, position, kind == {int(Kind.EXACT)}, y, inverse, relative, least);
            add_up(seen.sums, first + i, got[i]);
        }}
        widen(seen);
        return seen;
    }}
    const double scale = row[{SCALE}], shift = row[{SHIFT}], low = row[{LOW}], high = row[{HIGH}];
    double c[{degree + 1}];
    for (int k = 0; k < {degree + 1}; ++k) c[k] = row[{LEADING} + k];
    if (kind == {int(Kind.REFLECTION)}) {{
        for (u32 i = lane; i < length; i += {WARP}) {{
            const float x = float_of(first + i);
            const double t = fma((double)x, scale, shift);
            const float w = fabsf(x - nearest_integer(x));
            const int steps = (int)(bits_of(w) >> {REFLECTED_SHIFT}) - {REFLECTED_FIRST};
            const double *d = reflected + (steps > 0 ? steps : 0) * REFLECTED_ROW + 2;
            const double v = fma((double)w, d[-2], d[-1]);
{chr(10).join(w_lines)}
{chr(10).join("    " + line for line in run_lines)}
            const double y = {run_value} + {w_value};
            see_polynomial(seen, i, got[i], y, low, high, relative, least, w == 0.0f, true);
            add_up(seen.sums, first + i, got[i]);
        }}
        widen(seen);
        return seen;
    }}
#pragma unroll 2
    for (u32 i = lane; i < length; i += {WARP}) {{
        const double t = fma((double)float_of(first + i), scale, shift);
{chr(10).join(run_lines)}
        const u32 given = got[i];
        see_polynomial(seen, i, given, {run_value}, low, high, relative, least, false, false);
        add_up(seen.sums, first + i, given);
    }}
    widen(seen);
    return seen;
}}
"""


_PARAMETERS = """
    u64 pieces, const u32 *offsets, const u32 *lengths, const u32 *runs, u32 base, const unsigned char *kinds,
    const u32 *got, const double *rows, const double *reflected, const u32 *codes, const int *positions,
    double relative, double least, u64 *out"""

_LANE = """judge_lane(
        lane, got + offsets[piece], lengths[piece], base + offsets[piece], rows + (u64)run * ROW, kinds[run],
        codes[run], positions[run], reflected, strict ? double_of(0x7ff0000000000000ull) : relative,
        strict ? 0.0 : least)"""

_DEVICE_ENTRY = f"""
static __device__ __forceinline__ Seen from_lane(const Seen &seen, int step) {{
    Seen other;
    other.low_bins = __shfl_down_sync(0xffffffffu, seen.low_bins, step);
    other.high_bins = __shfl_down_sync(0xffffffffu, seen.high_bins, step);
    other.counts = __shfl_down_sync(0xffffffffu, seen.counts, step);
    for (int k = 0; k < 2; ++k) other.sums[k] = __shfl_down_sync(0xffffffffu, seen.sums[k], step);
    other.distance = __shfl_down_sync(0xffffffffu, seen.distance, step);
    other.index = __shfl_down_sync(0xffffffffu, seen.index, step);
    other.fraction = __shfl_down_sync(0xffffffffu, seen.fraction, step);
    other.at = __shfl_down_sync(0xffffffffu, seen.at, step);
    return other;
}}

extern "C" __global__ void __launch_bounds__(256) judge({_PARAMETERS})
{{
    const u64 piece = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / {WARP};
    const u32 lane = threadIdx.x % {WARP};
    if (piece >= pieces) return;
    const u32 run = runs[piece] & ~STRICT;
    const bool strict = (runs[piece] & STRICT) != 0;
    Seen seen = {_LANE};
    for (int step = {WARP // 2}; step; step /= 2) merge(seen, from_lane(seen, step));
    if (lane == 0) store(seen, base + offsets[piece], out + piece * COLUMNS);
}}
"""

_HOST_ENTRY = f"""
extern "C" void judge({_PARAMETERS})
{{
    for (u64 piece = 0; piece < pieces; ++piece) {{
        const u32 run = runs[piece] & ~STRICT;
        const bool strict = (runs[piece] & STRICT) != 0;
        Seen seen = nothing();
        for (u32 lane = {WARP}; lane--;) merge(seen, {_LANE});
        store(seen, base + offsets[piece], out + piece * COLUMNS);
    }}
}}
"""

_NO_SUMS = """
static __device__ __forceinline__ void add_up(u64 *sums, u32 input, u32 output) {}
"""


def prelude(*, host: bool = False) -> str:
    """Types and the functions ``bits_of`` and ``double_of``."""
    return _HEAD + (_HOST if host else _DEVICE)


def judge_source(degree: int, sums: str = _NO_SUMS, *, host: bool = False) -> str:
    """The text of the judge for polynomials of one degree.

    The kernel is ``judge(pieces, offsets, lengths, runs, base, kinds, got, rows, reflected, codes, positions, relative,
    least, out)`` with a warp for each piece: ``offsets``, ``lengths`` and ``runs`` are u32 arrays, one element for each
    piece (`STRICT` may be set in ``runs``); offsets count from the first element of ``got``, whose argument is the code
    ``base``. ``kinds`` to ``positions`` are those of the table. ``out`` has `COLUMNS` 64-bit words for each piece: the
    words of the native judge, then the sums.

    Args:
        degree: of the polynomials.
        sums: text that defines ``void add_up(u64 *sums, u32 input, u32 output)``, called once for each element.
        host: for a compiler of the host, where ``judge`` is a function that does everything.
    """
    parts = (
        prelude(host=host),
        _constants(),
        _SEEN,
        _ELEMENTS,
        sums,
        _piece(degree),
        _HOST_ENTRY if host else _DEVICE_ENTRY,
    )
    return "\n".join(part.strip("\n") for part in parts) + "\n"
