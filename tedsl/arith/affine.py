"""Sums of terms, the form in which integers are compared and cancelled: `3*i + n//4 - 2` is {i: 3, n//4: 1} and -2.

A term is an expression that represents all expressions of equal value (see canonical.py), so that equal terms are the same
object.
"""

from __future__ import annotations

from math import gcd

from tedsl.ir.expr import Div, Expr, FloorDiv, FloorMod, Mod

Key = tuple[frozenset[tuple[Expr, int]], int]

_OF_DIVISIONS = frozenset((FloorDiv, FloorMod, Div, Mod))
MAX_TERMS = 24  # a longer sum is one opaque term: keeps every step O(1), so deep sums stay linear


class Sum:
    """A constant plus integer multiples of terms. Immutable; terms are in the order of first appearance, none is 0."""

    __slots__ = ("_key", "const", "terms")

    def __init__(self, terms: dict[Expr, int], const: int = 0) -> None:
        self.terms = terms
        self.const = const
        self._key: Key | None = None

    @property
    def key(self) -> Key:
        """Returns a hashable key that is equal for equal sums."""
        if self._key is None:
            self._key = frozenset(self.terms.items()), self.const
        return self._key

    @property
    def splits(self) -> bool:
        """Tells whether a term is a quotient or a remainder, so that `merge_splits` may apply."""
        for term in self.terms:  # noqa: SIM110 - half the time of any()
            if type(term) in _OF_DIVISIONS:
                return True
        return False

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """Returns self + other * factor."""
        if not other.terms:
            return Sum(self.terms, self.const + other.const * factor)
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            c = terms.get(term, 0) + coefficient * factor
            if c:
                terms[term] = c
            else:
                terms.pop(term, None)
        return Sum(terms, self.const + other.const * factor)

    def times(self, k: int) -> Sum:
        """Returns self * k."""
        if k == 1:
            return self
        if k == 0:
            return Sum({}, 0)
        return Sum({term: c * k for term, c in self.terms.items()}, self.const * k)

    def shifted(self, k: int) -> Sum:
        """Returns self + k."""
        return Sum(self.terms, self.const + k) if k else self

    def without(self, term: Expr) -> Sum:
        """Returns self without its multiple of `term`."""
        return Sum({t: c for t, c in self.terms.items() if t is not term}, self.const)

    def divided(self, k: int) -> Sum:
        """Returns self / k, where `k` divides every coefficient and the constant."""
        return Sum({term: c // k for term, c in self.terms.items()}, self.const // k)

    @property
    def single(self) -> Expr | None:
        """Returns the term if the sum is that term and nothing else, else None."""
        if len(self.terms) == 1 and not self.const:
            (term, c), = self.terms.items()
            return term if c == 1 else None
        return None

    def common_factor(self) -> int:
        """Returns the greatest common divisor of the coefficients (not of the constant); 0 for a constant."""
        return gcd(*self.terms.values())

    def __repr__(self) -> str:
        return " + ".join([f"{c}*{t!r}" for t, c in self.terms.items()] + [str(self.const)])


ZERO = Sum({}, 0)
