"""What compiled code tells about its results before it has run: rules on the PTX of a kernel.

An instruction that is approximate, flushes, saturates, drops a NaN or rounds is no fault by itself: correct divisions,
library functions and conversions are made of such instructions, and of others that mend what they lose. So a rule asks
what the code *cannot know*. An input is **seen only through** an instruction where no way leads from its load to the
store around that instruction, neither as a value nor as the condition of a choice. What the instruction loses of the
input (subnormals, the last bits, a NaN) is then lost for good, and where the clause needs it, the code is wrong for
some input, whatever else it does. Nothing is said of code that keeps another way open: its results have to decide.
Nor is anything said of an instruction that gets something made of the input, which may be such that it loses nothing.

Every rule is a function of a `View`, one output of a kernel. It yields one `Judgement` for each claim that it makes;
it yields none where the clause does not speak of the output, or the argument above does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from halfulp.oracle.formats import format_of
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel
from halfulp.oracle.ops.functions import flushes, is_approximate
from halfulp.properties.build import COMPARISONS
from halfulp.properties.ptx import Code, Instruction, UnreadableError
from halfulp.properties.ptx_view import View


@dataclass(frozen=True)
class Judgement:
    """One claim about one output.

    Attributes:
        clause: what the claim rests on.
        message: what is wrong, empty where nothing is.
        instruction: the instruction that shows it.
    """

    clause: str
    message: str = ""
    instruction: str = ""


@dataclass(frozen=True)
class Fault:
    """A claim that does not hold, of output number ``output``."""

    output: int
    judgement: Judgement

    def __str__(self) -> str:
        one = self.judgement
        return f"{one.message}: `{one.instruction}`"


EXTREMA = ("maximum", "minimum", "maximum_num", "minimum_num")
DIVISIONS = ("div", "fdiv", "sqrt")
SUMS = ("add", "sub")

Rule = Callable[[View], Iterator[Judgement]]
RULES: list[Rule] = []


def _rule(rule: Rule) -> Rule:
    RULES.append(rule)
    return rule


def _lost(view: View, clause: str, those: set[int], message: str, *, raw: bool = True) -> Judgement:
    """The claim that no input is seen only through these instructions.

    With ``raw`` those alone count that get the input itself.
    """
    if raw:
        those = {at for at in those if view.takes_input(at)}
    if those and view.only_through(those):
        return Judgement(clause, message, view.first(those))
    return Judgement(clause)


def inspect(kernel: Kernel, text: str) -> tuple[list[Judgement], list[Fault]]:
    """Every claim that is made about the PTX of a kernel, and those that do not hold.

    Raises:
        UnreadableError: the text is not PTX, or its stores are not those of the outputs in their order.
    """
    code = Code(text)
    if len(code.stores) != len(kernel.outputs):
        raise UnreadableError(f"stores through {len(code.stores)} parameters for {len(kernel.outputs)} outputs")
    views = [View(kernel, place, code, stores) for place, stores in enumerate(code.stores.values())]
    claims: list[Judgement] = []
    faults: list[Fault] = []
    for view in views:
        if view.flow.isdisjoint(code.loads):
            continue  # made of constants, or of what is passed in other ways: nothing is seen of an input
        for rule in RULES:
            for judgement in rule(view):
                claims.append(judgement)
                if judgement.message:
                    faults.append(Fault(view.place, judgement))
    for view, judgement in merged(views):
        claims.append(judgement)
        if judgement.message:
            faults.append(Fault(view.place, judgement))
    return claims, faults


# Flushing and approximation (``intent:5-a``, ``5-b``, ``5.1-l``).

_FLUSHING = frozenset(
    ["add", "sub", "mul", "fma", "mad", "div", "sqrt", "min", "max", "neg", "abs", "set", "setp", "cvt"]
)
_KEEPS_SUBNORMALS = {"f32", "bf16", "f64"}
"""Formats between which f32's subnormal numbers matter. Those of f16 and below are normal in f32."""


def _flushes(view: View, at: int) -> bool:
    """An instruction that flushes an input, or the result."""
    one = view.instruction(at)
    if one.opcode not in _FLUSHING or not one.has("ftz"):
        return False
    if one.opcode == "cvt" and not set(one.types) <= {"f32", "f64"}:
        return False  # to an integer a subnormal is zero anyway, and so it is in f16
    if any(view.code.constant(operand) is not None for operand in one.operands[1:]):
        return False  # compared with one, or added to it, a subnormal may be as good as zero
    return view.takes_input(at) or at in view.last


