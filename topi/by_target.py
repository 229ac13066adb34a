"""Operators by the parameters that TVM's topi.x86, topi.arm_cpu and topi.cuda give them: data, kernel, strides, ...

The formulas are those of topi.nn, the same for every target; the schedules read the target.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi import nn


def conv2d_nchw(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv2d_nchw."""
    return nn.conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)


def conv2d_nhwc(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv2d_nhwc."""
    return nn.conv2d_nhwc(data, kernel, strides, padding, dilation, out_dtype)


def conv2d_nchw_int8(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                     out_dtype: Any = "int32") -> te.Tensor:
    """topi.nn.conv2d_nchw of integers of 8 bits, with sums in int32."""
    return nn.conv2d_nchw(data, kernel, strides, padding, dilation, "int32" if out_dtype is None else out_dtype)


def conv2d_nchw_winograd(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                         out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv2d_winograd_nchw: square windows with stride 1."""
    return nn.conv2d_winograd_nchw(data, kernel, strides, padding, dilation, out_dtype)


def conv2d_nchw_winograd_without_weight_transform(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                                                  out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv2d_winograd_nchw of weights that conv2d_winograd_weight_transform has transformed."""
    return nn.conv2d_winograd_nchw(data, kernel, strides, padding, dilation, out_dtype, True)


def conv2d_nhwc_winograd_direct(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                                out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv2d_winograd_nhwc: square windows with stride 1."""
    return nn.conv2d_winograd_nhwc(data, kernel, strides, padding, dilation, out_dtype)


def conv2d_NCHWc(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                 out_layout: str = "NCHWc", out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv2d_NCHWc."""
    return nn.conv2d_NCHWc(data, kernel, strides, padding, dilation, layout, out_layout, out_dtype)


def conv2d_NCHWc_int8(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                      out_layout: str = "NCHWc", out_dtype: Any = "int32") -> te.Tensor:
    """topi.nn.conv2d_NCHWc_int8."""
    return nn.conv2d_NCHWc_int8(data, kernel, strides, padding, dilation, layout, out_layout, out_dtype)


def depthwise_conv2d_nchw(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                          out_dtype: Any = None) -> te.Tensor:
    """topi.nn.depthwise_conv2d_nchw."""
    return nn.depthwise_conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)


def depthwise_conv2d_nhwc(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                          out_dtype: Any = None) -> te.Tensor:
    """topi.nn.depthwise_conv2d_nhwc."""
    return nn.depthwise_conv2d_nhwc(data, kernel, strides, padding, dilation, out_dtype)


def depthwise_conv2d_NCHWc(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                           layout: str = "NCHWc", out_layout: str = "NCHWc", out_dtype: Any = None) -> te.Tensor:
    """topi.nn.depthwise_conv2d_NCHWc."""
    return nn.depthwise_conv2d_NCHWc(data, kernel, strides, padding, dilation, layout, out_layout, out_dtype)


def group_conv2d_nchw(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: Any = None) -> te.Tensor:
    """topi.nn.group_conv2d_nchw."""
    return nn.group_conv2d_nchw(data, kernel, strides, padding, dilation, groups, out_dtype)


def conv2d_transpose_nchw(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: Any,
                          output_padding: Any) -> te.Tensor:
    """topi.nn.conv2d_transpose_nchw."""
    return nn.conv2d_transpose_nchw(data, kernel, strides, padding, out_dtype, output_padding)


def conv3d_ncdhw(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv3d_ncdhw."""
    return nn.conv3d_ncdhw(data, kernel, strides, padding, dilation, groups, out_dtype)


def conv3d_ndhwc(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = None) -> te.Tensor:
    """topi.nn.conv3d_ndhwc."""
    return nn.conv3d_ndhwc(data, kernel, strides, padding, dilation, groups, out_dtype)


def conv3d_transpose_ncdhw(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: Any,
                           output_padding: Any) -> te.Tensor:
    """topi.nn.conv3d_transpose_ncdhw."""
    return nn.conv3d_transpose_ncdhw(data, kernel, strides, padding, out_dtype, output_padding)


def batch_matmul(tensor_a: te.Tensor, tensor_b: te.Tensor, out_shape: Any = None, out_dtype: Any = None,
                 transpose_a: bool = False, transpose_b: bool = True) -> te.Tensor:
    """topi.nn.batch_matmul."""
    return nn.batch_matmul(tensor_a, tensor_b, out_shape, out_dtype, transpose_a, transpose_b)


def dense(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = None) -> te.Tensor:
    """topi.nn.dense."""
    return nn.dense(data, weight, bias, out_dtype)


def dense_int8(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = "int32") -> te.Tensor:
    """topi.nn.dense of integers of 8 bits, with sums in int32."""
    return nn.dense(data, weight, bias, "int32" if out_dtype is None else out_dtype)


def bitserial_conv2d_nchw(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, in_bits: int, weight_bits: int,
                          pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True) -> te.Tensor:
    """topi.nn.bitserial_conv2d_nchw."""
    return nn.bitserial_conv2d_nchw(data, kernel, stride, padding, in_bits, weight_bits, pack_dtype, out_dtype, unipolar)


def bitserial_conv2d_nhwc(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, in_bits: int, weight_bits: int,
                          pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True) -> te.Tensor:
    """topi.nn.bitserial_conv2d_nhwc."""
    return nn.bitserial_conv2d_nhwc(data, kernel, stride, padding, in_bits, weight_bits, pack_dtype, out_dtype, unipolar)
