"""Kernels of the CPU backend, ready to be called."""

from __future__ import annotations

from halfulp.adapters.protocol import Compiled, Options, Rejected, Unsupported
from halfulp.backends.cpu import CpuAdapter
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source

ADAPTER = CpuAdapter()


def build(*programs: Kernel | Source, level: int = 3) -> list[Compiled]:
    """Compile programs that must be accepted."""
    compiled: list[Compiled] = []
    for answer in ADAPTER.compile(programs, Options(level)):
        assert not isinstance(answer, (Rejected, Unsupported)), answer
        compiled.append(answer)
    return compiled