@_rule
def no_flushing(view: View) -> Iterator[Judgement]:
    """Subnormal numbers are neither flushed on the way in nor on the way out."""
    floats = {dtype for dtype in view.formats if format_of(dtype).is_float}
    from_integer = any(
        node.op.startswith("cast") and not format_of(view.sources(node)[0]).is_float for node in view.nodes
    )
    to_integer = format_of(view.result).is_int
    if not view.plain or not floats & {"f32", "bf16"} or not floats <= _KEEPS_SUBNORMALS:
        return
    if from_integer or to_integer:
        return
    clause = "intent:5.1-l" if view.beside_approximate else "intent:5-b"
    those = view.those(lambda one: one.has("ftz"))
    yield _lost(view, clause, {at for at in those if _flushes(view, at)}, "subnormal numbers are flushed", raw=False)


_MENDS = frozenset(["add", "sub", "fma", "mad", "set", "setp", "slct"])
"""Instructions one of which it takes to compute or compare a residual."""


def _approximate(one: Instruction) -> bool:
    return one.has("approx", "full")


@_rule
def no_approximation(view: View) -> Iterator[Judgement]:
    """Sums, products, quotients and roots of f32 and f64 are rounded correctly.

    What goes on from an approximation without a sum, a fused multiply-add or a comparison was never held against the
    operands again, so that nothing can have brought it to the right side of a tie.
    """
    narrow = any(
        node.op in DIVISIONS and format_of(dtype).width < 32 for node in view.nodes for dtype in view.sources(node)
    )
    if not view.plain or narrow or any(node.op in ("floordiv", "mod") for node in view.nodes):
        return  # narrow quotients and roots can be right after an approximation: results decide
    if not any(format_of(dtype).is_float for dtype in view.formats):
        return
    clause = "intent:5.1-l" if view.beside_approximate else "intent:5-a"
    those = view.those(_approximate)
    judgement = _lost(view, clause, those, "a result that has to be rounded correctly is approximated", raw=False)
    if not judgement.message:
        for at in sorted(those):
            after = view.code.flow_from(at) & view.flow
            if not any(view.instruction(later).opcode in _MENDS for later in after):
                judgement = Judgement(
                    clause, "an approximation whose error nothing corrects", view.instruction(at).text
                )
                break
    yield judgement


@_rule
def quotient_of_operands(view: View) -> Iterator[Judgement]:
    """A quotient is not a product with a rounded reciprocal."""
    node = view.node
    if node is None or node.op not in ("div", "fdiv") or node.attrs or format_of(node.dtype).width < 32:
        return
    if isinstance(view.kernel.values[node.args[0]], Constant):
        return  # the reciprocal may be what was asked for
    yield _lost(
        view, "intent:5-a", view.those(lambda one: one.opcode == "rcp"), "a divisor known by its reciprocal only"
    )


# Rounding (``intent:5-a``, ``5.2-b`` to ``5.2-g``).

_DIRECTED = ("rz", "rm", "rp", "rna")
_ROUNDING = ("add", "sub", "mul", "fma", "div", "sqrt", "cvt")


def _float_type(name: str) -> bool:
    return name.startswith(("f", "bf", "e4m3", "e5m2"))


def _directed(view: View, at: int) -> bool:
    one = view.instruction(at)
    if one.opcode not in _ROUNDING or not one.has(*_DIRECTED) or not one.types or not _float_type(one.types[0]):
        return False
    return not any(view.code.constant(operand) is not None for operand in one.operands[1:])


@_rule
def to_nearest(view: View) -> Iterator[Judgement]:
    """Arithmetic and casts to floats round to nearest."""
    node = view.node
    if node is None or node.op not in ("add", "sub", "mul", "div", "fdiv", "sqrt", "cast") or view.approximate:
        return
    if not format_of(node.dtype).is_float:
        return
    clause = _cast_clause(view) if node.op == "cast" else "intent:5-a"
    yield _lost(view, clause, {at for at in view.flow if _directed(view, at)}, "rounded in one direction")


def _cast_clause(view: View) -> str:
    """The clause of the value of a single cast to a float."""
    assert view.node is not None
    (source,) = view.sources(view.node)
    if not format_of(source).is_float:
        return "intent:5.2-b"
    return {"f8e4m3fn": "intent:5.2-f", "f8e5m2": "intent:5.2-g"}.get(view.node.dtype, "intent:5.2-d")


