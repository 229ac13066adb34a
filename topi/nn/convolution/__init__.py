"""Convolutions."""

from tedsl.target.generic import give_implementations
from topi.nn.convolution.backward import depthwise_conv2d_backward_input_nhwc, depthwise_conv2d_backward_weight_nhwc
from topi.nn.convolution.deformable import deformable_conv2d_nchw, deformable_conv2d_nhwc
from topi.nn.convolution.depthwise import depthwise_conv2d_nchw, depthwise_conv2d_nhwc
from topi.nn.convolution.direct import (
    conv,
    conv1d,
    conv1d_ncw,
    conv1d_nwc,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from topi.nn.convolution.packed import conv2d_NCHWc, conv2d_pack_weights, conv2d_unpack_weights, depthwise_conv2d_NCHWc
from topi.nn.convolution.steps import Workload as Workload
from topi.nn.convolution.steps import _get_workload as _get_workload
from topi.nn.convolution.steps import unpack_NCHWc_to_nchw as unpack_NCHWc_to_nchw
from topi.nn.convolution.transposed import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    group_conv2d_transpose_nchw,
)
from topi.nn.convolution.weights import conv2d_gemm_weight_transform, conv2d_NCHWc_int8
from topi.nn.convolution.winograd import (
    conv2d_winograd_nchw,
    conv2d_winograd_nhwc,
    conv2d_winograd_weight_transform,
    conv3d_winograd_weight_transform,
)

__all__ = [
    "conv", "conv1d", "conv1d_ncw", "conv1d_nwc", "conv1d_transpose_ncw", "conv2d", "conv2d_NCHWc", "conv2d_hwcn",
    "conv2d_nchw", "conv2d_nhwc", "conv2d_pack_weights", "conv2d_transpose_nchw", "conv3d_ncdhw", "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "depthwise_conv2d_NCHWc", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "group_conv2d_nchw", "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
]
__all__ += ["conv2d_winograd_nchw", "conv2d_winograd_nhwc", "conv2d_winograd_weight_transform", "conv2d_unpack_weights",
            "deformable_conv2d_nchw", "deformable_conv2d_nhwc"]
__all__ += ["conv2d_NCHWc_int8", "conv2d_gemm_weight_transform", "conv3d_winograd_weight_transform",
            "depthwise_conv2d_backward_input_nhwc", "depthwise_conv2d_backward_weight_nhwc"]

give_implementations(globals())
