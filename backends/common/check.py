"""The type checker: what dialect *intent* accepts, as the backends read it.

It is written from the text of the dialect and shares nothing with the oracle's typing, so that a test of what must be
refused is a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from halfulp.adapters.protocol import Rejected, Unsupported
from halfulp.backends.common.types import SCALARS, Scalar
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel


class TypeRefusal(Exception):
    """The program is ill-typed."""


class NotOffered(Exception):
    """The program uses what no backend has."""


T = TypeVar("T")


def answered(work: Callable[[], T]) -> T | Rejected | Unsupported:
    """What ``work`` returns; where it raises one of the two above, an adapter's answer that says so."""
    try:
        return work()
    except TypeRefusal as refusal:
        return Rejected(str(refusal))
    except NotOffered as missing:
        return Unsupported(str(missing))


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
        attrs: names of the attributes that it may carry.
        expects: for each operand, the dtype that a literal takes there whatever stands beside it, None where that
            decides. Empty: it decides everywhere.
    """

    arity: int
    rule: Rule
    converts: bool = False
    attrs: tuple[str, ...] = ()
    expects: tuple[str | None, ...] = ()


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


def _random(op: str, operands: Sequence[Scalar], target: Scalar | None) -> Scalar:
    """A seed and a counter (``intent:12-c``)."""
    seed, counter = operands
    if seed.name != "u64":
        raise TypeRefusal(f"the seed of {op} is {seed.name}, not u64")
    if counter.name not in ("u64", "index"):
        raise TypeRefusal(f"the counter of {op} is {counter.name}, neither u64 nor index")
    if target is not None and target.name != "f32":
        raise NotOffered(f"{op} in {target.name}")  # the text has f32 alone (``intent:12-e``)
    return target or SCALARS["u32"]


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
    "select": Signature(3, _select, expects=("bool", None, None)),
    "lgamma": Signature(1, _FLOAT),
    "asin": Signature(1, _FLOAT),
    "log1p": Signature(1, _FLOAT),
    "erfc": Signature(1, _FLOAT),
    "i0": Signature(1, _FLOAT),
    "exp2": Signature(1, _FLOAT, attrs=("approximate", "flush_to_zero")),
    "tanh": Signature(1, _FLOAT, attrs=("approximate",)),
    "fdiv": Signature(2, _FLOAT, attrs=("approximate", "flush_to_zero")),
    "random_bits": Signature(2, _random, expects=("u64", "u64")),
    "random_uniform": Signature(2, _random, converts=True, expects=("u64", "u64")),
}
"""Every operation of the backends."""


Attrs = Sequence[tuple[str, object]]
"""Attributes with their settings, as programs carry them."""

Mode = Literal["", "approximate", "flushing"]
"""Ordinary, approximate, or approximate with ``flush_to_zero``."""


def mode_of(attrs: Attrs) -> Mode:
    """What checked attributes ask for. False, written out, is the default (``intent:5.1-a``)."""
    settings = dict(attrs)
    if not settings.get("approximate"):
        return ""
    return "flushing" if settings.get("flush_to_zero") else "approximate"


def signature(op: str, arity: int, attrs: Attrs) -> Signature:
    """The typing of ``op``.

    Raises:
        NotOffered: no such operation.
        TypeRefusal: wrong number of operands, or attributes that it does not have or not with these settings.
    """
    if op not in OPERATIONS:
        raise NotOffered(f"operation {op}")
    found = OPERATIONS[op]
    if arity != found.arity:
        raise TypeRefusal(f"{op} takes {found.arity} operands, not {arity}")
    for name, setting in attrs:
        if name not in found.attrs:
            raise TypeRefusal(f"{op} has no attribute {name}")
        if not isinstance(setting, bool):  # 1 is no bool (``intent:5.1-c``)
            raise TypeRefusal(f"{name}={setting!r} of {op} is not a bool")
    if dict(attrs).get("flush_to_zero") and not mode_of(attrs):
        raise TypeRefusal(f"flush_to_zero of {op} needs approximate")
    return found


def result_of(op: str, typing: Signature, operands: Sequence[Scalar], target: Scalar | None, attrs: Attrs) -> Scalar:
    """The type of the result.

    Raises:
        TypeRefusal: the operands are of wrong types, or not of f32 in an approximate mode (``intent:5.1-d``).
    """
    result = typing.rule(op, operands, target)
    if mode_of(attrs) and any(operand.name != "f32" for operand in operands):
        raise TypeRefusal(f"approximate {op} is defined on f32, not on {operands[0].name}")
    return result


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
                target = declared if typing.converts else None
                result = result_of(value.op, typing, operands, target, value.attrs)
                if result != declared:
                    raise TypeRefusal(f"{value.op} gives {result.name}, not {declared.name}")
                types.append(result)
