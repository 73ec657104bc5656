"""What results depend on: of a CPU its math library, the level of its instruction set and the machine; of a GPU the
device, its instruction set, the compiler that brings the math library, and the driver.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_X86_LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("x86-64-v2", frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})),
    ("x86-64-v3", frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})),
    ("x86-64-v4", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
)
"""The levels of the x86-64 psABI, by the names that Linux gives their features."""

_ARM_LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("asimd+fphp", frozenset({"asimd", "fphp", "asimdhp"})),
    ("sve", frozenset({"sve"})),
    ("sve2", frozenset({"sve2"})),
)


def _features() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            return frozenset(value.split())
    return frozenset()


def isa_level(machine: str, features: frozenset[str]) -> str:
    """The highest level whose features are all there: levels contain those below."""
    if machine in ("x86_64", "AMD64"):
        level, levels = "x86-64-v1", _X86_LEVELS
    elif machine in ("aarch64", "arm64"):
        level, levels = "armv8-a", _ARM_LEVELS
    else:
        return machine
    for name, needed in levels:
        if not needed <= features:
            break
        level = name
    return level


def libm() -> str:
    """Name and version of the C library, whose math functions a program finds; ``libc`` where it does not say."""
    name, number = platform.libc_ver()
    return f"{name}-{number}" if name else "libc"


@cache
def cpu_class() -> str:
    """The device class of this CPU, e.g. ``x86_64/x86-64-v3/glibc-2.36``."""
    machine = platform.machine() or "unknown"
    return f"{machine}/{isa_level(machine, _features())}/{libm()}"


def gpu_class(versions: Mapping[str, str]) -> str:
    """The device class of a GPU, e.g. ``NVIDIA H200/sm_90/nvrtc-13.0/driver-13.0``, from what the backend names."""
    parts = (("gpu", ""), ("arch", ""), ("nvrtc", "nvrtc-"), ("cuda driver", "driver-"))
    return "/".join(prefix + versions[key] for key, prefix in parts if key in versions)


def device_class(versions: Mapping[str, str]) -> str:
    """The device class of a backend: what it names as ``device`` or ``gpu`` among its versions, else the CPU's."""
    return versions.get("device") or (gpu_class(versions) if "gpu" in versions else cpu_class())
