"""Compiling LLVM IR for this machine."""

from __future__ import annotations

import llvmlite.binding as llvm


class Code:
    """A compiled module. The code is freed with the object.

    No fast-math flag is set by anything here, and nothing is contracted: what the text says is what runs.

    Args:
        text: LLVM IR.

    Attributes:
        ir: the optimised module.
    """

    def __init__(self, text: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._context = llvm.create_context()
        module = llvm.parse_assembly(text, self._context)
        module.verify()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=3,
            codemodel="jitdefault",
            jit=True,
        )
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        builder.getModulePassManager().run(module, builder)
        self.ir = str(module)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Where a function of the module lies; the caller keeps the object."""
        return int(self._engine.get_function_address(function))
