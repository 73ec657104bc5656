"""The CUDA driver, as far as the suite needs it: one device, modules, launches, buffers and times.

Everything runs on one stream, in order. Use from one thread, or with a lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class DriverMissingError(RuntimeError):
    """There is no driver, no binding or no device. The message says which, and what to do."""


class DriverError(RuntimeError):
    """A call of the driver failed."""


@cache
def _binding() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DriverMissingError(
            f"the Python binding of CUDA is not there ({error}); `pip install 'halfulp[cuda]'` brings it"
        ) from error


def check(answer: Sequence[Any]) -> Any:
    """The results of a call of the driver, without its status.

    Raises:
        DriverError: the status says so.
    """
    status, *results = answer
    if status != _binding().CUresult.CUDA_SUCCESS:
        raise DriverError(status.name)
    return results[0] if len(results) == 1 else tuple(results)


class Buffer:
    """Memory of the device. Freed with the object."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.address = int(check(_binding().cuMemAlloc(max(1, size))))

    def put(self, array: Array, offset: int = 0) -> None:
        """Copy an array of the host to the device, from byte ``offset`` on."""
        source = np.ascontiguousarray(array)
        if source.nbytes:
            check(_binding().cuMemcpyHtoD(self.address + offset, source.ctypes.data, source.nbytes))

    def get(self, dtype: Any, count: int, offset: int = 0) -> Array:
        """``count`` elements from byte ``offset`` on, as a fresh array. Waits for what was launched before."""
        array = np.empty(count, dtype)
        if array.nbytes:
            check(_binding().cuMemcpyDtoH(array.ctypes.data, self.address + offset, array.nbytes))
        return array

    def zero(self) -> None:
        check(_binding().cuMemsetD8(self.address, 0, self.size))

    def free(self) -> None:
        if self.address:
            check(_binding().cuMemFree(self.address))
            self.address = 0

    def __del__(self) -> None:
        try:
            self.free()
        except Exception:  # the interpreter or the context may be gone
            self.address = 0


class Function:
    """A kernel of a module."""

    def __init__(self, module: Module, name: str) -> None:
        self.module = module  # keeps the code loaded
        self.handle = check(_binding().cuModuleGetFunction(module.handle, name.encode()))

    def launch(self, grid: int, block: int, *args: Array | np.generic | Buffer) -> None:
        """Launch. Scalars are numpy scalars of the parameter's exact width; arrays on the device are buffers."""
        values = [np.uint64(arg.address) if isinstance(arg, Buffer) else np.asarray(arg) for arg in args]
        cells = [np.ascontiguousarray(value).reshape(1) for value in values]
        pointers = np.array([cell.ctypes.data for cell in cells], np.uint64)
        check(
            _binding().cuLaunchKernel(
                self.handle, grid, 1, 1, block, 1, 1, 0, 0, pointers.ctypes.data if cells else 0, 0
            )
        )


class Module:
    """Loaded machine code."""

    def __init__(self, device: Device, image: bytes) -> None:
        self.device = device
        self.handle = check(_binding().cuModuleLoadData(image))

    def function(self, name: str) -> Function:
        return Function(self, name)

    def unload(self) -> None:
        if self.handle is not None:
            check(_binding().cuModuleUnload(self.handle))
            self.handle = None


class Device:
    """The first device that the driver shows (``CUDA_VISIBLE_DEVICES`` chooses), with its primary context current.

    Attributes:
        name: for example ``"NVIDIA H200"``.
        arch: for example ``"sm_90"``.
        processors: number of multiprocessors.
        driver: the version of CUDA that the driver offers, for example ``"13.0"``.
    """

    def __init__(self) -> None:
        cuda = _binding()
        try:
            check(cuda.cuInit(0))
            count = int(check(cuda.cuDeviceGetCount()))
        except (DriverError, RuntimeError, OSError) as error:
            raise DriverMissingError(f"no CUDA driver answers here ({error})") from error
        if not count:
            raise DriverMissingError("the CUDA driver shows no device")
        handle = check(cuda.cuDeviceGet(0))
        self.context = check(cuda.cuDevicePrimaryCtxRetain(handle))
        check(cuda.cuCtxSetCurrent(self.context))
        self.name = check(cuda.cuDeviceGetName(128, handle)).split(b"\0")[0].decode()
        attribute = cuda.CUdevice_attribute
        major = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle)
        minor = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle)
        self.arch = f"sm_{major}{minor}"
        self.processors = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle)
        version = int(check(cuda.cuDriverGetVersion()))
        self.driver = f"{version // 1000}.{version % 1000 // 10}"

    @staticmethod
    def _attribute(attribute: Any, handle: Any) -> int:
        return int(check(_binding().cuDeviceGetAttribute(attribute, handle)))

    def load(self, image: bytes) -> Module:
        """Load machine code (a cubin)."""
        return Module(self, image)

    def synchronise(self) -> None:
        """Wait until everything launched has ended.

        Raises:
            DriverError: a kernel failed.
        """
        check(_binding().cuCtxSynchronize())

    def make_current(self) -> None:
        """Make the context current in the calling thread."""
        check(_binding().cuCtxSetCurrent(self.context))


class Timer:
    """Time on the device between two points of the stream: ``with Timer() as timer: ...``, then ``timer.seconds``."""

    def __init__(self) -> None:
        self._events = [check(_binding().cuEventCreate(0)) for _ in range(2)]
        self.seconds = 0.0

    def __enter__(self) -> Timer:
        check(_binding().cuEventRecord(self._events[0], 0))
        return self

    def __exit__(self, *_: object) -> None:
        check(_binding().cuEventRecord(self._events[1], 0))
        check(_binding().cuEventSynchronize(self._events[1]))
        self.seconds = float(check(_binding().cuEventElapsedTime(*self._events))) / 1e3

    def __del__(self) -> None:
        try:
            for event in self._events:
                check(_binding().cuEventDestroy(event))
        except Exception:  # the interpreter or the context may be gone
            self._events = []


@cache
def device() -> Device:
    """The device.

    Raises:
        DriverMissingError: there is none.
    """
    return Device()
