"""The pytest plugin, on stub adapters: one that is right and ones that are wrong in known ways."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import halfulp
import halfulp.properties

pytest_plugins = ["pytester"]

ADAPTERS = '''
import numpy as np

from halfulp.adapters.protocol import Facts, Rejected, Unsupported
from halfulp.oracle.judge import evaluate
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.ops.record import Refused
from halfulp.oracle.typing import check


class Right:
    """Computes every kernel as the language says."""

    name = "right"
    opt_levels = (0,)
    facts = Facts(fuses_multiply_add=False, versions={"stub": "1.2"})
    closed = 0

    def compile(self, programs, options):
        return [self.one(program) for program in programs]

    def one(self, program):
        if not isinstance(program, Kernel):
            return Unsupported("no front end")
        refused = check(program)
        if isinstance(refused, Refused):
            return Rejected(refused.reason)
        return lambda *inputs: self.run(program, inputs)

    def run(self, program, inputs):
        return evaluate(program, inputs)


class Off(Right):
    """Results in bf16 are one code too high."""

    def run(self, program, inputs):
        types = program.output_types
        outputs = evaluate(program, inputs)
        return [np.asarray(o + o.dtype.type(t.dtype == "bf16")) for o, t in zip(outputs, types)]


class Narrow(Right):
    """Offers no bf16."""

    def one(self, program):
        if any(t.dtype == "bf16" for t in program.output_types):
            return Unsupported("no bf16 on this device")
        return super().one(program)


class Dies(Right):
    """Takes the whole process down."""

    def run(self, program, inputs):
        import os

        os._exit(3)
'''

PROPERTIES = """
import pytest

from halfulp.oracle.ops import operation
from halfulp.oracle.ops.record import Signature
from halfulp.properties.trial import try_signature

SIGNATURES = [Signature("cast", ("f32",), "bf16"), Signature("cast", ("f32",), "f16"), Signature("not", ("u8",), "u8")]


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(s, id=s.id, marks=pytest.mark.clauses(*operation(s.op).clauses(s)))
        for s in SIGNATURES
    ],
)
def test_values(signature, backend, plan, report_trial):
    report_trial(try_signature(backend, signature, plan))


def test_of_the_project():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the stubs and three properties, and nothing of this checkout's configuration."""
    pytester.makepyfile(stubs=ADAPTERS, test_properties=PROPERTIES)
    pytester.makeini("[pytest]\n")
    monkeypatch.syspath_prepend(str(pytester.path))
    package = Path(halfulp.__path__[0]).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), str(package)]))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


def certify(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "halfulp.certify.plugin", "-p", "no:cacheprovider", *options)


def test_a_right_backend_is_certified(project: pytest.Pytester) -> None:
    result = certify(project, "--backend=stubs:Right", "--depth=quick", "--seed=7")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "halfulp *: backend stubs:Right, dialect intent, seed 7, depth quick",
            "run       dialect intent, seed 7, depth quick, *",
            "declares *fuses multiply add: no",
            "versions  halfulp *",
            "* stub 1.2",
            "chapter *signatures  programs *allowed  forbidden *no claim *unsup. *time",
            "4 *Integer *1 *",
            "5.2 *",
            "all *3 *",
            "CERTIFIED: 0 forbidden results among * judged, * programs",
        ]
    )
    assert max(map(len, result.outlines)) <= 110


def test_a_wrong_backend_is_not(project: pytest.Pytester) -> None:
    result = certify(
        project, "--backend=stubs:Off", "--depth=quick", "--halfulp-json=report.json", "--junitxml=report.xml"
    )
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "intent:5.2-d: *",
            "cast[[]f32->bf16]/array/O0: * of * results are forbidden.*",
            "    %0 = input f32[[]n]",
            "    %1 = cast %0 : bf16",
            "    return %1",
            "simplest   input     f32 0x*(*)",
            "           got       bf16 0x*(*)",
            "           allowed   bf16 0x*(*)",
            "           distance  1 ulp",
            "suspects   *",
            "replay     halfulp replay hu1-* --backend stubs:Off",
            "breaches, by clause and explanation*",
            "  intent:5.2-d: * wrong results*",
            "NOT CERTIFIED: * forbidden results in * programs",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*def test_values*")

    report = json.loads(Path("report.json").read_text())
    assert report["schema"] == "halfulp-report-1"
    assert report["certified"] is False
    assert report["totals"]["forbidden"] == sum(tally["forbidden"] for tally in report["tallies"]) > 0
    assert report["claims"]["intent:5.2-d"] > 0
    (finding,) = report["findings"]
    assert finding["clause"] == "intent:5.2-d"
    assert finding["token"].startswith("hu1-")

    properties = {p.get("name"): p.get("value") for p in ElementTree.parse("report.xml").iter("property")}
    assert properties["halfulp.replay"] == finding["token"]
    assert "cast[f32->bf16]" in str(properties["halfulp.finding"])


