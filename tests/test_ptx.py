"""PTX is read and judged: what is lost for good is reported, what is mended is not; every CUDA suspect is caught."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from halfulp.adapters.discovery import AdapterError
from halfulp.adapters.numpy_adapter import NumpyAdapter
from halfulp.adapters.protocol import Adapter, Compiled, Facts, Options, Rejected, Unsupported
from halfulp.backends.cpu import CpuAdapter
from halfulp.backends.cuda import CudaAdapter, nvrtc
from halfulp.backends.cuda.nvrtc import compile_source
from halfulp.certify.detection.cuda import as_markdown, detect
from halfulp.certify.saboteurs.cuda import CUDA_SUSPECTS, CudaSaboteur
from halfulp.certify.saboteurs.reference import ReferenceAdapter
from halfulp.oracle.clauses import CLAUSES
from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import Kernel, one_node
from halfulp.oracle.ops import signatures
from halfulp.oracle.ops.functions import FLUSHING
from halfulp.oracle.source import Source
from halfulp.properties.build import Builder
from halfulp.properties.known import KNOWN
from halfulp.properties.plan import Plan
from halfulp.properties.ptx import Code, Parameter, UnreadableError, is_ptx
from halfulp.properties.ptx_items import CHAPTERS, GROUPS, shows_ptx, subject, together, try_group, try_part
from halfulp.properties.ptx_rules import RULES, inspect
from halfulp.properties.ptx_view import View

QUICK = Plan(0, "quick")
ROOT = Path(__file__).resolve().parent.parent

# Kernels by hand.

_LOADS = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}
_REGISTERS = {8: "%b", 16: "%h", 32: "%r", 64: "%l"}


def entry(kernel: Kernel, *body: str, functions: str = "") -> str:
    """PTX of a kernel whose inputs are loaded into x0, x1, ... and whose outputs are y0, y1, ... by ``body``.

    They are integer registers: %b, %h, %r and %l for 8 to 64 bits, then x or y and the number.
    """
    types = [*kernel.input_types, *kernel.output_types]
    inputs = len(kernel.input_types)
    lines = []
    for place in range(len(types)):
        lines += [f"ld.param.u64 %rd{place}, [k_param_{place}];", f"cvta.to.global.u64 %rg{place}, %rd{place};"]
        lines.append(f"add.s64 %ra{place}, %rg{place}, %rdi;")
    for place, type_ in enumerate(types):
        width = format_of(type_.dtype).width
        name = f"{_REGISTERS[width]}x{place}" if place < inputs else f"{_REGISTERS[width]}y{place - inputs}"
        if place < inputs:
            lines.append(f"ld.global.{_LOADS[width]} {name}, [%ra{place}];")
        else:
            lines.append(f"st.global.{_LOADS[width]} [%ra{place}], {name};")
    loads, stores = lines[: -len(kernel.output_types)], lines[-len(kernel.output_types) :]
    parameters = ",\n".join(f"\t.param .u64 k_param_{place}" for place in range(len(types)))
    text = "\n\t".join(("mov.u32 %rd_i, %tid.x;", "mul.wide.u32 %rdi, %rd_i, 4;", *loads, *body, *stores, "ret;"))
    return f"// made by hand\n.version 8.0\n.target sm_90\n.address_size 64\n{functions}\n" + (
        f".visible .entry k(\n{parameters}\n)\n{{\n\t.reg .b32 %r<9>;\n\t{text}\n}}\n"
    )


def messages(kernel: Kernel, *body: str, functions: str = "") -> list[str]:
    """What is wrong with such a kernel, clause by clause."""
    _, faults = inspect(kernel, entry(kernel, *body, functions=functions))
    return sorted({fault.judgement.clause.partition(":")[2] for fault in faults})


def unary(op: str, dtype: str, **attrs: bool) -> Kernel:
    return one_node(op, [dtype], dtype, attrs=attrs)


def binary(op: str, dtype: str, result: str | None = None, **attrs: bool) -> Kernel:
    return one_node(op, [dtype, dtype], result or dtype, attrs=attrs)


def cast(source: str, target: str) -> Kernel:
    return one_node("cast", [source], target)


IN = ("mov.b32 %fx0, %rx0;", "mov.b32 %fx1, %rx1;")
OUT = "mov.b32 %ry0, %fy0;"
WIDE = "mov.b64 %dx0, %lx0;"


def f32(*body: str) -> tuple[str, ...]:
    """Code on the operands %fx0 and %fx1, with the result %fy0."""
    return (*IN, *body, OUT)


# The reader.


def test_reader() -> None:
    code = Code(entry(binary("div", "f32"), *f32("div.rn.ftz.f32 %fy0, %fx0, %fx1;")))
    (division,) = (one for one in code.instructions if one.opcode == "div")
    assert division.modifiers == ("rn", "ftz", "f32")
    assert division.types == ("f32",)
    assert division.results == ("%fy0",)
    assert division.sources == ("%fx0", "%fx1")
    assert division.text == "div.rn.ftz.f32 %fy0, %fx0, %fx1"
    assert list(code.stores) == [Parameter(2, 0)]
    assert set(code.loads.values()) == {Parameter(0, 0), Parameter(1, 0)}
    ((store,),) = code.stores.values()
    assert {code.instructions[at].opcode for at in code.flow_into([store])} == {"ld", "mov", "div", "st"}


def test_blocks_labels_guards_and_vectors() -> None:
    body = f32(
        "setp.lt.f32 %p1, %fx0, %fx1;",
        "@%p1 bra $L__BB0_2;",
        "mov.f32 %fy0, %fx0;",
        "bra.uni $L__BB0_3;",
        "$L__BB0_2: @!%p1 mov.f32 %fy0, 0f3F800000;",
        "$L__BB0_3:",
        "{ .reg .b32 %temp; mov.b64 {%temp, %rhi}, %lz; }",
        "{ .reg .b32 %temp; mov.b64 {%rlo, %temp}, %lz; } /* a comment; with a semicolon */",
    )
    code = Code(entry(binary("add", "f32"), *body))
    assert [one.text for one in code.instructions if one.guard] == [
        "@%p1 bra $L__BB0_2",
        "@!%p1 mov.f32 %fy0, 0f3F800000",
    ]
    assert code.chosen("%fy0")
    assert code.only_writer("%fy0") is None
    assert code.only_writer("%rhi") is not None
    names = [one.results for one in code.instructions if "{" in one.text]
    assert len({name for pair in names for name in pair}) == 4, "the two %temp are two registers"
    ((store,),) = code.stores.values()
    assert "setp" in {code.instructions[at].opcode for at in code.flow_into([store])}, "the condition decides"


CALLED = """
.func (.param .b32 func_retval0) helper(.param .b32 helper_param_0, .param .b32 helper_param_1)
{ .reg .f32 %f<4>;
  ld.param.f32 %f1, [helper_param_0]; ld.param.f32 %f2, [helper_param_1];
  div.full.f32 %f3, %f1, %f2; st.param.f32 [func_retval0+0], %f3; ret; }
