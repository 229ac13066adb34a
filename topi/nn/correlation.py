"""Correlation of patches of two images over displacements: the correlation layer of FlowNet (Dosovitskiy et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, differ, opening, shown
from topi.kinds import PoolOp
from topi.nn.pad import pad


@checked
def correlation_nchw(data1: te.Tensor, data2: te.Tensor, kernel_size: int, max_displacement: int, stride1: int, stride2: int,
                     padding: int | Sequence[int], is_multiply: bool) -> te.Tensor:
    """out[n, q, y, x]: the mean over channels and a patch of data1 * data2 (or |data1 - data2|), data2 moved by displacement q.

    data1, data2: (batch, channel, height, width). kernel_size: the patch, odd. Displacements go from -d to d along both
    dimensions in steps of stride2, with d = max_displacement // stride2 * stride2; patches are stride1 apart. padding: zeros on
    all sides.
    """
    where = opening("correlation_nchw", data1, data2)
    if data1.ndim != 4 or data2.ndim != 4 or any(differ(a, b) for a, b in zip(data1.shape, data2.shape)):
        raise ShapeError(f"{where}: the shapes are {shown(data1.shape)} and {shown(data2.shape)}",
                         hint="(n, c, h, w), both alike")
    if kernel_size < 1 or kernel_size % 2 == 0 or min(stride1, stride2) < 1 or max_displacement < 0:
        raise ArgumentError(f"{where}: kernel_size {kernel_size}, max_displacement {max_displacement}, stride1 {stride1}, "
                            f"stride2 {stride2}", hint="an odd kernel, strides from 1 on")
    sides = list(padding) if isinstance(padding, (tuple, list)) else [padding] * 4
    sides = sides * (4 // len(sides)) if len(sides) in (1, 2) else sides
    low, high = [0, 0, sides[0], sides[1]], [0, 0, sides[2], sides[3]]
    one, other = pad(data1, low, high, name="padded_data1"), pad(data2, low, high, name="padded_data2")
    radius, border = max_displacement // stride2, kernel_size // 2 + max_displacement
    grid = 2 * radius + 1
    extents = [(n - 2 * border + (stride1 - 1)) // stride1 for n in one.shape[2:]]
    if any(n is not None and n < 1 for n in map(as_int, extents)):
        raise ShapeError(f"{where}: displacements and patches reach {border} from the border of {shown(one.shape)}",
                         hint="more padding, or a smaller max_displacement")
    rc, ry, rx = (te.reduce_axis((0, n), name=name) for n, name in
                  ((data1.shape[1], "rc"), (kernel_size, "ry"), (kernel_size, "rx")))

    def formula(n: Any, q: Any, i: Any, j: Any) -> Expr:
        y, x = i * stride1 + max_displacement + ry, j * stride1 + max_displacement + rx
        a, b = one(n, rc, y, x), other(n, rc, y + (q // grid - radius) * stride2, x + (q % grid - radius) * stride2)
        return te.sum(a * b if is_multiply else te.abs(a - b), axis=[rc, ry, rx])

    record = PoolOp("correlation", data1, one, "NCHW", (kernel_size, kernel_size), (stride1, stride1), (1, 1))
    total = te.compute((data1.shape[0], grid * grid, *extents), formula, name="correlation_sum", tag="correlation_nchw",
                       info=record)
    size = data1.shape[1] * (kernel_size * kernel_size)
    count = te.const(as_int(size) or 1, total.dtype) if as_int(size) is not None else size.astype(total.dtype)
    return te.compute(total.shape, lambda *i: total(*i) / count, name="correlation", tag="elemwise",
                      info=te.ElementwiseOp("divide"), axes="ax")
