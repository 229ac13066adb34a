"""Bands of rows for convolutions in NCHWc and NHWC whose image does not stay in the second cache, or not beside the result.

    for band of rows of the result, in parallel:
        the rows of the image that it reads, with their border        stay in the second cache
        for panel of channels of the result:
            for tile of pixels:
                for channel, window:                                  sums of the tile += weights * data

Panels outside of the rows read the image once for each panel, bands the weights once for each band. A border that is copied
before all bands is a whole image that is written, and read again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tedsl import te
from topi.kinds import ConvOp, PackedConvOp
from topi.schedules.cpu.conv.border import loops_of_sums
from topi.schedules.cpu.conv.groups import terms_of_step
from topi.schedules.cpu.conv.operands import image_at, weights_of, work_of
from topi.schedules.cpu.conv.register_tiles import ImageTile
from topi.schedules.cpu.elements import schedule_injective
from topi.schedules.cpu.parallel import Cover, share_out, whole_loops
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_FULL = 0.75  # of the second cache: what is used again stays there
_ALL = 2  # parts of the second cache, of which one has all that is read and written: more does not stay, beside what others use
_PART = 4  # of the second cache, for the rows that a band reads and writes, where the image would fit: 4 % faster than half
_LESS = 0.8  # of the bytes from beyond the second cache: for less gain, tiles that bands cut off cost as much
_COPIED = 2  # times that the whole image is written and read again by a copy with its border
_WIDE = 32  # bits: of narrower numbers instructions add up several products
_BUSY = 0.8  # of the cores, all the time


class _Sizes(NamedTuple):
    """Bytes: of the padded image, of one of its rows in all channels, of all weights, and of those of a panel; of a row of the
    result in all channels.
    """

    image: int
    row: int
    weights: int
    panel: int
    written: int


def border_of_image(op: Any) -> tuple[Any, ...]:
    """The operation that makes the border of the image of a convolution in NCHWc or NHWC; () for other operations, and for
    an image in NHWC that is computed in bytes: instructions for groups take what is stored, not what is inlined.
    """
    info: Any = getattr(op, "info", None)
    if type(info) is not PackedConvOp and (type(info) is not ConvOp or info.layout != "NHWC"):
        return ()
    if type(info) is ConvOp and info.padded.dtype.bits < _WIDE and not isinstance(info.data.op, te.PlaceholderOp):
        return ()
    return (info.padded.op,) if type(info.padded.op) is te.ComputeOp and any((*info.before, *info.after)) else ()


def rows_of_band(kernel: Kernel, tile: ImageTile, rows_first: bool = False) -> int | None:
    """The rows of the result in a band; None where bands do not pay, are too few for the cores, or there is no image.
    rows_first: whether all panels are computed for a row before the next one, of weights that stay in the second cache.
    """
    record, machine = kernel.record, kernel.target.machine
    sizes, images = _sizes(kernel, tile), extent_of(kernel.tail.axis[0])
    room = int(_FULL * machine.l2.size)
    if sizes is None or not images:
        return None
    height = extent_of(kernel.tail.axis[image_at(kernel)]) or 1
    high = extent_of(loops_of_sums(kernel, kernel.anchor)[1][0]) or 1
    stride, window = record.strides[0], (high - 1) * record.dilation[0] + 1
    stay, fits = rows_first or sizes.weights <= room // 2, sizes.image + sizes.panel <= room
    if fits and (not stay or sizes.image + sizes.weights + height * sizes.written <= machine.l2.size // _ALL):
        return None
    most = ((room - (sizes.weights if stay else sizes.panel)) // sizes.row - window) // stride + 1
    part = machine.l2.size // _PART - (window - stride) * sizes.row
    if fits:
        most = part // (stride * sizes.row + sizes.written)
    elif rows_first:
        most = min(most, max(part // (stride * sizes.row), tile.down))
    if most < tile.down:
        return None
    bands = math.ceil(height / most)
    if images < machine.cores:
        bands = math.ceil(bands * images / machine.cores) * machine.cores // images
    rows = _whole(height, math.ceil(math.ceil(height / bands) / tile.down) * tile.down, tile.down)
    bands = math.ceil(height / rows)
    read = bands * ((rows - 1) * stride + window) * sizes.row + sizes.weights * (1 if stay else bands)
    panels = 1 if rows_first else math.ceil(sizes.weights / sizes.panel)
    before = (panels + (_COPIED if has_border(kernel) else 0)) * sizes.image + sizes.weights
    busy = bands * images / (math.ceil(bands * images / machine.cores) * machine.cores)
    return rows if bands > 1 and read <= _LESS * before and busy >= _BUSY else None


def _whole(height: int, rows: int, down: int) -> int:
    """The next number of rows below `rows` that divides all, if it is no half of it: a last band of fewer rows is code, or
    conditions, of its own.
    """
    return next((size for size in range(rows, rows // 2, -down) if height % size == 0), rows)


def _sizes(kernel: Kernel, tile: ImageTile) -> _Sizes | None:
    """None for other convolutions than those of images with a window of several pixels, and for symbolic extents."""
    record, at = kernel.record, image_at(kernel)
    if type(record) not in (ConvOp, PackedConvOp) or record.groups != 1 or len(record.strides) != 2:
        return None
    if terms_of_step(kernel) > 1:
        return None
    data, window = record.padded, [extent_of(axis) for axis in loops_of_sums(kernel, kernel.anchor)[1]]
    image, height = product([constant(extent) for extent in data.shape[1:]]), constant(data.shape[at])
    terms, weights = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]), weights_of(kernel)
    total = product([constant(extent) for extent in weights.shape])
    if window == [1, 1] or image is None or height is None or terms is None or total is None:
        return None
    result = [extent_of(axis) for axis in kernel.tail.axis]
    written, rows = product([*result[1:at], *result[at + 1:]]), result[at]
    if written is None or not rows:
        return None
    return _Sizes(image * data.dtype.bytes, image // height * data.dtype.bytes, total * weights.dtype.bytes,
                  terms * tile.wide * weights.dtype.bytes, written * kernel.tail.output(0).dtype.bytes)


def has_border(kernel: Kernel) -> bool:
    """Whether the border of the image is left to the schedule of the convolution, and no copy by whole groups makes it."""
    border = border_of_image(kernel.anchor) if kernel.changed is None else ()
    return bool(border) and kernel.schedule[border[0]].attach_type == te.schedule.AttachType.INLINE


def share_out_bands(kernel: Kernel, tail: Any, images: Any, bands: Any, rows: int) -> None:
    """Run the loops over images and bands in parallel, and compute the rows of the image with their border in them."""
    number, height = extent_of(kernel.tail.axis[0]), extent_of(kernel.tail.axis[image_at(kernel)])
    covers = {images: Cover(number, 1), bands: Cover(height, rows)}
    shared = [bands] if number == 1 else whole_loops(kernel.target, [images, bands], covers)
    place = share_out(tail, shared, work_of(kernel))
    if has_border(kernel):
        stage = kernel.schedule[kernel.record.padded]
        stage.compute_at(tail, place if bands in shared else bands)
        *_, pixel, lane = stage.op.axis
        if image_at(kernel) == 1:  # pixels and channels of a row are neighbours; blocks of channels are as long as vectors
            _, lane = stage.split(stage.fuse(pixel, lane), factor=kernel.lanes(kernel.anchor))
        stage.vectorize(lane)


def copy_image(kernel: Kernel) -> None:
    """Compute the whole image with its border, by itself."""
    op = kernel.record.padded.op
    kernel.schedule[op].compute_root()
    schedule_injective(Kernel(kernel.schedule, op, op, kernel.target, whole=kernel.whole))
