"""Convolutions: a tile of the result stays in registers while the sums run over channels and window.

    channels innermost (NHWC, NCHWc):   lanes along the channels; a tile is some pixels of a row times some vectors
    width innermost (NCHW):             lanes along the width; a tile is some channels times some vectors of a row

What is element-wise behind the convolution (bias, batch norm, relu, a residual) is computed on the tile before it is stored.
"""

from __future__ import annotations

from typing import Any

from topi.schedules.cpu.injective import vectorize
from topi.schedules.cpu.matmul import divisor_near
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel


def schedule_conv(kernel: Kernel) -> None:
    """Chooses by which dimension is innermost."""
    layout = kernel.record.layout
    if layout in ("NHWC", "NWC", "NDHWC"):
        _channels_last(kernel)
    elif layout == "NCHWc":
        _blocks(kernel)
    elif layout in ("NCHW", "NCW", "NCDHW"):
        _rows(kernel)
    else:
        from topi.schedules.cpu.reduce import schedule_reduce

        schedule_reduce(kernel)


def _work(kernel: Kernel) -> int | None:
    return product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])


def registers(kernel: Kernel) -> int:
    """How many vectors a tile has, so that they stay in registers beside operands that are read at overlapping places."""
    return 16 if kernel.target.vector_bits == 512 or kernel.target.arch == "aarch64" else 12


# --- lanes along channels ---------------------------------------------------------------------------------------------

def _channels_last(kernel: Kernel) -> None:
    tail = kernel.schedule[kernel.tail]
    *_, x, c = tail.op.axis
    lanes, channels = kernel.lanes(kernel.anchor), extent_of(c)
    vectors = 2 if channels is None or channels > lanes else 1
    _tile(kernel, vectors * lanes, divisor_near(extent_of(x), registers(kernel) // vectors, registers(kernel) // vectors // 2))


def _blocks(kernel: Kernel) -> None:
    tail = kernel.schedule[kernel.tail]
    *_, x, c = tail.op.axis
    lanes, channels = kernel.lanes(kernel.anchor), extent_of(c) or 1
    vectors = -(-channels // lanes)
    most = max(registers(kernel) // vectors, 1)
    _tile(kernel, channels, divisor_near(extent_of(x), most, -(-most // 2)))


def _tile(kernel: Kernel, wide: int, pixels: int) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    sums = kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op
    *outer, x, c = tail.op.axis
    co, ci = tail.split(c, factor=wide)
    xo, xi = tail.split(x, factor=pixels)
    n, *rows = outer
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
    """The loops of the sums, outermost first: blocks of channels, the window, channels."""
    loops = list(stage.op.reduce_axis)
    if kernel.record.layout != "NCHWc" or len(loops) != 3:
        return loops
    ic, kh, kw = loops
    outer, inner = stage.split(ic, factor=extent_of_block(kernel))
    return [outer, kh, kw, inner]


def extent_of_block(kernel: Kernel) -> int:
    """Channels in a block of the data."""
    return int(kernel.record.data.shape[-1])


# --- lanes along the width --------------------------------------------------------------------------------------------

def _rows(kernel: Kernel) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    wide, vectors = _row_tile(extent_of(tail.op.axis[-1]), kernel.lanes(kernel.anchor))
    most = registers(kernel) // vectors
    tall = divisor_near(extent_of(tail.op.axis[1]), most, most // 2)
    if kernel.record.strides[-1] != 1:
        _phases(kernel)
    sums = kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op
    n, o, *rows, x = tail.op.axis
    oo, oi = tail.split(o, factor=tall)
    xo, xi = tail.split(x, factor=wide)
    tail.reorder(n, oo, *rows, xo, oi, xi)
    tail.unroll(oi)
    tail.vectorize(xi)
    share_out(tail, [n, oo, *rows], _work(kernel))
    stage = s[sums]
    stage.compute_at(tail, xo)
    n, o, *rows, x = stage.op.axis
    stage.reorder(n, *rows, *stage.op.reduce_axis, o, x)
    stage.unroll(o)
    stage.vectorize(x)


def _row_tile(width: int | None, lanes: int) -> tuple[int, int]:
    """The columns of a tile and its vectors in a row: as few vectors in all as can be, and up to four in a tile."""
    if width is None:
        return 2 * lanes, 2
    vectors = min((4, 3, 2, 1), key=lambda v: -(-width // (v * lanes)) * v)
    return (width, -(-width // lanes)) if width <= vectors * lanes else (vectors * lanes, vectors)


def _phases(kernel: Kernel) -> None:
    """The padded data with every stride-th element of a row together, so that the elements of neighbouring results are neighbours."""
    s, step = kernel.schedule, kernel.record.strides[-1]
    stage = s[s.cache_read(kernel.record.padded, "global", [kernel.anchor])]
    stage.transform_layout(lambda *at: [*at[:-1], at[-1] % step, at[-1] // step])
    *outer, _, x = stage.op.axis
    share_out(stage, outer, product([extent_of(axis) for axis in stage.op.axis]))
