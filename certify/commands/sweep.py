"""``halfulp sweep``."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any

from halfulp.certify import tables
from halfulp.certify.commands.certify import _target, available_cpus
from halfulp.certify.commands.common import FOUND, MALFORMED, OK, CommandError, Subparsers, add_command
from halfulp.certify.report import write_json
from halfulp.certify.sweep import engine, filtering, on_device, plot
from halfulp.certify.sweep.domain import Codes, Domain, Listed, Pairs, Sample, critical_and_known
from halfulp.certify.sweep.job import Job, SweepError, job_from_plain, target_of
from halfulp.certify.sweep.known import known_inputs
from halfulp.certify.sweep.record import summary_text
from halfulp.certify.sweep.whole import complete
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.ops import OPERATIONS, Refused, Signature, typed
from halfulp.oracle.ops.record import Attrs
from halfulp.oracle.rounding import round_exact

DESCRIPTION = """
Try every input of an operation on a backend, judge every result, and keep one record of it.

  halfulp sweep log1p --format f32 --backend cpu        all 2^32 inputs
  halfulp sweep exp2 --approximate --flush-to-zero      in f32, on cpu: the defaults
  halfulp sweep cast --format f32 --result bf16         a cast
  halfulp sweep erfc --range 0x3f800000:0x40000000      bit patterns from 1 up to, not including, 2
  halfulp sweep lgamma --format f64 --sample 1e5        f64 cannot be enumerated
  halfulp sweep lgamma --format f64 --backend cuda --filter 1e9     a search on a GPU
  halfulp sweep fdiv --approximate --rhs 3,0x7e800001   every lhs, for each of these divisors
  halfulp sweep fdiv --approximate --sample 1e9         random pairs
  halfulp sweep mul --format bf16                       all 2^32 pairs
  halfulp sweep tanh --json --plot tanh.svg > tanh.json
  halfulp sweep asin --scheduler tcp://HOST:8786        on a Dask cluster: the same record
  halfulp sweep --resume FILE                           go on after an interruption

Known worst inputs come first; `--sample 0` tries them and the critical points alone, within a second or two. Progress
is on standard error. Ctrl-C leaves a file behind from which --resume goes on, to the same record as without it. Values
of --rhs and --lhs are bit patterns (0x...) or numbers.

Maxima of all inputs are exact; those of a sample are lower bounds, and the record says so. In f64 a search around the
worst inputs of the sample follows.

