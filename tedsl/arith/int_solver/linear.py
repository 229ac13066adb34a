"""Sums as linear forms: the coefficient of a variable, and its replacement."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, factors, multiply, nonnegative, product_of
from tedsl.arith.rules.logic import at_least_zero
from tedsl.errors import ArgumentError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import EQ, Expr, IntImm, Var
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import uses


class DoesNotFitError(ArgumentError):
    """The solution of a system of small coefficients has one that is too large."""


def slope(known: Bounds, s: Sum, var: Var) -> tuple[Sum, Sum] | None:
    """Returns (a, b) with s = a*var + b and `var` in neither; None if `s` is not linear in `var`."""
    a, b = Sum({}), s
    for term, c in s.terms.items():
        if term is var:
            a, b = a.shifted(c), b.without(term)
            continue
        if not uses(term, var):
            continue
        parts: list[Any] = list(factors(term))
        at = [i for i, part in enumerate(parts) if part is var]
        others = [part for i, part in enumerate(parts) if i not in at]
        if len(at) != 1 or any(uses(part, var) for part in others):
            return None
        a, b = a.plus(known.sum(product_of(others, var.dtype)), c), b.without(term)
    return a, b


def slopes(known: Bounds, s: Sum, variables: Collection[Var]) -> tuple[dict[Var, Sum], Sum] | None:
    """Returns the coefficients of those variables that occur in `s`, and the rest without any of them; None if `s` is not
    linear in them together.
    """
    found: dict[Var, Sum] = {}
    rest = s
    for var in variables:
        split = slope(known, rest, var)
        if split is None or any(uses(term, variables) for term in split[0].terms):
            return None
        if split[0].terms or split[0].const:
            found[var], rest = split
    return found, rest


def replaced(known: Bounds, s: Sum, values: dict[Var, Expr]) -> Sum:
    """Returns `s` with each variable of `values` replaced by its value, multiplied out."""
    if not any(uses(term, values) for term in s.terms):
        return s
    result = Sum({}, s.const)
    for term, c in s.terms.items():
        if isinstance(term, Var) and term in values:
            result = result.plus(known.sum(values[term]), c)
        elif uses(term, values):
            product = Sum({}, 1)
            for factor in factors(term):
                product = multiply(known, product, known.sum(substitute(factor, values)), term)
            result = result.plus(product, c)
        else:
            result = result.plus(known.term_sum(term), c)
    return expand(known, result)


def expression(known: Bounds, s: Sum, dtype: DType) -> Expr:
    """Returns `s` as an expression of that dtype; raises DoesNotFitError if a coefficient does not fit it."""
    built = known.build(s, dtype)
    if built is None:
        raise DoesNotFitError(f"the solution has a coefficient that does not fit {dtype}", hint="use variables of int64")
    return built


def floordiv(known: Bounds, s: Sum, by: Sum, dtype: DType) -> Expr:
    """Returns s // by, for a positive `by`. Multiples of a symbolic `by` are taken out of the quotient: where the rest is
    proved to be smaller than `by`, nothing else is left of it.
    """
    if by.single is None and len(by.terms) == 1 and not by.const:  # x // (3*m) is x // 3 // m
        (term, k), = by.terms.items()
        inner = known.sum(floordiv(known, s, Sum({}, k), dtype))
        return floordiv(known, inner, known.term_sum(term), dtype)
    whole, rest = _multiples(known, s, by, dtype) if by.single is not None else (Sum({}), s)
    for more in (0, 1) if by.terms else ():  # rest // by is -more
        least = rest.plus(by, more)
        if nonnegative(known, least) and nonnegative(known, by.plus(least, -1).shifted(-1)):
            return expression(known, whole.shifted(-more), dtype)
    quotient = build.floordiv(expression(known, rest, dtype), expression(known, by, dtype))
    return build.add(expression(known, whole, dtype), quotient) if whole.terms or whole.const else quotient


def _multiples(known: Bounds, s: Sum, by: Sum, dtype: DType) -> tuple[Sum, Sum]:
    """Returns (q, r) with s = q*by + r, where `by` is a product of symbols and r has no multiple of it."""
    divisor = list(factors(next(iter(by.terms))))
    whole, rest = Sum({}), Sum({}, s.const)
    for term, c in s.terms.items():
        left: list[Any] = list(factors(term))
        for part in divisor:
            at = next((i for i, factor in enumerate(left) if known.same(factor, part)), None)
            if at is None:
                rest = rest.plus(known.term_sum(term), c)
                break
            del left[at]
        else:
            whole = whole.plus(known.sum(product_of(left, dtype)), c)
    return whole, rest


def as_condition(known: Bounds, gap: Sum, dtype: DType, *, equation: bool = False) -> Expr:
    """Returns the comparison that says gap >= 0, or for an equation gap == 0, with positive terms on both sides."""
    left = Sum({t: -c for t, c in gap.terms.items() if c < 0}, max(-gap.const, 0))
    right = Sum({t: c for t, c in gap.terms.items() if c > 0}, max(gap.const, 0))
    sides = expression(known, left, dtype), expression(known, right, dtype)
    return build.equal(*sides) if equation else build.less_equal(*sides)


def equation_of(known: Bounds, condition: Expr) -> Sum | None:
    """Returns the sum that is 0 exactly if the equality of scalar integers holds; None for any other condition."""
    if not isinstance(condition, EQ) or not condition.a.dtype.is_integer or condition.a.dtype.lanes != 1:
        return None
    a, b = known.sum(condition.a), known.sum(condition.b)
    return expand(known, a.plus(b, -1)) if known.is_index(a) and known.is_index(b) else None


def inequality_of(known: Bounds, condition: Expr) -> Sum | None:
    """Returns the sum that is at least 0 exactly if the comparison of scalar integers holds; None for any other condition."""
    gap = at_least_zero(known, condition)
    return expand(known, gap) if gap is not None and known.is_index(gap) else None


def is_false(condition: Expr) -> bool:
    """Tells whether `condition` is the constant false."""
    return isinstance(condition, IntImm) and condition.value == 0
