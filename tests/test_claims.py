"""An oracle that claims too little fails nothing: how much it claims is itself asserted.

``data/claims.json`` holds, for each signature and each clause that governs it, how many elements of a quick run with
seed 0 have a claim. The numbers are exact. When inputs or rules change on purpose, write them anew with
``HALFULP_WRITE_CLAIMS=1 pytest tests/test_claims.py`` and review what fell.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from halfulp.oracle.ops import operation, signatures
from halfulp.properties.bulk import forms
from halfulp.properties.plan import Plan

FILE = Path(__file__).parent / "data" / "claims.json"
PLAN = Plan(seed=0, depth="quick")


def claims(op: str) -> dict[str, dict[str, int]]:
    """Claimed elements per clause of the array mode, for each signature of the operation."""
    found = {}
    for signature in signatures((op,)):
        array = forms(signature, PLAN)[0]
        counts = dict.fromkeys(operation(op).clauses(signature), 0)
        for run in array.runs:
            for clause, count in run.cases.items():
                counts[clause] += count
        found[signature.id] = counts
    return found


OPS = sorted({signature.op for signature in signatures()})


@pytest.mark.parametrize("op", OPS)
def test_claimed_elements(op: str) -> None:
    measured = claims(op)
    empty = [(name, clause) for name, counts in measured.items() for clause, count in counts.items() if count == 0]
    assert not empty
    if os.environ.get("HALFULP_WRITE_CLAIMS"):
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        kept[op] = measured
        FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    assert measured == json.loads(FILE.read_text())[op]


def test_the_table_has_every_operation() -> None:
    assert sorted(json.loads(FILE.read_text())) == OPS
