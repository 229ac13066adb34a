"""Operators that read at positions held in other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, axis_of, differ, indices_at, opening, product, require_integers, shown
from topi.injective import injective


@checked
def take(a: te.Tensor, indices: te.Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> te.Tensor:
    """The elements of `a` at `indices` along `axis`; of `a` as a vector where axis is None. Same as numpy.take.

    indices: integers of any shape, which replaces the extent of `axis` in the result. batch_dims: that many leading dimensions
    belong to both and are walked together; the result is a.shape[:axis] + indices.shape[batch_dims:] + a.shape[axis + 1:].
    mode: "clip" to the first or last element, "wrap" around, "fast": all indices lie inside.

    Raises ArgumentError for an unknown mode, ShapeError for batch dimensions that differ.
    """
    where = opening("take", a)
    require_integers(indices, where)
    if mode not in ("clip", "wrap", "fast"):
        raise ArgumentError(f"{where}: there is no mode {mode!r}", hint="choose 'clip', 'wrap' or 'fast'")
    if axis is None:
        total = product(a.shape)
        return injective("take", indices.shape, lambda *i: a(*indices_at(_inside(indices(*i), total, mode), a.shape)))
    along = axis_of(axis, a.ndim, where)
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(along, indices.ndim) or any(differ(a.shape[d], indices.shape[d]) for d in range(batch)):
        raise ShapeError(f"{where}: {batch_dims} batch dimensions of the shapes {shown(a.shape)} and {shown(indices.shape)} at "
                         f"axis {along}", hint="both begin with the same extents, and axis stands behind them")
    inner = along + indices.ndim - batch  # where the dimensions behind `axis` begin in the result
    shape = (*a.shape[:along], *indices.shape[batch:], *a.shape[along + 1:])

    def formula(*i: Any) -> Any:
        place = _inside(indices(*i[:batch], *i[along:inner]), a.shape[along], mode)
        return a(*i[:along], place, *i[inner:])

    return injective("take", shape, formula)


def _inside(index: Any, extent: Any, mode: str) -> Any:
    """An index from 0 to extent - 1, as `mode` says."""
    if mode == "fast":
        return index
    return te.floormod(index, extent) if mode == "wrap" else te.min(te.max(index, 0), extent - 1)


def from_end(index: Any, extent: Any) -> Any:
    """An index of which negative ones count from the end."""
    return index if index.dtype.is_uint else te.select(index < 0, index + extent, index)


def gather(data: te.Tensor, axis: int, indices: te.Tensor) -> te.Tensor:
    """result[i] = data[i with i[axis] replaced by indices[i]], of the shape of `indices`. As numpy.take_along_axis.

    indices: integers of the rank of `data`, with extents no larger than its (but along `axis`); negative ones count from the
    end.

    Raises ShapeError for indices that do not fit the data.
    """
    where = opening("gather", data)
    along = axis_of(axis, data.ndim, where)
    require_integers(indices, where)
    if indices.ndim != data.ndim or any(_larger(indices.shape[d], data.shape[d]) for d in range(data.ndim) if d != along):
        raise ShapeError(f"{where}: the indices {indices.name} have the shape {shown(indices.shape)}, the data "
                         f"{shown(data.shape)}", hint=f"their extents must fit beside axis {along}")
    return injective("gather", indices.shape,
                     lambda *i: data(*i[:along], from_end(indices(*i), data.shape[along]), *i[along + 1:]))


def _larger(one: Any, other: Any) -> bool:
    a, b = as_int(one), as_int(other)
    return a is not None and b is not None and a > b


@checked
def gather_nd(a: te.Tensor, indices: te.Tensor, batch_dims: int = 0) -> te.Tensor:
    """result[y, x] = a[indices[0, y], ..., indices[M - 1, y], x]: the first dimension of `indices` counts dimensions of `a`.

    a: (X_0, ..., X_{N-1}); indices: (M, Y_0, ...) with M <= N, integers, or floats, whose fractions are dropped. Returns
    (Y_0, ..., X_M, ..., X_{N-1}). Negative indices count from the end. Same as a[tuple(indices)] of numpy.
    batch_dims: how many first dimensions of `a` and of Y are the same, which are not looked up (TVM 0.9).

    Raises ShapeError for indices that do not fit the data.
    """
    where = opening("gather_nd", a)
    if not isinstance(indices, te.Tensor) or not indices.dtype.is_float:
        require_integers(indices, where)
    count = as_int(indices.shape[0]) if indices.ndim else None
    if not 0 <= batch_dims <= min(a.ndim, max(indices.ndim - 1, 0)) or any(
            as_int(own) != as_int(other) for own, other in zip(a.shape[:batch_dims], indices.shape[1:batch_dims + 1])
            if as_int(own) is not None and as_int(other) is not None):
        raise ShapeError(f"{where}: batch_dims is {batch_dims} for data {shown(a.shape)} and indices {shown(indices.shape)}",
                         hint="the first batch_dims extents of the data are those of the indices behind their first dimension")
    if count is None or batch_dims + count > a.ndim:
        raise ShapeError(f"{where}: the indices {indices.name} have the shape {shown(indices.shape)}, the data "
                         f"{shown(a.shape)}",
                         hint="the first dimension of the indices is a constant, at most the rank of the data")
    outer = indices.ndim - 1

    def formula(*i: Any) -> Any:
        found = [from_end(_whole(indices(d, *i[:outer])), a.shape[batch_dims + d]) for d in range(count)]
        return a(*i[:batch_dims], *found, *i[outer:])

    return injective("gather_nd", (*indices.shape[1:], *a.shape[batch_dims + count:]), formula)


def _whole(index: Any) -> Any:
    return index.astype("int32") if index.dtype.is_float else index


@checked
def adv_index(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """data[indices[0], indices[1], ...] of numpy, with tensors of integers whose shapes broadcast.

    Returns the broadcast shape followed by the dimensions of `data` that have no index. Negative indices count from the end.
    """
    where = opening("adv_index", data)
    given = list(indices)
    if not 0 < len(given) <= data.ndim:
        raise ShapeError(f"{where}: {len(given)} indices for the shape {shown(data.shape)}",
                         hint="give at least one and at most one for each dimension")
    joined = given[0].shape
    for tensor in given:
        require_integers(tensor, where)
        joined = te.broadcast_shape(te.placeholder(joined, tensor.dtype, name="indices"), tensor, where)
    outer = len(joined)

    def formula(*i: Any) -> Any:
        places = [te.broadcast_element(tensor, i[:outer], joined) for tensor in given]
        return data(*[from_end(place, data.shape[d]) for d, place in enumerate(places)], *i[outer:])

    return injective("adv_index", (*joined, *data.shape[len(given):]), formula, name="advanced_index")
