"""The register tile of a convolution as its schedule asks for it."""

from __future__ import annotations

from typing import Any

from topi.kinds import ConvOp, PackedConvOp
from topi.schedules.cpu.conv.blocks import FULL, bytes_of_panel, is_in_blocks
from topi.schedules.cpu.conv.border import border_of_rows, loops_of_sums
from topi.schedules.cpu.conv.operands import image_at, weights_of
from topi.schedules.cpu.conv.register_tiles import ImageTile, image_tile
from topi.schedules.cpu.panels import as_panels
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel


def image_of(image: Any) -> tuple[int | None, int | None]:
    """The rows of an image, 1 where it has none, and the pixels of a row, given its axes."""
    return extent_of(image[-2]) if len(image) > 1 else 1, extent_of(image[-1])


def tile_of_image(kernel: Kernel, image: tuple[int | None, int | None], channels: int | None, block: int = 1,
                  group: int = 1, whole: bool = False, dividing: bool = False) -> tuple[ImageTile, int | None]:
    """The tile for an image of (rows, columns), and the number of its panels in all channels. block: what its channels are a
    multiple of, itself one of the lanes; group: the terms of a step; whole: whether only whole rows are tiled together;
    dividing: whether the tiles divide a row.
    """
    lanes, groups = kernel.lanes(kernel.anchor), getattr(kernel.record, "groups", 1)
    if channels is not None and channels % groups == 0:
        channels //= groups
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    data, last = kernel.record.padded, kernel.record.layout[-1] != "W"
    apart = (constant(data.shape[-1]) or 1 if last else 1) * data.dtype.bits // 8 * kernel.record.strides[-1]
    steps = None if terms is None else -(-terms // group)
    packed = as_panels(kernel, weights_of(kernel))
    are_copied = kernel.record.layout != "NCHWc" and (packed is None or packed.group > 1)
    asked = (kernel.target, image, channels, steps, lanes, apart, block, whole, dividing, border_of_rows(kernel), are_copied)
    tile, room = image_tile(*asked), _room_for_panel(kernel)
    if room is not None and bytes_of_panel(kernel, tile) > room and not is_in_blocks(kernel, tile):
        tile = image_tile(*asked, room)
    return tile, None if channels is None else -(-channels // tile.wide) * groups


def tile_of_blocks(kernel: Kernel, image: tuple[int | None, int | None], blocks: int | None, block: int,
                   **options: Any) -> tuple[ImageTile, int | None]:
    """What `tile_of_image` returns, of whole blocks of channels: each takes vectors of its own, filled or not."""
    lanes = kernel.lanes(kernel.anchor)
    filled = -(-block // lanes) * lanes
    tile, panels = tile_of_image(kernel, image, product([blocks, filled]), filled, **options)
    return ImageTile(tile.down, tile.across, tile.wide // filled * block), panels


def _room_for_panel(kernel: Kernel) -> int | None:
    """The bytes that the second cache has for a panel of weights beside the rows of the image that a tile reads; None for
    windows of one pixel, and where a size is not known.
    """
    record, shape = kernel.record, [constant(extent) for extent in kernel.record.padded.shape]
    if type(record) not in (ConvOp, PackedConvOp) or len(record.strides) < 2:
        return None
    high = extent_of(loops_of_sums(kernel, kernel.anchor)[1][len(record.strides) - 2])
    size, rows = product(shape[1:]), shape[image_at(kernel) + len(record.strides) - 2]
    if high is None or high == 1 or size is None or not rows:
        return None
    read: int = size // rows * high * record.padded.dtype.bits // 8
    return int(FULL * kernel.target.machine.l2.size) - read
