"""Operators that move data from one layout to another."""

from __future__ import annotations

from typing import Any

from tedsl import te, tir
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, opening, shown
from topi.injective import injective


@checked
def layout_transform(array: te.Tensor, src_layout: str, dst_layout: str) -> te.Tensor:
    """`array` of the layout `src_layout` in the layout `dst_layout`, for example "NCHW" to "NCHW16c" (see tir.layout).

    A dimension that the blocks do not divide is filled up with zeros. Equal layouts give `array` itself.
    """
    where = opening("layout_transform", array)
    way = tir.bijective_layout(src_layout, dst_layout)
    if len(way.src_layout) != array.ndim:
        raise ShapeError(f"{where}: the layout {src_layout} has {len(way.src_layout)} dimensions, the shape is "
                         f"{shown(array.shape)}")
    if way.src_layout == way.dst_layout:
        return array
    partial = [d for d, letter in enumerate(way.src_layout) if _leaves_rest(array.shape[d], letter, way)]

    def formula(*i: Any) -> Any:
        at = way.backward_index(i)
        inside = [at[d] < array.shape[d] for d in partial]
        return te.if_then_else(te.all(*inside), array(*at), te.const(0, array.dtype)) if inside else array(*at)

    return injective("layout_transform", way.forward_shape(array.shape), formula, name="T_layout_trans",
                     attrs={"src_layout": src_layout, "dst_layout": dst_layout, "schedule_rule": "layout_transform"})


def _leaves_rest(extent: Any, letter: str, way: tir.BijectiveLayout) -> bool:
    """Whether the last block of the new layout may extend beyond the dimension `letter` of the old layout."""
    blocks, before = way.dst_layout.factor_of(letter), way.src_layout.factor_of(letter)
    if letter.islower() or blocks < 0 or blocks == before:
        return False
    known = as_int(extent)
    return (known is None or known * max(before, 1) % blocks != 0) and max(before, 1) % blocks != 0
