"""The border of an image, whose zeros a convolution does not multiply: other libraries leave them out as well.

    for row of the image, for tile of pixels:
        for row of the window: if it lies in the image of any row of the tile:
            for column of the window:                 written one after the other, if a tile is as wide as the image;
                for channel of the data:              then those pixels are left out whose data lie beside the image
                    sums of the tile += weights * data
"""

from __future__ import annotations

from typing import Any

from topi.kinds import ConvOp, PackedConvOp
from topi.schedules.cpu.conv.groups import channel_loop
from topi.schedules.cpu.conv.operands import image_at
from topi.schedules.cpu.conv.register_tiles import Border, ImageTile, share_inside
from topi.schedules.formulas import constant, extent_of
from topi.schedules.kernel import Kernel

_WIDEST = 3  # of windows whose columns are code of their own: LLVM takes a third longer for three
_LEAST = 0.03  # of the products are left out by that


def loops_of_sums(kernel: Kernel, sums: Any) -> tuple[Any, list[Any]]:
    """The loop of the sums over channels of the data, and those over the window."""
    window = list(sums.reduce_axis)
    return window.pop(channel_loop(kernel) if type(kernel.record) is ConvOp else 0), window


def border_of_rows(kernel: Kernel) -> Border | None:
    """The border above and below the image, in which rows of the window are skipped; None if it is not known."""
    return _border(kernel, len(kernel.record.strides) - 2) if _is_skipped(kernel) and len(kernel.record.strides) > 1 else None


def skip_border(kernel: Kernel, stage: Any, pixel: Any, tile: ImageTile) -> None:
    """Skip what of the window lies in the border. pixel: the loop over the pixels of a row of a tile, which is unrolled."""
    record = kernel.record
    if not _is_skipped(kernel):
        return
    *rows, column = loops_of_sums(kernel, stage.op)[1]
    for loop, before, after in zip(rows, record.before, record.after):
        if extent_of(loop) != 1 and (before, after) != (0, 0):
            stage.skip_zeros(loop)
    if _skips_columns(kernel, tile):
        stage.unroll(column)
        stage.skip_zeros(pixel)


def _is_skipped(kernel: Kernel) -> bool:
    return type(kernel.record) in (ConvOp, PackedConvOp)


def _skips_columns(kernel: Kernel, tile: ImageTile) -> bool:
    """Whether to leave out the pixels of a tile, which is as wide as the image, whose data lie beside that: where this saves
    enough, and the others are enough for multiply-adds that do not wait for each other.
    """
    last, machine, bits = len(kernel.record.strides) - 1, kernel.target.machine, kernel.target.vector_bits
    border, width = _border(kernel, last), extent_of(kernel.tail.axis[image_at(kernel) + last])
    if border is None or width is None or tile.across < width or border.window > _WIDEST:
        return False
    sums = tile.down * (width - 1) * -(-tile.wide // kernel.lanes(kernel.anchor))
    return share_inside(border, width, 1) <= 1 - _LEAST and sums >= machine.fma_latency * machine.fmas(bits)


def _border(kernel: Kernel, at: int) -> Border | None:
    """The border along dimension `at` of the image; None where there is none, or a size is not known."""
    record = kernel.record
    size, window = constant(record.data.shape[image_at(kernel) + at]), extent_of(loops_of_sums(kernel, kernel.anchor)[1][at])
    if size is None or window is None or window == 1 or (record.before[at], record.after[at]) == (0, 0):
        return None
    return Border(size, record.before[at], window, record.strides[at], record.dilation[at])
