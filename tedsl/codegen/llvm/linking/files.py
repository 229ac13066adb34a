"""Images from files become modules."""

from __future__ import annotations

from tedsl.codegen.llvm.debug.watchers import Watchers
from tedsl.codegen.llvm.linking.images import Sources, linked_module
from tedsl.codegen.llvm.machine import assembly, optimize
from tedsl.errors import InternalError, LoweringError, ModuleError
from tedsl.passes.context import current_options
from tedsl.runtime.module import Module
from tedsl.runtime.modules.image import Image
from tedsl.runtime.modules.linkable import linkable
from tedsl.runtime.symbols import extern_address
from tedsl.target.target import Target


def loaded_module(image: Image, where: str) -> Module:
    """Returns the module of an image from the file `where`. ModuleError if it needs what this process does not have."""
    absent = [name for name in image.process if not extern_address(name)]
    if absent:
        raise ModuleError(f"{where} cannot be linked here: it calls {', '.join(absent)}, which no library of this process has",
                          hint="load the library first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    target = Target(image.target)
    sources = Sources({
        "ll": lambda: image.source, "tir": lambda: image.loops,
        "asm": lambda: assembly(optimize(image.source, target, vectorize=image.vectorize, unroll=image.unroll), target)})
    try:
        config = current_options()
        return linked_module(linkable(image), sources, target, lambda: image, Watchers(config.perf_map, config.gdb))
    except (InternalError, LoweringError) as error:
        raise ModuleError(f"{where} cannot be linked here: {error}",
                          hint="load it with the version of tedsl that wrote it") from error
