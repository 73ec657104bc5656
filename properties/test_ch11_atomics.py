"""Chapter 11: atomics, judged by the memory model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halfulp.adapters.protocol import Adapter
from halfulp.oracle.memory.program import DTYPES
from halfulp.properties.contests import GROUPS as CONTESTS
from halfulp.properties.contests import try_contest
from halfulp.properties.litmus import try_orders
from halfulp.properties.litmus_drawn import try_drawn
from halfulp.properties.litmus_items import GROUPS, try_family, try_family_instructions, try_orders_of
from halfulp.properties.plan import Plan
from halfulp.properties.results import Trial

ALL = pytest.mark.clauses("intent:11-a", "intent:11-b", "intent:11-c", "intent:11-d", "intent:11-f")


@ALL
@pytest.mark.parametrize("family", GROUPS, ids=[group.replace(" ", "-") for group in GROUPS])
def test_outcomes(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], family: str) -> None:
    report_trial(try_family(backend, family, plan))


@ALL
@pytest.mark.parametrize("family", GROUPS, ids=[group.replace(" ", "-") for group in GROUPS])
def test_instructions(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], family: str) -> None:
    report_trial(try_family_instructions(backend, family, plan))


@ALL
def test_drawn_programs(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None]) -> None:
    report_trial(try_drawn(backend, plan))


@ALL
@pytest.mark.clauses("intent:11-h")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_order(backend: Adapter, report_trial: Callable[[Trial], None], dtype: str) -> None:
    report_trial(try_orders_of(backend, dtype))


@pytest.mark.parametrize(
    "clause", [pytest.param(c, id=c, marks=pytest.mark.clauses(c)) for c in ("intent:11-e", "intent:11-g")]
)
def test_orders_and_scopes_are_checked(backend: Adapter, report_trial: Callable[[Trial], None], clause: str) -> None:
    report_trial(try_orders(backend, clause))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        pytest.param(kind, dtype, id=f"{kind}-{dtype}", marks=pytest.mark.clauses(f"intent:11-{'bc'[kind == 'cas']}"))
        for kind, dtype in CONTESTS
    ],
)
def test_contest(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], kind: str, dtype: str) -> None:
    report_trial(try_contest(backend, kind, dtype, plan))
