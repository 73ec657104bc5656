"""Judging kernels: which results may a program of several operations have?

A kernel is evaluated under a *choice*: for every site at which the language leaves a freedom, one of the site's forms.

* A sum with p operands that are products has 1 + p forms: rounded twice, or fused with one of them (``intent:5.5-a``).
* A maximum or minimum of +0 and -0 has two (``reading:6``).

All joint choices are enumerated, and one of them must explain all outputs of an element. What no joint choice explains
but the recomputation of a value with different choices for different users, or fusing through a negation, does is
unspecified (``reading:31``).

A range of results (of a function with a bound in ulp) passes through a cast between floats and through a negation,
which are monotone. Where the operand of another operation is not certain (illegal, unspecified, one of a range, a NaN
whose bits are free read as bits), nothing is claimed of the result: a superset of the text, never less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from halfulp.oracle import codes, rounding_array
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Value
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.casts import cast_range, finite_range
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import AllowedSet, Mask, Range, Verdict, either, exactly, only_where, together, union

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]
Override = Callable[[Signature, Sequence[Bits]], "Bits | None"]
Choice = Mapping[int, "Form"]

MOST_CHOICES = 4096
"""Joint choices that are enumerated at most; a kernel with more is not judged (no claim)."""


@dataclass(frozen=True)
class Form:
    """One way to evaluate a site other than the plain one.

    Attributes:
        fuses: the operand (0 or 1) of a sum that is a product to be fused; None for the other zero of an extremum.
        negated: the product is fused through an odd number of negations.
        product: position of the product.
    """

    fuses: int | None = None
    negated: bool = False
    product: int = -1


OTHER_ZERO = Form()


@dataclass(frozen=True)
class _Row:
    """One value of the kernel under a choice, for all elements.

    Attributes:
        answer: the set of results of the operation itself, its operands taken as certain.
        certain: False where an operand is not certain. None: certain everywhere.
        free: True where the value is a NaN whose bits are free. None: nowhere.
    """

    answer: AllowedSet
    certain: Mask | None = None
    free: Mask | None = None

    @property
    def bits(self) -> Bits:
        return self.answer.nearest

    def usable(self) -> Mask | None:
        """Where a user of this value may rely on its being exactly ``bits`` (or a NaN)."""
        answer = self.answer
        if answer.claim is None and answer.member is None and not answer.ranges and not answer.unspecified:
            return self.certain  # the common case, without a pass over the elements
        settled = answer.single
        return settled if self.certain is None else settled & self.certain

    def settled(self) -> Mask | None:
        """Where the value is one of ``bits``, the ranges and perhaps NaN, and nothing else."""
        answer = self.answer
        open_to = None if answer.anything is None else ~answer.anything
        return together((self.certain, answer.claim, answer.member, open_to))


# Sites.


def _product_under(kernel: Kernel, position: int, *, through_negation: bool) -> tuple[int, bool] | None:
    """The product that ``position`` is, perhaps negated: its position and whether the sign is flipped."""
    negated = False
    value = kernel.values[position]
    while through_negation and isinstance(value, Apply) and value.op == "neg":
        position, negated = value.args[0], not negated
        value = kernel.values[position]
    if isinstance(value, Apply) and value.op == "mul":
        return position, negated
    return None


def _forms(kernel: Kernel, position: int, *, wide: bool) -> tuple[Form, ...]:
    """The forms of one operation besides the plain one. ``wide``: those that are unspecified too."""
    value = kernel.values[position]
    if not isinstance(value, Apply):
        return ()
    if value.op in ("maximum", "minimum", "maximum_num", "minimum_num"):
        return (OTHER_ZERO,)
    if value.op not in ("add", "sub") or not format_of(value.dtype).is_float:
        return ()
    found = []
    for place, arg in enumerate(value.args):
        under = _product_under(kernel, arg, through_negation=wide)
        if under is not None:
            found.append(Form(place, under[1], under[0]))
    return tuple(found)


def _reachable(kernel: Kernel, outputs: Sequence[int]) -> set[int]:
    seen: set[int] = set()
    work = [kernel.outputs[o] for o in outputs]
    while work:
        position = work.pop()
        if position not in seen:
            seen.add(position)
            value = kernel.values[position]
            if isinstance(value, Apply):
                work += value.args
    return seen


def _groups(kernel: Kernel) -> Iterator[tuple[list[int], list[int]]]:
    """Outputs that share a site, with the sites they depend on: only those have to be explained jointly."""
    groups: list[tuple[list[int], set[int]]] = []
    for o, position in enumerate(kernel.outputs):
        sites = {p for p in _reachable(kernel, [o]) if _forms(kernel, p, wide=False)}
        rank = kernel.type_of(position).dims
        outputs = [o]
        for group in list(groups):
            if group[1] & sites and kernel.output_types[group[0][0]].dims == rank:
                groups.remove(group)
                outputs, sites = group[0] + outputs, group[1] | sites
        groups.append((outputs, sites))
    for outputs, sites in groups:
        yield sorted(outputs), sorted(sites)


def _choices(kernel: Kernel, sites: Sequence[int], *, wide: bool = False) -> Iterator[Choice] | None:
    """All joint choices, the plain one first; None where there are too many."""
    forms = [(None, *_forms(kernel, site, wide=wide)) for site in sites]
    count = 1
    for some in forms:
        count *= len(some)
    if count > MOST_CHOICES:
        return None
    return (
        {site: form for site, form in zip(sites, joint, strict=True) if form is not None} for joint in product(*forms)
    )


# Evaluation.


def _common(arrays: Sequence[Bits]) -> int:
    """The length that broadcasting gives; an empty array stays empty beside a scalar."""
    return next((len(array) for array in arrays if len(array) != 1), 1)


def _spread(array: Any, n: int) -> Any:
    return array if array is None or len(array) == n else np.broadcast_to(array, (n,))


def _flip(fmt: Format, bits: Bits) -> Bits:
    flipped: Bits = bits ^ fmt.storage.type(fmt.sign_mask)
    return flipped


def _fused(kernel: Kernel, node: Apply, form: Form, rows: Sequence[_Row], n: int) -> AllowedSet:
    """The sum with its product not rounded: one rounding of a*b + c."""
    assert form.fuses is not None
    fmt = format_of(node.dtype)
    factors = kernel.values[form.product]
    assert isinstance(factors, Apply)
    a, b = (_spread(rows[arg].bits, n) for arg in factors.args)
    c = _spread(rows[node.args[1 - form.fuses]].bits, n)
    minus_product = form.negated
    if node.op == "sub":
        if form.fuses == 0:
            c = _flip(fmt, c)
        else:
            minus_product = not minus_product
    rounded = rounding_array.fma(fmt, _flip(fmt, a) if minus_product else a, b, c)
    return finite_range(exactly(fmt, rounded.bits), rounded, None)


def _nan_patterns(src: Format, answer: AllowedSet, free: Mask) -> AllowedSet:
    """``reading:29``: the bits of a computed NaN, read in another format: any NaN pattern of ``src``."""
    ranges: list[Range] = []
    ends = (src.infinity_bits + 1 if src.nan == "ieee" else src.magnitude_mask, src.magnitude_mask)
    for sign in (0, src.sign_mask):
        at = [int(codes.ordinal(answer.format, np.array([end | sign], answer.format.storage))[0]) for end in ends]
        low, high = min(at), max(at)
        ranges.append(only_where(low, high, free))
    return replace(answer, ranges=tuple(ranges))


def _image(signature: Signature, operand: AllowedSet, answer: AllowedSet) -> AllowedSet | None:
    """The image of a set with ranges under a monotone operation; None where the operation is not one.

    Args:
        operand: the set of the operand.
        answer: that of the result, had the operand to be its ``nearest``.
    """
    src, dst = operand.format, answer.format
    if signature.op not in ("cast", "neg") or not (src.is_float and dst.is_float):
        return None
    unclaimed = np.zeros(len(answer), bool)

    def through(spans: Sequence[Range]) -> tuple[Range, ...]:
        found = []
        for low, high in spans:
            if signature.op == "neg":
                found.append(only_where(~high, ~low, low <= high))
                continue
            span, beyond = cast_range(src, dst, (low, high))
            found.append(span)
            np.logical_or(unclaimed, beyond, out=unclaimed)
        return tuple(found)

    image = replace(
        answer,
        ranges=(*answer.ranges, *through(operand.ranges)),
        unspecified=(*answer.unspecified, *through(operand.unspecified)),
        nan=either((answer.nan, operand.nan)),
        unspecified_nan=either((answer.unspecified_nan, operand.unspecified_nan)),
    )
    return replace(image, claim=together((image.claim, ~unclaimed))) if unclaimed.any() else image


def _apply(kernel: Kernel, node: Apply, rows: Sequence[_Row], form: Form | None) -> _Row:
    args = [rows[arg] for arg in node.args]
    n = _common([arg.bits for arg in args])
    signature = Signature(node.op, tuple(arg.answer.format.name for arg in args), node.dtype, node.attrs)
    operands = [_spread(arg.bits, n) for arg in args]
    certain = together([_spread(arg.usable(), n) for arg in args])
    if form is not None and form.fuses is not None:
        answer = _fused(kernel, node, form, rows, n)
        # The product itself is rounded in the plain form: legal only if it would be there too.
        return _Row(answer, certain, codes.is_nan(answer.format, answer.nearest))
    answer = OPERATIONS[node.op].allowed(signature, operands)
    if len(args) == 1 and (args[0].answer.ranges or args[0].answer.unspecified):
        image = _image(signature, args[0].answer, answer)
        if image is not None:
            return _Row(image, args[0].settled(), codes.is_nan(image.format, image.nearest))
    if node.op in ("maximum", "minimum", "maximum_num", "minimum_num"):
        answer = _chosen_zero(answer, form is OTHER_ZERO)
    if node.op == "bitcast":
        free = _spread(args[0].free, n)
        if free is not None and free.any():
            answer = _nan_patterns(args[0].answer.format, answer, free)
        return _Row(answer, certain)
    if node.op == "select":
        first, second = (np.zeros(n, bool) if a.free is None else _spread(a.free, n) for a in args[1:])
        free = np.where(operands[0] != 0, first, second)
        return _Row(replace(answer, nan=free), certain, free) if free.any() else _Row(answer, certain)
    free = codes.is_nan(answer.format, answer.nearest) if answer.format.is_float else None
    return _Row(answer, certain, free)


def _chosen_zero(answer: AllowedSet, other: bool) -> AllowedSet:
    """An extremum of two opposite zeros, settled: the other one from ``ranges`` if asked for."""
    if not answer.ranges:
        return answer
    (low, high) = answer.ranges[0]
    if other:
        swapped = codes.from_ordinal(answer.format, low)
        answer = replace(answer, nearest=np.where(low <= high, swapped, answer.nearest))
    return replace(answer, ranges=())


def _rows(kernel: Kernel, inputs: Sequence[Bits], needed: set[int], choice: Choice) -> list[_Row]:
    rows: list[_Row] = []
    operands = iter(inputs)
    blank = _Row(exactly(format_of("bool"), np.zeros(1, np.uint8)))
    for position, value in enumerate(kernel.values):
        match value:
            case Input():
                fmt = format_of(value.type.dtype)
                rows.append(_Row(exactly(fmt, np.atleast_1d(next(operands)), carries_bits=True)))
            case Constant():
                rows.append(_Row(exactly(format_of(value.dtype), _constant(value), carries_bits=True)))
            case Apply():
                wanted = position in needed
                rows.append(_apply(kernel, value, rows, choice.get(position)) if wanted else blank)
    return rows


def _constant(value: Constant) -> Bits:
    storage = format_of(value.dtype).storage
    if storage.fields:
        return np.array([(value.bits & 0xFFFFFFFFFFFFFFFF, value.bits >> 64)], storage)
    return np.array([value.bits], storage)


def evaluate(kernel: Kernel, inputs: Sequence[Bits], override: Override | None = None) -> list[Bits]:
    """The result of the kernel with every operation rounded correctly and nothing fused.

    Args:
        inputs: bit patterns, of shape (n,) or () as the kernel's inputs say.
        override: may replace the result of an operation; it gets the signature and the operands, all of one length,
            and answers with bit patterns, or None to keep the right ones. This is how suspects are put into a program.

    Returns:
        One array for each output, of shape (n,), or () for an output of rank 0.
    """
    found: list[Bits] = []
    operands = iter(inputs)
    for value in kernel.values:
        match value:
            case Input():
                found.append(np.atleast_1d(next(operands)))
            case Constant():
                found.append(_constant(value))
            case Apply():
                n = _common([found[arg] for arg in value.args])
                args = [_spread(found[arg], n) for arg in value.args]
                dtypes = tuple(_dtype(kernel.values[arg]) for arg in value.args)
                signature = Signature(value.op, dtypes, value.dtype, value.attrs)
                replaced = override(signature, args) if override else None
                if replaced is None:
                    replaced = OPERATIONS[value.op].allowed(signature, args).nearest
                found.append(replaced)
    return [
        found[o][0:1].reshape(()).copy() if kernel.type_of(o).dims == SCALAR else np.array(found[o])
        for o in kernel.outputs
    ]


def _dtype(value: Value) -> str:
    return value.dtype if isinstance(value, Apply) else value.type.dtype


# Judging.


def _plain(kernel: Kernel, output: int) -> bool:
    """The output is a single operation on inputs and constants: its record alone answers."""
    value = kernel.values[kernel.outputs[output]]
    return isinstance(value, Apply) and not any(isinstance(kernel.values[a], Apply) for a in value.args)


def _single_answer(kernel: Kernel, inputs: Sequence[Bits], output: int) -> AllowedSet:
    position = kernel.outputs[output]
    node = kernel.values[position]
    assert isinstance(node, Apply)
    order = [p for p, value in enumerate(kernel.values) if isinstance(value, Input)]
    args: list[Bits] = []
    for arg in node.args:
        value = kernel.values[arg]
        args.append(_constant(value) if isinstance(value, Constant) else np.atleast_1d(inputs[order.index(arg)]))
    n = _common(args)
    dtypes = tuple(_dtype(kernel.values[arg]) for arg in node.args)
    signature = Signature(node.op, dtypes, node.dtype, node.attrs)
    return OPERATIONS[node.op].allowed(signature, [_spread(arg, n) for arg in args])


def judge(kernel: Kernel, inputs: Sequence[Bits], outputs: Sequence[Bits]) -> list[Verdicts]:
    """The verdict on every element of every output.

    Args:
        inputs: what the kernel was run on: shape (n,) or (), storage dtype of the format.
        outputs: what came out, likewise.

    Returns:
        For each output an array of `Verdict` values, of shape (n,), or (1,) for an output of rank 0.
    """
    verdicts: list[Verdicts] = [np.zeros(0, np.uint8)] * len(kernel.outputs)
    got = [np.atleast_1d(output) for output in outputs]
    for group, sites in _groups(kernel):
        if len(group) == 1 and _plain(kernel, group[0]):
            verdicts[group[0]] = _single_answer(kernel, inputs, group[0]).judge(got[group[0]])
            continue
        joint = _judge_group(kernel, inputs, got, group, sites)
        for o, verdict in zip(group, joint, strict=True):
            verdicts[o] = verdict
    return verdicts


def _judge_group(
    kernel: Kernel, inputs: Sequence[Bits], got: Sequence[Bits], group: list[int], sites: list[int]
) -> list[Verdicts]:
    choices = _choices(kernel, sites)
    if choices is None:
        return [np.full(len(got[o]), Verdict.NO_CLAIM, np.uint8) for o in group]
    needed = _reachable(kernel, group)
    unclaimed = [np.zeros(len(got[o]), bool) for o in group]
    best: Verdicts | None = None
    kept: list[Verdicts] = []
    for choice in choices:
        rows = _rows(kernel, inputs, needed, choice)
        under = []
        for place, o in enumerate(group):
            verdict, certain = _one(rows[kernel.outputs[o]], got[o])
            unclaimed[place] |= ~certain
            under.append(verdict)
        worst = under[0] if len(under) == 1 else np.maximum.reduce(under)
        if best is None:
            best, kept = worst.copy(), under
        else:
            better = worst < best
            best = np.where(better, worst, best)
            kept = [np.where(better, new, old) for new, old in zip(under, kept, strict=True)]
    for place, o in enumerate(group):
        kept[place] = np.where(unclaimed[place], np.uint8(Verdict.NO_CLAIM), kept[place])
        failing = np.flatnonzero(kept[place] == Verdict.FORBIDDEN)
        if len(failing) and (sites or _forms_anywhere(kernel, o)):
            kept[place][failing] = _second_look(kernel, inputs, got[o], o, failing)
    return kept


def _one(row: _Row, got: Bits) -> tuple[Verdicts, Mask]:
    """The verdict under one choice, 0 where nothing is claimed, and where something is."""
    verdict = row.answer.judge(got)
    claimed = verdict != Verdict.NO_CLAIM
    if row.certain is not None:
        claimed = claimed & row.certain
    return np.where(claimed, verdict, np.uint8(Verdict.ALLOWED)), claimed


def _forms_anywhere(kernel: Kernel, output: int) -> bool:
    return any(_forms(kernel, position, wide=True) for position in _reachable(kernel, [output]))


def _as_tree(kernel: Kernel, output: int) -> Kernel:
    """One output, with every operation copied for each of its users: a value may be recomputed."""
    values: list[Value] = [v for v in kernel.values if not isinstance(v, Apply)]
    leaves = {p: i for i, p in enumerate(p for p, v in enumerate(kernel.values) if not isinstance(v, Apply))}

    def copy(position: int) -> int:
        value = kernel.values[position]
        if not isinstance(value, Apply):
            return leaves[position]
        values.append(replace(value, args=tuple(copy(arg) for arg in value.args)))
        return len(values) - 1

    root = copy(kernel.outputs[output])
    return Kernel(tuple(values), (root,))


def _tree_size(kernel: Kernel, output: int) -> int:
    sizes: list[int] = []
    for value in kernel.values:
        sizes.append(1 + sum(sizes[arg] for arg in value.args) if isinstance(value, Apply) else 1)
    return sizes[kernel.outputs[output]]


def _second_look(
    kernel: Kernel, inputs: Sequence[Bits], got: Bits, output: int, failing: np.ndarray[Any, Any]
) -> Verdicts:
    """``reading:31``: UNSPECIFIED where recomputation or a fused negation explains the result, else FORBIDDEN."""
    verdict = np.full(len(failing), Verdict.FORBIDDEN, np.uint8)
    if _tree_size(kernel, output) > 4 * len(kernel.values) + 64:
        return np.full(len(failing), Verdict.NO_CLAIM, np.uint8)
    tree = _as_tree(kernel, output)
    sites = [position for position in range(len(tree.values)) if _forms(tree, position, wide=True)]
    choices = _choices(tree, sites, wide=True)
    if choices is None:
        return np.full(len(failing), Verdict.NO_CLAIM, np.uint8)
    some = [np.atleast_1d(x) if np.ndim(x) == 0 else x[failing] for x in inputs]
    for choice in choices:
        under, _ = _one(_rows(tree, some, set(range(len(tree.values))), choice)[tree.outputs[0]], got[failing])
        verdict[under != Verdict.FORBIDDEN] = Verdict.UNSPECIFIED
    return verdict


def allowed_sets(kernel: Kernel, inputs: Sequence[Bits]) -> list[AllowedSet]:
    """The results that each output may have on its own: the union over all joint choices.

    The judgement is stricter where several outputs share a site, since one choice has to explain them together.

    Returns:
        One set for each output, of n elements, or of one for an output of rank 0. ``nearest`` is the result of the
        plain choice.
    """
    found: list[AllowedSet | None] = [None] * len(kernel.outputs)
    for group, sites in _groups(kernel):
        if len(group) == 1 and _plain(kernel, group[0]):
            found[group[0]] = _single_answer(kernel, inputs, group[0])
            continue
        choices = _choices(kernel, sites)
        needed = _reachable(kernel, group)
        for choice in choices if choices is not None else iter([{}]):
            rows = _rows(kernel, inputs, needed, choice)
            for o in group:
                row = rows[kernel.outputs[o]]
                claim = together([row.answer.claim, row.certain])
                if choices is None:
                    claim = np.zeros(len(row.answer), bool)
                one = replace(row.answer, claim=claim)
                earlier = found[o]
                found[o] = one if earlier is None else union(earlier, one)
    return [allowed for allowed in found if allowed is not None]
