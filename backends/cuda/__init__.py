"""The CUDA backend: kernels become CUDA C++, compiled by NVRTC and run through the driver."""

from halfulp.backends.cuda.adapter import CudaAdapter

__all__ = ["CudaAdapter"]
