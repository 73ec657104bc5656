"""The clauses of dialect *intent* and the readings, restated in our own words.

A clause is one sentence of the language that can be broken. Its id is ``intent:`` and a number, e.g.
``intent:5.2-g``. A *reading* is a decision of ours where the text leaves a choice: ``reading:1`` to
``reading:31``. Records, rejection tables, properties and suspects name the clauses they rest on, so that
every verdict can be traced to a sentence.

The text below is data: a paragraph starts with the letter of the clause and its kinds, and its further lines
are indented.
A clause is *planned* where its chapter is not yet part of the suite; ``Clause.later`` says what is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS: dict[str, str] = {
    "V": "value rule: the result is checked",
    "R": "rejection rule: the program must be refused",
    "I": "illegal input: the caller's fault, never judged",
    "P": "permission: several results are allowed",
    "D": "duty of the author: assumed, not judged",
}
"""What kind of rule a clause is. A clause may be of several kinds."""


_PARAGRAPH = re.compile(r"^([a-z]) ([VRIPD]+) (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Clause:
    """One clause.

    Attributes:
        id: e.g. ``"intent:5.2-g"``.
        kinds: one or more letters of `KINDS`, e.g. ``"RV"``.
        chapter: section of the dialect, e.g. ``"5.2"``.
        rule: the rule in our own words.
        later: empty where the suite checks the clause today, else what has to come first.
    """

    id: str
    kinds: str
    chapter: str
    rule: str
    later: str = ""

    @property
    def status(self) -> str:
        """``"checked"`` or ``"planned"``."""
        return "planned" if self.later else "checked"


@dataclass(frozen=True)
class Chapter:
    """A section of the dialect.

    Attributes:
        number: e.g. ``"5.2"``.
        title: what it is about.
        text: its clauses, one paragraph each.
        checked: letters of the clauses that the suite checks today.
        later: why the others are planned.
        exceptions: other reasons, by letter.
    """

    number: str
    title: str
    text: str
    checked: str = ""
    later: str = ""
    exceptions: tuple[tuple[str, str], ...] = ()

    def clauses(self) -> list[Clause]:
        reasons = dict(self.exceptions)
        found = []
        for letter, kinds, rule in re.findall(r"^([a-z]) ([VRIPD]+) (.*(?:\n  .*)*)", self.text, re.MULTILINE):
            later = "" if letter in self.checked else reasons.get(letter, self.later)
            words = " ".join(rule.split())
            found.append(Clause(f"intent:{self.number}-{letter}", kinds, self.number, words, later))
        return found


CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        "1",
        "Canonical value types",
        """
a V There are sixteen scalar types: bool, index (64 bits, signed), i8 i16 i32 i64, u8 u16 u32 u64, f16 bf16
  f32 f64, f8e4m3fn and f8e5m2. Each can be a scalar and the element of an array.
b R No four-bit type (i4, u4, e2m1) is an element type: a program that uses one is refused.
c V Data narrower than a byte travels in unsigned carriers of 8, 16 or 32 bits and is unpacked by ordinary
  index, shift, mask, sign-extension and scale arithmetic.
d V How lanes are laid out, padded, addressed or encoded is no part of a type and cannot change a result.
e V A tuple type is the sequence of its component types; a record type is its ordered, distinct field names
  with their types. Both are immutable, and two of them are equal only when all of that agrees.
f V Components of a tuple or record may differ in shape and dtype, and may be tuples or records themselves.
g R A tuple or record has no shape and no dtype of its own; asking for one is refused.
h V Tuples and records can be values, results of helpers, loop carries and accumulators.
i R They cannot be elements of a buffer or of an external view, nor parameters of a kernel.
j R A record with two fields of one name is refused.
k V A buffer holds elements of a single scalar dtype.
l V Q4_K and Q8_K blocks are plain u8 data; their format belongs to the quantized operations, not to the
  types.
""",
        checked="ab",
        later="needs products, buffers and views",
        exceptions=(
            ("c", "needs programs that unpack carriers; their shifts and masks are checked under 4"),
            ("d", "needs layouts, which no program of today has"),
            ("l", "needs the quantized operations"),
        ),
    ),
    Chapter(
        "2",
        "Logical index and shape values",
        """
a V Arithmetic on index is signed and 64 bits wide; a backend that computes addresses in fewer bits may not
  let it show in any index value.
