"""Templates of convolutions in blocks of channels: knobs tile_ic, tile_oc (blocks of channels), tile_ow (pixels of a row that
are computed together), unroll_kw, and for kernels of one pixel tile_oh (rows that are computed together).
"""

from __future__ import annotations

from typing import Any

import topi
from tedsl import te
from tedsl.autotvm.env import GLOBAL_SCOPE
from tedsl.autotvm.operators.dense import constants, divided, largest_divisor
from tedsl.autotvm.task.entities import OtherOptionEntity
from tedsl.errors import ShapeError
from tedsl.lang.graph import producers_first
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target

_PIXELS = 28  # that are computed together by default: their sums and the weights fill the registers


def conv2d_NCHWc(cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                 out_layout: str = "NCHWc", out_dtype: Any = None) -> Tensor:
    """`topi.nn.conv2d_NCHWc`. data (N, C, H, W) and kernel (O, I, h, w) are packed by tile_ic and tile_oc first, or
    GLOBAL_SCOPE.in_tuning holds and the packed ones are the arguments; data (N, C, H, W, c) and kernel (O, I, h, w, i, o) are
    packed already. The result is (N, O, H, W, o).
    """
    data, kernel = _packed(cfg, data, kernel, strides, padding, dilation, depthwise=False)
    return topi.nn.conv2d_NCHWc(data, kernel, strides, padding, dilation, layout, out_layout, out_dtype)


def depthwise_conv2d_NCHWc(cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any,
                           layout: str = "NCHWc", out_layout: str = "NCHWc", out_dtype: Any = None) -> Tensor:
    """`topi.nn.depthwise_conv2d_NCHWc`, packed as `conv2d_NCHWc`; kernel (O, multiplier, h, w)."""
    data, kernel = _packed(cfg, data, kernel, strides, padding, dilation, depthwise=True)
    return topi.nn.depthwise_conv2d_NCHWc(data, kernel, strides, padding, dilation, layout, out_layout, out_dtype)


