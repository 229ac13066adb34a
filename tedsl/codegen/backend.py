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


DEVICES = ("cuda", "rocm", "opencl", "vulkan", "metal", "nvptx", "hexagon")


def backend_for(target: Target) -> Backend:
    """The backend for a target; TedslError if there is none for its kind."""
    kind = target.kind.name
    if kind not in BACKENDS:
        if target.kind.name in DEVICES:
            raise TedslError(f"there is no code generator for the device {kind!r} yet: `lower` shows its loops, and what is "
                             "missing is the code of its kernels and their launch",
                             hint='to run and check such a schedule, build it with target="llvm": there the threads of its '
                                  "kernels are loops of the CPU")
        raise TedslError(f"there is no backend for the target kind {kind!r} yet",
                         hint=f"build for {', '.join(sorted(BACKENDS))}")
    module, _, name = BACKENDS[kind].partition(":")
    return getattr(import_module(module), name)()  # type: ignore[no-any-return]
