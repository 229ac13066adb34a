"""The derivative of a formula by what it reads, times a head: its vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tedsl.autodiff.heads import seed
from tedsl.autodiff.reductions import passed_to_elements
from tedsl.autodiff.scatter import reads_its_index, scattered
from tedsl.autodiff.sweep import Share, shares, without_lets
from tedsl.autodiff.terms import sum_of_share
from tedsl.ir.expr import Expr, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor, load
from tedsl.record import record

Heads = Mapping[int, Tensor]  # for outputs by number: the derivative by it, of the shape prefix + output


def vjp(op: ComputeOp, heads: Heads, wanted: Collection[Tensor]) -> dict[Tensor, list[Tensor]]:
    """For each of the `wanted` tensors that `op` reads: tensors whose sum is the derivative of sum(head * output) by it."""
    any_head = next(iter(heads.values()))
    extents = any_head.shape[:any_head.ndim - len(op.axis)]
    prefix = [Var(f"p{d}", extent.dtype) for d, extent in enumerate(extents)]
    found: dict[Tensor, list[Tensor]] = {}
    for share, loops in _shares(op, heads, prefix, wanted):
        read = share.load.producer
        summed = scattered if reads_its_index(share) else sum_of_share
        found.setdefault(read, []).append(summed(share, prefix, extents, loops, f"{op.name}.{read.op.name}.grad"))
    return found


def _shares(op: ComputeOp, heads: Heads, prefix: Sequence[Var], wanted: Collection[Tensor]) \
        -> list[tuple[Share, Sequence[IterVar]]]:
    """What each read adds, with the loops in which it does."""
    axes = [axis.var for axis in op.axis]
    seeds = {number: seed(head, prefix, axes) for number, head in heads.items()}
    if op.reduction is not None:
        elements, starts = passed_to_elements(op, plain(op.reduction), seeds)
        loops = (*op.axis, *op.reduce_axis)
        return [*((share, loops) for share in shares(elements, wanted, {})),
                *((share, op.axis) for share in shares(starts, wanted, {}))]
    bodies = [without_lets(body) for body in op.body]
    stored: dict[Node, Expr] = {body: load(stored_in(op, number), tuple(axes)) for number, body in enumerate(bodies)}
    return [(share, op.axis) for share in shares([(bodies[number], *at) for number, at in seeds.items()], wanted, stored)]


@record(eq=False)
class RecomputedOp:
    """The record of a formula whose outputs stand in the tensors `values` already; None for those that do not."""

    values: tuple[Tensor | None, ...]


def stored_in(op: ComputeOp, number: int) -> Tensor:
    """The tensor that holds the values of output `number`."""
    known = op.info.values[number] if isinstance(op.info, RecomputedOp) else None
    return op.output(number) if known is None else known


def plain(reduction: Reduce) -> Reduce:
    """The reduction without lets."""
    return reduction.replace(source=tuple(map(without_lets, reduction.source)), init=tuple(map(without_lets, reduction.init)),
                             condition=without_lets(reduction.condition))
