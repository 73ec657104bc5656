"""Arrays of bit patterns as JSON data: ``{"dtype": "f32", "shape": [2], "bits": "3f80000040000000"}``.

``bits`` is one string of hexadecimal digits: the elements in order, each in the bytes of its storage type (1, 2, 4, 8
or 16; bool takes one byte), most significant digit first.
"""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np

from halfulp.adapters.protocol import Array
from halfulp.oracle.formats import WIDE, Format, format_of

_WIDE_ON_WIRE = np.dtype([("hi", ">u8"), ("lo", ">u8")])


class WireError(ValueError):
    """The data are no array, or another one than was expected. The message says in what."""


def array_to_json(dtype: str, bits: Array) -> dict[str, Any]:
    """The array (rank 0 or 1, in the storage dtype of ``dtype``) as JSON data."""
    fmt = format_of(dtype)
    if fmt.storage == WIDE:
        wide = np.empty(bits.shape, _WIDE_ON_WIRE)
        wide["hi"], wide["lo"] = bits["hi"], bits["lo"]
    else:
        wide = bits.astype(fmt.storage.newbyteorder(">"))
    return {"dtype": dtype, "shape": list(bits.shape), "bits": wide.tobytes().hex()}


def array_from_json(data: Any, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> tuple[str, Array]:
    """The dtype and a fresh array.

    Args:
        data: JSON data.
        dtype, shape: what the array has to be; None where any will do.

    Raises:
        WireError: see there.
    """
    if not isinstance(data, dict):
        raise WireError(f"is {_kind(data)}, not an object with dtype, shape and bits")
    missing = [key for key in ("dtype", "shape", "bits") if key not in data]
    if missing:
        raise WireError(f"has no {', no '.join(missing)}")
    if dtype is not None and data["dtype"] != dtype:
        raise WireError(f"has dtype {data['dtype']!r} where {dtype!r} was expected")
    got = data["shape"]
    if not isinstance(got, list) or len(got) > 1 or not all(type(n) is int and n >= 0 for n in got):
        raise WireError(f"has the shape {got!r}, which is neither [] nor [n]")
    if shape is not None and tuple(got) != shape:
        raise WireError(f"has the shape {got} where {list(shape)} was expected")
    try:
        fmt = format_of(data["dtype"])
    except (ValueError, TypeError) as error:
        raise WireError(f"has dtype {data['dtype']!r}: {error}") from error
    return fmt.name, _bits(fmt, tuple(got), data["bits"])


def _bits(fmt: Format, shape: tuple[int, ...], text: Any) -> Array:
    if not isinstance(text, str):
        raise WireError(f"has bits that are {_kind(text)}, not text")
    digits = 2 * fmt.storage.itemsize
    count = shape[0] if shape else 1
    if len(text) != digits * count:
        raise WireError(f"has {len(text)} hexadecimal digits where {count} elements of {fmt.name} take {digits} each")
    try:
        raw = binascii.unhexlify(text)
    except ValueError as error:
        raise WireError(f"has bits that are not hexadecimal: {error}") from error
    if fmt.storage == WIDE:
        halves = np.frombuffer(raw, _WIDE_ON_WIRE)
        wide = np.empty(count, WIDE)
        wide["hi"], wide["lo"] = halves["hi"], halves["lo"]
        return wide.reshape(shape)
    array = np.frombuffer(raw, fmt.storage.newbyteorder(">")).astype(fmt.storage)
    spare = 8 * fmt.storage.itemsize - fmt.width
    if spare and array.size and int(array.max()) >= fmt.code_count:
        raise WireError(f"holds {int(array.max()):#x}, which is no code of {fmt.name} ({fmt.width} bits)")
    return array.reshape(shape)


def _kind(data: Any) -> str:
    """What a value is, in JSON's words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(data), "a number")
