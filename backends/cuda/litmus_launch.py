"""Launches of a litmus program, and the tables in which the device counts what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from halfulp.backends.common.check import NotOffered
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cuda import litmus_native as native
from halfulp.backends.cuda.driver import Buffer, Function, device
from halfulp.backends.cuda.litmus_knobs import Knobs
from halfulp.backends.cuda.litmus_lower import thread_codes, width_of
from halfulp.backends.cuda.nvrtc import compile_source
from halfulp.oracle.memory.program import Outcome, Program

OPTIONS = ("--minimal",)
"""Of NVRTC: without the parts of C++ that nothing here uses."""


class Workspace:
    """Memory of the device that all programs share."""

    def __init__(self) -> None:
        self.scratch = Buffer(native.SCRATCH)
        self.small = Buffer(native.SMALL * 8)
        self.keys = Buffer(native.SLOTS * 8)
        self.counts = Buffer(native.SLOTS * 8)
        self.values = Buffer(native.HASHED_VALUES * 8)
        self.lost = Buffer(8)
        self.tally = (
            device().load(compile_source(native.tally_source(), arch=device().arch, options=OPTIONS)).function("tally")
        )
        self._arena = Buffer(1 << 26)

    def arena(self, size: int) -> int:
        """The address of at least so many bytes, which hold anything."""
        if size > self._arena.size:
            self._arena.free()
            self._arena = Buffer(size)
        return self._arena.address

    def clear(self) -> None:
        """Forget all counts."""
        for buffer in (self.small, self.keys, self.counts, self.lost):
            buffer.zero()


@cache
def workspace() -> Workspace:
    return Workspace()


class Kernel:
    """A compiled litmus program, and how to read what was counted.

    Attributes:
        function, first: the kernel of its module, and the number of its first thread there.
        names: what is observed, sorted.
        dtypes: of everything observed.
    """

    def __init__(self, program: Program, function: Function, first: int = 0) -> None:
        self.program = program
        self.function = function
        self.first = first
        self.names = sorted(program.observe)
        self.dtypes = dtypes_of(program)

    def histogram(self) -> dict[Outcome, int]:
        """The counts since the tables were cleared.

        Raises:
            NotOffered: there were more different outcomes than the table holds.
        """
        space = workspace()
        found: dict[Outcome, int] = {}
        bits = self.bits
        small = space.small.get(np.uint64, native.SMALL)
        for index in np.flatnonzero(small).tolist():
            digits = [index >> bits * place & (1 << bits) - 1 for place in reversed(range(len(self.names)))]
            found[self._outcome(digits)] = int(small[index])
        keys = space.keys.get(np.uint64, native.SLOTS)
        if keys.any():
            if space.lost.get(np.uint64, 1)[0]:
                raise NotOffered(f"{self.program.name}: more than {native.SLOTS} different outcomes came out")
            counts = space.counts.get(np.uint64, native.SLOTS)
            values = space.values.get(np.uint64, native.HASHED_VALUES).reshape(native.SLOTS, -1)
            for slot in np.flatnonzero(keys).tolist():
                outcome = self._outcome(values[slot, : len(self.names)].tolist())
                found[outcome] = found.get(outcome, 0) + int(counts[slot])
        return dict(sorted(found.items()))

    def _outcome(self, values: Sequence[int]) -> Outcome:
        shown = []
        for name, value in zip(self.names, values, strict=True):
            scalar = SCALARS[self.dtypes[name]]
            shown.append((name, value - (1 << scalar.width) if scalar.signed and value > scalar.max_int else value))
        return tuple(shown)

    @property
    def bits(self) -> int:
        """Bits of a value that is counted by index; 0 where there are too many columns for that."""
        columns = len(self.names)
        most = native.SMALL.bit_length() - 1
        return min(4, most // columns) if 0 < columns <= most else 0


class Launches:
    """Launches of one program with one setting."""

    def __init__(self, kernel: Kernel, knobs: Knobs, placement: str, generator: np.random.Generator) -> None:
        self._kernel = kernel
        self._generator = generator
        self.roles = len(kernel.program.threads)
        self.size = 1 << knobs.size
        chunk = min(knobs.chunk, knobs.size)
        steps = min(knobs.steps, self.size >> chunk)
        block = min(knobs.block, 1 << chunk)
        if placement == "apart":
            blocks = (self.size >> chunk) // steps * self.roles * ((1 << chunk) // block)
        elif placement == "free":
            slots = 64 if self.roles <= 4 else 32
            steps = knobs.steps
            block, blocks = slots * self.roles, self.size // slots // steps
        else:
            steps, block = knobs.steps, 128
            blocks = -(-self.size // (32 // self.roles * 4 * steps))
        self.block = block
        every = knobs.stress_every
        self.grid = blocks + ((blocks - 1) // (every - 1) if every else 0)
        self._shuffle = knobs.shuffle
        self.plan, self.tally = np.zeros((), native.PLAN), np.zeros((), native.TALLY)
        self.plan["first"], self.plan["used"] = kernel.first, self.roles
        self.plan["n"], self.plan["chunk"], self.plan["steps"] = self.size, chunk, steps
        self.plan["rotate"], self.plan["placement"] = knobs.rotate, native.NAMES.index(placement)
        self.plan["only"] = native.MAX_ROLES
        self.plan["stress_every"], self.plan["stress"], self.plan["before"] = every, knobs.stress, knobs.before
        for role in range(self.roles):
            self.plan["roles"][role]["wait"] = knobs.waits[role % len(knobs.waits)]
            self.plan["roles"][role]["jitter"] = knobs.jitter
        self._lay_out(knobs.spacing)
        self._count(False)

    def _lay_out(self, spacing: int) -> None:
        """Where cells and columns are in memory."""
        kernel, space, tally, n = self._kernel, workspace(), self.tally, self.size
        at = 0
        for place, location in enumerate(kernel.program.locations):
            cell = self.plan["cells"][place]
            cell["width"] = SCALARS[location.dtype].width
            cell["spacing"] = max(spacing, int(cell["width"]) // 8)
            cell["initial"] = location.initial & ((1 << int(cell["width"])) - 1)
            cell["factor"], cell["base"] = 1, at
            at += n * int(cell["spacing"])
        for place, name in enumerate(kernel.names):
            if ":" in name:
                width = width_of(kernel.dtypes[name])
                tally["columns"][place] = (at, 0, 1, 0, width // 8, width)
                at += n * width // 8
        base = space.arena(at)
        self.plan["cells"]["base"] += np.uint64(base)
        tally["columns"]["base"] += np.uint64(base)
        self.plan["outs"] = tally["columns"]["base"]
        self.plan["scratch"] = space.scratch.address
        for name in ("small", "keys", "counts", "values", "lost"):
            tally[name] = getattr(space, name).address
        tally["n"], tally["columns_used"], tally["cells_used"] = n, len(kernel.names), len(kernel.program.locations)
        tally["bits"] = kernel.bits
        self._share_cells()

    def _share_cells(self) -> None:
        """The tally looks at the same cells."""
        self.tally["cells"] = self.plan["cells"]
        for place, name in enumerate(self._kernel.names):
            if ":" not in name:
                number = [location.name for location in self._kernel.program.locations].index(name)
                self.tally["columns"][place] = self.plan["cells"][number]

    def _draw(self) -> None:
        """Other pairs of threads, and other cells, for the next launch."""
        draws = self._generator.integers(0, 1 << 31, 2 * (native.MAX_ROLES + native.MAX_CELLS) + 1, dtype=np.uint32)
        roles, cells = self.plan["roles"], self.plan["cells"]
        roles["mul"], roles["add"] = draws[: native.MAX_ROLES] | 1, draws[native.MAX_ROLES : 2 * native.MAX_ROLES]
        if self._shuffle:
            cells["factor"], cells["shift"] = draws[16:24] | 1, draws[24:32]
            self._share_cells()
        self.plan["seed"] = draws[-1]

    def _count(self, count: bool) -> None:
        blocks = min(-(-self.size // 256), 8 * device().processors)
        workspace().tally.launch(blocks, 256, self.tally, np.uint32(count))

    def repeat(self, times: int) -> None:
        """So many launches, each counted."""
        for _ in range(times):
            self._draw()
            self._kernel.function.launch(self.grid, self.block, self.plan)
            self._count(True)

    def in_order(self, order: Sequence[int]) -> None:
        """One launch for each role, one after the other; counted."""
        self._draw()
        for role in order:
            self.plan["only"] = role
            self._kernel.function.launch(self.grid, self.block, self.plan)
        self._count(True)


def dtypes_of(program: Program) -> dict[str, str]:
    """The dtype of everything observed; ``"bool"`` for success flags."""
    found = {location.name: location.dtype for location in program.locations}
    for code in thread_codes(program):
        found |= {one.name: one.dtype for one in code.observed}
    return found
