"""Blocks of a script: what their statements say, and what they mean as loops."""

from __future__ import annotations

from functools import reduce

from tedsl.compat.tvmscript.declarations import BufferType
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr
from tedsl.ir.iters import Range
from tedsl.ir.stmt import BufferRealize, IfThenElse, Stmt, seq


class Block:
    """What statements say about the block around them."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []  # of T.alloc_buffer
        self.begins: list[Expr] = []  # that an axis of a reduction has its first value
        self.init: Stmt | None = None
        self.condition: Expr | None = None  # of T.where

    def around(self, body: Stmt) -> Stmt:
        """The statement that a block with this body is."""
        if self.init is not None:
            first = IfThenElse(reduce(build.logical_and, self.begins), self.init) if self.begins else self.init
            body = seq(first, body)
        if self.condition is not None:
            body = IfThenElse(self.condition, body)
        return reduce(lambda inside, buffer: realized(buffer, inside), reversed(self.buffers), body)


def realized(buffer: Buffer, body: Stmt) -> Stmt:
    """`body` in which the buffer exists."""
    bounds = tuple([Range.from_min_extent(0, extent) for extent in buffer.shape])
    return BufferRealize(buffer, bounds, build.true(), body)


class Allocated:
    """`T.alloc_buffer((8,), "float32")`: exists in the block, or the function, around it."""

    def __init__(self, of: BufferType) -> None:
        self.type = of


INIT, BLOCK = object(), object()  # what T.init() and T.block() give