@_rule
def to_integer(view: View) -> Iterator[Judgement]:
    """A cast to an integer cuts."""
    if view.node is None or view.node.op != "cast" or not format_of(view.node.dtype).is_int:
        return
    (source,) = view.sources(view.node)
    if format_of(source).is_float:
        those = view.those(lambda one: one.opcode == "cvt" and one.has("rni", "rmi", "rpi"))
        yield _lost(view, "intent:5.2-c", those, "rounded to an integer instead of cut")


_HOLDS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8, "bf16x2": 8, "f16x2": 11}
"""Bits that a float type of PTX holds."""


def _harmful(source: str, through: str, target: str) -> bool:
    """Whether rounding to ``through`` on the way can change a cast from ``source`` to ``target``."""
    origin, end = format_of(source), format_of(target)
    if not end.is_float or through not in _HOLDS or _HOLDS[through] <= end.precision:
        return False
    if origin.is_float:
        return _HOLDS[through] < origin.precision
    # An integer that the stage does not hold is beyond a target of few exponents: it overflows, rounded or not.
    lossy = origin.width - origin.signed > _HOLDS[through]
    return lossy and end.max_exponent + 1 >= _HOLDS[through]


@_rule
def one_rounding(view: View) -> Iterator[Judgement]:
    """A cast to a float rounds once: no input is known only as rounded to something between."""
    node = view.node
    if node is None or node.op != "cast" or not format_of(node.dtype).is_float:
        return
    (source,) = view.sources(node)
    if source == "bool":
        return

    def stage(one: Instruction) -> bool:
        if one.opcode != "cvt" or len(one.types) < 2:
            return False
        exact = _float_type(one.types[1]) and _HOLDS.get(one.types[1], 64) <= _HOLDS.get(one.types[0], 0)
        return not exact and _harmful(source, one.types[0], node.dtype)

    yield _lost(view, _cast_clause(view), view.those(stage), "rounded twice")


# Saturation (``intent:5.2-a``, ``5.2-d``, ``5.2-g``, ``4-a``, ``5-a``).


@_rule
def no_saturation(view: View) -> Iterator[Judgement]:
    """A cast overflows to infinity, or wraps. What f8e4m3fn does beyond its range is nobody's promise."""
    node = view.node
    if node is None or node.op != "cast":
        return
    (source,), target = view.sources(node), format_of(node.dtype)
    if format_of(source).is_float and target.is_float and target.infinity:
        those = view.those(lambda one: one.opcode == "cvt" and one.has("satfinite", "sat"))
        yield _lost(view, _cast_clause(view), those, "an overflow saturates")
    elif format_of(source).is_int and target.is_int:
        those = view.those(lambda one: one.opcode == "cvt" and one.has("sat"))
        yield _lost(view, "intent:5.2-a", those, "an overflow saturates")


@_rule
def no_saturating_arithmetic(view: View) -> Iterator[Judgement]:
    """Sums and products wrap, or overflow to infinity."""
    node = view.node
    if node is None or node.op not in ("add", "sub", "mul"):
        return
    fmt = format_of(node.dtype)
    clause = "intent:5-a" if fmt.is_float else "intent:4-a"

    def saturates(one: Instruction) -> bool:
        # A sum of 32 bits does not saturate for narrower operands.
        fits = fmt.is_float or one.types[:1] in ((f"s{fmt.width}",), (f"u{fmt.width}",))
        return one.opcode in ("add", "sub", "mul", "fma", "mad") and one.has("sat") and fits

    those = view.those(saturates)
    yield _lost(view, clause, those, "a result saturates")


# Extrema and integer division.


@_rule
def nan_of_extremum(view: View) -> Iterator[Judgement]:
    """maximum hands a NaN on, maximum_num prefers the number."""
    node = view.node
    if node is None or node.op not in EXTREMA or not format_of(node.dtype).is_float:
        return
    hands_on = not node.op.endswith("_num")

    def wrong(one: Instruction) -> bool:
        floats = any(_float_type(name) for name in one.types)
        return one.opcode in ("min", "max") and floats and one.has("NaN") != hands_on

    message = "the NaN of one operand is dropped" if hands_on else "the NaN of one operand hides the number"
    yield _lost(view, f"intent:5.2-{'k' if hands_on else 'l'}", view.those(wrong), message)


