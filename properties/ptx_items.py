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
from halfulp.oracle.kernel import Apply, Input, Kernel, Type, one_node
from halfulp.oracle.ops import decided, operation, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.properties.build import COMPARISONS, Builder
from halfulp.properties.known import KNOWN
from halfulp.properties.ptx import is_ptx
from halfulp.properties.ptx_rules import EXTREMA, Fault, inspect
from halfulp.properties.results import Finding, Tally, Trial

NO_PTX = "no PTX to look at"

ARITHMETIC = ("add", "sub", "mul", "div", "fdiv", "sqrt", "neg", "abs", "muladd", *EXTREMA, *COMPARISONS)
MODAL = ("exp2", "tanh", "fdiv")
OF_INTEGERS = ("add", "sub", "mul", "neg", "abs", "floordiv", "mod", "shl", "shr")


@dataclass(frozen=True)
class Subject:
    """A kernel whose code is judged, and what each of its outputs is."""

    kernel: Kernel
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One kernel of a group.

    Attributes:
        name: ours: ``"casts,f64"``; the id is ``ptx[casts,f64]/O0``.
        clauses: what the claims about it rest on, all of them.
    """

    name: str
    clauses: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """What one pytest item judges: a chapter, or half of one."""

    name: str
    chapter: str
    parts: tuple[Part, ...]

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(clause for part in self.parts for clause in part.clauses))


_FUSION = "intent:5.5-d"
_FLUSHABLE = ("f32", "bf16")
"""Formats whose subnormal numbers are f32's."""


def _arithmetic(dtype: str) -> Part:
    flush = ("intent:5-b",) if dtype in _FLUSHABLE else ()
    fuse = (_FUSION,) if dtype in ("f32", "f64") else ()
    return Part(f"arithmetic,{dtype}", ("intent:5-a", *flush, "intent:5.2-k", "intent:5.2-l", *fuse))


def _integers(dtype: str) -> Part:
    return Part(f"integers,{dtype}", ("intent:4-a", "intent:4-b" if format_of(dtype).signed else "intent:4-c"))


def _casts(dtype: str) -> Part:
    if dtype in INTS:
        return Part(f"casts,{dtype}", ("intent:5-a", "intent:5.2-a", "intent:5.2-b"))
    flush = ("intent:5-b",) if dtype in (*_FLUSHABLE, "f64") else ()
    return Part(f"casts,{dtype}", ("intent:5-a", *flush, *(f"intent:5.2-{letter}" for letter in "cdfg")))


def _of_chapter(chapter: str) -> tuple[Part, ...]:
    narrows = ("intent:5-b",) if chapter == "5.5" else ()  # from f64 to f32
    return (
        Part(f"known-{chapter},f32", ("intent:5-a", "intent:5-b", _FUSION)),
        Part(f"known-{chapter},f64", ("intent:5-a", *narrows, _FUSION)),
    )


_MODES = ("intent:5-a", "intent:5-b", *(f"intent:5.1-{letter}" for letter in "aghjl"))

GROUPS: tuple[Group, ...] = (
    Group("arithmetic", "5", (*map(_arithmetic, FLOATS), *_of_chapter("5"))),
    Group("fusion", "5.5", _of_chapter("5.5")),
    Group("integers", "4", tuple(map(_integers, INTS))),
    Group("casts-of-floats", "5.2", tuple(map(_casts, FLOATS))),
    Group("casts-of-integers", "5.2", tuple(map(_casts, INTS))),
    Group(
        "approximate",
        "5.1",
        (
            Part("functions", ("intent:5-b", "intent:5.1-a")),
            Part("approximate", _MODES),
            Part("known-5.1,f32", (*_MODES, _FUSION)),
        ),
    ),
    Group("random", "12", (Part("random", ("intent:12-a",)),)),
)
"""All groups. bool has no arithmetic, and what its casts do is left open."""

CHAPTERS = {part.name: group.chapter for group in GROUPS for part in group.parts}


