"""Convolutions of bytes and of bfloat16 with channels innermost, by the tile registers of the processor (AMX).

    out[x, c] += data[x * stride + window, ci] * weights[window, ci, c]        x: pixels of a row, c: channels in panels of 32

The sums of the pixels of some rows, over window and channels, are a product of matrices (the pragma "tile_products"). As many
panels of weights as lie in half of L2 are used for all rows, then the next.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.kinds import ConvOp
from topi.schedules.cpu.conv.bands import copy_image, has_border
from topi.schedules.cpu.conv.groups import channel_loop, copy_of_groups, terms_in_line, terms_of_step
from topi.schedules.cpu.conv.operands import weights_of, work_of
from topi.schedules.cpu.dots import turn_groups
from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.tile_registers import PANEL, columns_near, columns_of_call, multiplies_faster
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.cpu.vectors import vectorize_panel
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_STORED = 12  # cycles for each vector of the result, since the sums of tiles are stored before they are used
_PIXELS = 128  # of a call, where rows follow each other: tiles of 16 leave few of them empty


def is_tiled(kernel: Kernel) -> bool:
    """Whether tile registers multiply the data by the weights in less time than vectors do. They need the steps of windows and
    of rows of pixels.
    """
    record, weights, group = kernel.record, weights_of(kernel), terms_of_step(kernel)
    if type(record) is not ConvOp or record.groups != 1 or group == 1 or None in map(extent_of, kernel.tail.axis[2:-1]):
        return False
    channels = constant(weights.shape[record.kernel_layout.index("I")])
    few = () if kernel.fused else (terms_in_line(kernel), _STORED)  # what follows is faster on sums in memory
    return multiplies_faster(kernel, (record.data.dtype, weights.dtype), channels, group, *few)


def schedule_tiled(kernel: Kernel) -> None:
    """Tile the pixels and the channels of NWC, NHWC and NDHWC, by groups of channels of the data."""
    if has_border(kernel):
        copy_image(kernel)
    s, channels, group = kernel.schedule, channel_loop(kernel), terms_of_step(kernel)
    copied = copy_of_groups(kernel, group, PANEL)
    sums = s[kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "global").op]
    tail = s[kernel.tail]
    n, *image, c = tail.op.axis
    down = _rows_of_call(kernel)
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or 1
    wide = columns_near(kernel, extent_of(c), terms * weights_of(kernel).dtype.bits // 8)
    held = columns_of_call(kernel, wide, down * (extent_of(image[-1]) or 1))
    outer, rest = tail.split(c, factor=wide)
    middle, rest = tail.split(rest, factor=held)
    panels, lane = tail.split(rest, factor=PANEL)
    rows, inside = image[:-1], image[-1:]
    if down > 1:
        rows[-1], within = tail.split(rows[-1], factor=down)
        inside = [within, *inside]
    tail.reorder(outer, n, *rows, middle, *inside, panels, lane)
    share_out(tail, [outer, n, *rows], work_of(kernel))
    vectorize_panel(tail, lane, PANEL, kernel.lanes(kernel.tail))
    sums.compute_at(tail, middle)
    sums.transform_layout(lambda n, *at: [n, at[-1] // PANEL, *at[:-1], at[-1] % PANEL])
    loops = list(sums.op.reduce_axis)
    loops.append(loops.pop(channels))
    sum_up_tiles(sums, loops, group)
    if copied is None:
        return
    copy = s[copied]
    panel, *loops = copy.leaf_iter_vars
    turn_groups(kernel, copy, (panel, *loops), turned=kernel.record.kernel_layout.endswith("I"))
    share_out(copy, [panel], product([extent_of(axis) for axis in copy.op.axis]))


def sum_up_tiles(sums: te.Stage, loops: list[Any], group: int) -> None:
    """Let tile registers compute sums in panels. loops: those of the sums, last that over the channels of the data."""
    n, panels, *image, lane = sums.op.axis
    *window, channels = loops
    steps, terms = sums.split(channels, factor=group)
    sums.reorder(n, panels, *image, *window, steps, lane, terms)
    sums.pragma(n, "tile_products")


def _rows_of_call(kernel: Kernel) -> int:
    """The rows of pixels that are one row after the other in the data, too: those of windows of one pixel without a stride."""
    record, image = kernel.record, kernel.tail.axis[1:-1]
    window = [axis for at, axis in enumerate(kernel.anchor.reduce_axis) if at != channel_loop(kernel)]
    height, width = (extent_of(axis) for axis in image[-2:]) if len(image) > 1 else (None, None)
    plain = max(record.strides) == 1 and not any((*record.before, *record.after)) and all(map(_is_one, window))
    return divisor_near(height, max(1, _PIXELS // width), 1) if plain and height and width else 1


def _is_one(axis: Any) -> bool:
    return extent_of(axis) == 1
