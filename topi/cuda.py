"""Schedules for graphics processors by the names of TVM's topi.cuda: loops bound to blocks and threads.

Each takes the results (a tensor or a list) and returns a Schedule. Built for "llvm" the threads run on the processor.
"""

from __future__ import annotations

import functools
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, entries
from tedsl.target import Target
from topi import by_target, indexing, nn, ordering, scan, vision
from topi.indexing.scatter_threads import scatter_add_by_threads
from topi.kinds import ConvOp, MatmulOp
from topi.nn import convolution
from topi.schedules import gpu
from topi.schedules.gpu.conv import ConvTiles
from topi.schedules.gpu.limits import limits_of
from topi.schedules.schedule import advised_or_scheduled, as_target, schedule_with
from topi.schedules.table import GPU, Rule
from topi.sparse import rearranged
from topi.threads.dp4a import dp4a as dp4a


def schedule_injective(outs: Any) -> te.Schedule:
    """The schedule of `outs` in blocks of threads."""
    return advised_or_scheduled(outs, GPU, _processor())


def schedule_conv2d_nchw(outs: Any, tiles: ConvTiles | None = None) -> te.Schedule:
    """The schedule of convolutions, and of what is around them, in blocks of threads.

    tiles: the parts of their loops; None for those that a model of the device of the current target gives, for each its own.
    """
    if tiles is not None and not isinstance(tiles, ConvTiles):
        raise ArgumentTypeError(f"schedule_conv2d_nchw: tiles is a topi.cuda.ConvTiles, not {tiles!r}",
                                hint="ConvTiles(f=(5, 2, 1, 1), y=(224, 1, 1, 1), x=(2, 7, 16, 1), rc=(3, 1), ry=(5, 1), "
                                     "rx=(5, 1))")
    return _scheduled(outs, GPU if tiles is None else {**GPU, ConvOp: functools.partial(gpu.conv.schedule_conv, tiles=tiles)})


def _scheduled(outs: Any, rules: dict[type, Rule]) -> te.Schedule:
    return schedule_with(outs, rules, _processor())


def _processor() -> Target:
    target = as_target(None)
    return target if "gpu" in target.keys else Target("cuda")


def schedule_dense_tensorcore(outs: Any) -> te.Schedule:
    """The schedule of a dense layer or product of float16, bfloat16 or int8 by tensor cores, whose tiles must divide its sizes.

    Raises ArgumentError where they do not.
    """
    return _scheduled(outs, {**GPU, MatmulOp: gpu.tensor_cores.schedule_tensor_cores})


def schedule_conv2d_nhwc_tensorcore(outs: Any) -> te.Schedule:
    """The schedule of a convolution in NHWC of float16, bfloat16 or int8 by tensor cores, whose tiles must divide the channels,
    and the pixels of a row or the images.

    Raises ArgumentError where they do not.
    """
    return _scheduled(outs, {**GPU, ConvOp: gpu.tensor_cores.schedule_tensor_core_conv})


