"""Litmus programs on this machine's processors: LLVM atomics in threads of the operating system."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache

import llvmlite.binding as llvm
import numpy as np

from halfulp.adapters.protocol import Array, LitmusOptions, LitmusRun
from halfulp.backends.common.litmus_check import NUMPY
from halfulp.backends.cpu import jit
from halfulp.backends.cpu.litmus_lower import Accesses, AccessesOf, thread_codes
from halfulp.backends.cpu.litmus_native import SUPPORT, Cells, Meeting, context, loop, progress_counters
from halfulp.backends.cpu.litmus_threads import Rounds, in_threads, processors
from halfulp.oracle.memory.program import Outcome, Program

ROUND = 1 << 14
"""Instances of one round: their cells fit into the second-level cache of most machines."""

_SMALL = 16
"""Values from 0 to 15 are counted by one table look-up for each instance."""


def artifact(program: Program, opt_level: int, accesses: AccessesOf = Accesses) -> str:
    """The threads of a program as LLVM IR, optimised for the level."""
    text = "\n".join(code.text for code in thread_codes(program, accesses))
    return str(jit.optimise(text, opt_level, llvm.create_context()))


class Litmus:
    """A compiled litmus program.

    Raises:
        TypeRefusal, NotOffered: see `thread_codes`.
        RuntimeError: LLVM refuses the module.
    """

    def __init__(self, program: Program, opt_level: int, accesses: AccessesOf = Accesses) -> None:
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


@lru_cache(64)
def compiled(program: Program, opt_level: int, accesses: AccessesOf = Accesses) -> Litmus:
    """`Litmus`, kept for the next run of the same program."""
    return Litmus(program, opt_level, accesses)
