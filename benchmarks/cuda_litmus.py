"""Litmus tests on a GPU: nothing forbidden in 10^9 instances each, and what the same tests show when they are mutated.

For each test with a forbidden outcome, in its weakest orders: its mutants are compiled as real kernels, each with one
order weakened (*order mutants*) or with the scope of a block for its releases, its acquires or all of it (*scope
mutants*); where there is no order to weaken, with updates split in two or accesses exchanged (*other mutants*).
Settings of the launches are searched for each mutant until it shows the outcome; the time to the first one and the rate
are recorded. Then the conforming test runs: one half of its instances with settings that balance the outcomes of
threads one after the other and all others, one half with those in which its mutants showed most. A mutant that never
showed the outcome is listed as such, with the instances that it had: of it, "never seen" says nothing.

    python benchmarks/cuda_litmus.py --suspects --out docs/results/litmus-cuda.json
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from halfulp.adapters.protocol import ContestRun, LitmusOptions
from halfulp.backends.cuda import CudaAdapter
from halfulp.backends.cuda.driver import device
from halfulp.backends.cuda.litmus import Litmus
from halfulp.backends.cuda.litmus_lower import Accesses, AccessesOf
from halfulp.backends.cuda.litmus_shelf import Shelf
from halfulp.backends.cuda.nvrtc import nvrtc_version
from halfulp.certify.detection.cuda_atomics import detection_table
from halfulp.certify.report import write_json
from halfulp.oracle.memory.catalogue import Test, catalogue
from halfulp.oracle.memory.histories import KINDS, judge
from halfulp.oracle.memory.program import Outcome, Program, access_text, listing, map_accesses, outcome_text
from halfulp.oracle.memory.search import allowed, verdict
from halfulp.oracle.memory.typing import weakened
from halfulp.oracle.sets import Verdict
from halfulp.properties.contests import contest, history
from halfulp.properties.litmus_mutants import mutant_of
from halfulp.properties.plan import Plan

FAMILIES = (
    *("two locations", "three locations", "release sequence", "failure order", "update", "plain"),
    *("coherence", "atomicity"),
)
UPDATES = ("MP-", "S-")
"""Families of tests that are run, in this order, and beginnings of the names of those of the family ``update``."""

MEASURED = 1 << 24
"""Instances from which the rate of a mutant is taken, once it has been seen."""

PATIENCE = {"order": 1 << 30, "scope": 1 << 27, "other": 1 << 27}
"""Instances after which a mutant that was not seen is given up, by its kind."""

LAUNCHES = 16
"""Launches with each setting, once a search with one each has shown nothing."""


class ReleasesOfBlock(Accesses):
    """Releases have the scope of a block."""

    orders: tuple[str, ...] = ("release", "acq_rel")

    def _narrow(self, order: str) -> None:
        self.scope = "cta" if order in self.orders else "gpu"

    def load(self, to: str, cell: str, order: str) -> str:
        self._narrow(order)
        return super().load(to, cell, order)

    def store(self, cell: str, value: str, order: str) -> str:
        self._narrow(order)
        return super().store(cell, value, order)

    def rmw(self, kind: str, to: str, cell: str, value: str, order: str) -> str:
        self._narrow(order)
        return super().rmw(kind, to, cell, value, order)

    def cas(self, to: str, success: str, cell: str, expected: str, desired: str, order: str) -> str:
        self._narrow(order)
        return super().cas(to, success, cell, expected, desired, order)


class AcquiresOfBlock(ReleasesOfBlock):
    """Acquires have the scope of a block."""

    orders = ("acquire", "acq_rel")


class AllOfBlock(Accesses):
    """Everything has the scope of a block."""

    scope = "cta"


@dataclass(frozen=True)
class Mutant:
    """A test, changed in one way; ``kind`` is one of `PATIENCE`."""

    kind: str
    change: str
    program: Program
    accesses: AccessesOf


def mutants(program: Program) -> Iterator[Mutant]:
    """The mutants that may show the weak outcome."""
    for number, access in enumerate(program.accesses):
        for weaker in weakened(access):
            changed = map_accesses(program, lambda at, old, n=number, new=weaker: new if at == n else old)
            if verdict(changed, program.weak) is not Verdict.FORBIDDEN:
                yield Mutant("order", f"{access_text(access)} is {weaker.order}", changed, Accesses)
    ordered = any(access.order not in (None, "relaxed") for access in program.accesses)
    other = None if ordered else mutant_of(program)
    if other is not None:
        yield Mutant("other", other.change, other.program, Accesses)
    for lowering in (ReleasesOfBlock, AcquiresOfBlock, AllOfBlock) if ordered else (AllOfBlock,):
        yield Mutant("scope", (lowering.__doc__ or "").rstrip("."), program, lowering)


def chosen(names: Sequence[str], dtype: str) -> list[Test]:
    """The tests that forbid something, of these names or of the families above."""
    tests = [test for test in catalogue(dtype) if test.verdict is Verdict.FORBIDDEN and len(test.program.threads) > 1]
    if names:
        return [test for test in tests if any(test.name.startswith(name) for name in names)]
    kept = [test for test in tests if test.family != "update" or test.name.startswith(UPDATES)]
    return [test for family in FAMILIES for test in kept if test.family == family]


def weak_count(histogram: Mapping[Outcome, int], weak: Outcome) -> int:
    return sum(count for outcome, count in histogram.items() if set(weak) <= set(outcome))


Score = Callable[[Mapping[Outcome, int], float], float]
"""Of a histogram and the seconds that it took."""


class Hunt:
    """Search for settings in which a mutant shows the weak outcome."""

    def __init__(self, litmus: Litmus, weak: Outcome, options: LitmusOptions, patience: int) -> None:
        self.weak = weak
        self.instances = 0
        self.start = time.perf_counter()
        self.first: float | None = None
        self.seen = self.measured = 0
        launches = 1
        while True:
            options = replace(options, seed=self.instances)
            settings = litmus.tune(options, self._counting(litmus.showing(weak)), launches)
            self.settings = settings[:1] if self.first is not None else settings
            run = litmus.run_with(self.settings, replace(options, instances=MEASURED))
            self.seen += self._count(run.histogram)
            self.measured += run.instances
            if self.first is not None or self.instances >= patience:
                return
            launches = LAUNCHES
            other = "each" if options.synchronisation == "start" else "start"
            options = replace(options, synchronisation=other)

    def _count(self, histogram: Mapping[Outcome, int]) -> int:
        found = weak_count(histogram, self.weak)
        self.instances += sum(histogram.values())
        if found and self.first is None:
            self.first = time.perf_counter() - self.start
        return found

    def _counting(self, score: Score) -> Score:
        """The score, which counts what it is given."""

        def counted(histogram: Mapping[Outcome, int], seconds: float) -> float:
            self._count(histogram)
            return score(histogram, seconds)

        return counted

    def row(self, mutant: Mutant) -> dict[str, Any]:
        return {
            "kind": mutant.kind,
            "change": mutant.change,
            "seen": self.first is not None,
            "rate": self.seen / self.measured,
            "measured": self.measured,
            "seconds_to_first": self.first,
            "instances": self.instances,
            "settings": [str(knobs) for knobs in self.settings] if self.first is not None else [],
        }


def _compiled(mutant: Mutant) -> Litmus:
    return Shelf.of(mutant.accesses).litmus(mutant.program)


def run_test(test: Test, instances: int, seed: int) -> dict[str, Any]:
    """One test with its mutants."""
    program = test.program
    options = LitmusOptions(instances=instances, placement="apart", synchronisation="start", seed=seed)
    hunts = [
        (mutant, Hunt(_compiled(mutant), program.weak, options, PATIENCE[mutant.kind])) for mutant in mutants(program)
    ]
    litmus = Shelf.of(Accesses).litmus(program)
    balanced = litmus.tune(options)[:2]
    deadly = list(dict.fromkeys(knobs for _, hunt in hunts if hunt.first is not None for knobs in hunt.settings))
    parts = []
    judged = allowed(program)
    forbidden = 0
    for name, settings in (("balanced", balanced), ("where mutants show most", deadly or balanced)):
        run = litmus.run_with(settings, replace(options, instances=instances // 2))
        overlap = litmus.overlap(run.histogram)
        wrong = [outcome for outcome in run.histogram if judged.verdict(outcome) is Verdict.FORBIDDEN]
        forbidden += sum(run.histogram[outcome] for outcome in wrong)
        parts.append(
            {
                "settings": name,
                "instances": run.instances,
                "per_second": round(run.instances / run.seconds),
                "one_after_the_other": [round(share, 6) for share in overlap.sequential.values()],
                "interleaved": round(overlap.interleaved, 6),
                "outcomes": {outcome_text(outcome): count for outcome, count in run.histogram.items()},
            }
        )
    return {
        "test": test.name,
        "family": test.family,
        "program": listing(program).splitlines(),
        "instances": sum(part["instances"] for part in parts),
        "forbidden": forbidden,
        "runs": parts,
        "mutants": [hunt.row(mutant) for mutant, hunt in hunts],
    }


def run_contests(threads: int) -> Iterator[dict[str, Any]]:
    """Many threads on one location: every returned value counts."""
    backend = CudaAdapter()
    for number, kind in enumerate(KINDS):
        dtype = ("i32", "u32", "i64", "u64")[number % 4]
        asked = contest(kind, dtype, Plan(0, "quick"), threads)
        answer = backend.run_contest(asked, LitmusOptions())
        assert isinstance(answer, ContestRun), answer
        operations = sum(map(len, asked.operands))
        yield {
            "kind": kind,
            "dtype": dtype,
            "threads": threads,
            "operations": operations,
            "per_second": round(operations / max(answer.seconds, 1e-9)),
            "verdict": judge(history(asked, answer)).verdict.name.lower(),
        }
    backend.close()


def table(record: Mapping[str, Any]) -> Iterator[str]:
    """The record as text."""
    for row in record["tests"]:
        runs = row["runs"]
        shares = " ".join(f"{share:.1%}" for share in runs[0]["one_after_the_other"])
        yield (
            f"{row['test']:<46} {row['instances']:.2g} instances, {runs[0]['per_second']:.2g}/s, "
            f"{row['forbidden']} forbidden; {shares}, interleaved {runs[0]['interleaved']:.1%}"
        )
        for mutant in row["mutants"]:
            first = mutant["seconds_to_first"]
            shown = (
                f"{mutant['rate']:.1e} of {mutant['measured']:.1e}, first after {first:.3f} s"
                if first is not None
                else "not shown here"
            )
            yield f"    {mutant['kind']}: {mutant['change']:<44} {shown} ({mutant['instances']:.1e} instances)"
    for name, count in record["summary"].items():
        yield f"{name.replace('_', ' ')}: {count}"
    for row in record.get("contests", ()):
        yield f"{row['kind']} on {row['dtype']}: {row['operations']:,} operations, {row['verdict']}"
    for row in record.get("suspects", ()):
        yield f"{row['suspect']:<28} {row['means']} {row['clause']:<12} {row['where'] or '-'} ({row['seconds']:.2f} s)"
    if record.get("not_run"):
        yield f"not run: {', '.join(record['not_run'])}"


def summary(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [(row["test"], mutant) for row in tests for mutant in row["mutants"]]
    found: dict[str, Any] = {
        "tests": len(tests),
        "forbidden": sum(row["forbidden"] for row in tests),
        "least_instances": min((row["instances"] for row in tests), default=0),
    }
    for kind in PATIENCE:
        mine = [mutant for _, mutant in rows if mutant["kind"] == kind]
        seen = sorted(mutant["seconds_to_first"] for mutant in mine if mutant["seen"])
        found[f"{kind}_mutants"] = len(mine)
        found[f"{kind}_mutants_shown"] = len(seen)
        found[f"{kind}_mutants_median_seconds_to_first"] = seen[len(seen) // 2] if seen else None
    found["tests_without_any_mutant_shown"] = [
        row["test"] for row in tests if not any(mutant["seen"] for mutant in row["mutants"])
    ]
    found["mutants_not_shown_here"] = [f"{name}: {mutant['change']}" for name, mutant in rows if not mutant["seen"]]
    return found


SUSPECTS_TAKE = 34.0
"""Seconds that are kept for the detection table of suspects."""


class Record:
    """What is known so far, written to a file whenever something is added."""

    def __init__(self, path: Path | None, **heads: Any) -> None:
        self.path = path
        self.start = time.perf_counter()
        self.tests: list[dict[str, Any]] = []
        self.data: dict[str, Any] = dict(heads)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def write(self) -> None:
        self.data |= {"summary": summary(self.tests), "seconds": round(self.seconds, 2), "tests": self.tests}
        if self.path:
            write_json(self.path, self.data)


def measure(record: Record, arguments: argparse.Namespace) -> None:
    """Contests, tests and suspects, in this order, as far as the time allows; what is left out is named."""
    tests = chosen(arguments.tests, arguments.dtype)
    record.data["not_run"] = [test.name for test in tests]
    record.data["contests"] = list(run_contests(256))
    wanted: dict[AccessesOf, list[Program]] = {Accesses: [test.program for test in tests]}
    for test in tests:
        for mutant in mutants(test.program):
            wanted.setdefault(mutant.accesses, []).append(mutant.program)
    for lowering, programs in wanted.items():
        Shelf.of(lowering).prepare(programs)
    record.data["compilation"] = round(record.seconds, 2)
    until = arguments.seconds - (SUSPECTS_TAKE if arguments.suspects else 0)
    for test in tests:
        if record.seconds > until:
            break
        record.tests.append(run_test(test, int(arguments.instances), arguments.seed))
        record.data["not_run"].remove(test.name)
        record.write()
        print(f"{record.seconds:6.1f} s  {test.name}", file=sys.stderr, flush=True)
    if arguments.suspects:
        record.data["suspects"] = []
        for row in detection_table(device=True):
            record.data["suspects"].append({**asdict(row), "right": row.right})
            record.write()
            if record.seconds > arguments.seconds:
                break


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tests", nargs="*", help="beginnings of names; by default the families of the documentation")
    parser.add_argument("--out", type=Path, help="write the record there, as JSON")
    parser.add_argument("--instances", type=float, default=1e9, help="of each conforming test (default: 1e9)")
    parser.add_argument("--seconds", type=float, default=150, help="what is not begun by then is left out, and named")
    parser.add_argument("--dtype", default="u32", help="of the locations (default: u32)")
    parser.add_argument("--suspects", action="store_true", help="with the detection table of all suspects")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    heads = {"device": device().name, "driver": device().driver, "nvrtc": nvrtc_version(), "dtype": arguments.dtype}
    record = Record(arguments.out, **heads)
    try:
        measure(record, arguments)
    except KeyboardInterrupt:
        record.data["interrupted"] = True
    record.write()
    print("\n".join(table(record.data)), flush=True)
    data = record.data
    wrong = data["summary"]["forbidden"] or any(row["verdict"] != "allowed" for row in data.get("contests", ()))
    right = all(row["right"] for row in data.get("suspects", ()))
    return 1 if wrong or not right or data.get("not_run") or "interrupted" in data else 0


if __name__ == "__main__":
    status = main()
    # The driver takes back with the process what would take long to give back piece by piece.
    os._exit(status)
