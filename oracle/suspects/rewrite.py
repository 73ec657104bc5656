"""Rewriting kernels: how an optimiser that is wrong gets from one program to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Kernel, Value
from halfulp.oracle.suspects.record import KernelRule


class Builder:
    """A new kernel under construction, one value for each value of the old one and more where a rule adds them.

    Attributes:
        kernel: the old kernel.
        values: the new values so far. Positions in rules are positions among these.
        moved: the new position of each old one.
        changed: a rule has replaced something.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.values: list[Value] = []
        self.moved: list[int] = []
        self.changed = False

    def add(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def apply(self, op: str, dtype: str, *args: int) -> int:
        return self.add(Apply(op, args, dtype))

    def constant(self, dtype: str, bits: int) -> int:
        return self.add(Constant(dtype, bits))

    def dtype(self, position: int) -> str:
        value = self.values[position]
        return value.dtype if isinstance(value, Apply) else value.type.dtype

    def is_float(self, position: int) -> bool:
        return format_of(self.dtype(position)).is_float

    def operation(self, position: int, *ops: str) -> Apply | None:
        """The operation at a position if it is one of ``ops``."""
        value = self.values[position]
        return value if isinstance(value, Apply) and value.op in ops else None

    def constant_at(self, position: int) -> Constant | None:
        value = self.values[position]
        return value if isinstance(value, Constant) else None


NodeRule = Callable[[Builder, Apply], "int | None"]
"""Called with each operation, its arguments already moved: the position that takes its place, or None to keep it."""


def rewritten(kernel: Kernel, rule: NodeRule) -> Kernel | None:
    """The kernel after one pass of a rule, or None where the rule finds nothing to do."""
    builder = Builder(kernel)
    for value in kernel.values:
        position: int | None = None
        if isinstance(value, Apply):
            value = Apply(value.op, tuple(builder.moved[arg] for arg in value.args), value.dtype, value.attrs)
            position = rule(builder, value)
            builder.changed = builder.changed or position is not None
        builder.moved.append(builder.add(value) if position is None else position)
    if not builder.changed:
        return None
    return Kernel(tuple(builder.values), tuple(builder.moved[output] for output in kernel.outputs))


def run(kernel: Kernel, replaced: Kernel, inputs: Sequence[Bits]) -> list[Bits]:
    """Evaluate ``replaced`` and give its outputs the shapes that ``kernel`` promises: folding may have lost a dim."""
    length = next((len(bits) for bits in inputs if bits.ndim), 1)
    outputs = []
    for type_, bits in zip(kernel.output_types, evaluate(replaced, inputs), strict=True):
        fits = (bits.ndim == 0) == (type_.dims == SCALAR)
        outputs.append(bits if fits else np.array(np.broadcast_to(bits, (length,))))
    return outputs


def pass_over(rule: NodeRule) -> KernelRule:
    """A suspect's rule: run the kernel as the rule has rewritten it."""

    def kernel_rule(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
        replaced = rewritten(kernel, rule)
        return None if replaced is None else run(kernel, replaced, inputs)

    return kernel_rule
