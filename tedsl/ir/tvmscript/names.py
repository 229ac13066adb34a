"""What a function uses that no statement of it declares, and how its flat memory is accessed."""

from __future__ import annotations

from typing import Any

from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import BufferLoad, CommReducer, Let, Load, ProducerLoad, Reduce, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.stmt import (
    BIND_SCOPE,
    THREADS,
    Allocate,
    AttrStmt,
    BufferRealize,
    BufferRegion,
    BufferStore,
    For,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    Store,
)
from tedsl.ir.walk.visitor import post_order


class Names:
    """What a function uses. `free`: variables that are declared before everything else; `buffers`: those that no statement
    declares; `producers`: tensors without buffers; `flat`: the dtypes by which each flat memory is accessed; `declared`: the
    memory that a statement inside of the function declares.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.bound: set[Var] = set(func.params)
        self.used: dict[Var, None] = {}
        self.seen: dict[Buffer, None] = {}
        self.made: set[Buffer] = set()  # by statements
        self.producers: dict[Any, None] = {}
        self.flat: dict[Var, dict[DType, None]] = {}
        self.declared: set[Var] = set()
        for buffer in func.buffers:
            self._buffer(buffer)
        for node in post_order(func.body):
            self._look(node)
        datas = {buffer.data for buffer in self.seen}
        self.free = [var for var in self.used if var not in self.bound and var not in datas]
        own = set(func.buffers)
        self.buffers = [buffer for buffer in self.seen if buffer not in own and buffer not in self.made]

    def _look(self, node: Node) -> None:
        match node:
            case Var():
                self.used.setdefault(node)
            case Load() | Store():
                of = node.dtype if isinstance(node, Load) else node.value.dtype
                self.flat.setdefault(node.buffer_var, {}).setdefault(of.element)
                self.used.setdefault(node.buffer_var)
            case BufferLoad() | BufferStore() | BufferRegion() | Prefetch():
                self._buffer(node.buffer)
            case ProducerLoad() | ProducerStore() | ProducerRealize():
                self.producers.setdefault(node.producer)
            case For():
                self.bound.add(node.loop_var)
            case Let():
                self.used.setdefault(node.var)
            case Reduce():
                for axis in node.axis:
                    self._axis(axis)
                self._look(node.combiner)
            case CommReducer():
                self.bound.update((*node.lhs, *node.rhs))
                for part in (*node.result, *node.identity_element):
                    for below in post_order(part):
                        self._look(below)
            case _:
                self._look_at_declaration(node)

    def _look_at_declaration(self, node: Node) -> None:
        match node:
            case LetStmt():
                self._declare(node.var)
            case Allocate():
                self._declare(node.buffer_var)
            case BufferRealize():
                self._make(node.buffer)
            case AttrStmt(attr_key=key, node=IterVar() as axis) if key in THREADS:
                self.bound.add(axis.var)
            case AttrStmt(attr_key=key, node=(Buffer() as part, Buffer() as whole)) if key == BIND_SCOPE:
                self._buffer(whole)
                self._make(part)
            case AttrStmt(node=about):
                self._about(about)

    def _about(self, about: Any) -> None:
        if isinstance(about, IterVar):
            self._axis(about)
        elif isinstance(about, Buffer):
            self._buffer(about)
        elif isinstance(about, Node):
            for below in post_order(about):
                self._look(below)
        elif isinstance(about, (tuple, list)):
            for part in about:
                self._about(part)

    def _axis(self, axis: IterVar) -> None:
        self.used.setdefault(axis.var)
        for below in post_order(axis):
            self._look(below)

    def _declare(self, memory: Var) -> None:
        self.bound.add(memory)
        self.declared.add(memory)

    def _make(self, buffer: Buffer) -> None:
        self._buffer(buffer)
        self.made.add(buffer)

    def _buffer(self, buffer: Buffer) -> None:
        if buffer in self.seen:
            return
        self.seen[buffer] = None
        for extent in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            for node in post_order(extent):
                self._look(node)
