"""Remove the checks inside a kernel, for `PassContext(config={"tir.disable_assert": True})`.

before:  assert (m <= n, "...") { body }          after:  body
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AssertStmt
from tedsl.ir.walk.rewriter import Rewriter


def remove_asserts(func: PrimFunc) -> PrimFunc:
    """Returns `func` without AssertStmts; the caller must ensure what they checked."""
    return func.with_body(_Remover()(func.body))


class _Remover(Rewriter):
    def rewrite(self, node: Any) -> Any:
        return node.body if isinstance(node, AssertStmt) else node
