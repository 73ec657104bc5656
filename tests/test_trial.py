"""Trials: what a backend does wrong becomes a finding that says where, and a crash of the suite never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from halfulp.adapters.protocol import Array, Compiled, Facts, Options, Rejected, Unsupported, UnsupportedError
from halfulp.certify.saboteurs.reference import ReferenceAdapter
from halfulp.certify.saboteurs.values import Saboteur
from halfulp.oracle import ops
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.judge import evaluate, judge
from halfulp.oracle.kernel import Apply, Constant, Kernel, one_node
from halfulp.oracle.ops.record import Signature
from halfulp.oracle.sets import Verdict
from halfulp.oracle.source import Source
from halfulp.oracle.typing import check
from halfulp.properties import kernels as drawn
from halfulp.properties import modes
from halfulp.properties.bulk import forms
from halfulp.properties.execute import compile_all
from halfulp.properties.kernels import search
from halfulp.properties.known import KNOWN
from halfulp.properties.minimise import complexity, minimise
from halfulp.properties.plan import Plan, generator
from halfulp.properties.programs import Subject, program_inputs, try_programs
from halfulp.properties.replay import decode
from halfulp.properties.results import Trial
from halfulp.properties.trial import governing, try_signature
from halfulp.properties.typed import acceptance_table, rejection_table, try_acceptances, try_rejections

QUICK = Plan(3, "quick")
ADD = Signature("add", ("f32", "f32"), "f32")
NARROW = Signature("cast", ("f64",), "bf16")
BOOLS = Signature("lt", ("bool", "bool"), "bool")

Change = Callable[[Kernel, Sequence[Array], list[Bits]], Any]


class Changed:
    """The reference, with something done to what comes out."""

    def __init__(self, change: Change, answer: Rejected | Unsupported | None = None) -> None:
        self.name = "changed"
        self.opt_levels: Sequence[int] = (0, 3)
        self.facts = Facts()
        self.change = change
        self.answer = answer
        self.compilations = 0

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Any]:
        self.compilations += 1
        return [self.answer or self._program(program) for program in programs]

    def _program(self, program: Kernel | Source) -> Compiled | Unsupported:
        if isinstance(program, Source):
            return Unsupported("no front end")
        return lambda *inputs: self.change(program, inputs, evaluate(program, inputs))


def states(trial: Trial) -> set[str]:
    return {tally.state for tally in trial.tallies}


# Signatures.


@pytest.mark.parametrize(
    "signature",
    [
        ADD,
        NARROW,
        Signature("cast", ("f16",), "i8"),
        Signature("floordiv", ("i8", "i8"), "i8"),
        Signature("shl", ("u64", "u64"), "u64"),
        Signature("select", ("bool", "i16", "i16"), "i16"),
        Signature("muladd", ("bf16", "bf16", "bf16"), "bf16"),
        Signature("not", ("bool",), "bool"),
        BOOLS,
    ],
    ids=lambda signature: signature.id,
)
def test_reference_has_no_findings(signature: Signature) -> None:
    trial = try_signature(ReferenceAdapter(), signature, QUICK)
    assert not trial.findings
    assert states(trial) == {"run"}
    names = [tally.id.removeprefix(f"{signature.id}/") for tally in trial.tallies]
    expected = ["array/O0", "array/O3"]
    for position in range(len(signature.args)):
        expected += [f"const{position}/O3", f"scalar{position}/O3"]
    assert names == expected
    assert all(tally.allowed + tally.unspecified > 0 for tally in trial.tallies)
    assert all(sum(tally.cases.values()) > 0 for tally in trial.tallies)


def test_a_signature_costs_one_compilation_per_level() -> None:
    backend = Changed(lambda kernel, inputs, outputs: outputs)
    try_signature(backend, ADD, QUICK)
    assert backend.compilations == 2


def test_deep_trial_runs_every_block() -> None:
    seen: list[int] = []

    def count(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        seen.append(max((len(bits) for bits in inputs if bits.ndim), default=0))
        return outputs

    trial = try_signature(Changed(count), Signature("cast", ("i32",), "f32"), Plan(0, "deep"))
    assert not trial.findings
    assert sum(seen) > 2 << 20
    assert max(seen) < 1 << 16


def test_finding_says_all_there_is_to_say() -> None:
    trial = try_signature(Saboteur("round_via_f32"), NARROW, QUICK)
    finding = trial.findings[0]
    assert finding.id == "cast[f64->bf16]/array/O0"
    assert finding.clause == "intent:5.2-d"
    assert finding.dtypes == ("f64", "bf16")
    assert 0 < finding.forbidden < finding.judged
    assert finding.clauses["intent:5.2-d"] == finding.forbidden
    assert "cast %0 : bf16" in finding.kernel
    assert "array/O3" in finding.message
    assert finding.simplest is not None
    assert finding.worst is not None
    (bits,) = finding.simplest.inputs
    assert bin(int(bits, 16) & (1 << 52) - 1).count("1") <= 3, "two bits make the simplest double rounding"
    assert finding.simplest.distance_ulp == 1
    assert finding.simplest.got != finding.simplest.allowed
    assert finding.suspects[0][:2] == ("round_via_f32", 1.0)
    recorded = decode(finding.token)
    assert recorded.id == finding.id
    assert recorded.clause == finding.clause
    _assert_reproduces(finding.token, Saboteur("round_via_f32"))
    counted = sum(tally.forbidden for tally in trial.tallies if tally.id == finding.id)
    assert counted == finding.forbidden


def _assert_reproduces(token: str, backend: Saboteur) -> None:
    recorded = decode(token)
    assert isinstance(recorded.program, Kernel)
    (program,) = compile_all(backend, [recorded.program], recorded.opt_level)
    assert callable(program)
    outputs = program(recorded.inputs)
    assert isinstance(outputs, list)
    assert any((v == Verdict.FORBIDDEN).any() for v in judge(recorded.program, recorded.inputs, outputs))


def test_without_explanation_the_counts_are_the_same() -> None:
    full = try_signature(Saboteur("round_via_f32"), NARROW, QUICK).findings[0]
    brief = try_signature(Saboteur("round_via_f32"), NARROW, QUICK, explain=False).findings[0]
    assert (brief.forbidden, brief.judged, brief.clause) == (full.forbidden, full.judged, full.clause)
    assert brief.simplest is None
    assert not brief.token


def _wrong_when_folded(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
    if any(isinstance(value, Constant) for value in kernel.values):
        return [np.asarray(bits ^ bits.dtype.type(1)) for bits in outputs]
    return outputs


@pytest.mark.parametrize("signature", [ADD, NARROW], ids=lambda signature: signature.id)
def test_a_fault_of_constants_is_found_in_constants(signature: Signature) -> None:
    trial = try_signature(Changed(_wrong_when_folded), signature, QUICK)
    finding = trial.findings[0]
    assert "/const0/O3" in finding.id
    assert "constant" in finding.kernel
    assert finding.simplest is not None
    assert len(finding.simplest.inputs) == len(signature.args), "constants are operands too"
    assert len(finding.simplest.got) == 1
    assert all(tally.forbidden == 0 for tally in trial.tallies if "/array/" in tally.id)
    assert isinstance(decode(finding.token).program, Kernel)


def test_a_fault_of_scalars_is_found_in_scalars() -> None:
    def broken(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        scalar = len(inputs) == 2 and not inputs[1].ndim
        return [bits + bits.dtype.type(1) for bits in outputs] if scalar else outputs

    (finding,) = try_signature(Changed(broken), Signature("sub", ("u16", "u16"), "u16"), QUICK).findings
    assert "/scalar1/O3" in finding.id
    recorded = decode(finding.token)
    assert [bits.ndim for bits in recorded.inputs] == [1, 0]


def test_a_fault_of_short_arrays_is_found() -> None:
    """Only the elements left over by a vector loop of 8 are wrong."""

    def tail(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        (out,) = outputs if len(outputs) == 1 else (None,)
        if out is not None and out.ndim and len(out) % 8:
            out[-1] ^= 1
        return outputs

    trial = try_signature(Changed(tail), Signature("xor", ("i32", "i32"), "i32"), QUICK)
    assert trial.findings
    assert trial.findings[0].token


def test_illegal_elements_are_never_judged() -> None:
    def rubbish(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        dead = Signature("shl", ("i32", "i32"), "i32")
        if len(inputs) == 2 and kernel == forms(dead, QUICK)[0].kernel:
            outputs[0][np.asarray(inputs[1]) >= 32] = 0xDEAD
        return outputs

    trial = try_signature(Changed(rubbish), Signature("shl", ("i32", "i32"), "i32"), QUICK)
    assert not trial.findings
    assert trial.tallies[0].no_claim > 0


# What a backend may do instead of computing.


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda k, i, o: 1 // 0, "ZeroDivisionError"),
        (lambda k, i, o: [], "0 outputs"),
        (lambda k, i, o: [*o, o[0]], "outputs were returned"),
        (lambda k, i, o: [x.astype(np.uint64) for x in o], "dtype uint64"),
        (lambda k, i, o: [x.reshape(-1)[:0] for x in o], "shape (0,)"),
        (lambda k, i, o: [x.tolist() for x in o], "not a numpy array"),
        (lambda k, i, o: None, "TypeError"),
    ],
)
def test_outputs_of_a_wrong_form(change: Change, words: str) -> None:
    trial = try_signature(Changed(change), ADD, QUICK)
    (finding,) = trial.findings
    assert words in finding.message
    assert "array/O3" in finding.message
    assert finding.forbidden == 0
    assert states(trial) == {"not run"}


def test_a_bool_is_zero_or_one() -> None:
    signature = Signature("eq", ("i8", "i8"), "bool")
    (finding,) = try_signature(Changed(lambda k, i, o: [x * np.uint8(255) for x in o]), signature, QUICK).findings
    assert "bool with the code 255" in finding.message


def test_inputs_cannot_be_written() -> None:
    def write(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        for bits in inputs:
            bits[...] = 0
        return outputs

    (finding,) = try_signature(Changed(write), ADD, QUICK).findings
    assert "read-only" in finding.message


def test_refused_though_accepted_by_the_language() -> None:
    trial = try_signature(Changed(lambda k, i, o: o, Rejected("no such thing")), ADD, QUICK)
    (finding,) = trial.findings
    assert "no such thing" in finding.message
    assert finding.clause == "intent:5-a"
    assert states(trial) == {"rejected"}


def test_refused_where_the_text_is_silent() -> None:
    trial = try_signature(Changed(lambda k, i, o: o, Rejected("no such thing")), BOOLS, QUICK)
    assert not trial.findings
    assert states(trial) == {"not run"}
    assert "leaves open" in trial.tallies[0].reason


def test_unsupported_is_no_finding() -> None:
    trial = try_signature(Changed(lambda k, i, o: o, Unsupported("not here")), ADD, QUICK)
    assert not trial.findings
    assert states(trial) == {"unsupported"}
    assert trial.tallies[0].reason == "not here"


def test_unsupported_at_run_time() -> None:
    def give_up(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        raise UnsupportedError("no such unit")

    trial = try_signature(Changed(give_up), ADD, QUICK)
    assert not trial.findings
    assert states(trial) == {"unsupported"}


def test_compile_that_raises_or_loses_answers() -> None:
    class Raises(Changed):
        def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Any]:
            raise RuntimeError("out of luck")

    class Loses(Changed):
        def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Any]:
            return super().compile(programs, options)[1:]

    for backend, words in ((Raises, "out of luck"), (Loses, "answers to")):
        (finding, *_) = try_signature(backend(lambda k, i, o: o), ADD, QUICK).findings
        assert words in finding.message


def test_vacuous_run_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clause of the record that no element falls under."""

    record = ops.OPERATIONS["xor"]
    wider = replace(record, clauses=lambda signature: (*record.clauses(signature), "intent:4-z"))
    monkeypatch.setitem(ops.OPERATIONS, "xor", wider)
    trial = try_signature(ReferenceAdapter(), Signature("xor", ("u32", "u32"), "u32"), Plan(99, "quick"))
    assert [(finding.clause, finding.forbidden) for finding in trial.findings] == [("intent:4-z", 0)]
    assert "vacuous" in trial.findings[0].message


