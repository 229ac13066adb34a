"""A pass on functions as a pass on modules, in the form that programs written for TVM call: `Simplify()(mod)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir.func import IRModule, PrimFunc


@dataclass(frozen=True)
class PassInfo:
    """What a pass says about itself; kept for programs that ask."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModulePass:
    """Applies `step` to every function of a module; the module given stays as it is."""

    info: PassInfo
    step: Callable[[PrimFunc, IRModule], PrimFunc]

    def __call__(self, mod: IRModule) -> IRModule:
        if isinstance(mod, PrimFunc):
            raise ArgumentTypeError(f"{self.info.name} takes a module, not a function",
                                    hint="write tedsl.IRModule.from_expr(func)")
        if not isinstance(mod, IRModule):
            raise ArgumentTypeError(f"{self.info.name} takes a module, not {mod!r}", hint="mod = tedsl.lower(s, [A, B])")
        return IRModule({name: self.apply(func, mod) for name, func in mod.items()})

    def apply(self, func: PrimFunc, mod: IRModule) -> PrimFunc:
        made = self.step(func, mod)
        if not isinstance(made, PrimFunc):
            raise ArgumentTypeError(f"the pass {self.info.name} returned {made!r}",
                                    hint="a pass takes a function and returns one, the same if there is nothing to do")
        return made


def module_pass(name: str, step: Callable[[PrimFunc], PrimFunc]) -> ModulePass:
    """`step` as a pass on modules."""
    return ModulePass(PassInfo(0, f"tir.{name}"), lambda func, _: step(func))


def prim_func_pass(pass_func: Callable[..., Any] | None = None, opt_level: int = 2, name: str | None = None,
                   required: list[str] | None = None) -> Any:
    """Make a pass of `pass_func(func, mod, ctx)`, or of a class whose `transform_function` is one; also as a decorator."""
    from tedsl.passes.context import PassContext

    def make(given: Any) -> Any:
        info = PassInfo(opt_level, name or given.__name__, tuple(required or ()))
        if not isinstance(given, type):
            return ModulePass(info, lambda func, mod: given(func, mod, PassContext.current()))

        def of(*args: Any, **options: Any) -> ModulePass:
            instance: Any = given(*args, **options)
            return ModulePass(info, lambda func, mod: instance.transform_function(func, mod, PassContext.current()))

        return of

    return make if pass_func is None else make(pass_func)
