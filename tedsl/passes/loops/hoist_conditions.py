"""Move loop-invariant conditions out of loops.

before:  for (i: 0, n) { for (j: 0, m) { if (i < 5) { A[i*m + j] = 0 } } }
after:   for (i: 0, n) { if (i < 5) { for (j: 0, m) { A[i*m + j] = 0 } } }

Only where the branch is all that the loop does, so that no code is copied. Parts of a conjunction move on their own.
A condition that reads memory stays, where the loop may have no iteration or write what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import BufferLoad, Call, Expr, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.conjunctions import conjunction, conjuncts
from tedsl.passes.facts.memory_uses import uses_of
from tedsl.passes.facts.threads import as_loop, launched


def hoist_conditions(func: PrimFunc, *, out_of_threads: bool = False, nested: bool = False,
                     of_threads: bool = True) -> PrimFunc:
    """Returns `func` with loop-invariant conditions outside their loops.

    out_of_threads: also of launches, and of loops bound to threads. nested: also conditions of branches inside of branches,
    below pragmas, on memory that the loop leaves alone, and those that all statements of a loop have in common. of_threads:
    also conditions on the number of a thread or block.
    """
    kept = frozenset() if of_threads else frozenset(_thread_vars(func.body))
    apart = bool(func.attrs.get("tir.noalias", False))
    return func.with_body(_Hoister(out_of_threads, nested, kept, apart)(func.body))


def _thread_vars(body: Stmt) -> Iterator[Var]:
    for stmt in statements(body):
        if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
            yield stmt.loop_var
        elif (axis := as_loop(stmt, blocks=True)) is not None:
            yield axis.loop_var


class _Hoister(Rewriter):
    """Rewrites bottom-up, so that a condition moves out of one loop after the other.

    kept: variables whose conditions stay. apart: whether no two arrays of the caller overlap.
    """

    kinds = (IfThenElse,)

    def __init__(self, out_of_threads: bool, nested: bool, kept: frozenset[Var], apart: bool) -> None:
        super().__init__()
        self.out_of_threads, self.nested, self.kept, self.apart = out_of_threads, nested, kept, apart

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, For) and (node.kind != ForKind.THREAD_BINDING or self.out_of_threads):
            return self.hoisted(node, node.loop_var)
        if isinstance(node, AttrStmt) and self.out_of_threads and (axis := launched(node)) is not None:
            return self.hoisted(node, axis.var)
        return node

    def hoisted(self, loop: For | AttrStmt, var: Var) -> Stmt:
        """Returns a loop or launch over `var` inside of the conditions that do not depend on it."""
        pragmas, branch = _below_pragmas(loop.body) if self.nested else ([], loop.body)
        if not isinstance(branch, (IfThenElse, SeqStmt)):
            return loop
        staying = self.kept | {var}
        if isinstance(branch, IfThenElse) and (branch.else_case is not None or _loads(branch.condition)):
            if not self.may_move(branch.condition, loop, staying):
                return loop
            then = loop.replace(body=_under(pragmas, branch.then_case))
            other = branch.else_case
            if other is not None:
                other = _copied(loop, var, _under(pragmas, other, branch.then_case))
            if self.nested:
                then, other = self.rewrite(then), None if other is None else self.rewrite(other)
            return IfThenElse(branch.condition, then, other)
        moving = _moving(branch, staying, self.nested)
        if not moving:
            return loop
        return IfThenElse(conjunction(moving), loop.replace(body=_under(pragmas, _without(branch, moving))))

    def may_move(self, condition: Expr, loop: For | AttrStmt, staying: frozenset[Var]) -> bool:
        """Tells whether the condition of all that `loop` does has one value for all of its iterations, and there is one."""
        if not _loads(condition):
            return _invariant(condition, staying)
        extent = build.as_int(loop.extent if isinstance(loop, For) else loop.value)
        if not self.nested or extent is None or extent < 1 or not _invariant(condition, staying, loads=True):
            return False
        uses = uses_of(loop.body)
        read = {node.buffer_var for node in post_order(condition) if isinstance(node, Load)}
        given = uses.written - uses.allocated
        return not uses.calls and not read & (uses.written | uses.allocated) and (self.apart or not given)


def _below_pragmas(stmt: Stmt) -> tuple[list[AttrStmt], Stmt]:
    """Returns the pragmas at the top of a statement, and what stands below them."""
    pragmas = []
    while isinstance(stmt, AttrStmt) and stmt.attr_key.startswith("pragma_"):
        pragmas.append(stmt)
        stmt = stmt.body
    return pragmas, stmt


def _under(pragmas: list[AttrStmt], stmt: Stmt, like: Stmt | None = None) -> Stmt:
    """Returns `stmt` below the pragmas. like: what they stand above elsewhere, whose loop they name."""
    names = {like.loop_var: stmt.loop_var} if isinstance(like, For) and isinstance(stmt, For) else {}
    for pragma in reversed(pragmas):
        node = pragma.node
        if isinstance(node, IterVar):
            node = node.replace(var=names.get(node.var, node.var))
        elif isinstance(node, Var):
            node = names.get(node, node)
        stmt = pragma.replace(node=node, body=stmt)
    return stmt


def _copied(loop: For | AttrStmt, var: Var, body: Stmt) -> Stmt:
    """Returns a loop or launch like `loop` with a variable of its own."""
    other = copy_var(var)
    body = substitute(body, {var: other})
    return loop.replace(loop_var=other, body=body) if isinstance(loop, For) \
        else loop.replace(node=loop.node.replace(var=other), body=body)


def _moving(body: Stmt, staying: frozenset[Var], nested: bool) -> list[Expr]:
    """Returns the conditions, without the variables `staying`, under which all of `body` stands."""
    match body:
        case IfThenElse(condition=condition, then_case=then, else_case=None):
            parts = [part for part in conjuncts(condition) if _invariant(part, staying)]
            if not nested:
                return parts
            return parts + [part for part in _moving(then, staying, nested) if not _is_among(part, parts)]
        case SeqStmt(seq=(first, *rest)) if nested:
            parts = _moving(first, staying, nested)
            for stmt in rest if parts else ():
                others = _moving(stmt, staying, nested)
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


def _invariant(condition: Expr, staying: frozenset[Var], *, loads: bool = False) -> bool:
    """Tells whether a condition has no variable of `staying`, calls no function with effects and, but for `loads`, reads no
    memory.
    """
    for node in post_order(condition):
        if node in staying or isinstance(node, BufferLoad) or (isinstance(node, Load) and not loads):
            return False
        if isinstance(node, Call) and node.op.effect != "pure":
            return False
    return True


def _loads(condition: Expr) -> bool:
    return contains(condition, Load)
