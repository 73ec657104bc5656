"""The CPU backend: a small kernel compiler on LLVM.

A kernel goes through ``frontend`` (source programs), ``check`` (types), ``lower`` (LLVM IR of each operation) and
``jit`` (one native loop over arrays). It shares no judging code with the oracle.
"""

from halfulp.backends.cpu.adapter import CpuAdapter

__all__ = ["CpuAdapter"]
