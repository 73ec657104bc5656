"""Compiled kernels on the device: loaded code, buffers that are used again, and programs that run."""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from halfulp.adapters.protocol import Array
from halfulp.backends.common.arrays import Arrays
from halfulp.backends.cuda.driver import Buffer, Device, Module
from halfulp.oracle.kernel import Kernel

BLOCK = 256
"""Threads of a block."""

WAVES = 8
"""Blocks for each multiprocessor at most: the loop of a kernel takes the rest."""


class Session:
    """A device in use by several threads: one lock, the code to be given back, and a pool of buffers."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._lock = threading.RLock()
        self._free: dict[int, list[Buffer]] = defaultdict(list)
        self._unused: list[Module] = []

    @contextmanager
    def use(self) -> Iterator[Device]:
        """The device, for this thread alone, with its context current. Code no longer used is unloaded first."""
        with self._lock:
            self.device.make_current()
            while self._unused:
                self._unused.pop().unload()
            yield self.device

    def release(self, module: Module) -> None:
        """Unload a module when the device is next used. Safe wherever the collector of garbage may run."""
        self._unused.append(module)

    def take(self, size: int) -> Buffer:
        """A buffer of at least ``size`` bytes. Under `use`."""
        size = 1 << max(12, (size - 1).bit_length())
        free = self._free[size]
        return free.pop() if free else Buffer(size)

    def give(self, buffers: Sequence[Buffer]) -> None:
        """Buffers of `take` to be used again. Under `use`."""
        for buffer in buffers:
            self._free[buffer.size].append(buffer)

    def close(self) -> None:
        """Unload what is no longer used and free the pool."""
        with self.use():
            for buffers in self._free.values():
                for buffer in buffers:
                    buffer.free()
            self._free.clear()


class Library:
    """The machine code of one source on a device. It is unloaded when no program refers to it."""

    def __init__(self, session: Session, image: bytes) -> None:
        self.session = session
        with session.use() as device:
            self.module = device.load(image)
        weakref.finalize(self, session.release, self.module).atexit = False


class DeviceProgram:
    """A compiled kernel whose arrays are on the device.

    Use it under ``session.use()``, as everything of the driver.
    """

    def __init__(self, kernel: Kernel, library: Library, name: str) -> None:
        self.kernel = kernel
        self.session = library.session
        self._library = library  # keeps the code loaded
        with self.session.use():
            self._function = library.module.function(name)

    def launch(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], n: int) -> None:
        """Start the kernel on arrays of n elements; does not wait.

        Args:
            inputs: one buffer for each input, in order: elements in their storage dtype, one where the rank is 0.
            outputs: likewise. None of them is an input too.
            n: number of elements; with 0 only rank-0 outputs are written.
        """
        blocks = min(-(-n // BLOCK), self.session.device.processors * WAVES)
        self._function.launch(max(1, blocks), BLOCK, np.uint64(n), *inputs, *outputs)


class Program:
    """A compiled kernel on arrays of the host: they are copied to the device and back.

    Raises, when called:
        TypeError, ValueError: see `Arrays.length`.
        DriverError: the device fails.
    """

    def __init__(self, kernel: Kernel, library: Library, name: str) -> None:
        self._arrays = Arrays(kernel)
        self.device_program = DeviceProgram(kernel, library, name)

    def __call__(self, *inputs: Array) -> list[Array]:
        length = self._arrays.length(inputs)
        session = self.device_program.session
        outputs = self._arrays.empty(length)
        with session.use():
            sources = [session.take(array.nbytes) for array in inputs]
            targets = [session.take(array.nbytes) for array in outputs]
            for buffer, array in zip(sources, inputs, strict=True):
                buffer.put(array)
            self.device_program.launch(sources, targets, length)
            results = [
                buffer.get(array.dtype, array.size).reshape(array.shape)
                for buffer, array in zip(targets, outputs, strict=True)
            ]
            session.give([*sources, *targets])
        return results
