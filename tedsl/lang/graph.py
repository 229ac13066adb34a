"""The graph of operations: its order, the readers of each tensor, and copies that read other tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from tedsl.errors import ArgumentTypeError
from tedsl.ir.node import FrozenDict
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor

O = TypeVar("O", bound=Operation)


def producers_first(ops: Iterable[Operation]) -> list[Operation]:
    """`ops` and everything that they read, directly or not, each once, producers before their readers.

    The order is that of a depth-first walk along `input_tensors`: the same program gives the same order.
    """
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack = [(op, False) for op in reversed(list(ops))]
    while stack:
        op, ready = stack.pop()
        if ready:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            stack.append((op, True))
            stack.extend([(tensor.op, False) for tensor in reversed(op.input_tensors) if tensor.op not in seen])
    return order


def read_graph(ops: Iterable[Operation] | Operation) -> FrozenDict[Operation, tuple[Tensor, ...]]:
    """What each of `ops`, and of the operations that they read, directly or not, reads: TVM's CreateReadGraph."""
    roots = [ops] if isinstance(ops, Operation) else list(ops)
    for root in roots:
        if not isinstance(root, Operation):
            raise ArgumentTypeError(f"CreateReadGraph takes operations, got {root!r}", hint="that of a tensor is C.op")
    return FrozenDict({op: tuple(op.input_tensors) for op in reversed(producers_first(roots))})


def post_order(roots: Iterable[Operation], graph: Mapping[Operation, Iterable[Tensor]]) -> tuple[Operation, ...]:
    """The operations of `graph` (of `read_graph`) below `roots`, producers before their readers: TVM's PostDFSOrder."""
    return tuple([op for op in producers_first(roots) if op in graph])


def consumers(ops: Iterable[Operation]) -> dict[Tensor, list[Operation]]:
    """For each tensor that is read in the graph below `ops`: the operations that read it, producers first."""
    readers: dict[Tensor, list[Operation]] = {}
    for op in producers_first(ops):
        for tensor in op.input_tensors:
            readers.setdefault(tensor, []).append(op)
    return readers


def replace_inputs(op: O, mapping: Mapping[Tensor, Tensor]) -> O:
    """A copy of `op` that reads `mapping[t]` wherever `op` reads `t`; `op` itself if it reads none of them."""
    if not any(tensor in mapping for tensor in op.input_tensors):
        return op
    return op.reading(mapping)
