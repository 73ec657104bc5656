"""Compiles CUDA C++ at run time, with NVRTC. Needs no driver and no GPU.

What is compiled is kept on disk under a hash of everything it depends on: the source, the options, the version of NVRTC
and the architecture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from halfulp.backends.cuda.cache import read, write

DEFAULT_ARCH = "sm_90"
"""What is compiled for where there is no device to ask."""

BASE_OPTIONS = ("--std=c++17", "--minimal", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""Every operation as the source says it: contraction is written out as a call of fma, nothing is flushed. ``--minimal``
leaves out textures and the run-time library, which nothing here uses, and saves a quarter of the time of a small
kernel."""

NO_CACHE = "--no-cache"
"""NVRTC keeps machine code on disk, too, and takes sources that differ in ``--ftz``, ``--prec-div`` or ``--prec-sqrt``
alone for the same (13.0 does): what one compiler flushes, another would find there as its own."""


class NvrtcMissingError(RuntimeError):
    """NVRTC or its Python binding is not installed. The message says what to do."""


class NvrtcError(RuntimeError):
    """The source does not compile. The message is the compiler's log."""


@cache
def library() -> Any:
    """The module ``cuda.bindings.nvrtc``.

    Raises:
        NvrtcMissingError: it cannot be imported, or finds no NVRTC.
    """
    try:
        nvrtc = import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise NvrtcMissingError(
            f"NVRTC, the run-time compiler of CUDA, is not there ({error}); `pip install 'halfulp[cuda]'` brings it"
        ) from error
    return nvrtc


@cache
def nvrtc_version() -> str:
    """For example ``"13.0"``.

    Raises:
        NvrtcMissingError: see `library`.
    """
    _, major, minor = library().nvrtcVersion()
    return f"{major}.{minor}"


def compile_source(
    source: str,
    *,
    arch: str = DEFAULT_ARCH,
    ptx: bool = False,
    options: Sequence[str] = (),
    ptxas: Sequence[str] = (),
) -> bytes:
    """Compile ``source`` for one architecture, to machine code (a cubin) or to PTX text.

    Args:
        source: CUDA C++; kernels are ``extern "C"``.
        arch: ``sm_90`` and so on.
        ptx: PTX instead of machine code.
        options: of NVRTC, besides `BASE_OPTIONS`; one of the same name stands in its place.
        ptxas: of the assembler, such as ``-O0``.

    Raises:
        NvrtcError: the source does not compile.
        NvrtcMissingError: see `library`.
    """
    given = {option.partition("=")[0] for option in options}
    flags = [*(option for option in BASE_OPTIONS if option.partition("=")[0] not in given), *options, *_no_cache()]
    flags.append(f"--gpu-architecture={arch.replace('sm_', 'compute_') if ptx else arch}")
    if not ptx:
        flags += [f"--ptxas-options={option}" for option in ptxas]
    text = "\0".join((nvrtc_version(), *flags, source))
    key = hashlib.sha256(text.encode()).hexdigest()
    found = read(key)
    if found is None:
        found = _compile(source, flags, ptx)
        write(key, found)
    return found


@cache
def _no_cache() -> tuple[str, ...]:
    """`NO_CACHE`, where NVRTC knows it: an older one has no cache of its own."""
    try:
        _compile("", [NO_CACHE], True)
    except NvrtcError:
        return ()
    return (NO_CACHE,)


def _compile(source: str, flags: Sequence[str], ptx: bool) -> bytes:
    nvrtc = library()
    success = nvrtc.nvrtcResult.NVRTC_SUCCESS
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"halfulp.cu", 0, [], [])
    if status != success:
        raise NvrtcError(f"NVRTC: {status.name}")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        if status != success:
            raise NvrtcError(f"NVRTC: {status.name}\n{_log(nvrtc, program)}")
        size, get = (
            (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if ptx else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        )
        _, length = size(program)
        image = bytes(length)
        get(program, image)  # the binding writes into the object
        return image.rstrip(b"\0") if ptx else image
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: Any) -> str:
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytes(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.rstrip(b"\0").decode(errors="replace")
