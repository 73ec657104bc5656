"""Writes the pages of the documentation that are computed from the code.

    python docs/_generate.py                      the reference, the readings and the coverage page
    python docs/_generate.py detection            the detection table, which takes a minute or two
    python docs/_generate.py findings REPORT...   docs/findings/ from JSON reports of real runs

`make docs` does the first. A test compares the committed pages with what this module computes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from _results import results_page
from _results_cuda import cuda_page

from halfulp.certify.detection import atomics
from halfulp.certify.detection.values import as_markdown, detection_table
from halfulp.certify.failure import broken_rule
from halfulp.certify.saboteurs.atomics import LITMUS_SUSPECTS, LitmusSuspect
from halfulp.oracle.clauses import CHAPTERS, CLAUSES, KINDS, READINGS, canonical_id
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.ops import OPERATIONS, Signature, decided, signatures
from halfulp.oracle.rounding import value_of
from halfulp.oracle.sets import AllowedSet
from halfulp.oracle.suspects import SUSPECTS, Suspect
from halfulp.oracle.typing import rejections
from halfulp.properties.typed import acceptance_table

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

ALL_SUSPECTS: tuple[Suspect | LitmusSuspect, ...] = (*SUSPECTS.values(), *LITMUS_SUSPECTS.values())
"""Those of operations and programs, then those of atomics."""

NOTE = "<!-- Written by docs/_generate.py; run `make docs` instead of editing. -->\n\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def short(clause: str) -> str:
    return clause.removeprefix("intent:")


# Coverage.

# A clause of kind I says that inputs are the caller's fault. No element of a run may fall under it, so no record can
# list it; what shows that it is respected is that the oracle claims nothing there.
ILLEGAL: dict[str, tuple[tuple[Signature, tuple[int, ...]], ...]] = {
    "intent:4-h": tuple(
        (Signature(op, ("i32", "i32"), "i32"), (1, amount)) for op in ("shl", "shr") for amount in (32, 0xFFFFFFFF)
    ),
    "intent:4-i": tuple((Signature(op, ("i32", "i32"), "i32"), (1, 0)) for op in ("floordiv", "mod")),
    "intent:4-j": ((Signature("floordiv", ("i32", "i32"), "i32"), (0x80000000, 0xFFFFFFFF)),),
    "intent:5.2-c": tuple(
        (Signature("cast", ("f32",), "i8"), (bits,)) for bits in (0x7FC00000, 0x7F800000, 0x43000000, 0xC3010000)
    ),
    "intent:5.2-f": ((Signature("cast", ("f32",), "f8e4m3fn"), (0x43E90000,)),),
}


# Clauses that hold wherever others are checked.
CONSEQUENCES: dict[str, tuple[str, ...]] = {
    # Every backend is judged by the same sets.
    "intent:4-l": tuple(f"intent:4-{letter}" for letter in "abcefg"),
    # What the two forms may differ in is what they do differ in.
    "intent:5.5-b": ("intent:5.5-a",),
    # Errors are counted against the correctly rounded result, of whatever formula.
    "intent:5-i": tuple(f"intent:5-{letter}" for letter in "efg"),
    # Another mode put in for the approximate one shows where the rules of the two exclude each other.
    "intent:5.1-i": ("intent:5.1-g", "intent:5.1-h"),
    "intent:5.1-k": tuple(f"intent:5.1-{letter}" for letter in "efg"),
    # Where the bits are right it does not matter what made them.
    "intent:12-f": ("intent:12-a",),
}


@dataclass
class Row:
    """What checks one clause."""

    operations: list[str] = field(default_factory=list)
    unclaimed: list[str] = field(default_factory=list)
    properties: list[str] = field(default_factory=list)
    refused: int = 0
    accepted: int = 0
    suspects: list[str] = field(default_factory=list)
    verdicts: set[str] = field(default_factory=set)

    @property
    def checked(self) -> bool:
        return bool(self.operations or self.unclaimed or self.refused or self.accepted or self.properties)


def judged_elements(signature: Signature) -> Iterator[tuple[str, str]]:
    """Clauses that govern the critical points of a signature, each with a kind of verdict that occurs there."""
    record = OPERATIONS[signature.op]
    operands = record.critical(signature)
    allowed: AllowedSet = record.allowed(signature, operands)
    claimed, blank = allowed.claimed, allowed.only_unspecified
    also = allowed.unspecifies_nan
    for low, high in allowed.unspecified_ranges:
        also = also | (low <= high)
    kinds = {
        "allowed or forbidden": claimed & ~blank,
        "unspecified": claimed & (blank | also),
        "no claim": ~claimed,
    }
    for clause, mask in record.cases(signature, operands).items():
        for kind, where in kinds.items():
            if (mask & where).any():
                yield clause, kind


def claims_nothing(signature: Signature, operands: Sequence[int]) -> bool:
    arrays = [np.array([bits], fmt.storage) for fmt, bits in zip(signature.formats, operands, strict=True)]
    return not OPERATIONS[signature.op].allowed(signature, arrays).claimed.any()


def marked_clauses(module: ModuleType) -> set[str]:
    """Clauses that the tests of a module of properties are marked with, on the function or on a parameter."""
    found: set[str] = set()
    for function in vars(module).values():
        for mark in getattr(function, "pytestmark", ()):
            parameters = mark.args[1] if mark.name == "parametrize" else ()
            marks = [mark, *(inner for parameter in parameters for inner in getattr(parameter, "marks", ()))]
            found |= {canonical_id(name) for one in marks if one.name == "clauses" for name in one.args}
    return found


@cache
def coverage() -> dict[str, Row]:
    """What checks each clause and each reading, computed from records, tables, properties and suspects."""
    rows = {name: Row() for name in (*CLAUSES, *READINGS)}
    for signature in signatures():
        for clause in OPERATIONS[signature.op].clauses(signature):
            if signature.op not in rows[clause].operations:
                rows[clause].operations.append(signature.op)
        for clause, kind in judged_elements(signature):
            rows[clause].verdicts.add(kind)
    for clause, examples in ILLEGAL.items():
        for signature, operands in examples:
            if not claims_nothing(signature, operands):
                raise ValueError(f"{clause}: {signature.id} claims something of {operands}")
            rows[clause].verdicts.add("no claim")
            if signature.op not in rows[clause].unclaimed:
                rows[clause].unclaimed.append(signature.op)
    for _, refused in rejections():
        rows[refused.clause].refused += 1
        rows[refused.clause].verdicts.add("accepted or rejected")
    for clause, programs in acceptance_table().items():
        rows[clause].accepted = len(programs)
        rows[clause].verdicts.add("accepted or rejected")
    for path in sorted((ROOT / "properties").glob("test_*.py")):
        for clause in marked_clauses(import_module(f"halfulp.properties.{path.stem}")):
            rows[clause].properties.append(path.stem.removeprefix("test_"))
    for suspect in ALL_SUSPECTS:
        for clause in suspect.clauses:
            rows[clause].suspects.append(suspect.name)
    return rows


def coverage_page() -> str:
    rows = coverage()
    counted = {kind: sum(clause.status == kind for clause in CLAUSES.values()) for kind in ("checked", "planned")}
    parts = [
        "# Coverage\n\n" + NOTE + "Which clauses of dialect *intent* are checked, and by what. "
        f"Of {len(CLAUSES)} clauses, {counted['checked']} are checked and {counted['planned']} are planned. "
        "The rules themselves are in [clauses](../reference/clauses.md).\n\n"
        "* *operations*: those whose records name the clause for a class of their elements; "
        "*rejections* and *accepted programs* count the programs that the tables of `oracle/typing.py` derive from it; "
        "*illegal in* lists operations that have elements without a claim because of it.\n"
        "* *properties*: the modules `properties/test_*.py` with tests that are marked with it.\n"
        "* *suspects*: the wrong rules that break it, each of which has to be caught.\n"
    ]
    for chapter in CHAPTERS:
        clauses = [clause for clause in CLAUSES.values() if clause.chapter == chapter.number]
        parts.append(f"\n## {chapter.number} {chapter.title}\n\n")
        checked = [clause for clause in clauses if not clause.later]
        if checked:
            heads = ("clause", "kind", "operations", "properties", "verdicts", "suspects")
            parts.append(table(heads, (_coverage_row(clause.id, clause.kinds, rows[clause.id]) for clause in checked)))
        for reason in dict.fromkeys(clause.later for clause in clauses if clause.later):
            names = [short(clause.id) for clause in clauses if clause.later == reason]
            parts.append(("\n" if checked else "") + f"Planned, {reason}: {', '.join(names)}.\n")
            checked = clauses
    parts.append("\n## Readings\n\nReadings that govern elements of records, or that a property or suspect names.\n\n")
    used = [(name, rows[name]) for name in READINGS if rows[name].checked or rows[name].suspects]
    parts.append(
        table(
            ("reading", "operations", "properties", "verdicts", "suspects"),
            ((name, _operations(row), code(row.properties), _verdicts(row), code(row.suspects)) for name, row in used),
        )
    )
    return "".join(parts)


def _operations(row: Row) -> str:
    words = [code(row.operations)] if row.operations else []
    if row.unclaimed:
        words.append(f"illegal in {code(row.unclaimed)}")
    if row.refused:
        words.append(f"rejections ({row.refused:,})")
    if row.accepted:
        words.append(f"accepted programs ({row.accepted:,})")
    return "; ".join(words)


def _verdicts(row: Row) -> str:
    order = ("allowed or forbidden", "unspecified", "no claim", "accepted or rejected")
    return ", ".join(kind for kind in order if kind in row.verdicts)


def _coverage_row(name: str, kinds: str, row: Row) -> tuple[str, ...]:
    where = _operations(row)
    if name in CONSEQUENCES:
        where = f"a consequence of {', '.join(map(short, CONSEQUENCES[name]))}"
    return (short(name), "/".join(kinds), where, code(row.properties), _verdicts(row), code(row.suspects))


# Reference.


def clauses_page() -> str:
    parts = [
        "# Clauses\n\n" + NOTE + "The rules of dialect *intent*, in our own words. The id of a clause is `intent:` and "
        "the number given here, e.g. `intent:5.2-g`; `halfulp clauses` prints them. "
        "[Coverage](../spec/coverage.md) says what checks each.\n\n"
    ]
    parts.append(table(("kind", "meaning"), KINDS.items()))
    for chapter in CHAPTERS:
        parts.append(f"\n## {chapter.number} {chapter.title}\n\n")
        mine = (clause for clause in CLAUSES.values() if clause.chapter == chapter.number)
        parts.append(
            table(
                ("clause", "kind", "rule", "status"),
                ((short(clause.id), "/".join(clause.kinds), clause.rule, clause.status) for clause in mine),
            )
        )
    return "".join(parts)


def readings_page() -> str:
    parts = [
        "# Readings\n\n" + NOTE + "Where the text of the language leaves a choice, a judge must neither invent a rule "
        "nor forgive a breach. A result that only one of the possible readings allows is *unspecified*: reported, and "
        "never failed. Each decision of ours has an id, so that a report can name it and a reader can dispute it.\n\n"
    ]
    for name, text in READINGS.items():
        parts.append(f"**{name}.** {text}\n\n")
    return "".join(parts).rstrip() + "\n"


def operations_page() -> str:
    parts = [
        "# Operations\n\n" + NOTE + "Names as they are used in kernels, in `ask` and `judge` and in reports. "
        "*Signatures* counts the tuples of dtypes on which the operation is judged; a number in brackets counts those "
        "among them that the text leaves undecided, so that a backend may refuse them.\n\n"
    ]
    rows = []
    for record in OPERATIONS.values():
        all_of_it = [signature for signature in signatures() if signature.op == record.name]
        open_ones = sum(not decided(signature) for signature in all_of_it)
        clauses = dict.fromkeys(clause for signature in all_of_it for clause in record.clauses(signature))
        count = f"{len(all_of_it)} ({open_ones})" if open_ones else str(len(all_of_it))
        rows.append(
            (f"`{record.name}`", str(record.arity), record.summary, count, ", ".join(short(name) for name in clauses))
        )
    parts.append(table(("operation", "operands", "rule", "signatures", "clauses"), rows))
    return "".join(parts)


def _power(value: Fraction) -> str:
    """A positive number as an odd multiple of a power of two, or as it is where that is short."""
    if value.denominator == 1 and value < 10**6:
        return str(value.numerator)
    exponent = 0
    while value.denominator % 2 == 0:
        value, exponent = value * 2, exponent - 1
    while value.numerator % 2 == 0:
        value, exponent = value / 2, exponent + 1
    if value == 1:
        return f"2^{exponent}"
    bits = value.numerator.bit_length()
    if value.numerator == (1 << bits) - 1:
        return f"(2 - 2^-{bits - 1}) * 2^{exponent + bits - 1}"
    return f"{value.numerator} * 2^{exponent}"


def _number(fmt: Format, bits: int) -> str:
    value = value_of(fmt, bits)
    assert isinstance(value, Fraction)
    return _power(value)


NANS = {
    "ieee": "exponent all ones, fraction not zero",
    "all_ones": "all bits but the sign one",
    "negative_zero": "the code of -0",
    "none": "none",
}


def formats_page() -> str:
    parts = [
        "# Formats\n\n" + NOTE + "A format is data: one record in `oracle/formats.py`. Those marked *run* are the 16 "
        "scalars that backends are asked for; the oracle alone knows the others.\n\n## Floats\n\n"
    ]
    heads = ("format", "run", "bits", "exponent", "fraction", "bias", "smallest", "largest", "infinity", "NaN")
    floats = [fmt for fmt in FORMATS.values() if fmt.is_float]
    parts.append(
        table(
            heads,
            (
                (
                    f"`{fmt.name}`",
                    "yes" if fmt.canonical else "",
                    str(fmt.width),
                    str(fmt.exponent_bits),
                    str(fmt.fraction_bits),
                    str(fmt.bias),
                    _number(fmt, 1 if fmt.subnormals else 0),
                    _number(fmt, fmt.max_finite_bits),
                    "yes" if fmt.infinity else "no",
                    NANS[fmt.nan] + ("" if fmt.signed else "; no sign, no zero"),
                )
                for fmt in floats
            ),
        )
    )
    parts.append("\n*Smallest* is the smallest positive number.\n\n## Integers and bool\n\n")
    rest = [fmt for fmt in FORMATS.values() if not fmt.is_float]
    parts.append(
        table(
            ("format", "run", "bits", "signed"),
            (
                (
                    f"`{fmt.name}`",
                    "yes" if fmt.canonical else "",
                    str(fmt.width),
                    "yes" if fmt.signed else "no",
                )
                for fmt in rest
            ),
        )
    )
    parts.append(
        "\nA pattern is written in hexadecimal, most significant digit first, with as many digits as the format "
        "needs: `0x3f80` is 1.0 in bf16. In arrays it stands in the unsigned numpy dtype of at least 8 bits that holds "
        "it; a bool is 0 or 1 in a byte, and 128-bit integers are pairs of 64-bit words (`lo`, `hi`).\n"
    )
    return "".join(parts)


def pages() -> dict[Path, str]:
    """The computed pages, by path under docs/."""
    return {
        Path("reference/clauses.md"): clauses_page(),
        Path("reference/operations.md"): operations_page(),
        Path("reference/formats.md"): formats_page(),
        Path("explanation/readings.md"): readings_page(),
        Path("spec/coverage.md"): coverage_page(),
        Path("results.md"): results_page(table, NOTE),
        Path("results-cuda.md"): cuda_page(table, NOTE),
    }


# Detection.


def detection_page() -> str:
    """Who is caught by what: every suspect tried on the suite."""
    faults = sum(suspect.fault for suspect in ALL_SUSPECTS)
    return (
        "# Detection\n\n<!-- Written by `docs/_generate.py detection`. -->\n\n"
        f"Each of the {len(ALL_SUSPECTS)} [suspects](../explanation/suspects.md) as a backend that is wrong in this "
        f"one way, `--backend=saboteur:NAME`. {faults} are faults, and have to be caught under every clause that they "
        "break; the others are allowed, and must not be reported. *Budget* is the depth that it takes.\n\n"
        "## Operations and programs\n\n" + as_markdown(detection_table()) + "\n## Atomics\n\n"
        "Accesses that are lowered wrongly, on the processors of this machine; then devices that show whatever a wrong "
        "[model](../explanation/memory-model.md) allows. Threads meet by chance, so that counts differ from run to "
        "run; *forbidden of judged* counts instances of one litmus program, operations of one contest, or accesses "
        "whose instructions were looked at.\n\n"
        + as_markdown(atomics.detection_table())
        + "\n"
        + table(("suspect", "what it does"), ((f"`{one.name}`", one.summary) for one in LITMUS_SUSPECTS.values()))
    )


# Findings.


NOTES: dict[str, str] = {
    "numpy": "numpy is no backend of this language: it promotes operands where the language refuses a program, by "
    "design. Those differences stand under *Programs*. What stands under *Results* is another matter: the libraries "
    "round twice where a conversion rounds once. ml_dtypes converts f64 and wide integers to its narrow floats by "
    "way of f32, and a value just above a midpoint of the narrow format becomes the midpoint itself on the way. And "
    "numpy's `fmax` and `fmin` give NaN beside some signalling NaNs. numpy's `i0` multiplies a Chebyshev sum by "
    "exp(x): it is NaN at infinity, infinite where exp(x) overflows and the function does not, and 0.99999994 at 0 in "
    "f32; f16 and f8e5m2 it computes in themselves, which puts a third of all f16 inputs off by one step and more.",
}
"""What a reader has to know about a backend to read its findings."""


def findings_page(name: str, report: dict[str, Any]) -> str:
    """A page on what one certification run found, from its JSON report."""
    versions = ", ".join(f"{package} {version}" for package, version in report["versions"].items())
    parts = [
        f"# Findings: {name}\n\n<!-- Written by `docs/_generate.py findings` from the report of a run. -->\n\n",
        f"`halfulp certify --backend {report['backend']} --seed {report['seed']} --depth {report['depth']}`, "
        f"with {versions}.\n\n{report['verdict']}.\n",
    ]
    if report["backend"] in NOTES:
        parts.append(f"\n{NOTES[report['backend']]}\n")
    order = [*CLAUSES, *READINGS]
    results: dict[str, list[dict[str, Any]]] = {}
    for finding in sorted(report["findings"], key=lambda finding: order.index(finding["clause"])):
        if finding["simplest"] is not None:
            results.setdefault(finding["clause"], []).append(finding)
    if results:
        parts.append("\n## Results\n")
    for clause, found in results.items():
        ids, rule = broken_rule(clause)
        parts.append(f"\n**{ids}.** {rule}\n\n")
        heads = ("program", "wrong", "simplest input", "got", "allowed", "explained by")
        parts.append(table(heads, (_finding_row(finding) for finding in _one_per_signature(found))))
    programs = [finding for finding in report["findings"] if finding["simplest"] is None]
    if programs:
        parts.append("\n## Programs\n\n")
        rows = sorted(programs, key=lambda finding: order.index(finding["clause"]))
        parts.append(table(("clause", "what"), ((row["clause"], _first_sentences(row["message"])) for row in rows)))
    return "".join(parts)


def _first_sentences(message: str) -> str:
    """A message without its list of further programs."""
    return message.partition(" Others: ")[0]


def _one_per_signature(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mode with most wrong results stands for a signature: modes of an eager library say the same."""
    best: dict[str, dict[str, Any]] = {}
    for finding in found:
        name = finding["id"].split("/")[0]
        if name not in best or finding["forbidden"] > best[name]["forbidden"]:
            best[name] = finding
    return list(best.values())


def _program(finding: dict[str, Any]) -> str:
    """Our id of what was run; the text of a source program."""
    listing: str = finding["kernel"].strip()
    return finding["id"].split("/")[0] if "\n" in listing else listing


def _finding_row(finding: dict[str, Any]) -> tuple[str, ...]:
    example = finding["simplest"]
    explained = [f"`{name}` {share:.0%}" for name, share, _ in finding["suspects"][:2]]
    return (
        f"`{_program(finding)}`",
        f"{finding['forbidden']:,} of {finding['judged']:,}",
        ", ".join(example["inputs"]),
        ", ".join(example["got"]),
        ", ".join(example["allowed"]),
        ", ".join(explained) or "nothing known",
    )


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        written = pages()
    elif list(arguments) == ["detection"]:
        written = {Path("spec/detection.md"): detection_page()}
    elif arguments[0] == "findings" and len(arguments) > 1:
        names = {"numpy": "numpy-ml_dtypes"}
        reports = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments[1:]]
        written = {}
        for report in reports:
            name = names.get(report["backend"], report["backend"])
            written[Path("findings") / f"{name}.md"] = findings_page(name, report)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for path, text in written.items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")
        print(f"wrote docs/{path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