schedule_elemwise = schedule_broadcast = schedule_concatenate = schedule_extern = schedule_reduce = schedule_injective
schedule_softmax = schedule_fast_softmax = schedule_layer_norm = schedule_dense = schedule_batch_matmul = schedule_injective
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_conv1d_transpose_ncw = schedule_injective
schedule_conv2d_nhwc = schedule_conv2d_hwcn = schedule_conv2d_transpose_nchw = schedule_injective
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_conv3d_transpose_ncdhw = schedule_injective
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_nhwc = schedule_group_conv2d_nchw = schedule_injective
schedule_pool_grad = schedule_lrn = schedule_batch_norm = schedule_injective
schedule_l2_normalize = schedule_global_pool = schedule_injective  # before TVM 0.7
schedule_matmul = schedule_conv2d_NCHWc = schedule_injective
schedule_sort = schedule_argsort = schedule_topk = schedule_unique = schedule_argwhere = schedule_injective
schedule_scatter = schedule_scatter_add = schedule_scatter_nd = schedule_searchsorted = schedule_scan = schedule_injective
schedule_einsum = schedule_injective
schedule_nms = schedule_get_valid_counts = schedule_roi_align = schedule_roi_pool = schedule_proposal = schedule_injective
schedule_multibox_prior = schedule_multibox_transform_loc = schedule_multibox_detection = schedule_reorg = schedule_injective
schedule_binarize_pack = schedule_bitpack = schedule_binary_dense = schedule_bitserial_dense = schedule_injective
schedule_bitserial_conv2d_nchw = schedule_bitserial_conv2d_nhwc = schedule_injective
schedule_sparse_dense = schedule_sparse_transpose = schedule_sparse_conv2d = schedule_sparse_add = schedule_injective
schedule_sparse_reshape = schedule_sparse_fill_empty_rows = schedule_injective
schedule_conv2d_NCHWc_int8 = schedule_conv2d_nhwc_pack = schedule_conv2d_gemm_weight_transform = schedule_injective
schedule_depthwise_conv2d_backward_input_nhwc = schedule_depthwise_conv2d_backward_weight_nhwc = schedule_injective
schedule_conv3d_winograd_weight_transform = schedule_conv3d_winograd_without_weight_transform = schedule_injective
schedule_group_conv2d_nchwc = schedule_upsampling = schedule_fifo_buffer = schedule_injective
schedule_conv2d_winograd_weight_transform = schedule_conv2d_winograd_without_weight_transform = schedule_injective
schedule_group_conv2d_transpose_nchw = schedule_invert_permutation = schedule_correlation_nchw = schedule_injective
schedule_deformable_conv2d_nchw = schedule_deformable_conv2d_nhwc = schedule_injective
schedule_dilation2d_nchw = schedule_dilation2d_nhwc = schedule_injective
schedule_dense_small_batch = schedule_dense_large_batch = schedule_dense_int8 = schedule_conv2d_nchw_int8 = schedule_injective
schedule_conv2d_nchw_winograd = schedule_conv2d_nchw_winograd_without_weight_transform = schedule_injective
schedule_conv2d_nhwc_winograd_direct = schedule_transpose = schedule_batch_matmul_int8 = schedule_injective
schedule_batch_matmul_tensorcore = schedule_dense_tensorcore


def schedule_conv2d_nchw_cuda(cfg: Any, outs: Any) -> te.Schedule:
    """The schedule of `outs`, as templates of TVM 0.6 call it. cfg: the configuration of a template, which chooses nothing:
    a model of the device gives the tiles.
    """
    return schedule_injective(outs)


schedule_depthwise_conv2d_nchw_cuda = schedule_group_conv2d_nchw_cuda = schedule_conv2d_nchw_cuda
schedule_conv2d_transpose_nchw_cuda = schedule_conv1d_transpose_ncw_cuda = schedule_conv2d_nchw_cuda
schedule_conv2d_NCHWc_int8_cuda = schedule_conv2d_nchw_cuda


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """The schedule `sch` with blocks and threads for the loops of `out`."""
    gpu.injective.bind_elements(sch[out], limits_of(_processor()))
    return sch


def schedule_adaptive_pool(outs: Any, layout: str = "NCHW") -> te.Schedule:
    """The schedule of an adaptive pooling; its record says the layout."""
    return schedule_injective(outs)


def schedule_pool(outs: Any, layout: str = "NCHW") -> te.Schedule:
    """The schedule of a pooling; its record says the layout."""
    return schedule_injective(outs)


def batch_matmul(x: te.Tensor, y: te.Tensor, out_shape: Any = None, out_dtype: Any = None, transpose_a: bool = False,
                 transpose_b: bool = True) -> te.Tensor:
    """topi.nn.batch_matmul."""
    return by_target.batch_matmul(x, y, out_shape, out_dtype, transpose_a, transpose_b)


def conv2d_NCHWc_int8(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                      out_dtype: Any = "int32") -> te.Tensor:
    """topi.nn.conv2d_NCHWc_int8."""
    return by_target.conv2d_NCHWc_int8(data, kernel, stride, padding, dilation, layout, layout, out_dtype)


def conv2d_transpose_nchw(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, out_dtype: Any,
                          output_padding: Any) -> te.Tensor:
    """topi.nn.conv2d_transpose_nchw."""
    return by_target.conv2d_transpose_nchw(data, kernel, stride, padding, out_dtype, output_padding)


def conv3d_transpose_ncdhw(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, out_dtype: Any,
                           output_padding: Any) -> te.Tensor:
    """topi.nn.conv3d_transpose_ncdhw."""
    return by_target.conv3d_transpose_ncdhw(data, kernel, stride, padding, out_dtype, output_padding)


