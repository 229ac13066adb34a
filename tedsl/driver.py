"""lower and build: the only file that sees all layers. Schedules become loops, loops become modules."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tedsl.codegen.backend import backend_for
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build as build_expr
from tedsl.ir.expr import Expr
from tedsl.ir.func import Accesses, IRModule, PrimFunc
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.visitor import post_order
from tedsl.ir.wellformed import check_name
from tedsl.lower.lower import check_function, lower_schedule
from tedsl.lower.report import Report
from tedsl.lower.report import report as report_of
from tedsl.lower.written.function import vouch_for
from tedsl.passes.context import PassContext
from tedsl.passes.default import lowering_pipeline, memory_pipeline, reading_pipeline
from tedsl.passes.pipeline import Pipeline
from tedsl.runtime.faults import provide_faults
from tedsl.runtime.module import Module
from tedsl.schedule.causes import blaming
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from tedsl.target.target import Target

_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")  # what TEDSL_CHECKED may say


def lower(inp: Schedule | PrimFunc | IRModule, args: Sequence[Any] | None = None, name: str = "main",
          binds: Mapping[Any, Any] | None = None, simple_mode: bool = False) -> IRModule:
    """The loops of a schedule (or of functions) as a module; print it to read them.

    args: the tensors, variables and buffers that a call passes, in order. simple_mode: without loop partitioning, shorter
    to read. Options come from the current PassContext.
    """
    with _blaming(inp):
        functions = _functions(inp, args, name, binds, to_run=False)
        pipeline = reading_pipeline(PassContext.current().options, simple_mode)
        return IRModule({key: _after(pipeline, func) for key, func in functions.items()})


def build(inputs: Schedule | PrimFunc | IRModule | Sequence[PrimFunc | IRModule] | Mapping[Any, Any],
          args: Sequence[Any] | None = None, target: Any = None, target_host: Any = None, name: str = "default_function",
          binds: Mapping[Any, Any] | None = None, *, checked: bool | None = None) -> Module:
    """A module of machine code for `target` (None: the current target, else this machine).

    `inputs` is a schedule with `args`, a function, a module of functions, or a list of those; or a dict from one target to its
    module.
    checked: every access of memory is checked while the module runs, slowly; AccessError says what is wrong, in which stage,
    at which iteration. Parallel and vectorized loops run serially then. None: if the environment says TEDSL_CHECKED=1.
    """
    accesses = Accesses.AT_RUN_TIME if _whether_checked(checked) else Accesses.PROVED
    if isinstance(inputs, Mapping):
        target, inputs = _single_target(inputs)
    made = as_target(target)
    if target_host is not None:
        as_target(target_host)  # code for the host is code for the CPU: only whether it is a target matters
    if accesses is Accesses.AT_RUN_TIME:
        provide_faults()
    with _blaming(inputs):
        functions = _functions(inputs, args, name, binds, to_run=True, accesses=accesses)
        options = PassContext.current().options
        pipeline = lowering_pipeline(options, accesses=accesses)
        lowered = {key: _after(pipeline, func, accesses) for key, func in functions.items()}
        if not lowered:
            raise ArgumentError("build: the module has no functions")
        funcs = [func if func.name == key else func.with_attr("global_symbol", key) for key, func in lowered.items()]
        return backend_for(made).compile(funcs, made, options)


def _blaming(inp: object) -> AbstractContextManager[None]:
    """Errors from inside name the directive of the schedule that they come from."""
    return blaming(inp.state) if isinstance(inp, Schedule) else nullcontext()


def _after(pipeline: Pipeline, func: PrimFunc, accesses: Accesses = Accesses.PROVED) -> PrimFunc:
    """`func` after the passes; what passes of the user's made of it is checked again."""
    lowered = pipeline(func)
    by_user = PassContext.current().options.add_lower_pass
    return check_function(lowered, accesses=accesses) if by_user else vouch_for(lowered)


def report(sch: Schedule) -> Report:
    """What lowering knows about a schedule: what `s.explain()` prints."""
    return report_of(sch, _allocated)


def _allocated(func: PrimFunc) -> dict[str, Expr]:
    """The number of elements of each buffer that `func` allocates, of those whose name says which one it is."""
    found: dict[str, list[Expr]] = {}
    for node in post_order(memory_pipeline()(func).body):
        if isinstance(node, Allocate):
            found.setdefault(node.buffer_var.name, []).append(functools.reduce(build_expr.mul, node.extents))
    return {name: sizes[0] for name, sizes in found.items() if len(sizes) == 1}


