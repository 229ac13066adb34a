"""Rules for Div and Mod, which round towards 0. Division by zero gives 0."""

from __future__ import annotations

from math import gcd

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.rules.floordiv import constant, fold_floordiv, is_ideal, not_zero, safe_build, split_factor
from tedsl.arith.rules.floormod import fold_floormod
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Div, Expr, FloorDiv, FloorMod, IntImm, Mod, Sub


def fold_truncated(e: Div | Mod, known: Bounds) -> Expr | None:
    """Folds constants; turns x / d and x mod d of nonnegative integers into x // d and x % d, so that both are known as one."""
    folded = build.fold(type(e), e.a, e.b)
    if folded is not None or not e.dtype.is_integer or e.dtype.lanes != 1:
        return folded
    if known.within(e.a, 0, None) and known.within(e.b, 0, None):
        folded = fold_floordiv(FloorDiv(e.a, e.b), known) if type(e) is Div else fold_floormod(FloorMod(e.a, e.b), known)
        if folded is not None or e.dtype.is_int:
            return folded if folded is not None else FloorDiv(e.a, e.b) if type(e) is Div else FloorMod(e.a, e.b)
    if not isinstance(e.b, IntImm):
        return _by_symbol(e, known)
    if e.b.value == 0:                                                            # x / 0, x mod 0 → 0
        return e.b
    return _quotient(e, e.b.value, known) if type(e) is Div else _remainder(e, e.b.value, known)  # type: ignore[arg-type]


def _by_symbol(e: Div | Mod, known: Bounds) -> Expr | None:
    """Simplifies (x*d) / d → x if d != 0, and (x*d) mod d → 0, also for d = 0: nothing is rounded."""
    x, by = known.sum(e.a), known.sum(e.b)
    if not is_ideal(known, x, e.dtype) or not known.is_index(by):
        return None
    whole, rest = split_factor(known, x, e.b)
    if rest.terms or rest.const or not whole.terms:
        return None
    if type(e) is Mod:
        return IntImm(e.dtype, 0)
    return known.build(whole, e.dtype) if not_zero(known, e.b, x) else None


def _nested(x: Sum, d: int, known: Bounds, dtype: DType) -> Expr | None:
    """Simplifies (x / c + k) / d → (x + k*c) / (c*d), c > 0, d > 0, x >= 0, k >= 0."""
    if len(x.terms) != 1 or x.const < 0:
        return None
    (term, coefficient), = x.terms.items()
    if coefficient != 1 or not isinstance(term, Div) or not isinstance(term.b, IntImm) or term.b.value < 1:
        return None
    c = term.b.value
    if not known.within(term.a, 0, None):
        return None
    numerator, by = safe_build(known, known.sum(term.a).shifted(x.const * c), dtype), constant(c * d, dtype)
    return None if numerator is None or by is None else Div(numerator, by)


def _stays_below(e: Div | Mod, d: int, known: Bounds) -> bool:
    """Tells whether -d < x < d is proved of the dividend x."""
    return d > 0 and known.within(e.a, 1 - d, d - 1)


def _quotient(e: Div, d: int, known: Bounds) -> Expr | None:
    inner, x = e.a, known.sum(e.a)
    if _stays_below(e, d, known):                                                 # x / d → 0 if -d < x < d
        return IntImm(e.dtype, 0)
    if type(inner) is Div and isinstance(inner.b, IntImm) and inner.b.value >= 1 and d >= 1:
        by = constant(inner.b.value * d, e.dtype)                                 # (x / c) / d → x / (c*d), c > 0, d > 0
        return None if by is None else Div(inner.a, by)
    if not known.is_index(x):
        return None
    if d == -1:                                                                   # x / -1 → 0 - x
        return Sub(IntImm(e.dtype, 0), e.a)
    nested = _nested(x, d, known, e.dtype) if d > 0 else None
    if nested is not None:
        return nested
    common = _common_factor(x, d)
    if d < 0 or common < 2:
        return None
    reduced = known.build(x.divided(common), e.dtype)                             # (x*g) / (d*g) → x / d, g > 0
    if reduced is None or common == d:
        return reduced
    return Div(reduced, IntImm(e.dtype, d // common))


def _remainder(e: Mod, d: int, known: Bounds) -> Expr | None:
    inner, x = e.a, known.sum(e.a)
    if abs(d) == 1:                                                               # x mod 1 → 0
        return IntImm(e.dtype, 0)
    if d < 0:                                                                     # x mod -d → x mod d: the sign is that of x
        by = constant(-d, e.dtype)
        return None if by is None else Mod(e.a, by)
    if _stays_below(e, d, known):                                                 # x mod d → x if -d < x < d
        return e.a
    if type(inner) is Mod and isinstance(inner.b, IntImm) and inner.b.value > 0:
        if inner.b.value % d == 0:                                                # (x mod (k*d)) mod d → x mod d
            return Mod(inner.a, e.b)
        if d >= inner.b.value:                                                    # (x mod c) mod d → x mod c, c <= d
            return inner
    if type(inner) is Div and type(inner.a) is Mod and isinstance(inner.b, IntImm) and isinstance(inner.a.b, IntImm):
        b, c = inner.b.value, inner.a.b.value
        if b > 0 and c > b * d and c % (b * d) == 0:                              # ((x mod (k*b*d)) / b) mod d →
            return Div(Mod(inner.a.a, IntImm(e.dtype, b * d)), inner.b)           # (x mod (b*d)) / b, b > 0, d > 0, k > 0
    if not known.is_index(x):
        return None
    common = _common_factor(x, d)
    if common == d:                                                               # (x*d) mod d → 0
        return IntImm(e.dtype, 0)
    reduced = known.build(x.divided(common), e.dtype) if common > 1 else None     # (x*g) mod (d*g) → (x mod d)*g, g > 0
    if reduced is None:
        return None
    return build.mul(Mod(reduced, IntImm(e.dtype, d // common)), IntImm(e.dtype, common))


def _common_factor(s: Sum, d: int) -> int:
    return gcd(*s.terms.values(), s.const, d)
