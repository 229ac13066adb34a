"""Schedules and other functions by the keys of a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tedsl import te
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


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., te.Tensor], Schedule]:
    """conv2d_nchw, and the schedule function for it on `target`."""
    return nn.conv2d_nchw, dispatch(target, {"generic": generic.schedule_conv2d_nchw, "cpu": x86.schedule_conv2d_nchw,
                                             "gpu": cuda.schedule_conv2d_nchw})


get_broadcast_schedule = get_elemwise_schedule = get_injective_schedule
