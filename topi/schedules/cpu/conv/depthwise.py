"""Depthwise convolutions with channels innermost: lanes are channels, a tile is two rows of two pixels.

Small windows are unrolled: what two results read is loaded once, and the zeros around the image cost a mask for each
pixel of the tile, no copy is made of the image with its border. Tiles of one row of four pixels take 1.1 of the time, of
more pixels up to twice as long, whose masks exceed the registers for masks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from topi.kinds import PackedDepthwiseConvOp
from topi.schedules.cpu.conv.operands import sums_of, work_of
from topi.schedules.cpu.parallel import Cover, share_out, whole_loops
from topi.schedules.cpu.tiles import registers
from topi.schedules.cpu.windows import border_of
from topi.schedules.formulas import extent_of, formula_of
from topi.schedules.kernel import Kernel

_PIXELS = 2  # of a tile, across and down
_UNROLLED = 64  # products of the pixels of a tile: 4 x 4 places; of 5 x 5 all unrolled take twice as long as row by row
_DEAR = 4  # operations on what is read, which are not repeated for each place of the window
_MANY = 1 << 10  # parts where the number of channels is not known


class _Near(NamedTuple):
    """Tiles of channels of a part, and the number of parts."""

    tiles: int
    parts: int


def schedule_depthwise(kernel: Kernel) -> None:
    """Schedule a depthwise convolution whose channels are innermost and stay in place."""
    s, sums = kernel.schedule, sums_of(kernel)
    tail = s[kernel.tail]
    chunks, image, channels = _axes(kernel)
    vectors = _vectors(kernel)
    outer, lanes = tail.split(channels, factor=vectors * kernel.lanes(kernel.anchor))
    *rest, x = image
    xo, xi = tail.split(x, factor=_PIXELS)
    rows, inside = rest, [xi]
    if rest:
        yo, yi = tail.split(rest[-1], factor=_PIXELS)
        rows, inside = [*rest[:-1], yo], [yi, xi]
    order = [xo, outer]
    near = _tiles_near(kernel, vectors)
    if near is not None and near.parts > 1:
        part, outer = tail.split(outer, factor=near.tiles)
        order = [part, xo, outer]
    elif near is None:
        order = [outer, xo]
    tail.reorder(*chunks, *rows, *order, *inside, lanes)
    for loop in inside:
        tail.unroll(loop)
    tail.vectorize(lanes)
    covers = {loop: Cover(extent_of(axis), 1) for loop, axis in zip([*chunks, *rows], [*chunks, *rest])}
    if rows:
        covers[rows[-1]] = Cover(extent_of(rest[-1]), _PIXELS)
    place = share_out(tail, whole_loops(kernel.target, [*chunks, *rows], covers), work_of(kernel))
    s[sums].compute_at(tail, order[-1])
    _sum_up(s[sums], len(chunks))
    for op in border_of(kernel.anchor):
        if kernel.formula(op).cost - formula_of(op.body).cost > _DEAR and place is not None:
            s[op].compute_at(tail, place)
            s[op].vectorize(s[op].split(s[op].op.axis[-1], factor=kernel.lanes(kernel.anchor))[1])


def _axes(kernel: Kernel) -> tuple[list[Any], list[Any], Any]:
    """The axes of the result: those around images, those of the image, and the channels."""
    before = 2 if isinstance(kernel.record, PackedDepthwiseConvOp) else 1
    axes = list(kernel.tail.axis)
    return axes[:before], axes[before:-1], axes[-1]


def _sum_up(stage: Any, before: int) -> None:
    """The places of the window, unrolled from the last dimension on. before: the axes around those of the image."""
    *axes, lanes = stage.op.axis
    window = list(stage.op.reduce_axis)
    stage.reorder(*axes[:before], *window, *axes[before:], lanes)
    count = _PIXELS**2
    for loop in reversed(window):
        count *= extent_of(loop) or _UNROLLED + 1
        if count <= _UNROLLED:
            stage.unroll(loop)
    for loop in axes[before:]:
        stage.unroll(loop)
    stage.vectorize(lanes)


def _vectors(kernel: Kernel) -> int:
    """The vectors of channels in a tile: as many as have no rest, and leave registers for weights and pixels."""
    lanes = kernel.lanes(kernel.anchor)
    channels = extent_of(kernel.tail.axis[-1])
    most = registers(kernel.target) // (2 * _PIXELS**2 + 2)
    return max([n for n in range(1, most + 1) if channels is not None and channels % (n * lanes) == 0], default=1)


def _tiles_near(kernel: Kernel, vectors: int) -> _Near | None:
    """The tiles of `vectors` vectors of channels, side by side, that follow each other before the next pixels: parts of equal
    length, as few as have all that a pixel's tiles read in half of the nearest cache. None where the window is not known.

    Channels are neighbours in memory: a tile with all pixels of a row before the next channels would read a line of each
    pixel, for which a core waits where the image comes from beyond the second cache.
    """
    record, channels = kernel.record, extent_of(kernel.tail.axis[-1])
    window = [extent_of(axis) for axis in kernel.anchor.reduce_axis]
    if None in window:
        return None
    places, pixels = 1, 1
    for extent, stride, dilation in zip(window, record.strides, record.dilation):
        places *= extent or 0
        pixels *= (_PIXELS - 1) * stride + ((extent or 0) - 1) * dilation + 1
    wide = vectors * kernel.lanes(kernel.anchor)
    read = (places + pixels) * wide * record.padded.dtype.bytes
    most = max(1, kernel.target.machine.l1.size // 2 // read)
    if channels is None:
        return _Near(most, _MANY)
    parts = -(-channels // (wide * most))
    return _Near(-(-channels // (wide * max(1, parts))), parts)
