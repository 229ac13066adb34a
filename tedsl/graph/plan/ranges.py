"""Which values of a graph share memory, and when it is in use.

Nodes are steps, numbered as they run; views are none (`views`). A result that is written over an operand has the operand's
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tedsl.graph.graph import Graph
from tedsl.graph.plan.views import begins_of, is_join, views_of
from tedsl.graph.value import Node, Value


def steps_of(graph: Graph) -> tuple[Node, ...]:
    """The nodes that compute something, in the order in which they run."""
    views = views_of(graph)
    return tuple([node for node in graph.nodes if node not in views])


@dataclass(eq=False)
class Memory:
    """Values that share memory; when it is in use; where it stands.

    values: each with the byte at which it begins. whole: one that is as large as the memory. begin, end: steps. home: "arena",
    "input", "constant" or "output": what the caller gives is not in the arena. over: the pairs of a node and the operand over
    which it writes its result.
    """

    values: dict[Value, int]
    whole: Value
    begin: int
    end: int
    home: str = "arena"
    over: list[tuple[Node, Value]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """In bytes."""
        return self.whole.spec.bytes

    @property
    def has_parts(self) -> bool:
        """Whether values begin inside of it."""
        return any(self.values.values())

    @property
    def first(self) -> Value:
        """The value that was there first, of those at the beginning."""
        return first_of(self.values)


def first_of(values: Mapping[Value, int]) -> Value:
    """The first of `values` that begins at byte 0."""
    return next(value for value, begin in values.items() if not begin)


def memories(graph: Graph, may_overwrite: Callable[[Node, Value], bool]) -> list[Memory]:
    """The memory of all values of a graph whose extents are known, in the order in which it is first used.

    may_overwrite: whether a node may write its result over an operand that nothing reads later.
    """
    return sorted(_Sharing(graph, may_overwrite).found, key=lambda memory: memory.begin)


class _Sharing:
    def __init__(self, graph: Graph, may_overwrite: Callable[[Node, Value], bool]) -> None:
        self.graph, self.may_overwrite = graph, may_overwrite
        self.views = views_of(graph)
        self.found: dict[Memory, None] = {}
        self.of: dict[Value, Memory] = {}
        self.last = self._last_reads()
        for value in (*graph.inputs, *graph.constants):
            self._new(value, 0, "input" if value.is_input else "constant")
        step = 0
        for node in graph.nodes:
            if node in self.views:
                self._view(node)
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
        steps = [node for node in self.graph.nodes if node not in self.views]
        number = {node: at for at, node in enumerate(steps)}
        last = dict.fromkeys(self.graph.outputs, len(number))
        for node in reversed(self.graph.nodes):
            when = max([last.get(out, 0) for out in node.outputs]) if node in self.views else number[node]
            for value in node.inputs:
                last[value] = max(last.get(value, 0), when)
        return last

    def _new(self, value: Value, step: int, home: str = "arena") -> None:
        self.of[value] = Memory({value: 0}, value, step, step, home)
        self.found[self.of[value]] = None

    def _put(self, value: Value, memory: Memory, offset: int) -> None:
        memory.values[value] = offset
        self.of[value] = memory

    def _view(self, node: Node) -> None:
        if is_join(node):
            self._join(node)
            return
        memory = self.of[node.inputs[0]]
        begin = memory.values[node.inputs[0]]
        for value, offset in begins_of(node.outputs).items():
            self._put(value, memory, begin + offset)

    def _join(self, node: Node) -> None:
        """Makes the memories of the operands parts of that of the result."""
        whole = node.outputs[0]
        before = [self.of[value] for value in node.inputs]
        joined = Memory({whole: 0}, whole, min([memory.begin for memory in before]), 0)
        self.of[whole] = joined
        for memory, offset in zip(before, begins_of(node.inputs).values()):
            for value, begin in memory.values.items():
                self._put(value, joined, offset + begin)
            joined.over += memory.over
            del self.found[memory]
        self.found[joined] = None

    def _results(self, node: Node, step: int) -> None:
        for operand in dict.fromkeys(node.inputs):
            memory = self.of[operand]
            alone = sum(self.of[value] is memory for value in set(node.inputs)) == 1  # no view of it is read too
            if alone and memory.home == "arena" and not memory.has_parts and \
                    all(self.last.get(value, 0) <= step for value in memory.values) and self.may_overwrite(node, operand):
                memory.over.append((node, operand))
                self._put(node.outputs[0], memory, 0)
                return
        for value in node.outputs:
            self._new(value, step)
