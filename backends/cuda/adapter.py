"""The adapter of the CUDA backend."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from halfulp.adapters.discovery import AdapterError
from halfulp.adapters.protocol import (
    Array,
    Compiled,
    Facts,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
)
from halfulp.backends.common.check import NotOffered, TypeRefusal
from halfulp.backends.common.frontend import check_level, checked, in_batches
from halfulp.backends.common.lowering import Lowering
from halfulp.backends.cuda.driver import DriverMissingError, device
from halfulp.backends.cuda.functions import CudaLowering
from halfulp.backends.cuda.litmus_adapter import CudaLitmusMethods
from halfulp.backends.cuda.lower import Functions, Source, device_function
from halfulp.backends.cuda.nvrtc import DEFAULT_ARCH, NvrtcError, NvrtcMissingError, compile_source, nvrtc_version
from halfulp.backends.cuda.program import DeviceProgram, Library, Program, Session
from halfulp.oracle.kernel import Kernel
from halfulp.oracle.source import Source as SourceProgram

BATCH = 64
"""Kernels in one source."""

COMPILE_ONLY = "compile-only"


class CudaAdapter(CudaLitmusMethods):
    """A kernel compiler for NVIDIA GPUs: CUDA C++, compiled at run time, at two levels of optimisation.

    Level 0 calls a function for every operation and optimises as little as NVRTC and its assembler can; level 3 inlines
    and contracts sums of products (``intent:5.5``).

    Subclasses are compilers that are wrong in one way: they set ``lowering`` or ``nvrtc_options``.

    Args:
        mode: ``"compile-only"`` compiles to PTX and runs nothing; it needs no driver and no GPU. Empty: compiles to
            machine code and runs.
        nvrtc_options: more options of NVRTC; one of the same name stands in the place of ours.

    Attributes:
        lowering: how operations are computed.
        nvrtc_options: given to NVRTC at both levels.

    Raises:
        AdapterError: no such mode, or what it needs is missing; the message says what to do.
    """

    name = "cuda"
    opt_levels: Sequence[int] = (0, 3)
    lowering: Lowering = CudaLowering()
    nvrtc_options: Sequence[str] = ()

    def __init__(self, mode: str = "", *, nvrtc_options: Sequence[str] = ()) -> None:
        if mode not in ("", COMPILE_ONLY):
            raise AdapterError(f"cuda:{mode}: after the colon there can only be {COMPILE_ONLY}")
        self.nvrtc_options = (*self.nvrtc_options, *nvrtc_options)
        self._functions = Functions(self.lowering)
        self.session: Session | None = None
        self.compile_only = bool(mode)
        self.arch = DEFAULT_ARCH
        try:
            versions = {"nvrtc": nvrtc_version()}
            if not mode:
                self.session = Session(device())
                self.arch = self.session.device.arch
                versions |= {"gpu": self.session.device.name, "cuda driver": self.session.device.driver}
        except NvrtcMissingError as error:
            raise AdapterError(f"cuda: {error}") from error
        except DriverMissingError as error:
            raise AdapterError(
                f"cuda: {error}; it takes an NVIDIA GPU and its driver to run kernels, "
                f"`--backend=cuda:{COMPILE_ONLY}` compiles them without either"
            ) from error
        versions["arch"] = self.arch
        if mode:
            self.name = f"cuda:{COMPILE_ONLY}"
        self.facts = Facts(flushes_subnormals=False, fuses_multiply_add=True, versions=versions)

    def compile(
        self, programs: Sequence[Kernel | SourceProgram], options: Options
    ) -> list[Compiled | Rejected | Unsupported]:
        """Compile each program; see `halfulp.adapters.protocol.Adapter`.

        Raises:
            ValueError: no such optimisation level.
        """
        check_level(options, self.opt_levels)
        return in_batches(programs, BATCH, lambda kernels: self._compile(kernels, options.opt_level))

    def artifact(self, program: Kernel | SourceProgram, options: Options) -> str:
        """The PTX of a program.

        Raises:
            ValueError: the backend does not compile the program, or no such optimisation level.
        """
        check_level(options, self.opt_levels)
        try:
            kernel = checked(program)
            return self._image([kernel], options.opt_level, ptx=True).decode()
        except (TypeRefusal, NotOffered, NvrtcError) as refusal:
            raise ValueError(str(refusal)) from refusal

    def source(self, kernels: Sequence[Kernel], opt_level: int) -> str:
        """The CUDA C++ of checked kernels, which are k0, k1, ..."""
        optimised = opt_level > 0
        text = Source(self._functions, inline=optimised, fuse=optimised)
        for position, kernel in enumerate(kernels):
            text.add(kernel, f"k{position}")
        return str(text)

    def device_function(self, program: Kernel | SourceProgram, options: Options, name: str) -> str:
        """CUDA C++ of a program of one output as a function of one element, for a kernel of one's own.

        The text defines ``static __device__ __forceinline__ OUT name(IN p0, IN p1, ...)`` on codes: unsigned integers
        of the width of each type, bool as a u8 of 0 or 1. It also has the typedefs ``u8`` to ``u64`` and ``i8`` to
        ``i64``, which may be repeated, and needs the options of `options_of`.

        Raises:
            TypeRefusal, NotOffered: the backend does not compile the program.
            ValueError: it has several outputs, or no such optimisation level.
        """
        check_level(options, self.opt_levels)
        return device_function(self.lowering, checked(program), name, fuse=options.opt_level > 0)

    def device_program(self, program: Kernel | SourceProgram, options: Options) -> DeviceProgram:
        """A program on arrays that stay on the device.

        Raises:
            UnsupportedError: compiled, not run; or the program is not compiled.
        """
        (answer,) = self.compile([program], options)
        if not isinstance(answer, Program):
            raise UnsupportedError(getattr(answer, "reason", "compiled, not run"))
        return answer.device_program

    def options_of(self, opt_level: int) -> tuple[list[str], list[str]]:
        """The options of NVRTC and of the assembler for a level, beside those that always hold."""
        if opt_level == 0:
            return [*least_optimisation(), *self.nvrtc_options], ["-O0"]
        return list(self.nvrtc_options), []

    def close(self) -> None:
        """Free the device's buffers. Programs may still be called, and take new ones."""
        if self.session is not None:
            self.session.close()

    def _image(self, kernels: Sequence[Kernel], opt_level: int, *, ptx: bool = False) -> bytes:
        nvrtc, ptxas = self.options_of(opt_level)
        return compile_source(
            self.source(kernels, opt_level), arch=self.arch, ptx=ptx, options=["--minimal", "-w", *nvrtc], ptxas=ptxas
        )

    def _compile(self, kernels: Sequence[Kernel], opt_level: int) -> list[Compiled | Unsupported]:
        """Compile together; apart where NVRTC refuses, so that the others are not lost with the one it refuses."""
        try:
            image = self._image(kernels, opt_level, ptx=self.session is None)
        except NvrtcError as error:
            if len(kernels) == 1:
                return [Unsupported(str(error))]
            return [answer for kernel in kernels for answer in self._compile([kernel], opt_level)]
        if self.session is None:
            return [_not_run] * len(kernels)
        library = Library(self.session, image)
        return [Program(kernel, library, f"k{i}") for i, kernel in enumerate(kernels)]


def _not_run(*inputs: Array) -> list[Array]:
    """A program of `COMPILE_ONLY`."""
    raise UnsupportedError("compiled, not run")


@cache
def least_optimisation() -> tuple[str, ...]:
    """NVRTC's option for it, where it has one."""
    option = "--Ofast-compile=max"
    try:
        compile_source("", ptx=True, options=[option])
    except NvrtcError:
        return ()
    return (option,)
