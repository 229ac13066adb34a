"""A graph as a picture: a box for each input and node, an edge for each value that is read."""

from __future__ import annotations

from tedsl.display.graph import Node as Box
from tedsl.display.graph import svg_of
from tedsl.display.markup import Markup
from tedsl.display.page import fragment
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Value


def picture(graph: Graph) -> Markup:
    """The graph as SVG, inputs at the top. Constants stand in the boxes of the nodes that read them."""
    outputs = {value.node for value in graph.outputs}
    boxes = [Box((value.name, str(value.spec)), "input") for value in graph.inputs]
    at: dict[Value, int] = {value: number for number, value in enumerate(graph.inputs)}
    edges: list[tuple[int, int]] = []
    for node in graph.nodes:
        edges += [(at[value], len(boxes)) for value in dict.fromkeys(node.inputs) if value in at]
        at |= dict.fromkeys(node.outputs, len(boxes))
        boxes.append(Box(_lines(node), "output" if node in outputs else "plain"))
    return svg_of(boxes, edges, f"The nodes of {graph.name}")


def page(graph: Graph) -> str:
    """The picture as a part of a page, for notebooks."""
    return fragment(f"Graph {graph.name}", picture(graph))


def _lines(node: Node) -> tuple[str, ...]:
    """The operators, the constants that the node reads, and what it gives."""
    called = node.operator if node.function is None else " ".join(inner.operator for inner in node.function.nodes)
    constants = ", ".join(f"{value.name} {value.spec}" for value in dict.fromkeys(node.inputs) if value.is_constant)
    return tuple(filter(None, (called, constants, ", ".join(str(out.spec) for out in node.outputs))))
