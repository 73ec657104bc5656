"""Backends that are right, or wrong in exactly one way.

They evaluate kernels with the oracle itself. `ReferenceAdapter` shows that the suite finds nothing where nothing is;
a `Saboteur` shows that it finds what is there.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from halfulp.adapters.protocol import Array, Compiled, Facts, Options, Rejected, Unsupported, UnsupportedError
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import Refused, Undecided
from halfulp.oracle.source import Source
from halfulp.oracle.suspects import SUSPECTS, Suspect, suspect
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


class Saboteur(ReferenceAdapter):
    """A backend with one suspect built in.

    Args:
        name: of the suspect, e.g. ``"round_via_f32"``. That of a suspect of atomics gives the backend which
            `halfulp.certify.saboteur_litmus` makes for it.
        opt_levels: the levels it offers; the fault is the same at each.

    Raises:
        ValueError: there is no such suspect.
    """

    def __new__(cls, name: str, opt_levels: Sequence[int] = (0, 3)) -> Any:
        if name in SUSPECTS:
            return super().__new__(cls)
        atomics = import_module("halfulp.certify.saboteur_litmus").LITMUS_SUSPECTS  # builds on this module
        if name in atomics:
            return atomics[name].make()
        close = difflib.get_close_matches(name, (*SUSPECTS, *atomics), n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"unknown suspect {name!r}{hint} (docs/spec/detection.md lists all of them)")

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
