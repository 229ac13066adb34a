"""Convolutions: a tile of the result stays in registers while the sums run over channels and window.

    channels innermost (NHWC, NCHWc):   lanes along the channels; a tile is some pixels of a row times one or two vectors
    width innermost (NCHW), channels    the same, with a copy of the weights whose channels are neighbours; the tile is
    that fill vectors:                  transposed when it is stored
    width innermost, few channels:      lanes along the width; a tile is some channels times some vectors of a row

Element-wise operators after the convolution (bias, batch norm, relu, a residual) are computed on the tile as it is stored.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.kinds import DepthwiseConvOp, TransposedConvOp
from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.reduce import schedule_reduce
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_PAGES = 256 * 1024  # bytes of weights: the pages of more are not all in the first table of addresses
_READ_OFTEN = 100  # pixels, from which a copy of the weights is worth it


def schedule_conv(kernel: Kernel) -> None:
    """Schedule a convolution by its innermost dimension and its number of channels."""
    layout = kernel.record.layout
    if layout == "NCHWc":
        _blocks(kernel)
    elif layout.endswith("C"):
        _channels_last(kernel)
    elif layout.endswith("W"):
        if _fills_vectors(kernel):
            _turned(kernel)
        else:
            _rows(kernel)
    else:
        schedule_reduce(kernel)


def _work(kernel: Kernel) -> int | None:
    return product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])


def _registers(kernel: Kernel) -> int:
    """The number of accumulator vectors of a tile; fewer than for a matrix product, since loads overlap in registers."""
    return 16 if kernel.target.vector_bits == 512 or kernel.target.arch == "aarch64" else 12


def _weights(kernel: Kernel) -> te.Tensor:
    """The tensor that the reduction reads as weights."""
    tensor: te.Tensor = kernel.record.flipped if isinstance(kernel.record, TransposedConvOp) else kernel.record.kernel
    return tensor


def _sums(kernel: Kernel) -> Any:
    """The operation that holds the reduction, which may be cached apart from the stage that stores the result."""
    if kernel.fused:
        return kernel.anchor
    return kernel.schedule.cache_write(kernel.tail.output(0), "local").op


# --- lanes along channels ---------------------------------------------------------------------------------------------

def _channels_last(kernel: Kernel) -> None:
    *_, x, c = kernel.tail.axis
    vectors, lanes = _vectors(extent_of(c), kernel.lanes(kernel.anchor)), kernel.lanes(kernel.anchor)
    if _is_far_apart(kernel, vectors * lanes):
        _panels(kernel, vectors * lanes, -1)
    _tile(kernel, vectors * lanes, _pixels(kernel, extent_of(x), vectors))


def _is_far_apart(kernel: Kernel, wide: int) -> bool:
    """Whether the weights of a tile span more pages than the TLB holds, and are reused often enough to pack."""
    shape = [constant(extent) for extent in _weights(kernel).shape]
    size, pixels = product(shape), product([extent_of(axis) for axis in kernel.tail.axis[:-1]])
    if isinstance(kernel.record, DepthwiseConvOp) or size is None or shape[-1] is None or shape[-1] <= wide:
        return False
    return size * _weights(kernel).dtype.bits // 8 > _PAGES and (pixels is None or pixels >= _READ_OFTEN)


def _panels(kernel: Kernel, wide: int, channel: int) -> None:
    """Pack the weights so that a tile reads them contiguously. channel: their dimension of output channels."""
    s = kernel.schedule
    weights = s[s.cache_read(_weights(kernel), "global", [kernel.anchor])]
    rest = slice(1, None) if channel == 0 else slice(None, -1)
    weights.transform_layout(lambda *at: [at[channel] // wide, *at[rest], at[channel] % wide])
    panel, *_, lane = weights.op.axis
    if channel == -1:
        weights.vectorize(lane)
    share_out(weights, [panel], product([extent_of(axis) for axis in weights.op.axis]))


def _blocks(kernel: Kernel) -> None:
    *_, x, c = kernel.tail.axis
    block = extent_of(c) or 1
    _tile(kernel, block, _pixels(kernel, extent_of(x), -(-block // kernel.lanes(kernel.anchor))))


def _vectors(channels: int | None, lanes: int) -> int:
    """The vectors of output channels in a tile, 1 or 2: two reuse each load of the data."""
    return 2 if channels is None or -(-channels // (2 * lanes)) * 2 == -(-channels // lanes) else 1


def _pixels(kernel: Kernel, width: int | None, vectors: int) -> int:
    most = max(_registers(kernel) // vectors, 1)
    return divisor_near(width, most, -(-most // 2))


def _tile(kernel: Kernel, wide: int, pixels: int) -> None:
    s, sums = kernel.schedule, _sums(kernel)
    tail = s[kernel.tail]
    n, *rows, x, c = tail.op.axis
    co, ci = tail.split(c, factor=wide)
    xo, xi = tail.split(x, factor=pixels)
    tail.reorder(n, co, *rows, xo, xi, ci)
    tail.unroll(xi)
    tail.vectorize(ci)
    share_out(tail, [n, co, *rows], _work(kernel))
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

def _fills_vectors(kernel: Kernel) -> bool:
    """Whether vectors along the output channels are fuller than vectors along the width."""
    record, lanes = kernel.record, kernel.lanes(kernel.anchor)
    channels, width = extent_of(kernel.tail.axis[1]), extent_of(kernel.tail.axis[-1])
    if isinstance(record, DepthwiseConvOp) or channels is None or channels < lanes:
        return False
    if any(constant(extent) is None for extent in _weights(kernel).shape):
        return False
    if record.groups > 1 and channels // record.groups % lanes:
        return False
    used = channels / (-(-channels // lanes) * lanes)
    return width is None or used >= 0.9 * width / (-(-width // lanes) * lanes)


def _turned(kernel: Kernel) -> None:
    s, lanes, record = kernel.schedule, kernel.lanes(kernel.anchor), kernel.record
    *_, x = kernel.tail.axis
    vectors = _vectors(extent_of(kernel.tail.axis[1]) // record.groups, lanes)
    wide, pixels = vectors * lanes, _pixels(kernel, extent_of(x), vectors)
    _panels(kernel, wide, 0)
    sums = _sums(kernel)
    tail = s[kernel.tail]
    n, o, *rows, x = tail.op.axis
    oo, oi = tail.split(o, factor=wide)
    xo, xi = tail.split(x, factor=pixels)
    tail.reorder(n, oo, *rows, xo, oi, xi)
    tail.vectorize(xi)
    share_out(tail, [n, oo, *rows], _work(kernel))
    stage = s[sums]
    stage.transform_layout(lambda n, o, *at: [n, *at, o])
    stage.compute_at(tail, xo)
    n, *rows, x, o = stage.op.axis
    stage.reorder(n, *rows, *stage.op.reduce_axis, x, o)
    stage.unroll(x)
    stage.vectorize(o)


# --- lanes along the width --------------------------------------------------------------------------------------------

def _rows(kernel: Kernel) -> None:
    s, record = kernel.schedule, kernel.record
    wide, vectors = _row_tile(extent_of(kernel.tail.axis[-1]), kernel.lanes(kernel.anchor))
    if not isinstance(record, TransposedConvOp) and record.strides[-1] != 1:
        _phases(kernel)
    sums = _sums(kernel)
    tail = s[kernel.tail]
    n, o, *rows, x = tail.op.axis
    most = max(_registers(kernel) // vectors, 1)
    down = rows[-1] if isinstance(record, DepthwiseConvOp) and rows else o
    others = [axis for axis in (o, *rows) if axis is not down]
    outer, tall = tail.split(down, factor=divisor_near(extent_of(down), most, -(-most // 2)))
    xo, xi = tail.split(x, factor=wide)
    blocks = [outer, *others] if down is o else [*others, outer]
    tail.reorder(n, *blocks, xo, tall, xi)
    tail.unroll(tall)
    tail.vectorize(xi)
    share_out(tail, [n, *blocks], _work(kernel))
    stage = s[sums]
    stage.compute_at(tail, xo)
    n, o, *rows, x = stage.op.axis
    down = rows[-1] if isinstance(record, DepthwiseConvOp) and rows else o
    stage.reorder(n, *[axis for axis in (o, *rows) if axis is not down], *stage.op.reduce_axis, down, x)
    stage.unroll(down)
    stage.vectorize(x)


def _row_tile(width: int | None, lanes: int) -> tuple[int, int]:
    """The columns of a tile and its vectors in a row: the fewest vectors in all, at most four in a tile."""
    if width is None:
        return 2 * lanes, 2
    vectors = min((4, 3, 2, 1), key=lambda v: -(-width // (v * lanes)) * v)
    return (width, -(-width // lanes)) if width <= vectors * lanes else (vectors * lanes, vectors)


def _phases(kernel: Kernel) -> None:
    """Pack the padded data so that every stride-th element of a row is contiguous, as results read it."""
    s, step = kernel.schedule, kernel.record.strides[-1]
    stage = s[s.cache_read(kernel.record.padded, "global", [kernel.anchor])]
    stage.transform_layout(lambda *at: [*at[:-1], at[-1] % step, at[-1] // step])
    *outer, _, x = stage.op.axis
    share_out(stage, outer, product([extent_of(axis) for axis in stage.op.axis]))