def test_workers_lose_nothing(project: pytest.Pytester) -> None:
    """Two processes report what one does; the counts and the findings are the same."""
    counts = []
    for name, workers in (("one.json", ("-n0",)), ("two.json", ("-n2",))):
        certify(project, "--backend=stubs:Off", "--depth=quick", f"--halfulp-json={name}", *workers)
        report = json.loads(Path(name).read_text())
        for tally in report["tallies"]:
            del tally["seconds"]
        counts.append((report["tallies"], report["findings"], report["certified"], report["deselected"]))
    assert counts[0] == counts[1]


def test_a_worker_that_dies_is_reported(project: pytest.Pytester) -> None:
    result = certify(project, "--backend=stubs:Dies", "--depth=quick", "-n1", "--clauses=4-g", "--max-worker-restart=0")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["NOT CERTIFIED: 1 property ended without a verdict*"])


def test_without_a_backend_the_properties_are_left_out_and_named(project: pytest.Pytester) -> None:
    for workers in ("-n0", "-n1"):
        result = certify(project, workers)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["halfulp: 3 properties were not run, because no backend is named; *--backend=cpu"])


def test_what_a_backend_does_not_offer_is_named(project: pytest.Pytester) -> None:
    result = certify(project, "--backend=stubs:Narrow", "--depth=quick")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "* programs not offered by the backend",
            "  no bf16 on this device: cast[[]f32->bf16]/array/O0, *",
            "CERTIFIED: *",
        ]
    )


def test_a_run_that_claims_nothing_fails(project: pytest.Pytester) -> None:
    result = certify(project, "--backend=stubs:Narrow", "--depth=quick", "-k", "bf16")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "2 properties were left out by the selection on the command line.",
            "NOT CERTIFIED: nothing was claimed, so nothing was tested",
        ]
    )


def test_properties_without_a_verdict_are_named(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_properties=PROPERTIES
        + """
def test_raises(report_trial):
    raise RuntimeError("the property itself is broken")


def test_silent(report_trial):
    pass


def test_skipped(report_trial):
    pytest.skip("not on this machine")
"""
    )
    result = certify(project, "--backend=stubs:Right", "--depth=quick")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "1 property ended in an error",
            "  RuntimeError: the property itself is broken: *test_raises",
            "1 property ended without a result",
            "  it passed without reporting a trial: *test_silent",
            "1 property skipped",
            "  not on this machine: *test_skipped",
            "NOT CERTIFIED: 2 properties ended without a verdict",
        ]
    )


