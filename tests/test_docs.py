"""The documentation is true: generated pages are current, examples run, links lead somewhere."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "_generate.py")
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(DOCS))  # as when it is run as a script
    module = importlib.util.module_from_spec(spec)
    sys.modules["docs_generate"] = module
    spec.loader.exec_module(module)
    return module


# Generated pages.


def test_generated_pages_are_current() -> None:
    stale = [
        str(path)
        for path, text in generator().pages().items()
        if not (DOCS / path).exists() or (DOCS / path).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"


def test_what_is_called_checked_is_checked_by_something() -> None:
    module = generator()
    rows = module.coverage()
    empty = [
        clause.id
        for clause in module.CLAUSES.values()
        if clause.status == "checked" and not rows[clause.id].checked and clause.id not in module.CONSEQUENCES
    ]
    assert empty == []


def test_what_is_called_planned_is_not_checked() -> None:
    module = generator()
    rows = module.coverage()
    assert [c.id for c in module.CLAUSES.values() if c.later and rows[c.id].checked] == []


def test_the_detection_table_is_complete() -> None:
    """It is measured, not computed at once; `python docs/_generate.py detection` writes it."""
    text = (DOCS / "spec" / "detection.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \| ([\w:.-]+) \|", text, re.MULTILINE))
    expected = {(s.name, clause) for s in generator().ALL_SUSPECTS for clause in s.clauses or ("none",)}
    assert rows == expected
    assert "| not caught |" not in text


# Examples.


@pytest.mark.parametrize("page", [p for p in PAGES if ">>> " in p.read_text(encoding="utf-8")], ids=name_of)
def test_python_sessions(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried
    assert not failed


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line of the documentation, with the `halfulp` of this environment and this checkout."""
    tools = folder / ".bin"
    tools.mkdir(exist_ok=True)
    script = tools / "halfulp"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m halfulp.certify.cli "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=name_of)
def test_console_sessions(page: Path, tmp_path: Path) -> None:
    """Every `$ command` of a console block prints what stands below it; `...` stands for anything."""
    for block in blocks(page, "console"):
        for command, expected in re.findall(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            done = run(command, tmp_path)
            assert done.returncode in (0, 1), (command, done.stderr)
            pattern = ".*".join(re.escape(part) for part in expected.split("..."))
            assert re.fullmatch(pattern, done.stdout, re.DOTALL), (command, done.stdout)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "c")], ids=name_of)
def test_c_programs_compile(page: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler, "the documentation has C programs, and checking them needs a C compiler (cc)"
    for number, text in enumerate(blocks(page, "c")):
        source = tmp_path / f"{number}.c"
        source.write_text(text, encoding="utf-8")
        subprocess.run([compiler, "-Wall", "-Werror", "-o", str(tmp_path / str(number)), str(source)], check=True)


def test_c_results_are_judged(tmp_path: Path) -> None:
    page = DOCS / "how-to" / "ask-and-judge-from-another-language.md"
    (tmp_path / "program.c").write_text(blocks(page, "c")[0], encoding="utf-8")
    done = run("cc -o program program.c && ./program | halfulp judge", tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"verdict":"allowed"' in done.stdout.replace(" ", "")


def test_the_tutorial_adapter(tmp_path: Path) -> None:
    """The adapter is checked, fails for the reason the tutorial gives, and passes once it is repaired."""
    skeleton, adapter, check, repair = blocks(DOCS / "tutorial" / "adapter-from-zero.md", "python")
    trial = "halfulp certify --backend tiny:TinyAdapter --depth quick -n 1 --clauses 5.2-d"

    (tmp_path / "tiny.py").write_text(skeleton, encoding="utf-8")
    empty = run(trial, tmp_path)
    assert empty.returncode == 1
    assert "nothing was claimed" in empty.stdout

    (tmp_path / "tiny.py").write_text(adapter, encoding="utf-8")
    (tmp_path / "check.py").write_text(check, encoding="utf-8")
    checked = run(f"{sys.executable} check.py", tmp_path)
    assert checked.returncode == 0, checked.stderr
    wrong = run(trial, tmp_path)
    assert wrong.returncode == 1
    assert "cast[f32->bf16]" in wrong.stdout
    assert "truncate" in wrong.stdout

    (tmp_path / "tiny.py").write_text(f"{adapter}\n\n{repair}\n\nOPERATIONS['cast', ('f32',), 'bf16'] = narrow\n")
    right = run(trial, tmp_path)
    assert right.returncode == 0, right.stdout


# Links and loose ends.


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), target
        assert not anchor or anchor in anchors(goal), target


def test_every_page_can_be_reached() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#\s]+\.md)", index)}
    assert sorted(set(PAGES[1:]) - linked - {DOCS / "index.md"}) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_placeholder_is_left(page: Path) -> None:
    assert re.findall(r"^[A-Z]+_[A-Z]+$|\bTODO\b|\bFIXME\b", page.read_text(encoding="utf-8"), re.MULTILINE) == []


def test_commands_of_the_readme_are_targets_of_make() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^ *(make [^#\n]*?) *(?:#.*)?$", text, re.MULTILINE)
    assert "make certify BACKEND=cpu" in commands
    assert "make test" in commands
    for command in commands:
        done = subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
