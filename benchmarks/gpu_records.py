"""Everything that is measured on a machine with a GPU, as records in one folder.

    python benchmarks/gpu_records.py --out DIR
    python benchmarks/gpu_records.py --out DIR --only functions,casts --budget 180
    python benchmarks/gpu_records.py --out DIR --limits certify=60,litmus=150

Groups, in this order: ``functions`` (all f32 inputs of every function, judged on the device), ``wide`` (a search in f64
with 10^9 candidates for each function), ``casts`` (all f32 inputs of the casts to every narrower format and to every
integer), ``pairs`` (all 2^32 pairs of f16 and bf16, added, multiplied and divided), ``certify`` (a certification at the
default depth), ``detection`` (every CUDA suspect on trial), ``litmus`` (litmus tests and their mutants). A step that
fails, or takes longer than its limit, is named and does not stop the others. When the budget is spent, no further step
is begun, and those left out are named. ``summary.json`` is written after each group. It has the time of each step, and
of each function the ratio of the judged sweep to the target's kernel alone.

Exit status: 0 if every step was done and found nothing forbidden.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfulp.certify import tables
from halfulp.certify.report import write_json
from halfulp.certify.sweep import engine, filtering, on_device
from halfulp.certify.sweep.domain import Codes, Domain, Pairs, Sample, critical_and_known
from halfulp.certify.sweep.job import Job, target_of
from halfulp.certify.sweep.known import known_inputs
from halfulp.certify.sweep.whole import complete
from halfulp.oracle.bulk import TARGETS
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.ops import OPERATIONS, Accepted, Signature, signatures, typed

GROUPS = ("functions", "wide", "casts", "pairs", "certify", "detection", "litmus")

LIMITS = {"certify": 180.0, "detection": 120.0, "litmus": 200.0}
"""Seconds after which a step that is a process of its own is interrupted."""

GRACE = 10.0
"""Seconds that it then has to write what it knows."""

LINES = 12
"""Of what it says, at the end, that are shown."""

CANDIDATES = 10**9
"""Of a search in f64."""

SAMPLE = 10_000
"""Inputs that are sampled and judged before a search in f64."""

ALL = 1 << 32


@dataclass
class Options:
    out: Path
    backend: str
    executor: Executor
    processes: int
    limits: Mapping[str, float]


Step = Callable[[Options], dict[str, Any]]
"""Does one thing, writes its record, and returns what the summary says of it; ``good`` says whether all was well."""


def sweep_step(signature: Signature, domain: Domain, *, candidates: int = 0) -> Step:
    def step(options: Options) -> dict[str, Any]:
        job = Job(options.backend, signature, domain)
        target = target_of(job.backend, signature)
        filtered = candidates if candidates and filtering.covers(job, target) else 0
        stays = on_device.covers(job, target)
        state = engine.State(job, None)
        found, record = complete(
            state, options.executor, options.processes, stays=stays, candidates=filtered, quiet=True
        )
        write_json(options.out / f"{file_name(signature)}.json", record)
        said = {name: record[name] for name in ("inputs", "forbidden", "undecided", "max_distance", "digest64")}
        said |= {"max_fractional_error": record["max_fractional_error"], "good": found.good}
        for name in ("device_judge", "filter"):
            said |= {name: record[name]} if name in record else {}
        return said

    return step


def file_name(signature: Signature) -> str:
    attrs = "".join("-" + name.replace("_", "-") for name, _ in signature.attrs)
    formats = signature.args[0] if signature.args[0] == signature.result else f"{signature.args[0]}-{signature.result}"
    return f"sweep-cuda-{signature.op}-{formats}{attrs}"


def functions() -> Iterator[tuple[str, Step]]:
    for signature in signatures(tuple(TARGETS)):
        if signature.args == ("f32",):
            yield signature.id, sweep_step(signature, Codes("f32", 0, ALL))


def casts() -> Iterator[tuple[str, Step]]:
    for name, fmt in FORMATS.items():
        allowed = isinstance(typed(OPERATIONS["cast"], ("f32",), name, ()), Accepted)
        if allowed and name != "index" and (not fmt.is_float or fmt.width < 32):
            signature = Signature("cast", ("f32",), name)
            yield signature.id, sweep_step(signature, Codes("f32", 0, ALL))


def pairs() -> Iterator[tuple[str, Step]]:
    for fmt in ("f16", "bf16"):
        for op in ("add", "mul", "div"):
            signature = Signature(op, (fmt, fmt), fmt)
            yield signature.id, sweep_step(signature, Pairs(fmt, 0, ALL))


def wide() -> Iterator[tuple[str, Step]]:
    for signature in signatures(tuple(TARGETS)):
        if signature.args == ("f64",):
            points = critical_and_known(signature, [one.operands for one in known_inputs(signature)])
            domain = Sample(signature, points, SAMPLE, 0)
            yield signature.id, sweep_step(signature, domain, candidates=CANDIDATES)


def command_step(record: str, command: Sequence[str], *, limit: str) -> Step:
    """Something that runs as a process of its own, and is interrupted when its time is over.

    Args:
        record: the name of the file that it writes.
        command: after the interpreter. ``{record}`` becomes the path of the record, ``{processes}`` their number,
            ``{seconds}`` three quarters of the time that there is.
        limit: the group whose limit counts.
    """

    def step(options: Options) -> dict[str, Any]:
        seconds, path = options.limits[limit], options.out / record
        words = {"record": path, "processes": options.processes, "seconds": int(0.75 * seconds)}
        whole = [sys.executable, *(word.format(**words) for word in command)]
        log = options.out / f"{path.stem}.txt"
        with log.open("w", encoding="utf-8") as output:
            running = subprocess.Popen(whole, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            in_time = _ends(running, seconds)
        print("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]), flush=True)
        said = {"status": running.returncode, "record": path.exists(), "good": in_time and running.returncode == 0}
        return said if in_time else {**said, "failed": f"interrupted after {seconds:.0f} s"}

    return step


def _ends(running: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process; when the time is over, interrupt all of its group, and end it if that does not help."""
    try:
        running.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGINT)
    try:
        running.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    return False


