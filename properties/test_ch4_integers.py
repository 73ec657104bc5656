"""Chapter 4: integer arithmetic, and index arithmetic (2-a)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halfulp.adapters.protocol import Adapter
from halfulp.oracle.ops.record import Signature
from halfulp.properties import items
from halfulp.properties.kernels import INTEGERS, search
from halfulp.properties.known import Known
from halfulp.properties.plan import Plan
from halfulp.properties.programs import try_programs
from halfulp.properties.results import Trial
from halfulp.properties.trial import try_signature


@pytest.mark.parametrize("signature", items.signatures_of("4"))
def test_operation(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], signature: Signature) -> None:
    report_trial(try_signature(backend, signature, plan))


@pytest.mark.parametrize("known", items.known_of("4"))
def test_known_program(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], known: Known) -> None:
    report_trial(try_programs(backend, known.subjects(plan)))


@pytest.mark.clauses("intent:4-a", "intent:4-b", "intent:4-c", "intent:4-e", "intent:4-f", "intent:4-g", "intent:4-l")
def test_drawn_programs(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None]) -> None:
    report_trial(search(backend, plan, "integer-programs", "4", INTEGERS))
