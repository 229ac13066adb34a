"""Operators that choose elements by a condition on their values or places."""

from __future__ import annotations

from typing import Annotated, Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.arguments import Widths, checked
from topi.extents import as_int, axis_of, constant, differ, opening, require_integers, require_one_dtype, shown
from topi.injective import injective
from topi.tag import BROADCAST


@checked
def where(condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """x where `condition` is not zero, else y; the three shapes broadcast. Same as numpy.where, for x and y of one dtype."""
    require_one_dtype([x, y], "where")
    pair = te.placeholder(te.broadcast_shape(x, y, "where"), x.dtype, name=f"{x.name} with {y.name}")
    shape = te.broadcast_shape(condition, pair, "where")

    def formula(*i: Any) -> Expr:
        chosen = te.broadcast_element(condition, i, shape)
        holds = chosen if chosen.dtype == "bool" else chosen != te.const(0, chosen.dtype)
        return te.select(holds, te.broadcast_element(x, i, shape), te.broadcast_element(y, i, shape))

    return te.compute(shape, formula, name="T_where", tag=BROADCAST, info=te.ElementwiseOp("where", broadcasts=True),
                      axes="ax")


def sequence_mask(data: te.Tensor, valid_length: te.Tensor, mask_value: float = 0, axis: int = 0) -> te.Tensor:
    """`data` with the elements at or behind valid_length[b] along `axis` replaced by `mask_value`.

    data: (length, batch, ...) for axis 0, (batch, length, ...) for axis 1; valid_length: (batch,) of integers.
    """
    place = opening("sequence_mask", data)
    if data.ndim < 2 or axis not in (0, 1):
        raise ShapeError(f"{place}: axis {axis} of the shape {shown(data.shape)}",
                         hint="the axis is 0 or 1 and the other one of the two is the batch")
    require_integers(valid_length, place, "valid_length")
    if valid_length.ndim != 1 or differ(valid_length.shape[0], data.shape[1 - axis]):
        raise ShapeError(f"{place}: valid_length {valid_length.name} has the shape {shown(valid_length.shape)} and the data "
                         f"{shown(data.shape)}", hint=f"give one length for each position of dimension {1 - axis}")
    value = constant(mask_value, data.dtype, place, "mask_value")
    return injective("sequence_mask", data.shape,
                     lambda *i: te.select(i[axis] >= valid_length(i[1 - axis]), value, data(*i)))


@checked
def trilu(data: te.Tensor, k: Annotated[Any, te.Tensor, int], upper: bool) -> te.Tensor:
    """The elements of matrices, the last two dimensions, with column - row >= k if `upper`, else <= k; 0 elsewhere.

    k: a tensor () of integers, or a number. Same as numpy.triu and tril, and ONNX Trilu.
    """
    place = opening("trilu", data)
    if data.ndim < 2:
        raise ShapeError(f"{place}: the shape is {shown(data.shape)}", hint="matrices are the last two dimensions")
    if isinstance(k, te.Tensor):
        require_integers(k, place, "k")
        if k.ndim > 1 or (k.ndim == 1 and as_int(k.shape[0]) != 1):
            raise ShapeError(f"{place}: k has the shape {shown(k.shape)}", hint="one number: te.placeholder((), 'int64')")

    def formula(*i: Any) -> Expr:
        at, least = i[-1] - i[-2], k(*[0] * k.ndim) if isinstance(k, te.Tensor) else k
        return te.select(at >= least if upper else at <= least, data(*i), te.const(0, data.dtype))

    return injective("trilu", data.shape, formula)


def one_hot(indices: te.Tensor, on_value: Any, off_value: Any, depth: int, axis: int, dtype: Any) -> te.Tensor:
    """`on_value` where the position along a new dimension `axis` of extent `depth` is the index, else `off_value`; of `dtype`.

    indices: integers of any shape; an index outside of 0 to depth - 1 gives no `on_value`. axis -1 is the last of the result.
    """
    at = opening("one_hot", indices)
    require_integers(indices, at)
    along = axis_of(axis, indices.ndim + 1, at)
    if (as_int(depth) or 0) < 0:
        raise ShapeError(f"{at}: depth is {depth!r}, below 0")
    on, off = (constant(v, dtype, at, name) for v, name in ((on_value, "on_value"), (off_value, "off_value")))
    shape = (*indices.shape[:along], depth, *indices.shape[along:])

    def formula(*i: Any) -> Expr:
        index: Expr = indices(*i[:along], *i[along + 1:])
        if index.dtype.bits == 64 and (as_int(depth) or 0) < 1 << 31:  # positions of 32 bits are compared twice as fast
            outside = te.const(0, index.dtype) + depth
            index = te.select(te.all(index >= 0, index < outside), index, outside).astype("int32")
        return te.select(index == i[along], on, off)

    return injective("one_hot", shape, formula)


@checked
def matrix_set_diag(data: te.Tensor, diagonal: te.Tensor, k: Widths = 0, align: str = "RIGHT_LEFT") -> te.Tensor:
    """`data` with the diagonals k of its last two dimensions replaced. Same as tf.linalg.set_diag.

    data: (..., rows, columns). k: 0 the main diagonal, positive above it, negative below; a pair is a band k[0] <= k[1].
    diagonal: (..., length) for one diagonal, (..., k[1] - k[0] + 1, length) for a band, the topmost first; its length is that
    of the longest. align: where shorter ones stand in their row, for those above and those below: LEFT or RIGHT each.
    """
    at = opening("matrix_set_diag", data)
    low, high = (k[0], k[-1]) if isinstance(k, (tuple, list)) else (k, k)
    if align not in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        raise ArgumentError(f"{at}: there is no align {align!r}", hint="RIGHT_LEFT, LEFT_RIGHT, LEFT_LEFT or RIGHT_RIGHT")
    require_one_dtype([data, diagonal], at)
    _check_diagonals(data, diagonal, low, high, at)
    above, below = (side == "RIGHT" for side in align.split("_"))
    rows, columns = data.shape[-2:]
    length = diagonal.shape[-1]

    def formula(*i: Any) -> Expr:
        row, column = i[-2:]
        offset = column - row
        own = te.min(rows + te.min(offset, 0), columns - te.max(offset, 0))  # how many elements this diagonal has
        pushed = _pushed(offset, length - own, above, below)
        place = te.min(row, column) + pushed
        value = diagonal(*i[:-2], place) if low == high else diagonal(*i[:-2], high - offset, place)
        inside = offset == low if low == high else te.all(offset >= low, offset <= high)
        return te.if_then_else(inside, value, data(*i))

    return injective("matrix_set_diag", data.shape, formula)


def _pushed(offset: Any, gap: Any, above: bool, below: bool) -> Any:
    """The distance of a diagonal from the left end of its row, by its alignment."""
    return gap if above and below else 0 if not above and not below else te.select(offset >= 0 if above else offset < 0, gap, 0)


def _check_diagonals(data: te.Tensor, diagonal: te.Tensor, low: int, high: int, where: str) -> None:
    wanted = data.ndim - 1 if low == high else data.ndim
    if data.ndim < 2 or low > high or diagonal.ndim != wanted:
        raise ShapeError(f"{where}: diagonals {low} to {high} of the shape {shown(data.shape)} from {shown(diagonal.shape)}",
                         hint=f"the diagonals have {wanted} dimensions")
    rows, columns = (as_int(extent) for extent in data.shape[-2:])
    if any(differ(a, b) for a, b in zip(data.shape[:-2], diagonal.shape)):
        raise ShapeError(f"{where}: the leading dimensions of {shown(data.shape)} and {shown(diagonal.shape)} differ")
    if low != high and differ(diagonal.shape[-2], high - low + 1):
        raise ShapeError(f"{where}: {shown(diagonal.shape)} has {diagonal.shape[-2]!r} diagonals, {low} to {high} are "
                         f"{high - low + 1}")
    if rows is None or columns is None:
        return
    if not -rows < low <= high < columns and rows and columns:
        raise ShapeError(f"{where}: diagonals {low} to {high} do not exist in {rows} rows and {columns} columns")
    longest = min(rows + min(high, 0), columns - max(low, 0))
    if differ(diagonal.shape[-1], longest):
        raise ShapeError(f"{where}: the diagonals have {diagonal.shape[-1]!r} elements each, the longest of {low} to {high} in "
                         f"{shown(data.shape)} has {longest}")
