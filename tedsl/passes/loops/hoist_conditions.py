"""Move loop-invariant conditions out of loops.

before:  for (i: 0, n) { for (j: 0, m) { if (i < 5) { A[i*m + j] = 0 } } }
after:   for (i: 0, n) { if (i < 5) { for (j: 0, m) { A[i*m + j] = 0 } } }

Only where the branch is all that the loop does, so that no code is copied. Parts of a conjunction move on their own.
A condition that reads memory stays: the loop may have no iteration, or write what it reads.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import BufferLoad, Call, Expr, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt, seq
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.conjunctions import conjunction, conjuncts
from tedsl.passes.facts.threads import launched


def hoist_conditions(func: PrimFunc, *, out_of_threads: bool = False, nested: bool = False) -> PrimFunc:
    """Returns `func` with loop-invariant conditions outside their loops.

    out_of_threads: also of launches, and of loops bound to threads. nested: also conditions of branches inside of branches,
    and those that all statements of a loop have in common.
    """
    return func.with_body(_Hoister(out_of_threads, nested)(func.body))


class _Hoister(Rewriter):
    """Rewrites bottom-up, so that a condition moves out of one loop after the other."""

    kinds = (IfThenElse,)

    def __init__(self, out_of_threads: bool, nested: bool) -> None:
        super().__init__()
        self.out_of_threads, self.nested = out_of_threads, nested

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, For) and (node.kind != ForKind.THREAD_BINDING or self.out_of_threads):
            return self.hoisted(node, node.loop_var)
        if isinstance(node, AttrStmt) and self.out_of_threads and (axis := launched(node)) is not None:
            return self.hoisted(node, axis.var)
        return node

    def hoisted(self, loop: For | AttrStmt, var: Var) -> Stmt:
        """Returns a loop or launch over `var` inside of the conditions that do not depend on it."""
        branch = loop.body
        if isinstance(branch, IfThenElse) and branch.else_case is not None:
            if not _invariant(branch.condition, var):
                return loop
            sides = loop.replace(body=branch.then_case), _copied(loop, var, branch.else_case)
            return IfThenElse(branch.condition, *[self.rewrite(side) if self.nested else side for side in sides])
        moving = _moving(branch, var, self.nested)
        return IfThenElse(conjunction(moving), loop.replace(body=_without(branch, moving))) if moving else loop


def _copied(loop: For | AttrStmt, var: Var, body: Stmt) -> Stmt:
    """Returns a loop or launch like `loop` with a variable of its own."""
    other = copy_var(var)
    body = substitute(body, {var: other})
    return loop.replace(loop_var=other, body=body) if isinstance(loop, For) \
        else loop.replace(node=loop.node.replace(var=other), body=body)


def _moving(body: Stmt, var: Var, nested: bool) -> list[Expr]:
    """Returns the conditions, without `var`, under which all of `body` stands."""
    match body:
        case IfThenElse(condition=condition, then_case=then, else_case=None):
            parts = [part for part in conjuncts(condition) if _invariant(part, var)]
            return parts + [part for part in _moving(then, var, nested) if not _is_among(part, parts)] if nested else parts
        case SeqStmt(seq=(first, *rest)) if nested:
            parts = _moving(first, var, nested)
            for stmt in rest if parts else ():
                others = _moving(stmt, var, nested)
                parts = [part for part in parts if _is_among(part, others)]
            return parts
        case _:
            return []


def _without(body: Stmt, moved: list[Expr]) -> Stmt:
    """Returns `body` without the conditions `moved`, which hold around it."""
    match body:
        case IfThenElse(condition=condition, then_case=then, else_case=None):
            staying = [part for part in conjuncts(condition) if not _is_among(part, moved)]
            inside = _without(then, moved)
            return IfThenElse(conjunction(staying), inside) if staying else inside
        case SeqStmt(seq=parts):
            return seq(*[_without(part, moved) for part in parts])
        case _:
            return body


def _is_among(part: Expr, parts: list[Expr]) -> bool:
    return any(part is other or structural_equal(part, other) for other in parts)


def _invariant(condition: Expr, loop_var: Var) -> bool:
    for node in post_order(condition):
        if node is loop_var or isinstance(node, (Load, BufferLoad)) or (isinstance(node, Call) and node.op.effect != "pure"):
            return False
    return True
