"""Statements over tensors, as statements over the buffers of these tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import BufferLoad, ProducerLoad
from tedsl.ir.stmt import BufferRealize, BufferStore, ProducerRealize, ProducerStore, Stmt
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.tensor import Tensor


def producers(body: Stmt) -> tuple[Tensor, ...]:
    """Returns the tensors that `body` reads, writes or realizes, in order of first appearance."""
    return tuple(dict.fromkeys(node.producer for node in post_order(body)
                               if isinstance(node, (ProducerLoad, ProducerStore, ProducerRealize))))


def over_buffers(body: Stmt, given: Mapping[Tensor, Buffer]) -> Stmt:
    """Returns `body` over buffers: those of `given`, and one for each tensor that it realizes.

    Raises LoweringError for a tensor that is neither given nor realized.
    """
    realized = {node.producer: node for node in post_order(body) if isinstance(node, ProducerRealize)}
    buffers = {tensor: decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=node.storage_scope)
               for tensor, node in realized.items()}
    buffers.update(given)
    for tensor in producers(body):
        if tensor not in buffers:
            raise LoweringError(f"the statement uses the tensor {tensor.name}, which is neither an argument nor realized in it",
                                hint=f"give {tensor.name} as an argument, or put a tir.ProducerRealize around its use")
    made: Stmt = _OverBuffers(buffers)(body)
    return made


class _OverBuffers(Rewriter):
    def __init__(self, buffers: Mapping[Tensor, Buffer]) -> None:
        super().__init__()
        self.buffers = buffers

    def rewrite(self, node: Any) -> Any:
        match node:
            case ProducerLoad(producer=tensor, indices=indices):
                return BufferLoad(self.buffers[tensor], indices)
            case ProducerStore(producer=tensor, value=value, indices=indices):
                return BufferStore(self.buffers[tensor], value, indices)
            case ProducerRealize(producer=tensor, bounds=bounds, condition=condition, body=body):
                return BufferRealize(self.buffers[tensor], bounds, condition, body)
            case _:
                return node
