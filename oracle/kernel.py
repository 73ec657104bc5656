"""The kernel: the typed program that a backend runs and the oracle judges.

A kernel is an expression graph in SSA form. Its values stand in a tuple; an argument is the position of an earlier
value. Construction checks the *structure* (positions, arities of the tuple, shapes of constants); whether the program
is well *typed* is a question for a language (``oracle.typing``), so that ill-typed kernels can be given to a backend
that has to refuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from halfulp.oracle.formats import format_of

VECTOR: tuple[str, ...] = ("n",)
"""Dims of a run-time array of any length."""

SCALAR: tuple[str, ...] = ()
"""Dims of a rank-0 value: broadcast against arrays."""


@dataclass(frozen=True)
class Type:
    """What a value is: a scalar format and the dims of the array that holds it.

    ``dims`` is ``("n",)`` for a one-dimensional array of any length and ``()`` for a scalar.
    """

    dtype: str
    dims: tuple[str, ...] = VECTOR

    def __post_init__(self) -> None:
        format_of(self.dtype)


@dataclass(frozen=True)
class Input:
    """A run-time operand. Inputs are passed in the order in which they stand in the kernel."""

    type: Type


@dataclass(frozen=True)
class Constant:
    """A rank-0 value known at compile time, given by its bit pattern."""

    dtype: str
    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.bits < format_of(self.dtype).code_count:
            raise ValueError(f"{self.bits:#x} is not a code of {self.dtype}")

    @property
    def type(self) -> Type:
        return Type(self.dtype, SCALAR)


@dataclass(frozen=True)
class Apply:
    """One operation applied to earlier values.

    Attributes:
        op: operation name, e.g. ``"cast"``.
        args: positions of the operands in ``Kernel.values``.
        dtype: the dtype of the result.
        attrs: compile-time attributes, sorted by name.
    """

    op: str
    args: tuple[int, ...]
    dtype: str
    attrs: tuple[tuple[str, bool | int | str], ...] = ()

    def __post_init__(self) -> None:
        format_of(self.dtype)


Value = Input | Constant | Apply


@dataclass(frozen=True)
class Kernel:
    """An expression graph.

    Attributes:
        values: inputs, constants and operations; an operation refers to earlier positions only.
        outputs: positions of the results, in order. Not empty.

    Raises:
        ValueError: an argument or output is no earlier position, or there is no output.
    """

    values: tuple[Value, ...]
    outputs: tuple[int, ...]
    _dims: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        dims: list[tuple[str, ...]] = []
        for position, value in enumerate(self.values):
            if isinstance(value, Apply):
                for arg in value.args:
                    if not 0 <= arg < position:
                        raise ValueError(f"value {position} ({value.op}) refers to position {arg}")
                dims.append(max((dims[arg] for arg in value.args), key=len, default=SCALAR))
            else:
                dims.append(value.type.dims)
        if not self.outputs:
            raise ValueError("a kernel needs an output")
        for output in self.outputs:
            if not 0 <= output < len(self.values):
                raise ValueError(f"output refers to position {output}")
        object.__setattr__(self, "_dims", tuple(dims))

    def type_of(self, position: int) -> Type:
        """The type of a value. An operation has the dims of its operand of highest rank."""
        value = self.values[position]
        return Type(value.dtype, self._dims[position]) if isinstance(value, Apply) else value.type

    @property
    def input_types(self) -> tuple[Type, ...]:
        return tuple(value.type for value in self.values if isinstance(value, Input))

    @property
    def output_types(self) -> tuple[Type, ...]:
        return tuple(self.type_of(output) for output in self.outputs)

    def __str__(self) -> str:
        """One line per value, as a compiler's listing would show it."""
        lines = []
        for position, value in enumerate(self.values):
            match value:
                case Input():
                    lines.append(f"%{position} = input {value.type.dtype}[{','.join(value.type.dims)}]")
                case Constant():
                    lines.append(f"%{position} = constant {value.dtype} {format_of(value.dtype).hex(value.bits)}")
                case Apply():
                    args = ", ".join(f"%{arg}" for arg in value.args)
                    attrs = "".join(f" {name}={setting}" for name, setting in value.attrs)
                    lines.append(f"%{position} = {value.op} {args} : {value.dtype}{attrs}")
        lines.append("return " + ", ".join(f"%{output}" for output in self.outputs))
        return "\n".join(lines)


def one_node(
    op: str,
    dtypes: Sequence[str],
    result: str,
    *,
    attrs: Mapping[str, bool | int | str] | None = None,
) -> Kernel:
    """The kernel of a single operation on run-time arrays."""
    inputs = tuple(Input(Type(dtype)) for dtype in dtypes)
    node = Apply(op, tuple(range(len(inputs))), result, tuple(sorted((attrs or {}).items())))
    return Kernel((*inputs, node), (len(inputs),))


def rebuild(kernel: Kernel, replace: Callable[[int, Value], Value | None]) -> Kernel:
    """A copy of ``kernel`` with some values replaced in place.

    ``replace`` gets each position and its value and returns the new value, or None to keep the old one. Positions
    stay as they are, so arguments and outputs need no renaming. Every mode (an operand as a scalar or as a
    constant) is such a rewrite.
    """
    values = tuple(replace(i, value) or value for i, value in enumerate(kernel.values))
    return Kernel(values, kernel.outputs)


def to_json(kernel: Kernel) -> dict[str, Any]:
    """The kernel as plain JSON data: the form that the pipe protocol and the vectors use."""
    values: list[dict[str, Any]] = []
    for value in kernel.values:
        match value:
            case Input():
                values.append({"input": value.type.dtype, "dims": list(value.type.dims)})
            case Constant():
                values.append({"constant": value.dtype, "bits": format_of(value.dtype).hex(value.bits)})
            case Apply():
                node: dict[str, Any] = {"op": value.op, "args": list(value.args), "dtype": value.dtype}
                if value.attrs:
                    node["attrs"] = dict(value.attrs)
                values.append(node)
    return {"values": values, "outputs": list(kernel.outputs)}


def from_json(data: Mapping[str, Any]) -> Kernel:
    """The inverse of ``to_json``.

    Raises:
        ValueError: ``data`` is not the JSON form of a kernel.
    """
    values: list[Value] = []
    try:
        for item in data["values"]:
            if "input" in item:
                values.append(Input(Type(item["input"], tuple(item["dims"]))))
            elif "constant" in item:
                values.append(Constant(item["constant"], int(item["bits"], 16)))
            else:
                attrs = tuple(sorted(item.get("attrs", {}).items()))
                values.append(Apply(item["op"], tuple(item["args"]), item["dtype"], attrs))
        return Kernel(tuple(values), tuple(data["outputs"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a kernel in JSON form: {error!r}") from error
