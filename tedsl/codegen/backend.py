"""The protocol of backends, and the look-up of the backend that a target's kind names (`target/kinds.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from tedsl.errors import TedslError
from tedsl.ir.func import PrimFunc
from tedsl.passes.config import PassConfig
from tedsl.runtime.module import Module
from tedsl.target.kinds import names_that_build
from tedsl.target.target import Target


class Backend(Protocol):
    """The protocol of a backend: compiles lowered functions into a module.

    Stateless: all choices are in `target` and `config`.
    """

    def compile(self, funcs: Sequence[PrimFunc], target: Target, config: PassConfig, *, quick: bool = False) -> Module:
        """Compiles `funcs`, in the flat form that `lower` produces, into a Module.

        quick: prefer a short compile time to fast code.
        """
        ...


def backend_for(target: Target) -> Backend:
    """Returns the backend that the kind of `target` names; TedslError if the kind names none, or if it cannot be imported."""
    kind = target.kind
    if not kind.backend:
        if "cpu" not in kind.keys:
            raise TedslError(f"there is no code generator for the device {kind.name!r} yet: `lower` shows its loops, and what "
                             "is missing is the code of its kernels and their launch",
                             hint='to run and check such a schedule, build it with target="llvm": there the threads of its '
                                  "kernels are loops of the CPU")
        raise TedslError(f"there is no backend for the target kind {kind.name!r} yet",
                         hint=f"build for {', '.join(names_that_build())}")
    module, _, name = kind.backend.partition(":")
    try:
        backend: Backend = getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise TedslError(f"the backend {kind.backend} of the target kind {kind.name!r} cannot be imported: {error}",
                         hint="is the package that registered it installed?") from error
    return backend
