"""Keep the user's code of each tensorized region and drop its formula.

before:  gemv(...)   (computes for (i) { for (k) { C[i] += W[i, k]*x[k] } })        after:  gemv(...)
"""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import EXTERN_SCOPE, AttrStmt, For, ForKind, SeqStmt, Tensorized, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order


def use_intrinsics(func: PrimFunc) -> PrimFunc:
    """Returns `func` without the formulas of its tensorized regions; itself if it has none."""
    if not contains(func.body, Tensorized):
        return func
    return func.with_body(_Taker()(func.body))


class _Taker(Rewriter):
    def rewrite(self, node: Any) -> Any:
        match node:
            case Tensorized(body=body) if any(isinstance(n, For) and n.kind == ForKind.PARALLEL for n in post_order(body)):
                return AttrStmt(build.const(0, "int32"), EXTERN_SCOPE, build.const(0, "int32"), body)  # races are looked for
            case Tensorized(body=body):
                return body
            case SeqStmt():
                return seq(*node.seq)
            case _:
                return node
