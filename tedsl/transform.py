"""Options and sequences of passes: `with transform.PassContext(config={"tir.noalias": False}): build(...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.ir.func import IRModule
from tedsl.passes.context import PassContext

__all__ = ["PassContext", "Sequential"]


class Sequential:
    """Passes on modules, one after the other, as one pass."""

    def __init__(self, passes: Sequence[Callable[[IRModule], IRModule]], opt_level: int = 2, name: str = "sequential",
                 required: Sequence[str] | None = None) -> None:
        self.passes = list(passes)
        self.opt_level, self.name, self.required = opt_level, name, list(required or ())

    def __call__(self, mod: IRModule) -> IRModule:
        for step in self.passes:
            mod = step(mod)
        return mod