def test_majority_names_the_clause_and_the_narrower_of_equals() -> None:
    assert governing({"a": 3, "b": 5}, {"a": 9, "b": 9}) == "b"
    assert governing({"a": 5, "b": 5}, {"a": 90, "b": 7}) == "b"
    assert governing({}, {}) == ""


# Modes.


def test_constants_are_lanes_of_one_program() -> None:
    kernel = one_node("sub", ("i8", "i8"), "i8")
    program = modes.with_constants(kernel, 1, [1, 2, 3])
    assert len(program.input_types) == 1
    outputs = evaluate(program, [np.array([10, 0], np.uint8)])
    assert [out.tolist() for out in outputs] == [[9, 255], [8, 254], [7, 253]]
    first = modes.with_constants(kernel, 0, [10])
    assert evaluate(first, [np.array([1], np.uint8)])[0].tolist() == [9]


def test_constants_alone_have_rank_zero() -> None:
    program = modes.with_constants(one_node("neg", ("f16",), "f16"), 0, [0x3C00, 0])
    assert program.input_types == ()
    assert all(type_.dims == () for type_ in program.output_types)
    assert [int(out) for out in evaluate(program, [])] == [0xBC00, 0x8000]


def test_scalars_keep_the_other_operands() -> None:
    program = modes.with_scalar(one_node("sub", ("i8", "i8"), "i8"), 0)
    assert [type_.dims for type_ in program.input_types] == [(), ("n",)]