"""


def _call(result: str, a: str, b: str) -> str:
    return (
        "{ .param .b32 param0; st.param.f32 [param0+0], " + a + ";\n.param .b32 param1; st.param.f32 [param1+0], " + b
    ) + (
        ";\n.param .b32 retval0; call.uni (retval0), helper, (param0, param1);\nld.param.f32 "
        + result
        + ", [retval0+0]; }"
    )


def test_calls_are_followed() -> None:
    body = f32(_call("%fa", "%fx0", "%fx1"), _call("%fb", "%fx1", "%fx0"), "mov.f32 %fy0, %fa;", "mov.f32 %fz, %fb;")
    code = Code(entry(binary("div", "f32"), *body, functions=CALLED))
    divisions = [at for at, one in enumerate(code.instructions) if one.opcode == "div"]
    ((store,),) = code.stores.values()
    assert len(divisions) == 2
    assert [at in code.flow_into([store]) for at in divisions] == [True, False], "each call is code of its own"
    assert messages(binary("div", "f32"), *body, functions=CALLED) == ["5-a"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("define void @k() {}", "does not begin as PTX does"),
        (".version 8.0\n.target sm_90\n", "0 entries"),
        (".version 8.0\n.entry a() { ret; }\n.entry b() { ret; }", "2 entries"),
        (".version 8.0\n.entry a() { ret;", "no end"),
        (".version 8.0\n.entry a() { call f; ret; }", "cannot follow `call f`"),
    ],
)
def test_unreadable(text: str, says: str) -> None:
    with pytest.raises(UnreadableError, match=says):
        Code(text)


def test_stores_have_to_be_the_outputs() -> None:
    kernel = binary("add", "f32")
    text = entry(kernel, *f32("add.rn.f32 %fy0, %fx0, %fx1;"))
    with pytest.raises(UnreadableError, match="stores through 1 parameters for 2 outputs"):
        inspect(Kernel(kernel.values, (2, 2)), text)
    with pytest.raises(UnreadableError, match="cannot tell where"):
        _ = Code(text.replace("st.global.u32 [%ra2]", "st.global.u32 [%rnowhere]")).stores
    assert is_ptx(text)
    assert not is_ptx("; ModuleID = 'k'")


# The rules: for each, code that loses something for good, and code that looks like it and does not.


@dataclass(frozen=True)
class Case:
    rule: str
    kernel: Kernel
    clause: str
    wrong: tuple[str, ...]
    right: tuple[str, ...]


_NAN_FIRST = (
    "max.f32 %fm, %fx0, %fx1;",
    "setp.nan.f32 %p1, %fx0, %fx1;",
    "selp.f32 %fy0, 0f7FC00000, %fm, %p1;",
)
_NEWTON = (  # a quotient, and its residual
    "rcp.approx.ftz.f32 %fr, %fx1;",
    "mul.rn.f32 %fq, %fx0, %fr;",
    "neg.f32 %fn, %fx1;",
    "fma.rn.f32 %fe, %fn, %fq, %fx0;",
    "fma.rn.f32 %fy0, %fe, %fr, %fq;",
)
_SCALED_EXP2 = (  # half the exponent, which needs no flushing, and the square
    "setp.lt.f32 %p1, %fx0, 0fC2FC0000;",
    "mul.rn.f32 %fh, %fx0, 0f3F000000;",
    "selp.f32 %fa, %fh, %fx0, %p1;",
    "ex2.approx.ftz.f32 %fe, %fa;",
    "mul.rn.f32 %fs, %fe, %fe;",
    "selp.f32 %fy0, %fs, %fe, %p1;",
)
_ROUND_TO_ODD = (  # the f32 below, with its last bit set where anything was lost
    WIDE,
    "cvt.rz.f32.f64 %ff, %dx0;",
    "cvt.f64.f32 %db, %ff;",
    "setp.neu.f64 %p1, %db, %dx0;",
    "mov.b32 %rf, %ff;",
    "selp.u32 %ro, 1, 0, %p1;",
    "or.b32 %rs, %rf, %ro;",
    "mov.b32 %fs, %rs;",
    "cvt.rn.f16.f32 %hy0, %fs;",
)
_E5M2 = "cvt.rn.satfinite.e5m2x2.f32 %hq, 0f00000000, %fx0;"


CASES = (
    Case(
        "no_flushing",
        binary("add", "f32"),
        "5-b",
        f32("add.rn.ftz.f32 %fy0, %fx0, %fx1;"),
        f32("setp.gt.ftz.f32 %p1, %fx0, 0f3F800000;", "add.rn.f32 %fy0, %fx0, %fx1;"),
    ),
    Case(
        "no_flushing",
        cast("f64", "f32"),
        "5-b",
        (WIDE, "cvt.rn.ftz.f32.f64 %fy0, %dx0;", OUT),
        (WIDE, "cvt.rn.f32.f64 %fy0, %dx0;", OUT),
    ),
    Case("no_approximation", binary("div", "f32"), "5-a", f32("div.approx.f32 %fy0, %fx0, %fx1;"), f32(*_NEWTON)),
    Case(
        "no_approximation",
        unary("sqrt", "f32"),
        "5-a",
        f32("rsqrt.approx.f32 %fr, %fx0;", "mul.rn.f32 %fy0, %fx0, %fr;"),
        f32("sqrt.rn.f32 %fy0, %fx0;"),
    ),
    Case(
        "quotient_of_operands",
        binary("div", "f32"),
        "5-a",
        f32("rcp.rn.f32 %fr, %fx1;", "mul.rn.f32 %fy0, %fx0, %fr;"),
        f32("div.rn.f32 %fy0, %fx0, %fx1;"),
    ),
    Case(
        "to_nearest",
        binary("add", "f32"),
        "5-a",
        f32("add.rz.f32 %fy0, %fx0, %fx1;"),
        f32("add.rz.f32 %fz, %fx0, %fx1;", "sub.rn.f32 %fe, %fx1, %fx0;", "add.rn.f32 %fy0, %fe, %fz;"),
    ),
    Case(
        "to_nearest",
        cast("f64", "f16"),
        "5.2-d",
        (WIDE, "cvt.rz.f32.f64 %ff, %dx0;", "cvt.rn.f16.f32 %hy0, %ff;"),
        _ROUND_TO_ODD,
    ),
    Case(
        "to_integer",
        cast("f32", "i32"),
        "5.2-c",
        (*IN[:1], "cvt.rni.s32.f32 %ry0, %fx0;"),
        (*IN[:1], "cvt.rzi.s32.f32 %ry0, %fx0;"),
    ),
    Case(
        "one_rounding",
        cast("f64", "f16"),
        "5.2-d",
        (WIDE, "cvt.rn.f32.f64 %ff, %dx0;", "cvt.rn.f16.f32 %hy0, %ff;"),
        (WIDE, "cvt.rn.f16.f64 %hy0, %dx0;"),
    ),
    Case(
        "one_rounding",
        cast("i64", "f32"),
        "5.2-b",
        ("cvt.rn.f64.s64 %d, %lx0;", "cvt.rn.f32.f64 %fy0, %d;", OUT),
        ("cvt.rn.f32.s64 %fy0, %lx0;", OUT),
    ),
    Case(
        "one_rounding",
        cast("i32", "bf16"),
        "5.2-b",
        ("cvt.rn.f32.s32 %f, %rx0;", "cvt.rn.bf16.f32 %hy0, %f;"),
        # What f32 does not hold is cut off first, so that nothing is rounded.
        ("and.b32 %rc, %rx0, -256;", "cvt.rn.f32.s32 %f, %rc;", "cvt.rn.bf16.f32 %hy0, %f;"),
    ),
    Case(
        "no_saturation",
        cast("f32", "f8e5m2"),
        "5.2-g",
        (*IN[:1], _E5M2, "cvt.u8.u16 %by0, %hq;"),
        (
            *IN[:1],
            _E5M2,
            "abs.f32 %fa, %fx0;",
            "setp.ge.f32 %p1, %fa, 0f47700000;",
            "selp.b16 %hs, 124, %hq, %p1;",
            "cvt.u8.u16 %by0, %hs;",
        ),
    ),
    Case(
        "no_saturation",
        cast("i32", "i8"),
        "5.2-a",
        ("cvt.sat.s8.s32 %rs, %rx0;", "cvt.u8.u32 %by0, %rs;"),
        ("cvt.u8.u32 %by0, %rx0;",),
    ),
    Case(
        "no_saturating_arithmetic",
        binary("add", "i32"),
        "4-a",
        ("add.sat.s32 %ry0, %rx0, %rx1;",),
        ("add.s32 %ry0, %rx0, %rx1;",),
    ),
    Case("nan_of_extremum", binary("maximum", "f32"), "5.2-k", f32("max.f32 %fy0, %fx0, %fx1;"), f32(*_NAN_FIRST)),
    Case(
        "nan_of_extremum",
        binary("minimum_num", "f32"),
        "5.2-l",
        f32("min.NaN.f32 %fy0, %fx0, %fx1;"),
        f32("min.f32 %fy0, %fx0, %fx1;"),
    ),
    Case(
        "exact_integers",
        binary("floordiv", "u32"),
        "4-c",
        (
            "cvt.rn.f32.u32 %fa, %rx0;",
            "cvt.rn.f32.u32 %fb, %rx1;",
            "div.rn.f32 %fq, %fa, %fb;",
            "cvt.rzi.u32.f32 %ry0, %fq;",
        ),
        (
            "cvt.rn.f64.u32 %da, %rx0;",
            "cvt.rn.f64.u32 %db, %rx1;",
            "div.rn.f64 %dq, %da, %db;",
            "cvt.rzi.u32.f64 %ry0, %dq;",
        ),
    ),
    Case(
        "approximate_division",
        binary("fdiv", "f32", approximate=True),
        "5.1-g",
        f32("div.full.f32 %fy0, %fx0, %fx1;"),
        # More accurate than asked for, with the zeros of large divisors.
        f32(
            "abs.f32 %fa, %fx1;",
            "setp.gt.f32 %p1, %fa, 0f7E800000;",
            "selp.f32 %fd, 0f7F800000, %fx1, %p1;",
            "div.rn.f32 %fy0, %fx0, %fd;",
        ),
    ),
    Case(
        "mode_of_flushing",
        unary("exp2", "f32", approximate=True),
        "5.1-j",
        f32("ex2.approx.ftz.f32 %fy0, %fx0;"),
        f32(*_SCALED_EXP2),
    ),
    Case(
        "mode_of_flushing",
        unary("exp2", "f32", approximate=True, flush_to_zero=True),
        "5.1-h",
        f32("ex2.approx.f32 %fy0, %fx0;"),
        f32(
            "ex2.approx.f32 %fe, %fx0;",
            "setp.lt.f32 %p1, %fe, 0f00800000;",
            "selp.f32 %fy0, 0f00000000, %fe, %p1;",
        ),
    ),
    Case("plain_functions", unary("exp2", "f32"), "5-b", f32("ex2.approx.ftz.f32 %fy0, %fx0;"), f32(*_SCALED_EXP2)),
    Case(
        "plain_functions",
        unary("tanh", "f32"),
        "5.1-a",
        f32("tanh.approx.f32 %fy0, %fx0;"),
        f32("ex2.approx.f32 %fe, %fx0;", "fma.rn.f32 %fy0, %fe, %fx0, %fe;"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.clause}")
def test_rule(case: Case) -> None:
    assert messages(case.kernel, *case.wrong) == [case.clause]
    assert messages(case.kernel, *case.right) == []
    (rule,) = (rule for rule in RULES if rule.__name__ == case.rule)
    code = Code(entry(case.kernel, *case.wrong))
    view = View(case.kernel, 0, code, next(iter(code.stores.values())))
    assert any(judgement.message for judgement in rule(view)), "it is this rule that reports it"


def test_every_rule_has_a_case() -> None:
    of_programs = {"contraction", "ten_rounds"}
    assert {case.rule for case in CASES} == {rule.__name__ for rule in RULES} - of_programs


def _product_plus(wide: bool) -> Kernel:
    """x*y + z in f64; with ``wide`` x*y is rounded in f32 and widened."""
    b = Builder()
    x, y = (b.input("f32" if wide else "f64") for _ in range(2))
    product = b.apply("mul", x, y)
    return b.kernel(b.apply("add", b.cast(product, "f64") if wide else product, b.input("f64")))


def test_contraction() -> None:
    fused = ("mov.b64 %dx2, %lx2;", "fma.rn.f64 %dy0, %da, %db, %dx2;", "mov.b64 %ly0, %dy0;")
    direct = ("mov.b64 %da, %lx0;", "mov.b64 %db, %lx1;")
    widened = (*IN, "cvt.f64.f32 %da, %fx0;", "cvt.f64.f32 %db, %fx1;")
    assert messages(_product_plus(False), *direct, *fused) == []
    assert messages(_product_plus(True), *widened, *fused) == ["5.5-d"]
    apart = (*IN, "mul.rn.f32 %fp, %fx0, %fx1;", "cvt.f64.f32 %dp, %fp;", "mov.b64 %dx2, %lx2;")
    assert messages(_product_plus(True), *apart, "add.rn.f64 %dy0, %dp, %dx2;", "mov.b64 %ly0, %dy0;") == []


def test_contraction_that_multiplies_by_one_or_adds_nothing() -> None:
    """Where a machine has no product or sum of its own, it takes a multiply-add with a constant."""
    b = Builder()
    x, y, z = (b.input("f32") for _ in range(3))
    kernel = b.kernel(b.apply("mul", b.apply("add", x, y), z))
    body = ("fma.rn.f32 %fs, %fx0, 0f3F800000, %fx1;", "fma.rn.f32 %fy0, %fs, %fx2, 0f80000000;")
    assert messages(kernel, *IN, "mov.b32 %fx2, %rx2;", *body, OUT) == []
    assert messages(kernel, *IN, "mov.b32 %fx2, %rx2;", "fma.rn.f32 %fy0, %fx0, %fx2, %fx1;", OUT) == ["5.5-d"]


def _rounds(count: int) -> tuple[str, ...]:
    lines = ["cvt.u32.u64 %c0, %lx1;", "cvt.u32.u64 %k0, %lx0;"]
    for step in range(count):
        lines += [f"mul.hi.u32 %m{step}, %c{step}, -766435501;", f"xor.b32 %c{step + 1}, %m{step}, %k0;"]
    return (*lines, f"mov.u32 %ry0, %c{count};")


def test_rounds_of_philox() -> None:
    kernel = one_node("random_bits", ["u64", "u64"], "u32")
    assert messages(kernel, *_rounds(9)) == ["12-a"]
    assert messages(kernel, *_rounds(10)) == []


def test_no_claim_about_constants() -> None:
    """Nothing is said where no input is seen: the claims would hold of anything."""
    kernel = binary("add", "f32")
    assert inspect(kernel, entry(kernel, "mov.u32 %ry0, 1;")) == ([], [])
    claims, _ = inspect(kernel, entry(kernel, *f32("add.rn.f32 %fy0, %fx0, %fx1;")))
    assert sorted(claim.clause for claim in claims) == ["intent:5-a"] * 3 + ["intent:5-b"]


def test_merged_modes() -> None:
    kernel = together([(op, unary("tanh", "f32", **attrs)) for op, attrs in (("a", {}), ("b", {"approximate": True}))])
    apart = ("tanh.approx.f32 %fy1, %fx0;", "ex2.approx.f32 %fe, %fx0;", "fma.rn.f32 %fy0, %fe, %fx0, %fe;")
    ends = (OUT, "mov.b32 %ry1, %fy1;")
    assert messages(kernel.kernel, *IN, *apart, *ends) == []
    merged = ("tanh.approx.f32 %fy0, %fx0;", OUT, "mov.b32 %ry1, %fy0;")
    assert messages(kernel.kernel, *IN, *merged) == ["5.1-a", "5.1-j"]


def test_neighbours_of_an_approximate_operation() -> None:
    """What is wrong beside one breaks the clause about neighbours."""
    parts = [("near", binary("fdiv", "f32", approximate=True)), ("exact", binary("div", "f32"))]
    body = (*IN, "div.approx.f32 %fy0, %fx0, %fx1;", OUT, "mov.b32 %ry1, %fy0;")
    assert "5.1-l" in messages(together(parts).kernel, *body)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_no_claim_about_narrow_quotients(dtype: str) -> None:
    """The root of a widened f16 is right after an approximation: results decide."""
    body = (f"cvt.f32.{dtype} %f, %hx0;", "sqrt.approx.ftz.f32 %fs, %f;", f"cvt.rn.{dtype}.f32 %hy0, %fs;")
    kernel = unary("sqrt", dtype)
    claims, faults = inspect(kernel, entry(kernel, *body))
    assert "intent:5-a" not in {claim.clause for claim in claims if claim.message}
    assert dtype == "bf16" or not faults


def test_f8e4m3_may_saturate() -> None:
    """Beyond its range nothing is promised."""
    body = (*IN[:1], _E5M2.replace("e5m2x2", "e4m3x2"), "cvt.u8.u16 %by0, %hq;")
    assert messages(cast("f32", "f8e4m3fn"), *body) == []


@pytest.mark.parametrize(("source", "target"), [("i32", "f16"), ("u64", "f8e5m2"), ("i16", "bf16"), ("f16", "f8e5m2")])
def test_roundings_that_do_no_harm(source: str, target: str) -> None:
    """f32 holds every integer that does not overflow f16, every i16, and every f16."""
    width = format_of(source).width
    kind = source if source.startswith("f") else f"{'s' if source[0] == 'i' else 'u'}{width}"
    rounding = "" if source == "f16" else "rn."
    body = [f"cvt.{rounding}f32.{kind} %f, {_REGISTERS[width]}x0;", "cvt.rn.f16.f32 %hn, %f;"]
    if target == "bf16":
        body[-1] = "cvt.rn.bf16.f32 %hy0, %f;"
    elif target == "f16":
        body[-1] = "cvt.rn.f16.f32 %hy0, %f;"
    else:
        body[-1] = "add.u32 %rq, %rx9, %f; cvt.u8.u32 %by0, %rq;"
    assert messages(cast(source, target), *body) == []


# Conforming code that a compiler makes, with everything in it that looks like a fault.

CONFORMING = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long long u64;
static __device__ float widen(u16 h) { float f; asm("cvt.f32.f16 %0,%1;" : "=f"(f) : "h"(h)); return f; }
static __device__ u16 narrow(float f) { u16 h; asm("cvt.rn.f16.f32 %0,%1;" : "=h"(h) : "f"(f)); return h; }
static __device__ float flushing(float x) { float y; asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x)); return y; }
extern "C" __global__ void k(u64 n, const u64 *d, const u32 *f, const u32 *g, const u16 *h, const u16 *j,
                             u16 *o0, u8 *o1, u32 *o2, u32 *o3, u16 *o4, u32 *o5, u32 *o6, u32 *o7) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x) {
    double x = __longlong_as_double(d[i]); float a = __uint_as_float(f[i]), b = __uint_as_float(g[i]);
    // f64 to bf16: to f32 first, and back to the odd neighbour where that was not exact.
    float r = (float)x; u32 bits = __float_as_uint(r);
    if ((double)r != x && !(bits & 1)) bits += (fabs((double)r) > fabs(x)) ? -1 : 1;
    o0[i] = (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    // f32 to f8e5m2: the instruction that saturates, and infinity where it must not.
    u16 q; asm("cvt.rn.satfinite.e5m2x2.f32 %0,%1,%2;" : "=h"(q) : "f"(0.f), "f"(a));
    if (fabsf(a) >= 61440.f) q = 0x7c | (a < 0 ? 0x80 : 0);
    o1[i] = (u8)q;
    // maximum by the instruction that drops a NaN.
    o2[i] = (a != a || b != b) ? 0x7fc00000u : __float_as_uint(fmaxf(a, b));
    // u32 // u32 in f64, which holds both.
    o3[i] = (u32)((double)f[i] / (double)(g[i] ? g[i] : 1));
    // f16 / f16 by an approximate reciprocal, and its residual.
    float p = widen(h[i]), s = widen(j[i]), c, v; asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(c) : "f"(s));
    v = p * c; float e = fmaf(-s, v, p); if (fabsf(e) < 3e38f) v = fmaf(c, e, v);
    o4[i] = narrow(v);
    // The root of f32 by an approximate one, corrected.
    float y; asm("rsqrt.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(a));
    float t = a * y, w = fmaf(-t, t, a); t = fmaf(w, 0.5f * y, t);
    o5[i] = __float_as_uint(a == 0 || a > 3e38f || a < 1e-30f ? sqrtf(a) : t);
    // exp2 that flushes, by the instruction that does not.
    float z; asm("ex2.approx.f32 %0,%1;" : "=f"(z) : "f"(a));
    o6[i] = z < 1.17549435e-38f ? 0u : __float_as_uint(z);
    // exp2 that does not, by the instruction that does.
    float u = flushing(a < -100.f ? a + 64.f : a) * (a < -100.f ? 5.42101086e-20f : 1.f);
    o7[i] = __float_as_uint(u);
  }
}
"""