@_rule
def exact_integers(view: View) -> Iterator[Judgement]:
    """Integer quotients and remainders are not computed from operands rounded to a float."""
    node = view.node
    if node is None or node.op not in ("floordiv", "mod"):
        return
    fmt = format_of(node.dtype)

    def rounds(one: Instruction) -> bool:
        return one.opcode == "cvt" and len(one.types) == 2 and fmt.width - fmt.signed > _HOLDS.get(one.types[0], 64)

    clause = "intent:4-b" if fmt.signed else "intent:4-c"
    yield _lost(view, clause, view.those(rounds), "an operand is rounded to a float")


# Approximate operations, and plain ones beside them (``intent:5.1-a``, ``5.1-e`` to ``5.1-j``).


def _approximates(opcode: str, *, flushing: bool | None = None) -> Callable[[Instruction], bool]:
    def wanted(one: Instruction) -> bool:
        return one.opcode == opcode and one.has("approx") and (flushing is None or one.has("ftz") == flushing)

    return wanted


@_rule
def approximate_division(view: View) -> Iterator[Judgement]:
    """A divisor above 2^126 makes zero: neither the rounded quotient nor ``div.full`` tells it from any other."""
    node = view.node
    if node is None or node.op != "fdiv" or not is_approximate(node.attrs):
        return
    those = view.those(lambda one: one.opcode == "div" and one.has("rn", "full"))
    those = {at for at in those if view.untouched(view.instruction(at).operands[2])}
    yield _lost(view, "intent:5.1-g", those, "a divisor above 2^126 is divided by like any other")


@_rule
def mode_of_flushing(view: View) -> Iterator[Judgement]:
    """Approximate exp2 and fdiv flush where they were asked to, and nowhere else."""
    node = view.node
    if node is None or node.op not in ("exp2", "fdiv") or not is_approximate(node.attrs):
        return
    opcode = {"exp2": "ex2", "fdiv": "div"}[node.op]
    asked = flushes(node.attrs)
    those = view.those(_approximates(opcode, flushing=not asked))
    if asked:
        # Lost: operand and result are as the instruction without .ftz has them, and nothing else flushes.
        bare = {at for at in those if view.takes_input(at) and at in view.last}
        message = "subnormal numbers are not flushed, though flush_to_zero was asked for"
        yield Judgement("intent:5.1-h", message, view.first(bare)) if bare else Judgement("intent:5.1-h")
    else:
        message = "subnormal numbers are flushed, though flush_to_zero was not asked for"
        yield _lost(view, "intent:5.1-j", those, message)


@_rule
def plain_functions(view: View) -> Iterator[Judgement]:
    """The default exp2 and tanh of f32 are no approximate ones: no flushing, and not an error of 2^-11.

    ``ex2.approx.f32`` without ``.ftz`` is as good as a library's exp2 (2 ulp), and may stand for it.
    """
    node = view.node
    if node is None or node.op not in ("exp2", "tanh") or node.attrs or node.dtype not in ("f32", "f64"):
        return
    if node.op == "exp2":
        yield _lost(
            view, "intent:5-b", view.those(_approximates("ex2", flushing=True)), "subnormal results are flushed"
        )
    else:
        yield _lost(view, "intent:5.1-a", view.those(_approximates("tanh")), "the approximate tanh, unasked", raw=False)


def merged(views: list[View]) -> Iterator[tuple[View, Judgement]]:
    """exp2, tanh and fdiv of the same operands in different modes are computed apart (``intent:5.1-j``)."""
    for number, view in enumerate(views):
        for other in views[:number]:
            one, two = view.node, other.node
            if one is None or two is None or one.attrs == two.attrs or not (one.attrs or two.attrs):
                continue
            if (one.op, one.args) != (two.op, two.args) or one.op not in ("exp2", "tanh", "fdiv"):
                continue
            same = view.last & other.last - set(view.code.loads)
            judgement = Judgement("intent:5.1-j")
            if same:
                message = f"one instruction for {one.op} in two modes (outputs {other.place} and {view.place})"
                judgement = Judgement("intent:5.1-j", message, view.first(same))
            yield view, judgement


# Contraction (``intent:5.5-d``).

_FUSES = frozenset(["neg", "abs", "add", "sub", "mul", "select", "cast", *COMPARISONS, *EXTREMA])


