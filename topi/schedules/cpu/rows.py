"""Operators that read each row several times: softmax, layer_norm. All steps of a row run while it is in L1.

reduced dimensions last:     for each row in parallel: statistics, intermediate values, the result; vectors run along the row
reduced dimension not last:  the same for some neighbouring rows at a time, one in each lane of the vectors
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te
from topi.kinds import SoftmaxOp
from topi.schedules.cpu.elements.memory import goes_past_caches
from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.reduce import UNROLLED, combines_lanes, last_of_many, reduce_in_lanes, rows_of_block, share_out_blocks
from topi.schedules.cpu.vectors import vectorize, vectors_together
from topi.schedules.formulas import constant, extent_of, product, variables_in
from topi.schedules.kernel import Kernel

_UNROLL = 4  # vectors of a row at a time
_FEW = 4  # rows of a block, at least
_ROWS = 64  # of a block: they wait together for the end of each sum, for quotients and roots
_MANY = 8  # rows of a block that are worth more than to ask for the next row
_LONG = 8  # vectors of a row that is computed by itself, if it comes from afar
_AFAR = 32  # vectors of the rows of a block that come from afar
_SHARE = 2  # neighbouring rows that are computed together
_STRAIGHT = 4  # operations on vectors of 512 bits of a row of softmax without a loop: more cost builds time, and gain nothing
_SIMPLE = 3  # operations of a step of several vectors, which is written once, in a loop: its counter is little beside it
_COMPUTES = 8  # operations of a step that takes as long as lines of memory, which are asked for meanwhile
_NEIGHBOURS = 4  # vectors of neighbouring rows


def schedule_softmax(kernel: Kernel) -> None:
    """Compute maximum, exponentials and their sum row by row."""
    _schedule(kernel, (kernel.record.axis,))


def schedule_normalize(kernel: Kernel) -> None:
    """Compute mean and variance row by row; values that depend on the row alone are computed once per row."""
    _schedule(kernel, kernel.record.axes)


def schedule_group(kernel: Kernel) -> None:
    """Schedule a group of formulas over rows that fusion put together."""
    _along_rows(kernel, len(kernel.tail.axis) - kernel.kept)


def _schedule(kernel: Kernel, axes: Sequence[int]) -> None:
    s = kernel.schedule
    if kernel.fused:
        s[kernel.anchor].compute_inline()
    rank = len(kernel.tail.axis)
    if rank < len(kernel.anchor.axis):
        _along_groups(kernel, axes[0] - 1)
    elif tuple(axes) == tuple(range(rank - len(axes), rank)):
        _along_rows(kernel, len(axes))
    elif rank - 1 not in axes:
        _across_rows(kernel, axes)


def _stages(kernel: Kernel) -> list[Any]:
    """The stages computed for each row, producers first."""
    return [*kernel.inside, *[tensor.op for tensor in getattr(kernel.record, "stages", ())]]


def _work(kernel: Kernel) -> int | None:
    if kernel.within:
        return 0
    count = product([extent_of(axis) for axis in kernel.tail.axis])
    return None if count is None else 4 * count


def _block(kernel: Kernel, rows: list[Any], columns: int | None) -> int:
    """The rows of a block, 1 where each is computed by itself.

    Rows that do not fit the second cache are by themselves, too, and the next one is asked for meanwhile, unless many of them
    fit the nearest cache with all that is computed of their elements. Where what the second cache does not hold is as far as
    memory, they always are, and short ones are few: a block waits at its first step, and processors do not look ahead as far as
    the next one.
    """
    machine = kernel.target.machine
    count = product([extent_of(axis) for axis in rows])
    computed = [op for op in (*_stages(kernel), kernel.tail) if not op.reduce_axis and len(op.axis) == len(kernel.tail.axis)]
    row = (columns or 0) * kernel.anchor.output(0).dtype.bytes
    large, vectors = _is_large(kernel, count, row), -(-(columns or 0) // kernel.lanes(kernel.tail))
    from_afar = large and machine.has_far_l3 and kernel.blocks is None and not kernel.within
    if (from_afar and vectors >= _LONG) or (large and _MANY * row * (1 + len(computed)) > machine.l1.size):
        return 1
    block = rows_of_block(kernel, rows, columns, _work(kernel), _ROWS)
    fewer = math.gcd(block, 1 << (_AFAR // vectors).bit_length() - 1) if from_afar and vectors else block
    return fewer if fewer >= _FEW else block


def _is_large(kernel: Kernel, count: int | None, row: int) -> bool:
    """Whether so many rows of so many bytes do not fit the second cache: beside results, if what it does not hold is far."""
    machine = kernel.target.machine
    return count is not None and (2 * count * row >= machine.l2.size if machine.has_far_l3 else count * row > machine.l2.size)


def _along_rows(kernel: Kernel, reduced: int) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    axes = list(kernel.tail.axis)
    rows, own = axes[:len(axes) - reduced], axes[len(axes) - reduced:]
    block = _block(kernel, rows, product([extent_of(axis) for axis in own]))
    across = last_of_many(rows) if block > 1 else None
    straight = _STRAIGHT if isinstance(kernel.record, SoftmaxOp) and kernel.target.vector_bits >= 512 else UNROLLED
    inside: list[Any] = []
    promised: list[tuple[Any, Any]] = []
    asked = _asked(kernel, rows, extent_of(own[0]), block) if len(own) == 1 else {}
    for op in _stages(kernel):
        formula = kernel.formula(op)
        loops = 0 if op in asked else straight  # written without a loop, what is asked for would be asked for at once
        partial = reduce_in_lanes(kernel, op, formula, across, straight=loops) if op.reduce_axis else []
        promised += [(part, op) for part in (*partial, op)]
        inside += [*partial, op]
    if across is not None:
        rows[across], in_block = tail.split(rows[across], factor=block)
        tail.reorder(*rows, in_block)
    place = share_out_blocks(kernel, tail, rows, last_of_many(rows) if across is None else across, block, _work(kernel))
    for op in inside:
        if place is not None:
            s[op].compute_at(tail, place)
    for op in _stages(kernel):
        if op.reduce_axis:
            continue
        if len(op.axis) == len(axes):
            _vectors(kernel, op, list(op.axis)[len(axes) - reduced:])
        elif across is not None:
            s[op].vectorize(op.axis[across])
    _vectors(kernel, kernel.tail, own)
    if across is not None and len(own) == 1:
        _rows_together(kernel, in_block, block)
    for part, op in promised:
        _promise(kernel, part, op)
    for op, tensors in asked.items():
        _ask(kernel, _reader(kernel, op), tensors, extent_of(own[0]) or 0)


def _along_groups(kernel: Kernel, channel: int) -> None:
    """Normalize groups of channels, dimension number `channel` of the tail: each group is a row."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    axes = list(kernel.tail.axis)
    group, member = tail.split(axes[channel], factor=extent_of(kernel.anchor.axis[channel + 1]))
    outer, inner = [*axes[:channel], group], axes[channel + 1:]
    tail.reorder(*outer, member, *inner)
    place = share_out(tail, outer, _work(kernel))
    for op in _stages(kernel):
        partial = reduce_in_lanes(kernel, op, kernel.formula(op)) if op.reduce_axis else []
        for part in (*partial, op):
            s[part].compute_at(tail, place)
    if inner:
        _vectors(kernel, kernel.tail, inner)


