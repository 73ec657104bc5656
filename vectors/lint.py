"""What has to hold of every vector file besides its truth: shape, counts, ids, coverage of suspects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from halfulp.oracle.formats import STORAGE_ONLY, format_of
from halfulp.vectors.catalogue import files
from halfulp.vectors.files import Case, Content, VectorFileError, cases_of, read, text_of
from halfulp.vectors.flags import in_order
from halfulp.vectors.generate import IDS, SUMS, read_ids, refuse_repeated
from halfulp.vectors.ranges import holds, sign_bit
from halfulp.vectors.select import suspects_of
from halfulp.vectors.verify import signature_of, spans_of, vector_files

LARGEST = 1_000_000
"""Bytes of one file of the small set."""


def _range_faults(dtype: str, pairs: list[list[str]]) -> Iterator[str]:
    fmt = format_of(dtype)
    spans = spans_of(pairs)
    digits = {len(text) for pair in pairs for text in pair}
    if digits - {fmt.hex_digits + 2}:
        yield f"a bound has not the {fmt.hex_digits} digits of {dtype}"
    border = sign_bit(fmt)
    for low, high in spans:
        if low > high or (low < border) != (high < border):
            yield f"{fmt.hex(low)}..{fmt.hex(high)} is empty, or of two signs"
    for (_, high), (low, _) in pairwise(spans):
        if low <= high or (low == high + 1 and low != border):
            yield f"ranges do not ascend, overlap or touch at {fmt.hex(low)}"


def _case_faults(data: Content, case: Case) -> Iterator[str]:
    if in_order(set(case.get("flags", ()))) != case.get("flags", []):
        yield "flags are unknown, repeated or out of order"
    if sorted(set(case.get("kills", ()))) != case.get("kills", []):
        yield "kills are repeated or out of order"
    if data["kind"] in ("operation", "function"):
        fields = data["operation"]
        for text, dtype in zip((*case["inputs"], case["nearest"]), (*fields["args"], fields["result"]), strict=True):
            if len(text) != format_of(dtype).hex_digits + 2:
                yield f"{text} has not the width of {dtype}"
        yield from _range_faults(fields["result"], case["allowed"])
        yield from _range_faults(fields["result"], case["unspecified"])
        if not holds(spans_of(case["allowed"]), int(case["nearest"], 16)):
            yield "the nearest result is not allowed"
    if data["kind"] == "kernel":
        types = _output_types(data["kernel"])
        for alternative in case["alternatives"]:
            for dtype, one in zip(types, alternative, strict=True):
                yield from _range_faults(dtype, one["allowed"])
                yield from _range_faults(dtype, one["unspecified"])


def _output_types(kernel: Mapping[str, Any]) -> list[str]:
    values = (kernel["values"][output] for output in kernel["outputs"])
    return [value.get("dtype") or value.get("input") or value["constant"] for value in values]


def alive(data: Content) -> list[str]:
    """The suspects of an operation that no case of its file kills. Of other kinds: none is asked for."""
    if data["kind"] not in ("operation", "function"):
        return []
    signature = signature_of(data)
    if {*signature.args, signature.result} & set(STORAGE_ONLY):
        return []  # where a wrong rule may be right: see `operations`
    killed = {name for case in cases_of(data) for name in case["kills"]}
    return [record.name for record in suspects_of(signature) if record.name not in killed]


def content_faults(data: Content) -> Iterator[str]:
    """What is wrong with a file as such."""
    cases = list(cases_of(data))
    if data["count"] != len(cases):
        yield f'"count" is {data["count"]}, and there are {len(cases)} cases'
    killed = sorted({name for case in cases for name in case.get("kills", ())})
    if list(data["suspects"]) != killed:
        yield '"suspects" are not those that cases kill'
    used = sorted({flag for case in cases for flag in case.get("flags", ())})
    if list(data["flags"]) != used:
        yield '"flags" are not those that cases carry'
    named = sorted({clause for group in data["groups"] for clause in group["clauses"]})
    if list(data["clauses"]) != named:
        yield '"clauses" are not those of the groups'
    for case in cases:
        for fault in _case_faults(data, case):
            yield f"{case['id']}: {fault}"
    left = alive(data)
    if left:
        yield f"no case kills {', '.join(left)}"


def lint(folder: Path) -> Iterator[str]:
    """What is wrong with a set of files, one line each."""
    found = vector_files(folder)
    if not found:
        yield f"{folder} holds no vector files; write some with `halfulp vectors generate --out {folder}`"
        return
    ids: dict[str, list[str]] = {}
    settings: set[tuple[int, int]] = set()
    for name, path in found.items():
        try:
            data = read(path)
            faults = list(content_faults(data))
        except VectorFileError as error:
            yield str(error)
            continue
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield f"{name}: does not follow the schema: {type(error).__name__} {error}"
            continue
        ids[name] = sorted(case["id"] for case in cases_of(data))
        settings.add((data["generator"]["seed"], data["generator"]["size"]))
        if data["name"] != name:
            yield f'{name}: "name" is {data["name"]}'
        if path.read_bytes() != text_of(data).encode("ascii"):
            yield f"{name}: the text is not as the generator writes it; generate the file again"
        if not data["generator"]["size"] and path.stat().st_size > LARGEST:
            yield f"{name}: {path.stat().st_size} bytes are more than {LARGEST}"
        for fault in faults:
            yield f"{name}: {fault}"
    try:
        refuse_repeated(ids)
    except VectorFileError as error:
        yield str(error)
    if settings == {(0, 0)}:
        yield from _set_faults(folder, ids)
    yield from _sum_faults(folder)


def _set_faults(folder: Path, ids: Mapping[str, list[str]]) -> Iterator[str]:
    """Of the small set: the list of ids, and that no file is missing."""
    known = read_ids(folder / IDS)
    if known != ids:
        odd = sorted(name for name in {*known, *ids} if known.get(name) != ids.get(name))
        yield f"{IDS} does not agree with {', '.join(odd[:3])}; generate these again"
    if len(ids) > 1:
        missing = sorted(set(files()) - set(ids))
        if missing:
            yield f"missing: {', '.join(missing[:5])} ({len(missing)} in all)"
        further = sorted(set(ids) - set(files()))
        if further:
            yield f"no such file is made any more: {', '.join(further[:5])}"


def _sum_faults(folder: Path) -> Iterator[str]:
    path = folder / SUMS
    if not path.exists():
        yield f"there is no {SUMS}; `halfulp vectors generate` writes it"
        return
    for line in path.read_text(encoding="ascii").splitlines():
        expected, _, name = line.partition("  ")
        target = folder / name
        if not target.exists():
            yield f"{SUMS} lists {name}, which is not there"
        elif hashlib.sha256(target.read_bytes()).hexdigest() != expected:
            yield f"{name} has changed since {SUMS} was written"
