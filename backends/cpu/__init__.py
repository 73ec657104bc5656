"""The CPU backend: a small kernel compiler on LLVM.

A kernel goes through the shared front end and type checker (``backends.common``), ``lower`` (LLVM IR) and ``jit`` (one
native loop over arrays). It shares no judging code with the oracle.
"""

from halfulp.backends.cpu.adapter import CpuAdapter

__all__ = ["CpuAdapter"]
