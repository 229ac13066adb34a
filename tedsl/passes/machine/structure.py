"""Numbers for expressions: equal structure, equal number. Comparing many expressions costs one walk over each."""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import Call, Expr, FloatImm, IntImm, Load, StringImm, Var
from tedsl.ir.visitor import post_order


class Numbering:
    """`number(e)` is the same for expressions of the same operators on the same variables and constants."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._known: dict[Expr, int] = {}

    def __call__(self, expr: Expr | None) -> int:
        if expr is None:
            return -1
        if expr not in self._known:
            for node in post_order(expr):
                if node not in self._known:
                    key = self._key(node)
                    self._known[node] = self._numbers.setdefault(key, len(self._numbers))  # type: ignore[index]
        return self._known[expr]

    def _key(self, node: Any) -> Any:
        match node:
            case Var():
                return node
            case IntImm() | FloatImm():
                return type(node), node.dtype, repr(node.value)  # repr: 0.0 and -0.0 differ
            case StringImm():
                return StringImm, node.value
        own: Any = None
        if isinstance(node, Call):
            own = node.op
        elif isinstance(node, Load):
            own = node.buffer_var, node.predicate is None
        return type(node), node.dtype, own, tuple(self._known[child] for child in node.child_nodes())
