"""The pytest plugin that puts a backend on trial.

A *property* is a pytest item that asks for the fixture ``report_trial``. Properties run only when a backend is named;
otherwise they are deselected, and the summary says so. What they find travels on the test reports, so that nothing is
lost between the worker processes of pytest-xdist and the process that reports.
"""

from __future__ import annotations

import argparse
import platform
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import hypothesis
import pytest

import halfulp
import halfulp.properties
from halfulp.adapters.discovery import AdapterError, load
from halfulp.adapters.protocol import Adapter
from halfulp.certify import entrypoint, ledger
from halfulp.certify.failure import failure_text
from halfulp.certify.ledger import LedgerError
from halfulp.certify.ledger_keeper import Keeper
from halfulp.certify.outcome import Outcome, trial_to_plain
from halfulp.certify.recorder import CARRIER, Recorder
from halfulp.certify.sweep.judges import Enclosures
from halfulp.oracle.clauses import CLAUSES, canonical_id
from halfulp.oracle.functions import source
from halfulp.properties.plan import Depth, Plan
from halfulp.properties.results import Trial

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

DIALECTS = ("intent",)
DEPTHS = ("quick", "standard", "deep")
LEFT_OUT = "halfulp_left_out"
"""Key under which a worker of pytest-xdist says how many properties it did not run."""


@dataclass(frozen=True)
class Settings:
    """The options of a run, checked."""

    backend: str
    plan: Plan
    dialect: str
    clauses: tuple[str, ...]
    json: Path | None
    ledger: Path | None = None
    update_ledger: bool = False
    accept_regression: str | None = None


@dataclass
class _State:
    """What the plugin knows in one process.

    Attributes:
        settings: None where no backend is named.
        adapter: the backend, once it is loaded.
        left_out: properties that are not run: all of them where no backend is named, else those deselected.
        profile: the hypothesis profile to return to; empty where it was not changed.
    """

    settings: Settings | None
    adapter: Adapter | None = None
    left_out: int = 0
    profile: str = ""


_STATE = pytest.StashKey[_State]()
_TRIAL = pytest.StashKey[Trial]()


# Options.


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not pluginmanager.is_registered(entrypoint):
        pluginmanager.register(entrypoint, "halfulp")
    # A conftest that names this plugin is read after all others that could claim the short names.
    if any(name.endswith("conftest.py") for name, _ in pluginmanager.list_name_plugin()):
        _add_short_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, None, None]:
    """With ``-p`` this plugin comes before every conftest: the short names are for them to take first."""
    yield
    _add_short_options(parser)


def _add_short_options(parser: pytest.Parser) -> None:
    """Add ``--backend`` and the others, except those that somebody else has defined."""
    group = parser.getgroup(entrypoint.GROUP)
    for setting in entrypoint.SETTINGS:
        if setting.bare and not _taken(parser, setting.short):
            try:
                group.addoption(setting.short, **{**setting.attributes(), "help": f"short for {setting.twin}"})
            except (ValueError, argparse.ArgumentError):
                continue


def _taken(parser: pytest.Parser, option: str) -> bool:
    probe = f"{option}=x"
    try:
        return probe not in parser.parse_known_and_unknown_args([probe])[1]
    except (pytest.UsageError, SystemExit):
        return True


def _spelling(config: pytest.Config, name: str) -> str:
    """How an option can be written here: in its long form where the short one is somebody else's."""
    setting = next(setting for setting in entrypoint.SETTINGS if setting.name == name)
    theirs = hasattr(config.option, name.replace("-", "_"))
    return setting.short if setting.bare and not theirs else setting.twin


