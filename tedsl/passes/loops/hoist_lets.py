"""Moves lets whose values a loop does not change out of it.

before:  for (i) { let x = n*2;  B[i] = x }          after:  let x = n*2;  for (i) { B[i] = x }

The value reads no memory: it is the same, and defined, wherever it is computed.
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import BufferLoad, Call, Load, ProducerLoad
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import For, LetStmt
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order, uses

_READS = (Load, BufferLoad, ProducerLoad)


def hoist_lets(func: PrimFunc) -> PrimFunc:
    """Returns `func` with the lets at the beginning of loops that do not change them before these loops."""
    return func.with_body(_Hoister()(func.body))


class _Hoister(Rewriter):
    kinds = (For,)

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, For) or not isinstance(node.body, LetStmt) or _changes(node.body.value, node):
            return node
        let = node.body
        return LetStmt(let.var, let.value, self.rewrite(node.replace(body=let.body)))


def _changes(value: Any, loop: For) -> bool:
    """Whether iterations of a loop may see different values, or the value may do more than be one."""
    return uses(value, loop.loop_var) or any(isinstance(node, _READS) or (isinstance(node, Call) and node.op.effect != "pure")
                                             for node in post_order(value))
