"""Convolutions with channels innermost whose weights come from beyond the second cache, and an image that stays in it.

    for some panels of channels of the result:     as many as leave tasks for all cores
        for block of channels of the data:
            copy the weights of the block, panel by panel      from pieces of several lines, each in a page of its own
            for panel, for tile of pixels:         sums of the tile += weights * data

The weights are read once, in the order of memory, and what tiles read again stays in the caches (see `blocks`). Weights that
were packed before are asked for a panel ahead.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.conv.blocks import ChannelBlocks, channel_blocks, sum_up_by_blocks
from topi.schedules.cpu.conv.border import loops_of_sums
from topi.schedules.cpu.conv.operands import sums_of, weights_of, work_of
from topi.schedules.cpu.conv.register_tiles import ImageTile
from topi.schedules.cpu.parallel import SHARES, share_out
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_PART = 4  # of the second cache, which the weights of a block fill
_STAY = 2  # parts of the second cache, of which one holds weights that stay there beside images


def blocks_of_image(kernel: Kernel, tile: ImageTile) -> ChannelBlocks | None:
    """The blocks of channels of one image whose sums are kept as a whole; None where blocks do not pay, or copies would be
    repeated.
    """
    n, rows, *_ = map(extent_of, kernel.tail.axis)
    blocks = channel_blocks(kernel, tile) if n == 1 else None
    return blocks if blocks is not None and blocks.rows == rows else None


def schedule_far_weights(kernel: Kernel, copy: Any, tile: ImageTile, blocks: ChannelBlocks, panels: int) -> None:
    """Tile the pixels and the channels of NHWC; `copy` holds the weights by panels."""
    s, sums = kernel.schedule, sums_of(kernel)
    tail, together = s[kernel.tail], _panels_together(kernel, tile, blocks, panels)
    n, y, x, c = tail.op.axis
    co, ci = tail.split(c, factor=tile.wide * together)
    vector, lane = tail.split(ci, factor=kernel.lanes(kernel.anchor))
    tail.reorder(co, n, y, x, vector, lane)
    tail.vectorize(lane)
    share_out(tail, [co], work_of(kernel))
    stage, over_blocks = sum_up_by_blocks(kernel, sums, tail, n, tile, blocks)
    s[copy].compute_at(stage, over_blocks)
    copy_pieces(kernel, s[copy])


def copy_pieces(kernel: Kernel, copy: Any) -> None:
    """Copy weights to panels by the pieces of their rows, which lie pages apart."""
    panel, *terms, lane = copy.op.axis
    row = copy.fuse(*terms) if len(terms) > 1 else terms[0]
    vector, lane = copy.split(lane, factor=kernel.lanes(kernel.anchor))
    copy.reorder(row, panel, vector, lane)
    for loop in (panel, vector):
        copy.unroll(loop)
    copy.vectorize(lane)


def _panels_together(kernel: Kernel, tile: ImageTile, blocks: ChannelBlocks, panels: int) -> int:
    """The panels that are copied together: a divisor of all, which leaves tasks enough for all cores."""
    machine, (_, window) = kernel.target.machine, loops_of_sums(kernel, kernel.anchor)
    terms = blocks.channels * (product([extent_of(axis) for axis in window]) or 1)
    size = terms * tile.wide * weights_of(kernel).dtype.bits // 8
    most = min(machine.l2.size // _PART // size, panels // (SHARES * machine.cores))
    return divisor_near(panels, max(1, most), 1)


def come_from_afar(kernel: Kernel) -> bool:
    """Whether each call reads the weights, which are stored by panels, from beyond the second cache."""
    weights = weights_of(kernel)
    size = product([constant(extent) for extent in weights.shape])
    return isinstance(weights.op, te.PlaceholderOp) and size is not None \
        and size * weights.dtype.bytes > kernel.target.machine.l2.size // _STAY


def ask_for_next(kernel: Kernel, tail: Any, panels: Any) -> None:
    """Prefetch at `panels`, the loop over panels, what its next iteration reads of weights that come from afar, bit by bit:
    the first tile of a panel would wait for all of it, while memory rests beside the others.
    """
    if come_from_afar(kernel):
        tail.prefetch(weights_of(kernel), panels, 1, spread=True)
