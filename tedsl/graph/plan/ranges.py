"""Which values of a graph share memory, and when it is in use.

Nodes are steps, numbered as they run. A view (reshape, squeeze, ...) is no step: its result is its operand under another shape.
A result that is written over an operand has the operand's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Value

# Operators whose result has the elements of the only operand in the same order.
VIEWS = frozenset(("reshape", "squeeze", "expand_dims", "nn.flatten", "nn.batch_flatten"))


def is_view(node: Node) -> bool:
    """Whether a node only gives its operand another shape."""
    if node.function is not None:
        inside = node.function
        return (inside.compiler is None and len(inside.inputs) == len(inside.outputs) == 1 and not inside.constants
                and all(map(is_view, inside.nodes)))
    return node.operator in VIEWS and len(node.inputs) == len(node.outputs) == 1 and \
        node.inputs[0].dtype is node.outputs[0].dtype


def steps_of(graph: Graph) -> tuple[Node, ...]:
    """The nodes that compute something, in the order in which they run."""
    return tuple([node for node in graph.nodes if not is_view(node)])


@dataclass
class Memory:
    """Values that share memory, the first of which is the one that was there first; when it is in use; where it stands.

    begin, end: steps. home: "arena", "input", "constant" or "output": what the caller gives is not in the arena.
    over: the pairs of a node and the operand over which it writes its result.
    """

    values: list[Value]
    begin: int
    end: int
    home: str = "arena"
    over: list[tuple[Node, Value]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """In bytes."""
        return self.values[0].spec.bytes


def memories(graph: Graph, may_overwrite: Callable[[Node, Value], bool]) -> list[Memory]:
    """The memory of all values of a graph whose extents are known.

    may_overwrite: whether a node may write its result over an operand that nothing reads later.
    """
    return _Sharing(graph, may_overwrite).found


class _Sharing:
    def __init__(self, graph: Graph, may_overwrite: Callable[[Node, Value], bool]) -> None:
        self.graph, self.may_overwrite = graph, may_overwrite
        self.found: list[Memory] = []
        self.of: dict[Value, Memory] = {}
        self.last = self._last_reads()
        for value in (*graph.inputs, *graph.constants):
            self._new(value, 0, "input" if value.is_input else "constant")
        step = 0
        for node in graph.nodes:
            if is_view(node):
                self._join(node.outputs[0], self.of[node.inputs[0]])
                continue
            self._results(node, step)
            step += 1
        for memory in self.found:
            memory.end = max(memory.begin, *[self.last.get(value, 0) for value in memory.values])
        for value in graph.outputs:
            if self.of[value].home == "arena":
                self.of[value].home = "output"

    def _last_reads(self) -> dict[Value, int]:
        """The last step that reads each value, through views too; that of outputs is after all steps."""
        number = {node: at for at, node in enumerate(steps_of(self.graph))}
        last = dict.fromkeys(self.graph.outputs, len(number))
        for node in reversed(self.graph.nodes):
            when = last.get(node.outputs[0], 0) if is_view(node) else number[node]
            for value in node.inputs:
                last[value] = max(last.get(value, 0), when)
        return last

    def _new(self, value: Value, step: int, home: str = "arena") -> None:
        self.of[value] = Memory([value], step, step, home)
        self.found.append(self.of[value])

    def _join(self, value: Value, memory: Memory) -> None:
        memory.values.append(value)
        self.of[value] = memory

    def _results(self, node: Node, step: int) -> None:
        for operand in dict.fromkeys(node.inputs):
            memory = self.of[operand]
            alone = sum(self.of[value] is memory for value in set(node.inputs)) == 1  # no view of it is read too
            if alone and memory.home == "arena" and all(self.last.get(value, 0) <= step for value in memory.values) and \
                    self.may_overwrite(node, operand):
                memory.over.append((node, operand))
                self._join(node.outputs[0], memory)
                return
        for value in node.outputs:
            self._new(value, step)
