"""Gathers the trials on the process that reports, and reports them.

Registered as a plugin of its own, because the hook that delivers a test report knows nothing of the run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from halfulp.certify.outcome import Outcome, Trouble, trial_from_plain
from halfulp.certify.report import json_report, summary_lines, write_json

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

CARRIER = "halfulp"
"""The attribute of a test report by which a trial travels; pytest carries it between processes."""

_CRASHED = "???"
"""What pytest-xdist gives as the phase of an item whose worker process died."""


class Recorder:
    """Hooks of pytest, on the process that reports."""

    def __init__(self, outcome: Outcome, json: Path | None) -> None:
        self.outcome = outcome
        self.json = json
        self.started = time.perf_counter()
        self.unwritten = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        carried: dict[str, Any] | None = getattr(report, CARRIER, None)
        if carried is None and report.when != _CRASHED:
            return
        trial = carried["trial"] if carried else None
        if trial is not None:
            self.outcome.add(trial_from_plain(trial))
        if report.skipped:
            self._trouble(report, "skipped")
        elif report.failed and not (trial and trial["findings"]):
            self._trouble(report, "error")
        elif report.passed and report.when == "call" and trial is None:
            self._trouble(report, "no result")

    def _trouble(self, report: pytest.TestReport, what: str) -> None:
        reason = _reason(report) if what != "no result" else "it passed without reporting a trial"
        self.outcome.troubles.append(Trouble(report.nodeid, what, reason))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcome.troubles.append(Trouble(report.nodeid, "error", _reason(report)))

    def finish(self, session: pytest.Session, left_out: int) -> None:
        """Close the outcome, write the JSON report and settle the exit status."""
        outcome = self.outcome
        outcome.deselected = left_out
        outcome.seconds = time.perf_counter() - self.started
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            outcome.stopped = "interrupted"
        elif session.exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            outcome.stopped = "internal error"
        elif session.shouldfail or session.shouldstop:
            outcome.stopped = str(session.shouldfail or session.shouldstop)
        if self.json is not None:
            try:
                write_json(self.json, json_report(outcome))
            except OSError as error:
                self.unwritten = f"the JSON report could not be written to {self.json}: {error.strerror}"
        fine = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if fine and (self.unwritten or not outcome.certified):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        terminalreporter.section("halfulp", sep="=")
        columns = shutil.get_terminal_size(fallback=(100, 24)).columns
        for line in summary_lines(self.outcome, min(max(columns, 80), 110)):
            terminalreporter.write_line(line)
        if self.json is not None:
            terminalreporter.write_line("")
            terminalreporter.write_line(self.unwritten or f"JSON report: {self.json}", red=bool(self.unwritten))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """The verdict is the last line, below all that pytest has to say."""
        yield
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            fine = self.outcome.certified
            terminal.write_line(self.outcome.verdict, bold=True, green=fine, red=not fine)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why an item failed or was skipped, in one line."""
    details: Any = report.longrepr
    if isinstance(details, tuple):
        text = str(details[2]).removeprefix("Skipped: ")
    elif hasattr(details, "reprcrash") and details.reprcrash is not None:
        text = str(details.reprcrash.message)
    else:
        text = str(getattr(details, "longrepr", details) or getattr(report, "wasxfail", ""))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason given"
