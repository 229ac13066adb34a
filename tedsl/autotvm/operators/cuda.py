"""Templates for CUDA devices: tiles of results in blocks of threads, by the tiled schedules of `topi.schedules.gpu`.

tile_f, tile_y, tile_x (channels or rows, rows or columns, columns): blocks, virtual threads, threads, results of a thread.
tile_rc, tile_ry, tile_rx, tile_k: steps, and the terms that are in shared memory at a time. auto_unroll_max_step: loops inside
a thread are unrolled to at most so many statements, as copies where unroll_explicit is 1.

A default configuration is the schedule of topi's rules, whose tiles come from a model of the device.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import topi
from tedsl.autotvm.operators.dense import constants
from tedsl.errors import ArgumentError
from tedsl.lang.graph import producers_first
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from topi.kinds import ConvOp, DepthwiseConvOp, MatmulOp
from topi.schedules.gpu.conv import ConvTiles, schedule_conv
from topi.schedules.gpu.matmul import ProductTiles, schedule_matmul
from topi.schedules.gpu.reduce import schedule_one_of_a_block
from topi.schedules.schedule import schedule_with
from topi.schedules.table import GPU


def _define_unrolling(cfg: Any, *steps: int) -> None:
    """The knobs of unrolling: as in TVM, which leaves loops to the compiler of CUDA where unroll_explicit is 0."""
    cfg.define_knob("auto_unroll_max_step", list(steps))
    cfg.define_knob("unroll_explicit", [1] if as_target(None).kind.name in ("nvptx", "rocm") else [0, 1])


def _scheduled(cfg: Any, outs: list[Tensor], kind: type, rule: Any) -> Schedule:
    """The schedule by topi's rules, with `rule` for operators of `kind`; with all of those rules by default."""
    target = as_target(None)
    if not target.is_device:
        raise ArgumentError(f"this operator is for devices, and {target} is a processor",
                            hint="target=\"cuda\", or a task whose name ends in .x86")
    return schedule_with(outs, GPU if cfg.is_fallback else {**GPU, kind: rule}, target)


# --- convolutions -----------------------------------------------------------------------------------------------------------

def conv2d_nchw(cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any,
                out_dtype: Any = None) -> Tensor:
    """`topi.nn.conv2d_nchw`."""
    result = topi.nn.conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)
    _define_results(cfg, "conv2d_nchw", result)
    for name, extent in zip(("tile_rc", "tile_ry", "tile_rx"), constants("conv2d_nchw", *kernel.shape[1:])):
        cfg.define_split(name, extent, num_outputs=2)
    _define_unrolling(cfg, 0, 512, 1500)
    return result


def depthwise_conv2d_nchw(cfg: Any, data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any,
                          out_dtype: Any = None) -> Tensor:
    """`topi.nn.depthwise_conv2d_nchw`."""
    result = topi.nn.depthwise_conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)
    _define_results(cfg, "depthwise_conv2d_nchw", result)
    constants("depthwise_conv2d_nchw", *kernel.shape)
    _define_unrolling(cfg, 0, 256, 1500)
    return result


def _define_results(cfg: Any, what: str, result: Tensor) -> None:
    for name, extent in zip(("tile_f", "tile_y", "tile_x"), constants(what, *result.shape[1:])):
        cfg.define_split(name, extent, num_outputs=4)


