"""Operators that move or rename dimensions: no element changes its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, axes_of, axis_of, differ, indices_at, opening, product, row_major, shown
from topi.injective import injective
from topi.tag import BROADCAST


@checked
def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """`a` with `num_newaxis` dimensions of extent 1 before dimension `axis` (negative: counted from the end of the result).

    a: any shape and dtype. For one new dimension the same as numpy.expand_dims.

    Raises ShapeError for an axis that the result does not have.
    """
    where = opening("expand_dims", a)
    place = axis_of(axis, a.ndim + 1, where)
    if num_newaxis < 0:
        raise ShapeError(f"{where}: num_newaxis is {num_newaxis}, below 0")
    shape = (*a.shape[:place], *[1] * num_newaxis, *a.shape[place:])
    return injective("expand_dims", shape, lambda *i: a(*i[:place], *i[place + num_newaxis:]), tag=BROADCAST)


def expand_like(a: te.Tensor, shape_like: te.Tensor, axis: int | Sequence[int]) -> te.Tensor:
    """`a` repeated along the new dimensions `axis`, to the shape of `shape_like`, whose values do not matter.

    The other dimensions of `shape_like` are those of `a`, in order. A tensor of one element fills the whole shape where `axis`
    names all of its dimensions.
    """
    where = opening("expand_like", a)
    opening(f"{where}, shape_like", shape_like)
    new = axes_of(axis, shape_like.ndim, where)
    kept = [d for d in range(shape_like.ndim) if d not in new]
    if not kept and a.ndim == 1 and not differ(a.shape[0], 1):
        return injective("expand_like", shape_like.shape, lambda *i: a(0))
    if len(kept) != a.ndim or any(differ(a.shape[n], shape_like.shape[d]) for n, d in enumerate(kept)):
        raise ShapeError(f"{where}: the shape {shown(a.shape)} with new dims at {tuple(sorted(new))} is not "
                         f"{shown(shape_like.shape)}, that of {shape_like.name}",
                         hint="name in axis the dimensions that the tensor does not have yet")
    return injective("expand_like", shape_like.shape, lambda *i: a(*[i[d] for d in kept]))


@checked
def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """`a` with its dimensions in the order `axes`; reversed where axes is None or empty. Same as numpy.transpose.

    Raises ShapeError for axes that are not a permutation of the dimensions.
    """
    where = opening("transpose", a)
    order = axes_of(tuple(axes), a.ndim, where, "axes") if axes else tuple(reversed(range(a.ndim)))
    if len(order) != a.ndim:
        raise ShapeError(f"{where}: {len(order)} axes for a tensor of {a.ndim} dimensions", hint="name every dimension once")
    return injective("transpose", [a.shape[d] for d in order], lambda *i: a(*[i[order.index(d)] for d in range(a.ndim)]))


def squeeze(a: te.Tensor, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """`a` without the dimensions `axis`, which have extent 1; if axis is None, without all dimensions whose extent is the
    constant 1.

    Raises ShapeError for an axis whose extent is not 1.
    """
    where = opening("squeeze", a)
    gone = [d for d in range(a.ndim) if as_int(a.shape[d]) == 1] if axis is None else list(axes_of(axis, a.ndim, where))
    for d in gone:
        if differ(a.shape[d], 1):
            raise ShapeError(f"{where}: dimension {d} has extent {a.shape[d]!r}, not 1; the shape is {shown(a.shape)}")
    kept = [d for d in range(a.ndim) if d not in gone]
    return injective("squeeze", [a.shape[d] for d in kept],
                     lambda *i: a(*[0 if d in gone else i[kept.index(d)] for d in range(a.ndim)]))


@checked
def reshape(a: te.Tensor, newshape: int | Sequence[Any]) -> te.Tensor:
    """The elements of `a` in row-major order under another shape. Same as numpy.reshape.

    newshape: an int or a sequence of ints and integer expressions; one of them may be -1, which is what remains. Constant
    numbers of elements must be equal; symbolic ones are taken to be.

    Raises ShapeError if the numbers of elements differ.
    """
    where = opening("reshape", a)
    shape = _completed(a, list(newshape) if isinstance(newshape, (tuple, list)) or hasattr(newshape, "__iter__")
                       else [newshape], where)
    if differ(product(shape), product(a.shape)):
        raise ShapeError(f"{where}: the shape {shown(a.shape)} has {product(a.shape)!r} elements, {shown(shape)} has "
                         f"{product(shape)!r}", hint="write -1 for one dimension to have it computed")
    if as_int(product(shape)) == 0:
        return injective("reshape", shape, lambda *i: te.const(0, a.dtype))
    head, tail = _common(a.shape, shape)
    inner, given = a.shape[head:a.ndim - tail], shape[head:len(shape) - tail]

    def formula(*i: Any) -> Any:
        moved = indices_at(row_major(i[head:len(shape) - tail], given), inner)
        return a(*i[:head], *moved, *i[len(shape) - tail:])

    return injective("reshape", shape, formula)


def _completed(a: te.Tensor, shape: list[Any], where: str) -> list[Any]:
    """The new shape with its -1 computed."""
    constants = [as_int(extent) for extent in shape]
    if any(value is not None and value < -1 for value in constants) or constants.count(-1) > 1:
        raise ShapeError(f"{where}: the new shape is {shown(shape)}", hint="dimensions are at least 0, one may be -1")
    if -1 not in constants:
        return shape
    place = constants.index(-1)
    before, after = _equal(a.shape, shape[:place]), _equal(a.shape[::-1], shape[:place:-1])
    before = before if before == place else 0  # equal dimensions cancel: symbolic ones need no division then
    after = after if after == len(shape) - 1 - place and before + after <= a.ndim else 0
    others = product([*shape[before:place], *shape[place + 1:len(shape) - after]])
    total = product(a.shape[before:a.ndim - after])
    count, unit = as_int(total), as_int(others)
    if unit == 0 or (count is not None and unit is not None and count % unit):
        raise ShapeError(f"{where}: the shape {shown(a.shape)} does not divide into {shown(shape)}",
                         hint=f"the dimensions beside -1 must divide the number of elements, {product(a.shape)!r}")
    shape[place] = total if unit == 1 else total // others
    return shape


def _common(one: Sequence[Any], other: Sequence[Any]) -> tuple[int, int]:
    """The number of leading dimensions that both shapes share, and the number of trailing ones among the rest."""
    head = _equal(one, other)
    return head, _equal(one[head:][::-1], other[head:][::-1])


def _equal(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many leading dimensions are equal."""
    for position, (a, b) in enumerate(zip(one, other)):
        if not te.same_extent(te.const(a) if isinstance(a, int) else a, te.const(b) if isinstance(b, int) else b):
            return position
    return min(len(one), len(other))
