"""Partial results of rfactor that are equal: those of neighbouring elements, where windows overlap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NoReturn

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.pattern import detect_linear_equation
from tedsl.ir import build
from tedsl.ir.expr import BinaryOp, Expr, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import ComputeOp, note_axis
from tedsl.record import record
from tedsl.schedule.state import StageState, describe

Refuse = Callable[..., NoReturn]


@record(eq=False)
class EqualParts:
    """Partial results that depend on `along` and `loop` by step * along + stride * loop alone, and have one element for each
    such number: `axis` counts them from `first` on. gone: what a variable of the two is in terms of the other and `axis`.
    """

    along: IterVar
    loop: IterVar
    step: int
    stride: int
    first: int
    axis: IterVar
    gone: dict[Var, Expr]

    def place(self, element: Expr, iteration: Expr) -> Expr:
        """Returns where the partial result of an `iteration` of the loop is that an `element` of `along` reads."""
        moved = build.add(build.mul(element, self.step), build.mul(iteration, self.stride))
        return moved if self.first == 0 else build.sub(moved, self.first)

    def rewritten(self, value: Expr) -> Expr:
        """Returns `value` in terms of the new axis."""
        return Analyzer().simplify(substitute(value, self.gone))

    def differ_in(self, value: Expr) -> bool:
        """Whether `value` depends on more than the number that `axis` counts."""
        return not {self.along.var, self.loop.var}.isdisjoint(variables(self.rewritten(value)))


def along_axis(stage: StageState, op: ComputeOp, along: object, factor_axis: object, directive: str) -> IterVar:
    """Returns `along` if it is an axis of the elements of `op`; refuses what is not."""
    if not isinstance(along, IterVar) or not any(along is axis for axis in op.axis):
        what = along.name if isinstance(along, IterVar) else describe(along)
        names = ", ".join(axis.name for axis in op.axis)
        raise stage.refuse(directive, f"along is an axis of the elements of {stage.name}, got {what}",
                           hint=f"choose one of {names}" if names else "a tensor without axes has no equal partial results")
    if factor_axis != 0:
        raise stage.refuse(directive, f"with along={along.name} the new axis has the place of {along.name}",
                           hint="leave factor_axis out")
    return along


def equal_parts(stage: StageState, values: Sequence[Expr], along: IterVar, loop: IterVar, directive: str) -> EqualParts:
    """Returns how partial results, of which `values` are made, are equal along an axis; refuses where they are not.

    loop: the factored loop, as an axis of the partial results.
    """
    counts = [build.as_int(axis.dom.extent) if axis.dom is not None else None for axis in (along, loop)]
    for axis, count in zip((along, loop), counts):
        if count is None:
            raise stage.refuse(directive, f"{axis.name} has {shown(axis.dom and axis.dom.extent)} iterations, which is no "
                               "constant: how many partial results differ is not known", hint="leave along out")
    steps = _steps(values, along.var, loop.var)
    if steps is None:
        raise stage.refuse(directive, f"no index adds {along.name} and {loop.name}: no partial results of different "
                           f"{along.name} are equal",
                           hint=f"along is for windows, such as A[{along.name} + {loop.name}]; leave it out otherwise")
    step, stride = steps
    ends = [(count or 0) * by - by for count, by in zip(counts, steps)]
    first, last = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    var = Var(f"{along.name}.{loop.name}", along.var.dtype)
    axis = note_axis(IterVar(Range.from_min_extent(0, last - first + 1), var))
    number = build.add(var, first)
    if abs(stride) == 1:
        gone = {loop.var: build.cast(loop.var.dtype, build.mul(build.sub(number, build.mul(along.var, step)), stride))}
    elif abs(step) == 1:
        gone = {along.var: build.cast(along.var.dtype, build.mul(build.sub(number, build.mul(loop.var, stride)), step))}
    else:
        raise stage.refuse(directive, f"{along.name} and {loop.name} move by {step} and {stride}, of which neither is 1: "
                           "between the places that are read there are others", hint="leave along out")
    parts = EqualParts(along, loop, step, stride, first, axis, gone)
    for value in values:
        if parts.differ_in(value):
            raise stage.refuse(directive, f"partial results of different {along.name} are not equal: beside "
                               f"{shown(parts.place(along.var, loop.var))} they depend on {shown(_differing(value, parts))}",
                               hint="leave along out")
    return parts


def _differing(value: Expr, parts: EqualParts) -> Expr:
    """Returns the load, condition or other part of `value` by which partial results differ."""
    while True:
        inner = [one for one in value.child_nodes() if isinstance(one, Expr) and parts.differ_in(one)
                 and not (isinstance(one, (Var, BinaryOp)) and one.dtype.is_integer)]
        if not inner:
            return value
        value = inner[0]


def _steps(values: Sequence[Expr], along: Var, loop: Var) -> tuple[int, int] | None:
    """Returns by how much an iteration of either variable moves the first number that both are in, as small integers."""
    for node in [node for value in values for node in post_order(value)]:
        if isinstance(node, BinaryOp) and node.dtype.is_integer and node.dtype.lanes == 1:
            by = list(map(build.as_int, detect_linear_equation(node, [along, loop])[:2]))
            if len(by) == 2 and by[0] and by[1]:
                common = math.gcd(by[0], by[1])
                return by[0] // common, by[1] // common
    return None