def schedule_conv2d_nchw(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of channels and pixels from shared memory."""
    return _scheduled(cfg, outs, ConvOp, functools.partial(schedule_conv, tiles=_conv_tiles(cfg, (), ())))


def schedule_depthwise_conv2d_nchw(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of channels and pixels from shared memory, which holds the whole window."""
    records = [getattr(op, "info", None) for op in producers_first([out.op for out in outs])]
    (record,) = [one for one in records if isinstance(one, DepthwiseConvOp)]
    window = constants("depthwise_conv2d_nchw", *record.kernel.shape[2:])
    tiles = _conv_tiles(cfg, (1, window[0]), (1, window[1]))
    return _scheduled(cfg, outs, DepthwiseConvOp, functools.partial(schedule_conv, tiles=tiles))


def _conv_tiles(cfg: Any, ry: tuple[int, ...], rx: tuple[int, ...]) -> ConvTiles | None:
    """What the knobs say; ry, rx: the parts of the window, where there are no knobs for them."""
    if cfg.is_fallback:
        return None
    parts = {letter: _parts(cfg[f"tile_{letter}"].size) for letter in "fyx"}
    steps = {letter: _parts(cfg[f"tile_{letter}"].size) for letter in ("rc", "ry", "rx") if f"tile_{letter}" in cfg}
    return ConvTiles(**parts, **({"rc": (1, 1), "ry": ry, "rx": rx} | steps), unroll=cfg["auto_unroll_max_step"].val,
                     explicit=bool(cfg["unroll_explicit"].val))


def _parts(size: Any) -> Any:
    """The extents of a split whose outer one is what the others leave."""
    return (1, *size[1:])


# --- products of matrices ---------------------------------------------------------------------------------------------------

def dense_small_batch(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """`topi.nn.dense`. tile_k: terms of a thread, threads."""
    result = topi.nn.dense(data, weight, bias, out_dtype)
    cfg.define_split("tile_k", *constants("dense_small_batch", data.shape[1]), num_outputs=2)
    return result


def schedule_dense_small_batch(cfg: Any, outs: list[Tensor]) -> Schedule:
    """A block computes one result: each of its threads a part of the sum."""
    threads = 1 if cfg.is_fallback else cfg["tile_k"].size[-1]
    return _scheduled(cfg, outs, MatmulOp, functools.partial(schedule_one_of_a_block, threads=threads))


def dense_large_batch(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """`topi.nn.dense`. tile_x: rows, tile_y: columns of the result."""
    result = topi.nn.dense(data, weight, bias, out_dtype)
    rows, columns, terms = constants("dense_large_batch", *result.shape, data.shape[1])
    for name, extent, count in (("tile_x", rows, 4), ("tile_y", columns, 4), ("tile_k", terms, 3)):
        cfg.define_split(name, extent, num_outputs=count)
    return result


def schedule_dense_large_batch(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of results from shared memory."""
    tiles = None
    if not cfg.is_fallback:
        step = math.prod(cfg["tile_k"].size[1:])
        tiles = ProductTiles(_parts(cfg["tile_x"].size), _parts(cfg["tile_y"].size), step)
    return _scheduled(cfg, outs, MatmulOp, functools.partial(schedule_matmul, tiles=tiles))


def batch_matmul(cfg: Any, tensor_a: Tensor, tensor_b: Tensor, out_shape: Any = None, out_dtype: Any = None,
                 transpose_a: bool = False, transpose_b: bool = True) -> Tensor:
    """`topi.nn.batch_matmul`. tile_y: rows, tile_x: columns of the result: blocks, threads, results of a thread."""
    result = topi.nn.batch_matmul(tensor_a, tensor_b, out_shape, out_dtype, transpose_a, transpose_b)
    _, rows, columns = constants("batch_matmul", *result.shape)
    (terms,) = constants("batch_matmul", tensor_a.shape[1 if transpose_a else 2])
    for name, extent, count in (("tile_y", rows, 3), ("tile_x", columns, 3), ("tile_k", terms, 2)):
        cfg.define_split(name, extent, num_outputs=count)
    _define_unrolling(cfg, 8, 16, 32, 64)
    return result


def schedule_batch_matmul(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of results from shared memory; blocks of the batch in blockIdx.z."""
    tiles = None
    if not cfg.is_fallback:
        y, x = [(1, 1, *cfg[name].size[1:]) for name in ("tile_y", "tile_x")]
        tiles = ProductTiles(y, x, cfg["tile_k"].size[-1], cfg["auto_unroll_max_step"].val, bool(cfg["unroll_explicit"].val))
    return _scheduled(cfg, outs, MatmulOp, functools.partial(schedule_matmul, tiles=tiles))
