"""What each operation is, on values that stand in registers.

A target's subclass says what it computes with means of its own: the functions, and the approximate operations. A
compiler with another rule overrides exactly one method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from halfulp.backends.common import lower_cast, lower_float, lower_int, lower_math, lower_random
from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Code, Reg
from halfulp.backends.common.lower_cast import F32, F64, narrow, widen
from halfulp.backends.common.types import Scalar


class Lowering(ABC):
    """How a target computes. Values come and go as codes (`types`), unless a method says otherwise."""

    def operation(
        self, code: Code, op: str, operands: Sequence[Scalar], result: Scalar, mode: Mode, args: Sequence[Reg]
    ) -> Reg:
        """A checked operation, or one of ``lower_float.FUSED``.

        Args:
            operands, result: its types.
            mode: an approximate operation is one of its own (``intent:5.1-j``).
            args: its operands.
        """
        first = operands[0]
        if op in ("cast", "cast_saturate"):
            return self.cast(code, args[0], first, result, saturate=op == "cast_saturate")
        if op == "bitcast":
            return args[0]
        if op == "select":
            return code.select(args[0], args[1], args[2])
        if op == "fdiv":
            if mode:
                a, b = (widen(code, arg, F32) for arg in args)
                return code.convert("bitcast", self.divide(code, a, b, mode), "i32")
            op = "div"
        if op in lower_math.FUNCTIONS:
            return self._function(code, op, first, args[0], mode)
        if op in lower_random.OPERATIONS:
            return lower_random.lower(code, op, args[0], args[1])
        if first.is_float:
            return self.arithmetic(code, op, first, args)
        return lower_int.lower(code, op, first, args)

    def cast(self, code: Code, x: Reg, source: Scalar, target: Scalar, *, saturate: bool) -> Reg:
        """``cast`` and ``cast_saturate``."""
        return lower_cast.lower(code, x, source, target, saturate=saturate)

    def arithmetic(self, code: Code, op: str, dtype: Scalar, args: Sequence[Reg]) -> Reg:
        """What else there is on floats; comparisons give ``i1``."""
        return lower_float.lower(code, op, dtype, args)

    def _function(self, code: Code, op: str, dtype: Scalar, x: Reg, mode: Mode) -> Reg:
        """A function. The narrow formats are computed in f32 and rounded once more (``intent:5-h``)."""
        if dtype is F64:
            return code.convert("bitcast", self.function(code, op, code.convert("bitcast", x, "double"), mode), "i64")
        bits = code.convert("bitcast", self.function(code, op, widen(code, x, dtype), mode), "i32")
        return bits if dtype is F32 else narrow(code, bits, F32, dtype)

    @abstractmethod
    def function(self, code: Code, op: str, x: Reg, mode: Mode) -> Reg:
        """One of ``lower_math.FUNCTIONS``, of a ``float`` or a ``double``; in a mode of ``float`` alone."""

    @abstractmethod
    def divide(self, code: Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        """``fdiv`` in an approximate mode, of two ``float``."""
