"""Conversion and checks of the numbers that users pass to directives."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Reduce
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import thread_axis_of

if TYPE_CHECKING:
    from tedsl.schedule.state import ScheduleState

OF_A_CALL = "what a call decides: sizes, strides, scalar arguments"


def whole_number(value: Any) -> int | None:
    """`value` as an int if it is an int, a constant integer expression or an integer of numpy; None for all else, bools too."""
    if isinstance(value, (bool, Expr)):
        return None if isinstance(value, bool) else build.as_int(value)
    try:
        return operator.index(value)
    except TypeError:
        return None


def why_many(value: Expr, schedule: ScheduleState) -> str:
    """The reason why `value` may change during a call: it reads a tensor or an axis. "" if it does not change."""
    if any(isinstance(node, (ProducerLoad, Reduce)) for node in post_order(value)):
        return f"{shown(value)} reads a tensor: its elements differ from iteration to iteration"
    used = variables(value)
    axes = {loop.var: loop.name for stage in schedule.stages for loop in (*stage.all_iter_vars, *stage.retired)} if used else {}
    for var in used:
        thread = thread_axis_of(var)
        name = axes.get(var) if thread is None else thread.name
        if name is not None:
            return f"{shown(value)} is about the axis {name}, which takes many values in a call"
    return ""
