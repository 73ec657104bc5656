"""Files of programs of several operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.functions.source import SlowPath, use
from halfulp.oracle.judge import allowed_sets, evaluate, judge
from halfulp.oracle.kernel import Apply, Kernel, from_json
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.ops.rules import as_bits, special_codes
from halfulp.oracle.sets import AllowedSet, Mask, Verdict
from halfulp.oracle.suspects import FAULTS, Suspect
from halfulp.vectors import draw, outcomes, select
from halfulp.vectors.files import Case, Content, Group, Settings, VectorFileError, content
from halfulp.vectors.flags import in_order
from halfulp.vectors.identity import canonical, kernel_id, texts
from halfulp.vectors.ranges import Row, integers, rows
from halfulp.vectors.select import Pool
from halfulp.vectors.sources import Found, kept_inputs, kernel_reports, known_programs

DRAWN = 2048
SMALL = 16
"""Cases of a small file at least."""

FUNCTION_DRAWN = 256
"""Draws for a program with a function."""


@dataclass(frozen=True)
class Program:
    """A program that has a file.

    Attributes:
        name: of the file, without its folder.
        clause: what a wrong result breaks; may be empty.
        about: what the program shows.
        data: the kernel as JSON data.
        found: inputs with a story.
    """

    name: str
    clause: str
    about: str
    data: Mapping[str, Any]
    found: tuple[Found, ...] = ()

    @property
    def kernel(self) -> Kernel:
        return from_json(self.data)

    @property
    def path(self) -> str:
        return f"kernels/{self.name}"


@cache
def programs() -> tuple[Program, ...]:
    """Known programs, and those of public reports; a report of a known program adds its inputs there."""
    reports: dict[str, list[tuple[Mapping[str, Any], Found]]] = {}
    for record, found in kernel_reports():
        reports.setdefault(canonical(record["kernel"]), []).append((record, found))
    result = []
    for entry in known_programs():
        told = [found for _, found in reports.pop(canonical(entry["kernel"]), ())]
        result.append(Program(entry["name"], entry["clause"], entry["about"], entry["kernel"], tuple(told)))
    for group in reports.values():
        record = group[0][0]
        name = f"report-{record['id'].lower()}"
        result.append(Program(name, "", record["words"], record["kernel"], tuple(found for _, found in group)))
    for program in result:
        refuse_what_cannot_be_listed(program)
    return tuple(sorted(result, key=lambda program: program.name))


# What can be listed. The oracle calls results unspecified that need one value computed twice with different choices, or
# a product fused through a negation; a program in which neither can happen has no others than those of its choices.


def _products(kernel: Kernel, node: Apply, *, through_negation: bool) -> list[int]:
    """Operands of a sum that are products, perhaps negated."""
    found = []
    for arg in node.args if node.op in ("add", "sub") else ():
        value = kernel.values[arg]
        while through_negation and isinstance(value, Apply) and value.op == "neg":
            arg = value.args[0]
            value = kernel.values[arg]
        if isinstance(value, Apply) and value.op == "mul" and format_of(value.dtype).is_float:
            found.append(arg)
    return found


def has_choice(kernel: Kernel, position: int) -> bool:
    value = kernel.values[position]
    if not isinstance(value, Apply):
        return False
    return bool(_products(kernel, value, through_negation=False)) or value.op.startswith(("maximum", "minimum"))


def refuse_what_cannot_be_listed(program: Program) -> None:
    """See above.

    Raises:
        VectorFileError: the program may have results that a file would not list.
    """
    kernel = program.kernel
    nodes = [value for value in kernel.values if isinstance(value, Apply)]
    sites = [position for position in range(len(kernel.values)) if has_choice(kernel, position)]
    for node in nodes:
        wide = _products(kernel, node, through_negation=True)
        if wide != _products(kernel, node, through_negation=False):
            raise VectorFileError(f"{program.path}: a product is added through a negation; leave it out")
    for output in kernel.outputs:
        visits: Counter[int] = Counter()
        _visit(kernel, output, visits)
        shared = {position for position, count in visits.items() if count > 1}
        fused = {
            arg
            for position in sites
            if position in visits
            for arg in _products(kernel, kernel.values[position], through_negation=False)  # type: ignore[arg-type]
        }
        if any(_leads_to(kernel, position, sites) for position in shared) or shared & fused:
            raise VectorFileError(f"{program.path}: one output uses a value with a choice twice; leave it out")


def _visit(kernel: Kernel, position: int, visits: Counter[int]) -> None:
    visits[position] += 1
    value = kernel.values[position]
    if visits[position] == 1 and isinstance(value, Apply):
        for arg in value.args:
            _visit(kernel, arg, visits)


def _leads_to(kernel: Kernel, position: int, sites: Sequence[int]) -> bool:
    value = kernel.values[position]
    if position in sites:
        return True
    return isinstance(value, Apply) and any(_leads_to(kernel, arg, sites) for arg in value.args)


# Candidates.


def _signatures(kernel: Kernel) -> Iterator[Signature]:
    for value in kernel.values:
        if isinstance(value, Apply):
            args = tuple(kernel.type_of(arg).dtype for arg in value.args)
            yield Signature(value.op, args, value.dtype, value.attrs)


def _is_costly(kernel: Kernel) -> bool:
    return any(OPERATIONS[s.op].costly(s) for s in _signatures(kernel))


def _columns(program: Program, settings: Settings) -> tuple[list[Bits], int]:
    """Operands in question, and how many of the first are taken in any case."""
    kernel = program.kernel
    formats = [format_of(type_.dtype) for type_ in kernel.input_types]
    forced = dict.fromkeys(found.inputs for found in program.found)
    parts = [[as_bits(fmt, [row[place] for row in forced]) for place, fmt in enumerate(formats)]]
    names = {fmt.name for fmt in formats}
    if len(formats) == 3 and len(names) == 1 and formats[0].is_float:
        parts.append(list(OPERATIONS["muladd"].critical(Signature("muladd", (formats[0].name,) * 3, formats[0].name))))
        parts.append(_orders(formats[0]))
    elif len(formats) == 2:
        lists = [special_codes(fmt) for fmt in formats]
        crossed = [(a, b) for a in lists[0] for b in lists[1]]
        parts.append([as_bits(fmt, [row[place] for row in crossed]) for place, fmt in enumerate(formats)])
    elif len(formats) == 1:
        parts.append([as_bits(formats[0], special_codes(formats[0]))])
        same = [s for s in dict.fromkeys(_signatures(kernel)) if s.formats == (formats[0],)]
        parts += [list(OPERATIONS[s.op].critical(s)) for s in same]
    windows = [OPERATIONS[s.op].window for s in _signatures(kernel)]
    window = next((window for window in windows if window is not None), None)
    count = max(FUNCTION_DRAWN if _is_costly(kernel) else DRAWN, 2 * settings.size)
    parts.append(draw.tuples(formats, f"halfulp vectors {settings.seed} {canonical(program.data)}", count, window))
    return [np.concatenate(column) for column in zip(*parts, strict=True)], len(forced)


def _orders(fmt: Format) -> list[Bits]:
    """2**p, 1 and 1, whose sum depends on the order, and its mirror images."""
    one = fmt.bias << fmt.fraction_bits
    large = min(one + (fmt.precision << fmt.fraction_bits), fmt.max_finite_bits)
    rows_of = ((large, one, one), (one, one, large), (large, one, large | fmt.sign_mask))
    return [as_bits(fmt, list(column)) for column in zip(*rows_of, strict=True)]


def _spread(allowed: AllowedSet, count: int) -> AllowedSet:
    """A set of rank 0 for every element."""
    return allowed if len(allowed) == count else allowed.take(np.zeros(count, np.intp))


def answers(kernel: Kernel, columns: Sequence[Bits], count: int) -> list[AllowedSet]:
    """What each output may be on its own, ``count`` elements each."""
    with np.errstate(all="ignore"):
        return [_spread(allowed, count) for allowed in allowed_sets(kernel, columns)]


def verdicts(kernel: Kernel, columns: Sequence[Bits], got: Sequence[Bits], count: int) -> Any:
    """The worst verdict on the outputs of each element, shape (count,)."""
    with np.errstate(all="ignore"):
        found = judge(kernel, columns, [np.atleast_1d(bits) for bits in got])
    return np.maximum.reduce([np.broadcast_to(one, (count,)) for one in found])


def _by_suspect(record: Suspect, kernel: Kernel, columns: Sequence[Bits]) -> Sequence[Bits] | None:
    """What comes out where a suspect is at work; None where it has no part in the program."""
    with np.errstate(all="ignore"):
        if record.kernel_rule is not None:
            return record.kernel_rule(kernel, columns)
        if record.rule is None or not any(map(record.applies, _signatures(kernel))):
            return None
        return evaluate(kernel, columns, record.override)


def pool(kernel: Kernel, columns: Sequence[Bits], forced: int) -> tuple[Pool, list[AllowedSet]]:
    """Candidates for a program, without those of which nothing is required."""
    count = len(columns[0]) if columns else 1
    some = list(columns)
    must = list(range(forced))
    if columns:
        keep = select.distinct(columns)
        some = [column[keep] for column in columns]
        count = len(keep)
        must = np.flatnonzero(keep < forced).tolist()
    sets = answers(kernel, some, count)
    useful = np.ones(count, bool)
    for allowed in sets:
        useful &= allowed.claimed
        if allowed.anything is not None:
            useful &= ~allowed.anything
    taken = np.flatnonzero(useful)
    places = {position: place for place, position in enumerate(taken.tolist())}
    some = [np.ascontiguousarray(column[taken]) for column in some]
    sets = [allowed.take(taken) for allowed in sets]
    kills: dict[str, Mask] = {}
    for name, record in FAULTS.items():
        got = _by_suspect(record, kernel, some)
        if got is not None:
            mask = verdicts(kernel, some, got, len(taken)) == Verdict.FORBIDDEN
            if mask.any():  # what changes nothing here is no mistake here
                kills[name] = mask
    single = np.logical_and.reduce([allowed.single for allowed in sets])
    kinds = [(format_of(type_.dtype), column) for type_, column in zip(kernel.input_types, some, strict=True)]
    kinds += [(allowed.format, allowed.nearest) for allowed in sets]
    return Pool(some, kinds, single, [places[at] for at in must if at in places], kills), sets


# Cases.


def alternatives(kernel: Kernel, columns: Sequence[Bits], separate: Sequence[Row]) -> list[list[Row]]:
    """The outcomes of one element; columns have shape (1,)."""
    formats = [format_of(type_.dtype) for type_ in kernel.output_types]
    combinations = list(outcomes.combinations(separate))
    if len([one for one in separate if outcomes.points(one)]) < 2:
        return outcomes.joined(formats, separate, combinations)
    count = len(combinations)
    repeated = [np.repeat(column, count) for column in columns]
    results = list(zip(*combinations, strict=True))
    got = []
    for fmt, one in zip(formats, separate, strict=True):
        codes_of = list(results.pop(0)) if outcomes.points(one) else [one.nearest] * count
        got.append(as_bits(fmt, codes_of))
    right = verdicts(kernel, repeated, got, count) == Verdict.ALLOWED
    kept_together = [joint for joint, good in zip(combinations, right.tolist(), strict=True) if good]
    return outcomes.joined(formats, separate, kept_together)


def _cases(program: Program, found: Pool, sets: Sequence[AllowedSet]) -> Iterator[Case]:
    kernel = program.kernel
    names = [type_.dtype for type_ in kernel.input_types]
    formats = [format_of(type_.dtype) for type_ in kernel.output_types]
    stories = {story.inputs: story for story in program.found}
    columns = found.columns
    answers_of = [rows(allowed) for allowed in sets]
    values = list(zip(*map(integers, columns), strict=True)) if columns else [()] * len(found)
    for at in range(len(found)):
        separate = [one[at] for one in answers_of]
        assert all(one is not None for one in separate)
        some = [one for one in separate if one is not None]
        inputs = texts(names, values[at])
        right = alternatives(kernel, [column[at : at + 1] for column in columns], some)
        flags = {"multiple_outputs"} if len(right) > 1 else set()
        flags |= {"several"} if any(outcomes.points(one) for one in some) else set()
        flags |= {"open"} if any(one.unspecified for one in some) else set()
        story = stories.get(values[at])
        case: Case = {
            "id": kernel_id(program.data, inputs),
            "inputs": inputs,
            "nearest": [fmt.hex(one.nearest) for fmt, one in zip(formats, some, strict=True)],
            "alternatives": outcomes.as_fields(formats, right),
            "flags": in_order(flags | ({story.flag} if story else set())),
            "kills": sorted(name for name, mask in found.kills.items() if mask[at]),
        }
        yield case | ({"source": story.source, "note": story.note} if story else {})


def _chosen(program: Program, settings: Settings) -> list[tuple[int, ...]]:
    """The inputs that a program asks for."""
    columns, forced = _columns(program, settings)
    found, _ = pool(program.kernel, columns, forced)
    positions = select.select(found, max(SMALL, settings.size) + forced)
    return list(zip(*(integers(column[positions]) for column in found.columns), strict=True))


def generate(program: Program, settings: Settings) -> Content:
    """The file of one program."""
    kernel = program.kernel
    with use(SlowPath()):
        columns: list[Bits] = []
        if kernel.input_types:
            sizes = dict.fromkeys((replace(settings, size=0), settings))  # a large set holds the small one
            inputs = sorted({*kept_inputs(program.path), *(row for size in sizes for row in _chosen(program, size))})
            formats_of = [format_of(type_.dtype) for type_ in kernel.input_types]
            columns = [as_bits(fmt, [row[place] for row in inputs]) for place, fmt in enumerate(formats_of)]
        found, sets = pool(kernel, columns, 0)
        cases = list(_cases(program, found, sets))
    clauses = (program.clause,) if program.clause else ()
    formats = {type_.dtype for type_ in (*kernel.input_types, *kernel.output_types)}
    formats |= {value.dtype for value in kernel.values if isinstance(value, Apply)}
    return content(
        "kernel",
        program.path,
        program.about,
        [Group(", ".join(clauses) or "as reported", clauses, cases)],
        settings,
        oracle="exact rational arithmetic, every operation rounded once; all choices of fusing enumerated",
        formats=formats,
        kernel=dict(program.data),
    )
