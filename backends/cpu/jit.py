"""Native code: LLVM's optimiser and code generator for this machine."""

from __future__ import annotations

import ctypes
import platform
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from halfulp.backends.cpu import libm


@dataclass(frozen=True)
class Host:
    """The machine that code is made for."""

    triple: str
    cpu: str
    features: str

    @property
    def has_fma(self) -> bool:
        """There is an instruction for ``a*b + c`` with one rounding."""
        if self.triple.startswith(("aarch64", "arm64")):
            return True  # part of the base architecture
        return "+fma" in self.features.split(",")


@cache
def host() -> Host:
    """This machine, with LLVM initialised for it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def versions() -> dict[str, str]:
    """What the results of compiled code depend on."""
    return {
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "cpu": f"{host().cpu} ({platform.machine()})",
        "libm": libm.version(),
    }


def _target_machine(opt_level: int) -> Any:
    machine = host()
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=opt_level, codemodel="jitdefault", jit=True
    )


class Library:
    """The compiled code of one module. It is freed with the object.

    Args:
        text: the module.
        opt_level: 0 or 3, for the optimiser and the code generator.

    Raises:
        RuntimeError: LLVM refuses the module.
    """

    def __init__(self, text: str, opt_level: int) -> None:
        # A context of its own: its types and constants go when it goes, and no two threads share one.
        context = llvm.create_context()
        libm.register()
        module = optimise(text, opt_level, context)
        self._engine = llvm.create_mcjit_compiler(module, _target_machine(opt_level))
        self._engine.finalize_object()
        # The context has to outlive the engine. The collector of cycles would free the two in any order.
        weakref.finalize(self, _free, self._engine, context).atexit = False

    def function(self, name: str, pointers: int) -> Any:
        """The kernel ``name`` as a ctypes function of n and so many addresses. It releases the GIL."""
        return _prototype(pointers)(self._engine.get_function_address(name))


def _free(engine: Any, context: Any) -> None:
    engine.close()
    context.close()


def optimise(text: str, opt_level: int, context: Any) -> Any:
    """The parsed module, after the optimiser's passes of the level (none at 0)."""
    module = llvm.parse_assembly(text, context)
    if opt_level > 0:
        tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
        # Loops are vectorised, but their bodies are not repeated: that would double the time to compile.
        tuning.loop_interleaving = False
        tuning.loop_unrolling = False
        builder = llvm.create_pass_builder(_target_machine(opt_level), tuning)
        builder.getModulePassManager().run(module, builder)
    return module


@cache
def _prototype(pointers: int) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * pointers)
