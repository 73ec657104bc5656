"""Contests on this machine's processors: threads that update one location, again and again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from halfulp.adapters.protocol import Contest, ContestRun, LitmusOptions
from halfulp.backends.common.litmus_check import NUMPY, check_contest
from halfulp.backends.cpu import jit
from halfulp.backends.cpu.ir import Code, Reg
from halfulp.backends.cpu.litmus_lower import Accesses, AccessesOf
from halfulp.backends.cpu.litmus_native import SUPPORT, Cells, progress_counters
from halfulp.backends.cpu.litmus_threads import Rounds, in_threads, processors


def contest_code(kind: str, dtype: str, order: str, accesses: AccessesOf = Accesses) -> str:
    """``contest(n, context)``: n operations of one thread on one cell.

    The context has the addresses of the cell, the operands, the old values, the flags and the progress counters, then
    the number of the thread and of all, spins, yields, and the initial value.
    """
    lower = accesses(dtype)
    value = lower.type
    code = Code()
    heads = ("cell", "operands", "olds", "flags", "progress", "me", "threads", "spins", "yields", "initial")
    lines = ["define void @contest(i64 %n, ptr %context) {", "entry:"]
    for position, name in enumerate(heads):
        type_ = "ptr" if position < 5 else value if name == "initial" else "i64"
        lines += [f"  %at_{name} = getelementptr i64, ptr %context, i64 {position}"]
        lines += [f"  %{name} = load {type_}, ptr %at_{name}, align 8"]
    lines += [
        "  call void @meet(ptr %progress, i64 %me, i64 %threads, i64 1, i64 %spins, i64 %yields)",
        "  %some = icmp sgt i64 %n, 0",
        "  br i1 %some, label %body, label %done",
        "body:",
        "  %i = phi i64 [ 0, %entry ], [ %following, %after ]",
        f"  %last = phi {value} [ %initial, %entry ], [ %known, %after ]",
        f"  %from = getelementptr {value}, ptr %operands, i64 %i",
        f"  %to = getelementptr {value}, ptr %olds, i64 %i",
        f"  %operand = load {value}, ptr %from",
        "  br label %operation",
        "operation:",
    ]
    cell, operand = Reg("ptr", "%cell"), Reg(value, "%operand")
    known = Reg(value, "%last")
    if kind == "cas":
        old, success = lower.cas(code, cell, Reg(value, "%last"), operand, order)
        known = code.select(success, operand, old)
        flag = code.convert("zext", success, "i8")
        at = code.emit("ptr", "getelementptr i8, ptr %flags, i64 %i")
        code.lines.append(f"  store {flag}, {at}")
    else:
        old = lower.rmw(code, kind, cell, operand, order)
    code.lines.append(f"  store {old}, ptr %to")
    lines += code.lines
    lines += [
        "  br label %after",
        "after:",
        f"  %known = select i1 true, {known}, {known}",
        "  %following = add i64 %i, 1",
        "  %more = icmp slt i64 %following, %n",
        "  br i1 %more, label %body, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join((SUPPORT, *lines))


class ContestCode:
    """A compiled contest.

    Raises:
        TypeRefusal, NotOffered: the operation is ill-typed, or not of this backend.
    """

    def __init__(self, kind: str, dtype: str, order: str, opt_level: int, accesses: AccessesOf = Accesses) -> None:
        check_contest(kind, dtype, order)
        self.dtype = dtype
        self._library = jit.Library(contest_code(kind, dtype, order, accesses), opt_level)
        self._function = self._library.function("contest", 1)

    def run(self, contest: Contest, options: LitmusOptions) -> ContestRun:
        threads = len(contest.operands)
        dtype = np.dtype(NUMPY[self.dtype])
        cell = Cells.make(1, dtype.str, 64)
        cell.values[:] = contest.initial
        operands = [np.ascontiguousarray(array, dtype) for array in contest.operands]
        olds = [np.zeros(len(array), dtype) for array in operands]
        flags = [np.zeros(len(array), np.uint8) for array in operands]
        progress = progress_counters(threads)
        places = processors(options.placement, threads, options.seed)
        words = []
        for number in range(threads):
            pointers = [cell.values, operands[number], olds[number], flags[number], progress]
            numbers = [number, threads, 100_000, 2 * threads, int(np.array(contest.initial, dtype).astype(np.int64))]
            words.append(np.array([*(array.ctypes.data for array in pointers), *numbers], np.int64))
        works = [self._work(len(array), word.ctypes.data) for array, word in zip(operands, words, strict=True)]
        rounds = [1]
        took: list[float] = []
        in_threads(works, places, Rounds(lambda: bool(rounds and rounds.pop()), took.append))
        successes = tuple(array != 0 for array in flags) if contest.kind == "cas" else ()
        return ContestRun(tuple(olds), successes, int(cell.values[0]), took[0])

    def _work(self, n: int, address: int) -> Callable[[], None]:
        return lambda: self._function(n, address)


@lru_cache(64)
def compiled_contest(kind: str, dtype: str, order: str, opt_level: int, accesses: AccessesOf = Accesses) -> ContestCode:
    """`ContestCode`, kept likewise."""
    return ContestCode(kind, dtype, order, opt_level, accesses)