def _packed(cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any,
            depthwise: bool) -> tuple[Tensor, Tensor]:
    """The packed operands, after the knobs are defined."""
    what = "depthwise_conv2d_NCHWc" if depthwise else "conv2d_NCHWc"
    if (data.ndim, kernel.ndim) not in ((4, 4), (5, 6)):
        raise ShapeError(f"{what}: data {data.shape} and kernel {kernel.shape}",
                         hint="data (N, C, H, W) with kernel (O, I, h, w), or (N, C, H, W, c) with (O, I, h, w, i, o)")
    batch, channels, height, width, *block = constants(what, *data.shape)
    outer, inner, tall, wide, *blocks = constants(what, *kernel.shape)
    channels *= block[0] if block else 1
    filters = outer * (blocks[1] if blocks else inner if depthwise else 1)
    plain = te.placeholder((batch, channels, height, width), data.dtype, name="data")
    shape = (channels, filters // channels, tall, wide) if depthwise else (filters, channels, tall, wide)
    formula = topi.nn.depthwise_conv2d_nchw if depthwise else topi.nn.conv2d_nchw
    rows, pixels = constants(what, *formula(plain, te.placeholder(shape, kernel.dtype), strides, padding, dilation).shape[2:])
    cfg.define_split("tile_ic", channels, num_outputs=2)
    cfg.define_split("tile_oc", filters, num_outputs=2)
    if not depthwise and tall == wide == 1:
        cfg.define_split("tile_ow", pixels, num_outputs=2, filter=lambda split: split.size[-1] <= 64, policy="verbose")
        cfg.define_knob("tile_oh", [1, 2] if rows > 1 else [1])
    else:
        policy = "factors" if depthwise else "verbose"
        cfg.define_split("tile_ow", pixels, num_outputs=2, filter=lambda split: split.size[-1] <= 64, policy=policy)
        cfg.define_knob("unroll_kw", [True, False])
    if cfg.is_fallback:
        lanes = as_target(None).vector_lanes(data.dtype)
        by = largest_divisor(filters, lanes)
        cfg["tile_oc"], cfg["tile_ic"] = divided(filters, by), divided(channels, largest_divisor(channels, by))
        cfg["tile_ow"] = divided(pixels, largest_divisor(pixels, _PIXELS))
        name, value = ("tile_oh", 1) if "tile_oh" in cfg else ("unroll_kw", False)
        cfg[name] = OtherOptionEntity(value)
    if block:
        return data, kernel
    ic, oc = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    return _data_in_blocks(data, ic), _kernel_in_blocks(kernel, 1 if depthwise else ic, oc, depthwise)


def _data_in_blocks(data: Tensor, block: int) -> Tensor:
    batch, channels, height, width = data.shape
    shape = (batch, channels // block, height, width, block)
    if GLOBAL_SCOPE.in_tuning:
        return te.placeholder(shape, data.dtype, name="data")
    return te.compute(shape, lambda n, c, h, w, v: data[n, c * block + v, h, w], name="data_vec", tag="packed_data")


def _kernel_in_blocks(kernel: Tensor, ic: int, oc: int, depthwise: bool) -> Tensor:
    outer, inner, height, width = kernel.shape
    shape = (outer * inner // oc, 1, height, width, 1, oc) if depthwise else (outer // oc, inner // ic, height, width, ic, oc)
    if GLOBAL_SCOPE.in_tuning:
        return te.placeholder(shape, kernel.dtype, name="kernel")
    if depthwise:
        return te.compute(shape, lambda o, _, h, w, __, v: kernel[(o * oc + v) // inner, (o * oc + v) % inner, h, w],
                          name="kernel_vec", tag="packed_kernel")
    return te.compute(shape, lambda o, i, h, w, u, v: kernel[o * oc + v, i * ic + u, h, w], name="kernel_vec",
                      tag="packed_kernel")


# --- schedules ---------------------------------------------------------------------------------------------------------------

def schedule_conv2d_NCHWc(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Rows of results in parallel; the sums of some pixels and a block of channels stay in registers."""
    return _scheduled(cfg, outs)


def schedule_depthwise_conv2d_NCHWc(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Rows of results in parallel; the sums of some pixels and a block of channels stay in registers."""
    return _scheduled(cfg, outs)


def _scheduled(cfg: Any, outs: list[Tensor]) -> Schedule:
    s = te.create_schedule([out.op for out in outs])
    last: Any = s.outputs[0]
    ops = producers_first(s.outputs)
    op = next(op for op in reversed(ops) if getattr(op, "reduce_axis", None))
    at = ops.index(op)
    for other in ops[:at]:
        if getattr(other, "axis", None):
            _beforehand(s, other)
    for other in ops[at + 1:]:
        if other is not last:
            s[other].compute_inline()
    held = op if op is not last else s.cache_write(last.output(0), "local").op
    batch, chunk, row, column, block = last.axis
    together, wide = (cfg["tile_oh"].val if "tile_oh" in cfg else 1), cfg["tile_ow"].size[-1]
    row, rows = s[last].split(row, together)
    column, pixels = s[last].split(column, wide)
    s[last].reorder(batch, chunk, row, column, rows, pixels, block)
    s[last].parallel(s[last].fuse(batch, chunk, row))
    s[last].vectorize(block)
    s[held].compute_at(s[last], column)
    _in_registers(cfg, s, held)
    return s


def _beforehand(s: Schedule, op: Any) -> None:
    """A stage before the convolution, padding or packing, in parallel and in vectors."""
    *outer, lane = s[op].op.axis
    s[op].parallel(s[op].fuse(*outer[:3]))
    s[op].vectorize(lane)


def _in_registers(cfg: Any, s: Schedule, held: Any) -> None:
    batch, chunk, row, column, block = s[held].op.axis
    *channels, kh, kw = s[held].op.reduce_axis
    blocks: list[Any] = []
    if channels:
        outer, inner = s[held].split(channels[0], cfg["tile_ic"].size[-1])
        channels, blocks = [outer], [inner]
    unrolled = "unroll_kw" in cfg and cfg["unroll_kw"].val
    order = [kh, *blocks, kw] if unrolled else [kh, kw, *blocks]
    s[held].reorder(batch, chunk, *channels, *order, row, column, block)
    if unrolled:
        s[held].unroll(kw)
    s[held].unroll(row)
    s[held].unroll(column)
    s[held].vectorize(block)
