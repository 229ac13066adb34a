"""Fusion: which stages of a graph of operators become loop nests, which are computed at their end, and which are inlined.

x ─► relu ─► sum ─► * 2 ─► exp          one kernel: anchor sum, tail exp; relu and * 2 are inlined
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tedsl import te
from tedsl.target import Target
from topi.kinds import PanelsOp
from topi.schedules.formulas import Formula, extent_of, formula_of, variables_in
from topi.schedules.kernel import Kernel, as_it_is, whole_of

# Arithmetic that is worth doing again rather than storing and loading the value.
_CHEAP = 12
_OFTEN = 100


@dataclass
class Graph:
    """The operations of a schedule, producers first, and the readers of each."""

    ops: list[Any]
    formulas: dict[Any, Formula]
    readers: dict[Any, list[Any]]
    outputs: set[Any]
    members: set[Any]  # stages of families with several: their schedules place them

    def is_plain(self, op: Any) -> bool:
        """Whether `op` maps elements to elements by one formula, so that it can be inlined or end a kernel."""
        return type(op) is te.ComputeOp and not op.reduce_axis and op.num_outputs == 1 and op not in self.members


def kernels(s: te.Schedule, anchors: Callable[[Any], bool], target: Target,
            in_copies: Callable[[Any], tuple[Any, ...]] = lambda op: ()) -> list[Kernel]:
    """The kernels of a fresh schedule, producers first; operations that belong to no kernel are inlined.

    anchors: whether the table has a schedule for the record of an operation. in_copies: the operations that the schedule of
    one computes while it copies what it reads: they are inlined, where nothing else reads them.
    """
    graph = graph_of(s)
    tails = _tails(graph, anchors)
    ends = set(tails.values())
    costs: dict[Any, int] = {}
    copied = {op for reader in graph.ops for op in in_copies(reader) if graph.is_plain(op) and graph.readers[op] == [reader]}
    anchored, inlines = [], False
    for op in graph.ops:
        if isinstance(op, te.PlaceholderOp) or op in graph.members:
            continue
        if graph.is_plain(op) and not anchors(op):
            if op in ends:
                continue
            if op in copied - graph.outputs or _inlines(op, graph, costs):
                s[op].compute_inline()
                inlines = True
                continue
        anchored.append((op, tails.get(op, op)))
    order, whole = {op: at for at, op in enumerate(graph.ops)}, whole_of(s) if inlines else as_it_is
    return [Kernel(s, anchor, tail, target, whole=whole) for anchor, tail in sorted(anchored, key=lambda pair: order[pair[1]])]


def graph_of(s: te.Schedule) -> Graph:
    """The graph of a schedule without directives."""
    ops = [stage.op for stage in s.stages]
    readers: dict[Any, list[Any]] = {op: [] for op in ops}
    for op in ops:
        for source in dict.fromkeys(tensor.op for tensor in op.input_tensors):
            readers[source].append(op)
    members = {tensor.op for op in ops for tensor in getattr(getattr(op, "info", None), "stages", ())}
    formulas = {op: formula_of(op.body) for op in ops if type(op) is te.ComputeOp}
    return Graph(ops, formulas, readers, set(s.outputs), members)


# --- the ends of kernels ----------------------------------------------------------------------------------------------

def _tails(graph: Graph, anchors: Callable[[Any], bool]) -> dict[Any, Any]:
    """The tail of each anchor: the last element-wise operation that can be computed in its loops."""
    tails: dict[Any, Any] = {}
    taken: set[Any] = set()
    for op in reversed(graph.ops):
        if type(op) is not te.ComputeOp or op in graph.members or (graph.is_plain(op) and not anchors(op)):
            continue
        end, path = op, [op]
        while end not in graph.outputs and len(graph.readers[end]) == 1:
            reader = graph.readers[end][0]
            if reader in taken or anchors(reader) or not graph.is_plain(reader) or not _is_pointwise(reader, end, graph):
                break
            end = reader
            path.append(end)
        if end is op or op.num_outputs == 1:
            tails[op] = end
            taken.update(path)
    return tails


def _is_pointwise(reader: Any, op: Any, graph: Graph) -> bool:
    """Whether `reader` reads `op` at its own element alone."""
    own = [axis.var for axis in reader.axis]
    return all(len(load.indices) == len(own) and all(a is b for a, b in zip(load.indices, own))
               for load in graph.formulas[reader].reads_of(op))


# --- what is inlined --------------------------------------------------------------------------------------------------

def _inlines(op: Any, graph: Graph, costs: dict[Any, int]) -> bool:
    """Whether `op` is inlined into its readers: they accept it, and computing it once for each read is cheap enough.

    Panels of weights are stored, and read as they lie.
    """
    formula = graph.formulas[op]
    costs[op] = formula.cost + sum(costs.get(load.producer.op, 0) for load in formula.loads)
    readers = graph.readers[op]
    if op in graph.outputs or any(type(reader) is not te.ComputeOp or isinstance(reader.info, PanelsOp) for reader in readers):
        costs[op] = 0
        return False
    if isinstance(op.info, PanelsOp):
        return True
    times = sum(_times_read(op, reader, graph) for reader in readers)
    if times > 1 and costs[op] * times > _CHEAP:
        costs[op] = 0
        return False
    return True


def _times_read(op: Any, reader: Any, graph: Graph) -> int:
    """The number of times `reader` computes an inlined element of `op`, judged by its formula; _OFTEN stands for many."""
    axes = {axis.var for axis in (*reader.axis, *reader.reduce_axis) if extent_of(axis) != 1}
    times, seen = 0, set()
    for load in graph.formulas[reader].reads_of(op):
        if load.indices in seen:
            continue
        seen.add(load.indices)
        used = {var for index in load.indices for var in variables_in(index)}
        window = bool(reader.reduce_axis) and len(used) > len(load.indices)
        times += _OFTEN if window or axes - used else 1
    return times