def together(parts: Sequence[tuple[str, Kernel]]) -> Subject:
    """One kernel that does what each of these does; inputs of one type are shared, the first with the first."""
    builder = Builder()
    inputs: dict[tuple[Type, int], int] = {}
    outputs: list[int] = []
    labels: list[str] = []
    for label, part in parts:
        moved: dict[int, int] = {}
        counts: dict[Type, int] = {}
        for at, value in enumerate(part.values):
            if isinstance(value, Input):
                key = value.type, counts.get(value.type, 0)
                counts[value.type] = key[1] + 1
                if key not in inputs:
                    inputs[key] = builder.input(value.type.dtype, scalar=not value.type.dims)
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
def subject(name: str) -> Subject:
    """The kernel of a part."""
    kind, _, which = name.partition(",")
    match kind:
        case "arithmetic":
            return _operations(s for s in signatures(ARITHMETIC) if s.args[0] == which and not s.attrs)
        case "integers":
            return _operations(s for s in signatures(OF_INTEGERS) if s.args[0] == which and decided(s))
        case "casts":
            return _operations(s for s in signatures(("cast",)) if s.args[0] == which and decided(s))
        case "functions":
            return _operations(s for s in signatures(MODAL[:2]) if s.args[0] in ("f32", "f64") and not s.attrs)
        case "approximate":
            return _operations(s for s in signatures(MODAL) if s.args[0] == "f32")
        case "random":
            return _operations(s for s in signatures(("random_bits", "random_uniform")) if decided(s))
    return _known(kind.removeprefix("known-"), which)


def try_group(adapter: Adapter, group: Group) -> Trial:
    """Judge the PTX of a group at the lowest and the highest optimisation level."""
    trial = Trial()
    if not shows_ptx(adapter):
        tally = Tally(f"ptx[{group.name}]/O{min(adapter.opt_levels)}", group.chapter, "unsupported", NO_PTX)
        return Trial([tally])
    for part in group.parts:
        tried = try_part(adapter, part.name)
        trial.tallies += tried.tallies
        trial.findings += tried.findings
    return trial


def try_part(adapter: Adapter, name: str) -> Trial:
    """Judge the PTX of one kernel.

    A tally counts claims: one for each output and clause that says something about its code. What the adapter does not
    compile, or what cannot be read, has none.
    """
    trial = Trial()
    for level in sorted({min(adapter.opt_levels), max(adapter.opt_levels)}):
        tally = Tally(f"ptx[{name}]/O{level}", CHAPTERS[name])
        trial.tallies.append(tally)
        start = time.perf_counter()
        faults = _judge(adapter, subject(name), level, tally)
        tally.seconds = time.perf_counter() - start
        if not faults:
            continue
        finding = _finding(tally.id, subject(name), faults)
        finding.judged = tally.allowed + tally.forbidden
        if trial.findings and trial.findings[0].clauses == finding.clauses:
            trial.findings[0].message += f" Likewise at O{level}."
        else:
            trial.findings.append(finding)
    return trial


def shows_ptx(adapter: Adapter) -> bool:
    """Whether the adapter shows what it compiles, and that is PTX: asked of the sum of two f32."""
    try:
        return isinstance(adapter, HasArtifact) and is_ptx(adapter.artifact(_SUM, Options(min(adapter.opt_levels))))
    except (UnsupportedError, ValueError):
        return False


_SUM = one_node("add", ("f32", "f32"), "f32")


def _judge(adapter: Adapter, subject: Subject, level: int, tally: Tally) -> list[Fault]:
    """The faults of one kernel."""
    assert isinstance(adapter, HasArtifact)
    try:
        claims, faults = inspect(subject.kernel, adapter.artifact(subject.kernel, Options(level)))
    except (UnsupportedError, ValueError) as missing:
        tally.state, tally.reason = "unsupported", str(missing)
        return []
    tally.allowed, tally.forbidden = len(claims) - len(faults), len(faults)
    for claim in claims:
        tally.cases[claim.clause] = tally.cases.get(claim.clause, 0) + 1
    return faults


def _finding(id_: str, subject: Subject, faults: Sequence[Fault]) -> Finding:
    """One finding for all faults of a kernel: the first is told, and shown without the other outputs."""
    first = faults[0]
    alone = Builder(list(subject.kernel.values)).kernel(subject.kernel.outputs[first.output])
    types = (*alone.input_types, *alone.output_types)
    clauses: dict[str, int] = {}
    for fault in faults:
        clauses[fault.judgement.clause] = clauses.get(fault.judgement.clause, 0) + 1
    return Finding(
        id_,
        first.judgement.clause,
        str(alone),
        tuple(type_.dtype for type_ in types),
        forbidden=len(faults),
        message=f"The code of `{subject.labels[first.output]}`: {first}.",
        clauses=clauses,
    )
