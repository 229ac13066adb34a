"""Templates of products of matrices: knobs tile_y (rows), tile_x (columns), tile_k (terms)."""

from __future__ import annotations

from typing import Any

import topi
from tedsl import te
from tedsl.autotvm.env import GLOBAL_SCOPE
from tedsl.autotvm.task.entities import SplitEntity
from tedsl.errors import ArgumentError, ShapeError
from tedsl.ir import build
from tedsl.lang.graph import producers_first
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.schedule.stage import Stage
from tedsl.target.current import as_target

_MOST = 32  # statements of an unrolled tile: as many as the largest number of vector registers


def constants(name: str, *extents: Any) -> list[int]:
    """Extents as numbers. Raises ArgumentError for one that is not known, over which no template has knobs."""
    found = [build.as_int(extent) for extent in extents]
    if any(extent is None for extent in found):
        raise ArgumentError(f"{name}: a template has knobs over known extents, not {list(extents)!r}",
                            hint="make a task for each shape")
    return [extent for extent in found if extent is not None]


def largest_divisor(extent: int, most: int) -> int:
    """The largest divisor of `extent` up to `most`."""
    return next(n for n in range(min(extent, most), 0, -1) if extent % n == 0)


def divided(extent: int, *inner: int) -> SplitEntity:
    """The split of a loop whose inner loops have these extents."""
    rest = extent
    for size in inner:
        rest //= size
    return SplitEntity((rest, *inner))


def stage_tagged(s: Schedule, tag: str) -> Any:
    """The operation of a schedule with that tag."""
    return next(op for op in producers_first(s.outputs) if getattr(op, "tag", "") == tag)


def inlined_up_to(s: Schedule, op: Any) -> Any:
    """Computes element-wise operations behind `op` where they are used; returns the last one, which stores the result."""
    last: Any = s.outputs[0]
    for other in producers_first(s.outputs):
        if other is not last and other is not op and getattr(other, "tag", "") == topi.tag.BROADCAST:
            s[other].compute_inline()
    return last


def _check_ranks(name: str, data: Tensor, weight: Tensor, *ranks: int) -> None:
    """Raises ShapeError unless data is a matrix, the weights have one of these ranks, and both have as many terms."""
    if data.ndim != 2 or weight.ndim not in ranks or build.as_int(weight.shape[1]) != build.as_int(data.shape[1]):
        packed = " or (N / panel, K, panel)" if 3 in ranks else ""
        raise ShapeError(f"{name}: data {data.shape} and weight {weight.shape}", hint=f"data (M, K) and weight (N, K){packed}")


def with_bias(result: Tensor, bias: Tensor | None, dtype: str) -> Tensor:
    """The sum of each row with `bias`, if there is one."""
    if bias is None:
        return result
    return te.compute(result.shape, lambda i, j: result[i, j] + bias[j].astype(dtype), name="T_add", tag=topi.tag.BROADCAST)


# --- rows times rows --------------------------------------------------------------------------------------------------------

