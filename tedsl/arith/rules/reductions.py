"""Rules for reductions: what the ranges of the axes and the condition decide, and values of tuples that are not used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.expr import Call, CommReducer, Expr, IntImm, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables

T = TypeVar("T")


def fold_reduce(e: Reduce, known: Bounds) -> Expr | None:
    """Returns a simpler form of a reduction, or None: its start value where nothing is reduced, else without axes that have one
    value, and without the values of a tuple that are not used.

    Without axes it is the one value, for the combiner's identity is neutral, or `init` combined with it.
    """
    extents = [known.range(axis.dom.extent) for axis in e.axis if axis.dom is not None and axis.dom.extent is not None]
    if len(extents) < len(e.axis):
        return None
    if _fails(e.condition) or any(most is not None and most <= 0 for _, most in extents):
        return (e.init or e.combiner.identity_element)[e.value_index]
    single = [axis for axis, extent in zip(e.axis, extents) if extent == (1, 1)]
    if single:
        return _at_the_only_value(e, single)
    if not e.axis:
        return _without_axes(e)
    used = _used(e)
    if len(used) == len(e.source):
        return None
    of = e.combiner
    combiner = CommReducer(_kept(of.lhs, used), _kept(of.rhs, used), _kept(of.result, used), _kept(of.identity_element, used))
    return Reduce(combiner, _kept(e.source, used), e.axis, e.condition, used.index(e.value_index), _kept(e.init, used))


def _fails(condition: Expr) -> bool:
    return isinstance(condition, IntImm) and not condition.value


def _at_the_only_value(e: Reduce, axes: Sequence[IterVar]) -> Reduce:
    """Returns the reduction without `axes`, which have one value each: other axes may begin or end there."""
    values: dict[Var, Expr] = {}
    for axis in axes:
        assert axis.dom is not None
        values[axis.var] = build.cast(axis.dtype, substitute(axis.dom.min, values))
    rest = tuple([axis.map_children(partial(substitute, vmap=values)) for axis in e.axis if axis not in axes])
    source = tuple([substitute(value, values) for value in e.source])
    return Reduce(e.combiner, source, rest, substitute(e.condition, values), e.value_index, e.init)


def _without_axes(e: Reduce) -> Expr:
    start = (e.init or e.combiner.identity_element)[e.value_index]
    value = e.source[e.value_index]
    if e.init:
        of = e.combiner
        value = substitute(of.result[e.value_index], dict(zip((*of.lhs, *of.rhs), (*e.init, *e.source))))
    return value if isinstance(e.condition, IntImm) else build.if_then_else(e.condition, value, start)


def _kept(values: Sequence[T], used: Sequence[int]) -> tuple[T, ...]:
    return tuple([values[i] for i in used]) if values else ()


def _acts(value: Expr) -> bool:
    return any(isinstance(node, Call) and node.op.effect == "opaque" for node in post_order(value))


def _used(e: Reduce) -> list[int]:
    """Returns the numbers of the values that the wanted one depends on, itself included, in order; those that do more than give
    a value count as used.
    """
    combiner = e.combiner
    pending = [e.value_index, *(number for number, value in enumerate(e.source) if _acts(value))]
    used = set(pending)
    while pending:
        read = set(variables(combiner.result[pending.pop()]))
        for number, pair in enumerate(zip(combiner.lhs, combiner.rhs)):
            if number not in used and not read.isdisjoint(pair):
                used.add(number)
                pending.append(number)
    return sorted(used)
