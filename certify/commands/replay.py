"""``halfulp replay``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from halfulp.adapters.protocol import Adapter, Rejected, Unsupported
from halfulp.certify.commands import replay_litmus
from halfulp.certify.commands.common import FOUND, OK, CommandError, Subparsers, add_command
from halfulp.certify.commands.running import adapter_named, count, level_of
from halfulp.certify.failure import failure_text
from halfulp.certify.show import bits_text, plural
from halfulp.oracle.formats import Bits, format_of
from halfulp.oracle.judge import judge
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops.record import Refused, Undecided
from halfulp.oracle.sets import Verdict
from halfulp.oracle.typing import check, elaborate
from halfulp.properties.execute import Broken, Program, compile_all
from halfulp.properties.failing import Failing, Verdicts, diagnosed
from halfulp.properties.replay import Recorded, decode
from halfulp.properties.results import Finding

DESCRIPTION = """
Run one failure of a report again, alone. The token stands at the end of the failure's text; it holds the program, the
optimisation level and the inputs, so it needs neither the seed nor the run that it comes from.

  halfulp replay hu1-eNq... --backend cpu
  halfulp replay hu1-eNq... --backend mypackage.adapter:Adapter --show

A litmus program or a contest is run by threads that meet by chance: what came out once need not come out again. It is
run until it does, up to --instances times, and the counts are shown.

