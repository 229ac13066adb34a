"""Schedules for ARM processors by the names of TVM's topi.arm_cpu: those of topi.x86, which read the target.

The target is that of the `with Target(...)` block, for example "llvm -mtriple=aarch64-linux-gnu", or this machine.
"""

from __future__ import annotations

from tedsl.errors import entries
from topi import by_target, nn
from topi.x86 import schedule_injective as schedule_injective
from topi.x86 import schedule_injective_from_existing as schedule_injective_from_existing
from topi.x86 import schedule_pool as schedule_pool

schedule_concatenate = schedule_reduce = schedule_softmax = schedule_dense = schedule_batch_matmul = schedule_injective
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_conv2d_nchw = schedule_conv2d_nhwc = schedule_injective
schedule_conv2d_nchw_spatial_pack = schedule_conv2d_nhwc_spatial_pack = schedule_conv2d_nchw_winograd = schedule_injective
schedule_conv2d_NCHWc = schedule_conv2d_NCHWc_int8 = schedule_conv2d_nchw_int8 = schedule_injective
schedule_conv2d_transpose_nchw = schedule_group_conv2d_nchw = schedule_depthwise_conv2d_NCHWc = schedule_injective
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_nhwc = schedule_injective
schedule_depthwise_conv2d_nchw_spatial_pack = schedule_injective
schedule_bitserial_conv2d_nchw = schedule_bitserial_conv2d_nhwc = schedule_bitserial_dense = schedule_injective

# The formulas are the same on every target; these are names that programs know.
conv2d_nchw, conv2d_nchw_winograd = by_target.conv2d_nchw, by_target.conv2d_nchw_winograd
conv2d_NCHWc, conv2d_NCHWc_int8, conv2d_nhwc = by_target.conv2d_NCHWc, by_target.conv2d_NCHWc_int8, by_target.conv2d_nhwc
depthwise_conv2d_nchw, depthwise_conv2d_NCHWc = by_target.depthwise_conv2d_nchw, by_target.depthwise_conv2d_NCHWc
depthwise_conv2d_nhwc, group_conv2d_nchw = by_target.depthwise_conv2d_nhwc, by_target.group_conv2d_nchw
conv2d_nchw_spatial_pack, conv2d_nhwc_spatial_pack = conv2d_nchw, conv2d_nhwc
compute_depthwise_conv2d_nhwc = depthwise_conv2d_nhwc
depthwise_conv2d_nchw_spatial_pack = depthwise_conv2d_nchw
bitserial_conv2d_nchw, bitserial_conv2d_nhwc = nn.bitserial_conv2d_nchw, nn.bitserial_conv2d_nhwc
bitserial_dense, conv1d_ncw, conv1d_nwc = nn.bitserial_dense, nn.conv1d_ncw, nn.conv1d_nwc
conv2d_transpose_nchw = nn.conv2d_transpose_nchw

_PARTS = "topi.arm_cpu.conv2d_nchw_spatial_pack and the like: their schedules are for the processor"

entries(globals(), instead=dict.fromkeys([f"{schedule}{name}" for schedule in ("", "schedule_") for name in (
    "conv2d_direct_simd", "conv1d_nwc_direct_simd", "conv2d_nchw_winograd_nnpack", "conv2d_NHWC_quantized_native",
    "conv2d_NHWC_quantized_interleaved")], _PARTS))
