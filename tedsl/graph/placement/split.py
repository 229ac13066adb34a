"""Networks as parts: sub-models between key operators.

A part ends behind a max pool. Where branches meet in a key operator (concatenate; an addition, with residual=True), the network
is cut on both sides of them: behind the value from which all branches start, and before the operator, so that each branch is a
part. A node that reads results of several parts begins one. So a part is entered at its first node alone, and parts need each
other in no circle.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.apply import with_arguments
from tedsl.graph.graph import Graph
from tedsl.graph.placement.costs import Costs, costs_of
from tedsl.graph.value import Node, Value, with_values
from tedsl.record import record

_POOLS = ("nn.pool2d", "nn.pool1d", "nn.pool3d")
_ADDITIONS = ("add", "elemwise_sum")


@record(eq=False)
class Part:
    """A sub-model. nodes: of the whole network; inputs, outputs: its values that the part reads and that others read of it.

    graph: the same as a network of its own, with inputs and outputs in that order. kind: "residual" and "inception" for
    branches that meet in an addition or in a concatenation, and what begins there; else "conv" with convolutions, "fc" with
    matrix products alone, and "other".
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    graph: Graph
    kind: str = "other"

    @cached_property
    def costs(self) -> Costs:
        return costs_of(self.nodes)


class Parts(Sequence[Part]):
    """The parts of a graph, sources before targets."""

    def __init__(self, graph: Graph, parts: Sequence[Part]) -> None:
        self.graph, self._parts = graph, tuple(parts)

    def __getitem__(self, at: Any) -> Any:
        return self._parts[at]

    def __len__(self) -> int:
        return len(self._parts)

    @cached_property
    def edges(self) -> tuple[tuple[int, int, tuple[Value, ...]], ...]:
        """(source, target, values): what a part reads of another."""
        maker = {value: at for at, part in enumerate(self._parts) for value in part.outputs}
        found: dict[tuple[int, int], list[Value]] = {}
        for at, part in enumerate(self._parts):
            for value in part.inputs:
                if value in maker:
                    found.setdefault((maker[value], at), []).append(value)
        return tuple([(*ends, tuple(found[ends])) for ends in sorted(found)])

    def __str__(self) -> str:
        rows = [("part", "kind", "nodes", "parameters", "multiply-adds", "reads", "begins with ... ends with")]
        for at, part in enumerate(self._parts):
            sources = ", ".join(self._parts[source].name for source, target, _ in self.edges if target == at) or "inputs"
            rows.append((part.name, part.kind, str(len(part.nodes)), f"{part.costs.parameters:,}",
                         f"{part.costs.multiply_adds:,}", sources, f"{part.nodes[0].operator} ... {part.nodes[-1].operator}"))
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def __repr__(self) -> str:
        return f"<Parts of {self.graph.name}: {', '.join(part.name for part in self._parts)}>"


