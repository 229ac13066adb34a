"""tile: two splits and a reorder."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ScheduleError
from tedsl.ir.iters import IterVar
from tedsl.schedule.primitives.marks import drop_marks
from tedsl.schedule.primitives.places.moved import guests_must_be_movable
from tedsl.schedule.primitives.reorder import reorder
from tedsl.schedule.primitives.split import positive_count, split
from tedsl.schedule.state import StageState, show


def tile(stage: StageState, x: Any, y: Any, x_factor: Any, y_factor: Any) -> tuple[IterVar, IterVar, IterVar, IterVar]:
    """Cut the loops `x`, `y` into tiles of `x_factor` by `y_factor`; returns xo, yo, xi, yi.

        for x: for y: body   →   for xo: for yo: for xi: for yi: body
    """
    directive = f"tile({show(x)}, {show(y)}, {show(x_factor)}, {show(y_factor)})"
    for loop, what, factor in ((x, "x_factor", x_factor), (y, "y_factor", y_factor)):
        stage.position_of(loop, directive)
        positive_count(stage, directive, what, factor, loop)
        stage.must_be_plain(loop, directive, "tile first, then annotate the resulting loops", but_for_marks=True)
    guests_must_be_movable(stage, [x, y], directive)
    if x is y:
        raise stage.refuse(directive, f"{x.name} is named twice", hint="tile takes two loops; split cuts one")
    before = stage.leaf_iter_vars, stage.all_iter_vars, stage.relations, stage.iter_var_attrs
    try:
        drop_marks(stage, [x, y], directive)
        xo, xi = split(stage, x, factor=x_factor)
        yo, yi = split(stage, y, factor=y_factor)
        reorder(stage, (xo, yo, xi, yi))
    except ScheduleError:
        stage.leaf_iter_vars, stage.all_iter_vars, stage.relations, stage.iter_var_attrs = before
        raise
    return xo, yo, xi, yi
