"""Kernels drawn by hypothesis: structure is what it shrinks well, elements come in bulk from an integer seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from halfulp.adapters.protocol import Adapter
from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import Apply, Kernel
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature
from halfulp.properties import draws
from halfulp.properties.build import COMPARISONS, Builder
from halfulp.properties.plan import Plan, generator
from halfulp.properties.programs import Subject, is_fusible, program_inputs, try_programs
from halfulp.properties.results import Finding, Tally, Trial

ELEMENTS = 192
"""Elements of one drawn kernel."""

FLOAT_OPS = ("add", "mul", "sub", "neg", "div", "abs", "maximum", "minimum", "select", "sqrt")
INTEGER_OPS = ("add", "sub", "mul", "and", "or", "xor", "not", "floordiv", "mod", "shl", "shr", "select", *COMPARISONS)
FUSION_OPS = ("mul", "add", "sub", "mul", "add", "neg")


@dataclass(frozen=True)
class Family:
    """The kernels of one search.

    Attributes:
        dtypes: dtypes of the inputs.
        ops: operations, simplest first.
        casts: targets of casts; none where empty.
        least, most: number of operations, before those are left out that no output depends on.
    """

    dtypes: tuple[str, ...]
    ops: tuple[str, ...]
    casts: tuple[str, ...] = ()
    least: int = 2
    most: int = 6


ARITHMETIC = Family(("f32", "f16", "bf16", "f64", "f8e5m2", "f8e4m3fn"), FLOAT_OPS)
FUSION = Family(("f32", "f16", "bf16", "f64", "f8e5m2", "f8e4m3fn"), FUSION_OPS)
CASTS = Family(
    ("f32", "f16", "bf16", "f64", "i32", "i64", "u8"),
    ("add", "mul", "sub"),
    ("f32", "f16", "bf16", "f64", "f8e5m2", "i32", "i16", "u32"),
)
INTEGERS = Family(("i32", "i8", "u8", "i64", "u32", "i16", "u64", "u16", "index"), INTEGER_OPS)


OPERAND: st.SearchStrategy[str] = st.sampled_from(["array", "array", "array", "scalar", "constant"])


@st.composite
def kernels(draw: st.DrawFn, family: Family) -> Kernel:
    """A well-typed kernel: one to three operands of one dtype, some of them constants or scalars, then operations on
    earlier values; its outputs are the last value and perhaps intermediate ones."""
    builder = Builder()
    dtype = draw(st.sampled_from(family.dtypes))
    builder.input(dtype)
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(OPERAND)
        if kind == "constant":
            builder.constant(dtype, draw(st.sampled_from(draws.specials(format_of(dtype)).tolist())))
        else:
            builder.input(dtype, scalar=kind == "scalar")
    made: list[int] = []
    casting = st.booleans() if family.casts else st.just(False)
    for _ in range(draw(st.integers(family.least, family.most))):
        last = len(builder.values) - 1
        if draw(casting):
            at = _operand(draw, builder, lambda fmt: fmt != "bool")
            made.append(builder.cast(at, draw(st.sampled_from(family.casts))))
        else:
            made.append(_operation(draw, builder, family, builder.dtype(last)))
    others = draw(st.sets(st.sampled_from(made), max_size=2))
    return builder.kernel(*dict.fromkeys((made[-1], *sorted(others))))


def _operand(draw: st.DrawFn, builder: Builder, fits: Callable[[str], bool]) -> int:
    """An earlier value. Results of operations come first: what they depend on is what makes a program."""
    places = [at for at in range(len(builder.values)) if fits(builder.dtype(at))][::-1]
    if draw(st.booleans()):
        places = [at for at in places if isinstance(builder.values[at], Apply)] or places
    return draw(st.sampled_from(places))


def _operation(draw: st.DrawFn, builder: Builder, family: Family, dtype: str) -> int:
    """One operation on values of ``dtype``, or on those of the first operand where nothing is defined on it."""
    if dtype == "bool":
        dtype = builder.dtype(0)
    ops = [op for op in family.ops if _defined(op, dtype)]
    op = draw(st.sampled_from(ops))
    if op == "select":
        pair = [_operand(draw, builder, lambda t: t == dtype) for _ in range(4)]
        condition = builder.apply(draw(st.sampled_from(COMPARISONS)), *pair[:2])
        return builder.apply("select", condition, *pair[2:])
    arity = operation(op).arity
    return builder.apply(op, *(_operand(draw, builder, lambda t: t == dtype) for _ in range(arity)))


def _defined(op: str, dtype: str) -> bool:
    if op == "select":
        return True
    return type(operation(op).typing((dtype,) * operation(op).arity, None, ())).__name__ == "Accepted"


def broken_clause(kernel: Kernel) -> str:
    """The clause that a wrong result of a kernel breaks: its operation's if it has one, else what stands between
    its operations."""
    nodes = [value for value in kernel.values if isinstance(value, Apply)]
    if len(nodes) == 1:
        node = nodes[0]
        args = tuple(kernel.type_of(arg).dtype for arg in node.args)
        clauses = operation(node.op).clauses(Signature(node.op, args, node.dtype, node.attrs))
        return clauses[0] if clauses else "intent:5-b"
    if not any(format_of(node.dtype).is_float for node in nodes):
        return "intent:4-l"
    if is_fusible(kernel):
        return "intent:5.5-d"
    if any(node.op == "cast" for node in nodes):
        return "intent:5.2-d"
    return "intent:5-b"


def search(adapter: Adapter, plan: Plan, name: str, chapter: str, family: Family, *, explain: bool = True) -> Trial:
    """Draw kernels until one is computed wrongly, and shrink it.

    Returns:
        A trial with one tally per optimisation level, over all kernels drawn, and the finding of the shrunk kernel.
    """
    tallies: dict[str, Tally] = {}
    failing: list[Subject] = []

    def judged(subject: Subject) -> bool:
        found = try_programs(adapter, [subject], explain=False)
        if not failing:
            for tally in found.tallies:
                _merge(tallies, tally, f"{name}/O{tally.id.rpartition('/O')[2]}")
        return not found.findings

    @seed(int(generator(plan, name).integers(0, 2**63)))
    @settings(
        max_examples=plan.kernels,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(kernels(family), st.integers(0, 2**32 - 1))
    def every_kernel_is_allowed(kernel: Kernel, number: int) -> None:
        inputs = program_inputs(kernel, generator(plan, name, str(number)), ELEMENTS)
        subject = Subject(name, chapter, broken_clause(kernel), kernel, inputs)
        if not judged(subject):
            failing.append(subject)
            raise _Forbidden

    try:
        every_kernel_is_allowed()
    except Exception:
        # Whatever hypothesis makes of it (a flaky backend fails once and passes later), the last failure is the one.
        if not failing:
            raise
    trial = Trial(list(tallies.values()))
    if failing:
        trial.findings += _finding(adapter, failing, explain=explain)
    elif not any(tally.allowed for tally in trial.tallies if tally.state == "run"):
        ran = [tally for tally in trial.tallies if tally.state == "run"]
        if ran:
            trial.findings.append(Finding(name, f"intent:{chapter}-a", message="vacuous: no kernel had a claim."))
    return trial


class _Forbidden(AssertionError):
    """A drawn kernel has a forbidden result."""


def _finding(adapter: Adapter, failing: Sequence[Subject], *, explain: bool) -> list[Finding]:
    again = try_programs(adapter, [failing[-1]], explain=explain).findings
    if again:
        return again
    subject = failing[-1]
    dtypes = tuple(type_.dtype for type_ in (*subject.kernel.input_types, *subject.kernel.output_types))
    message = "the program failed once and passed when it was run again: its results are not reproducible."
    return [Finding(subject.id, subject.clause, kernel=str(subject.kernel), dtypes=dtypes, message=message)]


def _merge(tallies: dict[str, Tally], tally: Tally, id_: str) -> None:
    """Add the counts of one kernel to those of all. A kernel that did not run counts in the reason alone."""
    total = tallies.setdefault(id_, Tally(id_, tally.chapter, state=tally.state, reason=tally.reason))
    if tally.state != "run":
        return
    total.state, total.reason = "run", ""
    for name in ("allowed", "forbidden", "unspecified", "no_claim"):
        setattr(total, name, getattr(total, name) + getattr(tally, name))
    total.seconds += tally.seconds
    for clause, count in tally.cases.items():
        total.cases[clause] = total.cases.get(clause, 0) + count