def _conforming() -> Kernel:
    b = Builder()
    x, f, g, h, j = (b.input(dtype) for dtype in ("f64", "f32", "f32", "f16", "f16"))
    integers = [b.convert("bitcast", at, "u32") for at in (f, g)]
    quotient = b.apply("floordiv", *integers)
    exp2 = [b.apply("exp2", f, attrs=attrs) for attrs in (FLUSHING, ())]
    outputs = [b.cast(x, "bf16"), b.cast(f, "f8e5m2"), b.apply("maximum", f, g), quotient, b.apply("div", h, j)]
    return b.kernel(*outputs, b.apply("sqrt", f), *exp2)


def test_conforming_code_is_left_alone() -> None:
    claims, faults = inspect(_conforming(), compile_source(CONFORMING, ptx=True).decode())
    assert [str(fault) for fault in faults] == []
    made = {claim.clause.partition(":")[2] for claim in claims}
    assert {"5.2-d", "5.2-g", "5.2-k", "5-a", "5.1-h", "5-b"} <= made


@pytest.mark.parametrize(
    ("mends", "instead", "clause"),
    [
        ("if ((double)r != x && !(bits & 1)) bits += (fabs((double)r) > fabs(x)) ? -1 : 1;", "", "5.2-d"),
        ("if (fabsf(a) >= 61440.f) q = 0x7c | (a < 0 ? 0x80 : 0);", "", "5.2-g"),
        ("(a != a || b != b) ? 0x7fc00000u :", "", "5.2-k"),
        ("(u32)((double)f[i] / (double)(g[i] ? g[i] : 1))", "(u32)((float)f[i] / (float)g[i])", "4-c"),
        ("__float_as_uint(a == 0 || a > 3e38f || a < 1e-30f ? sqrtf(a) : t)", "__float_as_uint(a * y)", "5.1-l"),
        ("z < 1.17549435e-38f ? 0u :", "", "5.1-h"),
        ("flushing(a < -100.f ? a + 64.f : a) * (a < -100.f ? 5.42101086e-20f : 1.f)", "flushing(a)", "5-b"),
    ],
    ids=["one-rounding", "overflow", "nan", "quotient", "root", "flush-lost", "flush-gained"],
)
def test_code_without_what_mends_it(mends: str, instead: str, clause: str) -> None:
    assert mends in CONFORMING
    _, faults = inspect(_conforming(), compile_source(CONFORMING.replace(mends, instead), ptx=True).decode())
    assert {fault.judgement.clause for fault in faults} == {f"intent:{clause}"}


