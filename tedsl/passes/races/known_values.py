"""Evaluates expressions where the values of some variables are known."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from tedsl.ir import build
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import And, Broadcast, Call, Expr, Load, Not, Or, Ramp, Select, Var
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.walk.visitor import post_order, variables

Values = dict[Var, int]


def on_data(expr: Expr) -> bool:
    return any(isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_pure) for node in post_order(expr))


_NEEDS: WeakKeyDictionary[Expr, tuple[Var, ...] | None] = WeakKeyDictionary()


def needs(expr: Expr) -> tuple[Var, ...] | None:
    """Returns the variables that the value of `expr` depends on; None if it also depends on memory."""
    if isinstance(expr, Var):  # not kept: the entry would keep itself alive
        return (expr,)
    if expr not in _NEEDS:
        _NEEDS[expr] = None if expr.dtype.lanes > 1 or on_data(expr) else tuple(variables(expr))
    return _NEEDS[expr]


def value(expr: Expr, values: Values) -> int | None:
    """Returns the value of an integer expression where the variables have `values`; None if it is unknown."""
    needed = needs(expr)
    if needed is None or any(v not in values for v in needed):
        return None
    return int(evaluate(expr, values))


def elements(index: Expr, values: Values) -> list[int] | None:
    """Returns the elements that an index selects, one for each lane; None if they are unknown."""
    if isinstance(index, Ramp):
        base, stride = value(index.base, values), value(index.stride, values)
        return None if base is None or stride is None else [base + lane * stride for lane in range(index.lanes)]
    element = value(index.value if isinstance(index, Broadcast) else index, values)
    return None if element is None else [element]


def may_hold(condition: Expr, values: Values) -> bool:
    """Tells whether `condition` is not known to be false.

    A conjunction may have become a choice with a constant, as its second part is looked at only where the first one holds:
    x < 4 && S[x] < S[x + 4]    ->    if_then_else(x < 4, S[x] < S[x + 4], false)
    """
    pending = [(condition, True)]  # what must be true, or false
    while pending:
        part, wanted = pending.pop()
        match part:
            case Not(a=a):
                pending.append((a, not wanted))
            case And(a=a, b=b) if wanted:
                pending += [(a, True), (b, True)]
            case Or(a=a, b=b) if not wanted:
                pending += [(a, False), (b, False)]
            case Call(op=op, args=(inner,)) if op is LIKELY:
                pending.append((inner, wanted))
            case Select(condition=c, true_value=yes, false_value=no):
                pending += _chosen(c, yes, no, wanted)
            case Call(op=op, args=(c, yes, no)) if op is IF_THEN_ELSE:
                pending += _chosen(c, yes, no, wanted)
            case _:
                known = value(part, values)
                if known is not None and bool(known) != wanted:
                    return False
    return True


def _chosen(condition: Expr, yes: Expr, no: Expr, wanted: bool) -> list[tuple[Expr, bool]]:
    """Returns the conditions, each with the value it must have, under which a choice has the value `wanted`, if one of its
    sides is the opposite constant.
    """
    if build.as_int(no) == int(not wanted):
        return [(condition, True), (yes, wanted)]
    if build.as_int(yes) == int(not wanted):
        return [(condition, False), (no, wanted)]
    return []
