"""What is in the wheel: every module and data file of the package, under one name, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "halfulp"
FOLDERS = ("adapters", "backends", "certify", "oracle", "properties", "vectors")
DATA = (".py", ".json", ".typed")


def files_of_the_package() -> set[str]:
    """Paths of modules and data files, as a wheel names them; links are followed."""
    found = {f"halfulp/{path.name}" for path in PACKAGE.iterdir() if path.suffix in DATA}
    found.add("halfulp/py.typed")
    for folder in FOLDERS:
        found |= {
            f"halfulp/{path.relative_to(ROOT)}"
            for path in (ROOT / folder).rglob("*")
            # The vectors are an archive of their own, and the generator is in the wheel.
            if path.suffix in DATA
            and "__pycache__" not in path.parts
            and not path.is_relative_to(ROOT / "vectors/data")
        }
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of this checkout. The build isolates itself, so pip fetches setuptools unless a new one is here."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target)]
    if int(version("setuptools").split(".")[0]) >= 77:
        command.append("--no-build-isolation")
    # A copy, since setuptools writes build/ and an egg-info folder next to what it builds.
    copy = target / "source"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\0"):
        source, place = ROOT / name, copy / name
        if name and (source.is_symlink() or source.exists()):
            place.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                place.symlink_to(source.readlink())
            else:
                place.write_bytes(source.read_bytes())
    done = subprocess.run([*command, str(copy)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = target.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_has_every_file_and_no_other(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == files_of_the_package()


def test_the_wheel_has_no_links(wheel: zipfile.ZipFile) -> None:
    assert not any(entry.external_attr >> 28 == 0o12 for entry in wheel.infolist())


def test_the_wheel_carries_its_licence(wheel: zipfile.ZipFile) -> None:
    (licence,) = (name for name in wheel.namelist() if name.endswith("LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_the_version_is_that_of_the_package(wheel: zipfile.ZipFile) -> None:
    import halfulp

    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    assert re.search(rf"^Version: {re.escape(halfulp.__version__)}$", wheel.read(metadata).decode(), re.MULTILINE)


def test_every_folder_is_a_subpackage() -> None:
    for folder in FOLDERS:
        link = PACKAGE / folder
        assert link.is_symlink(), folder
        assert link.readlink() == Path("../..") / folder
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), f"{path.parent} has modules but is no package"


def test_runtime_needs_nothing_that_only_tests_need() -> None:
    """No module of the package imports a dependency that is not declared for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {group: {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in lines} for group, lines in _groups(project)}
    modules = {"pytest-xdist": "xdist", "python-flint": "flint"}
    declared = {modules.get(name, name) for name in names["required"]}
    allowed = declared | set(sys.stdlib_module_names) | {"halfulp", "_pytest"}
    # What an extra brings is imported where it is used, inside a function, which can then say what is missing.
    on_use = allowed.union(*(members for group, members in names.items() if group not in ("test", "lint")))
    at_top = re.compile(r"^(?:from|import) ([A-Za-z_]\w*)", re.MULTILINE)
    anywhere = re.compile(r"^\s*(?:from|import) ([A-Za-z_]\w*)", re.MULTILINE)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            assert set(at_top.findall(code)) <= allowed, path
            assert set(anywhere.findall(code)) <= on_use, path


def _groups(project: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [("required", project["dependencies"]), *project["optional-dependencies"].items()]


def test_the_distribution_of_the_vectors_has_the_version_of_the_package() -> None:
    import halfulp

    written = tomllib.loads((ROOT / "vectors-package/pyproject.toml").read_text(encoding="utf-8"))
    assert written["project"]["version"] == halfulp.__version__
    assert (ROOT / "vectors-package/halfulp_vectors/data").resolve() == (ROOT / "vectors/data").resolve()
