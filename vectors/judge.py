"""Judging a result by what a file says, as a reader in any language does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfulp.vectors.files import Case, Content, VectorFileError
from halfulp.vectors.ranges import holds
from halfulp.vectors.verify import spans_of

SEVERITY = ("allowed", "unspecified", "forbidden")

KINDS = ("operation", "function", "kernel")
"""Kinds whose results are bit patterns."""


def of_set(entry: Mapping[str, Any], code: int) -> str:
    """The verdict on one bit pattern."""
    if holds(spans_of(entry["allowed"]), code):
        return "allowed"
    return "unspecified" if holds(spans_of(entry["unspecified"]), code) else "forbidden"


def judge(data: Content, case: Case, got: Sequence[str]) -> str:
    """The verdict on the results of one case: ``allowed``, ``unspecified`` or ``forbidden``.

    Raises:
        VectorFileError: the results are no bit patterns, or not as many as there are outputs.
    """
    if data["kind"] not in KINDS:
        raise VectorFileError(f"{case['id']} is a case of kind {data['kind']}, which has no bit pattern for a result")
    expected = len(case["nearest"]) if data["kind"] == "kernel" else 1
    if len(got) != expected:
        raise VectorFileError(f"{case['id']} has {expected} outputs, and {len(got)} results are given")
    try:
        codes = [int(text, 16) for text in got]
    except ValueError as error:
        raise VectorFileError(f"{case['id']}: {' '.join(got)} is no bit pattern; write hexadecimal digits") from error
    alternatives = case["alternatives"] if data["kind"] == "kernel" else [[case]]
    worst = (
        max((of_set(entry, code) for entry, code in zip(one, codes, strict=True)), key=SEVERITY.index)
        for one in alternatives
    )
    return min(worst, key=SEVERITY.index)
