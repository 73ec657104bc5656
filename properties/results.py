"""What a trial produces: plain data, the same for the pytest report, the JSON report and the detection
table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Example:
    """One element that was judged forbidden.

    All values are bit patterns as hex text in the width of their format. ``got`` and ``allowed`` have one text for
    each output; several allowed values are joined by " or ", a range is written ``0x12..0x15``. ``distance_ulp``
    counts steps between neighbouring representable results (None for integers and NaN mismatches).
    """

    inputs: tuple[str, ...]
    got: tuple[str, ...]
    allowed: tuple[str, ...]
    distance_ulp: int | None = None


@dataclass
class Tally:
    """Counts of one id: a signature (or a property's program) in one mode at one optimisation level.

    ``id`` is ours: ``cast[f64->bf16]/array/O3``. ``state`` is ``"run"``, ``"unsupported"`` or ``"rejected"`` (the
    backend refused a program the language accepts) or ``"not run"``; ``reason`` says why for the last three.
    ``cases`` counts claimed elements per clause. ``evidence`` says how hard a run on many threads looked: see
    ``properties.litmus``.
    """

    id: str
    chapter: str
    state: str = "run"
    reason: str = ""
    allowed: int = 0
    forbidden: int = 0
    unspecified: int = 0
    deviating: int = 0
    no_claim: int = 0
    max_distance: int | None = None
    max_argument: tuple[str, ...] = ()
    seconds: float = 0.0
    cases: dict[str, int] = field(default_factory=dict)
    evidence: dict[str, float] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """Results that a claim was made about."""
        return self.allowed + self.forbidden + self.unspecified


@dataclass
class Finding:
    """A breach: what a failure text is written from.

    Attributes:
        id: as in `Tally`.
        clause: id of the clause broken, e.g. ``intent:5.2-d``: the one that governs most of the forbidden results.
        clauses: how many forbidden results each clause governs; an element may be governed by several.
        kernel: listing of the program.
        dtypes: formats of the inputs, then of the outputs.
        forbidden, judged: how many elements of the run were forbidden, of how many with a claim.
        simplest: the failing element after minimisation.
        worst: the failing element of largest distance in the whole run.
        suspects: named wrong rules that explain the failures, best first, each with the share of failing elements
            explained and of passing ones contradicted.
        token: the replay token.
        message: for failures that are not about a value (accepted what must be rejected, crash, wrong shape).
    """

    id: str
    clause: str
    kernel: str = ""
    dtypes: tuple[str, ...] = ()
    forbidden: int = 0
    judged: int = 0
    simplest: Example | None = None
    worst: Example | None = None
    suspects: list[tuple[str, float, float]] = field(default_factory=list)
    token: str = ""
    message: str = ""
    clauses: dict[str, int] = field(default_factory=dict)


@dataclass
class Trial:
    """All that one pytest item (one signature, one rejection table, one hypothesis test) found."""

    tallies: list[Tally] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def judged(self) -> int:
        """Results of all tallies that a claim was made about."""
        return sum(tally.judged for tally in self.tallies)
