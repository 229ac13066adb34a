"""Take each context of a thread once.

before:  for (i, 0, n) { f(tvm_thread_context(context(0)), A);  g(tvm_thread_context(context(0)), A) }
after:   let context_cache = context(0);  for (i, 0, n) { f(context_cache, A);  g(context_cache, A) }

A context, such as the command queue of a device, is one for a thread: the bodies of parallel loops, launches of threads and
scopes of instructions ("coproc_uop_scope") have their own. One whose value depends on a variable that is bound inside stays
where it is.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import Call, Expr, Let, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import THREAD_CONTEXT
from tedsl.ir.stmt import LAUNCH, Allocate, AttrStmt, For, ForKind, LetStmt, Stmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, variables

INSTRUCTIONS = "coproc_uop_scope"


def combine_contexts(func: PrimFunc) -> PrimFunc:
    """Returns `func` with one let for each context that its calls take; itself if there are none."""
    return func.with_body(_Contexts().scope(func.body)) if contains(func.body, THREAD_CONTEXT) else func


class _Contexts(ScopedRewriter):
    """Replaces contexts by variables. known: those of the scope; bound: the variables that statements in it bind."""

    def __init__(self) -> None:
        self.known: list[tuple[Expr, Var]] = []
        self.bound: set[Var] = set()

    def scope(self, stmt: Stmt, *binds: Var | None, inside: bool = False) -> Stmt:
        """Returns `stmt` below the contexts that it takes. inside: it is what makes the scope, and binds variables."""
        outside, self.known, self.bound = (self.known, self.bound), [], {var for var in binds if var is not None}
        made = self.descend(stmt) if inside else self.stmt(stmt)
        for context, var in reversed(self.known):
            made = LetStmt(var, context, made)
        self.known, self.bound = outside
        return made

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For(kind=ForKind.PARALLEL, loop_var=var):
                return self.scope(stmt, var, inside=True)
            case AttrStmt(attr_key=key, node=node) if key in (LAUNCH, INSTRUCTIONS):
                return self.scope(stmt, getattr(node, "var", None), inside=True)
            case For(loop_var=var) | LetStmt(var=var) | Allocate(buffer_var=var):
                self.bound.add(var)
        return self.descend(stmt)

    def expr(self, expr: Expr) -> Expr:
        if not contains(expr, THREAD_CONTEXT):
            return expr
        lets = {node.var for node in post_order(expr) if isinstance(node, Let)}
        made: Expr = _Calls(self, lets)(expr)
        return made


class _Calls(Rewriter):
    def __init__(self, scope: _Contexts, lets: set[Var]) -> None:
        super().__init__()
        self.scope, self.lets = scope, lets

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, Call) or node.op is not THREAD_CONTEXT:
            return node
        context = node.args[0]
        if any(var in self.scope.bound or var in self.lets for var in variables(context)):
            return node
        for known, var in self.scope.known:
            if structural_equal(known, context):
                return var
        made = Var(_name(context), context.dtype)
        self.scope.known.append((context, made))
        return made


def _name(context: Expr) -> str:
    """Returns the name of a variable for a context, after the function that gives it."""
    match context:
        case Call(args=(StringImm(value=called), *_)):
            return f"{called}_cache"
        case _:
            return "context_cache"
