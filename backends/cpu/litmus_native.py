"""The native loop around a litmus thread: many instances in one call, each on cells of its own.

A module has, for each thread T of the program, ``threadT`` (one instance: its accesses and nothing else, which is what
`artifact` shows) and ``runT(n, context)``, which calls it for instances 0 to n-1. Before an instance the threads may
meet. Meeting only brings them close together in time: it waits for a bounded number of turns, through relaxed accesses
that order nothing, and goes on without the others when they do not come. Nothing rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halfulp.adapters.protocol import Array

PROGRESS_SPACING = 128
"""Bytes between the progress counters of two threads: two cache lines of most machines."""

_HEAD = 8
"""Words of a context before those of the locations: see `Meeting.words`."""

_PER_LOCATION = 4

SUPPORT = f"""\
declare i32 @sched_yield()

define internal void @meet(ptr %progress, i64 %me, i64 %threads, i64 %turn, i64 %spins, i64 %yields) noinline {{
entry:
  %my_offset = mul i64 %me, {PROGRESS_SPACING}
  %mine = getelementptr i8, ptr %progress, i64 %my_offset
  store atomic i64 %turn, ptr %mine monotonic, align 8
  %tries = add i64 %spins, %yields
  br label %each
each:
  %other = phi i64 [ 0, %entry ], [ %following, %next ]
  %all = icmp eq i64 %other, %threads
  br i1 %all, label %done, label %look
look:
  %offset = mul i64 %other, {PROGRESS_SPACING}
  %theirs = getelementptr i8, ptr %progress, i64 %offset
  br label %try
try:
  %left = phi i64 [ %tries, %look ], [ %less, %again ]
  %seen = load atomic i64, ptr %theirs monotonic, align 8
  %there = icmp sge i64 %seen, %turn
  br i1 %there, label %next, label %wait
wait:
  %spent = icmp eq i64 %left, 0
  br i1 %spent, label %next, label %more
more:
  %late = icmp sle i64 %left, %yields
  br i1 %late, label %give, label %again
give:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  %less = sub i64 %left, 1
  br label %try
next:
  %following = add i64 %other, 1
  br label %each
done:
  ret void
}}

