"""The kernels around litmus threads: many instances in one launch, each on cells of its own, counted on the device.

A launch has ``n`` instances, a power of two. Each thread of the grid plays one role of one instance at a time, for one
or more steps; which role and instance follows from its place in the grid (``place``). No thread waits for another: all
that brings roles together in time is where they start, and waits of a set number of cycles. So nothing rests on blocks
being resident together, and no result depends on progress.

Outcomes are counted in two tables. Where every observed value is small, the values together are an index, counted in
shared memory first. Otherwise a hash of 64 bits finds a place in an open table, with the values beside it. Two
different outcomes with one hash would be counted as one; with at most 2**12 outcomes the chance is below 2**-40.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfulp.backends.cuda.cpp import PRELUDE
from halfulp.backends.cuda.litmus_lower import Accesses, AccessesOf, ThreadCode
from halfulp.oracle.memory.program import Program

MAX_CELLS, MAX_ROLES, MAX_COLUMNS = 8, 8, 32
"""Locations, threads and observed values of one program."""

NAMES = ("apart", "free", "together")
"""Placements in the order of their numbers: roles in different blocks, in one block, in one warp."""

SMALL = 1024
"""Size of the table of outcomes of small values."""

SLOTS = 4096
"""Size of the hash table."""

HASHED_VALUES = SLOTS * MAX_COLUMNS

SCRATCH = 1 << 20
"""Bytes that stress reads and writes."""

CELL = np.dtype(
    [("base", "u8"), ("initial", "u8"), ("factor", "u4"), ("shift", "u4"), ("spacing", "u4"), ("width", "u4")]
)
"""A location: instance i has the cell at ``base + ((i * factor + shift) mod n) * spacing``, ``width`` bits wide."""

ROLE = np.dtype([("mul", "u4"), ("add", "u4"), ("wait", "u4"), ("jitter", "u4")])
"""A role plays instance ``(j * mul + add) mod chunk`` in slot j, after ``wait`` cycles and up to ``jitter`` more."""

PLAN = np.dtype(
    [
        ("cells", CELL, MAX_CELLS),
        ("roles", ROLE, MAX_ROLES),
        ("outs", "u8", MAX_COLUMNS),
        ("scratch", "u8"),
        *((name, "u4") for name in ("first", "used", "n", "chunk", "steps", "rotate", "placement", "only", "seed")),
        *((name, "u4") for name in ("stress_every", "stress", "before")),
    ],
    align=True,
)
"""What a launch is told. Its threads are number ``first`` and those after it of a module, ``used`` in all."""

TALLY = np.dtype(
    [
        ("columns", CELL, MAX_COLUMNS),
        ("cells", CELL, MAX_CELLS),
        ("small", "u8"),
        ("keys", "u8"),
        ("counts", "u8"),
        ("values", "u8"),
        ("lost", "u8"),
        *((name, "u4") for name in ("n", "columns_used", "cells_used", "bits")),
    ],
    align=True,
)
"""What the tally is told."""

_TYPES = """\
struct Cell { u64 base, initial; u32 factor, shift, spacing, width; };
struct Role { u32 mul, add, wait, jitter; };
__device__ __forceinline__ u64 address(const Cell& cell, u32 i, u32 n) {
  return cell.base + (u64)((i * cell.factor + cell.shift) & (n - 1)) * cell.spacing;
}
__device__ __forceinline__ u32 mix(u32 a) {
  a ^= a >> 16; a *= 0x7feb352du; a ^= a >> 15; a *= 0x846ca68bu; return a ^ a >> 16;
}
"""

_LAUNCH = f"""\
struct Plan {{
  Cell cells[{MAX_CELLS}]; Role roles[{MAX_ROLES}]; u64 outs[{MAX_COLUMNS}]; u64 scratch;
  u32 first, used, n, chunk, steps, rotate, placement, only, seed, stress_every, stress, before;
}};

