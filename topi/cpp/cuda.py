"""The operators and schedules of topi.cuda that TVM has in C++."""

from typing import Any

from tedsl import te
from topi import cuda, generic, nn
from topi.cpp.for_target import for_target

schedule_dense = for_target(cuda.schedule_dense, "cuda.schedule_dense")
schedule_injective = for_target(cuda.schedule_injective, "cuda.schedule_injective")
schedule_pool = for_target(cuda.schedule_pool, "cuda.schedule_pool")
schedule_global_pool = for_target(cuda.schedule_injective, "cuda.schedule_global_pool")
schedule_reduce = for_target(cuda.schedule_reduce, "cuda.schedule_reduce")
schedule_softmax = for_target(cuda.schedule_softmax, "cuda.schedule_softmax")
schedule_injective_from_existing = generic.schedule_injective_from_existing


def dense_cuda(target: Any, data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None,
               out_dtype: Any = None) -> te.Tensor:
    """topi.nn.dense; the target makes no difference to the formula."""
    return nn.dense(data, weight, bias, out_dtype)
