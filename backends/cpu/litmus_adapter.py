"""The part of the adapter that runs litmus programs and contests."""

from __future__ import annotations

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
from halfulp.backends.cpu.litmus import artifact, compiled
from halfulp.backends.cpu.litmus_contest import compiled_contest
from halfulp.backends.cpu.litmus_lower import Accesses, AccessesOf
from halfulp.oracle.memory.program import Program


class LitmusMethods:
    """The methods of `HasLitmus`, `HasLitmusArtifact` and `HasContests`.

    Attributes:
        accesses: how accesses are lowered; a backend that is wrong on purpose sets another class.
    """

    accesses: AccessesOf = Accesses

    def run_litmus(self, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported:
        """Run a litmus program; see `halfulp.adapters.protocol.HasLitmus`."""
        return answered(lambda: compiled(program, options.opt_level, self.accesses).run(options))

    def litmus_artifact(self, program: Program, options: Options) -> str:
        """The LLVM IR of a litmus program, optimised for the level; see `HasLitmusArtifact`."""
        try:
            return artifact(program, options.opt_level, self.accesses)
        except (TypeRefusal, NotOffered) as refusal:
            raise UnsupportedError(str(refusal)) from refusal

    def run_contest(self, contest: Contest, options: LitmusOptions) -> ContestRun | Rejected | Unsupported:
        """Run a contest; see `halfulp.adapters.protocol.HasContests`."""

        def run() -> ContestRun:
            code = compiled_contest(contest.kind, contest.dtype, contest.order, options.opt_level, self.accesses)
            return code.run(contest, options)

        return answered(run)
