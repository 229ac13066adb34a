"""Values as sums of terms, each zero unless its conditions hold.

    select(a, x, 0) * cast(float, b)   ->   x where a, b          select(a, x, y)   ->   x where a,  y where !a
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.arith.canonical import Canonical
from tedsl.arith.conditions import conjuncts
from tedsl.arith.rules.logic import negated
from tedsl.ir import build
from tedsl.ir.expr import (
    Add,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    IntImm,
    Max,
    Min,
    Mul,
    Or,
    Reduce,
    Select,
    Sub,
)
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.record import record

MOST_TERMS = 8  # a value of more terms is one term
DEEPEST = 64  # what is nested deeper stays as it is


@record(eq=False)
class Term:
    """`value` where all conditions hold, else 0."""

    conditions: tuple[Expr, ...]
    value: Expr


def lifted(value: Expr) -> list[Term]:
    """Returns the terms of `value`; none for a zero."""
    return _Lift().terms(value, 0)


def split(condition: Expr, known: Canonical | None = None) -> tuple[Expr, ...]:
    """Returns the conditions that must all hold; what both sides of an `or` ask for is taken out of it.

    known: tells which conditions are equal.
    """
    parts: list[Expr] = []
    for part in conjuncts(condition):
        parts += _factored(part, known or Bounds()) if isinstance(part, Or) else [part]
    return tuple(parts)


def _factored(condition: Or, known: Canonical) -> list[Expr]:
    left, right = split(condition.a, known), split(condition.b, known)
    shared = [part for part in left if _among(part, right, known)]
    if not shared:
        return [condition]
    rests = [[part for part in side if not _among(part, shared, known)] for side in (left, right)]
    if not rests[0] or not rests[1]:
        return shared  # a || (a && b)
    return [*shared, build.logical_or(_all(rests[0]), _all(rests[1]))]


def _among(condition: Expr, others: Iterable[Expr], known: Canonical) -> bool:
    return any(known.same(condition, other) for other in others)


def _all(conditions: list[Expr]) -> Expr:
    result = conditions[0]
    for condition in conditions[1:]:
        result = build.logical_and(result, condition)
    return result


def _is_zero(value: Expr) -> bool:
    return isinstance(value, (IntImm, FloatImm)) and value.value == 0


def is_sum(reduction: Reduce) -> bool:
    """Tells whether a reduction is one of te.sum, that starts at 0."""
    combiner = reduction.combiner
    result, start = combiner.result[0], combiner.identity_element[0]
    return (len(reduction.source) == 1 and not reduction.init and isinstance(result, Add)
            and {result.a, result.b} == {combiner.lhs[0], combiner.rhs[0]} and build.constant_equality(start, 0) is True)


class _Lift:
    """Lifts conditions out of one value, shared parts once."""

    def __init__(self) -> None:
        self.known = Bounds()
        self.done: dict[Expr, list[Term]] = {}

    def terms(self, value: Expr, depth: int) -> list[Term]:
        if value not in self.done:
            found = self.find(value, depth + 1) if depth < DEEPEST else None
            self.done[value] = [Term((), value)] if found is None or len(found) > MOST_TERMS else found
        return self.done[value]

    def find(self, value: Any, depth: int) -> list[Term] | None:
        """Returns the terms; None where the value is a single term as it stands."""
        if _is_zero(value):
            return []
        kind = type(value)
        if kind is Select or (kind is Call and value.op is IF_THEN_ELSE):
            condition, x, y = value.child_nodes() if kind is Select else value.args
            return self.choice(condition, self.terms(x, depth), self.terms(y, depth))
        if kind is Add or kind is Sub:
            return self.sum(value, self.terms(value.a, depth), self.terms(value.b, depth))
        if kind is Mul:
            return self.product(value, self.terms(value.a, depth), self.terms(value.b, depth))
        if kind is Div and value.dtype.is_float:
            return self.each(self.terms(value.a, depth), lambda x: build.div(x, value.b))
        if kind is Cast:
            return self.cast(value, depth)
        if (kind is Max or kind is Min) and _is_zero(value.b):
            return self.only(self.terms(value.a, depth), lambda x: build.binary(kind, x, value.b))
        return None

    def choice(self, condition: Expr, x: list[Term], y: list[Term]) -> list[Term] | None:
        """Returns the terms of a choice; None if neither side has a condition or is 0."""
        if x and y and not any(term.conditions for term in (*x, *y)):
            return None
        return [*self.under(condition, x), *(self.under(negated(condition), y) if y else [])]

    def sum(self, value: Add | Sub, a: list[Term], b: list[Term]) -> list[Term] | None:
        """Returns the terms of both sides, those with the same conditions added; None if there are no conditions."""
        if a and b and not any(term.conditions for term in (*a, *b)):
            return None
        if isinstance(value, Sub):
            b = [Term(term.conditions, build.negative(term.value)) for term in b]
        result: list[Term] = []
        for term in (*a, *b):
            at = next((i for i, other in enumerate(result) if self.same(other.conditions, term.conditions)), None)
            if at is None:
                result.append(term)
            else:
                result[at] = Term(term.conditions, build.add(result[at].value, term.value))
        return result

    def product(self, value: Mul, a: list[Term], b: list[Term]) -> list[Term] | None:
        if a and b and not any(term.conditions for term in (*a, *b)):
            return None
        return [Term(self.joined(x.conditions, y.conditions), _times(x.value, y.value)) for x in a for y in b]

    def cast(self, value: Cast, depth: int) -> list[Term] | None:
        if value.value.dtype.is_bool and value.dtype.lanes == 1:
            return [Term(split(value.value, self.known), build.const(1, value.dtype))]
        return self.only(self.terms(value.value, depth), lambda x: build.cast(value.dtype, x))

    def under(self, condition: Expr, terms: list[Term]) -> list[Term]:
        return [Term(self.joined(split(condition, self.known), term.conditions), term.value) for term in terms]

    def joined(self, first: tuple[Expr, ...], second: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return first + tuple([c for c in second if not _among(c, first, self.known)])

    def same(self, first: tuple[Expr, ...], second: tuple[Expr, ...]) -> bool:
        return len(first) == len(second) and all(map(self.known.same, first, second))

    def only(self, terms: list[Term], apply: Callable[[Expr], Expr]) -> list[Term] | None:
        """Returns the term with a function applied that keeps 0 but is not linear: None for several terms."""
        return None if len(terms) > 1 else self.each(terms, apply)

    def each(self, terms: list[Term], apply: Callable[[Expr], Expr]) -> list[Term] | None:
        if terms and not any(term.conditions for term in terms):
            return None
        return [Term(term.conditions, apply(term.value)) for term in terms]


def _times(x: Expr, y: Expr) -> Expr:
    """Returns the product; a factor of 1, which a cast condition leaves, is left out."""
    return y if isinstance(x, (IntImm, FloatImm)) and x.value == 1 else build.mul(x, y)
