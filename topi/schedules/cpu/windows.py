"""Windows over images whose rows are contiguous, channel by channel: pools and depthwise convolutions.

    for each channel, each block of its rows, in parallel:
        these rows with their border, which stay in the nearest cache
        for some rows, a piece of them:      all places of the window, with the results in registers; of depthwise convolutions
                                             one column of the window after the other

Vectors of results are whole: the last one of a row goes beyond it, and is stored with a mask.
"""

from __future__ import annotations

import math
from typing import Any

from tedsl import te
from topi.kinds import DepthwiseConvOp, PackedDepthwiseConvOp, PoolOp
from topi.schedules.cpu.parallel import Cover, share_out, whole_loops
from topi.schedules.cpu.tiles import registers
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_INLINE = 2  # what a stage says that is computed where it is read
_UNROLLED = 128  # products of a piece without a loop: in more than that, rows that are read twice would take registers
_FULL = 0.75  # of the nearest cache
_SHORT = 6  # vectors of a row with its border that is copied without a loop
_NARROWEST = 4  # lanes of a vector
_MOST_VECTORS = 4  # of a row in a piece: rows below one another share what windows read, vectors beside one another do not
_APART = 2  # vectors of results in a row that has its columns reduced first, and more
_SHUFFLED = 3  # loads that take the time of a vector of elements apart: two loads, and shuffles of each
_MOST_ROWS = 7  # of results in a piece whose windows do not have rows of the image reduced once: they keep what they read twice
_FEWEST_ROWS = 4  # of results in a piece without a loop: fewer do not share enough
_SPARE = 4  # registers beside those of results


def border_of(op: Any) -> tuple[Any, ...]:
    """The operation that makes the border of the image, if it is computed for blocks of rows, or where it is read; () for other
    operations.
    """
    info: Any = getattr(op, "info", None)
    if not (is_over_rows(op) or is_over_channels(op)) or type(info.padded.op) is not te.ComputeOp or info.padded is info.data:
        return ()
    return (info.padded.op,)


def is_over_rows(op: Any) -> bool:
    """Whether `op` is a window over an image with known extents whose rows are contiguous."""
    info = getattr(op, "info", None)
    if not isinstance(info, (PoolOp, DepthwiseConvOp)) or info.layout not in ("NCHW", "NCW", "NCDHW"):
        return False
    return product([extent_of(axis) for axis in (*op.axis[1:], *op.reduce_axis)]) is not None


def is_over_channels(op: Any) -> bool:
    """Whether `op` is a depthwise convolution with channels innermost, each of which has one result."""
    info = getattr(op, "info", None)
    if isinstance(info, PackedDepthwiseConvOp):
        return constant(info.kernel.shape[0]) == constant(info.data.shape[1]) and \
            constant(info.kernel.shape[-1]) == constant(info.data.shape[-1]) is not None
    return isinstance(info, DepthwiseConvOp) and info.layout.endswith("C") and constant(info.kernel.shape[-1]) == 1


def reads_alone(kernel: Kernel) -> bool:
    """Whether what the window reads is stored, or is a border that nothing else reads."""
    border = border_of(kernel.anchor)
    if not border:
        return is_over_rows(kernel.anchor)
    others = [stage for stage in kernel.schedule.stages if stage.op is not kernel.anchor]
    is_read = any(tensor.op is border[0] for stage in others for tensor in stage.op.input_tensors)
    return kernel.schedule[border[0]].attach_type == _INLINE and not is_read


