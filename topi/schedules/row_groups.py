"""Kernels merged into the row loop of another: statistics of a row are computed once, in the loop that uses them.

    total = sum(x * x, 1);  y = x / sqrt(total)          one loop over rows: total, its root, then y along the row
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from topi.schedules.formulas import constant, extent_of, formula_of
from topi.schedules.kernel import Kernel, Whole


def join_rows(kernels: Sequence[Kernel], outputs: set[Any]) -> list[Kernel]:
    """`kernels`, producers first, without those that were merged into a later one (its `inside`)."""
    left = list(kernels)
    for host in reversed(kernels):
        if host in left and not _reduces(host) and len(host.tail.axis) > 1:
            _join(host, left, outputs)
    return left


def _reduces(kernel: Kernel) -> bool:
    return type(kernel.anchor) is not te.ComputeOp or bool(kernel.anchor.reduce_axis)


def _join(host: Kernel, left: list[Kernel], outputs: set[Any]) -> None:
    """Merge into `host` the kernels whose results only its own rows read."""
    whole = host.inlined
    kept = _kept(host, left, whole)
    if not kept:
        return
    members = [host.tail, host.anchor, *[tensor.op for tensor in getattr(host.record, "stages", ())]]
    for kernel in reversed(left[:left.index(host)]):
        if kernel.tail in outputs or type(kernel.anchor) is not te.ComputeOp or not _fits(kernel, kept):
            continue
        readers = readers_of(kernel.tail, left, whole, members)
        if readers and all(reader in members and _same_row(reader, kernel.tail, kept, whole) for reader in readers):
            left.remove(kernel)
            own = [kernel.anchor, kernel.tail] if kernel.fused else [kernel.tail]
            members += own
            host.inside = (*own, *host.inside)
            host.kept = kept


def _kept(host: Kernel, left: Sequence[Kernel], whole: Whole) -> int:
    """The number of leading dimensions of `host` that index its rows: those with which it reads the result of a reduction; 0 if
    none.
    """
    record, rank = host.record, len(host.tail.axis)
    axes = getattr(record, "axes", None) or ((record.axis,) if hasattr(record, "stages") and hasattr(record, "axis") else None)
    if axes is not None and hasattr(record, "stages"):
        kept = rank - len(axes)
        return kept if tuple(axes) == tuple(range(kept, rank)) else 0
    own = [axis.var for axis in host.tail.axis]
    formula = formula_of(whole(host.tail).body)
    for kernel in left:
        if kernel is host or not _reduces(kernel) or type(kernel.anchor) is not te.ComputeOp:
            continue
        for load in formula.reads_of(whole(kernel.tail)):
            used = [index for index in load.indices if constant(index) != 0]
            if 0 < len(used) < rank and all(a is b for a, b in zip(used, own)) and extent_of(host.tail.axis[len(used)]) != 1:
                return len(used)
    return 0


def _fits(kernel: Kernel, kept: int) -> bool:
    """Whether `kernel` computes per row: a reduction over the dimensions of a row, or an element-wise formula."""
    if kernel.anchor.reduce_axis:
        record = kernel.record
        rank = record.source.ndim if hasattr(record, "source") and hasattr(record, "axes") else 0
        return rank > 0 and record.axes == tuple(range(kept, rank))
    return not hasattr(kernel.record, "stages") and len(kernel.tail.axis) >= kept


def readers_of(op: Any, left: Sequence[Kernel], whole: Whole, members: Sequence[Any]) -> list[Any]:
    """The operations with loops that read `op`, directly or through inlined ones."""
    mine = whole(op)
    placed = [*members, *[candidate for kernel in left for candidate in (kernel.anchor, kernel.tail)]]
    for kernel in left:
        placed += [tensor.op for tensor in getattr(getattr(kernel.anchor, "info", None), "stages", ())]
    return [candidate for candidate in dict.fromkeys(placed)
            if candidate is not op and any(t.op is mine for t in whole(candidate).input_tensors)]


def _same_row(reader: Any, op: Any, kept: int, whole: Whole) -> bool:
    """Whether `reader` indexes `op` with its own leading axes, so that each of its rows needs the same row of `op` only."""
    reading: Any = whole(reader)
    own = [axis.var for axis in reading.axis][:kept]
    return all(all(a is b for a, b in zip(load.indices[:kept], own)) and len(load.indices) >= kept
               for load in formula_of(reading.body).reads_of(whole(op)))
