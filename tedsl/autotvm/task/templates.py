"""Decorators that make templates of functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from tedsl.autotvm.operators import OPERATORS
from tedsl.autotvm.task.dispatcher import ApplyConfig, DispatchContext, Workload
from tedsl.autotvm.task.generic import for_targets, takes_implementations
from tedsl.autotvm.task.task import HALVES, TEMPLATES, args_to_workload
from tedsl.cache.place import warn_once
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError, type_in_words
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target

_WORKLOADS: WeakKeyDictionary[Operation, Workload] = WeakKeyDictionary()  # of results of register_topi_compute
_COMPUTES: dict[str, Callable[..., Any]] = {}
_SCHEDULES: dict[str, Callable[..., Any]] = {}


def get_config() -> Any:
    """The configuration of the template that is running: the space while its task is made, a point of it later."""
    return DispatchContext.current.query(Target.current(), None)


def _by_the_best_that_applies(workload: Workload, apply: Callable[[Any], Any]) -> Any:
    """What `apply` makes of the configuration of the context. A record for which it raises an error, as one of a template that
    has other knobs by now, is skipped with a warning; an error without a record is that of the template.
    """
    target = Target.current()
    while True:
        config = DispatchContext.current.query(target, workload)
        try:
            return apply(config)
        except Exception as error:  # the template's own, where it takes a part that the record does not have
            if not DispatchContext.current.dismiss(target, workload, config):
                raise
            said = str(error) if isinstance(error, TedslError) else f"{type(error).__name__}: {error}"
            warn_once(f"a record of {workload[0]} is skipped, since it does not apply: {said}")


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
            def apply(config: Any) -> Any:
                with ApplyConfig(config):
                    return function(*args)

            return _by_the_best_that_applies(args_to_workload(args, task_name), apply)

        call.__dict__["task_name"] = task_name
        TEMPLATES[task_name] = function
        return call

    return decorate if func is None else decorate(func)


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None, *as_in_06: Any) -> Any:
    """Decorator: a function `f(cfg, *args)` that returns a tensor is the first half of the template `task_name`.

    As in TVM 0.6, register_topi_compute(topi.nn.dense, ["cpu"], "direct") makes it that of topi_nn_dense, and the
    implementation of the operator for targets with one of the keys.
    """
    if takes_implementations(task_name):
        return for_targets(register_topi_compute, task_name, func, *as_in_06)
    _check_half("register_topi_compute", task_name, as_in_06)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _COMPUTES[task_name] = function
        _pair(task_name)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            workload = args_to_workload(args, task_name)
            result = _by_the_best_that_applies(workload, lambda config: function(config, *args))
            for tensor in result if isinstance(result, (list, tuple)) else [result]:
                _WORKLOADS[tensor.op] = workload
            return result

        return call

    return decorate if func is None else decorate(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None, *as_in_06: Any) -> Any:
    """Decorator: a function `f(cfg, outs)` that returns a schedule is the second half of the template `task_name`; as in TVM
    0.6 also that of a schedule of topi.generic for targets, see `register_topi_compute`.
    """
    if takes_implementations(task_name):
        return for_targets(register_topi_schedule, task_name, func, *as_in_06)
    _check_half("register_topi_schedule", task_name, as_in_06)

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


def _workload_of(outs: list[Tensor], task_name: str | None = None) -> Workload | None:
    made = (_WORKLOADS[op] for op in producers_first([out.op for out in outs]) if op in _WORKLOADS)
    return next((workload for workload in made if task_name in (None, workload[0])), None)


def get_workload(outs: Any, task_name: str | None = None) -> Workload | None:
    """The workload of the function of `register_topi_compute` that made one of `outs`, or a tensor that they are computed from;
    None if there is none. task_name: only of that task.
    """
    listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    if not all(isinstance(one, Tensor) for one in listed):
        raise ArgumentTypeError(f"get_workload takes tensors, not {outs!r}")
    return _workload_of(listed, task_name)


def _inputs_of(results: list[Tensor], given: list[Tensor]) -> list[Tensor]:
    """The tensors that a kernel reads: those `given`, unless the formula has made others of them, as of packed weights."""
    read = [op.output(0) for op in producers_first([out.op for out in results]) if isinstance(op, PlaceholderOp)]
    return given if {tensor.op for tensor in read} <= {tensor.op for tensor in given} else read


def _pair(task_name: str) -> None:
    """Makes a template of both halves, once they are there."""
    if task_name not in _COMPUTES or task_name not in _SCHEDULES:
        HALVES[task_name] = "register_topi_schedule" if task_name in _COMPUTES else "register_topi_compute"
        return
    HALVES.pop(task_name, None)

    def function(*args: Any) -> Any:
        config = get_config()
        result = _called(task_name, _COMPUTES[task_name], config, *args)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        if not results or not all(isinstance(one, Tensor) for one in results):
            raise ArgumentError(f"the first half of {task_name} returned {type_in_words(result)}, and not a tensor",
                                hint="end it with: return te.compute(...)")
        sch = _called(task_name, _SCHEDULES[task_name], config, results)
        if not isinstance(sch, Schedule):
            raise ArgumentError(f"the second half of {task_name} returned {type_in_words(sch)}, and not a schedule",
                                hint="end it with: return s")
        return sch, [*results, *_inputs_of(results, [arg for arg in args if isinstance(arg, Tensor)])]

    TEMPLATES[task_name] = function


def _called(task_name: str, function: Callable[..., Any], *args: Any) -> Any:
    """What a half of a template returns. Raises ArgumentTypeError if it does not take these arguments."""
    try:
        inspect.signature(function).bind(*args)
    except TypeError as error:
        raise ArgumentTypeError(f"{task_name}: {function.__name__} is called with the configuration and {len(args) - 1} "
                                f"arguments: {error}", hint=f"def {function.__name__}(cfg, ...)") from None
    return function(*args)


def _check_half(what: str, name: object, more: tuple[Any, ...]) -> None:
    """Refuses the arguments of TVM 0.6: the operator, keys of targets, keys of templates, a function."""
    if more or callable(name):
        operator_name = getattr(name, "__name__", "operator") if what.endswith("compute") else "operator"
        raise ArgumentTypeError(f"{what} takes the name of a task; TVM 0.6 registered functions for an operator and targets",
                                hint=f"@autotvm.{what}('{operator_name}.mychip') above the function, which the program calls")
    _check_name(what, name)


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{what}: the name of a task is a str, not {type_in_words(name)}")


def register_customized_task(name: str, func: Callable[..., Any] | None = None) -> Any:
    """Decorator: a function of the arguments that returns (schedule, arguments) is the template `name`, in place of one that
    was registered before, as for an operator; called by a program it is itself.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        TEMPLATES[name] = function
        return function

    _check_name("register_customized_task", name)
    return decorate if func is None else decorate(func)


# Those of topi's operators, in the form in which programs call them.
_OPERATOR_FUNCTIONS = {name: (register_topi_compute(name, compute), register_topi_schedule(name, schedule))
                       for name, (compute, schedule) in OPERATORS.items()}


def operator(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The formula and the schedule of the task `name` of an operator, each of which takes the configuration of the context:

        dense, schedule_dense = autotvm.operator("dense_nopack.x86")
        with autotvm.apply_history_best("dense.log"), tedsl.target.Target("llvm"):
            s = schedule_dense([dense(data, weight, None, "float32")])

    Raises ArgumentError if there is no operator of that name.
    """
    if not isinstance(name, str) or name not in _OPERATOR_FUNCTIONS:
        raise ArgumentError(f"operator: there is none called {name!r}", hint=f"there are {', '.join(_OPERATOR_FUNCTIONS)}")
    return _OPERATOR_FUNCTIONS[name]