def _read_settings(config: pytest.Config) -> Settings | None:
    """The checked options; None where no backend is named.

    Raises:
        pytest.UsageError: an option has a value that it cannot have.
    """
    given = {s.name: getattr(config.option, s.dest, None) for s in entrypoint.SETTINGS}
    backend = given["backend"]
    if backend is None:
        idle = [s for s in entrypoint.SETTINGS if given[s.name] is not None]
        if idle:
            raise pytest.UsageError(
                f"halfulp: {_spelling(config, idle[0].name)} says how to try a backend, but no backend is named; "
                f"add {_spelling(config, 'backend')}=NAME (`halfulp backends` lists them)"
            )
        return None
    if not backend.strip():
        raise pytest.UsageError("halfulp: --backend is empty; name one, e.g. --backend=cpu")
    depth = _choice("depth", given["depth"] or "standard", DEPTHS)
    return Settings(
        backend=backend,
        plan=Plan(seed=_seed(given["seed"]), depth=cast("Depth", depth)),
        dialect=_choice("dialect", given["dialect"] or "intent", DIALECTS),
        clauses=_clause_globs(given["clauses"]),
        json=_json_path(config, given["json"]),
        **_ledger_settings(config, given),
    )


def _ledger_settings(config: pytest.Config, given: Mapping[str, Any]) -> dict[str, Any]:
    reason, path = given["accept-regression"], given["ulp-ledger"]
    update = given["update-ledger"] is not None or reason is not None
    if path is None:
        if update:
            name = "update-ledger" if reason is None else "accept-regression"
            raise pytest.UsageError(f"halfulp: --{name} changes a ledger; name it with --ulp-ledger=FILE")
        return {}
    if reason is not None and not reason.strip():
        raise pytest.UsageError("halfulp: --accept-regression is empty; say why the error may rise")
    return {"ledger": config.invocation_params.dir / path, "update_ledger": update, "accept_regression": reason}


def _keeper(settings: Settings) -> Keeper | None:
    """What holds the run against the ledger; None where none is named."""
    path = settings.ledger
    if path is None:
        return None
    try:
        creates = settings.update_ledger and not path.exists() and path.parent.is_dir()
        entries = {} if creates else ledger.read(path)
    except LedgerError as error:
        raise pytest.UsageError(f"halfulp: --ulp-ledger: {error}") from None
    return Keeper(path, entries, settings.update_ledger, settings.accept_regression, settings.plan.enumerate_up_to)


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        known = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
        raise pytest.UsageError(f"halfulp: --{name}={value}: there is no such {name}; choose {known}")
    return value


def _seed(value: str | None) -> int:
    if value is None:
        return 0
    if value == "random":
        return secrets.randbelow(2**32)
    try:
        return int(value, 0)
    except ValueError:
        raise pytest.UsageError(
            f"halfulp: --seed={value}: a seed is an integer (any size), or `random` to have one drawn and printed"
        ) from None


def _clause_globs(value: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    globs = tuple(part.strip() for part in value.split(",") if part.strip())
    if not globs:
        raise pytest.UsageError("halfulp: --clauses is empty; give one or more patterns, e.g. --clauses=5.2*,4-b")
    for glob in globs:
        if not any(clause_matches(glob, clause) for clause in CLAUSES):
            raise pytest.UsageError(
                f"halfulp: --clauses={glob}: no clause has such an id; ids look like 5.2-g or intent:5.2-g "
                "(`halfulp clauses` lists them)"
            )
    return globs


def clause_matches(glob: str, clause: str) -> bool:
    """Whether a pattern selects a clause; both may stand with or without ``intent:``."""
    return fnmatchcase(canonical_id(clause), canonical_id(glob))


def _json_path(config: pytest.Config, value: str | None) -> Path | None:
    if value is None:
        return None
    path = config.invocation_params.dir / value
    if path.is_dir():
        raise pytest.UsageError(f"halfulp: --halfulp-json={value}: that is a folder; name a file in it")
    if not path.parent.is_dir():
        raise pytest.UsageError(f"halfulp: --halfulp-json={value}: there is no folder {path.parent}; create it first")
    return path


# Start of a run.


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "clauses(*ids): clauses of the language that the property checks (halfulp); see --clauses"
    )
    settings = _read_settings(config)
    state = _State(settings)
    config.stash[_STATE] = state
    if settings is None:
        return
    _leave_out_own_tests(config)
    _use_tables(config)
    _register_hypothesis_profiles()
    if not config.getoption("--hypothesis-profile", None):
        state.profile = _load_hypothesis_profile(settings.plan.depth)
    if not _is_worker(config):
        config.option.halfulp_seed = str(settings.plan.seed)  # a drawn seed is the same on every worker
        adapter = _adapter(config)
        outcome = Outcome(
            backend=settings.backend,
            dialect=settings.dialect,
            seed=settings.plan.seed,
            depth=settings.plan.depth,
            clauses=settings.clauses,
            facts={name: fact for name, fact in vars(adapter.facts).items() if fact is None or isinstance(fact, bool)},
            versions=_versions(adapter.facts.versions),
        )
        if not config.option.collectonly:
            config.pluginmanager.register(Recorder(outcome, settings.json), "halfulp-recorder")
            keeper = _keeper(settings)
            if keeper is not None:
                config.pluginmanager.register(keeper, "halfulp-ledger")


