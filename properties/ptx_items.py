"""Which programs are judged by their PTX, and how the judgement is reported.

Operations are compiled many to a kernel, each an output of its own: a compilation costs more than an operation, and
what an optimiser merges stands side by side. The known programs of a chapter are kernels as they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from halfulp.adapters.protocol import Adapter, HasArtifact, Options, UnsupportedError
from halfulp.oracle.formats import FLOATS, INTS, format_of
from halfulp.oracle.kernel import Apply, Input, Kernel
from halfulp.oracle.ops import decided, operation, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.properties.build import COMPARISONS, Builder
from halfulp.properties.known import KNOWN
from halfulp.properties.ptx import UnreadableError, is_ptx
from halfulp.properties.ptx_rules import EXTREMA, Fault, inspect
from halfulp.properties.results import Finding, Tally, Trial

NO_PTX = "no PTX to look at"

ARITHMETIC = ("add", "sub", "mul", "div", "fdiv", "sqrt", "neg", "abs", "muladd", *EXTREMA, *COMPARISONS)
OF_INTEGERS = ("add", "sub", "mul", "neg", "abs", "floordiv", "mod", "shl", "shr")


@dataclass(frozen=True)
class Subject:
    """A kernel whose code is judged, and what each of its outputs is."""

    kernel: Kernel
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """What one pytest item judges.

    Attributes:
        name: ours: ``"casts,f64"``; the id is ``ptx[casts,f64]``.
        chapter: section of the dialect.
        clauses: what the claims may rest on.
    """

    name: str
    chapter: str
    clauses: tuple[str, ...]


_PLAIN = ("intent:5-a", "intent:5-b")
_FUSION = "intent:5.5-d"
_FLUSHABLE = ("f32", "bf16")
"""Formats whose subnormal numbers are f32's."""


def _arithmetic(dtype: str) -> Group:
    flush = ("intent:5-b",) if dtype in _FLUSHABLE else ()
    fuse = (_FUSION,) if dtype in ("f32", "f64") else ()
    return Group(f"arithmetic,{dtype}", "5", ("intent:5-a", *flush, "intent:5.2-k", "intent:5.2-l", *fuse))


def _casts(dtype: str) -> Group:
    if dtype in INTS:
        return Group(f"casts,{dtype}", "5.2", ("intent:5-a", "intent:5.2-a", "intent:5.2-b"))
    flush = ("intent:5-b",) if dtype in (*_FLUSHABLE, "f64") else ()
    return Group(f"casts,{dtype}", "5.2", ("intent:5-a", *flush, *(f"intent:5.2-{letter}" for letter in "cdfg")))


GROUPS: tuple[Group, ...] = (
    *(_arithmetic(dtype) for dtype in FLOATS),
    *(
        Group(f"integers,{dtype}", "4", ("intent:4-a", "intent:4-b" if format_of(dtype).signed else "intent:4-c"))
        for dtype in INTS
    ),
    *(_casts(dtype) for dtype in (*FLOATS, *INTS)),
    Group("functions", "5.1", ("intent:5-b", "intent:5.1-a")),
    Group("approximate", "5.1", (*_PLAIN, *(f"intent:5.1-{letter}" for letter in "aghjl"), _FUSION)),
    Group("known,5", "5", (*_PLAIN, _FUSION)),
    Group("known,5.5", "5.5", (*_PLAIN, _FUSION)),
    Group("random", "12", ("intent:12-a",)),
)
"""All groups. bool has no arithmetic, and what its casts do is left open."""

BY_NAME = {group.name: group for group in GROUPS}


def together(parts: Sequence[tuple[str, Kernel]]) -> Subject:
    """One kernel that does what each of these does; inputs of one dtype are shared, the first with the first."""
    builder = Builder()
    inputs: dict[tuple[str, int], int] = {}
    outputs: list[int] = []
    labels: list[str] = []
    for label, part in parts:
        moved: dict[int, int] = {}
        counts: dict[str, int] = {}
        for at, value in enumerate(part.values):
            if isinstance(value, Input):
                dtype = value.type.dtype
                key = dtype, counts.get(dtype, 0)
                counts[dtype] = key[1] + 1
                if key not in inputs:
                    inputs[key] = builder.input(dtype)
                moved[at] = inputs[key]
                continue
            if isinstance(value, Apply):
                value = Apply(value.op, tuple(moved[arg] for arg in value.args), value.dtype, value.attrs)
            moved[at] = len(builder.values)
            builder.values.append(value)
        outputs += [moved[at] for at in part.outputs]
        labels += [label] * len(part.outputs)
    return Subject(builder.kernel(*outputs), tuple(labels))


