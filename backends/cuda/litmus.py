"""Litmus programs on the device: launches of many instances, and what makes them overlap.

Whether roles of one instance meet in time depends on how the grid is laid out, on waits and on other traffic (`Knobs`),
and what serves one program starves another: a release makes writers slower, and readers then come too early. So longer
runs are tuned first: short launches with many settings, of which those are kept that show each outcome of threads one
after the other, and also the outcomes that these do not give. A run reports the shares of both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, permutations
from math import log

import numpy as np

from halfulp.adapters.protocol import LitmusOptions, LitmusRun
from halfulp.backends.cuda.driver import Timer, device
from halfulp.backends.cuda.litmus_knobs import PORTFOLIO, Knobs, drawn, varied
from halfulp.backends.cuda.litmus_launch import Kernel, Launches, workspace
from halfulp.oracle.memory.program import Outcome

TUNED = 1 << 22
"""Runs of at least so many instances are tuned first."""

CANDIDATES, REFINED, KEPT = 48, 24, 4
"""Settings tried at random, then around the best ones; and how many share the run."""

ORDERS_TRIED = 24
"""Orders of the threads of which the outcome is found by running them one after the other."""


@dataclass(frozen=True)
class Overlap:
    """How the threads of a run met.

    Attributes:
        sequential: the share of each outcome that threads give which run one after the other.
        interleaved: the share of all other outcomes.
    """

    sequential: Mapping[Outcome, float]
    interleaved: float

    @property
    def balance(self) -> float:
        """The geometric mean of all shares, each taken as at least 1e-5: 0.33 at most with two and the rest."""
        shares = (*self.sequential.values(), self.interleaved)
        return float(np.exp(sum(log(max(share, 1e-5)) for share in shares) / len(shares)))


class Litmus:
    """A compiled litmus program."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._tuned: dict[tuple[str, str], list[Knobs]] = {}

    def run(self, options: LitmusOptions) -> LitmusRun:
        """Run it; see `LitmusOptions`. ``stress`` says where short runs begin; longer ones are tuned."""
        if options.instances < TUNED:
            settings = [self._asked(knobs, options) for knobs in PORTFOLIO]
        else:
            key = (options.placement, options.synchronisation)
            if key not in self._tuned:
                self._tuned[key] = self.tune(options)
            settings = self._tuned[key]
        return self.run_with(settings, options)

    def run_with(self, settings: Sequence[Knobs], options: LitmusOptions) -> LitmusRun:
        """Run it with these settings, in turns of as many launches as make the instances."""
        share = -(-options.instances // len(settings))
        generator = np.random.Generator(np.random.PCG64(options.seed))
        space = workspace()
        space.clear()
        start = time.perf_counter()
        for knobs in settings:
            Launches(self.kernel, knobs, options.placement, generator).repeat(-(-share // (1 << knobs.size)))
        device().synchronise()
        seconds = time.perf_counter() - start
        histogram = self.kernel.histogram()
        overlap = self.overlap(histogram)
        notes = {
            "one after the other": " ".join(f"{share:.2%}" for share in overlap.sequential.values()),
            "interleaved": f"{overlap.interleaved:.2%}",
            "settings": "; ".join(map(str, settings)),
        }
        return LitmusRun(histogram, seconds, notes)

    @staticmethod
    def _asked(knobs: Knobs, options: LitmusOptions) -> Knobs:
        """A setting as far as the options have a say."""
        stress = options.stress
        return replace(
            knobs,
            steps=1 if options.synchronisation == "each" else 4,
            shuffle=stress.shuffle,
            spacing=stress.spacing,
            jitter=knobs.jitter + 32 * stress.delay,
        )

    @cached_property
    def one_by_one(self) -> tuple[Outcome, ...]:
        """The outcomes of threads that run one after the other: each in a launch of its own, in different orders."""
        found: dict[Outcome, None] = {}
        roles = range(len(self.kernel.program.threads))
        launches = Launches(self.kernel, Knobs(size=10, chunk=10), "apart", np.random.Generator(np.random.PCG64(0)))
        for order in islice(permutations(roles), ORDERS_TRIED):
            workspace().clear()
            launches.in_order(order)
            found |= dict.fromkeys(self.kernel.histogram())
        return tuple(found)

    def overlap(self, histogram: Mapping[Outcome, int]) -> Overlap:
        """How the threads met. Clears the counts the first time it is called."""
        total = max(1, sum(histogram.values()))
        shares = {outcome: histogram.get(outcome, 0) / total for outcome in self.one_by_one}
        return Overlap(shares, max(0.0, 1 - sum(shares.values())))

    # Tuning.

    def trial(
        self, knobs: Knobs, placement: str, generator: np.random.Generator, count: int = 1
    ) -> tuple[dict[Outcome, int], float]:
        """So many launches: their histogram, and the seconds that they took on the device."""
        launches = Launches(self.kernel, knobs, placement, generator)
        workspace().clear()
        with Timer() as timer:
            launches.repeat(count)
        return self.kernel.histogram(), timer.seconds

    def tune(
        self,
        options: LitmusOptions,
        score: Callable[[Mapping[Outcome, int], float], float] | None = None,
        launches: int = 1,
    ) -> list[Knobs]:
        """The best settings, best first.

        Args:
            score: of a histogram and the seconds that it took; by default all outcomes of threads one after the other
                and all others have to be common, and at a high rate.
            launches: with each setting.
        """
        generator = np.random.Generator(np.random.PCG64(options.seed))
        score = score or self.balanced_rate
        self.overlap({})  # before anything is counted
        steps = (1,) if options.synchronisation == "each" else (2, 4, 8)
        roles = len(self.kernel.program.threads)
        tried: dict[Knobs, float] = {}

        def attempt(knobs: Knobs) -> None:
            if knobs not in tried:
                histogram, seconds = self.trial(knobs, options.placement, generator, launches)
                tried[knobs] = score(histogram, seconds)

        for _ in range(CANDIDATES):
            attempt(drawn(generator, roles, steps))
        for _ in range(REFINED):
            best = sorted(tried, key=tried.__getitem__, reverse=True)[:KEPT]
            attempt(varied(best[int(generator.integers(len(best)))], generator, roles, steps))
        return sorted(tried, key=tried.__getitem__, reverse=True)[:KEPT]

    def balanced_rate(self, histogram: Mapping[Outcome, int], seconds: float) -> float:
        """How balanced the outcomes are, times the square root of the rate."""
        rate = sum(histogram.values()) / max(seconds, 1e-9)
        return self.overlap(histogram).balance * float(np.sqrt(rate))

    def showing(self, weak: Outcome) -> Callable[[Mapping[Outcome, int], float], float]:
        """A score for `tune`: how often a second an outcome shows that has these values; else what overlaps best."""
        values = set(weak)

        def score(histogram: Mapping[Outcome, int], seconds: float) -> float:
            count = sum(number for outcome, number in histogram.items() if values <= set(outcome))
            return count / max(seconds, 1e-9) + 1e-9 * self.balanced_rate(histogram, seconds)

        return score
