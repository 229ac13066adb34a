"""Templates of topi's operators under the names of the tasks of TVM v0.8, with its knobs.

For processors `dense.py` has products of matrices, `convolution.py` convolutions; `cuda.py` has both for devices. Each is two
functions: of a configuration and tensors to a result, and of the configuration and results to a schedule.
`operators/__init__.py` is the table.

    tedsl.tune("dense_nopack.x86", args=(("TENSOR", (64, 512), "float32"), ("TENSOR", (256, 512), "float32"), None, "float32"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.autotvm.operators import cuda
from tedsl.autotvm.operators.convolution import (
    conv2d_NCHWc,
    depthwise_conv2d_NCHWc,
    schedule_conv2d_NCHWc,
    schedule_depthwise_conv2d_NCHWc,
)
from tedsl.autotvm.operators.dense import (
    batch_matmul,
    dense_nopack,
    dense_pack,
    schedule_batch_matmul,
    schedule_dense_nopack,
    schedule_dense_pack,
)

# The name of a task -> the formula and the schedule.
OPERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "dense_nopack.x86": (dense_nopack, schedule_dense_nopack),
    "dense_pack.x86": (dense_pack, schedule_dense_pack),
    "batch_matmul.x86": (batch_matmul, schedule_batch_matmul),
    "conv2d_NCHWc.x86": (conv2d_NCHWc, schedule_conv2d_NCHWc),
    "depthwise_conv2d_NCHWc.x86": (depthwise_conv2d_NCHWc, schedule_depthwise_conv2d_NCHWc),
    "conv2d_nchw.cuda": (cuda.conv2d_nchw, cuda.schedule_conv2d_nchw),
    "depthwise_conv2d_nchw.cuda": (cuda.depthwise_conv2d_nchw, cuda.schedule_depthwise_conv2d_nchw),
    "dense_small_batch.gpu": (cuda.dense_small_batch, cuda.schedule_dense_small_batch),
    "dense_large_batch.gpu": (cuda.dense_large_batch, cuda.schedule_dense_large_batch),
    "batch_matmul.cuda": (cuda.batch_matmul, cuda.schedule_batch_matmul),
}
