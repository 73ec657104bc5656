"""The adapter protocol: all that a backend has to offer to be put on trial.

An adapter compiles programs and runs them on arrays of bit patterns. It never sees an expected value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from halfulp.oracle.kernel import Kernel
from halfulp.oracle.memory.program import Outcome, Program
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


# Atomics (``intent:11``). All of it is optional.


@dataclass(frozen=True)
class Stress:
    """What makes interleavings more likely. None of it changes which outcomes are allowed.

    Attributes:
        shuffle: cells of neighbouring instances are not neighbours in memory.
        spacing: bytes between cells, a power of two; 64 puts each on a cache line of its own.
        delay: turns of a short loop that a thread waits at most before an instance, at random; 0 or 2**k - 1.
    """

    shuffle: bool = False
    spacing: int = 64
    delay: int = 0


@dataclass(frozen=True)
class LitmusOptions:
    """How to run a litmus program.

    Attributes:
        instances: how often, at least; each time on fresh locations.
        placement: threads ``"apart"`` (on processors of their own, as far as there are enough), ``"together"`` (as
            close as the backend can put them), or ``"free"``.
        synchronisation: the threads come together before ``"each"`` instance, or only at the ``"start"`` of a round of
            many. This is a matter of timing only, and need not succeed.
        stress: see `Stress`.
        seed: of all that is drawn.
        opt_level: one of the adapter's ``opt_levels``.
    """

    instances: int = 1 << 16
    placement: Literal["apart", "together", "free"] = "apart"
    synchronisation: Literal["each", "start"] = "each"
    stress: Stress = Stress()
    seed: int = 0
    opt_level: int = 0


@dataclass(frozen=True)
class LitmusRun:
    """What came out.

    Attributes:
        histogram: how often each outcome came out; an outcome has a value for every name in ``program.observe``.
        seconds: time that the instances took.
        notes: whatever else describes the run, e.g. how many threads were pinned.
    """

    histogram: Mapping[Outcome, int]
    seconds: float
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        return sum(self.histogram.values())


@runtime_checkable
class HasLitmus(Protocol):
    """An adapter that can run litmus programs."""

    def run_litmus(self, program: Program, options: LitmusOptions) -> LitmusRun | Rejected | Unsupported:
        """Run a program many times. An ill-typed program is rejected, not run."""
        ...


@runtime_checkable
class HasLitmusArtifact(Protocol):
    """An adapter that can show what it made of a litmus program, as LLVM IR or PTX."""

    def litmus_artifact(self, program: Program, options: Options) -> str:
        """LLVM IR or PTX in which the function ``threadN`` is what thread N of the program does in one instance.

        Its first parameters are pointers to the locations, in the program's order. It may have others.

        Raises:
            UnsupportedError: the adapter does not compile this program.
        """
        ...


@runtime_checkable
class PreparesLitmus(Protocol):
    """An adapter that compiles several litmus programs faster together than one by one."""

    def prepare_litmus(self, programs: Sequence[Program], options: Options, *, runs: bool) -> None:
        """These programs will be run (or only looked at) next. Raises for none of them."""
        ...


@dataclass(frozen=True)
class Contest:
    """Threads that apply one kind of read-modify-write to one location, each many times in a row.

    Attributes:
        kind: a kind of ``oracle.memory.program.RMW_KINDS``, or ``"cas"``.
        dtype: of the location.
        initial: its value before.
        operands: one array for each thread, shape (n,) each, signed or unsigned as the dtype. For ``"cas"`` they are
            the desired values; the expected one is ``initial`` at first, then what the thread last knew the location
            to hold: the desired value where the exchange took place, the value returned where it did not.
        order: of every operation.
    """

    kind: str
    dtype: str
    initial: int
    operands: tuple[Array, ...]
    order: str = "relaxed"


@dataclass(frozen=True)
class ContestRun:
    """What the operations returned.

    Attributes:
        olds: the values returned, as ``Contest.operands``.
        successes: for ``"cas"`` whether the exchange took place, bool arrays of the same shape; otherwise empty.
        final: the value of the location in the end.
        seconds: time that it took.
    """

    olds: tuple[Array, ...]
    successes: tuple[Array, ...]
    final: int
    seconds: float


@runtime_checkable
class HasContests(Protocol):
    """An adapter that can run contests."""

    def run_contest(self, contest: Contest, options: LitmusOptions) -> ContestRun | Rejected | Unsupported:
        """Run it once; ``options.instances`` and ``options.stress`` say nothing here."""
        ...