def _operations(chosen: Iterable[Signature]) -> Subject:
    return together([(one.id, operation(one.op).kernel(one)) for one in chosen])


def _known(chapter: str, dtype: str) -> Subject:
    chosen = [one for one in KNOWN if one.chapter == chapter and dtype in one.dtypes]
    return together([(f"{one.name}[{dtype}]", one.kernel(dtype)) for one in chosen])


@cache
def subjects(name: str) -> tuple[Subject, ...]:
    """The kernels of a group."""
    kind, _, which = name.partition(",")
    match kind:
        case "known":
            return _known(which, "f32"), _known(which, "f64")
        case "arithmetic":
            chosen = [s for s in signatures(ARITHMETIC) if s.args[0] == which and not s.attrs]
        case "integers":
            chosen = [s for s in signatures(OF_INTEGERS) if s.args[0] == which and decided(s)]
        case "casts":
            chosen = [s for s in signatures(("cast",)) if s.args[0] == which and decided(s)]
        case "functions":
            chosen = [s for s in signatures(("exp2", "tanh")) if s.args[0] in ("f32", "f64") and not s.attrs]
        case "random":
            chosen = [s for s in signatures(("random_bits", "random_uniform")) if decided(s)]
        case _:
            chosen = [s for s in signatures(("exp2", "tanh", "fdiv")) if s.args[0] == "f32"]
            return _operations(chosen), _known("5.1", "f32")
    return (_operations(chosen),)


def try_code(adapter: Adapter, name: str) -> Trial:
    """Judge the PTX of a group at the lowest and the highest optimisation level; one tally for each.

    A tally counts claims: one for each output and clause that says something about its code. Outputs without a claim
    are counted as such.
    """
    trial = Trial()
    group = BY_NAME[name]
    for level in sorted({min(adapter.opt_levels), max(adapter.opt_levels)}):
        tally = Tally(f"ptx[{name}]/O{level}", group.chapter)
        trial.tallies.append(tally)
        start = time.perf_counter()
        finding: Finding | None = None
        for subject in subjects(name):
            faults = _judge(adapter, subject, level, tally)
            if faults is None:
                break
            if faults and finding is None:
                finding = _finding(tally.id, subject, faults[0])
            if faults and finding is not None:
                finding.forbidden += len(faults)
                for fault in faults:
                    clause = fault.judgement.clause
                    finding.clauses[clause] = finding.clauses.get(clause, 0) + 1
        tally.seconds = time.perf_counter() - start
        judged = tally.allowed + tally.forbidden
        if tally.state == "run" and not judged:
            tally.state, tally.reason = "unsupported", tally.reason or "nothing of this group is compiled"
        if finding is not None:
            finding.judged = judged
            trial.findings.append(finding)
    return trial


def _judge(adapter: Adapter, subject: Subject, level: int, tally: Tally) -> list[Fault] | None:
    """The faults of one kernel; None where the adapter shows no PTX at all."""
    if not isinstance(adapter, HasArtifact):
        tally.state, tally.reason = "unsupported", NO_PTX
        return None
    try:
        text = adapter.artifact(subject.kernel, Options(level))
    except (UnsupportedError, ValueError) as missing:
        tally.reason = str(missing)
        tally.no_claim += len(subject.kernel.outputs)
        return []
    if not is_ptx(text):
        tally.state, tally.reason = "unsupported", NO_PTX
        return None
    try:
        claims, faults = inspect(subject.kernel, text)
    except UnreadableError as missing:
        tally.reason = str(missing)
        tally.no_claim += len(subject.kernel.outputs)
        return []
    tally.allowed += len(claims) - len(faults)
    tally.forbidden += len(faults)
    for claim in claims:
        tally.cases[claim.clause] = tally.cases.get(claim.clause, 0) + 1
    return faults


def _finding(id_: str, subject: Subject, fault: Fault) -> Finding:
    kernel = subject.kernel
    alone = Builder(list(kernel.values)).kernel(kernel.outputs[fault.output])
    types = (*alone.input_types, *alone.output_types)
    return Finding(
        id_,
        fault.judgement.clause,
        str(alone),
        tuple(type_.dtype for type_ in types),
        message=f"The code of `{subject.labels[fault.output]}`: {fault}.",
    )
