"""Writing kernels down."""

from __future__ import annotations

from dataclasses import dataclass, field

from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import SCALAR, VECTOR, Apply, Constant, Input, Kernel, Type, Value
from halfulp.oracle.ops.record import Attrs

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass
class Builder:
    """Collects the values of a kernel; every method returns a position."""

    values: list[Value] = field(default_factory=list)

    def dtype(self, position: int) -> str:
        value = self.values[position]
        return value.dtype if isinstance(value, Apply) else value.type.dtype

    def _add(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def input(self, dtype: str, *, scalar: bool = False) -> int:
        return self._add(Input(Type(dtype, SCALAR if scalar else VECTOR)))

    def constant(self, dtype: str, bits: int) -> int:
        return self._add(Constant(dtype, bits))

    def number(self, dtype: str, value: float) -> int:
        """A constant that the dtype holds exactly: a small integer, or a small power of two for floats."""
        fmt = format_of(dtype)
        if not fmt.is_float:
            return self.constant(dtype, int(value) % fmt.code_count)
        sign = fmt.sign_mask if value < 0 or (value == 0 and str(value)[0] == "-") else 0
        mantissa, exponent = abs(value), 0
        if mantissa == 0:
            return self.constant(dtype, sign)
        while mantissa >= 2:
            mantissa, exponent = mantissa / 2, exponent + 1
        while mantissa < 1:
            mantissa, exponent = mantissa * 2, exponent - 1
        fraction = (mantissa - 1) * (1 << fmt.fraction_bits)
        if fraction != int(fraction) or not fmt.emin <= exponent <= fmt.max_exponent:
            raise ValueError(f"{dtype} does not hold {value} as a normal number")
        return self.constant(dtype, sign | (exponent + fmt.bias) << fmt.fraction_bits | int(fraction))

    def apply(self, op: str, *args: int, attrs: Attrs = ()) -> int:
        """An operation whose result has the dtype of its last operand, or is bool for a comparison."""
        result = "bool" if op in COMPARISONS else self.dtype(args[-1])
        return self._add(Apply(op, args, result, attrs))

    def random(self, op: str, seed: int, counter: int) -> int:
        return self._add(Apply(op, (seed, counter), "u32" if op == "random_bits" else "f32"))

    def convert(self, op: str, position: int, dtype: str) -> int:
        return self._add(Apply(op, (position,), dtype))

    def cast(self, position: int, dtype: str) -> int:
        return self.convert("cast", position, dtype)

    def kernel(self, *outputs: int) -> Kernel:
        """The kernel of these outputs, without the values that none of them depends on."""
        needed = set(outputs)
        for position in range(len(self.values) - 1, -1, -1):
            value = self.values[position]
            if position in needed and isinstance(value, Apply):
                needed |= set(value.args)
        moved: dict[int, int] = {}
        values: list[Value] = []
        for position in sorted(needed):
            value = self.values[position]
            if isinstance(value, Apply):
                value = Apply(value.op, tuple(moved[arg] for arg in value.args), value.dtype, value.attrs)
            moved[position] = len(values)
            values.append(value)
        return Kernel(tuple(values), tuple(moved[output] for output in outputs))
