"""Reductions along any axes.

    a product of matrices:        tiles of the result in registers
    innermost dimension reduced:  partial results in the lanes of vectors, combined at the end of each row
    innermost dimension kept:     columns.py
    everything reduced:           chunks in parallel, each as a row
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from topi.schedules.cpu.ahead import bytes_ahead, far_arguments
from topi.schedules.cpu.columns import reduce_columns, work_of
from topi.schedules.cpu.contraction import rows_of_contraction, schedule_contraction, tiles_fit
from topi.schedules.cpu.parallel import SERIAL, SHARES, chunk_length, keep_cores_busy, share_out, share_out_rows
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import Formula, extent_of, product, runs, variables_in
from topi.schedules.kernel import Kernel

_UNROLL = 4  # vectors of partial results: enough to hide the latency of an addition
_CHUNK = 32 * 1024
_FEW = 4  # lanes that are combined one after the other: each waits for the one before
_SHORT = 32  # vectors of a row, up to which combining the lanes of it alone is a large part of the work
_WAITS = 64  # vectors of a row, up to which that is so of sums that nothing waits for: processors begin the next row meanwhile
_DEAR = 16  # operations on an element, which hide the latency of adding it, row beside row
UNROLLED = 64  # operations of a reduction without a loop
_PAIRS = 32  # rows of a block of values with their places, if they divide the rows
_LEAST = 4  # vectors of a row whose lanes are combined alone
_STRAIGHT = 16  # lanes that are combined without a loop


def schedule_reduce(kernel: Kernel) -> None:
    """Schedule a reduction by the data that its results share and by the innermost dimension of the memory it reads."""
    formula = kernel.formula(kernel.anchor)
    row = rows_of_contraction(kernel, formula) if tiles_fit(kernel) else None
    if row is not None:
        schedule_contraction(kernel, formula, row)
    elif not reads_along(kernel.anchor.reduce_axis, formula):
        reduce_columns(kernel, formula)
    elif product([extent_of(axis) for axis in kernel.tail.axis]) == 1 and _is_long(kernel.anchor.reduce_axis):
        _reduce_all(kernel, formula)
    else:
        _reduce_rows(kernel, formula)


def reads_along(axes: Any, formula: Formula) -> bool:
    """Whether the reads are contiguous along one of `axes`; those that use most of the loops count, not factors of a row."""
    variables = {axis.var for axis in axes}
    used = [(load, len(set().union(*map(variables_in, load.indices)))) for load in formula.loads]
    most = max([count for _, count in used], default=0)
    return any(load.indices and load.indices[-1] in variables for load, count in used if count == most)


def _is_long(axes: Any) -> bool:
    extent = product([extent_of(axis) for axis in axes])
    return extent is not None and extent >= 2 * SERIAL


# --- rows ---------------------------------------------------------------------------------------------------------------

def _reduce_rows(kernel: Kernel, formula: Formula) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    axes = list(kernel.tail.axis)
    at = last_of_many(axes)
    length = length_of(kernel.anchor)
    tiny = length is not None and _FEW < length < 2 * _FEW  # LLVM's vectorizer is faster than tiles of four lanes and a rest
    turned = not combines_lanes(kernel, kernel.anchor, formula) or (kernel.fused and not are_long(kernel, length))
    beside = turned and not tiny and (tiles_fit(kernel) or not kernel.fused)
    block = _rows_together(kernel, axes, length) if beside else 1
    partial = reduce_in_lanes(kernel, kernel.anchor, formula, at if block > 1 else None, far_arguments(kernel), turned)
    combined = None
    if block > 1 and block % _FEW == 0 and partial and not kernel.fused and kernel.tail.num_outputs > 1:
        combined = _in_registers(s, s[kernel.tail].op)
    axes = list(s[kernel.tail].op.axis)
    if block > 1:
        axes[at], row = tail.split(axes[at], factor=block)
        tail.reorder(*axes, *s[kernel.tail].op.reduce_axis, row)
        tail.vectorize(row)
    place = share_out_blocks(kernel, tail, axes, at, block, work_of(kernel))
    inside = [*partial, *([kernel.anchor] if kernel.fused else []), *([] if combined is None else [combined])]
    for op in inside:
        if place is not None:
            s[op].compute_at(tail, place)
    if combined is not None:
        add_across(s[combined], at)


def _rows_together(kernel: Kernel, axes: list[Any], length: int | None) -> int:
    """The number of rows of a block, as `rows_of_block` has it; of values with their places more, if the axis is divided by a
    multiple of tiles: each step waits for the one before, and those of other vectors of rows meanwhile do not.
    """
    block = rows_of_block(kernel, axes, length, work_of(kernel))
    if kernel.anchor.num_outputs == 1 or block == 1:
        return block
    more = rows_of_block(kernel, axes, length, work_of(kernel), _PAIRS)
    extent = extent_of(axes[last_of_many(axes)])
    return more if more % _FEW == 0 and extent is not None and extent % more == 0 else block


def _in_registers(s: te.Schedule, op: Any) -> Any:
    """The operation that computes the results of `op`, each of several values, before they are stored: LLVM makes masked stores
    of selections that are stored, and what reads these waits.
    """
    copies = s.cache_write([op.output(v) for v in range(op.num_outputs)], "local")
    return copies[0].op


def length_of(op: Any) -> int | None:
    """The number of elements that one result of `op` reduces."""
    return product([extent_of(axis) for axis in op.reduce_axis])


def last_of_many(axes: list[Any]) -> int:
    """The number of the last of `axes` that has more than one iteration, -1 if there is none."""
    return next((at for at in reversed(range(len(axes))) if extent_of(axes[at]) != 1), -1)


def are_long(kernel: Kernel, length: int | None) -> bool:
    """Whether rows of so many elements are so long that combining the lanes of each is a small part of the work."""
    return length is None or length > _SHORT * kernel.lanes(kernel.anchor)


def rows_of_block(kernel: Kernel, axes: list[Any], length: int | None, work: int | None, rows: int = 0) -> int:
    """The number of rows, neighbours along the last of `axes`, whose partial results are combined together: lane by lane in
    vectors across the rows; as many as a vector has lanes, or `rows`, if those are more. 1 where too few rows fit a cache, and
    for long rows in blocks or loops of others.

    A block of rows stays in half of the nearest cache. Where `work` is shared out, more rows than lanes, and long ones, are
    together only if blocks are left that keep the cores busy. Blocks divide the axis, where that leaves them half as many rows
    as they could have, and tiles of a few lanes of a few rows, which change places in registers, or where other axes are around
    it or rows are long; else the last one is smaller, unless too few axes are around it that are shared out without it.
    """
    at = last_of_many(axes)
    extent = extent_of(axes[at]) if at >= 0 else None
    lanes, size = kernel.lanes(kernel.anchor), kernel.anchor.output(0).dtype.bytes
    alone = kernel.blocks is None and not kernel.within
    if extent is None or length is None or (are_long(kernel, length) and not alone) or (not rows and length > _WAITS * lanes):
        return 1
    around, cores = product([extent_of(axis) for axis in axes[:at]]), kernel.target.machine.cores
    most: int = min(max(rows, lanes), kernel.target.machine.l1.size // 2 // (size * max(length, 1)))
    if not alone:
        most = min(most, lanes)
    elif cores > 1 and (work is None or work >= SERIAL):
        least = 1 if are_long(kernel, length) else lanes
        most = min(most, max(least, (around or 1) * extent // (SHARES * cores)))
    power: int = 1 << max(most, 1).bit_length() - 1
    if kernel.blocks is not None or min(most, extent) < _FEW:
        rows = math.gcd(extent, power)
        return rows if rows >= _FEW else 1
    least, exact = max(_FEW, power // 2), kernel.within or around != 1 or are_long(kernel, length)
    tiles = next((n for n in range(most - most % _FEW, least - 1, -_FEW) if extent % n == 0), None)
    if tiles is not None and not kernel.within:
        return tiles
    rows = divisor_near(extent, most, least)
    if extent % rows == 0 and (exact or rows == extent):
        return rows
    busy = around is not None and (keep_cores_busy(kernel.target, around) if are_long(kernel, length) else around >= cores)
    if around == 1 or busy:
        return most - most % _FEW
    fewer = divisor_near(extent, rows, _FEW)
    return fewer if extent % fewer == 0 else 1


def share_out_blocks(kernel: Kernel, stage: te.Stage, axes: list[Any], at: int, block: int, work: int | None) -> Any:
    """Does what `share_out_rows` does for rows of which axis number `at` has become a loop over blocks of so many; it is not
    shared out with the loops around it if the last block is smaller: each row of every block would have a condition.
    """
    extent = extent_of(kernel.tail.axis[at]) if at >= 0 else None
    if block == 1 or extent is None or extent % block == 0 or product([extent_of(axis) for axis in axes[:at]]) == 1:
        return share_out_rows(kernel, stage, axes, work)
    share_out(stage, axes[:at], work)
    return axes[-1]


def reduce_in_lanes(kernel: Kernel, op: Any, formula: Formula, across: int | None = None,
                    far: Sequence[te.Tensor] = (), turned: bool = False, straight: int = UNROLLED) -> list[Any]:
    """Factor the reduction `op` into partial results in the lanes of vectors; returns the tensors that hold them.

    Several vectors first, to hide the latency of the additions, whose lanes are combined at the end of each row.
    across: the number of the axis along which rows are neighbours. far: what is asked for before it is read.
    turned: lanes are combined in steps instead: to fewer ones, which change places with neighbouring rows, if there are some,
    and are combined in vectors across them. straight: so many operations on vectors of a row are written without a loop.
    """
    s, lanes = kernel.schedule, kernel.lanes(op)
    along = runs(op.reduce_axis, formula)[-1]
    extent = product([extent_of(axis) for axis in along])
    if lanes == 1:
        return []
    if not turned and combines_lanes(kernel, op, formula):
        return _combine_vectors(kernel, op, formula, across, far, straight)
    partial: list[Any] = []
    if extent is None or extent >= 2 * lanes or (across is not None and extent > lanes):
        loop = s[op].fuse(*along) if len(along) > 1 else along[0]
        long = extent is None or extent >= 2 * _UNROLL * lanes
        widths = _widths(op, formula, lanes, long, across is not None)
        place = 0 if across is None else len(op.axis)
        for width in widths:
            _, lane = s[op].split(loop, factor=width)
            factored = s.rfactor(op.output(0), lane, place)
            partial.append((factored[0] if isinstance(factored, list) else factored).op)
            if width is not widths[-1]:
                (loop,) = s[op].op.reduce_axis
        if across is not None:
            partial = [keep_in_registers(kernel, partial, across, formula.cost, far)]
        else:
            for tensor in partial:
                add_vectors(s[tensor], place)
            combine_lanes(s[op], widths[-1])
            ask_ahead(kernel, s[partial[0]], -2, widths[0], far)
    if across is not None and op is not kernel.tail:
        add_across(s[op], across)
    return partial


def may_be_vectorized(op: Any) -> bool:
    """Whether the loop of the reduction `op` may be vectorized: of a sum, a product, the largest or the smallest number."""
    (result, *more), of = op.body[0].combiner.result, op.output(0).dtype
    return not (more or of.is_bool or of.is_custom) and isinstance(result, (tir.Add, tir.Mul, tir.Max, tir.Min))


def combines_lanes(kernel: Kernel, op: Any, formula: Formula) -> bool:
    """Whether the reduction `op` reads vectors along rows, some for each, whose lanes are best combined to one element.
    Compilers of C would do that in memory.
    """
    extent, lanes = product([extent_of(axis) for axis in runs(op.reduce_axis, formula)[-1]]), kernel.lanes(op)
    return may_be_vectorized(op) and kernel.target.kind.name != "c" and lanes > 1 and \
        (extent is None or extent >= _LEAST * lanes)


def _combine_vectors(kernel: Kernel, op: Any, formula: Formula, across: int | None, far: Sequence[te.Tensor],
                     straight: int) -> list[Any]:
    """Add up vectors along each row in registers, then combine the lanes of the last ones; see `reduce_in_lanes`."""
    s, lanes = kernel.schedule, kernel.lanes(op)
    along = runs(op.reduce_axis, formula)[-1]
    extent = product([extent_of(axis) for axis in along])
    loop = s[op].fuse(*along) if len(along) > 1 else along[0]
    width = lanes * (_UNROLL if extent is None or extent >= 2 * _UNROLL * lanes else 1)
    _, lane = s[op].split(loop, factor=width)
    partial = s.rfactor(op.output(0), lane, len(op.axis)).op
    s[op].vectorize(s[op].op.reduce_axis[0])
    s[partial].set_scope("local")
    add_vectors(s[partial], -1)
    row = None if across is None or op is kernel.tail else s[op].op.axis[across]
    if row is not None:
        s[partial].compute_at(s[op], row)
    steps = length_of(partial)
    if steps is not None and steps * (1 + formula.cost) <= straight and not far:
        for axis in partial.reduce_axis:
            s[partial].unroll(axis)
    else:
        ask_ahead(kernel, s[partial], -2, width, far)
    return [partial] if row is None else []


def _widths(op: Any, formula: Formula, lanes: int, long: bool, beside: bool) -> list[int]:
    """The numbers of partial results of a row, step by step. beside: the rows are neighbours, combined in vectors across them.

    Each step is a stage: a long row has few of them, as deep as each other, and its steps are a small part of the work.
    """
    if long and not beside and op.num_outputs == 1:
        first: int = _UNROLL * lanes
        return [first, 1 << first.bit_length() // 2]
    hidden = beside and formula.cost >= _DEAR
    widths = [_UNROLL * lanes, lanes] if long and not hidden else [lanes]
    return [*widths, _FEW] if lanes > _FEW and (not beside or op.num_outputs == 1) else widths


def add_vectors(stage: te.Stage, lane: int) -> None:
    """Add up vectors along the axis number `lane`, inside of the loops over what is reduced."""
    op: Any = stage.op
    axes = list(op.axis)
    lanes = axes.pop(lane)
    stage.reorder(*axes, *op.reduce_axis, lanes)
    stage.vectorize(lanes)


def ask_ahead(kernel: Kernel, stage: te.Stage, loop: int, elements: int, far: Sequence[te.Tensor]) -> None:
    """Prefetch what later iterations of loop number `loop`, which read so many elements each, read of the tensors `far`."""
    for tensor in far:
        stage.prefetch(tensor, stage.leaf_iter_vars[loop], max(1, bytes_ahead(kernel) // (elements * tensor.dtype.bytes)))


def keep_in_registers(kernel: Kernel, partial: list[Any], across: int, cost: int, far: Sequence[te.Tensor]) -> Any:
    """Compute the `partial` results of each row in registers; returns the stage that stores the last of them after the row.

    far: what is asked for vectors ahead, or rows ahead where the vectors of a row have no loop.
    """
    s = kernel.schedule
    outputs = [partial[-1].output(v) for v in range(partial[-1].num_outputs)]
    copies = s.cache_write(outputs, "local")
    made = [*partial[:-1], (copies[0] if isinstance(copies, list) else copies).op]
    stored = s[outputs[0]].op
    for op in made:
        if op is not made[-1]:
            s[op].set_scope("local")
        add_vectors(s[op], -1)
        s[op].compute_at(s[stored], stored.axis[across])
        extent = length_of(s[op].op)
        elements = extent_of(s[op].op.axis[-1]) or 1
        if extent is not None and extent * (1 + cost) <= UNROLLED:
            for axis in s[op].op.reduce_axis:
                s[op].unroll(axis)
            if op is made[0]:
                ask_ahead(kernel, s[stored], s[stored].leaf_iter_vars.index(stored.axis[across]), extent * elements, far)
        elif op is made[0]:
            ask_ahead(kernel, s[op], -2, elements, far)
        cost = 0
    s[stored].vectorize(stored.axis[-1])
    return stored


def add_across(stage: te.Stage, across: int) -> None:
    """Combine what is there of each row in vectors across the rows, which are neighbours along the axis number `across`."""
    op: Any = stage.op
    axes = list(op.axis)
    row = axes.pop(across)
    stage.reorder(*axes, *op.reduce_axis, row)
    stage.vectorize(row)


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
    extent, unit = extent_of(loop), _UNROLL * kernel.lanes(op)
    outer, _ = s[op].split(loop, factor=_CHUNK if extent is None else chunk_length(kernel.target, extent, _CHUNK, unit))
    factored = s.rfactor(op.output(0), outer)
    chunks = (factored[0] if isinstance(factored, list) else factored).op
    lanes = kernel.lanes(kernel.anchor)
    partial = []
    (loop,) = chunks.reduce_axis
    together = combines_lanes(kernel, op, formula)
    for width in (_UNROLL * lanes,) if together else (_UNROLL * lanes, lanes):
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
    ask_ahead(kernel, s[partial[0]], -2, _UNROLL * lanes, far_arguments(kernel))
    if together:
        s[chunks].vectorize(s[chunks].op.reduce_axis[0])
    else:
        combine_lanes(s[chunks], lanes)
    if kernel.fused and s[kernel.tail].op.axis:
        s[op].compute_at(s[kernel.tail], s[kernel.tail].op.axis[-1])
