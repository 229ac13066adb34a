"""Quotients and remainders of indices."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, AnyIndex, Index, Lanes, Ramp
from tedsl.codegen.llvm.indices.vectors import as_lanes, common_bits
from tedsl.codegen.llvm.values.integer import Integers
from tedsl.ir import expr as ir

_DIVISIONS: dict[type[ir.Expr], Callable[[Integers, str, str, int | None, bool], str]] = {
    ir.FloorDiv: Integers.floordiv, ir.FloorMod: Integers.floormod, ir.Div: Integers.truncdiv, ir.Mod: Integers.truncmod}


def index_division(out: Emitter, e: ir.BinaryOp) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and not a.stride and not b.stride:
        return Ramp(_divide(out, type(e), a.base, b.base), 0, a.lanes)
    if isinstance(a, Index) and isinstance(b, Index):
        return _divide(out, type(e), a, b)
    parted = _divide_lanes(type(e), a, b)
    if parted is not None:
        return parted
    bounds = _division_bounds(type(e), a.bounds(), b.bounds())
    bits = common_bits(a, b, bounds)
    lanes = e.dtype.lanes
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    divisor = b.base.const if isinstance(b, Ramp) and not b.stride and not b.base.terms else None
    positive = a.bounds()[0] >= 0 and b.bounds()[0] > 0
    result = _DIVISIONS[type(e)](Integers(out.assign, bits, lanes, True), x, y, divisor, positive)
    return Lanes(result, bits, lanes, *bounds)


def _divide(out: Emitter, kind: type[ir.Expr], a: Index, b: Index) -> Index:
    divisor = b.const if not b.terms else None
    if divisor:
        exact = _divide_exactly(kind, a, divisor)
        if exact is not None:
            return exact
    low, high = _division_bounds(kind, a.bounds(), b.bounds())
    if low == high:
        return ix.constant(low)
    bits, ((x, lx), (y, ly)) = out.sized_register(a, b)
    if bits == 32 and not (low >= -2**31 and high < 2**31):
        bits, (x, lx), (y, ly) = 64, out.register(a), out.register(b)
    level = max(lx, ly)
    positive = a.bounds()[0] >= 0 and a.bounds()[1] <= INT64_MAX and b.bounds()[0] > 0
    of = Integers(lambda rhs: out.pure(rhs, level), bits, 1, True)
    return ix.atom_index(out.atom(_DIVISIONS[kind](of, x, y, divisor, positive), level, low, high, bits))


def _divide_exactly(kind: type[ir.Expr], a: Index, divisor: int) -> Index | None:
    """Divides c*k + r by a divisor of c, term by term: (c*k + r) // c = k and (c*k + r) % c = r for a constant r in [0, c)."""
    if kind not in (ir.FloorDiv, ir.FloorMod) or divisor < 0 or any(c % divisor for c in a.terms.values()):
        return None
    low, high = a.bounds()
    if not INT64_MIN <= low <= high <= INT64_MAX:
        return None
    if kind is ir.FloorMod:
        return ix.constant(a.const % divisor)
    return Index({atom: c // divisor for atom, c in a.terms.items()}, a.const // divisor)


def _divide_lanes(kind: type[ir.Expr], a: AnyIndex, b: AnyIndex) -> Lanes | None:
    """Divides (c*k + r) + stride * lane by a divisor of c: each lane is k, or 0 for a remainder, and a constant."""
    if not isinstance(a, Ramp) or not isinstance(b, Ramp) or b.stride or b.base.terms or b.base.const <= 0:
        return None
    divisor, first = b.base.const, Index(a.base.terms)
    base = _divide_exactly(kind, first, divisor)
    if base is None or not all(INT64_MIN <= bound <= INT64_MAX for bound in a.bounds()):
        return None
    divide = int.__floordiv__ if kind is ir.FloorDiv else int.__mod__
    return ix.known_lanes(base, tuple(divide(a.base.const + a.stride * lane, divisor) for lane in range(a.lanes)))


def _division_bounds(kind: type[ir.Expr], a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    if b[0] > 0 and kind is ir.FloorMod:
        return (a[0], a[1]) if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)
    if b[0] > 0 and kind is ir.FloorDiv:
        corners = [x // y for x in a for y in b]
        return min(corners), max(corners)
    size = max(abs(a[0]), abs(a[1]), abs(b[0]), abs(b[1]))
    return max(-size, INT64_MIN), min(size, INT64_MAX)
