"""lower and build, as programs call them. What the cache on disk has is neither lowered nor compiled, nor is a compiler loaded
for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tedsl.absent import answer_in
from tedsl.aliases import import_as
from tedsl.codegen.recall import recall
from tedsl.errors import ArgumentError, ArgumentTypeError, entry
from tedsl.garbage import no_collection
from tedsl.ir.calls.registered import has_rules
from tedsl.ir.func import Accesses, IRModule, PrimFunc
from tedsl.lower.request import BufferOptions, FunctionOptions, schedule_key
from tedsl.passes.config import PassConfig
from tedsl.passes.context import current_options
from tedsl.runtime.interrupts import whole_destructors
from tedsl.runtime.module import Module
from tedsl.schedule.causes import blaming
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from tedsl.target.target import Target

if TYPE_CHECKING:
    from tedsl.lower.explained.report import Report

_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")  # what TEDSL_CHECKED may say


@entry
def lower(inp: Schedule | PrimFunc | IRModule, args: Sequence[Any] | None = None, name: str = "main",
          binds: Mapping[Any, Any] | None = None, simple_mode: bool = False) -> IRModule:
    """The loops of a schedule (or of functions) as a module; print it to read them.

    args: the tensors, variables and buffers that a call passes, in order. simple_mode: without loop partitioning, shorter
    to read. Options come from the current PassContext.

    A schedule half-way may have loops that cannot run yet, for example memory of threads before their loops are bound: a
    warning says why `build` refuses them, and the module, which it refuses as well, shows them. Inside of
    `PassContext(config={"tedsl.strict": True})` that is a LoweringError.
    Raises ArgumentTypeError for what is not a schedule or a function; LoweringError for a schedule that cannot become loops.
    """
    from tedsl.compiler import lowered

    with _blaming(inp), no_collection():
        config = current_options()
        options = FunctionOptions(False, _accesses(config), _buffers(config))
        return lowered(inp, args, name, binds, options, config, simple_mode)


@entry
def build(inputs: Schedule | PrimFunc | IRModule | Sequence[PrimFunc | IRModule] | Mapping[Any, Any],
          args: Sequence[Any] | None = None, target: Any = None, target_host: Any = None, name: str = "default_function",
          binds: Mapping[Any, Any] | None = None, *, checked: bool | None = None) -> Module:
    """A module of machine code for `target` (None: the current target, else this machine).

    `inputs` is a schedule with `args`, a function, a module of functions, or a list of those; or a dict from one target to its
    module. A target in the place of `args` of functions, which have arguments already, is the target.
    target_host: of the part that the processor runs, where `target` is a device such as "cuda"; by default this machine.
    checked: every access of memory is checked while the module runs, slowly; AccessError says what is wrong, in which stage,
    at which iteration. Parallel and vectorized loops run serially then. None: if the environment says TEDSL_CHECKED=1, or
    the PassContext tir.instrument_bound_checkers. Other options come from the current PassContext.
    """
    config = current_options()
    accesses = _accesses(config, _whether_checked(checked))
    if not isinstance(inputs, Schedule) and target is None and isinstance(args, (str, Target)) and str(args).strip():
        args, target = None, args  # functions have arguments already: build(mod, "llvm")
    if not isinstance(inputs, Schedule) and isinstance(inputs, Mapping):
        target, inputs = _single_target(inputs)
    machine = as_target(target)
    host = None if target_host is None else as_target(target_host)
    if accesses is Accesses.AT_RUN_TIME and machine.kind.device_backend:
        raise ArgumentError(f"build: checked=True, and the kernels of {machine.kind.name} cannot raise errors",
                            hint='build it with target="llvm": there the threads are loops, and every access is checked')
    with _blaming(inputs), whole_destructors(), no_collection():
        options = FunctionOptions(True, accesses, _buffers(config))
        seen = None if has_rules() else schedule_key(inputs, args, name, binds, options, config, machine)
        known = recall(seen, machine, config, config.selection.opt_level == 0)
        if known is not None:
            return known
        from tedsl.compiler import compiled

        return compiled(inputs, args, name, binds, options, config, machine, seen, host)


def build_in_parts(sch: Schedule, args: Sequence[Any], target: Target, name: str,
                   divide: Callable[[PrimFunc], Sequence[PrimFunc]]) -> Module:
    """A module of the functions into which `divide` takes the loops of a schedule apart; the first is its entry."""
    from tedsl.compiler import compiled_in_parts

    config = current_options()
    options = FunctionOptions(True, _accesses(config, _whether_checked(None)), _buffers(config))
    with _blaming(sch), whole_destructors(), no_collection():
        return compiled_in_parts(sch, args, name, options, config, target, divide)


def _blaming(inp: object) -> AbstractContextManager[None]:
    """Context manager that adds, to errors raised inside, the directive of the schedule that caused them."""
    return blaming(inp.state) if isinstance(inp, Schedule) else nullcontext()


def report(sch: Schedule) -> Report:
    """What lowering knows about a schedule: what `s.explain()` prints."""
    from tedsl import compiler

    return compiler.report(sch)


def schedule_to_module(sch: Schedule, args: Sequence[Any] | None = None, name: str = "main",
                       binds: Mapping[Any, Any] | None = None) -> IRModule:
    """A module with the loops of a schedule over multi-dimensional buffers, before any pass."""
    from tedsl.lower.inputs import functions_of

    with _blaming(sch):
        return IRModule(functions_of(sch, args, name, binds, FunctionOptions(False)))


def form_irmodule(sch: Schedule, args: Sequence[Any] | None = None, name: str = "main",
                  binds: Mapping[Any, Any] | None = None) -> IRModule:
    """`schedule_to_module` by the name of TVM 0.7."""
    return schedule_to_module(sch, args, name, binds)


def _accesses(config: PassConfig, checked: bool | None = None) -> Accesses:
    """How accesses are kept inside their memory; `checked`, unless None, takes precedence over the option."""
    if checked is not None:
        config = replace(config, instrument_bound_checkers=checked)
    accesses = config.accesses
    if accesses.name_stages:
        from tedsl.runtime.faults import provide_faults

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
        raise ArgumentError(f"build: {len(inputs)} targets in one module; a module runs on one kind of device",
                            hint='build({"llvm": module}), and a module for each of them')
    target, module = next(iter(inputs.items()))
    return as_target(target), module


import_as(globals(), "build_module")
answer_in(globals())
