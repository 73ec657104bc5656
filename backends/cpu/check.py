"""The type checker: what dialect *intent* accepts, as this backend reads it.

It is written from the text of the dialect and shares nothing with the oracle's typing, so that a test of what must be
refused is a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halfulp.backends.cpu.types import SCALARS, Scalar
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel


class TypeRefusal(Exception):
    """The program is ill-typed."""


class NotOffered(Exception):
    """The program uses what this backend does not have."""


def scalar(name: str) -> Scalar:
    """The scalar of that name.

    Raises:
        TypeRefusal: it is none of the 16 (``intent:1-a``, ``intent:1-b``).
    """
    try:
        return SCALARS[name]
    except KeyError:
        raise TypeRefusal(f"{name} is not a scalar type of the language") from None


Rule = Callable[[str, Sequence[Scalar], Scalar | None], Scalar]
"""``rule(op, operands, target)`` is the type of the result; ``target`` is the dtype named by a conversion."""


@dataclass(frozen=True)
class Signature:
    """How an operation is typed.

    Attributes:
        arity: number of operands.
        rule: see `Rule`.
        converts: the program names the dtype of the result.
    """

    arity: int
    rule: Rule
    converts: bool = False


def _same(op: str, operands: Sequence[Scalar]) -> Scalar:
    """The one type of all operands: nothing is converted implicitly (``intent:3-f``, ``intent:3-g``)."""
    first, *others = operands
    for other in others:
        if other != first:
            raise TypeRefusal(f"{op} of {first.name} and {other.name}: cast one of them")
    return first


def _uniform(*kinds: str) -> Rule:
    """Operands and result of one type, of one of ``kinds``."""

    def rule(op: str, operands: Sequence[Scalar], target: Scalar | None) -> Scalar:
        common = _same(op, operands)
        if common.kind not in kinds:
            raise TypeRefusal(f"{op} is not defined on {common.name}")
        return common

    return rule


def _comparison(*kinds: str) -> Rule:
    """Operands of one type, a bool result (``intent:3-h``)."""

    def rule(op: str, operands: Sequence[Scalar], target: Scalar | None) -> Scalar:
        _uniform(*kinds)(op, operands, target)
        return SCALARS["bool"]

    return rule


def _select(op: str, operands: Sequence[Scalar], target: Scalar | None) -> Scalar:
    if not operands[0].is_bool:
        raise TypeRefusal(f"the condition of {op} is {operands[0].name}, not bool")
    return _same(op, operands[1:])


def _cast(op: str, operands: Sequence[Scalar], target: Scalar | None) -> Scalar:
    assert target is not None
    return target


def _bitcast(op: str, operands: Sequence[Scalar], target: Scalar | None) -> Scalar:
    """``intent:5.2-j``: equal total width."""
    assert target is not None
    if operands[0].width != target.width:
        raise TypeRefusal(f"{op} of {operands[0].width} bits ({operands[0].name}) to {target.width} ({target.name})")
    return target


_ARITHMETIC = _uniform("int", "float")
_INTEGER = _uniform("int")
_FLOAT = _uniform("float")
_BITS = _uniform("int", "bool")

OPERATIONS: dict[str, Signature] = {
    "cast": Signature(1, _cast, converts=True),
    "cast_saturate": Signature(1, _cast, converts=True),
    "bitcast": Signature(1, _bitcast, converts=True),
    "add": Signature(2, _ARITHMETIC),
    "sub": Signature(2, _ARITHMETIC),
    "mul": Signature(2, _ARITHMETIC),
    "div": Signature(2, _FLOAT),
    "floordiv": Signature(2, _INTEGER),
    "mod": Signature(2, _INTEGER),
    "shl": Signature(2, _INTEGER),
    "shr": Signature(2, _INTEGER),
    "and": Signature(2, _BITS),
    "or": Signature(2, _BITS),
    "xor": Signature(2, _BITS),
    "not": Signature(1, _BITS),
    "neg": Signature(1, _ARITHMETIC),
    "abs": Signature(1, _ARITHMETIC),
    "sqrt": Signature(1, _FLOAT),
    "floor": Signature(1, _FLOAT),
    "eq": Signature(2, _comparison("int", "float", "bool")),
    "ne": Signature(2, _comparison("int", "float", "bool")),
    "lt": Signature(2, _comparison("int", "float")),
    "le": Signature(2, _comparison("int", "float")),
    "gt": Signature(2, _comparison("int", "float")),
    "ge": Signature(2, _comparison("int", "float")),
    "maximum": Signature(2, _FLOAT),
    "minimum": Signature(2, _FLOAT),
    "maximum_num": Signature(2, _FLOAT),
    "minimum_num": Signature(2, _FLOAT),
    "select": Signature(3, _select),
}
"""Every operation of the backend."""


def signature(op: str, arity: int, attrs: Sequence[tuple[str, object]]) -> Signature:
    """The typing of ``op``.

    Raises:
        NotOffered: no such operation.
        TypeRefusal: wrong number of operands, or an attribute that it does not have.
    """
    if op not in OPERATIONS:
        raise NotOffered(f"operation {op}")
    found = OPERATIONS[op]
    if arity != found.arity:
        raise TypeRefusal(f"{op} takes {found.arity} operands, not {arity}")
    if attrs:
        raise TypeRefusal(f"{op} has no attribute {attrs[0][0]}")
    return found


def check(kernel: Kernel) -> None:
    """Check that every value of the kernel is well typed.

    Raises:
        TypeRefusal, NotOffered: see there.
    """
    types: list[Scalar] = []
    for position, value in enumerate(kernel.values):
        if kernel.type_of(position).dims not in ((), ("n",)):
            raise NotOffered(f"arrays of dims {kernel.type_of(position).dims}")
        match value:
            case Input():
                types.append(scalar(value.type.dtype))
            case Constant():
                types.append(scalar(value.dtype))
            case Apply():
                declared = scalar(value.dtype)
                typing = signature(value.op, len(value.args), value.attrs)
                operands = [types[arg] for arg in value.args]
                result = typing.rule(value.op, operands, declared if typing.converts else None)
                if result != declared:
                    raise TypeRefusal(f"{value.op} gives {result.name}, not {declared.name}")
                types.append(result)
