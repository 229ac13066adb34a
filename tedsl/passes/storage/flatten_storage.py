"""Flatten multi-dimensional buffers: element [i, j] becomes one index into the buffer's data.

before:  realize B([0, n], [2, 8]) { B[i, j + 2] = A[i, j] }
after:   allocate B[n * 8] { B[i*8 + j] = A[i*stride + j*stride_1] }

A buffer with empty strides is compact and row-major: over its shape if it belongs to a parameter, over its bounds if it
is realized (the lowest index of each dimension is then element 0). `elem_offset` is added. Strides that storage_align asks
for (`buffer_dim_align`) grow the memory. Everything after this pass works on Load, Store and Allocate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, flat_index, shifted
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import BufferLoad, Call, Expr, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import ADDRESS_OF
from tedsl.ir.stmt import (
    BIND_SCOPE,
    LOGICAL_SHAPE,
    Allocate,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    Prefetch,
    Stmt,
    Store,
)
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.index_arithmetic import difference
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import statements
from tedsl.passes.assume_compact import compact_array_strides, compact_strides
from tedsl.passes.facts.dim_align import DIM_ALIGN, aligned_strides, dim_alignments
from tedsl.passes.storage.place_window import place_window
from tedsl.record import record

CACHE_LINE = 64  # bytes, where nothing else is said


def has_buffers(func: PrimFunc) -> bool:
    """Tells whether the body of `func` has multi-dimensional buffers."""
    return contains(func.body, BufferLoad, BufferStore, BufferRealize, Prefetch)


def flatten_storage(func: PrimFunc, *, cache_line: int = CACHE_LINE) -> PrimFunc:
    """Returns `func` with flat loads, stores and allocations; itself if it has no multi-dimensional access.

    cache_line: how many bytes one prefetch fetches.
    """
    return func.with_body(_Flattener(_layouts(func.body), compact_array_strides(func), cache_line)(func.body))


@record
class _Layout:
    """The strides and lowest indices of a realized buffer: index [i, ...] is element sum((i - mins) * strides)."""

    mins: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    strides: tuple[Expr, ...]


def _layouts(body: Stmt) -> dict[Buffer, _Layout]:
    """Returns the layout of every realized buffer by buffer; each is realized only once."""
    layouts: dict[Buffer, _Layout] = {}
    for node in statements(body):
        if isinstance(node, BufferRealize):
            extents = tuple(_extent(bound) for bound in node.bounds)
            layouts[node.buffer] = _Layout(tuple(bound.min for bound in node.bounds), extents, node.buffer.strides)
    for buffer, asked in dim_alignments(body).items():
        layout = layouts[buffer]
        layouts[buffer] = _Layout(layout.mins, layout.extents, aligned_strides(layout.extents, asked))
    return layouts


def _extent(bound: Any) -> Expr:
    assert bound.extent is not None
    return bound.extent  # type: ignore[no-any-return]


class _Flattener(Rewriter):
    kinds = (BufferLoad, BufferStore, BufferRealize, Prefetch, AttrStmt)

    def __init__(self, layouts: dict[Buffer, _Layout], compact: Mapping[Var, Expr], cache_line: int) -> None:
        super().__init__()
        self.layouts, self.compact, self.cache_line = layouts, compact, cache_line

    def rewrite(self, node: Any) -> Any:
        match node:
            case BufferLoad(buffer=buffer, indices=indices):
                return Load(node.dtype, buffer.data, self.place(buffer, indices))
            case BufferStore(buffer=buffer, indices=indices):
                return Store(buffer.data, node.value, self.place(buffer, indices))
            case BufferRealize():
                return self.allocate(node)
            case AttrStmt(attr_key=key, body=body) if key == DIM_ALIGN:
                return body
            case AttrStmt(attr_key=key) if key == BIND_SCOPE:
                return self.window(node)
            case AttrStmt(node=Buffer() as buffer):
                return node.replace(node=buffer.data)
            case Prefetch():
                return self.prefetch(node)
            case _:
                return node

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
        """Returns the index of an access in numbers: an element that is a vector has several."""
        flat, lanes = self.index(buffer, indices), buffer.dtype.lanes
        if lanes == 1:
            return flat
        first, count = (flat.base, flat.lanes) if isinstance(flat, Ramp) else (flat, 1)
        if flat.dtype.lanes != count or (isinstance(flat, Ramp) and build.as_int(flat.stride) != 1):
            raise LoweringError(f"{buffer.name} has elements that are vectors, and is accessed at some that are not neighbours",
                                hint="access one at a time, or make its lanes a dimension")
        return Ramp(build.mul(first, lanes), build.const(1, first.dtype), lanes * count)

    def index(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
        """Returns the flat index of an element; a ramp in the last dimension stays a ramp."""
        layout = self.layouts.get(buffer)
        if layout is not None:
            indices = tuple(_from(i, low) for i, low in zip(indices, layout.mins))
            return flat_index(indices, layout.extents, layout.strides)
        flat = flat_index(indices, buffer.shape, buffer.strides)
        return flat if _is_zero(buffer.elem_offset) else shifted(flat, buffer.elem_offset)

    def window(self, attr: AttrStmt) -> Stmt:
        """Returns the body of `attr` with the intrinsic's buffer placed in the memory of the region that it stands for."""
        whole, value = attr.node[1], attr.value
        assert isinstance(value, Call)
        layout = self.layouts.get(whole)
        shape, strides = (whole.shape, whole.strides) if layout is None else (layout.extents, layout.strides)
        offset = self.index(whole, value.args[:2 * len(shape):2])
        return place_window(attr, offset, strides or compact_strides(shape), self.compact)

    def allocate(self, realize: BufferRealize) -> Stmt:
        buffer, layout = realize.buffer, self.layouts[realize.buffer]
        size: Expr = IntImm(layout.extents[0].dtype, 1) if layout.extents else build.const(1, "int32")
        if layout.strides:  # the outermost dimension spans the memory
            size = build.product_of_extents(layout.extents[0], layout.strides[0])
        else:
            for extent in layout.extents:
                size = build.product_of_extents(size, extent)
        condition = realize.condition if realize.condition.dtype is BOOL else build.true()
        notes = FrozenDict({LOGICAL_SHAPE: layout.extents} if len(layout.extents) > 1 and not layout.strides else {})
        return Allocate(buffer.data, buffer.dtype, (size,), condition, realize.body, notes)

    def prefetch(self, node: Prefetch) -> Stmt:
        """Returns a prefetch hint for each cache line of the region; a line may be several rows of a compact buffer.

        What lies beyond the end of a dimension is what follows in memory: beyond a row, the next row. Positions outside of the
        memory are clamped to its edge.
        """
        buffer, size = node.buffer, node.buffer.dtype.bytes
        layout = self.layouts.get(buffer)
        low = layout.mins if layout is not None else tuple(build.const(0, dim.dtype) for dim in buffer.shape)
        extents = layout.extents if layout is not None else buffer.shape
        compact = not (buffer.strides if layout is None else layout.strides)
        last_dim = len(extents) - 1
        while compact and last_dim > 0 and 0 < size * (build.as_int(extents[last_dim]) or 0) < self.cache_line:
            size *= build.as_int(extents[last_dim]) or 1  # of a row
            last_dim -= 1
        indices: list[Expr] = []
        loops: list[tuple[Var, Expr]] = []
        for dim, part in enumerate(node.bounds):
            step = max(self.cache_line // size, 1) if dim == last_dim else 1
            count = build.floordiv(build.add(_extent(part), step - 1), step) if dim <= last_dim else build.const(1, "int32")
            index = part.min
            if build.as_int(count) != 1:
                var = Var(f"prefetch.{buffer.name}.{dim}", count.dtype)
                loops.append((var, count))
                index = build.add(index, build.mul(var, step))
            indices.append(index)
        flat = self.index(buffer, tuple(indices))
        last = self.index(buffer, tuple([build.sub(build.add(start, extent), 1) for start, extent in zip(low, extents)]))
        flat = build.maximum(build.minimum(flat, last), self.index(buffer, tuple(low)))
        first = Load(buffer.dtype, buffer.data, flat)
        address = Call(buffer.data.dtype, ADDRESS_OF, (first,))
        stmt: Stmt = Evaluate(build.call("tir.prefetch", address, node.writes, 3, 1, dtype_="int32"))
        for var, count in reversed(loops):
            stmt = For(var, build.const(0, var.dtype), count, ForKind.SERIAL, stmt)
        return stmt


def _from(index: Expr, low: Expr) -> Expr:
    """Returns index - low, the position within a realized dimension."""
    if isinstance(index, Ramp):
        return Ramp(difference(index.base, low), index.stride, index.lanes)
    return difference(index, low)


def _is_zero(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.value == 0
