"""Reductions along any axes.

    a product of matrices:        tiles of the result in registers
    innermost dimension reduced:  partial results in the lanes of vectors, combined at the end of each row
    innermost dimension kept:     neighbouring results in the lanes of vectors, added up row by row as memory has them
    everything reduced:           chunks in parallel, each as a row
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.contraction import rows_of_contraction, schedule_contraction, tiles_fit
from topi.schedules.cpu.injective import vectorize
from topi.schedules.cpu.parallel import SERIAL, share_out
from topi.schedules.formulas import Formula, extent_of, product, runs
from topi.schedules.kernel import Kernel

_UNROLL = 4  # vectors of partial results: enough to hide the latency of an addition
_COLUMNS = 16  # vectors of results that stay in registers
_WIDE = 128  # vectors of results that stay in the nearest cache
_ROWS = 8
_CHUNK = 32 * 1024
_FEW = 4  # lanes that are combined one after the other: each waits for the one before
_STRAIGHT = 16  # lanes that are combined without a loop


def schedule_reduce(kernel: Kernel) -> None:
    """Schedule a reduction by the data that its results share and by the innermost dimension of the memory it reads."""
    formula = kernel.formula(kernel.anchor)
    row = rows_of_contraction(kernel, formula) if tiles_fit(kernel) else None
    if row is not None:
        schedule_contraction(kernel, formula, row)
    elif not reads_along(kernel.anchor.reduce_axis, formula):
        _reduce_columns(kernel, formula)
    elif product([extent_of(axis) for axis in kernel.tail.axis]) == 1 and _is_long(kernel.anchor.reduce_axis):
        _reduce_all(kernel, formula)
    else:
        _reduce_rows(kernel, formula)


def reads_along(axes: Any, formula: Formula) -> bool:
    """Whether the reads are contiguous along one of `axes`."""
    variables = {axis.var for axis in axes}
    return any(load.indices and load.indices[-1] in variables for load in formula.loads)


def _work(kernel: Kernel) -> int | None:
    return product([extent_of(axis) for axis in (*kernel.tail.axis, *kernel.anchor.reduce_axis)])


def _is_long(axes: Any) -> bool:
    extent = product([extent_of(axis) for axis in axes])
    return extent is not None and extent >= 2 * SERIAL


# --- rows ---------------------------------------------------------------------------------------------------------------

def _reduce_rows(kernel: Kernel, formula: Formula) -> None:
    s, stage = kernel.schedule, kernel.schedule[kernel.tail]
    partial = reduce_in_lanes(kernel, kernel.anchor, formula)
    row = share_out(s[kernel.tail], list(s[kernel.tail].op.axis), _work(kernel))
    inside = [*partial, *([kernel.anchor] if kernel.fused else [])]
    for op in inside:
        if row is not None:
            s[op].compute_at(stage, row)


def reduce_in_lanes(kernel: Kernel, op: Any, formula: Formula) -> list[Any]:
    """Factor the reduction `op` into partial results in the lanes of vectors; returns the tensors that hold them.

    Several vectors first, to hide the latency of the additions, then one vector, then a few lanes, then single lanes.
    """
    s, lanes = kernel.schedule, kernel.lanes(op)
    along = runs(op.reduce_axis, formula)[-1]
    extent = product([extent_of(axis) for axis in along])
    if lanes == 1 or (extent is not None and extent < 2 * lanes):
        return []
    loop = s[op].fuse(*along) if len(along) > 1 else along[0]
    partial = []
    widths = [_UNROLL * lanes, lanes] if extent is None or extent >= 2 * _UNROLL * lanes else [lanes]
    widths += [_FEW] if lanes > _FEW else []
    for width in widths:
        _, lane = s[op].split(loop, factor=width)
        factored = s.rfactor(op.output(0), lane)
        partial.append((factored[0] if isinstance(factored, list) else factored).op)
        if width is not widths[-1]:
            (loop,) = s[op].op.reduce_axis
    for tensor in partial:
        stage = s[tensor]
        lane = stage.op.axis[0]
        stage.reorder(*stage.op.axis[1:], *stage.op.reduce_axis, lane)
        stage.vectorize(lane)
    combine_lanes(s[op], widths[-1])
    return partial


def combine_lanes(stage: te.Stage, lanes: int) -> None:
    """Unroll the last step of a reduction over its lanes: a short loop would go through LLVM's loop passes."""
    op: Any = stage.op
    if lanes <= _STRAIGHT:
        stage.unroll(op.reduce_axis[0])


