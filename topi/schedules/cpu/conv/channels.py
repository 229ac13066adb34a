"""Convolutions whose vectors hold output channels: a tile is some pixels of a row times some vectors of channels.

With channels innermost (NHWC, NCHWc) results are stored as they are computed. With the width innermost the channels are side by
side in a copy of the weights, and a tile is transposed when it is stored.
"""

from __future__ import annotations

from typing import Any

from topi.kinds import DepthwiseConvOp
from topi.schedules.cpu.conv.operands import sums_of, weights_of, work_of
from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_PAGES = 256 * 1024  # bytes of weights: the pages of more are not all in the first table of addresses
_READ_OFTEN = 100  # pixels, from which a copy of the weights is worth it


def registers(kernel: Kernel) -> int:
    """The number of accumulator vectors of a tile; fewer than for a matrix product, since loads overlap in registers."""
    return 16 if kernel.target.vector_bits == 512 or kernel.target.arch == "aarch64" else 12


def schedule_channels_last(kernel: Kernel) -> None:
    *_, x, c = kernel.tail.axis
    vectors, lanes = _vectors(extent_of(c), kernel.lanes(kernel.anchor)), kernel.lanes(kernel.anchor)
    if _is_far_apart(kernel, vectors * lanes):
        _panels(kernel, vectors * lanes, -1)
    _tile(kernel, vectors * lanes, _pixels(kernel, extent_of(x), vectors))


def _is_far_apart(kernel: Kernel, wide: int) -> bool:
    """Whether the weights of a tile span more pages than the TLB holds, and are reused often enough to pack."""
    shape = [constant(extent) for extent in weights_of(kernel).shape]
    size, pixels = product(shape), product([extent_of(axis) for axis in kernel.tail.axis[:-1]])
    if isinstance(kernel.record, DepthwiseConvOp) or size is None or shape[-1] is None or shape[-1] <= wide:
        return False
    return size * weights_of(kernel).dtype.bits // 8 > _PAGES and (pixels is None or pixels >= _READ_OFTEN)


def _panels(kernel: Kernel, wide: int, channel: int) -> None:
    """Pack the weights so that a tile reads them contiguously. channel: their dimension of output channels."""
    s = kernel.schedule
    weights = s[s.cache_read(weights_of(kernel), "global", [kernel.anchor])]
    rest = slice(1, None) if channel == 0 else slice(None, -1)
    weights.transform_layout(lambda *at: [at[channel] // wide, *at[rest], at[channel] % wide])
    panel, *_, lane = weights.op.axis
    if channel == -1:
        weights.vectorize(lane)
    share_out(weights, [panel], product([extent_of(axis) for axis in weights.op.axis]))


def schedule_blocks(kernel: Kernel) -> None:
    *_, x, c = kernel.tail.axis
    block = extent_of(c) or 1
    _tile(kernel, block, _pixels(kernel, extent_of(x), -(-block // kernel.lanes(kernel.anchor))))


def _vectors(channels: int | None, lanes: int) -> int:
    """The vectors of output channels in a tile, 1 or 2: two reuse each load of the data."""
    return 2 if channels is None or -(-channels // (2 * lanes)) * 2 == -(-channels // lanes) else 1


def _pixels(kernel: Kernel, width: int | None, vectors: int) -> int:
    most = max(registers(kernel) // vectors, 1)
    return divisor_near(width, most, -(-most // 2))


def _tile(kernel: Kernel, wide: int, pixels: int) -> None:
    s, sums = kernel.schedule, sums_of(kernel)
    tail = s[kernel.tail]
    n, *rows, x, c = tail.op.axis
    co, ci = tail.split(c, factor=wide)
    xo, xi = tail.split(x, factor=pixels)
    tail.reorder(n, co, *rows, xo, xi, ci)
    tail.unroll(xi)
    tail.vectorize(ci)
    share_out(tail, [n, co, *rows], work_of(kernel))
    stage = s[sums]
    stage.compute_at(tail, xo)
    *rest, x, c = stage.op.axis
    stage.reorder(*rest, *_reduction(kernel, stage), x, c)
    stage.unroll(x)
    stage.vectorize(c)


def _reduction(kernel: Kernel, stage: Any) -> list[Any]:
    """The loops of the sums, outermost first; with blocks of channels: blocks, the window, the channels of a block."""
    loops = list(stage.op.reduce_axis)
    block = constant(kernel.record.data.shape[-1])
    if kernel.record.layout != "NCHWc" or len(loops) != 3 or block is None:
        return loops
    channels, *window = loops
    outer, inner = stage.split(channels, factor=block)
    return [outer, *window, inner]


# --- lanes along channels, width innermost ----------------------------------------------------------------------------

def fills_vectors(kernel: Kernel) -> bool:
    """Whether vectors along the output channels are fuller than vectors along the width."""
    record, lanes = kernel.record, kernel.lanes(kernel.anchor)
    channels, width = extent_of(kernel.tail.axis[1]), extent_of(kernel.tail.axis[-1])
    if isinstance(record, DepthwiseConvOp) or channels is None or channels < lanes:
        return False
    if any(constant(extent) is None for extent in weights_of(kernel).shape):
        return False
    if record.groups > 1 and channels // record.groups % lanes:
        return False
    used = channels / (-(-channels // lanes) * lanes)
    return width is None or used >= 0.9 * width / (-(-width // lanes) * lanes)


def schedule_turned(kernel: Kernel) -> None:
    s, lanes, record = kernel.schedule, kernel.lanes(kernel.anchor), kernel.record
    *_, x = kernel.tail.axis
    vectors = _vectors(extent_of(kernel.tail.axis[1]) // record.groups, lanes)
    wide, pixels = vectors * lanes, _pixels(kernel, extent_of(x), vectors)
    _panels(kernel, wide, 0)
    sums = sums_of(kernel)
    tail = s[kernel.tail]
    n, o, *rows, x = tail.op.axis
    oo, oi = tail.split(o, factor=wide)
    xo, xi = tail.split(x, factor=pixels)
    tail.reorder(n, oo, *rows, xo, oi, xi)
    tail.vectorize(xi)
    share_out(tail, [n, oo, *rows], work_of(kernel))
    stage = s[sums]
    stage.transform_layout(lambda n, o, *at: [n, *at, o])
    stage.compute_at(tail, xo)
    n, *rows, x, o = stage.op.axis
    stage.reorder(n, *rows, *stage.op.reduce_axis, x, o)
    stage.unroll(x)
    stage.vectorize(o)
