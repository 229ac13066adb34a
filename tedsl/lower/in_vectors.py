"""Checks of stages that are computed inside a vectorized loop."""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.errors import LoweringError
from tedsl.ir.expr import Var
from tedsl.ir.iters import IterType
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import variables
from tedsl.lower.plan import StagePlan
from tedsl.schedule.causes import attached
from tedsl.schedule.vector_guests import why_not_in_lanes


def check_lanes(plans: Iterable[StagePlan]) -> None:
    """Refuse a stage inside a vector that cannot be computed for all lanes at once."""
    for plan in plans:
        lanes = _lanes_around(plan)
        if not lanes:
            continue
        names = ", ".join(dict.fromkeys(v.name for v in lanes))
        why = why_not_in_lanes(plan.stage)
        if why:
            raise LoweringError(f"{plan.name} is computed inside {names}, which is vectorized: {why}",
                                hint=f"compute {plan.name} at a loop outside of {names}", about=attached(plan.stage))
        for axis in plan.data_axes:
            if any(v in lanes for v in variables(plan.extents[axis])):
                raise LoweringError(
                    f"{plan.name} is computed inside {names}, which is vectorized, and each lane needs another number of "
                    f"elements of it: {shown(plan.extents[axis])} along {axis.name}",
                    hint=f"compute {plan.name} at a loop outside of {names}", about=attached(plan.stage))


def _lanes_around(plan: StagePlan) -> list[Var]:
    """The variables of the vectorized loops inside which `plan` is computed."""
    lanes = []
    while plan.host is not None:
        around = plan.host.loops[:plan.position + 1]
        lanes += [loop.var for loop in around if loop.attr.iter_type == IterType.VECTORIZED and loop.var is not None]
        plan = plan.host
    return lanes
