"""What `lower` and `build` take, as functions: a schedule with its arguments, a function, a module, or a list of those."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.func import REFUSED, IRModule, PrimFunc, refuse_marked
from tedsl.ir.script import shown
from tedsl.ir.source_line import user_level
from tedsl.ir.wellformed import check_name
from tedsl.lower.arguments import dropped_outputs
from tedsl.lower.lower import check_function, lower_schedule
from tedsl.lower.request import FunctionOptions
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target


def functions_of(inp: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None,
                 options: FunctionOptions) -> dict[str, PrimFunc]:
    """The functions that `inp` (a schedule, a function, a module, or a list) stands for, by name. name: what a schedule is
    called.
    """
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"the name of a function is a str that is not empty, not {name!r}")
    check_name(name, "a function")
    if isinstance(inp, Schedule):
        return {name: _of_schedule(inp, args, name, binds, options)}
    _ignore_args(inp, args)
    if isinstance(inp, (list, tuple)):
        return _functions_of_all(inp, name, options)
    if isinstance(inp, PrimFunc):
        return {str(inp.attrs.get("global_symbol", name)): _checked(inp, options)}
    if isinstance(inp, IRModule):
        for key in inp:
            check_name(key, "a function")
        return {key: _checked(func, options) for key, func in inp.items()}
    raise ArgumentTypeError(f"a Schedule, a PrimFunc or an IRModule is needed, not {type(inp).__name__}",
                            hint="s = te.create_schedule(C.op); build(s, [A, B, C])")


def _checked(func: PrimFunc, options: FunctionOptions) -> PrimFunc:
    """`func`, safe to run; one that is to be read only is refused where it is to run, and else left as it is."""
    if options.to_run:
        refuse_marked(func)
    return func if REFUSED in func.attrs else check_function(func, accesses=options.accesses)


def _of_schedule(sch: Schedule, args: Any, name: str, binds: Mapping[Any, Any] | None, options: FunctionOptions) -> PrimFunc:
    if args is None:
        raise ArgumentTypeError("a schedule is lowered with its arguments", hint="write lower(s, [A, B]) or build(s, [A, B])")
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise ArgumentTypeError(f"args is a list of tensors, variables and buffers, not {shown(args)}", hint="write [A, B]")
    func = lower_schedule(sch, list(args), name, binds, to_run=options.to_run, accesses=options.accesses,
                          buffers=options.buffers)
    if options.to_run:
        for output in dropped_outputs(sch.state, args, binds):
            warnings.warn(f"build: {output} is computed and dropped: it is an output of the schedule and not an argument; "
                          f"add it to the arguments, build(s, [..., {output}])", UserWarning, stacklevel=user_level())
    return func


def _functions_of_all(given: Sequence[Any], name: str, options: FunctionOptions) -> dict[str, PrimFunc]:
    """The functions of several modules, each with a name of its own."""
    functions: dict[str, PrimFunc] = {}
    for part in given:
        if not isinstance(part, (PrimFunc, IRModule)):
            raise ArgumentTypeError(f"a list of functions holds IRModules and PrimFuncs, not {type_in_words(part)}",
                                    hint='lower a schedule first: build([lower(s, [A, B], name="f"), ...])')
        more = functions_of(part, None, name, None, options)
        twice = sorted(more.keys() & functions.keys())
        if twice:
            raise ArgumentError(f"two functions of the list are called {shown(twice[0])}",
                                hint='give each a name: lower(s, [A, B], name="f")')
        functions |= more
    return functions


def _ignore_args(inp: object, args: object) -> None:
    """Warns that `args` given beside functions are ignored, since functions have parameters; refuses a target in their
    place.
    """
    if args is None:
        return
    what = "the functions of a list have" if isinstance(inp, (list, tuple)) else f"{type_in_words(inp)} has"
    if isinstance(args, Target) or (isinstance(args, str) and args.strip() != ""):
        raise ArgumentTypeError(f"args belong to a schedule; {what} arguments already",
                                hint=f'a target is named: build(..., target="{args}")')
    warnings.warn(f"args are ignored: {what} arguments already", UserWarning, stacklevel=user_level())


def lowers_in_silence(sch: object, args: Any, binds: Mapping[Any, Any] | None) -> bool:
    """Tells whether a build of `sch` gives no warnings: one that does is lowered every time, so that it does so every time."""
    return isinstance(sch, Schedule) and not dropped_outputs(sch.state, args, binds)
