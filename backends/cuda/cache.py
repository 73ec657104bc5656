"""Compiled kernels on disk, by content.

Reading a kernel marks it as used. A folder that has grown beyond `LIMIT` loses those that were not used for longest.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from halfulp.adapters import cache

LIMIT = 2 << 30
"""Bytes: some twenty certifications at standard depth, each with another seed."""

KEPT = LIMIT // 2
"""Bytes that stay when something has to go."""

CHECK_EVERY = 256
"""Kernels written by a process between two looks at the size of the folder."""

_written = 0


def folder() -> Path:
    """Where they are kept: ``cuda`` in the suite's folder."""
    return cache.folder() / "cuda"


def read(key: str) -> bytes | None:
    """What was stored under ``key``, None where nothing was."""
    path = folder() / key
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    return data


def write(key: str, data: bytes) -> None:
    """Store, whole or not at all. A folder that cannot be written to is no error: the next run compiles again."""
    global _written
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(data)
        os.replace(file.name, folder() / key)
    except OSError:
        return
    _written += 1
    if _written % CHECK_EVERY == 0:
        prune(LIMIT, KEPT)


def prune(limit: int, kept: int) -> None:
    """Where the folder holds more than ``limit`` bytes, delete what was not used for longest, down to ``kept``."""
    found: list[tuple[float, int, Path]] = []
    try:
        for path in folder().iterdir():
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    except OSError:
        return
    size = sum(entry[1] for entry in found)
    if size <= limit:
        return
    for _, length, path in sorted(found):
        if size <= kept:
            return
        path.unlink(missing_ok=True)
        size -= length
