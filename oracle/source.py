"""Source programs: what an author writes, before a language has given every value a type.

A `Source` is an untyped expression tree. It exists to be accepted or rejected: literals without a dtype, operands of
different dtypes, attributes of the wrong type. A language (``oracle.typing``) elaborates it to a `Kernel` or refuses
it with a clause. Adapters without a front end answer `Unsupported` to a `Source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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


def to_json(source: Source) -> dict[str, Any]:
    """The program as plain JSON data: ``{"source": EXPRESSION}``, the form that the pipe protocol uses.

    A literal is text with the kind beside it, since JSON itself does not tell ``1`` from ``1.0`` and has neither
    large integers nor infinities.
    """
    return {"source": _expression_to_json(source.result)}


def _literal_to_json(literal: Literal) -> dict[str, Any]:
    return {"kind": type(literal.value).__name__, "text": repr(literal.value)}


def _expression_to_json(node: Expression) -> dict[str, Any]:
    match node:
        case Parameter():
            return {"parameter": node.name, "dtype": node.dtype}
        case Literal():
            return {"literal": _literal_to_json(node)}
        case Formed():
            return {"formed": _literal_to_json(node.literal)}
        case Call():
            call: dict[str, Any] = {"op": node.op, "args": [_expression_to_json(arg) for arg in node.args]}
            if node.dtype is not None:
                call["dtype"] = node.dtype
            if node.attrs:
                call["attrs"] = dict(node.attrs)
            return call


def from_json(data: Mapping[str, Any]) -> Source:
    """The inverse of ``to_json``.

    Raises:
        ValueError: ``data`` is not the JSON form of a source program.
    """
    try:
        return Source(_expression_from_json(data["source"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a source program in JSON form: {error!r}") from error


def _literal_from_json(data: Mapping[str, Any]) -> Literal:
    text = data["text"]
    match data["kind"]:
        case "bool" if text in ("True", "False"):
            return Literal(text == "True")
        case "int":
            return Literal(int(text))
        case "float":
            return Literal(float(text))
        case kind:
            raise ValueError(f"no literal of kind {kind!r} is written {text!r}")


def _expression_from_json(data: Mapping[str, Any]) -> Expression:
    if "parameter" in data:
        return Parameter(data["parameter"], data["dtype"])
    if "literal" in data:
        return _literal_from_json(data["literal"])
    if "formed" in data:
        return Formed(_literal_from_json(data["formed"]))
    args = tuple(_expression_from_json(arg) for arg in data["args"])
    return Call(data["op"], args, data.get("dtype"), tuple(sorted(data.get("attrs", {}).items())))
