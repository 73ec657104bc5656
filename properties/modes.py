"""Modes: one operation, written in the ways in which compilers treat it differently.

A mode is a rewrite of the kernel, and an adapter knows nothing of it. ``array`` is the kernel itself. In ``scalar<i>``
operand i has rank 0 and is broadcast. In ``const<i>`` operand i is known at compile time: many constants stand in one
straight-line program, each a *lane* with an output of its own, so that one compilation folds them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.oracle.formats import Bits
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Type, Value, rebuild


def input_positions(kernel: Kernel) -> list[int]:
    """Where the inputs of a kernel stand among its values, in the order in which they are passed."""
    return [at for at, value in enumerate(kernel.values) if isinstance(value, Input)]


def with_scalar(kernel: Kernel, operand: int) -> Kernel:
    """The kernel with one input of rank 0."""
    place = input_positions(kernel)[operand]

    def replace(at: int, value: Value) -> Value | None:
        return Input(Type(value.type.dtype, SCALAR)) if at == place and isinstance(value, Input) else None

    return rebuild(kernel, replace)


def with_constant(kernel: Kernel, operand: int, code: int) -> Kernel:
    """The kernel with one input replaced by a constant."""
    return with_constants(kernel, operand, [code])


def with_constants(kernel: Kernel, operand: int, codes: Sequence[int] | Bits) -> Kernel:
    """One lane for each code that the input takes: the kernel's operations once per lane, its other inputs shared.

    The outputs are those of the first lane, then those of the second, and so on.
    """
    place = input_positions(kernel)[operand]
    values: list[Value] = []
    moved: dict[int, int] = {}
    for at, value in enumerate(kernel.values):
        if not isinstance(value, Apply) and at != place:
            moved[at] = len(values)
            values.append(value)
    dtype = kernel.type_of(place).dtype
    outputs: list[int] = []
    for code in codes:
        lane = dict(moved)
        lane[place] = len(values)
        values.append(Constant(dtype, int(code)))
        for at, value in enumerate(kernel.values):
            if isinstance(value, Apply):
                lane[at] = len(values)
                values.append(Apply(value.op, tuple(lane[arg] for arg in value.args), value.dtype, value.attrs))
        outputs.extend(lane[at] for at in kernel.outputs)
    return Kernel(tuple(values), tuple(outputs))
