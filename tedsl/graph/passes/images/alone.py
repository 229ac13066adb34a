"""Whether an operator treats each image of a batch alone: then it may be called with any number of them.

An image is an index of the first axis. In the formulas of the operator the index of an axis becomes image * block + place,
where a block is what belongs to one image: an image of a result may need block number `image` of an axis of what is read,
whatever that image is, and nothing else of the formula may know the number of the image.

    y[n, c] = x[n, c] + b[c]            image n reads image n of x, and all of b
    v[c, p] = x[p // 64, c, p % 64]     axis p of v has a block of 64 for each image: p = image * 64 + place reads x[image, ...]
    y[n, c] = x[n, c] * n,    y[n, c] = sum(x[k, c], axis=k),    y[n, c] = x[7 - n, c]        do not

The formulas for twice as many images have to be the same beside that: y[n, c] = x[n, c] / 8, the mean of 8 images, is not.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

from tedsl import te
from tedsl.arith.analyzer import Analyzer
from tedsl.errors import TedslError
from tedsl.graph.formula import NodeKey, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.passes.images.number import OtherNumber
from tedsl.graph.value import Node, Spec, Value, with_values
from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Var
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import uses
from tedsl.lang.graph import producers_first

Blocks = tuple[int, int]  # an axis, and the indices of it that belong to one image


def treats_images_alone(node: Node, images: Collection[Value], count: int) -> bool:
    """Whether the results of a node have `count` images, which depend on the same images of what it reads, and all alike.

    images: the values that have images.
    """
    if node.function is not None and node.function.compiler is not None:
        return False  # what other compilers make of it is not known
    if not all(value in images for value in node.outputs):
        return False
    operands = dict.fromkeys([value for value in node.inputs if not (value.is_constant and value.shape == ())])
    places = tuple([at for at, value in enumerate(operands) if value in images])
    return bool(places) and _treats_alone(NodeKey(node), places, count)


@functools.lru_cache(maxsize=4096)
def _treats_alone(key: NodeKey, places: tuple[int, ...], count: int) -> bool:
    found = _formulas(key.graph, places, count)
    if found is None:
        return False
    try:
        return found == _formulas(_twice(key.graph, places, count), places, 2 * count)
    except TedslError:  # an operator has the number of images in its arguments
        return False


def _twice(graph: Graph, places: Collection[int], count: int) -> Graph:
    """The graph of one node for twice as many images."""
    (node,) = graph.nodes
    inputs = {value: Value(value.name, Spec((2 * count, *value.shape[1:]), value.dtype)) if at in places else value
              for at, value in enumerate(graph.inputs)}
    if _reshapes(node):
        made = OtherNumber(count).call(node, inputs, 2 * count)
    else:  # the same arguments: formulas do not look at the shapes that are noted in a graph
        arguments = {name: with_values(given, inputs) for name, given in node.arguments.items()}
        made = Node(node.operator, arguments, tuple([out.spec for out in node.outputs]), node.name, node.function)
    return Graph(list(inputs.values()), made.outputs, graph.name)


def _reshapes(node: Node) -> bool:
    return node.operator == "reshape" if node.function is None else any(map(_reshapes, node.function.nodes))


def _formulas(graph: Graph, places: Collection[int], count: int) -> list[str] | None:
    """What is computed for an image, as text; None if it needs other images, or if the formulas know the number of the image.

    places: the inputs that have images.
    """
    made = formula_of(graph)
    if any(build.as_int(tensor.shape[0]) != count for tensor in made.outputs):
        return None
    needed: dict[Any, Blocks | None] = {tensor.op: (0, 1) for tensor in made.outputs}  # None: all of it
    texts: list[str] = []
    for op in reversed(producers_first(needed)):
        if isinstance(op, te.PlaceholderOp):
            continue
        if type(op) is not te.ComputeOp:
            return None
        blocks = needed[op]
        known, bodies = ({}, op.body) if blocks is None else _reads(op, blocks, count)
        if bodies is None:
            return None
        for tensor in op.input_tensors:
            needed[tensor.op] = _both(needed.get(tensor.op, known.get(tensor.op)), known.get(tensor.op))
        extents = [str(axis.dom) for axis in (*op.axis, *op.reduce_axis)]
        if blocks is not None:
            extents[blocks[0]] = str(blocks[1])
        texts.append(f"{op.name}{extents} = {', '.join(map(str, bodies))}")
    return texts if all(needed.get(made.inputs[at].op, (0, 1)) == (0, 1) for at in places) else None


def _both(one: Blocks | None, other: Blocks | None) -> Blocks | None:
    return one if one == other else None


def _reads(op: te.ComputeOp, blocks: Blocks, count: int) -> tuple[dict[Any, Blocks | None], list[Expr] | None]:
    """What an image of a formula needs of each operation that it reads; and the formula, None if it knows the number of the
    image.
    """
    axis, block = blocks
    image, place = te.var("image"), te.var("place")
    analyzer = Analyzer()
    analyzer.bind(image, (0, count - 1))
    analyzer.bind(place, (0, block - 1))
    for other in (*op.axis, *op.reduce_axis):
        assert other.dom is not None
        analyzer.bind(other.var, other.dom)
    reads = _Reads(analyzer, image, count)
    index = build.add(build.mul(image, block), place)
    bodies = [analyzer.simplify(reads(substitute(body, {op.axis[axis].var: index}))) for body in op.body]
    return reads.found, None if any(uses(body, image) for body in bodies) else bodies


class _Reads(Rewriter):
    """Replaces the index of the image in what a formula reads. found: what it needs of each operation."""

    def __init__(self, analyzer: Analyzer, image: Var, count: int) -> None:
        super().__init__()
        self.analyzer, self.image, self.count = analyzer, image, count
        self.found: dict[Any, Blocks | None] = {}

    def rewrite(self, node: Any) -> Any:
        if type(node) is not ProducerLoad:
            return node
        op = node.producer.op
        indices = [self.analyzer.simplify(index) for index in node.indices]
        blocks, rest = self._blocks(node.producer.shape, indices)
        self.found[op] = _both(self.found.get(op, blocks), blocks)
        return ProducerLoad(node.producer, tuple(rest))

    def _blocks(self, shape: Any, indices: list[Expr]) -> tuple[Blocks | None, list[Expr]]:
        """The axis whose index is in the block of the image, and the indices within that."""
        for axis, index in enumerate(indices):
            extent = build.as_int(shape[axis])
            if extent is None or extent % self.count or not uses(index, self.image):
                continue
            block = extent // self.count
            rest = self.analyzer.simplify(build.sub(index, build.mul(self.image, block)))
            inside = build.logical_and(build.greater_equal(rest, 0), build.less(rest, block))
            if not uses(rest, self.image) and self.analyzer.can_prove(inside):
                return (axis, block), [*indices[:axis], rest, *indices[axis + 1:]]
        return None, indices
