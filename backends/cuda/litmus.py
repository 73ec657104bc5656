"""Litmus programs and contests on the device: launches of many instances, and what makes them overlap.

Whether roles of one instance meet in time depends on how the grid is laid out, on waits and on other traffic (`Knobs`),
and what serves one program starves another: a release makes writers slower, and readers then come too early. So longer
runs are tuned first: short launches with many settings, of which those are kept that show each outcome of threads one
after the other, and also the outcomes that these do not give. A run reports the shares of both.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice, permutations
from math import log

import numpy as np

from halfulp.adapters.protocol import Contest, ContestRun, LitmusOptions, LitmusRun
from halfulp.backends.common.check import NotOffered, TypeRefusal
from halfulp.backends.common.types import SCALARS
from halfulp.backends.cuda import litmus_native as native
from halfulp.backends.cuda.driver import Buffer, Function, Timer, device
from halfulp.backends.cuda.litmus_lower import DTYPES, ORDERS, Accesses, AccessesOf, entries, thread_codes, width_of
from halfulp.backends.cuda.nvrtc import compile_source
from halfulp.oracle.memory.program import RMW_KINDS, Outcome, Program

TUNED = 1 << 22
"""Runs of at least so many instances are tuned first."""

CANDIDATES, REFINED, KEPT = 48, 24, 4
"""Settings tried at random, then around the best ones; and how many share the run."""

ORDERS_TRIED = 24
"""Orders of the threads of which the outcome is found by running them one after the other."""

MOST = (native.MAX_ROLES, native.MAX_CELLS, native.MAX_COLUMNS)
"""Threads, locations and observed values of a program."""

BATCH = 32
"""Programs of one module."""

NUMPY = {"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8"}


@dataclass(frozen=True)
class Knobs:
    """How a launch is laid out. None of it changes which outcomes are allowed.

    Attributes:
        size: log2 of the instances of a launch.
        chunk: log2 of the instances whose roles are played by blocks next to each other.
        block: threads of a block.
        steps: instances that a thread takes part in, one after the other.
        rotate: a thread plays another role in each step.
        waits: cycles that each role waits first; role r waits ``waits[r % len(waits)]``.
        jitter: cycles that a warp may wait beyond that, at random.
        spacing: bytes between the cells of a location, a power of two; at least the width of the dtype.
        shuffle: cells of neighbouring instances are not neighbours.
        before: reads and writes elsewhere before each step.
        stress_every, stress: of so many blocks one does nothing but so many reads and writes elsewhere; 0: none.
    """

    size: int = 17
    chunk: int = 13
    block: int = 256
    steps: int = 1
    rotate: bool = False
    waits: tuple[int, ...] = (0,)
    jitter: int = 0
    spacing: int = 64
    shuffle: bool = False
    before: int = 0
    stress_every: int = 0
    stress: int = 0


PORTFOLIO: tuple[Knobs, ...] = (
    Knobs(size=15),
    Knobs(size=15, before=8),
    Knobs(size=15, chunk=10, jitter=1000, rotate=True),
    Knobs(size=15, chunk=11, waits=(0, 600, 1200, 1800)),
    Knobs(size=15, chunk=11, waits=(1800, 1200, 600, 0), rotate=True),
    Knobs(size=15, chunk=9, block=128, jitter=3000, stress_every=4, stress=32),
)
"""What short runs take, in turns."""


@dataclass(frozen=True)
class Overlap:
    """How the threads of a run met.

    Attributes:
        sequential: the share of each outcome that threads give which run one after the other.
        interleaved: the share of all other outcomes.
    """

    sequential: Mapping[Outcome, float]
    interleaved: float

    @property
    def balance(self) -> float:
        """The geometric mean of all shares, each taken as at least 1e-5: 0.33 at most with two and the rest."""
        shares = (*self.sequential.values(), self.interleaved)
        return float(np.exp(sum(log(max(share, 1e-5)) for share in shares) / len(shares)))


class Workspace:
    """Memory of the device that all programs share."""

    def __init__(self) -> None:
        self.scratch = Buffer(native.SCRATCH)
        self.small = Buffer(native.SMALL * 8)
        self.keys = Buffer(native.SLOTS * 8)
        self.counts = Buffer(native.SLOTS * 8)
        self.values = Buffer(native.HASHED_VALUES * 8)
        self.lost = Buffer(8)
        self.tally = device().load(compile_source(native.tally_source(), arch=device().arch)).function("tally")
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


class Litmus:
    """A compiled litmus program."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.names = sorted(program.observe)
        self._function = function
        self._dtypes = dtypes_of(program)
        self._tuned: dict[tuple[str, str], list[Knobs]] = {}

    def run(self, options: LitmusOptions) -> LitmusRun:
        """Run it; see `LitmusOptions`. ``stress`` says where short runs begin; longer ones are tuned."""
        if options.instances < TUNED:
            settings = [self._asked(knobs, options) for knobs in PORTFOLIO]
        else:
            key = (options.placement, options.synchronisation)
            if key not in self._tuned:
                self._tuned[key] = self.tune(options)
            settings = self._tuned[key]
        return self.run_with(settings, options)

    def run_with(self, settings: Sequence[Knobs], options: LitmusOptions) -> LitmusRun:
        """Run it with these settings, in turns of as many launches as make the instances."""
        share = -(-options.instances // len(settings))
        generator = np.random.Generator(np.random.PCG64(options.seed))
        space = workspace()
        space.clear()
        start = time.perf_counter()
        for knobs in settings:
            Launches(self, knobs, options.placement, generator).repeat(-(-share // (1 << knobs.size)))
        device().synchronise()
        seconds = time.perf_counter() - start
        histogram = self.histogram()
        overlap = self.overlap(histogram)
        notes = {
            "one after the other": " ".join(f"{share:.2%}" for share in overlap.sequential.values()),
            "interleaved": f"{overlap.interleaved:.2%}",
            "settings": "; ".join(map(str, settings)),
        }
        return LitmusRun(histogram, seconds, notes)

    @staticmethod
    def _asked(knobs: Knobs, options: LitmusOptions) -> Knobs:
        """A setting as far as the options have a say."""
        stress = options.stress
        return replace(
            knobs,
            steps=1 if options.synchronisation == "each" else 4,
            shuffle=stress.shuffle,
            spacing=stress.spacing,
            jitter=knobs.jitter + 32 * stress.delay,
        )

    # What came out.

    def histogram(self) -> dict[Outcome, int]:
        """The counts since the tables were cleared.

        Raises:
            RuntimeError: there were more different outcomes than the table holds.
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
                raise RuntimeError(f"{self.program.name}: more than {native.SLOTS} different outcomes")
            counts = space.counts.get(np.uint64, native.SLOTS)
            values = space.values.get(np.uint64, native.HASHED_VALUES).reshape(native.SLOTS, -1)
            for slot in np.flatnonzero(keys).tolist():
                outcome = self._outcome(values[slot, : len(self.names)].tolist())
                found[outcome] = found.get(outcome, 0) + int(counts[slot])
        return dict(sorted(found.items()))

    def _outcome(self, values: Sequence[int]) -> Outcome:
        shown = []
        for name, value in zip(self.names, values, strict=True):
            scalar = SCALARS[self._dtypes[name]]
            shown.append((name, value - (1 << scalar.width) if scalar.signed and value > scalar.max_int else value))
        return tuple(shown)

    @property
    def bits(self) -> int:
        """Bits of a value that is counted by index; 0 where there are too many columns for that."""
        columns = len(self.names)
        most = native.SMALL.bit_length() - 1
        return min(4, most // columns) if 0 < columns <= most else 0

    @cached_property
    def one_by_one(self) -> tuple[Outcome, ...]:
        """The outcomes of threads that run one after the other: each in a launch of its own, in different orders."""
        found: dict[Outcome, None] = {}
        roles = range(len(self.program.threads))
        launches = Launches(self, Knobs(size=10, chunk=10), "apart", np.random.Generator(np.random.PCG64(0)))
        for order in islice(permutations(roles), ORDERS_TRIED):
            workspace().clear()
            launches.in_order(order)
            found |= dict.fromkeys(self.histogram())
        return tuple(found)

    def overlap(self, histogram: Mapping[Outcome, int]) -> Overlap:
        """How the threads met. Clears the counts the first time it is called."""
        total = max(1, sum(histogram.values()))
        shares = {outcome: histogram.get(outcome, 0) / total for outcome in self.one_by_one}
        return Overlap(shares, max(0.0, 1 - sum(shares.values())))

    # Tuning.

    def trial(self, knobs: Knobs, placement: str, generator: np.random.Generator) -> tuple[dict[Outcome, int], float]:
        """One launch: its histogram, and the seconds that it took on the device."""
        launches = Launches(self, knobs, placement, generator)
        workspace().clear()
        with Timer() as timer:
            launches.repeat(1)
        return self.histogram(), timer.seconds

    def tune(
        self, options: LitmusOptions, score: Callable[[Mapping[Outcome, int], float], float] | None = None
    ) -> list[Knobs]:
        """The best settings, best first.

        Args:
            score: of a histogram and the seconds that it took; by default all outcomes of threads one after the other
                and all others have to be common, and at a high rate.
        """
        generator = np.random.Generator(np.random.PCG64(options.seed))
        score = score or self._score
        self.overlap({})  # before anything is counted
        steps = (1,) if options.synchronisation == "each" else (2, 4, 8)
        roles = len(self.program.threads)
        tried: dict[Knobs, float] = {}

        def attempt(knobs: Knobs) -> None:
            if knobs not in tried:
                histogram, seconds = self.trial(knobs, options.placement, generator)
                tried[knobs] = score(histogram, seconds)

        for _ in range(CANDIDATES):
            attempt(drawn(generator, roles, steps))
        for _ in range(REFINED):
            best = sorted(tried, key=tried.__getitem__, reverse=True)[:KEPT]
            attempt(varied(best[int(generator.integers(len(best)))], generator, roles, steps))
        return sorted(tried, key=tried.__getitem__, reverse=True)[:KEPT]

    def _score(self, histogram: Mapping[Outcome, int], seconds: float) -> float:
        """How balanced the outcomes are, times the square root of the rate."""
        rate = sum(histogram.values()) / max(seconds, 1e-9)
        return self.overlap(histogram).balance * float(np.sqrt(rate))


def drawn(generator: np.random.Generator, roles: int, steps: Sequence[int]) -> Knobs:
    """A setting at random."""

    def one(*choices: int) -> int:
        return int(choices[generator.integers(len(choices))])

    return Knobs(
        size=one(15, 16, 17),
        chunk=one(9, 10, 11, 12, 13, 14, 15),
        block=one(64, 128, 256, 512),
        steps=one(*steps),
        rotate=bool(one(0, 1)),
        waits=tuple(one(0, 0, 100, 200, 400, 800, 1600, 3200) for _ in range(roles)),
        jitter=one(0, 0, 256, 1024, 4096),
        spacing=one(8, 16, 32, 64, 128),
        shuffle=bool(one(0, 1)),
        before=one(0, 0, 4, 16),
        stress_every=(stressed := one(0, 0, 0, 4, 8)),
        stress=one(16, 64) if stressed else 0,
    )


def varied(knobs: Knobs, generator: np.random.Generator, roles: int, steps: Sequence[int]) -> Knobs:
    """The setting with the waits changed by up to a factor of two, and one other knob drawn anew."""
    waits = tuple(int(wait * generator.uniform(0.5, 2) + generator.integers(0, 100)) for wait in knobs.waits)
    fresh = drawn(generator, roles, steps)
    names = ("chunk", "block", "steps", "jitter", "spacing", "before", "size")
    name = names[int(generator.integers(len(names)))]
    return replace(knobs, waits=waits, **{name: getattr(fresh, name)})


class Launches:
    """Launches of one program with one setting."""

    def __init__(self, litmus: Litmus, knobs: Knobs, placement: str, generator: np.random.Generator) -> None:
        self._litmus = litmus
        self._generator = generator
        self.roles = len(litmus.program.threads)
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
        litmus, space, tally, n = self._litmus, workspace(), self.tally, self.size
        at = 0
        for place, location in enumerate(litmus.program.locations):
            cell = self.plan["cells"][place]
            cell["width"] = SCALARS[location.dtype].width
            cell["spacing"] = max(spacing, int(cell["width"]) // 8)
            cell["initial"] = location.initial & ((1 << int(cell["width"])) - 1)
            cell["factor"], cell["base"] = 1, at
            at += n * int(cell["spacing"])
        for place, name in enumerate(litmus.names):
            if ":" in name:
                width = width_of(litmus._dtypes[name])
                tally["columns"][place] = (at, 0, 1, 0, width // 8, width)
                at += n * width // 8
        base = space.arena(at)
        self.plan["cells"]["base"] += np.uint64(base)
        tally["columns"]["base"] += np.uint64(base)
        self.plan["outs"] = tally["columns"]["base"]
        self.plan["scratch"] = space.scratch.address
        for name in ("small", "keys", "counts", "values", "lost"):
            tally[name] = getattr(space, name).address
        tally["n"], tally["columns_used"], tally["cells_used"] = n, len(litmus.names), len(litmus.program.locations)
        tally["bits"] = litmus.bits
        self._share_cells()

    def _share_cells(self) -> None:
        """The tally looks at the same cells."""
        self.tally["cells"] = self.plan["cells"]
        for place, name in enumerate(self._litmus.names):
            if ":" not in name:
                number = [location.name for location in self._litmus.program.locations].index(name)
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
            self._litmus._function.launch(self.grid, self.block, self.plan)
            self._count(True)

    def in_order(self, order: Sequence[int]) -> None:
        """One launch for each role, one after the other; counted."""
        self._draw()
        for role in order:
            self.plan["only"] = role
            self._litmus._function.launch(self.grid, self.block, self.plan)
        self._count(True)


def dtypes_of(program: Program) -> dict[str, str]:
    """The dtype of everything observed; ``"bool"`` for success flags."""
    found = {location.name: location.dtype for location in program.locations}
    for code in thread_codes(program):
        found |= {one.name: one.dtype for one in code.observed}
    return found


def check_size(program: Program) -> None:
    """Raises NotOffered where a program is larger than the launches provide for."""
    sizes = (len(program.threads), len(program.locations), len(program.observe))
    if any(size > most for size, most in zip(sizes, MOST, strict=True)):
        raise NotOffered("more than {} threads, {} locations or {} observed values".format(*MOST))


def source(programs: Sequence[Program], accesses: AccessesOf = Accesses) -> str:
    """Programs as one module of kernels ``litmus0``, ``litmus1``, ...

    Raises:
        TypeRefusal, NotOffered: one is ill-typed, or not of this backend.
    """
    for program in programs:
        check_size(program)
    return native.launch_source(
        [(f"litmus{place}", program, thread_codes(program, accesses)) for place, program in enumerate(programs)]
    )


# Contests.


def check_contest(kind: str, dtype: str, order: str) -> None:
    """Raises TypeRefusal or NotOffered where the operation is ill-typed, or not of this backend."""
    if dtype not in DTYPES:
        raise NotOffered(f"no atomics on {dtype}")
    if kind not in (*RMW_KINDS, "cas"):
        raise NotOffered(f"no read-modify-write {kind}")
    if order not in ORDERS:
        raise TypeRefusal(f"intent:11-e: a read-modify-write has no order {order}")


@dataclass
class ContestCode:
    """A compiled contest."""

    dtype: str
    function: Function

    def run(self, contest: Contest, options: LitmusOptions) -> ContestRun:
        threads = len(contest.operands)
        dtype = np.dtype(NUMPY[self.dtype])
        lengths = [len(array) for array in contest.operands]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
        total = int(offsets[-1])
        sizes = (total * dtype.itemsize, total * dtype.itemsize, total, offsets.nbytes, 8)
        operands, olds, flags, places, cell = map(Buffer, sizes)
        operands.put(np.concatenate([np.asarray(array, dtype) for array in contest.operands]))
        places.put(offsets)
        initial = np.array(contest.initial, dtype)
        cell.put(initial.reshape(1))
        block, spread = _contest_shape(options.placement, threads)
        unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
        grid = -(-threads * spread // block)
        with Timer() as timer:
            self.function.launch(
                grid,
                block,
                operands,
                olds,
                flags,
                places,
                cell,
                initial.view(unsigned),
                np.uint32(threads),
                np.uint32(spread),
            )
        cuts = offsets[1:-1].astype(np.int64)
        found = tuple(np.split(olds.get(dtype, total), cuts))
        successes = tuple(np.split(flags.get(np.uint8, total) != 0, cuts)) if contest.kind == "cas" else ()
        return ContestRun(found, successes, int(cell.get(dtype, 1)[0]), timer.seconds)


def _contest_shape(placement: str, threads: int) -> tuple[int, int]:
    """Threads of a block, and the distance of contestants: in blocks of their own, in warps, or side by side."""
    if placement == "together":
        return 32, 1
    if placement == "free":
        return min(1024, 32 * threads), 32
    return (32, 32) if threads <= 4096 else (256, 1)


# What is compiled is kept for the next run.


class Shelf:
    """Programs and contests that are compiled already, with one way to lower accesses."""

    def __init__(self, accesses: AccessesOf) -> None:
        self.accesses = accesses
        self._programs: dict[tuple[Program, int], Litmus] = {}
        self._artifacts: dict[tuple[Program, str], str] = {}
        self._contests: dict[tuple[str, str, str, int], ContestCode] = {}

    @staticmethod
    def of(accesses: AccessesOf) -> Shelf:
        """The one for this way."""
        return _SHELVES.setdefault(accesses, Shelf(accesses))

    def litmus(self, program: Program, opt_level: int) -> Litmus:
        """One program, ready to run.

        Raises:
            TypeRefusal, NotOffered: it is ill-typed, or not of this backend.
            DriverMissingError: there is no device.
        """
        if (program, opt_level) not in self._programs:
            self._compile([program], opt_level)
        return self._programs[program, opt_level]

    def artifact(self, program: Program, arch: str) -> str:
        """The threads of a program as PTX.

        Raises:
            TypeRefusal, NotOffered: it is ill-typed, or not of this backend.
        """
        if (program, arch) not in self._artifacts:
            self._translate([program], arch)
        return self._artifacts[program, arch]

    def prepare(self, programs: Sequence[Program], opt_level: int) -> None:
        """Compile programs together, which is several times faster than one by one."""
        wanted = [one for one in self._offered(programs) if (one, opt_level) not in self._programs]
        for start in range(0, len(wanted), BATCH):
            self._compile(wanted[start : start + BATCH], opt_level)

    def prepare_artifacts(self, programs: Sequence[Program], arch: str) -> None:
        """Translate programs to PTX together."""
        wanted = [one for one in self._offered(programs) if (one, arch) not in self._artifacts]
        for start in range(0, len(wanted), BATCH):
            self._translate(wanted[start : start + BATCH], arch)

    def _offered(self, programs: Sequence[Program]) -> list[Program]:
        found: dict[Program, None] = {}
        for program in programs:
            try:
                check_size(program)
                thread_codes(program, self.accesses)
                found[program] = None
            except (TypeRefusal, NotOffered):
                continue
        return list(found)

    def _compile(self, programs: Sequence[Program], opt_level: int) -> None:
        text = source(programs, self.accesses)
        module = device().load(compile_source(text, arch=device().arch, ptxas=[f"-O{opt_level}"]))
        for place, program in enumerate(programs):
            self._programs[program, opt_level] = Litmus(program, module.function(f"litmus{place}"))

    def _translate(self, programs: Sequence[Program], arch: str) -> None:
        parts = [entries(program, f"litmus{place}_", self.accesses) for place, program in enumerate(programs)]
        text = compile_source("\n".join(parts), arch=arch, ptx=True).decode()
        head, *kernels = re.split(r"(?=^\.visible \.entry )", text, flags=re.MULTILINE)
        for place, program in enumerate(programs):
            name = f"litmus{place}_"
            mine = [kernel for kernel in kernels if kernel.startswith(f".visible .entry {name}")]
            self._artifacts[program, arch] = head + "".join(mine).replace(name, "")

    def contest(self, kind: str, dtype: str, order: str, opt_level: int) -> ContestCode:
        """A contest, ready to run.

        Raises: as `litmus`.
        """
        key = (kind, dtype, order, opt_level)
        if key not in self._contests:
            check_contest(kind, dtype, order)
            text = native.contest_source(kind, dtype, order, self.accesses)
            image = compile_source(text, arch=device().arch, ptxas=[f"-O{opt_level}"])
            self._contests[key] = ContestCode(dtype, device().load(image).function("contest"))
        return self._contests[key]


_SHELVES: dict[AccessesOf, Shelf] = {}
