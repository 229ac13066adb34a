"""A graph: inputs, outputs, and the nodes between them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.dimensions import variables_in
from tedsl.graph.value import Node, Value
from tedsl.ir.expr import Var


class Graph:
    """A function of values: what `outputs` are, computed from `inputs`. Immutable; compared by identity.

    name: an identifier. compiler: who makes code of a graph that others call; None: tedsl.
    Raises GraphError if an output needs an input that is not listed.
    """

    def __init__(self, inputs: Sequence[Value], outputs: Sequence[Value], name: str = "main",
                 compiler: str | None = None) -> None:
        self.inputs = _values("inputs", inputs)
        self.outputs = _values("outputs", outputs)
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"Graph: {name!r} cannot be the name of a graph",
                                hint="write an identifier, as of a Python function")
        if not self.outputs:
            raise GraphError(f"Graph {name}: it has no outputs", hint="list the values that the graph returns")
        self.name, self.compiler = name, compiler
        strangers = [value for value in self.inputs if not value.is_input]
        if strangers or len(set(self.inputs)) < len(self.inputs):
            problem = f"{strangers[0]!r} is no input" if strangers else "an input is listed twice"
            raise GraphError(f"Graph {name}: {problem}")
        _check_variables(name, self.inputs)
        missing = [value for value in self._read() if value.is_input and value not in set(self.inputs)]
        if missing:
            names = ", ".join(value.name for value in self.inputs) or "none"
            raise GraphError(f"Graph {name}: its outputs need {missing[0].name}: {missing[0].spec}, which is not among its "
                             f"inputs ({names})", hint="list it, or make it a constant")

    @functools.cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that the outputs need, producers first, in an order that depends on the graph alone."""
        done: dict[Node, None] = {}
        stack: list[tuple[Node, bool]] = [(value.node, False) for value in reversed(self.outputs) if value.node]
        while stack:
            node, ready = stack.pop()
            if ready:
                done[node] = None
            elif node not in done:
                stack.append((node, True))
                stack += [(value.node, False) for value in reversed(node.inputs) if value.node and value.node not in done]
        return tuple(done)

    def _read(self) -> dict[Value, None]:
        """Every value that a node reads or that is an output, in order."""
        return dict.fromkeys([*[value for node in self.nodes for value in node.inputs], *self.outputs])

    @functools.cached_property
    def constants(self) -> tuple[Value, ...]:
        """The constants that nodes read or that are outputs, in the order of their first use."""
        return tuple([value for value in self._read() if value.is_constant])

    @functools.cached_property
    def readers(self) -> Mapping[Value, tuple[Node, ...]]:
        """The nodes that read each value, in order, each once; values that none reads are left out."""
        found: dict[Value, dict[Node, None]] = {}
        for node in self.nodes:
            for value in node.inputs:
                found.setdefault(value, {})[node] = None
        return {value: tuple(nodes) for value, nodes in found.items()}

    def users(self, value: Value) -> tuple[Node, ...]:
        """The nodes that read `value`."""
        return self.readers.get(value, ())

    @property
    def functions(self) -> tuple[Graph, ...]:
        """The graphs that nodes of this one call, each once, in order."""
        return tuple(dict.fromkeys([node.function for node in self.nodes if node.function is not None]))

    def __str__(self) -> str:
        from tedsl.graph.text.printer import text

        return text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.constants)} constants>"

    def _repr_html_(self) -> str:
        from tedsl.graph.picture import page

        return page(self)

    @staticmethod
    def parse(source: str, constants: Mapping[str, Any] | None = None) -> Graph:
        """The graph that a text describes, as `str(graph)` writes it; `constants` are the arrays that the text names.

        Raises GraphError, with the number of the line, for a text that describes none.
        """
        from tedsl.graph.text.parser import parse

        if not isinstance(source, str):
            raise ArgumentTypeError(f"Graph.parse: the text is {type_in_words(source)}",
                                    hint="Graph.parse(str(graph), constants)")
        return parse(source, constants)


def _check_variables(name: str, inputs: Sequence[Value]) -> None:
    """Raises GraphError if two variables in the shapes have one name: what compares by text would take them for one."""
    known: dict[str, Var] = {}
    for value in inputs:
        for extent in value.shape:
            for var in variables_in(extent):
                if known.setdefault(var.name, var) is not var:
                    raise GraphError(f"Graph {name}: two variables in the shapes of its inputs are called {var.name}",
                                     hint=f"give them names of their own, or use one variable {var.name}")


def _values(what: str, given: Any) -> tuple[Value, ...]:
    if isinstance(given, Value):
        return (given,)
    listed = tuple(given) if isinstance(given, (list, tuple)) else None
    wrong = given if listed is None else next((one for one in listed if not isinstance(one, Value)), None)
    if listed is None or wrong is not None:
        raise ArgumentTypeError(f"Graph: {what} are values, not {type_in_words(wrong)}",
                                hint="graph.trace(fn, Spec(...)) makes a graph of a function")
    return listed
