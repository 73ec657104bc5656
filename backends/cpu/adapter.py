"""The adapter of the CPU backend."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from halfulp.adapters.protocol import Array, Compiled, Facts, Options, Rejected, Unsupported
from halfulp.backends.common.arrays import Arrays
from halfulp.backends.common.check import NotOffered, TypeRefusal
from halfulp.backends.common.frontend import check_level, checked, in_batches
from halfulp.backends.cpu import jit
from halfulp.backends.cpu.litmus_adapter import LitmusMethods
from halfulp.backends.cpu.lower import Module
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source

BATCH = 32
"""Kernels in one LLVM module. More save nothing and keep memory for as long as one of them is in use."""


class CpuAdapter(LitmusMethods):
    """A kernel compiler for this machine's CPU, at LLVM's optimisation levels 0 and 3."""

    name = "cpu"
    opt_levels: Sequence[int] = (0, 3)

    def __init__(self) -> None:
        self.facts = Facts(flushes_subnormals=False, fuses_multiply_add=jit.host().has_fma, versions=jit.versions())

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Compiled | Rejected | Unsupported]:
        """Compile each program; see `halfulp.adapters.protocol.Adapter`.

        Raises:
            ValueError: no such optimisation level.
        """
        check_level(options, self.opt_levels)
        return in_batches(programs, BATCH, lambda kernels: _compile(kernels, options.opt_level))

    def artifact(self, program: Kernel | Source, options: Options) -> str:
        """The LLVM IR of a program, optimised for the level.

        Raises:
            ValueError: the backend does not compile the program, or no such optimisation level.
        """
        check_level(options, self.opt_levels)
        try:
            kernel = checked(program)
        except (TypeRefusal, NotOffered) as refusal:
            raise ValueError(str(refusal)) from refusal
        return str(jit.optimise(_module([kernel], options.opt_level), options.opt_level, llvm.create_context()))


def _module(kernels: Sequence[Kernel], opt_level: int) -> str:
    """The kernels as functions k0, k1, ... of one module."""
    optimised = opt_level > 0
    module = Module(inline=optimised, fuse=optimised and jit.host().has_fma)
    for position, kernel in enumerate(kernels):
        module.add(kernel, f"k{position}")
    return str(module)


def _compile(kernels: Sequence[Kernel], opt_level: int) -> list[Compiled | Unsupported]:
    """Compile together; apart where LLVM refuses, so that the others are not lost with the one it refuses."""
    try:
        library = jit.Library(_module(kernels, opt_level), opt_level)
    except RuntimeError as error:
        if len(kernels) == 1:
            return [Unsupported(f"LLVM: {error}")]
        return [answer for kernel in kernels for answer in _compile([kernel], opt_level)]
    return [Program(kernel, library, f"k{i}") for i, kernel in enumerate(kernels)]


class Program:
    """A compiled kernel. It keeps the native code of its batch alive, and may be called from several threads.

    Raises, when called:
        TypeError, ValueError: see `Arrays.length`.
    """

    def __init__(self, kernel: Kernel, library: jit.Library, name: str) -> None:
        self._arrays = Arrays(kernel)
        self._library = library
        self._function = library.function(name, len(self._arrays.inputs) + len(self._arrays.outputs))

    def __call__(self, *inputs: Array) -> list[Array]:
        length = self._arrays.length(inputs)
        outputs = self._arrays.empty(length)
        self._function(length, *(array.ctypes.data for array in (*inputs, *outputs)))
        return outputs
