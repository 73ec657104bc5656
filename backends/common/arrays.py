"""The arrays that a compiled program takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.adapters.protocol import Array
from halfulp.backends.common.types import SCALARS
from halfulp.oracle.kernel import Kernel, Type


def storage(type_: Type) -> np.dtype[Any]:
    """The numpy dtype that carries bit patterns of a type."""
    return np.dtype(f"u{SCALARS[type_.dtype].bytes}")


class Arrays:
    """Those of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.inputs = [(type_, storage(type_)) for type_ in kernel.input_types]
        self.outputs = [(type_, storage(type_)) for type_ in kernel.output_types]

    def empty(self, length: int) -> list[Array]:
        """Fresh outputs."""
        return [np.empty((length,) if type_.dims else (), dtype) for type_, dtype in self.outputs]

    def length(self, inputs: Sequence[Array]) -> int:
        """The length that all arrays have; 0 where there is none.

        Raises:
            TypeError: wrong number of inputs, or one that is no array of its storage dtype.
            ValueError: an input is not C-contiguous, has the wrong rank, or arrays differ in length.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(f"the kernel takes {len(self.inputs)} inputs, not {len(inputs)}")
        length: int | None = None
        for position, (array, (type_, dtype)) in enumerate(zip(inputs, self.inputs, strict=True)):
            where = f"input {position} ({type_.dtype})"
            if not isinstance(array, np.ndarray) or array.dtype != dtype:
                found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
                raise TypeError(f"{where}: {found} instead of an array of {dtype}")
            if array.ndim != len(type_.dims):
                raise ValueError(f"{where}: an array of rank {array.ndim} instead of {len(type_.dims)}")
            if not array.flags.c_contiguous:
                raise ValueError(f"{where}: the array is not C-contiguous")
            if type_.dims:
                if length is not None and len(array) != length:
                    raise ValueError(f"{where}: {len(array)} elements where another input has {length}")
                length = len(array)
        return length or 0
