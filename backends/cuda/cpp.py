"""CUDA C++ as text, written one instruction at a time.

Integers are unsigned in C++, so that they wrap; an instruction that has a sign converts its operands. Narrow integers
are computed in C++'s wider ones and cut by the assignment. No ``a*b + c`` stands in one expression, and NVRTC is told
not to contract.
"""

from __future__ import annotations

from halfulp.backends.common import code
from halfulp.backends.common.code import Conversion, FloatOp, FloatPredicate, IntegerOp, Predicate, Reg

PRELUDE = """\
typedef unsigned char u8;typedef unsigned short u16;typedef unsigned u32;typedef unsigned long long u64;
typedef signed char i8;typedef short i16;typedef int i32;typedef long long i64;
"""
"""Names of types. It may stand in a source more than once."""

TYPES = {"i1": "bool", "i8": "u8", "i16": "u16", "i32": "u32", "i64": "u64", "float": "float", "double": "double"}
"""Types of `code` in C++."""

LIBRARY = {"i0": "cyl_bessel_i0"}
"""Functions whose name in CUDA is not ours."""

_OPERATORS = {
    **{"add": "+", "sub": "-", "mul": "*", "udiv": "/", "sdiv": "/", "and": "&", "or": "|", "xor": "^"},
    **{"shl": "<<", "lshr": ">>", "ashr": ">>"},
    **{"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"},
}
_COMPARISONS = {
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"oeq": "==", "une": "!=", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">="},
}
_BITCASTS = {"float": "__uint_as_float", "double": "__longlong_as_double"}
_CODES = {"float": "__float_as_uint", "double": "__double_as_longlong"}
_INFINITIES = {"float": "__uint_as_float(0x7f800000u)", "double": "__longlong_as_double(0x7ff0000000000000ll)"}
_NANS = {"float": "__uint_as_float(0x7fc00000u)", "double": "__longlong_as_double(0x7ff8000000000000ll)"}


