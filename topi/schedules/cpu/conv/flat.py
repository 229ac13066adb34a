"""Convolutions of blocks of channels with a window of one pixel: tiles of pixels that follow each other across the rows.

    for panel of channels of the result:
        for tile of pixels, of all rows:      one tile is cut off at the end of the image, not one at the end of each row
            for channel of the data:          sums of the tile += weights * data

Where the image does not stay in the second cache, and the weights do, the pixels are taken by pieces that stay there beside the
weights, in parallel, with all panels for each: panels outside of the pixels read the image once for each panel.

An image that one panel of few channels reads from beyond the second cache is asked for some tiles before (see `sums`).

Pixels that a stride skips are left out by a copy of the data. A tile reads a piece of each plane, of the pixels of one block of
channels. Of data that come from beyond the second cache, processors read ahead a few planes only: then sums of some pixels are
kept in the nearest cache, and added to by as many planes at a time (see `blocks`).
"""

from __future__ import annotations

from topi.kinds import PackedConvOp
from topi.schedules.cpu.conv.blocks import FULL, plane_blocks, sum_up_by_blocks
from topi.schedules.cpu.conv.far_weights import ask_for_next
from topi.schedules.cpu.conv.groups import terms_of_step
from topi.schedules.cpu.conv.operands import sums_of, weights_of, work_of
from topi.schedules.cpu.conv.pixels import flat, pixels_of
from topi.schedules.cpu.conv.register_tiles import ImageTile
from topi.schedules.cpu.conv.sums import ask_for_image, is_image_awaited, sum_up
from topi.schedules.cpu.conv.tiles import tile_of_blocks
from topi.schedules.cpu.parallel import Cover, chunk_length, keep_cores_busy, share_out, whole_loops
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_ALL = 2  # parts of the second cache, of which one has all that is read and written: more does not stay, beside what others use
_PART = 4  # of the second cache, which a piece of the pixels fills at most: half as many or twice as many make no difference


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
            return _halved(kernel, tile) if _is_awaited(kernel, tile) else tile
    return None


def schedule_flat(kernel: Kernel, tile: ImageTile) -> None:
    """Tile the pixels of NCHWc across the rows, and its channels by blocks."""
    if max(kernel.record.strides) > 1:
        _leave_out_skipped(kernel)
    s, sums, pixels = kernel.schedule, sums_of(kernel), pixels_of(kernel) or 1
    piece = _piece(kernel, tile, pixels)
    kept = plane_blocks(kernel, tile, pixels, piece or pixels)
    tail = s[kernel.tail]
    rows = tail.op.output(0).shape[2:-1]
    s[sums].transform_layout(lambda n, c, *at: [n, c, flat(at[:-1], rows), at[-1]])
    n, c, *image, ci = tail.op.axis
    p = tail.fuse(*image) if len(image) > 1 else image[0]
    some = tile.across if kept is None else kept.rows
    co, blocks = tail.split(c, factor=max(1, tile.wide // (extent_of(ci) or 1)))
    panels = (extent_of(n) or 1) * -(-(extent_of(c) or 1) * (extent_of(ci) or 1) // tile.wide)
    covers = {n: Cover(extent_of(n), 1), co: Cover(extent_of(c), tile.wide // (extent_of(ci) or 1))}
    if piece is None:
        po, pi = tail.split(p, factor=some)
        around, loops = [co, po], [n, co] if keep_cores_busy(kernel.target, panels) else [n, co, po]
    else:
        over, p = tail.split(p, factor=piece)
        po, pi = tail.split(p, factor=some)
        around, loops, covers[over] = [over, co, po], [n, over], Cover(pixels, piece)
    covers[po] = Cover(pixels, some)
    tail.reorder(n, *around, blocks, pi, ci)
    for loop in (blocks, pi) if kept is None else ():
        tail.unroll(loop)
    tail.vectorize(ci)
    shared = whole_loops(kernel.target, loops, covers, co)
    place = share_out(tail, shared, work_of(kernel))
    inside = place if po in shared else po
    if panels > 1 and po not in shared:
        ask_for_next(kernel, tail, place if co in shared else co)
    if kept is None and _is_awaited(kernel, tile):
        ask_for_image(kernel, tail, inside, tile)
    if kept is None:
        sum_up(kernel, sums, tail, inside, tile, blocked=True)
    else:
        sum_up_by_blocks(kernel, sums, tail, inside, tile, kept)


def _is_awaited(kernel: Kernel, tile: ImageTile) -> bool:
    """Whether tiles of one panel, which read the image once, had better ask for it before."""
    blocks, block = extent_of(kernel.tail.axis[1]) or 0, extent_of(kernel.tail.axis[-1]) or 1
    return blocks * block <= tile.wide and is_image_awaited(kernel, blocks * -(-block // kernel.lanes(kernel.anchor)))


def _halved(kernel: Kernel, tile: ImageTile) -> ImageTile:
    """Half of a tile, where its sums still fill the multiply-adds: it asks for fewer lines at once, and what it asks for is
    written one after the other, in no loop.
    """
    machine = kernel.target.machine
    across, least = -(-tile.across // 2), machine.fma_latency * machine.fmas(kernel.target.vector_bits)
    return tile if across * -(-tile.wide // kernel.lanes(kernel.anchor)) < least else ImageTile(1, across, tile.wide)


def _piece(kernel: Kernel, tile: ImageTile, pixels: int) -> int | None:
    """The pixels of a piece, of whole tiles; None where all that is read and written stays in the second cache, there is one
    panel, or the weights do not stay there beside a piece. Pieces of one size, if that leaves no core without work.
    """
    machine, weights, data = kernel.target.machine, weights_of(kernel), kernel.record.padded
    channels, total = extent_of(kernel.anchor.reduce_axis[0]) or 1, product([constant(extent) for extent in weights.shape])
    if total is None or total <= channels * tile.wide:
        return None
    read, held = channels * data.dtype.bytes, total * weights.dtype.bytes
    written = total // channels * kernel.anchor.output(0).dtype.bytes
    room, images = FULL * machine.l2.size, extent_of(kernel.tail.axis[0]) or 1
    most = int(min(room - held, machine.l2.size // _PART)) // (read * tile.across)
    most = min(most, -(-pixels * images // (machine.cores * tile.across)))  # one core would compute a single piece
    if held + pixels * (read + written) <= machine.l2.size // _ALL or most < 1:
        return None
    whole = (size * tile.across for size in range(most, most // 4, -1) if pixels % (size * tile.across) == 0)
    even = next((size for size in whole if keep_cores_busy(kernel.target, images * pixels // size)), None)
    return even or chunk_length(kernel.target, pixels, most * tile.across, tile.across, images)


def _leave_out_skipped(kernel: Kernel) -> None:
    """Read a copy of the pixels that the strides do not skip."""
    s, image = kernel.schedule, len(kernel.record.strides)
    block = constant(kernel.record.padded.shape[-1])
    copy = s.reindex_cache_read(kernel.record.padded, "global", kernel.anchor)
    s[copy].transform_layout(lambda n, *at: [n, at[image] // block, *at[:image], at[image] % block, *at[image + 1:]])
    n, c, *rows, ci = s[copy].op.axis[:3 + image]
    s[copy].vectorize(ci)
    share_out(s[copy], [n, c], product([extent_of(axis) for axis in s[copy].op.axis]))
