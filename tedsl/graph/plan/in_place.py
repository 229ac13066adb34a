"""Whether a node may write its result over an operand: each element is read before its own place is written, and never after.

That holds where the result is an element-wise formula of the operand: on every path from one to the other, operations read
at their own index and reduce nothing. Then all of them are computed in one loop nest.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.graph.formula import NodeKey, formula_of
from tedsl.graph.value import Node, Value
from tedsl.lang.graph import producers_first


def may_overwrite(node: Node, operand: Value) -> bool:
    """Whether the only result of `node` may be written where `operand` stands."""
    if len(node.outputs) != 1 or node.outputs[0].spec != operand.spec:
        return False
    if node.function is not None and node.function.compiler is not None:
        return False  # what other compilers make of it is not known
    return dict.fromkeys(node.inputs, 0).keys() >= {operand} and _overwritable(NodeKey(node))[_place(node, operand)]


def _place(node: Node, operand: Value) -> int:
    return [value for value in dict.fromkeys(node.inputs) if not (value.shape == () and value.is_constant)].index(operand)


@functools.lru_cache(maxsize=4096)
def _overwritable(key: NodeKey) -> tuple[bool, ...]:
    """For each input of the graph whether the result may be written over it."""
    made = formula_of(key.graph)
    out = made.outputs[0]
    if any(type(op) is not te.ComputeOp or op.reduce_axis for op in _reaching(out, made.inputs)):
        return (False,) * len(made.inputs)  # a kernel whose arrays may be one has to reload what it sums up
    return tuple([tuple(tensor.shape) == tuple(out.shape) and _is_elementwise(out, tensor) for tensor in made.inputs])


def _is_elementwise(out: te.Tensor, operand: te.Tensor) -> bool:
    """Whether every read of `operand` on the way to `out` is at the index of the element that is computed."""
    reaches = _reaching(out, [operand])
    for op in reaches:
        if len(op.body) != 1:
            return False
        for load in _loads(op.body[0]):
            if load.producer.op is operand.op or load.producer.op in reaches:
                same = len(load.indices) == len(op.axis) and all(i is axis.var for i, axis in zip(load.indices, op.axis))
                if not same:
                    return False
    return bool(reaches)


def _reaching(out: te.Tensor, operands: Sequence[te.Tensor]) -> set[Any]:
    """The operations on the way to `out` that depend on one of the operands."""
    sources = {operand.op for operand in operands}
    found: set[Any] = set()
    for op in producers_first([out.op]):
        if any(tensor.op in sources or tensor.op in found for tensor in op.input_tensors):
            found.add(op)
    return found


def _loads(body: Any) -> list[Any]:
    nodes: list[Any] = []
    tir.stmt_functor.post_order_visit(body, nodes.append)
    return [node for node in nodes if isinstance(node, tir.ProducerLoad)]
