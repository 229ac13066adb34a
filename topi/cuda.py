"""Schedules for graphics processors by the names of TVM's topi.cuda: loops bound to blocks and threads.

Each takes the results (a tensor or a list) and returns a Schedule. Built for "llvm" the threads run on the processor.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.target import Target
from topi.schedules.schedule import as_target, schedule_with
from topi.schedules.table import GPU


def schedule_injective(outs: Any) -> te.Schedule:
    """The schedule of `outs` in blocks of threads."""
    target = as_target(None)
    return schedule_with(outs, GPU, target if "gpu" in target.keys else Target("cuda"))


schedule_elemwise = schedule_broadcast = schedule_concatenate = schedule_extern = schedule_reduce = schedule_injective
schedule_softmax = schedule_fast_softmax = schedule_layer_norm = schedule_dense = schedule_batch_matmul = schedule_injective