b R A run-time extent has an identity. Two of them agree only if they are the same value or an operation has
  stated that they are equal.
c VR Pointwise operands are aligned at their last axes; along an axis the extents are equal or one of them
  is 1. 0 against 1 gives 0, and 0 against any other extent is refused.
d VR reshape keeps the number and row-major order of the elements and infers at most one extent, if it is
  unique. transpose takes every axis exactly once and reverses them when none are named. join of two equal
  shapes adds a last axis of two.
e V The shape of a value or view is the tuple of its logical extents; run-time extents keep their identity.
f RI full needs extents that are not negative: refused when known, an illegal input at run time.
g V full converts its scalar to the dtype as a literal or a cast would, and repeats it; an extent of zero
  gives an empty array.
h V The shape of a value can be given to full as it is; it never means a physical shape.
i V Enums exist at compile time only, with a closed set of distinct members. They select specialisations,
  are compared with their own type and steer compile-time control.
j R Members of different enums are not compared implicitly.
k R An enum enters no run-time value, parameter or buffer, and takes no arithmetic, cast or bitcast.
l V The integer behind an enum member means nothing: other numbers, same program.
""",
        checked="a",
        later="needs shapes and index values",
        exceptions=tuple((letter, "needs compile-time values") for letter in "ijkl"),
    ),
    Chapter(
        "3",
        "Literals and promotion",
        """
a V A literal has no type. It takes the dtype that the place where it is used expects, if that dtype can
  hold it.
b R A literal that the expected dtype cannot hold is refused: 300 or -129 in i8, -1 in u8, 1.5 in any
  integer, 1e6 in f16. A fraction such as 0.1 is rounded into a float. What the text leaves open is
  unspecified (reading:8).
c V Where nothing is expected, the first run-time value made from a bool, int or float literal is bool, i64
  or f64.
d VR Later uses do not change the dtype of a value that exists: an f64 made from 1.0 does not become f32
  because an f32 meets it.
e V The front end fixes the dtype of every pointwise result and inserts no conversion of its own, apart from
  those that an accumulator dtype or the fixed widening of sums asks for.
f V Operands of one dtype are combined as they are.
g R Operands of different dtypes are refused unless a cast joins them; i32 with u32 and index with i64 count
  as different.
h V A comparison gives a bool, which is not a number: arithmetic on it is refused.
i V A structured operation has an accumulator dtype, explicit or by rule; given explicitly, the conversion
  of the operands to it is implied and happens before anything is combined.
j V Sums and prefix sums widen by default: i8 and i16 to i32, u8 and u16 to u32, every float below f32 to
  f32; the others keep their dtype. Elements are widened before they are added, and the result has the wide
  dtype.
k V The other builtin reductions and cummax keep the dtype of their input.
l R dot, matvec, vecmat and matmul without an accumulator dtype are refused.
m V outer is a plain product of one dtype and has no accumulator.
n R In a general reduction or scan every component has the dtype of its identity and of its result.
o P Inside, a backend may represent numbers as it likes, as long as the results obey the same rules.
p V The dtype in memory, of the operands, of the accumulator and of a machine instruction are four different
  things.
""",
        checked="abcdefgh",
        later="needs reductions and contractions",
    ),
    Chapter(
        "4",
        "Integer arithmetic",
        """
a V Sum, difference and product are taken modulo 2^width; signed values are read in two's complement.
b V Signed // is the floor of the exact quotient q, and % is a - q*b: zero, or of the sign of the divisor.
c V Unsigned // and % are the quotient and remainder with 0 <= r < b.
d R / between integers is refused; the author casts first.
e V >> copies the sign bit of a signed integer and shifts in zeros for an unsigned one.
f V << keeps the low bits that fit.
g V and, or, xor and not work on the bits of the fixed-width pattern.
h I A shift amount that is negative, or not below the width, is illegal.
i I Division by zero and remainder by zero are illegal.
j I The smallest signed integer // -1 is illegal. Its remainder is not mentioned: unspecified, zero
  expected.
k R % is for integers only; a float remainder would have to be a different operation with a name of its own.
l V The rules hold bit for bit on every target, whatever its own instructions do.
""",
        checked="abcdefghijkl",
    ),
    Chapter(
        "5",
        "Floating point in general",
        """
a V Ordinary float operations compute the IEEE 754 result of their format, rounded once to nearest, ties to
  even, subnormals, signed zeros, infinities and NaN included.
