"""A Select with a side that must not be evaluated when it is not chosen becomes `if_then_else`.

before:  select((i >= 1), A[i - 1], 0)          after:  if_then_else((i >= 1), A[i - 1], 0)

Select evaluates both sides; a load that the condition keeps in range may leave its memory. It stays a Select where the
load is proved in range, or happens anyway (in the condition, or in the other side too). Arithmetic cannot fail: see
`ir/expr.py`. Selects of vectors are made by `vectorize_loops` with their loads under masks, so they are safe.
"""

from __future__ import annotations

from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir.expr import Call, Expr, Load, Select, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.stmt import For, Stmt
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.memory_bounds import is_within, memory_sizes


def rewrite_unsafe_selects(func: PrimFunc) -> PrimFunc:
    """`func` whose Selects are safe to evaluate on both sides."""
    if not any(isinstance(node, Select) for node in post_order(func.body)):
        return func
    return func.with_body(_Statements(memory_sizes(func))(func.body))


class _Statements(ScopedRewriter):
    def __init__(self, sizes: dict[Var, int]) -> None:
        self.sizes = sizes
        self.analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        return self.descend(stmt)

    def expr(self, expr: Expr) -> Expr:
        return _Selects(self.sizes, self.analyzer)(expr)  # type: ignore[no-any-return]


class _Selects(Rewriter):
    """For one expression at one place: the ranges of the loops around are part of the answer."""

    def __init__(self, sizes: dict[Var, int], analyzer: Analyzer) -> None:
        super().__init__()
        self.sizes, self.analyzer = sizes, analyzer

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, Select) or node.condition.dtype.lanes > 1:
            return node
        always = set(_loads(node.condition))
        yes, no = _loads(node.true_value), _loads(node.false_value)
        risky = [load for load in {**yes, **no} if load not in always and not (load in yes and load in no)
                 and load.predicate is None and not is_within(load, self.sizes, self.analyzer)]
        calls = any(isinstance(n, Call) and n.op.effect != "pure" for side in (node.true_value, node.false_value)
                    for n in post_order(side))
        if not risky and not calls:
            return node
        return Call(node.dtype, IF_THEN_ELSE, (node.condition, node.true_value, node.false_value))


def _loads(expr: Expr) -> dict[Load, None]:
    """The loads that evaluating `expr` performs for certain or perhaps, without those behind an inner if_then_else."""
    found: dict[Load, None] = {}
    seen: set[int] = set()
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Load):
            found[node] = None
        guarded = isinstance(node, Call) and node.op is IF_THEN_ELSE
        stack.extend(node.args[:1] if guarded else node.child_nodes())
    return found
