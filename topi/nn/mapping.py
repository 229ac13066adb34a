"""Scale and shift for each channel; flattening of all dimensions but the batch."""

from __future__ import annotations

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import differ, indices_at, opening, product, shown
from topi.injective import injective


@checked
def scale_shift_nchw(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input[n, c, h, w] * Scale[c] + Shift[c]."""
    return _scale_shift("scale_shift_nchw", Input, Scale, Shift, (1,), 4)


@checked
def scale_shift_nhwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input[n, h, w, c] * Scale[c] + Shift[c]."""
    return _scale_shift("scale_shift_nhwc", Input, Scale, Shift, (3,), 4)


@checked
def scale_shift_nchwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input[n, C, h, w, c] * Scale[C, c] + Shift[C, c]: blocks of channels innermost."""
    return _scale_shift("scale_shift_nchwc", Input, Scale, Shift, (1, 4), 5)


def flatten(data: te.Tensor) -> te.Tensor:
    """(batch, the rest in one dimension), in row-major order.

    Raises ShapeError for data of rank 0.
    """
    where = opening("flatten", data)
    if data.ndim < 1:
        raise ShapeError(f"{where}: a scalar has no batch")
    rest = data.shape[1:]
    return injective("flatten", (data.shape[0], product(rest)), lambda n, i: data(n, *indices_at(i, rest)), name="tensor")


def _scale_shift(operator: str, data: te.Tensor, scale: te.Tensor, shift: te.Tensor, axes: tuple[int, ...],
                 rank: int) -> te.Tensor:
    where = opening(operator, data)
    if data.ndim != rank:
        raise ShapeError(f"{where}: the shape {shown(data.shape)} has {data.ndim} dimensions, not {rank}")
    for tensor, name in ((scale, "Scale"), (shift, "Shift")):
        if tensor.ndim != len(axes) or any(differ(n, data.shape[d]) for n, d in zip(tensor.shape, axes)):
            raise ShapeError(f"{where}: {name} {tensor.name} has the shape {shown(tensor.shape)}, the channels of "
                             f"{shown(data.shape)} are {shown([data.shape[d] for d in axes])}")
    return te.compute(data.shape, lambda *i: data(*i) * scale(*[i[d] for d in axes]) + shift(*[i[d] for d in axes]),
                      name="ScaleShift", tag="broadcast", info=te.ElementwiseOp(operator, broadcasts=True),
                      axes="ax")
