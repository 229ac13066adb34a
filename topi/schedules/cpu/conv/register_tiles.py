"""Register tiles of convolutions, which cover an image: the tile that takes the least time by the model of `cpu.tiles`.

The time of a result is that of the tiles that cover it. Those at its ends are smaller, and are code of their own.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from tedsl.record import record
from tedsl.target import Target
from topi.schedules.cpu.tiles import registers, registers_of_rows, tile_bounds

_MOST_VECTORS = 8
_MANY = 1 << 12  # rows, pixels or vectors, where their number is not known
_TERMS = 256  # of a sum whose number of terms is not known
_POWER = 6  # with which measured tiles agree
WAITS = 0.2  # of the panels of weights: of 61->160 3x3 46² 10 x 32 take 0.93 of 5 x 80, of 199->189 3x3 19² 0.76 of 4 x 96
_SLACK = 1.1  # additions do not start in the very cycle in which they could
_RESULT = 4  # cycles for each vector of a result beside the multiply-adds: cleared, turned, stored
_MASKED = 1.04  # the last tile is not full: tiles with masks, and tiles without
_END = 1.02  # each kind of tile is code of its own
_BEYOND = 0.45  # of the bits of L2 come from the cache beyond it: 230 of 512 in a cycle of a Zen 5
_MEMORY = 0.17  # of them come from memory: 88 of 512, of a Zen 3 40 of 256

Parts = list[tuple[float, int]]  # how often a tile of which size occurs along a dimension


@record
class ImageTile:
    """The pixels of a tile, as rows and columns of the image, and its channels."""

    down: int
    across: int
    wide: int


class Border(NamedTuple):
    """A dimension of an image with a border, and of the window on it: the size of the image, the pixels before it, and the size
    of the window, its stride and its dilation.
    """

    size: int
    before: int
    window: int
    stride: int
    dilation: int


@functools.lru_cache(maxsize=4096)
def best_tile(target: Target, rows: int | None, columns: int | None, terms: int | None, lanes: int) -> tuple[int, int]:
    """The number of rows and of vectors of the tile for a result of `rows` rows, each of `columns` elements; None: unknown.

    The factors of a row are neighbours in memory, the rows follow each other.
    """
    vectors = None if columns is None else -(-columns // lanes)
    tiles = [(tall, wide) for wide in range(1, min(_MOST_VECTORS, vectors or _MOST_VECTORS) + 1)
             for tall in range(1, min(registers(target), rows or registers(target)) + 1)
             if _fits(target, tall, _widest(target, columns, wide, lanes)) or (tall, wide) == (1, 1)]
    return min(tiles, key=lambda tile: (cycles_of_rows(target, rows, columns, terms, lanes, tile), -tile[0]))


def cycles_of_rows(target: Target, rows: int | None, columns: int | None, terms: int | None, lanes: int,
                   tile: tuple[int, int]) -> float:
    """The cycles of a result by tiles of (rows, vectors), as of `best_tile`."""
    tall, wide = tile
    apart = (terms or 1) * (target.vector_bits // lanes // 8)
    masked = _MASKED if columns is not None and columns % lanes and wide * lanes < columns else 1
    across = registers_of_rows(columns, wide, lanes, target.has_mask_registers)
    return _cycles(target, _parts(rows, tall), across, terms, lanes, apart, _lines(target, columns, lanes)) * masked


@functools.lru_cache(maxsize=4096)
def image_tile(target: Target, image: tuple[int | None, int | None], channels: int | None, terms: int | None, lanes: int,
               apart: int, block: int = 1, whole: bool = False, dividing: bool = False, border: Border | None = None,
               copied: bool = True, room: int | None = None) -> ImageTile:
    """The tile for a result of (rows, columns) pixels and `channels` channels: pixels of a row, or of some rows.

    apart: the bytes between neighbours of a row. block: what the channels of a tile are a multiple of, itself one of the lanes;
    1 for none. whole: whether a tile of several rows has to be as wide as the image. dividing: whether no tile may be cut off
    at the end of a row. border: above and below, where rows of the window are skipped. room: the bytes that L2 has for a panel
    of weights, where larger ones are waited for. copied: whether weights are copied, panel by panel, before tiles read them.
    """
    tiles = list(image_tiles(target, image, channels, lanes, block, whole, dividing))
    if not tiles:
        return ImageTile(1, 1, block)
    asked = target, image, channels, terms, lanes, apart
    return min(tiles, key=lambda tile: (cycles_of_image(*asked, tile, border, copied, room), tile.down))


def image_tiles(target: Target, image: tuple[int | None, int | None], channels: int | None, lanes: int, block: int = 1,
                whole: bool = False, dividing: bool = False) -> Iterator[ImageTile]:
    """The tiles, as of `image_tile`, whose sums and operands the registers hold; their channels fill vectors."""
    rows, columns = image
    vectors, part = None if channels is None else -(-channels // lanes), -(-block // lanes)
    for wide in range(part, max(part, min(_MOST_VECTORS, vectors or _MOST_VECTORS)) + 1, part):
        for across in range(1, min(registers(target), columns or registers(target)) + 1):
            if dividing and (columns is None or columns % across):
                continue
            for down in range(1, 2 if whole and across != columns else min(registers(target) // across, rows or 1) + 1):
                fits = _fits(target, down * across, _widest(target, channels, wide, lanes))
                if fits or (down, across, wide) == (1, 1, part):
                    yield ImageTile(down, across, wide * lanes)


def cycles_of_image(target: Target, image: tuple[int | None, int | None], channels: int | None, terms: int | None, lanes: int,
                    apart: int, tile: ImageTile, border: Border | None = None, copied: bool = True,
                    room: int | None = None) -> float:
    """The cycles of a result by tiles of pixels and channels, as of `image_tile`."""
    pixels = _products(_parts(image[0], tile.down), _parts(image[1], tile.across))
    masked = _MASKED if channels is not None and channels % tile.wide and tile.wide < channels else 1
    across_channels = registers_of_rows(channels, -(-tile.wide // lanes), lanes, target.has_mask_registers)
    share = 1.0 if border is None or image[0] is None else share_inside(border, image[0], tile.down)
    cycles = _cycles(target, pixels, across_channels, terms, lanes, apart, waits=WAITS, room=room) * share
    return (cycles + _first_reads(target, pixels, across_channels, terms, lanes, apart, copied, room)) * masked


def _first_reads(target: Target, pixels: Parts, across: Parts, terms: int | None, lanes: int, apart: int,
                 copied: bool, room: int | None) -> float:
    """What the first tile of each panel takes longer, of weights that do not fit L2: in a network they come from memory. Copies
    of panels for which L2 has no room are written beyond it.
    """
    panels = sum(count * wide for count, wide in across) * (terms or _TERMS) * target.vector_bits // 8
    if panels <= target.machine.l2.size:
        return 0.0

    def one(wide: int, rate: float) -> float:
        return _one(target, pixels[0][1], wide, terms or _TERMS, lanes, apart, 1.0, WAITS, rate)

    first = _BEYOND if copied else _MEMORY
    written = (terms or _TERMS) * target.vector_bits / target.machine.l2_bits / _BEYOND if copied else 0.0
    rates = [_rate(target, wide, terms, room) for _, wide in across]
    return sum(count * (one(wide, first) - one(wide, rate) + (written * wide if rate < 1 else 0))
               for (count, wide), rate in zip(across, rates))


def _rate(target: Target, wide: int, terms: int | None, room: int | None) -> float:
    """The part of the bits of L2 in a cycle at which a panel of `wide` vectors comes, if L2 has `room` for it; None: enough."""
    return _BEYOND if room is not None and (terms or _TERMS) * wide * target.vector_bits // 8 > room else 1.0


@functools.lru_cache(maxsize=4096)
def share_inside(border: Border, extent: int, size: int) -> float:
    """The part of the window that tiles of `size` of `extent` results add up: what lies in the image for one of a tile."""
    added = 0
    for first in range(0, extent, size):
        last = min(first + size, extent) - 1
        top = max(0, -(-(border.before - last * border.stride) // border.dilation))
        bottom = min(border.window - 1, (border.before + border.size - 1 - first * border.stride) // border.dilation)
        added += max(0, bottom - top + 1) * (last + 1 - first)
    return added / max(1, extent * border.window)


def _fits(target: Target, tall: int, wide: int) -> bool:
    return tall * wide + wide + 1 <= registers(target)


def _lines(target: Target, columns: int | None, lanes: int) -> float:
    """How many lines a vector lies in, on average: rows of whole vectors begin at lines, the vectors of others anywhere."""
    size, item = target.vector_bits // 8, target.vector_bits // lanes // 8
    return 1.0 if columns is None or columns % lanes == 0 else 1 + (size - item) / target.machine.line


def _widest(target: Target, columns: int | None, wide: int, lanes: int) -> int:
    """The most registers that hold a row of a tile of `wide` vectors."""
    return max((row for _, row in registers_of_rows(columns, wide, lanes, target.has_mask_registers)), default=1)


def _parts(extent: int | None, size: int) -> Parts:
    if extent is None:
        return [(_MANY / size, size)]
    return [(count, part) for count, part in ((extent // size, size), (1, extent % size)) if count and part]


def _products(one: Parts, other: Parts) -> Parts:
    return [(a * b, m * n) for (a, m), (b, n) in itertools.product(one, other)]


def _cycles(target: Target, down: Parts, across: Parts, terms: int | None, lanes: int, apart: int,
            lines: float = 1.0, waits: float = 0.0, room: int | None = None) -> float:
    """The cycles of all tiles, of which `down` gives the rows, or pixels, and `across` the vectors.

    waits: the part of what comes from L2, or from beyond it, that is waited for.
    """
    whole = sum(n * m * _one(target, tall, wide, terms or _TERMS, lanes, apart, lines, waits,
                             _rate(target, wide, terms, room))
                for n, tall in down for m, wide in across)
    return whole * _END ** (len(down) + len(across) - 2)


@functools.lru_cache(maxsize=4096)
def _one(target: Target, tall: int, wide: int, terms: int, lanes: int, apart: int, lines: float, waits: float,
         rate: float) -> float:
    """The cycles of one tile. Bounds that are close to each other are not reached: they are added as powers."""
    *near, far = tile_bounds(tall, wide, terms, lanes, target, apart, lines=lines)
    far /= rate
    bounds = *near, far, target.machine.fma_latency * _SLACK
    return float(terms * (sum(bound**_POWER for bound in bounds) ** (1 / _POWER) + waits * far) + _RESULT * tall * wide)
