"""Test an adapter against its own contract, before it is put on trial.

No numerical rule is checked here: the probes are copies, differences of small integers and sums of small floats that
every arithmetic agrees on. What is checked is whether programs, operands and results are passed as
`halfulp.adapters.protocol` says.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.adapters.protocol import (
    Adapter,
    Array,
    Compiled,
    Facts,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
)
from halfulp.oracle.formats import CANONICAL, WIDE, format_of
from halfulp.oracle.kernel import SCALAR, Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.source import Call, Literal, Parameter, Source

LENGTHS = (0, 1, 2, 7, 33)
"""Array lengths to try: empty, one, even, odd, and odd above common vector widths."""


@dataclass(frozen=True)
class _Probe:
    """A kernel with the function that says what it returns; None where any value will do."""

    label: str
    kernel: Kernel
    expected: Callable[..., Sequence[Array]] | None = None


def assert_adapter(adapter: Any) -> None:
    """Like `check_adapter`.

    Raises:
        AssertionError: there are problems; the message lists them.
    """
    problems = check_adapter(adapter)
    if problems:
        raise AssertionError("the adapter breaks its contract:\n" + "\n".join(f"* {text}" for text in problems))


def check_adapter(adapter: Any) -> list[str]:
    """What is wrong with an adapter, one sentence each; empty if nothing was found.

    Args:
        adapter: an adapter, or a class that is called without arguments.
    """
    if isinstance(adapter, type):
        try:
            adapter = adapter()
        except Exception as error:
            return [f"{adapter.__name__}() raises {_told(error)}"]
    problems = list(_members(adapter))
    if problems:
        return problems
    for level in adapter.opt_levels:
        for problem in _at_level(adapter, Options(opt_level=level)):
            if problem not in problems:
                problems.append(problem)
    return problems


def _members(adapter: Any) -> Iterator[str]:
    name = getattr(adapter, "name", None)
    if not isinstance(name, str) or not name:
        yield f"name is {name!r}, not a text"
    levels = getattr(adapter, "opt_levels", None)
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        yield f"opt_levels is {levels!r}, not a sequence of integers with at least one"
    elif not all(type(level) is int for level in levels) or list(levels) != sorted(set(levels)):
        yield f"opt_levels is {levels!r}, not rising integers"
    facts = getattr(adapter, "facts", None)
    if not isinstance(facts, Facts):
        yield f"facts is {facts!r}, not a Facts"
    else:
        for fact in ("flushes_subnormals", "fuses_multiply_add"):
            value = getattr(facts, fact)
            if not (value is None or isinstance(value, bool)):
                yield f"the fact {fact} is {value!r}, not True, False or None"
        pairs = dict(facts.versions).items()
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in pairs):
            yield f"the fact versions is {facts.versions!r}, not a mapping from text to text"
    if not callable(getattr(adapter, "compile", None)):
        yield "there is no method compile"
    for optional in ("artifact", "close"):
        if hasattr(adapter, optional) and not callable(getattr(adapter, optional)):
            yield f"{optional} is there, but cannot be called"


# Probes.


def _less(a: Array, b: Array) -> list[Array]:
    return [np.less(a.view(np.int32), b.view(np.int32)).astype(np.uint8)]


def _choice(condition: Array, a: Array, b: Array) -> list[Array]:
    return [np.where(condition == 1, a, b)]


def _probes() -> tuple[_Probe, ...]:
    i32, f32, scalar = Input(Type("i32")), Input(Type("f32")), Input(Type("i32", SCALAR))
    seven, half = Constant("i32", 7), Constant("f32", 0x3F000000)
    sub, mul = Apply("sub", (0, 1), "i32"), Apply("mul", (0, 1), "f32")
    return (
        _Probe("sub of two arrays", one_node("sub", ("i32", "i32"), "i32"), lambda a, b: [a - b]),
        _Probe("sub of a scalar and an array", Kernel((scalar, i32, sub), (2,)), lambda a, b: [a - b]),
        _Probe("sub of an array and a scalar", Kernel((i32, scalar, sub), (2,)), lambda a, b: [a - b]),
        _Probe("sub of two scalars", Kernel((scalar, scalar, sub), (2,)), lambda a, b: [a - b]),
        _Probe("sub of a constant and an array", Kernel((seven, i32, sub), (2,)), lambda a: [np.uint32(7) - a]),
        _Probe("a constant alone", Kernel((seven,), (0,)), lambda: [np.array(7, np.uint32)]),
        _Probe("two outputs in turned order", Kernel((i32, f32), (1, 0)), lambda a, b: [b, a]),
        _Probe("one value as two outputs", Kernel((i32, i32, sub), (2, 2)), lambda a, b: [a - b, a - b]),
        _Probe("outputs of different rank", Kernel((i32, scalar, sub), (1, 2)), lambda a, b: [b, a - b]),
        _Probe("an input that is not used", Kernel((f32, i32), (1,)), lambda a, b: [b]),
        _Probe("a multiplication by one half", Kernel((f32, half, mul), (2,))),
        _Probe("a comparison", one_node("lt", ("i32", "i32"), "bool"), _less),
        _Probe("a choice", one_node("select", ("bool", "f32", "f32"), "f32"), _choice),
        _Probe("a conversion to f64", one_node("cast", ("f32",), "f64")),
        _Probe("a conversion to f16", one_node("cast", ("f32",), "f16")),
        *(_Probe(f"a copy of {dtype}", Kernel((Input(Type(dtype)),), (0,)), lambda a: [a]) for dtype in CANONICAL),
    )


def _operand(type_: Type, n: int, salt: int) -> Array:
    """A read-only operand of small positive values, all different from their neighbours."""
    fmt = format_of(type_.dtype)
    count = n if type_.dims else 1
    if fmt.kind == "bool":
        values = (np.arange(count) + salt) % 2
    elif fmt.is_int:
        values = (np.arange(count) * 5 + 3 * salt + 1) % 100
    else:  # Codes around 1: a few normal numbers of every format.
        values = (fmt.bias << fmt.fraction_bits) + (np.arange(count) * 3 + salt) % (1 << min(fmt.fraction_bits, 8))
    bits = values.astype(fmt.storage).reshape((n,) if type_.dims else ())
    bits.flags.writeable = False
    return bits


# Compiling.


def _at_level(adapter: Adapter, options: Options) -> Iterator[str]:
    probes = _probes()
    good = one_node("sub", ("i32", "i32"), "i32")
    unknown = one_node("no_such_operation", ("i32",), "i32")
    mixed = one_node("add", ("i32", "f32"), "f32")
    source = Source(Call("add", (Parameter("x", "i32"), Literal(1))))
    batch: list[Kernel | Source] = [good, unknown, mixed, source, good]

    answers = yield from _answers(adapter, batch, options, "a batch with programs that cannot be compiled")
    if answers is not None:
        if callable(answers[1]):
            yield "an unknown operation is compiled instead of being Unsupported or Rejected"
        alone = yield from _answers(adapter, [good], options, "a batch of one")
        if alone is not None and callable(alone[0]) and not (callable(answers[0]) and callable(answers[4])):
            yield "a program that is compiled alone is not compiled in a batch with bad ones"
    yield from _empty_batch(adapter, options)

    compiled = yield from _answers(adapter, [probe.kernel for probe in probes], options, "the probes")
    if compiled is None:
        return
    ran = 0
    for probe, answer in zip(probes, compiled, strict=True):
        if isinstance(answer, Rejected | Unsupported):
            continue
        problem = _try_probe(probe, answer)
        if problem is None:
            ran += 1
        elif problem:
            yield f"{probe.label}: {problem}"
            ran += 1
    if not ran:
        reasons = {answer.reason for answer in compiled if isinstance(answer, Rejected | Unsupported)}
        yield f"no probe could be run, so nothing was checked; reasons given: {'; '.join(sorted(reasons)[:3])}"
    yield from _optional_members(adapter, good, options)


def _answers(
    adapter: Adapter, programs: list[Kernel | Source] | list[Kernel], options: Options, what: str
) -> Generator[str, None, list[Compiled | Rejected | Unsupported] | None]:
    """A generator of problems that returns the answers, or None where there are none to go on with."""
    try:
        answers = adapter.compile(list(programs), options)
    except Exception as error:
        yield f"compile of {what} raises {_told(error)}; a bad program is answered, not raised"
        return None
    if not isinstance(answers, list) or len(answers) != len(programs):
        size = f"of {len(answers)}" if isinstance(answers, list) else f"not at all: {type(answers).__name__}"
        yield f"compile of {what} must return a list of {len(programs)} answers; it is a list {size}"
        return None
    for answer in answers:
        if isinstance(answer, Rejected | Unsupported):
            if not isinstance(answer.reason, str) or not answer.reason:
                yield f"{type(answer).__name__} without a reason"
        elif not callable(answer) or isinstance(answer, type):
            yield f"compile of {what} answers {answer!r}: neither callable nor Rejected nor Unsupported"
            return None
    return answers


def _empty_batch(adapter: Adapter, options: Options) -> Iterator[str]:
    try:
        answers = adapter.compile([], options)
    except Exception as error:
        yield f"compile of an empty batch raises {_told(error)}"
        return
    if answers != []:
        yield f"compile of an empty batch returns {answers!r}, not an empty list"


def _optional_members(adapter: Adapter, kernel: Kernel, options: Options) -> Iterator[str]:
    artifact = getattr(adapter, "artifact", None)
    if artifact is None:
        return
    try:
        text = artifact(kernel, options)
    except UnsupportedError:
        return
    except Exception as error:
        yield f"artifact raises {_told(error)}"
        return
    if not isinstance(text, str):
        yield f"artifact returns {type(text).__name__}, not a text"


# Running.


def _try_probe(probe: _Probe, compiled: Compiled) -> str | None:
    """The first problem of one compiled probe, None if there is none, "" if it cannot be run."""
    try:
        for n in LENGTHS:
            problem = _run(probe, compiled, n)
            if problem:
                return f"{problem} (length {n})"
    except UnsupportedError:
        return ""
    except Exception as error:
        return f"a call raises {_told(error)}"
    return None


def _run(probe: _Probe, compiled: Compiled, n: int) -> str:
    types = probe.kernel.input_types
    inputs = [_operand(type_, n, salt) for salt, type_ in enumerate(types)]
    kept = [bits.copy() for bits in inputs]
    outputs = compiled(*inputs)
    if any(bits.flags.writeable or not np.array_equal(bits, old) for bits, old in zip(inputs, kept, strict=True)):
        return "an input was modified or made writable"
    problem = _form(probe.kernel, outputs, inputs, n)
    if problem:
        return problem
    if probe.expected is not None:
        for position, (got, want) in enumerate(zip(outputs, probe.expected(*kept), strict=True)):
            if not np.array_equal(got, np.asarray(want)):
                return f"output {position} is {_show(got)}, not {_show(np.asarray(want))}"
    first = [output.copy() for output in outputs]

    others = [_operand(type_, n, salt + 1) for salt, type_ in enumerate(types)]
    between = compiled(*others)
    if any(np.shares_memory(a, b) for a in outputs for b in between):
        return "the results of two calls share memory"
    if not all(np.array_equal(a, b) for a, b in zip(outputs, first, strict=True)):
        return "a second call changes the result of the first"
    for _ in range(2):
        if not all(np.array_equal(a, b) for a, b in zip(compiled(*inputs), first, strict=True)):
            return "the same operands give another result on another call"
    return ""


def _form(kernel: Kernel, outputs: Any, inputs: Sequence[Array], n: int) -> str:
    """What is wrong with the outputs as arrays."""
    types = kernel.output_types
    if not isinstance(outputs, Sequence) or len(outputs) != len(types):
        count = f"{len(outputs)} outputs" if isinstance(outputs, Sequence) else type(outputs).__name__
        return f"a call returns {count} where the kernel has {len(types)}; a sequence of arrays is expected"
    for position, (output, type_) in enumerate(zip(outputs, types, strict=True)):
        fmt = format_of(type_.dtype)
        if not isinstance(output, np.ndarray):
            return f"output {position} is a {type(output).__name__}, not an array"
        if output.dtype != fmt.storage:
            return f"output {position} has dtype {output.dtype}, not {fmt.storage} (the storage of {fmt.name})"
        shape = (n,) if type_.dims else ()
        if output.shape != shape:
            return f"output {position} has the shape {output.shape}, not {shape}"
        if not output.flags.c_contiguous:
            return f"output {position} is not C-contiguous"
        if fmt.storage != WIDE and output.size and int(output.max()) >= fmt.code_count:
            return f"output {position} holds {int(output.max()):#x}, which is no code of {fmt.name}"
        if any(np.shares_memory(output, other) for other in inputs):
            return f"output {position} shares memory with an input; outputs are fresh"
        if any(np.shares_memory(output, other) for other in outputs[:position]):
            return f"output {position} shares memory with another output; outputs are fresh"
    return ""


def _show(array: Array) -> str:
    return np.array2string(array.ravel()[:4], separator=", ", formatter={"int": hex})


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
