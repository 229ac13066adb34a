"""The sums of a tile, which stay in registers while they run over channels and window."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.kinds import ConvOp
from topi.schedules.cpu.ahead import bytes_ahead, bytes_near
from topi.schedules.cpu.conv.border import loops_of_sums, skip_border
from topi.schedules.cpu.conv.groups import channel_loop, terms_of_step
from topi.schedules.cpu.conv.operands import weights_of
from topi.schedules.cpu.conv.register_tiles import ImageTile
from topi.schedules.cpu.dots import split_groups
from topi.schedules.cpu.panels import as_panels
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_PLANES = 4  # steps of a tile that are one iteration: of 64->64 3x3 56² eight took 1.00 to 1.03 of their time
_FULL = 0.75  # of the caches: what is used again stays there
_SHARE = 1.5  # times the multiply-adds: for 16 channels of 64, 128 and 256 it gains, for 32 of 160 it loses up to 1.17


def sum_up(kernel: Kernel, sums: Any, tail: Any, place: Any, tile: ImageTile, blocked: bool = False, group: int = 1) -> None:
    """Compute the sums of a tile at the loop `place`, in registers. An element of the data is used for all vectors at once:
    blocks of channels are innermost. group: the channels of the data in a step.
    """
    stage = kernel.schedule[sums]
    stage.compute_at(tail, place)
    *axes, c = stage.op.axis
    if blocked:
        axes.append(axes.pop(1))
    *outer, channels = _reduction(kernel, stage)
    steps, terms = split_groups(stage, channels, group)
    stage.reorder(*outer, *steps, *axes, *terms, c)
    for axis in axes:
        stage.unroll(axis)
    stage.vectorize(c)
    skip_border(kernel, stage, axes[-2 if blocked else -1], tile)
    ask_for_panels(kernel, stage, outer, extent_of(stage.op.reduce_axis[0]))


def is_image_awaited(kernel: Kernel, vectors: int) -> bool:
    """Whether tiles that read an image once, for `vectors` vectors of channels, would wait for it: it does not stay in a cache
    that is near, beside the result, and comes from beyond in no less than about the time of the multiply-adds.

    The window has to be one pixel, without a stride, and the image is stored.
    """
    target, record, data, result = kernel.target, kernel.record, kernel.record.data, kernel.tail.output(0)
    window = [extent_of(axis) for axis in loops_of_sums(kernel, kernel.anchor)[1]]
    if record.groups != 1 or terms_of_step(kernel) > 1 or max(record.strides) > 1 or any((*record.before, *record.after)):
        return False
    sizes = [product([constant(extent) for extent in tensor.shape]) for tensor in (data, result)]
    if not isinstance(data.op, te.PlaceholderOp) or None in sizes or any(extent != 1 for extent in window):
        return False
    size = sum((count or 0) * tensor.dtype.bytes for count, tensor in zip(sizes, (data, result)))
    comes = data.dtype.bits / target.machine.l3_bits
    is_far: bool = size > _FULL * bytes_near(target.machine)
    return is_far and bool(_SHARE * comes >= vectors / target.machine.fmas(target.vector_bits))


def ask_for_image(kernel: Kernel, tail: Any, tiles: Any, tile: ImageTile) -> None:
    """Prefetch at `tiles`, the loop over tiles of pixels, what one of the next reads, some lines in each step: a tile reads
    lines of all its pixels at once, and does not look ahead as far as the next ones.
    """
    channels = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]) or 1
    read = tile.down * tile.across * channels * kernel.record.data.dtype.bytes
    tail.prefetch(kernel.record.data, tiles, max(1, bytes_ahead(kernel) // read), spread=True)


def ask_for_panels(kernel: Kernel, stage: Any, loops: list[Any], channels: int | None) -> None:
    """Prefetch weights that were packed before: in a network they come from memory, since each call reads those of all layers,
    and a step reads pieces of some planes, which processors do not follow. loops: those of the sums over `channels` as
    `planes_last` returns them, without the planes.
    """
    weights = weights_of(kernel).op
    packed = as_panels(kernel, weights_of(kernel))
    if packed is None or channels is None or len(loops) != 3 or terms_of_step(kernel) > 1:
        return
    if all(tensor.op is not weights for tensor in stage.op.input_tensors):
        return  # panels of another width are copied
    together = divisor_near(channels, _PLANES, 1)
    _, height, width = [extent_of(axis) or 1 for axis in stage.op.reduce_axis]
    line = packed.wide * packed.panels.dtype.bits // 8
    steps = zip(loops, (together * height * width * line, width * line, line), (channels // together, height, width))
    *_, (loop, step, _) = [one for one in steps if one[2] > 1 or one[0] is loops[0]]
    ahead, window = max(1, bytes_ahead(kernel) // step), height * width if loop is not loops[0] else 1
    stage.prefetch(packed.panels, loop, -(-ahead // window) * window)  # at the same place of a window, which may be skipped


def _reduction(kernel: Kernel, stage: Any) -> list[Any]:
    """The loops of the sums, outermost first; with blocks of channels: blocks, the window, the channels of a block; with planes
    as `planes_last` has them; where steps take groups of channels, these are last.
    """
    loops, record = list(stage.op.reduce_axis), kernel.record
    if type(record) is ConvOp and terms_of_step(kernel) > 1:
        loops.append(loops.pop(channel_loop(kernel)))
    block = constant(record.data.shape[-1])
    if record.layout == "NCHWc" and len(loops) == 3 and block is not None:
        channels, *window = loops
        outer, inner = stage.split(channels, factor=block)
        return [outer, *window, inner]
    count = extent_of(loops[0])
    if type(record) is ConvOp and record.layout.endswith("W") and count is not None:
        return planes_last(stage, loops[0], count, loops[1:])
    return loops


def planes_last(stage: Any, channels: Any, count: int, window: list[Any]) -> list[Any]:
    """The loops over the `count` channels of data that are stored as planes, and over the window, outermost first: some planes
    are innermost. Steps through a window have elements in common, for which a tile has no registers.
    """
    outer, inner = stage.split(channels, factor=divisor_near(count, _PLANES, 1))
    return [outer, *window, inner]
