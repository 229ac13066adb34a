"""A small language for numeric formulas: each `Value` is a scalar, or a vector of `lanes` equal elements.

Formulas are written once with Python operators and work for any number of lanes, with and without fused multiply-add, and
for every backend that writes the operations as its text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tedsl.record import record

INFINITY = float("inf")
MANTISSA = {32: 23, 64: 52}  # bits of the fraction
BIAS = {32: 127, 64: 1023}
SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}


@record
class Table:
    """Constants that a formula chooses from by the low bits of an integer. values: floats of `bits`, a power of two of them."""

    name: str
    bits: int
    values: tuple[float, ...]


class FunctionBody(ABC):
    """Collects the lines of one function body. fma: whether the target has the instruction. looks_up: whether its vectors of 16
    look up in tables of 32 floats by one instruction; scalars, too, then use the formulas that do.
    """

    scales = False  # whether `scaled` is one instruction

    def __init__(self, lanes: int, fma: bool, *, looks_up: bool = False) -> None:
        self.lanes = lanes
        self.has_fma = fma
        self.looks_up = looks_up
        self.lines: list[str] = []

    @abstractmethod
    def operation(self, name: str, kind: str, bits: int, *operands: Value) -> Value:
        """Writes an operation and returns its result, of that kind (see Value) and width. name: as LLVM calls it, one of

        fadd fsub fmul fdiv fneg, add sub shl ashr sdiv, and or xor (also of bools), not (of bools), select,
        "fcmp olt" ole ogt oge oeq uno, "icmp slt" sle sgt sge eq, bitcast fpext fptrunc sext trunc sitofp fptosi,
        llvm.fma llvm.fabs llvm.sqrt
        """

    @abstractmethod
    def lookup(self, table: Table, index: Value) -> Value:
        """Returns the elements of `table` that the low bits of `index` count, which has as many bits as they."""

    @abstractmethod
    def real(self, value: float, bits: int) -> Value:
        """Returns a float constant."""

    @abstractmethod
    def integer(self, value: int, bits: int) -> Value:
        """Returns an integer constant, which is `value` wrapped to its width."""

    def fma(self, a: Value, b: Value | float, c: Value | float) -> Value:
        """a * b + c, rounded once where the target can, else twice."""
        if not self.has_fma:
            return a * b + c
        return self.operation("llvm.fma", "f", a.bits, a, a.lift(b), a.lift(c))

    def horner(self, x: Value, coefficients: Sequence[float | Value]) -> Value:
        """coefficients[0] + coefficients[1] * x + ..., from the highest power down."""
        result = x.lift(coefficients[-1])
        for c in coefficients[-2::-1]:
            result = self.fma(result, x, c)
        return result

    def scaled(self, value: Value, whole: Value, biased: Value) -> Value:
        """value * 2**n, rounded once, for n in twice the range of the exponent. whole, biased: see `nearest_exponent`.

        Two powers of two, whose exponents are the halves of `biased`: each half has the bias of an exponent.
        """
        shift, first = MANTISSA[value.bits], biased >> 1
        return value * (first << shift).as_float() * ((biased - first) << shift).as_float()

    def parts(self, x: Value) -> tuple[Value, Value]:
        """(e, m): e = floor(log2 x) as a float, and m in [3/4, 3/2), which is x * 2**-e or half of that.

        e is -inf for 0 and inf for inf, with m = 1; it is NaN for NaN and negative numbers, whose m means nothing.
        """
        shift, bias = MANTISSA[x.bits], BIAS[x.bits]
        lifted = (x * 2.0 ** (shift + 2)).as_bits() - ((shift + 2) << shift)  # as if there were exponents below the least
        bits = (x < SMALLEST_NORMAL[x.bits]).choose(lifted, x.as_bits())
        e = ((bits >> shift) - bias).small_to_float()
        m = (bits - ((bits - x.lift(0.75).as_bits()) & -(1 << shift))).as_float()
        e = (x < INFINITY).choose(e, x)
        e = (x > 0.0).choose(e, x.equals(0.0).choose(-INFINITY, self.real(float("nan"), x.bits)))
        return e, m

    def product(self, a: Value, b: Value) -> tuple[Value, Value]:
        """a * b as an unevaluated sum of two floats: exact (Dekker 1971, or one fma)."""
        high = a * b
        if self.has_fma:
            return high, self.fma(a, b, -high)
        a1, a2 = self._halves(a)
        b1, b2 = self._halves(b)
        return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2

    def _halves(self, a: Value) -> tuple[Value, Value]:
        """`a` as a sum of two floats of half the bits each: the first is `a` with its low bits cut off."""
        mask = self.integer(-(1 << (27 if a.bits == 64 else 12)), a.bits)
        high = (a.as_bits() & mask).as_float()
        return high, a - high

    def total(self, a: Value, b: Value) -> tuple[Value, Value]:
        """a + b as an unevaluated sum of two floats, exact for any a and b (Knuth)."""
        high = a + b
        part = high - a
        return high, (a - (high - part)) + (b - part)

    def quick_total(self, a: Value, b: Value) -> tuple[Value, Value]:
        """a + b as an unevaluated sum of two floats, exact for |a| >= |b| (Dekker 1971)."""
        high = a + b
        return high, b - (high - a)


class Value:
    """A value or a constant under its name in the text: kind f(loat), i(nteger) or b(ool), and the bits of an element."""

    __slots__ = ("bits", "kind", "name", "out")

    def __init__(self, out: FunctionBody, name: str, kind: str, bits: int) -> None:
        self.out, self.name, self.kind, self.bits = out, name, kind, bits

    def lift(self, other: Value | float) -> Value:
        """Returns a Python number as a constant of this value's type."""
        if isinstance(other, Value):
            return other
        return self.out.real(other, self.bits) if self.kind == "f" else self.out.integer(int(other), self.bits)

    def _binary(self, float_op: str, int_op: str, other: Value | float, *, swap: bool = False) -> Value:
        a, b = (self.lift(other), self) if swap else (self, self.lift(other))
        return self.out.operation(float_op if self.kind == "f" else int_op, self.kind, self.bits, a, b)

    def __add__(self, other: Value | float) -> Value:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._binary("fsub", "sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __radd__(self, other: float) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __rsub__(self, other: float) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __rmul__(self, other: float) -> Value:
        return self._binary("fmul", "mul", other, swap=True)

    def __rtruediv__(self, other: float) -> Value:
        return self._binary("fdiv", "sdiv", other, swap=True)

    def __and__(self, other: Value | float) -> Value:
        return self._binary("", "and", other)

    def __or__(self, other: Value | float) -> Value:
        return self._binary("", "or", other)

    def __xor__(self, other: Value | float) -> Value:
        return self._binary("", "xor", other)

    def __lshift__(self, other: Value | float) -> Value:
        return self._binary("", "shl", other)

    def __rshift__(self, other: Value | float) -> Value:
        return self._binary("", "ashr", other)

    def __neg__(self) -> Value:
        return self.out.operation("fneg", self.kind, self.bits, self) if self.kind == "f" else 0 - self

    def _compare(self, float_op: str, int_op: str, other: Value | float) -> Value:
        operation = f"fcmp {float_op}" if self.kind == "f" else f"icmp {int_op}"
        return self.out.operation(operation, "b", 1, self, self.lift(other))

    def __lt__(self, other: Value | float) -> Value:
        return self._compare("olt", "slt", other)

    def __le__(self, other: Value | float) -> Value:
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Value | float) -> Value:
        return self._compare("oge", "sge", other)

    def equals(self, other: Value | float) -> Value:
        return self._compare("oeq", "eq", other)

    def is_nan(self) -> Value:
        return self._compare("uno", "", self)

    def is_unordered(self, other: Value) -> Value:
        """Whether this float or the other one is NaN."""
        return self._compare("uno", "", other)

    def invert(self) -> Value:
        return self.out.operation("not", "b", 1, self)

    def choose(self, if_true: Value | float, if_false: Value | float) -> Value:
        """if_true where this bool holds, else if_false; one of them is a Value."""
        model = if_true if isinstance(if_true, Value) else if_false
        assert isinstance(model, Value)
        t, f = model.lift(if_true), model.lift(if_false)
        return self.out.operation("select", model.kind, model.bits, self, t, f)

    def as_bits(self) -> Value:
        return self.out.operation("bitcast", "i", self.bits, self)

    def as_float(self) -> Value:
        return self.out.operation("bitcast", "f", self.bits, self)

    def widen(self) -> Value:
        """float32 to float64, i32 to i64."""
        return self.out.operation("fpext" if self.kind == "f" else "sext", self.kind, 64, self)

    def narrow(self) -> Value:
        return self.out.operation("fptrunc" if self.kind == "f" else "trunc", self.kind, 32, self)

    def small_to_float(self) -> Value:
        """This integer n as a float for |n| < 2**21 (i32) or 2**50: for i64 there is no instruction before AVX-512."""
        if self.bits == 32:
            return self.out.operation("sitofp", "f", 32, self)
        magic = self.out.real(1.5 * 2.0**52, 64)
        return (self + magic.as_bits()).as_float() - magic

    def to_integer(self) -> Value:
        """This float without its fraction, as an integer, which can hold it."""
        return self.out.operation("fptosi", "i", self.bits, self)

    def abs(self) -> Value:
        return self.out.operation("llvm.fabs", self.kind, self.bits, self)

    def sqrt(self) -> Value:
        return self.out.operation("llvm.sqrt", self.kind, self.bits, self)

    def with_sign_of(self, other: Value) -> Value:
        sign = self.out.integer(1 << (self.bits - 1), self.bits)
        magnitude = self.as_bits() & self.out.integer((1 << (self.bits - 1)) - 1, self.bits)
        return (magnitude | (other.as_bits() & sign)).as_float()

    def signed_as(self, other: Value) -> Value:
        """This float, which has no sign, with that of `other`."""
        return (self.as_bits() | (other.as_bits() & self.out.integer(1 << (self.bits - 1), self.bits))).as_float()

    def nearest(self) -> tuple[Value, Value]:
        """(n, its bits as an integer) for the integer n nearest to this float, |n| < 2**21 (float32) or 2**50.

        Adding 1.5 * 2**23 (2**52) leaves the integer in the low bits: no instruction beyond SSE2 is needed.
        """
        return self.nearest_multiple(1.0)

    def nearest_multiple(self, factor: float) -> tuple[Value, Value]:
        """(n, its bits as an integer) for the integer n nearest to this float times `factor`; bounds as of `nearest`."""
        magic = 1.5 * 2.0 ** MANTISSA[self.bits]
        n, bits = self._rounded_beside(magic, factor)
        return n, bits - self.out.real(magic, self.bits).as_bits()

    def nearest_exponent(self, factor: float) -> tuple[Value, Value]:
        """(n, biased) for the integer n nearest to this float times `factor`, |n| < 2**21 (float32) or 2**50. The low bits of
        `biased`, as many as an exponent and its sign have, are n plus twice the bias; the others mean nothing.
        """
        return self._rounded_beside(1.5 * 2.0 ** MANTISSA[self.bits] + 2 * BIAS[self.bits], factor)

    def _rounded_beside(self, magic: float, factor: float) -> tuple[Value, Value]:
        """(n, the bits of magic + n) for the integer n nearest to this float times `factor`."""
        shifted = self + magic if factor == 1.0 else self.out.fma(self, factor, magic)
        return shifted - magic, shifted.as_bits()
