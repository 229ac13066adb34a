"""Rules for FloorDiv. Division by zero gives 0, so a divisor is cancelled only if it is proved not to be 0."""

from __future__ import annotations

from math import gcd

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, factors, is_factor_of_running_loop, nonnegative, product_of
from tedsl.ir.dtype import INT32, INT64, DType
from tedsl.ir.expr import Expr, FloorDiv, IntImm, Max, Min, Sub


def fold_floordiv(e: FloorDiv, known: Bounds) -> Expr | None:
    """Returns a simpler form of `e`, or None."""
    x = known.sum(e.a)
    if not x.terms and x.const == 0:                                              # 0 // d → 0
        return e.a
    if not isinstance(e.b, IntImm):
        return _by_symbol(e, x, known)
    d = e.b.value
    if d == 0:                                                                    # x // 0 → 0
        return e.b
    if d == 1:                                                                    # x // 1 → x
        return e.a
    if not x.terms:
        return constant(x.const // d, e.dtype)
    if d == -1 and known.is_index(x):                                             # x // -1 → 0 - x, ideal integers only
        return Sub(IntImm(e.dtype, 0), e.a)
    if d < 0:
        return None
    return _by_constant(e, x, d, known)


def _by_constant(e: FloorDiv, x: Sum, d: int, known: Bounds) -> Expr | None:
    whole, rest = split_multiples(x, d)
    block = same_block(known, rest, d)
    if block is not None:                                                         # (x*d + y) // d → x + k if k*d <= y < (k+1)*d
        return known.build(whole.divided(d).shifted(block), e.dtype)
    reduced = reduce_by_factor(known, rest, d)
    if reduced is not None:                                                       # (x*g + y) // (g*d) → x // d if 0 <= y < g
        inner, g, _ = reduced
        numerator = safe_build(known, inner, e.dtype)
        if numerator is not None:
            quotient = FloorDiv(numerator, IntImm(e.dtype, d // g))
            return _plus(known, whole.divided(d), quotient)
    if whole.terms or whole.const:                                                # (x*d + y) // d → x + y // d
        numerator = safe_build(known, rest, e.dtype)
        return None if numerator is None else _plus(known, whole.divided(d), FloorDiv(numerator, e.b))
    if isinstance(e.a, FloorDiv) and isinstance(e.a.b, IntImm) and e.a.b.value > 0:  # (x // c) // d → x // (c*d), c > 0, d > 0
        by = constant(e.a.b.value * d, e.dtype)
        return None if by is None else FloorDiv(e.a.a, by)
    if isinstance(e.a, (Min, Max)):
        return _of_minmax(e.a, d, known)
    return _nested(x, d, known, e.dtype)


def _of_minmax(e: Min | Max, d: int, known: Bounds) -> Expr | None:
    """Simplifies min(x*d, y) // d → min(x, y // d), d > 0, where d divides an operand."""
    sums = known.sum(e.a), known.sum(e.b)
    if not any(s.terms and s.common_factor() % d == 0 and known.is_index(s) for s in sums):
        return None
    by = IntImm(e.dtype, d)
    return type(e)(FloorDiv(e.a, by), FloorDiv(e.b, by))


def _nested(x: Sum, d: int, known: Bounds, dtype: DType) -> Expr | None:
    """Simplifies (x // c + k) // d → (x + k*c) // (c*d), c > 0, d > 0."""
    if len(x.terms) != 1:
        return None
    (term, coefficient), = x.terms.items()
    if coefficient != 1 or not isinstance(term, FloorDiv) or not isinstance(term.b, IntImm) or term.b.value < 1:
        return None
    c = term.b.value
    numerator, by = safe_build(known, known.sum(term.a).shifted(x.const * c), dtype), constant(c * d, dtype)
    return None if numerator is None or by is None else FloorDiv(numerator, by)


def _by_symbol(e: FloorDiv, x: Sum, known: Bounds) -> Expr | None:
    if known.same(e.a, e.b):                                                      # d // d → 1 if d != 0
        return IntImm(e.dtype, 1) if not_zero(known, e.b, x) else None
    if not is_ideal(known, x, e.dtype) or not known.is_index(known.sum(e.b)):
        return None
    by = known.sum(e.b)
    if by.terms and by.const <= 0 and all(factor < 0 for factor in by.terms.values()):  # x // -d → -x // d
        minus, plus = safe_build(known, x.plus(x, -2), e.dtype), safe_build(known, by.plus(by, -2), e.dtype)
        return None if minus is None or plus is None else FloorDiv(minus, plus)
    cancelled = cancel_factor(known, x, by, e.dtype)
    if cancelled is not None and not_zero(known, cancelled[2], x):                # (x*n) // (n*4) → x // 4 if n != 0
        return FloorDiv(cancelled[0], cancelled[1])
    whole, rest = split_factor(known, x, e.b)
    if nonnegative(known, rest) and nonnegative(known, by.plus(rest, -1).shifted(-1)):
        return known.build(whole, e.dtype)                                        # (x*d + y) // d → x if 0 <= y < d
    if (whole.terms or whole.const) and not_zero(known, e.b, x):                  # (x*d + y) // d → x + y // d if d != 0
        numerator = known.build(rest, e.dtype)
        return None if numerator is None else _plus(known, whole, FloorDiv(numerator, e.b))
    return None


# --- shared with floormod -----------------------------------------------------------------------------------------------

def constant(value: int, dtype: DType) -> IntImm | None:
    """Returns the constant if it fits `dtype`, else None."""
    low, high = dtype.min_value, dtype.max_value
    assert low is not None
    assert high is not None
    return IntImm(dtype, value) if low <= value <= high else None


def is_ideal(known: Bounds, s: Sum, dtype: DType) -> bool:
    """Tells whether `s`, written as an expression of `dtype`, keeps its value: index arithmetic, or proved to fit."""
    return ((dtype is INT32 or dtype is INT64) and known.is_index(s)) or known.fits(s, dtype)


def safe_build(known: Bounds, s: Sum, dtype: DType) -> Expr | None:
    """Returns `s` as an expression that does not wrap, or None."""
    return known.build(s, dtype) if is_ideal(known, s, dtype) else None


def split_multiples(s: Sum, d: int) -> tuple[Sum, Sum]:
    """Returns (whole, rest) with s = whole + rest, where `d` divides every coefficient of whole, and its constant or none of
    it.
    """
    whole = {t: c for t, c in s.terms.items() if c % d == 0}
    rest = {t: c for t, c in s.terms.items() if c % d}
    return (Sum(whole, s.const), Sum(rest)) if s.const % d == 0 else (Sum(whole), Sum(rest, s.const))


def same_block(known: Bounds, s: Sum, d: int) -> int | None:
    """Returns k if k*d <= s < (k+1)*d is proved, else None."""
    low, high = known.range_of(s)
    if low is None or high is None or low // d != high // d:
        return None
    return low // d


def reduce_by_factor(known: Bounds, s: Sum, d: int) -> tuple[Sum, int, Sum] | None:
    """Returns (inner, g, small) with s = g*inner + small, 0 <= small < g, g > 1 a divisor of d, inner not constant; or None."""
    for g in sorted({gcd(d, c) for c in s.terms.values()} - {1}, reverse=True):
        small = Sum({t: c for t, c in s.terms.items() if c % g}, s.const)
        if len(small.terms) == len(s.terms):
            continue
        block = same_block(known, small, g)
        if block is not None:
            inner = Sum({t: c // g for t, c in s.terms.items() if c % g == 0}, block)
            return inner, g, small.shifted(-block * g)
    return None


def split_factor(known: Bounds, s: Sum, by: Expr) -> tuple[Sum, Sum]:
    """Returns (whole, rest) with s = whole * by + rest, found by the symbol `by` among the factors of each term."""
    s = expand(known, s)
    whole, rest = Sum({}), Sum({}, s.const)
    for term, c in s.terms.items():
        parts = list(factors(term))
        at = next((i for i, part in enumerate(parts) if known.same(part, by)), None)
        if at is None:
            rest = rest.plus(known.sum(term), c)
            continue
        del parts[at]
        whole = whole.plus(known.sum(product_of(parts, by.dtype)), c)
    return whole, rest


def cancel_factor(known: Bounds, s: Sum, by: Sum, dtype: DType) -> tuple[Expr, Expr, Expr] | None:
    """Returns (x, d, n) with s = x*n and by = d*n, where `by` is a product of a symbol n and of more; or None."""
    if len(by.terms) != 1 or by.const:
        return None
    (term, c), = by.terms.items()
    parts = factors(term)
    if len(parts) == 1 and c == 1:
        return None
    for at, n in enumerate(parts):
        whole, rest = split_factor(known, s, n)
        divisor = known.build(known.sum(product_of((*parts[:at], *parts[at + 1:]), dtype)).times(c), dtype)
        numerator = known.build(whole, dtype)
        if not rest.terms and not rest.const and numerator is not None and divisor is not None:
            return numerator, divisor, n
    return None


def not_zero(known: Bounds, by: Expr, used_in: Sum) -> bool:
    """Tells whether `by` is proved not to be 0: by its range, or as a factor of the extent of a loop whose variable is used."""
    if known.nonzero(by) or nonnegative(known, known.sum(by).shifted(-1)):
        return True
    return is_factor_of_running_loop(known, by, used_in)


def _plus(known: Bounds, s: Sum, quotient: Expr) -> Expr | None:
    """Returns s + quotient in canonical order; the quotient is simplified later as a node of its own."""
    if not s.terms and not s.const:
        return quotient
    return known.build(s.plus(known.sum(quotient)), quotient.dtype)
