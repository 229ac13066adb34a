"""Unroll the loops over fragments: they are registers, which have no index.

before:  for (i: 0, 2) { tvm_mma_sync(D, i, A, i, B, 0, D, i) }
after:   tvm_mma_sync(D, 0, A, 0, B, 0, D, 0);  tvm_mma_sync(D, 1, A, 1, B, 0, D, 1)
"""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import FRAGMENT_OPS, MMA
from tedsl.ir.stmt import Evaluate, For, ForKind, Stmt, Store, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.folding import Copier

MOST = 256  # iterations of one loop: no thread has registers for as many fragments


def unroll_fragments(kernel: PrimFunc) -> PrimFunc:
    """Returns `kernel` with the loops whose variables number fragments unrolled, where their extents are constants; itself if
    there are none.
    """
    numbering = {var for node in post_order(kernel.body) for number in _numbers(node) for var in variables(number)}
    return kernel.with_body(_Unroller(numbering)(kernel.body)) if numbering else kernel


def _numbers(node: Node) -> list[Expr]:
    """The numbers of fragments in a call."""
    if not isinstance(node, Call) or node.op not in FRAGMENT_OPS:
        return []
    if node.op is MMA:
        return list(node.args[1:8:2])
    return [node.args[4]]


class _Unroller(ScopedRewriter):
    def __init__(self, numbering: set[Var]) -> None:
        self.numbering = numbering

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return stmt
            case For(loop_var=var, extent=extent, kind=ForKind.SERIAL | ForKind.UNROLLED) if var in self.numbering:
                body, count = self.stmt(stmt.body), build.as_int(extent)
                if count is None or count > MOST:
                    return stmt.replace(body=body)
                copy = Copier(body, var)
                return seq(*(copy(build.add(stmt.min, IntImm(stmt.min.dtype, k))) for k in range(count)))
            case _:
                return self.descend(stmt)