def _use_tables(config: pytest.Config) -> None:
    """Exact values of functions come from proven tables where there are some, read or built at their first use."""
    tables = ExitStack()
    tables.enter_context(source.use(Enclosures()))
    config.add_cleanup(tables.close)


def _leave_out_own_tests(config: pytest.Config) -> None:
    """In a clone ``pytest --backend=NAME`` without a path runs the properties, not the tests of the suite itself.

    They are those of the package that is imported: where it is installed, and not from this clone, its own copy.
    """
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        folder = Path(halfulp.properties.__path__[0])
        named = [arg for arg in config.args if Path(arg).parts[-2:] == ("halfulp", "properties")]
        same = [arg for arg in config.args if Path(arg).resolve() == folder.resolve()]
        config.args = same or (named and [str(folder)]) or config.args


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _register_hypothesis_profiles() -> None:
    """``halfulp-ci`` and ``halfulp-deep``, also called ``deep``; ``ci`` is hypothesis' own: seeded, no database.

    No deadline, since a first compilation is slow, and no example database, since failures have replay tokens.
    """
    for name, examples in (("halfulp-ci", 50), ("halfulp-deep", 2000), ("deep", 2000)):
        hypothesis.settings.register_profile(
            name, max_examples=examples, deadline=None, database=None, print_blob=False
        )


def _load_hypothesis_profile(depth: Depth) -> str:
    """Load the profile of a depth, and return the name of the profile before it."""
    before = hypothesis.settings.get_current_profile_name()
    hypothesis.settings.load_profile("halfulp-deep" if depth == "deep" else "halfulp-ci")
    return before


def pytest_unconfigure(config: pytest.Config) -> None:
    state = config.stash.get(_STATE, None)
    if state is not None and state.profile:
        hypothesis.settings.load_profile(state.profile)


