"""The iterations of a loop for which a guard provably holds in every iteration of the loops inside."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import GE, GT, LE, LT, Add, Expr, IntImm, Load, Mul, Sub, Var
from tedsl.ir.stmt import For
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.loops.vectorize_expr import extreme_lane
from tedsl.record import record

_MOST = 100  # nodes of a guard: one whose parts are used again is a sum of far more terms
_LARGEST = (1 << 31) - 1


@record
class Interval:
    """The iterations low <= v < high; None: unbounded on that side."""

    low: Expr | None
    high: Expr | None


def holding_interval(guard: Expr, var: Var, inner: Sequence[For], analyzer: Analyzer) -> Interval | None:
    """Returns the iterations of `var` for which `guard` (a comparison, perhaps of lanes) holds in every iteration of the loops
    `inner` (outermost first); None if that cannot be told.
    """
    scalar = extreme_lane(guard, weakest=False) if guard.dtype.lanes > 1 else guard
    known = None if scalar is None else _of_numbers(scalar, var, inner)
    if known is not None:
        return known
    slack = None if scalar is None else _slack(scalar)
    if slack is None or any(isinstance(node, Load) for node in post_order(slack)):
        return None
    split = split_linear(slack, var, analyzer)
    if split is None or split[0] == 0:
        return None
    factor, rest = split
    least = _minimum(rest, var, inner, analyzer)
    if least is None:
        return None
    if factor > 0:  # factor * v + least >= 0
        low = build.sub(IntImm(least.dtype, 0), build.floordiv(least, factor))
        return Interval(analyzer.simplify(low), None)
    return Interval(None, analyzer.simplify(build.add(build.floordiv(least, -factor), 1)))


def _of_numbers(guard: Expr, var: Var, inner: Sequence[For]) -> Interval | None:
    """Returns what `holding_interval` does for a comparison of sums of multiples of `var` and of loops of constant extent, as
    most guards are, without making expressions; None for others.
    """
    if not isinstance(guard, (LT, LE, GT, GE)) or guard.a.dtype not in (INT32, INT64):
        return None
    sign = 1 if isinstance(guard, (GT, GE)) else -1
    slack = [(sign, guard.a), (-sign, guard.b)]  # a sum that is not negative where the guard holds
    factors: dict[Expr, int] = {}
    least = -1 if isinstance(guard, (LT, GT)) else 0
    for _ in range(_MOST):
        if not slack:
            break
        factor, node = slack.pop()
        if isinstance(node, (Add, Sub)):
            slack += [(factor, node.a), (factor if isinstance(node, Add) else -factor, node.b)]
        elif isinstance(node, Mul) and isinstance(node.b, IntImm):
            slack.append((factor * node.b.value, node.a))
        elif isinstance(node, IntImm):
            least += factor * node.value
        elif isinstance(node, Var):
            factors[node] = factors.get(node, 0) + factor
        else:
            return None
    factor = factors.pop(var, 0)
    for loop in inner:
        multiple = factors.pop(loop.loop_var, 0)
        if not (isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)):
            return None
        least += multiple * (loop.min.value if multiple > 0 else loop.min.value + loop.extent.value - 1)
    if slack or not factor or any(factors.values()):
        return None
    value = -(least // factor) if factor > 0 else least // -factor + 1
    if not -_LARGEST <= value <= _LARGEST:
        return None
    end = IntImm(guard.a.dtype, value)
    return Interval(end, None) if factor > 0 else Interval(None, end)


def _slack(guard: Expr) -> Expr | None:
    """Returns an integer expression that is at least 0 exactly if `guard` holds; None if there is none."""
    match guard:
        case LT(a=a, b=b) if a.dtype.is_int:
            return build.sub(build.sub(b, a), 1)
        case LE(a=a, b=b) if a.dtype.is_int:
            return build.sub(b, a)
        case GT(a=a, b=b) if a.dtype.is_int:
            return build.sub(build.sub(a, b), 1)
        case GE(a=a, b=b) if a.dtype.is_int:
            return build.sub(a, b)
    return None


def split_linear(expr: Expr, var: Var, analyzer: Analyzer) -> tuple[int, Expr] | None:
    """Returns (c, rest) with expr = c * var + rest, rest free of var; None if expr is not linear, or c is not a constant.

    A constant first difference makes a function of integers linear: between 0 and all values of var, so that what is known of
    var counts only if 0 is among its values.
    """
    at_zero = substitute(expr, {var: IntImm(var.dtype, 0)})
    if at_zero is expr:
        return 0, expr
    if not _may_be_zero(var, analyzer):
        anything = copy_var(var)
        expr, var = substitute(expr, {var: anything}), anything
    step = build.sub(substitute(expr, {var: build.add(var, 1)}), expr)
    factor = build.as_int(analyzer.simplify(step))
    return None if factor is None else (factor, analyzer.simplify(at_zero))


def _may_be_zero(var: Var, analyzer: Analyzer) -> bool:
    """Tells whether 0 is one of the values of a variable, if it has any."""
    if var in analyzer.known.symbolic:
        first = analyzer.known.symbolic[var][0]
        return first is not None and build.as_int(first) == 0
    low, high = analyzer.bounds(var)
    return (low is None or low <= 0) and (high is None or high >= 0)


def _minimum(expr: Expr, var: Var, inner: Sequence[For], analyzer: Analyzer) -> Expr | None:
    """Returns the least value of `expr` over the loops `inner`; their bounds may depend on each other but not on `var`."""
    for loop in reversed(inner):
        split = split_linear(expr, loop.loop_var, analyzer)
        if split is None:
            return None
        factor, rest = split
        if factor == 0:
            expr = rest
            continue
        at = loop.min if factor > 0 else build.sub(build.add(loop.min, loop.extent), 1)
        expr = analyzer.simplify(build.add(build.mul(at, factor), rest))
    return None if any(node is var for node in post_order(expr)) else expr


def guard_end(guard: Expr, var: Var, inner: Sequence[For], analyzer: Analyzer) -> Expr | None:
    """Returns a value of `var` from which on `guard` fails for every lane and iteration of the loops `inner`; None if none is
    known.

    Where the guard is a scalar that no inner loop changes, it holds for all smaller values.
    """
    scalar = extreme_lane(guard, weakest=True) if guard.dtype.lanes > 1 else guard
    slack = None if scalar is None else _slack(scalar)
    split = None if slack is None else split_linear(slack, var, analyzer)
    if split is None or split[0] >= 0:
        return None
    factor, rest = split
    lowest = _minimum(build.sub(build.const(0, rest.dtype), rest), var, inner, analyzer)
    if lowest is None:
        return None
    most = build.sub(build.const(0, rest.dtype), lowest)
    return analyzer.simplify(build.add(build.floordiv(most, -factor), 1))
