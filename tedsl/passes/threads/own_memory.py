"""Memory of a thread or a block that is allocated around the launch belongs to its threads, and is allocated there.

before:  allocate(L, [1], local) { attr [threadIdx.x] "thread_extent" = 8 { L[0] = A[threadIdx.x];  B[threadIdx.x] = L[0] } }
after:   attr [threadIdx.x] "thread_extent" = 8 { allocate(L, [1], local) { L[0] = A[threadIdx.x];  B[threadIdx.x] = L[0] } }

Memory that several kernels use, or one that is launched again and again, stays where it is: one for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.stmt import Allocate, AttrStmt, BufferRealize, Evaluate, For, Stmt, Store, While
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import has_launch, launched, scope_of


def own_memory(func: PrimFunc) -> PrimFunc:
    """Returns `func` with allocations of memory of a thread or a block moved inside the launch; `func` itself if there are
    none.
    """
    return func.with_body(_Owner()(func.body)) if has_launch(func.body) else func


class _Owner(ScopedRewriter):
    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)) or launched(stmt) is not None:
            return stmt
        moved = self.descend(stmt)
        return _inside(moved) if isinstance(moved, (Allocate, BufferRealize)) else moved


def _inside(stmt: Allocate | BufferRealize) -> Stmt:
    """Moves the allocation into the only kernel that uses its memory; leaves it in place if there is no such kernel."""
    data = stmt.buffer_var if isinstance(stmt, Allocate) else stmt.buffer.data
    if scope_of(data.type_annotation) == "global":
        return stmt
    uses = _Uses(data)
    uses.look(stmt.body, again=False)
    if uses.elsewhere or len(uses.kernels) != 1:
        return stmt
    kernel = uses.kernels[0]
    return _Instead(kernel, kernel.replace(body=stmt.replace(body=kernel.body)))(stmt.body)


@dataclass(eq=False)
class _Uses:
    """The kernels that use `data`, and whether anything else does."""

    data: Var
    kernels: list[AttrStmt] = field(default_factory=list)
    elsewhere: bool = False

    def look(self, stmt: Stmt, *, again: bool) -> None:
        """Records the uses in `stmt`. again: it is in a loop, and may use what an earlier iteration left there."""
        if isinstance(stmt, AttrStmt) and launched(stmt) is not None:
            if any(self.names(node) for node in post_order(stmt)):
                self.kernels.append(stmt)
                self.elsewhere |= again
            return
        own = [part for part in stmt.child_nodes() if not isinstance(part, Stmt)]
        self.elsewhere |= self.names(stmt) or any(self.names(node) for part in own for node in post_order(part))
        for child in stmt.child_nodes():
            if isinstance(child, Stmt):
                self.look(child, again=again or isinstance(stmt, (For, While)))

    def names(self, node: Node) -> bool:
        """Tells whether `node` itself accesses or mentions the memory."""
        about = [node, getattr(node, "buffer_var", None), getattr(node, "buffer", None)]
        if isinstance(node, AttrStmt):
            about += node.node if isinstance(node.node, tuple) else (node.node,)
        return any(name is self.data or (isinstance(name, Buffer) and name.data is self.data) for name in about)


class _Instead(ScopedRewriter):
    def __init__(self, old: Stmt, new: Stmt) -> None:
        self.old, self.new = old, new

    def stmt(self, stmt: Stmt) -> Stmt:
        return self.new if stmt is self.old else self.descend(stmt)
