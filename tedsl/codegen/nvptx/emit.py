"""Writes a module of LLVM IR from the kernels of a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tedsl.codegen.llvm.debug.lines import PrintedLoops
from tedsl.codegen.llvm.debug.table import LineTable
from tedsl.codegen.llvm.effort import PLAIN
from tedsl.codegen.llvm.emit import TABLES as PROCESSOR
from tedsl.codegen.llvm.emitter import Emitter, FunctionFacts, ModuleText, Tables
from tedsl.codegen.llvm.frame import emit_return
from tedsl.codegen.nvptx import statements
from tedsl.codegen.nvptx.calls import emit_call
from tedsl.codegen.nvptx.fast_math import emit_fast_division
from tedsl.codegen.nvptx.fragments import Fragments
from tedsl.codegen.nvptx.launch import Launch, launch_of
from tedsl.codegen.nvptx.memory import SharedMemory, bind_parameters, declare_common, kept_variables
from tedsl.codegen.nvptx.refuse import check_intrinsics, check_kernel
from tedsl.ir.expr import Call, Div
from tedsl.ir.func import PrimFunc
from tedsl.record import record
from tedsl.target.target import Target

TABLES = Tables({**PROCESSOR.data, Call: emit_call, Div: emit_fast_division}, PROCESSOR.index, PROCESSOR.index_leaf,
                {**PROCESSOR.statements, **statements.STATEMENTS}, PROCESSOR.deep)


@record
class EmittedKernel:
    """What the text of a kernel does not say: its launch, and the bytes of shared memory that a block has from its code."""

    name: str
    launch: Launch
    shared: int
    dynamic_shared: bool


def emit_kernels(kernels: Sequence[PrimFunc], target: Target, loops: PrintedLoops) -> tuple[str, list[EmittedKernel]]:
    """Returns the LLVM IR of `kernels`, with a line table for their printed `loops`, and a description of each."""
    module = ModuleText(target, TABLES)
    module.line_table = table = LineTable(loops, Path("loops"), module.add_metadata, directives=True)
    emitted: list[EmittedKernel] = []
    texts = [_kernel(kernel, module, emitted) for kernel in kernels]
    sizes = [f"!{{ptr @{kernel.name}, {', '.join(kernel.launch.annotations(target))}}}" for kernel in emitted]
    nodes = [module.add_metadata(text) for text in sizes]
    # No calls: LLVM writes them as ones that all threads of a warp make together.
    helpers = [text.replace(" noinline ", " alwaysinline ") for text in module.definitions.values()]
    metadata = [*(f"!{k} = {text}" for k, text in enumerate(module.metadata)), f"!nvvm.annotations = !{{{', '.join(nodes)}}}"]
    parts = [f'target triple = "{target.triple}"', *module.declarations.values(), *helpers, *kept_variables(module), *texts,
             *metadata, table.named_metadata()]
    text = "\n\n".join(parts) + "\n"
    check_intrinsics(text)
    return text, emitted


def _kernel(kernel: PrimFunc, module: ModuleText, emitted: list[EmittedKernel]) -> str:
    check_kernel(kernel)
    launch = launch_of(kernel)
    facts = FunctionFacts(kernel.name, frozenset(), bool(kernel.attrs.get("tir.noalias")), lambda message: 1, owner=kernel.name,
                          is_kernel=True)
    out = Emitter(module, facts)
    out.__dict__["fragments"] = Fragments(kernel, module.target)
    parameters = bind_parameters(kernel, out)
    declare_common(out, kernel.body)
    out.statement(kernel.body)
    emit_return(out, None)
    shared = SharedMemory.of(out)
    emitted.append(EmittedKernel(kernel.name, launch, shared.bytes, shared.dynamic is not None))
    return out.text(f"define ptx_kernel void @{kernel.name}({', '.join(parameters)}) {module.attributes} {PLAIN}")
