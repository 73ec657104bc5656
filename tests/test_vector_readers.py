"""The readers of the golden vectors, in C, Rust, JavaScript and Python, and types generated from their schema.

All four readers print the same, so each checks the other three. C and Python have to be there; a reader whose toolchain
is missing is skipped with a warning that names it, which pytest's summary shows.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import mpmath
import pytest

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "vectors"
READERS = VECTORS / "readers"
FILES = sorted((VECTORS / "data").rglob("*.json"))
CAST, FUNCTION = "casts/cast-f32-bf16", "functions/log1p-f32"
LANGUAGES = ("c", "rust", "js", "python")
PROGRAMS = tempfile.TemporaryDirectory(prefix="halfulp-readers-")
"""What is compiled here; gone with this process."""

CRATES = Path("/usr/share/cargo/registry")
"""Where Debian's packages librust-serde-dev and librust-serde-json-dev put their sources."""


def not_run(what: str, why: str) -> NoReturn:
    """Skip, and say so where nobody can overlook it."""
    warnings.warn(f"NOT RUN: {what}: {why}", stacklevel=2)
    pytest.skip(f"{what}: {why}")


def build(command: list[str], folder: Path) -> str:
    """Run a build; the last lines that it prints if it fails, else nothing."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return "" if done.returncode == 0 else "\n".join(done.stderr.splitlines()[-8:])


@cache
def c_reader() -> list[str]:
    compiler = shutil.which("cc")
    assert compiler, "the reader in C needs a C compiler (cc)"
    program = Path(PROGRAMS.name) / "c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"]
    assert build([compiler, *flags, "-o", str(program), "run.c", "-lm"], READERS / "c") == ""
    return [str(program)]


@cache
def rust_reader() -> list[str] | str:
    """The command, or why there is none. What cargo builds stays among the temporary files, for the next run."""
    cargo = shutil.which("cargo", path=f"{os.environ['PATH']}{os.pathsep}{Path.home() / '.cargo' / 'bin'}")
    if cargo is None:
        return "cargo is not installed"
    folder = Path(tempfile.gettempdir()) / f"halfulp-reader-rust-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may run these tests
        source = shutil.copytree(READERS / "rust", folder / "source", dirs_exist_ok=True)
        options = ["--locked", "--config=net.retry=0"]
        if CRATES.is_dir():
            (source / "Cargo.lock").unlink()  # it names other versions
            options = ["--offline", '--config=source.crates-io.replace-with="system"']
            options.append(f'--config=source.system.directory="{CRATES}"')
        problem = build([cargo, "fetch", "--quiet", *options], source)
        if problem:
            return f"cargo does not get the crates serde and serde_json; {problem.splitlines()[-1].strip()}"
        options += ["--quiet", "--config=profile.dev.debug=0", "--target-dir", str(folder / "target")]
        assert build([cargo, "build", *options], source) == ""
        return [str(shutil.copy2(folder / "target" / "debug" / "read-vectors", Path(PROGRAMS.name) / "rust"))]


def reader(language: str) -> list[str]:
    """The command of a reader, built if need be; skips where that is impossible."""
    match language:
        case "c":
            return c_reader()
        case "python":
            return [sys.executable, "-I", str(READERS / "python" / "run.py")]
        case "js":
            node = shutil.which("node")
            if node is None:
                not_run("the vector reader in JavaScript", "node is not installed")
            return [node, str(READERS / "js" / "run.mjs")]
        case _:
            found = rust_reader()
            if isinstance(found, str):
                not_run("the vector reader in Rust", found)
            return found


def run(language: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*reader(language), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def file_of(name: str) -> Path:
    return VECTORS / "data" / f"{name}.json"


def load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
    return data


def cases_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [case for group in data["groups"] for case in group["cases"]]


# Judging.


@pytest.mark.parametrize("name", [CAST, FUNCTION])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_right_implementation_passes(language: str, name: str) -> None:
    done = run(language, file_of(name))
    assert done.stderr == ""
    first, last = done.stdout.splitlines()
    count = load(file_of(name))["count"]
    distance = ", at most 0.500 ulp off" if name == FUNCTION else ""
    assert first == f"{name}: {count} allowed, 0 forbidden, 0 unspecified{distance}"
    assert last == f"all: {count} allowed, 0 forbidden, 0 unspecified, 0 not run"
    assert done.returncode == 0


@pytest.mark.parametrize("name", [CAST, FUNCTION])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_implementation_fails(language: str, name: str) -> None:
    done = run(language, "--wrong", file_of(name))
    assert done.returncode == 1
    total = re.search(r"^all: (\d+) allowed, (\d+) forbidden, 0 unspecified, 0 not run$", done.stdout, re.MULTILINE)
    assert total is not None
    allowed, forbidden = map(int, total.groups())
    assert allowed + forbidden == load(file_of(name))["count"]
    assert forbidden > 5
    assert done.stdout == run("python", "--wrong", file_of(name)).stdout


def test_the_failures_of_the_wrong_cast_are_those_that_they_have_to_be() -> None:
    data = load(file_of(CAST))

    def fails(case: dict[str, Any]) -> bool:
        got = int(case["inputs"][0], 16) >> 16
        return not any(int(low, 16) <= got <= int(high, 16) for low, high in case["allowed"])

    failing = [case for case in cases_of(data) if fails(case)]
    assert all("cast_truncates" in case["kills"] or "nan_operand" in case["flags"] for case in failing)
    text = run("python", "--wrong", file_of(CAST)).stdout
    assert re.findall(r"^[0-9a-f]{16}", text, re.MULTILINE) == [case["id"] for case in failing[:5]]
    assert f" {len(failing)} forbidden" in text
    assert "    suspect cast_truncates\n" in text


def test_the_errors_that_readers_compute_with_integers_are_true() -> None:
    """Beside mpmath on 200 bits; the readers cut the error off after three digits."""
    text = run("python", "--wrong", file_of(FUNCTION)).stdout
    failures = re.findall(r"^\w{16} 0x(\w{8}) gives 0x(\w{8}), (\d+\.\d{3}) ulp off", text, re.MULTILINE)
    assert len(failures) >= 3
    numbers = [case["exact"] for case in cases_of(load(file_of(FUNCTION))) if case["exact"]["kind"] == "number"]
    units = {int(case["significand"], 16): case["exponent"] + 32 for case in numbers}
    with mpmath.workprec(200):
        for operand, got, shown in failures:
            exact = mpmath.log1p(float_of(operand))
            unit = next(unit for significand, unit in units.items() if significand == cut(abs(exact), unit - 32))
            error = abs(float_of(got) - exact) / mpmath.mpf(2) ** unit
            assert 0 <= error - mpmath.mpf(shown) < mpmath.mpf("0.001") + mpmath.mpf(2) ** -31, operand


def cut(value: Any, exponent: int) -> int:
    return int(mpmath.floor(value / mpmath.mpf(2) ** exponent))


def float_of(digits: str) -> Any:
    """The exact value of an f32 bit pattern."""
    bits = int(digits, 16)
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    magnitude = mpmath.mpf(fraction | (field > 0) << 23) * mpmath.mpf(2) ** (max(field, 1) - 150)
    return -magnitude if bits >> 31 else magnitude


def test_the_reader_in_c_is_cpp_as_well() -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        not_run("the vector reader in C as C++", "no C++ compiler (c++)")
    command = [compiler, "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "run.c"]
    assert build(command, READERS / "c") == ""


def test_javascript_can_import_it() -> None:
    script = f"""
        import {{ judge, read }} from {json.dumps((READERS / "js" / "run.mjs").as_uri())};
        const count = judge(read(process.argv[1]), (x) => x >> 16n);
        console.log(count.allowed, count.forbidden > 0);
    """
    command = [reader("js")[0], "--input-type=module", "--eval", script, str(file_of(CAST))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert re.search(r"^\d+ true$", done.stdout, re.MULTILINE), done.stderr


# Reading.


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_committed_file_is_read(language: str) -> None:
    done = run(language, *FILES)
    assert done.stderr == ""
    assert done.returncode == 0
    expected: Counter[str] = Counter()
    for data in map(load, FILES):
        if data["name"] not in (CAST, FUNCTION):
            expected[data["kind"]] += len(cases_of(data))
    found = re.findall(r"^not run: (\d+) cases of kind (\w+)$", done.stdout, re.MULTILINE)
    assert {kind: int(count) for count, kind in found} == expected
    assert done.stdout.endswith(f" 0 forbidden, 0 unspecified, {expected.total()} not run\n")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A vector file of the cast with its first five cases. The third may have another result that is unspecified."""
    data = load(file_of(CAST))
    group = data["groups"][0]
    data["groups"] = [{**group, "cases": group["cases"][:5]}]
    data["count"] = 5
    third = data["groups"][0]["cases"][2]
    third["unspecified"], third["allowed"] = third["allowed"], []
    path = tmp_path / "small.json"
    path.write_text(json.dumps(data, indent=1), encoding="ascii")
    return path


