"""The register tile of a convolution as its schedule asks for it."""

from __future__ import annotations

from typing import Any

from topi.schedules.cpu.conv.register_tiles import ImageTile, image_tile
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel


def image_of(image: Any) -> tuple[int | None, int | None]:
    """The rows of an image, 1 where it has none, and the pixels of a row, given its axes."""
    return extent_of(image[-2]) if len(image) > 1 else 1, extent_of(image[-1])


def tile_of_image(kernel: Kernel, image: tuple[int | None, int | None], channels: int | None, block: int = 1,
                  group: int = 1, whole: bool = False, dividing: bool = False) -> tuple[ImageTile, int | None]:
    """The tile for an image of (rows, columns), and the number of its panels in all channels. block: what its channels are a
    multiple of; group: the terms of a step; whole: whether only whole rows are tiled together; dividing: whether the tiles
    divide a row.
    """
    lanes, groups = kernel.lanes(kernel.anchor), getattr(kernel.record, "groups", 1)
    if channels is not None and channels % groups == 0:
        channels //= groups
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    data, last = kernel.record.padded, kernel.record.layout[-1] != "W"
    apart = (constant(data.shape[-1]) or 1 if last else 1) * data.dtype.bits // 8 * kernel.record.strides[-1]
    steps = None if terms is None else -(-terms // group)
    tile = image_tile(kernel.target, image, channels, steps, lanes, apart, block, whole, dividing)
    return tile, None if channels is None else -(-channels // tile.wide) * groups
