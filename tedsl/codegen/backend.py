"""Backends: a protocol and a table, nothing at import."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from tedsl.errors import TedslError
from tedsl.ir.func import PrimFunc
from tedsl.passes.config import PassConfig
from tedsl.runtime.module import Module
from tedsl.target.target import Target


class Backend(Protocol):
    """Turns lowered functions into a module. Stateless: all choices are in `target` and `config`."""

    def compile(self, funcs: Sequence[PrimFunc], target: Target, config: PassConfig, *, quick: bool = False) -> Module:
        """A module of `funcs`, which `lower` has turned into flat loops. quick: compiled soon rather than run fast."""
        ...


BACKENDS = {  # kind of target -> "module:class"; the module is imported on first use only
    "llvm": "tedsl.codegen.llvm.backend:LLVMBackend",
}


def backend_for(target: Target) -> Backend:
    """The backend for a target; TedslError if there is none for its kind."""
    kind = target.kind.name
    if kind not in BACKENDS:
        raise TedslError(f"there is no backend for the target kind {kind!r} yet",
                         hint=f"build for {', '.join(sorted(BACKENDS))}")
    module, _, name = BACKENDS[kind].partition(":")
    return getattr(import_module(module), name)()  # type: ignore[no-any-return]
