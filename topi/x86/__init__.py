"""Schedules for processors by the names of TVM's topi.x86: threads, vectors of the target's width, tiles of registers.

`tensor_intrin.py` has its tensor intrinsics, `utils.py` what processors have.

Each takes the results (a tensor or a list) and returns a Schedule for the target of the `with Target(...)` block, or this
machine. What is inside `outs` decides, by the table in `topi/schedules/table.py`; the names are TVM's.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import entries
from tedsl.target import Target
from topi import by_target, indexing, nn, transform, vision
from topi.nn.convolution.weights import dense_weights
from topi.schedules.cpu.elements import map_elements
from topi.schedules.kernel import Kernel
from topi.schedules.schedule import advised_or_scheduled, as_target
from topi.schedules.table import CPU
from topi.x86 import tensor_intrin as tensor_intrin
from topi.x86 import utils as utils
from topi.x86.default_tiles import _default_dense_nopack_config as _default_dense_nopack_config
from topi.x86.default_tiles import _default_dense_pack_config as _default_dense_pack_config
from topi.x86.default_tiles import _fallback_schedule as _fallback_schedule
from topi.x86.default_tiles import _get_default_config as _get_default_config
from topi.x86.default_tiles import _pack_data as _pack_data


def schedule_injective(outs: Any) -> te.Schedule:
    """The schedule of `outs` for a processor."""
    return advised_or_scheduled(outs, CPU, _processor())


def schedule_pool(outs: Any, layout: str = "NCHW") -> te.Schedule:
    """The schedule of a pooling; its record says the layout."""
    return schedule_injective(outs)


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """The schedule `sch` with threads and vectors for the loops of `out`."""
    map_elements(Kernel(sch, out.op, out.op, _processor()), out.op)
    return sch


def _processor() -> Target:
    target = as_target(None)
    return target if "cpu" in target.keys else Target("llvm")


schedule_elemwise = schedule_broadcast = schedule_concatenate = schedule_extern = schedule_reduce = schedule_injective
schedule_softmax = schedule_fast_softmax = schedule_layer_norm = schedule_batch_norm = schedule_lrn = schedule_injective
schedule_dense = schedule_dense_nopack = schedule_dense_pack = schedule_matmul = schedule_batch_matmul = schedule_injective
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_conv1d_transpose_ncw = schedule_injective
schedule_conv2d_nchw = schedule_conv2d_nhwc = schedule_conv2d_hwcn = schedule_conv2d_NCHWc = schedule_injective
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_conv3d_transpose_ncdhw = schedule_injective
schedule_conv2d_transpose_nchw = schedule_injective
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_nhwc = schedule_depthwise_conv2d_NCHWc = schedule_injective
schedule_group_conv2d_nchw = schedule_group_conv2d_nhwc = schedule_adaptive_pool = schedule_pool_grad = schedule_injective
schedule_sort = schedule_argsort = schedule_topk = schedule_unique = schedule_argwhere = schedule_injective
schedule_scatter = schedule_scatter_add = schedule_scatter_nd = schedule_searchsorted = schedule_scan = schedule_injective
schedule_einsum = schedule_injective
schedule_conv2d = schedule_l2_normalize = schedule_global_pool = schedule_injective  # before TVM 0.7
schedule_nms = schedule_get_valid_counts = schedule_roi_align = schedule_roi_pool = schedule_proposal = schedule_injective
schedule_multibox_prior = schedule_multibox_transform_loc = schedule_multibox_detection = schedule_reorg = schedule_injective
schedule_binarize_pack = schedule_bitpack = schedule_binary_dense = schedule_bitserial_dense = schedule_injective
schedule_bitserial_conv2d_nchw = schedule_bitserial_conv2d_nhwc = schedule_injective
schedule_sparse_dense = schedule_sparse_transpose = schedule_sparse_conv2d = schedule_sparse_add = schedule_injective
schedule_sparse_reshape = schedule_sparse_fill_empty_rows = schedule_injective
schedule_fast_exp = schedule_concatenate_cpu = schedule_depthwise_conv2d_backward_input_nhwc = schedule_injective
schedule_depthwise_conv2d_backward_weight_nhwc = schedule_invert_permutation = schedule_injective
schedule_conv2d_NCHWc_int8 = schedule_conv2d_nchw_int8 = schedule_conv2d_nhwc_pack = schedule_dense_vnni = schedule_injective
schedule_group_conv2d_nchwc = schedule_group_conv2d_transpose_nchw = schedule_depthwise_conv2d_NCHWc_int8 = schedule_injective
schedule_conv2d_gemm_weight_transform = schedule_conv2d_winograd_weight_transform = schedule_injective
schedule_conv3d_winograd_weight_transform = schedule_conv2d_winograd_without_weight_transform = schedule_injective
schedule_correlation_nchw = schedule_deformable_conv2d_nchw = schedule_deformable_conv2d_nhwc = schedule_injective
schedule_dilation2d_nchw = schedule_dilation2d_nhwc = schedule_bitserial_conv2d = schedule_injective
schedule_conv2d_nhwc_pack_int8 = schedule_spconv2d_3x3_nhwc = schedule_injective

# The formulas are the same on every target; these are names that programs know.
batch_matmul, bitserial_conv2d_nchw = by_target.batch_matmul, by_target.bitserial_conv2d_nchw
bitserial_conv2d_nhwc, conv2d_nchw = by_target.bitserial_conv2d_nhwc, by_target.conv2d_nchw
conv2d_nchw_int8, conv2d_NCHWc = by_target.conv2d_nchw_int8, by_target.conv2d_NCHWc
conv2d_NCHWc_int8, conv2d_nhwc = by_target.conv2d_NCHWc_int8, by_target.conv2d_nhwc
conv2d_transpose_nchw, conv3d_ncdhw = by_target.conv2d_transpose_nchw, by_target.conv3d_ncdhw
conv3d_ndhwc, conv3d_transpose_ncdhw = by_target.conv3d_ndhwc, by_target.conv3d_transpose_ncdhw
depthwise_conv2d_nchw, depthwise_conv2d_NCHWc = by_target.depthwise_conv2d_nchw, by_target.depthwise_conv2d_NCHWc
depthwise_conv2d_nhwc, group_conv2d_nchw = by_target.depthwise_conv2d_nhwc, by_target.group_conv2d_nchw
conv1d_ncw, conv1d_nwc = nn.conv1d_ncw, nn.conv1d_nwc
conv1d_transpose_ncw, conv2d_hwcn, bitserial_dense = nn.conv1d_transpose_ncw, nn.conv2d_hwcn, nn.bitserial_dense
group_conv2d_transpose_nchw, fast_softmax = nn.group_conv2d_transpose_nchw, nn.fast_softmax
binarize_pack, binary_dense, roi_align_nchw = nn.binarize_pack, nn.binary_dense, vision.roi_align_nchw
scatter_nd, concatenate = indexing.scatter_nd, transform.concatenate


def spconv2d_3x3_nhwc(data: te.Tensor, wdat: te.Tensor, wind: te.Tensor, wptr: te.Tensor, layout: str = "NHWC") -> te.Tensor:
    """topi.nn.sparse_conv2d of windows of 3 x 3."""
    return nn.sparse_conv2d(data, wdat, wind, wptr, layout, 3)


def is_int8_hw_support(data_dtype: Any, kernel_dtype: Any) -> bool:
    """Whether the current target adds products of uint8 data and int8 weights in one instruction."""
    return str(data_dtype) == "uint8" and str(kernel_dtype) == "int8" and _processor().dot_terms("uint8", "int8") == 4


def dense_nopack(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = None) -> te.Tensor:
    """topi.nn.dense: weights (results, terms) as they are."""
    return nn.dense(data, weight, bias, out_dtype)


def dense_pack(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = None) -> te.Tensor:
    """topi.nn.dense of weights (results, terms), or packed ones (result tiles, terms, tile)."""
    packed = isinstance(weight, te.Tensor) and weight.ndim == 3
    return nn.dense(data, dense_weights(weight) if packed else weight, bias, out_dtype)


def dense_vnni(data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: Any = "int32") -> te.Tensor:
    """topi.nn.dense of bytes: data uint8 (or int8), weights int8 packed as (results / 16, terms / 4, 16, 4); sums in int32."""
    return nn.dense(data, dense_weights(weight, 16, 4), bias, "int32" if out_dtype is None else out_dtype)


# Of libraries of products: what is here by the name without the library.
entries(globals(), absent={
    f"{schedule}{product}_{library}": f"write topi.{'x86' if schedule else 'nn'}.{schedule}{product}: its schedule is for the "
                                      "processor, and no BLAS is called"
    for schedule in ("", "schedule_") for product in ("dense", "matmul", "batch_matmul")
    for library in ("cblas", "mkl", "mkldnn", "dnnl")})
