"""Move loop-invariant conditions out of loops.

before:  for (i: 0, n) { for (j: 0, m) { if (i < 5) { A[i*m + j] = 0 } } }
after:   for (i: 0, n) { if (i < 5) { for (j: 0, m) { A[i*m + j] = 0 } } }

Only where the branch is all that the loop does, so that no code is copied. Parts of a conjunction move on their own.
A condition that reads memory stays: the loop may have no iteration, or write what it reads.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import Call, Expr, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import For, ForKind, IfThenElse, Stmt
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.conjunctions import conjunction, conjuncts


def hoist_conditions(func: PrimFunc, *, out_of_threads: bool = False) -> PrimFunc:
    """Returns `func` with loop-invariant conditions outside their loops; out_of_threads: also of loops bound to threads."""
    return func.with_body(_Hoister(out_of_threads)(func.body))


class _Hoister(Rewriter):
    """Rewrites bottom-up, so that a condition moves out of one loop after the other."""

    kinds = (IfThenElse,)

    def __init__(self, out_of_threads: bool) -> None:
        super().__init__()
        self.out_of_threads = out_of_threads

    def rewrite(self, node: Any) -> Any:
        match node:
            case For(body=IfThenElse() as branch) if node.kind != ForKind.THREAD_BINDING or self.out_of_threads:
                return _hoist(node, branch)
            case _:
                return node


def _hoist(loop: For, branch: IfThenElse) -> Stmt:
    parts = conjuncts(branch.condition)
    if branch.else_case is not None:
        if not _invariant(branch.condition, loop.loop_var):
            return loop
        var = copy_var(loop.loop_var)
        other = loop.replace(loop_var=var, body=substitute(branch.else_case, {loop.loop_var: var}))
        return IfThenElse(branch.condition, loop.replace(body=branch.then_case), other)
    moving: list[Expr] = []
    staying: list[Expr] = []
    for part in parts:
        (moving if _invariant(part, loop.loop_var) else staying).append(part)
    if not moving:
        return loop
    body = IfThenElse(conjunction(staying), branch.then_case) if staying else branch.then_case
    return IfThenElse(conjunction(moving), loop.replace(body=body))


def _invariant(condition: Expr, loop_var: Var) -> bool:
    for node in post_order(condition):
        if node is loop_var or isinstance(node, Load) or (isinstance(node, Call) and node.op.effect != "pure"):
            return False
    return True
