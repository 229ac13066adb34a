"""Which nodes of a graph a compiler takes: by the names of operators, by a predicate, or several at once as a composite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.byoc.codegens import supported_by
from tedsl.graph.graph import Graph
from tedsl.graph.match import Pattern, match_value
from tedsl.graph.value import Node
from tedsl.record import record

Supported: TypeAlias = "str | Collection[str] | Callable[[Node], bool] | None"
# A pattern of the value that a composite computes, or a function of the last node of a composite: the nodes of the composite,
# that node among them, or None where there is none.
Composite: TypeAlias = Pattern | Callable[[Node], "Sequence[Node] | None"]


@record(eq=False)
class Part:
    """What a compiler takes as one: a node, or the nodes of a composite, which has a name."""

    nodes: tuple[Node, ...]
    composite: str = ""


@record(eq=False)
class Region:
    """Parts that become one function of `compiler`."""

    compiler: str
    parts: tuple[Part, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple([node for part in self.parts for node in part.nodes])


@record(eq=False)
class Annotation:
    """A graph and the regions in it that compilers take. No node is in two of them."""

    graph: Graph
    regions: tuple[Region, ...] = ()

    def __str__(self) -> str:
        lines = [f"{region.compiler}: {', '.join(part.composite or part.nodes[0].operator for part in region.parts)}"
                 for region in self.regions]
        return "\n".join(lines) or "no compiler takes a node"


def annotate(graph: Graph | Annotation, compiler: str, supported: Supported = None,
             composites: Mapping[str, Composite] | None = None) -> Annotation:
    """Gives nodes to `compiler`, each a region of its own. Nodes that another compiler has, or that are calls, are left.

    supported: names of operators, or a predicate of nodes; None: what the compiler says of itself (`supports` of its function).
    composites: by name a pattern (`tedsl.graph.match`), or a function of a node that returns the nodes which belong together
    with it, or None: tried before `supported`, the last nodes first. A composite whose inner results are read outside of it is
    not taken.
    """
    before = graph if isinstance(graph, Annotation) else Annotation(_graph(graph))
    taken = {node for region in before.regions for node in region.nodes}
    if supported is None and composites is None:
        supported = supported_by(compiler)
    accepts = _predicate(supported)
    parts: dict[Node, Part] = {}
    for name, match in (composites or {}).items():
        if not name.isidentifier():
            raise ArgumentError(f"annotate: {name!r} cannot be the name of a composite", hint="write an identifier")
        for node in reversed(before.graph.nodes):
            found = _nodes_of(match, node) if node not in taken else None
            if found and _is_closed(before.graph, name, node, found) and not taken & set(found):
                parts[node] = Part(tuple([one for one in before.graph.nodes if one in set(found)]), name)
                taken |= set(found)
    for node in before.graph.nodes:
        if node not in taken and node.function is None and accepts(node):
            parts[node] = Part((node,))
    regions = [Region(compiler, (parts[node],)) for node in before.graph.nodes if node in parts]
    return Annotation(before.graph, (*before.regions, *regions))


def _nodes_of(composite: Composite, last: Node) -> Sequence[Node] | None:
    """The nodes of a composite that ends with `last`; None if there is none."""
    if not isinstance(composite, Pattern):
        return composite(last)
    found = match_value(last.outputs[0], composite) if len(last.outputs) == 1 else None
    return found.nodes if found is not None and last in found.nodes else None


def _graph(given: object) -> Graph:
    if not isinstance(given, Graph):
        raise ArgumentTypeError(f"annotate: nodes of a Graph are given to a compiler, not of {type_in_words(given)}")
    return given


def _predicate(supported: Supported) -> Callable[[Node], bool]:
    if callable(supported):
        return supported
    names = {supported} if isinstance(supported, str) else set(supported or ())
    return lambda node: node.operator in names


def _is_closed(graph: Graph, name: str, last: Node, found: Sequence[Node]) -> bool:
    """Whether only the results of `last` are read outside of the nodes `found`."""
    inside = set(found)
    if last not in inside or inside - set(graph.nodes):
        raise GraphError(f"annotate: the composite {name} of {last!r} has nodes that are not of the graph, or lacks that node",
                         hint="return the node and some of those that it reads, directly or through others")
    inner = {out for node in inside if node is not last for out in node.outputs}
    return not inner & set(graph.outputs) and all(reader in inside for value in inner for reader in graph.users(value))
