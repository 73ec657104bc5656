"""Functions and approximate operations on NVIDIA GPUs.

libdevice, the library that comes with NVRTC, is used where the error that NVIDIA publishes ("CUDA C++ Programming
Guide", Mathematical Functions, maximum errors in ulp from the correctly rounded result) is within the clause; kernels
of our own (`common.math_f32`, `common.math_f64`) are used elsewhere:

========  =============================================  ========================================================
function  f32                                            f64
========  =============================================  ========================================================
lgamma    own: libdevice's bound of 6 excludes           libdevice: 4 outside (-23.0001, -2.2637); own from -24
          (-10.001, -2.264)                              to -2
asin      libdevice: 2 (no bound in the text)            libdevice: 2 (no bound in the text)
log1p     libdevice: 1 of 1 (``intent:5-e``)             libdevice: 1 of 1
erfc      libdevice: 4 of 4 (``intent:5-f``)             libdevice: 5 of 5
i0        libdevice: 6 of 6 (``intent:5-g``)             own: 3 seen, of 6; libdevice's 6 leave nothing to spare
exp2      libdevice: 2 (no bound in the text)            libdevice: 1 (no bound in the text)
tanh      libdevice: 2 (no bound in the text)            libdevice: 1 (no bound in the text)
========  =============================================  ========================================================

The approximate operations are single instructions, written as PTX, so that no compiler takes them for the ordinary
ones. What the text asks beyond what PTX promises of them is put around them.
"""

from __future__ import annotations

from halfulp.backends.common import code as abstract
from halfulp.backends.common import lower_math
from halfulp.backends.common.check import Mode
from halfulp.backends.common.code import Reg
from halfulp.backends.common.lower_cast import F32
from halfulp.backends.common.lowering import Lowering
from halfulp.backends.cuda.cpp import Code

OWN = {"float": frozenset({"lgamma"}), "double": frozenset({"i0", "lgamma"})}
"""Functions that are not libdevice's, by type. Beyond (-24, -2) lgamma of ``double`` calls libdevice."""


class CudaLowering(Lowering):
    """See the module. A suspect overrides one method, and gives the subclass to its adapter."""

    def function(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        if mode:
            return self.approximate(code, op, x, mode)
        if op not in OWN[x.type]:
            return code.call_library(op, x)
        return lower_math.single(code, op, x) if x.type == "float" else lower_math.double(code, op, x)

    def approximate(self, code: abstract.Code, op: str, x: Reg, mode: Mode) -> Reg:
        """``exp2`` and ``tanh`` (``intent:5.1-e``, ``intent:5.1-f``)."""
        assert isinstance(code, Code)
        if op == "tanh":
            return code.ptx("tanh.approx.f32", "float", x)
        return code.ptx("ex2.approx.ftz.f32" if mode == "flushing" else "ex2.approx.f32", "float", x)

    def divide(self, code: abstract.Code, a: Reg, b: Reg, mode: Mode) -> Reg:
        """``fdiv`` (``intent:5.1-g``).

        Zero by a subnormal divisor is zero (``reading:13``): the instruction multiplies by a reciprocal that may
        overflow. It is divided by one there.
        """
        assert isinstance(code, Code)
        if mode == "flushing":
            return code.ptx("div.approx.ftz.f32", "float", a, b)
        bits = code.convert("bitcast", b, "i32")
        size = code.and_(bits, F32.magnitude_mask)
        subnormal = code.icmp("ult", code.sub(size, 1), (1 << F32.fraction_bits) - 1)
        zero = code.fcmp("oeq", a, code.real("float", 0.0))
        one = code.convert("bitcast", code.or_(code.and_(bits, F32.sign_bit), F32.one), "float")
        divisor = code.select(code.and_(subnormal, zero), one, b)
        return code.ptx("div.approx.f32", "float", a, divisor)
