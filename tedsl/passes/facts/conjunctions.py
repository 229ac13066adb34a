"""Takes conditions apart: conjunctions as lists, `likely` as a mark around them."""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.ir import build
from tedsl.ir.expr import And, Broadcast, Call, Expr
from tedsl.ir.ops import LIKELY


def is_likely(condition: Expr) -> bool:
    """Tells whether `condition` is marked `likely`, as lowering marks its guards."""
    return isinstance(condition, Call) and condition.op is LIKELY


def conjuncts(condition: Expr) -> list[Expr]:
    """Returns the conditions that must all hold for `condition` to hold; each carries the mark `likely` if `condition` does."""
    parts: list[Expr] = []
    stack = [(condition, False)]
    while stack:
        e, marked = stack.pop()
        if isinstance(e, And):
            stack += [(e.b, marked), (e.a, marked)]
        elif isinstance(e, Call) and e.op is LIKELY:
            stack.append((e.args[0], True))
        elif not build.is_true(e):
            parts.append(Call(e.dtype, LIKELY, (e,)) if marked else e)
    return parts


def conjunction(parts: Iterable[Expr]) -> Expr:
    """Returns the condition that all of `parts` hold; true if there are none."""
    result: Expr | None = None
    for part in parts:
        result = part if result is None else build.logical_and(result, part)
    return build.true() if result is None else result


def without_likely(condition: Expr) -> Expr:
    """Returns `condition` without the mark."""
    while isinstance(condition, Call) and condition.op is LIKELY:
        condition = condition.args[0]
    return condition


def mask_parts(mask: Expr) -> list[Expr]:
    """Returns the conjuncts of a mask; a scalar condition broadcast over the lanes counts as that scalar."""
    return [part.value if isinstance(part, Broadcast) else part for part in map(without_likely, conjuncts(mask))]
