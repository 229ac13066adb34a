"""Whether a statement may store its results over its operands: it reads each element where it stores, and no other later."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.expr import Expr, Load, Ramp, Var
from tedsl.ir.stmt import For, ForKind, Store
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order


def stores_over(store: Store, operand: Var, loops: Sequence[For | None]) -> bool:
    """Tells whether `store` may write to the memory of `operand` instead of its own. loops: those around it in which the
    memory of either lives on from iteration to iteration; None for those that do not count their iterations.

    No two iterations store to one element: so much is known of constant strides and extents, and of rows of any sizes one after
    the other.
    """
    parts = [part for part in (store.value, store.index, store.predicate) if part is not None]
    for part in parts:
        for node in post_order(part):
            if node is operand or node is store.buffer_var:
                return False  # its address goes elsewhere
            if isinstance(node, Load) and node.buffer_var is store.buffer_var:
                return False
            if isinstance(node, Load) and node.buffer_var is operand and not _same_element(node, store):
                return False
    if any(isinstance(node, Load) for node in post_order(store.index)):
        return False
    return _each_once(store.index, loops) or _in_rows(store.index, loops)


def _same_element(load: Load, store: Store) -> bool:
    if not structural_equal(load.index, store.index):
        return False
    a, b = load.predicate, store.predicate
    return a is None or (b is not None and structural_equal(a, b))


def _in_rows(index: Expr, loops: Sequence[For | None]) -> bool:
    """Tells whether `index` is that of a row-major array whose dimensions are `loops`: (i*m + j)*n + k."""
    place: Expr | None = None
    for loop in loops:
        if loop is None or loop.kind is ForKind.THREAD_BINDING:
            return False
        place = loop.loop_var if place is None else build.add(build.mul(place, loop.extent), loop.loop_var)
    varying = {loop.loop_var for loop in loops if loop is not None}
    if place is None or any(varying.intersection(post_order(loop.extent)) for loop in loops if loop is not None):
        return False
    return index.dtype is place.dtype and Analyzer().can_prove_equal(index, place)


def _each_once(index: Expr, loops: Sequence[For | None]) -> bool:
    """Tells whether all iterations of `loops`, and all lanes, have another index: each stride steps over all smaller ones."""
    steps: list[tuple[int, int]] = []  # stride and count
    if isinstance(index, Ramp):
        stride = build.as_int(index.stride)
        if stride is None:
            return False
        steps.append((abs(stride), index.lanes))
        index = index.base
    if index.dtype.lanes != 1:
        return False
    known = Bounds()
    terms = known.sum(index).terms
    for loop in loops:
        count = None if loop is None else build.as_int(loop.extent)
        if loop is None or loop.kind is ForKind.THREAD_BINDING or count is None:
            return False
        if count > 1:
            steps.append((abs(terms.get(loop.loop_var, 0)), count))
    inside = {loop.loop_var for loop in loops if loop is not None}
    if any(term not in inside and inside.intersection(post_order(term)) for term in terms):
        return False  # a quotient or a product of loops
    reach = 0
    for stride, count in sorted(steps):
        if stride <= reach:
            return False
        reach += stride * (count - 1)
    return True
