"""Expressions whose loads are kept inside their memory: clamped indices, and choices that are made lazily."""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import And, BufferLoad, Expr, Load, Or, Select
from tedsl.ir.node import Node
from tedsl.ir.walk.around import Eager
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.checks import Keep, clamp
from tedsl.lower.written.known_memory import BoundedIndex, position

Clamps = dict[Node, list[BoundedIndex]]


def mended(expr: Expr, clamps: Clamps, lazy: dict[Eager, None], keep: Keep = clamp) -> Expr:
    """`expr` with the indices of the listed loads as `keep` makes them, and the listed choices lazy."""
    if not clamps and not lazy:
        return expr
    done: dict[Node, Any] = {}
    for node in post_order(expr):
        new: Any = node.map_children(done.__getitem__)
        if node in clamps:
            new = _kept_inside(new, clamps[node], keep)
        elif node in lazy and isinstance(new, Select):
            new = build.if_then_else(new.condition, new.true_value, new.false_value)
        elif node in lazy and isinstance(new, And):
            new = build.if_then_else(new.a, new.b, build.const(False))
        elif node in lazy and isinstance(new, Or):
            new = build.if_then_else(new.a, build.const(True), new.b)
        done[node] = new
    return done[expr]  # type: ignore[no-any-return]


def _kept_inside(load: Load | BufferLoad, places: list[BoundedIndex], keep: Keep) -> Expr:
    """`load` with the indices that stand for `places` as `keep` makes them."""
    if isinstance(load, Load):
        return load.replace(index=_kept(load.index, places[0], keep))
    if places[0].dim is None:
        return Load(load.dtype, load.buffer.data, _kept(position(load.buffer, load.indices), places[0], keep))
    indices = list(load.indices)
    for place in places:
        assert place.dim is not None
        indices[place.dim] = _kept(indices[place.dim], place, keep)
    return load.replace(indices=tuple(indices))


def _kept(index: Expr, place: BoundedIndex, keep: Keep) -> Expr:
    low = place.low
    if build.as_int(low) == 0:
        return keep(index, place.extent)
    return build.add(keep(build.sub(index, low), place.extent), low)
