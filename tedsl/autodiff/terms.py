"""Tensors of derivatives: the sum, over the loops of a formula, of what one of its reads adds.

    before:  C[i] = sum(A[i, k] * B[2 * k], axis=k)              head H[i]; the read B[2 * k] adds H[i] * A[i, k]
    after:   B.grad[j] = sum(select(2 * k == j, H[i] * A[i, k], 0), axis=[i, k])

An index that is an axis alone, perhaps shifted or reversed, gives the axis its value: A.grad[i, k] = H[i] * B[2 * k] has no sum
at all. Other indices become equations, of which `eliminate_zeros` solves what it can. An index that is read from a tensor is
stored to instead: see `scatter.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.linear import detect_linear_equation
from tedsl.autodiff.sweep import Share
from tedsl.autodiff.zeros import eliminate_zeros
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import uses, variables
from tedsl.lang.declare import define
from tedsl.lang.operation import extent_of, note_axis
from tedsl.lang.reads import has_load
from tedsl.lang.reductions import sum as sum_over
from tedsl.lang.tensor import Tensor


def sum_of_share(share: Share, prefix: Sequence[Var], extents: Sequence[Expr], loops: Sequence[IterVar], name: str) -> Tensor:
    """The tensor of `share` summed over `loops`, for every element that its load may read.

    prefix, extents: variables in the share that become the first dimensions, and their extents.
    """
    read = share.load.producer
    names = [*(f"p{d}" for d in range(len(prefix))), *(f"j{d}" for d in range(read.ndim))]

    def element(*axes: Any) -> Expr:
        places = axes[len(prefix):]
        values, ranges, equations = _solved(share.load.indices, places, read.shape, loops)
        rest = [axis for axis in loops if axis.var not in values]
        values.update(zip(prefix, axes))
        _check_ranges(rest, name)
        renewed = {axis.var: reduced(axis, values) for axis in rest}
        values.update({var: axis.var for var, axis in renewed.items()})
        value = share.guarded
        if equations:
            value = build.select(_all(equations), value, build.const(0.0, value.dtype))
        value = substitute(value, values)
        if ranges:
            value = build.if_then_else(substitute(_all(ranges), values), value, build.const(0.0, value.dtype))
        return sum_over(value, axis=list(renewed.values())) if renewed else value

    return eliminate_zeros(Tensor(define((*extents, *read.shape), element, names, name)))

def _check_ranges(axes: Sequence[IterVar], name: str) -> None:
    """Refuses sums over an axis whose range depends on another axis that is summed over too."""
    for axis in axes:
        if not is_fixed(axis, axes):
            raise TedslError(f"gradient: {name} sums over {axis.name}, whose range depends on another axis of the sum",
                             hint="write the range with constants, and a condition: te.sum(..., axis=k, where=k < n)")


def _all(conditions: Sequence[Expr]) -> Expr:
    total = conditions[0]
    for condition in conditions[1:]:
        total = build.logical_and(total, condition)
    return total

def _solved(indices: Sequence[Expr], places: Sequence[Var], shape: Sequence[Expr], loops: Sequence[IterVar]) \
        -> tuple[dict[Var, Expr], list[Expr], list[Expr]]:
    """The axes that are read alone with their values, the conditions that these values are in range, and the equations of the
    other indices.
    """
    alone = {axis.var: axis for axis in loops}
    values: dict[Var, Expr] = {}
    ranges, equations = [], []
    for index, place, extent in zip(indices, places, shape):
        axis = _axis_and_value(index, alone, place)
        if axis is not None and axis[0] not in values:
            var, values[axis[0]] = axis
            ranges += _within(values[var], alone[var], place, extent)
        elif build.as_int(extent) != 1:
            equations.append(build.equal(index, place))
    return values, ranges, equations


def _axis_and_value(index: Expr, axes: Mapping[Var, IterVar], place: Var) -> tuple[Var, Expr] | None:
    """The one axis that an index is, perhaps reversed, beside terms without axes; and its value where the index is `place`."""
    used = [var for var in variables(index) if var in axes]
    if index in used:
        return used[0], build.cast(used[0].dtype, place)
    if len(used) != 1 or has_load(index):
        return None
    terms = detect_linear_equation(index, used)
    if len(terms) != 2 or build.as_int(terms[0]) not in (1, -1):
        return None
    at = build.cast(index.dtype, place)
    value = build.sub(at, terms[1]) if build.as_int(terms[0]) == 1 else build.sub(terms[1], at)
    return used[0], build.cast(used[0].dtype, Analyzer().simplify(value))


def is_fixed(axis: IterVar, loops: Sequence[IterVar]) -> bool:
    """Whether the range of an axis depends on no other axis."""
    assert axis.dom is not None
    others = [loop.var for loop in loops]
    return not uses(axis.dom.min, others) and not uses(extent_of(axis), others)

def _within(value: Expr, axis: IterVar, place: Var, extent: Expr) -> list[Expr]:
    """The conditions, as far as they do not follow from 0 <= place < extent, that `value` is in the range of `axis`."""
    assert axis.dom is not None
    analyzer = Analyzer()
    analyzer.bind(place, Range.from_min_extent(build.const(0, extent.dtype), extent))
    conditions = [build.less_equal(axis.dom.min, value), build.less(value, build.add(axis.dom.min, extent_of(axis)))]
    return [condition for condition in conditions if not analyzer.can_prove(condition)]

def reduced(axis: IterVar, values: Mapping[Var, Expr]) -> IterVar:
    """A new reduce axis over the range of `axis`, in which variables have the given values."""
    assert axis.dom is not None
    span = Range.from_min_extent(substitute(axis.dom.min, values), substitute(extent_of(axis), values))
    return note_axis(IterVar(span, Var(axis.name, axis.var.dtype), IterType.COMM_REDUCE))