define internal void @delay(ptr %progress, i64 %i, i64 %seed, i64 %mask) noinline {{
entry:
  %none = icmp eq i64 %mask, 0
  br i1 %none, label %done, label %draw
draw:
  %mixed = add i64 %i, %seed
  %spread = mul i64 %mixed, -7046029254386353131
  %high = lshr i64 %spread, 40
  %turns = and i64 %high, %mask
  br label %wait
wait:
  %left = phi i64 [ %turns, %draw ], [ %less, %again ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %done, label %again
again:
  %seen = load volatile i64, ptr %progress, align 8
  %less = sub i64 %left, 1
  br label %wait
done:
  ret void
}}
"""


@dataclass(frozen=True)
class Meeting:
    """How the threads of a call are brought together.

    Attributes:
        threads: how many there are.
        each: before every instance; otherwise once, before the first.
        spins: looks at another thread's progress before yielding the processor.
        yields: looks after that, with a yield each, before going on alone.
        delay: turns that a thread waits at most before an instance, at random; 0 or a power of two minus 1.
    """

    threads: int
    each: bool
    spins: int = 2000
    yields: int = 8
    delay: int = 0

    def words(self, progress: Array, seed: int) -> list[int]:
        head = [progress.ctypes.data, self.threads, int(self.each), self.spins, self.yields, self.delay, seed, 0]
        assert len(head) == _HEAD
        return head


@dataclass(frozen=True)
class Cells:
    """The cells of one location: one for each instance.

    Instance i has cell ``(i * factor + shift) mod count``, and cells are ``spacing`` bytes apart.

    Attributes:
        values: shape (count,), a strided view.
        factor: odd, so that no two instances share a cell.
    """

    values: Array
    spacing: int
    factor: int
    shift: int

    @classmethod
    def make(cls, count: int, dtype: str, spacing: int, factor: int = 1, shift: int = 0) -> Cells:
        """``count`` is a power of two, ``spacing`` a power of two and at least the size of the dtype."""
        step = spacing // np.dtype(dtype).itemsize
        raw = np.zeros(count * spacing + PROGRESS_SPACING, np.uint8)
        start = -raw.ctypes.data % PROGRESS_SPACING
        return cls(raw[start : start + count * spacing].view(dtype)[::step], spacing, factor | 1, shift)

    @property
    def order(self) -> Array:
        """shape (count,): the cell of each instance."""
        return (np.arange(len(self.values), dtype=np.int64) * self.factor + self.shift) & (len(self.values) - 1)

    def words(self) -> list[int]:
        return [self.values.ctypes.data, self.factor, self.shift, self.spacing]


def progress_counters(threads: int) -> Array:
    """Where the threads say how far they are: shape (threads, 16) of i64, one row each."""
    raw = np.zeros((threads + 1) * PROGRESS_SPACING, np.uint8)
    start = -raw.ctypes.data % PROGRESS_SPACING
    counters: Array = raw[start : start + threads * PROGRESS_SPACING].view(np.int64).reshape(threads, -1)
    return counters


def context(meeting: Meeting, progress: Array, seed: int, cells: Sequence[Cells], registers: Sequence[Array]) -> Array:
    """The context of one thread: i64 words. ``registers`` are its outputs, shape (count,) each."""
    words = meeting.words(progress, seed)
    for location in cells:
        words += location.words()
    words += [array.ctypes.data for array in registers]
    return np.array(words, np.int64)


def loop(thread: int, locations: int, registers: Sequence[int]) -> str:
    """The function ``runT``; ``registers`` are the widths of the outputs in bits."""
    lines = [f"define void @run{thread}(i64 %n, ptr %context) {{", "entry:"]
    heads = ("progress", "threads", "each", "spins", "yields", "mask", "seed", "unused")
    for position, name in enumerate(heads):
        lines += _word(name, position, "ptr" if name == "progress" else "i64")
    for place in range(locations):
        at = _HEAD + place * _PER_LOCATION
        for offset, name in enumerate(("base", "factor", "shift", "spacing")):
            lines += _word(f"{name}{place}", at + offset, "ptr" if name == "base" else "i64")
    for register in range(len(registers)):
        lines += _word(f"out{register}", _HEAD + locations * _PER_LOCATION + register, "ptr")
    lines += [
        "  %last = sub i64 %n, 1",
        "  %patient = mul i64 %spins, 64",
        f"  call void @meet(ptr %progress, i64 {thread}, i64 %threads, i64 1, i64 %patient, i64 %yields)",
        "  %some = icmp sgt i64 %n, 0",
        "  br i1 %some, label %body, label %done",
        "body:",
        "  %i = phi i64 [ 0, %entry ], [ %following, %after ]",
        "  %meets = icmp ne i64 %each, 0",
        "  br i1 %meets, label %meeting, label %alone",
        "meeting:",
        "  %turn = add i64 %i, 2",
        f"  call void @meet(ptr %progress, i64 {thread}, i64 %threads, i64 %turn, i64 %spins, i64 %yields)",
        "  br label %alone",
        "alone:",
        "  call void @delay(ptr %progress, i64 %i, i64 %seed, i64 %mask)",
    ]
    arguments = []
    for place in range(locations):
        lines += [
            f"  %scaled{place} = mul i64 %i, %factor{place}",
            f"  %moved{place} = add i64 %scaled{place}, %shift{place}",
            f"  %index{place} = and i64 %moved{place}, %last",
            f"  %offset{place} = mul i64 %index{place}, %spacing{place}",
            f"  %cell{place} = getelementptr i8, ptr %base{place}, i64 %offset{place}",
        ]
        arguments.append(f"ptr %cell{place}")
    for register, width in enumerate(registers):
        lines.append(f"  %to{register} = getelementptr i{width}, ptr %out{register}, i64 %i")
        arguments.append(f"ptr %to{register}")
    lines += [
        f"  call void @thread{thread}({', '.join(arguments)})",
        "  br label %after",
        "after:",
        "  %following = add i64 %i, 1",
        "  %more = icmp slt i64 %following, %n",
        "  br i1 %more, label %body, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _word(name: str, position: int, type_: str) -> list[str]:
    return [
        f"  %at_{name} = getelementptr i64, ptr %context, i64 {position}",
        f"  %{name} = load {type_}, ptr %at_{name}, align 8",
    ]