def _versions(of_adapter: Mapping[str, str]) -> dict[str, str]:
    versions = {"halfulp": halfulp.__version__, "python": platform.python_version()}
    for package in ("numpy", "hypothesis"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    versions["machine"] = f"{platform.system().lower()} {platform.machine()}"
    return {**versions, **{str(name): str(text) for name, text in of_adapter.items()}}


def _adapter(config: pytest.Config) -> Adapter:
    """The backend of this process, loaded once."""
    state = config.stash[_STATE]
    if state.adapter is None:
        assert state.settings is not None
        try:
            state.adapter = load(state.settings.backend)
        except AdapterError as error:
            raise pytest.UsageError(f"halfulp: --backend={state.settings.backend}: {error}") from None
    return state.adapter


def pytest_report_header(config: pytest.Config) -> str | None:
    settings = config.stash[_STATE].settings
    if settings is None:
        return None
    clauses = f", clauses {', '.join(settings.clauses)}" if settings.clauses else ""
    plan = settings.plan
    return (
        f"halfulp {halfulp.__version__}: backend {settings.backend}, dialect {settings.dialect}, "
        f"seed {plan.seed}, depth {plan.depth}{clauses}"
    )


# Selection.


def _is_property(item: pytest.Item) -> bool:
    return "report_trial" in getattr(item, "fixturenames", ())


def _clauses_of(item: pytest.Item) -> list[str]:
    return [clause for mark in item.iter_markers("clauses") for clause in mark.args]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    state = config.stash[_STATE]
    dropped: list[pytest.Item] = []
    if state.settings is None:
        dropped = [item for item in items if _is_property(item)]
    else:
        for item in items:
            if not _is_property(item):
                continue
            clauses = _clauses_of(item)
            globs = state.settings.clauses
            if globs and not any(clause_matches(glob, clause) for glob in globs for clause in clauses):
                dropped.append(item)
            elif hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
                hypothesis.seed(state.settings.plan.seed)(item.obj)  # type: ignore[attr-defined]
    if dropped:
        gone = set(map(id, dropped))
        items[:] = [item for item in items if id(item) not in gone]
        config.hook.pytest_deselected(items=dropped)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if _is_property(item):
            item.config.stash[_STATE].left_out += 1


# Fixtures.


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Adapter:
    """The backend on trial."""
    return _adapter(request.config)


@pytest.fixture(scope="session")
def plan(request: pytest.FixtureRequest) -> Plan:
    """The seed and the depth of the run."""
    settings = request.config.stash[_STATE].settings
    assert settings is not None
    return settings.plan


@pytest.fixture
def report_trial(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[[Trial], None]:
    """``report_trial(trial)`` records what a property found, and fails the item if that is a breach."""
    settings = request.config.stash[_STATE].settings
    assert settings is not None
    stash = request.node.stash

    def report(trial: Trial) -> None:
        so_far = stash.setdefault(_TRIAL, Trial())
        so_far.tallies.extend(trial.tallies)
        so_far.findings.extend(trial.findings)
        for name in ("allowed", "forbidden", "unspecified", "no_claim"):
            record_property(f"halfulp.{name}", sum(getattr(tally, name) for tally in trial.tallies))
        for finding in trial.findings:
            record_property("halfulp.finding", f"{finding.id} {finding.clause}")
            record_property("halfulp.replay", finding.token)
        if trial.findings:
            texts = [failure_text(finding, settings.backend) for finding in trial.findings]
            pytest.fail("\n\n\n".join(texts), pytrace=False)

    return report


# Reports.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put on each report of a property what the reporting process has to know."""
    report = yield
    if _is_property(item) and item.config.stash[_STATE].settings is not None:
        trial = item.stash.get(_TRIAL, None) if report.when == "call" else None
        setattr(report, CARRIER, {"trial": None if trial is None else trial_to_plain(trial)})
    return report


# End of a run.


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    state = config.stash[_STATE]
    if _is_worker(config):
        config.workeroutput[LEFT_OUT] = state.left_out  # type: ignore[attr-defined]
    recorder = config.pluginmanager.get_plugin("halfulp-recorder")
    keeper = config.pluginmanager.get_plugin("halfulp-ledger")
    if isinstance(keeper, Keeper) and isinstance(recorder, Recorder) and state.adapter is not None:
        keeper.replay(state.adapter, recorder.outcome)
    close = getattr(state.adapter, "close", None)
    if close is not None:
        close()
    if isinstance(recorder, Recorder):
        recorder.finish(session, state.left_out)
        if isinstance(keeper, Keeper):
            keeper.finish(session, recorder.outcome)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The end of a worker of pytest-xdist: every worker collects, and leaves out, the same items."""
    state = node.config.stash[_STATE]
    state.left_out = max(state.left_out, getattr(node, "workeroutput", {}).get(LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    state = config.stash[_STATE]
    if state.settings is None and state.left_out:
        option = _spelling(config, "backend")
        theirs = "" if option == "--backend" else " (--backend is an option of this project)"
        terminalreporter.write_line(
            f"halfulp: {state.left_out:,} properties were not run, because no backend is named; "
            f"put one on trial with {option}=NAME, e.g. {option}=cpu{theirs}"
        )
