"""tvm.arith of TVM 0.6: today's functions by the names that they had, and sets of integers made by functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl import arith
from tedsl.arith import IntervalSet, IntSet
from tedsl.ir.expr import Expr, Var


def DetectLinearEquation(expr: Expr, var_list: Sequence[Var]) -> list[Expr]:
    """The factor of each variable in `expr`, and what is left; an empty list where it is not linear."""
    return arith.detect_linear_equation(expr, var_list)


def DetectClipBound(expr: Expr, var_list: Sequence[Var]) -> list[Any]:
    """The lower and upper bound of each variable that a condition sets, None for none; an empty list where it sets others."""
    return arith.detect_clip_bound(expr, var_list)


def DeduceBound(var: Var, cond: Expr, hint_map: Mapping[Var, IntervalSet],
                relax_map: Mapping[Var, IntervalSet]) -> Any:
    """The set of a variable in which a condition holds, as arith.deduce_bound."""
    return arith.deduce_bound(var, cond, hint_map, relax_map)


def intset_single_point(point: Any) -> IntervalSet:
    """The set of one value."""
    return IntSet.single_point(point)


def intset_vector(vec: Expr) -> IntervalSet:
    """The set of all lanes of a ramp."""
    return IntSet.vector(vec)


def intset_interval(min_value: Any, max_value: Any) -> IntervalSet:
    """The set of the integers from one value to another, both included."""
    return IntervalSet(min_value, max_value)


def __getattr__(name: str) -> Any:
    return getattr(arith, name)
