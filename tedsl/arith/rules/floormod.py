"""Rules for FloorMod. Modulo by zero gives 0."""

from __future__ import annotations

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import nonnegative
from tedsl.arith.modular import residue_of
from tedsl.arith.rules.floordiv import (
    cancel_factor,
    constant,
    is_ideal,
    reduce_by_factor,
    safe_build,
    same_block,
    split_factor,
    split_multiples,
)
from tedsl.ir.expr import Expr, FloorDiv, FloorMod, IntImm, Mul

MAX_DROPPED = 32  # nested %: keeps the rule O(1) where a chain of them cannot be rewritten, for its coefficients are too large


def fold_floormod(e: FloorMod, known: Bounds) -> Expr | None:
    """Returns a simpler form of `e`, or None."""
    x = known.sum(e.a)
    if not x.terms and x.const == 0:                                              # 0 % d → 0
        return e.a
    if not isinstance(e.b, IntImm):
        return _by_symbol(e, x, known)
    d = e.b.value
    if d in (0, 1, -1):                                                           # x % 0, x % 1, x % -1 → 0
        return IntImm(e.dtype, 0)
    if not x.terms:
        return constant(x.const % d, e.dtype)
    return _by_constant(e, x, d, known) if d > 0 else None


def _by_constant(e: FloorMod, x: Sum, d: int, known: Bounds) -> Expr | None:
    rest = _drop_inner(known, split_multiples(x, d)[1], d)                        # (x*d + y) % d → y % d
    block = same_block(known, rest, d)
    if block is not None:                                                         # y % d → y - k*d if k*d <= y < (k+1)*d
        return known.build(rest.shifted(-block * d), e.dtype)
    if known.residues:
        coeff, base = residue_of(known, rest)
        if coeff % d == 0:                                                        # x % d → r if x % (k*d) == r is known
            return constant(base % d, e.dtype)
    reduced = reduce_by_factor(known, rest, d)
    if reduced is not None:                                         # (x*g + y) % (g*d) → (x % d)*g + y if 0 <= y < g
        inner, g, small = reduced
        numerator = safe_build(known, inner, e.dtype)
        if numerator is not None:
            part = FloorMod(numerator, IntImm(e.dtype, d // g))
            return known.build(known.sum(part).times(g).plus(small), e.dtype)
    if not 0 <= rest.const < d:                                                   # (x + k) % d → (x + k % d) % d
        rest = Sum(rest.terms, rest.const % d)
    if len(rest.terms) == 1 and not rest.const:                                   # (x*c) % d → (x*(c % d)) % d
        (term, c), = rest.terms.items()
        rest = Sum({term: c % d}) if abs(c) > d else rest
    elif any(c % d == 1 and abs(c) > 1 for c in rest.terms.values()):              # (x*(k*d + 1) + y) % d → (x + y) % d
        rest = Sum({term: 1 if c % d == 1 else c for term, c in rest.terms.items()}, rest.const)
    if rest.key != x.key:
        numerator = safe_build(known, rest, e.dtype)
        return None if numerator is None else FloorMod(numerator, e.b)
    if isinstance(e.a, FloorDiv) and isinstance(e.a.b, IntImm) and e.a.b.value > 0:  # (x // c) % d → (x % (c*d)) // c
        by = constant(e.a.b.value * d, e.dtype)
        return None if by is None else FloorDiv(FloorMod(e.a.a, by), e.a.b)
    return None


def _drop_inner(known: Bounds, s: Sum, d: int) -> Sum:
    """Replaces x % (k*d) by x in the dividend of % d, MAX_DROPPED times at most."""
    for _ in range(MAX_DROPPED):
        inner = _multiple_inside(s, d)
        if inner is None:
            break
        s = s.without(inner).plus(known.sum(inner.a), s.terms[inner])
    return s


def _multiple_inside(s: Sum, d: int) -> FloorMod | None:
    """Returns the first term x % (k*d), k > 0, or None."""
    for term in s.terms:
        if type(term) is FloorMod and isinstance(term.b, IntImm) and term.b.value > 0 and term.b.value % d == 0:
            return term
    return None


def _by_symbol(e: FloorMod, x: Sum, known: Bounds) -> Expr | None:
    if known.same(e.a, e.b):                                                      # d % d → 0, also for d = 0
        return IntImm(e.dtype, 0)
    by = known.sum(e.b)
    if not is_ideal(known, x, e.dtype) or not known.is_index(by):
        return None
    cancelled = cancel_factor(known, x, by, e.dtype)
    if cancelled is not None:                                                     # (x*n) % (n*4) → (x % 4)*n, also for n = 0
        return Mul(FloorMod(cancelled[0], cancelled[1]), cancelled[2])
    whole, rest = split_factor(known, x, e.b)
    if nonnegative(known, rest) and nonnegative(known, by.plus(rest, -1).shifted(-1)):
        return known.build(rest, e.dtype)                                         # (x*d + y) % d → y if 0 <= y < d
    if whole.terms or whole.const:                                                # (x*d + y) % d → y % d, also for d = 0
        numerator = known.build(rest, e.dtype)
        return None if numerator is None else FloorMod(numerator, e.b)
    return None
