"""Compiled code, judged as text: what PTX shows of its results before it has run (chapters 4, 5 and 12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halfulp.adapters.protocol import Adapter
from halfulp.properties.ptx_items import GROUPS, Group, try_group
from halfulp.properties.results import Trial


@pytest.mark.parametrize(
    "group", [pytest.param(group, id=group.name, marks=pytest.mark.clauses(*group.clauses)) for group in GROUPS]
)
def test_code(backend: Adapter, report_trial: Callable[[Trial], None], group: Group) -> None:
    report_trial(try_group(backend, group))
