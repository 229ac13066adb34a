"""Kinds of operators: how the elements of a result depend on those of the operands, by the records that topi leaves."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from tedsl import te
from tedsl.graph.formula import alone, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.text.parser import parse
from tedsl.graph.text.printer import text
from tedsl.graph.value import Node, Value
from topi.kinds import (
    AdaptivePoolOp,
    ChannelNormOp,
    CumulativeOp,
    EinsumOp,
    MatmulOp,
    NormalizeOp,
    PoolOp,
    ScatterOp,
    SoftmaxOp,
    SortOp,
    TiledConvOp,
    TransposedConvOp,
)
from topi.kinds import ConvOp as AnyConvOp


class Kind(IntEnum):
    """The kind of an operator; the larger, the fewer others share a kernel with it."""

    ELEMENTWISE = 0  # an element of the result is made of the elements at the same place
    BROADCAST = 1  # the same, where operands may lack dimensions of the result
    INJECTIVE = 2  # an element is made of one element of each operand: transpose, pad, concatenate
    REDUCTION = 3  # sums, means, softmax, normalizations: rows
    FUSABLE = 4  # convolutions, products of matrices, pools: element-wise operators that follow are computed in their loops
    OPAQUE = 8  # has statements of its own: scans, sorts, scatters, calls


_ROWS = (SoftmaxOp, NormalizeOp, ChannelNormOp)
_WINDOWS = (AnyConvOp, TransposedConvOp, TiledConvOp, MatmulOp, PoolOp, AdaptivePoolOp, EinsumOp)
_STATEMENTS = (ScatterOp, CumulativeOp, SortOp)


def kind_of(node: Node) -> Kind:
    """The kind of the operator that a node calls; calls of graphs are opaque."""
    return Kind.OPAQUE if node.function is not None else _kind_of_text(text(alone(node)))


@functools.lru_cache(maxsize=4096)
def _kind_of_text(source: str) -> Kind:
    graph = parse(source)
    return max([_kind_of_operation(op, graph) for op in _operations(formula_of(graph).outputs)], default=Kind.INJECTIVE)


def _operations(outputs: Sequence[te.Tensor]) -> list[Any]:
    found: dict[Any, None] = {}
    stack = [tensor.op for tensor in outputs]
    while stack:
        op = stack.pop()
        if op not in found and not isinstance(op, te.PlaceholderOp):
            found[op] = None
            stack += [tensor.op for tensor in op.input_tensors]
    return list(found)


def _kind_of_operation(op: Any, graph: Graph) -> Kind:
    record = getattr(op, "info", None)
    if type(op) is not te.ComputeOp or isinstance(record, _STATEMENTS):
        return Kind.OPAQUE
    if isinstance(record, _WINDOWS):
        return Kind.FUSABLE
    if isinstance(record, _ROWS) or op.reduce_axis:
        return Kind.REDUCTION
    if isinstance(record, te.ElementwiseOp):
        alike = all(_same_shape(value, graph.outputs[0]) for value in graph.inputs)
        return Kind.ELEMENTWISE if alike else Kind.BROADCAST
    return Kind.INJECTIVE


def _same_shape(one: Value, other: Value) -> bool:
    return str(one.spec.shape) == str(other.spec.shape)


def kind_of_edge(value: Value, reader: Node, kind: Kind) -> Kind:
    """How a node of the given kind reads a value: one that broadcasts reads values of the shape of its result by element."""
    same = all(_same_shape(value, out) for out in reader.outputs[:1])
    return Kind.ELEMENTWISE if kind <= Kind.BROADCAST and same else max(kind, Kind.BROADCAST)
