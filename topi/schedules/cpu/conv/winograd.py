"""Winograd of transformed weights by bands of tiles, which stay in the second cache from the image to the result.

    copy of the weights, by panels                           before, in parallel
    for image, band of some rows of tiles, in parallel:
        the rows of the image with their border; the same with channels innermost
        for tile, channels:                       B^T tile B
        for entry of a tile, panel, tiles:        sums += weights * transformed tiles
        for tile, channels:                       A^T sums A
        for row, pixels, channels:                results, with what follows the convolution

One after the other for all tiles, the transformed tiles are written to memory and read again, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tedsl import te, tir
from topi.kinds import InjectiveOp, TransformOp
from topi.schedules.cpu.parallel import keep_cores_busy, share_out
from topi.schedules.cpu.tiles import divisors, tile_of
from topi.schedules.cpu.transforms import schedule_transform
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_NEAR = 0.6  # of the second cache, in which all weights stay beside the tiles of a band
_BAND = 1.25  # times the second cache that the tiles of a band take: of those the half is used at a time


class _Steps(NamedTuple):
    """The kernels of a convolution by winograd, in the order of the data, and the operation that pads it."""

    border: Any
    last: Kernel
    data: Kernel
    sums: Kernel
    inverse: Kernel
    result: Kernel
    weights: te.Tensor


def schedule_by_bands(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Schedules the kernels of convolutions that had better be computed by bands; returns the others."""
    left = list(kernels)
    for kernel in kernels:
        steps = _steps_of(kernel, kernels)
        rows = _rows_of_band(steps) if steps is not None else None
        if steps is not None and rows is not None:
            _schedule(steps, rows)
            left = [one for one in left if one not in steps]
    return left


def _steps_of(inverse: Kernel, kernels: Sequence[Kernel]) -> _Steps | None:
    """The kernels around that of A^T sums A; None for other kernels, and where anything else reads what is between them."""
    if not _is_transform(inverse.tail, "winograd_result"):
        return None
    made_by = {kernel.tail: kernel for kernel in kernels}
    sums = made_by.get(inverse.record.stages[0].op.input_tensors[0].op)
    if sums is None:
        return None
    loads = sums.formula(sums.anchor).loads
    read = [tensor.op for tensor in sums.anchor.input_tensors]
    data = next((made_by.get(op) for op in read if _is_transform(op, "winograd_data")), None)
    weights = [load.producer for load in loads if isinstance(load.producer.op, te.PlaceholderOp)
               and load.indices[-1] is sums.inlined(sums.anchor).reduce_axis[0].var]
    last = made_by.get(data.record.stages[0].op.input_tensors[0].op) if data is not None else None
    result = next((kernel for kernel in kernels if kernel is not inverse and _stores_result(kernel, inverse)), None)
    if data is None or last is None or result is None or len(weights) != 1 or type(last.record) is not InjectiveOp:
        return None
    chain = [last, data, sums, inverse]
    readers = [sum(any(tensor.op is one.tail for tensor in stage.op.input_tensors) for stage in inverse.schedule.stages)
               for one in chain]
    if any(one.tail in inverse.schedule.outputs for one in chain) or set(readers) != {1}:
        return None
    border = next((tensor.op for tensor in last.tail.input_tensors if _is_inlined(inverse.schedule, tensor.op)), None)
    return _Steps(border, last, data, sums, inverse, result, weights[0])


def _is_transform(op: Any, operator: str) -> bool:
    record = getattr(op, "info", None)
    return isinstance(record, TransformOp) and record.operator == operator and len(record.stages) == 1


def _is_inlined(s: te.Schedule, op: Any) -> bool:
    return isinstance(op, te.ComputeOp) and s[op].attach_type == te.schedule.AttachType.INLINE


def _stores_result(kernel: Kernel, inverse: Kernel) -> bool:
    """Whether `kernel` stores elements of (image, channel, row, column) that are computed from those of the convolution at the
    same place.
    """
    if kernel.fused or kernel.anchor.reduce_axis or not isinstance(kernel.record, (te.ElementwiseOp, InjectiveOp)):
        return False
    conv = next((op for stage in kernel.schedule.stages for op in [stage.op]
                 if getattr(getattr(op, "info", None), "operator", "") == "conv2d_winograd_nchw"
                 and any(tensor.op is inverse.tail for tensor in op.input_tensors)), None)
    if conv is None:
        return False
    read, (own,) = (kernel.formula(op).reads_of(kernel.inlined(inverse.tail)) for op in (kernel.tail, conv))
    if not read or [extent_of(axis) for axis in kernel.tail.axis] != [extent_of(axis) for axis in conv.axis]:
        return False
    places = {axis.var: mine.var for axis, mine in zip(kernel.inlined(conv).axis, kernel.inlined(kernel.tail).axis)}
    wanted = [tir.stmt_functor.substitute(index, places) for index in own.indices]
    return all(all(map(tir.analysis.expr_deep_equal, load.indices, wanted)) for load in read)


