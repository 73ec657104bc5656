"""CUDA C++ of the backend on the host: a C++ compiler with stand-ins for what CUDA adds.

The text that NVRTC compiles is compiled by g++ and run, so that what it computes is tested without a GPU. What only a
GPU has, libdevice and the approximate instructions, is taken from the CPU's lowering.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halfulp.adapters.protocol import Array
from halfulp.backends.common.arrays import Arrays
from halfulp.backends.common.lowering import Lowering
from halfulp.backends.cpu.functions import CpuLowering
from halfulp.backends.cuda.lower import Functions, Source
from halfulp.oracle.kernel import Kernel

_SHIM = r"""
#include <cmath>
#include <cstring>
using namespace std;
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
static const struct { unsigned x; } blockIdx = {0}, threadIdx = {0}, blockDim = {1}, gridDim = {1};
template <class T, class F> static T bits(F x) {
  T r;
  static_assert(sizeof r == sizeof x);
  memcpy(&r, &x, sizeof r);
  return r;
}
static float __double2float_rn(double x) { return x; }
#define __uint_as_float bits<float, unsigned>
#define __float_as_uint bits<unsigned, float>
#define __longlong_as_double bits<double, long long>
#define __double_as_longlong bits<long long, double>
template <class T, class F> static T clamped(F x, F low, F high, T least, T most) {
  return x != x ? 0 : x <= low ? least : x >= high ? most : (T)x;
}
#define TRUNCATION(F, NAME, T, LOW, HIGH, LEAST, MOST) \
  static T __##F##2##NAME##_rz(F x) { return clamped<T, F>(x, LOW, HIGH, LEAST, MOST); }
#define TRUNCATIONS(F) \
  TRUNCATION(F, int, int, -0x1p31, 0x1p31, -2147483647 - 1, 2147483647) \
  TRUNCATION(F, uint, unsigned, 0, 0x1p32, 0, ~0u) \
  TRUNCATION(F, ll, long long, -0x1p63, 0x1p63, -9223372036854775807ll - 1, 9223372036854775807ll) \
  TRUNCATION(F, ull, unsigned long long, 0, 0x1p64, 0, ~0ull)
TRUNCATIONS(float)
TRUNCATIONS(double)
"""


class HostPrograms:
    """Checked kernels in a shared library.

    Args:
        folder: for the source and the library.
        fuse: as `lower.Source`.
        lowering: whose functions the host's library has.
    """

    def __init__(
        self, kernels: Sequence[Kernel], folder: Path, *, fuse: bool, lowering: Lowering | None = None
    ) -> None:
        source = Source(Functions(lowering or CpuLowering()), inline=True, fuse=fuse)
        for position, kernel in enumerate(kernels):
            source.add(kernel, f"k{position}")
        text, library = folder / "kernels.cpp", folder / "kernels.so"
        text.write_text(f"{_SHIM}{source}")
        flags = ["-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC"]
        flags += ["-mfma"] if platform.machine() == "x86_64" else []
        subprocess.run(["g++", *flags, "-o", str(library), str(text)], check=True)
        self._library = ctypes.CDLL(str(library))
        self.arrays = [Arrays(kernel) for kernel in kernels]

    def run(self, position: int, n: int, *arrays: Array) -> None:
        """Kernel ``position`` on inputs and outputs."""
        function: Any = getattr(self._library, f"k{position}")
        function(ctypes.c_uint64(n), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))

    def __call__(self, position: int, *inputs: Array) -> list[Array]:
        n = self.arrays[position].length(inputs)
        outputs: list[np.ndarray[Any, np.dtype[Any]]] = self.arrays[position].empty(n)
        self.run(position, n, *inputs, *outputs)
        return outputs
