"""Options and sequences of passes: `with transform.PassContext(config={"tir.noalias": False}): build(...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.errors import ArgumentTypeError, entries
from tedsl.ir.func import IRModule
from tedsl.passes.build_config import build_config
from tedsl.passes.context import PassContext, check_level, current_options
from tedsl.passes.info import PassInfo
from tedsl.passes.module_pass import ModulePass, module_pass, result_in_words, takes

__all__ = ["ModulePass", "PassContext", "PassInfo", "PrintIR", "Sequential", "build_config", "module_pass"]


class Sequential(ModulePass):
    """Passes on modules, one after the other, as one pass: those that the current PassContext enables."""

    def __init__(self, passes: Sequence[Callable[[IRModule], IRModule]], opt_level: int = 2, name: str = "sequential",
                 required: Sequence[str] | None = None) -> None:
        if not isinstance(passes, (list, tuple)) or not all(map(callable, passes)):
            raise ArgumentTypeError(f"Sequential takes a list of passes on modules, not {passes!r}",
                                    hint="for example Sequential([tir.transform.Simplify(), tir.transform.UnrollLoop()])")
        super().__init__(PassInfo(check_level(opt_level), name, tuple(required or ())), self._one_by_one)
        self.passes = list(passes)

    def _one_by_one(self, mod: IRModule) -> IRModule:
        selection = current_options().selection
        for step in self.passes:
            if not isinstance(step, ModulePass):
                mod = _of_function(step, mod)
            elif selection.enables(step.info):
                mod = step(mod)
        return mod


def _of_function(step: Callable[[IRModule], IRModule], mod: IRModule) -> IRModule:
    """Returns the module that a function of a Sequential makes of one."""
    name = str(getattr(step, "__name__", type(step).__name__))
    if not takes(step, 1):
        raise ArgumentTypeError(f"Sequential: {name} does not take a module",
                                hint=f"a pass is what a call gives: {name}(), or a function of a module")
    result: object = step(mod)
    if isinstance(result, IRModule):
        return result
    hint = f"a pass is what a call gives: {name}()" if isinstance(result, ModulePass) else "return the module"
    raise ArgumentTypeError(f"Sequential: {name} returned {result_in_words(result)}, not a module", hint=hint)


def PrintIR(header: str = "", show_meta_data: bool = False) -> ModulePass:
    """Returns a pass that prints a module, below `header`, and returns it as it is. show_meta_data: accepted; there is none."""
    def show(mod: IRModule) -> IRModule:
        print(f"{header}\n{mod}" if header else mod)
        return mod

    return ModulePass(PassInfo(0, "PrintIR"), show)


entries(globals())
