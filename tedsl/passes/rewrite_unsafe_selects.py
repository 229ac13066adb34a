"""Replace a Select with a side that must not be evaluated when it is not chosen by `if_then_else`.

before:  select((i >= 1), A[i - 1], 0)          after:  if_then_else((i >= 1), A[i - 1], 0)

Select evaluates both sides, so that a load which only the condition keeps within bounds may be out of bounds. It stays a Select
where the load is proved in range, or happens anyway (in the condition, or in the other side too). Arithmetic cannot fail: see
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
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.memory_bounds import is_within, memory_sizes


def rewrite_unsafe_selects(func: PrimFunc) -> PrimFunc:
    """Returns `func` whose Selects are safe to evaluate on both sides."""
    if not contains(func.body, Select):
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
        if not contains(expr, Select) or not any(
                isinstance(node, Select) and node.condition.dtype.lanes == 1 for node in post_order(expr)):
            return expr
        return _Selects(self.sizes, self.analyzer)(expr)  # type: ignore[no-any-return]


class _Selects(Rewriter):
    """Rewrites one expression at one place, since the ranges of the loops around decide what is in bounds.

    Records for each node the loads below it that may be out of bounds (except inside an if_then_else), and whether a call below
    it has effects.
    """

    def __init__(self, sizes: dict[Var, int], analyzer: Analyzer) -> None:
        super().__init__()
        self.sizes, self.analyzer = sizes, analyzer
        self.risks: dict[Expr, frozenset[Load]] = {}
        self.calling: set[Expr] = set()

    def rewrite(self, node: Any) -> Any:
        result = node
        if isinstance(node, Select) and node.condition.dtype.lanes == 1 and self.is_unsafe(node):
            result = Call(node.dtype, IF_THEN_ELSE, (node.condition, node.true_value, node.false_value))
        self.note(result)
        return result

    def is_unsafe(self, choice: Select) -> bool:
        """Tells whether a side must not be evaluated unless it is chosen."""
        always, yes, no = (self.risks[part] for part in (choice.condition, choice.true_value, choice.false_value))
        return bool((yes ^ no) - always) or choice.true_value in self.calling or choice.false_value in self.calling

    def note(self, node: Any) -> None:
        """Records which loads in `node` may be out of bounds and whether a call in it has effects; its children are recorded
        already.
        """
        children = node.child_nodes()
        if any(child in self.calling for child in children) or (isinstance(node, Call) and node.op.effect != "pure"):
            self.calling.add(node)
        guarded = isinstance(node, Call) and node.op is IF_THEN_ELSE
        below = [risks for child in (children[:1] if guarded else children) if (risks := self.risks[child])]
        if isinstance(node, Load) and node.predicate is None and not is_within(node, self.sizes, self.analyzer):
            below.append(frozenset((node,)))
        self.risks[node] = below[0] if len(set(map(id, below))) == 1 else frozenset().union(*below)
