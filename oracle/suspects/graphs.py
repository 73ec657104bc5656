"""Wrong optimisations: rewrites of whole programs that the language forbids (``intent:5-b``, ``5.5``).

Each is an identity over the reals, or one that holds only where nothing overflows, rounds or is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from halfulp.oracle import codes
from halfulp.oracle.formats import Bits, Format, format_of
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Value
from halfulp.oracle.suspects.casts import cast_where, drops_bits
from halfulp.oracle.suspects.record import CLASSIC, Scope, Suspect, convert, intent, nowhere
from halfulp.oracle.suspects.rewrite import Builder, NodeRule, pass_over, rewritten, run
from halfulp.oracle.suspects.wrong_rounding import with_increment

XLA = "https://github.com/openxla/xla/"
TILELANG = "https://github.com/tile-ai/tilelang/issues/"


def optimiser(
    name: str,
    summary: str,
    clauses: tuple[str, ...],
    rule: NodeRule,
    *,
    source: str = CLASSIC,
    fault: bool = True,
    applies: Scope = nowhere,
) -> Suspect:
    """A suspect that rewrites programs. ``applies``: operations that show it by themselves, in some mode."""
    return Suspect(name, summary, clauses, source, fault, applies, kernel_rule=pass_over(rule))


def _of_floats(*ops: str) -> Scope:
    return lambda signature: signature.op in ops and signature.result_format.is_float


# Reassociation and factoring.


def _reassociate(b: Builder, node: Apply) -> int | None:
    if node.op not in ("add", "mul") or not format_of(node.dtype).is_float:
        return None
    first = b.operation(node.args[0], node.op)
    if first is None:
        return None
    x, y = first.args
    return b.apply(node.op, node.dtype, x, b.apply(node.op, node.dtype, y, node.args[1]))


def _factor(b: Builder, node: Apply) -> int | None:
    """a*b + a*c as a*(b + c)."""
    if node.op not in ("add", "sub") or not format_of(node.dtype).is_float:
        return None
    first, second = (b.operation(arg, "mul") for arg in node.args)
    if first is None or second is None or first.args[0] != second.args[0]:
        return None
    inner = b.apply(node.op, node.dtype, first.args[1], second.args[1])
    return b.apply("mul", node.dtype, first.args[0], inner)


# Algebra.


def _float_node(b: Builder, node: Apply, *ops: str) -> bool:
    return node.op in ops and format_of(node.dtype).is_float


def _is_zero(constant: Constant | None) -> bool:
    if constant is None:
        return False
    fmt = format_of(constant.dtype)
    return fmt.is_float and constant.bits & fmt.magnitude_mask == 0


def _times_zero(b: Builder, node: Apply) -> int | None:
    if _float_node(b, node, "mul") and any(_is_zero(b.constant_at(arg)) for arg in node.args):
        return b.constant(node.dtype, 0)
    return None


def _plus_zero(b: Builder, node: Apply) -> int | None:
    if not _float_node(b, node, "add"):
        return None
    for place, arg in enumerate(node.args):
        if _is_zero(b.constant_at(arg)):
            return node.args[1 - place]
    return None


def _self_difference(b: Builder, node: Apply) -> int | None:
    if _float_node(b, node, "sub") and node.args[0] == node.args[1]:
        return b.constant(node.dtype, 0)
    return None


def _one(dtype: str) -> int:
    fmt = format_of(dtype)
    return fmt.bias << fmt.fraction_bits


def _self_quotient(b: Builder, node: Apply) -> int | None:
    if _float_node(b, node, "div") and node.args[0] == node.args[1]:
        return b.constant(node.dtype, _one(node.dtype))
    return None


def _quotient_times_divisor(b: Builder, node: Apply) -> int | None:
    if not _float_node(b, node, "mul"):
        return None
    for place, arg in enumerate(node.args):
        quotient = b.operation(arg, "div")
        if quotient is not None and quotient.args[1] == node.args[1 - place]:
            return quotient.args[0]
    return None


def _reciprocal_of_constant(b: Builder, node: Apply) -> int | None:
    if not _float_node(b, node, "div"):
        return None
    divisor = b.constant_at(node.args[1])
    if divisor is None or _is_zero(divisor) or b.constant_at(node.args[0]) is not None:
        return None
    inverse = b.apply("div", node.dtype, b.constant(node.dtype, _one(node.dtype)), node.args[1])
    return b.apply("mul", node.dtype, node.args[0], inverse)


def _root_of_square(b: Builder, node: Apply) -> int | None:
    square = b.operation(node.args[0], "mul") if node.op == "sqrt" else None
    if square is None or square.args[0] != square.args[1]:
        return None
    return b.apply("abs", node.dtype, square.args[0])


def _negated_difference(b: Builder, node: Apply) -> int | None:
    difference = b.operation(node.args[0], "sub") if _float_node(b, node, "neg") else None
    if difference is None:
        return None
    return b.apply("sub", node.dtype, difference.args[1], difference.args[0])


def _sum_minus_term(b: Builder, node: Apply) -> int | None:
    """(a + b) - b as a."""
    total = b.operation(node.args[0], "add") if _float_node(b, node, "sub") else None
    return None if total is None else _other(b, total, node.args[1])


def _other(b: Builder, node: Apply, term: int) -> int | None:
    """The operand beside ``term``, which may also be an equal constant."""
    for place, arg in enumerate(node.args):
        if arg == term or (b.constant_at(arg) is not None and b.values[arg] == b.values[term]):
            return node.args[1 - place]
    return None


OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _opposite_branch(b: Builder, node: Apply) -> int | None:
    """a < b ? x : y as a >= b ? y : x."""
    relation = b.operation(node.args[0], *OPPOSITE) if node.op == "select" else None
    if relation is None or not b.is_float(relation.args[0]):
        return None
    flipped = b.apply(OPPOSITE[relation.op], "bool", *relation.args)
    return b.apply("select", node.dtype, flipped, node.args[2], node.args[1])


def _select_as_maximum(b: Builder, node: Apply) -> int | None:
    """a > b ? a : b as maximum(a, b), which differs where one is NaN."""
    relation = b.operation(node.args[0], "gt", "ge", "lt", "le") if node.op == "select" else None
    if relation is None or not b.is_float(relation.args[0]) or relation.args != node.args[1:]:
        return None
    return b.apply("maximum" if relation.op in ("gt", "ge") else "minimum", node.dtype, *relation.args)


# Merging.


def _merge(same: Callable[[Apply, Apply], bool]) -> NodeRule:
    """Common subexpressions: reuse an earlier value that is taken for the same."""

    def rule(b: Builder, node: Apply) -> int | None:
        for position, value in enumerate(b.values):
            if isinstance(value, Apply) and value != node and value.dtype == node.dtype and same(value, node):
                return position
        return None

    return rule


def _swapped(first: Apply, second: Apply) -> bool:
    ordered = ("sub", "div", "floordiv", "mod", "shl", "shr", "lt", "le", "gt", "ge")
    return first.op == second.op and first.op in ordered and first.args == second.args[::-1]


FAMILY = {"maximum": "maximum", "maximum_num": "maximum", "minimum": "minimum", "minimum_num": "minimum"}
FAMILY |= {"cast": "cast", "cast_saturate": "cast"}


def _same_family(first: Apply, second: Apply) -> bool:
    family = FAMILY.get(first.op)
    return family is not None and family == FAMILY.get(second.op) and first.args == second.args


# Casts.


def _holds(narrow: str, wide: str) -> bool:
    return format_of(narrow).precision < format_of(wide).precision


def _narrowing_elided(b: Builder, node: Apply) -> int | None:
    """float -> narrower float -> the same float, taken for nothing."""
    inner = b.operation(node.args[0], "cast") if _float_node(b, node, "cast") else None
    if inner is None or b.dtype(inner.args[0]) != node.dtype or not format_of(inner.dtype).is_float:
        return None
    return inner.args[0] if _holds(inner.dtype, node.dtype) else None


def _integer_round_trip(b: Builder, node: Apply) -> int | None:
    """integer -> float -> the same integer, or the other way round."""
    inner = b.operation(node.args[0], "cast") if node.op == "cast" else None
    if inner is None or b.dtype(inner.args[0]) != node.dtype:
        return None
    return inner.args[0] if format_of(inner.dtype).is_float != format_of(node.dtype).is_float else None


# Multiply-add.


def _fma_across_cast(b: Builder, node: Apply) -> int | None:
    """wide(a*b) + c with the product never rounded to the narrow dtype."""
    if not _float_node(b, node, "add"):
        return None
    for place, arg in enumerate(node.args):
        cast = b.operation(arg, "cast")
        product = b.operation(cast.args[0], "mul") if cast else None
        if product is not None and _float_node(b, product, "mul") and _holds(product.dtype, node.dtype):
            factors = [b.apply("cast", node.dtype, factor) for factor in product.args]
            return b.apply("muladd", node.dtype, *factors, node.args[1 - place])
    return None


def _negated_fused_sign(b: Builder, node: Apply) -> int | None:
    """c - a*b taken for the instruction that computes a*b - c."""
    product = b.operation(node.args[1], "mul") if _float_node(b, node, "sub") else None
    if product is None:
        return None
    return b.apply("muladd", node.dtype, *product.args, b.apply("neg", node.dtype, node.args[0]))


def _fma_in_f32(b: Builder, node: Apply) -> int | None:
    """a*b + c of f16, fused in f32 and rounded again."""
    product = b.operation(node.args[0], "mul") if node.op == "add" and node.dtype == "f16" else None
    if product is None:
        return None
    wide = [b.apply("cast", "f32", arg) for arg in (*product.args, node.args[1])]
    return b.apply("cast", "f16", b.apply("muladd", "f32", *wide))


def _users(kernel: Kernel, position: int) -> int:
    used = sum(value.args.count(position) for value in kernel.values if isinstance(value, Apply))
    return used + kernel.outputs.count(position)


def _fused_use_leaks(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
    """A product that one sum fuses is handed to its other users as (a*b + c) - c."""
    for position, value in enumerate(kernel.values):
        if not isinstance(value, Apply) or value.op != "add" or not format_of(value.dtype).is_float:
            continue
        for place, arg in enumerate(value.args):
            product = kernel.values[arg]
            if isinstance(product, Apply) and product.op == "mul" and _users(kernel, arg) > 1:
                replaced = _with_leak(kernel, position, arg, value.args[1 - place])
                return run(kernel, replaced, inputs)
    return None


def _with_leak(kernel: Kernel, total: int, product: int, term: int) -> Kernel:
    node = kernel.values[product]
    assert isinstance(node, Apply)
    # Everything that the sum needs and that does not need the product comes first.
    before = _ancestors(kernel, total) - {product}
    if any(product in _ancestors(kernel, position) for position in before):
        return kernel
    order = sorted(before) + [product] + [p for p in range(len(kernel.values)) if p not in before | {product, total}]
    values: list[Value] = []
    moved: dict[int, int] = {}
    for position in order:
        value = kernel.values[position]
        if position == product:
            factors = tuple(moved[arg] for arg in node.args)
            values.append(Apply("muladd", (*factors, moved[term]), node.dtype))
            moved[total] = len(values) - 1
            values.append(Apply("sub", (moved[total], moved[term]), node.dtype))
        elif isinstance(value, Apply):
            values.append(Apply(value.op, tuple(moved[arg] for arg in value.args), value.dtype, value.attrs))
        else:
            values.append(value)
        moved[position] = len(values) - 1
    # Inputs keep their order only if none was moved past another.
    inputs = [v for v in values if isinstance(v, Input)]
    if inputs != [v for v in kernel.values if isinstance(v, Input)]:
        return kernel
    return Kernel(tuple(values), tuple(moved[output] for output in kernel.outputs))


def _ancestors(kernel: Kernel, position: int) -> set[int]:
    value = kernel.values[position]
    found: set[int] = set()
    if isinstance(value, Apply):
        for arg in value.args:
            found |= {arg} | _ancestors(kernel, arg)
    return found


# Precision kept beyond a dtype.


def kept_wide(narrow: Callable[[Format], bool], wide: str) -> Callable[[Kernel, Sequence[Bits]], list[Bits] | None]:
    """Intermediate values of narrow dtypes live in a wide one and are reduced only where they leave the program."""

    def kernel_rule(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
        inner = [
            position
            for position, value in enumerate(kernel.values)
            if isinstance(value, Apply) and narrow(format_of(value.dtype)) and position not in kernel.outputs
        ]
        if not inner:
            return None
        values: list[Value] = []
        moved: list[int] = []
        narrowed: list[int] = []

        def dtype(name: str) -> str:
            return wide if narrow(format_of(name)) else name

        for value in kernel.values:
            if isinstance(value, Apply):
                args = tuple(moved[arg] for arg in value.args)
                skipped = value.op == "cast" and dtype(value.dtype) == _dtype_at(values, args[0])
                if skipped:
                    moved.append(args[0])
                else:
                    values.append(Apply(value.op, args, dtype(value.dtype), value.attrs))
                    moved.append(len(values) - 1)
            else:
                values.append(value)
                if narrow(format_of(value.type.dtype)):
                    values.append(Apply("cast", (len(values) - 1,), wide))
                moved.append(len(values) - 1)
        for output in kernel.outputs:
            name = kernel.type_of(output).dtype
            if dtype(name) != name:
                values.append(Apply("cast", (moved[output],), name))
                narrowed.append(len(values) - 1)
            else:
                narrowed.append(moved[output])
        return run(kernel, Kernel(tuple(values), tuple(narrowed)), inputs)

    return kernel_rule


def _dtype_at(values: Sequence[Value], position: int) -> str:
    value = values[position]
    return value.dtype if isinstance(value, Apply) else value.type.dtype


# Overflow that "cannot happen".


def _product_quotient(b: Builder, node: Apply) -> int | None:
    """(a*b) // b as a."""
    product = b.operation(node.args[0], "mul") if node.op == "floordiv" else None
    return None if product is None else _other(b, product, node.args[1])


