"""Operators that repeat elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, axis_of, opening
from topi.injective import injective
from topi.tag import BROADCAST


def repeat(a: te.Tensor, repeats: int, axis: int) -> te.Tensor:
    """Each element of `a` `repeats` times in a row along `axis`. Same as numpy.repeat with an int."""
    where = opening("repeat", a)
    along = axis_of(axis, a.ndim, where)
    times = as_int(repeats)
    if times is None or times < 1:
        raise ShapeError(f"{where}: repeats is {repeats!r}, not an int of at least 1")
    shape = (*a.shape[:along], a.shape[along] * times, *a.shape[along + 1:])
    return injective("repeat", shape, lambda *i: a(*i[:along], i[along] // times, *i[along + 1:]), tag=BROADCAST)


@checked
def tile(a: te.Tensor, reps: int | Sequence[Any]) -> te.Tensor:
    """The whole of `a` reps[d] times along dimension d, aligned at the last dimension. Same as numpy.tile.

    Raises ShapeError for a count below 0.
    """
    given: list[Any] = list(reps) if hasattr(reps, "__iter__") else [reps]
    if any((as_int(times) or 0) < 0 for times in given):
        raise ShapeError(f"tile of {a.name}: reps is {tuple(given)}, a count is below 0")
    rank = max(len(given), a.ndim)
    times: list[Any] = [1] * (rank - len(given)) + given
    own = [1] * (rank - a.ndim) + list(a.shape)
    shape: list[Any] = [extent if as_int(count) == 1 else count * extent for count, extent in zip(times, own)]
    first = rank - a.ndim

    def formula(*i: Any) -> Any:
        return a(*[i[d] if as_int(times[d]) == 1 else i[d] % own[d] for d in range(first, rank)])

    return injective("tile", shape, formula, tag=BROADCAST)
