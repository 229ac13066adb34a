"""Schedules for processors by the names of TVM's topi.x86: threads, vectors of the target's width, tiles of registers.

Each takes the results (a tensor or a list) and returns a Schedule for the target of the `with Target(...)` block, or this
machine. What is inside `outs` decides, by the table in `topi/schedules/table.py`; the names are TVM's.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import entries
from tedsl.target import Target
from topi.nn import conv
from topi.schedules.cpu.injective import map_elements
from topi.schedules.kernel import Kernel
from topi.schedules.schedule import advised_or_scheduled, as_target
from topi.schedules.table import CPU


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
schedule_nms = schedule_get_valid_counts = schedule_roi_align = schedule_roi_pool = schedule_proposal = schedule_injective
schedule_multibox_prior = schedule_multibox_transform_loc = schedule_multibox_detection = schedule_reorg = schedule_injective
schedule_binarize_pack = schedule_bitpack = schedule_binary_dense = schedule_bitserial_dense = schedule_injective
schedule_bitserial_conv2d_nchw = schedule_bitserial_conv2d_nhwc = schedule_injective
schedule_sparse_dense = schedule_sparse_transpose = schedule_sparse_conv2d = schedule_sparse_add = schedule_injective
schedule_sparse_reshape = schedule_sparse_fill_empty_rows = schedule_injective

# The formulas are the same on every target; these are names that programs know.
conv2d, conv2d_nchw, conv2d_nhwc, conv2d_NCHWc = conv.conv2d, conv.conv2d_nchw, conv.conv2d_nhwc, conv.conv2d_NCHWc
conv1d_ncw, conv3d_ncdhw, conv2d_transpose_nchw = conv.conv1d_ncw, conv.conv3d_ncdhw, conv.conv2d_transpose_nchw
depthwise_conv2d_nchw, depthwise_conv2d_nhwc = conv.depthwise_conv2d_nchw, conv.depthwise_conv2d_nhwc
depthwise_conv2d_NCHWc, group_conv2d_nchw = conv.depthwise_conv2d_NCHWc, conv.group_conv2d_nchw

entries(globals())
