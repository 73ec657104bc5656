"""Ids of cases: what a case asks, hashed. Two cases with one id ask the same, in every file and every version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from halfulp.oracle.formats import format_of
from halfulp.oracle.ops.record import Signature

DIGITS = 16
"""Hexadecimal digits of an id: among a million cases two share one with a probability of 3e-8."""


def identity(question: str) -> str:
    """The id of a question: the first 16 hexadecimal digits of the SHA-256 of its UTF-8 text."""
    return hashlib.sha256(question.encode()).hexdigest()[:DIGITS]


def canonical(data: Any) -> str:
    """JSON text with sorted keys and no spaces, ASCII only: equal data, equal text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def asked(signature: Signature) -> str:
    """An operation on formats with attributes: ``fdiv[f32,f32->f32;approximate=true]``."""
    attrs = "".join(f";{name}={canonical(setting).strip(chr(34))}" for name, setting in sorted(signature.attrs))
    return f"{signature.op}[{','.join(signature.args)}->{signature.result}{attrs}]"


def texts(formats: Iterable[str], codes: Iterable[int]) -> list[str]:
    """Bit patterns as text, each in the width of its format."""
    return [format_of(name).hex(code) for name, code in zip(formats, codes, strict=True)]


def operation_id(signature: Signature, inputs: Iterable[str]) -> str:
    """``cast[f32->bf16](0x3f808000)``, hashed."""
    return identity(f"{asked(signature)}({','.join(inputs)})")


def kernel_id(kernel: Mapping[str, Any], inputs: Iterable[str]) -> str:
    """The canonical JSON of the kernel and the inputs in brackets, hashed."""
    return identity(f"{canonical(kernel)}({','.join(inputs)})")


def program_id(program: Mapping[str, Any]) -> str:
    """The canonical JSON of a program, hashed; its name, if it has one, does not count."""
    return identity(canonical({name: value for name, value in program.items() if name != "name"}))
