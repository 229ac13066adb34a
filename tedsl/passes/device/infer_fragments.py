"""Write at the memory of fragments what the calls say that fill and read it: the shape of products, and the order of a factor.

before:  allocate(A, [256]), storage_scope = wmma.matrix_a { tvm_load_matrix_sync(A, 16, 16, 16, 0, S, 16, "row_major") }
after:   allocate(A, [256]), storage_scope = wmma.matrix_a {
           attr [A] "fragment_shape" = "16, 16, 16"; attr [A] "fragment_layout" = "row_major"
           tvm_load_matrix_sync(A, 16, 16, 16, 0, S, 16, "row_major") }
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.calls.fragments import Fragment, fragments_of
from tedsl.ir.expr import StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FRAGMENT_OPS
from tedsl.ir.stmt import Allocate, AttrStmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter

SHAPE, LAYOUT = "fragment_shape", "fragment_layout"


def infer_fragments(func: PrimFunc) -> PrimFunc:
    """Returns `func` with these attributes inside of each allocation of fragments; itself if it has no calls of them.

    Raises LoweringError where calls contradict each other: in shape, order or dtype.
    """
    return func.with_body(_Attributes(fragments_of(func.body))(func.body)) if contains(func.body, *FRAGMENT_OPS) else func


class _Attributes(Rewriter):
    kinds = (Allocate,)

    def __init__(self, known: dict[Var, Fragment]) -> None:
        super().__init__()
        self.known = known

    def rewrite(self, node: Any) -> Any:
        fragment = self.known.get(node.buffer_var) if isinstance(node, Allocate) else None
        if fragment is None:
            return node
        body = node.body
        if fragment.order:
            body = AttrStmt(node.buffer_var, LAYOUT, StringImm(fragment.order), body)
        return node.replace(body=AttrStmt(node.buffer_var, SHAPE, StringImm(", ".join(map(str, fragment.shape))), body))
