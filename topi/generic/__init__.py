"""Schedules by the names of TVM's topi.generic: right for every operator on every target, with plain loops.

Each takes the results (a tensor or a list) and returns a Schedule in which cheap formulas are inlined and the element-wise end
of a reduction or convolution is computed in its loops.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import entries
from tedsl.target.generic import with_implementations
from topi.generic.default import default_schedule as default_schedule
from topi.generic.default import schedule_extern as schedule_extern


def schedule_pool(outs: Any, layout: str = "NCHW") -> te.Schedule:
    """Plain loops for a pooling; its layout makes no difference."""
    return schedule_extern(outs)


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """The schedule `sch` with one loop for the axes of `out`."""
    stage = sch[out]
    if stage.op.axis:
        stage.fuse(*stage.op.axis)
    return sch


# One function is right for all of them; the names are TVM's, without those of operators that topi does not have.
schedule_injective = schedule_elemwise = schedule_broadcast = schedule_concatenate = schedule_reduce = schedule_extern
schedule_softmax = schedule_fast_softmax = schedule_layer_norm = schedule_batch_norm = schedule_lrn = schedule_extern
schedule_l2_normalize = schedule_global_pool = schedule_extern  # before TVM 0.7
schedule_dense = schedule_matmul = schedule_batch_matmul = schedule_einsum = schedule_extern
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_conv1d_transpose_ncw = schedule_extern
schedule_conv2d_nchw = schedule_conv2d_nhwc = schedule_conv2d_hwcn = schedule_conv2d_NCHWc = schedule_extern
schedule_conv2d_transpose_nchw = schedule_extern
schedule_conv2d_winograd_weight_transform = schedule_conv2d_winograd_without_weight_transform = schedule_extern
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_conv3d_transpose_ncdhw = schedule_extern
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_nhwc = schedule_depthwise_conv2d_NCHWc = schedule_extern
schedule_group_conv2d_nchw = schedule_group_conv2d_nhwc = schedule_group_conv2d_transpose_nchw = schedule_extern
schedule_deformable_conv2d_nchw = schedule_deformable_conv2d_nhwc = schedule_correlation_nchw = schedule_extern
schedule_adaptive_pool = schedule_pool_grad = schedule_extern
schedule_dilation2d_nchw = schedule_dilation2d_nhwc = schedule_extern
schedule_sort = schedule_argsort = schedule_topk = schedule_unique = schedule_argwhere = schedule_extern
schedule_scatter = schedule_scatter_add = schedule_scatter_nd = schedule_searchsorted = schedule_scan = schedule_extern
schedule_invert_permutation = schedule_extern
schedule_nms = schedule_get_valid_counts = schedule_roi_align = schedule_roi_pool = schedule_proposal = schedule_extern
schedule_multibox_prior = schedule_multibox_transform_loc = schedule_multibox_detection = schedule_reorg = schedule_extern
schedule_binarize_pack = schedule_bitpack = schedule_binary_dense = schedule_bitserial_dense = schedule_extern
schedule_bitserial_conv2d_nchw = schedule_bitserial_conv2d_nhwc = schedule_extern
schedule_sparse_dense = schedule_sparse_transpose = schedule_sparse_conv2d = schedule_sparse_add = schedule_extern
schedule_sparse_reshape = schedule_sparse_fill_empty_rows = schedule_extern
schedule_conv2d_NCHWc_int8 = schedule_conv2d_nhwc_pack = schedule_conv2d_gemm_weight_transform = schedule_extern
schedule_depthwise_conv2d_backward_input_nhwc = schedule_depthwise_conv2d_backward_weight_nhwc = schedule_extern
schedule_conv3d_winograd_weight_transform = schedule_conv3d_winograd_without_weight_transform = schedule_extern
schedule_group_conv2d_nchwc = schedule_upsampling = schedule_fifo_buffer = schedule_extern

# Each is a function of its own, for which a program may register one: `@topi.generic.schedule_dense.register("cpu")`.
globals().update({name: with_implementations(value, name, __name__) for name, value in list(globals().items())
                  if name.startswith("schedule_")})
entries(globals())
