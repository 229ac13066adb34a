"""Modules that run sub-graphs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from tedsl.errors import ArgumentError, GraphError, ModuleError, OptionError
from tedsl.graph.byoc.arrays import checked
from tedsl.graph.byoc.examplejson.parser import parse
from tedsl.graph.byoc.examplejson.program import INPUT, Program, SubGraph
from tedsl.graph.value import Spec
from tedsl.runtime.functions import register_func
from tedsl.runtime.modules.files import file_path, read_file, replace_file

_FUNCTIONS: dict[str, Callable[..., Any]] = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply}


class ExampleJsonModule:
    """Runs the sub-graphs of a program. A function of it keeps its own sub-graph, whatever else is asked for meanwhile."""

    type_key = "examplejson"

    def __init__(self, program: Program) -> None:
        self.program = program
        self._graphs = {one.symbol: one for one in program.graphs}

    @property
    def function_names(self) -> tuple[str, ...]:
        return tuple(self._graphs)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., None]:
        """The function of the sub-graph `name`: of its inputs, then of its outputs, which it writes. OptionError if there is
        none."""
        if name not in self._graphs:
            raise OptionError(f"the module has no function {name!r}; it has: {', '.join(self._graphs)}")
        graph = self._graphs[name]

        def function(*arrays: Any) -> None:
            run(graph, arrays)

        function.__name__ = function.__qualname__ = name
        return function

    def get_source(self, fmt: str = "") -> str:
        """The text."""
        if fmt not in ("", "examplejson"):
            raise ArgumentError(f"get_source: there is no format {fmt!r}", hint='choose "examplejson"')
        return self.program.text()

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Writes the text to a `.examplejson` file, which load_module reads."""
        path = file_path(file_name, "save")
        if (fmt or path.suffix[1:]) != "examplejson":
            raise ModuleError(f"sub-graphs are saved as .examplejson, not as {path.name!r}")
        try:
            replace_file(path, self.save_to_bytes())
        except OSError as error:
            raise ModuleError(f"{path} cannot be written: {error.strerror or error}") from error

    def save_to_bytes(self) -> bytes:
        return self.program.text().encode()


def run(graph: SubGraph, arrays: Sequence[Any]) -> None:
    """Runs a sub-graph: reads the arrays of its inputs, writes those of its outputs. Its values belong to this call."""
    given = checked(graph.symbol, [Spec(one.shape) for one in (*graph.inputs, *graph.results)], arrays)
    known = {one.number: array for one, array in zip(graph.inputs, given)}
    for one in graph.statements:
        if one.operator != INPUT:
            known[one.number] = _FUNCTIONS[one.operator](*[known[number] for number in one.inputs])
    for out, number in zip(given[len(graph.inputs):], graph.outputs):
        numpy.copyto(out, known[number])


class ConstantsModule:
    """A module with constants: its functions call those of `module` with their constants behind the inputs.

    constants: for functions that have some their arrays; inputs: the number of their other inputs.
    """

    type_key = "examplejson_constants"

    def __init__(self, module: ExampleJsonModule, constants: Mapping[str, Sequence[Any]], inputs: Mapping[str, int]) -> None:
        self.module, self.constants, self.inputs = module, dict(constants), dict(inputs)

    @property
    def imported_modules(self) -> list[Any]:
        return [self.module]

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., None]:
        inner = self.module.get_function(name)
        if name not in self.constants:
            return inner
        bound, count = tuple(self.constants[name]), self.inputs[name]

        def function(*arrays: Any) -> None:
            inner(*arrays[:count], *bound, *arrays[count:])

        function.__name__ = function.__qualname__ = name
        return function

    def get_source(self, fmt: str = "") -> str:
        return self.module.get_source(fmt)

    def save_to_bytes(self) -> bytes:
        constants = {name: [[list(array.shape), base64.b64encode(array.astype("<f4").tobytes()).decode()] for array in arrays]
                     for name, arrays in self.constants.items()}
        return json.dumps({"source": self.get_source(), "constants": constants, "inputs": self.inputs}).encode()


def from_bytes(data: bytes, where: str) -> ExampleJsonModule:
    """The module of a text as bytes. ModuleError names the file `where` and the line."""
    try:
        return ExampleJsonModule(parse(data.decode()))
    except (GraphError, UnicodeDecodeError) as error:
        problem = error.problem if isinstance(error, GraphError) else error
        raise ModuleError(f"{where} holds no sub-graphs: {problem}") from error


def with_constants(data: bytes, where: str) -> ConstantsModule:
    """The module whose `save_to_bytes` gave `data`."""
    try:
        about = json.loads(data)
        arrays = {name: [numpy.frombuffer(base64.b64decode(content), "<f4").reshape(shape) for shape, content in listed]
                  for name, listed in about["constants"].items()}
        inputs = {name: int(about["inputs"][name]) for name in arrays}
        return ConstantsModule(from_bytes(about["source"].encode(), where), arrays, inputs)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ModuleError):
            raise
        raise ModuleError(f"{where} is not a module of sub-graphs with constants: {error}", hint="save it again") from error


def from_file(path: Path) -> ExampleJsonModule:
    """The module of an `.examplejson` file."""
    return from_bytes(read_file(path), path.name)


def _created(text: str) -> ExampleJsonModule:
    return ExampleJsonModule(parse(text))


register_func("module.examplejson_module_create", _created, override=True)
register_func("module.loadbinary_examplejson", lambda data: from_bytes(data, "the module"), override=True)
register_func("module.loadfile_examplejson", lambda path, fmt="": from_file(file_path(path, "load_module")), override=True)
