"""What is measured, and what comes out."""

from __future__ import annotations

from typing import Any, NamedTuple

from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.target.target import Target


class MeasureInput(NamedTuple):
    """A configuration of a task for a target."""

    target: Target
    task: Task
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """costs: seconds per call, one for each repetition; after a failure its message. error_no: of MeasureErrorNo. all_cost:
    seconds that measuring took. timestamp: when it ended, in seconds since 1970.
    """

    costs: tuple[Any, ...]
    error_no: int
    all_cost: float
    timestamp: float


class MeasureErrorNo:
    """The kinds of failures, numbered as in TVM."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8