b V Nothing is relaxed unasked: the order and dependencies of the source stand, no flushing of subnormals,
  no reciprocal for a division, no contraction beyond the permissions of 5.3 to 5.6.
c V lgamma is log|Gamma(x)|: +0 at 1 and 2, +infinity at zero, at the negative integers and at both
  infinities, NaN for NaN, in the dtype of its input.
d VP asin gives the principal value, within RN(pi/2) in magnitude; it keeps a zero with its sign, gives NaN
  outside [-1, 1] and is as accurate as a mathematical library, not correctly rounded.
e V log1p is log(1+x) of the exact sum: zeros kept, -infinity at -1, NaN below, +infinity at +infinity. At
  most 1 ulp in f32 and in f64.
f V erfc is one minus erf of the exact values: 1 at both zeros, +0 at +infinity, 2 at -infinity. At most 4
  ulp in f32, 5 in f64.
g V i0 is the modified Bessel function of order zero: even, 1 at both zeros, +infinity at both infinities
  and where the format overflows. At most 6 ulp in f32 and in f64.
h V These functions take formats below f32 through f32 and one ordinary cast back; f32 and f64 are computed
  in their own precision.
i P None of them promises the rounding of particular steps: the error is counted against the correctly
  rounded result.
j V They leave the rules for neighbouring operations as they are.
k VR They have no side effect, work element by element and keep dtype and shape; integers are refused.
""",
        checked="abcdefghijk",
    ),
    Chapter(
        "5.1",
        "Explicit approximate mathematics",
        """
a V fdiv, exp2 and tanh take approximate, false by default; then they are the ordinary operations, and fdiv
  is /.
b R flush_to_zero belongs to fdiv and exp2 with approximate=True; anywhere else it is refused.
c R Both arguments are compile-time bools: an integer or a run-time value is refused.
d R An approximate operation has f32 operands and an f32 result; nothing is converted for it.
e V Approximate exp2 is within 2 ulp; +0, +infinity, NaN and 1 at -infinity, +infinity, NaN and the zeros.
f V Approximate tanh has a relative error of at most 2^-11; zeros keep their sign, infinities give -1 and 1,
  a subnormal input comes back unchanged.
g V Approximate fdiv multiplies by a reciprocal: within 2 ulp for divisors from 2^-126 to 2^126, a zero of
  the quotient's sign for larger ones (NaN if the dividend is infinite), the class of the ordinary quotient
  elsewhere.
h V flush_to_zero turns subnormal operands and results of that one operation into zeros of the same sign,
  and touches nothing else.
i R A target without the approximate mode refuses the program; it does not substitute another mode.
j V The attributes belong to the operation's identity through every pass: exp2 and its approximate form are
  never merged.
k P The results need not be correctly rounded or the same on two targets.
l V Approximation stays with the operation that asked for it; its neighbours keep their own rules.
""",
        checked="abcdefghijkl",
    ),
    Chapter(
        "5.2",
        "Casts, bitcasts, maximum and minimum",
        """
a V Between integers, a cast takes the value modulo 2^width of the destination and reads it with the
  destination's sign.
b V From an integer to a float it rounds the exact integer once, to nearest even; beyond the range it gives
  infinity, or what 5.2-f says where there is none.
c VI From a float to an integer it truncates toward zero. NaN, infinities and values that do not fit after
  truncation are illegal.
d V To a narrower float it rounds the exact value once, to nearest even, and finite values beyond the
  rounding threshold become infinities.
e V To a wider float it is exact.
f VI f8e4m3fn has 4 exponent and 3 fraction bits, bias 7, subnormals, no infinity and one NaN magnitude; the
  largest number is 448. A finite value beyond the range is illegal.
g V f8e5m2 has 5 exponent and 2 fraction bits, bias 15, and infinities and NaN as IEEE 754 has them; the
  largest number is 57344, and values of 61440 and more become infinities.
h V Every code of an 8-bit float becomes the exact value in f16, bf16, f32 and f64.
i V Clamping is an operation of its own. A plain cast never saturates.
j RV A bitcast needs formats of one width, and keeps the bits as they are.
k V maximum and minimum are NaN when either operand is.
l V maximum_num and minimum_num prefer the number when one operand is NaN, and are NaN only for two.
m V Float casts and IEEE arithmetic keep the sign of zero.
n P Of a NaN result only that it is NaN counts; its payload, quietness and sign do not.
o V Casts from and to bool are not listed: unspecified, one and zero expected (reading:7).
""",
        checked="abcdefghijklmno",
    ),
    Chapter(
        "5.3",
        "A contraction and an addition",
        """
