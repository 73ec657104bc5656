"""The reference with one suspect of values or of typing built in."""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.adapters.protocol import Array, Compiled, Rejected, Unsupported, UnsupportedError
from halfulp.certify.saboteurs.reference import ReferenceAdapter
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source
from halfulp.oracle.suspects import Suspect, suspect


class Saboteur(ReferenceAdapter):
    """A backend with one suspect built in.

    Args:
        name: of the suspect, e.g. ``"round_via_f32"``.
        opt_levels: the levels it offers; the fault is the same at each.

    Raises:
        ValueError: there is no such suspect.
    """

    def __init__(self, name: str, opt_levels: Sequence[int] = (0, 3)) -> None:
        super().__init__(opt_levels)
        self.suspect: Suspect = suspect(name)
        self.name = f"saboteur:{name}"

    def _compile(self, program: Kernel | Source) -> Compiled | Rejected | Unsupported:
        rule = self.suspect.typing_rule
        believed = None if rule is None else rule(program)
        if believed is None:
            return super()._compile(program)
        if believed:
            return _accepted
        return Rejected(f"refused by {self.name}")

    def _program(self, kernel: Kernel) -> Compiled:
        rewrite = self.suspect.kernel_rule

        def call(*inputs: Array) -> Sequence[Array]:
            outputs = None if rewrite is None else rewrite(kernel, inputs)
            return evaluate(kernel, inputs, self.suspect.override) if outputs is None else outputs

        return call


def _accepted(*inputs: Array) -> Sequence[Array]:
    """What an ill-typed program compiles to: it was accepted, which is the fault; there is nothing to compute."""
    raise UnsupportedError("an ill-typed program has no result")