def split(graph: Graph, at: Sequence[str] = ("max_pool", "concatenate"), residual: bool = True) -> Parts:
    """The parts of a graph. at: the key operators, "max_pool", "concatenate" or names of operators behind which to cut.

    residual: additions of branches are key operators too. Raises ArgumentError for a name that is no operator of the graph or
    a key operator, and for a graph without nodes.
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"split: it takes a Graph, not {type_in_words(graph)}")
    at = (at,) if isinstance(at, str) else at
    if not isinstance(at, (list, tuple)) or not all(isinstance(name, str) for name in at):
        raise ArgumentTypeError(f"split: at names operators, not {type_in_words(at)}", hint='at=("max_pool", "concatenate")')
    if not isinstance(residual, bool):
        raise ArgumentTypeError(f"split: residual is True or False, not {type_in_words(residual)}")
    unknown = [name for name in at if name not in ("max_pool", "concatenate") and
               name not in {node.operator for node in graph.nodes}]
    if unknown:
        raise ArgumentError(f"split: there is no operator {unknown[0]!r} in {graph.name}",
                            hint=f"its operators: {', '.join(sorted({node.operator for node in graph.nodes}))}")
    if not graph.nodes:
        raise ArgumentError(f"split: {graph.name} has no nodes")
    keys = _Keys(graph, at, residual)
    labels = _labels(graph, keys)
    groups: dict[int, list[Node]] = {}
    for node in graph.nodes:
        groups.setdefault(labels[node], []).append(node)
    return Parts(graph, [_part(graph, f"part{number}", nodes, _kind_of(nodes, keys))
                         for number, nodes in enumerate(groups.values())])


class _Keys:
    """Where a graph is cut: `ends`, nodes behind which a part ends; `joins`, nodes that begin one."""

    def __init__(self, graph: Graph, at: Sequence[str], residual: bool) -> None:
        joining = {"concatenate"} & set(at) | set(_ADDITIONS if residual else ())
        dominator = _dominators(graph)
        self.joins: set[Node] = set()
        self.ends: set[Node] = {node for node in graph.nodes if node.operator in at and node.operator not in joining}
        within: set[Node] = set()
        self.block: dict[Node, str] = {}  # of nodes in branches, and of those that join them; the innermost
        for node in graph.nodes:
            before = _producers(node)
            if node.operator in joining and len(before) > 1:
                self.joins.add(node)
                fork = dominator[node]
                if fork is not None:
                    self.ends.add(fork)
                branches = _between(fork, node)
                within |= branches
                block = "inception" if node.operator == "concatenate" else "residual"
                self.block = dict.fromkeys([*branches, node], block) | self.block
        if "max_pool" in at:
            self.ends |= {node for node in graph.nodes if _is_max_pool(node) and node not in within}


def _kind_of(nodes: Sequence[Node], keys: _Keys) -> str:
    """The kind of a part: of the block that its first node is in, else by what it computes."""
    if nodes[0] in keys.block:
        return keys.block[nodes[0]]
    if any("conv" in node.operator for node in nodes):
        return "conv"
    return "fc" if any(costs_of(node).multiply_adds for node in nodes) else "other"


def _is_max_pool(node: Node) -> bool:
    return node.operator in _POOLS and node.arguments.get("pool_type") == "max"


def _producers(node: Node) -> list[Node]:
    """The nodes whose results a node reads, each once."""
    return list(dict.fromkeys([value.node for value in node.inputs if value.node is not None]))


def _dominators(graph: Graph) -> dict[Node, Node | None]:
    """For each node the nearest one through which all ways from the inputs to it lead; None: there is none."""
    near: dict[Node, Node | None] = {}
    depth: dict[Node | None, int] = {None: 0}
    for node in graph.nodes:
        from_input = any(value.node is None and not value.is_constant for value in node.inputs)
        common: Node | None = None
        ways: list[Node | None] = [*([None] if from_input else []), *_producers(node)]
        for at, way in enumerate(ways):
            common = way if at == 0 else _meeting(common, way, near, depth)
        near[node], depth[node] = common, depth[common] + 1
    return near


def _meeting(one: Node | None, other: Node | None, near: dict[Node, Node | None], depth: dict[Node | None, int]) -> Node | None:
    while one is not other:
        if depth[one] < depth[other]:
            one, other = other, one
        assert one is not None
        one = near[one]
    return one


def _between(fork: Node | None, join: Node) -> set[Node]:
    """The nodes of the branches from a node to the one in which they meet."""
    found: set[Node] = set()
    stack = _producers(join)
    while stack:
        node = stack.pop()
        if node is not fork and node not in found:
            found.add(node)
            stack += _producers(node)
    return found


def _labels(graph: Graph, keys: _Keys) -> dict[Node, int]:
    """The number of the part of each node, from the first on."""
    labels: dict[Node, int] = {}
    numbers = itertools.count()
    for node in graph.nodes:
        before = _producers(node)
        parts = {labels[other] for other in before}
        begins = node in keys.joins or len(parts) != 1 or any(other in keys.ends for other in before)
        labels[node] = next(numbers) if begins else parts.pop()
    return labels


def _part(graph: Graph, name: str, nodes: Sequence[Node], kind: str) -> Part:
    inside = set(nodes)
    read = tuple(dict.fromkeys([value for node in nodes for value in node.inputs
                                if not value.is_constant and value.node not in inside]))
    returned = tuple([out for node in nodes for out in node.outputs
                      if out in graph.outputs or any(reader not in inside for reader in graph.users(out))])
    replaced = {value: Value(value.name, value.spec) for value in read}
    arguments = [replaced[value] for value in read]
    for node in nodes:
        present = with_arguments(node, {key: with_values(argument, replaced) for key, argument in node.arguments.items()})
        replaced |= zip(node.outputs, present.outputs)
    whole = Graph(arguments, [replaced.get(value, value) for value in returned], name)
    return Part(name, tuple(nodes), read, returned, whole, kind)
