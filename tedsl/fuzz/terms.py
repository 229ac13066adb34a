"""Random formulas, as text that is valid in `te` and in the reference, with bounds of their values.

Floats are kept exact where possible (small multiples of a power of two), so that any order of summation gives one result.
Only exact terms are compared, rounded or cast to integers: a last bit must not decide which branch is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tedsl.fuzz.draw import Draw
from tedsl.fuzz.values import LARGEST, MANTISSA, available, is_float, promoted
from tedsl.record import record


@record
class Term:
    """text; dtype; mag: an upper bound of its finite values; frac: fractional bits of an exact float, None for a rounded value.

    The error of a rounded value is some last bits of its `mag`: where a small value was computed from large rounded ones,
    as the cosine of a long sum, `mag` stays as large as theirs.
    """

    text: str
    dtype: str
    mag: float
    frac: Any = 0  # int | None

    @property
    def exact(self) -> bool:
        return not is_float(self.dtype) or (self.frac is not None and self.mag * 2.0**self.frac <= 2.0**MANTISSA[self.dtype])


def known(text: str, dtype: str, mag: float, frac: Any = 0) -> Term:
    """A term; integers beyond their range have wrapped, floats that need too many bits are rounded."""
    if not is_float(dtype):
        return Term(text, dtype, min(mag, 1 if dtype == "bool" else float(np.iinfo(dtype).max) + 1))
    term = Term(text, dtype, mag, frac)
    return term if term.exact else replace(term, frac=None)


def cast(t: Term, dtype: str) -> Term:
    dtype = available(dtype)
    if t.dtype == dtype:
        return t
    if is_float(t.dtype) and not is_float(dtype):
        if not t.exact:
            return t
        return known(f"{t.text}.astype('{dtype}')", dtype, t.mag if t.mag < 2.0**62 else 2.0**63)
    if is_float(dtype) and t.mag > LARGEST[dtype] / 4:
        return t
    if dtype in ("float16", "bfloat16") and t.mag > 2.0**50:
        return t
    return known(f"{t.text}.astype('{dtype}')", dtype, t.mag, t.frac)


class Formulas:
    """Draws terms; leaves come from a function that draws a read of a tensor."""

    def __init__(self, draw: Draw, leaf: Callable[[], Term], indices: Sequence[str]) -> None:
        self.draw, self.leaf, self.indices = draw, leaf, indices

    def term(self, depth: int) -> Term:
        if depth == 0 or self.draw.chance(8):
            return self.constant() if self.draw.chance(10) else self.leaf()
        make = self.draw.weighted({self.linear: 10, self.product: 9, self.extreme: 4, self.choose: 5, self.convert: 4,
                                   self.integer: 6, self.unary: 4, self.function: 3, self.quotient: 1})
        return make(depth - 1)

    def constant(self) -> Term:
        value = self.draw.between(-3, 5)
        dtype = self.draw.weighted({"float32": 5, "int32": 4, "int8": 1, "int64": 1, "float64": 1})
        return known(f"te.const({value}, '{dtype}')", dtype, abs(value))

    def pair(self, depth: int) -> tuple[Term, Term, str]:
        a, b = self.term(depth), self.term(depth)
        if {a.dtype, b.dtype} == {"float16", "bfloat16"}:
            b = cast(b, a.dtype) if cast(b, a.dtype).dtype == a.dtype else a
        dtype = promoted(a.dtype, b.dtype)
        if is_float(dtype) and dtype in ("float16", "bfloat16") and max(a.mag, b.mag) > 8000:
            return cast(a, "float32"), cast(b, "float32"), "float32"
        return a, b, dtype

    def linear(self, depth: int) -> Term:
        a, b, dtype = self.pair(depth)
        if self.draw.chance(30) and a.dtype != "bool":
            k = self.draw.between(1, 4)
            return known(f"({a.text} {self.draw.choice('+-')} {k})", promoted(a.dtype, a.dtype), a.mag + k, a.frac)
        return known(f"({a.text} {self.draw.choice('+-')} {b.text})", dtype, a.mag + b.mag, _finer(a, b))

    def product(self, depth: int) -> Term:
        a, b, dtype = self.pair(depth)
        if is_float(dtype) and a.mag * b.mag > LARGEST[dtype] / 100:
            return a
        if self.draw.chance(20) or (is_float(dtype) and not (a.exact and b.exact)):
            return known(f"({a.text} * 2)", promoted(a.dtype, a.dtype), a.mag * 2, a.frac) if a.dtype != "bool" else a
        if self.draw.chance(40):
            c = cast(self.leaf(), dtype)
            if c.dtype == dtype and a.mag * b.mag + c.mag < LARGEST.get(dtype, 1e300) / 100:
                frac = None if None in (a.frac, b.frac, c.frac) else max(a.frac + b.frac, c.frac)
                order = self.draw.choice(["{a} * {b} + {c}", "{c} - {a} * {b}", "{a} * {b} - {c}", "{c} + {a} * {b}"])
                return known(f"({order.format(a=a.text, b=b.text, c=c.text)})", dtype, a.mag * b.mag + c.mag, frac)
        return known(f"({a.text} * {b.text})", dtype, a.mag * b.mag, None if None in (a.frac, b.frac) else a.frac + b.frac)

    def extreme(self, depth: int) -> Term:
        a, b, dtype = self.pair(depth)
        if a.dtype == b.dtype == "bool":
            return a
        return known(f"te.{self.draw.choice(['max', 'min'])}({a.text}, {b.text})", dtype, max(a.mag, b.mag), _finer(a, b))

    def choose(self, depth: int) -> Term:
        a, b, dtype = self.pair(depth)
        name = self.draw.choice(["if_then_else", "select"])
        if a.dtype == b.dtype == "bool":
            return a
        return known(f"te.{name}({self.condition(depth)}, {a.text}, {b.text})", dtype, max(a.mag, b.mag), _finer(a, b))

    def condition(self, depth: int) -> str:
        kind = self.draw.which(4)
        if kind == 0 and self.indices:
            return f"{self.draw.choice(self.indices)} % {self.draw.between(2, 3)} < 1"
        if kind == 1 and self.indices:
            return f"{self.draw.choice(self.indices)} {self.draw.choice(['<', '>='])} {self.draw.between(1, 6)}"
        if kind == 2 and self.indices:
            two = [f"{self.draw.choice(self.indices)} {self.draw.choice(['<', '>='])} {self.draw.between(0, 6)}" for _ in "ab"]
            return f"te.{self.draw.choice(['all', 'any'])}({', '.join(two)})"
        a, b = self.leaf(), self.term(0)
        if not (a.exact and b.exact) or {a.dtype, b.dtype} == {"float16", "bfloat16"}:
            return "te.const(1, 'int32') > 0"
        return f"{a.text} {self.draw.choice(['<', '<=', '>', '>='])} {b.text}"

    def convert(self, depth: int) -> Term:
        a = self.term(depth)
        return cast(a, self.draw.weighted({"float32": 6, "int32": 4, "int8": 3, "uint8": 3, "int16": 2, "int64": 2, "bool": 1,
                                           "float64": 2, "float16": 2, "bfloat16": 2, "uint16": 1, "uint32": 1}))

    def integer(self, depth: int) -> Term:
        """A term of integer division, remainder, shifts or bitwise operators."""
        a, b, dtype = self.pair(depth)
        if is_float(dtype):
            return a
        top = float(np.iinfo(dtype).max) + 1
        op = self.draw.weighted({"//": 3, "%": 3, "&": 1, "|": 1, "^": 1, "<<": 1, ">>": 1, "div": 1, "mod": 1, "count": 1})
        by = b.text if self.draw.chance(50) else str(self.draw.between(1, 7))
        if op == "count":
            return known(f"te.popcount({a.text} + 0)", promoted(a.dtype, a.dtype), 64)
        if op in ("div", "mod"):
            return known(f"te.trunc{op}({a.text} + 0, {by})", dtype if by == b.text else promoted(a.dtype, a.dtype), top)
        if a.dtype == "bool" or b.dtype == "bool":
            return a
        return known(f"({a.text} {op} {by})", dtype if by == b.text else promoted(a.dtype, a.dtype), top)

    def unary(self, depth: int) -> Term:
        a = self.term(depth)
        if a.dtype == "bool":
            return cast(a, "int32")
        kind = self.draw.which(3)
        if kind == 0:
            return known(f"(-{a.text})", a.dtype, a.mag if is_float(a.dtype) or a.dtype[0] == "i" else 2.0**64, a.frac)
        if kind == 1:
            return known(f"te.abs({a.text})", a.dtype, a.mag, a.frac)
        if not is_float(a.dtype):
            return known(f"(~{a.text})", a.dtype, 2.0**64)
        if not a.exact:
            return a
        name = self.draw.choice(["floor", "ceil", "trunc", "round", "nearbyint"])
        return known(f"te.{name}({a.text})", a.dtype, a.mag + 1, 0)

    def function(self, depth: int) -> Term:
        a = self.term(depth)
        if not is_float(a.dtype) or a.mag > 1000:
            return a
        name = self.draw.choice(["exp", "tanh", "sigmoid", "erf", "sqrt", "sin", "cos", "atan", "log"])
        rounded = 0.0 if a.exact else a.mag
        if name == "exp":  # its slope is below 8 there; that of the others is below 1
            return Term(f"te.exp(te.min({a.text}, 2.0))", a.dtype, 8 * max(rounded, 1.0), None)
        if name in ("sqrt", "log"):
            return Term(f"te.{name}(te.abs({a.text}) + 1.0)", a.dtype, a.mag + 1, None)
        return Term(f"te.{name}({a.text})", a.dtype, max(rounded, 2.0), None)

    def quotient(self, depth: int) -> Term:
        a, b, dtype = self.pair(depth)
        if not is_float(dtype):
            return a
        if b.dtype == "bool":
            return a
        rounded = 1.0 if b.exact else max(b.mag, 1.0)
        return Term(f"({a.text} / (te.abs({b.text}) + 1))", dtype, max(a.mag, 1.0) * rounded, None)


def _finer(a: Term, b: Term) -> Any:
    return None if None in (a.frac, b.frac) else max(a.frac, b.frac)
