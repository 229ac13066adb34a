"""Rules for Add, Sub and Mul of scalar integers: collect equal terms, constants to the right, subtraction last."""

from __future__ import annotations

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.rules.floordiv import not_zero
from tedsl.arith.rules.terms import take_up
from tedsl.ir.dtype import INT32, INT64, wrap_integer
from tedsl.ir.expr import Add, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub


def fold_add(e: Add, known: Bounds) -> Expr | None:
    """Simplifies x + x → x*2, (x + 1) + y → (x + y) + 1, (x//4)*4 + x%4 → x, ...; ideal integers only."""
    ends = _both_ends(e, known)
    if ends is not None:
        return ends
    s = known.sum(e)
    if len(s.terms) > 1 or (s.const and s.terms):
        shorter = take_up(s, known, e.dtype)
        if shorter is not None:
            return shorter
    a, b = known.sum(e.a), known.sum(e.b)
    if type(s.single) is Add:
        return _wrapping_add(e, a, b)
    if s.splits:
        s = _merge_by_symbol(s, known)
    if _has_all_terms(s, a, b) and _adds_in_order(e, a, b):
        return None
    return known.build(s, e.dtype)


def _both_ends(e: Add | Mul, known: Bounds) -> Expr | None:
    """Simplifies min(x, y) + max(y, x) → x + y, and the product likewise: of the same two values, so data may wrap too."""
    low, high = (e.a, e.b) if type(e.a) is Min else (e.b, e.a)
    if type(low) is not Min or type(high) is not Max:
        return None
    for a, b in ((high.a, high.b), (high.b, high.a)):
        if known.same(low.a, a) and known.same(low.b, b):
            return type(e)(low.a, low.b)
    return None


def _has_all_terms(s: Sum, a: Sum, b: Sum) -> bool:
    """Tells whether no term of the operands was merged with an equal term or the other part of a split index."""
    mine = s.terms.keys()
    return len(mine) == len(a.terms) + len(b.terms) and a.terms.keys() <= mine and b.terms.keys() <= mine


def _merge_by_symbol(s: Sum, known: Bounds) -> Sum:
    """Simplifies (x//d)*d + x%d → x if d != 0, for symbols and negative constants d."""
    for term, c in s.terms.items():
        if type(term) is not FloorMod or (isinstance(term.b, IntImm) and term.b.value >= 0) or not known.is_index(s):
            continue
        whole = known.sum(Mul(FloorDiv(term.a, term.b), term.b))
        if len(whole.terms) != 1 or whole.const:
            continue
        (product, times), = whole.terms.items()
        if s.terms.get(product) == c * times and not_zero(known, term.b, known.sum(term.a)):
            return _merge_by_symbol(s.without(term).without(product).plus(known.sum(term.a), c), known)
    return s


def _adds_in_order(e: Add, a: Sum, b: Sum) -> bool:
    """Tells whether `e` is written as `Canonical.build` would write it."""
    if not a.terms:
        return False  # a constant stands to the right
    if any(c < 0 for c in a.terms.values()):
        return False  # what is added comes before what is subtracted
    if not b.terms:
        return a.const == 0 and b.const > 0
    if a.const or b.const or isinstance(e.b, (Add, Sub)):
        return False
    return all(c > 0 for c in b.terms.values())


def _wrapping_add(e: Add, a: Sum, b: Sum) -> Expr | None:
    """Simplifies data, which may wrap: only (x + c1) + c2 → x + (c1 + c2) modulo 2**bits, and constants to the right."""
    if not a.terms:
        return Add(e.b, e.a)
    if not b.terms:
        if b.const == 0:
            return e.a
        if type(e.a) is Add and isinstance(e.a.b, IntImm):
            c = wrap_integer(e.a.b.value + b.const, e.dtype)
            return Add(e.a.a, IntImm(e.dtype, c)) if c else e.a.a
    return None


def fold_sub(e: Sub, known: Bounds) -> Expr | None:
    """Simplifies x - x → 0, (x - 1) - y → (x - y) - 1, x - (x//4)*4 → x%4, ...; ideal integers only."""
    s = known.sum(e)
    if len(s.terms) > 1 or (s.const and s.terms):
        shorter = take_up(s, known, e.dtype)
        if shorter is not None:
            return shorter
    a, b = known.sum(e.a), known.sum(e.b)
    if type(s.single) is Sub:
        return e.a if not b.terms and b.const == 0 else None  # data may wrap
    if _has_all_terms(s, a, b) and _subtracts_in_order(e, a, b):
        return None
    return known.build(s, e.dtype)


def _subtracts_in_order(e: Sub, a: Sum, b: Sum) -> bool:
    if not b.terms:
        return bool(a.terms) and a.const == 0 and b.const > 0
    if not a.terms and a.const < 0:
        return False
    return a.const >= 0 and b.const == 0 and not isinstance(e.b, (Add, Sub)) and all(c > 0 for c in b.terms.values())


def fold_mul(e: Mul, known: Bounds) -> Expr | None:
    """Simplifies (x*2)*3 → x*6, (x + 1)*4 → x*4 + 4, 4*x → x*4 of ideal integers; x*0 → 0 and x*1 → x of any."""
    a, b = known.sum(e.a), known.sum(e.b)
    if not a.terms and not b.terms:
        product = a.const * b.const
        if (e.dtype is INT32 or e.dtype is INT64) and wrap_integer(product, e.dtype) != product:
            return None  # an ideal integer that no constant holds: it stays a product
        return IntImm(e.dtype, wrap_integer(product, e.dtype))
    if not a.terms:
        return Mul(e.b, e.a)
    if b.terms:
        return _both_ends(e, known)
    if b.const == 1:
        return e.a
    if b.const == 0:
        return IntImm(e.dtype, 0)
    s = known.sum(e)
    if type(s.single) is Mul:
        return _wrapping_mul(e, b.const)
    if a.single is not None and not isinstance(e.a, (Add, Sub)):
        return None
    return known.build(s, e.dtype)


def _wrapping_mul(e: Mul, by: int) -> Expr | None:
    """Simplifies data, which may wrap: (x*c1)*c2 → x*(c1*c2) modulo 2**bits."""
    if type(e.a) is Mul and isinstance(e.a.b, IntImm):
        return Mul(e.a.a, IntImm(e.dtype, wrap_integer(e.a.b.value * by, e.dtype)))
    return None
