"""Operators of neural networks; convolutions stand in `convolution/`, pooling in `pool/`, products of bits in `bits/`."""

from tedsl.errors import entries
from tedsl.target.generic import give_implementations
from topi.nn import utils
from topi.nn.bias_add import bias_add
from topi.nn.bits import binarize_pack, binary_dense, bitpack, bitserial_conv2d_nchw, bitserial_conv2d_nhwc, bitserial_dense
from topi.nn.convolution import (
    conv,
    conv1d,
    conv1d_ncw,
    conv1d_nwc,
    conv1d_transpose_ncw,
    conv2d,
    conv2d_gemm_weight_transform,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_NCHWc_int8,
    conv2d_nhwc,
    conv2d_pack_weights,
    conv2d_transpose_nchw,
    conv2d_unpack_weights,
    conv2d_winograd_nchw,
    conv2d_winograd_nhwc,
    conv2d_winograd_weight_transform,
    conv3d_ncdhw,
    conv3d_ndhwc,
    conv3d_transpose_ncdhw,
    conv3d_winograd_weight_transform,
    deformable_conv2d_nchw,
    deformable_conv2d_nhwc,
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
    depthwise_conv2d_nchw,
    depthwise_conv2d_NCHWc,
    depthwise_conv2d_nhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
    group_conv2d_transpose_nchw,
    steps,
)
from topi.nn.correlation import correlation_nchw
from topi.nn.dense import batch_matmul, dense, dense_pack_weights, dense_unpack_weights, matmul
from topi.nn.dilate import dilate
from topi.nn.elementwise import leaky_relu, prelu, relu
from topi.nn.fifo_buffer import fifo_buffer
from topi.nn.instance_norm import group_norm, instance_norm, rms_norm
from topi.nn.layer_norm import layer_norm
from topi.nn.loss import nll_loss
from topi.nn.lstm import lstm
from topi.nn.mapping import flatten, scale_shift_nchw, scale_shift_nchwc, scale_shift_nhwc
from topi.nn.normalization import batch_norm, l2_normalize, lrn
from topi.nn.pad import mirror_pad, pad
from topi.nn.pool import adaptive_pool, adaptive_pool1d, adaptive_pool3d, global_pool, pool1d, pool2d, pool3d, pool_grad
from topi.nn.pool.windows import pool as pool  # an older name of pool2d, so not in __all__; it hides the package
from topi.nn.qnn import SQNN_CODE_TO_DTYPE, SQNN_DTYPE_TO_CODE, simulated_dequantize, simulated_quantize
from topi.nn.softmax import fast_softmax, log_softmax, softmax
from topi.nn.softmax import softmax_common as softmax_common
from topi.nn.space import batch_to_space_nd, depth_to_space, pixel_shuffle, space_to_batch_nd, space_to_depth
from topi.nn.upsampling import upsampling, upsampling3d
from topi.nn.utils import get_pad_tuple as get_pad_tuple  # no operators, so not in __all__
from topi.nn.utils import get_pad_tuple1d as get_pad_tuple1d
from topi.nn.utils import get_pad_tuple3d as get_pad_tuple3d
from topi.sparse.products import sparse_conv2d, sparse_dense, sparse_dense_sp_lhs, sparse_dense_sp_rhs
from topi.sparse.rearranged import sparse_add, sparse_transpose

__all__ = ["leaky_relu", "pad", "relu", "utils"]
__all__ += ["batch_matmul", "bias_add", "dense", "fast_softmax", "layer_norm", "log_softmax", "matmul", "softmax"]
__all__ += [
    "conv", "conv1d", "conv1d_ncw", "conv1d_nwc", "conv1d_transpose_ncw", "conv2d", "conv2d_NCHWc", "conv2d_hwcn",
    "conv2d_nchw", "conv2d_nhwc", "conv2d_pack_weights", "conv2d_transpose_nchw", "conv3d_ncdhw", "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "depthwise_conv2d_NCHWc", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "dilate", "group_conv2d_nchw",
    "group_conv2d_nhwc", "group_conv2d_transpose_nchw",
]
__all__ += ["binarize_pack", "binary_dense", "bitpack", "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc", "bitserial_dense"]
__all__ += ["sparse_add", "sparse_conv2d", "sparse_dense", "sparse_dense_sp_lhs", "sparse_dense_sp_rhs", "sparse_transpose"]
__all__ += ["conv2d_NCHWc_int8", "conv2d_gemm_weight_transform", "conv3d_winograd_weight_transform",
            "depthwise_conv2d_backward_input_nhwc", "depthwise_conv2d_backward_weight_nhwc"]
__all__ += ["conv2d_unpack_weights", "dense_pack_weights", "dense_unpack_weights", "prelu"]
__all__ += ["adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "global_pool", "pool1d", "pool2d", "pool3d", "pool_grad"]
__all__ += [
    "SQNN_CODE_TO_DTYPE", "SQNN_DTYPE_TO_CODE", "batch_norm", "batch_to_space_nd", "depth_to_space", "fifo_buffer", "flatten",
    "l2_normalize", "lrn", "mirror_pad", "nll_loss", "scale_shift_nchw", "scale_shift_nchwc", "scale_shift_nhwc",
    "simulated_dequantize", "simulated_quantize", "space_to_batch_nd", "space_to_depth",
]
__all__ += ["upsampling", "upsampling3d"]
__all__ += ["group_norm", "instance_norm", "lstm", "pixel_shuffle", "rms_norm"]
__all__ += ["correlation_nchw", "conv2d_winograd_nchw", "conv2d_winograd_nhwc", "conv2d_winograd_weight_transform",
            "deformable_conv2d_nchw",
            "deformable_conv2d_nhwc"]

give_implementations(globals())
util = utils  # its name before TVM 0.8
# Parts of operators: no operators themselves, so not in __all__.
get_pad_tuple_generic, Workload, unpack_NCHWc_to_nchw = utils.get_pad_tuple_generic, steps.Workload, steps.unpack_NCHWc_to_nchw
winograd_transform_matrices = steps.winograd_transform_matrices
conv2d_winograd_nhwc_without_weight_transform = steps.conv2d_winograd_nhwc_without_weight_transform
conv2d_winograd_without_weight_transform = steps.conv2d_winograd_without_weight_transform
conv2d_transpose_nchw_preprocess = steps.conv2d_transpose_nchw_preprocess
conv3d_transpose_ncdhw_preprocess = steps.conv3d_transpose_ncdhw_preprocess
declaration_conv2d_transpose_impl, declaration_conv3d_transpose_impl = conv2d_transpose_nchw, conv3d_transpose_ncdhw

entries(globals(), instead=dict.fromkeys(
    ("conv2d_winograd_nnpack_weight_transform", "conv2d_winograd_nnpack_without_weight_transform"),
    "topi.nn.conv2d_winograd_nchw: NNPACK is not called"))
