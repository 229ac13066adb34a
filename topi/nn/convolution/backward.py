"""Derivatives of depthwise convolutions by TVM's names: those that te.gradient gives, which are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import differ, opening, require_shape, shown
from topi.nn.convolution.depthwise import depthwise_conv2d_nhwc


@checked
def depthwise_conv2d_backward_input_nhwc(Filter: te.Tensor, Out_grad: te.Tensor, oshape: Sequence[Any], ishape: Sequence[Any],
                                         stride: Any, padding: Any) -> te.Tensor:
    """The derivative of the sum of Out_grad * depthwise_conv2d_nhwc(Input, Filter, stride, padding, 1) by Input.

    Filter: (height, width, channel, multiplier). Out_grad: `oshape`, the shape of the result; ishape: that of Input.
    """
    where = opening("depthwise_conv2d_backward_input_nhwc", Filter, Out_grad)
    require_shape(Filter, [None] * 4, where, "Filter is (height, width, channel, multiplier)")
    data = te.placeholder(_shape(ishape, where, "ishape"), Out_grad.dtype, name="Input")
    return _derivative(data, Filter, Out_grad, oshape, stride, padding, where, data)


@checked
def depthwise_conv2d_backward_weight_nhwc(Input: te.Tensor, Out_grad: te.Tensor, oshape: Sequence[Any], fshape: Sequence[Any],
                                          stride: Any, padding: Any) -> te.Tensor:
    """The derivative of the sum of Out_grad * depthwise_conv2d_nhwc(Input, Filter, stride, padding, 1) by Filter.

    Input: (batch, height, width, channel). Out_grad: `oshape`, the shape of the result; fshape: that of Filter.
    """
    where = opening("depthwise_conv2d_backward_weight_nhwc", Input, Out_grad)
    kernel = te.placeholder(_shape(fshape, where, "fshape"), Out_grad.dtype, name="Filter")
    return _derivative(Input, kernel, Out_grad, oshape, stride, padding, where, kernel)


def _derivative(data: te.Tensor, kernel: te.Tensor, head: te.Tensor, oshape: Sequence[Any], stride: Any, padding: Any,
                where: str, wanted: te.Tensor) -> te.Tensor:
    result = depthwise_conv2d_nhwc(data, kernel, stride, padding, 1)
    for shape in (head.shape, _shape(oshape, where, "oshape")):
        if len(shape) != 4 or any(map(differ, shape, result.shape)):
            raise ShapeError(f"{where}: Out_grad has the shape {shown(head.shape)}, oshape is {shown(tuple(oshape))}, and the "
                             f"convolution of {shown(data.shape)} with {shown(kernel.shape)} has {shown(result.shape)}",
                             hint="stride and padding are those of the convolution")
    found: te.Tensor = te.gradient(result, [wanted], head)[0]
    return found


def _shape(shape: Sequence[Any], where: str, name: str) -> tuple[Any, ...]:
    if len(shape) != 4:
        raise ShapeError(f"{where}: {name} is {shown(tuple(shape))}", hint="four extents")
    return tuple(shape)
