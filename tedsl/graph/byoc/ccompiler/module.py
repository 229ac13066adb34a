"""A module of functions in C: its text, compiled when a function is first called."""

from __future__ import annotations

import ctypes
import json
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.codegen.c.running.compiler import COMPILERS, Compiler, find_compiler
from tedsl.codegen.c.running.program import loaded, unload
from tedsl.errors import ArgumentError, ModuleError, OptionError
from tedsl.graph.byoc.arrays import as_numpy
from tedsl.graph.byoc.ccompiler.visitor import CFunction
from tedsl.graph.byoc.ccompiler.wrapper import REASONS, module_text
from tedsl.graph.value import Spec
from tedsl.runtime.devices.device import cpu
from tedsl.runtime.devices.dlpack import Tensor, tensor_of
from tedsl.runtime.modules.files import file_path, replace_file

OPTIONS = ("-O2", "-Wall", "-Wextra", "-Werror")


class CSourceModule:
    """Functions in C. signatures: for each function the specs of its inputs, and of its outputs."""

    type_key = "c"

    def __init__(self, source: str, signatures: Mapping[str, tuple[Sequence[Spec], Sequence[Spec]]]) -> None:
        self.source, self.signatures = source, dict(signatures)
        self._library: ctypes.CDLL | None = None
        self._lock = threading.Lock()

    @staticmethod
    def of(functions: Sequence[CFunction]) -> CSourceModule:
        """The module of functions that a visitor wrote."""
        return CSourceModule(module_text(functions), {one.name: (one.inputs, one.outputs) for one in functions})

    @property
    def function_names(self) -> tuple[str, ...]:
        return tuple(self.signatures)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., None]:
        """The function `name` of arrays: the inputs, then the outputs. OptionError, an AttributeError, if there is none.

        A call raises ModuleError where there is no C compiler, ArgumentError for arrays that do not fit.
        """
        if name not in self.signatures:
            raise OptionError(f"the module has no function {name!r}; it has: {', '.join(self.signatures)}")

        def function(*arrays: Any) -> None:
            self._call(name, arrays)

        function.__name__ = function.__qualname__ = name
        return function

    def _call(self, name: str, arrays: Sequence[Any]) -> None:
        held = [as_numpy(name, array) for array in arrays]
        tensors = [tensor_of(array, array.ctypes.data, cpu()) for array in held]
        pointers = (ctypes.POINTER(Tensor) * max(len(held), 1))(*[ctypes.pointer(tensor) for tensor, *_ in tensors])
        status = getattr(self.library(), name)(pointers, ctypes.c_int32(len(held)))
        if status:
            takes = ", ".join(str(spec) for specs in self.signatures[name] for spec in specs)
            where = f"array {status >> 8}: " if status & 255 > 2 else ""
            raise ArgumentError(f"{name}: {where}{REASONS[status & 255]}", hint=f"it takes {takes}")

    def library(self) -> ctypes.CDLL:
        """The compiled text, loaded. Raises ModuleError where there is no C compiler."""
        with self._lock:
            if self._library is None:
                self._library = loaded(_compiler().shared_object(self.source, OPTIONS))
                weakref.finalize(self, unload, self._library._handle)
            return self._library

    def linked(self) -> tuple[str, dict[str, str]]:
        """The code as LLVM IR, which a library of other code holds, and for each function the name of one of pointers there.
        Raises ModuleError where there is no C compiler.
        """
        assembly = _compiler().assembly(self.source, OPTIONS)
        lines = [line.replace("\\", "\\5C").replace('"', "\\22") for line in assembly.splitlines()
                 if not line.lstrip().startswith((".file", ".ident"))]
        text = [f'module asm "{line}"' for line in lines]
        names = {name: f"{name}_linked" for name in self.signatures}
        for name, (inputs, outputs) in self.signatures.items():
            types = ", ".join(["ptr"] * (len(inputs) + len(outputs)))
            given = ", ".join(f"ptr %a{at}" for at in range(len(inputs) + len(outputs)))
            text.append(f"declare hidden i32 @{name}_({types})")
            text.append(f"define i32 @{names[name]}({given}) {{\n  %status = call i32 @{name}_({given})\n  ret i32 %status\n}}")
        return "\n".join(text), names

    def get_source(self, fmt: str = "") -> str:
        """The text."""
        if fmt not in ("", "c"):
            raise ArgumentError(f"get_source: there is no format {fmt!r}", hint='choose "c"')
        return self.source

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Writes the text to a `.c` file."""
        path = file_path(file_name, "save")
        if (fmt or path.suffix[1:]) != "c":
            raise ModuleError(f"functions in C are saved as .c, not as {path.name!r}")
        try:
            replace_file(path, self.source.encode())
        except OSError as error:
            raise ModuleError(f"{path} cannot be written: {error.strerror or error}") from error

    def save_to_bytes(self) -> bytes:
        functions = [[name, *[[[str(spec.dtype), spec.shape] for spec in specs] for specs in both]]
                     for name, both in self.signatures.items()]
        return json.dumps({"source": self.source, "functions": functions}).encode()

    def __repr__(self) -> str:
        return f"<CSourceModule {', '.join(self.signatures)}>"


def from_bytes(data: bytes, where: str) -> CSourceModule:
    """The module whose `save_to_bytes` gave `data`. ModuleError, which names the file `where`, if it did not."""
    try:
        about = json.loads(data)
        signatures = {name: (_specs(inputs), _specs(outputs)) for name, inputs, outputs in about["functions"]}
        return CSourceModule(str(about["source"]), signatures)
    except (ValueError, KeyError, TypeError) as error:
        raise ModuleError(f"{where} is not a module of functions in C: {error}", hint="save it again") from error


def _compiler() -> Compiler:
    found = find_compiler()
    if found is None:
        raise ModuleError(f"functions in C are compiled when they are called, and none of {', '.join(COMPILERS)} is here",
                          hint="install gcc or clang, or pip install ziglang; save('x.c') needs none")
    return found


def _specs(listed: Any) -> list[Spec]:
    return [Spec(shape, dtype) for dtype, shape in listed]

