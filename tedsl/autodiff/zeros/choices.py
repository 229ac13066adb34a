"""Choices inside indices, as terms of their own: one for each side.

    select(i < 2, 2 - i, i - 2) == j   ->   i < 2, 2 - i == j   and   2 <= i, i - 2 == j
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tedsl.arith.rules.logic import negated
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, Max, Min, ProducerLoad, Select, Var
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order, uses
from tedsl.lang.zeros.terms import Term

MOST_CASES = 16


def cases(term: Term, variables: Collection[Var]) -> list[Term]:
    """Returns terms, of which at most one is not zero at a time, that add up to `term`, without choices between indices that
    use one of `variables` in their conditions; the term itself alone if it has none, or too many.
    """
    done: list[Term] = []
    pending = [term]
    while pending:
        one = pending.pop()
        choice = _choice(one, variables)
        if choice is None:
            done.append(one)
        else:
            pending += _sides(one, choice)
        if len(done) + len(pending) > MOST_CASES:
            return [term]
    return done


def _choice(term: Term, variables: Collection[Var]) -> Expr | None:
    """Returns a choice between integers in the conditions of `term`, those inside of it first."""
    for condition in term.conditions:
        if not any(isinstance(node, ProducerLoad) for node in post_order(condition)):
            for node in post_order(condition):
                if isinstance(node, Expr) and _is_choice(node) and node.dtype.is_int and node.dtype.lanes == 1 \
                        and uses(node, variables):
                    return node
    return None


def _is_choice(node: Expr) -> bool:
    return isinstance(node, (Select, Min, Max)) or (isinstance(node, Call) and node.op is IF_THEN_ELSE)


def _sides(term: Term, choice: Any) -> list[Term]:
    if isinstance(choice, (Min, Max)):
        condition = build.less_equal(choice.a, choice.b) if isinstance(choice, Min) else build.less_equal(choice.b, choice.a)
        x, y = choice.a, choice.b
    else:
        condition, x, y = choice.args if isinstance(choice, Call) else choice.child_nodes()
    sides = []
    for holds, side in ((condition, x), (negated(condition), y)):
        swap = _Swap(choice, side)
        sides.append(Term((holds, *[swap(one) for one in term.conditions]), term.value))
    return sides


class _Swap(Rewriter):
    """Replaces one node."""

    def __init__(self, old: Expr, new: Expr) -> None:
        super().__init__()
        self.old, self.new = old, new

    def rewrite(self, node: Any) -> Any:
        return self.new if node is self.old else node