class Code(code.Code):
    """Statements of CUDA C++."""

    def emit(self, type_: str, text: str) -> Reg:
        """Append the definition of a variable of ``type_`` by an expression."""
        name = self._name()
        self.lines.append(f"{TYPES[type_]} {name}={text};")
        return Reg(type_, name)

    def ptx(self, instruction: str, type_: str, *args: Reg) -> Reg:
        """Append one PTX instruction, whose operands are floats; its result is one too."""
        name = self._name()
        letter = {"float": "f", "double": "d"}
        places = ",".join(f"%{i}" for i in range(len(args) + 1))
        inputs = ",".join(f'"{letter[arg.type]}"({arg.name})' for arg in args)
        self.lines.append(f'{TYPES[type_]} {name};asm("{instruction} {places};":"={letter[type_]}"({name}):{inputs});')
        return Reg(type_, name)

    def _name(self) -> str:
        name = f"{self.prefix}{self.count}"
        self.count += 1
        return name

    def constant(self, type_: str, value: int) -> Reg:
        if type_ == "i1":
            return Reg(type_, "true" if value & 1 else "false")
        width = int(type_[1:])
        return Reg(type_, f"{value & ((1 << width) - 1)}{'ull' if width == 64 else 'u'}")

    def real(self, type_: str, value: float) -> Reg:
        if value != value:
            return Reg(type_, _NANS[type_])
        if value in (float("inf"), float("-inf")):
            text = _INFINITIES[type_]
        else:
            digits, _, exponent = abs(value).hex().partition("p")
            text = f"{digits.rstrip('0').rstrip('.')}p{int(exponent)}{'f' if type_ == 'float' else ''}"
        return Reg(type_, f"(-{text})" if str(value).startswith("-") else text)

    def integer_op(self, op: IntegerOp, a: Reg, b: Reg) -> Reg:
        left, right = a.name, b.name
        if op in ("sdiv", "ashr"):
            left = _signed(a)
        if op == "sdiv":
            right = _signed(b)
        if op in ("mul", "shl") and a.width < 32:
            left = f"(u32){left}"  # a product of two u16 overflows C++'s int
        return self.emit(a.type, f"{left}{_OPERATORS[op]}{right}")

    def float_op(self, op: FloatOp, a: Reg, b: Reg) -> Reg:
        return self.emit(a.type, f"{a.name}{_OPERATORS[op]}{b.name}")

    def compare(self, predicate: Predicate, a: Reg, b: Reg) -> Reg:
        if predicate.startswith("s"):
            return self.emit("i1", f"{_signed(a)}{_COMPARISONS[predicate[1:]]}{_signed(b)}")
        return self.emit("i1", f"{a.name}{_COMPARISONS[predicate.removeprefix('u')]}{b.name}")

    def fcmp(self, predicate: FloatPredicate, a: Reg, b: Reg) -> Reg:
        if predicate == "uge":
            return self.emit("i1", f"!({a.name}<{b.name})")
        return self.emit("i1", f"{a.name}{_COMPARISONS[predicate]}{b.name}")

    def choose(self, condition: Reg, a: Reg, b: Reg) -> Reg:
        return self.emit(a.type, f"{condition.name}?{a.name}:{b.name}")

    def converted(self, op: Conversion, a: Reg, type_: str) -> Reg:
        match op:
            case "bitcast":
                text = f"{_BITCASTS[type_] if type_ in _BITCASTS else _CODES[a.type]}({a.name})"
            case "sext":
                text = f"0-({TYPES[type_]}){a.name}" if a.type == "i1" else _signed(a)
            case "sitofp":
                text = _signed(a)
            case "fptrunc":
                # Written as a plain conversion, NVRTC 13 folds that of a signalling NaN whose payload has no bit in
                # the upper 23 (0x7ff0000000000001) to infinity. The intrinsic is left to the machine.
                text = f"__double2float_rn({a.name})"
            case "trunc":
                text = f"{a.name}&1" if type_ == "i1" else a.name
            case _:
                text = a.name
        return self.emit(type_, text)

    def fneg(self, a: Reg) -> Reg:
        return self.emit(a.type, f"-{a.name}")

    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg:
        return self._call("fma", a, b, c)

    def multiply_add(self, a: Reg, b: Reg, c: Reg) -> Reg:
        return self.fma(a, b, c)

    def sqrt(self, a: Reg) -> Reg:
        return self._call("sqrt", a)

    def floor(self, a: Reg) -> Reg:
        return self._call("floor", a)

    def absolute(self, a: Reg) -> Reg:
        return self.emit(a.type, f"{_signed(a)}<0?0-{a.name}:{a.name}")

    def truncate(self, a: Reg, type_: str, *, signed: bool) -> Reg:
        """By instructions that clamp, of 32 and 64 bits.

        They make zero of NaN only where neither side has 64 bits (PTX ISA, ``cvt``). Narrower integers are clamped once
        more.
        """
        width = int(type_[1:])
        target = {(32, True): "int", (32, False): "uint", (64, True): "ll", (64, False): "ull"}[max(width, 32), signed]
        wide = f"i{max(width, 32)}"
        number = self.emit(wide, f"__{a.type}2{target}_rz({a.name})")
        if width == 64 or a.type == "double":
            number = self.emit(wide, f"{a.name}=={a.name}?{number.name}:0")
        if width < 32:
            largest = (1 << (width - int(signed))) - 1
            number = self.select(self.icmp("sgt" if signed else "ugt", number, largest), largest, number)
            if signed:
                number = self.select(self.icmp("slt", number, -largest - 1), -largest - 1, number)
        return self.convert("trunc", number, type_)

    def call_library(self, name: str, a: Reg) -> Reg:
        """libdevice, whose functions of f32 end in f."""
        return self._call(LIBRARY.get(name, name), a)

    def _call(self, name: str, *args: Reg) -> Reg:
        """A function whose variant for ``float`` ends in f."""
        suffix = "f" if args[0].type == "float" else ""
        return self.emit(args[0].type, f"{name}{suffix}({','.join(arg.name for arg in args)})")


def _signed(a: Reg) -> str:
    """An integer as a signed one. C++ converts a constant likewise."""
    return f"({a.type}){a.name}"