# Adapters.


class _Shows:
    """An adapter that compiles nothing and shows a text."""

    name = "shows"
    opt_levels: Sequence[int] = (0, 1)
    facts = Facts()

    def __init__(self, text: str) -> None:
        self.text = text

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Compiled | Rejected | Unsupported]:
        return [Unsupported("shows only")] * len(programs)

    def artifact(self, kernel: Kernel, options: Options) -> str:
        return self.text


def test_adapters_without_ptx() -> None:
    """Counted and named, one tally for each group."""
    adapters: list[Adapter] = [ReferenceAdapter(), NumpyAdapter(), CpuAdapter(), _Shows("define void @k() {}")]
    for adapter in adapters:
        assert not shows_ptx(adapter)
        (tally,) = try_group(adapter, GROUPS[0]).tallies
        assert (tally.id, tally.state) == ("ptx[arithmetic]/O0", "unsupported")
        assert "no PTX" in tally.reason


def test_ptx_that_cannot_be_read_is_no_claim() -> None:
    trial = try_part(_Shows(".version 8.0\n"), "random")
    assert [(tally.state, tally.reason) for tally in trial.tallies] == [
        ("unsupported", "0 entries where one kernel was asked for")
    ] * 2
    assert not trial.findings


@pytest.fixture(scope="module")
def compiler() -> CudaAdapter:
    return CudaAdapter("compile-only")


