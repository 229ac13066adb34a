"""Checks of data-dependent indices, for `PassContext(config={"tir.data_index": "check"})`. Loops stay as they are.

before:  C[i] = A[tir.data_index(K[i])]
after:   if (K[i] < 0 || K[i] >= 8) { tedsl.checked.fault("reads A[...]: index ... of dimension 0 is not in [0, 8)") }
         C[i] = A[K[i]]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tedsl.ir.expr import Call, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import DATA_INDEX
from tedsl.ir.stmt import Allocate, AttrStmt, BufferRealize, For, Stmt, Tensorized
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.checked.check_accesses import Checker
from tedsl.passes.checked.shadows import CheckedMemory, Indices, Key


def check_data_indices(func: PrimFunc) -> PrimFunc:
    """Returns `func` with a check, before the statement that uses it, of each index that lowering has marked by
    tir.data_index.
    """
    return func.with_body(_Unmarked()(_DataChecker(func)(func.body)))


class _DataChecker(Checker):
    """Checks only the marked indices: no shadow buffers are added, and no loop changes."""

    def __init__(self, func: PrimFunc) -> None:
        super().__init__(func)
        for memory in self.outputs:
            memory.written = None

    def allocated(self, key: Key, data: Var, memory: CheckedMemory, stmt: BufferRealize | Allocate) -> Stmt:
        self.memories[key] = self.memories[data] = memory
        return stmt.replace(body=self.stmt(stmt.body))

    def intrinsic(self, stmt: Tensorized) -> Stmt:
        return stmt  # its indices are those of loops

    def loop(self, loop: For) -> Stmt:
        self.loops.append(loop.loop_var)
        new: Stmt = self.descend(loop)
        self.loops.pop()
        return new

    def launch(self, stmt: AttrStmt) -> Stmt:
        return self.descend(stmt)

    def inside(self, memory: CheckedMemory, place: Indices, verb: str) -> Iterator[Stmt]:
        for dim, index in enumerate(place):
            if any(isinstance(node, Call) and node.op is DATA_INDEX for node in post_order(index)):
                yield self.index_inside(memory, place, dim, verb)


class _Unmarked(Rewriter):
    """Removes the marks of indices."""

    def rewrite(self, node: Any) -> Node:
        is_mark = isinstance(node, Call) and node.op is DATA_INDEX
        unmarked: Node = node.args[0] if is_mark else node
        return unmarked