def schedule_to_module(sch: Schedule, args: Sequence[Any] | None = None, name: str = "main",
                       binds: Mapping[Any, Any] | None = None) -> IRModule:
    """The loops of a schedule over multi-dimensional buffers, before any pass."""
    with _blaming(sch):
        return IRModule(_functions(sch, args, name, binds, to_run=False))


def _functions(inp: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None, *,
               to_run: bool, accesses: Accesses = Accesses.PROVED) -> dict[str, PrimFunc]:
    """The functions that `inp` stands for, by name."""
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"the name of a function is a str that is not empty, not {name!r}")
    check_name(name, "a function")
    if isinstance(inp, (list, tuple)):
        return _functions_of_all(inp, args, name, to_run=to_run, accesses=accesses)
    if isinstance(inp, Schedule):
        if args is None:
            raise ArgumentTypeError("a schedule is lowered with its arguments",
                                    hint="write lower(s, [A, B]) or build(s, [A, B])")
        if isinstance(args, str) or not isinstance(args, Sequence):
            raise ArgumentTypeError(f"args is a list of tensors, variables and buffers, not {args!r}", hint="write [A, B]")
        return {name: lower_schedule(inp, list(args), name, binds, to_run=to_run, accesses=accesses)}
    _without_args(inp, args)
    if isinstance(inp, PrimFunc):
        return {str(inp.attrs.get("global_symbol", name)): check_function(inp, accesses=accesses)}
    if isinstance(inp, IRModule):
        for key in inp:
            check_name(key, "a function")
        return {key: check_function(func, accesses=accesses) for key, func in inp.items()}
    raise ArgumentTypeError(f"a Schedule, a PrimFunc or an IRModule is needed, not {type(inp).__name__}",
                            hint="s = te.create_schedule(C.op); build(s, [A, B, C])")


def _functions_of_all(given: Sequence[Any], args: Any, name: str, *, to_run: bool, accesses: Accesses) -> dict[str, PrimFunc]:
    """The functions of several modules, each with a name of its own."""
    _without_args(given, args)
    found: dict[str, PrimFunc] = {}
    for one in given:
        if not isinstance(one, (PrimFunc, IRModule)):
            raise ArgumentTypeError(f"a list of functions holds IRModules and PrimFuncs, not a {type(one).__name__}",
                                    hint='lower a schedule first: build([lower(s, [A, B], name="f"), ...])')
        functions = _functions(one, None, name, None, to_run=to_run, accesses=accesses)
        twice = sorted(functions.keys() & found.keys())
        if twice:
            raise ArgumentError(f"two functions of the list are called {twice[0]!r}",
                                hint='give each a name: lower(s, [A, B], name="f")')
        found |= functions
    return found


def _without_args(inp: object, args: object) -> None:
    """Refuse arguments beside what has its own."""
    if args is None:
        return
    what = "the functions of a list have their own" if isinstance(inp, (list, tuple)) else f"a {type(inp).__name__} has its own"
    is_target = isinstance(args, Target) or (isinstance(args, str) and args.strip() != "")
    raise ArgumentTypeError(f"args belong to a schedule; {what}",
                            hint=f'a target is named: build(..., target="{args}")' if is_target else "leave args out")


def _whether_checked(given: object) -> bool:
    """The argument `checked` of build, or what the environment says where it is None."""
    if given is not None:
        if given not in (True, False):
            raise ArgumentTypeError(f"build: checked is True, False or None, not {given!r}")
        return bool(given)
    said = os.environ.get("TEDSL_CHECKED", "").strip().lower()
    if said not in (*_YES, *_NO):
        raise ArgumentError(f"the environment variable TEDSL_CHECKED is {said!r}", hint="set it to 1 or 0, or unset it")
    return said in _YES


def _single_target(inputs: Mapping[Any, Any]) -> tuple[Target, Any]:
    if len(inputs) != 1:
        raise ArgumentError(f"build: {len(inputs)} targets in one module; there is one device here, the CPU",
                            hint='build({"llvm": module})')
    target, module = next(iter(inputs.items()))
    return as_target(target), module


build_module = sys.modules[__name__]  # the place of these functions in programs written for TVM
