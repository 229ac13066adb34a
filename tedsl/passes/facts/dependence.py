"""The variables and memory on which an expression depends. Each node is visited once."""

from __future__ import annotations

from typing import Any

from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Call, Expr, Load, Var

MEMORY = Var("memory", HANDLE)  # stands for "reads memory or calls out" in the sets below
_NOTHING: frozenset[Var] = frozenset()


class Dependence:
    """The variables used in an expression, by `depends(e)`; with MEMORY if it has a load or a call that is not pure.

    Bound variables are included, which is harmless, for a Var is bound once.
    """

    def __init__(self) -> None:
        self._known: dict[Any, frozenset[Var]] = {}

    def __call__(self, expr: Expr) -> frozenset[Var]:
        known = self._known
        dependence = known.get(expr)
        if dependence is not None:
            return dependence
        stack: list[Any] = [expr]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            children = node.child_nodes()
            pending = [child for child in children if child not in known]
            if pending:
                stack += pending
            else:
                stack.pop()
                known[node] = self._own(node, children)
        return known[expr]

    def _own(self, node: Any, children: list[Any]) -> frozenset[Var]:
        if isinstance(node, Var):
            return frozenset((node,))
        total = _NOTHING
        for child in children:
            more = self._known[child]
            if more and more is not total:
                total = more if total <= more else total if more <= total else total | more
        if isinstance(node, Load):
            return total | {node.buffer_var, MEMORY}
        if isinstance(node, Call) and node.op.effect != "pure":
            return total | {MEMORY}
        return total

    def on_any(self, expr: Expr, wanted: set[Var]) -> bool:
        """Tells whether `expr` uses a variable of `wanted`."""
        return not wanted.isdisjoint(self(expr))
