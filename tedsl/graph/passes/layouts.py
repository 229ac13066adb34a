"""layouts: regions of image operators in the layout, NCHW or NHWC, in which they take less time by a model.

    t = transpose(x, (0, 3, 1, 2))                          c = nn.conv2d(x, constant(w in HWIO), layout="NHWC")
    c = nn.conv2d(t, w)                         ──►         y = nn.relu(c)
    y = transpose(nn.relu(c), (0, 2, 3, 1))

A region is a set of convolutions of constants, pools, sums with biases, concatenations and element-wise nodes that read each
other; in the other layout transpositions around it disappear, or are added. The model counts multiply-adds. Direct convolutions
take as many in both layouts (0.7 to 1.0 of the time in NHWC, on a Zen 5 with AVX-512), but those of NCHW may go by winograd,
and depthwise ones take half of the time in NHWC, and so do those of 8-bit integers, or less: instructions add up products of
channels that follow each other.
Blocks of channels, NCHWc, are no candidate: convolutions pack what they read inside, in 0.59 to 0.82 of the time of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from tedsl.graph.apply import apply, made, with_arguments
from tedsl.graph.dimensions import expected_extent
from tedsl.graph.graph import Graph
from tedsl.graph.passes.kinds import Kind, kind_of
from tedsl.graph.passes.simplify import simplify
from tedsl.graph.passes.winograd import cost, tiles_for
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Value, constant, with_values
from tedsl.record import record

_ORDERS = {"NCHW": (0, 2, 3, 1), "NHWC": (0, 3, 1, 2)}  # the axes of the transposition from a layout to the other
_OTHER = {"NCHW": "NHWC", "NHWC": "NCHW"}
_WEIGHTS = {"NCHW": (2, 3, 1, 0), "NHWC": (3, 2, 0, 1)}  # from OIHW to HWIO, and back
_DEPTHWISE = {"nn.depthwise_conv2d_nchw": "NCHW", "nn.depthwise_conv2d_nhwc": "NHWC"}
_CONVOLUTIONS = ("nn.conv2d", *_DEPTHWISE)
_PER_CHANNEL = (2, 3, 0, 1)  # from CMHW to HWCM, and back
_POOLS = ("nn.pool2d", "nn.global_pool")
_CHANNELS = {1: "NCHW", 3: "NHWC", -1: "NHWC", None: "NCHW"}  # by the axis of the channels
_ANY = ""  # the layout of nodes that run in both
_MOVED = 40  # multiply-adds in the time in which an element is transposed: 0.15 to 1 ns, at 110 multiply-adds in one
# Multiply-adds in the time that a depthwise convolution takes for an element that it reads or writes: vectors along rows load
# some elements twice and need the border copied. On a Zen 5, 96 channels of 112 x 112 by 3 x 3, stride 2, take 154 us and 67.
_PER_ELEMENT = {"NCHW": 12.0, "NHWC": 6.0}
# Of the time of float32: 64 channels of 56 x 56 by 3 x 3 take 1.4 ms, of bytes 3 in NCHW, and in NHWC 0.1 by tiles, 0.5 by
# products of four bytes.
_OF_BYTES = {"NCHW": 2.0, "NHWC": 0.25}
_WORTH = 0.95  # of the time as it is: below, what the model neglects does not matter


@record(eq=False)
class _Region:
    """Nodes that read each other's results. layout: of those that have one."""

    nodes: frozenset[Node]
    layout: str


def layouts(graph: Graph) -> Graph:
    """The graph with each region in the layout in which the model says that it takes less time; else the same object."""
    if not any(node.operator in ("transpose", *_DEPTHWISE) or "NHWC" in node.arguments.values() or
               (node.operator == "nn.conv2d" and _is_of_bytes(node)) for node in graph.nodes):
        return graph  # NCHW that nothing transposes takes the least already
    turned = [region for region in _regions(graph) if _is_worth(graph, region)]
    return simplify(_Turning(graph, turned).made()) if turned else graph


# --- regions ----------------------------------------------------------------------------------------------------------