a P A contraction that starts at zero and whose only use is the addition of a matching C may start from C
  instead.
b V Fused so, an empty contraction is C itself; unfused it is +0 + C.
c V Fusing changes neither the precision of the inputs, the pairing of axes, the accumulator dtype nor any
  effect.
d V The permission depends on no target, name, hint or tuning.
e R It does not reach across a cast, a second use or a contraction that already starts elsewhere, and allows
  no other reordering.
f P A change of shape may move along if every element keeps its partner.
""",
        later="needs contractions",
    ),
    Chapter(
        "5.4",
        "A product and a reduction",
        """
a P A float product used by one plain sum of the same dtype, with no cast between, may be computed as a
  contraction, with multiply-adds fused.
b V The members, the coordinates of the result, the effects and the roles of the axes stay.
c P The default widening of a sum puts a cast in between, so that an f16 product is rounded to f16 first;
  loops and scans are not covered either.
d V Precision of inputs and accumulator stays; no other approximation.
e V An empty sum is still zero.
""",
        later="needs reductions",
    ),
    Chapter(
        "5.5",
        "Fused multiply-add",
        """
a P a*b+c, c+a*b, a*b-c and c-a*b in one float dtype may be rounded once instead of twice.
b P The two may differ in the last bit, in the sign of zero and in extreme overflow or cancellation.
c V Where a product has several uses, fusing one of them leaves the rounded product of the others alone.
d V Nothing else is relaxed: dtypes, input precision, casts, loop order and effects stay as they are.
e V A rounding that an operation prescribes is a wall: no multiply-add is formed across the steps of a
  quantized record.
""",
        checked="abcd",
        later="needs the quantized operations",
    ),
    Chapter(
        "5.6",
        "Numerical options of a compilation",
        """
a V The default, source, keeps all the rules above; the other value is relaxed_normalization.
b P relaxed_normalization concerns a normalised summary over one set of members (validity, maximum, sum of
  exponential weights, weighted contraction): it may be computed in segments and merged by rescaling.
c DI Under it the caller warrants finite scores of valid members and finite values wherever a weight
  multiplies one.
d V The compiler adds no reads and no tests for finiteness.
e P The rounding, underflow and intermediate overflow that this regrouping brings are allowed.
f V Empty and wholly inactive sets still give the identity; members, coordinates, effects and dtypes stay.
g P It permits no other reordering or approximation and crosses no prescribed rounding.
h V online_reduction=False switches the rewriting off; it does not change a meaning, and True forces
  nothing.
i V Folds that the author writes follow section 6 whatever the option says.
""",
        later="needs reductions and compile options",
    ),
    Chapter(
        "6",
        "Reductions, scans and folds",
        """
a P A general reduction may use any tree over any order of its members; of a float one, the result of any is
  allowed.
b V Members, dtypes, the treatment of NaN and ties, and effects stay; no approximation.
c V A scan keeps the order of its prefixes and their members; only the grouping is free.
d V An ordinary loop is a strict left fold: its sums are those of the sequence, multiply-adds fused or not.
e D That the combination is associative, commutative and has its identity is the author's word.
f R A missing identity, a combination of the wrong shape or with effects, a bad axis, or an identity given
  to a builtin reduction is refused.
g V The result has the shape of the source without the reduced axes.
h V Reducing nothing gives the identity.
i V Scanning nothing gives an empty array.
j V Direction and inclusiveness are as asked; an exclusive scan starts with the identity.
k V reduce.max and cummax propagate NaN; they start from -infinity, from -448 in f8e4m3fn, and from the
  smallest integer.
l V Sums start from the zero of the result's dtype, any from false, all from true.
m V arg_reduce.max takes the lowest index of equal values (the zeros are equal); a NaN wins, with the index
  of a NaN.
n V A NaN reaches exactly the prefixes that contain it.
o P A region fold or scan may be cut into consecutive pieces and grouped freely, but not permuted.
p D The author's summary of two pieces joined is the combination of their summaries, and the identity is
  neutral.
q R The axes, schemas, captures, purity, output relation and effects of a region operation are verified.
r V An identity has to be neutral in float arithmetic too: a maximum of -infinity rescaled by an exponential
  is not.