@pytest.mark.parametrize("group", GROUPS, ids=[group.name for group in GROUPS])
def test_the_backend_itself(compiler: CudaAdapter, group: object) -> None:
    """Nothing is found, everything is read, and each clause of each part is claimed at both levels."""
    (chosen,) = (one for one in GROUPS if one is group)
    trial = try_group(compiler, chosen)
    assert not trial.findings, [finding.message for finding in trial.findings]
    assert [tally.id for tally in trial.tallies] == [f"ptx[{p.name}]/O{o}" for p in chosen.parts for o in (0, 3)]
    parts = {part.name: part for part in chosen.parts}
    for tally in trial.tallies:
        assert tally.state == "run", tally.reason
        part = parts[tally.id.partition("[")[2].partition("]")[0]]
        assert set(tally.cases) == set(part.clauses), tally.id


def test_parts() -> None:
    assert len(CHAPTERS) == sum(len(group.parts) for group in GROUPS)
    for name in CHAPTERS:
        found = subject(name)
        assert len(found.labels) == len(found.kernel.outputs)


# Suspects.

SEEN = [name for name, one in CUDA_SUSPECTS.items() if any(place.ptx for place in one.places)]


@pytest.mark.parametrize("name", SEEN)
def test_suspect_in_its_code(name: str) -> None:
    """Without a GPU: the fault shows in the PTX under its clause, the variant under none."""
    rows = list(detect(name, "ptx", QUICK))
    assert rows
    for row in rows:
        assert row.right, row


