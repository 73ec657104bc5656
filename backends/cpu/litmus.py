"""Litmus programs and contests on this machine's processors: LLVM atomics in threads of the operating system."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import llvmlite.binding as llvm
import numpy as np

from halfulp.adapters.protocol import Array, Contest, ContestRun, LitmusOptions, LitmusRun
from halfulp.backends.common.litmus_check import check_contest, check_program
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cpu import jit
from halfulp.backends.cpu.ir import Code, Operand, Reg, constant
from halfulp.backends.cpu.litmus_lower import Accesses
from halfulp.backends.cpu.litmus_native import SUPPORT, Cells, Meeting, context, loop, progress_counters
from halfulp.oracle.memory.program import Cas, If, Instruction, Load, Outcome, Program, Rmw, Store

ROUND = 1 << 14
"""Instances of one round: their cells fit into the second-level cache of most machines."""

NUMPY = {"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "bool": "u1"}
"""Arrays of values; a success flag takes a byte."""

_SMALL = 16
"""Values from 0 to 15 are counted by one table look-up for each instance."""

AccessesOf = Callable[[str], Accesses]
"""How the accesses to locations of a dtype are lowered."""


def lowering(dtype: str) -> Accesses:
    return Accesses(SCALARS[dtype])


@dataclass(frozen=True)
class Registers:
    """The registers of one thread that are observed: names as in outcomes, and dtypes."""

    names: tuple[str, ...]
    dtypes: tuple[str, ...]


class ThreadCode:
    """One thread of a program, as a function of one instance."""

    def __init__(self, program: Program, number: int, accesses: AccessesOf) -> None:
        self._program = program
        self._accesses = accesses
        self._cells = {
            location.name: Reg("ptr", f"%cell{place}.{_plain(location.name)}")
            for place, location in enumerate(program.locations)
        }
        self._code = Code()
        self._labels = 0
        self._dtypes: dict[str, str] = {}
        values = self._run(program.threads[number], {})
        observed = [name for name in program.observe if name.startswith(f"{number}:")]
        self.registers = Registers(tuple(observed), tuple(self._dtypes[name.partition(":")[2]] for name in observed))
        outputs = [Reg("ptr", f"%to{place}") for place in range(len(observed))]
        for name, dtype, output in zip(observed, self.registers.dtypes, outputs, strict=True):
            value = values.get(name.partition(":")[2], self._zero(dtype))
            if dtype == "bool":
                value = self._code.convert("zext", value, "i8")
            self._code.lines.append(f"  store {value}, {output}")
        parameters = ", ".join(map(str, (*self._cells.values(), *outputs)))
        body = "\n".join(self._code.lines)
        self.text = f"define void @thread{number}({parameters}) alwaysinline {{\nentry:\n{body}\n  ret void\n}}\n"

    def _run(self, block: Sequence[Instruction], values: dict[str, Reg]) -> dict[str, Reg]:
        """Append a block; the registers after it."""
        for instruction in block:
            match instruction:
                case Load():
                    accesses, cell = self._at(instruction.location)
                    if instruction.order is None:
                        value = accesses.plain_load(self._code, cell)
                    else:
                        value = accesses.load(self._code, cell, instruction.order)
                    self._write(values, instruction.register, value, accesses.dtype.name)
                case Store():
                    accesses, cell = self._at(instruction.location)
                    if instruction.order is None:
                        accesses.plain_store(self._code, cell, _operand(instruction.value, values))
                    else:
                        accesses.store(self._code, cell, _operand(instruction.value, values), instruction.order)
                case Rmw():
                    accesses, cell = self._at(instruction.location)
                    operand = _operand(instruction.value, values)
                    value = accesses.rmw(self._code, instruction.kind, cell, operand, instruction.order)
                    self._write(values, instruction.register, value, accesses.dtype.name)
                case Cas():
                    accesses, cell = self._at(instruction.location)
                    expected, desired = (_operand(v, values) for v in (instruction.expected, instruction.desired))
                    value, success = accesses.cas(self._code, cell, expected, desired, instruction.order)
                    self._write(values, instruction.register, value, accesses.dtype.name)
                    self._write(values, instruction.success, success, "bool")
                case If():
                    values = self._branch(instruction, values)
        return values

    def _at(self, location: str) -> tuple[Accesses, Reg]:
        return self._accesses(self._program.location(location).dtype), self._cells[location]

    def _write(self, values: dict[str, Reg], register: str | None, value: Reg, dtype: str) -> None:
        if register:
            values[register] = value
            self._dtypes[register] = dtype

    def _branch(self, instruction: If, values: dict[str, Reg]) -> dict[str, Reg]:
        code = self._code
        self._labels += 1
        then, otherwise, after = (f"{name}{self._labels}" for name in ("then", "else", "after"))
        equal = code.icmp("eq", values[instruction.register], instruction.equals)
        code.lines.append(f"  br {equal}, label %{then}, label %{otherwise}")
        ends: list[tuple[str, dict[str, Reg]]] = []
        for label, block in ((then, instruction.then), (otherwise, instruction.otherwise)):
            self._start(label)
            left = self._run(block, dict(values))
            ends.append((self._current_block(), left))
            code.lines.append(f"  br label %{after}")
        self._start(after)
        joined: dict[str, Reg] = {}
        for name in dict.fromkeys((*ends[0][1], *ends[1][1])):
            zero = self._zero(self._dtypes[name])
            (first_label, first), (second_label, second) = ((label, left.get(name, zero)) for label, left in ends)
            if first == second:
                joined[name] = first
            else:
                arms = f"[ {first.name}, %{first_label} ], [ {second.name}, %{second_label} ]"
                joined[name] = code.emit(first.type, f"phi {first.type} {arms}")
        return joined

    def _start(self, label: str) -> None:
        self._code.lines.append(f"{label}:")

    def _current_block(self) -> str:
        """The label of the block that is being written."""
        return next((line[:-1] for line in reversed(self._code.lines) if line.endswith(":")), "entry")

    def _zero(self, dtype: str) -> Reg:
        return constant(SCALARS[dtype].register, 0)


def _operand(operand: int | str, values: Mapping[str, Reg]) -> Operand:
    return values[operand] if isinstance(operand, str) else operand


def _plain(name: str) -> str:
    """A location's name with only what LLVM admits in a name."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def thread_codes(program: Program, accesses: AccessesOf = lowering) -> list[ThreadCode]:
    """The threads as functions.

    Raises:
        TypeRefusal: an access is ill-typed.
        NotOffered: a location has a dtype on which this backend has no atomics.
    """
    check_program(program)
    return [ThreadCode(program, number, accesses) for number in range(len(program.threads))]


