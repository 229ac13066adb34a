"""Operators that write at positions held in other tensors: one after the other, so that of equal positions the last counts.

A position outside of the tensor is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, axis_of, differ, opening, product, require_integers, require_one_dtype, shown
from topi.indexing.take import from_end
from topi.kinds import ScatterOp
from topi.statements import TRUST, copy, fill, loops, rows_kind
from topi.threads.launch import each, indices_of
from topi.threads.scatter import Scatter, store_updates


def scatter(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0) -> te.Tensor:
    """`data` with updates[i] stored at i with i[axis] replaced by indices[i], for all i.

    indices: integers of the rank of `data`, negative ones count from the end; updates: of their shape, of the dtype of `data`.
    Same as torch.scatter and ONNX ScatterElements.
    """
    return _scatter("scatter", data, indices, updates, axis, lambda old, new: new)


def scatter_add(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0) -> te.Tensor:
    """Like `scatter`, but adds the updates to the elements. Same as torch.scatter_add."""
    return _scatter("scatter_add", data, indices, updates, axis, lambda old, new: old + new)


def scatter_elements(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0,
                     reduction: str = "update") -> te.Tensor:
    """Like `scatter`; `reduction` "add" adds the updates to the elements, "mul" multiplies, "min" and "max" keep the smaller
    and the larger. Same as ONNX ScatterElements.
    """
    join = _join_of(reduction, "reduction", opening("scatter_elements", data))
    if reduction in ("update", "add"):
        return (scatter if reduction == "update" else scatter_add)(data, indices, updates, axis)
    return _scatter("scatter_elements", data, indices, updates, axis, join)


def _scatter(operator: str, data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int,
             joined: Callable[[Any, Any], Any]) -> te.Tensor:
    along = checked_axis(operator, data, indices, updates, axis)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, places, values, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with loops(ib, data.shape[:along], rows_kind(data.shape)) as outer:  # the parts before `axis` are independent
            with loops(ib, data.shape[along:], name="c") if along else nullcontext() as c:
                if c is None:
                    copy(ib, source, target, data.shape)
                else:
                    target[(*outer, *c)] = source[(*outer, *c)]
            fits = [o < extent for o, extent, whole in zip(outer, indices.shape, data.shape) if as_int(extent - whole) != 0]
            with ib.if_scope(tir.all(*fits)) if fits else nullcontext(), loops(ib, indices.shape[along:], name="x") as inner:
                i = (*outer, *inner)
                place = ib.let("place", from_end(places[i], data.shape[along]))
                with ib.if_scope(tir.all(place >= 0, place < data.shape[along])):
                    at = (*outer, place, *inner[1:])
                    target[at] = joined(target[at], values[i])
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, places, values, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        ib.scope_attr(target, *TRUST)
        copied(ib, source, target, data.shape, threads)

        def element(at: Any, place: Any) -> Any:
            return (*at[:along], place, *at[along + 1:])

        store_updates(Scatter(
            ib, indices.shape, along, lambda at: at_or_none(from_end(places[at], data.shape[along]), data.shape[along]),
            lambda at, place, x: target[element(at, place)], lambda at, x: values[at], joined,
            lambda at, place, x, value: target.__setitem__(element(at, place), value)), threads, shared)
        return ib.get()

    return te.extern(data.shape, [data, indices, updates], body, by_threads=by_threads, name=f"{operator}_generic",
                     dtype=data.dtype, tag=f"{operator}_generic",
                     info=None if operator == "scatter_elements" else
                     ScatterOp(operator, along, (data, indices, updates), operator == "scatter_add"))


def checked_axis(operator: str, data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int) -> int:
    """Returns the axis of a scatter, counted from the front; ShapeError if its arguments do not fit together."""
    where = opening(operator, data)
    along = axis_of(axis, data.ndim, where)
    require_integers(indices, where)
    require_one_dtype([data, updates], where)
    if indices.ndim != data.ndim or updates.ndim != data.ndim or any(map(differ, indices.shape, updates.shape)) or \
            any(_larger(indices.shape[d], data.shape[d]) for d in range(data.ndim) if d != along):
        raise ShapeError(f"{where}: the shapes are {shown(data.shape)}, {shown(indices.shape)} of the indices and "
                         f"{shown(updates.shape)} of the updates",
                         hint=f"indices and updates have one shape that fits into the data beside axis {along}")
    return along


def _larger(one: Any, other: Any) -> bool:
    a, b = as_int(one), as_int(other)
    return a is not None and b is not None and a > b


_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new, "add": lambda old, new: old + new, "mul": lambda old, new: old * new, "min": te.min,
    "max": te.max,
}


def _join_of(mode: str, what: str, where: str) -> Callable[[Any, Any], Any]:
    if not isinstance(mode, str) or mode not in _JOINED:
        raise ArgumentError(f"{where}: there is no {what} {mode!r}", hint=f"choose one of {', '.join(_JOINED)}")
    return _JOINED[mode]


def scatter_nd(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, mode: str) -> te.Tensor:
    """`data` with data[indices[0, y], ..., indices[M - 1, y], x] = updates[y, x]; mode "add" adds, "update" replaces,
    "mul" multiplies, "min" and "max" keep the smaller and the larger.

    data: (X_0, ..., X_{N-1}); indices: (M, Y_0, ...) of integers with M <= N; updates: (Y_0, ..., X_M, ..., X_{N-1}).
    Negative indices count from the end.
    """
    where = opening("scatter_nd", data)
    join = _join_of(mode, "mode", where)
    require_integers(indices, where)
    require_one_dtype([data, updates], where)
    count = as_int(indices.shape[0]) if indices.ndim else None
    wanted = (*indices.shape[1:], *data.shape[count:]) if count is not None and count <= data.ndim else None
    if wanted is None or len(wanted) != updates.ndim or any(map(differ, wanted, updates.shape)):
        raise ShapeError(f"{where}: the shapes are {shown(data.shape)}, {shown(indices.shape)} of the indices and "
                         f"{shown(updates.shape)} of the updates" + (f", which must have {shown(wanted)}" if wanted else ""),
                         hint="the first dimension of the indices is a constant, at most the rank of the data")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, places, values, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        copy(ib, source, target, data.shape)
        with loops(ib, indices.shape[1:], name="y") as y:
            at = [ib.let(f"place{d}", from_end(places[(d, *y)], data.shape[d])) for d in range(count or 0)]
            with ib.if_scope(inside(at, data.shape)), loops(ib, data.shape[count:], name="x") as x:
                target[(*at, *x)] = join(target[(*at, *x)], values[(*y, *x)])
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, places, values, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        copied(ib, source, target, data.shape, threads)
        store_updates(_at_positions(
            ib, indices.shape[1:], data.shape, count or 0, target, lambda d, y: from_end(places[(d, *y)], data.shape[d]),
            lambda y, x: values[(*y, *x)], join), threads, shared)
        return ib.get()

    return te.extern(data.shape, [data, indices, updates], body, by_threads=by_threads, name="scatter_nd_generic",
                     dtype=data.dtype, tag="scatter_nd_generic",
                     info=ScatterOp("scatter_nd", None, (data, indices, updates), mode == "add") if mode in ("add", "update")
                     else None)


def at_or_none(place: Any, extent: Any) -> Any:
    """A place as int32, -1 where it lies outside of the extent."""
    return te.select(tir.all(place >= 0, place < extent), place.astype("int32"), te.const(-1, "int32"))


def _at_positions(ib: Any, updates: Sequence[Any], shape: Sequence[Any], rank: int, target: Any,
                  index: Callable[[int, tuple[Any, ...]], Any], new: Callable[[tuple[Any, ...], tuple[Any, ...]], Any],
                  joined: Callable[[Any, Any], Any]) -> Scatter:
    """Updates, one for each index of `updates`, of a target at an index for each of its first `rank` dimensions."""
    def position(at: tuple[Any, ...]) -> Any:
        y = indices_of(at[0], updates)
        places = [ib.let(f"place{d}", index(d, y)) for d in range(rank)]
        flat: Any = te.const(0, "int32")
        for place, extent in zip(places, shape):
            flat = flat * extent + place.astype("int32")
        return te.select(inside(places, shape), flat, te.const(-1, "int32"))

    def element(flat: Any, x: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*indices_of(flat, shape[:rank]), *x)

    ib.scope_attr(target, *TRUST)
    return Scatter(ib, (product(updates),), 0, position, lambda at, flat, x: target[element(flat, x)],
                   lambda at, x: new(indices_of(at[0], updates), x), joined,
                   lambda at, flat, x, value: target.__setitem__(element(flat, x), value), shape[rank:])


def copied(ib: Any, source: Any, target: Any, shape: Sequence[Any], threads: int) -> None:
    """A kernel that copies a tensor of `shape`."""
    with each(ib, product(shape), threads) as number:
        at = indices_of(number, shape)
        target[at] = source[at]


def inside(places: Sequence[Any], shape: Sequence[Any]) -> Any:
    """Whether all indices lie inside of the first dimensions of `shape`."""
    conditions = [c for place, extent in zip(places, shape) for c in (place >= 0, place < extent)]
    return tir.all(*conditions) if conditions else tir.const(True, "bool")


@checked
def sparse_to_dense(sparse_indices: te.Tensor, output_shape: Sequence[Any], sparse_values: te.Tensor,
                    default_value: Any = 0) -> te.Tensor:
    """A tensor of `output_shape` that holds sparse_values[n] at the indices sparse_indices[n] and `default_value` elsewhere.

    sparse_indices: integers (N, rank), or (N,) or () for a vector; sparse_values: (N,), or () for one value at all places.
    default_value: a number or a tensor (). The dtype is that of the values.
    """
    where = opening("sparse_to_dense", sparse_indices)
    require_integers(sparse_indices, where)
    shape = tuple(output_shape)
    rank = 1 if sparse_indices.ndim < 2 else as_int(sparse_indices.shape[1])
    if sparse_indices.ndim > 2 or rank != len(shape) or sparse_values.ndim > 1 or \
            (sparse_values.ndim and (not sparse_indices.ndim or differ(sparse_values.shape[0], sparse_indices.shape[0]))):
        raise ShapeError(f"{where}: the shapes are {shown(sparse_indices.shape)} of the indices, {shown(sparse_values.shape)} "
                         f"of the values and {shown(shape)} of the result", hint="give (N, rank) indices and (N,) values")
    tensors = [sparse_indices, sparse_values, *([default_value] if isinstance(default_value, te.Tensor) else [])]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        places, values, *default = (ib.buffer_ptr(buffer) for buffer in ins)
        target = ib.buffer_ptr(outs[0])
        fill(ib, target, shape, default[0][()].astype(sparse_values.dtype) if default else default_value)
        with loops(ib, sparse_indices.shape[:1]) as n:
            at = [ib.let(f"place{d}", places[(*n, d) if sparse_indices.ndim == 2 else n]) for d in range(len(shape))]
            with ib.if_scope(inside(at, shape)):
                target[tuple(at)] = values[n if sparse_values.ndim else ()]
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        places, values, *default = (ib.buffer_ptr(buffer) for buffer in ins)
        target = ib.buffer_ptr(outs[0])
        with each(ib, product(shape), threads) as number:
            target[indices_of(number, shape)] = default[0][()].astype(sparse_values.dtype) if default else default_value
        store_updates(_at_positions(
            ib, sparse_indices.shape[:1], shape, len(shape), target,
            lambda d, n: places[(*n, d) if sparse_indices.ndim == 2 else n],
            lambda n, x: values[n if sparse_values.ndim else ()], lambda old, new: new), threads, shared)
        return ib.get()

    output: te.Tensor = te.extern([shape], tensors, body, by_threads=by_threads, name="T_sparse_to_dense",
                                  dtype=sparse_values.dtype, tag="sparse_to_dense",
                                  info=ScatterOp("sparse_to_dense", None, tuple(tensors)))
    return output
