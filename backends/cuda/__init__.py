"""The CUDA backend: kernels become CUDA C++, compiled by NVRTC and run through the driver."""
