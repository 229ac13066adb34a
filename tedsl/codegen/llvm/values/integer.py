"""Emits integer operations whose LLVM instructions are undefined for some operands: division, modulo, shifts.

Each function takes `put`, which emits an instruction and returns its register: for data in the present block, for index
arithmetic in the region of its operands. No emitted code traps, whatever the operands.
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.llvm.types import int_splat, vector_of

Put = Callable[[str], str]


class Integers:
    """The operations on integers of `bits` bits, in `lanes` lanes.

    by_floats: vectors of up to 32 bits are divided as floats, which processors divide in vectors. The quotient of 16 bits in
    float32, of 32 in float64, is never rounded up to an integer: one that is none is further from it than that. function: the
    symbol of a function that divides vectors of 64 bits.
    """

    def __init__(self, put: Put, bits: int, lanes: int, signed: bool, *, by_floats: bool = False, function: str = "") -> None:
        self.put, self.bits, self.lanes, self.signed = put, bits, lanes, signed
        self.by_floats, self.function = by_floats and lanes > 1 and bits <= 32, function
        self.type = vector_of(f"i{bits}", lanes)
        self.mask = vector_of("i1", lanes)

    def const(self, value: int) -> str:
        return int_splat(self.bits, value, self.lanes)

    def op(self, name: str, a: str, b: str) -> str:
        return self.put(f"{name} {self.type} {a}, {b}")

    def compare(self, name: str, a: str, b: str) -> str:
        return self.put(f"icmp {name} {self.type} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.put(f"select {self.mask} {condition}, {self.type} {a}, {self.type} {b}")

    # --- division -------------------------------------------------------------------------------------------------------

    def floordiv(self, a: str, b: str, divisor: int | None = None, nonnegative: bool = False) -> str:
        """Emits a // b, rounded towards minus infinity. divisor: of every lane, if known.
        nonnegative: a >= 0 and b > 0 are known.
        """
        if divisor == 0:
            return self.const(0)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            shift = self.const(divisor.bit_length() - 1)
            return a if divisor == 1 else self.op("ashr" if self.signed and not nonnegative else "lshr", a, shift)
        if not self.signed or nonnegative:
            return self._unsigned("udiv", a, b, divisor)
        if divisor is not None and divisor > 0:
            quotient = self._by_constant("sdiv", a, b, divisor)
            rest = self.op("sub", a, self.op("mul", quotient, b))
            return self.op("add", quotient, self.op("ashr", rest, self.const(self.bits - 1)))
        quotient, rest = self._truncated(a, b, divisor)
        inexact = self.compare("ne", rest, self.const(0))
        opposite = self.compare("slt", self.op("xor", rest, b), self.const(0))
        both = self.put(f"and {self.mask} {inexact}, {opposite}")
        return self.op("add", quotient, self.put(f"sext {self.mask} {both} to {self.type}"))

    def floormod(self, a: str, b: str, divisor: int | None = None, nonnegative: bool = False) -> str:
        """Emits the remainder of `floordiv`, which has the sign of b."""
        if divisor == 0:
            return self.const(0)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            return self.op("and", a, self.const(divisor - 1))
        if not self.signed or nonnegative:
            return self._unsigned("urem", a, b, divisor)
        _, rest = self._truncated(a, b, divisor)
        if divisor is not None and divisor > 0:
            return self.op("add", rest, self.op("and", self.op("ashr", rest, self.const(self.bits - 1)), b))
        inexact = self.compare("ne", rest, self.const(0))
        opposite = self.compare("slt", self.op("xor", rest, b), self.const(0))
        both = self.put(f"and {self.mask} {inexact}, {opposite}")
        return self.select(both, self.op("add", rest, b), rest)

    def truncdiv(self, a: str, b: str, divisor: int | None = None, nonnegative: bool = False) -> str:
        """Emits a / b, rounded towards zero."""
        if divisor == 0:
            return self.const(0)
        return self._truncated(a, b, divisor)[0] if self.signed and not nonnegative else self._unsigned("udiv", a, b, divisor)

    def truncmod(self, a: str, b: str, divisor: int | None = None, nonnegative: bool = False) -> str:
        """Emits the remainder of `truncdiv`, which has the sign of a."""
        if divisor == 0:
            return self.const(0)
        return self._truncated(a, b, divisor)[1] if self.signed and not nonnegative else self._unsigned("urem", a, b, divisor)

    def _unsigned(self, name: str, a: str, b: str, divisor: int | None) -> str:
        if divisor:
            return self._by_constant(name, a, b, divisor)
        zero = self.compare("eq", b, self.const(0))
        safe = self.select(zero, self.const(1), b)
        return self.select(zero, self.const(0), self._unsigned_by(name, a, safe))

    def _unsigned_by(self, name: str, a: str, b: str) -> str:
        """Emits the quotient or the remainder of a and b, which is not 0."""
        if not (self.by_floats or self.function):
            return self.op(name, a, b)
        quotient = self._quotient(a, b)
        return self.op("sub", a, self.op("mul", quotient, b)) if name == "urem" else quotient

    def _by_constant(self, name: str, a: str, b: str, divisor: int) -> str:
        """Emits sdiv, udiv or urem by a constant, neither 0 nor -1: LLVM multiplies or shifts, but of vectors of 64 bits the
        former lane by lane.
        """
        shifts = abs(divisor) & (abs(divisor) - 1) == 0
        if shifts or not self.function:
            return self.op(name, a, b)
        return self._quotient(a, b) if name == "sdiv" else self._unsigned_by(name, a, b)

    def _quotient(self, a: str, b: str) -> str:
        """Emits a / b, rounded towards zero; b is not 0, nor -1 if it is signed."""
        if self.function:
            return self.put(f"call {self.type} @{self.function}({self.type} {a}, {self.type} {b})")
        if not self.by_floats:
            return self.op("sdiv" if self.signed else "udiv", a, b)
        kind = "si" if self.signed else "ui"
        floats = vector_of("float" if self.bits <= 16 else "double", self.lanes)
        x, y = (self.put(f"{kind}tofp {self.type} {v} to {floats}") for v in (a, b))
        return self.put(f"fpto{kind} {floats} {self.put(f'fdiv {floats} {x}, {y}')} to {self.type}")

    def _truncated(self, a: str, b: str, divisor: int | None) -> tuple[str, str]:
        """Emits the signed quotient and remainder; x / 0 is 0 remainder 0, x / -1 is -x, also for the least integer, where sdiv
        traps.
        """
        if divisor is not None and divisor not in (0, -1):
            quotient = self._by_constant("sdiv", a, b, divisor)
            return quotient, self.op("sub", a, self.op("mul", quotient, b))
        zero, minus = self.compare("eq", b, self.const(0)), self.compare("eq", b, self.const(-1))
        either = self.put(f"or {self.mask} {zero}, {minus}")
        safe = self.select(either, self.const(1), b)
        quotient = self._quotient(a, safe)
        rest = self.op("sub", a, self.op("mul", quotient, safe))
        negated = self.select(minus, self.op("sub", self.const(0), a), quotient)
        return self.select(zero, self.const(0), negated), rest

    # --- shifts -----------------------------------------------------------------------------------------------------------

    def shift_left(self, a: str, b: str, amount: int | None = None) -> str:
        """Emits a << b; 0 for amounts below 0 or of at least the width."""
        if amount is not None:
            return self.op("shl", a, b) if 0 <= amount < self.bits else self.const(0)
        legal = self.compare("ult", b, self.const(self.bits))
        return self.select(legal, self.op("shl", a, self.select(legal, b, self.const(0))), self.const(0))

    def shift_right(self, a: str, b: str, amount: int | None = None) -> str:
        """Emits a >> b, arithmetic for signed types: an amount out of range yields 0, or -1 for negative signed a."""
        name = "ashr" if self.signed else "lshr"
        if amount is not None and 0 <= amount < self.bits:
            return self.op(name, a, b)
        legal = self.compare("ult", b, self.const(self.bits))
        shifted = self.op(name, a, self.select(legal, b, self.const(self.bits - 1 if self.signed else 0)))
        return shifted if self.signed else self.select(legal, shifted, self.const(0))
