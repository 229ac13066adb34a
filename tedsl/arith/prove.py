"""Proofs by sympy: inequalities between products of symbols that `inequality` leaves open.

It is imported on first use, asked only about products of symbols (constant shapes never come here), and its answers are
remembered. `n*m - n >= 0` for m >= 1 is an example: sympy factors n*(m - 1), whose factors are not negative.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, factors
from tedsl.ir.expr import Expr, IntImm, Mul

Monomial = tuple[int, tuple[int, ...]]  # a coefficient and the numbers of its atoms

MAX_MONOMIALS = 12  # larger polynomials take sympy too long for what they are worth


def nonnegative_by_sympy(known: Bounds, s: Sum) -> bool:
    """Tells whether sympy proves s >= 0. False at once where no product of symbols occurs."""
    s = expand(known, s)
    if not any(type(term) is Mul for term in s.terms) or len(s.terms) > MAX_MONOMIALS or not known.is_index(s):
        return False
    numbers: dict[Expr, int] = {}
    monomials: list[Monomial] = [(s.const, ())]
    for term, c in s.terms.items():
        parts: list[int] = []
        for factor in factors(term):
            if isinstance(factor, IntImm):
                c *= factor.value
            else:
                parts.append(numbers.setdefault(factor, len(numbers)))
        monomials.append((c, tuple(sorted(parts))))
    ends = tuple(known.range(atom) for atom in numbers)
    return _decide(tuple(monomials), ends)


@lru_cache(maxsize=4096)
def _decide(monomials: tuple[Monomial, ...], ends: tuple[tuple[int | None, int | None], ...]) -> bool:
    """Tells whether the polynomial is at least 0 for all integers within `ends`; each atom is shifted so that 0 is an end."""
    import sympy

    atoms: list[Any] = []
    for i, (low, high) in enumerate(ends):
        if low is not None:
            atoms.append(low + sympy.Symbol(f"t{i}", integer=True, nonnegative=True))
        elif high is not None:
            atoms.append(high - sympy.Symbol(f"t{i}", integer=True, nonnegative=True))
        else:
            atoms.append(sympy.Symbol(f"t{i}", integer=True))
    polynomial = sum((c * sympy.prod([atoms[i] for i in parts]) for c, parts in monomials), sympy.Integer(0))
    expanded = sympy.expand(polynomial)
    return bool(expanded.is_nonnegative) or bool(sympy.factor(expanded).is_nonnegative)
