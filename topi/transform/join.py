"""Operators that join tensors and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, axis_of, differ, opening, require_one_dtype, shown
from topi.injective import injective


@checked
def concatenate(a_tuple: te.Tensor | Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """The tensors one after the other along `axis`. Same as numpy.concatenate; all of one dtype.

    The other dimensions are equal; the extent of `axis` is the sum.

    Raises ShapeError for shapes that differ beside the axis, ArgumentError for no tensors.
    """
    tensors = _given(a_tuple, "concatenate")
    along = axis_of(axis, tensors[0].ndim, "concatenate")
    _check_shapes(tensors, "concatenate", along)
    ends = [tensors[0].shape[along]]
    for tensor in tensors[1:]:
        ends.append(ends[-1] + tensor.shape[along])
    shape = (*tensors[0].shape[:along], ends[-1], *tensors[0].shape[along + 1:])

    def formula(*i: Any) -> Any:
        element: Any = tensors[0](*i)
        for tensor, start in zip(tensors[1:], ends):
            own = tensor(*i[:along], i[along] - start, *i[along + 1:])
            element = te.if_then_else(i[along] >= start, own, element)
        return element

    return injective("concatenate", shape, formula, name="T_concat")


@checked
def stack(a: te.Tensor | Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Tensors of one shape and dtype along a new dimension `axis`. Same as numpy.stack.

    Raises ShapeError for shapes that differ, ArgumentError for no tensors.
    """
    tensors = _given(a, "stack")
    along = axis_of(axis, tensors[0].ndim + 1, "stack")
    _check_shapes(tensors, "stack", None)
    shape = (*tensors[0].shape[:along], len(tensors), *tensors[0].shape[along:])

    def formula(*i: Any) -> Any:
        own = (*i[:along], *i[along + 1:])
        element: Any = tensors[0](*own)
        for number, tensor in enumerate(tensors[1:], 1):
            element = te.if_then_else(i[along] == number, tensor(*own), element)
        return element

    return injective("stack", shape, formula)


@checked
def split(ary: te.Tensor, indices_or_sections: int | Sequence[Any], axis: int = 0) -> list[te.Tensor]:
    """`ary` cut along `axis`: into that many equal parts, or before each of the ascending positions of a sequence.

    Same as numpy.split: parts behind the end of a constant extent are empty. Returns a list.

    Raises ShapeError for sections that do not divide the dimension.
    """
    where = opening("split", ary)
    along = axis_of(axis, ary.ndim, where)
    extent = ary.shape[along]
    count = as_int(indices_or_sections)
    if count is None and not hasattr(indices_or_sections, "__iter__"):
        raise ArgumentTypeError(f"{where}: {indices_or_sections!r} is neither a number of parts nor a list of positions")
    starts = _equal_parts(extent, count, where) if count is not None else _positions(extent, indices_or_sections, where)
    parts = []
    for start, end in zip(starts, [*starts[1:], extent]):
        shape = (*ary.shape[:along], end - start if as_int(start) != 0 else end, *ary.shape[along + 1:])
        parts.append(injective("split", shape, _shifted(ary, along, start)))
    return parts


def _shifted(ary: te.Tensor, along: int, start: Any) -> Any:
    return lambda *i: ary(*i[:along], i[along] + start, *i[along + 1:])


def _equal_parts(extent: Any, count: int, where: str) -> list[Any]:
    whole = as_int(extent)
    if count < 1 or (whole is not None and whole % count):
        raise ShapeError(f"{where}: the extent {extent!r} cannot be cut into {count} equal parts",
                         hint="give the positions of the cuts instead, for example [2, 5]")
    return [0, *[extent // count * number for number in range(1, count)]]


def _positions(extent: Any, positions: Any, where: str) -> list[Any]:
    whole = as_int(extent)
    starts: list[Any] = [0]
    for position in positions:
        place = as_int(position)
        last = as_int(starts[-1])
        if place is not None and (place < 0 or (last is not None and place < last)):
            raise ShapeError(f"{where}: the positions {list(positions)} do not ascend from 0",
                             hint="each cut lies at or behind the one before it")
        starts.append(position if place is None else place if whole is None or place <= whole else whole)
    return starts


def _given(tensors: Any, where: str) -> list[te.Tensor]:
    listed = [tensors] if isinstance(tensors, te.Tensor) else list(tensors)
    if not listed:
        raise ArgumentError(f"{where}: there is no tensor to join")
    require_one_dtype(listed, where)
    return listed


def _check_shapes(tensors: Sequence[te.Tensor], where: str, along: int | None) -> None:
    """ShapeError where the tensors differ in rank, or in a dimension other than `along`."""
    first = tensors[0]
    for tensor in tensors[1:]:
        if tensor.ndim != first.ndim or any(differ(first.shape[d], tensor.shape[d]) for d in range(first.ndim) if d != along):
            beside = "" if along is None else f" beside axis {along}"
            raise ShapeError(f"{where}: {first.name} has the shape {shown(first.shape)} and "
                             f"{tensor.name} {shown(tensor.shape)}", hint=f"all dimensions{beside} must be equal")