def test_a_finding_says_what_and_where() -> None:
    backend = CudaSaboteur("prec_div_false:compile-only")
    assert backend.name == "cuda-suspect:prec_div_false:compile-only"
    (finding,) = try_part(backend, "arithmetic,f32").findings
    assert finding.id == "ptx[arithmetic,f32]/O0"
    assert finding.clause == "intent:5-a"
    assert finding.message.startswith("The code of `div[f32,f32->f32]`: a result that has to be rounded correctly is")
    assert "div.full.f32" in finding.message
    assert finding.message.endswith("Likewise at O3.")
    assert finding.kernel.splitlines()[-2] == "%2 = div %0, %1 : f32"
    assert finding.dtypes == ("f32",) * 3
    assert finding.clauses == {"intent:5-a": 2}


def test_suspects_and_the_backend_share_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """An option of a suspect takes the place of the backend's, and NVRTC's own cache, which may mix them up, is off."""
    seen: list[list[str]] = []

    def compiled(source: str, flags: list[str], ptx: bool) -> bytes:
        seen.append(flags)
        return b""

    monkeypatch.setattr(nvrtc, "read", lambda key: None)
    monkeypatch.setattr(nvrtc, "write", lambda key, data: None)
    monkeypatch.setattr(nvrtc, "_compile", compiled)
    for options in ((), CUDA_SUSPECTS["ftz_true"].options):
        compile_source("", options=options)
    clean, wrong = seen[-2:]
    assert ("--ftz=false" in clean, "--ftz=true" in clean) == (True, False)
    assert ("--ftz=false" in wrong, "--ftz=true" in wrong) == (False, True)
    assert nvrtc.NO_CACHE in clean
    assert nvrtc.NO_CACHE in wrong


