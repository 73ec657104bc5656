"""The folders are the architecture: arrows point one way (docs/explanation/architecture.md)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

TYPES = {"halfulp.oracle." + name for name in ("formats", "kernel", "source", "memory.program")}
"""What of the oracle an adapter or a backend may see: the vocabulary of programs, nothing that knows an answer."""

COMMON = TYPES | {"halfulp.adapters", "halfulp.backends.common", "numpy"}
TRIED = {"halfulp.oracle", "halfulp.adapters", "halfulp.backends", "numpy"}

ALLOWED: dict[str, set[str]] = {
    "oracle": {"halfulp.oracle", "numpy", "mpmath", "flint"},
    "oracle/bulk": {"halfulp.oracle", "numpy", "mpmath", "flint", "llvmlite"},
    "adapters": TYPES | {"halfulp.adapters", "numpy", "ml_dtypes"},
    "backends": set(),
    "backends/common": COMMON | {"mpmath"},
    "backends/cpu": COMMON | {"halfulp.backends.cpu", "llvmlite"},
    "backends/cuda": COMMON | {"halfulp.backends.cuda"},
    "properties": {"halfulp.oracle", "halfulp.adapters", "halfulp.properties", "numpy", "hypothesis", "pytest"},
    "vectors": {"halfulp.oracle", "halfulp.vectors", "numpy"},
    "vectors/readers": set(),
    "certify": {"halfulp", "numpy", "hypothesis", "pytest", "_pytest", "matplotlib", "distributed"},
    "certify/saboteurs": TRIED | {"halfulp.certify.saboteurs"},
    "certify/detection": TRIED | {"halfulp.properties", "halfulp.certify.saboteurs", "halfulp.certify.detection"},
}
"""What modules of a folder may import beside the standard library; a folder within another has rules of its own."""


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports, those inside functions too; ``from a.b import c`` counts as ``a.b`` alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module in ("halfulp", "halfulp.oracle"):
                yield from (f"{node.module}.{name.name}" for name in node.names)
            else:
                yield node.module


def permitted(module: str, allowed: set[str]) -> bool:
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or any(module == name or module.startswith(name + ".") for name in allowed)


@pytest.mark.parametrize("folder", ALLOWED)
def test_arrows_point_one_way(folder: str) -> None:
    inner = [ROOT / other for other in ALLOWED if other.startswith(f"{folder}/")]
    files = [path for path in (ROOT / folder).rglob("*.py") if not any(map(path.is_relative_to, inner))]
    assert files
    for path in files:
        for module in imports(path):
            assert permitted(module, ALLOWED[folder]), f"{path.relative_to(ROOT)} imports {module}"


def modules() -> dict[str, set[str]]:
    """Every module of the package, and those of it that it imports."""
    paths: dict[str, Path] = {}
    for folder in ("oracle", "properties", "vectors", "adapters", "backends", "certify"):
        for path in (ROOT / folder).rglob("*.py"):
            dotted = ".".join(("halfulp", *path.relative_to(ROOT).with_suffix("").parts))
            paths[dotted.removesuffix(".__init__")] = path
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        froms = [node for node in tree if isinstance(node, ast.ImportFrom) and node.module in paths]
        named = {(node.module, f"{node.module}.{one.name}") for node in froms for one in node.names}
        found[name] = {inner if inner in paths else str(outer) for outer, inner in named} - {name}
    return found


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """Names that lead back to the first of them; empty where none do."""
    done: set[str] = set()

    def follow(name: str, before: list[str]) -> list[str]:
        if name in before:
            return [*before[before.index(name) :], name]
        if name in done:
            return []
        for other in sorted(arrows[name]):
            if found := follow(other, [*before, name]):
                return found
        done.add(name)
        return []

    return next((found for name in arrows if (found := follow(name, []))), [])


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle(modules()) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_the_check_can_fail() -> None:
    assert not permitted("halfulp.oracle.judge", ALLOWED["backends/cpu"])
    assert not permitted("halfulp.backends.cpu", ALLOWED["backends/cuda"])
    assert not permitted("halfulp.certify.report", ALLOWED["certify/saboteurs"])
    assert not permitted("halfulp.adapters.protocol", ALLOWED["oracle"])
    assert not permitted("halfulp.oracle.formatsx", ALLOWED["adapters"])


def test_test_modules_are_imported_by_nobody() -> None:
    for path in ROOT.rglob("*.py"):
        if ".venv" not in path.parts and "src" not in path.parts:
            assert not any(part.startswith("test_") for m in imports(path) for part in m.split(".")), path