HERE = Path(__file__).resolve().parent


def certification() -> Iterator[tuple[str, Step]]:
    options = ["--backend", "cuda", "-n", "{processes}", "--json", "{record}"]
    yield (
        "certify",
        command_step("certify-cuda.json", ["-m", "halfulp.certify.cli", "certify", *options], limit="certify"),
    )


def detection() -> Iterator[tuple[str, Step]]:
    command = [str(HERE / "cuda_detection.py"), "--json", "{record}"]
    yield "detection", command_step("detection-cuda.json", command, limit="detection")


def litmus() -> Iterator[tuple[str, Step]]:
    command = [str(HERE / "cuda_litmus.py"), "--suspects", "--seconds", "{seconds}", "--out", "{record}"]
    yield "litmus", command_step("litmus-cuda.json", command, limit="litmus")


STEPS: dict[str, Callable[[], Iterator[tuple[str, Step]]]] = {
    "functions": functions,
    "wide": wide,
    "casts": casts,
    "pairs": pairs,
    "certify": certification,
    "detection": detection,
    "litmus": litmus,
}


def prepare(executor: Executor) -> None:
    """Build the tables of all functions, so that no sweep has to."""
    for _ in executor.map(tables.table, TARGETS):
        pass


def run(given: argparse.Namespace, groups: list[str], limits: Mapping[str, float]) -> dict[str, Any]:
    """All steps of some groups. Each group has processes of its own, so that one that dies costs its group alone."""
    began = time.monotonic()
    with engine.local_executor(given.processes) as (executor, _):
        prepare(executor)
    seconds = {"tables": round(time.monotonic() - began, 2)}
    print(f"tables: {seconds['tables']} s", flush=True)
    steps: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    summary: dict[str, Any] = {}
    for group in groups:
        start = time.monotonic()
        with engine.local_executor(given.processes) as (executor, at_once):
            options = Options(given.out, given.backend, executor, at_once, limits)
            for name, step in STEPS[group]():
                if time.monotonic() - began > given.budget:
                    left_out.append(name)
                    continue
                begin = time.monotonic()
                try:
                    said = step(options)
                except Exception as error:
                    traceback.print_exc()
                    said = {"failed": f"{type(error).__name__}: {error}", "good": False}
                said["seconds"] = round(time.monotonic() - begin, 2)
                steps[name] = said
                print(line(name, said), flush=True)
        seconds[group] = round(time.monotonic() - start, 2)
        print(f"{group}: {seconds[group]} s", flush=True)
        summary = {
            "schema": "halfulp-gpu-records-1",
            "backend": given.backend,
            "processes": given.processes,
            "seconds": seconds,
            "steps": steps,
            "left_out": left_out,
        }
        write_json(given.out / "summary.json", summary)
    return summary


def line(name: str, said: dict[str, Any]) -> str:
    shown = [f"{said['seconds']:.1f} s", "good" if said["good"] else "NOT GOOD"]
    if "failed" in said:
        shown.append(said["failed"])
    for key in ("inputs", "forbidden", "max_distance", "max_fractional_error"):
        if said.get(key) is not None:
            shown.append(f"{key} {said[key]:,}" if isinstance(said[key], int) else f"{key} {said[key]}")
    if "device_judge" in said:
        kernels = said["device_judge"]["kernel_seconds"]
        shown.append(" ".join(f"{part} {1e3 * value:.1f} ms" for part, value in kernels.items()))
        shown.append(f"ratio {said['device_judge']['ratio']}")
    if "filter" in said:
        kernels = said["filter"]["kernel_seconds"]
        shown.append(" ".join(f"{part} {1e3 * value:.0f} ms" for part, value in kernels.items()))
    return f"{name}: " + ", ".join(shown)


def _split(text: str) -> tuple[str, str]:
    name, _, seconds = text.partition("=")
    if name not in LIMITS:
        raise ValueError(name)
    return name, seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="the folder for the records")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, separated by commas")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no further step is begun")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--limits", default="", help="seconds of certify, detection and litmus, as certify=60,litmus=150"
    )
    given = parser.parse_args()
    groups = given.only.split(",")
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        parser.error(f"--only {unknown[0]}: groups are {', '.join(GROUPS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        limits = LIMITS | {name: float(seconds) for name, seconds in map(_split, filter(None, given.limits.split(",")))}
    except ValueError:
        parser.error(f"--limits {given.limits}: write NAME=SECONDS, separated by commas")
    summary = run(given, groups, limits)
    print(json.dumps(summary["seconds"]))
    if summary["left_out"]:
        print(f"left out, since the budget was spent: {', '.join(summary['left_out'])}")
    return 0 if all(said["good"] for said in summary["steps"].values()) and not summary["left_out"] else 1


if __name__ == "__main__":
    sys.exit(main())