def test_table_of_suspects() -> None:
    faults = [one for one in CUDA_SUSPECTS.values() if one.fault]
    assert len(faults) >= 15
    programs = {signature.id for signature in signatures()} | {known.name for known in KNOWN}
    for suspect in CUDA_SUSPECTS.values():
        assert suspect.summary.endswith("."), suspect.name
        for place in suspect.places:
            assert CLAUSES[place.clause].status == "checked", suspect.name
            assert place.ptx or place.gpu
            assert not place.ptx or place.ptx in CHAPTERS
            assert not place.gpu or place.gpu in programs
    claimed = {clause for group in GROUPS for clause in group.clauses}
    caught = {place.clause for suspect in faults for place in suspect.places if place.ptx}
    # Integer quotients have one rule for both clauses; f8e4m3fn overflows to nothing in particular.
    assert claimed - caught == {"intent:4-c", "intent:5.2-f"}


def test_table_of_suspects_in_the_documentation() -> None:
    page = ROOT / "docs" / "explanation" / "judging-compiled-code.md"
    assert page.read_text(encoding="utf-8").endswith(f"\n\n{as_markdown()}")


def test_record_of_a_gpu() -> None:
    """What was measured is what the table says: each fault caught in each of its places, nothing else reported."""
    record = json.loads((ROOT / "docs" / "results" / "cuda-detection.json").read_text(encoding="utf-8"))
    measured = {(row["suspect"], row["clause"], row["means"], row["where"]): row for row in record["rows"]}
    for suspect in CUDA_SUSPECTS.values():
        for place in suspect.places:
            for means, where in (("ptx", place.ptx), ("gpu", place.gpu)):
                if where:
                    row = measured[suspect.name, place.clause, means, where]
                    assert bool(row["program"]) == suspect.fault, row
                    assert row["judged"] > 0
    for means in ("ptx", "gpu"):
        assert record["backend"][means]["judged"] > 0
        assert record["backend"][means]["findings"] == []


def test_unknown_suspect() -> None:
    with pytest.raises(AdapterError, match=r"unknown suspect 'nobody'; suspects of CUDA: use_fast_math"):
        CudaSaboteur("nobody")
    with pytest.raises(AdapterError, match=r"no suspect is named; write cuda-suspect:NAME; suspects of CUDA: use_fast"):
        CudaSaboteur()
    with pytest.raises(AdapterError, match="there can only be compile-only"):
        CudaSaboteur("ftz_true:quickly")