# Minimisation.


def test_minimise_reaches_the_simplest_failure() -> None:
    f32 = format_of("f32")
    start = (0xC57A9B3D,)
    assert minimise([f32], start, lambda columns: np.ones(len(columns[0]), bool)) == (0,)
    negative = minimise([f32], start, lambda columns: columns[0] >> 31 == 1)
    assert negative == (0x80000000,)
    odd = minimise([f32], start, lambda columns: columns[0] & 1 == 1)
    assert complexity(f32, odd[0]) < complexity(f32, start[0])
    assert odd[0] & 1
    (large,) = minimise([format_of("i32")], (123456789,), lambda columns: columns[0].view(np.int32) > 1000)
    assert large == 1024


def test_minimise_keeps_what_is_fixed_and_what_is_bound_together() -> None:
    f32, u8 = format_of("f32"), format_of("u8")
    fixed = minimise([u8, u8], (200, 77), lambda columns: columns[0] > 3, frozen=(1,))
    assert fixed == (4, 77)

    def equal(columns: list[Bits]) -> Any:
        """Fails where both operands are equal and not zero: neither can be simplified alone."""
        return (columns[0] == columns[1]) & (columns[0] != 0)

    first, second = minimise([f32, f32], (0x45000000, 0x45000000), equal)
    assert first == second
    assert complexity(f32, first) < complexity(f32, 0x45000000)


