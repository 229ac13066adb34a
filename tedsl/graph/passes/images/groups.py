"""by_groups: layers run for groups of images, one after the other, where a model says that less comes from memory.

    y = f(x)                            a, b = split(x, 2)
    z = g(y)                ──►         y = concatenate(f(a), f(b))             parts and joins are no steps
                                        z = g(y)                                weights of g are read once

The layers of a segment run for one group after the other, and those of the next segment when all are done. The same sums are
made of the same terms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tedsl.errors import GraphError, TedslError
from tedsl.graph.apply import apply
from tedsl.graph.graph import Graph
from tedsl.graph.passes.images.alone import treats_images_alone
from tedsl.graph.passes.images.number import OtherNumber
from tedsl.graph.passes.images.traffic import Layer, Segment, Stage, Traffic
from tedsl.graph.plan.offsets import ALIGNMENT
from tedsl.graph.plan.views import is_view
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Spec, Value, with_values
from tedsl.target.current import as_target


def by_groups(graph: Graph) -> Graph:
    """The graph with layers for groups of images; the same object if all images at once take the least, if it has not one
    number of images, or if extents are not known.
    """
    return in_groups(graph, segments_of(graph))


def segments_of(graph: Graph) -> tuple[Segment, ...]:
    """The segments of the graph whose layers run for groups of images, by the caches of the current target; none if all images
    at once take the least.
    """
    count = _number_of_images(graph)
    if count < 2:
        return ()
    stages, machine = _Stages(graph, count), as_target(None).machine
    if not stages.found:
        return ()
    layers = [stages.layers(nodes) for nodes in stages.found]
    segments = Traffic([Stage(one, True) for one in layers], count, machine).segments()
    if _are_groups(segments, count):  # worth a proof
        proved = [Stage(one, stages.are_alone(nodes)) for one, nodes in zip(layers, stages.found)]
        segments = Traffic(proved, count, machine).segments()
    return tuple(segments) if _are_groups(segments, count) else ()


def in_groups(graph: Graph, segments: Sequence[Segment]) -> Graph:
    """The graph with layers for the groups of `segments`, which `segments_of` has found for it; the same object for none, or
    if an operator has the number of images in its arguments. Raises GraphError for segments of another graph.
    """
    if not segments:
        return graph
    stages = _Stages(graph, _number_of_images(graph))
    ends = [0, *[segment.end for segment in segments]]
    if [segment.begin for segment in segments] != ends[:-1] or ends[-1] != len(stages.found) or \
            any(segment.size < 1 or stages.count % segment.size for segment in segments):
        raise GraphError(f"{graph.name} has {len(stages.found)} stages of {stages.count} images, and no groups {segments}")
    try:
        return _Grouping(graph, stages, segments).made()
    except TedslError:
        return graph


def _number_of_images(graph: Graph) -> int:
    """The first extent of all inputs; 1 if they have not one, or if extents are not known."""
    counts = {value.shape[0] for value in graph.inputs if len(value.shape) > 1}
    count = counts.pop() if len(counts) == 1 else 1
    values = (*graph.inputs, *[out for node in graph.nodes for out in node.outputs])
    return count if isinstance(count, int) and all(value.spec.is_static for value in values) else 1


def _are_groups(segments: Sequence[Segment], count: int) -> bool:
    return any(segment.size < count for segment in segments)


class _Stages:
    """found: the nodes of stages. images: the values that have images."""

    def __init__(self, graph: Graph, count: int) -> None:
        self.graph, self.count = graph, count
        fixed: set[Node] = set()  # computed of constants alone
        for node in graph.nodes:
            if all(value.is_constant or value.node in fixed for value in node.inputs):
                fixed.add(node)
        self.nodes = [node for node in graph.nodes if node not in fixed]
        self.images = {value for value in (*graph.inputs, *[out for node in self.nodes for out in node.outputs])
                       if value.shape[:1] == (count,)}
        self.found = self._cut()

    def _cut(self) -> list[list[Node]]:
        """Stages end where one value is read later, besides inputs, which has images that begin at cache lines."""
        last = {value: at for at, node in enumerate(self.nodes) for value in node.inputs}
        steps = [at for at, node in enumerate(self.nodes) if not is_view(node)]
        if not steps:
            return []
        stages, live = list[list[Node]]([[]]), set[Value]()
        for at, node in enumerate(self.nodes):
            stages[-1].append(node)
            live = {value for value in (*live, *node.outputs) if last.get(value, 0) > at}
            ends = len(live) == 1 and live <= self.images and self._at_lines(live)
            if ends and at < steps[-1] and not all(map(is_view, stages[-1])):
                stages.append([])
        return stages

    def _at_lines(self, values: Collection[Value]) -> bool:
        return all(value.spec.bytes // self.count % ALIGNMENT == 0 for value in values)

    def layers(self, nodes: Sequence[Node]) -> tuple[Layer, ...]:
        return tuple([self._layer(node) for node in nodes if not is_view(node)])

    def are_alone(self, nodes: Sequence[Node]) -> bool:
        """Whether each node treats images alone, and those that the caller gives and gets begin at cache lines."""
        ends = {value for node in nodes for value in (*node.inputs, *node.outputs)}.intersection(
            (*self.graph.inputs, *self.graph.outputs))
        return self._at_lines(ends) and all(treats_images_alone(node, self.images, self.count) for node in nodes)

    def _layer(self, node: Node) -> Layer:
        reads = dict.fromkeys(node.inputs)
        images = [value for value in reads if value in self.images]
        return Layer(tuple([value for value in images if not value.is_input]), node.outputs,
                     sum([value.spec.bytes for value in reads if value not in self.images]),
                     sum([value.spec.bytes for value in images if value.is_input]) / self.count)


class _Grouping:
    """Makes the graph. groups: what became of values with images, by the images in a group; plain: of others."""

    def __init__(self, graph: Graph, stages: _Stages, segments: Sequence[Segment]) -> None:
        self.graph, self.count, self.stages, self.segments = graph, stages.count, stages, segments
        self.groups: dict[Value, dict[int, list[Value]]] = {
            value: {self.count: [value]} for value in graph.inputs if value in stages.images}
        self.plain: dict[Value, Value] = {}
        self.number = OtherNumber(self.count)

    def made(self) -> Graph:
        for segment in self.segments:
            nodes = [node for stage in self.stages.found[segment.begin:segment.end] for node in stage]
            for node in nodes:
                self._add(node, segment.size)
            for value in self._read_later(nodes):
                self.groups[value] = {self.count: self._operands(value, self.count)}
        return with_outputs(self.graph, [self._operands(value, self.count)[0] for value in self.graph.outputs])

    def _read_later(self, nodes: Sequence[Node]) -> list[Value]:
        """What nodes leave of images for others."""
        inside = set(nodes)
        return [value for node in nodes for value in node.outputs if value in self.stages.images and
                (value in self.graph.outputs or not inside.issuperset(self.graph.users(value)))]

    def _add(self, node: Node, size: int) -> None:
        """Calls the operator of a node for each group of `size` images."""
        operands = {value: self._operands(value, size) for value in dict.fromkeys(node.inputs)}
        first = self._called(node, {value: groups[0] for value, groups in operands.items()}, size,
                             node.name or f"{node.operator.rpartition('.')[2]}_{self.graph.nodes.index(node)}")
        nodes = [first]
        for at in range(1, self.count // size):
            moved = {groups[0]: groups[at] for groups in operands.values()}
            arguments = {name: with_values(given, moved) for name, given in first.arguments.items()}
            specs = tuple([out.spec for out in first.outputs])
            nodes.append(Node(first.operator, arguments, specs, first.name, first.function))
        for out, *made_of in zip(node.outputs, *[one.outputs for one in nodes]):
            if out in self.stages.images:
                self.groups[out] = {size: made_of}
            else:
                (self.plain[out],) = made_of

    def _operands(self, value: Value, size: int) -> list[Value]:
        """What stands for a value, for each group of `size` images."""
        if value not in self.stages.images:
            return [self.plain.get(value, value)] * (self.count // size)
        known = self.groups[value]
        if size not in known:
            parts = next(iter(known.values()))
            known[size] = apply("split", parts[0], self.count // size, 0) if len(parts) == 1 else \
                [apply("concatenate", parts, 0)]
        return known[size]

    def _called(self, node: Node, operands: Mapping[Value, Value], size: int, name: str) -> Node:
        """The call of a node with `operands` of `size` images. Raises GraphError if its results are not those of `size` images.
        """
        result = self.number.call(node, operands, size, name)
        for out, of in zip(result.outputs, node.outputs):
            if of in self.stages.images and out.spec != Spec((size, *of.shape[1:]), of.dtype):
                raise GraphError(f"{of.name} of {size} images is {out.spec}")
        return result
