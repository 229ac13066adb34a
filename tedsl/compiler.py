"""Schedules become loops, loops become modules: what sees all layers below `driver.py`, which loads it when there is work."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.codegen.backend import backend_for
from tedsl.codegen.device import compiled_for_device, host_of
from tedsl.codegen.recall import remember
from tedsl.errors import ArgumentError, LoweringError
from tedsl.findings import noted
from tedsl.ir import build as build_expr
from tedsl.ir.calls.registered import has_rules, lower_registered
from tedsl.ir.expr import Expr
from tedsl.ir.func import REFUSED, Accesses, IRModule, PrimFunc, marked
from tedsl.ir.source_line import user_level
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.explained.report import Report
from tedsl.lower.explained.report import report as report_of
from tedsl.lower.inputs import functions_of, lowers_in_silence
from tedsl.lower.lower import check_function
from tedsl.lower.request import FunctionOptions
from tedsl.lower.written.function import disown, is_vouched_for_with, vouch_as_for, vouch_for
from tedsl.passes.config import PassConfig
from tedsl.passes.context import current_options
from tedsl.passes.default import lowering_pipeline, memory_pipeline, reading_pipeline
from tedsl.passes.device.join_kernels import is_kernel, join_kernels
from tedsl.passes.lower_datatypes import lower_datatypes
from tedsl.passes.machine.raise_builtins import raise_builtins
from tedsl.passes.pipeline import Pipeline
from tedsl.runtime.module import Module
from tedsl.schedule.causes import blame
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target


def lowered(inp: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None, options: FunctionOptions,
            config: PassConfig, simple_mode: bool) -> IRModule:
    """The loops of a schedule, or of functions, to be read; what `build` refuses is a warning where there are loops to show."""
    with noted(not config.strict) as findings:
        functions = functions_of(_raised(inp), args, name, binds, options)
    functions = _to_read(functions, inp, findings)
    pipeline = reading_pipeline(config, simple_mode, options.accesses, races=not findings)
    with noted(not config.strict) as found_later:
        loops = {key: _after(pipeline, func, options.accesses) for key, func in functions.items()}
    loops = _to_read(loops, inp, found_later)
    for words in dict.fromkeys(map(str, [*findings, *found_later])):
        warnings.warn(f"lower: build refuses these loops: {words}\n  {_STRICT}", UserWarning, stacklevel=user_level())
    return IRModule(loops)


_STRICT = "with tedsl.transform.PassContext(config={'tedsl.strict': True}): lower(...) refuses them too"


def _to_read(functions: Mapping[str, PrimFunc], inp: object, findings: Sequence[LoweringError]) -> dict[str, PrimFunc]:
    """`functions`, marked with `findings`, if there are any: `build` refuses them. The findings get the directives
    of the schedule `inp` that are behind them.
    """
    if not findings:
        return dict(functions)
    if isinstance(inp, Schedule):
        for finding in findings:
            blame(inp.state, finding)
    return {key: marked(disown(func), findings) for key, func in functions.items()}


def compiled(inputs: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None, options: FunctionOptions,
             config: PassConfig, machine: Target, key: str | None, host: Target | None = None) -> Module:
    """The module of machine code of a schedule, or of functions; under `key` the cache finds it again.

    host: the target of the part of the processor, if `machine` is a device.
    """
    functions = functions_of(_whole(inputs), args, name, binds, options)
    if not functions:
        raise ArgumentError("build: the module has no functions")
    module = _module(functions, options, config, machine, host)
    if key is not None and lowers_in_silence(inputs, args, binds):
        remember(key, module)
    return module


def _raised(given: Any) -> Any:
    """`given`, functions, modules or a list of them, with calls that LowerTVMBuiltin has lowered as calls again."""
    if isinstance(given, PrimFunc):
        return vouch_as_for(given, raise_builtins(given))
    if isinstance(given, (list, tuple)):
        return [_raised(one) for one in given]
    if not isinstance(given, IRModule):
        return given
    functions = {name: _raised(func) for name, func in given.items()}
    return given if all(functions[name] is func for name, func in given.items()) else IRModule(functions)


def _whole(given: Any) -> Any:
    """`given`, where it is a module or a list of modules with kernels in functions of their own, as a module without those."""
    inputs = _raised(given)
    modules = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    if not modules or not all(isinstance(module, IRModule) for module in modules):
        return inputs
    functions = {name: func for module in modules for name, func in module.items()}
    if len(functions) < sum(map(len, modules)) or not any(map(is_kernel, functions.values())):
        return inputs
    joined = join_kernels(functions)
    for name, func in joined.items():
        if is_vouched_for_with(functions[name], functions):
            vouch_for(func)
    return IRModule(joined)


def compiled_in_parts(sch: Schedule, args: Sequence[Any], name: str, options: FunctionOptions, config: PassConfig,
                      machine: Target, divide: Callable[[PrimFunc], Sequence[PrimFunc]]) -> Module:
    """The module of the functions into which `divide` takes the loops of a schedule apart, before any pass."""
    (func,) = functions_of(sch, args, name, None, options).values()
    return _module({part.name: vouch_for(part) for part in divide(func)}, options, config, machine, None)


def _module(functions: Mapping[str, PrimFunc], options: FunctionOptions, config: PassConfig, machine: Target,
            host: Target | None) -> Module:
    """The module of functions as they are before the passes."""
    if has_rules():
        kinds = (machine.kind.name, *machine.keys)
        functions = {name: _by_rules(func, kinds) for name, func in functions.items()}
    pipeline = lowering_pipeline(config, accesses=options.accesses, early_tails=not machine.kind.device_backend)
    loops = {name: _after(pipeline, func, options.accesses) for name, func in functions.items()}
    funcs = [func if func.name == name else func.with_attr("global_symbol", name) for name, func in loops.items()]
    if machine.kind.device_backend:
        return compiled_for_device(funcs, machine, host_of(machine, host), config)
    return backend_for(machine).compile(funcs, machine, config, quick=config.selection.opt_level == 0)


def _by_rules(func: PrimFunc, kinds: Sequence[str]) -> PrimFunc:
    """`func` after the rules of programs for operators and types: values are computed otherwise, and no access changes."""
    return vouch_as_for(func, lower_datatypes(lower_registered(func, kinds), kinds))


def _after(pipeline: Pipeline, func: PrimFunc, accesses: Accesses) -> PrimFunc:
    """`func` after the passes of `pipeline`; it is checked again if passes of the user's changed it."""
    made = pipeline(func)
    if REFUSED in func.attrs:
        return made
    if not current_options().add_lower_pass:
        return vouch_for(made)
    return check_function(made, accesses=Accesses.PROVED if accesses is Accesses.DATA_AT_RUN_TIME else accesses)


def report(sch: Schedule) -> Report:
    """What lowering knows about a schedule: what `s.explain()` prints."""
    return report_of(sch, _allocated)


def _allocated(func: PrimFunc) -> dict[str, Expr]:
    """The number of elements of each buffer that `func` allocates, by name; buffers whose name is not unique are left out."""
    sizes: dict[str, list[Expr]] = {}
    for node in post_order(memory_pipeline()(func).body):
        if isinstance(node, Allocate):
            sizes.setdefault(node.buffer_var.name, []).append(functools.reduce(build_expr.mul, node.extents))
    return {name: known[0] for name, known in sizes.items() if len(known) == 1}
