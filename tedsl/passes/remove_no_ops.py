"""Remove statements without effect, and the loops, branches and allocations around nothing else.

before:  for (i: 0, n) { if (c) { 0 } }; allocate(T, [8]) { A[0] = 1 }
after:   A[0] = 1
"""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, IntImm, Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import (
    Allocate,
    AttrStmt,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    is_no_op,
    no_op,
    seq,
)
from tedsl.ir.walk.contents import POINTER, of_kinds
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.folding import decided


def remove_no_ops(func: PrimFunc) -> PrimFunc:
    """Returns `func` without statements that have no effect. Calls that may have one stay, also in conditions and bounds."""
    return func.with_body(_Cleaner(_used_memory(func.body))(func.body))


def _used_memory(body: Stmt) -> set[Var]:
    """Returns the pointers to allocated memory that are used."""
    unused = {node.buffer_var for node in of_kinds(body, Allocate) if isinstance(node, Allocate)}
    used: set[Var] = set()
    if unused:  # most memory is stored to, which statements show
        used = {node.buffer_var for node in statements(body) if isinstance(node, Store) and node.buffer_var in unused}
        unused -= used
    if not unused:
        return used
    for node in of_kinds(body, Load, Store, AttrStmt, POINTER):
        match node:
            case Load(buffer_var=v) | Store(buffer_var=v) | AttrStmt(node=Var() as v) | (Var() as v) if v in unused:
                used.add(v)
                unused.discard(v)
                if not unused:
                    break
    return used


class _Cleaner(Rewriter):
    kinds = (SeqStmt, For, LetStmt, AttrStmt, Allocate, IfThenElse, Evaluate)

    def __init__(self, used: set[Var]) -> None:
        super().__init__()
        self.used = used

    def rewrite(self, node: Any) -> Any:
        match node:
            case SeqStmt():
                joined = seq(*node.seq)
                return node if isinstance(joined, SeqStmt) and len(joined.seq) == len(node.seq) else joined
            case For(extent=IntImm(value=n)) if n <= 0:
                return no_op()
            case For(body=body) if is_no_op(body):
                return _effects(node.min, node.extent)
            case LetStmt(body=body) if is_no_op(body):
                return _effects(node.value)
            case AttrStmt(attr_key="pragma_debug_skip_region"):
                return no_op()
            case AttrStmt(body=body) if is_no_op(body):
                return body
            case Allocate(body=body) if is_no_op(body):
                return body
            case Allocate(buffer_var=v, body=body) if v not in self.used:
                return body
            case IfThenElse():
                return _branch(node)
            case Evaluate() if is_no_op(node) and not isinstance(node.value, IntImm):
                return _effects(node.value)
            case _:
                return node


def _branch(node: IfThenElse) -> Stmt:
    truth = decided(node.condition)
    if truth is not None:
        return node.then_case if truth else node.else_case if node.else_case is not None else no_op()
    if node.else_case is not None and is_no_op(node.else_case):
        node = IfThenElse(node.condition, node.then_case)
    if is_no_op(node.then_case):
        if node.else_case is None:
            return _effects(node.condition)
        return IfThenElse(build.logical_not(node.condition), node.else_case)
    return node


def _effects(*values: Expr) -> Stmt:
    """Returns the calls with effects inside `values`, as statements."""
    calls = [Evaluate(v) for v in values
             if any(isinstance(n, Call) and n.op.effect == "opaque" for n in post_order(v))]
    return seq(*calls)
