"""Inlining: formulas substituted for the loads of their tensors.

before:  B[i] = A[i] + 1;  C[i] = B[i] * 2        after:  C[i] = (A[i] + 1) * 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import BinaryOp, Cast, Expr, ProducerLoad
from tedsl.ir.node import Node
from tedsl.ir.walk.index_arithmetic import is_index_arithmetic
from tedsl.ir.walk.substitute import fresh_copy, substitute
from tedsl.lang.operation import ComputeOp

# The operation whose formula replaces a load, and its bodies; None for loads that stay.
Lookup = Callable[[ProducerLoad], "tuple[ComputeOp, Sequence[Expr]] | None"]


class Inliner:
    """Replaces loads of inlined tensors by their formulas at the loaded indices, and the loads in those formulas in turn.

    Uses an explicit stack and rewrites each shared node once. Loads of one element share one copy of its formula: x[i] * x[i]
    in a chain of inlined stages does not grow.
    """

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.done: dict[Node, Any] = {}
        self.elements: dict[tuple[Any, ...], Expr] = {}

    def __call__(self, root: Expr) -> Expr:
        done = self.done
        replaced: dict[Node, Expr] = {}  # loads by formulas that are still to be looked through
        stack: list[Node] = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            pending = [child for child in node.child_nodes() if child not in done]
            if node in replaced:
                pending = [replaced[node]] if replaced[node] not in done else []
            if pending:
                stack.extend(reversed(pending))
                continue
            if node in replaced:
                done[node] = done[replaced[node]]
                continue
            new = node.map_children(done.__getitem__)
            formula = self._formula(new) if type(new) is ProducerLoad else None
            if formula is None:
                done[node] = new
            else:
                replaced[node] = formula
        return done[root]  # type: ignore[no-any-return]

    def _formula(self, load: ProducerLoad) -> Expr | None:
        """The formula for the element of an inlined tensor, whose indices have been rewritten already; None for other
        tensors.
        """
        formula = self.lookup(load)
        if formula is None:
            return None
        op, bodies = formula
        key = (op, load.producer.value_index, *load.indices)
        if key not in self.elements:
            values = {axis.var: build.cast(axis.dtype, index) for axis, index in zip(op.axis, load.indices)}
            self.done.update((value, value) for value in values.values())
            # a Var is bound once in a function: each copy gets lets of its own
            self.elements[key] = fresh_copy(substitute(_as_stored(op, bodies[load.producer.value_index]), values))
        return self.elements[key]


def _as_stored(op: ComputeOp, body: Expr) -> Expr:
    """`body` wrapped to the dtype of `op` as a store would wrap it; index arithmetic, which the formula becomes part of, never
    wraps.

    Symbolic extents are assumed to keep index arithmetic within int32.
    """
    if body.dtype is not INT32 or not isinstance(body, BinaryOp) or not is_index_arithmetic(body, lambda var: True, {}):
        return body
    known = Analyzer()
    for axis in op.axis:
        if axis.dom is not None:
            known.bind(axis.var, axis.dom)
    low, high = known.bounds(body)
    fits = (low is None or low >= -2**31) and (high is None or high < 2**31)
    return body if fits else Cast(INT32, Cast(INT64, body))
