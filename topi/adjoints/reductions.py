"""Adjoints of reductions, running sums and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from topi.adjoints.parts import Parts, in_dtype
from topi.broadcast import multiply
from topi.elementwise import full
from topi.extents import row_major
from topi.indexing.scatter import scatter
from topi.injective import injective
from topi.kinds import CumulativeOp, ReduceOp, SortOp
from topi.ordering.sort import argsort, topk
from topi.reduction import argmax, argmin
from topi.scan import cumprod, cumsum
from topi.transform.reverse import flip


def of_reduction(record: ReduceOp, op: te.Operation, head: te.Tensor) -> Parts:
    """Of a sum: the head for each term. Of a maximum or minimum: the head for the first element that is it."""
    source, axes = record.source, record.axes
    if record.operator not in ("sum", "max", "min") or not axes:
        return None

    def own(i: Any) -> list[Any]:
        return [0 if d in axes else at for d, at in enumerate(i) if record.keepdims or d not in axes]

    def of_sum() -> te.Tensor:
        return injective("broadcast_to", source.shape, lambda *i: head(*own(i)))

    def of_winner() -> te.Tensor:
        place = (argmax if record.operator == "max" else argmin)(source, axes, record.keepdims)
        extents = [source.shape[d] for d in axes]
        return injective("winner", source.shape, lambda *i: te.select(
            place(*own(i)).equal(row_major([i[d] for d in axes], extents).astype("int32")), head(*own(i)),
            te.const(0, head.dtype)))

    return [(source, of_sum if record.operator == "sum" else of_winner)]


# --- running sums and products ----------------------------------------------------------------------------------------

def of_running(record: CumulativeOp, op: te.Operation, head: te.Tensor) -> Parts:
    """Of sums: the sums of the head from the other end. Of products:

    those sums of head * product, divided by the element, up to the first zero of a row; for that zero the sums of head times
    the products that leave it out; behind it 0.
    """
    source, axis, exclusive = record.source, record.axis, record.exclusive

    def backwards(x: te.Tensor) -> te.Tensor:
        return flip(cumsum(flip(x, axis), axis, exclusive=exclusive), axis)

    def of_products() -> te.Tensor:
        x = in_dtype(source, head.dtype)
        zero = te.const(0, x.dtype)
        is_zero = injective("is_zero", x.shape, lambda *i: x(*i).equal(zero).astype("int32"))
        zeros = cumsum(is_zero, axis)

        def is_first(i: Any) -> Any:
            return te.all(is_zero(*i).equal(1), zeros(*i).equal(1))

        without = injective("without_zero", x.shape, lambda *i: te.select(is_first(i), te.const(1, x.dtype), x(*i)))
        before = backwards(multiply(head, op.output(0)))
        at_zero = backwards(multiply(head, cumprod(without, axis, exclusive=exclusive)))
        return injective("cumprod_adjoint", x.shape, lambda *i: te.select(
            zeros(*i).equal(0), before(*i) / te.select(is_zero(*i).equal(1), te.const(1, x.dtype), x(*i)),
            te.select(is_first(i), at_zero(*i), zero)))

    return [(source, (lambda: backwards(head)) if record.operator == "cumsum" else of_products)]


# --- sorting ----------------------------------------------------------------------------------------------------------

def of_sorting(record: SortOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The head moved back to the places from which the elements came. None where the result is places."""
    source, axis = record.source, record.axis
    places: dict[str, Callable[[], te.Tensor]] = {
        "sort": lambda: argsort(source, axis=axis, is_ascend=record.ascending, dtype="int32"),
        "topk": lambda: topk(source, head.shape[axis], axis, "indices", record.ascending, "int32"),
    }
    if record.operator not in places:
        return None
    return [(source, lambda: scatter(full(source.shape, head.dtype, 0), places[record.operator](), head, axis))]