@pytest.mark.parametrize("language", LANGUAGES)
def test_unspecified_results_are_counted_apart(language: str, small: Path) -> None:
    done = run(language, small)
    assert done.stdout.endswith("all: 4 allowed, 0 forbidden, 1 unspecified, 0 not run\n")
    assert done.returncode == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_vector_file_is_refused(language: str, small: Path) -> None:
    text = small.read_text(encoding="ascii")
    for broken in (text[:300], text.replace("vectors-1", "vectors-9"), text.replace('"count": 5', '"count": 6'), ""):
        assert broken != text
        small.write_text(broken, encoding="ascii")
        done = run(language, small)
        assert done.returncode == 1, (broken, done.stdout)
        assert done.stderr != ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_that_judges_nothing_fails_and_names_what_it_left_out(language: str, small: Path) -> None:
    text = small.read_text(encoding="ascii").replace(CAST, "news/of-tomorrow").replace('"operation",', '"tomorrow",')
    small.write_text(text, encoding="ascii")
    done = run(language, small)
    assert "not run: 5 cases of kind tomorrow\n" in done.stdout
    assert done.returncode == 1


# The promises that are made for them.


def test_the_reader_of_flat_text_finds_what_the_tutorial_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial" / "vectors-from-zero.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```c\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "flat.c").write_text(program, encoding="ascii")
    assert build(["cc", "-Wall", "-Wextra", "-Werror", "-o", "flat_reader", "flat.c"], tmp_path) == ""
    (generate,) = re.findall(r"^    halfulp (vectors generate .*)$", page, re.MULTILINE)
    assert build([sys.executable, "-m", "halfulp.certify.cli", *generate.split()], tmp_path) == ""
    with open(tmp_path / "flat" / f"{CAST}.txt", encoding="ascii") as lines:
        command = [str(tmp_path / "flat_reader")]
        done = subprocess.run(command, stdin=lines, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 3
    assert all(" not 0x7fc0 " in line for line in done.stdout.splitlines())


def test_the_sessions_of_the_tutorial_are_true(tmp_path: Path) -> None:
    """Each `$ command` prints what stands below it; `...` stands for anything."""
    (tmp_path / "vectors").symlink_to(VECTORS)
    text = (ROOT / "docs" / "tutorial" / "vectors-from-zero.md").read_text(encoding="utf-8")
    sessions = re.findall(r"^\$ (.*)\n((?:(?!```|\$ ).*\n)*)", text, re.MULTILINE)
    assert len(sessions) >= 6
    for command, expected in sessions:
        if command.startswith("node ") and shutil.which("node") is None:
            continue  # named by the tests of the reader itself
        command = re.sub("^python3 ", f"{sys.executable} ", command)
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stderr == "", command
        pattern = ".*".join(map(re.escape, expected.split("...")))
        assert re.fullmatch(pattern, done.stdout, re.DOTALL), (command, done.stdout)


