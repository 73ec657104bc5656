"""Compiled kernels on disk, by content."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VARIABLE = "HALFULP_CACHE"
"""The environment variable that moves the folder."""


def folder() -> Path:
    """Where they are kept: ``$HALFULP_CACHE/cuda``, or ``~/.cache/halfulp/cuda``."""
    base = os.environ.get(VARIABLE) or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "halfulp"
    )
    return Path(base) / "cuda"


def read(key: str) -> bytes | None:
    """What was stored under ``key``, None where nothing was."""
    try:
        return (folder() / key).read_bytes()
    except OSError:
        return None


def write(key: str, data: bytes) -> None:
    """Store, whole or not at all. A folder that cannot be written to is no error: the next run compiles again."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(data)
        os.replace(file.name, folder() / key)
    except OSError:
        return
