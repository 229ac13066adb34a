"""Products of matrices: a block computes a tile from shared memory; products of few rows reduce across threads."""

from __future__ import annotations

from tedsl.record import record
from topi.schedules.formulas import extent_of
from topi.schedules.gpu.block_tiles import block_tile
from topi.schedules.gpu.limits import Limits, check_threads, limits_of
from topi.schedules.gpu.parts import bind, fill_shared, in_four
from topi.schedules.gpu.reduce import schedule_reduce
from topi.schedules.kernel import Kernel

_FEW = 4  # rows of the result, so few that each operand is read about once whatever the tile


@record
class ProductTiles:
    """The parts of the rows y and the columns x of a product, outer ones first: blocks, virtual threads, threads, results of a
    thread; the first number of each is what the others leave. step: terms that are in shared memory at a time. unroll: loops
    inside a thread are unrolled to at most so many statements, None for none; explicit: as copies.
    """

    y: tuple[int, int, int, int]
    x: tuple[int, int, int, int]
    step: int
    unroll: int | None = None
    explicit: bool = True


def schedule_matmul(kernel: Kernel, tiles: ProductTiles | None = None) -> None:
    """Tiles of the result are bound to blocks of threads, or, where there are few rows or sizes are symbolic, each result to
    the threads of a row of a block. tiles: None for those of a model (`block_tiles.py`).
    """
    axes = (*kernel.tail.axis, *kernel.anchor.reduce_axis)
    symbolic = len(kernel.tail.axis) < 2 or any(extent_of(axis) is None for axis in axes)
    if symbolic or (tiles is None and min(extent_of(axis) or 1 for axis in kernel.tail.axis[-2:]) < _FEW):
        schedule_reduce(kernel)
        return
    limits = limits_of(kernel.target)
    if tiles is not None:
        check_threads("ProductTiles", {"y": tiles.y[2], "x": tiles.x[2]}, limits)
    _tiled(kernel, tiles or _modelled(kernel, limits))


def _modelled(kernel: Kernel, limits: Limits) -> ProductTiles:
    *batch, row, column = kernel.tail.axis
    batches = 1
    for axis in batch:
        batches *= extent_of(axis) or 1
    size = max(kernel.record.a.dtype.bits, kernel.record.b.dtype.bits) // 8
    (term,) = kernel.anchor.reduce_axis
    tile = block_tile(extent_of(row) or 1, extent_of(column) or 1, extent_of(term) or 1, batches, size, limits)
    return ProductTiles((1, tile.down, tile.threads_down, 1), (1, tile.across, tile.threads_across, 1), tile.step)


def _tiled(kernel: Kernel, tiles: ProductTiles) -> None:
    s = kernel.schedule
    *batch, row, column = kernel.tail.axis
    left, right = kernel.record.a, kernel.record.b
    if kernel.fused:
        s[kernel.anchor].set_scope("local")
    sums = s[kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op]
    operands = [left] if left is right else [left, right]
    shared = [s[s.cache_read(tensor, "shared", [sums.op])] for tensor in operands]
    tail = s[kernel.tail]
    down, across = in_four(tail, row, tiles.y), in_four(tail, column, tiles.x)
    tail.reorder(*batch, *[loop for pair in zip(down, across) for loop in pair])
    names = ["y", "x"]
    bind(tail, (down[0], across[0]), [f"blockIdx.{name}" for name in names])
    if batch:
        bind(tail, [tail.fuse(*batch) if len(batch) > 1 else batch[0]], ["blockIdx.z"])
    bind(tail, (down[1], across[1]), ["vthread", "vthread"])
    bind(tail, (down[2], across[2]), [f"threadIdx.{name}" for name in names])
    sums.compute_at(tail, across[2])
    outer, inside = sums.split(sums.op.reduce_axis[0], factor=tiles.step)
    sums.reorder(outer, inside, *sums.op.axis)
    for stage in shared:
        fill_shared(stage, sums, outer, [("threadIdx.y", tiles.y[2]), ("threadIdx.x", tiles.x[2])])
    if tiles.unroll is not None:
        tail.pragma(down[0], "auto_unroll_max_step", tiles.unroll)
        tail.pragma(down[0], "unroll_explicit", int(tiles.explicit))
