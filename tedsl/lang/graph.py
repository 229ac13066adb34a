"""The graph of operations: its order, the readers of each tensor, and copies that read other tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tedsl.ir.expr import ProducerLoad
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.lang.operation import ComputeOp, Operation
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


def consumers(ops: Iterable[Operation]) -> dict[Tensor, list[Operation]]:
    """For each tensor that is read in the graph below `ops`: the operations that read it, producers first."""
    readers: dict[Tensor, list[Operation]] = {}
    for op in producers_first(ops):
        for tensor in op.input_tensors:
            readers.setdefault(tensor, []).append(op)
    return readers


def replace_inputs(op: O, mapping: Mapping[Tensor, Tensor]) -> O:
    """A copy of `op` that reads `mapping[t]` wherever `op` reads `t`; `op` itself if it reads none of them.

    The axes stay the same objects, so that schedules that refer to them stay valid. Therefore an extent that is read from a
    tensor is still read from the old tensor.
    """
    if not any(tensor in mapping for tensor in op.input_tensors):
        return op
    if not isinstance(op, ComputeOp) or type(op) is not ComputeOp:
        return op.reading(mapping)  # type: ignore[return-value]
    rewrite = TensorReader(mapping)
    body = tuple([rewrite(expr) for expr in op.body])
    return op if all(a is b for a, b in zip(body, op.body)) else op.redirected(body, mapping)


class TensorReader(Rewriter):
    """Rewriter that redirects loads of tensors to other tensors."""

    def __init__(self, mapping: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.mapping = mapping

    def rewrite(self, node: Any) -> Any:
        if type(node) is ProducerLoad and node.producer in self.mapping:
            return ProducerLoad(self.mapping[node.producer], node.indices)
        return node
