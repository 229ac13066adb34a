"""Lowered functions become a module: passes for the machine, LLVM IR, machine code, linking."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tedsl.codegen.calls.check import check_calls
from tedsl.codegen.calls.graph import CallGraph
from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.kernels.fitting import check_fitting
from tedsl.codegen.kernels.kernel import Kernel, make_kernel, with_calls
from tedsl.codegen.llvm import entry
from tedsl.codegen.llvm.cached import with_texts
from tedsl.codegen.llvm.debug.lines import LoopsFile, PrintedLoops, print_loops, write_loops
from tedsl.codegen.llvm.debug.listing import listing
from tedsl.codegen.llvm.debug.watchers import Watchers
from tedsl.codegen.llvm.effort import needs_vectorizer
from tedsl.codegen.llvm.emit import emit_module
from tedsl.codegen.llvm.linking.images import Sources, linked_module
from tedsl.codegen.llvm.machine import assembly, object_code, optimize, target_machine
from tedsl.codegen.llvm.outside.imports import Imports, imports_of, process_functions
from tedsl.codegen.llvm.outside.ir_code import link_into, linked_text
from tedsl.codegen.llvm.short_loops import has_short_loops
from tedsl.errors import ArgumentError, InternalError
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.text import text as loops_text
from tedsl.passes.config import PassConfig
from tedsl.record import record
from tedsl.runtime.arguments.array_entry import shared_of
from tedsl.runtime.layout import array_layout
from tedsl.runtime.module import Module, refused
from tedsl.runtime.modules.image import Image, KernelRecord
from tedsl.runtime.modules.linkable import linkable
from tedsl.target.current import host_target
from tedsl.target.target import Target


@record
class Written:
    """A module on the way to machine code: its kernels, and their LLVM IR with what it imports.

    emit: writes the IR, with line tables of printed loops in a file if they are given. loops: the file of those that the
    source has. vectorize, unroll: the passes of LLVM with which it is optimised.
    """

    kernels: tuple[Kernel, ...]
    source: str
    emit: Callable[[tuple[PrintedLoops, Path]], str]
    imports: Imports
    target: Target
    vectorize: bool
    unroll: bool
    loops: LoopsFile | None

    def optimized(self, text: str) -> Any:
        """Returns the module of LLVM that its passes make of `text`, with the imported code."""
        link = functools.partial(link_into, texts=self.imports.texts, target=self.target) if self.imports.texts else None
        return optimize(text, self.target, vectorize=self.vectorize, unroll=self.unroll, link=link)

    @property
    def sources(self) -> Sources:
        """The functions that return the text of each format, and the loops."""
        source, texts = self.source, self.imports.texts
        return Sources({"ll": lambda: linked_text(source, texts, self.target) if texts else source,
                        "asm": self.listing,
                        "tir": lambda: loops_text(IRModule({k.general.name: k.general for k in self.kernels}))}, self.versions)

    def versions(self) -> list[PrimFunc]:
        """Returns the functions after all passes, each in its versions."""
        return [func for kernel in self.kernels for func in kernel.versions()]

    def listing(self) -> str:
        """Returns the assembly with the printed loops between the instructions."""
        loops = print_loops(self.versions())
        optimized = self.optimized(self.emit((loops, Path("loops"))))
        return listing(assembly(optimized, self.target), loops.text, self.target.architecture)


def compiled(funcs: Sequence[PrimFunc], target: Target, config: PassConfig, quick: bool, key: str) \
        -> tuple[Module, Image | None]:
    """Returns the module of `funcs`, with the image that it is linked from; one that refuses calls if `target` is not here.

    key: of the module in the cache on disk.
    """
    written = _written(funcs, target, config, quick)
    if not target.runs_here:
        target_machine(target)  # an unknown machine is refused now, not when its assembly is asked for
        return _refusing(written, lambda: with_texts(_image(written, quick), written.sources)), None
    image = _image(written, quick, named=config.perf_map or config.gdb)
    watchers = Watchers(config.perf_map, config.gdb, written.loops)
    sources = written.sources
    return linked_module(linkable(image), sources, target, lambda: with_texts(image, sources), watchers, key), image


def sources(funcs: Sequence[PrimFunc], target: Target, config: PassConfig, quick: bool) -> Sources:
    """Returns what the module of `funcs` is compiled from, as texts and as loops."""
    return _written(funcs, target, config, quick).sources


def _written(funcs: Sequence[PrimFunc], target: Target, config: PassConfig, quick: bool) -> Written:
    """Returns lowered functions fitted to the machine, as LLVM IR; raises errors about what cannot be compiled."""
    _check_names([func.name for func in funcs])
    for func in funcs:
        check_fitting(func)
    graph = CallGraph({func.name: func for func in funcs})
    check_calls(graph)
    calls, kernels = with_calls(graph, [make_kernel(func, target, config) for func in funcs])
    versions = [func for kernel in kernels for func in kernel.versions()]
    imports = imports_of(versions, target)
    loops = print_loops(versions) if config.line_tables or config.gdb else None
    emit = functools.partial(emit_module, versions, target, imports.functions, calls)
    file = None if loops is None else write_loops(loops.text, funcs[0].name)
    source = emit(None if loops is None or file is None else (loops, file.path))
    vectorize = not quick and any(map(needs_vectorizer, versions))
    unroll = not quick and any(has_short_loops(version, target.vector_bits) for version in versions)
    return Written(tuple(kernels), source, emit, imports, target, vectorize, unroll, file)


def _check_names(names: Sequence[str]) -> None:
    """Refuses function names that cannot be symbols of an object file or that clash with symbols of the module itself."""
    for name in names:
        if "\0" in name:
            raise ArgumentError(f"the name of a function cannot contain a NUL character: {name!r}")
        if name.startswith("llvm."):
            raise ArgumentError(f"a function cannot be named {name!r}: names that begin with llvm. are LLVM's own")
        if name + COMPACT in names:
            raise ArgumentError(f"one module cannot hold {name!r} and {name + COMPACT!r}: so the version of {name!r} for "
                                "compact arrays is called", hint="rename one of them")


def _refusing(written: Written, image: Callable[[], Image]) -> Module:
    target = written.target
    why = f"this machine lacks {', '.join(target.missing_here)}"
    if target.platform != host_target().platform:
        why = f"this machine lacks {target.platform}: it is {host_target().platform}"
    reason = f"it was compiled for {target}, and {why}"
    functions = {k.general.name: refused(k.general.name, reason) for k in written.kernels}
    return Module(functions, {}, written.sources.texts, target, reason, image, loops=written.versions)


def _image(written: Written, quick: bool, named: bool = False) -> Image:
    """Returns the compiled kernels with their entry points, without texts. named: somebody looks for kernels by symbols."""
    kernels, target = written.kernels, written.target
    layout = None if quick else array_layout()  # without: calls are checked in Python, and nothing is compiled for them
    entries = [] if layout is None else [
        entry.entry_source(k.signature, k.symbol(k.general), k.symbol(k.compact) if k.compact else None, layout,
                           release=k.runs_long) for k in kernels if shared_of(k.signature, k.runs_long) is None]
    whole = None if quick or named or entries else _in_one(written)
    if whole is None:
        calls = [entry.call_source(f.name, k.symbol(f), _pointers(k)) for k in kernels for f in k.versions()]
        declarations = entry.declarations(written.source) if entries else ""
        whole = "\n".join([written.source, declarations, entry.disjoint_source(entries), *calls, *entries])
    code = object_code(written.optimized(whole), target, effort=0 if quick else 3, imported=bool(written.imports))
    return Image(str(target), target.triple, target.cpu, tuple(sorted(target.features)), tuple(map(_record, kernels)), code,
                 None if layout is None else layout.offsets, written.imports.objects, process_functions(written.imports, code),
                 vectorize=written.vectorize, unroll=written.unroll)


def _in_one(written: Written) -> str | None:
    """Returns the LLVM IR of a single kernel that is compiled as one function with its call; None if that is not to be."""
    if len(written.kernels) != 1 or written.kernels[0].compact is not None or written.vectorize or written.imports:
        return None
    (kernel,) = written.kernels
    return entry.with_call(written.source, kernel.general.name, kernel.symbol(kernel.general), _pointers(kernel))


def _pointers(kernel: Kernel) -> int:
    return len(list(kernel.signature.tensors()))


def _record(kernel: Kernel) -> KernelRecord:
    general = kernel.symbol(kernel.general)
    if general.scalars != kernel.signature.scalars:
        raise InternalError(f"the kernel {kernel.general.name} and its signature disagree on the order of its arguments")
    compact = None if kernel.compact is None else kernel.symbol(kernel.compact)
    return KernelRecord(kernel.signature, None if compact is None else compact.scalars, tuple(kernel.messages),
                        0 if compact is None else compact.messages_before, kernel.runs_long)
