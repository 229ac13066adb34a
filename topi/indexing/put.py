"""Operators that replace elements of a tensor: at positions of several tensors, and along a slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, axis_of, differ, opening, product, require_integers, require_one_dtype, shown
from topi.indexing.scatter import scatter_nd
from topi.injective import injective


@checked
def index_put(data: te.Tensor, indices: Annotated[Any, te.Tensor, Sequence[te.Tensor]], values: te.Tensor,
              accumulate: bool = False) -> te.Tensor:
    """`data` with data[indices[0][x], indices[1][x], ...] = values[x], or += with `accumulate`, for all x.

    indices: a tensor of integers for each dimension, whose shapes broadcast; negative ones count from the end, and what is
    outside is left out. values: as many as there are positions, in their order, or a shape that broadcasts to theirs. Of equal
    positions the last counts. Same as torch.Tensor.index_put.
    """
    where = opening("index_put", data)
    places = [indices] if isinstance(indices, te.Tensor) else list(indices)
    if len(places) != data.ndim:
        raise ShapeError(f"{where}: there are {len(places)} tensors of indices for the {data.ndim} dimensions of "
                         f"{shown(data.shape)}", hint="give one for each dimension")
    require_one_dtype([data, values], where)
    shape: tuple[Any, ...] = places[0].shape
    for place in places:
        require_integers(place, where)
        shape = te.broadcast_shape(te.placeholder(shape, name="indices"), place, where)
    joined = injective("index_put_indices", [len(places), *shape], lambda d, *x: _chosen(d, [
        te.broadcast_element(place, x, shape).astype("int64") for place in places]))
    return scatter_nd(data, joined, _at_positions(values, shape, where), "add" if accumulate else "update")


def _chosen(number: Any, values: Sequence[Any]) -> Any:
    """Of several values the one with this number."""
    found = values[-1]
    for n in reversed(range(len(values) - 1)):
        found = tir.if_then_else(number == n, values[n], found)
    return found


def _at_positions(values: te.Tensor, shape: tuple[Any, ...], where: str) -> te.Tensor:
    """The values as a tensor of the shape of the positions."""
    if values.ndim == len(shape) and not any(map(differ, values.shape, shape)):
        return values
    count, own = product(list(shape)), product(list(values.shape))
    if values.ndim == 1 and as_int(count - own) == 0:

        def flat(*x: Any) -> Any:
            at: Any = 0
            for index, extent in zip(x, shape):
                at = at * extent + index
            return values(at)

        return injective("index_put_values", shape, flat)
    whole = te.broadcast_shape(te.placeholder(shape, name="positions"), values, where)
    if len(whole) != len(shape) or any(map(differ, whole, shape)):
        raise ShapeError(f"{where}: values has the shape {shown(values.shape)} and there are positions {shown(shape)}",
                         hint="give one value for each position")
    return injective("index_put_values", shape, lambda *x: te.broadcast_element(values, x, whole))


@checked
def slice_scatter(input_tensor: te.Tensor, src: te.Tensor, start: int, end: int, step: int, axis: int) -> list[te.Tensor]:
    """[`input_tensor` with the places start, start + step, ... before `end` along `axis` replaced by `src`]: a list of one.

    start, end: constants, negative ones count from the end; step: at least 1. Same as torch.slice_scatter.
    """
    where = opening("slice_scatter", input_tensor)
    along = axis_of(axis, input_tensor.ndim, where)
    require_one_dtype([input_tensor, src], where)
    extent, first, last, stride = [as_int(one) for one in (input_tensor.shape[along], start, end, step)]
    if extent is None or first is None or last is None or stride is None or stride < 1:
        raise ArgumentError(f"{where}: start {start!r}, end {end!r} and step {step!r} of an extent of {extent!r}",
                            hint="they are constants, and the step is at least 1")
    begin, stop, _ = slice(first, last).indices(extent)
    count = len(range(begin, stop, stride))
    wanted = [count if d == along else e for d, e in enumerate(input_tensor.shape)]
    if src.ndim != len(wanted) or any(map(differ, src.shape, wanted)):
        raise ShapeError(f"{where}: src has the shape {shown(src.shape)}, and the slice {shown(wanted)}",
                         hint=f"input_tensor[{begin}:{stop}:{stride}] along dimension {along}")

    def formula(*i: Any) -> Any:
        at = i[along] - begin
        inside = tir.all(at >= 0, i[along] < stop, at % stride == 0)
        return tir.if_then_else(inside, src(*i[:along], at // stride, *i[along + 1:]), input_tensor(*i))

    return [injective("slice_scatter", input_tensor.shape, formula)]
