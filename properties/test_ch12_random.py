"""Chapter 12: random bits and uniform numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halfulp.adapters.protocol import Adapter
from halfulp.oracle.ops.record import Signature
from halfulp.properties import items
from halfulp.properties.known import Known
from halfulp.properties.launches import try_launches
from halfulp.properties.plan import Plan
from halfulp.properties.programs import try_programs
from halfulp.properties.results import Trial
from halfulp.properties.trial import try_signature


@pytest.mark.parametrize("signature", items.signatures_of("12"))
def test_operation(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], signature: Signature) -> None:
    report_trial(try_signature(backend, signature, plan))


@pytest.mark.parametrize("known", items.known_of("12"))
def test_known_program(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None], known: Known) -> None:
    report_trial(try_programs(backend, known.subjects(plan)))


@pytest.mark.clauses("intent:12-d")
def test_launches(backend: Adapter, plan: Plan, report_trial: Callable[[Trial], None]) -> None:
    report_trial(try_launches(backend, plan))
