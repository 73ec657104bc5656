"""Chapter 5.5: fused multiply-add."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halfulp.adapters.protocol import Adapter
from halfulp.oracle.ops.record import Signature
from halfulp.properties import items
from halfulp.properties.kernels import FUSION, search
from halfulp.properties.known import Known
from halfulp.properties.plan import Plan
from halfulp.properties.programs import try_programs
from halfulp.properties.results import Trial
from halfulp.properties.trial import try_signature


@pytest.mark.parametrize("signature", items.signatures_of("5.5"))
def test_operation(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], signature: Signature) -> None:
    report_trial(try_signature(backend, signature, plan))


@pytest.mark.parametrize("known", items.known_of("5.5"))
def test_known_program(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], known: Known) -> None:
    report_trial(try_programs(backend, known.subjects(plan)))


@pytest.mark.clauses("intent:5.5-a", "intent:5.5-c", "intent:5.5-d", "intent:5-b")
def test_drawn_programs(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None]) -> None:
    report_trial(search(backend, plan, "fused-programs", "5.5", FUSION))
