"""Comparisons inside of a reducer that the order of the loops decides.

    largest element and its place, in a loop over k:     keep x if x[1] > y[1] or (x[1] == y[1] and x[0] < y[0])
    x[0] is an earlier k, or -1, and y[0] is k:          keep x if x[1] > y[1] or x[1] == y[1]

Partial results that are combined later are in no order: there the comparison stays.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.increasing import increases
from tedsl.ir import build
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, Call, Expr, IntImm, Reduce, Select, Var
from tedsl.ir.iters import IterType
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.lower.plan import Loop, StagePlan

_SIDES: dict[type, tuple[bool, bool]] = {  # of a comparison: whether it holds for less < more, and for more > less
    LT: (True, False), LE: (True, False), GT: (False, True), GE: (False, True), EQ: (False, False), NE: (True, True)}
_IN_ORDER = (IterType.DATA_PAR, IterType.UNROLLED)


class Decided(Rewriter):
    """Replaces comparisons of the variables of each of `pairs`, of which the first is the smaller one, by their outcome."""

    def __init__(self, pairs: Collection[tuple[Var, Var]]) -> None:
        super().__init__()
        self.pairs = pairs

    def rewrite(self, node: Any) -> Any:
        sides = _SIDES.get(type(node))
        if sides is None or not self.pairs:
            return node
        if (node.a, node.b) in self.pairs:
            return build.const(sides[0], "bool")
        return build.const(sides[1], "bool") if (node.b, node.a) in self.pairs else node


def components_in_order(plan: StagePlan, reduce: Reduce, sources: dict[int, Expr], analyzer: Analyzer) -> list[int]:
    """Returns the numbers of the `sources` of which each is greater than all that the loops combined before, and than the start
    value; of these the reducer keeps one.

    sources: of a reduction in the loops of `plan`, by number.
    """
    loops = [loop for loop in plan.loops if loop.leaf.is_reduction]
    if plan.padded or not all(_is_in_order(loop) for loop in loops):
        return []
    nest = [(loop.var, loop.extent) for loop in loops if loop.var is not None]
    start = reduce.init or reduce.combiner.identity_element
    return [at for at, source in sources.items()
            if _is_above(source, start[at], analyzer) and increases(source, nest, analyzer)]


def places_of(reduce: Reduce) -> list[int]:
    """Returns the numbers of the integer components of which the reducer keeps one of both sides, and compares them."""
    combiner = reduce.combiner
    if len(combiner.lhs) < 2:
        return []
    return [at for at, (x, y) in enumerate(zip(combiner.lhs, combiner.rhs))
            if x.dtype.is_integer and x.dtype.lanes == 1 and _is_one_of(combiner.result[at], x, y)]


def _is_in_order(loop: Loop) -> bool:
    return loop.attr.iter_type in _IN_ORDER and loop.attr.bind_thread is None


def _is_above(value: Expr, start: Expr, analyzer: Analyzer) -> bool:
    least = analyzer.bounds(value)[0] if isinstance(start, IntImm) else None
    return isinstance(start, IntImm) and least is not None and least > start.value


def _is_one_of(result: Expr, x: Var, y: Var) -> bool:
    stack = [result]
    while stack:
        node = stack.pop()
        if isinstance(node, Select):
            stack += [node.true_value, node.false_value]
        elif isinstance(node, Call) and node.op is IF_THEN_ELSE:
            stack += node.args[1:]
        elif node is not x and node is not y:
            return False
    return True