def _regions(graph: Graph) -> list[_Region]:
    """The regions with a convolution whose nodes have one layout."""
    layout = {node: found for node in graph.nodes if (found := _layout_of(node)) is not None}
    left, regions = dict.fromkeys(layout), []
    while left:
        stack, nodes = [next(iter(left))], dict[Node, None]()
        while stack:
            node = stack.pop()
            if node not in left:
                continue
            del left[node]
            nodes[node] = None
            stack += [*[value.node for value in node.inputs if value.node is not None], *graph.users(node.outputs[0])]
        said = {layout[node] for node in nodes} - {_ANY}
        if len(said) == 1 and any(node.operator in _CONVOLUTIONS for node in nodes):
            regions.append(_Region(frozenset(nodes), said.pop()))
    return regions


def _layout_of(node: Node) -> str | None:
    """The layout of a node that has a form in the other one; None if it has none."""
    if node.function is not None or len(node.outputs) != 1 or len(node.outputs[0].shape) != 4:
        return None
    given = node.arguments
    if node.operator == "nn.conv2d":
        known = given.get("layout") in (None, "NCHW", "NHWC") and not {"data_layout", "kernel_layout"} & given.keys()
        known = known and not isinstance(given.get("dilation"), str)
        return (given.get("layout") or "NCHW") if known and node.inputs[1].is_constant else None
    if node.operator in _DEPTHWISE:
        return _DEPTHWISE[node.operator] if node.inputs[1].is_constant else None
    if node.operator in _POOLS:
        layout = given.get("layout", "NCHW")
        return layout if layout in _OTHER else None
    if node.operator == "nn.pad":
        return _ANY
    if node.operator in ("nn.bias_add", "concatenate"):
        axis = given.get("axis", 1 if node.operator == "nn.bias_add" else 0)
        return _CHANNELS.get(axis) if isinstance(axis, int) else None
    plain = not {"axis", "axes", "layout"} & given.keys() and kind_of(node) <= Kind.BROADCAST
    return _ANY if plain and all(value.is_constant or len(value.shape) == 4 for value in node.inputs) else None


# --- the model --------------------------------------------------------------------------------------------------------

def _is_worth(graph: Graph, region: _Region) -> bool:
    convolutions = [node for node in region.nodes if node.operator in _CONVOLUTIONS]
    before = sum([_cost(node, region.layout, region.layout) for node in convolutions])
    after = sum([_cost(node, region.layout, _OTHER[region.layout]) for node in convolutions])
    for value in _read(region):
        if _is_transposition(value.node, _OTHER[region.layout]):
            before += _moved(value) if all(user in region.nodes for user in graph.users(value)) else 0
        else:
            after += _moved(value)
    for value in [node.outputs[0] for node in region.nodes]:
        outside = [user for user in graph.users(value) if user not in region.nodes]
        turning = [user for user in outside if _is_transposition(user, region.layout)]
        before += len(turning) * _moved(value)
        after += _moved(value) if len(turning) < len(outside) or value in graph.outputs else 0
    return after <= _WORTH * before


def _read(region: _Region) -> Iterable[Value]:
    """What a region reads of images from outside."""
    return dict.fromkeys([value for node in region.nodes for value in node.inputs
                          if value.node not in region.nodes and not value.is_constant and len(value.shape) == 4])


def _is_transposition(node: Node | None, layout: str) -> bool:
    """Whether a node gives an image of this layout in the other one."""
    return node is not None and node.operator == "transpose" and node.arguments.get("axes") == _ORDERS[layout]


def _cost(conv: Node, layout: str, other: str) -> float:
    """The multiply-adds of a convolution that is written in `layout`, in the layout `other`."""
    weights, result = _sizes(conv.inputs[1]), _sizes(conv.outputs[0])
    if conv.operator in _DEPTHWISE:
        return _PER_ELEMENT[other] * float(numpy.prod(_sizes(conv.inputs[0])) + numpy.prod(result))
    outputs, inputs, *window = weights if layout == "NCHW" else [weights[at] for at in _WEIGHTS["NHWC"]]
    batch, _, height, width = result if layout == "NCHW" else [result[at] for at in _ORDERS["NHWC"]]
    direct = float(batch * height * width * outputs * inputs * window[0] * window[1])
    if _is_of_bytes(conv):
        return direct * _OF_BYTES[other]
    plain = window == [3, 3] and all(conv.arguments.get(name) in (None, 1, (1, 1)) for name in ("strides", "dilation"))
    if other == "NHWC" or not plain or str(conv.inputs[1].dtype) != "float32":
        return direct
    size = tiles_for((batch, height, width), inputs, outputs)
    return direct if size is None else cost(size, (batch, height, width), inputs, outputs)