@_rule
def contraction(view: View) -> Iterator[Judgement]:
    """A fused multiply-add of three values is a product and a sum of the program: one dtype, nothing between.

    The two are recognised by the inputs that reach their operands. Programs of f32 and f64 alone: narrower formats
    may be computed with multiply-adds of f32 that stand for something else, and so may quotients and roots.
    """
    if not all(node.op in _FUSES for node in view.nodes) or not view.formats <= {"f32", "f64", "bool"}:
        return
    inputs = _inputs_of(view)
    if inputs is None or not any(node.op == "mul" for node in view.nodes):
        return
    allowed = {dtype: _sites(view, dtype) for dtype in ("f32", "f64")}
    wrong: set[int] = set()
    for at in view.those(lambda one: one.opcode in ("fma", "mad") and one.has("f32", "f64")):
        one = view.instruction(at)
        if any(view.code.constant(operand) is not None for operand in one.operands[1:]):
            continue
        reached = [inputs(operand) for operand in one.operands[1:]]
        if any(part is None for part in reached):
            continue
        a, b, c = (part or frozenset() for part in reached)
        if (frozenset((a, b)), c) not in allowed[one.types[0]]:
            wrong.add(at)
    if wrong:
        yield Judgement("intent:5.5-d", "a multiply-add where the program has none to fuse", view.first(wrong))
    else:
        yield Judgement("intent:5.5-d")


Inputs = frozenset[int]


def _inputs_of(view: View) -> Callable[[str], Inputs | None] | None:
    """Which inputs reach a name; None where the code does not load each input through a parameter of its own."""
    code = view.code
    parameters = sorted(set(code.loads.values()) - set(code.stores), key=lambda one: (one.position, one.offset))
    if len(parameters) != sum(isinstance(value, Input) for value in view.kernel.values):
        return None
    numbers = {parameter: number for number, parameter in enumerate(parameters)}

    def reach(name: str) -> Inputs | None:
        flow = code.flow_into(list(code.writers(name)))
        if any(code.chosen(result) for at in flow for result in code.instructions[at].results):
            return None
        return frozenset(numbers[code.loads[at]] for at in flow if at in code.loads)

    return reach


def _sites(view: View, dtype: str) -> set[tuple[frozenset[Inputs], Inputs]]:
    """The products that a sum takes directly, by the inputs that their operands and the other summand depend on.

    A negation in between is looked through: whether it may be fused is left open (``reading:31``).
    """
    kernel = view.kernel
    reach: list[Inputs] = []
    number = 0
    for value in kernel.values:
        if isinstance(value, Input):
            reach.append(frozenset((number,)))
            number += 1
        elif isinstance(value, Constant):
            reach.append(frozenset())
        else:
            reach.append(frozenset().union(*(reach[arg] for arg in value.args)))
    found = set()
    for node in view.nodes:
        if node.op not in SUMS or node.dtype != dtype:
            continue
        for arg, other in (node.args, node.args[::-1]):
            product = kernel.values[arg]
            while isinstance(product, Apply) and product.op == "neg":
                product = kernel.values[product.args[0]]
            if isinstance(product, Apply) and product.op == "mul":
                found.add((frozenset(reach[factor] for factor in product.args), reach[other]))
    return found


# Random bits (``intent:12-a``).

_MULTIPLIER = 0xD2511F53
ROUNDS = 10


@_rule
def ten_rounds(view: View) -> Iterator[Judgement]:
    """Philox multiplies by its first constant once in each of ten rounds.

    Counted where the rounds are written out one after another: by the values multiplied.
    """
    node = view.node
    if node is None or not node.op.startswith("random"):
        return
    if any(isinstance(view.kernel.values[arg], Constant) for arg in node.args):
        return
    factors: set[str] = set()
    for at in view.those(lambda one: one.opcode in ("mul", "mad")):
        one = view.instruction(at)
        left, right = one.operands[1:3]
        for factor, number in ((left, right), (right, left)):
            literal = view.code.constant(number)
            if literal is not None and not literal.startswith("0f") and _integer(literal) == _MULTIPLIER:
                factors.add(factor)
    if any(view.code.chosen(name) for at in view.flow for name in view.instruction(at).results):
        return
    if factors and len(factors) < ROUNDS:
        example = next(one.text for at in sorted(view.flow) if (one := view.instruction(at)).opcode == "mul")
        yield Judgement("intent:12-a", f"{len(factors)} rounds of Philox instead of {ROUNDS}", example)
    elif factors:
        yield Judgement("intent:12-a")


def _integer(literal: str) -> int:
    """An integer literal of PTX, modulo 2**32; -1 for what is none."""
    try:
        return int(literal.rstrip("U"), 0) % (1 << 32)
    except ValueError:
        return -1
