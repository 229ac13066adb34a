"""Convolutions whose vectors hold neighbours of a row: a tile is some channels, or rows, times some vectors of a row."""

from __future__ import annotations

from topi.kinds import DepthwiseConvOp, TransposedConvOp
from topi.schedules.cpu.conv.operands import sums_of, work_of
from topi.schedules.cpu.conv.register_tiles import best_tile, cycles_of_rows
from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.tiles import divisor_near, registers
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_FEW_TERMS = 32  # of sums, beside which turning a tile of channels and storing its parts takes longer than the products
_STRIDED = 6  # cycles to load a vector of what a stride skips
_ENDS = 1.1  # of the ends of rows, whose narrower vectors wait for each other
_NEAR = 4  # the largest stride at which a vector is loaded with what lies between its elements


def is_short(kernel: Kernel) -> bool:
    """Whether sums have so few terms that results had better be stored as they are computed, row by row."""
    terms, width = product([extent_of(axis) for axis in kernel.anchor.reduce_axis]), extent_of(kernel.tail.axis[-1])
    return terms is not None and terms <= _FEW_TERMS and width is not None and width >= 4 * kernel.lanes(kernel.anchor)


def schedule_rows(kernel: Kernel) -> None:
    s, record = kernel.schedule, kernel.record
    tile, wide = _row_tile(kernel)
    if not isinstance(record, TransposedConvOp) and record.strides[-1] > _NEAR:
        _phases(kernel)
    sums = sums_of(kernel)
    tail = s[kernel.tail]
    n, o, *rows, x = tail.op.axis
    down = rows[-1] if isinstance(record, DepthwiseConvOp) and rows else o
    others = [axis for axis in (o, *rows) if axis is not down]
    outer, tall = tail.split(down, factor=tile)
    xo, xi = tail.split(x, factor=wide)
    blocks = [outer, *others] if down is o else [*others, outer]
    tail.reorder(n, *blocks, xo, tall, xi)
    tail.unroll(tall)
    tail.vectorize(xi)
    share_out(tail, [n, *blocks], work_of(kernel))
    stage = s[sums]
    stage.compute_at(tail, xo)
    n, o, *rows, x = stage.op.axis
    down = rows[-1] if isinstance(record, DepthwiseConvOp) and rows else o
    stage.reorder(n, *[axis for axis in (o, *rows) if axis is not down], *stage.op.reduce_axis, down, x)
    stage.unroll(down)
    stage.vectorize(x)


def _row_tile(kernel: Kernel) -> tuple[int, int]:
    """The channels of a tile, or its rows where each channel has a filter of its own, and its columns."""
    lanes = kernel.lanes(kernel.anchor)
    if isinstance(kernel.record, DepthwiseConvOp):
        return _depthwise_tile(kernel, extent_of(kernel.tail.axis[-1]), lanes)
    tall, vectors = best_tile(kernel.target, *_sizes(kernel), lanes)
    return tall, vectors * lanes


def _sizes(kernel: Kernel) -> tuple[int | None, int | None, int | None]:
    """The channels of a group, the columns, and the terms."""
    channels, groups = extent_of(kernel.tail.axis[1]), getattr(kernel.record, "groups", 1)
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    return channels and channels // groups, extent_of(kernel.tail.axis[-1]), terms


def cycles_by_rows(kernel: Kernel) -> float:
    """The cycles of a convolution of known sizes by `schedule_rows`, as far as they differ from those of others."""
    lanes, strides = kernel.lanes(kernel.anchor), kernel.record.strides
    channels, width, terms = _sizes(kernel)
    tile = best_tile(kernel.target, channels, width, terms, lanes)
    cycles = _ENDS * cycles_of_rows(kernel.target, channels, width, terms, lanes, tile)
    strided = _STRIDED * (terms or 0) * (width or 0) / lanes if strides[-1] > 1 else 0
    return (product([extent_of(axis) for axis in (kernel.tail.axis[0], *kernel.tail.axis[2:-1])]) or 0) * (cycles + strided)


def _depthwise_tile(kernel: Kernel, width: int | None, lanes: int) -> tuple[int, int]:
    """Rows and columns: the fewest vectors in all, at most four in a row of a tile."""
    vectors = 2 if width is None else min((4, 3, 2, 1), key=lambda v: -(-width // (v * lanes)) * v)
    wide = vectors * lanes if width is None else min(width, vectors * lanes)
    most = max(registers(kernel.target) // 2 // -(-wide // lanes), 1)
    rows = kernel.tail.axis[-2] if len(kernel.tail.axis) > 3 else kernel.tail.axis[1]
    return divisor_near(extent_of(rows), most, -(-most // 2)), wide


def _phases(kernel: Kernel) -> None:
    """Pack the padded data so that every stride-th element of a row is contiguous, as results read it."""
    s, step = kernel.schedule, kernel.record.strides[-1]
    stage = s[s.cache_read(kernel.record.padded, "global", [kernel.anchor])]
    stage.transform_layout(lambda *at: [*at[:-1], at[-1] % step, at[-1] // step])
    *outer, _, x = stage.op.axis
    share_out(stage, outer, product([extent_of(axis) for axis in stage.op.axis]))