def sparse_dense(data: te.Tensor, weight_data: te.Tensor, weight_indices: te.Tensor, weight_indptr: te.Tensor,
                 sparse_lhs: bool = False) -> te.Tensor:
    """topi.nn.sparse_dense."""
    return nn.sparse_dense(data, weight_data, weight_indices, weight_indptr, sparse_lhs)


def argsort(data: te.Tensor, valid_count: te.Tensor | None = None, axis: int = -1, is_ascend: Any = 1,
            dtype: Any = "float32", ret_type: str = "indices") -> Any:
    """topi.argsort; with ret_type "both" the sorted values too, first in a list."""
    if ret_type not in ("indices", "both"):
        raise ArgumentError(f"argsort: there is no ret_type {ret_type!r}", hint="choose 'indices' or 'both'")
    places = ordering.argsort(data, valid_count, axis, is_ascend, dtype)
    if ret_type == "indices":
        return places
    return [ordering.sort(data, axis, is_ascend) if valid_count is None else indexing.gather(data, axis, places), places]


# The formulas are the same on every target; these are names that programs know.
conv2d_nchw, conv2d_nchw_int8 = by_target.conv2d_nchw, by_target.conv2d_nchw_int8
conv2d_nchw_winograd = by_target.conv2d_nchw_winograd
conv2d_nchw_winograd_without_weight_transform = by_target.conv2d_nchw_winograd_without_weight_transform
conv2d_NCHWc, conv2d_nhwc = by_target.conv2d_NCHWc, by_target.conv2d_nhwc
conv2d_nhwc_winograd_direct = by_target.conv2d_nhwc_winograd_direct
conv3d_ncdhw, conv3d_ndhwc = by_target.conv3d_ncdhw, by_target.conv3d_ndhwc
dense, dense_int8 = by_target.dense, by_target.dense_int8
depthwise_conv2d_nchw, depthwise_conv2d_NCHWc = by_target.depthwise_conv2d_nchw, by_target.depthwise_conv2d_NCHWc
depthwise_conv2d_nhwc, group_conv2d_nchw = by_target.depthwise_conv2d_nhwc, by_target.group_conv2d_nchw
conv2d, dense_tensorcore, conv2d_nhwc_tensorcore = convolution.conv2d, dense, conv2d_nhwc
dense_small_batch = dense_large_batch = dense
batch_matmul_tensorcore = batch_matmul_int8 = batch_matmul
conv1d_ncw, conv1d_nwc = nn.conv1d_ncw, nn.conv1d_nwc
conv2d_hwcn, conv1d_transpose_ncw = nn.conv2d_hwcn, nn.conv1d_transpose_ncw
correlation_nchw, deformable_conv2d_nchw = nn.correlation_nchw, nn.deformable_conv2d_nchw
sparse_transpose, sparse_add = nn.sparse_transpose, nn.sparse_add
get_valid_counts, non_max_suppression = vision.get_valid_counts, vision.non_max_suppression
all_class_non_max_suppression, proposal = vision.all_class_non_max_suppression, vision.proposal
multibox_prior, multibox_transform_loc = vision.multibox_prior, vision.multibox_transform_loc
multibox_detection = vision.multibox_detection
sort, topk = ordering.sort, ordering.topk
unique, searchsorted, argwhere = ordering.unique, ordering.searchsorted, indexing.argwhere
cumsum, cumprod, scatter, scatter_nd = scan.cumsum, scan.cumprod, indexing.scatter, indexing.scatter_nd
sparse_reshape = rearranged.sparse_reshape
scatter_add = scatter_add_by_threads

_OF_LIBRARIES = ("conv2d_cudnn", "conv3d_cudnn", "softmax_cudnn", "log_softmax_cudnn", "dense_cublas", "matmul_cublas",
                 "batch_matmul_cublas", "sort_thrust", "argsort_thrust", "topk_thrust")

entries(globals(), absent={
    f"{schedule}{name}": f"write {schedule}{name.rpartition('_')[0]}, the same without the library: schedules are tedsl's, and "
                         " cuDNN, cuBLAS and Thrust are not called"
    for schedule in ("", "schedule_") for name in _OF_LIBRARIES})