// Reads and writes of lines that nobody looks at.
__device__ __noinline__ void disturb(const Plan& p, u32 key, u32 turns) {{
  for (u32 turn = 0; turn < turns; ++turn) {{
    const u32 where = mix(key + turn) % {SCRATCH // 64};
    volatile u32* line = (volatile u32*)(p.scratch + (u64)where * 64);
    if (key & 1) line[threadIdx.x & 15] = turn;
    if (key & 2) (void)line[(threadIdx.x + 1) & 15];
    if (!(key & 1)) line[(threadIdx.x + 2) & 15] = turn;
  }}
}}

// Cycles, the same for all threads of a warp that play one role.
__device__ __noinline__ void pause(const Plan& p, u32 role, u32 key) {{
  const u32 cycles = p.roles[role].wait + (p.roles[role].jitter ? mix(key + role) % p.roles[role].jitter : 0);
  if (!cycles) return;
  u32 start, now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(start) :: "memory");
  do asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory"); while (now - start < cycles);
}}

// The role and the instance of this thread in one step; false where it has none.
__device__ __forceinline__ bool place(const Plan& p, u32 block, u32 step, u32& role, u32& i) {{
  const u32 thread = threadIdx.x, roles = p.used;
  if (p.placement == 0) {{  // roles in different blocks
    const u32 size = 1u << p.chunk, groups = size / blockDim.x;
    const u32 chunk = block / (roles * groups), rest = block % (roles * groups);
    role = (rest % roles + p.rotate * step) % roles;
    const u32 slot = rest / roles * blockDim.x + thread;
    i = (chunk * p.steps + step) * size + ((slot * p.roles[role].mul + p.roles[role].add) & (size - 1));
  }} else if (p.placement == 1) {{  // in one block, in different warps
    const u32 size = blockDim.x / roles, slot = thread % size;
    role = (thread / size + p.rotate * step) % roles;
    i = (block * p.steps + step) * size + ((slot * p.roles[role].mul + p.roles[role].add) & (size - 1));
  }} else {{  // in one warp
    const u32 size = 32 / roles, lane = thread & 31, warp = block * (blockDim.x / 32) + thread / 32;
    if (lane >= size * roles) return false;
    role = (lane % roles + p.rotate * step) % roles;
    i = (warp * p.steps + step) * size + lane / roles;
  }}
  return i < p.n && (p.only >= roles || p.only == role);
}}
"""

_TALLY = f"""\
struct Tally {{
  Cell columns[{MAX_COLUMNS}]; Cell cells[{MAX_CELLS}]; u64 small, keys, counts, values, lost;
  u32 n, columns_used, cells_used, bits;
}};

__device__ __forceinline__ void put(u64 at, u64 value, u32 width) {{
  if (width == 32) *(u32*)at = (u32)value; else *(u64*)at = value;
}}

__device__ __forceinline__ u64 get(u64 at, u32 width) {{ return width == 32 ? *(const u32*)at : *(const u64*)at; }}

