"""From a checked kernel to instructions: the walk over its values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from halfulp.backends.common.check import Mode, mode_of
from halfulp.backends.common.code import Code, Reg
from halfulp.backends.common.types import SCALARS, Scalar
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel

C = TypeVar("C", bound=Code)
"""The code of a target."""


class Graph(ABC, Generic[C]):
    """One kernel in the making. Pointers are counted from 0: inputs, then outputs.

    Args:
        kernel: checked.
        entry: takes what has rank 0.
        body: takes what is computed once for each element.
        fuse: contract products into sums of f32 and f64 (``intent:5.5-a``).
    """

    def __init__(self, kernel: Kernel, entry: C, body: C, *, fuse: bool) -> None:
        self.kernel = kernel
        self.entry = entry
        self.body = body
        self.fuse = fuse
        self.types = [SCALARS[kernel.type_of(i).dtype] for i in range(len(kernel.values))]
        self.registers: list[Reg] = []

    def build(self) -> None:
        """Append all instructions."""
        pointers = 0
        for position, value in enumerate(self.kernel.values):
            code = self.code(position)
            match value:
                case Input():
                    self.registers.append(self.load(code, self.types[position], pointers))
                    pointers += 1
                case Constant():
                    self.registers.append(code.constant(self.types[position].register, value.bits))
                case Apply():
                    self.registers.append(self._apply(code, position, value))
        for output in self.kernel.outputs:
            self.store(self.code(output), self.types[output], pointers, self.registers[output])
            pointers += 1

    def code(self, position: int) -> C:
        """Where a value is computed."""
        return self.body if self.kernel.type_of(position).dims else self.entry

    @abstractmethod
    def load(self, code: C, dtype: Scalar, pointer: int) -> Reg: ...

    @abstractmethod
    def store(self, code: C, dtype: Scalar, pointer: int, value: Reg) -> None: ...

    @abstractmethod
    def call(
        self, code: C, op: str, operands: tuple[Scalar, ...], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        """An operation, or one of ``lower_float.FUSED``."""

    def _apply(self, code: C, position: int, value: Apply) -> Reg:
        fused = self._fused(value) if self.fuse else None
        op, args = fused or (value.op, value.args)
        operands = tuple(self.types[arg] for arg in args)
        registers = [self.registers[arg] for arg in args]
        return self.call(code, op, operands, self.types[position], mode_of(value.attrs), registers)

    def _fused(self, value: Apply) -> tuple[str, tuple[int, ...]] | None:
        """The multiply-add that a sum or difference with a product becomes.

        Each sum decides for itself, and the product stays what it is for its other users (``intent:5.5-c``).
        """
        if value.op not in ("add", "sub") or not SCALARS[value.dtype].native:
            return None
        left, right = value.args
        product = self.kernel.values[left]
        if isinstance(product, Apply) and product.op == "mul":
            return f"fused_{value.op}", (*product.args, right)
        product = self.kernel.values[right]
        if isinstance(product, Apply) and product.op == "mul":
            return "fused_add" if value.op == "add" else "fused_rsub", (*product.args, left)
        return None
