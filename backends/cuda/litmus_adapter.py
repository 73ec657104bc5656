"""What the CUDA backend offers for atomics: methods for an adapter to inherit."""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.adapters.protocol import (
    Contest,
    ContestRun,
    LitmusOptions,
    LitmusRun,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
)
from halfulp.backends.common.check import NotOffered, TypeRefusal, answered
from halfulp.backends.cuda.litmus_lower import Accesses, AccessesOf, thread_codes
from halfulp.backends.cuda.litmus_shelf import Shelf
from halfulp.backends.cuda.nvrtc import DEFAULT_ARCH
from halfulp.oracle.memory.program import Program

COMPILE_ONLY = "nothing is run: the backend compiles only"


class CudaLitmusMethods:
    """The methods of `HasLitmus`, `HasLitmusArtifact` and `HasContests`.

    Attributes:
        accesses: how accesses are lowered; a backend that is wrong on purpose sets another class.
        compile_only: programs are checked and can be looked at, but not run.
        arch: what the PTX is for.
    """

    accesses: AccessesOf = Accesses
    compile_only: bool = False
    arch: str = DEFAULT_ARCH

    @property
    def _shelf(self) -> Shelf:
        return Shelf.of(self.accesses)

    def prepare_litmus(self, programs: Sequence[Program], options: Options, *, runs: bool) -> None:
        """Compile programs together. Those that cannot be are left for the other methods to explain."""
        if not runs:
            self._shelf.prepare_artifacts(programs, self.arch)
        elif not self.compile_only:
            self._shelf.prepare(programs)

    def run_litmus(self, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported:
        """Run a litmus program; see `halfulp.adapters.protocol.HasLitmus`."""

        def run() -> LitmusRun | Unsupported:
            if self.compile_only:
                thread_codes(program, self.accesses)  # refuses what is ill-typed
                return Unsupported(COMPILE_ONLY)
            return self._shelf.litmus(program).run(options)

        return answered(run)

    def litmus_artifact(self, program: Program, options: Options) -> str:
        """The PTX of a litmus program; see `HasLitmusArtifact`. It is the same at every level."""
        try:
            return self._shelf.artifact(program, self.arch)
        except (TypeRefusal, NotOffered) as refusal:
            raise UnsupportedError(str(refusal)) from refusal

    def run_contest(self, contest: Contest, options: LitmusOptions) -> ContestRun | Rejected | Unsupported:
        """Run a contest; see `halfulp.adapters.protocol.HasContests`."""
        if self.compile_only:
            return Unsupported(COMPILE_ONLY)
        return answered(lambda: self._shelf.contest(contest.kind, contest.dtype, contest.order).run(contest, options))