def _rows_of_band(steps: _Steps) -> int | None:
    """The rows of tiles in a band; None where weights do not stay in the second cache, or bands leave cores without work.

    Without registers for masks the rows that two bands read cost what is saved.
    """
    kernel, m = steps.result, extent_of(steps.inverse.tail.axis[1])
    images, _, height, width = map(extent_of, kernel.tail.axis)
    entries = product([extent_of(axis) for axis in (*steps.sums.tail.axis[:2], steps.sums.tail.axis[3])])
    channels, results = extent_of(steps.sums.anchor.reduce_axis[0]), extent_of(steps.sums.tail.axis[3])
    if not m or not images or not height or not width or not entries or not channels or not results:
        return None
    if not kernel.target.has_mask_registers:
        return None
    if len({str(one.dtype) for one in (steps.weights, kernel.tail.output(0), steps.sums.tail.output(0))}) > 1:
        return None
    element, machine = steps.weights.dtype.bytes, kernel.target.machine
    if entries * channels * element > _NEAR * machine.l2.size:
        return None
    down, across = -(-height // m), -(-width // m)
    row = across * entries // results * (channels + results) * element
    return next((rows for rows in reversed(divisors(down)) if (rows == 1 or rows * row <= _BAND * machine.l2.size)
                 and keep_cores_busy(kernel.target, images * down // rows)), None)


def _schedule(steps: _Steps, rows: int) -> None:
    s, kernel, m = steps.result.schedule, steps.result, extent_of(steps.inverse.tail.axis[1]) or 1
    tail, lanes = s[kernel.tail], kernel.lanes(kernel.tail)
    n, c, y, x = tail.op.axis
    band, y = tail.split(y, factor=rows * m)
    xo, xi = tail.split(x, factor=lanes)
    co, ci = tail.split(c, factor=lanes)
    tail.reorder(n, band, y, xo, co, ci, xi)
    tail.vectorize(xi)
    sums = steps.sums.anchor
    place = share_out(tail, [n, band], product([extent_of(axis) for axis in (*sums.axis, *sums.reduce_axis)]))
    for one in (steps.data, steps.inverse):
        one.within = True
        schedule_transform(one)
    for op in (steps.last.tail, steps.data.tail, steps.sums.tail, steps.inverse.tail):
        s[op].compute_at(tail, place)
    _turn(steps, tail, place)
    _multiply(steps, rows * -(-(extent_of(x) or 1) // m))


def _turn(steps: _Steps, tail: Any, place: Any) -> None:
    """Turns the rows of the image, from a copy with their border, by tiles in registers."""
    s = steps.result.schedule
    stage, lanes = s[steps.last.tail], steps.last.lanes(steps.last.tail)
    n, y, x, c = stage.op.axis
    co, ci = stage.split(c, factor=lanes)
    stage.vectorize(ci)
    if steps.border is not None:
        border = s[steps.border]
        border.compute_at(tail, place)
        border.vectorize(border.op.axis[-1])
        xo, xi = stage.split(x, factor=lanes)
        stage.reorder(n, y, xo, co, xi, ci)


def _multiply(steps: _Steps, tiles: int) -> None:
    """Sums of so many tiles, from panels of weights that are copied before."""
    s, kernel, lanes = steps.result.schedule, steps.sums, steps.sums.lanes(steps.sums.anchor)
    tall, wide = tile_of(tiles, extent_of(kernel.tail.axis[3]), extent_of(kernel.anchor.reduce_axis[0]), lanes, kernel.target,
                         block=tiles)
    copy = s[s.cache_read(steps.weights, "global", [kernel.anchor])]
    copy.transform_layout(lambda e, v, o, k: [e, v, o // wide, k, o % wide])
    sums, stage = s.cache_write(kernel.tail.output(0), "local").op, s[kernel.tail]
    *entry, p, o = stage.op.axis
    oo, oi = stage.split(o, factor=wide)
    po, pi = stage.split(p, factor=tall)
    stage.reorder(*entry, oo, po, pi, oi)
    stage.unroll(pi)
    stage.vectorize(oi)
    local = s[sums]
    local.compute_at(stage, po)
    *entry, p, o = local.op.axis
    local.reorder(*entry, *local.op.reduce_axis, p, o)
    local.unroll(p)
    local.vectorize(o)
    *panels, k, lane = copy.op.axis
    vector, lane = copy.split(lane, factor=lanes)
    copy.reorder(*panels, vector, k, lane)
    copy.vectorize(lane)
    share_out(copy, panels, product([constant(extent) for extent in steps.weights.shape]))
