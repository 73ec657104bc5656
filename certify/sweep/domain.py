"""Which inputs a sweep tries, in which order.

A domain numbers its inputs 0, 1, ...; a chunk holds 2**20 consecutive numbers (the last one what is left). What a
chunk holds depends on nothing but the domain and the number of the chunk, so chunks can be run anywhere, in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature

CHUNK = 1 << 20
"""Inputs of a chunk. The digest of a sweep is defined by it."""


@dataclass(frozen=True)
class _Consecutive:
    """Consecutive numbers that say what the operands are, ``count`` of them from ``first`` on; ``fmt`` is a format."""

    fmt: str
    first: int
    count: int

    @property
    def inputs(self) -> int:
        return self.count


@dataclass(frozen=True)
class Codes(_Consecutive):
    """Consecutive bit patterns of the only operand.

    Attributes:
        fmt: name of its format.
        first, count: of the patterns.
    """

    @property
    def exhaustive(self) -> bool:
        return self.count == format_of(self.fmt).code_count

    def columns(self, start: int, n: int) -> tuple[Bits, ...]:
        """The operands of the inputs ``start`` to ``start + n - 1``."""
        return (consecutive(format_of(self.fmt), self.first + start, n),)

    def plain(self) -> dict[str, Any]:
        return {"kind": "codes", "format": self.fmt, "first": self.first, "count": self.count}


@dataclass(frozen=True)
class Listed:
    """Two operands: for each listed value of one, consecutive bit patterns of the other.

    Attributes:
        fmt: name of the format of both.
        position: of the listed operand, 0 or 1.
        values: its bit patterns, in order.
        first, count: bit patterns of the other.
    """

    fmt: str
    position: int
    values: tuple[int, ...]
    first: int
    count: int

    @property
    def inputs(self) -> int:
        return self.count * len(self.values)

    @property
    def exhaustive(self) -> bool:
        """Whether the operand that is not listed takes every value."""
        return self.count == format_of(self.fmt).code_count

    def columns(self, start: int, n: int) -> tuple[Bits, ...]:
        fmt = format_of(self.fmt)
        parts: list[tuple[Bits, Bits]] = []
        while n:
            which, offset = divmod(start, self.count)
            length = min(n, self.count - offset)
            fixed = np.full(length, self.values[which], fmt.storage)
            parts.append((fixed, consecutive(fmt, self.first + offset, length)))
            start, n = start + length, n - length
        fixed, running = (np.concatenate(column) for column in zip(*parts, strict=True))
        return (fixed, running) if self.position == 0 else (running, fixed)

    def plain(self) -> dict[str, Any]:
        return {
            "kind": "listed",
            "format": self.fmt,
            "position": self.position,
            "values": list(self.values),
            "first": self.first,
            "count": self.count,
        }


@dataclass(frozen=True)
class Pairs(_Consecutive):
    """Two operands: consecutive pairs. The number of a pair has the bits of the first operand above the second's.

    Attributes:
        fmt: name of the format of both, of 16 bits at most.
        first, count: numbers of the pairs.
    """

    @property
    def exhaustive(self) -> bool:
        return self.count == format_of(self.fmt).code_count ** 2

    def columns(self, start: int, n: int) -> tuple[Bits, ...]:
        fmt = format_of(self.fmt)
        number = np.arange(n, dtype=np.uint32) + np.uint32(self.first + start)
        second = number & np.uint32(fmt.code_count - 1)
        return (number >> np.uint32(fmt.width)).astype(fmt.storage), second.astype(fmt.storage)

    def plain(self) -> dict[str, Any]:
        return {"kind": "pairs", "format": self.fmt, "first": self.first, "count": self.count}


@dataclass(frozen=True)
class Sample:
    """Listed points (critical and known hard inputs), then random inputs.

    Of the random ones half are uniform over bit patterns, which is uniform over exponents; a quarter has exponents
    between 2**-30 and 2**12, where functions do most of their work; a quarter lies around critical points, at distances
    that are uniform in their number of bits.

    Attributes:
        signature: of the operation.
        points: operands of the listed points.
        draws: number of random inputs.
        seed: they depend on it and on the signature.
    """

    signature: Signature
    points: tuple[tuple[int, ...], ...]
    draws: int
    seed: int

    @property
    def inputs(self) -> int:
        return len(self.points) + self.draws

    @property
    def exhaustive(self) -> bool:
        return False

    def columns(self, start: int, n: int) -> tuple[Bits, ...]:
        if start % CHUNK:
            raise ValueError("a sample is drawn chunk by chunk")
        listed = self.points[start : start + n]
        number = start // CHUNK
        name = f"{self.seed}\0{self.signature.id}\0{number}".encode()
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name).digest()[:16], "little")))
        columns = []
        for position, fmt in enumerate(self.signature.formats):
            head = np.array([point[position] for point in listed], fmt.storage)
            columns.append(np.concatenate([head, self._drawn(rng, position, fmt, n - len(listed))]))
        return tuple(columns)

    def _drawn(self, rng: np.random.Generator, position: int, fmt: Format, n: int) -> Bits:
        uniform = rng.integers(0, fmt.code_count, n, np.uint64) if fmt.width < 64 else _words(rng, n)
        kind = rng.integers(0, 4, n)
        if fmt.is_float and fmt.exponent_bits >= 5:
            low, high = max(1, fmt.bias - 30), min(fmt.bias + 12, 2 * fmt.bias)
            exponents = rng.integers(low, high, n).astype(np.uint64) << np.uint64(fmt.fraction_bits)
            kept = np.uint64(fmt.sign_mask | ((1 << fmt.fraction_bits) - 1))
            uniform = np.where(kind == 2, (uniform & kept) | exponents, uniform)
        critical = self._critical[position]
        if len(critical):
            bits = rng.integers(0, max(2, fmt.width - 8), n).astype(np.uint64)
            step = _words(rng, n) >> (np.uint64(63) - bits)
            near = critical[rng.integers(0, len(critical), n)] + np.where(kind & 1, step, np.uint64(0) - step)
            uniform = np.where(kind == 3, near & np.uint64(fmt.code_count - 1), uniform)
        return uniform.astype(fmt.storage)

    @cached_property
    def _critical(self) -> list[Bits]:
        columns = operation(self.signature.op).critical(self.signature)
        return [np.unique(column.astype(np.uint64)) for column in columns]

    def plain(self) -> dict[str, Any]:
        points = [list(point) for point in self.points]
        return {"kind": "sample", "points": points, "draws": self.draws, "seed": self.seed}


Domain = Codes | Listed | Pairs | Sample


def domain_from_plain(signature: Signature, data: Mapping[str, Any]) -> Domain:
    """The inverse of ``plain``.

    Raises:
        KeyError, TypeError: it is none.
    """
    match data["kind"]:
        case "codes":
            return Codes(data["format"], data["first"], data["count"])
        case "listed":
            values = tuple(data["values"])
            return Listed(data["format"], data["position"], values, data["first"], data["count"])
        case "pairs":
            return Pairs(data["format"], data["first"], data["count"])
        case "sample":
            return Sample(signature, tuple(map(tuple, data["points"])), data["draws"], data["seed"])
    raise KeyError(data["kind"])


def consecutive(fmt: Format, first: int, n: int) -> Bits:
    codes: Bits = np.arange(n, dtype=fmt.storage) + fmt.storage.type(first)
    return codes


def _words(rng: np.random.Generator, n: int) -> Bits:
    return rng.integers(0, (1 << 64) - 1, n, np.uint64, endpoint=True)


def chunk_count(domain: Domain) -> int:
    return -(-domain.inputs // CHUNK)


def chunk_length(domain: Domain, number: int) -> int:
    return min(CHUNK, domain.inputs - number * CHUNK)


def critical_and_known(signature: Signature, known: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The points of a sample: known worst inputs, then the critical points of the record."""
    columns = operation(signature.op).critical(signature)
    critical = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(dict.fromkeys([*known, *critical]))
