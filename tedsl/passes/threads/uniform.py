"""The values that are equal in all threads of a block, so that the threads take the same path through the code.

    L[0] = 8;  while (L[0] > 0) { ...;  L[0] = L[0] / 2 }              the same way in all threads
    L[0] = threadIdx.x;  while (L[0] > 0) { ...;  L[0] = L[0] / 2 }    each thread goes its own

Memory of one thread, here L, has the same content in all threads if all threads execute each store to it, with equal indices
and values.
"""

from __future__ import annotations

from tedsl.ir.expr import Call, Expr, Load, Var
from tedsl.ir.ops import ADDRESS_OF
from tedsl.ir.stmt import Allocate, For, IfThenElse, LetStmt, Stmt, Store, While
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.gather_threads import Kernel


class Uniformity:
    """Decides which values are equal in all threads: `varies(expr)` tells whether threads of one block may see different
    values.

    Values loaded from memory of the block may differ if the indices do.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.depends = Dependence()
        self.private = {node.buffer_var for node in post_order(kernel.body)
                        if isinstance(node, Allocate) and scope_of(node.buffer_var.type_annotation) not in ("shared", "global")}
        self.varying: set[Var] = {thread.var for thread in kernel.threads} | self._not_followed(kernel.body)
        known = 0
        while known != len(self.varying):  # what a turn of a loop writes, the next one reads
            known = len(self.varying)
            self._spread(kernel.body, False)

    def varies(self, expr: Expr) -> bool:
        return self.depends.on_any(expr, self.varying) or any(
            isinstance(node, Call) and node.op.effect == "opaque" for node in post_order(expr))

    def is_pure(self, expr: Expr) -> bool:
        """Tells whether `expr` reads no memory, so that it may be evaluated earlier or again."""
        return not any(isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_pure) for node in post_order(expr))

    def _not_followed(self, body: Stmt) -> set[Var]:
        """Returns the memory whose content is unknown: memory of a warp, never stored to here, or passed to a call as a
        pointer.
        """
        filled, given = set[Var](), set[Var]()
        for node in post_order(body):
            if isinstance(node, Store):
                filled.add(node.buffer_var)
            elif isinstance(node, Var):
                given.add(node)
            elif isinstance(node, Call) and node.op is ADDRESS_OF:
                given |= {inner.buffer_var for inner in post_order(node) if isinstance(inner, Load)}
        return {memory for memory in self.private
                if memory in given or memory not in filled or scope_of(memory.type_annotation) == "warp"}

    def _spread(self, stmt: Stmt, apart: bool) -> None:
        """Records the loop variables, lets and memory in `stmt` whose values differ. apart: only some threads run `stmt`."""
        match stmt:
            case For(min=low, extent=extent):
                if self.varies(low) or self.varies(extent):
                    self.varying.add(stmt.loop_var)
                    apart = True
            case While(condition=condition) | IfThenElse(condition=condition):
                apart = apart or self.varies(condition)
            case LetStmt() if self.varies(stmt.value):
                self.varying.add(stmt.var)
            case Store() if stmt.buffer_var in self.private - self.varying:
                given = (stmt.value, stmt.index, stmt.predicate)
                if apart or any(expr is not None and self.varies(expr) for expr in given):
                    self.varying.add(stmt.buffer_var)
        for child in stmt.child_nodes():
            if isinstance(child, Stmt):
                self._spread(child, apart)