s V Folding nothing gives the identity; scanning nothing gives the initial state and no output.
t RV A summary cannot see how the source was cut; positions are absolute and come from the axis.
u V A region scan agrees with itself however it is cut: states and emitted pieces follow from the summaries.
v P Float results of a region operation may differ by rounding between cuts, and by nothing else.
""",
        later="needs reductions and scans",
    ),
    Chapter(
        "7",
        "Scaled, sparse and histogram",
        """
a V e2m1 has four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; no NaN, no infinity.
b V Two of them share a byte, the earlier one in the low half.
c V e4m3 is the encoding of f8e4m3fn.
d V An e8m0 scale of code c is 2^(c-127), and code 255 is NaN for its whole group; 2^-127 is not flushed.
e R The operands have the fixed schema of carriers and scales by group, with one group size that the packing
  divides; anything else is refused.
f V Element k is multiplied by the scale of its group before it is multiplied and added; the accumulator
  dtype is stated.
g R Another order of axes is the author's to arrange; nothing is guessed.
h V A target's native instruction may not narrow these rules.
i V One-of-two sparsity keeps one value of each pair and its position; the other is zero.
j V Two-of-four sparsity keeps two values of each four and their increasing positions.
k I Metadata out of range or out of order, and extents that do not divide, are illegal.
l V The result is that of the decoded dense contraction.
m RVI A histogram counts integers into a positive number of bins, with an explicit integer count dtype and
  an optional mask.
n V Each active value counts one; inactive ones count nothing and may be anything. An active value outside
  is illegal.
o V Counts wrap in their dtype.
p V Counting nothing gives zeros.
""",
        later="needs scaled and sparse contractions and histograms; the oracle has e2m1 and e8m0",
    ),
    Chapter(
        "Q",
        "Q4_K and Q8_K",
        """
a R quantize takes groups of 256 f32 values to 292-byte Q8_K blocks, and nothing else.
b R quantized_dot takes Q4_K and Q8_K blocks of as many groups to one f32, without initial value or batch.
c V No groups: no blocks, and a dot of +0 that reads nothing.
d V The layouts of the two blocks are fixed byte by byte, little endian, low bits first.
e V The six-bit scales and minima and the four-bit values of Q4_K are unpacked by fixed shifts and masks.
f DI The block sums of Q8_K are the sums of its values; nobody checks or repairs them.
g V The two inner sums of a block are exact integers.
h V A block's value is formed by a fixed sequence of single f32 roundings that may not be fused or
  rearranged.
i P The blocks' values are added in order with any grouping.
j V Quantising scales by the value of largest magnitude (the minimum on a tie), rounds to nearest even and
  clamps to i8.
k I Values or scales that are not finite are illegal.
l V Worked examples fix the arithmetic of quantising bit by bit.
m V A value quantised for several users is quantised once.
""",
        later="needs the quantized operations",
    ),
    Chapter(
        "8",
        "External views",
        """
a V An element lives at base + offset + the sum of coordinate times stride, counted in elements.
b V Strides may be negative.
c V A stride of zero is fine for reading.
d RI A writable view that repeats an address needs a rule for collisions.
e I Every active coordinate lies in the allocation; nothing is clamped.
f V An inactive access forms no address.
g V Views may overlap unless said otherwise; reads take a snapshot in order.
h DR noalias is a promise of the caller; together with an alias group it is refused.
i RI Writing an input view is refused; reading an output before it is written is illegal.
j V Alignment, contiguity and vector width mean nothing, unless an external format needs them to be read
  correctly.
""",
        later="needs views",
    ),
    Chapter(
        "9",
        "Buffers",
        """
a R A buffer is declared with a shape and a dtype.
b VR Without an initial value it holds nothing yet; with one, all of it, and shape and dtype have to match.
c V A new buffer overlaps nothing.
d R It lives in its block and cannot leave the kernel.
e I Reading an element that this instance has not written is illegal.
f V That initialisation cannot be proven is no reason to refuse, and no proof either.
g V Reads and writes keep the author's order.
h V Where a buffer is stored is the compiler's business and changes no result.
""",
        later="needs buffers",
    ),
    Chapter(
        "10",
        "Indexed access and collisions",
        """