@pytest.mark.parametrize("path", ["c/run.c", "c/json.h", "c/mine.h", "rust/src/main.rs", "js/run.mjs", "python/run.py"])
def test_readers_are_short(path: str) -> None:
    lines = (READERS / path).read_text(encoding="ascii").splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 120


def test_the_reader_in_python_needs_the_standard_library_alone() -> None:
    text = (READERS / "python" / "run.py").read_text(encoding="ascii")
    assert set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)) <= set(sys.stdlib_module_names)


def test_types_generated_from_the_schema_read_every_file(tmp_path: Path) -> None:
    """Types in Python, by a generator that knows nothing of the format; they refuse what the schema does not name.

    Each file is parsed and written again without loss; in one of each kind, a field more or less is refused.
    """
    if importlib.util.find_spec("datamodel_code_generator") is None:
        not_run("types generated from the schema of the vectors", "datamodel-code-generator is not installed")
    (schema,) = (VECTORS / "schema").glob("*.schema.json")
    module = tmp_path / "generated.py"
    command = [sys.executable, "-m", "datamodel_code_generator", "--input", str(schema), "--output", str(module)]
    options = "--input-file-type=jsonschema --output-model-type=pydantic_v2.BaseModel --target-python-version=3.11"
    more = "--use-annotated --enum-field-as-literal=all --use-title-as-name --class-name=VectorFile"
    subprocess.run([*command, *options.split(), *more.split()], check=True, capture_output=True, timeout=120)
    names = re.findall(r"^class (\w+)", module.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"VectorFile", "FunctionCase", "CompareAndSwap"} <= set(names)
    assert [name for name in names if name[-1].isdigit()] == [], "the schema leaves it to the generator to name types"
    script = tmp_path / "use.py"
    script.write_text(USE_OF_GENERATED_TYPES, encoding="ascii")
    done = subprocess.run(
        [sys.executable, str(script), *map(str, FILES)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == f"{len(FILES)} files\n", done.stderr


USE_OF_GENERATED_TYPES = """
import json
import sys
from pathlib import Path

from pydantic import ValidationError

from generated import VectorFile


def refused(data):
    try:
        VectorFile.model_validate(data)
    except ValidationError:
        return True
    return False


kinds = set()
for path in sys.argv[1:]:
    text = Path(path).read_bytes()
    data = json.loads(text)
    assert json.loads(VectorFile.model_validate_json(text).model_dump_json(by_alias=True, exclude_unset=True)) == data
    if data["kind"] not in kinds:
        kinds.add(data["kind"])
        case = data["groups"][0]["cases"][0]
        case["more"] = 1
        assert refused(data), path
        del case["more"], case["id"]
        assert refused(data), path
print(len(sys.argv) - 1, "files")
"""
