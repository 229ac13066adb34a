"""Solves a condition for one variable: `i*8 + j < n` for all j in [0, 7] gives i <= (n - 8) // 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.conditions import conjuncts
from tedsl.arith.interval import relax
from tedsl.arith.linear import detect_linear_equation
from tedsl.arith.rules.logic import at_least_zero
from tedsl.arith.sets import NEG_INF, POS_INF, IntervalSet, condition_of, intervals_of, variable_of, variables_of
from tedsl.ir import build
from tedsl.ir.expr import EQ, Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import uses


def deduce_bound(var: Var | IterVar, cond: Expr, hint_map: Mapping[Any, IntervalSet],
                 relax_map: Mapping[Any, IntervalSet]) -> IntervalSet:
    """Returns the values of `var` for which `cond` holds whatever values the variables of `relax_map` take in their sets.

    hint_map: sets of variables that stay symbols in the result: they decide the signs of factors. Where a part of `cond` never
    holds there is no value, from pos_inf to neg_inf. A part that is not a bound of `var`, such as `z < 3` or one that is not
    linear in `var`, leaves both sides unbounded, unless it is proved for all values in the two maps. For what is no condition
    there is no value, as in TVM.
    """
    name = variable_of(var, "deduce_bound")
    if build.is_expr(cond) and not cond.dtype.is_bool:  # there is nothing to hold
        return IntervalSet(POS_INF, NEG_INF)
    cond = condition_of(cond, "deduce_bound")
    hints, relaxed = intervals_of(hint_map, "deduce_bound"), intervals_of(relax_map, "deduce_bound")
    analyzer, hinted = Analyzer(), Analyzer()
    for symbol, known in hints.items():
        hinted.bind(symbol, known.ends())
    ranges = {v: s.ends() for v, s in relaxed.items()}
    parts = conjuncts(analyzer.simplify(cond))
    if any(build.as_int(part) == 0 for part in parts):
        return IntervalSet(POS_INF, NEG_INF)
    low: Expr | None = None
    high: Expr | None = None
    unsolved: list[Expr] = []
    for part in parts:
        solved = [_solved(gap, name, ranges, analyzer, hinted) for gap in _gaps(part, analyzer)]
        if not solved or any(end is None for _, end in solved):
            unsolved.append(part)
        for slope, end in solved:
            if end is not None and slope > 0:
                low = end if low is None else analyzer.simplify(build.maximum(low, end))
            elif end is not None:
                high = end if high is None else analyzer.simplify(build.minimum(high, end))
    if unsolved and not _always_hold(unsolved, {v: s for v, s in (hints | relaxed).items() if v is not name}):
        return IntervalSet(None, None)
    return IntervalSet(low, high)


def _always_hold(parts: Sequence[Expr], ranges: Mapping[Var, IntervalSet]) -> bool:
    """Tells whether all of `parts` are proved for the variables of `ranges` in their sets."""
    within = Analyzer()
    for var, known in ranges.items():
        within.bind(var, known.ends())
    return all(within.can_prove(part) for part in parts)


def detect_clip_bound(expr: Expr, var_list: Sequence[Var | IterVar]) -> list[Expr | None]:
    """Returns [min1, max1, min2, max2, ...], the inclusive bounds that the conjunction `expr` gives each variable of the list.

    An entry is None where there is no such bound; [] if a part of `expr` does not simplify to v <= e or v >= e with one
    variable v of the list in it.
    """
    names = variables_of(var_list, "detect_clip_bound")
    analyzer = Analyzer()
    ends: list[Expr | None] = [None] * (2 * len(names))
    for part in conjuncts(condition_of(expr, "detect_clip_bound")):
        gaps = _gaps(analyzer.simplify(part), analyzer)
        if not gaps:
            return []
        for gap in gaps:
            bounded = [i for i, v in enumerate(names) if any(uses(term, v) for term in gap.terms)]
            sign = gap.terms.get(names[bounded[0]], 0) if len(bounded) == 1 else 0
            end = _end(gap, names[bounded[0]], {}, analyzer) if sign in (1, -1) else None
            if end is None:
                return []
            place = 2 * bounded[0] + (sign < 0)
            before = ends[place]
            choose = build.maximum if sign > 0 else build.minimum
            ends[place] = end if before is None else analyzer.simplify(choose(before, end))
    return ends


def _gaps(part: Expr, analyzer: Analyzer) -> list[Sum]:
    """Returns the sums that must be at least 0 for `part` to hold."""
    known = analyzer.known
    if isinstance(part, EQ) and part.a.dtype.is_integer and part.a.dtype.lanes == 1:
        gap = known.sum(part.b).plus(known.sum(part.a), -1)
        return [gap, gap.times(-1)]
    single = at_least_zero(known, part)
    return [] if single is None else [single]


def _solved(gap: Sum, var: Var, ranges: Mapping[Any, Any], analyzer: Analyzer, hinted: Analyzer) -> tuple[int, Expr | None]:
    """Returns the sign of the factor of `var` in a sum that is at least 0, and the bound that follows for `var`, or None."""
    if var in gap.terms:
        return gap.terms[var], _end(gap, var, ranges, analyzer)
    whole = analyzer.known.build(gap, var.dtype)
    linear = [] if whole is None else detect_linear_equation(whole, [var])
    if not linear:
        return 0, None
    worst, _ = relax(linear[1], ranges, analyzer)
    least, most = relax(linear[0], ranges, analyzer)
    if worst is None or uses(linear[0], var):
        return 0, None
    if least is not None and (hinted.known.range(least)[0] or 0) > 0:
        return 1, analyzer.simplify(_at_ends(build.maximum, lambda f: _least(worst, f), least, most))
    if most is not None and (hinted.known.range(most)[1] or 0) < 0:
        away = None if least is None else build.sub(0, least)
        return -1, analyzer.simplify(_at_ends(build.minimum, lambda f: build.floordiv(worst, f), build.sub(0, most), away))
    return 0, None


def _least(worst: Expr, factor: Expr) -> Expr:
    """Returns the least x with factor*x + worst >= 0 for a positive `factor`: ceil(-worst / factor)."""
    return build.floordiv(build.sub(build.sub(factor, 1), worst), factor)


def _at_ends(choose: Callable[[Any, Any], Expr], bound: Callable[[Expr], Expr], near: Expr, far: Expr | None) -> Expr:
    """Returns the bound that holds for every factor from `near` to `far`, which are positive; far: None for unboundedly many.

    A quotient by the factor is monotone in it, so that one of the two ends decides; it goes to 0 for large factors.
    """
    if far is not None and structural_equal(near, far):
        return bound(near)
    return choose(bound(near), build.const(0, near.dtype) if far is None else bound(far))


def _end(gap: Sum, var: Var, ranges: Mapping[Any, Any], analyzer: Analyzer) -> Expr | None:
    """Returns the bound of `var` that c*var + rest >= 0 gives: the least value for c > 0, the greatest for c < 0."""
    c = gap.terms.get(var, 0)
    if c == 0:
        return None
    rest = analyzer.known.build(gap.without(var), var.dtype)
    if rest is None or uses(rest, var):
        return None
    worst, _ = relax(rest, ranges, analyzer)
    if worst is None:
        return None
    if c > 0:  # var >= ceil(-worst / c) = (c - 1 - worst) // c
        return analyzer.simplify(build.floordiv(build.sub(c - 1, worst), c))
    return analyzer.simplify(build.floordiv(worst, -c))
