"""The number of elements behind each pointer of a function, and the ranges that the indices of an access must stay in."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import BufferLoad, Expr, IntImm, Load, Var
from tedsl.ir.stmt import BufferStore, Store
from tedsl.lower.checks import Keep
from tedsl.record import record

ZERO = build.const(0, "int32")


@record(eq=False)
class BoundedIndex:
    """One index of an access and the range it must stay in: low <= index < low + extent.

    dim: the dimension that it indexes; None for the position in flat memory that follows from all indices.
    """

    index: Expr
    low: Expr
    extent: Expr
    where: str  # "dimension 1 of A", "A"
    dim: int | None = None


@record(eq=False)
class KnownMemory:
    """The memory behind a pointer: elements of dtype `element`, numbered low .. low + size - 1.

    owner: the buffer whose indices run over `dims` (lowest index, extent); None for an allocation.
    """

    name: str
    element: DType
    size: Expr
    low: Expr = ZERO
    owner: Buffer | None = None
    dims: tuple[tuple[Expr, Expr], ...] = ()


class MemoryTable:
    """The memory behind each data pointer that exists at a place."""

    def __init__(self, buffers: tuple[Buffer, ...]) -> None:
        self.known: dict[Var, KnownMemory] = {}
        for buffer in buffers:
            self.known[buffer.data] = _of_parameter(buffer)

    def places(self, access: Load | Store | BufferLoad | BufferStore) -> list[BoundedIndex]:
        """The indices of `access`, each with the range it must stay in."""
        if isinstance(access, (Load, Store)):
            memory = self.memory(access.buffer_var)
            return [BoundedIndex(access.index, memory.low, memory.size, memory.name)]
        buffer = access.buffer
        memory = self.memory(buffer.data)
        if memory.owner is buffer:
            return [BoundedIndex(index, low, extent, f"dimension {k} of {buffer.name}", k)
                    for k, (index, (low, extent)) in enumerate(zip(access.indices, memory.dims))]
        if buffer.dtype is not memory.element:
            raise LoweringError(f"buffer {buffer.name} of {buffer.dtype} is a view of the memory of {memory.name}, "
                                f"whose elements are {memory.element}", hint="views of another dtype are not possible here")
        return [BoundedIndex(position(buffer, access.indices), memory.low, memory.size, memory.name)]

    def memory(self, data: Var) -> KnownMemory:
        """The memory behind `data`; LoweringError for a pointer about which nothing is known."""
        known = self.known.get(data)
        if known is None:
            raise LoweringError(f"the loops access memory through {data.name}, which is not a buffer of the function: how many "
                                "elements it has is not known",
                                hint="declare a buffer: tir.decl_buffer((n,), dtype), in buffer_map of the PrimFunc")
        return known


def size_of(extents: tuple[Expr, ...], lanes: int = 1) -> Expr:
    """The number of elements of a compact array."""
    total: Expr = build.const(lanes, "int32")
    for extent in extents:
        total = build.product_of_extents(total, extent)
    return total


def _of_parameter(buffer: Buffer) -> KnownMemory:
    starts_here = isinstance(buffer.elem_offset, Var) or build.as_int(buffer.elem_offset) == 0
    dims = tuple((build.const(0, extent.dtype), extent) for extent in buffer.shape)
    owner = buffer if starts_here else None  # arrays begin at their first element
    if not buffer.strides:
        return KnownMemory(buffer.name, buffer.dtype, size_of(buffer.shape, buffer.dtype.lanes), ZERO, owner, dims)
    low, high = span(buffer)
    some = build.const(1, "int32")
    for extent in buffer.shape:
        some = build.mul(some, build.minimum(extent, 1))
    return KnownMemory(buffer.name, buffer.dtype, build.mul(some, build.sub(build.add(high, 1), low)), low, owner, dims)


def span(buffer: Buffer) -> tuple[Expr, Expr]:
    """The lowest and highest position of the elements of a buffer, counted from its first one."""
    low: Expr = ZERO
    if not buffer.strides:
        return low, build.sub(size_of(buffer.shape, buffer.dtype.lanes), 1)
    high: Expr = ZERO
    for extent, stride in zip(buffer.shape, buffer.strides):
        reach = build.mul(build.sub(extent, 1), stride)
        low, high = build.add(low, build.minimum(reach, 0)), build.add(high, build.maximum(reach, 0))
    return low, high


def position(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The position in memory of an element of `buffer`, a view of the memory of another buffer, as `flatten_storage` computes
    it.
    """
    flat: Expr | None = None
    for k, index in enumerate(indices):
        if buffer.strides:
            part = build.mul(index, buffer.strides[k])
            flat = part if flat is None else build.add(flat, part)
        else:
            flat = index if flat is None else build.add(build.mul(flat, buffer.shape[k]), index)
    flat = ZERO if flat is None else flat
    offset = buffer.elem_offset
    return flat if isinstance(offset, IntImm) and offset.value == 0 else build.add(flat, offset)


def kept_inside(indices: Sequence[BoundedIndex], keep: Keep, load: Load | BufferLoad) -> Expr:
    """`load` with each of its `indices` replaced by `keep(index, range)`, which clamps or checks it."""
    if isinstance(load, Load):
        return load.replace(index=_kept(load.index, indices[0], keep))
    if indices[0].dim is None:
        return Load(load.dtype, load.buffer.data, _kept(position(load.buffer, load.indices), indices[0], keep))
    kept = list(load.indices)
    for index in indices:
        assert index.dim is not None
        kept[index.dim] = _kept(kept[index.dim], index, keep)
    return load.replace(indices=tuple(kept))


def _kept(index: Expr, bounds: BoundedIndex, keep: Keep) -> Expr:
    low = bounds.low
    if build.as_int(low) == 0:
        return keep(index, bounds.extent)
    return build.add(keep(build.sub(index, low), bounds.extent), low)