def _is_of_bytes(conv: Node) -> bool:
    return all(value.dtype.bits == 8 for value in conv.inputs[:2])


def _sizes(value: Value) -> list[int]:
    return [expected_extent(extent) for extent in value.shape]


def _moved(value: Value) -> float:
    return _MOVED * float(numpy.prod(_sizes(value)))


# --- the other layout -------------------------------------------------------------------------------------------------

class _Turning:
    """Makes the graph with regions in the other layout. plain: the values as they were; other: those of a layout in the other
    one. Where both are wanted, a transposition makes one of the other.
    """

    def __init__(self, graph: Graph, regions: list[_Region]) -> None:
        self.graph = graph
        self.layout = {node: region.layout for region in regions for node in region.nodes}
        self.plain: dict[Value, Value] = {}
        self.other: dict[tuple[Value, str], Value] = {}

    def made(self) -> Graph:
        for node in self.graph.nodes:
            if node in self.layout:
                self.other[node.outputs[0], self.layout[node]] = self._turned(node, self.layout[node])
            else:
                for value in node.inputs:
                    self._as_it_was(value)
                arguments = {name: with_values(given, self.plain) for name, given in node.arguments.items()}
                self.plain |= zip(node.outputs, with_arguments(node, arguments).outputs)
        return with_outputs(self.graph, [self._as_it_was(value) for value in self.graph.outputs])

    def _as_it_was(self, value: Value) -> Value:
        if value not in self.plain:
            layout = None if value.node is None else self.layout.get(value.node)
            self.plain[value] = value if layout is None else \
                apply("transpose", self.other[value, layout], _ORDERS[_OTHER[layout]])
        return self.plain[value]

    def _turned(self, node: Node, layout: str) -> Value:
        arguments: dict[str, Any] = dict(node.arguments)
        operator = node.operator
        if node.operator in ("nn.conv2d", *_POOLS):
            arguments["layout"] = _OTHER[layout]
        elif node.operator == "nn.pad":
            arguments |= {name: tuple([widths[axis] for axis in _ORDERS[layout]])
                          for name, widths in arguments.items() if name in ("pad_before", "pad_after") and widths is not None}
        elif node.operator in ("nn.bias_add", "concatenate"):
            arguments["axis"] = 3 if layout == "NCHW" else 1
        forms = {value: self._form(value, layout) for value in node.inputs}
        if node.operator in _CONVOLUTIONS:
            weights, order = node.inputs[1], _PER_CHANNEL if node.operator in _DEPTHWISE else _WEIGHTS[layout]
            forms[weights] = constant(weights.data.transpose(order), name=weights.name)
        elif node.operator == "nn.bias_add":
            del forms[node.inputs[1]]
        if operator in _DEPTHWISE:
            (operator,) = [other for other, said in _DEPTHWISE.items() if said != layout]
        return made(operator, {name: with_values(given, forms) for name, given in arguments.items()}).outputs[0]

    def _form(self, value: Value, layout: str) -> Value:
        """An operand in the other layout; a constant that is broadcast as one of four dimensions."""
        if value.is_constant:
            return value if value.shape == () else _constant(value, layout)
        if (value, layout) not in self.other:
            self.other[value, layout] = apply("transpose", self._as_it_was(value), _ORDERS[layout])
        return self.other[value, layout]


def _constant(value: Value, layout: str) -> Value:
    shape = (1,) * (4 - len(value.shape)) + value.data.shape
    return constant(value.data.reshape(shape).transpose(_ORDERS[layout]), name=value.name)


