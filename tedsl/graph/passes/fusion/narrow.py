"""Groups that end where their results have the fewest bits: what widens these is computed where it is read.

    conv2d ──► quantize ──► dequantize │ ──► add          becomes          conv2d ──► quantize │ ──► dequantize ──► add

The result between the two kernels has 8 bits instead of 32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl.graph.graph import Graph
from tedsl.graph.passes.kinds import Kind, kind_of_edge
from tedsl.graph.value import Node, Value

Group = tuple[Node, ...]
# Those that read an element some times at most, so that converting it costs less than the bytes that it saves: depthwise
# convolutions take 1.1 to 1.25 of the time, 0.7 with images beyond the second cache.
_FEW_READS = ("nn.depthwise_conv2d_nchw", "nn.depthwise_conv2d_nhwc", "nn.global_pool")


def ending_narrow(graph: Graph, groups: Sequence[Group], kinds: Mapping[Node, Kind], most: int) -> list[Group]:
    """The groups, with nodes that widen results moved to the only group that reads these, if it has room for them."""
    made = {group[-1]: group for group in groups}
    last = {node: group[-1] for group in groups for node in group}
    for group in groups:
        end = group[-1]
        tail = _widening(graph, made[end], kinds)
        readers = graph.users(end.outputs[0]) if tail else []
        hosts = {last[reader] for reader in readers}
        if len(hosts) != 1 or end.outputs[0] in graph.outputs or not all(_reads_few(reader, tail, kinds) for reader in readers):
            continue
        (host,) = hosts
        if len(tail) + len(made[host]) > most:
            continue
        kept = made.pop(end)[:-len(tail)]
        made[kept[-1]], made[host] = kept, (*tail, *made[host])
        last |= dict.fromkeys(kept, kept[-1]) | dict.fromkeys(tail, host)
    return list(made.values())


def _widening(graph: Graph, group: Group, kinds: Mapping[Node, Kind]) -> Group:
    """The element-wise nodes at the end of a group after the value of the fewest bits, each of which reads only the one before;
    none in a group of such nodes alone.
    """
    if all(kinds[node] <= Kind.BROADCAST for node in group):
        return ()
    found, bits, count = [group[-1]], group[-1].outputs[0].dtype.bits, 0
    while (value := _only_operand(graph, found[-1], kinds)) is not None and value.node in group:
        if value.dtype.bits < bits:
            bits, count = value.dtype.bits, len(found)
        assert value.node is not None
        found.append(value.node)
    tail = tuple(reversed(found[:count]))
    return tail if group[-count:] == tail else ()


def _only_operand(graph: Graph, node: Node, kinds: Mapping[Node, Kind]) -> Value | None:
    """What an element-wise node reads, if that is one value beside constants, which nothing else reads."""
    operands = [value for value in node.inputs if not value.is_constant]
    if kinds[node] > Kind.BROADCAST or len(operands) != 1 or operands[0].shape != node.outputs[0].shape or \
            operands[0] in graph.outputs:
        return None
    return operands[0] if len(graph.users(operands[0])) == 1 else None


def _reads_few(reader: Node, tail: Group, kinds: Mapping[Node, Kind]) -> bool:
    if reader.operator in _FEW_READS:
        return all(node.operator == "cast" for node in tail)
    return kind_of_edge(tail[-1].outputs[0], reader, kinds[reader]) <= Kind.BROADCAST
