"""One output of a kernel, in the program and in its PTX: what the rules of ``ptx_rules`` ask about it."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property

from halfulp.oracle.kernel import Apply, Kernel
from halfulp.oracle.ops.functions import FUNCTIONS, is_approximate
from halfulp.properties.ptx import Code, Instruction

LIBRARY = frozenset(record.name for record in FUNCTIONS) - {"fdiv"}
"""Functions: their code is a library's, and may use any instruction inside."""

_CARRY = frozenset(["mov", "ld", "st", "shl", "prmt", "neg", "abs"])
"""Instructions that move the bits of a magnitude without a look at them. A shift to the left widens a bf16."""

_INTEGERS = [f"{sign}{width}" for sign in "bsu" for width in (8, 16, 32, 64)]
_EXACT = {
    *(("f32", "bf16"), ("f32", "f16"), ("f64", "f32"), ("f64", "f16")),
    *((wide, narrow) for wide in _INTEGERS for narrow in _INTEGERS if int(wide[1:]) >= int(narrow[1:])),
}
"""Types of conversions that lose nothing."""


class View:
    """One output of a kernel, in the program and in the code.

    Attributes:
        kernel: the program.
        place: which output.
        code: the whole code.
        stores: positions of the stores of this output.
        nodes: the operations that the output depends on.
        node: the operation, where it is one on inputs and constants alone; bitcasts do not count.
    """

    def __init__(self, kernel: Kernel, place: int, code: Code, stores: list[int]) -> None:
        self.kernel = kernel
        self.place = place
        self.code = code
        self.stores = stores
        root = kernel.outputs[place]
        needed = {root}
        for position in range(root, -1, -1):
            value = kernel.values[position]
            if position in needed and isinstance(value, Apply):
                needed |= set(value.args)
        self.nodes = [value for at in sorted(needed) if isinstance(value := kernel.values[at], Apply)]
        computing = [node for node in self.nodes if node.op != "bitcast"]
        self.node = computing[0] if len(computing) == 1 else None
        self.formats = {kernel.type_of(at).dtype for at in needed}
        self.result = kernel.type_of(root).dtype

    @cached_property
    def flow(self) -> frozenset[int]:
        """The instructions that the output is made of."""
        return self.code.flow_into(self.stores)

    @cached_property
    def beside_approximate(self) -> bool:
        """Whether the kernel has an approximate operation, and this output none."""
        return not self.approximate and any(
            isinstance(value, Apply) and is_approximate(value.attrs) for value in self.kernel.values
        )

    @property
    def approximate(self) -> bool:
        return any(is_approximate(node.attrs) for node in self.nodes)

    @property
    def plain(self) -> bool:
        """Neither library functions nor approximate or random operations: each is computed as IEEE 754 has it."""
        return not self.approximate and not any(
            node.op in LIBRARY or node.op.startswith("random") for node in self.nodes
        )

    def sources(self, node: Apply) -> tuple[str, ...]:
        """The dtypes of the operands of an operation."""
        return tuple(self.kernel.type_of(arg).dtype for arg in node.args)

    def instruction(self, at: int) -> Instruction:
        return self.code.instructions[at]

    def those(self, wanted: Callable[[Instruction], bool]) -> set[int]:
        """Instructions of the output of a certain kind."""
        return {at for at in self.flow if wanted(self.instruction(at))}

    def only_through(self, those: Container[int]) -> bool:
        """Whether some input is seen only through these instructions."""
        around = self.code.flow_into(self.stores, stop=those)
        return any(at in self.code.loads and at not in around for at in self.flow)

    @cached_property
    def last(self) -> set[int]:
        """The instructions that made the values stored; what only moves bits is passed over."""
        found: set[int] = set()
        seen: set[int] = set()
        pending = list(self.stores)
        while pending:
            for name in self.instruction(pending.pop()).sources:
                for at in self.code.writers(name):
                    if at not in seen:
                        seen.add(at)
                        if self.moves(at) and at not in self.code.loads:
                            pending.append(at)
                        else:
                            found.add(at)
        return found

    def moves(self, at: int) -> bool:
        """Whether an instruction moves bits, or widens exactly."""
        one = self.instruction(at)
        widens = one.opcode == "cvt" and not one.has("sat") and one.types in _EXACT
        return (one.opcode in _CARRY or widens) and not one.has("ftz")

    def untouched(self, name: str) -> bool:
        """Whether a name holds an input, as it was loaded or widened exactly."""
        seen: set[int] = set()
        while (at := self.code.only_writer(name)) is not None and at not in seen:
            seen.add(at)
            if at in self.code.loads:
                return True
            sources = self.instruction(at).sources
            if not self.moves(at) or len(sources) != 1:
                return False
            name = sources[0]
        return False

    def takes_input(self, at: int) -> bool:
        return any(self.untouched(name) for name in self.instruction(at).sources)

    def first(self, those: set[int]) -> str:
        return self.instruction(min(those)).text