# Programs of several operations.


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_known_programs_are_well_typed_and_pass(known: Any) -> None:
    subjects = known.subjects(QUICK)
    assert len(subjects) == len(known.dtypes)
    for subject in subjects:
        assert type(check(subject.kernel)).__name__ == "Accepted"
    trial = try_programs(ReferenceAdapter((0,)), subjects)
    assert not trial.findings
    assert all(tally.allowed > tally.no_claim for tally in trial.tallies)


def test_names_of_known_programs_differ() -> None:
    ids = [f"{known.name}[{dtype}]" for known in KNOWN for dtype in known.dtypes]
    assert len(ids) == len(set(ids))
    assert len({known.name for known in KNOWN}) == len(KNOWN)


def test_order_of_a_sum_is_kept() -> None:
    (left,) = [known for known in KNOWN if known.name == "sum-left"]
    subject = left.subjects(QUICK)[2]
    assert subject.id == "sum-left[f32]"
    assert [int(bits[0]) for bits in subject.inputs] == [0x4B800000, 0x3F800000, 0x3F800000]
    trial = try_programs(Saboteur("reassociated_add"), [subject])
    (finding,) = trial.findings
    assert finding.id == "sum-left[f32]/O0"
    assert finding.clause == "intent:5-b"
    assert finding.simplest is not None
    assert len(finding.simplest.inputs) == 3
    assert "reassociated_add" in [name for name, _, _ in finding.suspects[:3]]
    _assert_reproduces(finding.token, Saboteur("reassociated_add"))


def test_program_inputs_interact() -> None:
    kernel = KNOWN[0].kernel("f32")
    columns = program_inputs(kernel, generator(QUICK, "x"), 1000)
    assert [column.shape for column in columns] == [(1000,)] * 3
    with np.errstate(all="ignore"):
        x, y, z = (column.view(np.float32) for column in columns)
        assert ((x + y) + z != x + (y + z)).mean() > 0.1


