"""The backend of LLVM: modules from the cache on disk, for which no compiler is loaded, else compiled ones."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.llvm.cached import keep, program_of, recalled
from tedsl.codegen.llvm.debug.watchers import Watchers
from tedsl.codegen.llvm.linking.images import Sources
from tedsl.ir.func import PrimFunc
from tedsl.passes.config import PassConfig
from tedsl.runtime.module import Module
from tedsl.target.target import Target


class LLVMBackend:
    """The backend of targets of kind `llvm`."""

    def compile(self, funcs: Sequence[PrimFunc], target: Target, config: PassConfig, *, quick: bool = False) -> Module:
        from tedsl.codegen.llvm.compiled import compiled

        program = program_of(funcs, target, config, quick)
        known = None if program is None else self.recall(program.key, target, config, quick=quick)
        if known is not None:
            return known
        module, image = compiled(funcs, target, config, quick, "" if program is None else program.key)
        if program is not None and image is not None:
            keep(program, image)
        return module

    def recall(self, code_key: str, target: Target, config: PassConfig, *, quick: bool = False) -> Module | None:
        """Returns the module whose code the cache on disk has under `code_key`, from a build with these options; or None."""
        def sources(funcs: Sequence[PrimFunc]) -> Sources:
            from tedsl.codegen.llvm import compiled

            return compiled.sources(funcs, target, config, quick)

        return recalled(code_key, target, sources, Watchers(config.perf_map, config.gdb))
