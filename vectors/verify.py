"""Verifying vector files: every set derived again, by the slow path, from nothing but what the case asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from halfulp.oracle import functions
from halfulp.oracle.formats import Format, format_of
from halfulp.oracle.functions import ziv
from halfulp.oracle.functions.record import argument
from halfulp.oracle.kernel import from_json, to_json
from halfulp.oracle.memory.program import from_json as litmus_from_json
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.rounding import power_of_two, value_of
from halfulp.vectors import digests, litmus, outcomes, slow, slow_functions, slow_kernels, typing
from halfulp.vectors.files import Case, Content, cases_of
from halfulp.vectors.identity import canonical, identity, kernel_id, operation_id, program_id
from halfulp.vectors.operations import EXTRA_BITS
from halfulp.vectors.ranges import Row, Span, subtracted

OPEN_STEPS = 8
"""Ulp by which unspecified results of functions without a stated bound may differ at their far ends (``reading:9``)."""

Fault = tuple[str, str]
"""The id of a case, and what is wrong with it."""


def signature_of(data: Content) -> Signature:
    fields = data["operation"]
    return Signature(fields["op"], tuple(fields["args"]), fields["result"], tuple(sorted(fields["attrs"].items())))


def spans_of(pairs: Iterable[Iterable[str]]) -> tuple[Span, ...]:
    """Ranges of JSON as codes."""
    found = []
    for low, high in pairs:
        found.append((int(low, 16), int(high, 16)))
    return tuple(found)


def _codes(texts: Iterable[str]) -> list[int]:
    return [int(text, 16) for text in texts]


def same(fmt: Format, expected: Row, given: Row, *, open_ends: bool) -> bool:
    """Whether two rows are one; ``open_ends``: up to a few ulp at the ends of what is unspecified."""
    if (expected.nearest, expected.allowed) != (given.nearest, given.allowed):
        return False
    if expected.unspecified == given.unspecified:
        return True
    if not open_ends:
        return False
    apart = subtracted(expected.unspecified, given.unspecified) + subtracted(given.unspecified, expected.unspecified)
    largest = max(code & fmt.magnitude_mask for code in (given.nearest, *(end for span in apart for end in span)))
    ulp = slow_functions.ulp_at(fmt, largest)
    width = sum((abs(_number(fmt, high) - _number(fmt, low)) for low, high in apart), Fraction(0))
    return width <= OPEN_STEPS * ulp


def _number(fmt: Format, code: int) -> Fraction:
    """The value of a code; of an infinity that of the largest number."""
    sign = code & fmt.sign_mask
    value = value_of(fmt, sign | min(code & fmt.magnitude_mask, fmt.max_finite_bits))
    assert isinstance(value, Fraction)
    return value


def _shown(dtype: str, one: Row | None) -> str:
    if one is None:
        return "nothing"
    fmt = format_of(dtype)
    spans = [f"{fmt.hex(low)}..{fmt.hex(high)}" if low < high else fmt.hex(low) for low, high in one.allowed]
    also = f", unspecified in {len(one.unspecified)} ranges" if one.unspecified else ""
    return f"{', '.join(spans) or 'nothing'} (nearest {fmt.hex(one.nearest)}{also})"


# One case of each kind.


def _operation(data: Content, case: Case) -> Iterator[str]:
    signature = signature_of(data)
    if case["id"] != operation_id(signature, case["inputs"]):
        yield "the id does not belong to these inputs"
    codes = _codes(case["inputs"])
    expected = slow.expected(signature, codes)
    given = Row(int(case["nearest"], 16), spans_of(case["allowed"]), spans_of(case["unspecified"]))
    open_ends = slow_functions.has_open_ends(signature)
    if expected is None or not same(signature.result_format, expected, given, open_ends=open_ends):
        yield f"the slow path allows {_shown(signature.result, expected)}, the file {_shown(signature.result, given)}"
    if "exact" in case:
        yield from _exact(signature, codes, case["exact"])


def _exact(signature: Signature, codes: list[int], exact: Mapping[str, Any]) -> Iterator[str]:
    """The exact result: bounds of it by mpmath, or the value itself, have to leave just these bits."""
    fmt = signature.result_format
    arguments = tuple(argument(fmt, code) for code in codes)
    function = functions.FUNCTIONS[signature.op]
    known = function.known(*arguments)
    significand, exponent = int(exact["significand"], 16), exact["exponent"]
    if isinstance(known, str):
        kinds = {"nan": "nan", "+0": "zero", "-0": "zero", "+inf": "infinity", "-inf": "infinity"}
        if (exact["kind"], exact["negative"]) != (kinds[known], known.startswith("-")):
            yield f"the exact result is {known}, not {exact['kind']}"
        return
    if exact["kind"] == "huge":
        if isinstance(known, Fraction) and abs(known) < power_of_two(2 * fmt.max_exponent):
            yield "the exact result is not that large"
        return
    if exact["kind"] != "number":
        yield f"the exact result is a number, not {exact['kind']}"
        return
    for bits in (fmt.precision + EXTRA_BITS << step for step in range(8)):
        if isinstance(known, Fraction):
            low = high = known
        elif known is not None and bits == fmt.precision + EXTRA_BITS:  # simple bounds, which may be enough
            low, high = known.low, known.high if known.high is not None else known.low
            hair = (high - low) / (1 << 64)  # the ends themselves are no values
            low, high = low + hair, high - hair
        else:
            low, high = ziv.mpmath_bounds(function, tuple(x.value for x in arguments), bits)
        steps = [abs(end) / power_of_two(exponent) for end in (low, high)]
        whole = {step.numerator // step.denominator for step in steps}
        if len(whole) == 1:
            break
    if whole != {significand} or (low < 0) != exact["negative"]:
        yield f"the exact result begins with {' or '.join(hex(one) for one in sorted(whole))} by mpmath"
    if exact["inexact"] == (steps[0] == steps[1] == significand):
        yield "inexact is wrong"
    precision = significand.bit_length()
    least = fmt.quantum_exponent - EXTRA_BITS
    if not (precision == fmt.precision + EXTRA_BITS or (precision < fmt.precision + EXTRA_BITS and exponent == least)):
        yield f"the significand has {precision} bits"


def _kernel(data: Content, case: Case) -> Iterator[str]:
    kernel = from_json(data["kernel"])
    if case["id"] != kernel_id(data["kernel"], case["inputs"]):
        yield "the id does not belong to this kernel and these inputs"
    formats = [format_of(type_.dtype) for type_ in kernel.output_types]
    try:
        nearest, alternatives = slow_kernels.expected(kernel, _codes(case["inputs"]))
    except slow_kernels.UndecidedError as error:
        yield str(error)
        return
    if [fmt.hex(code) for fmt, code in zip(formats, nearest, strict=True)] != case["nearest"]:
        yield "the slow path has another nearest outcome"
    given = [
        [Row(0, spans_of(one["allowed"]), spans_of(one["unspecified"])) for one in alternative]
        for alternative in case["alternatives"]
    ]
    open_ends = any(
        slow_functions.has_open_ends(Signature(value["op"], ("f32",), "f32", tuple(value.get("attrs", {}).items())))
        for value in data["kernel"]["values"]
        if "op" in value
    )
    right = len(given) == len(alternatives) and all(
        same(fmt, Row(0, one.allowed, one.unspecified), other, open_ends=open_ends)
        for mine, theirs in zip(alternatives, given, strict=True)
        for fmt, one, other in zip(formats, mine, theirs, strict=True)
    )
    if not right:
        yield f"the slow path has the alternatives {canonical(outcomes.as_fields(formats, alternatives))}"


def _array(data: Content, case: Case) -> Iterator[str]:
    """Element by element: the kernel is one operation on arrays."""
    kernel = from_json(data["kernel"])
    if case["id"] != identity(f"{canonical(to_json(kernel))}({canonical(case['inputs'])})"):
        yield "the id does not belong to this kernel and these inputs"
    node = data["kernel"]["values"][-1]
    signature = Signature(node["op"], tuple(type_.dtype for type_ in kernel.input_types), node["dtype"])
    columns = [_codes(array["bits"]) for array in case["inputs"]]
    (result,) = case["outputs"]
    for codes, element, nearest in zip(zip(*columns, strict=True), result["elements"], result["nearest"], strict=True):
        expected = slow.expected(signature, codes)
        given = Row(int(nearest, 16), spans_of(element["allowed"]), spans_of(element["unspecified"]))
        if expected != given:
            yield f"at {codes} the slow path allows {_shown(signature.result, expected)}"


def _litmus(data: Content, case: Case) -> Iterator[str]:
    if case["id"] != program_id(case["program"]):
        yield "the id does not belong to this program"
    yield from litmus.slow_case(litmus_from_json(case["program"]), case)


def _typing(data: Content, case: Case) -> Iterator[str]:
    if case["id"] != program_id(case["program"]):
        yield "the id does not belong to this program"
    yield from typing.slow_case(case)


def _digest(data: Content, case: Case) -> Iterator[str]:
    signature = digests.signature_of(case)
    if case["id"] != digests.digest_id(signature):
        yield "the id does not belong to this operation"
    if digests.case_of(signature, case["sha256"], case["sample_sha256"]) != case:
        yield "its fields are not those of the operation"
    if digests.sample(signature, digests.by_elements) != case["sample_sha256"]:
        yield f"the slow path has another digest of every {case['sample_stride']}th result"
    if data["name"] == digests.SHORT and digests.digest(signature) != case["sha256"]:
        yield "the complete output has another digest"


def _whole_digest(data: Content, case: Case) -> Iterator[str]:
    """2^16 results by the slow path, 2^32 by arrays."""
    yield from _digest(data, case)
    evaluate = digests.by_elements if data["name"] == digests.SHORT else digests.by_arrays
    if digests.digest(digests.signature_of(case), evaluate) != case["sha256"]:
        yield "the complete output has another digest"


_KINDS: dict[str, Callable[[Content, Case], Iterator[str]]] = {
    "operation": _operation,
    "function": _operation,
    "kernel": _kernel,
    "array": _array,
    "litmus": _litmus,
    "typing": _typing,
    "digest": _digest,
}


def faults(data: Content, *, exhaustive: bool = False) -> Iterator[Fault]:
    """What is wrong with the cases of a file.

    Args:
        exhaustive: digests are derived whole, which takes minutes for 2^32 results, not by a sample.
    """
    check = _whole_digest if exhaustive and data["kind"] == "digest" else _KINDS[data["kind"]]
    for case in cases_of(data):
        for words in check(data, case):
            yield case["id"], words


def vector_files(folder: Path) -> dict[str, Path]:
    """The JSON files of a set by name."""
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.json")}
    return {name: found[name] for name in sorted(found) if "/" in name and not name.startswith(".")}