@pytest.mark.parametrize("family", [drawn.ARITHMETIC, drawn.FUSION, drawn.CASTS, drawn.INTEGERS])
def test_search_finds_nothing_in_the_reference(family: drawn.Family) -> None:
    trial = search(ReferenceAdapter(), QUICK, "programs", "5", family)
    assert not trial.findings
    for tally in trial.tallies:
        assert tally.allowed > tally.no_claim


def test_search_is_deterministic() -> None:
    first, again, other = (
        search(ReferenceAdapter((0,)), Plan(seed, "quick"), "programs", "5", drawn.ARITHMETIC).tallies[0].cases
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_search_shrinks_to_few_operations() -> None:
    def subtracts_badly(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        wrong = any(isinstance(value, Apply) and value.op == "sub" for value in kernel.values)
        return [np.asarray(bits ^ bits.dtype.type(2)) for bits in outputs] if wrong else outputs

    trial = search(Changed(subtracts_badly), QUICK, "programs", "5", drawn.FUSION)
    (finding,) = trial.findings
    assert finding.kernel.count("sub") == 1
    assert len(finding.kernel.splitlines()) <= 5
    assert finding.token
    assert finding.simplest is not None


def test_search_reports_what_cannot_be_reproduced() -> None:
    calls: list[int] = []

    def sometimes(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        calls.append(1)
        return [np.asarray(bits ^ bits.dtype.type(2)) for bits in outputs] if len(calls) == 9 else outputs

    (finding,) = search(Changed(sometimes), QUICK, "programs", "5", drawn.FUSION).findings
    assert "not reproducible" in finding.message


def test_joint_choice_explains_all_outputs() -> None:
    """A product that is fused in one of its uses and leaks unrounded into the other is caught as 5.5-c."""
    (known,) = [known for known in KNOWN if known.name == "product-used-twice"]

    def leaks(kernel: Kernel, inputs: Sequence[Array], outputs: list[Bits]) -> list[Bits]:
        outputs[0] = outputs[0] ^ outputs[0].dtype.type(1)
        return outputs

    trial = try_programs(Changed(leaks), known.subjects(QUICK)[2:3])
    assert [finding.clause for finding in trial.findings] == ["intent:5.5-c"]


def test_subject_of_mixed_rank() -> None:
    (known,) = [known for known in KNOWN if known.name == "scalar-product-plus"]
    (finding,) = try_programs(
        Changed(lambda k, i, o: [x ^ x.dtype.type(4) for x in o]), [known.subjects(QUICK)[2]]
    ).findings
    assert [bits.ndim for bits in decode(finding.token).inputs] == [1, 0, 1]


def test_a_refused_known_program_is_a_finding() -> None:
    subject: Subject = KNOWN[0].subjects(QUICK)[0]
    (finding,) = try_programs(Changed(lambda k, i, o: o, Rejected("too long")), [subject]).findings
    assert "too long" in finding.message


# Typing.


@pytest.mark.parametrize("clause", rejection_table())
def test_reference_refuses(clause: str) -> None:
    trial = try_rejections(ReferenceAdapter(), clause)
    assert not trial.findings
    assert trial.tallies[0].allowed == len(rejection_table()[clause])


@pytest.mark.parametrize("clause", acceptance_table())
def test_reference_accepts(clause: str) -> None:
    trial = try_acceptances(ReferenceAdapter(), clause, QUICK)
    assert not trial.findings
    assert trial.tallies[0].allowed > 0


def test_accepting_everything_is_a_finding_of_every_clause() -> None:
    backend = Changed(lambda k, i, o: o)
    for clause in rejection_table():
        trial = try_rejections(backend, clause)
        tally = trial.tallies[0]
        if tally.state == "unsupported":
            continue  # only source programs
        (finding,) = trial.findings
        assert finding.clause == clause
        assert f"{tally.forbidden} of" in finding.message
        assert decode(finding.token).program


def test_a_compiler_that_dies_of_ill_typed_programs() -> None:
    class Dies(Changed):
        def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Any]:
            raise RuntimeError("internal error")

    (finding,) = try_rejections(Dies(lambda k, i, o: o), "intent:4-d").findings
    assert "internal error" in finding.message


def test_refused_literals_are_findings() -> None:
    (finding,) = try_acceptances(Changed(lambda k, i, o: o, Rejected("no literals")), "intent:3-a", QUICK).findings
    assert finding.clause == "intent:3-a"
    assert "no literals" in finding.message
