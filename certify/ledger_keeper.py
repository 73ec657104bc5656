"""Holds a run against the ledger: a plugin of pytest on the process that reports."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from halfulp.adapters.protocol import Adapter, Options
from halfulp.certify import ledger, ledger_text
from halfulp.certify.device import device_class
from halfulp.certify.ledger import Change, Difference, Entries, Entry, Key, LedgerError
from halfulp.certify.outcome import Outcome
from halfulp.certify.show import plural
from halfulp.certify.sweep.judges import SetJudge
from halfulp.certify.sweep.known import known_inputs
from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature
from halfulp.properties import modes

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


@dataclass
class Keeper:
    """Compares at the end of a run, and writes where it was asked to.

    Attributes:
        path: the ledger.
        entries: what stands there.
        update: write what is new or better.
        reason: accept what is worse, because of this. None: nothing is accepted.
        enumerated: see `ledger.measure`.
    """

    path: Path
    entries: Entries
    update: bool
    reason: str | None
    enumerated: int
    lines: list[str] = field(default_factory=list)
    verdict: str = ""
    failed: bool = False
    annotations: list[str] = field(default_factory=list)
    measured: Entries = field(default_factory=dict)
    signatures: dict[Key, Signature] = field(default_factory=dict)
    not_measured: dict[Key, str] = field(default_factory=dict)

    def replay(self, adapter: Adapter, outcome: Outcome) -> None:
        """Take what the run measured, and try known worst inputs and the arguments of the ledger besides."""
        device = device_class(outcome.versions)
        self.measured, self.signatures, self.not_measured = ledger.measure(
            outcome.tallies, device, outcome.backend, outcome.versions, self.enumerated
        )
        for key, signature in self.signatures.items():
            found = self.measured.get(key)
            if found is not None and key not in self.not_measured:
                points = [one.operands for one in known_inputs(signature)]
                old = self.entries.get(key)
                if old is not None and len(old.argument) == len(signature.args):
                    points.append(tuple(int(text, 16) for text in old.argument))
                self.measured[key] = _with_points(adapter, signature, points, found)

    def finish(self, session: pytest.Session, outcome: Outcome) -> None:
        """Compare, write, and settle the exit status."""
        differences = ledger.compare(self.entries, self.measured)
        partial = bool(outcome.deselected or outcome.stopped or outcome.troubles)
        by_change: dict[Change, list[Difference]] = {change: [] for change in Change}
        for difference in differences:
            by_change[difference.change].append(difference)
        writing = self.update and not ledger.in_ci()
        rises, missing = by_change[Change.RISE], by_change[Change.MISSING]
        self._rises(rises, accepted=writing and self.reason is not None)
        if not writing:
            self._missing(missing)
            self._new_device(by_change[Change.NEW_DEVICE])
        if not partial:
            self._unused(by_change[Change.UNUSED])
        if self.update and ledger.in_ci():
            self.lines.append("nothing is written, because CI is set; run with --update-ledger elsewhere, and commit")
        if writing:
            self._write(differences)
        failing = [] if writing and self.reason is not None else rises
        self.failed = self.failed or bool(failing) or (bool(missing) and not writing)
        self.annotations = [ledger_text.annotation(difference) for difference in failing]
        self.verdict = self._verdict(len(failing), 0 if writing else len(missing), by_change)
        fine = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if self.failed and fine:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _rises(self, rises: Sequence[Difference], *, accepted: bool) -> None:
        for difference in rises:
            self.lines += ledger_text.regression_lines(difference)
        if rises and accepted:
            self.lines.append(f"accepted: {self.reason}")
        elif rises:
            self.lines.append("mend it, or accept it where it was intended: --accept-regression 'REASON', and commit")

    def _missing(self, missing: Sequence[Difference]) -> None:
        if missing:
            self.lines.append(f"{_entries(len(missing))} missing; run with --update-ledger and commit, or add:")
            self.lines += [ledger.line_of(one.new) + "," for one in missing if one.new is not None]

    def _new_device(self, new: Sequence[Difference]) -> None:
        if new:
            key = new[0].key
            self.lines.append(
                f"warning: the ledger has nothing of {key.backend} on the device class {key.device}; run with "
                "--update-ledger there, or add:"
            )
            self.lines += [ledger.line_of(one.new) + "," for one in new if one.new is not None]

    def _unused(self, unused: Sequence[Difference]) -> None:
        for one in unused:
            why = self.not_measured.get(one.key, "no longer measured")
            self.lines.append(
                f"warning: unused entry {one.key.what} on {one.key.backend} ({why}); delete its line, if that is meant"
            )

    def _write(self, differences: Sequence[Difference]) -> None:
        wanted = [one for one in differences if one.key not in self.not_measured]
        left = [one for one in differences if one.key in self.not_measured and one.new is not None]
        entries = ledger.updated(self.entries, wanted, self.reason)
        for one in left:
            self.lines.append(f"not written: {one.key.what} ({self.not_measured[one.key]})")
        if entries == self.entries and self.path.exists():
            return
        try:
            ledger.write(self.path, entries)
        except LedgerError as error:
            self.lines.append(str(error))
            self.failed = True
            return
        changed = sum(entries[key] != self.entries.get(key) for key in entries)
        self.lines.append(f"{_entries(changed)} written to {self.path}")

    def _verdict(self, rises: int, missing: int, by_change: dict[Change, list[Difference]]) -> str:
        objections = [f"{plural(rises, 'regression')}"] if rises else []
        if missing:
            objections.append(f"{_entries(missing)} missing")
        if not self.measured:
            return "ULP LEDGER: nothing was measured (no operation with a tolerance was run)"
        if objections:
            return "ULP LEDGER BROKEN: " + ", ".join(objections)
        better = len(by_change[Change.FALL])
        fell = f", {better:,} lower" if better else ""
        return f"ULP LEDGER KEPT: {plural(len(self.measured), 'maximum').replace('maximums', 'maxima')} measured{fell}"

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        lines = [*self.lines, *(self.annotations if os.environ.get("GITHUB_ACTIONS") == "true" else ())]
        if lines:
            terminalreporter.section("ulp ledger", sep="=")
        for line in lines:
            terminalreporter.write_line(line)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """The verdict on the ledger is the last line, below that on the backend."""
        yield
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            good = not self.failed
            terminal.write_line(self.verdict, bold=True, green=good, red=not good)


def _entries(count: int) -> str:
    return f"{count:,} {'entry is' if count == 1 else 'entries are'}"


def _with_points(adapter: Adapter, signature: Signature, points: Sequence[tuple[int, ...]], found: Entry) -> Entry:
    """The measurement with some inputs more, run as arrays, or as constants where it is about those."""
    folded = found.key.mode.endswith(ledger.FOLDED)
    if not points or (folded and len(signature.args) > 1):
        return found
    columns = [np.array([point[i] for point in points], fmt.storage) for i, fmt in enumerate(signature.formats)]
    kernel = operation(signature.op).kernel(signature)
    if folded:
        kernel = modes.with_constants(kernel, 0, columns[0])
    (program,) = adapter.compile([kernel], Options(max(adapter.opt_levels)))
    if not callable(program):
        return found
    try:
        outputs = program(*([] if folded else columns))
    except Exception:  # a program that breaks off is a finding of the properties, not of the ledger
        return found
    got = np.concatenate([np.reshape(output, -1) for output in outputs])
    part = SetJudge(signature).judge(columns, got)
    inputs = found.inputs + (0 if found.exhaustive else len(points))
    if part.max_distance <= found.max_distance:
        return replace(found, inputs=inputs)
    argument = tuple(fmt.hex(code) for fmt, code in zip(signature.formats, part.max_argument, strict=True))
    return replace(found, max_distance=part.max_distance, argument=argument, inputs=inputs)
