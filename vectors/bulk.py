"""Vector files of operations as arrays (``.npz``), for sets that are too large to be text.

A file holds, for n cases:

* ``ids`` (u64), ``input_0``, ``input_1`` and so on, ``nearest``: codes in the storage type of the format (unsigned, of
  1, 2, 4 or 8 bytes; of 128 bits shape (n, 2), low half first);
* ``allowed_start`` (n + 1 positions into ``allowed_low`` and ``allowed_high``), and the same three for ``unspecified``;
* ``kills`` and ``flags``: u64, a bit for each name in the header, in its order;
* for functions ``exact_kind`` (position in `EXACT_KINDS`), ``exact_negative``, ``exact_significand`` (shape (n, 2)),
  ``exact_exponent`` and ``exact_inexact``;
* ``header``: the JSON text of the file without its groups, as bytes.

Sources and notes of cases are in JSON alone. Entries are stored without compression, so that equal content means equal
bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from halfulp.oracle.formats import format_of
from halfulp.vectors.files import Case, Content, cases_of
from halfulp.vectors.flags import in_order

KINDS = ("operation", "function")
"""Kinds that have this form."""

EXACT_KINDS = ("number", "zero", "infinity", "nan", "huge")

Array = np.ndarray[Any, np.dtype[Any]]
_LOW = (1 << 64) - 1


def _codes(texts: Sequence[str], width: int) -> Array:
    numbers = [int(text, 16) for text in texts]
    if width > 64:
        return np.array([(n & _LOW, n >> 64) for n in numbers], "<u8").reshape(-1, 2)
    size = max(1, 1 << max(0, (width - 1).bit_length() - 3))
    return np.array(numbers, f"<u{size}")


def _texts(codes: Array, width: int) -> list[str]:
    digits = (width + 3) // 4
    rows = codes.tolist()
    return [f"0x{(row[1] << 64 | row[0]) if isinstance(row, list) else row:0{digits}x}" for row in rows]


def _bits(names: Sequence[str], cases: Sequence[Case], field: str) -> Array:
    place = {name: 1 << position for position, name in enumerate(names)}
    return np.array([sum(place[name] for name in case[field]) for case in cases], "<u8")


def arrays(data: Content) -> dict[str, Array]:
    """The arrays of a file. KeyError for a kind that has no such form."""
    if data["kind"] not in KINDS:
        raise KeyError(data["kind"])
    cases = list(cases_of(data))
    operation = data["operation"]
    width = format_of(operation["result"]).width
    header = {name: value for name, value in data.items() if name != "groups"}
    found = {
        "header": np.frombuffer(json.dumps(header, separators=(",", ":")).encode("ascii"), np.uint8),
        "ids": np.array([int(case["id"], 16) for case in cases], "<u8"),
        "nearest": _codes([case["nearest"] for case in cases], width),
        "kills": _bits(list(data["suspects"]), cases, "kills"),
        "flags": _bits(list(data["flags"]), cases, "flags"),
    }
    for place, dtype in enumerate(operation["args"]):
        found[f"input_{place}"] = _codes([case["inputs"][place] for case in cases], format_of(dtype).width)
    for field in ("allowed", "unspecified"):
        counts = [len(case[field]) for case in cases]
        found[f"{field}_start"] = np.concatenate([[0], np.cumsum(counts)]).astype("<u4")
        for place, end in enumerate(("low", "high")):
            found[f"{field}_{end}"] = _codes([pair[place] for case in cases for pair in case[field]], width)
    if data["kind"] == "function":
        exact = [case["exact"] for case in cases]
        found |= {
            "exact_kind": np.array([EXACT_KINDS.index(one["kind"]) for one in exact], "<u1"),
            "exact_negative": np.array([one["negative"] for one in exact], np.uint8),
            "exact_significand": _codes([one["significand"] for one in exact], 128),
            "exact_exponent": np.array([one["exponent"] for one in exact], "<i4"),
            "exact_inexact": np.array([one["inexact"] for one in exact], np.uint8),
        }
    return found


def bytes_of(data: Content) -> bytes:
    """The file. The same content gives the same bytes on every platform."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in sorted(arrays(data).items()):
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            text = io.BytesIO()
            np.lib.format.write_array(text, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(entry, text.getvalue())
    return buffer.getvalue()


def cases(raw: bytes) -> Iterator[Case]:
    """The cases of a file, with the fields that it has."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as loaded:
        found = {name: loaded[name] for name in loaded.files}
    header = json.loads(found["header"].tobytes())
    operation = header["operation"]
    width = format_of(operation["result"]).width
    inputs = [_texts(found[f"input_{at}"], format_of(dtype).width) for at, dtype in enumerate(operation["args"])]
    nearest = _texts(found["nearest"], width)
    ends = {
        field: list(zip(_texts(found[f"{field}_low"], width), _texts(found[f"{field}_high"], width), strict=True))
        for field in ("allowed", "unspecified")
    }
    for at, code in enumerate(found["ids"].tolist()):
        case: Case = {"id": f"{code:016x}", "inputs": [column[at] for column in inputs], "nearest": nearest[at]}
        for field in ("allowed", "unspecified"):
            start, stop = found[f"{field}_start"][at : at + 2].tolist()
            case[field] = [list(pair) for pair in ends[field][start:stop]]
        if header["kind"] == "function":
            low, high = found["exact_significand"][at].tolist()
            case["exact"] = {
                "kind": EXACT_KINDS[int(found["exact_kind"][at])],
                "negative": bool(found["exact_negative"][at]),
                "significand": f"{high << 64 | low:#x}",
                "exponent": int(found["exact_exponent"][at]),
                "inexact": bool(found["exact_inexact"][at]),
            }
        for field, names in (("flags", header["flags"]), ("kills", header["suspects"])):
            mask = int(found[field][at])
            listed = [name for place, name in enumerate(names) if mask >> place & 1]
            case[field] = in_order(set(listed)) if field == "flags" else listed
        yield case
