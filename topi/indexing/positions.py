"""Operators whose result is positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ShapeError
from topi.arguments import Shape, checked
from topi.extents import as_int, differ, opening, product, require_integers, shown
from topi.injective import injective
from topi.kinds import ScatterOp
from topi.statements import TRUST, fill, loops
from topi.threads.launch import each, indices_of
from topi.threads.scan import Scan, scan_rows


@checked
def unravel_index(indices: te.Tensor, shape: Shape) -> te.Tensor:
    """result[d, i] is the index in dimension d of the element at the row-major position indices[i] of a tensor of `shape`.

    shape: a vector (rank,) of integers of constant length, or a sequence of extents. As numpy.unravel_index, in one tensor.
    """
    where = opening("unravel_index", indices)
    require_integers(indices, where)
    extents = [shape(d) for d in range(_length(shape, where))] if isinstance(shape, te.Tensor) else list(shape)
    if not extents:
        raise ShapeError(f"{where}: the shape has no dimensions")

    def formula(d: Any, *i: Any) -> Any:
        position: Any = indices(*i)
        chosen: Any = None
        for place in reversed(range(len(extents))):
            own = te.floormod(position, extents[place])
            chosen = own if chosen is None else te.select(d == place, own, chosen)
            position = te.floordiv(position, extents[place])
        return chosen.astype(indices.dtype)

    return injective("unravel_index", (len(extents), *indices.shape), formula, name="T_unravel")


def _length(shape: te.Tensor, where: str) -> int:
    require_integers(shape, where, "shape")
    length = as_int(shape.shape[0]) if shape.ndim == 1 else None
    if length is None:
        raise ShapeError(f"{where}: shape {shape.name} has the shape {shown(shape.shape)}, not that of a vector of constant "
                         "length")
    return length


def invert_permutation(data: te.Tensor) -> te.Tensor:
    """result[data[i]] = i, for a vector of integers that holds each of 0 to n - 1 once. Same as tf.math.invert_permutation."""
    where = opening("invert_permutation", data)
    require_integers(data, where)
    if data.ndim != 1:
        raise ShapeError(f"{where}: the shape is {shown(data.shape)}, not that of a vector")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with loops(ib, data.shape) as (i,):
            place = ib.let("place", source[i])
            with ib.if_scope(tir.all(place >= 0, place < data.shape[0])):
                target[place] = i.astype(data.dtype)
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with each(ib, data.shape[0], threads) as i:
            place = ib.let("place", source[i])
            with ib.if_scope(tir.all(place >= 0, place < data.shape[0])):
                target[place] = i.astype(data.dtype)
        return ib.get()

    return te.extern(data.shape, [data], body, by_threads=by_threads, name="invert_permutation", dtype=data.dtype,
                     info=ScatterOp("invert_permutation", 0))


@checked
def argwhere(output_shape: Shape, condition: te.Tensor) -> te.Tensor:
    """The indices of the elements that are not zero, one row each, in row-major order; int32. As numpy.argwhere.

    output_shape: (rows, rank), as a sequence or as a tensor of that shape: how many rows there is room for. Those behind the
    last element found are zero; elements for which there is no row left are left out.
    """
    where = opening("argwhere", condition)
    shape = tuple(output_shape.shape if isinstance(output_shape, te.Tensor) else output_shape)
    if not condition.ndim or len(shape) != 2 or differ(shape[1], condition.ndim):
        raise ShapeError(f"{where}: the result has the shape {shown(shape)} and the condition {shown(condition.shape)}",
                         hint="the result has a row for each element and a column for each dimension of the condition")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        fill(ib, target, shape, 0)
        found = ib.allocate("int32", (1,), name="found", scope="local")
        found[0] = 0
        with loops(ib, condition.shape) as i:
            holds = source[i] if condition.dtype == "bool" else source[i] != tir.const(0, condition.dtype)
            with ib.if_scope(tir.all(holds, found[0] < shape[0])):
                for d in range(condition.ndim):
                    target[found[0], d] = i[d].astype("int32")
                found[0] = found[0] + 1
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        ib.scope_attr(target, *TRUST)
        with each(ib, product(shape), threads) as number:
            target[indices_of(number, shape)] = te.const(0, "int32")

        def holds(number: Any) -> Any:
            value = source[indices_of(number, condition.shape)]
            return value if condition.dtype == "bool" else value != tir.const(0, condition.dtype)

        def write(at: tuple[Any, ...], row: Any) -> None:
            with ib.if_scope(tir.all(holds(at[0]), row < shape[0])):
                for d, index in enumerate(indices_of(at[0], condition.shape)):
                    target[row, d] = index.astype("int32")

        scan_rows(Scan(ib, (product(condition.shape),), 0, lambda at: te.select(holds(at[0]), 1, 0), write, lambda a, b: a + b,
                       te.const(0, "int32"), exclusive=True), threads, shared)
        return ib.get()

    output: te.Tensor = te.extern([shape], [condition], body, by_threads=by_threads, name="argwhere", dtype="int32",
                                  info=ScatterOp("argwhere", None))
    return output
