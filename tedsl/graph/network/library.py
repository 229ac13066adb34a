"""A network as one function, `run`, in a library without Python: it calls the kernels with pointers into an arena.

The arrays of constants are an object of their own beside the code. Its functions return their addresses.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from tedsl import te, tir
from tedsl.driver import build, schedule_to_module
from tedsl.errors import ArgumentError, ModuleError
from tedsl.graph.apply import apply
from tedsl.graph.graph import Graph
from tedsl.graph.network.arrays import shape_of
from tedsl.graph.network.build import options_of
from tedsl.graph.network.hoist import divided
from tedsl.graph.network.instance import Instance
from tedsl.graph.network.kernels import ExternalSource, KernelSource, KernelUse, kernel_of
from tedsl.graph.plan.offsets import aligned
from tedsl.graph.text.names import unique_name
from tedsl.graph.value import Value
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import file_path, write_module
from tedsl.runtime.modules.image import Image
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.target.target import Target
from topi.schedules import schedule

if TYPE_CHECKING:
    from tedsl.graph.network.network import Network

FORMATS = ("so", "h", "tar", "whl")
_RUN = "run"


def export_library(network: Network, file_name: Any, options: Mapping[str, Any]) -> None:
    """Writes a network as a library. ModuleError for other formats, and for networks of any batch."""
    path = file_path(file_name, "export_library")
    if path.suffix[1:] not in FORMATS:
        raise ModuleError(f"networks are exported as {', '.join('.' + form for form in FORMATS)}, not as {path.name!r}",
                          hint="network.save writes a .tedsl file, which Network.load reads")
    if network.variables:
        raise ArgumentError(f"export_library: {network.name} takes arrays of any {', '.join(network.variables)}, and `run` "
                            "of a library has arrays of known shapes",
                            hint="compile graph.with_inputs(g, [Spec(...), ...]), and export that")
    with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
        module = library_module(network.instance(()), network.target, Path(folder), network.modules)
        write_module(module, path, path.suffix[1:], options)


def library_module(instance: Instance, target: Target, folder: Path,
                   modules: Mapping[KernelSource, RuntimeModule] | None = None) -> Module:
    """The module of the function `run`, which takes the inputs and the outputs. folder: for a file that compiling it needs.

    modules: those of other compilers. Raises ModuleError for one whose code cannot be in a library.
    """
    writer = _Writer(instance, target, folder, modules or {})
    made = build([writer.run(), *writer.kernels.values()], target=target)

    def image() -> Image:
        whole = made.image()
        return replace(whole, kernels=tuple([kernel for kernel in whole.kernels if kernel.name == _RUN]))

    return Module({_RUN: made[_RUN]}, {}, {}, target, image=image)


class _Writer:
    """Writes `run`: a Let for each pointer, and a call for each step."""

    def __init__(self, instance: Instance, target: Target, folder: Path, modules: Mapping[KernelSource, RuntimeModule]) -> None:
        self.instance, self.target, self.folder, self.modules = instance, target, folder, modules
        self.linked: dict[int, Mapping[str, str]] = {}  # by the id of a module of another compiler: the names of its functions
        self.kernels: dict[KernelSource, tir.PrimFunc] = {}
        self.ib = tir.ir_builder.create()
        graph = instance.graph
        self.buffers = [tir.decl_buffer(shape_of(value), str(value.dtype), name=name)
                        for value, name in zip([*graph.inputs, *graph.outputs], _names(graph))]
        self.places: dict[Value, tuple[Any, int]] = {}  # of values in arenas: the arena, and the offset in bytes
        self.constants: dict[int, str] = {}  # by the id of an array: the function that returns its address
        self.views = {value for memory in instance.plan.memories if memory.home == "constant" for value in memory.values}

    def run(self) -> tir.PrimFunc:
        self._place_constants()
        self._place_arenas()
        calls = [(step.use, [self._pointer(one, step.writes(one)) for one in step.operands]) for step in self.instance.steps]
        for use, pointers in [*calls, *self._copies()]:
            called = tir.call_extern("int32", self._symbol(use), *pointers)
            if isinstance(use.source, ExternalSource):
                self.ib.emit(partial(tir.AssertStmt, called == 0, tir.StringImm(f"{use.source.name} has failed")))
            else:
                self.ib.emit(called)
        handles = [te.var(buffer.name, "handle") for buffer in self.buffers]
        func = tir.PrimFunc(tuple(handles), self.ib.get(), buffer_map=dict(zip(handles, self.buffers)))
        return func.with_attr("global_symbol", _RUN).with_attr("tir.noalias", True)

    def _place_arenas(self) -> None:
        arenas = {device: self.ib.allocate("uint8", (size,), name="arena").as_expr()
                  for device, size in self.instance.plan.sizes.items()}
        for block in self.instance.plan.blocks:
            self.places |= {value: (arenas[block.device], block.offset + begin) for value, begin in block.values.items()}

    def _place_constants(self) -> None:
        """Writes the arrays of constants, and what was prepared of them, to a file, which the assembler makes part of an
        object.
        """
        arrays = [self._array(one) for step in self.instance.steps for one in step.operands]
        arrays += [self._array(value) for _, value in self.instance.copies if isinstance(value, Value)]
        whole, offsets = bytearray(), {}
        for array in arrays:
            if array is not None and id(array) not in offsets:
                offsets[id(array)] = len(whole)
                whole += numpy.ascontiguousarray(array).tobytes()
                whole += bytes(aligned(len(whole)) - len(whole))
        if not offsets:
            return
        path = self.folder / "constants"
        path.write_bytes(whole)
        name = f"tedsl_constants_{hashlib.sha256(whole).hexdigest()[:16]}"
        self.constants = {key: f"{name}_{at}" for at, key in enumerate(offsets)}
        source = _data_source(name, path, dict(zip(self.constants.values(), offsets.values())))
        self.ib.scope_attr(tir.const(0), "pragma_import_llvm", source)

    def _array(self, operand: Any) -> Any:
        """The array of a constant, or one that was prepared; None for what is computed or given."""
        if not isinstance(operand, Value):
            return operand
        constant = operand.is_constant or operand in self.views
        return self.instance.fixed.get(operand, operand.data) if constant else None

    def _pointer(self, operand: Any, written: bool) -> Any:
        """A variable that holds the address of a value or of a prepared array."""
        array = self._array(operand)
        if array is not None:
            return self.ib.let("p", tir.call_extern("handle", self.constants[id(array)]))
        value: Value = operand
        if value in self.places:
            data, offset = self.places[value]
        else:
            place = self.instance.places[value]
            views = {len(self.buffers) + at: (view.place, view.begin) for at, view in enumerate(self.instance.views)}
            base, offset = views.get(place, (place, 0))
            data = self.buffers[base].data
        marker = tir.call_intrin(str(value.dtype), "tir.type_annotation")
        address = tir.call_intrin("handle", "tir.tvm_access_ptr", marker, data, offset // value.dtype.bytes, value.spec.size,
                                  3 if written else 1)
        return self.ib.let("p", address)

    def _copies(self) -> Iterator[tuple[KernelUse, list[Any]]]:
        """The copies into outputs that no kernel writes."""
        for to, of in self.instance.copies:
            output = self.instance.graph.outputs[to - len(self.instance.graph.inputs)]
            value = of if isinstance(of, Value) else next(value for value, place in self.instance.places.items() if place == of)
            use = kernel_of(apply("identity", Value("x", output.spec)).node)
            written = self.ib.let("p", self.buffers[to].access_ptr("w"))
            yield use, [self._pointer(value, False), written]

    def _symbol(self, use: KernelUse) -> str:
        """The name of the function of a step. The code of another compiler becomes a part of the library."""
        source = use.source
        if not isinstance(source, ExternalSource):
            return str(self._kernel(use).attrs["global_symbol"])
        module = self.modules[source]
        if id(module) not in self.linked:
            linked = getattr(module, "linked", None)
            if linked is None:
                raise ModuleError(f"export_library: {source.name} is a function of the compiler {source.compiler}, whose "
                                  "code is not a part of libraries",
                                  hint="network.save writes a .tedsl file, which Network.load reads")
            text, self.linked[id(module)] = linked()
            self.ib.scope_attr(tir.const(0), "pragma_import_llvm", text)
        return self.linked[id(module)][source.name]

    def _kernel(self, use: KernelUse) -> tir.PrimFunc:
        if use.source not in self.kernels:
            inputs, outputs = use.source.tensors
            name = f"{use.source.name}_{len(self.kernels)}"
            with options_of(use.source):
                (func,) = schedule_to_module(schedule(outputs, self.target), [*inputs, *outputs], name).functions.values()
            func = divided(func, use.source.fixed)[0].with_attr("global_symbol", name) if use.source.fixed else func
            if use.source.in_place:
                func = func.replace(attrs={key: value for key, value in func.attrs.items() if key != "tir.noalias"})
            self.kernels[use.source] = func
        return self.kernels[use.source]


def _data_source(name: str, path: Path, functions: Mapping[str, int]) -> str:
    """LLVM IR of an object that holds the bytes of a file, and of functions that return the address at an offset."""
    lines = [".section .rodata", ".balign 64", f"{name}_bytes:", f".incbin \\22{path}\\22", ".text"]
    text = [*[f'module asm "{line}"' for line in lines], f"@{name}_bytes = external hidden constant i8"]
    for function, offset in functions.items():
        text.append(f"define ptr @{function}() {{\n  ret ptr getelementptr (i8, ptr @{name}_bytes, i64 {offset})\n}}")
    return "\n".join(text)


def _names(graph: Graph) -> list[str]:
    """Names for the inputs and the outputs, as C has them, each once."""
    taken: set[str] = set()
    return [unique_name(value.name, taken) for value in (*graph.inputs, *graph.outputs)]
