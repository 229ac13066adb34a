"""Convolutions and products with constant weights, given these in a form that is prepared once.

    y = call(conv2d_relu, x, w)      ──►      p = nn.conv2d_pack_weights(w, ...)       computed before the first call
                                              y = call(conv2d_relu, x, p)              whose convolution reads p
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl import te
from tedsl.graph.apply import call, with_arguments
from tedsl.graph.formula import alone, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.passes.functions import Functions
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Value, with_values
from tedsl.record import record
from topi.kinds import ConvOp, MatmulOp

LAYERS = ("nn.conv2d", "nn.conv2d_nchw", "nn.dense", "nn.matmul")  # whose second argument is the weights


@record(eq=False)
class Layer:
    """A node of `function` that convolves with, or multiplies by, the input number `place` of it, which is a constant of the
    caller.

    info: the record that topi leaves of it.
    """

    function: Graph
    node: Node
    place: int
    info: ConvOp | MatmulOp


@record(eq=False)
class Prepared:
    """prepare: the other form of the weights. instead: the result of the node of a layer with weights of that form."""

    prepare: Callable[[Value], Value]
    instead: Callable[[Node, Value], Value]


Choice = Callable[[Layer], "Prepared | None"]


def with_prepared_weights(graph: Graph, choose: Choice) -> Graph:
    """The graph with layers of constant weights changed as `choose` says; the same object if it changes none."""
    functions, replaced = Functions(), dict[Value, Value]()
    changed = _Changed(choose)
    forms: dict[tuple[Callable[[Value], Value], Value], Value] = {}  # weights that several nodes read have one
    for node in graph.nodes:
        present = with_arguments(node, {name: with_values(given, replaced) for name, given in node.arguments.items()})
        made = _prepared(present, changed, functions, forms)
        replaced |= {old: new for old, new in zip(node.outputs, made.outputs) if old is not new}
    return with_outputs(graph, [replaced.get(value, value) for value in graph.outputs]) if changed.any else graph


def _prepared(node: Node, changed: _Changed, functions: Functions,
              forms: dict[tuple[Callable[[Value], Value], Value], Value]) -> Node:
    function = node.function if node.function is not None else alone(node) if node.operator in LAYERS else None
    if function is None or function.compiler is not None:
        return node
    operands = list(node.inputs) if node.function is not None else \
        [value for value in dict.fromkeys(node.inputs) if not (value.is_constant and value.shape == ())]
    fixed = tuple([at for at, value in enumerate(operands) if value.is_constant])
    new, prepared = changed.of(function, fixed, node.function is not None)
    if node.function is None and not prepared:
        return node
    for place, prepare in prepared.items():
        key = prepare, operands[place]
        if key not in forms:
            forms[key] = prepare(operands[place])
        operands[place] = forms[key]
    return call(functions.one(new), *operands)


class _Changed:
    """Graphs with layers changed, each graph once. any: whether any was."""

    def __init__(self, choose: Choice) -> None:
        self.choose, self.any = choose, False
        self.known: dict[tuple[Graph | str, tuple[int, ...]], tuple[Graph, dict[int, Callable[[Value], Value]]]] = {}

    def of(self, function: Graph, fixed: tuple[int, ...], shared: bool) -> tuple[Graph, dict[int, Callable[[Value], Value]]]:
        """The changed graph, and how the operands at some places are prepared. fixed: the places of constants."""
        key = (function if shared else str(function), fixed)
        if key not in self.known:
            self.known[key] = self._made(function, fixed)
        self.any = self.any or bool(self.known[key][1])
        return self.known[key]

    def _made(self, function: Graph, fixed: tuple[int, ...]) -> tuple[Graph, dict[int, Callable[[Value], Value]]]:
        prepared: dict[int, Callable[[Value], Value]] = {}
        for layer in _layers(function, fixed):
            choice = self.choose(layer)
            if choice is not None:
                function = _replaced(function, layer, choice)
                prepared[layer.place] = choice.prepare
                break  # the nodes of another are no longer there
        return function, prepared


def _layers(function: Graph, fixed: tuple[int, ...]) -> list[Layer]:
    nodes = {node: place for node in function.nodes if node.operator in LAYERS for place in fixed
             if node.inputs[1] is function.inputs[place] and len(function.users(node.inputs[1])) == 1}
    found = []
    for node, place in nodes.items():
        info = _info_of(node)
        if info is not None and all(value.spec.is_static for value in node.inputs[1:]):
            found.append(Layer(function, node, place, info))
    return found


def _info_of(node: Node) -> ConvOp | MatmulOp | None:
    """The record of the sums of a layer, which a bias or a conversion may follow."""
    op = formula_of(alone(node)).outputs[0].op
    while not isinstance(op.info, (ConvOp, MatmulOp)):
        if not isinstance(op.info, te.ElementwiseOp) or not op.input_tensors:
            return None
        op = op.input_tensors[0].op
    return op.info


def _replaced(function: Graph, layer: Layer, choice: Prepared) -> Graph:
    """The function with another form of the weights as its input."""
    old = function.inputs[layer.place]
    form = Value(old.name, choice.prepare(Value(old.name, old.spec)).spec)
    replaced: dict[Value, Value] = {}
    for node in function.nodes:
        if node is layer.node:
            replaced[node.outputs[0]] = choice.instead(node, form)
            continue
        made = with_arguments(node, {name: with_values(given, replaced) for name, given in node.arguments.items()})
        replaced |= {one: other for one, other in zip(node.outputs, made.outputs) if one is not other}
    inputs = [form if value is old else value for value in function.inputs]
    return Graph(inputs, [replaced.get(value, value) for value in function.outputs], function.name, function.compiler)