def _rows_together(kernel: Kernel, row: Any, block: int) -> None:
    """Compute vectors of neighbouring rows one after the other, if those of all rows read vectors that are the same: once.

    row: the loop of the tail over `block` rows, innermost but for those over a row.
    """
    stage, formula = kernel.schedule[kernel.tail], kernel.formula(kernel.tail)
    chunks, *lane = stage.leaf_iter_vars[stage.leaf_iter_vars.index(row) + 1:]
    if not lane:
        return
    of_rows = {axis.var for axis in kernel.tail.axis[:-1]}
    shared = any(of_rows.isdisjoint(set().union(*map(variables_in, load.indices))) for load in formula.loads)
    together = _SHARE if shared and block % _SHARE == 0 else 1
    extent, lanes = extent_of(kernel.tail.axis[-1]), kernel.lanes(kernel.tail)
    vectors = -(-(extent or UNROLLED) // lanes)
    counted = together == 1 and formula.cost <= _SIMPLE and _width(extent, lanes) > lanes
    if not counted and vectors * together * formula.cost <= UNROLLED:
        stage.unroll(chunks)
    if together > 1:
        pair, row = stage.split(row, factor=together)
        stage.reorder(pair, chunks, row, *lane)
        stage.unroll(row)


def _promise(kernel: Kernel, part: Any, op: Any) -> None:
    """Tell passes what holds in the loops of `part`, a part of the step `op`, if that is one of softmax.

    Elements are at most their maximum. A NaN of a row need not be its maximum: its exponential is NaN, and the sum of all.
    """
    if not isinstance(kernel.record, SoftmaxOp):
        return
    peak, exponential, *_ = [tensor.op for tensor in kernel.record.stages]
    kind = {peak: "maxima_without_nan", exponential: "exp_at_most_one"}.get(op)
    if kind is not None:
        stage = kernel.schedule[part]
        stage.pragma(stage.leaf_iter_vars[0], kind)


def _asked(kernel: Kernel, rows: list[Any], columns: int | None, block: int) -> dict[Any, list[tuple[te.Tensor, int]]]:
    """What the steps of a row ask for: for each step the arguments, and how many rows ahead. 0 rows: the same places of the
    result, in order to write them.

    The next row of arguments that do not fit the second cache (`_is_large`), where a `block` is one row: at the second look at
    this one, for processors look ahead within a page. The first look, for a maximum or a mean, waits for memory; the second
    one computes. Lines of a result that does not stay in the first cache, while half of that holds those of a block: at the
    last look of a step before it. They are written in a short loop at the end, which waited for them. Not at a step of few
    operations of a row that is alone: it is over before they are there.
    """
    tail, near, alone = kernel.tail, kernel.target.machine.l1.size, block == 1
    looks: dict[te.Tensor, list[Any]] = {}
    for op in (*_stages(kernel), tail):
        for tensor in dict.fromkeys([load.producer for load in kernel.formula(op).loads]):
            if isinstance(tensor.op, te.PlaceholderOp) and len(tensor.shape) == len(tail.axis):
                looks.setdefault(tensor, []).append(op)
    asked: dict[Any, list[tuple[te.Tensor, int]]] = {}
    if columns is None or kernel.blocks is not None:
        return asked
    if alone and product([extent_of(row) for row in rows]) != 1:
        for tensor, (_, *later) in looks.items():
            if later and _is_large(kernel, product([constant(extent) for extent in tensor.shape]), tensor.dtype.bytes):
                asked.setdefault(later[0], []).append((tensor, 1))
    size = product([extent_of(axis) for axis in tail.axis])
    of = tail.output(0).dtype.bytes if tail in kernel.schedule.outputs else 0
    before = [(tensor, op) for tensor, ops in looks.items() for op in ops
              if op is not tail and (not op.reduce_axis or combines_lanes(kernel, op, kernel.formula(op)))]
    is_far = size is not None and 2 * size * of > near and 2 * block * columns * of <= near
    if is_far and before and not kernel.within and not goes_past_caches(kernel, tail):
        tensor, op = max(before, key=lambda look: _stages(kernel).index(look[1]))
        if not alone or kernel.formula(op).cost >= _COMPUTES:
            asked.setdefault(op, []).append((tensor, 0))
    return asked


def _reader(kernel: Kernel, op: Any) -> te.Stage:
    """The stage whose loops read what the step `op` reads: that of its partial results, if it has some."""
    s = kernel.schedule
    steps, at = {s[step].op for step in _stages(kernel)}, s[op].op
    while parts := [read.op for read in at.input_tensors if getattr(read.op, "reduce_axis", ()) and read.op not in steps]:
        at = parts[0]
    return s[at]


def _ask(kernel: Kernel, stage: te.Stage, asked: list[tuple[te.Tensor, int]], columns: int) -> None:
    """Have the loop over the vectors of a row ask for what `_asked` says."""
    *_, chunks, _ = stage.leaf_iter_vars
    count = extent_of(chunks) or -(-columns // _width(columns, kernel.lanes(kernel.tail)))
    if count > 1:
        for tensor, ahead in asked:
            stage.prefetch(tensor, chunks, ahead * count, into=None if ahead else kernel.tail.output(0))
        stage.pragma(chunks, "auto_unroll_max_step", _UNROLL)  # the lines of an iteration without a loop


def _vectors(kernel: Kernel, op: Any, axes: list[Any]) -> None:
    """Vectorize the elements of a row, several vectors at a time."""
    stage, lanes = kernel.schedule[op], kernel.lanes(op)
    loop = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    extent = product([extent_of(axis) for axis in axes])
    together = vectors_together(kernel, kernel.formula(op), extent, lanes)
    vectorize(stage, loop, extent, max(_width(extent, lanes), together * lanes))


def _width(extent: int | None, lanes: int) -> int:
    """The elements of a row that are taken at a time."""
    return lanes * (_UNROLL if extent is None or extent % (lanes * _UNROLL) == 0 else 1)


def _across_rows(kernel: Kernel, axes: Sequence[int]) -> None:
    """Vectorize across neighbouring rows, where the reduced dimension is not the last."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    own = list(kernel.tail.axis)
    lanes = kernel.lanes(kernel.tail)
    extent, width = extent_of(own[-1]), lanes * _NEIGHBOURS
    if extent is not None and extent < width:
        width = -(-extent // lanes) * lanes if extent > lanes else max(extent, 1)
    block, lane = tail.split(own[-1], factor=width)
    kept = [own[d] for d in range(len(own) - 1) if d not in axes]
    along = [own[d] for d in axes]
    tail.reorder(*kept, block, *along, lane)
    row = share_out(tail, [*kept, block], _work(kernel))
    tail.vectorize(lane)
    for op in _stages(kernel):
        stage = s[op]
        stage.compute_at(tail, row)
        last = op.axis[-1]
        if op.reduce_axis:
            stage.reorder(*op.axis[:-1], *op.reduce_axis, last)
        _, lane = stage.split(last, factor=width)
        stage.vectorize(lane)
