"""Halves of templates for an operator of topi and keys of targets, as TVM 0.6 registers them.

    @autotvm.register_topi_compute(topi.nn.dense, ["cpu"], "direct")
    def dense_of_a_program(cfg, data, weight, bias=None, out_dtype=None): ...

    @autotvm.register_topi_schedule(topi.generic.schedule_dense, ["cpu"], "direct")
    def schedule_of_a_program(cfg, outs): ...

Inside `with` a target that has the key, topi.nn.dense and topi.generic.schedule_dense are these, with the configuration of the
context; the template of both is called topi_nn_dense.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tedsl.target.generic import GenericFunc

Half = Callable[..., Any]
# Tasks that are not called as the operator.
_TASKS = {"conv2d_nchw": "topi_nn_conv2d", "conv2d_nhwc": "topi_nn_conv2d", "conv2d_hwcn": "topi_nn_conv2d",
          "conv2d_NCHWc": "topi_x86_conv2d_NCHWc", "depthwise_conv2d_NCHWc": "topi_x86_depthwise_conv2d_NCHWc_from_nchw"}
_HALVES: dict[tuple[str, str], GenericFunc] = {}  # by the decorator and the task


def takes_implementations(given: object) -> bool:
    """Whether `given` is an operator or a schedule of topi for which a program may register its own."""
    return callable(given) and hasattr(given, "register")


def for_targets(register: Half, operator: Any, target_keys: Any, template_keys: Any = "direct", func: Half | None = None,
                override: bool = False) -> Any:
    """Decorator: registers half of the template of `operator` by `register`, and as the operator for targets with the keys.

    template_keys: accepted; here a template has one form. override: accepted; the last half for a key counts.
    """
    name = operator.__name__.removeprefix("schedule_")
    task = _TASKS.get(name, f"topi_nn_{name}")

    def decorate(function: Half) -> Half:
        half = _HALVES.setdefault((register.__name__, task), GenericFunc(task))
        half.register(function, target_keys, allow_override=True)
        call, signature = register(task, half), inspect.signature(function)

        @functools.wraps(function)
        def chosen(*args: Any, **named: Any) -> Any:
            return call(*signature.bind(None, *args, **named).args[1:])  # without the configuration

        operator.register(chosen, target_keys, allow_override=True)
        return function

    return decorate if func is None else decorate(func)
