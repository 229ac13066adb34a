"""lower and build: the only file that sees all layers. Schedules become loops, loops become modules."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from tedsl.codegen.backend import backend_for
from tedsl.codegen.recall import recall, remember
from tedsl.errors import ArgumentError, ArgumentTypeError, entry
from tedsl.ir import build as build_expr
from tedsl.ir.expr import Expr
from tedsl.ir.func import Accesses, IRModule, PrimFunc
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.arguments import BufferOptions
from tedsl.lower.explained.report import Report
from tedsl.lower.explained.report import report as report_of
from tedsl.lower.inputs import FunctionOptions, functions_of
from tedsl.lower.lower import check_function
from tedsl.lower.schedule_key import lowers_in_silence, schedule_key
from tedsl.lower.written.function import vouch_for
from tedsl.passes.config import PassConfig
from tedsl.passes.context import PassContext
from tedsl.passes.default import lowering_pipeline, memory_pipeline, reading_pipeline
from tedsl.passes.pipeline import Pipeline
from tedsl.runtime.faults import provide_faults
from tedsl.runtime.interrupts import whole_destructors
from tedsl.runtime.module import Module
from tedsl.schedule.causes import blaming
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from tedsl.target.target import Target

_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")  # what TEDSL_CHECKED may say


@entry
def lower(inp: Schedule | PrimFunc | IRModule, args: Sequence[Any] | None = None, name: str = "main",
          binds: Mapping[Any, Any] | None = None, simple_mode: bool = False) -> IRModule:
    """The loops of a schedule (or of functions) as a module; print it to read them.

    args: the tensors, variables and buffers that a call passes, in order. simple_mode: without loop partitioning, shorter
    to read. Options come from the current PassContext.

    Raises ArgumentTypeError for what is not a schedule or a function; LoweringError for a schedule that cannot become loops.
    """
    with _blaming(inp):
        config = PassContext.current().options
        accesses = _accesses(config)
        functions = functions_of(inp, args, name, binds, FunctionOptions(False, accesses, _buffers(config)))
        pipeline = reading_pipeline(config, simple_mode, accesses)
        return IRModule({key: _after(pipeline, func, accesses) for key, func in functions.items()})


@entry
def build(inputs: Schedule | PrimFunc | IRModule | Sequence[PrimFunc | IRModule] | Mapping[Any, Any],
          args: Sequence[Any] | None = None, target: Any = None, target_host: Any = None, name: str = "default_function",
          binds: Mapping[Any, Any] | None = None, *, checked: bool | None = None) -> Module:
    """A module of machine code for `target` (None: the current target, else this machine).

    `inputs` is a schedule with `args`, a function, a module of functions, or a list of those; or a dict from one target to its
    module.
    checked: every access of memory is checked while the module runs, slowly; AccessError says what is wrong, in which stage,
    at which iteration. Parallel and vectorized loops run serially then. None: if the environment says TEDSL_CHECKED=1, or
    the PassContext tir.instrument_bound_checkers. Other options come from the current PassContext.
    """
    config = PassContext.current().options
    accesses = _accesses(config, _whether_checked(checked))
    if isinstance(inputs, Mapping):
        target, inputs = _single_target(inputs)
    machine = as_target(target)
    if target_host is not None:
        as_target(target_host)  # code for the host is code for the CPU: only whether it is a target matters
    quick = config.selection.opt_level == 0
    with _blaming(inputs), whole_destructors():
        options = FunctionOptions(True, accesses, _buffers(config))
        seen = schedule_key(inputs, args, name, binds, options, config, machine)
        known = recall(seen, machine, config, quick)
        if known is not None:
            return known
        functions = functions_of(inputs, args, name, binds, options)
        pipeline = lowering_pipeline(config, accesses=accesses)
        lowered = {key: _after(pipeline, func, accesses) for key, func in functions.items()}
        if not lowered:
            raise ArgumentError("build: the module has no functions")
        funcs = [func if func.name == key else func.with_attr("global_symbol", key) for key, func in lowered.items()]
        module = backend_for(machine).compile(funcs, machine, config, quick=quick)
        if seen is not None and lowers_in_silence(inputs, args, binds):
            remember(seen, module)
        return module


def _blaming(inp: object) -> AbstractContextManager[None]:
    """Context manager that adds, to errors raised inside, the directive of the schedule that caused them."""
    return blaming(inp.state) if isinstance(inp, Schedule) else nullcontext()


def _after(pipeline: Pipeline, func: PrimFunc, accesses: Accesses) -> PrimFunc:
    """`func` after the passes of `pipeline`; it is checked again if passes of the user's changed it."""
    lowered = pipeline(func)
    if not PassContext.current().options.add_lower_pass:
        return vouch_for(lowered)
    return check_function(lowered, accesses=Accesses.PROVED if accesses is Accesses.DATA_AT_RUN_TIME else accesses)


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


def schedule_to_module(sch: Schedule, args: Sequence[Any] | None = None, name: str = "main",
                       binds: Mapping[Any, Any] | None = None) -> IRModule:
    """A module with the loops of a schedule over multi-dimensional buffers, before any pass."""
    with _blaming(sch):
        return IRModule(functions_of(sch, args, name, binds, FunctionOptions(False)))


def _accesses(config: PassConfig, checked: bool | None = None) -> Accesses:
    """How accesses are kept inside their memory; `checked`, unless None, takes precedence over the option."""
    if checked is not None:
        config = replace(config, instrument_bound_checkers=checked)
    accesses = config.accesses
    if accesses.name_stages:
        provide_faults()
    return accesses


def _buffers(config: PassConfig) -> BufferOptions:
    return BufferOptions(config.offset_factor, config.data_alignment)


def _whether_checked(given: object) -> bool | None:
    """The argument `checked` of build, or the setting of the environment if it is None; None if neither is given."""
    if given is not None:
        if given not in (True, False):
            raise ArgumentTypeError(f"build: checked is True, False or None, not {given!r}")
        return bool(given)
    said = os.environ.get("TEDSL_CHECKED", "").strip().lower()
    if said not in (*_YES, *_NO):
        raise ArgumentError(f"the environment variable TEDSL_CHECKED is {said!r}", hint="set it to 1 or 0, or unset it")
    return True if said in _YES else None


def _single_target(inputs: Mapping[Any, Any]) -> tuple[Target, Any]:
    """The target and the module of `inputs`, which maps one to the other."""
    if len(inputs) != 1:
        raise ArgumentError(f"build: {len(inputs)} targets in one module; there is one device here, the CPU",
                            hint='build({"llvm": module})')
    target, module = next(iter(inputs.items()))
    return as_target(target), module


build_module = sys.modules[__name__]  # the place of these functions in programs written for TVM
