"""The CUDA backend without a GPU: its text compiled by NVRTC, and run on the host."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import mpmath
import numpy as np
import pytest
from host_cuda import HostPrograms

from halfulp.adapters import discovery
from halfulp.adapters.discovery import AdapterError
from halfulp.adapters.protocol import Adapter, Array, HasArtifact, Options, Rejected, Unsupported, UnsupportedError
from halfulp.backends.common.check import Mode, NotOffered, TypeRefusal
from halfulp.backends.common.code import Code, Reg
from halfulp.backends.common.frontend import checked
from halfulp.backends.cpu import CpuAdapter, jit
from halfulp.backends.cuda import CudaAdapter, cache, driver, nvrtc, program
from halfulp.backends.cuda import adapter as adapter_module
from halfulp.backends.cuda.functions import CudaLowering
from halfulp.oracle import functions
from halfulp.oracle.formats import FORMATS
from halfulp.oracle.kernel import Apply, Constant, Input, Kernel, Type, one_node
from halfulp.oracle.ops import operation, signatures

DEEP = bool(os.environ.get("HALFULP_DEEP"))
EVERY = 1 if DEEP else 9
"""With ``HALFULP_DEEP`` all signatures, else one of so many."""

needs_fma = pytest.mark.skipif(not jit.host().has_fma, reason="this processor has no fused multiply-add")

F32 = Type("f32")
INFINITY = FORMATS["f32"].infinity_bits


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_CACHE", str(tmp_path / "cache"))


def compile_only(**options: Any) -> CudaAdapter:
    return CudaAdapter("compile-only", **options)


def offered(step: int) -> list[Kernel]:
    """The kernel of every step-th signature."""
    kernels = []
    for signature in signatures()[::step]:
        try:
            kernels.append(checked(operation(signature.op).kernel(signature)))
        except (NotOffered, TypeRefusal):
            continue
    return kernels


def single(op: str, *dtypes: str, **attrs: bool) -> Kernel:
    return one_node(op, list(dtypes), dtypes[0], attrs=attrs)


def ptx(kernel: Kernel, level: int = 3, adapter: CudaAdapter | None = None) -> str:
    return (adapter or compile_only()).artifact(kernel, Options(level))


# What is compiled.


@pytest.mark.parametrize("level", [0, 3])
def test_signatures_compile(level: int) -> None:
    kernels = offered(EVERY)
    adapter = compile_only()
    answers = adapter.compile(kernels, Options(level))
    assert adapter._image(kernels, level).startswith(b"\x7fELF")  # all that may stand in one source
    assert len(answers) == len(kernels) >= 900 // EVERY
    for answer in answers:
        assert not isinstance(answer, (Rejected, Unsupported)), answer
        with pytest.raises(UnsupportedError, match="compiled, not run"):
            answer()


@pytest.mark.parametrize(
    ("kernel", "present"),
    [
        (single("div", "f32", "f32"), ["div.rn.f32"]),
        (single("div", "f64", "f64"), ["div.rn.f64"]),
        (single("sqrt", "f32"), ["sqrt.rn.f32"]),
        (single("exp2", "f32", approximate=True), ["ex2.approx.f32"]),
        (single("exp2", "f32", approximate=True, flush_to_zero=True), ["ex2.approx.ftz.f32"]),
        (single("tanh", "f32", approximate=True), ["tanh.approx.f32"]),
        (single("fdiv", "f32", "f32", approximate=True), ["div.approx.f32"]),
        (single("fdiv", "f32", "f32", approximate=True, flush_to_zero=True), ["div.approx.ftz.f32"]),
        (single("fdiv", "f32", "f32"), ["div.rn.f32"]),
        (one_node("cast", ["f64"], "f32"), ["cvt.rn.f32.f64"]),
        (one_node("random_bits", ["u64", "u64"], "u32"), ["mul"]),
    ],
    ids=str,
)
def test_instructions(kernel: Kernel, present: list[str]) -> None:
    text = ptx(kernel)
    for instruction in present:
        assert re.search(rf"\b{re.escape(instruction)}\b", text), text
    marks = re.compile(r"\.(?:approx|ftz)")
    assert len(marks.findall(text)) == len(marks.findall(" ".join(present)))


def test_an_approximate_operation_is_not_merged_with_the_ordinary_one() -> None:
    attrs = (("approximate", True),)
    values = (Input(F32), Input(F32), Apply("fdiv", (0, 1), "f32"), Apply("fdiv", (0, 1), "f32", attrs))
    text = ptx(Kernel(values, (2, 3)))
    assert text.count("div.rn.f32") == text.count("div.approx.f32") == 1


def test_products_are_contracted_into_sums_at_level_3() -> None:
    values = (Input(F32), Input(F32), Input(F32), Apply("mul", (0, 1), "f32"), Apply("add", (3, 2), "f32"))
    plain, optimised = (ptx(Kernel(values, (4,)), level) for level in (0, 3))
    assert "fma.rn.f32" in optimised
    assert "fma" not in plain
    # Across a cast, and through a negation, nothing is.
    wall = (*values[:4], Apply("cast", (3,), "f64"), Apply("cast", (4,), "f32"), Apply("add", (5, 2), "f32"))
    assert "fma" not in ptx(Kernel(wall, (6,)))
    negated = (*values[:4], Apply("neg", (3,), "f32"), Apply("add", (4, 2), "f32"))
    assert "fma" not in ptx(Kernel(negated, (5,)))


def test_a_signalling_nan_is_not_folded_to_infinity() -> None:
    text = ptx(Kernel((Constant("f64", 0x7FF0000000000001), Apply("cast", (0,), "f32")), (1,)))
    assert "cvt.rn.f32.f64" in text or str(0x7FFFFFFF) in text
    assert str(INFINITY) not in text


def test_the_artifact_is_for_the_protocol() -> None:
    adapter: Adapter = compile_only()
    assert isinstance(adapter, HasArtifact)
    assert ".target sm_90" in adapter.artifact(single("add", "i32", "i32"), Options(0))


def test_a_bad_program_does_not_fail_its_batch() -> None:
    class Broken(CudaLowering):
        def function(self, code: Code, op: str, x: Reg, mode: Mode) -> Reg:
            return Reg("float", "no_such_name")

    class BrokenAdapter(CudaAdapter):
        lowering = Broken()

    programs = [
        single("add", "f32", "f32"),
        single("tanh", "f32"),
        one_node("add", ["f32", "f64"], "f32"),
        one_node("gamma", ["f32"], "f32"),
        single("mul", "f32", "f32"),
    ]
    good, broken, ill_typed, unknown, last = BrokenAdapter("compile-only").compile(programs, Options(3))
    assert callable(good)
    assert callable(last)
    assert isinstance(broken, Unsupported)
    assert "no_such_name" in broken.reason
    assert isinstance(ill_typed, Rejected)
    assert isinstance(unknown, Unsupported)


def test_options_of_a_subclass_reach_the_compiler() -> None:
    class Flushing(CudaAdapter):
        nvrtc_options = ("--ftz=true",)

    kernel = single("mul", "f32", "f32")
    assert "mul.rn.ftz.f32" in ptx(kernel, adapter=Flushing("compile-only"))
    assert "mul.rn.ftz.f32" in ptx(kernel, adapter=compile_only(nvrtc_options=["--ftz=true"]))
    assert "ftz" not in ptx(kernel)


def test_functions_of_one_element() -> None:
    adapter = compile_only()
    kernel = single("add", "f8e4m3fn", "f8e4m3fn")
    text = adapter.device_function(kernel, Options(3), "sum8")
    text += adapter.device_function(one_node("eq", ["bool", "bool"], "bool"), Options(0), "same")
    text += 'extern "C" __global__ void k(u8*p,u8*q){*q=sum8(p[0],p[1])+same(p[2],p[3]);}'
    assert nvrtc.compile_source(text, ptx=True, options=["--minimal"])
    values = (*kernel.values, kernel.values[-1])
    with pytest.raises(ValueError, match="2 outputs"):
        adapter.device_function(Kernel(values, (2, 3)), Options(3), "two")


def test_levels() -> None:
    with pytest.raises(ValueError, match="optimisation level 2"):
        compile_only().compile([], Options(2))


def test_without_the_option_of_least_optimisation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise nvrtc.NvrtcError("no such option")

    monkeypatch.setattr(adapter_module, "compile_source", refuse)
    assert adapter_module.least_optimisation.__wrapped__() == ()


# What it computes: the same text on the host, against the CPU backend, which writes the same lowerings as LLVM IR.


def operands(dtype: str, count: int, rng: np.random.Generator) -> Array:
    """Codes near zero from both sides, random ones, and floats of ordinary size."""
    fmt = FORMATS[dtype]
    wild = rng.integers(0, 1 << 64, count, np.uint64)
    wild[: count // 4] = rng.integers(-16, 16, count // 4).astype(np.uint64)
    found = (wild & np.uint64(fmt.code_count - 1)).astype(fmt.storage)
    if dtype in ("f32", "f64"):
        tame = rng.normal(size=count // 2) * 10.0 ** rng.integers(-8, 8, count // 2)
        found[count // 2 :] = tame.astype(f"f{fmt.width // 8}").view(fmt.storage)
    return found


def is_nan(dtype: str, found: Array) -> Array:
    fmt = FORMATS[dtype]
    if not fmt.is_float:
        return np.zeros(found.shape, bool)
    top = fmt.infinity_bits if fmt.infinity else fmt.magnitude_mask - 1
    return cast(Array, (found & fmt.storage.type(fmt.magnitude_mask)) > top)


@needs_fma
def test_the_same_bits_as_the_cpu_backend(tmp_path: Path) -> None:
    kernels = [*offered(EVERY), *fused()]
    host = HostPrograms(kernels, tmp_path, fuse=True)
    rng = np.random.default_rng(7)
    for position, compiled in enumerate(CpuAdapter().compile(kernels, Options(3))):
        assert callable(compiled)
        inputs = [operands(type_.dtype, 2000, rng) for type_ in kernels[position].input_types]
        for type_, want, got in zip(
            kernels[position].output_types, compiled(*inputs), host(position, *inputs), strict=True
        ):
            nan = is_nan(type_.dtype, want)
            assert (is_nan(type_.dtype, got) == nan).all(), kernels[position]
            assert (got == want)[~nan].all(), kernels[position]


def fused() -> list[Kernel]:
    """Kernels with products in sums, rank-0 values, several outputs, and constants of every kind."""
    kernels = []
    for dtype, one in (("f32", 0x3F800000), ("f64", 0x3FF << 52)):
        product = (Input(Type(dtype)), Input(Type(dtype)), Apply("mul", (0, 1), dtype))
        kernels += [
            Kernel((*product, Constant(dtype, one), Apply(op, args, dtype)), (2, 4))
            for op, args in (("add", (2, 3)), ("sub", (2, 0)), ("sub", (3, 2)))
        ]
    lanes = [Constant("f32", bits) for bits in (0, 1 << 31, INFINITY, 1, 0x7FC00000)]
    kernels.append(
        Kernel((*lanes, *(Apply("tanh", (i,), "f32") for i in range(len(lanes)))), tuple(range(len(lanes) * 2)))
    )
    return kernels


@needs_fma
def test_lgamma_next_to_its_zeros(tmp_path: Path) -> None:
    """f64, within the 4 ulp that the table has elsewhere, at neighbours of all zeros and at the poles."""
    host = HostPrograms([single("lgamma", "f64")], tmp_path, fuse=True, lowering=CudaLowering())
    rng = np.random.default_rng(5)
    ordinals = []
    with mpmath.workprec(150):
        for n in range(2, 18):
            # Two between -n - 1 and -n, near the ends, about 1 / n! and 1 / (n + 1)! away from them.
            for end, side in ((-n, -1), (-n - 1, 1)):
                width = 1 / mpmath.factorial(-end)
                bracket = (end + side * width / 3, end + side * min(3 * width, mpmath.mpf("0.5")))
                zero = mpmath.findroot(lambda x: mpmath.log(abs(mpmath.gamma(x))), bracket, solver="anderson")
                ordinals.append(int(np.float64(float(zero)).view(np.uint64)))
    assert len(set(ordinals)) == 32
    near = np.array(ordinals, np.uint64)[:, None] + np.arange(-20, 21).astype(np.uint64)
    far = (-rng.uniform(2, 25, 1000)).view(np.uint64)
    operands = np.concatenate([near.ravel(), far, np.float64([-0.0, -2.0, -3.0, -23.0, -24.0]).view(np.uint64)])
    (got,) = host(0, operands)
    want = functions.nearest_many("lgamma", FORMATS["f64"], operands)
    distance = np.where(got > want, got - want, want - got)
    assert int(distance.max()) <= 4
    assert got[-5:].tolist() == [FORMATS["f64"].infinity_bits] * 5


# Programs, on a device that is a shared library of the host.


class HostBuffer:
    """Stands for `driver.Buffer`."""

    made = 0

    def __init__(self, size: int) -> None:
        HostBuffer.made += 1
        self.size = size
        self.data = np.zeros(size, np.uint8)
        self.freed = False

    def put(self, array: Array, offset: int = 0) -> None:
        self.data[offset : offset + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def get(self, dtype: Any, count: int, offset: int = 0) -> Array:
        return self.data[offset:].view(dtype)[:count].copy()

    def free(self) -> None:
        self.freed = True


class HostModule:
    """Stands for `driver.Module`: machine code is the number of kernels that `HostPrograms` has."""

    loaded = 0

    def __init__(self, programs: HostPrograms) -> None:
        self.programs = programs
        HostModule.loaded += 1

    def function(self, name: str) -> HostFunction:
        return HostFunction(self.programs, int(name[1:]))

    def unload(self) -> None:
        HostModule.loaded -= 1


class HostFunction:
    def __init__(self, programs: HostPrograms, position: int) -> None:
        self.programs, self.position = programs, position

    def launch(self, grid: int, block: int, n: Any, *buffers: HostBuffer) -> None:
        assert 1 <= grid <= 8 * program.WAVES
        assert block == program.BLOCK
        assert n.dtype == np.uint64
        self.programs.run(self.position, int(n), *(buffer.data for buffer in buffers))


class HostDevice:
    """Stands for `driver.Device`."""

    processors = 8

    def __init__(self, programs: HostPrograms) -> None:
        self.programs = programs

    def make_current(self) -> None: ...

    def load(self, image: bytes) -> HostModule:
        return HostModule(self.programs)


def test_programs_copy_launch_and_give_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = (
        Input(Type("u32", ())),
        Input(Type("u16")),
        Apply("add", (0, 0), "u32"),
        Apply("cast", (1,), "u32"),
        Apply("mul", (2, 3), "u32"),
    )
    kernel = Kernel(values, (2, 4, 1))
    monkeypatch.setattr(program, "Buffer", HostBuffer)
    session = program.Session(cast(driver.Device, HostDevice(HostPrograms([kernel], tmp_path, fuse=False))))
    compiled = program.Program(kernel, program.Library(session, b""), "k0")
    for n in (5, 0, 10_000):
        three, array = np.array(3, np.uint32), np.arange(n, dtype=np.uint16)
        double, product, copy = compiled(three, array)
        assert (double.shape, product.shape, copy.dtype) == ((), (n,), np.uint16)
        assert int(double) == 6
        assert (product == 6 * array.astype(np.uint32)).all()
        assert (copy == array).all()
        copy[:] = 0  # fresh
    made = HostBuffer.made
    compiled(three, array)
    assert HostBuffer.made == made
    with pytest.raises(TypeError, match="input 0"):
        compiled(array, array)
    with pytest.raises(ValueError, match="C-contiguous"):
        compiled(three, array[::2])
    with ThreadPoolExecutor(8) as pool:
        singles = [np.full(1000 + i, i, np.uint16) for i in range(40)]
        for i, (_, product, _) in enumerate(pool.map(compiled, [three] * 40, singles)):
            assert product.tolist() == [6 * i] * (1000 + i)
    pooled = [buffer for buffers in session._free.values() for buffer in buffers]
    session.close()
    assert all(cast(HostBuffer, buffer).freed for buffer in pooled)
    # Code is unloaded, when the device is used next, after the last program is gone.
    assert HostModule.loaded == 1
    del compiled
    gc.collect()
    with session.use():
        assert HostModule.loaded == 0


# The cache.


def test_compiled_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc._no_cache()  # tries an option, once in each process: not one of the calls that count
    calls: list[str] = []
    compiled = nvrtc._compile

    def count(source: str, flags: Sequence[str], ptx: bool) -> bytes:
        calls.append(source)
        return compiled(source, flags, ptx)

    monkeypatch.setattr(nvrtc, "_compile", count)
    first, second = (ptx(single("add", "i8", "i8")) for _ in range(2))
    assert first == second
    assert len(calls) == 1
    ptx(single("add", "i8", "i8"), adapter=compile_only(nvrtc_options=["--ftz=true"]))
    assert len(calls) == 2


def test_the_cache_stays_small(tmp_path: Path) -> None:
    for position in range(10):
        cache.write(f"k{position}", bytes(100))
        os.utime(cache.folder() / f"k{position}", (position, position))
    assert cache.read("k0") == bytes(100)  # marks it as used
    cache.prune(1000, 500)
    assert len(list(cache.folder().iterdir())) == 10
    cache.prune(999, 500)
    assert {path.name for path in cache.folder().iterdir()} == {"k0", "k6", "k7", "k8", "k9"}
    assert cache.read("k1") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HALFULP_CACHE", str(tmp_path / "file"))
    assert "add" in ptx(single("add", "i8", "i8"))
    cache.prune(0, 0)


# Messages.


def absent(*_: object) -> Any:
    raise driver.DriverMissingError("no CUDA driver answers here (reason)")


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_module, "device", absent)
    with pytest.raises(AdapterError, match=r"no CUDA driver.*--backend=cuda:compile-only"):
        CudaAdapter()
    with pytest.raises(AdapterError, match=r"^cuda: no CUDA driver"):
        discovery.load("cuda")
    assert discovery.load("cuda:compile-only").name == "cuda:compile-only"


def test_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise nvrtc.NvrtcMissingError("NVRTC is not there; `pip install 'halfulp[cuda]'` brings it")

    monkeypatch.setattr(adapter_module, "nvrtc_version", missing)
    with pytest.raises(AdapterError, match=r"pip install"):
        compile_only()


def test_another_mode() -> None:
    with pytest.raises(AdapterError, match="only be compile-only"):
        CudaAdapter("run")


def test_facts() -> None:
    facts = compile_only().facts
    assert facts.fuses_multiply_add
    assert facts.flushes_subnormals is False
    assert {"nvrtc", "arch"} <= set(facts.versions)