a V A read that is not valid touches no memory and gives the fill.
b R A fill of another dtype, or a validity that is not bool, is refused.
c V A write that is not valid does nothing.
d V Index relations compose as expressions, axis by axis, not as shapes.
e V Reads, writes, unique stores, merging scatters and atomics are different effects.
f DR A unique store needs active targets that are provably different.
g P scatter_reduce merges equal targets with a pure combination, in any order.
h V Ordered control keeps the effects in the order of the program.
i I Parallel iterations that may meet at an address need a unique store, a merging scatter or an atomic.
j V A copy reads all before it writes.
k R Plain accesses take no memory order and no scope.
l R A parallel loop has no carries and no break.
""",
        later="needs indexed access",
    ),
    Chapter(
        "11",
        "Atomics",
        """
a V There are atomic load, store, compare-exchange, and the read-modify-writes exchange, add, max, min, and,
  or, xor.
b V Every address has one order of modification; a read-modify-write is indivisible and returns the value
  before it.
c V Compare-exchange returns the old value and whether it was the expected one.
d V Relaxed, acquire, release and acquire-release mean what the axiomatic model says.
e R A load is relaxed or acquire, a store relaxed or release; there is no sequentially consistent order.
f V The order of a failed compare-exchange follows from that of a successful one.
g R There is no scope argument.
h V All executions of one invocation that reach the address take part; the compiler picks the physical
  scope.
i I Plain conflicting accesses are a race, and illegal.
j P Nothing is promised of running at the same time or of progress while spinning.
""",
        checked="abcdefgh",
        later="no program of the suite has a race, waits for another thread, or needs it to run at the same time",
    ),
    Chapter(
        "12",
        "Random numbers",
        """
a V The generator is Philox 4x32 with ten rounds, keyed by the seed, one word of the block of counter // 4.
b V Fixed vectors pin its bits.
c RI The seed is u64 and the counter u64 or a non-negative index; i64 is refused.
d V It is a function of seed and counter alone.
e V uniform in f32 is the top 24 bits times 2^-24, in [0, 1).
f P A native generator may stand in only if its bits are proven the same.
g V Other distributions are ordinary code on top.
""",
        checked="abcdef",
        later="has nothing to check: ordinary code is judged under its own clauses",
    ),
    Chapter(
        "13",
        "Constraints on inputs",
        """
a V There are two: an index assumed in bounds, and the annotations alias and noalias.
b R The first is a statement without a value; using its result is refused.
c R There is no general assumption and no hint of alignment, order, uniqueness, equal shapes or valid
  formats.
d IR An index assumed in bounds that is not is illegal; naming an axis that does not exist is refused.
e V The assumption changes no result for an index that is in bounds.
""",
        later="needs views and indexed access",
    ),
)
"""The dialect, in the order of its text."""

CLAUSES: dict[str, Clause] = {clause.id: clause for chapter in CHAPTERS for clause in chapter.clauses()}
"""Every clause by id, in the order of the text."""

_READINGS = """
1 Error in ulp. The error is the number of steps between neighbouring numbers of the result's format,
  counted from the correctly rounded result; the two zeros are one point. A breach exceeds the bound both in
  steps and as a multiple of the ulp of the correct result; where only one exceeds it, next to a power of
  two, the result is unspecified. Beyond the largest number the steps go on as if exponents had no end, and
  an infinity stands for all points from there. Results stated exactly have no tolerance. The error against
  the exact value is reported and never failed.
2 Sign of zero. It counts where the text states it: IEEE arithmetic and casts, functions that keep a signed
  zero, results given as +0, flushed zeros. Elsewhere (maximum, empty sums, a fused result next to an
  unfused one) either zero will do.
3 NaN. Any payload, sign and quietness. A NaN where a number is due is a breach, and so is the reverse.
4 Casts to f8e4m3fn. Magnitudes up to 448 are judged. Above 448 and up to 464, which round to 448, the
  result is unspecified; beyond, the input is illegal; an infinity is unspecified, since the text speaks of
  finite input only. NaN has to stay NaN.
5 Float to integer. Legal when the truncated value fits: 127.9 and -128.9 are fine for i8.
6 maximum and minimum of two zeros may be either zero in *intent*; *flydsl* orders -0 below +0. maximum_num
  and minimum_num of two NaNs are NaN.
7 bool casts. The text lists none, so they are unspecified. Where a backend offers them, true is expected as
  one and any non-zero value as true; deviations are reported.
