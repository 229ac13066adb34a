"""Scatters by the threads of a graphics processor: each adds one update, at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te, tir
from topi.extents import product
from topi.indexing.scatter import checked_axis, scatter_add
from topi.indexing.take import from_end
from topi.kinds import ScatterOp

THREADS = 256


def scatter_add_by_threads(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0) -> te.Tensor:
    """Like `topi.scatter_add`, by a thread for each update, which adds it at once (`tir.atomic_add`): floats that meet at one
    element are added in any order. Elements of fewer than 32 bits are added one after the other.
    """
    along = checked_axis("scatter_add", data, indices, updates, axis)
    if tir.const(0, data.dtype).dtype.bits < 32:
        return scatter_add(data, indices, updates, axis)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, places, values, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))

        def add(at: tuple[Any, ...]) -> None:
            place = ib.let("place", from_end(places[at], data.shape[along]))
            with ib.if_scope(tir.all(place >= 0, place < data.shape[along])):
                element = target[(*at[:along], place, *at[along + 1:])]
                address = tir.call_intrin("handle", "tir.address_of", element)
                ib.emit(tir.call_intrin(data.dtype, "tir.atomic_add", address, values[at]))

        def move(at: tuple[Any, ...]) -> None:
            target[at] = source[at]

        _launch(ib, data.shape, move)
        _launch(ib, indices.shape, add)
        return ib.get()

    return te.extern(data.shape, [data, indices, updates], body, name="scatter_add_gpu", dtype=data.dtype,
                     tag="scatter_add_gpu", info=ScatterOp("scatter_add", along, (data, indices, updates), True))


def _launch(ib: Any, shape: Sequence[Any], body: Callable[[tuple[Any, ...]], None]) -> None:
    """Emits a kernel with a thread for each element of `shape`."""
    count = product(shape)
    with ib.new_scope():
        block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        ib.scope_attr(block, "thread_extent", tir.floordiv(count + (THREADS - 1), THREADS))
        ib.scope_attr(thread, "thread_extent", THREADS)
        rest = block.var * THREADS + thread.var
        with ib.if_scope(rest < count):
            at: list[Any] = []
            for extent in reversed(shape):
                at.append(tir.floormod(rest, extent))
                rest = tir.floordiv(rest, extent)
            body(tuple(reversed(at)))
