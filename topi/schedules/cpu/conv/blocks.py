"""Sums over blocks of input channels, for convolutions whose tiles would read too much between two uses of it.

    for rows of the image, some:              their sums are kept in the nearest cache, for the channels of one panel
        for block of channels:
            for tile of pixels:               reads the weights of a block, which stay in the nearest cache, for every tile
                for channel of the block, window: sums of the tile += weights * data

A tile that goes through all channels at once reads the whole panel of weights, and some rows of every channel. Where the panel
and the image do not stay in the second cache beside each other, each tile waits for weights from further away; where the
channels lie in more pages than the first table of addresses has, each tile waits for addresses. By blocks the weights come from
memory once, in order, for the price of loading and storing the sums of a tile once for each block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from topi.kinds import ConvOp, PackedConvOp
from topi.schedules.cpu.conv.border import loops_of_sums, skip_border
from topi.schedules.cpu.conv.groups import terms_of_step
from topi.schedules.cpu.conv.operands import image_at, weights_of
from topi.schedules.cpu.conv.register_tiles import WAITS, ImageTile
from topi.schedules.cpu.conv.sums import ask_for_panels, planes_last
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

FULL = 0.75  # of the second cache: what is used again stays there; its sets are not filled evenly
_WALK = 20  # cycles to find a page in the second table of addresses, and to go on
_KEPT = 2  # cycles in which a vector of sums is loaded and stored again
_PLANES = 8  # planes, pieces of which processors read ahead of a tile: 16 and more at once are waited for
_LEAST = 8  # channels: sums that are loaded and stored for fewer of them take longer than what is saved
_LEAST_TERMS = 64  # the same, of a window of any size


class ChannelBlocks(NamedTuple):
    """The rows, or pixels across the rows, of the result whose sums are kept, and the channels of the data that are added up
    at once.
    """

    rows: int
    channels: int


class _Sizes(NamedTuple):
    """Bytes: of the weights of a panel, of the padded image, of a row of one of its channels, and of a row of sums."""

    panel: int
    image: int
    row: int
    sums: int


def channel_blocks(kernel: Kernel, tile: ImageTile) -> ChannelBlocks | None:
    """The blocks that save more than they cost; None where a tile had better go through all channels at once."""
    record, machine = kernel.record, kernel.target.machine
    if type(record) not in (ConvOp, PackedConvOp) or getattr(record, "groups", 1) != 1 or terms_of_step(kernel) > 1:
        return None
    sizes, channels, height = _sizes(kernel, tile), _channels(kernel), extent_of(kernel.tail.axis[image_at(kernel)])
    window = [one for one in map(extent_of, loops_of_sums(kernel, kernel.anchor)[1]) if one is not None]
    if len(record.strides) != 2 or len(window) != 2 or window == [1, 1] or sizes is None or channels is None or height is None:
        return None
    if not (_evicts_weights(kernel, sizes) or _waits_for_addresses(kernel, sizes, tile, channels, window)):
        return None
    most = machine.l1.size // (sizes.panel // channels + window[0] * sizes.row)
    together = _channels_together(kernel)
    block = together * divisor_near(channels // together, most // together, 1)
    if block < _LEAST:
        return None
    return ChannelBlocks(divisor_near(height, max(1, machine.l1.size // 2 // sizes.sums), 1), block)


def copied_blocks(kernel: Kernel, tile: ImageTile) -> ChannelBlocks | None:
    """The blocks of channels of one image whose weights are copied into half of the nearest cache, where all tiles read them;
    None where a panel had better be copied as a whole.

    A vector of weights that is stored in the second cache takes about as long as a vector of sums that is loaded and stored
    again: it pays where a block has more terms than the image has pixels, or where a panel does not stay in the second cache.
    """
    record, machine = kernel.record, kernel.target.machine
    n, _, *image = map(extent_of, kernel.tail.axis)
    sizes, channels, pixels = _sizes(kernel, tile), _channels(kernel), product(image)
    if type(record) is not ConvOp or record.groups != 1 or len(image) != 2 or n != 1:
        return None
    if sizes is None or channels is None or pixels is None or image[0] is None:
        return None
    block = divisor_near(channels, machine.l1.size // 2 // (sizes.panel // channels), 1)
    terms = block * (product([extent_of(axis) for axis in loops_of_sums(kernel, kernel.anchor)[1]]) or 1)
    pays = terms > pixels or sizes.panel > machine.l2.size
    return ChannelBlocks(image[0], block) if pays and terms >= _LEAST_TERMS else None


def is_in_blocks(kernel: Kernel, tile: ImageTile) -> bool:
    """Whether sums by that tile are computed block by block of the channels, so that no panel is read as a whole."""
    kept = channel_blocks(kernel, tile)
    if image_at(kernel) == 1:
        return kept is not None and kept.rows == extent_of(kernel.tail.axis[1])
    return kept is not None or (kernel.record.layout.endswith("W") and copied_blocks(kernel, tile) is not None)


def bytes_of_panel(kernel: Kernel, tile: ImageTile) -> int:
    """The bytes of the weights of the channels of a tile; 0 where they are not known."""
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or 0
    return terms * tile.wide * weights_of(kernel).dtype.bits // 8


def plane_blocks(kernel: Kernel, tile: ImageTile, pixels: int, piece: int) -> ChannelBlocks | None:
    """The blocks for a window of one pixel, of data that are stored as planes: as many planes as are read ahead together.
    piece: those of all `pixels` that are computed for all channels of the result, before others.

    None where there are few planes, or where the image and a panel of weights stay in the second cache, and the panel in the
    nearest one, or what a tile waits for it is less than what it takes to load and store the sums for each block.
    """
    machine, together = kernel.target.machine, _channels_together(kernel)
    channels, element = extent_of(kernel.anchor.reduce_axis[0]) or 1, kernel.record.padded.dtype.bits // 8
    planes, panel = channels // together, channels * tile.wide * weights_of(kernel).dtype.bits // 8
    if planes <= 2 * _PLANES:
        return None
    block = together * divisor_near(planes, _PLANES, _PLANES // 2)
    vectors = -(-tile.wide // kernel.lanes(kernel.anchor))
    waits = WAITS * vectors * kernel.target.vector_bits / machine.l2_bits  # for the weights of a term
    is_near = panel <= machine.l1.size or waits <= _KEPT * tile.across * vectors / block
    if channels * pixels * element + panel <= FULL * machine.l2.size and is_near:
        return None
    most = max(1, machine.l1.size // 2 // (tile.across * tile.wide * kernel.anchor.output(0).dtype.bits // 8))
    tiles = -(-piece // tile.across)
    return ChannelBlocks(-(-tiles // -(-tiles // most)) * tile.across, block)


def _channels(kernel: Kernel) -> int | None:
    """The channels of the data."""
    data = kernel.record.padded.shape
    return product([constant(data[-1 if image_at(kernel) == 1 else 1]), constant(data[4]) if len(data) == 5 else 1])


def _channels_together(kernel: Kernel) -> int:
    """The channels that are neighbours in memory: those of a block of NCHWc."""
    data = kernel.record.padded.shape
    return constant(data[4]) or 1 if len(data) == 5 else 1


def _sizes(kernel: Kernel, tile: ImageTile) -> _Sizes | None:
    """None if an extent is symbolic, or the data are no images."""
    terms, data = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]), kernel.record.padded.shape
    if len(data) < 4 or len(kernel.tail.axis) != len(data):
        return None
    image, across = product([constant(one) for one in data[1:]]), image_at(kernel) + 1
    row, width = constant(data[across]), extent_of(kernel.tail.axis[across])
    if terms is None or image is None or row is None or width is None:
        return None
    element = kernel.record.padded.dtype.bits // 8
    return _Sizes(terms * tile.wide * weights_of(kernel).dtype.bits // 8, image * element, row * element,
                  width * tile.wide * kernel.anchor.output(0).dtype.bits // 8)


def _evicts_weights(kernel: Kernel, sizes: _Sizes) -> bool:
    """Whether an image that stays in the second cache does not stay there beside a panel of weights."""
    room = FULL * kernel.target.machine.l2.size
    return sizes.image <= room < sizes.image + sizes.panel


def _waits_for_addresses(kernel: Kernel, sizes: _Sizes, tile: ImageTile, channels: int, window: list[int]) -> bool:
    """Whether the rows of all channels that a tile reads lie in more pages than are known at once, and one row of the window
    takes less time than it takes to find a page.
    """
    target, (high, wide) = kernel.target, window
    machine = target.machine
    if kernel.record.layout != "NCHW" or sizes.image // channels < machine.page:
        return False
    vectors = -(-tile.wide // kernel.lanes(kernel.anchor))
    cycles = wide * tile.down * tile.across * vectors / machine.fmas(target.vector_bits)
    return channels * (1 + high * sizes.row / machine.page) > machine.tlb and cycles < _WALK


def sum_up_by_blocks(kernel: Kernel, sums: Any, tail: Any, place: Any, tile: ImageTile,
                     blocks: ChannelBlocks) -> tuple[Any, Any]:
    """Compute the sums of some rows at the loop `place`, by tiles in registers, block by block of the channels.

    Returns the stage of the sums, and its loop over blocks.
    """
    stage = kernel.schedule[sums]
    stage.compute_at(tail, place)
    n, *axes, c = stage.op.axis
    part = [axes.pop(0)] if kernel.record.layout == "NCHWc" else []  # innermost: an element serves all blocks of channels
    panels = []
    if image_at(kernel) == 1:
        panel, c = stage.split(c, factor=tile.wide)
        panels.append(panel)
    tiles = [stage.split(axis, factor=size) for axis, size in zip(reversed(axes), (tile.across, tile.down))][::-1]
    inside = [inner for _, inner in tiles]
    channel, window = loops_of_sums(kernel, stage.op)
    outer, channel = stage.split(channel, factor=blocks.channels)
    if part:
        channel, inner = stage.split(channel, factor=_channels_together(kernel))
        window.append(inner)
    if image_at(kernel) == 1:
        terms = [*window, channel]
    else:
        terms = [channel, *window] if part else planes_last(stage, channel, blocks.channels, window)
    stage.reorder(n, outer, *panels, *(over for over, _ in tiles), *terms, *inside, *part, c)
    for axis in (*inside, *part):
        stage.unroll(axis)
    stage.vectorize(c)
    skip_border(kernel, stage, inside[-1], tile)
    ask_for_panels(kernel, stage, terms[:-1], blocks.channels)
    return stage, outer
