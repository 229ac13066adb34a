"""Convolutions of blocks of channels with a window of one pixel: tiles of pixels that follow each other across the rows.

    for panel of channels of the result:
        for tile of pixels, of all rows:      one tile is cut off at the end of the image, not one at the end of each row
            for channel of the data:          sums of the tile += weights * data

Pixels that a stride skips are left out by a copy of the data. A tile reads a piece of each plane, of the pixels of one block of
channels. Of data that come from beyond the second cache, processors read ahead a few planes only: then sums of some pixels are
kept in the nearest cache, and added to by as many planes at a time (see `blocks`).
"""

from __future__ import annotations

from topi.kinds import PackedConvOp
from topi.schedules.cpu.conv.blocks import plane_blocks, sum_up_by_blocks
from topi.schedules.cpu.conv.groups import terms_of_step
from topi.schedules.cpu.conv.operands import sums_of, work_of
from topi.schedules.cpu.conv.pixels import flat, pixels_of
from topi.schedules.cpu.conv.register_tiles import ImageTile
from topi.schedules.cpu.conv.sums import sum_up
from topi.schedules.cpu.conv.tiles import tile_of_blocks
from topi.schedules.cpu.parallel import Cover, keep_cores_busy, share_out, whole_loops
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel


def flat_tile(kernel: Kernel) -> ImageTile | None:
    """The tile of pixels across the rows of the image; None where the window has several pixels, or panels of channels do not
    keep all cores busy and no tile divides the pixels, so that cores could share these too.
    """
    record, image = kernel.record, kernel.tail.axis[2:-1]
    if type(record) is not PackedConvOp or record.groups != 1 or any((*record.before, *record.after)):
        return None
    n, channels, *_, block = [extent_of(axis) for axis in kernel.tail.axis]
    pixels = product([extent_of(axis) for axis in image])
    if any(extent_of(axis) != 1 for axis in kernel.anchor.reduce_axis[1:]) or terms_of_step(kernel) > 1:
        return None
    if n is None or channels is None or block is None or pixels is None or extent_of(kernel.anchor.reduce_axis[0]) is None:
        return None
    for dividing in (False, True):
        tile, panels = tile_of_blocks(kernel, (1, pixels), channels, block, dividing=dividing)
        if keep_cores_busy(kernel.target, n * (panels or 1) * (pixels // tile.across if dividing else 1)):
            return tile
    return None


def schedule_flat(kernel: Kernel, tile: ImageTile) -> None:
    """Tile the pixels of NCHWc across the rows, and its channels by blocks."""
    if max(kernel.record.strides) > 1:
        _leave_out_skipped(kernel)
    s, sums, pixels = kernel.schedule, sums_of(kernel), pixels_of(kernel) or 1
    kept = plane_blocks(kernel, tile, pixels)
    tail = s[kernel.tail]
    rows = tail.op.output(0).shape[2:-1]
    s[sums].transform_layout(lambda n, c, *at: [n, c, flat(at[:-1], rows), at[-1]])
    n, c, *image, ci = tail.op.axis
    p = tail.fuse(*image) if len(image) > 1 else image[0]
    some = tile.across if kept is None else kept.rows
    co, blocks = tail.split(c, factor=max(1, tile.wide // (extent_of(ci) or 1)))
    po, pi = tail.split(p, factor=some)
    tail.reorder(n, co, po, blocks, pi, ci)
    for loop in (blocks, pi) if kept is None else ():
        tail.unroll(loop)
    tail.vectorize(ci)
    covers = {n: Cover(extent_of(n), 1), co: Cover(extent_of(c), tile.wide // (extent_of(ci) or 1)), po: Cover(pixels, some)}
    panels = (extent_of(n) or 1) * -(-(covers[co].extent or 1) // covers[co].size)
    loops = [n, co] if keep_cores_busy(kernel.target, panels) else [n, co, po]
    shared = whole_loops(kernel.target, loops, covers, co)
    place = share_out(tail, shared, work_of(kernel))
    inside = place if po in shared else po
    if kept is None:
        sum_up(kernel, sums, tail, inside, tile, blocked=True)
    else:
        sum_up_by_blocks(kernel, sums, tail, inside, tile, kept)


def _leave_out_skipped(kernel: Kernel) -> None:
    """Read a copy of the pixels that the strides do not skip."""
    s, image = kernel.schedule, len(kernel.record.strides)
    block = constant(kernel.record.padded.shape[-1])
    copy = s.reindex_cache_read(kernel.record.padded, "global", kernel.anchor)
    s[copy].transform_layout(lambda n, *at: [n, at[image] // block, *at[:image], at[image] % block, *at[image + 1:]])
    n, c, *rows, ci = s[copy].op.axis[:3 + image]
    s[copy].vectorize(ci)
    share_out(s[copy], [n, c], product([extent_of(axis) for axis in s[copy].op.axis]))