def dense_nopack(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """data (M, K) times weight (N, K) transposed, plus bias (N,): partial sums of tile_k's inner terms at a time, then their
    sum. The weights stay as they are.
    """
    dtype = str(out_dtype or data.dtype)
    _check_ranks("dense_nopack", data, weight, 2)
    rows, terms, columns = constants("dense_nopack", *data.shape, weight.shape[0])
    for name, extent in (("tile_y", rows), ("tile_x", columns), ("tile_k", terms)):
        cfg.define_split(name, extent, num_outputs=2)
    if cfg.is_fallback:
        cfg["tile_y"], cfg["tile_x"] = divided(rows, largest_divisor(rows, 4)), divided(columns, largest_divisor(columns, 4))
        cfg["tile_k"] = divided(terms, largest_divisor(terms, 2 * as_target(None).vector_lanes(dtype)))
    lanes = cfg["tile_k"].size[-1]
    k, lane = te.reduce_axis((0, terms // lanes), name="k"), te.reduce_axis((0, lanes), name="lane")
    partial = te.compute((rows, columns, lanes), lambda i, j, v: te.sum(
        data[i, k * lanes + v].astype(dtype) * weight[j, k * lanes + v].astype(dtype), axis=k), name="partial")
    sums = te.compute((rows, columns), lambda i, j: te.sum(partial[i, j, lane], axis=lane), name="T_dense", tag="dense_nopack")
    return with_bias(sums, bias, dtype)


def schedule_dense_nopack(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of results in parallel; the partial sums of one are computed together, in vectors along the terms."""
    s = te.create_schedule([out.op for out in outs])
    sums = stage_tagged(s, "dense_nopack")
    last = inlined_up_to(s, sums)
    y, x = last.axis
    yo, yi = cfg["tile_y"].apply(s, last, y)
    xo, xi = cfg["tile_x"].apply(s, last, x)
    s[last].reorder(yo, xo, yi, xi)
    tile = s[last].fuse(yo, xo)
    s[last].parallel(tile)
    if last is not sums:
        s[sums].compute_at(s[last], tile)
    (partial,) = sums.input_tensors
    s[partial].compute_at(s[last], tile)
    i, j, lane = s[partial].op.axis
    (k,) = s[partial].op.reduce_axis
    s[partial].reorder(k, i, j, lane)
    _vectorized(s[partial], lane, cfg["tile_k"].size[-1], [(i, cfg["tile_y"].size[-1]), (j, cfg["tile_x"].size[-1])])
    return s


# --- panels of weights -------------------------------------------------------------------------------------------------------

def dense_pack(cfg: Any, data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """data (M, K) times weight transposed, plus bias (N,), from weights in panels of tile_x's innermost columns: (N / panel, K,
    panel), which are an argument where weight has that shape already, or GLOBAL_SCOPE.in_tuning holds.
    """
    dtype = str(out_dtype or data.dtype)
    _check_ranks("dense_pack", data, weight, 2, 3)
    rows, terms = constants("dense_pack", *data.shape)
    outer, *wide = constants("dense_pack", *weight.shape)
    columns = outer * wide[-1] if len(wide) == 2 else outer
    for name, extent, parts in (("tile_y", rows, 3), ("tile_x", columns, 3), ("tile_k", terms, 2)):
        cfg.define_split(name, extent, num_outputs=parts)
    cfg.define_split("tile_inner", rows, num_outputs=2, filter=lambda split: split.size[-1] <= 16)
    if cfg.is_fallback:
        tall = largest_divisor(rows, 8)
        panel = largest_divisor(columns, 2 * as_target(None).vector_lanes(dtype))
        cfg["tile_y"], cfg["tile_x"] = divided(rows, 1, tall), divided(columns, largest_divisor(columns // panel, 4), panel)
        cfg["tile_k"], cfg["tile_inner"] = divided(terms, 1), divided(rows, tall)
    panel = wide[-1] if len(wide) == 2 else cfg["tile_x"].size[-1]
    packed = weight if len(wide) == 2 else _packed(weight, columns, terms, panel)
    k = te.reduce_axis((0, terms), name="k")
    sums = te.compute((rows, columns), lambda i, j: te.sum(
        data[i, k].astype(dtype) * packed[j // panel, k, j % panel].astype(dtype), axis=k), name="T_dense", tag="dense_pack")
    return with_bias(sums, bias, dtype)


def _packed(weight: Tensor, columns: int, terms: int, panel: int) -> Tensor:
    shape = (columns // panel, terms, panel)
    if GLOBAL_SCOPE.in_tuning:
        return te.placeholder(shape, weight.dtype, name="packed_weight")
    return te.compute(shape, lambda z, k, j: weight[z * panel + j, k], name="packed_weight", tag="packed_weight")


def schedule_dense_pack(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of results in parallel; the sums of the inner tile stay in registers, in vectors along the columns."""
    s = te.create_schedule([out.op for out in outs])
    sums = stage_tagged(s, "dense_pack")
    last = inlined_up_to(s, sums)
    packed = sums.input_tensors[1]
    if getattr(packed.op, "tag", "") == "packed_weight":
        panels, _, j = s[packed].op.axis
        s[packed].parallel(panels)
        s[packed].vectorize(j)
    held = sums if last is not sums else s.cache_write(last.output(0), "local").op
    y, x = last.axis
    yt, yo, yi = cfg["tile_y"].apply(s, last, y)
    xt, xo, xi = cfg["tile_x"].apply(s, last, x)
    s[last].reorder(xt, yt, yo, xo, yi, xi)
    s[last].parallel(s[last].fuse(xt, yt))
    s[last].vectorize(xi)
    s[held].compute_at(s[last], xo)
    i, j = s[held].op.axis
    ko, ki = cfg["tile_k"].apply(s, held, s[held].op.reduce_axis[0])
    tall = cfg["tile_y"].size[-1]
    part = min(cfg["tile_inner"].size[-1], tall)
    io, ii = s[held].split(i, part)
    s[held].reorder(ko, io, ki, ii, j)
    s[held].vectorize(j)
    if part * cfg["tile_x"].size[-1] <= _MOST * as_target(None).vector_lanes(held.output(0).dtype):
        s[held].unroll(ii)
    return s


# --- products in batches -----------------------------------------------------------------------------------------------------

def batch_matmul(cfg: Any, tensor_a: Tensor, tensor_b: Tensor, out_shape: Any = None, out_dtype: Any = None,
                 transpose_a: bool = False, transpose_b: bool = True) -> Tensor:
    """`topi.nn.batch_matmul`."""
    result = topi.nn.batch_matmul(tensor_a, tensor_b, out_shape, out_dtype, transpose_a, transpose_b)
    _, rows, columns = constants("batch_matmul", *result.shape)
    (terms,) = constants("batch_matmul", tensor_a.shape[1 if transpose_a else 2])
    for name, extent in (("tile_y", rows), ("tile_x", columns), ("tile_k", terms)):
        cfg.define_split(name, extent, num_outputs=2)
    if cfg.is_fallback:
        lanes = as_target(None).vector_lanes(result.dtype)
        cfg["tile_y"] = divided(rows, largest_divisor(rows, 8))
        cfg["tile_x"] = divided(columns, largest_divisor(columns, lanes))
        cfg["tile_k"] = divided(terms, largest_divisor(terms, 16))
    return result


def schedule_batch_matmul(cfg: Any, outs: list[Tensor]) -> Schedule:
    """Tiles of results in parallel, their sums in registers, in vectors along the columns."""
    s = te.create_schedule([out.op for out in outs])
    last: Any = s.outputs[0]
    op = next(op for op in reversed(producers_first(s.outputs)) if getattr(op, "reduce_axis", None))
    for other in producers_first(s.outputs):
        if other is not op and other is not last and getattr(other, "axis", None):
            s[other].compute_inline()
    held = op if op is not last else s.cache_write(last.output(0), "local").op
    batch, y, x = last.axis
    yo, yi = cfg["tile_y"].apply(s, last, y)
    xo, xi = cfg["tile_x"].apply(s, last, x)
    s[last].reorder(batch, yo, xo, yi, xi)
    tile = s[last].fuse(batch, yo, xo)
    s[last].parallel(tile)
    s[last].vectorize(xi)
    s[held].compute_at(s[last], tile)
    _, i, j = s[held].op.axis
    ko, ki = cfg["tile_k"].apply(s, held, s[held].op.reduce_axis[0])
    s[held].reorder(ko, ki, i, j)
    _vectorized(s[held], j, cfg["tile_x"].size[-1], [(i, cfg["tile_y"].size[-1])])
    return s


def _vectorized(stage: Stage, lane: Any, lanes: int, tile: list[tuple[Any, int]]) -> None:
    """Vectors along `lane`, and the loops of a tile unrolled while there are registers."""
    if lanes > 1:
        stage.vectorize(lane)
    count = 1
    for loop, extent in reversed(tile):
        count *= extent
        if count <= _MOST:
            stage.unroll(loop)
