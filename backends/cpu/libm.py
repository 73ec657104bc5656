"""The system's mathematical library, called from compiled code.

Symbols are looked up in the process and then in the library, and given to LLVM under names of our own: LLVM knows
nothing of them, so it neither folds calls of them nor replaces them.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from functools import cache

import llvmlite.binding as llvm

PREFIX = "halfulp.libm."
FUNCTIONS = ("asin", "log", "log1p", "erfc", "exp2", "lgamma_r")
"""What is used of it. ``lgamma_r`` gives the sign through a pointer, where ``lgamma`` writes to a global."""


def _libraries() -> Iterator[ctypes.CDLL]:
    for name in (None, "libm.so.6", "libm.so"):
        try:
            yield ctypes.CDLL(name)
        except OSError:
            continue


def _address(name: str) -> int:
    for library in _libraries():
        try:
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        if found:
            return found
    raise RuntimeError(f"the system's mathematical library has no {name}")


@cache
def register() -> None:
    """Make the functions known to LLVM, once.

    Raises:
        RuntimeError: one of them is missing.
    """
    for name in FUNCTIONS:
        llvm.add_symbol(PREFIX + name, _address(name))


def version() -> str:
    """The C library that it belongs to."""
    name, number = platform.libc_ver()
    return f"{name} {number}".strip() or "unknown"
