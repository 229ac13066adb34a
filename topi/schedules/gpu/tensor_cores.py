"""Products and convolutions by tensor cores: warps hold tiles of the result, and multiply tiles of the operands from shared
memory.

The tile of a product is of its rows and columns. That of a convolution in NHWC is of channels and of pixels of a row, which lie
one after the other in what it reads (stride 1), or of as many images, as the sizes allow; a block has the rows of a window, and
the padding around them, in shared memory for all its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError
from topi.kinds import ConvOp, MatmulOp
from topi.schedules.formulas import extent_of
from topi.schedules.gpu.limits import limits_of
from topi.schedules.gpu.parts import bind
from topi.schedules.gpu.wmma import SHAPES, SUMS, wmma_load_a, wmma_load_b, wmma_mma, wmma_store
from topi.schedules.kernel import Kernel

WARP = 32
WIDE = 16  # bytes that a thread moves at once
STEPS = 2  # products of tiles between two barriers, where they divide the terms


def schedule_tensor_cores(kernel: Kernel) -> None:
    """The schedule of a product of two matrices by tensor cores. ArgumentError where no shape of theirs divides its sizes, or
    there are none for its dtypes.
    """
    record = kernel.record
    if not isinstance(record, MatmulOp) or record.batched or len(kernel.anchor.axis) != 2 or record.a is record.b:
        raise _refused(kernel, "it is no product of two matrices", "topi.cuda.schedule_dense")
    orders = ("col_major" if record.transpose_a else "row_major", "col_major" if record.transpose_b else "row_major")
    _Product(kernel, (record.a, record.b), orders, (0,), "topi.cuda.schedule_dense").build()


def schedule_tensor_core_conv(kernel: Kernel) -> None:
    """The schedule of a convolution in NHWC by tensor cores. ArgumentError where no shape of theirs divides its sizes, or there
    are none for its dtypes.
    """
    record, other = kernel.record, "topi.cuda.schedule_conv2d_nhwc"
    if type(record) is not ConvOp or (record.layout, record.kernel_layout, record.groups) != ("NHWC", "HWIO", 1):
        raise _refused(kernel, "it is no convolution of one group in the layouts NHWC and HWIO", other)
    rows = (2, 0) if record.strides[1] == 1 else (0,)  # pixels of a row, or images
    _Product(kernel, (record.padded, record.kernel), ("row_major", "row_major"), rows, other).build()


def _refused(kernel: Kernel, why: str, other: str) -> ArgumentError:
    return ArgumentError(f"{kernel.anchor.name} cannot be computed by tensor cores: {why}",
                         hint=f"{other} is the schedule without them")


class _Product:
    """One product and how it is divided: its rows are one of the axes `rows`, its columns the last axis, its terms the last
    reduced one. warps, tiles: along rows and columns, of a block and of a warp. other: the schedule without tensor cores.
    """

    def __init__(self, kernel: Kernel, operands: Sequence[te.Tensor], orders: tuple[str, str], rows: Sequence[int],
                 other: str) -> None:
        self.kernel, self.s = kernel, kernel.schedule
        self.operands, self.orders = operands, orders
        a, b = operands
        self.dtype, self.out = str(a.dtype), str(kernel.anchor.output(0).dtype)
        if b.dtype != a.dtype or self.out not in SUMS.get(self.dtype, ()):
            raise _refused(kernel, f"it multiplies {self.dtype} by {b.dtype} and adds in {self.out}", other)
        tried = []
        for row in rows:
            axes = (kernel.anchor.axis[row], kernel.anchor.axis[-1], kernel.anchor.reduce_axis[-1])
            sizes = [extent_of(axis) or 0 for axis in axes]
            fitting = [shape for shape in SHAPES if all(size and size % part == 0 for size, part in zip(sizes, shape))]
            tried.append(" x ".join(str(size) for size in sizes))
            if fitting:
                break
        else:
            raise _refused(kernel, f"no shape of theirs divides its sizes {' or '.join(tried)}", other)
        self.row, self.shape = row, fitting[0]
        counts = [size // part for size, part in zip(sizes, self.shape)]
        self.tiles = [2 if count % 2 == 0 else 1 for count in counts[:2]]
        self.warps = [2 if count % (2 * tiles) == 0 else 1 for count, tiles in zip(counts, self.tiles)]
        self.steps = STEPS if counts[2] % STEPS == 0 else 1

    def build(self) -> None:
        s, kernel, shape = self.s, self.kernel, self.shape
        if kernel.fused:
            s[kernel.anchor].set_scope("shared")
        sums = s[s.cache_write(kernel.anchor.output(0), "wmma.accumulator").op]
        shared = [s[s.cache_read(tensor, "shared", [sums.op])] for tensor in self.operands]
        fragments = [s[s.cache_read(stage.op.output(0), f"wmma.matrix_{letter}", [sums.op])]
                     for stage, letter in zip(shared, "ab")]
        self.result(sums)
        loops = self.sums(sums)
        makers = (wmma_load_a, wmma_load_b)
        m, n, k = shape
        for stage, maker, order, slow, size in zip(fragments, makers, self.orders, (self.row, -2), ((m, k), (k, n))):
            stage.compute_at(sums, loops[1])
            rows, columns = size if order == "row_major" else size[::-1]
            axes = list(stage.op.axis)
            slow, fast = axes.pop(slow), axes.pop()
            outer, across, inner, last = stage.tile(slow, fast, rows, columns)
            stage.reorder(*axes, outer, across, inner, last)
            stage.tensorize(inner, maker(shape, self.dtype, order))
        for stage in shared:
            stage.compute_at(sums, loops[0])
            self.fill(stage)

    def result(self, sums: te.Stage) -> None:
        """Binds the tiles of the result to blocks and warps, which compute `sums`."""
        s, kernel = self.s, self.kernel
        stage = s[kernel.anchor]
        if kernel.fused:
            tail = s[kernel.tail]
            block = self.blocks(tail)
            rest = tail.fuse(*tail.leaf_iter_vars[-2:])
            self.threads(tail, rest, 1)
            stage.compute_at(tail, block)
            others, row, column = self.axes(stage)
            stage.reorder(*others, row, column)
        else:
            self.blocks(stage)
            row, column = stage.leaf_iter_vars[-2:]
        m, n, _ = self.shape
        row, i = stage.split(row, factor=self.tiles[0] * m)
        column, j = stage.split(column, factor=self.tiles[1] * n)
        down, i = stage.split(i, factor=m)
        across, j = stage.split(j, factor=n)
        stage.reorder(row, column, down, across, i, j)
        bind(stage, (row, column), ("threadIdx.z", "threadIdx.y"))
        stage.tensorize(i, wmma_store(self.shape, self.out, scope="shared" if kernel.fused else "global"))
        sums.compute_at(stage, column)

    def blocks(self, stage: te.Stage) -> Any:
        """Binds the tiles of blocks; returns the inner one of their loops."""
        parts = [count * part for count, part in zip(self.parts, self.shape)]
        others, row, column = self.axes(stage)
        row, i = stage.split(row, factor=parts[0])
        column, j = stage.split(column, factor=parts[1])
        stage.reorder(*others, row, column, i, j)
        bind(stage, (stage.fuse(*others, row), column), ("blockIdx.y", "blockIdx.x"))
        return column

    def sums(self, sums: te.Stage) -> Sequence[Any]:
        """The loops over terms: those between two barriers, and of one product of tiles."""
        m, n, k = self.shape
        *window, term = sums.op.reduce_axis
        outer, term = sums.split(term, factor=k * self.steps)
        inner, term = sums.split(term, factor=k)
        others, row, column = self.axes(sums)
        row, i = sums.split(row, factor=m)
        column, j = sums.split(column, factor=n)
        loops = [outer, *window, inner]
        sums.reorder(*others, *loops, row, column, i, j, term)
        sums.tensorize(i, wmma_mma(self.shape, self.dtype, self.out, *self.orders))
        row_fits = self.shared_bytes([extent_of(axis) or 1 for axis in window]) <= limits_of(self.kernel.target).shared
        # A row of the window is in shared memory, or one place of it.
        return loops[min(len(window), 1) if row_fits else len(window)], inner

    def shared_bytes(self, window: Sequence[int]) -> int:
        """The most bytes of shared memory that a block has when it holds a row of `window`."""
        rows, columns, terms = [parts * part for parts, part in zip((*self.parts, self.steps), self.shape)]
        wide = window[-1] if window else 1
        span = (wide - 1) * self.kernel.record.dilation[-1] + 1 if window else 1  # with what lies between places
        padded = rows + span - 1 if window and self.row == 2 else rows * span
        fused = rows * columns * self.kernel.anchor.output(0).dtype.bytes if self.kernel.fused else 0
        return (padded + wide * columns) * terms * self.operands[0].dtype.bytes + fused

    @property
    def parts(self) -> list[int]:
        """How many tiles of a block lie along rows and along columns."""
        return [warps * tiles for warps, tiles in zip(self.warps, self.tiles)]

    def axes(self, stage: te.Stage) -> tuple[list[Any], Any, Any]:
        """The axes of a stage that are not divided, that of the rows of tiles, and that of their columns."""
        others = list(stage.op.axis)
        row, column = others.pop(self.row), others.pop()
        return others, row, column

    def fill(self, stage: te.Stage) -> None:
        """Deals a copy in shared memory out to all threads, as many neighbours to each as it moves at once."""
        self.threads(stage, stage.fuse(*stage.op.axis), WIDE * 8 // stage.op.output(0).dtype.bits)

    def threads(self, stage: te.Stage, rest: Any, lanes: int) -> None:
        """Binds the loop `rest` to all threads of a block, `lanes` elements to each."""
        if lanes > 1:
            rest, vector = stage.split(rest, factor=lanes)
            stage.vectorize(vector)
        for name, count in (("threadIdx.x", WARP), ("threadIdx.y", self.warps[1]), ("threadIdx.z", self.warps[0])):
            rest, inside = stage.split(rest, factor=count)
            stage.bind(inside, te.thread_axis(name))
