"""Divisibility: the values of an expression as `base` plus multiples of `coeff`."""

from __future__ import annotations

from math import gcd
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds, value_parts
from tedsl.ir.expr import Call, Div, Expr, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, Select
from tedsl.ir.ops import BITWISE_AND, IF_THEN_ELSE, SHIFT_LEFT, SHIFT_RIGHT

Residue = tuple[int, int]  # (coeff, base), 0 <= base < coeff; coeff 0: the constant base; (1, 0): nothing is known

ANYTHING: Residue = (1, 0)


def residue_of(known: Bounds, s: Sum) -> Residue:
    """Returns the residue known of a sum, with an explicit stack over nested terms."""
    memo: dict[Expr, Residue] = {}
    stack = list(s.terms)
    while stack:
        term = stack[-1]
        if term in memo:
            stack.pop()
            continue
        if type(term) is Let and (waiting := _let(term, memo, known)):
            stack.extend(waiting)
            continue
        parts = value_parts(term)
        below = [t for part in parts for t in known.sum(part).terms if t not in memo]
        if below:
            stack.extend(below)
            continue
        stack.pop()
        memo[term] = both(_of_term(term, [_of_sum(known.sum(part), memo) for part in parts], known),
                           known.residues.get(term, ANYTHING))
    return _of_sum(s, memo)


def _let(term: Let, memo: dict[Expr, Residue], known: Bounds) -> list[Expr]:
    """Gives the variable of a Let the residue of its value; returns the terms to settle before that, if there are any."""
    if not term.value.dtype.is_integer or term.value.dtype.lanes != 1:
        return []
    value = known.sum(term.value)
    waiting = [t for t in value.terms if t not in memo]
    if not waiting:
        memo[term.var] = _of_sum(value, memo)
    return waiting


def _normal(coeff: int, base: int) -> Residue:
    coeff = abs(coeff)
    return (coeff, base % coeff) if coeff else (0, base)


def _of_sum(s: Sum, memo: dict[Expr, Residue]) -> Residue:
    coeff, base = 0, s.const
    for term, c in s.terms.items():
        k, b = memo[term]
        coeff, base = gcd(coeff, k * c), base + b * c
    return _normal(coeff, base)


def _of_term(term: Any, parts: list[Residue], known: Bounds) -> Residue:
    kind = type(term)
    if term in known.data and kind not in (Select, Call, Let):
        return ANYTHING  # it may wrap
    if kind is Mul:
        (k, a), (m, b) = parts
        return _normal(gcd(k * m, gcd(k * b, m * a)), a * b)
    if kind in (Min, Max, Select) or (kind is Call and term.op is IF_THEN_ELSE):
        (k, a), (m, b) = parts
        return _normal(gcd(gcd(k, m), a - b), a)
    if kind is Call:
        return _of_mask(term) if term.op is BITWISE_AND else _of_shift(term, parts)
    if kind in (FloorDiv, FloorMod, Div, Mod) and type(term.b) is IntImm and term.b.value > 0:
        return _divided(kind, parts[0], term.b.value)
    return parts[0] if kind is Let and parts else ANYTHING


def _divided(kind: type, residue: Residue, d: int) -> Residue:
    """Returns the residue of a quotient or a remainder by d > 0."""
    k, a = residue
    if kind is FloorMod or kind is Mod:  # both are x plus a multiple of d
        return _normal(gcd(k, d), a)
    if k % d or (kind is Div and a % d):  # rounding towards 0 is rounding down where nothing is rounded
        return ANYTHING
    return _normal(k // d, a // d)  # (d*k*x + a) // d = k*x + a // d


def _of_mask(term: Call) -> Residue:
    """Returns the residue of x & mask: it has no bit below the lowest one of the mask."""
    masks = [arg.value for arg in term.args if isinstance(arg, IntImm) and arg.value]
    return (masks[0] & -masks[0], 0) if masks else ANYTHING


def _of_shift(term: Call, parts: list[Residue]) -> Residue:
    """Returns the residue of a shift by a constant: x >> n is x // 2**n; x << n is x * 2**n plus a multiple of 2**bits."""
    if term.op not in (SHIFT_LEFT, SHIFT_RIGHT) or not isinstance(by := term.args[1], IntImm) \
            or not 0 <= by.value < term.dtype.bits:
        return ANYTHING
    k, a = parts[0]
    if term.op is SHIFT_RIGHT:
        return _divided(FloorDiv, parts[0], 1 << by.value)
    return _normal(gcd(k << by.value, 1 << term.dtype.bits), a << by.value)


def both(r: Residue, s: Residue) -> Residue:
    """Returns the residue of what has the residues r and s (the Chinese remainder theorem); r where nothing has both."""
    (k, a), (m, b) = r, s
    if k == 0 or m == 0:
        return r if k == 0 else s
    common = gcd(k, m)
    if (b - a) % common:
        return r  # the place is unreachable
    steps = (b - a) // common * pow(k // common, -1, m // common) if m > common else 0
    return _normal(k * (m // common), a + k * steps)
