"""Schedules and other functions by the keys of a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tedsl
from tedsl import nd, te
from tedsl.target import Target
from topi import cuda, generic, nn, x86

Schedule = Callable[[Any], te.Schedule]


def dispatch(target: Any, dispatch_map: Mapping[str, Any]) -> Any:
    """The entry of `dispatch_map` for the first key of `target` ("cpu", "cuda", "gpu", ...) that it has, else "generic"."""
    asked = target if isinstance(target, Target) else Target(target)
    for key in asked.keys:
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def get_injective_schedule(target: Any) -> Schedule:
    """The schedule function for element-wise operators on `target`; it takes the results and returns a schedule."""
    schedule: Schedule = dispatch(target, {"generic": generic.schedule_injective, "cpu": x86.schedule_injective,
                                       "gpu": cuda.schedule_injective})
    return schedule


def get_reduce_schedule(target: Any) -> Schedule:
    """The schedule function for reductions on `target`; it takes the results and returns a schedule."""
    schedule: Schedule = dispatch(target, {"generic": generic.schedule_reduce, "cpu": x86.schedule_reduce,
                                       "gpu": cuda.schedule_reduce})
    return schedule


def compare_numpy_tvm(inputs: Sequence[Any], output: Any, target: Any, device: Any, compute: Callable[..., te.Tensor],
                      schedule: Schedule) -> None:
    """Raises AssertionError unless the operator `compute` of arrays `inputs`, built for `target` by `schedule`, gives `output`.

    As in TVM: within 1e-4 of its largest value.
    """
    tensors = [te.placeholder(one.shape, str(one.dtype)) for one in inputs]
    with Target(target):
        result = compute(*tensors)
        function = tedsl.build(schedule([result]), [*tensors, result], target)
    arrays = [nd.array(one, device) for one in (*inputs, np.zeros(output.shape, str(result.dtype)))]
    function(*arrays)
    np.testing.assert_allclose(arrays[-1].numpy(), output, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(output).max())))


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., te.Tensor], Schedule]:
    """conv2d_nchw, and the schedule function for it on `target`."""
    return nn.conv2d_nchw, dispatch(target, {"generic": generic.schedule_conv2d_nchw, "cpu": x86.schedule_conv2d_nchw,
                                             "gpu": cuda.schedule_conv2d_nchw})


get_broadcast_schedule = get_elemwise_schedule = get_injective_schedule
