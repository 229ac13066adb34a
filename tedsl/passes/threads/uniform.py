"""What is the same for all threads of a block, so that they take the same way through the code."""

from __future__ import annotations

from tedsl.ir.expr import Call, Expr, Load, Var
from tedsl.ir.stmt import Allocate, For, LetStmt, Stmt
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.gather_threads import Kernel


class Uniformity:
    """`varies(expr)`: whether threads of one block may see different values of `expr` at the same place.

    Values from memory of one thread may differ; values from memory of the block do where the indices differ.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.depends = Dependence()
        self.threads = {one.var for one in kernel.threads}
        self.private = {node.buffer_var for node in post_order(kernel.body)
                        if isinstance(node, Allocate) and scope_of(node.buffer_var.type_annotation) not in ("shared", "global")}
        self.varying: set[Var] = self.threads | self.private
        self._spread(kernel.body)

    def varies(self, expr: Expr) -> bool:
        return self.depends.on_any(expr, self.varying) or any(
            isinstance(node, Call) and node.op.effect == "opaque" for node in post_order(expr))

    def is_pure(self, expr: Expr) -> bool:
        """Whether `expr` reads no memory, so that it may be evaluated earlier or again."""
        return not any(isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_pure) for node in post_order(expr))

    def _spread(self, stmt: Stmt) -> None:
        """Loop variables and lets whose values differ, from the outside in."""
        match stmt:
            case For() if self.varies(stmt.min) or self.varies(stmt.extent):
                self.varying.add(stmt.loop_var)
            case LetStmt() if self.varies(stmt.value):
                self.varying.add(stmt.var)
        for child in stmt.child_nodes():
            if isinstance(child, Stmt):
                self._spread(child)
