"""The front end: a source program becomes a typed kernel, or is refused.

A literal takes the dtype that its direct position expects (``intent:3-a``): that of the operands beside it. Where
nothing is expected it becomes bool, i64 or f64, and later uses do not change it (``intent:3-c``, ``intent:3-d``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from halfulp.adapters.protocol import Compiled, Options, Rejected, Unsupported
from halfulp.backends.common.check import Signature, TypeRefusal, answered, check, result_of, scalar, signature
from halfulp.backends.common.literals import default_type, encode
from halfulp.backends.common.types import SCALARS, Scalar
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Type, Value
from halfulp.oracle.source import Call, Expression, Formed, Literal, Parameter, Source


def checked(program: Kernel | Source) -> Kernel:
    """A program as a kernel that is known to be well typed.

    Raises:
        TypeRefusal, NotOffered: see there.
    """
    kernel = elaborate(program) if isinstance(program, Source) else program
    check(kernel)
    return kernel


def check_level(options: Options, levels: Sequence[int]) -> None:
    """Whether a backend has the optimisation level that is asked for.

    Raises:
        ValueError: it has not.
    """
    if options.opt_level not in levels:
        raise ValueError(f"optimisation level {options.opt_level}; there are {tuple(levels)}")


def in_batches(
    programs: Sequence[Kernel | Source],
    size: int,
    compiled: Callable[[Sequence[Kernel]], Sequence[Compiled | Unsupported]],
) -> list[Compiled | Rejected | Unsupported]:
    """An answer for each program: what ``compiled`` makes of the well typed ones, ``size`` at a time, or why not."""
    found = [answered(partial(checked, program)) for program in programs]
    kernels = [one for one in found if isinstance(one, Kernel)]
    batches = (compiled(kernels[start : start + size]) for start in range(0, len(kernels), size))
    answers = (answer for batch in batches for answer in batch)
    return [next(answers) if isinstance(one, Kernel) else one for one in found]


def elaborate(source: Source) -> Kernel:
    """The kernel of a source program: its parameters as inputs, in order of first appearance.

    Raises:
        TypeRefusal: the program is ill-typed.
        NotOffered: it uses an operation that the backend does not have.
    """
    return _Elaboration(source).kernel


class _Elaboration:
    def __init__(self, source: Source) -> None:
        self.values: list[Value] = []
        self.types: list[Scalar] = []
        self.parameters: dict[str, int] = {}
        self.done: dict[int, int] = {}
        for parameter in source.parameters():
            dtype = scalar(parameter.dtype)
            self.parameters[parameter.name] = self._append(Input(Type(dtype.name)), dtype)
        result = self._value(source.result)
        self.kernel = Kernel(tuple(self.values), (result,))

    def _append(self, value: Value, dtype: Scalar) -> int:
        self.values.append(value)
        self.types.append(dtype)
        return len(self.values) - 1

    def _literal(self, literal: Literal, expected: Scalar | None) -> int:
        dtype = expected or default_type(literal.value)
        return self._append(Constant(dtype.name, encode(literal.value, dtype)), dtype)

    def _value(self, node: Expression, expected: Scalar | None = None) -> int:
        """The position of an expression's value. ``expected`` matters to a literal alone."""
        match node:
            case Literal():
                return self._literal(node, expected)
            case Formed():
                return self._literal(node.literal, None)
            case Parameter():
                position = self.parameters[node.name]
                if self.types[position] != scalar(node.dtype):
                    raise TypeRefusal(f"parameter {node.name} has two types")
                return position
            case Call():
                # A node that occurs twice in the tree is one value.
                if id(node) not in self.done:
                    self.done[id(node)] = self._call(node)
                return self.done[id(node)]

    def _call(self, node: Call) -> int:
        typing = signature(node.op, len(node.args), node.attrs)
        if typing.converts and node.dtype is None:
            raise TypeRefusal(f"{node.op} needs a target type")
        if not typing.converts and node.dtype is not None:
            raise TypeRefusal(f"{node.op} takes no target type")
        target = None if node.dtype is None else scalar(node.dtype)
        args = self._operands(node, typing)
        result = result_of(node.op, typing, [self.types[arg] for arg in args], target, node.attrs)
        return self._append(Apply(node.op, tuple(args), result.name, node.attrs), result)

    def _operands(self, node: Call, typing: Signature) -> Sequence[int]:
        """Positions of the operands: those with a dtype of their own first, then the literals beside them."""
        at = {i: self._value(arg) for i, arg in enumerate(node.args) if not isinstance(arg, Literal)}
        expects = [None if name is None else SCALARS[name] for name in typing.expects] or [None] * len(node.args)
        beside = next((self.types[position] for i, position in at.items() if expects[i] is None), None)
        for i, arg in enumerate(node.args):
            if isinstance(arg, Literal):
                at[i] = self._literal(arg, expects[i] or beside)
        return [at[i] for i in range(len(node.args))]
