"""Compiling and calling a backend without ever letting it take the suite down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from halfulp.adapters.protocol import Adapter, Compiled, Options, Rejected, Unsupported, UnsupportedError
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source


@dataclass(frozen=True)
class Broken:
    """The backend did something that no conforming backend does: an exception, outputs of a wrong form."""

    message: str


Answer = TypeVar("Answer")

Program = Callable[[Sequence[Bits]], "list[Bits] | Unsupported | Broken"]


def compile_all(
    adapter: Adapter,
    programs: Sequence[Kernel | Source],
    opt_level: int,
    elaborated: Sequence[Kernel | None] | None = None,
) -> list[Program | Rejected | Unsupported | Broken]:
    """Compile every program at one level, one answer for each.

    ``elaborated`` gives the kernels that source programs stand for, against which their outputs are checked; None for
    a program that is not to be called.
    """
    try:
        answers = list(adapter.compile(programs, Options(opt_level)))
    except Exception as error:
        return [Broken(f"compile() raised {_named(error)}")] * len(programs)
    if len(answers) != len(programs):
        return [Broken(f"compile() gave {len(answers)} answers to {len(programs)} programs")] * len(programs)
    kernels = elaborated or [program if isinstance(program, Kernel) else None for program in programs]
    return [
        answer if isinstance(answer, (Rejected, Unsupported)) else _checked(kernel, answer)
        for kernel, answer in zip(kernels, answers, strict=True)
    ]


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _checked(kernel: Kernel | None, compiled: Compiled) -> Program | Broken:
    if not callable(compiled):
        return Broken(f"compile() answered {type(compiled).__name__}, which is no callable, Rejected or Unsupported")

    def call(inputs: Sequence[Bits]) -> list[Bits] | Unsupported | Broken:
        passed = [_read_only(bits) for bits in inputs]
        try:
            outputs = list(compiled(*passed))
        except UnsupportedError as error:
            return Unsupported(str(error))
        except Exception as error:
            return Broken(f"the compiled program raised {_named(error)}")
        return (_fault(kernel, passed, outputs) if kernel is not None else None) or outputs

    return call


def answered(run: Callable[[], Answer]) -> Answer | Unsupported | str:
    """What ``run`` answers; a text that says what is wrong where it breaks down."""
    try:
        return run()
    except UnsupportedError as missing:
        return Unsupported(str(missing))
    except Exception as error:  # whatever a backend does is a result
        return f"the run ended with {_named(error)}"


def _read_only(bits: Bits) -> Bits:
    if bits.flags.writeable or not bits.flags.c_contiguous:
        bits = np.ascontiguousarray(bits).reshape(bits.shape)
        bits = bits.copy() if bits.flags.writeable else bits
        bits.setflags(write=False)
    return bits


def _fault(kernel: Kernel, inputs: Sequence[Bits], outputs: Sequence[Bits]) -> Broken | None:
    """What is wrong with the form of the outputs."""
    types = kernel.output_types
    if len(outputs) != len(types):
        return Broken(f"{len(outputs)} outputs were returned; the program has {len(types)}")
    length = next((len(bits) for bits in inputs if bits.ndim), 0)
    for number, (type_, got) in enumerate(zip(types, outputs, strict=True)):
        fmt = format_of(type_.dtype)
        shape = (length,) if type_.dims else ()
        if not isinstance(got, np.ndarray):
            return Broken(f"output {number} is a {type(got).__name__}, not a numpy array")
        if got.shape != shape or got.dtype != fmt.storage:
            return Broken(
                f"output {number} ({fmt.name}) has shape {got.shape} and dtype {got.dtype}; "
                f"expected {shape} and {fmt.storage}"
            )
        if fmt.kind == "bool" and (got > 1).any():
            return Broken(f"output {number} is a bool with the code {int(got.max())}; 0 or 1 expected")
    return None