Exit status: 0; 1 if anything is forbidden, undecided or not repeatable; 2 if it was interrupted or could not start.
"""

WIDEST_PAIR = 16
"""Bits of an operand whose pairs can be enumerated."""

DEFAULT_SAMPLE = 100_000
"""Inputs of an f64 sweep that does not say how many."""


def add_parsers(subparsers: Subparsers) -> None:
    parser = add_command(subparsers, "sweep", "try every input of an operation", DESCRIPTION)
    parser.add_argument("op", nargs="?", metavar="OP", help="an operation; `halfulp ask --list` lists them")
    parser.add_argument("--format", metavar="FORMAT", help="the format of the operands (default: f32)")
    parser.add_argument("--result", metavar="FORMAT", help="what a cast converts to")
    parser.add_argument("--backend", metavar="SPEC", help="NAME, MODULE:CLASS or pipe:COMMAND (default: cpu)")
    parser.add_argument("--approximate", action="store_true", help="the approximate operation")
    parser.add_argument("--flush-to-zero", action="store_true", help="the one that flushes subnormal numbers")
    parser.add_argument("--range", metavar="LO:HI", help="bit patterns from LO up to, not including, HI")
    parser.add_argument("--sample", metavar="N", help="N random inputs, after known and critical ones")
    parser.add_argument("--filter", metavar="N", help="f64 on a GPU: N candidates; those that look worst are judged")
    parser.add_argument("--seed", metavar="N", help="what random inputs are derived from, or `random` (default: 0)")
    parser.add_argument("--lhs", metavar="VALUES", help="of two operands: the values of the first")
    parser.add_argument("--rhs", metavar="VALUES", help="of two operands: the values of the second")
    parser.add_argument("--processes", metavar="N", help="processes to run in parallel (default: one for each CPU)")
    parser.add_argument(
        "--judge", metavar="WHERE", default="auto", help="auto (default), host, or device: where the results are"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster instead, tcp://HOST:PORT")
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="the record as JSON, on standard output or to FILE"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw error against input, as .svg or .png")
    parser.add_argument("--state", metavar="DIR", help="where the state of long sweeps is kept (default: the cache)")
    parser.add_argument("--resume", metavar="FILE", help="go on with the sweep whose state this is")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except SweepError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or 'a file'} could not be written: {error.strerror or error}") from None


def _run(arguments: argparse.Namespace) -> int:
    state = _resumed(arguments) if arguments.resume else _fresh(arguments)
    job = state.job
    picture = None if arguments.plot is None else Path(arguments.plot).absolute()
    if picture is not None:
        plot.check(job, picture)
    target = None if arguments.json in (None, "-") else _target("--json", arguments.json)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    stays = _judged_on_device(arguments, job)
    candidates = _candidates(arguments, job)
    try:
        with _executor(arguments, job) as (executor, at_once):
            found, record = complete(
                state, executor, at_once, stays=stays, candidates=candidates, quiet=arguments.quiet
            )
    except KeyboardInterrupt:
        if stays:
            raise CommandError("interrupted; what a device has judged is not kept: start it anew") from None
        return _interrupted(state)
    if picture is not None:
        plot.draw(job, found.total, record, picture)
    if target is not None:
        write_json(target, record)
    if arguments.json == "-":
        print(json.dumps(record, indent=1))
    else:
        print(summary_text(job, record))
    state.discard()
    return OK if found.good else FOUND


def _judged_on_device(arguments: argparse.Namespace, job: Job) -> bool:
    """Whether the results stay on the device, by the option, or because they can."""
    if arguments.judge not in ("auto", "host", "device"):
        raise CommandError(f"--judge {arguments.judge}: auto, host or device")
    if arguments.judge == "host" or arguments.resume or arguments.scheduler is not None:
        return False
    if on_device.covers(job, target_of(job.backend, job.signature)):
        return True
    if arguments.judge == "device":
        raise CommandError(
            "--judge device: it judges all codes, or a --range of them, of an f32 function on the cuda backend, and "
            f"not {job.signature.id} on {job.backend} here; leave it out"
        )
    return False


def _candidates(arguments: argparse.Namespace, job: Job) -> int:
    """How many candidates a device is to filter."""
    if arguments.filter is None:
        return 0
    number = _count("--filter", arguments.filter)
    if not isinstance(job.domain, Sample) or not filtering.covers(job, target_of(job.backend, job.signature)):
        raise CommandError(
            "--filter: candidates are filtered on a device, for samples of f64 functions on the cuda backend, and not "
            f"for {job.signature.id} on {job.backend} here; leave it out"
        )
    return number


def _interrupted(state: engine.State) -> int:
    done = sum(part.inputs for part in state.parts.values())
    print(
        f"halfulp sweep: interrupted after {done:,} of {state.job.domain.inputs:,} inputs; go on with\n"
        f"  halfulp sweep --resume {state.path}",
        file=sys.stderr,
    )
    return MALFORMED


def _executor(arguments: argparse.Namespace, job: Job) -> AbstractContextManager[tuple[Any, int]]:
    if arguments.scheduler is not None:
        if arguments.processes is not None:
            raise CommandError("--processes and --scheduler exclude each other: a cluster has its own workers")
        return engine.dask_executor(arguments.scheduler)
    processes = available_cpus() if arguments.processes is None else _count("--processes", arguments.processes)
    if processes < 1:
        raise CommandError("--processes 0: give 1 or more")
    most = processes if arguments.filter is not None else job.chunks
    return engine.local_executor(max(1, min(processes, most)))


# What the options say.


def _resumed(arguments: argparse.Namespace) -> engine.State:
    fixed = ("op", "format", "result", "backend", "range", "sample", "seed", "lhs", "rhs", "state")
    given = [name for name in (*fixed, "approximate", "flush_to_zero") if getattr(arguments, name)]
    if given:
        name = given[0] if given[0] == "op" else "--" + given[0].replace("_", "-")
        raise CommandError(f"--resume goes on with a sweep as it was started; leave out {name}")
    path = Path(arguments.resume).absolute()
    data, versions, parts = engine.read_state(path)
    try:
        job = job_from_plain(data)
    except (KeyError, TypeError, ValueError):
        raise CommandError(f"{path} names a sweep that this version does not know; start it anew") from None
    state = engine.State(job, path, parts)
    different = sorted(name for name in {*versions, *state.versions} if versions.get(name) != state.versions.get(name))
    if different:
        name = different[0]
        raise CommandError(
            f"{path} was begun with {name} {versions.get(name)}, and here is {state.versions.get(name)}; "
            "one record cannot speak of both. Start the sweep anew"
        )
    return state


def _fresh(arguments: argparse.Namespace) -> engine.State:
    if arguments.op is None:
        raise CommandError("name an operation, for example `halfulp sweep log1p`, or give --resume FILE")
    signature = _signature(arguments)
    job = Job(arguments.backend or "cpu", signature, _inputs(arguments, signature))
    folder = tables.directory() / "sweeps" if arguments.state is None else Path(arguments.state).absolute()
    return engine.State(job, folder / engine.state_name(job))


def _format(option: str, name: str) -> Format:
    if name not in FORMATS:
        raise CommandError(f"{option} {name}: there is no such format; `halfulp ask --list` lists them")
    return FORMATS[name]


def _signature(arguments: argparse.Namespace) -> Signature:
    if arguments.op not in OPERATIONS:
        raise CommandError(f"there is no operation {arguments.op!r}; `halfulp ask --list` lists them")
    record = OPERATIONS[arguments.op]
    fmt = _format("--format", arguments.format or "f32")
    if record.arity > 2 or record.build is not None:
        raise CommandError(f"{arguments.op} has {record.arity} operands; sweeps are for one or two")
    if record.converts != (arguments.result is not None):
        raise CommandError(
            f"{arguments.op} needs --result FORMAT: what to convert to"
            if record.converts
            else f"--result {arguments.result}: {arguments.op} converts nothing; leave it out"
        )
    if arguments.result is not None:
        _format("--result", arguments.result)
    attrs: Attrs = tuple((name, True) for name in ("approximate", "flush_to_zero") if getattr(arguments, name))
    verdict = typed(record, (fmt.name,) * record.arity, arguments.result, attrs)
    if isinstance(verdict, Refused):
        raise CommandError(f"the language refuses {arguments.op} on {fmt.name}: {verdict.reason} ({verdict.clause})")
    if verdict.result is None:
        raise CommandError(f"the language says nothing of {arguments.op} on {fmt.name} with these options")
    return Signature(arguments.op, (fmt.name,) * record.arity, verdict.result, attrs)


def _inputs(arguments: argparse.Namespace, signature: Signature) -> Domain:
    fmt = signature.formats[0]
    listed = [name for name in ("lhs", "rhs") if getattr(arguments, name) is not None]
    ways = [f"--{name}" for name in ("range", "sample") if getattr(arguments, name) is not None]
    if len(ways) > 1 or (listed and "--sample" in ways):
        raise CommandError(f"{ways[-1]} and {(listed + ways)[0]} exclude each other: each says which inputs to try")
    if arguments.seed is not None and (listed or "--range" in ways):
        raise CommandError("--seed is for samples; leave it out where inputs are enumerated")
    binary = len(signature.args) == 2
    pairs = binary and not listed and fmt.width <= WIDEST_PAIR
    codes = fmt.code_count ** (2 if pairs else 1)
    first, count = (0, codes) if arguments.range is None else _range(fmt, arguments.range, codes)
    if listed:
        if not binary:
            raise CommandError(f"--{listed[0]}: {signature.op} has one operand; use --range to choose inputs")
        if len(listed) == 2:
            raise CommandError("--lhs and --rhs exclude each other: one operand is listed, the other takes every value")
        _enumerable(fmt, count)
        values = _values(f"--{listed[0]}", fmt, getattr(arguments, listed[0]))
        return Listed(fmt.name, ("lhs", "rhs").index(listed[0]), values, first, count)
    if arguments.sample is not None or (fmt.width == 64 and arguments.range is None):
        number = DEFAULT_SAMPLE if arguments.sample is None else _count("--sample", arguments.sample)
        points = critical_and_known(signature, [one.operands for one in known_inputs(signature)])
        return Sample(signature, points, number, _seed(arguments.seed))
    if pairs and arguments.seed is None:
        return Pairs(fmt.name, first, count)
    if binary and not pairs:
        raise CommandError(
            f"{signature.op} has two operands: list the values of one with --rhs or --lhs, or draw pairs with --sample"
        )
    _enumerable(fmt, count)
    if arguments.seed is not None:
        raise CommandError("--seed is for samples; leave it out where inputs are enumerated")
    return Codes(fmt.name, first, count)


def _enumerable(fmt: Format, count: int) -> None:
    if count > 1 << 32 or fmt.width > 64:
        raise CommandError(f"{count:,} inputs of {fmt.name} cannot be enumerated; use --sample N, or a --range")


def _range(fmt: Format, text: str, codes: int) -> tuple[int, int]:
    """First and number of ``codes`` bit patterns, of one operand or of a pair."""
    low, colon, high = text.partition(":")
    try:
        ends = int(low, 0), int(high, 0)
    except ValueError:
        raise CommandError(f"--range {text}: write LO:HI as bit patterns, e.g. 0x3f800000:0x40000000") from None
    if not colon or not 0 <= ends[0] < ends[1] <= codes:
        what = fmt.name if codes == fmt.code_count else f"pairs of {fmt.name}, the first operand's above the second's"
        raise CommandError(
            f"--range {text}: it has to hold bit patterns of {what}, LO below HI and HI at most {codes:#x}"
        )
    return ends[0], ends[1] - ends[0]


def _values(option: str, fmt: Format, text: str) -> tuple[int, ...]:
    """Bit patterns from ``0x...`` and from numbers, which are rounded to the format."""
    found = [_one_value(option, fmt, part.strip()) for part in text.split(",") if part.strip()]
    if not found:
        raise CommandError(f"{option} is empty; give bit patterns or numbers, e.g. {option} 3,0x7e800001")
    return tuple(dict.fromkeys(found))


def _one_value(option: str, fmt: Format, text: str) -> int:
    try:
        if text.lower().startswith("0x"):
            code = int(text, 16)
            if code >= fmt.code_count:
                raise CommandError(f"{option} {text}: {fmt.name} has {fmt.width} bits")
            return code
        return round_exact(fmt, Fraction(text), negative_zero=text.startswith("-"))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise CommandError(
            f"{option} {text}: neither a bit pattern (0x...) nor a number of {fmt.name}; infinities and NaN are given "
            "as bit patterns"
        ) from None


def _count(option: str, text: str) -> int:
    """A count, which may be written 1e6."""
    try:
        number = int(text, 0) if not any(c in text.lower() for c in "e.") or "0x" in text else int(float(text))
    except (ValueError, OverflowError):
        number = -1
    if number < 0:
        raise CommandError(f"{option} {text}: give a number such as 100000 or 1e6")
    return number


def _seed(text: str | None) -> int:
    if text == "random":
        return secrets.randbelow(2**32)
    try:
        return 0 if text is None else int(text, 0)
    except ValueError:
        raise CommandError(f"--seed {text}: a seed is an integer, or `random` to have one drawn") from None
