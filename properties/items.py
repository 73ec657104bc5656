"""What the test modules are parametrised with: one pytest item for each signature and each known program."""

from __future__ import annotations

from typing import Any

import pytest

from halfulp.oracle.kernel import Apply
from halfulp.oracle.ops import operation, signatures
from halfulp.oracle.ops.functions import FUNCTIONS
from halfulp.properties.bulk import chapter_of
from halfulp.properties.known import KNOWN, Known

FUNCTION_NAMES = frozenset(record.name for record in FUNCTIONS)


def signatures_of(chapter: str, *, functions: bool = False) -> list[Any]:
    """The signatures of a chapter, with our ids and the marks by which ``--clauses`` selects: functions or others."""
    return [
        pytest.param(signature, id=signature.id, marks=pytest.mark.clauses(*operation(signature.op).clauses(signature)))
        for signature in signatures()
        if chapter_of(signature) == chapter and (signature.op in FUNCTION_NAMES) == functions
    ]


def known_of(chapter: str, *, functions: bool = False) -> list[Any]:
    """The known programs of a chapter, with functions or without; those on indices (chapter 2) stand with the
    integers."""
    return [
        pytest.param(known, id=known.name, marks=pytest.mark.clauses(known.clause))
        for known in KNOWN
        if (known.chapter == chapter or (chapter == "4" and known.chapter == "2")) and _has_function(known) == functions
    ]


def _has_function(known: Known) -> bool:
    return any(isinstance(v, Apply) and v.op in FUNCTION_NAMES for v in known.kernel(known.dtypes[0]).values)
