"""Replay tokens: one failing call as a line of text that reproduces it alone.

A token is ``hu1-`` and the URL-safe base64 of deflated JSON: our id, the program, the optimisation level and the
inputs. It depends on no seed, no generator and no version of the suite's inputs. Tokens of atomics hold a litmus
program and how it was run (`RecordedLitmus`), or the recipe of a contest (`RecordedContest`).
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from halfulp.adapters.protocol import LitmusOptions, Stress
from halfulp.oracle import kernel as kernels
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.kernel import Kernel, Type
from halfulp.oracle.memory import program as litmus
from halfulp.oracle.memory.program import Program
from halfulp.oracle.ops.rules import as_bits
from halfulp.oracle.source import Call, Expression, Formed, Literal, Parameter, Source
from halfulp.properties.plan import Depth, Plan

PREFIX = "hu1-"
LARGEST = 1 << 24
"""Bytes that a token may unpack to."""

MOST_INSTANCES = 1 << 30
"""Instances that a token may ask for."""


@dataclass(frozen=True)
class Recorded:
    """What a token holds.

    Attributes:
        id: ours, e.g. ``cast[f64->bf16]/array/O3``.
        clause: the clause that was found broken.
        program: the kernel, or the source program that should have been accepted or refused.
        opt_level: optimisation level of the adapter.
        inputs: one array for each input of a kernel, of shape (n,) or (); for a source program one of shape (n,) for
            each parameter, or none where its acceptance is in question.
    """

    id: str
    clause: str
    program: Kernel | Source
    opt_level: int
    inputs: tuple[Bits, ...] = ()


@dataclass(frozen=True)
class RecordedLitmus:
    """A run of a litmus program, or a look at its instructions.

    Attributes:
        id, clause: as in `Recorded`.
        program: the program.
        options: how it was run; of a look at the instructions the optimisation level.
        seen: how many instances had a forbidden outcome.
        instructions: whether the instructions were looked at.
    """

    id: str
    clause: str
    program: Program
    options: LitmusOptions
    seen: int = 0
    instructions: bool = False

    @property
    def opt_level(self) -> int:
        return self.options.opt_level


@dataclass(frozen=True)
class RecordedContest:
    """A contest. Its operands are many, and drawn anew from the seed: the token holds what they are drawn by.

    Attributes:
        id, clause, opt_level: as in `Recorded`.
        kind, dtype, order: of its operations.
        plan: what the operands are drawn by, and how many there are.
    """

    id: str
    clause: str
    kind: str
    dtype: str
    order: str
    plan: Plan
    opt_level: int


AnyRecorded = Recorded | RecordedLitmus | RecordedContest


def encode(recorded: AnyRecorded) -> str:
    """The token."""
    data: dict[str, Any] = {"id": recorded.id, "clause": recorded.clause, "opt": recorded.opt_level}
    match recorded:
        case Recorded():
            data |= _kernel_or_source(recorded)
        case RecordedLitmus():
            data["litmus"] = litmus.to_json(recorded.program)
            data |= {"options": asdict(recorded.options), "seen": recorded.seen, "look": recorded.instructions}
        case RecordedContest():
            data["contest"] = {"kind": recorded.kind, "dtype": recorded.dtype, "order": recorded.order}
            data["contest"] |= asdict(recorded.plan)
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)
    return PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _kernel_or_source(recorded: Recorded) -> dict[str, Any]:
    program = recorded.program
    data: dict[str, Any] = {}
    if isinstance(program, Kernel):
        data["kernel"] = kernels.to_json(program)
    else:
        data["source"] = _expression_to_json(program.result)
    if isinstance(program, Kernel) or recorded.inputs:
        data["inputs"] = [
            _hex(format_of(type_.dtype), bits)
            for type_, bits in zip(_input_types(program), recorded.inputs, strict=True)
        ]
    return data


def decode(token: str) -> AnyRecorded:
    """The inverse of `encode`.

    Raises:
        ValueError: the text is not a token; the message says where it goes wrong.
    """
    token = token.strip()
    if not token.startswith(PREFIX):
        raise ValueError(f"a replay token starts with {PREFIX}; this is {token[:16]!r}")
    body = token[len(PREFIX) :]
    try:
        packed = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        data = json.loads(unpacker.decompress(packed, LARGEST))
        if not unpacker.eof:
            raise ValueError("it is cut short")
        if "litmus" in data:
            return _litmus(data)
        if "contest" in data:
            return _contest(data)
        program = _program(data)
        inputs: tuple[Bits, ...] = ()
        if isinstance(program, Kernel) or "inputs" in data:
            inputs = tuple(
                _bits(format_of(type_.dtype), type_.dims, text)
                for type_, text in zip(_input_types(program), data["inputs"], strict=True)
            )
        return Recorded(str(data["id"]), str(data["clause"]), program, int(data["opt"]), inputs)
    except (binascii.Error, zlib.error, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this replay token is damaged: {error}") from error


def _litmus(data: Mapping[str, Any]) -> RecordedLitmus:
    options = LitmusOptions(**{**data["options"], "stress": Stress(**data["options"]["stress"])})
    if not 1 <= options.instances <= MOST_INSTANCES:
        raise ValueError(f"it asks for {options.instances} instances")
    program = litmus.from_json(data["litmus"])
    return RecordedLitmus(str(data["id"]), str(data["clause"]), program, options, int(data["seen"]), bool(data["look"]))


def _contest(data: Mapping[str, Any]) -> RecordedContest:
    recipe = data["contest"]
    if recipe["kind"] not in (*litmus.RMW_KINDS, "cas") or recipe["dtype"] not in litmus.DTYPES:
        raise ValueError(f"there is no contest of {recipe['kind']} on {recipe['dtype']}")
    if recipe["depth"] not in get_args(Depth) or recipe["order"] not in litmus.ORDERS:
        raise ValueError(f"there is no contest of depth {recipe['depth']} and order {recipe['order']}")
    plan = Plan(int(recipe["seed"]), recipe["depth"])
    kind, dtype, order = (str(recipe[name]) for name in ("kind", "dtype", "order"))
    return RecordedContest(str(data["id"]), str(data["clause"]), kind, dtype, order, plan, int(data["opt"]))


def _program(data: Mapping[str, Any]) -> Kernel | Source:
    return kernels.from_json(data["kernel"]) if "kernel" in data else Source(_expression(data["source"]))


def _input_types(program: Kernel | Source) -> tuple[Type, ...]:
    if isinstance(program, Kernel):
        return program.input_types
    return tuple(Type(parameter.dtype) for parameter in program.parameters())


def _hex(fmt: Format, bits: Bits) -> str:
    """One hex string, most significant digit first within each element."""
    return "".join(f"{_code(code):0{fmt.hex_digits}x}" for code in bits.reshape(-1))


def _code(element: Any) -> int:
    """One element as a Python integer; 128-bit ones consist of two words."""
    return int(element["lo"]) | int(element["hi"]) << 64 if element.dtype.fields else int(element)


def _bits(fmt: Format, dims: Sequence[str], text: str) -> Bits:
    digits = fmt.hex_digits
    if len(text) % digits:
        raise ValueError(f"{len(text)} digits are no whole number of {fmt.name}")
    codes = [int(text[at : at + digits], 16) for at in range(0, len(text), digits)]
    bits = as_bits(fmt, codes)
    return bits if dims else bits.reshape(())


def _expression_to_json(node: Expression) -> dict[str, Any]:
    match node:
        case Parameter():
            return {"parameter": node.name, "dtype": node.dtype}
        case Literal():
            return {"literal": type(node.value).__name__, "value": repr(node.value)}
        case Formed():
            return {"formed": _expression_to_json(node.literal)}
        case Call():
            data: dict[str, Any] = {"op": node.op, "args": [_expression_to_json(arg) for arg in node.args]}
            if node.dtype is not None:
                data["dtype"] = node.dtype
            if node.attrs:
                data["attrs"] = dict(node.attrs)
            return data


def _expression(data: Mapping[str, Any]) -> Expression:
    if "parameter" in data:
        return Parameter(data["parameter"], data["dtype"])
    if "literal" in data:
        return _literal(data)
    if "formed" in data:
        return Formed(_literal(data["formed"]))
    args = tuple(_expression(arg) for arg in data["args"])
    return Call(data["op"], args, data.get("dtype"), tuple(sorted(data.get("attrs", {}).items())))


def _literal(data: Mapping[str, Any]) -> Literal:
    """Values travel as text: JSON has no infinity, and some readers round large integers."""
    text = data["value"]
    match data["literal"]:
        case "bool":
            return Literal(text == "True")
        case "int":
            return Literal(int(text))
        case "float":
            return Literal(float(text))
    raise ValueError(f"unknown literal {data['literal']!r}")
