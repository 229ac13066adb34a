"""Decorators that make templates of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from tedsl.autotvm.task.dispatcher import ApplyConfig, DispatchContext, Workload
from tedsl.autotvm.task.task import TEMPLATES, args_to_workload
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor
from tedsl.target.target import Target

_WORKLOADS: WeakKeyDictionary[Operation, Workload] = WeakKeyDictionary()  # of results of register_topi_compute
_COMPUTES: dict[str, Callable[..., Any]] = {}
_SCHEDULES: dict[str, Callable[..., Any]] = {}


def get_config() -> Any:
    """The configuration of the template that is running: the space while its task is made, a point of it later."""
    return DispatchContext.current.query(Target.current(), None)


def template(task_name: Any, func: Callable[..., Any] | None = None) -> Any:
    """Decorator: makes a function that returns (schedule, arguments) a template under the name `task_name`.

    Called like a function, the template gets the configuration of the context: of apply_history_best, or a default one.
    """
    if callable(task_name):
        return template(f"{task_name.__module__}.{task_name.__qualname__}", task_name)
    if not isinstance(task_name, str):
        raise ArgumentTypeError(f"template: the name of a task is a str, not {type_in_words(task_name)}")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            if named:
                raise ArgumentTypeError(f"{task_name}: arguments are given by place, not by name: {', '.join(named)}",
                                        hint="a record has the arguments in their order")
            config = DispatchContext.current.query(Target.current(), args_to_workload(args, task_name))
            with ApplyConfig(config):
                return function(*args)

        call.__dict__["task_name"] = task_name
        TEMPLATES[task_name] = function
        return call

    return decorate if func is None else decorate(func)


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Decorator: a function `f(cfg, *args)` that returns a tensor is the first half of the template `task_name`."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _COMPUTES[task_name] = function
        _pair(task_name)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            workload = args_to_workload(args, task_name)
            result = function(DispatchContext.current.query(Target.current(), workload), *args)
            for tensor in result if isinstance(result, (list, tuple)) else [result]:
                _WORKLOADS[tensor.op] = workload
            return result

        return call

    return decorate if func is None else decorate(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Decorator: a function `f(cfg, outs)` that returns a schedule is the second half of the template `task_name`."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _SCHEDULES[task_name] = function
        _pair(task_name)

        @functools.wraps(function)
        def call(outs: Any, *more: Any) -> Any:
            listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
            workload = _workload_of(listed)
            if workload is None:
                raise ArgumentError(f"{task_name}: no function of register_topi_compute({task_name!r}) made what is scheduled")
            return function(DispatchContext.current.query(Target.current(), workload), listed, *more)

        return call

    return decorate if func is None else decorate(func)


def _workload_of(outs: list[Tensor]) -> Workload | None:
    return next((_WORKLOADS[op] for op in producers_first([out.op for out in outs]) if op in _WORKLOADS), None)


def _pair(task_name: str) -> None:
    """Makes a template of both halves, once they are there."""
    if task_name not in _COMPUTES or task_name not in _SCHEDULES:
        return

    def function(*args: Any) -> Any:
        config = get_config()
        result = _COMPUTES[task_name](config, *args)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        sch = _SCHEDULES[task_name](config, results)
        return sch, [*results, *[arg for arg in args if isinstance(arg, Tensor)]]

    TEMPLATES[task_name] = function
