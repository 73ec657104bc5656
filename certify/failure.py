"""The text of a failure: what a backend engineer reads first, and perhaps only."""

from __future__ import annotations

import shlex
import textwrap

from halfulp.certify.show import bits_text, percent_text
from halfulp.oracle.clauses import CLAUSES, READINGS
from halfulp.oracle.memory.mutants import MUTANTS
from halfulp.oracle.suspects import SUSPECTS
from halfulp.properties.results import Example, Finding
from halfulp.properties.trial import KEPT

WIDTH = 100
LONGEST = 24
"""Lines of a program that are shown."""
_LABEL = 11
_READ_WITH = {"intent:5.2-i": "reading:26"}
"""A clause that says of an operation only that there is one, and the reading that says what it gives."""


def rule_of(clause: str) -> str:
    """The rule of a clause or reading in our own words; empty where the id is not one of the dialect's."""
    return CLAUSES[clause].rule if clause in CLAUSES else READINGS.get(clause, "")


def broken_rule(clause: str) -> tuple[str, str]:
    """What a breach of a clause breaks: ids, and the rule in our own words."""
    ids = [clause, *([_READ_WITH[clause]] if clause in _READ_WITH else [])]
    return ", ".join(ids), " ".join(filter(None, map(rule_of, ids)))


def suspect_summary(name: str) -> str:
    """What a named wrong rule does, in a phrase; empty where it is not known."""
    known = SUSPECTS.get(name) or MUTANTS.get(name)
    return known.summary.rstrip(".") if known else ""


def replay_command(token: str, backend: str) -> str:
    return f"halfulp replay {token} --backend {shlex.quote(backend)}"


def failure_text(finding: Finding, backend: str) -> str:
    """Everything there is to say of one breach, as plain text.

    Args:
        finding: the breach.
        backend: how the backend was named on the command line, for the replay command.
    """
    lines = [_wrapped(": ".join(filter(None, broken_rule(finding.clause))), ""), "", _headline(finding)]
    if finding.kernel:
        lines += ["", *(f"    {line}" for line in _listing(finding.kernel))]
    inputs = len(finding.simplest.inputs) if finding.simplest else 0
    for label, example in (("simplest", finding.simplest), ("worst", finding.worst)):
        if example is not None and not (label == "worst" and example == finding.simplest):
            lines += ["", *_example(label, example, finding.dtypes[:inputs], finding.dtypes[inputs:])]
    if len(finding.clauses) > 1:
        ranked = sorted(finding.clauses.items(), key=lambda item: -item[1])
        lines += ["", _labelled("clauses", ", ".join(f"{clause} ({count:,})" for clause, count in ranked))]
    suspicion = suspects_text(finding)
    if suspicion:
        lines += ["", _labelled("suspects", suspicion)]
    if finding.token:
        lines += ["", f"{'replay':<{_LABEL}}{replay_command(finding.token, backend)}"]
    return "\n".join(lines)


def _listing(kernel: str) -> list[str]:
    """The lines of a program; of a long one (a lane for each of many constants) both ends."""
    room = WIDTH - 4  # columns and indentation stay as they are
    lines = [line if len(line) <= room else f"{line[: room - 4].rstrip()} ..." for line in kernel.splitlines()]
    if len(lines) <= LONGEST:
        return lines
    cut = len(lines) - LONGEST + 1
    return [*lines[: LONGEST - 4], f"... ({cut:,} more lines)", *lines[-3:]]


def _headline(finding: Finding) -> str:
    if not finding.forbidden:
        return _wrapped(f"{finding.id}: {finding.message or 'the rule is broken.'}", "")
    verb = "is" if finding.forbidden == 1 else "are"
    line = f"{finding.id}: {finding.forbidden} of {finding.judged} results {verb} forbidden."
    return _wrapped(f"{line} {finding.message}".rstrip(), "")


def _example(label: str, example: Example, sources: tuple[str, ...], targets: tuple[str, ...]) -> list[str]:
    rows: list[tuple[str, str]] = []
    for position, text in enumerate(example.inputs):
        dtype = sources[position] if position < len(sources) else ""
        name = "input" if len(example.inputs) == 1 else f"input {position}"
        rows.append((name, f"{dtype} {_decoded(dtype, text)}".strip()))
    for position, got in enumerate(example.got):
        dtype = targets[position] if position < len(targets) else ""
        of = "" if len(example.got) == 1 else f" {position}"
        rows.append((f"got{of}", f"{dtype} {_decoded(dtype, got)}".strip()))
        if position < len(example.allowed):
            rows.append((f"allowed{of}", f"{dtype} {_decoded(dtype, example.allowed[position])}".strip()))
    if example.distance_ulp is not None:
        rows.append(("distance", f"{example.distance_ulp:,} ulp"))
    width = max((len(name) for name, _ in rows), default=0) + 2
    lines: list[str] = []
    for name, text in rows:
        first = f"{'' if lines else label:<{_LABEL}}{name:<{width}}"
        lines += textwrap.wrap(
            text,
            max(WIDTH, len(first) + 20),
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _decoded(dtype: str, text: str) -> str:
    """Decode each bit pattern in ``text``: a single one, ``A..B`` or a list such as ``A or B``."""
    if not dtype:
        return text
    words = text.replace("..", " to ").replace(",", " , ").split()
    return " ".join(bits_text(dtype, word) for word in words).replace(" ,", ",")


def suspects_text(finding: Finding) -> str:
    """What the named wrong rules say about the failure: those that fit without exception, else the three best."""
    if not finding.forbidden or not (finding.suspects or finding.simplest):
        return ""  # nothing was compared
    if not finding.suspects:
        return "none of the known wrong rules explains these results."
    perfect = [one for one in finding.suspects if one[1] >= 1 and one[2] <= 0]
    sentences = []
    for name, explained, contradicted in (perfect or finding.suspects)[:3]:
        summary = suspect_summary(name)
        rule = f"{name} ({summary})" if summary else name
        which = _explained(explained, finding.forbidden)
        sentences.append(f"{which} {rule}{_contradicted(contradicted, finding)}.")
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)


def _explained(share: float, wrong: int) -> str:
    """The suspects are compared with up to `KEPT` results: more than that must not be claimed."""
    if share < 1:
        return f"{percent_text(share)} of the wrong results equal"
    if wrong > KEPT:
        return f"all of the {KEPT} wrong results compared equal"
    return "the wrong result equals" if wrong == 1 else f"all {wrong} wrong results equal"


def _contradicted(share: float, finding: Finding) -> str:
    if finding.forbidden == finding.judged:
        return ""  # there is no right result that could contradict anything
    if share <= 0:
        return "; no right result contradicts it"
    return f"; {percent_text(share)} of the right results contradict it"


def _labelled(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{label:<{_LABEL}}",
        subsequent_indent=" " * _LABEL,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
