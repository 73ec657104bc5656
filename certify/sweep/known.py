"""Known worst inputs: of libraries past and present, and those next to which implementations change their method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from halfulp.oracle.ops.record import Signature


@dataclass(frozen=True)
class Known:
    """An input worth trying first.

    Attributes:
        operands: bit patterns.
        why: what is known of it.
    """

    operands: tuple[int, ...]
    why: str


@cache
def _content() -> Mapping[str, Any]:
    text = (resources.files("halfulp.vectors") / "sources" / "worst-inputs.json").read_text(encoding="utf-8")
    content: Mapping[str, Any] = json.loads(text)["operations"]
    return content


def known_inputs(signature: Signature) -> tuple[Known, ...]:
    """The inputs kept for an operation in a format; attributes make no difference. Empty where there are none."""
    rows = _content().get(signature.op, {}).get(signature.args[0], ())
    return tuple(Known(tuple(int(code, 16) for code in row["operands"]), row["why"]) for row in rows)
