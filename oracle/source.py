"""Source programs: what an author writes, before a language has given every value a type.

A `Source` is an untyped expression tree. It exists to be accepted or rejected: literals without a dtype, operands of
different dtypes, attributes of the wrong type. A language (``oracle.typing``) elaborates it to a `Kernel` or refuses
it with a clause. Adapters without a front end answer `Unsupported` to a `Source`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """A run-time operand of the program: an array of ``dtype``."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Literal:
    """A Python literal, untyped (``intent:3-a``)."""

    value: bool | int | float


@dataclass(frozen=True)
class Formed:
    """A literal that became a run-time value where nothing expected a dtype (``intent:3-c``): ``s = 1.0``."""

    literal: Literal


@dataclass(frozen=True)
class Call:
    """An operation on expressions.

    Attributes:
        op: operation name.
        args: the operands.
        dtype: the target dtype, for ``cast``, ``cast_saturate`` and ``bitcast`` alone.
        attrs: compile-time attributes.
    """

    op: str
    args: tuple[Expression, ...]
    dtype: str | None = None
    attrs: tuple[tuple[str, bool | int | str], ...] = ()


Expression = Parameter | Literal | Formed | Call


@dataclass(frozen=True)
class Source:
    """A program of one result. Parameters are passed in order of first appearance."""

    result: Expression

    def parameters(self) -> tuple[Parameter, ...]:
        found: dict[str, Parameter] = {}

        def visit(node: Expression) -> None:
            match node:
                case Parameter():
                    found.setdefault(node.name, node)
                case Call():
                    for arg in node.args:
                        visit(arg)

        visit(self.result)
        return tuple(found.values())

    def __str__(self) -> str:
        return show(self.result)


def show(node: Expression) -> str:
    """The expression as an author would write it."""
    match node:
        case Parameter():
            return f"{node.name}:{node.dtype}"
        case Literal():
            return repr(node.value)
        case Formed():
            return f"value({node.literal.value!r})"
        case Call():
            parts = [show(arg) for arg in node.args]
            if node.dtype is not None:
                parts.append(node.dtype)
            parts += [f"{name}={setting!r}" for name, setting in node.attrs]
            return f"{node.op}({', '.join(parts)})"