def _sum_compared(b: Builder, node: Apply) -> int | None:
    """a + c > a as c > 0."""
    if node.op not in ("lt", "le", "gt", "ge") or b.is_float(node.args[0]):
        return None
    total = b.operation(node.args[0], "add")
    other = None if total is None else _other(b, total, node.args[1])
    return None if other is None else b.apply(node.op, "bool", other, b.constant(b.dtype(other), 0))


def _no_wrap(b: Builder, node: Apply) -> int | None:
    found = _product_quotient(b, node)
    return _sum_compared(b, node) if found is None else found


# Folding of constants.


def _constants(change: Callable[[Constant], int | None]) -> NodeRule:
    """Every constant operand goes through ``change`` (None: keep it)."""

    def rule(b: Builder, node: Apply) -> int | None:
        args = []
        for arg in node.args:
            constant = b.constant_at(arg)
            bits = change(constant) if constant else None
            args.append(arg if constant is None or bits is None else b.constant(constant.dtype, bits))
        return None if tuple(args) == node.args else b.add(Apply(node.op, tuple(args), node.dtype, node.attrs))

    return rule


def _through_f32(constant: Constant) -> int | None:
    if constant.dtype != "f64":
        return None
    bits = np.array([constant.bits], np.uint64)
    rounded = int(convert("f32", "f64", convert("f64", "f32", bits))[0])
    return None if rounded == constant.bits else rounded


