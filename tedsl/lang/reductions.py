"""The usual reductions: `sum`, `prod`, `max`, `min`, `all`, `any`.

They shadow Python's functions of these names, so nothing else may live in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import Expr
from tedsl.lang.constants import highest_value, lowest_value
from tedsl.lang.reducer import Reducer, comm_reducer, means_axes
from tedsl.lang.value import as_condition


def _no_bool(name: str, fcombine: Callable[[Any, Any], Expr], instead: str) -> Callable[[Any, Any], Expr]:
    def combine(x: Any, y: Any) -> Expr:
        if getattr(x, "dtype", None) is BOOL and getattr(y, "dtype", None) is BOOL:
            raise DTypeError(f"{name} of bool values is not defined",
                             hint=f"cast to a number, x.astype('int32'), or use te.{instead}")
        return fcombine(x, y)

    return combine


sum: Reducer = comm_reducer(_no_bool("sum", build.add, "any"), lambda t: build.const(0, t), name="sum")
prod: Reducer = comm_reducer(_no_bool("prod", build.mul, "all"), lambda t: build.const(1, t), name="prod")
max: Reducer = comm_reducer(_no_bool("max", build.maximum, "any"), lowest_value, name="max")
min: Reducer = comm_reducer(_no_bool("min", build.minimum, "all"), highest_value, name="min")
_reduce_all = comm_reducer(lambda x, y: build.logical_and(x, y), lambda t: build.const(True, t), name="all")
_reduce_any = comm_reducer(lambda x, y: build.logical_or(x, y), lambda t: build.const(False, t), name="any")


def all(*conditions: Any, axis: Any = None, where: Any = None, init: Any = None) -> Expr:
    """Whether all conditions hold: `all(a, b, ...)`. With an axis, `all(a, axis=k)`, a reduction."""
    return _logical("all", _reduce_all, build.logical_and, conditions, axis, where, init)


def any(*conditions: Any, axis: Any = None, where: Any = None, init: Any = None) -> Expr:
    """Whether any condition holds: `any(a, b, ...)`. With an axis, `any(a, axis=k)`, a reduction."""
    return _logical("any", _reduce_any, build.logical_or, conditions, axis, where, init)


def _logical(name: str, reducer: Callable[..., Any], combine: Callable[[Any, Any], Expr], conditions: Sequence[Any], axis: Any,
             where: Any, init: Any) -> Expr:
    if axis is None and len(conditions) > 1 and means_axes(conditions[1]):
        reduced: Expr = reducer(as_condition(conditions[0], name), *conditions[1:], where=where, init=init)
        return reduced
    if not conditions:
        raise ArgumentError(f"{name}() needs at least one condition")
    checked = [as_condition(c, name) for c in conditions]
    if axis is not None:
        if len(checked) != 1:
            raise ArgumentTypeError(f"{name}: one condition is reduced over an axis, not {len(checked)}")
        reduction: Expr = reducer(checked[0], axis, where, init)
        return reduction
    result = checked[0]
    for condition in checked[1:]:
        result = combine(result, condition)
    return result
