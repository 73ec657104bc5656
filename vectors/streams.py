"""Files of arrays: streams of random bits."""

from __future__ import annotations

from collections.abc import Iterator

from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import Kernel, one_node, to_json
from halfulp.oracle.ops import OPERATIONS
from halfulp.oracle.ops.random import SEEDS
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.ops.rules import as_bits
from halfulp.vectors.files import Case, Content, Group, Settings, content
from halfulp.vectors.identity import canonical, identity
from halfulp.vectors.ranges import rows
from halfulp.vectors.select import killed, suspects_of

LENGTH = 20
"""Counters in a row: five blocks, or parts of six."""

STARTS = (0, 1, (1 << 32) - 10, (1 << 34) - 10, (1 << 35) - 3, (1 << 63) - 21)
"""Where a run begins: at a carry of the word, of the low word of the block, and below the largest index."""

SIGNATURES = {
    "random/stream-bits": Signature("random_bits", ("u64", "u64"), "u32"),
    "random/stream-uniform": Signature("random_uniform", ("u64", "u64"), "f32"),
}


def _kernel(signature: Signature) -> Kernel:
    return one_node(signature.op, signature.args, signature.result)


def array_id(signature: Signature, inputs: object) -> str:
    return identity(f"{canonical(to_json(_kernel(signature)))}({canonical(inputs)})")


def _cases(signature: Signature) -> Iterator[Case]:
    u64 = format_of("u64")
    fmt = signature.result_format
    for seed in SEEDS:
        for start in STARTS:
            columns = [[seed] * LENGTH, list(range(start, start + LENGTH))]
            operands = [as_bits(u64, column) for column in columns]
            allowed = OPERATIONS[signature.op].allowed(signature, operands)
            found = [row for row in rows(allowed) if row is not None]
            inputs = [{"dims": [LENGTH], "bits": [u64.hex(code) for code in column]} for column in columns]
            yield {
                "id": array_id(signature, inputs),
                "inputs": inputs,
                "outputs": [
                    {
                        "dims": [LENGTH],
                        "nearest": [fmt.hex(row.nearest) for row in found],
                        "elements": [
                            {"allowed": [[fmt.hex(low), fmt.hex(high)] for low, high in row.allowed], "unspecified": []}
                            for row in found
                        ],
                    }
                ],
                "flags": ["sequence"],
                "kills": sorted(
                    s.name for s in suspects_of(signature) if killed(s, signature, operands, allowed).any()
                ),
            }


def generate(name: str, settings: Settings) -> Content:
    """The file of one kind of stream."""
    signature = SIGNATURES[name]
    clauses = OPERATIONS[signature.op].clauses(signature)
    return content(
        "array",
        name,
        OPERATIONS[signature.op].summary,
        [Group(f"runs of {LENGTH} counters", clauses, list(_cases(signature)))],
        settings,
        oracle="integers",
        formats=(*signature.args, signature.result),
        kernel=to_json(_kernel(signature)),
    )