def _flushed(constant: Constant) -> int | None:
    fmt = format_of(constant.dtype)
    bits = np.array([constant.bits], fmt.storage) if fmt.is_float else None
    if bits is None or not codes.is_subnormal(fmt, bits)[0]:
        return None
    return constant.bits & fmt.sign_mask


def _unsigned_zero(constant: Constant) -> int | None:
    fmt = format_of(constant.dtype)
    return 0 if fmt.has_negative_zero and constant.bits == fmt.sign_mask else None


def _cast_constant_truncated(b: Builder, node: Apply) -> int | None:
    constant = b.constant_at(node.args[0]) if node.op == "cast" else None
    if constant is None:
        return None
    src, dst = format_of(constant.dtype), format_of(node.dtype)
    if not (src.is_float and dst.is_float) or dst.precision >= src.precision:
        return None
    bits = np.array([constant.bits], src.storage)
    right = convert(src.name, dst.name, bits)
    chopped = with_increment(src, dst, bits, right, lambda cut: np.zeros(1, bool))
    return b.constant(dst.name, int(chopped[0]))


def _folded_wide(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
    """Float operations on constants are folded in f64 and rounded once, where their value meets a run-time operand."""
    folded: set[int] = set()
    for position, value in enumerate(kernel.values):
        if not format_of(kernel.type_of(position).dtype).is_float or kernel.type_of(position).dtype == "f64":
            continue
        if isinstance(value, Constant) or (isinstance(value, Apply) and all(arg in folded for arg in value.args)):
            folded.add(position)
    chains = [p for p in folded if isinstance(kernel.values[p], Apply)]
    if not any(_uses_folded(kernel, p, folded) for p in chains):
        return None
    values: list[Value] = []
    plain: dict[int, int] = {}
    wide: dict[int, int] = {}

    def add(value: Value) -> int:
        values.append(value)
        return len(values) - 1

    for position, value in enumerate(kernel.values):
        if position not in folded:
            if isinstance(value, Apply):
                value = Apply(value.op, tuple(plain[arg] for arg in value.args), value.dtype, value.attrs)
            plain[position] = add(value)
            continue
        if isinstance(value, Apply) and value.op == "cast":
            wide[position] = wide[value.args[0]]
        elif isinstance(value, Apply):
            wide[position] = add(Apply(value.op, tuple(wide[arg] for arg in value.args), "f64", value.attrs))
        else:
            wide[position] = add(Apply("cast", (add(value),), "f64"))
        plain[position] = add(Apply("cast", (wide[position],), kernel.type_of(position).dtype))
    return run(kernel, Kernel(tuple(values), tuple(plain[output] for output in kernel.outputs)), inputs)


def _uses_folded(kernel: Kernel, position: int, folded: set[int]) -> bool:
    """An operation on constants whose operand is itself an operation on constants."""
    value = kernel.values[position]
    return isinstance(value, Apply) and any(
        arg in folded and isinstance(kernel.values[arg], Apply) for arg in value.args
    )


def _reciprocal_then_fused(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
    """Quotients by a constant become products, and these are fused into the sums that use them."""
    multiplied = rewritten(kernel, _reciprocal_of_constant)
    fused = None if multiplied is None else fused_kernel(multiplied)
    return None if fused is None else run(kernel, fused, inputs)


SUSPECTS: tuple[Suspect, ...] = (
    optimiser(
        "reassociated_add",
        "(a + b) + c of floats is computed as a + (b + c); products likewise.",
        intent("5-b"),
        _reassociate,
    ),
    optimiser(
        "factored_products",
        "a*b + a*c of floats is computed as a*(b + c).",
        intent("5-b"),
        _factor,
    ),
    optimiser(
        "times_zero_folded",
        "x * 0 is folded to 0, for infinity, NaN and negative x too.",
        intent("5-b", "5.2-m", "5.2-n"),
        _times_zero,
        applies=_of_floats("mul"),
        source=TILELANG + "2638",
    ),
    optimiser(
        "plus_zero_folded",
        "x + 0 is folded to x, which keeps -0.",
        intent("5.2-m"),
        _plus_zero,
        applies=_of_floats("add"),
    ),
    optimiser(
        "self_difference_folded",
        "x - x is folded to 0, for infinity and NaN too.",
        intent("5-b"),
        _self_difference,
        source=TILELANG + "2638",
    ),
    optimiser(
        "self_quotient_folded",
        "x / x is folded to 1, for zero, infinity and NaN too.",
        intent("5-b"),
        _self_quotient,
    ),
    optimiser(
        "quotient_times_divisor_folded",
        "(a / b) * b is folded to a.",
        intent("5-b"),
        _quotient_times_divisor,
        source="https://github.com/triton-lang/triton/issues/10671",
    ),
    optimiser(
        "sum_minus_term_folded",
        "(a + b) - b is folded to a.",
        intent("5-b"),
        _sum_minus_term,
    ),
    optimiser(
        "division_by_constant_multiplies",
        "Division by a constant is multiplication by its rounded reciprocal.",
        intent("5-a", "5-b"),
        _reciprocal_of_constant,
        applies=_of_floats("div"),
    ),
    Suspect(
        "division_by_constant_fused",
        "x / c + y is computed as fma(x, 1/c, y): division by a constant made a product, then fused.",
        intent("5-b"),
        source="https://github.com/pytorch/pytorch/pull/115435",
        kernel_rule=_reciprocal_then_fused,
    ),
    optimiser(
        "root_of_square_folded",
        "sqrt(x * x) is folded to |x|.",
        intent("5-b"),
        _root_of_square,
        source=XLA + "pull/45560",
    ),
    optimiser(
        "negated_difference_swapped",
        "-(a - b) is computed as b - a, which gives +0 for equal operands.",
        intent("5.2-m"),
        _negated_difference,
    ),
    optimiser(
        "opposite_branch",
        "a < b ? x : y is computed as a >= b ? y : x, which differs for NaN.",
        intent("5-a"),
        _opposite_branch,
    ),
    optimiser(
        "select_as_maximum",
        "a > b ? a : b is computed as maximum(a, b), which differs for NaN.",
        intent("5-a"),
        _select_as_maximum,
    ),
    optimiser(
        "merges_swapped_operands",
        "a - b and b - a are merged as a common subexpression.",
        intent("5-b"),
        _merge(_swapped),
    ),
    optimiser(
        "merges_variants",
        "maximum and maximum_num of the same operands are merged.",
        intent("5.2-l"),
        _merge(_same_family),
    ),
    optimiser(
        "narrowing_elided",
        "A cast to a narrower float and back is removed.",
        intent("5.2-d", "5.2-f", "5.2-g"),
        _narrowing_elided,
        source=XLA + "issues/41605",
    ),
    optimiser(
        "integer_round_trip_elided",
        "A cast to a float and back to the integer (or the reverse) is removed.",
        intent("5.2-b", "5.2-c"),
        _integer_round_trip,
        source="https://github.com/llvm/llvm-project/issues/55150",
    ),
    optimiser(
        "fma_across_cast",
        "wide(a*b) + c is fused, so that the product is never rounded to the narrow dtype.",
        intent("5.5-d"),
        _fma_across_cast,
    ),
    optimiser(
        "fused_difference_negated",
        "c - a*b is fused by the instruction for a*b - c.",
        intent("5.5-a"),
        _negated_fused_sign,
    ),
    optimiser(
        "fma_in_f32",
        "a*b + c of f16 is fused in f32 and then rounded again.",
        intent("5-b"),
        _fma_in_f32,
        applies=lambda signature: signature.op == "muladd" and signature.result == "f16",
        source="https://github.com/llvm/llvm-project/issues/98389",
    ),
    Suspect(
        "fused_use_changes_other_use",
        "A product that is fused into a sum reaches its other users as (a*b + c) - c.",
        intent("5.5-c"),
        kernel_rule=_fused_use_leaks,
    ),
    Suspect(
        "narrow_floats_kept_wide",
        "Intermediate f16 and bf16 values stay in f32 and are rounded only at the end.",
        intent("5-b", "5.2-d"),
        kernel_rule=kept_wide(lambda fmt: fmt.is_float and fmt.width == 16, "f32"),
        source="https://github.com/ROCm/FlyDSL/issues/585",
    ),
    Suspect(
        "narrow_integers_kept_wide",
        "Intermediate integers of up to 32 bits live in 64 bits and wrap only at the end.",
        intent("4-a", "4-f", "5.2-a"),
        kernel_rule=kept_wide(lambda fmt: fmt.is_int and fmt.width < 64, "i64"),
        source="https://github.com/tinygrad/tinygrad/pull/9080",
    ),
    optimiser(
        "assumes_no_wrap",
        "(a*b) // b is folded to a, and a + c > a to c > 0, as if integers never wrapped.",
        intent("4-a"),
        _no_wrap,
    ),
    optimiser(
        "constants_in_f32",
        "f64 constants are stored as f32.",
        intent("5-a", "5.2-d"),
        _constants(_through_f32),
        applies=lambda signature: signature.args[-1] == "f64" and signature.op in ("add", "mul", "sqrt", "cast"),
    ),
    optimiser(
        "constants_flushed",
        "Subnormal constants become zero.",
        intent("5-b"),
        _constants(_flushed),
        applies=_of_floats("add", "mul"),
    ),
    optimiser(
        "constants_lose_zero_sign",
        "The constant -0 becomes +0.",
        intent("5.2-m"),
        _constants(_unsigned_zero),
        applies=_of_floats("add", "mul"),
    ),
    optimiser(
        "constant_cast_truncates",
        "A cast of a constant is folded by truncation.",
        intent("5.2-d", "5.2-f", "5.2-g"),
        _cast_constant_truncated,
        applies=cast_where(lambda src, dst: src.is_float and drops_bits(src, dst)),
        source="https://github.com/NVlabs/cutile-rs/issues/250",
    ),
    Suspect(
        "constants_folded_in_f64",
        "A chain of operations on float constants is folded in f64 and rounded once.",
        intent("5-a"),
        kernel_rule=_folded_wide,
        source="https://github.com/ROCm/FlyDSL/issues/585",
    ),
)


def _fuse(chosen: Callable[[int], bool]) -> Callable[[Kernel, Sequence[Bits]], list[Bits] | None]:
    """a*b + c fused where ``chosen`` says so by the number of the sum, the product's other users untouched."""

    def kernel_rule(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
        replaced = fused_kernel(kernel, chosen)
        return None if replaced is None else run(kernel, replaced, inputs)

    return kernel_rule


def fused_kernel(kernel: Kernel, chosen: Callable[[int], bool] = lambda number: True) -> Kernel | None:
    """The kernel with sums fused; None where there is none to fuse."""
    count = -1

    def rule(b: Builder, node: Apply) -> int | None:
        nonlocal count
        if not _float_node(b, node, "add", "sub"):
            return None
        for place, arg in enumerate(node.args):
            product = b.operation(arg, "mul")
            if product is None:
                continue
            count += 1
            if not chosen(count):
                return None
            x, y, c = *product.args, node.args[1 - place]
            if node.op == "sub":
                if place == 0:
                    c = b.apply("neg", node.dtype, c)
                else:
                    x = b.apply("neg", node.dtype, x)
            return b.apply("muladd", node.dtype, x, y, c)
        return None

    return rewritten(kernel, rule)


def _alternating(kernel: Kernel, inputs: Sequence[Bits]) -> list[Bits] | None:
    """Even elements fused, odd ones not: a vector body and a scalar tail may differ so."""
    replaced = fused_kernel(kernel)
    if replaced is None:
        return None
    mixed = []
    for fused, separate in zip(run(kernel, replaced, inputs), evaluate(kernel, inputs), strict=True):
        even = np.arange(fused.size).reshape(fused.shape) % 2 == 0
        mixed.append(np.where(even, fused, separate).astype(fused.dtype))
    return mixed


def _power_of_two(b: Builder, node: Apply) -> int | None:
    """x // 2^k as x >> k and x % 2^k as x & (2^k - 1): right for the floor quotient."""
    constant = b.constant_at(node.args[1]) if node.op in ("floordiv", "mod") else None
    if constant is None:
        return None
    fmt = format_of(constant.dtype)
    if constant.bits.bit_count() != 1 or (fmt.signed and constant.bits >> (fmt.width - 1)):
        return None
    if node.op == "mod":
        return b.apply("and", node.dtype, node.args[0], b.constant(node.dtype, constant.bits - 1))
    amount = b.constant(node.dtype, constant.bits.bit_length() - 1)
    return b.apply("shr", node.dtype, node.args[0], amount)


VARIANTS: tuple[Suspect, ...] = (
    Suspect(
        "fma_everywhere",
        "Every a*b + c and a*b - c is rounded once.",
        (),
        fault=False,
        applies=_of_floats("muladd"),
        kernel_rule=_fuse(lambda number: True),
    ),
    Suspect(
        "fma_at_first_sum",
        "The first sum of a program is fused, the others are not.",
        (),
        fault=False,
        applies=_of_floats("muladd"),
        kernel_rule=_fuse(lambda number: number == 0),
    ),
    Suspect(
        "fma_at_even_elements",
        "Elements of even index are fused, the others are not.",
        (),
        fault=False,
        applies=_of_floats("muladd"),
        kernel_rule=_alternating,
    ),
    optimiser(
        "power_of_two_by_shift",
        "x // 2^k is a shift and x % 2^k a mask, which is the floor quotient's own rule.",
        (),
        _power_of_two,
        applies=lambda signature: signature.op in ("floordiv", "mod") and signature.result_format.is_int,
        fault=False,
    ),
)
