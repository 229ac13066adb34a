"""Divisibility: the values of an expression as `base` plus multiples of `coeff`."""

from __future__ import annotations

from math import gcd
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds, value_parts
from tedsl.ir.expr import Call, Expr, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mul, Select
from tedsl.ir.ops import IF_THEN_ELSE

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
        parts = value_parts(term)
        below = [t for part in parts for t in known.sum(part).terms if t not in memo]
        if below:
            stack.extend(below)
            continue
        stack.pop()
        memo[term] = _meet(_of_term(term, [_of_sum(known.sum(part), memo) for part in parts], known),
                           known.residues.get(term, ANYTHING))
    return _of_sum(s, memo)


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
    if term in known.data and kind is not Select and kind is not Call:
        return ANYTHING  # it may wrap
    if kind is Mul:
        (k, a), (m, b) = parts
        return _normal(gcd(k * m, gcd(k * b, m * a)), a * b)
    if kind in (Min, Max, Select) or (kind is Call and term.op is IF_THEN_ELSE):
        (k, a), (m, b) = parts
        return _normal(gcd(gcd(k, m), a - b), a)
    if kind is FloorDiv and type(term.b) is IntImm and term.b.value > 0 and parts[0][0] % term.b.value == 0:
        return _normal(parts[0][0] // term.b.value, parts[0][1] // term.b.value)  # (d*k*x + a) // d = k*x + a // d
    if kind is FloorMod and type(term.b) is IntImm and term.b.value > 0:
        return _normal(gcd(parts[0][0], term.b.value), parts[0][1])
    return parts[0] if kind is Let and parts else ANYTHING


def _meet(r: Residue, s: Residue) -> Residue:
    """Returns the finer of two residues that both hold (exact where one coefficient divides the other)."""
    if r[0] == 0 or s[0] == 0:
        return r if r[0] == 0 else s
    return r if r[0] >= s[0] else s
