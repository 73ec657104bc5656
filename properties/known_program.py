"""The record of a known program, and how it is put on trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.kernel import Kernel
from halfulp.properties.build import Builder
from halfulp.properties.plan import Plan, generator
from halfulp.properties.programs import Subject, program_inputs

Write = Callable[[Builder, str], "tuple[int, ...] | int"]
Draw = Callable[[Kernel, np.random.Generator, int], tuple[Bits, ...]]


@dataclass(frozen=True)
class Known:
    """One program, in several dtypes.

    Attributes:
        name: what is done, as an id: ``"product-plus"``.
        clause: what a wrong result breaks.
        dtypes: the dtypes it is written in.
        write: ``write(builder, dtype)`` writes it and returns its outputs.
        draw: ``draw(kernel, rng, count)`` makes its inputs.
    """

    name: str
    clause: str
    dtypes: tuple[str, ...]
    write: Write
    draw: Draw = program_inputs

    @property
    def chapter(self) -> str:
        return self.clause.partition(":")[2].partition("-")[0]

    def kernel(self, dtype: str) -> Kernel:
        builder = Builder()
        outputs = self.write(builder, dtype)
        return builder.kernel(*(outputs if isinstance(outputs, tuple) else (outputs,)))

    def subjects(self, plan: Plan) -> list[Subject]:
        """The program in each dtype, with inputs."""
        count = {"quick": 256, "standard": 2048, "deep": 1 << 15}[plan.depth]
        found = []
        for dtype in self.dtypes:
            kernel = self.kernel(dtype)
            id_ = f"{self.name}[{dtype}]"
            drawn = self.draw(kernel, generator(plan, id_), count)
            found.append(Subject(id_, self.chapter, self.clause, kernel, _with_order(kernel, drawn)))
        return found


def _with_order(kernel: Kernel, inputs: tuple[Bits, ...]) -> tuple[Bits, ...]:
    """Three float operands: first 2**p, 1, 1, whose sum depends on the order, and its mirror image."""
    types = kernel.input_types
    formats = [format_of(type_.dtype) for type_ in types]
    if len(types) != 3 or len({type_.dtype for type_ in types}) != 1 or not formats[0].is_float:
        return inputs
    fmt = formats[0]
    if not all(type_.dims for type_ in types) or fmt.precision > fmt.max_exponent:
        return inputs
    one = fmt.bias << fmt.fraction_bits
    large = one + (fmt.precision << fmt.fraction_bits)
    rows = ((large, one, one), (one, one, large), (large, one, large | fmt.sign_mask))
    heads = [np.array(column, fmt.storage) for column in zip(*rows, strict=True)]
    return tuple(np.concatenate([head, column]) for head, column in zip(heads, inputs, strict=True))


def register(
    programs: list[Known], name: str, clause: str, dtypes: tuple[str, ...], draw: Draw = program_inputs
) -> Callable[[Write], Write]:
    """A decorator that adds the program which a function writes."""

    def add(write: Write) -> Write:
        programs.append(Known(name, f"intent:{clause}", dtypes, write, draw))
        return write

    return add
