"""A backend that is right: it evaluates kernels with the oracle itself.

It shows that the suite finds nothing where nothing is, and is what most saboteurs are made from.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.adapters.protocol import Compiled, Facts, Options, Rejected, Unsupported
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import Refused, Undecided
from halfulp.oracle.source import Source
from halfulp.oracle.typing import check, elaborate


class ReferenceAdapter:
    """Every operation rounded correctly, nothing fused, exactly the programs of the language accepted."""

    name: str = "reference"

    def __init__(self, opt_levels: Sequence[int] = (0, 3)) -> None:
        self.opt_levels: Sequence[int] = tuple(opt_levels)
        self.facts = Facts(flushes_subnormals=False, fuses_multiply_add=False)

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Compiled | Rejected | Unsupported]:
        return [self._compile(program) for program in programs]

    def _compile(self, program: Kernel | Source) -> Compiled | Rejected | Unsupported:
        if isinstance(program, Source):
            elaborated = elaborate(program)
            if isinstance(elaborated, Refused):
                return Rejected(f"{elaborated.clause}: {elaborated.reason}")
            if isinstance(elaborated, Undecided):
                return Unsupported(elaborated.reason)
            program = elaborated
        answer = check(program)
        if isinstance(answer, Refused):
            return Rejected(f"{answer.clause}: {answer.reason}")
        if isinstance(answer, Undecided) and answer.result is None:
            return Unsupported(answer.reason)
        return self._program(program)

    def _program(self, kernel: Kernel) -> Compiled:
        return lambda *inputs: evaluate(kernel, inputs)
