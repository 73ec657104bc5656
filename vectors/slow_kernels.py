"""The slow path of programs: every choice followed to its end, one element at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from halfulp.oracle.formats import Format, format_of
from halfulp.oracle.kernel import Apply, Constant, Kernel
from halfulp.oracle.ops.record import Signature
from halfulp.vectors import outcomes, slow
from halfulp.vectors.outcomes import Joint
from halfulp.vectors.ranges import Row, Span, nan_spans, row

Known = tuple[int | None, Row]
"""A value under one choice: its code, None where it is only known to lie in a range; and what it may be, as a row."""


class UndecidedError(ValueError):
    """The program uses a value that is only known to lie in a range, or claims nothing."""


def _as_known(node: Apply, found: Row) -> Iterator[Known]:
    """The values that one row leaves: every NaN is one, and of two zeros either may be the maximum."""
    fmt = format_of(node.dtype)
    if fmt.is_float and found.allowed == nan_spans(fmt):
        yield found.nearest, found
    elif node.op.startswith(("maximum", "minimum")):
        for code in outcomes.points(found) or [found.nearest]:
            yield code, slow.one(code)
    elif len(found.allowed) == 1 and found.allowed[0][0] == found.allowed[0][1] and not found.unspecified:
        yield found.allowed[0][0], found
    else:
        yield None, found


def _negated(fmt: Format, found: Row) -> Row:
    """A range passes through a negation, which is monotone."""

    def mirrored(spans: Sequence[Span]) -> list[Span]:
        return [(low ^ fmt.sign_mask, high ^ fmt.sign_mask) for low, high in spans]

    return row(fmt, found.nearest ^ fmt.sign_mask, mirrored(found.allowed), mirrored(found.unspecified))


def _fused(kernel: Kernel, node: Apply, values: Sequence[Known]) -> Iterator[Row]:
    """``intent:5.5-a``: a sum with an operand that is a product may be rounded once."""
    fmt = format_of(node.dtype)
    if node.op not in ("add", "sub") or not fmt.is_float:
        return
    exact = [slow.decoded(fmt, _code(values, arg)) for arg in node.args]
    for place, arg in enumerate(node.args):
        factor = kernel.values[arg]
        if isinstance(factor, Apply) and factor.op == "mul":
            operands = list(exact)
            operands[place] = slow.multiply(*(slow.decoded(fmt, _code(values, x)) for x in factor.args))
            found = slow.delivered(fmt, slow.EXACT[node.op](*operands))
            if found is None:
                raise UndecidedError(f"nothing is claimed of a fused {node.op}")
            yield found


def _code(values: Sequence[Known], position: int) -> int:
    code = values[position][0]
    if code is None:
        raise UndecidedError(f"value {position} is a range, and another operation uses it")
    return code


def _branches(kernel: Kernel, inputs: Sequence[int], values: list[Known]) -> Iterator[list[Known]]:
    """All values of the kernel under each choice."""
    position = len(values)
    if position == len(kernel.values):
        yield values
        return
    value = kernel.values[position]
    if isinstance(value, Apply):
        args = tuple(kernel.type_of(arg).dtype for arg in value.args)
        signature = Signature(value.op, args, value.dtype, value.attrs)
        if value.op == "neg" and values[value.args[0]][0] is None:
            plain: Row | None = _negated(format_of(value.dtype), values[value.args[0]][1])
        else:
            plain = slow.expected(signature, [_code(values, arg) for arg in value.args])
        if plain is None:
            raise UndecidedError(f"nothing is claimed of value {position}")
        forms = (plain, *_fused(kernel, value, values))
        known = dict.fromkeys(one for found in forms for one in _as_known(value, found))
        for one in known:
            yield from _branches(kernel, inputs, [*values, one])
    elif isinstance(value, Constant):
        yield from _branches(kernel, inputs, [*values, (value.bits, slow.one(value.bits))])
    else:
        given = sum(not isinstance(v, (Apply, Constant)) for v in kernel.values[:position])
        yield from _branches(kernel, inputs, [*values, (inputs[given], slow.one(inputs[given]))])


def expected(kernel: Kernel, inputs: Sequence[int]) -> tuple[list[int], list[list[Row]]]:
    """What the outputs of one element may be.

    Returns:
        the results of rounding every operation, and the alternatives.

    Raises:
        UndecidedError: see there.
    """
    formats = [format_of(type_.dtype) for type_ in kernel.output_types]
    branches = [[values[output] for output in kernel.outputs] for values in _branches(kernel, inputs, [])]
    nearest = [row_.nearest for _, row_ in branches[0]]  # the first choice fuses nothing
    separate = []
    for place, fmt in enumerate(formats):
        rows = [branch[place][1] for branch in branches]
        inside = [span for found in rows for span in found.allowed]
        separate.append(row(fmt, nearest[place], inside, [span for found in rows for span in found.unspecified]))
    together: list[Joint] = []
    for branch in branches:
        shared = [outcomes.points(one) is not None for one in separate]
        members = [
            [code for low, high in found.allowed for code in range(low, high + 1)]
            for (_, found), joint in zip(branch, shared, strict=True)
            if joint
        ]
        together += product(*members)
    return nearest, outcomes.joined(formats, separate, together)