def artifact(program: Program, opt_level: int, accesses: AccessesOf = lowering) -> str:
    """The threads of a program as LLVM IR, optimised for the level."""
    text = "\n".join(code.text for code in thread_codes(program, accesses))
    return str(jit.optimise(text, opt_level, llvm.create_context()))


# Placement.


def processors(placement: str, threads: int, seed: int) -> list[int | None]:
    """The processor of each thread; None where the system chooses.

    With fewer processors than threads, several share one: not with neighbours in the program, as far as possible.
    """
    if placement == "free" or not hasattr(os, "sched_setaffinity"):
        return [None] * threads
    there = sorted(os.sched_getaffinity(0))
    if placement == "together":
        return [there[seed % len(there)]] * threads
    return [there[(thread + seed) % len(there)] for thread in range(threads)]


def in_threads(works: Sequence[Callable[[], None]], places: Sequence[int | None], rounds: Rounds) -> int:
    """Run each work once a round in a thread of its own, on its processor. How many threads could be pinned.

    ``rounds.prepare`` is called before each round and ``rounds.collect`` after it, while all threads rest. Works must
    not raise.
    """
    gate = threading.Barrier(len(works) + 1)
    pinned = [False] * len(works)

    def worker(number: int) -> None:
        place = places[number]
        if place is not None:
            try:
                os.sched_setaffinity(0, {place})  # of this thread alone
                pinned[number] = True
            except OSError:
                pass
        try:
            while True:
                gate.wait()
                works[number]()
                gate.wait()
        except threading.BrokenBarrierError:
            return

    workers = [threading.Thread(target=worker, args=(number,), daemon=True) for number in range(len(works))]
    for thread in workers:
        thread.start()
    try:
        while rounds.prepare():
            start = time.perf_counter()
            gate.wait()
            gate.wait()
            rounds.collect(time.perf_counter() - start)
    finally:
        gate.abort()
        for thread in workers:
            thread.join()
    return sum(pinned)


@dataclass(frozen=True)
class Rounds:
    """What stands between rounds.

    Attributes:
        prepare: makes everything ready for a round; False where there is no further one.
        collect: called with the seconds that a round took.
    """

    prepare: Callable[[], bool]
    collect: Callable[[float], None]


# Litmus programs.


