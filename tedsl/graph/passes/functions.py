"""The graphs that the nodes of a graph call: equal ones are one, and no two have the same name."""

from __future__ import annotations

from tedsl.graph.graph import Graph
from tedsl.graph.text.printer import text


class Functions:
    """Graphs to call, by their texts."""

    def __init__(self) -> None:
        self._by_text: dict[str, Graph] = {}
        self._names: set[str] = set()

    def one(self, function: Graph) -> Graph:
        """The graph for all that have this text; its name has a number if another has the name."""
        key = text(function)
        if key not in self._by_text:
            self._by_text[key] = self._named(function)
        return self._by_text[key]

    def _named(self, function: Graph) -> Graph:
        name, number = function.name, 0
        while name in self._names:
            number += 1
            name = f"{function.name}_{number}"
        self._names.add(name)
        return Graph(function.inputs, function.outputs, name, function.compiler) if number else function
