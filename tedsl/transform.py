"""Options and sequences of passes: `with transform.PassContext(config={"tir.noalias": False}): build(...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.errors import ArgumentTypeError, entries
from tedsl.ir.func import IRModule
from tedsl.passes.build_config import build_config
from tedsl.passes.context import PassContext, check_level, current_options
from tedsl.passes.info import PassInfo
from tedsl.passes.module_pass import ModulePass, module_pass

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
            if not isinstance(step, ModulePass) or selection.runs(step.info):
                mod = step(mod)
        return mod


def PrintIR(header: str = "", show_meta_data: bool = False) -> ModulePass:
    """Returns a pass that prints a module, below `header`, and returns it as it is. show_meta_data: accepted; there is none."""
    def show(mod: IRModule) -> IRModule:
        print(f"{header}\n{mod}" if header else mod)
        return mod

    return ModulePass(PassInfo(0, "PrintIR"), show)


entries(globals())
