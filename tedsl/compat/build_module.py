"""tvm.build_module of TVM 0.6, whose `lower` gave a function, and `codegen.build_module`, which made a module of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl import driver, transform
from tedsl.compat import ir_pass
from tedsl.compat.lowered_func import LoweredFunc, as_lowered
from tedsl.driver import build
from tedsl.errors import entries
from tedsl.ir.buffer import Buffer
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import Stmt
from tedsl.lang.intrinsics import tensor_intrin
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin
from tedsl.lang.tensor import Tensor
from tedsl.lower.regions.bound_map import infer_bound, schedule_ops
from tedsl.passes.context import PassContext
from tedsl.passes.module_pass import ModulePass
from tedsl.runtime.module import Module
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target

__all__ = ["BuildConfig", "build", "build_config", "build_module", "current_build_config", "decl_tensor_intrin", "form_body",
           "lower"]


def lower(sch: Schedule | PrimFunc | IRModule, args: Sequence[Any] | None = None, name: str = "default_function",
          binds: Mapping[Any, Any] | None = None, simple_mode: bool = False) -> LoweredFunc:
    """The loops of a schedule as a function, which stands for its body where passes of ir_pass take a statement."""
    (function,) = [func for _, func in driver.lower(sch, args, name, binds, simple_mode).items()]
    return as_lowered(function)


def form_body(sch: Schedule) -> Stmt:
    """The statement of a schedule before passes have seen it: loops over accesses of tensors."""
    ready = sch.normalize()
    return ir_pass.InjectPrefetch(schedule_ops(ready, infer_bound(ready)))


def build_config(**options: Any) -> PassContext:
    """Options of passes, as transform.build_config; passes of add_lower_pass get statements and return statements."""
    passes = options.get("add_lower_pass")
    if passes:
        options["add_lower_pass"] = [(phase, _over_functions(step)) for phase, step in passes]
    return transform.build_config(**options)


BuildConfig = build_config


def _over_functions(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns the pass over functions that a pass over statements is; one of tir.transform as it is."""
    if isinstance(step, ModulePass):
        return step

    @functools.wraps(step)
    def of_function(func: PrimFunc) -> object:
        made: object = step(func.body)
        return func.with_body(made) if isinstance(made, Stmt) else made  # what is no function is refused by its type

    return of_function


def decl_tensor_intrin(op: Any, fcompute: Callable[..., Any], name: str = "tensor_intrin",
                       binds: Mapping[Tensor, Buffer] | None = None) -> TensorIntrin:
    """te.decl_tensor_intrin; buffers that `binds` does not name have offset_factor and data_alignment of build_config."""
    config = PassContext.current().config
    said = {option: config[key] for option in ("offset_factor", "data_alignment")
            if (key := f"tir.{option}") in config}
    return tensor_intrin.decl_tensor_intrin(op, fcompute, name, binds, default_buffer_params=said)


def current_build_config() -> PassContext:
    """The options that hold now."""
    return PassContext.current()


def build_module(lowered_func: PrimFunc | Sequence[PrimFunc], target: Target | str) -> Module:
    """A module of machine code for functions: that of the host, and those of the device that it calls."""
    return build([lowered_func] if isinstance(lowered_func, PrimFunc) else list(lowered_func), target=target)


entries(globals())
