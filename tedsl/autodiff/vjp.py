"""The derivative of a formula by what it reads, times a head: its vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tedsl.autodiff.heads import seed
from tedsl.autodiff.sweep import Branch, Path, Share, shares, without_lets
from tedsl.autodiff.terms import sum_of_share
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.expr import Add, Expr, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor, load

Heads = Mapping[int, Tensor]  # for outputs by number: the derivative by it, of the shape prefix + output


def vjp(op: ComputeOp, heads: Heads, wanted: Collection[Tensor]) -> dict[Tensor, list[Tensor]]:
    """For each of the `wanted` tensors that `op` reads: tensors whose sum is the derivative of sum(head * output) by it."""
    any_head = next(iter(heads.values()))
    extents = any_head.shape[:any_head.ndim - len(op.axis)]
    prefix = [Var(f"p{d}", extent.dtype) for d, extent in enumerate(extents)]
    found: dict[Tensor, list[Tensor]] = {}
    for share, loops in _shares(op, heads, prefix, wanted):
        read = share.load.producer
        found.setdefault(read, []).append(sum_of_share(share, prefix, extents, loops, f"{op.name}.{read.op.name}.grad"))
    return found


def _shares(op: ComputeOp, heads: Heads, prefix: Sequence[Var], wanted: Collection[Tensor]) \
        -> list[tuple[Share, Sequence[IterVar]]]:
    """What each read adds, with the loops in which it does."""
    axes = [axis.var for axis in op.axis]
    seeds = {number: seed(head, prefix, axes) for number, head in heads.items()}
    if op.reduction is not None:
        return _of_reduction(op, op.reduction, seeds, wanted)
    bodies = [without_lets(body) for body in op.body]
    stored: dict[Node, Expr] = {body: load(op.output(number), tuple(axes)) for number, body in enumerate(bodies)}
    return [(share, op.axis) for share in shares([(bodies[number], *at) for number, at in seeds.items()], wanted, stored)]


def _of_reduction(op: ComputeOp, reduction: Reduce, seeds: Mapping[int, tuple[Path, Expr]], wanted: Collection[Tensor]) \
        -> list[tuple[Share, Sequence[IterVar]]]:
    if not _is_sum(reduction):
        raise TedslError(f"gradient: the reduction {op.name} has no derivative")
    path, value = seeds[0]
    condition: Any = without_lets(reduction.condition)
    inner = path if build.is_true(condition) else (*path, Branch(condition, True, True))
    loops = (*op.axis, *op.reduce_axis)
    terms = shares([(without_lets(reduction.source[0]), inner, value)], wanted, {})
    starts = shares([(without_lets(start), path, value) for start in reduction.init], wanted, {})
    return [*((share, loops) for share in terms), *((share, op.axis) for share in starts)]


def _is_sum(reduction: Reduce) -> bool:
    combiner = reduction.combiner
    result = combiner.result[0]
    return len(combiner.result) == 1 and isinstance(result, Add) and {result.a, result.b} == {combiner.lhs[0], combiner.rhs[0]}
