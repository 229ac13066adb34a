"""Passes on modules, in the form that programs written for TVM call: `Simplify()(mod)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.passes.context import PassContext, check_level, current_options
from tedsl.passes.info import PassInfo


class ModulePass:
    """A pass that returns a new module; the given one stays as it is."""

    def __init__(self, info: PassInfo, step: Callable[[IRModule], IRModule]) -> None:
        self.info = info
        self.step = step

    def __call__(self, mod: IRModule) -> IRModule:
        if isinstance(mod, PrimFunc):
            raise ArgumentTypeError(f"{self.info.name} takes a module, not a function",
                                    hint="write tedsl.IRModule.from_expr(func)")
        if not isinstance(mod, IRModule):
            raise ArgumentTypeError(f"{self.info.name} takes a module, not {type_in_words(mod)}",
                                    hint="mod = tedsl.lower(s, [A, B])")
        return current_options().selection.watched(self.info, mod, self.applied)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info.name!r}, opt_level={self.info.opt_level})"

    def applied(self, mod: IRModule) -> IRModule:
        """Returns the result of the pass for `mod`, without showing it to instruments."""
        result = self.step(mod)
        if not isinstance(result, IRModule):
            raise ArgumentTypeError(f"the pass {self.info.name} returned {result_in_words(result)}",
                                    hint="a pass takes a module and returns one, the same if there is nothing to do")
        return result


def on_function(step: ModulePass, func: PrimFunc) -> PrimFunc:
    """Returns `func` after a pass on modules, which gets a module of this function alone and must return one."""
    result = step.applied(IRModule.from_expr(func))
    if list(result) != [func.name]:
        raise ArgumentTypeError(f"the pass {step.info.name} was given the module of {func.name}, and returned one of "
                                f"{', '.join(result) or 'nothing'}",
                                hint="lowering goes function by function: add functions to a module before lower or build")
    return result[func.name]


def of_functions(info: PassInfo, step: Callable[[PrimFunc, IRModule], PrimFunc]) -> ModulePass:
    """Returns the pass that applies `step` to every function of a module."""
    def apply(func: PrimFunc, mod: IRModule) -> PrimFunc:
        result = step(func, mod)
        if not isinstance(result, PrimFunc):
            raise ArgumentTypeError(f"the pass {info.name} returned {result_in_words(result)}",
                                    hint="a pass takes a function and returns one, the same if there is nothing to do")
        return result

    return ModulePass(info, lambda mod: IRModule({name: apply(func, mod) for name, func in mod.items()}))


def named_pass(name: str, step: Callable[[PrimFunc], PrimFunc]) -> ModulePass:
    """Returns the internal pass `step` under the name that TVM's programs use."""
    return of_functions(PassInfo(0, f"tir.{name}"), lambda func, _: step(func))


def _on_a_copy(step: Callable[[IRModule], Any]) -> Callable[[IRModule], Any]:
    """Returns the pass `step` of a program on a copy of the module, which it may change; it gives the module itself where it
    does not.
    """
    def run(mod: IRModule) -> Any:
        given = IRModule(dict(mod.items()))
        result = step(given)
        unchanged = result is given and list(given) == list(mod) and all(given[name] is func for name, func in mod.items())
        return mod if unchanged else result

    return run


def prim_func_pass(pass_func: Callable[..., Any] | None = None, opt_level: int = 2, name: str | None = None,
                   required: list[str] | None = None) -> Any:
    """Returns a module pass made of `pass_func(func, mod, ctx)`, or of a class with a method `transform_function`. Also a
    decorator.
    """
    def make(info: PassInfo, run: Callable[..., Any]) -> ModulePass:
        return ModulePass(info, _on_a_copy(of_functions(info, lambda func, mod: run(func, mod, PassContext.current())).step))

    return _decorator(pass_func, make, "transform_function", ("func", "mod", "ctx"), opt_level, name, required)


def module_pass(pass_func: Callable[..., Any] | None = None, opt_level: int = 2, name: str | None = None,
                required: list[str] | None = None) -> Any:
    """Returns a module pass made of `pass_func(mod, ctx)`, or of a class with a method `transform_module`. Also a decorator."""
    def make(info: PassInfo, run: Callable[..., Any]) -> ModulePass:
        return ModulePass(info, _on_a_copy(lambda mod: run(mod, PassContext.current())))

    return _decorator(pass_func, make, "transform_module", ("mod", "ctx"), opt_level, name, required)


def _decorator(pass_func: Callable[..., Any] | None, make: Callable[[PassInfo, Callable[..., Any]], ModulePass], method: str,
               parameters: tuple[str, ...], opt_level: int, name: str | None, required: list[str] | None) -> Any:
    """Returns the pass that `make` creates from a function of `parameters`; for a class with such a method, a function that
    creates the pass from an instance.
    """
    level = check_level(opt_level)
    hint = f"def my_pass({', '.join(parameters)}): return {parameters[0]}"

    def of(given: Any) -> Any:
        if not callable(given):
            raise ArgumentTypeError(f"a pass is made of a function or of a class with a method {method}, not of "
                                    f"{type_in_words(given)}", hint=hint)
        info = PassInfo(level, name or str(getattr(given, "__name__", type(given).__name__)), tuple(required or ()))
        if isinstance(given, type):
            if not callable(getattr(given, method, None)):
                raise ArgumentTypeError(f"the class {given.__name__} of a pass has no method {method}",
                                        hint=f"def {method}(self, {', '.join(parameters)}): return {parameters[0]}")
            return lambda *args, **options: make(info, getattr(given(*args, **options), method))
        if not takes(given, len(parameters)):
            raise ArgumentTypeError(f"the pass {info.name} does not take {', '.join(parameters)}", hint=hint)
        return make(info, given)

    return of if pass_func is None else of(pass_func)


def result_in_words(result: object) -> str:
    """Returns the kind of what a pass returned, for messages: "None", "a For"."""
    return "None" if result is None else type_in_words(result)


def takes(function: Callable[..., Any], count: int) -> bool:
    """Tells whether a function can be called with `count` arguments; True where it does not say which it takes."""
    try:
        called = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        called.bind(*[None] * count)
    except TypeError:
        return False
    return True
