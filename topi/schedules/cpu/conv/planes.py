"""Convolutions of bytes and of bfloat16 with the width innermost: each step of a sum takes a group of channels.

    copy[n, y, x, ci] = padded[n, ci, y, x]                      the channels of a pixel become neighbours
    for panels of channels of the result, for row of the image:
        sums[x, c] += copy[x * stride + window, ci] * weights[ci, window, c]         by groups, channels innermost
        out[c, x] = sums[x, c]                                                       turned when it is stored

The sums are those of convolutions with channels innermost: by vectors, or by the tile registers of the processor. The weights
are copied in panels, by groups: [panel, ci / 4, window, c, ci % 4]. The terms of a group lie a window apart. So one copy brings
them together, within some lines that follow each other, and a second one turns these words.
"""

from __future__ import annotations

from typing import Any

from topi.kinds import ConvOp
from topi.schedules.cpu.conv.channels import is_turned, stay_near, turned_cycles
from topi.schedules.cpu.conv.groups import channel_loop, terms_in_line
from topi.schedules.cpu.conv.operands import sums_of, weights_of, work_of
from topi.schedules.cpu.conv.pixels import cycles_by_pixels, is_product
from topi.schedules.cpu.conv.register_tiles import ImageTile, cycles_of_image, image_tile
from topi.schedules.cpu.conv.rows import cycles_by_rows
from topi.schedules.cpu.conv.tiled import sum_up_tiles
from topi.schedules.cpu.conv.tiles import image_of
from topi.schedules.cpu.dots import split_groups
from topi.schedules.cpu.elements import schedule_injective
from topi.schedules.cpu.panels import as_panels
from topi.schedules.cpu.parallel import keep_cores_busy, share_out
from topi.schedules.cpu.tile_registers import PANEL, columns_near, columns_of_call, multiplies_faster
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_STORED = 6  # cycles that sums of tile registers take longer to store, for each vector: those of vectors are stored, too
_TURN = 6  # cycles to turn a vector of the result
_COPIED = 0.3  # cycles to copy a byte of the image, or of the weights
_WIDENED = 1.5  # times the cycles of float32, which numbers take that are widened one by one; measured: 1.7 to 2
_PIXELS = 128  # of some rows whose sums are turned together
_TALL = 16  # channels that are turned together


# --- where it pays ----------------------------------------------------------------------------------------------------

def is_by_groups(kernel: Kernel, filled: bool = False) -> bool:
    """Whether sums by groups take less time, the copies included, by the model of both; the sizes of the image are known.
    filled: whether zeros are added to the channels, so that groups are whole.
    """
    group = group_of(kernel, filled)
    if group == 1:
        return False
    images, channels = (extent_of(axis) for axis in kernel.tail.axis[:2])
    if images is None:
        return (channels or 0) >= kernel.lanes(kernel.anchor)
    return images == 0 or _cycles(kernel, group) < _WIDENED * _cycles_of_others(kernel)


def group_of(kernel: Kernel, filled: bool = False) -> int:
    """The channels of the data that one instruction multiplies and adds up faster than vectors do those of float32; 1 if there
    is none that does, or for others than plain convolutions of images with known sizes. filled: as of `is_by_groups`.
    """
    record, weights, target = kernel.record, weights_of(kernel), kernel.target
    if type(record) is not ConvOp or record.groups != 1 or record.layout not in ("NCW", "NCHW", "NCDHW"):
        return 1
    dtypes, sums = (record.padded.dtype, weights.dtype), kernel.anchor.output(0).dtype
    group, channels = target.dot_terms(*dtypes), constant(weights.shape[record.kernel_layout.index("I")])
    is_faster = sums.is_float or (target.has_byte_products if group == 4 else target.has_vnni)
    sizes = [extent_of(axis) for axis in (*kernel.tail.axis[1:], *kernel.anchor.reduce_axis)]
    if sums.bits != 32 or not is_faster or None in sizes or 0 in sizes:
        return 1
    if channels is None or channels < (1 if filled else group):
        return 1
    return group if record.kernel_layout.startswith("OI") and as_panels(kernel, weights) is None else 1


