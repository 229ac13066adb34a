"""Vectors of consecutive lanes as one longer vector, where each begins behind the one before.

before:  for (v: 0, 4) "vectorized" { B[ramp(v*2, 1, 2)] = A[ramp(v*2 + 6, 1, 2)] + broadcast(x, 2) }
after:   B[ramp(0, 1, 8)] = A[ramp(6, 1, 8)] + broadcast(x, 8)
"""

from __future__ import annotations

from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.linear import detect_linear_equation
from tedsl.ir import build
from tedsl.ir.expr import BinaryOp, Broadcast, Cast, Expr, Load, Not, Ramp, Select
from tedsl.ir.stmt import For, Store
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import uses
from tedsl.passes.loops.vectorize_expr import NotVectorizable


def in_a_row(store: Store, loop: For, lanes: int) -> Store:
    """Returns the stores of all `lanes` iterations of `loop` as one.

    Raises NotVectorizable unless their elements follow one another, and so do those of all values that are vectors.
    """
    row = _Row(loop, lanes)
    return Store(store.buffer_var, row(store.value), row(store.index))


class _Row(Rewriter):
    """Makes vectors `lanes` times as long."""

    def __init__(self, loop: For, lanes: int) -> None:
        super().__init__()
        self.loop, self.lanes = loop, lanes

    def rebuilt(self, node: Any) -> Any:
        longer: Any = self._done.__getitem__
        of = node.dtype
        match node:
            case _ if of.lanes == 1:
                return node  # part of what becomes longer
            case Ramp():
                return self.ramp(node)
            case Broadcast(value=value) if not self.varies(value):
                return Broadcast(value, of.lanes * self.lanes)
            case Load(buffer_var=memory, index=index, predicate=None):
                return Load(of.element.with_lanes(of.lanes * self.lanes), memory, longer(index))
            case Cast(value=value):
                return Cast(of.element.with_lanes(of.lanes * self.lanes), longer(value))
            case Select(condition=condition) if condition.dtype.lanes > 1 or not self.varies(condition):
                return node.map_children(longer)
            case BinaryOp() | Not():
                return node.map_children(longer)
            case _:
                raise NotVectorizable("vectors that do not follow one another")

    def varies(self, scalar: Expr) -> bool:
        return uses(scalar, self.loop.loop_var)

    def ramp(self, node: Ramp) -> Expr:
        linear = detect_linear_equation(node.base, [self.loop.loop_var])
        step, stride = (build.as_int(linear[0]) if linear else None), build.as_int(node.stride)
        if step is None or stride is None or step != stride * node.lanes:
            raise NotVectorizable("vectors that do not follow one another")
        first = build.add(linear[1], build.mul(self.loop.min, step))
        return Ramp(Analyzer().simplify(first), node.stride, node.lanes * self.lanes)