def schedule_windows(kernel: Kernel) -> None:
    """Schedule a window over rows."""
    s, border = kernel.schedule, border_of(kernel.anchor)
    points = product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])
    down, vectors, lanes = _piece(kernel)
    sums = kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op
    tail = s[kernel.tail]
    n, c, *image, x = tail.op.axis
    xo, xi = tail.split(x, factor=vectors * lanes)
    rows, inside, covers = [], [], {axis: Cover(extent_of(axis), 1) for axis in (n, c, *image)}
    if image:
        high, some = extent_of(image[-1]), _rows_of_block(kernel, down)
        block, y = tail.split(image[-1], factor=some)
        covers[block] = Cover(high, some)
        yo, yi = tail.split(y, factor=down)
        rows, inside = [yo], [yi]
        image[-1] = block
    tail.reorder(n, c, *image, *rows, xo, *inside, xi)
    for loop in inside:
        tail.unroll(loop)
    tail.vectorize(xi)
    outer = [n, c, *image]
    shared = whole_loops(kernel.target, outer, covers)
    place = share_out(tail, shared, points)
    place = place if shared == outer else outer[-1]
    read = _rows_read(kernel, down)
    if _shares_columns(kernel):
        _sum_up_columns_once(kernel, sums, rows[0], xo)
    elif read is None:
        s[sums].compute_at(tail, xo)
        by_columns = image and not isinstance(kernel.record, PoolOp)
        _sum_up_by_columns(s[sums], down) if by_columns else _sum_up(s[sums], down * vectors)
    else:
        _sum_up_rows_once(s, sums, (tail, xo), read * vectors)
    if border and any((*kernel.record.before, *kernel.record.after)) and not _masks_the_border(kernel):
        padded = s[border[0]]
        padded.compute_at(tail, place)
        vector, lane = padded.split(padded.op.axis[-1], factor=kernel.lanes(kernel.anchor))
        if -(-(constant(border[0].output(0).shape[-1]) or 0) // kernel.lanes(kernel.anchor)) <= _SHORT:
            padded.unroll(vector)  # only the vectors at the ends hold the border
        padded.vectorize(lane)


def _masks_the_border(kernel: Kernel) -> bool:
    """Whether windows read the image itself, with masks, and not a copy with its border: where masks take no time, are not made
    again in a loop over places of the window, and elements are stored that are read several times.
    """
    data, target = kernel.record.data, kernel.target
    if not target.has_mask_registers or not target.can_mask(data.dtype):
        return False
    if isinstance(kernel.record, PoolOp) and (_rows_unrolled(kernel) < _FEWEST_ROWS or (
            len(kernel.tail.axis) > 3 and _shares_columns(kernel))):
        return False
    return isinstance(data.op, te.PlaceholderOp) or kernel.schedule[data.op].attach_type != _INLINE


def _shares_columns(kernel: Kernel) -> bool:
    """Whether the windows of a row of a pool share columns, and start apart: then the columns of a row of results are reduced
    first, from contiguous vectors, and only what they give is taken apart by shuffles, not each row of the image: if that is
    less work.
    """
    record = kernel.record
    if not isinstance(record, PoolOp) or record.operator not in ("max", "sum") or len(record.kernel) != 2:
        return False
    (height, width), step = record.kernel, record.strides[1]
    place = 1 if registers(kernel.target) == 32 else _SHUFFLED  # of two vectors, in one instruction
    if height * step + width * place >= height * width * place:
        return False
    results = extent_of(kernel.tail.axis[-1]) or 1  # few wait for the vectors just stored, which they read in parts
    return results > _APART * kernel.lanes(kernel.anchor) and record.dilation[1] == 1 and width > step > 1 and height > 1


def _sum_up_columns_once(kernel: Kernel, sums: Any, row: Any, piece: Any) -> None:
    """All columns of a row of results, then these results.

    row, piece: loops of the tail, over rows of results and pieces of them.
    """
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    op, lanes = s[sums].op, kernel.lanes(kernel.anchor)
    places = [extent_of(axis) or 1 for axis in op.reduce_axis]
    shared = s[s.rfactor(op.output(0), op.reduce_axis[1], along=op.axis[3])]
    shared.set_scope("local")
    shared.compute_at(tail, row)
    columns = ((extent_of(kernel.tail.axis[-1]) or 1) - 1) * kernel.record.strides[1] + kernel.record.kernel[1]
    vector, lane = shared.split(shared.op.axis[3], factor=lanes)
    shared.reorder(*shared.op.axis[:3], vector, *shared.op.reduce_axis, lane)
    s[sums].compute_at(tail, piece)
    s[sums].reorder(*s[sums].op.axis[:3], *s[sums].op.reduce_axis, s[sums].op.axis[3])
    vectors = -(-columns // lanes)
    for stage, count, whole in ((shared, places[0], vector), (s[sums], places[1], piece)):
        if count <= _UNROLLED:
            stage.unroll(stage.op.reduce_axis[0])
        if count * vectors <= _UNROLLED:  # only the last vector has a mask
            (tail if whole is piece else stage).unroll(whole)
        stage.vectorize(lane if whole is vector else stage.op.axis[3])


def _rows_read(kernel: Kernel, down: int) -> int | None:
    """The rows that the windows of `down` rows of a pool read, if to reduce each of them once is less work; else None."""
    record = kernel.record
    if not isinstance(record, PoolOp) or len(record.kernel) != 2 or len(kernel.anchor.input_tensors) > 1:
        return None  # with values of its own for each place of the window, results that share a row do not share a maximum
    (height, width), common = record.kernel, math.gcd(record.strides[0], record.dilation[0])
    step, apart = record.strides[0] // common, record.dilation[0] // common
    rows: int = (down - 1) * step + (height - 1) * apart + 1
    return rows if 1 in (step, apart) and rows * width + down * height < down * height * width else None


def _sum_up_rows_once(s: te.Schedule, sums: Any, place: tuple[Any, Any], vectors: int) -> None:
    """The rows that windows of a piece share one after the other, then the results.

    place: the stage and its loop where both are computed. vectors: of the rows.
    """
    op = s[sums].op
    shared = s.rfactor(op.output(0), op.reduce_axis[0], along=op.axis[2])
    s[shared].set_scope("local")
    for stage, count in ((s[shared], vectors), (s[sums], 0)):
        n, c, row, x = stage.op.axis
        (window,) = stage.op.reduce_axis
        stage.compute_at(*place)
        if count * (extent_of(window) or 1) <= _UNROLLED:
            stage.reorder(n, c, row, window, x)
            stage.unroll(window)
        else:
            stage.reorder(n, c, window, row, x)
        stage.unroll(row)
        stage.vectorize(x)


def _sum_up(stage: Any, vectors: int) -> None:
    """The places of the window one after the other, each for all results of a piece."""
    *axes, x = stage.op.axis
    window = list(stage.op.reduce_axis)
    down = axes[2:]
    stage.reorder(*axes[:2], *window, *down, x)
    count = vectors
    for loop in reversed(window):
        count *= extent_of(loop) or 1
        if count <= _UNROLLED:
            stage.unroll(loop)
    for loop in down:
        stage.unroll(loop)
    stage.vectorize(x)


def _sum_up_by_columns(stage: Any, rows: int) -> None:
    """The columns of the window one after the other, in a loop if there are many products; there all rows of a piece share the
    rows of the image, and the masks of their borders.
    """
    *axes, x = stage.op.axis
    *outer, row, column = stage.op.reduce_axis
    stage.reorder(*axes[:2], *outer, column, row, *axes[2:], x)
    few = rows * (product([extent_of(row), extent_of(column)]) or _UNROLLED) <= _UNROLLED
    for loop in (*([column] if few else []), row, *axes[2:]):
        stage.unroll(loop)
    stage.vectorize(x)


def _rows_unrolled(kernel: Kernel) -> int:
    """The rows of a piece, of one vector each, for which all places of the window are without a loop."""
    return _UNROLLED // (product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or _UNROLLED)


def _piece(kernel: Kernel) -> tuple[int, int, int]:
    """Returns the rows of a piece, its vectors in a row, and their lanes.

    Vectors are as wide as fill the row; rows are as many as keep the results of the piece in registers, one where columns are
    shared; of depthwise convolutions with the rows of the image, each of which is read once for a column of the window.
    """
    lanes, width = kernel.lanes(kernel.anchor), extent_of(kernel.tail.axis[-1]) or 1
    while lanes // 2 >= max(width, _NARROWEST):
        lanes //= 2
    images = len(kernel.tail.axis) > 3
    counts = range(1, _MOST_VECTORS + 1) if images or isinstance(kernel.record, PoolOp) else range(_MOST_VECTORS, 0, -1)
    vectors = min(counts, key=lambda count: -(-width // (count * lanes)) * count)
    if not images or _shares_columns(kernel):
        return 1, vectors, lanes
    height, room = extent_of(kernel.tail.axis[-2]) or 1, registers(kernel.target)
    if not isinstance(kernel.record, PoolOp):
        most = _rows_in_registers(kernel)
        equal = next((rows for rows in range(most, most * 3 // 5, -1) if height % rows == 0), None)
        return equal or -(-height // -(-height // most)), vectors, lanes
    most = max(1, (room - _SPARE) * 3 // 4 // vectors)
    if _rows_read(kernel, -(-height // -(-height // most))) is not None:
        return -(-height // -(-height // most)), vectors, lanes
    most = max(1, min(most, _MOST_ROWS // vectors))
    equal = next((rows for rows in range(most, most * 2 // 3, -1) if height % rows == 0), None)
    return equal or -(-height // -(-height // most)), vectors, lanes


def _rows_in_registers(kernel: Kernel) -> int:
    """The most rows of results whose sums, a vector each, fit the registers together with the rows that their windows read."""
    step: int = kernel.record.strides[-2]
    apart: int = kernel.record.dilation[-2]
    window = ((extent_of(kernel.anchor.reduce_axis[-2]) or 1) - 1) * apart + 1
    return max(1, (registers(kernel.target) + step - window) // (1 + step))


def _rows_of_block(kernel: Kernel, down: int) -> int:
    """Some pieces, which read as many rows as take most of the nearest cache; blocks of the same number of pieces where that is
    near, else conditions of the last block stand around every term.
    """
    record = kernel.record
    rows, row = (constant(extent) or 1 for extent in record.padded.shape[-2:])
    height, window = (extent_of(axis) or 1 for axis in (kernel.tail.axis[-2], kernel.anchor.reduce_axis[-2]))
    room = kernel.target.machine.l1.size * _FULL // (row * record.padded.dtype.bytes)
    pieces = -(-height // down)
    most = pieces if rows <= room else max(1, int((room - window) // record.strides[-2] + 1) // down)
    blocks = -(-pieces // most)
    return next((count for count in range(most, most // 2, -1) if pieces % count == 0), -(-pieces // blocks)) * down
