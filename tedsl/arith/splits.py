"""Merges the parts of a split index: (x//4)*4 + x%4 → x, also for parts of parts.

A part of `x` is (x % upper) // lower, where lower divides upper; upper None means no `%`. Division rounds down in all operators
of a part, or towards 0 in all: the parts of -x are those of x with the other sign then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tedsl.arith.affine import Sum
from tedsl.ir.expr import Div, Expr, FloorDiv, FloorMod, IntImm, Mod

if TYPE_CHECKING:
    from tedsl.arith.canonical import Canonical


class Part(NamedTuple):
    """A part (x % upper) // lower of the index x."""

    x: Expr
    upper: int | None
    lower: int
    truncated: bool = False


def part_of(term: Expr) -> Part | None:
    """Returns `term` as a part of an index, with positive constant divisors; None if it is not one."""
    if not isinstance(term, (FloorDiv, FloorMod, Div, Mod)) or not isinstance(term.b, IntImm) or term.b.value <= 0:
        return None
    truncated = isinstance(term, (Div, Mod))
    quotient, remainder = (Div, Mod) if truncated else (FloorDiv, FloorMod)
    inner, by = term.a, term.b.value
    if isinstance(term, quotient):
        if isinstance(inner, remainder) and isinstance(inner.b, IntImm) and inner.b.value > 0 and inner.b.value % by == 0:
            return Part(inner.a, inner.b.value, by, truncated)
        return Part(inner, None, by, truncated)
    if isinstance(inner, quotient) and isinstance(inner.b, IntImm) and inner.b.value > 0:
        return Part(inner.a, by * inner.b.value, inner.b.value, truncated)
    return Part(inner, by, 1, truncated)


def merge_splits(s: Sum, canonical: Canonical) -> Sum:
    """Returns `s` with the parts of one index merged where their multiples fit together."""
    while s.splits:
        merged = _merge_two(s, canonical) or _subtract_quotient(s, canonical) or _subtract_remainder(s, canonical)
        if merged is None:
            return s
        s = merged
    return s


def _merge_two(s: Sum, canonical: Canonical) -> Sum | None:
    """Merges c * (lA/lB) * ((x % uA) // lA) + c * ((x % lA) // lB)  →  c * ((x % uA) // lB)."""
    parts = [(term, c, part) for term, c in s.terms.items() if (part := part_of(term)) is not None]
    if len(parts) < 2:
        return None
    for high, c_high, p in parts:
        for low, c_low, q in parts:
            if q.upper == p.lower and c_high * q.lower == c_low * p.lower and _same_rest(p, q, canonical):
                rest = s.without(high).without(low)
                return rest.plus(canonical.sum(_make(p, p.upper, q.lower)), c_low)
    return None


def _same_rest(p: Part, q: Part, canonical: Canonical) -> bool:
    """Tells whether p.x and q.x leave equal remainders modulo p.lower: they are equal, or differ by a multiple of it.

    The parts of an index can be written unlike: ((o*16 + i) % 3136)//56 is ((o % 196)*16 + i)//56 beside (o*16 + i) % 56.
    """
    if p.truncated is not q.truncated:
        return False
    if canonical.same(p.x, q.x):
        return True
    if p.truncated:
        return False
    by, first, second = p.lower, canonical.sum(p.x), canonical.sum(q.x)
    if not (canonical.is_index(first) and canonical.is_index(second)):
        return False  # data wraps
    difference = first.plus(second, -1)
    for term, c in list(difference.terms.items()):
        if isinstance(term, FloorMod) and isinstance(term.b, IntImm) and c * term.b.value % by == 0:
            difference = difference.without(term).plus(canonical.sum(term.a), c)
    return difference.const % by == 0 and all(c % by == 0 for c in difference.terms.values())


def _subtract_quotient(s: Sum, canonical: Canonical) -> Sum | None:
    """Simplifies k*x - k*l*(x // l)  →  k * (x % l), where all terms of x occur in the sum."""
    for term, c in s.terms.items():
        part = part_of(term)
        if part is None or part.upper is not None or c % part.lower or not canonical.is_index(s):
            continue
        k = -c // part.lower
        index = canonical.sum(part.x)
        if index.terms and all(s.terms.get(t) == k * coefficient for t, coefficient in index.terms.items()):
            return s.without(term).plus(index, -k).plus(canonical.sum(_make(part, part.lower, 1)), k)
    return None


def _subtract_remainder(s: Sum, canonical: Canonical) -> Sum | None:
    """Simplifies k*x - k*(x % u)  →  k*u*(x // u), where all terms of x occur in the sum; x//l and (x % u)//l likewise."""
    for term, c in s.terms.items():
        part = part_of(term)
        if part is None or part.upper is None or not canonical.is_index(s):
            continue
        whole = canonical.sum(_make(part, None, part.lower))
        if whole.terms and all(s.terms.get(t) == -c * coefficient for t, coefficient in whole.terms.items()):
            quotient = canonical.sum(_make(part, None, part.upper))
            return s.without(term).plus(whole, c).plus(quotient, -c * (part.upper // part.lower))
    return None


def _make(like: Part, upper: int | None, lower: int) -> Expr:
    """Returns the part (x % upper) // lower of the index of `like`, in its rounding."""
    index, (quotient, remainder) = like.x, (Div, Mod) if like.truncated else (FloorDiv, FloorMod)
    part = index if upper is None else remainder(index, IntImm(index.dtype, upper))
    return part if lower == 1 else quotient(part, IntImm(index.dtype, lower))
