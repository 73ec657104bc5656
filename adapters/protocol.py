"""The adapter protocol: all that a backend has to offer to be put on trial.

An adapter compiles programs and runs them on arrays of bit patterns. It never sees an expected value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source

Array = np.ndarray[Any, np.dtype[Any]]

Compiled = Callable[..., Sequence[Array]]
"""A compiled program: ``outputs = compiled(*inputs)``.

Inputs are C-contiguous, read-only arrays of unsigned bit patterns in the storage dtype of their format (bool: u8
holding 0 or 1), of shape ``(n,)`` where the kernel says ``("n",)`` and ``()`` where it says ``()``. Outputs are fresh
arrays of the same kind, one for each output of the kernel, with the dims of the kernel's output types. A call may
raise `UnsupportedError`.
"""


@dataclass(frozen=True)
class Rejected:
    """The backend refuses the program as ill-formed: what a compiler does with a type error."""

    reason: str


@dataclass(frozen=True)
class Unsupported:
    """The backend does not offer what the program uses. Counted and named in the report, never a failure."""

    reason: str


class UnsupportedError(Exception):
    """Raised by a compiled program that finds out at run time that it cannot do what was asked."""


@dataclass(frozen=True)
class Options:
    """How to compile.

    Attributes:
        opt_level: one of the adapter's ``opt_levels``; 0 is the least optimisation it knows.
    """

    opt_level: int = 0


@dataclass(frozen=True)
class Facts:
    """What an adapter declares about its environment. Each is True, False or None for "not known".

    Attributes:
        flushes_subnormals: results or operands that are subnormal become zero (a breach of ``intent:5-b``; declared,
            it is reported under this name).
        fuses_multiply_add: ``a*b+c`` is contracted to one rounding somewhere (``intent:5.5-a``).
        versions: names and versions of what the results depend on, for the report.
    """

    flushes_subnormals: bool | None = None
    fuses_multiply_add: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Adapter(Protocol):
    """A backend on trial.

    Attributes:
        name: short name for reports.
        opt_levels: the optimisation levels to try, lowest first; ``(0,)`` where there is no choice.
        facts: see `Facts`.
    """

    name: str
    opt_levels: Sequence[int]
    facts: Facts

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Compiled | Rejected | Unsupported]:
        """Compile each program; one answer each, in order. Never raises for a bad program."""
        ...


@runtime_checkable
class HasArtifact(Protocol):
    """An adapter that can show what it made of a program: IR, PTX, assembly."""

    def artifact(self, kernel: Kernel, options: Options) -> str:
        """The compiled form of ``kernel`` as text.

        Raises:
            UnsupportedError: the adapter cannot compile this kernel.
        """
        ...


@runtime_checkable
class Closes(Protocol):
    """An adapter that holds something (a process, a device context) which has to be given back."""

    def close(self) -> None:
        """Give everything back. May be called twice; the adapter is not used afterwards."""
        ...