def _cycles(kernel: Kernel, group: int) -> float:
    """The cycles by vectors, which are an upper bound for those by tile registers."""
    image, lanes = image_of(kernel.tail.axis[2:]), kernel.lanes(kernel.anchor)
    channels, steps, apart = _shape_of_sums(kernel, group)
    images = product([extent_of(axis) for axis in (kernel.tail.axis[0], *kernel.tail.axis[2:-2])]) or 0
    tiles = cycles_of_image(kernel.target, image, channels, steps, lanes, apart, _tile(kernel, group))
    vectors = -(-channels // lanes) * (image[0] or 0) * (image[1] or 0)
    sizes = [product([constant(extent) for extent in one.shape]) or 0 for one in (kernel.record.padded, weights_of(kernel))]
    copied: int = sum(sizes) * kernel.record.padded.dtype.bytes
    return images * (tiles + _TURN * vectors) + _COPIED * copied


def _cycles_of_others(kernel: Kernel) -> float:
    if is_product(kernel):
        return cycles_by_pixels(kernel)
    return turned_cycles(kernel) if is_turned(kernel) else cycles_by_rows(kernel)


def _shape_of_sums(kernel: Kernel, group: int) -> tuple[int, int, int]:
    """The channels of the result, the steps of a sum, and the bytes between neighbouring pixels of the copy."""
    *window, data = _loops_by_groups(kernel, kernel.anchor)
    inputs = extent_of(data) or 1
    steps = -(-inputs // group) * (product([extent_of(axis) for axis in window]) or 1)
    apart = inputs * kernel.record.padded.dtype.bytes * (1 if _is_pixel(kernel) else kernel.record.strides[-1])
    return extent_of(kernel.tail.axis[1]) or 1, steps, apart


def _tile(kernel: Kernel, group: int) -> ImageTile:
    channels, steps, apart = _shape_of_sums(kernel, group)
    image, lanes = image_of(kernel.tail.axis[2:]), kernel.lanes(kernel.anchor)
    return image_tile(kernel.target, image, channels, steps, lanes, apart, whole=True)


def _loops_by_groups(kernel: Kernel, op: Any) -> list[Any]:
    """The loops of sums: those over the window, then that over the channels of the data."""
    loops = list(op.reduce_axis)
    loops.append(loops.pop(channel_loop(kernel)))
    return loops


def _is_pixel(kernel: Kernel) -> bool:
    """Whether the window has one pixel."""
    return all(extent_of(axis) == 1 for axis in _loops_by_groups(kernel, kernel.anchor)[:-1])


# --- schedules --------------------------------------------------------------------------------------------------------

def schedule_by_groups(kernel: Kernel) -> None:
    """Schedule a convolution of NCW, NCHW or NCDHW by groups of channels."""
    group = group_of(kernel)
    channels = constant(weights_of(kernel).shape[1])
    dtypes = kernel.record.padded.dtype, weights_of(kernel).dtype
    tiled = multiplies_faster(kernel, dtypes, channels, group, *(() if kernel.fused else (terms_in_line(kernel), _STORED)))
    _copy_image(kernel)
    _by_tile_registers(kernel, group) if tiled else _by_vectors(kernel, group)


def _by_vectors(kernel: Kernel, group: int) -> None:
    """Tiles of sums in registers; those of some rows are kept in the nearest cache until they are turned."""
    tile, near = _tile(kernel, group), stay_near(kernel)
    copy = _copy_of_weights(kernel, group, tile.wide)
    s, sums = kernel.schedule, sums_of(kernel)
    tail = s[kernel.tail]
    n, c, *rows, x = tail.op.axis
    panels = -(-(extent_of(c) or 1) // tile.wide)
    co, ci = tail.split(c, factor=tile.wide)
    xo, xi = _pixels_turned(kernel, tail, rows, x, tile.down)
    alone = not near and extent_of(n) == 1 and keep_cores_busy(kernel.target, panels)
    outer = [n, *rows, co] if near else [co, n, *rows] if alone else [n, co, *rows]
    tail.reorder(*outer, xo, ci, xi)
    tail.vectorize(xi)
    shared = outer[:1] if alone else outer[:-1]
    place = share_out(tail, shared, work_of(kernel))
    _place_weights(kernel, copy, group, tile.wide, (tail, place) if alone else None)
    stage = s[sums]
    stage.transform_layout(lambda n, c, *at: [n, *at, c])
    stage.compute_at(tail, outer[-1])
    n, *rows, x, c = stage.op.axis
    *window, channels = _loops_by_groups(kernel, stage.op)
    steps, terms = split_groups(stage, channels, group)
    xo, *inside = stage.split(x, factor=tile.across)
    if rows:
        rows[-1], within = stage.split(rows[-1], factor=tile.down)
        inside.insert(0, within)
    stage.reorder(n, *rows, xo, *steps, *window, *inside, *terms, c)
    for axis in inside:
        stage.unroll(axis)
    stage.vectorize(c)


def _by_tile_registers(kernel: Kernel, group: int) -> None:
    """The sums of some rows and panels are a product of matrices, in memory of its own, from which they are turned."""
    copy = _copy_of_weights(kernel, group, PANEL)
    s = kernel.schedule
    sums = s[kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "global").op]
    tail = s[kernel.tail]
    n, c, *rows, x = tail.op.axis
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or 1
    panels, down = -(-(extent_of(c) or 1) // PANEL), _rows_held(kernel, 1)
    most = columns_near(kernel, extent_of(c), terms * weights_of(kernel).dtype.bytes) // PANEL
    wide = PANEL * divisor_near(panels, most, -(-most // 2))
    held = columns_of_call(kernel, wide, down * (extent_of(x) or 1))
    outer, rest = tail.split(c, factor=wide)
    middle, rest = tail.split(rest, factor=held)
    xo, xi = _pixels_turned(kernel, tail, rows, x, 1)
    co, ci = tail.split(rest, factor=_TALL)
    tail.reorder(outer, n, *rows, middle, co, xo, ci, xi)
    tail.vectorize(xi)
    tasks = -(-panels * PANEL // wide)
    alone = tasks > 1 and keep_cores_busy(kernel.target, tasks)
    place = share_out(tail, [outer] if alone else [outer, n, *rows], work_of(kernel))
    _place_weights(kernel, copy, group, PANEL, (tail, place) if alone else None)
    sums.compute_at(tail, middle)
    sums.transform_layout(lambda n, c, *at: [n, c // PANEL, *at, c % PANEL])
    sum_up_tiles(sums, _loops_by_groups(kernel, sums.op), group)


def _pixels_turned(kernel: Kernel, tail: Any, rows: list[Any], x: Any, down: int) -> tuple[Any, Any]:
    """The loops over the vectors of the pixels of some rows, which are turned together; the last of `rows` is that over these
    rows then. down: rows of a tile.
    """
    held = _rows_held(kernel, down)
    if held > 1:
        rows[-1], within = tail.split(rows[-1], factor=held)
        x = tail.fuse(within, x)
    outer, lane = tail.split(x, factor=kernel.lanes(kernel.anchor))
    return outer, lane


def _rows_held(kernel: Kernel, down: int) -> int:
    """The rows whose sums are kept until they are turned, whole tiles of `down` rows: those whose pixels fill vectors best, for
    rows of the result follow each other in memory. Of windows of one pixel, which tile registers take together, many.
    """
    rows, width = image_of(kernel.tail.axis[2:])
    if len(kernel.tail.axis) < 4 or not rows or not width:
        return 1
    lanes = kernel.lanes(kernel.anchor)
    counts = [count for count in range(down, max(down, _PIXELS // width) + 1, down) if rows % count == 0] or [down]
    waste = {count: -(-count * width // lanes) * lanes / (count * width) for count in counts}
    return min(counts, key=lambda count: (waste[count], -count if _is_pixel(kernel) else count))


# --- copies -----------------------------------------------------------------------------------------------------------

def _copy_image(kernel: Kernel) -> None:
    """Read a copy of the image with the channels of a pixel as neighbours, for windows of a pixel without what strides skip."""
    s, record, image = kernel.schedule, kernel.record, len(kernel.record.strides)
    if _is_pixel(kernel) and max(record.strides) > 1:
        copy = s.reindex_cache_read(record.padded, "global", kernel.anchor)
        s[copy].transform_layout(lambda n, *at: [n, *at[:image], at[image]])
    else:
        copy = s.cache_read(record.padded, "global", [kernel.anchor])
        s[copy].transform_layout(lambda n, c, *at: [n, *at, c])
    op = s[copy].op
    schedule_injective(Kernel(s, op, op, kernel.target))


def _copy_of_weights(kernel: Kernel, group: int, wide: int) -> tuple[Any, Any]:
    """Copies of the weights: by groups and `wide` channels, None where they lie so, and of that with these channels inside."""
    s, weights = kernel.schedule, weights_of(kernel)
    results, inputs, *_ = map(constant, weights.shape)
    if _is_pixel(kernel) and (inputs or 1) % group == 0 and (results or 1) % wide == 0:
        panels = s.cache_read(weights, "global", [kernel.anchor])
        s[panels].transform_layout(lambda o, i, *window: [o // wide, i // group, *window, o % wide, i % group])
        return None, panels
    copy = s.cache_read(weights, "global", [kernel.anchor])
    s[copy].transform_layout(lambda o, i, *window: [o // wide, o % wide, i // group, *window, i % group])
    panels = s.cache_read(s[copy].op.output(0), "global", [kernel.anchor])
    s[panels].transform_layout(lambda panel, o, *at: [panel, *at[:-1], o, at[-1]])
    return copy, panels


def _place_weights(kernel: Kernel, copies: tuple[Any, Any], group: int, wide: int, place: tuple[Any, Any] | None) -> None:
    """Copy the panels that a loop uses, `place` (a stage, its loop), in it; all before where it is None."""
    s, machine, lanes = kernel.schedule, kernel.target.machine, kernel.target.vector_bits // 32
    stage, element = s[copies[1]], weights_of(kernel).dtype.bytes
    panel, steps, *window, column, term = stage.op.axis
    pixels = product([extent_of(axis) for axis in window]) or 1
    count = extent_of(steps) or 1
    chunk, steps = stage.split(steps, factor=divisor_near(count, max(1, machine.l1.size // 2 // (wide * pixels * 4)), 1))
    words = stage.fuse(steps, *window)
    vector, lane = stage.split(column, factor=lanes)
    stage.reorder(panel, chunk, vector, words, lane, term)
    stage.vectorize(stage.fuse(lane, term))
    if place is None:
        share_out(stage, [panel], product([extent_of(axis) for axis in stage.op.axis]))
    else:
        stage.compute_at(*place)
    if copies[0] is None:
        return
    near = s[copies[0]]
    near.compute_at(stage, chunk)
    _, _, _, *window, term = near.op.axis
    together, held = [term], group * element
    while window and held * (extent_of(window[-1]) or 1) <= 2 * machine.line:
        held *= extent_of(window[-1]) or 1
        together.insert(0, window.pop())
    near.vectorize(near.fuse(*together) if len(together) > 1 else term)