@pytest.mark.parametrize("glob", ["4-*", "intent:4-g", "1-a,4-g"])
def test_clauses_select(project: pytest.Pytester, glob: str) -> None:
    result = certify(project, "--backend=stubs:Off", "--depth=quick", f"--clauses={glob}")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["2 properties were left out *", f"CERTIFIED (only clauses {glob.replace(',', ', ')})*"]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend=nope"], "--backend=nope: there is no adapter 'nope'*"),
        (["--backend=stubs:Absent"], "--backend=stubs:Absent: *"),
        (["--backend="], "--backend is empty; *"),
        (["--backend=stubs:Right", "--depth=full"], "--depth=full: *choose quick, standard or deep"),
        (["--backend=stubs:Right", "--seed=x"], "--seed=x: a seed is an integer*"),
        (["--backend=stubs:Right", "--clauses=99*"], "--clauses=99*: no clause has such an id*"),
        (["--backend=stubs:Right", "--clauses=,"], "--clauses is empty*"),
        (["--backend=stubs:Right", "--dialect=flydsl"], "--dialect=flydsl: *choose intent"),
        (["--backend=stubs:Right", "--halfulp-json=no/x.json"], "--halfulp-json=no/x.json: there is no folder*"),
        (["--backend=stubs:Right", "--halfulp-json=."], "--halfulp-json=.: that is a folder*"),
        (["--seed=3"], "--seed says how to try a backend, but no backend is named*"),
    ],
)
def test_bad_options_are_explained(project: pytest.Pytester, options: list[str], message: str) -> None:
    result = certify(project, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: halfulp: {message}".replace("[", "[[]")])
    assert "Traceback" not in result.stderr.str()


def test_a_drawn_seed_is_printed(project: pytest.Pytester) -> None:
    result = certify(project, "--backend=stubs:Right", "--depth=quick", "--seed=random", "--clauses=4-g", "-n1")
    assert result.ret == 0
    header = next(line for line in result.outlines if line.startswith("halfulp "))
    seed = header.split("seed ")[1].split(",")[0]
    assert seed.isdigit()
    result.stdout.fnmatch_lines([f"run       dialect intent, seed {seed}, *"])


OWN_BACKEND = """
import pytest


def pytest_addoption(parser):
    parser.addoption("--backend", default="theirs")


@pytest.fixture
def their_backend(request):
    return request.config.getoption("--backend")
"""


@pytest.mark.parametrize("plugin", [(), ("-p", "halfulp.certify.plugin")], ids=["installed", "with -p"])
def test_a_project_with_a_backend_option_of_its_own(project: pytest.Pytester, plugin: tuple[str, ...]) -> None:
    """The long names always work, and the project's own option keeps its meaning."""
    project.makeconftest(OWN_BACKEND)
    project.makepyfile(test_theirs="def test_theirs(their_backend):\n    assert their_backend == 'mine'\n")
    result = project.runpytest_subprocess(
        *plugin,
        "--backend=mine",
        "--halfulp-backend=stubs:Right",
        "--halfulp-depth=quick",
        "-k",
        "theirs or u8",
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(["CERTIFIED: *"])


def test_hints_name_the_option_that_is_there(project: pytest.Pytester) -> None:
    project.makeconftest(OWN_BACKEND)
    plugin = ("-p", "halfulp.certify.plugin")
    result = project.runpytest_subprocess(*plugin, "--backend=mine")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*with --halfulp-backend=NAME, e.g. --halfulp-backend=cpu (--backend is an option *"])
    result = project.runpytest_subprocess(*plugin, "--backend=mine", "--seed=3")
    result.stderr.fnmatch_lines(["ERROR: halfulp: --seed says how to try a backend, *; add --halfulp-backend=NAME *"])


def test_a_conftest_can_name_the_plugin(project: pytest.Pytester) -> None:
    """The clone's own conftest does so, and ``-p`` may be given besides."""
    project.makeconftest('pytest_plugins = ["halfulp.certify.plugin"]\n')
    for extra in ((), ("-p", "halfulp.certify.plugin")):
        result = project.runpytest_inprocess(
            *extra, "-p", "no:cacheprovider", "--backend=stubs:Right", "--depth=quick", "--clauses=4-g"
        )
        assert result.ret == 0
        result.stdout.fnmatch_lines(["CERTIFIED *"])


def test_in_a_clone_the_properties_alone_are_tried(project: pytest.Pytester) -> None:
    """The suite's own tests run when no backend is named, or when they are."""
    properties = Path(halfulp.properties.__path__[0])
    project.makeini(f"[pytest]\ntestpaths = {properties} test_properties.py\naddopts = --import-mode=importlib\n")
    options = ("--backend=stubs:Right", "--depth=quick", "--collect-only", "-q")
    listing = certify(project, *options)
    assert listing.ret == 0
    assert "test_of_the_project" not in listing.stdout.str()
    assert "test_of_the_project" in certify(project, *options, "test_properties.py").stdout.str()
    assert "test_of_the_project" in certify(project, "--collect-only", "-q").stdout.str()


def test_in_a_clone_an_installed_package_brings_its_own_properties(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the files of the clone, which may be of another version than the package that they would import."""
    clone, installed = "src/halfulp/properties", "site-packages/halfulp/properties"
    project.makepyfile(**{f"{clone}/test_a": "def test_of_the_clone():\n    pass\n"})
    project.makepyfile(**{f"{installed}/test_a": "def test_of_the_package():\n    pass\n"})
    project.makeini(f"[pytest]\ntestpaths = {clone} test_properties.py\naddopts = --import-mode=importlib\n")
    monkeypatch.setattr(halfulp.properties, "__path__", [str(project.path / installed)])
    listing = certify(project, "--backend=stubs:Right", "--collect-only", "-q").stdout.str()
    assert "test_of_the_package" in listing
    assert "test_of_the_clone" not in listing
    assert "test_of_the_project" not in listing


def test_the_entry_point_does_nothing_by_itself(project: pytest.Pytester) -> None:
    """It imports the standard library alone, and leaves a run without halfulp's options as it was."""
    code = """
import sys
import halfulp.certify.entrypoint
ours = {"halfulp", "halfulp.certify", "halfulp.certify.entrypoint"}
foreign = [m for m in sys.modules if m.split(".")[0] not in sys.stdlib_module_names and m not in ours]
assert foreign == ["__main__"], foreign
"""
    package = Path(halfulp.__path__[0]).parent
    assert project.run(sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(package)!r}){code}").ret == 0
    project.makepyfile(test_properties="def test_nothing():\n    pass\n")
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.ret == 0
    assert not any(line.startswith("halfulp") for line in result.outlines)


def test_every_short_option_has_a_long_twin(project: pytest.Pytester) -> None:
    result = certify(project, "--help")
    text = result.stdout.str()
    for name in ("backend", "seed", "depth", "clauses", "dialect"):
        assert f"--{name}=" in text
        assert f"--halfulp-{name}=" in text
    assert "--halfulp-json=" in text


def test_the_adapter_is_closed(project: pytest.Pytester) -> None:
    project.makepyfile(
        stubs=ADAPTERS + '\n\nclass Closing(Right):\n    def close(self):\n        open("closed", "a").write("x")\n'
    )
    assert certify(project, "--backend=stubs:Closing", "--depth=quick", "--clauses=4-g").ret == 0
    assert Path("closed").read_text() == "x"