// Count the outcomes of a launch, and make the cells ready for the next one.
extern "C" __global__ void tally(const __grid_constant__ Tally t, u32 count) {{
  __shared__ u32 table[{SMALL}];
  const u32 size = 1u << t.bits * t.columns_used;
  if (t.bits) {{
    for (u32 at = threadIdx.x; at < size; at += blockDim.x) table[at] = 0;
    __syncthreads();
  }}
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < t.n; i += gridDim.x * blockDim.x) {{
    if (count) {{
      u64 index = 0, key = 0x9e3779b97f4a7c15ull;
      bool tiny = t.bits != 0;
      for (u32 c = 0; c < t.columns_used; ++c) {{
        const u64 value = get(address(t.columns[c], i, t.n), t.columns[c].width);
        tiny = tiny && value < 1ull << t.bits;
        index = index << t.bits | value;
        key = (key ^ value) * 0xbf58476d1ce4e5b9ull;
        key ^= key >> 29;
      }}
      if (tiny) {{
        atomicAdd(&table[index], 1u);
      }} else {{
        key |= 1;
        const u32 alike = __match_any_sync(__activemask(), key);
        if ((threadIdx.x & 31) == __ffs(alike) - 1) {{
          u32 slot = (u32)(key >> 40) % {SLOTS}, tries = 0;
          for (; tries < {SLOTS}; ++tries, slot = (slot + 1) % {SLOTS}) {{
            const u64 there = atomicCAS((u64*)t.keys + slot, 0ull, key);
            if (there == 0)
              for (u32 c = 0; c < t.columns_used; ++c)
                ((u64*)t.values)[slot * {MAX_COLUMNS} + c] = get(address(t.columns[c], i, t.n), t.columns[c].width);
            if (there == 0 || there == key) break;
          }}
          u64* counter = tries < {SLOTS} ? (u64*)t.counts + slot : (u64*)t.lost;
          atomicAdd(counter, (u64)__popc(alike));
        }}
      }}
    }}
    for (u32 c = 0; c < t.cells_used; ++c) put(address(t.cells[c], i, t.n), t.cells[c].initial, t.cells[c].width);
  }}
  if (t.bits && count) {{
    __syncthreads();
    for (u32 at = threadIdx.x; at < size; at += blockDim.x)
      if (table[at]) atomicAdd((u64*)t.small + at, (u64)table[at]);
  }}
}}
"""


def tally_source() -> str:
    """The kernel ``tally(TALLY, u32 count)``, the same for all programs."""
    return PRELUDE + _TYPES + _TALLY


def launch_source(programs: Sequence[tuple[Program, Sequence[ThreadCode]]]) -> str:
    """The kernel ``litmus(PLAN)``: a launch of one of the programs. Their threads are numbered through.

    All in one kernel, since most of the time of compilation goes into what is around the threads.
    """
    parts = [PRELUDE, _TYPES, _LAUNCH]
    count = 0
    for program, threads in programs:
        column = {observed: place for place, observed in enumerate(sorted(program.observe))}
        for code in threads:
            parts.append(f"__device__ __forceinline__ void thread{count}(const Plan& p, u32 i) {{")
            for place in range(len(program.locations)):
                at = f"address(p.cells[{place}], i, p.n)"
                parts.append(f"  const u64 c{place} = __cvta_generic_to_global((void*){at});")
            parts += code.lines
            for one in code.observed:
                parts.append(f"  ((u{one.width}*)p.outs[{column[one.name]}])[i] = {one.variable};")
            parts.append("}")
            count += 1
    # The pause stands in each case: in a warp of several roles, those that wait let the others go first.
    cases = "\n      ".join(
        f"case {number}: pause(p, role, key); thread{number}(p, i); break;" for number in range(count)
    )
    parts.append(f"""\
extern "C" __global__ void __launch_bounds__(512) litmus(const __grid_constant__ Plan p) {{
  u32 block = blockIdx.x;
  if (p.stress_every) {{
    if (block % p.stress_every == p.stress_every - 1) return disturb(p, mix(p.seed ^ block), p.stress);
    block -= block / p.stress_every;
  }}
  for (u32 step = 0; step < p.steps; ++step) {{
    u32 role, i;
    if (!place(p, block, step, role, i)) continue;
    const u32 key = mix(p.seed ^ (block * 64 + threadIdx.x / 32 + step * 0x10001u));
    if (p.before) disturb(p, key, p.before);
    switch (p.first + role) {{
      {cases}
    }}
  }}
}}""")
    return "\n".join(parts) + "\n"


def contest_source(kind: str, dtype: str, order: str, accesses: AccessesOf = Accesses) -> str:
    """``contest(operands, olds, flags, offsets, cell, initial, threads, spread)``: every ``spread``-th thread competes.

    Contestant k makes the operations ``offsets[k]`` to ``offsets[k + 1] - 1`` on the one cell.
    """
    lower = accesses(dtype)
    if kind == "cas":
        operation = [
            lower.cas("old", "flag", "c0", "known", "operand", order),
            "flags[at] = flag;",
            "known = flag ? operand : old;",
        ]
    else:
        operation = [lower.rmw(kind, "old", "c0", "operand", order)]
    body = "\n    ".join(operation)
    type_ = lower.type
    return f"""{PRELUDE}
extern "C" __global__ void contest(const {type_}* operands, {type_}* olds, u8* flags, const u64* offsets, {type_}* cell,
                                   {type_} initial, u32 threads, u32 spread) {{
  const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, me = thread / spread;
  if (thread % spread || me >= threads) return;
  const u64 c0 = __cvta_generic_to_global(cell);
  {type_} known = initial, old = 0;
  u32 flag = 0;
  for (u64 at = offsets[me]; at < offsets[me + 1]; ++at) {{
    const {type_} operand = operands[at];
    {body}
    olds[at] = old;
  }}
}}
"""
