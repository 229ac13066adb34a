"""Products whose first operand is made row by row from another product, as in attention: softmax(q k^T) v.

A block of rows of the first product, their softmax and the rows of the second product are computed one after the other, while
they are in the caches: the matrix between the two products is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topi.kinds import MatmulOp, SoftmaxOp
from topi.schedules.formulas import extent_of, formula_of
from topi.schedules.kernel import Kernel, Whole
from topi.schedules.row_groups import readers_of


def join_products(kernels: Sequence[Kernel], outputs: set[Any]) -> list[Kernel]:
    """`kernels`, producers first, without those that were merged into a later product (its `before`)."""
    left = list(kernels)
    for host in reversed(kernels):
        if host in left and _is_product(host) and not host.record.transpose_a:
            host.before = tuple(_made_by_rows(host, left, outputs))
            left = [kernel for kernel in left if kernel not in host.before]
    return left


def _is_product(kernel: Kernel) -> bool:
    return isinstance(kernel.record, MatmulOp) and kernel.record.batched and extent_of(kernel.anchor.axis[-1]) is not None


def _made_by_rows(host: Kernel, left: Sequence[Kernel], outputs: set[Any]) -> list[Kernel]:
    """The kernels that make the first operand of `host`: a softmax of its rows, after the product that it reads."""
    rows = next((kernel for kernel in left if kernel.tail is host.record.a.op), None)
    if rows is None or not isinstance(rows.record, SoftmaxOp) or rows.inside or rows.record.axis != len(rows.tail.axis) - 1 or \
            not _feeds(rows, [host], left, outputs) or any(extent_of(axis) is None for axis in rows.tail.axis):
        return []
    scores = next((kernel for kernel in left if _is_product(kernel) and _feeds(kernel, [rows], left, outputs)), None)
    return [rows] if scores is None else [scores, rows]


def _feeds(kernel: Kernel, consumers: Sequence[Kernel], left: Sequence[Kernel], outputs: set[Any]) -> bool:
    """Whether only `consumers` read the result of `kernel`, and their rows the same rows of it."""
    if kernel.tail in outputs:
        return False
    whole = kernel.inlined
    members = [op for consumer in consumers for op in _operations(consumer)]
    readers = readers_of(kernel.tail, left, whole, ())
    return bool(readers) and all(reader in members and _same_rows(reader, kernel.tail, whole) for reader in readers)


def _operations(kernel: Kernel) -> list[Any]:
    return [kernel.anchor, kernel.tail, *[tensor.op for tensor in getattr(kernel.record, "stages", ())]]


def _same_rows(reader: Any, op: Any, whole: Whole) -> bool:
    """Whether `reader` reads the row of `op` that has its own number, in the batch that has its own number."""
    reading: Any = whole(reader)
    own = [axis.var for axis in reading.axis]
    rank = len(op.axis) - 1
    return len(own) >= rank and all(all(a is b for a, b in zip(load.indices[:rank], own[:rank]))
                                    for load in formula_of(reading.body).reads_of(whole(op)))
