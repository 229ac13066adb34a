"""Modules that run graphs node by node, by functions of another library.

    class TorchModule(graph.LibraryModule):
        type_key = "torch"
        operators = {"add": torch.add, "nn.relu": torch.relu}
        array = staticmethod(torch.from_numpy)

Such a class is a codegen, which takes the nodes of these operators; `TorchModule.load` brings back what it saved.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from tedsl.errors import GraphError
from tedsl.graph.graph import Graph
from tedsl.graph.operators import operator_named
from tedsl.graph.text.printer import names_of_constants
from tedsl.graph.value import Argument, Node, Value, with_values

if TYPE_CHECKING:
    from typing_extensions import Self

_TEXT = ""  # no name of a constant


class LibraryModule:
    """A module of graphs whose nodes are calls of `operators`; a subclass says which.

    type_key: the name of its kind. operators: by the name of an operator, the function that computes it. It is called with the
    arguments of the operator in their order, up to the last one that is not its default: arrays of the library (a tuple of them
    for a list of operands) and attributes. It returns an array, or a tuple for several results.
    """

    type_key: ClassVar[str] = ""
    operators: ClassVar[Mapping[str, Callable[..., Any]]] = {}

    def __init__(self, functions: Sequence[Graph]) -> None:
        strangers = [node.operator for graph in functions for node in graph.nodes if node.operator not in self.operators]
        if strangers:
            raise GraphError(f"{type(self).__name__} has no function for {strangers[0]}",
                             hint=f"operators of the class has {', '.join(sorted(self.operators)) or 'none'}")
        self.graphs = {graph.name: graph for graph in functions}
        self._constants = {value: self.array(numpy.array(value.data)) for graph in functions for value in graph.constants}

    @classmethod
    def supports(cls, node: Node) -> bool:
        """What `graph.annotate` takes for it."""
        return node.operator in cls.operators

    @staticmethod
    def array(array: Any) -> Any:
        """The array of the library that has the memory, or the elements, of an array of numpy."""
        return array

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., None]:
        """The function of a graph. Raises AttributeError if there is none."""
        if name not in self.graphs:
            raise AttributeError(name)
        return functools.partial(self._run, self.graphs[name])

    def _run(self, graph: Graph, *arrays: Any) -> None:
        known: dict[Value, Any] = {**self._constants, **dict(zip(graph.inputs, map(self.array, arrays)))}
        for node in graph.nodes:
            made = self.operators[node.operator](*[with_values(argument, known) for argument in _in_order(node)])
            known |= zip(node.outputs, made if isinstance(made, tuple) else (made,))
        for out, value in zip(arrays[len(graph.inputs):], graph.outputs):
            numpy.copyto(out, numpy.asarray(known[value]))

    def get_source(self, fmt: str = "") -> str:
        """The graphs as text."""
        return "\n\n".join(map(str, self.graphs.values()))

    def save_to_bytes(self) -> bytes:
        """The graphs as text, and their constants."""
        file = io.BytesIO()
        arrays: dict[str, Any] = {}
        for name, graph in self.graphs.items():
            arrays[f"{name}/{_TEXT}"] = numpy.array(str(graph))
            arrays |= {f"{name}/{at}": value.data for at, value in names_of_constants(graph).items()}
        numpy.savez(file, **arrays)
        return file.getvalue()

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The module of what `save_to_bytes` gave."""
        texts: dict[str, str] = {}
        constants: dict[str, dict[str, Any]] = {}
        with numpy.load(io.BytesIO(data)) as arrays:
            for key in arrays:
                name, _, part = key.partition("/")
                if part == _TEXT:
                    texts[name] = str(arrays[key])
                else:
                    constants.setdefault(name, {})[part] = arrays[key]
        return cls([Graph.parse(text, constants.get(name, {})) for name, text in texts.items()])


def _in_order(node: Node) -> list[Argument]:
    """The arguments of a node up to the last one that is not its default."""
    parameters = operator_named(node.operator).signature.parameters
    last = max((at for at, name in enumerate(parameters) if name in node.arguments), default=-1)
    return [node.arguments.get(name, parameter.default) for name, parameter in list(parameters.items())[:last + 1]]
