"""Convolutions with a window of one pixel and the width innermost: products of the weights with the pixels of the image.

    out[o, p] += weights[o, c] * data[c, p]        o: some channels of the result, p: some vectors of pixels, of all rows

The rows of the image follow each other in memory, so that vectors of pixels cross them. What a stride skips is left out by a
copy of the data.
"""

from __future__ import annotations

from typing import Any, Literal

from topi.kinds import ConvOp
from topi.schedules.cpu.conv.images import is_by_image
from topi.schedules.cpu.conv.operands import sums_of, work_of
from topi.schedules.cpu.conv.register_tiles import best_tile, cycles_of_rows
from topi.schedules.cpu.parallel import SHARES, Cover, share_out, whole_loops
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_READERS = 64  # output channels, from which copying the pixels of a tile costs less than reading them from many pages
_FEWER = 0.95  # of the time, for which tasks are panels of pixels although they are few
_BOTH = 1.2  # times as long as no condition takes a tile with one around every term


def is_product(kernel: Kernel) -> bool:
    """Whether the convolution is a product of matrices whose pixels fill vectors."""
    record = kernel.record
    if type(record) is not ConvOp or record.groups != 1 or any((*record.before, *record.after)):
        return False
    pixels = pixels_of(kernel)
    return all(extent_of(axis) == 1 for axis in kernel.anchor.reduce_axis[1:]) and pixels is not None \
        and 2 * pixels > kernel.lanes(kernel.anchor) and extent_of(kernel.anchor.reduce_axis[0]) is not None


def cycles_by_pixels(kernel: Kernel) -> float:
    """The cycles of a convolution of known sizes by `schedule_product`, as far as they differ from those of others."""
    sizes = kernel.target, extent_of(kernel.tail.axis[1]), pixels_of(kernel), _terms(kernel), kernel.lanes(kernel.anchor)
    return (extent_of(kernel.tail.axis[0]) or 0) * cycles_of_rows(*sizes, best_tile(*sizes))


def pixels_of(kernel: Kernel) -> int | None:
    """The pixels of the result, without blocks of channels."""
    return product([extent_of(axis) for axis in kernel.tail.axis[2:2 + len(kernel.record.strides)]])


def schedule_product(kernel: Kernel) -> None:
    """Tile the channels and the pixels of the result. A thread computes all channels of some panels of pixels; of small images
    it computes all pixels of some channels.
    """
    s, pixels, lanes = kernel.schedule, pixels_of(kernel) or 1, kernel.lanes(kernel.anchor)
    tall, vectors = best_tile(kernel.target, extent_of(kernel.tail.axis[1]), pixels, _terms(kernel), lanes)
    wide = vectors * lanes
    skipped: Any = _leave_out_skipped(kernel) if max(kernel.record.strides) > 1 else None
    copy = _panel(kernel, pixels) if max(kernel.record.strides) == 1 else None
    sums, tail = sums_of(kernel), s[kernel.tail]
    s[sums].transform_layout(lambda n, o, *at: [n, o, flat(at, s[kernel.tail].op.output(0).shape[2:])])
    n, o, *image = tail.op.axis
    p = tail.fuse(*image) if len(image) > 1 else image[0]
    at_once = wide * _panels_at_once(kernel, pixels, wide)
    panels, p = tail.split(p, factor=at_once)
    po, pi = tail.split(p, factor=wide)
    oo, oi = tail.split(o, factor=tall)
    by_image = skipped is not None and is_by_image(kernel, skipped, -(-pixels // at_once))
    images = 1 if by_image else extent_of(n) or 1
    covers = {n: Cover(images, 1), panels: Cover(pixels, at_once), oo: Cover(extent_of(kernel.tail.axis[1]) or 1, tall)}
    tasks = _tasks(kernel, images, -(-pixels // at_once), covers[oo], copy is not None)
    around = {"pixels": [panels, oo], "channels": [oo, panels], "both": [oo, panels]}[tasks]
    tail.reorder(n, *around, po, oi, pi)
    tail.unroll(oi)
    tail.vectorize(pi)
    shared = [*([] if by_image else [n]), *around[:1 + (tasks == "both")]]
    shared = shared if images == 1 else whole_loops(kernel.target, shared, covers)
    place = share_out(tail, shared, work_of(kernel))
    place = place if around[0] in shared else around[0]
    if by_image:
        s[skipped].compute_at(tail, n)
    if copy is not None:
        s[copy].compute_at(tail, place)
        s[copy].vectorize(s[copy].op.axis[-1])
    stage = s[sums]
    stage.compute_at(tail, po)
    n, o, p = stage.op.axis
    stage.reorder(n, *stage.op.reduce_axis, o, p)
    stage.unroll(o)
    stage.vectorize(p)


def _tasks(kernel: Kernel, images: int, panels: int, channels: Cover, is_copied: bool) -> Literal["pixels", "channels", "both"]:
    """What tasks of so many images are: `panels` of pixels for all tiles of channels, or the other way round where the panels
    are few, or one of both where either leaves cores without work.

    A last tile that is smaller is a condition around every term in a loop over both, and over images and channels.
    """
    cores = kernel.target.machine.cores
    if is_copied or images * panels >= SHARES * cores:
        return "pixels"
    tiles = -(-(channels.extent or 1) // channels.size)
    cut = images > 1 and (channels.extent or 1) % channels.size
    by_pixels, by_channels = -(-images * panels // cores) * tiles, -(-images * tiles // cores) * panels * (_BOTH if cut else 1)
    if _BOTH * -(-images * panels * tiles // cores) < min(by_pixels, by_channels):
        return "both"
    return "pixels" if by_pixels < _FEWER * by_channels else "channels"


def _terms(kernel: Kernel) -> int | None:
    return extent_of(kernel.anchor.reduce_axis[0])


def _panels_at_once(kernel: Kernel, pixels: int, wide: int) -> int:
    """The panels of pixels that stay in the nearest cache, for which each tile of channels is computed: a divisor of the number
    of panels. The more, the longer are the runs of pixels that are stored.
    """
    panel = wide * (_terms(kernel) or 1) * kernel.record.padded.dtype.bits // 8
    most = max(1, kernel.target.machine.l1.size // 2 // panel)
    return divisor_near(-(-pixels // wide), most, 1) if pixels % wide == 0 else 1


def flat(at: Any, shape: Any) -> Any:
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
    size = pixels * record.padded.dtype.bits // 8
    if size < machine.page or (_terms(kernel) or 0) <= machine.tlb or (extent_of(kernel.tail.axis[1]) or 0) < _READERS:
        return None
    copy = kernel.schedule.cache_read(record.padded, "global", [kernel.anchor])
    kernel.schedule[copy].transform_layout(lambda n, c, *at: [n, c, flat(at, record.padded.shape[2:])])
    return copy


def _leave_out_skipped(kernel: Kernel) -> Any:
    """Read a copy of the pixels that the strides do not skip, and return it."""
    s = kernel.schedule
    copy = s.reindex_cache_read(kernel.record.padded, "global", kernel.anchor)
    image = len(kernel.record.strides)
    s[copy].transform_layout(lambda n, *at: [n, at[image], *at[:image], *at[image + 1:]])
    n, c, *rows, x = s[copy].op.axis[:2 + image]
    s[copy].vectorize(x)
    share_out(s[copy], [n, c], product([extent_of(axis) for axis in s[copy].op.axis]))
    return s[copy].op
