"""Operators that reverse the order of elements."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.extents import axis_of, differ, opening, require_integers, shown
from topi.injective import injective


def flip(a: te.Tensor, axis: int = 0) -> te.Tensor:
    """`a` with dimension `axis` in reverse order. Same as numpy.flip along one axis."""
    where = opening("flip", a)
    along = axis_of(axis, a.ndim, where)
    last = a.shape[along] - 1
    return injective("flip", a.shape, lambda *i: a(*i[:along], last - i[along], *i[along + 1:]), name="T_reverse_sequence")


def reverse_sequence(a: te.Tensor, seq_lengths: te.Tensor | None, seq_axis: int = 1, batch_axis: int = 0) -> te.Tensor:
    """`a` where for each position b of `batch_axis` the first seq_lengths[b] elements along `seq_axis` are in reverse order.

    seq_lengths: (a.shape[batch_axis],) of integers; more than there are means all, 1 or less none. None reverses all.
    The rest stays where it is. Same as tf.reverse_sequence.
    """
    where = opening("reverse_sequence", a)
    along = axis_of(seq_axis, a.ndim, where, "seq_axis")
    if seq_lengths is None:
        return flip(a, along)
    batch = axis_of(batch_axis, a.ndim, where, "batch_axis")
    require_integers(seq_lengths, where, "seq_lengths")
    if seq_lengths.ndim != 1 or differ(seq_lengths.shape[0], a.shape[batch]):
        raise ShapeError(f"{where}: seq_lengths {seq_lengths.name} has the shape {shown(seq_lengths.shape)}, and dimension "
                         f"{batch} of {shown(a.shape)} has extent {a.shape[batch]!r}",
                         hint="give one length for each position of batch_axis")
    lengths = seq_lengths

    def formula(*i: Any) -> Any:
        length = te.min(lengths(i[batch]), a.shape[along])
        place = te.select(i[along] < length, length - 1 - i[along], i[along])
        return a(*i[:along], place, *i[along + 1:])

    return injective("reverse_sequence", a.shape, formula)