Exit status: 0 if nothing forbidden came out this time, 1 if something did, 2 if it could not be run.
"""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "replay", "run one failure again, alone", DESCRIPTION)
    parser.add_argument("token", metavar="TOKEN", help="the text that starts with hu1-")
    parser.add_argument("--backend", metavar="SPEC", help="NAME, MODULE:CLASS or pipe:COMMAND")
    parser.add_argument(
        "--show", action="store_true", help="print what the token holds; run it if --backend is given too"
    )
    parser.add_argument(
        "--instances",
        type=count,
        metavar="N",
        help=f"of a litmus program, operations of a contest: how many at most (default: {replay_litmus.MOST:,})",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        recorded = decode(arguments.token)
    except ValueError as error:
        raise CommandError(f"{error}; copy it whole, from hu1- to the next blank") from None
    if arguments.show:
        contents = _contents(recorded) if isinstance(recorded, Recorded) else replay_litmus.contents(recorded)
        print("\n".join(contents))
        if arguments.backend is None:
            return OK
        print()
    if arguments.backend is None:
        raise CommandError("no backend is named; add --backend NAME (`halfulp backends` lists them)")
    adapter = adapter_named(arguments.backend)
    try:
        if not isinstance(recorded, Recorded):
            return replay_litmus.replay(recorded, adapter, arguments.backend, arguments.instances)
        return _replay(recorded, adapter, arguments.backend)
    finally:
        close = getattr(adapter, "close", None)
        if close is not None:
            close()


def _contents(recorded: Recorded) -> list[str]:
    lines = [f"id       {recorded.id}", f"clause   {recorded.clause}", f"level    O{recorded.opt_level}"]
    lines += [f"program  {line}" if n == 0 else f"         {line}" for n, line in enumerate(_listing(recorded))]
    if isinstance(recorded.program, Kernel):
        for number, (type_, bits) in enumerate(zip(recorded.program.input_types, recorded.inputs, strict=True)):
            fmt = format_of(type_.dtype)
            codes = bits.reshape(-1)
            shown = ", ".join(bits_text(fmt.name, fmt.hex(int(code))) for code in codes[:4])
            more = f" and {len(codes) - 4:,} more" if len(codes) > 4 else ""
            lines.append(f"input {number}  {fmt.name} {shown}{more}")
    return lines


def _listing(recorded: Recorded) -> list[str]:
    return str(recorded.program).splitlines()


def _replay(recorded: Recorded, adapter: Adapter, backend: str) -> int:
    level = level_of(adapter, recorded.opt_level)
    program = recorded.program
    typing = check(program) if isinstance(program, Kernel) else elaborate(program)
    kernel = program if isinstance(program, Kernel) else typing
    (compiled,) = compile_all(adapter, [program], level, [kernel if isinstance(kernel, Kernel) else None])
    if isinstance(compiled, Unsupported):
        raise CommandError(f"the backend does not offer what the program uses: {compiled.reason}")
    if isinstance(compiled, Broken):
        return _breach(recorded, compiled.message, backend)
    if isinstance(typing, Refused):
        if isinstance(compiled, Rejected):
            return _fine(recorded, f"refused, as {typing.clause} wants it: {compiled.reason}")
        return _breach(recorded, f"accepted, although the language refuses it: {typing.reason}", backend)
    if isinstance(compiled, Rejected):
        if isinstance(typing, Undecided):
            return _fine(recorded, f"refused, which the text leaves open: {compiled.reason}")
        return _breach(recorded, f"refused, although the language accepts it: {compiled.reason}", backend)
    if not isinstance(kernel, Kernel) or not recorded.inputs:
        return _fine(recorded, "accepted, as the language wants it")
    return _values(recorded, kernel, compiled, backend)


def _fine(recorded: Recorded, what: str) -> int:
    print(f"{recorded.id}: {what.rstrip('.')}.")
    return OK


def _breach(recorded: Recorded, message: str, backend: str) -> int:
    finding = Finding(recorded.id, recorded.clause, kernel=str(recorded.program), message=f"{message.rstrip('.')}.")
    print(failure_text(finding, backend))
    return FOUND


def _values(recorded: Recorded, kernel: Kernel, program: Program, backend: str) -> int:
    outputs = program(recorded.inputs)
    if isinstance(outputs, Unsupported):
        raise CommandError(f"the backend does not offer what the program uses: {outputs.reason}")
    if isinstance(outputs, Broken):
        return _breach(recorded, outputs.message, backend)
    verdicts = judge(kernel, recorded.inputs, outputs)
    forbidden = sum(int((v == Verdict.FORBIDDEN).sum()) for v in verdicts)
    judged = sum(int((v != Verdict.NO_CLAIM).sum()) for v in verdicts)
    if not forbidden:
        first = ", ".join(_first(kernel, number, output) for number, output in enumerate(outputs))
        words = "allowed" if judged else "without a claim"
        return _fine(recorded, f"{plural(sum(map(len, verdicts)), 'result')}, all {words}; the first is {first}")
    print(failure_text(_finding(recorded, kernel, program, outputs, verdicts, forbidden, judged), backend))
    return FOUND


def _first(kernel: Kernel, number: int, output: Bits) -> str:
    fmt = format_of(kernel.output_types[number].dtype)
    return bits_text(fmt.name, fmt.hex(int(output.reshape(-1)[0])))


def _finding(
    recorded: Recorded,
    kernel: Kernel,
    program: Program,
    outputs: Sequence[Bits],
    verdicts: Sequence[Verdicts],
    forbidden: int,
    judged: int,
) -> Finding:
    """The breach as the report of a run would show it; a token holds one element, perhaps many times."""
    wrong = np.logical_or.reduce([np.atleast_1d(v == Verdict.FORBIDDEN) for v in np.broadcast_arrays(*verdicts)])
    row = int(np.flatnonzero(wrong)[0])
    element = tuple(int(bits.reshape(-1)[row if bits.ndim else 0]) for bits in recorded.inputs)
    length = max((len(bits) for bits in recorded.inputs if bits.ndim), default=1)
    return Finding(
        recorded.id,
        recorded.clause,
        kernel=str(kernel),
        dtypes=tuple(type_.dtype for type_ in (*kernel.input_types, *kernel.output_types)),
        forbidden=forbidden,
        judged=judged,
        simplest=Failing(kernel, program).example(element, length),
        suspects=diagnosed(kernel, recorded.inputs, outputs, verdicts),
    )