def _reduce_all(kernel: Kernel, formula: Formula) -> None:
    """Reduce all elements in chunks with a partial result each; the chunks do not depend on the number of threads."""
    s, op = kernel.schedule, kernel.anchor
    groups = runs(op.reduce_axis, formula)
    if len(groups) > 1:
        _reduce_rows(kernel, formula)
        return
    loop = s[op].fuse(*groups[0]) if len(groups[0]) > 1 else groups[0][0]
    outer, _ = s[op].split(loop, factor=_CHUNK)
    factored = s.rfactor(op.output(0), outer)
    chunks = (factored[0] if isinstance(factored, list) else factored).op
    lanes = kernel.lanes(kernel.anchor)
    partial = []
    (loop,) = chunks.reduce_axis
    for width in (_UNROLL * lanes, lanes):
        _, lane = s[chunks].split(loop, factor=width)
        factored = s.rfactor(s[chunks].op.output(0), lane)
        partial.append((factored[0] if isinstance(factored, list) else factored).op)
        (loop,) = s[chunks].op.reduce_axis
    chunk = s[chunks].op.axis[0]
    s[chunks].parallel(chunk)
    for tensor in partial:
        stage = s[tensor]
        lane = stage.op.axis[0]
        stage.reorder(*stage.op.axis[1:], *stage.op.reduce_axis, lane)
        stage.vectorize(lane)
        stage.compute_at(s[chunks], chunk)
    combine_lanes(s[chunks], lanes)
    if kernel.fused and s[kernel.tail].op.axis:
        s[op].compute_at(s[kernel.tail], s[kernel.tail].op.axis[-1])


# --- columns ------------------------------------------------------------------------------------------------------------

def _reduce_columns(kernel: Kernel, formula: Formula) -> None:
    """Reduce columns by reading rows in memory order; the sums of a block of columns stay in registers, or in L1."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    axes = list(tail.op.axis)
    if not axes:
        return
    *outer, last = axes
    lanes, extent = kernel.lanes(kernel.anchor), extent_of(last)
    if extent is None or extent > lanes * _WIDE:
        block, last = tail.split(last, factor=lanes * _WIDE)
        outer.append(block)
        extent = lanes * _WIDE
    place = share_out(tail, outer, _work(kernel))
    if kernel.fused:
        if place is not None:
            s[kernel.anchor].compute_at(tail, place)
        vectorize(tail, last, extent, lanes)
        last = s[kernel.anchor].op.axis[-1]
    add_rows(s[kernel.anchor], last, extent, lanes)


def add_rows(stage: te.Stage, last: Any, extent: int, lanes: int) -> None:
    """Vectorize the `last` axis (at most `extent` results) and put the loop over rows around it, inside the other loops."""
    width = min(_COLUMNS, -(-extent // lanes)) * lanes
    *slow, row = stage.op.reduce_axis
    rows, row = stage.split(row, factor=_ROWS)
    if width >= extent:
        stage.reorder(*slow, rows, row, last)
        if width == extent:
            stage.vectorize(last)
            return
        _, lane = stage.split(last, factor=width)
    else:
        middle, lane = stage.split(last, factor=width)
        stage.reorder(*slow, rows, middle, row, lane)
    stage.vectorize(lane)
