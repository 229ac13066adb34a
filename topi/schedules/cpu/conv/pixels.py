"""Convolutions with a window of one pixel and the width innermost: products of the weights with the pixels of the image.

    out[o, p] += weights[o, c] * data[c, p]        o: some channels of the result, p: some vectors of pixels, of all rows

The rows of the image follow each other in memory, so that vectors of pixels cross them. What a stride skips is left out by a
copy of the data.
"""

from __future__ import annotations

from typing import Any

from topi.kinds import ConvOp
from topi.schedules.cpu.conv.operands import sums_of, work_of
from topi.schedules.cpu.conv.register_tiles import tile_of
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_READERS = 64  # output channels, from which copying the pixels of a tile costs less than reading them from many pages


def is_product(kernel: Kernel) -> bool:
    """Whether the convolution is a product of matrices whose pixels fill vectors."""
    record = kernel.record
    if type(record) is not ConvOp or record.groups != 1 or any((*record.before, *record.after)):
        return False
    pixels = _pixels(kernel)
    return all(extent_of(axis) == 1 for axis in kernel.anchor.reduce_axis[1:]) and pixels is not None \
        and 2 * pixels > kernel.lanes(kernel.anchor) and extent_of(kernel.anchor.reduce_axis[0]) is not None


def _pixels(kernel: Kernel) -> int | None:
    return product([extent_of(axis) for axis in kernel.tail.axis[2:]])


def schedule_product(kernel: Kernel) -> None:
    """Tile the channels and the pixels of the result; a thread computes tiles of the same pixels, one after the other."""
    s, pixels = kernel.schedule, _pixels(kernel) or 1
    lanes, channels = kernel.lanes(kernel.anchor), extent_of(kernel.tail.axis[1])
    tall, wide = tile_of(channels, pixels, constant(kernel.record.data.shape[1]), lanes, kernel.target)
    copy = _without_skipped(kernel) if max(kernel.record.strides) > 1 else _panel(kernel, pixels)
    sums, tail = sums_of(kernel), s[kernel.tail]
    s[sums].transform_layout(lambda n, o, *at: [n, o, _flat(at, s[kernel.tail].op.output(0).shape[2:])])
    n, o, *image = tail.op.axis
    po, pi = tail.split(tail.fuse(*image) if len(image) > 1 else image[0], factor=wide)
    oo, oi = tail.split(o, factor=tall)
    tail.reorder(n, po, oo, oi, pi)
    tail.unroll(oi)
    tail.vectorize(pi)
    panels = (extent_of(n) or 1) * -(-pixels // wide)
    alone = panels >= 4 * kernel.target.machine.cores
    place = share_out(tail, [n, po] if alone else [n, po, oo], work_of(kernel))
    if copy is not None and max(kernel.record.strides) == 1:
        s[copy].compute_at(tail, place)
        s[copy].vectorize(s[copy].op.axis[-1])
    stage = s[sums]
    stage.compute_at(tail, oo if alone else place)
    n, o, p = stage.op.axis
    stage.reorder(n, *stage.op.reduce_axis, o, p)
    stage.unroll(o)
    stage.vectorize(p)


def _flat(at: Any, shape: Any) -> Any:
    """The number of a pixel in the order of memory."""
    number = at[0]
    for index, extent in zip(at[1:], shape[1:]):
        number = number * extent + index
    return number


def _panel(kernel: Kernel, pixels: int) -> Any:
    """A copy of the pixels that a tile reads; None where they are near enough to each other to be read in place.

    The channels of large images lie in pages of their own: a tile would read more pages than the first table of addresses has.
    """
    record, machine = kernel.record, kernel.target.machine
    terms, channels = constant(record.data.shape[1]), extent_of(kernel.tail.axis[1])
    size = pixels * record.padded.dtype.bits // 8
    if size < machine.page or (terms or 0) <= machine.tlb or (channels or 0) < _READERS:
        return None
    copy = kernel.schedule.cache_read(record.padded, "global", [kernel.anchor])
    kernel.schedule[copy].transform_layout(lambda n, c, *at: [n, c, _flat(at, record.padded.shape[2:])])
    return copy


def _without_skipped(kernel: Kernel) -> Any:
    """A copy of the pixels that the strides do not skip."""
    s, steps = kernel.schedule, kernel.record.strides
    copy = s.cache_read(kernel.record.padded, "global", [kernel.anchor])
    s[copy].transform_layout(lambda n, c, *at: [n, c, *[i % step for i, step in zip(at, steps)],
                                                *[i // step for i, step in zip(at, steps)]])
    n, c, *_, x = s[copy].op.axis
    s[copy].vectorize(x)
    share_out(s[copy], [n, c], product([extent_of(axis) for axis in s[copy].op.axis]))
    return copy
