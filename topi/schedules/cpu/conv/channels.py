"""Convolutions whose vectors hold output channels: a tile is some pixels times some vectors of channels.

With channels innermost (NHWC, NCHWc) results are stored as they are computed. With the width innermost the channels are side by
side in a copy of the weights, and a tile is transposed when it is stored.

The weights of a tile's channels, a panel, are read for each tile of pixels. Panels of weights that do not stay in the second
cache together are computed one after the other, each for all pixels; of the others all are computed for a row of pixels, which
is stored as a whole where channels are innermost. A panel whose rows lie far apart is copied first: alone, into the second
cache, or all of them, if too few panels would be left for threads to share.
"""

from __future__ import annotations

import math
from typing import Any

from tedsl import te
from topi.kinds import ConvOp, DepthwiseConvOp
from topi.schedules.cpu.conv.bands import copy_image, has_border, rows_of_band, share_out_bands
from topi.schedules.cpu.conv.blocks import channel_blocks, copied_blocks, sum_up_by_blocks
from topi.schedules.cpu.conv.border import border_of_rows
from topi.schedules.cpu.conv.far_weights import blocks_of_image, schedule_far_weights
from topi.schedules.cpu.conv.groups import are_packed, copy_of_groups, place_groups, terms_of_step
from topi.schedules.cpu.conv.images import is_by_image
from topi.schedules.cpu.conv.operands import sums_of, weights_of, work_of
from topi.schedules.cpu.conv.phases import phases_of, sum_up_by_phases
from topi.schedules.cpu.conv.register_tiles import ImageTile, cycles_of_image
from topi.schedules.cpu.conv.rows import cycles_by_rows, is_short
from topi.schedules.cpu.conv.sums import ask_for_image, is_image_awaited, sum_up
from topi.schedules.cpu.conv.tiles import image_of, tile_of_blocks, tile_of_image
from topi.schedules.cpu.parallel import SHARES, Cover, keep_cores_busy, share_out, whole_loops
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product, variables_in
from topi.schedules.kernel import Kernel

_FEW_SETS = 4  # channels that begin so many lines apart share few of the sets
_AHEAD = 2  # pieces of weights that are read while others are turned
_SURE = 0.9  # of the time of rows: the model does not see what weights from beyond the second cache cost either
_TURN, _PACK = 6, 5  # cycles to turn a vector of a result, to pack one of weights


# --- channels innermost -----------------------------------------------------------------------------------------------

