"""Chapters 1, 3, 4, 5 and 5.2: what must be refused and what must be accepted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halfulp.adapters.protocol import Adapter
from halfulp.properties.plan import Plan
from halfulp.properties.results import Trial
from halfulp.properties.typed import acceptance_table, rejection_table, try_acceptances, try_rejections


@pytest.mark.parametrize(
    "clause", [pytest.param(clause, id=clause, marks=pytest.mark.clauses(clause)) for clause in rejection_table()]
)
def test_ill_typed_programs_are_refused(backend: Adapter, report_trial: Callable[[Trial], None], clause: str) -> None:
    report_trial(try_rejections(backend, clause))


@pytest.mark.parametrize(
    "clause", [pytest.param(clause, id=clause, marks=pytest.mark.clauses(clause)) for clause in acceptance_table()]
)
def test_well_typed_programs_are_accepted(
    backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], clause: str
) -> None:
    report_trial(try_acceptances(backend, clause, plan))