8 Literals. In an integer dtype an integer literal has to be in range, and one with a fraction is refused.
  In a float dtype a float literal is rounded to nearest even and refused when it overflows. Unspecified: an
  integer that the float cannot hold exactly, 1.0 or True in an integer, a float between the largest number
  and the rounding threshold.
9 Functions without a bound. Special values, domain and signs are judged. Accuracy is measured, compared
  with the published CUDA table and reported beyond it. Still breaches: NaN for a number or the reverse, an
  error that is gross in f32 or f64, and an f64 asin with the accuracy of f32.
10 Functions below f32. The allowed results are the casts of all f32 values within the f32 bound. Where such
  a cast is illegal or unspecified, no claim.
11 Approximate exp2. The 2 ulp hold for subnormal results too. With flushing, a subnormal operand is first a
  zero and a subnormal result becomes one; where the bound straddles the smallest normal number both
  outcomes stand.
12 Approximate tanh. The relative bound holds for normal operands. A subnormal operand comes back unchanged;
  another value within the bound is unspecified, and a zero or anything farther is a breach.
13 Approximate fdiv. The bound is read for finite non-zero dividends and for subnormal quotients too. For a
  subnormal divisor the text has no bound: NaN, a wrong sign, or an infinity where the reciprocal is finite
  is a breach, the rest is unspecified beyond 2 ulp. Flushing applies to operands first and to the result
  last.
14 Fused multiply-add. The choice is made for each use and each element. a*b+c has at most two allowed
  values; a graph has those that its sites span together. A cast, a prescribed rounding and a quantized
  record are walls.
15 Reductions and scans. In *intent* the identity may be merged any number of times, so a sum of negative
  zeros may be either zero; overflow inside any tree is allowed; no member is lost or counted twice. In
  *xir* the initial value is merged once.
16 contract and sum. Any order, any multiply-adds fused, a start from C only under 5.3-a; every rounding is
  to nearest even in the accumulator dtype. Results that need fewer roundings are unspecified; truncated
  alignment, rounding toward zero and inputs cut short are breaches where both are left.
17 Sparse contraction. A position that is not stored, times an infinity or NaN, is unspecified.
18 arg_reduce.max. With several NaNs the index of any of them will do; the index of nothing is unspecified.
19 Release sequences are those of C++20: only read-modify-writes continue one.
20 Thin air. Outcomes outside the least fixpoint of what a program can write are breaches; those inside it
  that need a cycle of program order and reads-from are unspecified.
21 Compare-exchange compares bits and succeeds exactly on equality; a spurious failure that writes nothing
  is unspecified. Atomics are judged on 32-bit and 64-bit integers.
22 Races and illegal inputs carry no claim, whatever comes out.
23 Shift amounts have the dtype of the operand, and are illegal out of range also when they are constants.
24 Scaled contraction. Element times scale is exact in f32 or overflows; then infinity and the true product
  are both unspecified.
25 Ordinary operations are those that IEEE 754 rounds correctly: + - * / sqrt, comparison, conversion and
  fused multiply-add. exp, log, sin, cos, erf, rsqrt and sigmoid are functions.
26 Saturating casts clamp to the largest number of a float (infinities too) or to the range of an integer,
  after truncation. NaN stays NaN in a float and is unspecified in an integer.
27 Arithmetic in 8-bit floats. f8e5m2 follows IEEE 754; in f8e4m3fn a result beyond the range is judged as a
  cast of the exact result would be.
28 neg and abs of integers wrap as subtraction does. abs of the smallest integer is unspecified; abs of an
  unsigned integer is that integer, and its neg is unspecified.
29 Bits of a NaN. Inputs, copies, selections and bitcasts carry them. Any float operation frees them, so
  that the bitcast of its NaN may show any NaN pattern.
30 select with an illegal value in the lane not taken carries no claim for that element.
31 Fusing through a negation, and computing one value anew for two users with different choices, are
  unspecified.
"""


def _readings() -> dict[str, str]:
    found = re.findall(r"^(\d+) (.*(?:\n  .*)*)", _READINGS, re.MULTILINE)
    return {f"reading:{number}": " ".join(text.split()) for number, text in found}


READINGS: dict[str, str] = _readings()
"""Every reading by id."""


def canonical_id(name: str) -> str:
    """A clause id with its dialect: ``5.2-g`` and ``intent:5.2-g`` both give ``intent:5.2-g``."""
    return name if ":" in name else f"intent:{name}"