def schedule_channels_last(kernel: Kernel) -> None:
    """Tile the pixels and the channels of NWC, NHWC and NDHWC."""
    group = terms_of_step(kernel)
    near = stay_near(kernel)
    tile, panels = tile_of_channels_last(kernel, group)
    copied = not near and panels != 1 and _are_read_often(kernel, tile)
    alone = copied and _are_beside(kernel, panels)
    copy = copy_of_groups(kernel, group, tile.wide) if group > 1 else _copy_of_panels(kernel, tile.wide, -1) if copied else None
    kept = blocks_of_image(kernel, tile) if alone and copy is not None else None
    band = None if alone else rows_of_band(kernel, tile, rows_first=near)
    if band is None and has_border(kernel):
        copy_image(kernel)
    if kept is not None:
        return schedule_far_weights(kernel, copy, tile, kept, panels or 1)
    s, sums = kernel.schedule, sums_of(kernel)
    tail = s[kernel.tail]
    n, *image, c = tail.op.axis
    co, ci = tail.split(c, factor=tile.wide)
    over = []
    if band is not None:
        bands, image[0] = tail.split(image[0], factor=band)
        over = [bands, n] if extent_of(n) == 1 else [n, bands]
    rows, xo, inside = _split_image(tail, image, tile)
    outer = [co, n, *rows] if alone else [n, *rows, co] if near else [n, co, *rows]
    tail.reorder(*over, *[loop for loop in outer if loop not in over], xo, *inside, ci)
    covers = {n: Cover(extent_of(n), 1), co: Cover(extent_of(c), tile.wide), **_covers_of_rows(rows, image, tile)}
    for loop in inside:
        tail.unroll(loop)
    tail.vectorize(ci)
    if band is not None:
        share_out_bands(kernel, tail, n, bands, band)
        place = None
    else:
        shared = outer[:1] if alone else whole_loops(kernel.target, outer[:-1] if near else outer, covers, co)
        place = share_out(tail, shared, work_of(kernel))
    if group > 1:
        place_groups(kernel, copy, tail, place if alone else None)
    else:
        _place(kernel, copy, tail, place if alone else None, -1)
    if panels == 1 and is_image_awaited(kernel, -(-tile.wide // kernel.lanes(kernel.anchor))):
        ask_for_image(kernel, tail, xo, tile)
    sum_up(kernel, sums, tail, xo, tile, group=group)


def tile_of_channels_last(kernel: Kernel, group: int) -> tuple[ImageTile, int | None]:
    """The tile of `schedule_channels_last`, and how many panels of channels there are."""
    return tile_of_image(kernel, image_of(kernel.tail.axis[1:-1]), extent_of(kernel.tail.axis[-1]), group=group,
                         whole=stay_near(kernel) and not _two_rows_stay_near(kernel))


def schedule_blocks(kernel: Kernel) -> None:
    """Tile the pixels of NCHWc, and its channels by blocks."""
    channels, block = [extent_of(axis) for axis in (kernel.tail.axis[1], kernel.tail.axis[-1])]
    group = terms_of_step(kernel)
    tile, _ = tile_of_blocks(kernel, image_of(kernel.tail.axis[2:-1]), channels, block or 1, group=group)
    if group > 1:
        place_groups(kernel, copy_of_groups(kernel, group), kernel.schedule[kernel.tail], None)
    kept = channel_blocks(kernel, tile)
    band = rows_of_band(kernel, tile) if kept is None else None
    if band is None and has_border(kernel):
        copy_image(kernel)
    s, sums = kernel.schedule, sums_of(kernel)
    tail = s[kernel.tail]
    n, c, *image, ci = tail.op.axis
    co, blocks = tail.split(c, factor=max(1, tile.wide // (block or 1)))
    if kept is not None:
        yo, yi = tail.split(image[0], factor=kept.rows)
        tail.reorder(n, co, yo, blocks, yi, image[1], ci)
        tail.vectorize(ci)
        share_out(tail, [n, co, yo], work_of(kernel))
        sum_up_by_blocks(kernel, sums, tail, tail.leaf_iter_vars[0], tile, kept)
        return
    if band is not None:
        over, image[0] = tail.split(image[0], factor=band)
    rows, xo, inside = _split_image(tail, image, tile)
    panels = [co, *rows]
    tail.reorder(*([n] if band is None else [over, n] if extent_of(n) == 1 else [n, over]), *panels, xo, blocks, *inside, ci)
    for loop in (blocks, *inside):
        tail.unroll(loop)
    tail.vectorize(ci)
    if band is not None:
        share_out_bands(kernel, tail, n, over, band)
    else:
        covers = {n: Cover(extent_of(n), 1), co: Cover(extent_of(c), max(1, tile.wide // (block or 1))),
                  **_covers_of_rows(rows, image, tile)}
        share_out(tail, whole_loops(kernel.target, [n, *panels], covers, co), work_of(kernel))
    sum_up(kernel, sums, tail, xo, tile, blocked=True, group=group)


def _split_image(tail: Any, image: list[Any], tile: ImageTile) -> tuple[list[Any], Any, list[Any]]:
    """The loops over rows, the loop over the tiles of a row, and the loops inside of a tile."""
    *rows, x = image
    xo, xi = tail.split(x, factor=tile.across)
    if tile.down == 1 or not rows:
        return rows, xo, [xi]
    yo, yi = tail.split(rows[-1], factor=tile.down)
    return [*rows[:-1], yo], xo, [yi, xi]


def _covers_of_rows(rows: list[Any], image: list[Any], tile: ImageTile) -> dict[Any, Cover]:
    """How tiles cover the rows of an image, by the loops that `_split_image` made."""
    return {loop: Cover(extent_of(axis), tile.down if at == len(rows) - 1 else 1)
            for at, (loop, axis) in enumerate(zip(rows, image))}


# --- width innermost --------------------------------------------------------------------------------------------------

def is_turned(kernel: Kernel) -> bool:
    """Whether vectors along the output channels take less time than vectors along the width, by the model of both where all
    sizes are known, and weights stay near or one is far better; else whether they are fuller, or the width has a stride.
    """
    record, lanes = kernel.record, kernel.lanes(kernel.anchor)
    channels, width = extent_of(kernel.tail.axis[1]), extent_of(kernel.tail.axis[-1])
    if isinstance(record, DepthwiseConvOp) or channels is None or is_short(kernel):
        return False
    if any(constant(extent) is None for extent in weights_of(kernel).shape):
        return False
    if record.groups > 1 and channels // record.groups % lanes:
        return False
    known = product([extent_of(axis) for axis in (*kernel.tail.axis, *kernel.anchor.reduce_axis)])
    if type(record) is ConvOp and record.groups == 1 and known:
        share, near = turned_cycles(kernel) / cycles_by_rows(kernel), stay_near(kernel)
        if near or share <= _SURE:
            return share <= 1
    if channels < lanes:
        return False
    used = channels / (-(-channels // lanes) * lanes)
    strided = type(record) is ConvOp and record.strides[-1] > 1
    return width is None or strided or used >= 0.9 * width / (-(-width // lanes) * lanes)


def shares_panels(kernel: Kernel) -> bool:
    """Whether `schedule_turned` copies each panel beside its sums, not all of them before."""
    return _are_alone(kernel, *_turned_tile(kernel))


def turned_cycles(kernel: Kernel) -> float:
    """The cycles of a convolution of known sizes by `schedule_turned`, as far as they differ from those of others."""
    record, lanes, image = kernel.record, kernel.lanes(kernel.anchor), image_of(kernel.tail.axis[2:])
    channels, terms = extent_of(kernel.tail.axis[1]) or 0, product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or 0
    apart = record.padded.dtype.bits // 8 * record.strides[-1]
    tiles = cycles_of_image(kernel.target, image, channels, terms, lanes, apart, _turned_tile(kernel)[0],
                            border_of_rows(kernel))
    images = product([extent_of(axis) for axis in (kernel.tail.axis[0], *kernel.tail.axis[2:-2])]) or 0
    vectors = -(-channels // lanes) * (image[0] or 0) * (image[1] or 0)
    return images * (tiles + _TURN * vectors) + _PACK * channels * terms / lanes


def schedule_turned(kernel: Kernel) -> None:
    """Tile the pixels and the channels of NCW, NCHW and NCDHW."""
    tile, panels = _turned_tile(kernel)
    alone = _are_alone(kernel, tile, panels) and not _images_are_larger(kernel, panels or 1)
    copy, phases = _copy_of_panels(kernel, tile.wide, 0), phases_of(kernel)
    near = copied_blocks(kernel, tile) if alone and copy is not None else None
    kept = channel_blocks(kernel, tile) if near is None else near
    whole = kept is not None or phases > 1
    s, sums = kernel.schedule, sums_of(kernel)
    tail = s[kernel.tail]
    n, o, *image = tail.op.axis
    oo, oi = tail.split(o, factor=tile.wide)
    turned = ImageTile(kept.rows if kept else 1, _turned_at_once(kernel), tile.wide) if whole else tile
    rows, xo, (*yi, xi) = _split_image(tail, image, turned)
    outer = [*([oo, n] if alone else [n, oo]), *rows]
    tail.reorder(*outer, *([*yi, xo] if whole else [xo, *yi]), oi, xi)
    tail.vectorize(xi)
    covers = {n: Cover(extent_of(n), 1), oo: Cover(extent_of(o), tile.wide), **_covers_of_rows(rows, image, turned)}
    by_image = not alone and is_by_image(kernel, kernel.record.padded.op, panels or 1)
    shared = [oo] if alone else whole_loops(kernel.target, outer[by_image:], covers, oo)
    place = share_out(tail, shared, work_of(kernel))
    if by_image:
        s[kernel.record.padded].compute_at(tail, n)
    if near is None:
        _place(kernel, copy, tail, place if alone else None, 0)
    s[sums].transform_layout(lambda n, o, *at: [n, *at, o])
    inside = place if near is not None or outer[-1] in shared else outer[-1]
    if kept is not None:
        stage, over_blocks = sum_up_by_blocks(kernel, sums, tail, inside, tile, kept)
        if near is not None:
            _place(kernel, copy, stage, over_blocks, 0)
    elif phases > 1:
        sum_up_by_phases(kernel, sums, tail, inside, tile, phases)
    else:
        sum_up(kernel, sums, tail, xo, tile)
    _spread_channels(kernel)


def _turned_at_once(kernel: Kernel) -> int:
    """The pixels of a row that are turned at once where sums of whole rows are kept: a vector, or a divisor near it."""
    lanes = kernel.lanes(kernel.anchor)
    return divisor_near(extent_of(kernel.tail.axis[-1]), lanes, lanes // 2 + 1)


def panel_width(kernel: Kernel) -> int | None:
    """The output channels of a panel into which `schedule_turned` copies weights of (O, I, H, W)."""
    return _turned_tile(kernel)[0].wide


def _turned_tile(kernel: Kernel) -> tuple[ImageTile, int | None]:
    """The tile, of pixels of one phase, and the number of panels."""
    (rows, columns), phases = image_of(kernel.tail.axis[2:]), phases_of(kernel)
    image = (rows, columns) if phases == 1 or columns is None else (1, columns // phases)
    return tile_of_image(kernel, image, extent_of(kernel.tail.axis[1]), whole=True)


def _spread_channels(kernel: Kernel) -> None:
    """Let the channels of padded data begin in different sets of the nearest cache: a tile reads some rows of all of them."""
    data, machine = kernel.record.padded, kernel.target.machine
    plane = product([constant(extent) for extent in data.shape[2:]])
    if not isinstance(data.op, te.ComputeOp) or kernel.schedule[data].attach_type == te.schedule.AttachType.INLINE or not plane:
        return
    element = data.dtype.bits // 8
    if math.gcd(plane * element, machine.l1.size // machine.l1.ways) >= _FEW_SETS * machine.line:
        kernel.schedule[data].storage_align(data.op.axis[1], 2 * machine.line // element, machine.line // element)


# --- panels -----------------------------------------------------------------------------------------------------------

def stay_near(kernel: Kernel) -> bool:
    """Whether all weights stay in the second cache beside the data."""
    size = product([constant(extent) for extent in weights_of(kernel).shape])
    return size is not None and 2 * size * weights_of(kernel).dtype.bits // 8 <= kernel.target.machine.l2.size


def _two_rows_stay_near(kernel: Kernel) -> bool:
    """Whether two rows of the result, to which one panel after the other adds its pieces, stay in the nearest cache."""
    size = product([extent_of(axis) for axis in kernel.tail.axis[-2:]])
    return size is not None and 2 * size * kernel.tail.output(0).dtype.bits // 8 <= kernel.target.machine.l1.size


def _are_read_often(kernel: Kernel, tile: ImageTile) -> bool:
    """Whether more than one tile reads each panel."""
    pixels = product([extent_of(axis) for axis in kernel.tail.axis[:-1]])
    return pixels is None or pixels > tile.down * tile.across


def _are_beside(kernel: Kernel, panels: int | None) -> bool:
    """Whether each panel of NHWC is copied beside its sums: copies of all panels before do not stay in the second cache."""
    if panels is None or _are_enough(kernel, panels):
        return panels is not None
    return keep_cores_busy(kernel.target, panels) and not _images_are_larger(kernel, panels)


def _are_enough(kernel: Kernel, panels: int | None) -> bool:
    """Whether there are panels for all cores."""
    return panels is not None and panels >= SHARES * kernel.target.machine.cores


def _are_alone(kernel: Kernel, tile: ImageTile, panels: int | None) -> bool:
    """Whether each panel of NCHW is copied and used by one thread: where threads have equal work, or weights come from far."""
    cores, channels = kernel.target.machine.cores, extent_of(kernel.tail.axis[1])
    if panels is None or channels is None:
        return False
    if not stay_near(kernel):
        return keep_cores_busy(kernel.target, panels)
    even = channels % (tile.wide * cores) == 0 or _are_enough(kernel, panels)
    return even and panels > 1 and extent_of(kernel.tail.axis[0]) == 1


def _images_are_larger(kernel: Kernel, panels: int) -> bool:
    """Whether to read all images for each panel takes more bytes than to read all panels for each image."""
    sizes = [product([constant(extent) for extent in tensor.shape]) for tensor in (kernel.record.padded, weights_of(kernel))]
    images = extent_of(kernel.tail.axis[0])
    if images is None or images == 1 or sizes[0] is None or sizes[1] is None:
        return False
    return sizes[0] * (panels - 1) > sizes[1] * (images - 1)


def _copy_of_panels(kernel: Kernel, wide: int, channel: int) -> Any:
    """A copy of the weights in which the channels of a panel are neighbours; None if they lie so. channel: their dimension of
    output channels.
    """
    s = kernel.schedule
    if are_packed(kernel, 1, wide):
        return None
    copy = s.cache_read(weights_of(kernel), "global", [kernel.anchor])
    rest = slice(1, None) if channel == 0 else slice(None, -1)
    s[copy].transform_layout(lambda *at: [at[channel] // wide, *at[rest], at[channel] % wide])
    *_, place, lane = s[copy].op.axis
    held, lanes = extent_of(lane), kernel.lanes(kernel.anchor)
    if held is not None and held % lanes:  # else loads lie in two lines of memory
        s[copy].storage_align(place, -(-held // lanes) * lanes, 0)
    return copy


def _terms_inside(kernel: Kernel, load: Any) -> int:
    """The number of terms of the sums, the last ones, that are nearer to each other in memory than the channels are, where
    `load` is what an element of the weights is computed from.
    """
    places = [max((at for at, index in enumerate(load.indices) if axis.var in variables_in(index)), default=-1)
              for axis in weights_of(kernel).op.axis]
    channel = places.pop(kernel.record.kernel_layout.index("O"))
    return next((at for at, place in enumerate(reversed(places)) if place <= channel), len(places))


def _source(kernel: Kernel) -> Any:
    """What an element of the weights is computed from while they are copied; None where they are stored."""
    weights: Any = weights_of(kernel).op
    if type(kernel.record) is not ConvOp or type(weights) is not te.ComputeOp:
        return None
    loads = kernel.formula(weights).loads
    inlined = kernel.schedule[weights].attach_type == te.schedule.AttachType.INLINE
    return loads[0] if inlined and len(loads) == 1 else None


def _place(kernel: Kernel, copy: Any, tail: Any, place: Any, channel: int) -> None:
    """Copy a panel in each iteration of the loop `place` of `tail`; where it is None, all panels before. channel: as of
    `_copy_of_panels`.
    """
    if copy is None:
        return
    stage = kernel.schedule[copy]
    panel, *terms, lane = stage.op.axis
    source = _source(kernel)
    stored = type(kernel.record) is ConvOp and channel == 0
    inside = _terms_inside(kernel, source) if source is not None else len(terms) if stored else 0
    apart = len(terms) - inside if inside else 0
    outer, near = terms[:apart], terms[apart:]
    loop = stage.fuse(*near) if len(near) > 1 else near[0]  # neighbours in memory, if the channel comes first
    vector, lane = stage.split(lane, factor=kernel.lanes(kernel.anchor))
    if inside:  # one vector of channels after the other: their rows share sets, and registers turn squares of them
        stage.reorder(panel, *outer, vector, loop, lane)
    else:  # whole pieces of rows, which lie pages apart
        stage.reorder(panel, loop, vector, lane)
        stage.unroll(vector)
    stage.vectorize(lane)
    if outer and isinstance(source.producer.op, te.PlaceholderOp):
        stage.prefetch(source.producer, outer[-1], _AHEAD)  # pieces are too short for processors to follow
    if place is not None:
        stage.compute_at(tail, place)
    else:
        share_out(stage, [panel], product([extent_of(axis) for axis in stage.op.axis]))
