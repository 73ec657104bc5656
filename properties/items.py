"""What the test modules are parametrised with: one pytest item for each signature and each known program."""

from __future__ import annotations

from typing import Any

import pytest

from halfulp.oracle.ops import operation, signatures
from halfulp.properties.bulk import chapter_of
from halfulp.properties.known import KNOWN


def signatures_of(chapter: str) -> list[Any]:
    """The signatures of a chapter, with our ids and the marks by which ``--clauses`` selects."""
    return [
        pytest.param(signature, id=signature.id, marks=pytest.mark.clauses(*operation(signature.op).clauses(signature)))
        for signature in signatures()
        if chapter_of(signature) == chapter
    ]


def known_of(chapter: str) -> list[Any]:
    """The known programs of a chapter; those on indices (chapter 2) stand with the integers."""
    return [
        pytest.param(known, id=known.name, marks=pytest.mark.clauses(known.clause))
        for known in KNOWN
        if known.chapter == chapter or (chapter == "4" and known.chapter == "2")
    ]
