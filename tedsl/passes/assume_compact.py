"""Specialise a function whose buffers have symbolic strides for arrays that are compact row-major.

before:  A: Buffer([n, m], [stride, stride_1])   A[i*stride + k*stride_1]
after:   A: Buffer([n, m], [])                   A[i*m + k]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt, BufferStore, Prefetch
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import variables


def assume_compact(func: PrimFunc) -> PrimFunc:
    """Returns `func` with each stride that is a free variable replaced by the compact one; `func` itself if there is none."""
    uses = Counter(v for b in func.buffers for e in (*b.shape, *b.strides, b.elem_offset) for v in variables(e))
    uses.update(p for p in func.params if p not in func.buffer_map)
    compact: dict[Var, Expr] = {}
    for buffer in func.buffers:
        if buffer.buffer_type == "auto_broadcast":  # a stride may be 0: compact arrays need not be read compactly
            return func
        for stride, usual in zip(buffer.strides, compact_strides(buffer.shape)):
            if isinstance(stride, Var) and uses[stride] == 1:
                compact[stride] = build.cast(stride.dtype, usual)
            else:
                return func  # a stride that also says something else
    if not compact:
        return func
    buffers = {buffer: buffer.replace(strides=()) for buffer in func.buffer_map.values()}
    body = _Compacter(compact, buffers)(func.body)
    return func.replace(body=body, buffer_map={param: buffers[buffer] for param, buffer in func.buffer_map.items()})


def compact_strides(shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Returns the strides, in elements, of a compact row-major array of that shape."""
    strides: list[Expr] = []
    step: Expr = build.const(1, shape[-1].dtype) if shape else build.const(1)
    for dim in reversed(shape):
        strides.append(step)
        step = build.mul(step, dim)
    return tuple(reversed(strides))


def compact_array_strides(func: PrimFunc) -> dict[Var, Expr]:
    """Maps the variables that are strides of the parameters to their values for compact arrays."""
    return {stride: build.cast(stride.dtype, usual) for buffer in func.buffers
            for stride, usual in zip(buffer.strides, compact_strides(buffer.shape)) if isinstance(stride, Var)}


class _Compacter(Rewriter):
    def __init__(self, strides: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self.strides, self.buffers = strides, buffers

    def rewrite(self, node: Any) -> Any:
        match node:
            case Var():
                return self.strides.get(node, node)
            case BufferLoad(buffer=b) | BufferStore(buffer=b) | Prefetch(buffer=b) if b in self.buffers:
                return node.replace(buffer=self.buffers[b])
            case AttrStmt(node=Buffer() as b) if b in self.buffers:
                return node.replace(node=self.buffers[b])
            case _:
                return node
