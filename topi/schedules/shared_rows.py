"""Kernels that read the same rows, computed block by block: what the first has read is in a cache for the others.

    mean = sum(x, 1) / n;  y = x - mean;  total = sum(x * mean, 0)

    for each chunk of rows, in parallel:
        for some rows of it, which stay in the second cache:     their mean;  their y;  what they add to the total of the chunk
    the totals of chunks are added up

The gradients of layer_norm by data and scales together have statements of their own (`topi.adjoints.row_norm` says why); this
serves those by some of them, other dtypes, and what users write with te.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tedsl import te
from topi.kinds import NormalizeOp, ReduceOp
from topi.schedules.cpu.parallel import SHARES
from topi.schedules.cpu.reduce import are_long, reads_along, rows_of_block
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel, RowBlocks
from topi.schedules.row_groups import readers_of

_WORTH = 4  # times the second cache, from which on reading the rows again takes longer than the loops around blocks


def share_rows(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Gives kernels over the same rows their blocks (`Kernel.blocks`); returns them, none if that is not worth it.

    One of them is a sum of each column: kernels along rows that only one other reads are merged into it already.
    """
    for columns in kernels:
        shape = _shape_of_columns(columns)
        if shape is None:
            continue
        kept = len(columns.record.axes)
        group = [kernel for kernel in kernels if kernel is columns or _is_along_rows(kernel, shape, kept)]
        blocks = _blocks(group, shape, kept)
        if len(group) > 1 and blocks is not None and not _is_cut(group, kernels):
            for kernel in group:
                kernel.blocks = blocks
            return group
    return []


def join(group: Sequence[Kernel]) -> None:
    """Makes one loop over the blocks of all kernels, which have loops by now, and one over the rows of neighbours that have
    one: a row stays in the nearest cache.
    """
    for first, second in itertools.pairwise([kernel.over_blocks for kernel in group]):
        assert first is not None and second is not None
        (stage, block, row), (other, other_block, other_row) = second, first
        if row is None or other_row is None:
            stage.compute_with(other, other_block, block)
        else:
            stage.compute_with(other, other_row, row)


def _shape_of_columns(kernel: Kernel) -> tuple[int, ...] | None:
    """The shape of what `kernel` adds up over its leading dimensions; None if it does something else."""
    record = kernel.record
    if type(record) is not ReduceOp or kernel.fused or not _is_free(kernel):
        return None
    axes, shape = record.axes, tuple([known for extent in record.source.shape if (known := constant(extent)) is not None])
    if axes != tuple(range(len(axes))) or len(axes) == len(shape) or len(shape) < record.source.ndim:
        return None
    return None if reads_along(kernel.anchor.reduce_axis, kernel.formula(kernel.anchor)) else shape


def _is_free(kernel: Kernel) -> bool:
    """Whether the loops of `kernel` are its own."""
    return not kernel.within and not kernel.before


def _is_along_rows(kernel: Kernel, shape: tuple[int, ...], kept: int) -> bool:
    """Whether `kernel` computes each row of an array of `shape` by itself: a statistic of it, or other elements."""
    if not _is_free(kernel) or not isinstance(kernel.tail, te.ComputeOp):
        return False
    record, axes = kernel.record, [extent_of(axis) for axis in kernel.tail.axis]
    if axes[:kept] != list(shape[:kept]):
        return False
    if type(record) is ReduceOp and not kernel.inside:
        of_rows = record.axes == tuple(range(kept, len(shape))) and product(axes[kept:]) == 1
        alike = of_rows and tuple([constant(extent) for extent in record.source.shape]) == shape
        whole = reads_along(kernel.anchor.reduce_axis, kernel.formula(kernel.anchor)) if alike else False
    else:
        own = kernel.kept if kernel.inside else len(shape) - len(record.axes) if type(record) is NormalizeOp else 0
        whole = own == kept and axes == list(shape)
    rows, length = list(kernel.tail.axis)[:kept], product(list(shape[kept:]))
    return whole and (are_long(kernel, length) or rows_of_block(kernel, rows, length, None) == 1)


def _blocks(group: Sequence[Kernel], shape: tuple[int, ...], kept: int) -> RowBlocks | None:
    """Chunks for all cores, and blocks of which everything that the kernels touch fits half of the second cache; None where all
    rows are near anyhow, or where they do not divide.
    """
    machine, rows = group[0].target.machine, product(list(shape[:kept]))
    columns = product(list(shape[kept:]))
    assert rows is not None and columns is not None
    touched: dict[Any, int] = {}
    for kernel in group:
        for op in dict.fromkeys((kernel.anchor, kernel.tail, *kernel.inside)):
            near = [load.producer for load in kernel.formula(op).loads if load.producer.ndim == len(shape)]
            near += [op.output(v) for v in range(op.num_outputs) if op.output(v).ndim == len(shape) and op is kernel.tail]
            touched |= {(tensor.op, tensor.value_index): tensor.dtype.bytes * columns for tensor in near}
    row = sum(touched.values())
    if rows * row < _WORTH * machine.l2.size:
        return None
    chunks = divisor_near(rows, 2 * SHARES * machine.cores, SHARES * machine.cores // 2)
    chunk = rows // chunks
    block = divisor_near(chunk, max(1, machine.l2.size // 2 // row), 1)
    return RowBlocks(chunk, block) if rows % chunks == 0 and chunk % block == 0 else None


def _is_cut(group: Sequence[Kernel], kernels: Sequence[Kernel]) -> bool:
    """Whether one of the group may have to wait for another one to end: it reads a sum of columns of it, or a kernel outside
    of the group stands between them that reads one.
    """
    last = max(kernels.index(kernel) for kernel in group)
    between = [one for one in kernels[:last] if one not in group]
    for kernel in group:
        later = [*between, *(group if _shape_of_columns(kernel) is not None else ())]
        places = {op for one in later for op in (one.anchor, one.tail, *one.inside)}
        if any(reader in places for reader in readers_of(kernel.tail, kernels, kernel.inlined, ())):
            return True
    return False
