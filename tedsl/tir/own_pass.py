"""Passes of tedsl's own: what is known to be safe before one of them is so after it."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.ir.func import PrimFunc
from tedsl.lower.written.function import vouch_as_for
from tedsl.passes.module_pass import ModulePass, named_pass


def own_pass(name: str, step: Callable[[PrimFunc], PrimFunc]) -> ModulePass:
    """Returns the pass `step` by its name in tir.transform."""
    return named_pass(name, lambda func: vouch_as_for(func, step(func)))
