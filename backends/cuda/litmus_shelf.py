"""Litmus programs and contests, compiled and kept for the next run. Programs are compiled many at a time.

All levels of optimisation are one here. The accesses are written in PTX, which no level changes, and an assembler that
optimises less only puts time between them, in which what they might show is over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from halfulp.backends.common.check import NotOffered, TypeRefusal
from halfulp.backends.common.litmus_check import check_contest
from halfulp.backends.cuda import litmus_native as native
from halfulp.backends.cuda.driver import device
from halfulp.backends.cuda.litmus import Litmus
from halfulp.backends.cuda.litmus_contest import ContestCode
from halfulp.backends.cuda.litmus_launch import OPTIONS, Kernel
from halfulp.backends.cuda.litmus_lower import Accesses, AccessesOf, entries, thread_codes
from halfulp.backends.cuda.nvrtc import compile_source
from halfulp.oracle.memory.program import Program

MOST = (native.MAX_ROLES, native.MAX_CELLS, native.MAX_COLUMNS)
"""Threads, locations and observed values of a program."""

BATCH = 32
"""Programs of one module."""


def check_size(program: Program) -> None:
    """Raises NotOffered where a program is larger than the launches provide for."""
    sizes = (len(program.threads), len(program.locations), len(program.observe))
    if any(size > most for size, most in zip(sizes, MOST, strict=True)):
        raise NotOffered("more than {} threads, {} locations or {} observed values".format(*MOST))


def source(programs: Sequence[Program], accesses: AccessesOf = Accesses) -> str:
    """Programs as one module with the kernel ``litmus``.

    Raises:
        TypeRefusal, NotOffered: one is ill-typed, or not of this backend.
    """
    for program in programs:
        check_size(program)
    return native.launch_source([(program, thread_codes(program, accesses)) for program in programs])


class Shelf:
    """Programs and contests that are compiled already, with one way to lower accesses."""

    def __init__(self, accesses: AccessesOf) -> None:
        self.accesses = accesses
        self._programs: dict[Program, Litmus] = {}
        self._artifacts: dict[tuple[Program, str], str] = {}
        self._contests: dict[tuple[str, str, str], ContestCode] = {}

    @staticmethod
    def of(accesses: AccessesOf) -> Shelf:
        """The one for this way."""
        return _SHELVES.setdefault(accesses, Shelf(accesses))

    def litmus(self, program: Program) -> Litmus:
        """One program, ready to run.

        Raises:
            TypeRefusal, NotOffered: it is ill-typed, or not of this backend.
            DriverMissingError: there is no device.
        """
        if program not in self._programs:
            self._compile([program])
        return self._programs[program]

    def artifact(self, program: Program, arch: str) -> str:
        """The threads of a program as PTX.

        Raises:
            TypeRefusal, NotOffered: it is ill-typed, or not of this backend.
        """
        if (program, arch) not in self._artifacts:
            self._translate([program], arch)
        return self._artifacts[program, arch]

    def prepare(self, programs: Sequence[Program]) -> None:
        """Compile programs together, which is several times faster than one by one."""
        wanted = [one for one in self._offered(programs) if one not in self._programs]
        for start in range(0, len(wanted), BATCH):
            self._compile(wanted[start : start + BATCH])

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

    def _compile(self, programs: Sequence[Program]) -> None:
        text = source(programs, self.accesses)
        module = device().load(compile_source(text, arch=device().arch, options=OPTIONS))
        function = module.function("litmus")
        first = 0
        for program in programs:
            self._programs[program] = Litmus(Kernel(program, function, first))
            first += len(program.threads)

    def _translate(self, programs: Sequence[Program], arch: str) -> None:
        parts = [entries(program, f"litmus{place}_", self.accesses) for place, program in enumerate(programs)]
        text = compile_source("\n".join(parts), arch=arch, ptx=True, options=OPTIONS).decode()
        head, *kernels = re.split(r"(?=^\.visible \.entry )", text, flags=re.MULTILINE)
        for place, program in enumerate(programs):
            name = f"litmus{place}_"
            mine = [kernel for kernel in kernels if kernel.startswith(f".visible .entry {name}")]
            self._artifacts[program, arch] = head + "".join(mine).replace(name, "")

    def contest(self, kind: str, dtype: str, order: str) -> ContestCode:
        """A contest, ready to run.

        Raises: as `litmus`.
        """
        key = (kind, dtype, order)
        if key not in self._contests:
            check_contest(kind, dtype, order)
            text = native.contest_source(kind, dtype, order, self.accesses)
            image = compile_source(text, arch=device().arch, options=OPTIONS)
            self._contests[key] = ContestCode(dtype, device().load(image).function("contest"))
        return self._contests[key]


_SHELVES: dict[AccessesOf, Shelf] = {}
