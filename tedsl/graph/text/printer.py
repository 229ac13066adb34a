"""A graph as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tedsl.graph.dimensions import dimension_text
from tedsl.graph.graph import Graph
from tedsl.graph.operators import operator_named
from tedsl.graph.text.names import unique_name
from tedsl.graph.value import CALL, Node, Value, holds_values, values_of
from tedsl.ir.expr import Expr

INLINE = 8  # elements of constants that stand in the text


def text(graph: Graph) -> str:
    """The text of a graph and of those that it calls, callees first; names are made unique."""
    return _Printer(graph).text()


def names_of_constants(graph: Graph) -> Mapping[str, Value]:
    """The constants that the text names without their elements, by these names: what `Graph.parse` wants the arrays of."""
    printer = _Printer(graph)
    return {name: value for value, name in printer.constants.items() if value.spec.size > INLINE}


class _Printer:
    def __init__(self, graph: Graph) -> None:
        self.graphs = _callees_first(graph)
        self.taken: set[str] = {"inf", "nan", "constant", CALL}
        self.functions = {one: unique_name(one.name, self.taken) for one in self.graphs}
        self.constants = {value: unique_name(value.name, self.taken)
                          for value in dict.fromkeys([value for one in self.graphs for value in one.constants])}

    def text(self) -> str:
        return "\n\n".join(["\n".join(self._lines(one)) for one in self.graphs])

    def _lines(self, graph: Graph) -> list[str]:
        taken = self.taken | _variables(graph)
        names = {value: unique_name(value.name, taken) for value in graph.inputs}
        names |= {value: self.constants[value] for value in graph.constants}
        head = ", ".join([f"{names[value]}: {value.spec}" for value in graph.inputs])
        lines = [f'@compiler("{graph.compiler}")'] if graph.compiler else []
        lines.append(f"def {self.functions[graph]}({head}):")
        lines += [f"    {names[value]}: {value.spec} = constant({_data(value, names[value])})" for value in graph.constants]
        for node in graph.nodes:
            names |= {out: unique_name(out.name, taken) for out in node.outputs}
            results = ", ".join([names[out] for out in node.outputs])
            typed = f"{results}: {node.outputs[0].spec}" if len(node.outputs) == 1 else results
            lines.append(f"    {typed} = {self._call(node, names)}")
        lines.append(f"    return {', '.join([names[value] for value in graph.outputs])}")
        return lines

    def _call(self, node: Node, names: Mapping[Value, str]) -> str:
        if node.function is not None:
            return f"{CALL}({', '.join([self.functions[node.function], *[names[value] for value in node.inputs]])})"
        parameters = operator_named(node.operator).signature.parameters
        starred = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
        parts, by_position = [], True
        for name, parameter in parameters.items():
            argument = node.arguments.get(name)
            several = parameter.kind is parameter.VAR_POSITIONAL
            by_position = by_position and name in node.arguments and (holds_values(argument) or starred)
            if several:
                parts += [names[value] for value in values_of(argument)]
            elif name in node.arguments:
                parts.append(_argument(argument, names) if by_position or parameter.kind is parameter.POSITIONAL_ONLY else
                             f"{name}={_argument(argument, names)}")
        return f"{node.operator}({', '.join(parts)})"


def _argument(argument: Any, names: Mapping[Value, str]) -> str:
    if isinstance(argument, Value):
        return names[argument]
    if isinstance(argument, tuple):
        return f"({', '.join([_argument(part, names) for part in argument])}{',' * (len(argument) == 1)})"
    if isinstance(argument, Expr):
        return dimension_text(argument)
    if isinstance(argument, str):
        return f'"{argument}"' if argument.isprintable() and not set('"\\') & set(argument) else repr(str(argument))
    return repr(argument)


def _data(value: Value, name: str) -> str:
    if value.spec.size > INLINE:
        return f'"{name}"'
    return _numbers(value.data)


def _numbers(elements: Any) -> str:
    """Elements as text: the shortest that gives each of them again in its dtype."""
    if elements.ndim:
        return f"[{', '.join([_numbers(elements[at, ...]) for at in range(len(elements))])}]"
    return str(elements) if elements.dtype.kind in "fV" else repr(elements.item())


def _variables(graph: Graph) -> set[str]:
    """The names of the variables in the shapes of the inputs."""
    return {word for value in graph.inputs for extent in value.shape if isinstance(extent, Expr)
            for word in re.findall(r"\w+", dimension_text(extent))}


def _callees_first(graph: Graph) -> list[Graph]:
    done: dict[Graph, None] = {}
    stack = [(graph, False)]
    while stack:
        one, ready = stack.pop()
        if ready:
            done[one] = None
        elif one not in done:
            stack += [(one, True), *[(callee, False) for callee in reversed(one.functions)]]
    return list(done)
