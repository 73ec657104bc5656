"""The record of a sweep: one JSON object that says what was tried, on what, and what came out."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from halfulp.certify.device import cpu_class, device_class
from halfulp.certify.show import plural, value_text
from halfulp.certify.sweep.domain import CHUNK, Codes, Listed, Pairs, Sample
from halfulp.certify.sweep.job import Job
from halfulp.certify.sweep.part import BINS, KEPT, Extreme, Part
from halfulp.oracle.bulk import digest
from halfulp.oracle.bulk.digest import Digest
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.functions import RULES, is_approximate, main_clause
from halfulp.oracle.ops.record import Signature

SCHEMA = "halfulp-sweep-1"
"""Identifies the layout of the record; a change that breaks readers changes it."""

LOWER_BOUNDS = "lower bounds: a sample of the inputs was tried"
EXACT = "exact: every input of the domain was tried"


@dataclass
class Found:
    """Everything that a sweep brings to light.

    Attributes:
        total: all parts, merged in order, with what the search tried.
        digest: SHA-256 of the complete output; None where the output stayed on the device.
        sums: digest of the complete output, see `oracle.bulk.digest`.
        worst: the worst inputs.
        known: how the known worst inputs fared, before the sweep.
        searched: what the search tried; None where there was none.
        repeatable: False where chunks that were run again gave other results.
        wall: seconds, over all sessions of the sweep in this process alone.
        device: how a device judged; None where the host did.
        filtered: what a search on a device singled out, which is in the total, and facts about the search.
    """

    total: Part
    digest: str | None
    sums: Digest
    worst: list[Extreme]
    known: Part
    searched: Part | None = None
    repeatable: bool = True
    wall: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    device: Mapping[str, Any] | None = None
    filtered: tuple[Part, Mapping[str, Any]] | None = None

    @property
    def good(self) -> bool:
        parts = (self.total, self.known)
        return self.repeatable and not any(part.forbidden or part.undecided for part in parts)


def merged(parts: Mapping[int, Part]) -> tuple[Part, str]:
    """All parts in the order of their inputs, and the digest of the complete output."""
    total, digests = Part(), hashlib.sha256()
    for number in sorted(parts):
        total.add(parts[number])
        digests.update(bytes.fromhex(parts[number].digest))
    return total, digests.hexdigest()


def worst_chunks(parts: Mapping[int, Part]) -> list[int]:
    """The chunks that hold the worst inputs: no more are needed than inputs are kept."""
    numbers = sorted(parts, key=lambda n: (-parts[n].max_error, -parts[n].max_distance, n))
    return numbers[:KEPT]


def bound_of(signature: Signature) -> dict[str, Any]:
    """The bound that results are held to.

    Returns:
        ``ulp`` or ``relative``; ``of`` where it is that of another format, cast afterwards; ``stated``: the text has
        it. Otherwise it is that of a published table, and worse is reported, not failed (``reading:9``).
    """
    name, fmt = signature.op, signature.result_format
    if is_approximate(signature.attrs):
        return {"relative": 2.0**-11, "stated": True} if name == "tanh" else {"ulp": 2, "stated": True}
    if name not in RULES:
        return {"ulp": 0, "stated": True}
    rule = RULES[name]
    bound: dict[str, Any] = {"ulp": rule.bounds[1 if fmt.width == 64 else 0], "stated": rule.stated}
    return bound | ({"of": "f32"} if fmt.width < 32 else {})


def clause_of(signature: Signature) -> str:
    """The clause that governs most inputs."""
    if signature.op in RULES and not is_approximate(signature.attrs):
        return main_clause(RULES[signature.op], signature.result_format)
    return (operation(signature.op).clauses(signature) or ("",))[0]


def _bits(job: Job, operands: Sequence[int]) -> str | list[str]:
    """One operand as text, several as a list."""
    texts = [fmt.hex(code) for fmt, code in zip(job.signature.formats, operands, strict=True)]
    return texts[0] if len(texts) == 1 else texts


def _number(error: float | None) -> float | str | None:
    if error is None or error < 0:
        return None
    return "inf" if math.isinf(error) else round(error, 9)


def _extreme(job: Job, extreme: Extreme) -> dict[str, Any]:
    fmt = job.signature.result_format
    shown: dict[str, Any] = {
        "argument": _bits(job, extreme.operands),
        "got": fmt.hex(extreme.got),
        "nearest": fmt.hex(extreme.nearest),
        "distance": extreme.distance,
        "fractional_error": _number(extreme.error),
    }
    return shown | ({"clause": extreme.clause} if extreme.clause else {})


def _extremes(job: Job, part: Part) -> dict[str, Any]:
    """The maxima. A distance of 0 is had by every input; then the one of largest fractional error is named."""
    argument = part.max_argument
    if part.max_distance == 0 and part.max_error_argument:
        argument = part.max_error_argument
    return {
        "max_distance": part.max_distance if part.max_distance >= 0 else None,
        "max_argument": _bits(job, argument) if argument else None,
        "max_fractional_error": _number(part.max_error),
        "max_fractional_error_argument": _bits(job, part.max_error_argument) if part.max_error_argument else None,
    }


def _domain(job: Job) -> dict[str, Any]:
    domain, formats = job.domain, job.signature.formats
    match domain:
        case Codes():
            last = domain.first + max(domain.count, 1) - 1
            return {"kind": "codes", "first": formats[0].hex(domain.first), "last": formats[0].hex(last)}
        case Listed():
            return {
                "kind": "listed",
                "operand": ("lhs", "rhs")[domain.position],
                "values": [formats[0].hex(code) for code in domain.values],
                "first": formats[0].hex(domain.first),
                "last": formats[0].hex(domain.first + max(domain.count, 1) - 1),
            }
        case Pairs():
            ends = [domain.columns(place, 1) for place in (0, max(domain.count, 1) - 1)]
            shown = [_bits(job, [int(column[0]) for column in end]) for end in ends]
            return {"kind": "pairs", "first": shown[0], "last": shown[1]}
        case Sample():
            return {"kind": "sample", "seed": domain.seed, "draws": domain.draws, "points": len(domain.points)}


def record_of(job: Job, found: Found, level: int) -> dict[str, Any]:
    """The record as JSON data. ``docs/reference/sweep-record.md`` describes it."""
    signature, total = job.signature, found.total
    versions = dict(found.versions)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "signature": signature.id,
        "op": signature.op,
        "format": signature.args[0],
        "result": signature.result,
        "attrs": dict(signature.attrs),
        "backend": job.backend,
        "opt_level": level,
        "device": device_class(versions),
        "clause": clause_of(signature),
        "clauses": list(operation(signature.op).clauses(signature)),
        "bound": bound_of(signature),
        "convention": "reading:1",
        "domain": _domain(job),
        "exhaustive": job.domain.exhaustive,
        "maxima": LOWER_BOUNDS if isinstance(job.domain, Sample) else EXACT,
        "inputs": total.inputs,
        "claimed": total.claimed,
        "allowed": total.allowed,
        "forbidden": total.forbidden,
        "unspecified": total.unspecified,
        "no_claim": total.no_claim,
        "undecided": total.undecided,
        "settled": total.settled,
        "without_distance": total.wrong,
        **_extremes(job, total),
        "histogram": {**{str(i): total.histogram[i] for i in range(BINS)}, f"{BINS}+": total.histogram[BINS]},
        "worst": [_extreme(job, extreme) for extreme in found.worst],
        "breaches": [_extreme(job, extreme) for extreme in total.breaches],
        "known_inputs": {
            "inputs": found.known.inputs,
            "forbidden": found.known.forbidden,
            **_extremes(job, found.known),
            "breaches": [_extreme(job, extreme) for extreme in found.known.breaches],
        },
        "digest": found.digest,
        "digest_chunk": CHUNK,
        "digest64": digest.text(found.sums),
        "repeatable": found.repeatable,
        "time": _times(total, found.wall),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "platform": {"system": f"{platform.system()}-{platform.machine()}", "cpu": cpu_class()},
    }
    if found.device is not None:
        record["device_judge"] = dict(found.device)
    if found.filtered is not None:
        record["filter"] = {**found.filtered[1], **_extremes(job, found.filtered[0])}
    if found.searched is not None:
        record["search"] = {"inputs": found.searched.inputs, **_extremes(job, found.searched)}
    return record


def _times(total: Part, wall: float) -> dict[str, float | None]:
    def rate(seconds: float) -> float | None:
        return round(total.inputs / seconds / 1e6, 3) if seconds else None

    return {
        "wall_seconds": round(wall, 3),
        "target_seconds": round(total.target_seconds, 3),
        "judge_seconds": round(total.judge_seconds, 3),
        "target_cpu_seconds": round(total.target_cpu, 3),
        "judge_cpu_seconds": round(total.judge_cpu, 3),
        "target_million_per_second": rate(total.target_cpu),
        "judge_million_per_second": rate(total.judge_cpu),
    }


# For people.


def summary_text(job: Job, record: Mapping[str, Any]) -> str:
    """The record in a few lines."""
    return "\n".join(_lines(job, record))


def _lines(job: Job, record: Mapping[str, Any]) -> list[str]:
    lines = [f"{record['signature']} on {record['backend']} at O{record['opt_level']}: {_tried(job, record)}"]
    held = bound_text(record["bound"])
    lines.append(f"  bound        {held}, {record['clause']}")
    counts = ("claimed", "allowed", "forbidden", "unspecified", "undecided")
    lines.append("  verdicts     " + ", ".join(f"{record[name]:,} {name}" for name in counts))
    if record["max_distance"] is not None:
        lines.append(f"  distance     at most {record['max_distance']:,} at {_shown(job, record['max_argument'])}")
    if record["max_fractional_error"] is not None:
        at = _shown(job, record["max_fractional_error_argument"])
        lines.append(f"  error        at most {record['max_fractional_error']} ulp at {at}")
    if isinstance(job.domain, Sample):
        lines.append("               these maxima are lower bounds: not every input was tried")
    filled = {steps: count for steps, count in record["histogram"].items() if count}
    lines.append("  histogram    " + ", ".join(f"{steps}: {count:,}" for steps, count in filled.items()))
    if "filter" in record:
        looked = record["filter"]
        lines.append(
            f"  filter       {looked['candidates']:,} candidates on the device, {looked['judged']:,} of them judged, "
            f"up to {looked['max_fractional_error']} ulp"
        )
    if "search" in record:
        error = record["search"]["max_fractional_error"]
        lines.append(f"  search       {record['search']['inputs']:,} inputs around the worst, up to {error} ulp")
    known = record["known_inputs"]
    if known["inputs"]:
        lines.append(f"  known        {plural(known['inputs'], 'known worst input')}, {known['forbidden']} forbidden")
    time = record["time"]
    lines.append(
        f"  time         {time['wall_seconds']:.1f} s; target {time['target_cpu_seconds']:.1f} s of processor time "
        f"({time['target_million_per_second']} million/s), judge {time['judge_cpu_seconds']:.1f} s "
        f"({time['judge_million_per_second']} million/s)"
    )
    if "device_judge" in record:
        lines.extend(_device_lines(record["device_judge"]))
    if record["digest"] is not None:
        lines.append(f"  digest       {record['digest']}")
    lines.append(f"  digest64     {' '.join(record['digest64'])}")
    for breach in [*record["known_inputs"]["breaches"], *record["breaches"]][:KEPT]:
        lines.append(
            f"  FORBIDDEN    {_shown(job, breach['argument'])}: got {breach['got']}, correctly rounded "
            f"{breach['nearest']}, distance {breach['distance']} ({breach['clause']})"
        )
    if not record["repeatable"]:
        lines.append("  NOT REPEATABLE: the same inputs gave other results when they were run again")
    return lines


def _device_lines(device: Mapping[str, Any]) -> list[str]:
    kernels, checked = device["kernel_seconds"], device["checked_on_host"]
    return [
        f"  kernels      target {1e3 * kernels['target']:.2f} ms, judge and digest {1e3 * kernels['judge']:.2f} ms, "
        f"inputs {1e3 * kernels['inputs']:.2f} ms: {device['ratio']} times the target alone",
        f"  checked      {checked['inputs']:,} inputs of {checked['runs']:,} runs by the host's judge too, bit for "
        f"bit; {device['judged_on_host']:,} by the host alone",
    ]


def _tried(job: Job, record: Mapping[str, Any]) -> str:
    number, domain = f"{record['inputs']:,}", record["domain"]
    if isinstance(job.domain, Sample):
        return f"a sample of {number} inputs, seed {job.domain.seed}"
    first, last = (", ".join(end) if isinstance(end, list) else end for end in (domain["first"], domain["last"]))
    stretch = "" if record["exhaustive"] else f" from {first} to {last}"
    if isinstance(job.domain, Pairs):
        return f"all {number} pairs{stretch}"
    if isinstance(job.domain, Listed):
        return f"all {number} inputs{stretch} with a listed {domain['operand']}"
    return f"all {number} inputs{stretch}"


def bound_text(bound: Mapping[str, Any]) -> str:
    """The bound in words."""
    if "relative" in bound:
        return "a relative error of 2^-11"
    if bound["ulp"] == 0:
        return "correctly rounded"
    text = f"{bound['ulp']} ulp"
    if "of" in bound:
        text += f" in {bound['of']}, then one cast"
    return text if bound["stated"] else f"none in the text; a published table has {text}"


def _shown(job: Job, bits: str | Sequence[str]) -> str:
    texts = [bits] if isinstance(bits, str) else list(bits)
    formats = job.signature.formats
    return ", ".join(f"{text} ({value_text(fmt, int(text, 16))})" for fmt, text in zip(formats, texts, strict=True))
