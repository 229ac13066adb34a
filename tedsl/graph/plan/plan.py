"""The memory plan of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tedsl.errors import GraphError
from tedsl.graph.graph import Graph
from tedsl.graph.plan.in_place import may_overwrite
from tedsl.graph.plan.offsets import Range, aligned, least_bytes, place
from tedsl.graph.plan.ranges import Memory, first_of, memories, steps_of
from tedsl.graph.value import Node, Value
from tedsl.record import record

if TYPE_CHECKING:
    from tedsl.display.markup import Markup

CPU = "cpu"
Overwrites: TypeAlias = tuple[tuple[int, int], ...]  # the number of a node, and of the operand over which it writes


@record(eq=False)
class Block:
    """Memory in an arena from step `begin` to step `end`. values: what stands there, one after the other, as views, or as
    parts: each with the byte of the block at which it begins.
    """

    values: Mapping[Value, int]
    offset: int
    size: int
    begin: int
    end: int
    device: str = CPU

    @property
    def first(self) -> Value:
        """The value that was there first, of those at the beginning."""
        return first_of(self.values)


@record(eq=False)
class MemoryPlan:
    """Where the values of a graph stand while it runs.

    steps: the nodes that compute something, as they run. blocks: in the order of their first steps. sizes: the bytes of the
    arena of each device. least: no plan needs less. separate: with memory of its own for each result of a node.
    overwritten: nodes that write their result over an operand. order: which order of placing gave the offsets.
    """

    name: str
    steps: tuple[Node, ...]
    blocks: tuple[Block, ...]
    memories: tuple[Memory, ...]
    sizes: Mapping[str, int]
    least: Mapping[str, int]
    separate: int
    overwritten: Mapping[Node, Value]
    order: str

    @property
    def size(self) -> int:
        """The bytes of all arenas together."""
        return sum(self.sizes.values())

    @cached_property
    def in_use(self) -> tuple[int, ...]:
        """The bytes in use at each step."""
        return tuple([sum(aligned(block.size) for block in self.blocks if block.begin <= step <= block.end)
                      for step in range(len(self.steps))])

    def __str__(self) -> str:
        head = (f"memory of {self.name}: {_megabytes(self.size)} for {len(self.blocks)} blocks, placed {self.order}\n"
                f"{_megabytes(sum(self.least.values()))} are in use at one time, {_megabytes(self.separate)} would be needed "
                "without sharing")
        several = len(self.sizes) > 1
        rows = [("offset", "bytes", "steps", "values"), *[
            (f"{block.device} " * several + str(block.offset), str(block.size), f"{block.begin}-{block.end}",
             ", ".join([f"{value.name} {value.spec}{f' at {begin}' if begin else ''}"
                        for value, begin in block.values.items()])) for block in self.blocks]]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join([*[cell.rjust(width) for cell, width in zip(row[:3], widths)], row[3]]) for row in rows]
        return "\n".join([head, *lines])

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        """Memory over time: steps to the right, offsets upwards, a box for each block."""
        return str(self._picture())

    def _repr_html_(self) -> str:
        from tedsl.display.page import folded, fragment

        return fragment(f"Memory of {self.name}: {_megabytes(self.size)}", self._picture(), folded("Blocks", str(self)))

    def _picture(self) -> Markup:
        from tedsl.display.memory import Box, memory_svg

        at, base = {}, 0
        for device, size in self.sizes.items():
            at[device] = base
            base += size
        boxes = [Box(block.begin, block.end, at[block.device] + block.offset, block.size,
                     f"{block.first.name} {block.first.spec}: {block.size} bytes at {block.offset}, "
                     f"steps {block.begin} to {block.end}") for block in self.blocks]
        return memory_svg(boxes, self.in_use, base, [node.name or node.operator for node in self.steps])


def plan(graph: Graph, *, in_place: bool | Overwrites = True, device_of: Callable[[Value], str] | None = None) -> MemoryPlan:
    """The plan of a graph: offsets for what is neither input, constant nor output, in an arena for each device.

    in_place: results of element-wise nodes may be written over operands that nothing reads later; or which may, as
    `overwrites` lists them. device_of: the device on which a value is; by default all are on one.
    Raises GraphError for a graph whose extents are not all numbers.
    """
    symbolic = [value for node in graph.nodes for value in node.outputs if not value.spec.is_static]
    if symbolic:
        raise GraphError(f"plan: {symbolic[0].name} of {graph.name} is {symbolic[0].spec}, whose size is not known",
                         hint="give the extents first: graph.with_inputs(g, [Spec(...), ...])")
    where = device_of or (lambda value: CPU)
    found = memories(graph, _overwriting(graph, in_place, where))
    in_arena = [memory for memory in found if memory.home == "arena" and memory.size]
    blocks: dict[int, Block] = {}
    sizes, least, orders = {}, {}, []
    for device in dict.fromkeys([where(memory.first) for memory in in_arena]):
        here = [memory for memory in in_arena if where(memory.first) == device]
        ranges = [Range(memory.size, memory.begin, memory.end) for memory in here]
        made = place(ranges)
        sizes[device], least[device] = made.size, least_bytes(ranges)
        orders.append(made.order)
        blocks |= {id(memory): Block(memory.values, offset, memory.size, memory.begin, memory.end, device)
                   for memory, offset in zip(here, made.offsets)}
    return MemoryPlan(graph.name, steps_of(graph), tuple([blocks[id(memory)] for memory in in_arena]), tuple(found), sizes,
                      least, _separate(found), dict(pair for memory in found for pair in memory.over),
                      " and ".join(dict.fromkeys(orders)) or "nowhere")


def overwrites(graph: Graph) -> Overwrites:
    """Which nodes write their results over which operands, by their numbers; also of a graph whose extents are not known."""
    number = {node: at for at, node in enumerate(graph.nodes)}
    return tuple([(number[node], node.inputs.index(value))
                  for memory in memories(graph, may_overwrite) for node, value in memory.over])


def _overwriting(graph: Graph, in_place: bool | Overwrites, where: Callable[[Value], str]) -> Callable[[Node, Value], bool]:
    listed = None if isinstance(in_place, bool) else \
        {(graph.nodes[node], graph.nodes[node].inputs[operand]) for node, operand in in_place}

    def allowed(node: Node, value: Value) -> bool:
        if not in_place or where(node.outputs[0]) != where(value):
            return False
        return may_overwrite(node, value) if listed is None else (node, value) in listed

    return allowed


def _separate(found: Sequence[Memory]) -> int:
    """The bytes of what is in the arena, if no result is written over an operand."""
    return sum(aligned(memory.size) * (1 + len(memory.over)) for memory in found if memory.home == "arena")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 10_000 else f"{size} bytes"