class Litmus:
    """A compiled litmus program.

    Raises:
        TypeRefusal, NotOffered: see `thread_codes`.
        RuntimeError: LLVM refuses the module.
    """

    def __init__(self, program: Program, opt_level: int, accesses: AccessesOf = lowering) -> None:
        self.program = program
        codes = thread_codes(program, accesses)
        self.registers = [code.registers for code in codes]
        places = len(program.locations)
        parts = [SUPPORT]
        for number, code in enumerate(codes):
            bits = [8 * np.dtype(NUMPY[dtype]).itemsize for dtype in code.registers.dtypes]
            parts += [code.text, loop(number, places, bits)]
        self._library = jit.Library("\n".join(parts), opt_level)
        self._functions = [self._library.function(f"run{number}", 1) for number in range(len(codes))]

    def run(self, options: LitmusOptions) -> LitmusRun:
        """Run it in threads; see `LitmusOptions`."""
        program, threads = self.program, len(self._functions)
        count = min(ROUND, 1 << max(options.instances - 1, 0).bit_length())
        generator = np.random.Generator(np.random.PCG64(options.seed))
        spacing = max(options.stress.spacing, 8)
        if options.stress.shuffle:
            draws = generator.integers(0, count, (len(program.locations), 2)).tolist()
        else:
            draws = [[1, 0]] * len(program.locations)
        cells = {
            location.name: Cells.make(count, NUMPY[location.dtype], spacing, factor, shift)
            for location, (factor, shift) in zip(program.locations, draws, strict=True)
        }
        orders = {name: cell.order for name, cell in cells.items() if name in program.observe}
        outputs = [[np.zeros(count, NUMPY[dtype]) for dtype in registers.dtypes] for registers in self.registers]
        progress = progress_counters(threads)
        places = processors(options.placement, threads, options.seed)
        # Threads that share a processor gain nothing from watching each other.
        crowded = options.placement == "together" or len(set(places)) < threads or len(os.sched_getaffinity(0)) < 2
        meeting = Meeting(
            threads,
            each=options.synchronisation == "each",
            spins=20 if crowded else 2000,
            yields=2 * threads,
            delay=options.stress.delay,
        )
        contexts = [
            context(meeting, progress, int(generator.integers(1 << 62)), list(cells.values()), arrays)
            for arrays in outputs
        ]
        addresses = [array.ctypes.data for array in contexts]

        def work(number: int) -> Callable[[], None]:
            function, address = self._functions[number], addresses[number]
            return lambda: function(count, address)

        tally = Counter(program.observe)
        observed = {
            name: array
            for registers, arrays in zip(self.registers, outputs, strict=True)
            for name, array in zip(registers.names, arrays, strict=True)
        }
        left = -(-options.instances // count)
        seconds = 0.0

        def prepare() -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                return False
            progress[:] = 0
            for location in program.locations:
                cells[location.name].values[:] = location.initial
            return True

        def collect(took: float) -> None:
            nonlocal seconds
            seconds += took
            final = {name: cells[name].values[order] for name, order in orders.items()}
            tally.add(count, [observed[name] if name in observed else final[name] for name in program.observe])

        pinned = in_threads([work(number) for number in range(threads)], places, Rounds(prepare, collect))
        notes = {"threads": str(threads), "pinned": str(pinned), "processors": str(len(os.sched_getaffinity(0)))}
        return LitmusRun(tally.histogram(), seconds, notes)


class Counter:
    """Counts outcomes. ``names`` are those of the columns that it is given."""

    def __init__(self, names: Sequence[str]) -> None:
        self.order = sorted(range(len(names)), key=lambda at: names[at])
        self.names = [names[at] for at in self.order]
        self.counts: dict[tuple[int, ...], int] = {}

    def add(self, n: int, columns: Sequence[Array]) -> None:
        """Arrays of shape (n,), one for each name in the order given."""
        columns = [columns[at] for at in self.order]
        domains: list[Array] = []
        codes = np.zeros(n, np.int64)
        for column in columns:
            if column.max() < _SMALL and column.min() >= 0:
                domain, digits = np.arange(int(column.max()) + 1), column
            else:
                domain, digits = np.unique(column, return_inverse=True)
            codes *= len(domain)
            codes += digits.astype(np.int64, copy=False)
            domains.append(domain)
        size = int(np.prod([len(domain) for domain in domains], dtype=np.float64))
        if size <= 4 * n:
            counts = np.bincount(codes, minlength=1)
            found = np.flatnonzero(counts)
            counts = counts[found]
        else:
            found, counts = np.unique(codes, return_counts=True)
        for number, count in zip(found.tolist(), counts.tolist(), strict=True):
            values: list[int] = []
            for domain in reversed(domains):
                number, digit = divmod(number, len(domain))
                values.append(int(domain[digit]))
            outcome = tuple(reversed(values))
            self.counts[outcome] = self.counts.get(outcome, 0) + count

    def histogram(self) -> dict[Outcome, int]:
        return {tuple(zip(self.names, values, strict=True)): count for values, count in sorted(self.counts.items())}


# Contests.


def contest_code(kind: str, dtype: str, order: str, accesses: AccessesOf = lowering) -> str:
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

    def __init__(self, kind: str, dtype: str, order: str, opt_level: int, accesses: AccessesOf = lowering) -> None:
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
def compiled(program: Program, opt_level: int, accesses: AccessesOf = lowering) -> Litmus:
    """`Litmus`, kept for the next run of the same program."""
    return Litmus(program, opt_level, accesses)


@lru_cache(64)
def compiled_contest(kind: str, dtype: str, order: str, opt_level: int, accesses: AccessesOf = lowering) -> ContestCode:
    """`ContestCode`, kept likewise."""
    return ContestCode(kind, dtype, order, opt_level, accesses)
