"""The detection table: every wrong rule is caught by the property of its clause, every freedom is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest

from halfulp.adapters.protocol import Options
from halfulp.certify.detection.values import as_markdown, candidates, detect
from halfulp.certify.saboteurs.reference import ReferenceAdapter
from halfulp.certify.saboteurs.values import Saboteur
from halfulp.oracle.clauses import CLAUSES, READINGS
from halfulp.oracle.formats import Bits
from halfulp.oracle.judge import evaluate, judge
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops import OPERATIONS, signatures
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import Verdict
from halfulp.oracle.suspects import FAULTS, SUSPECTS, VARIANTS, Suspect, diagnose, suspect
from halfulp.properties import inputs
from halfulp.properties.bulk import forms
from halfulp.properties.known import KNOWN
from halfulp.properties.plan import Plan
from halfulp.properties.programs import Subject, try_programs
from halfulp.properties.trial import try_signature
from halfulp.properties.typed import acceptance_table, rejection_table

QUICK = Plan(0, "quick")

OF_RULES = [name for name, chosen in SUSPECTS.items() if chosen.rule is not None]


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str) -> None:
    rows = detect(name)
    assert tuple(row.clause for row in rows) == FAULTS[name].clauses
    missed = [row.clause for row in rows if not row.caught]
    assert not missed, f"{name} breaks {', '.join(missed)} and nothing notices"


@pytest.mark.parametrize("name", VARIANTS)
def test_variant_is_left_alone(name: str) -> None:
    (row,) = detect(name)
    assert row.judged > 0, "nothing was tried"
    assert not row.caught, f"{name} is allowed, and {row.program} reports it"


def test_reference_is_left_alone() -> None:
    """The backend that evaluates with the oracle itself: no finding, at both of its levels."""
    backend = ReferenceAdapter()
    for signature in signatures(("cast", "add", "mod", "maximum", "muladd"))[::23]:
        assert not try_signature(backend, signature, QUICK).findings
    assert not try_programs(backend, [subject for known in KNOWN[::5] for subject in known.subjects(QUICK)]).findings


@cache
def _elements(signature: Signature) -> list[Bits]:
    return inputs.elements(signature, QUICK)


@pytest.mark.parametrize("name", OF_RULES)
def test_scope(name: str) -> None:
    """A rule acts on every signature of its scope: a fault is forbidden somewhere, a variant nowhere."""
    chosen = SUSPECTS[name]
    scope = [signature for signature in signatures() if chosen.applies(signature)]
    assert scope
    for signature in scope:
        columns = _elements(signature)
        got = chosen.override(signature, columns)
        assert got is not None
        assert got.dtype == signature.result_format.storage
        verdicts = OPERATIONS[signature.op].allowed(signature, columns).judge(got)
        assert (verdicts == Verdict.FORBIDDEN).any() == chosen.fault, signature.id


@pytest.mark.parametrize("name", [name for name in OF_RULES if SUSPECTS[name].fault])
def test_diagnosis_names_the_rule(name: str) -> None:
    """All failures explained, no success contradicted; others may do so too where they cannot be told apart."""
    chosen = SUSPECTS[name]
    signature = next(candidates(chosen, chosen.clause))
    kernel = OPERATIONS[signature.op].kernel(signature)
    columns = _elements(signature)
    got = evaluate(kernel, columns, chosen.override)
    ranking = diagnose(kernel, columns, got, judge(kernel, columns, got))
    assert (name, 1.0, 0.0) in ranking
    assert ranking[0][1:] == (1.0, 0.0)
    assert [entry[1] - entry[2] for entry in ranking] == sorted((e[1] - e[2] for e in ranking), reverse=True)


@pytest.mark.parametrize("name", [name for name, chosen in FAULTS.items() if chosen.kernel_rule is not None])
def test_diagnosis_names_the_rewrite(name: str) -> None:
    chosen = FAULTS[name]
    assert chosen.kernel_rule is not None
    tried = 0
    for kernel, passed in _programs(chosen):
        got = chosen.kernel_rule(kernel, passed)
        if got is None:
            continue
        verdicts = judge(kernel, passed, got)
        if any((verdict == Verdict.FORBIDDEN).any() for verdict in verdicts):
            tried += 1
            ranking = diagnose(kernel, passed, got, verdicts)
            assert (name, 1.0, 0.0) in ranking, str(kernel)
            if tried == 2:
                return
    assert tried


def _programs(chosen: Suspect) -> Iterator[tuple[Kernel, Sequence[Bits]]]:
    """Programs that a rewrite may spoil: single operations in every mode, then the known ones."""
    for clause in chosen.clauses:
        for signature in candidates(chosen, clause):
            for form in forms(signature, QUICK):
                yield from ((form.kernel, run.inputs) for run in form.runs)
    for subject in _known():
        yield subject.kernel, subject.inputs


@cache
def _known() -> list[Subject]:
    return [subject for known in KNOWN for subject in known.subjects(QUICK)]


def test_diagnosis_of_something_else() -> None:
    """A fault that is no suspect is not blamed on one with certainty; results that are right have no culprit."""
    signature = Signature("add", ("i32", "i32"), "i32")
    kernel = OPERATIONS["add"].kernel(signature)
    columns = _elements(signature)
    right = evaluate(kernel, columns)
    assert diagnose(kernel, columns, right, judge(kernel, columns, right)) == []
    odd = [right[0] ^ np.uint32(0x5A5A)]
    assert all(explained < 0.5 for _, explained, _ in diagnose(kernel, columns, odd, judge(kernel, columns, odd)))


def test_records() -> None:
    assert len(FAULTS) >= 45
    for chosen in SUSPECTS.values():
        assert chosen.summary.endswith("."), chosen.name
        assert sum(rule is not None for rule in (chosen.rule, chosen.kernel_rule, chosen.typing_rule)) == 1
        assert bool(chosen.clauses) == chosen.fault, chosen.name
        for clause in chosen.clauses:
            assert clause in READINGS or CLAUSES[clause].status == "checked", (chosen.name, clause)


def test_every_clause_has_a_suspect() -> None:
    """A clause whose property no saboteur can trip is not tested."""
    judged = {clause for s in signatures() for clause in OPERATIONS[s.op].clauses(s)}
    judged |= {known.clause for known in KNOWN} | set(rejection_table()) | set(acceptance_table())
    broken = {clause for chosen in FAULTS.values() for clause in chosen.clauses}
    # Casts of bool are unspecified: nothing that a backend does with them can fail.
    assert judged - broken == {"intent:5.2-o"}
    assert broken <= judged


def test_unknown_suspect() -> None:
    with pytest.raises(ValueError, match=r"unknown suspect 'nobody'; known suspects: .*round_via_f32"):
        suspect("nobody")
    with pytest.raises(ValueError, match="unknown suspect"):
        Saboteur("nobody")


def test_saboteur_is_wrong_in_one_way_only() -> None:
    """Operations out of a suspect's scope are computed right."""
    backend = Saboteur("floordiv_truncates")
    (program,) = backend.compile([OPERATIONS["add"].kernel(Signature("add", ("i8", "i8"), "i8"))], Options())
    assert callable(program)
    columns = _elements(Signature("add", ("i8", "i8"), "i8"))
    assert (program(*columns)[0] == columns[0] + columns[1]).all()


def test_table_as_a_page() -> None:
    page = as_markdown(detect("round_via_f32"))
    assert page.count("\n") == 2 + len(FAULTS["round_via_f32"].clauses)
    assert "`cast[" in page
