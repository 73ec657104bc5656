"""Tables of the bulk path on disk: built when needed, kept under a name that says what they were built by.

The name of a file holds a hash of the builder's sources and of the versions that its numbers depend on, so a change of
either builds anew and an old file is never mistaken for a new one. A file carries the SHA-256 of its content; one that
is damaged is replaced. Files are written aside and renamed, so processes may share a directory. Any of them can be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from halfulp.adapters.cache import folder
from halfulp.oracle import bulk, functions
from halfulp.oracle.bulk import Table


def directory() -> Path:
    """Where tables are kept: the suite's folder."""
    return folder()


@cache
def builder_hash() -> str:
    """A hash of what the content of a table depends on: sources of the builder, and the libraries it computes with."""
    state = hashlib.sha256()
    for package in (bulk, functions):
        assert package.__file__ is not None
        for source in sorted(Path(package.__file__).parent.glob("*.py")):
            state.update(source.name.encode() + b"\0" + source.read_bytes())
    for library in ("python-flint", "numpy"):
        state.update(f"{library} {version(library)}".encode())
    return state.hexdigest()[:16]


def table(name: str, where: Path | None = None, progress: Callable[[str], None] | None = None) -> Table:
    """The table of a function, from disk if it is there and sound, else built (in seconds) and kept.

    Args:
        name: one of `oracle.bulk.TARGETS`.
        where: the directory. None: `directory`.
        progress: told about what takes time.

    Warns:
        RuntimeWarning: the directory cannot be written. The table is as good as any.
    """
    path = (where or directory()) / f"bulk-{name}-{builder_hash()}.npz"
    found = read(name, path)
    if found is not None:
        return found
    if progress:
        progress(f"building the table of {name} ({path})")
    built = bulk.build(name, progress)
    try:
        write(built, path)
    except OSError as error:
        warnings.warn(f"the table of {name} is not kept: {error}", RuntimeWarning, stacklevel=2)
    return built


def read(name: str, path: Path) -> Table | None:
    """The table in a file; None if there is none, or if it is not what was written."""
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {key: content[key] for key in content.files}
        digest = str(arrays.pop("digest"))
        found = Table.from_arrays(name, arrays)
    except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile):
        return None
    return found if found.digest == digest else None


def write(content: Table, path: Path) -> None:
    """Write a table in one step.

    Raises:
        OSError: the directory cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, digest=np.array(content.digest), **content.arrays())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
