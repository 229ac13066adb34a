"""Eliminates zeros from sums: the sum over all indices of what is zero at most of them becomes one over the others.

    sum over i, k of select(2*i + k == j, head[i] * w[k], 0)   ->   sum over t in [0, 2) of head[j//2 - 1 + t] * w[...]

    terms (a value as terms under conditions, see lang/zeros) -> choices (those between indices as terms of their own) ->
    quotients (// and % as new variables) -> solve (equations eliminate axes, inequalities shrink them, see arith/int_solver)
    -> eliminate (the sum over what is left)

A product with a zero of the formula is zero here, whatever the other factor is: infinity and NaN too.
"""

from tedsl.autodiff.zeros.eliminate import eliminate_zeros

__all__ = ["eliminate_zeros"]
