"""What lowering finds out on its way, as values: the range of every loop of a schedule, and its loops without arguments."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.equal import structural_equal
from tedsl.lang.operation import PlaceholderOp
from tedsl.lower.arguments import Arguments, Memory
from tedsl.lower.attach import place_stages
from tedsl.lower.checks import bind_sizes
from tedsl.lower.normalize import make_plans
from tedsl.lower.plan import StagePlan
from tedsl.lower.regions.bounds import infer_bounds
from tedsl.lower.tails import check_tails
from tedsl.schedule.handles import Schedule

NOTHING = Arguments((), {}, {})


def infer_bound(sch: Schedule) -> FrozenDict[IterVar, Range]:
    """The range of every axis and every loop made of one, for the stages that have loops.

    An axis of a stage that is computed at a loop of another ranges over what is needed there; loops start at 0.
    """
    plans, _ = _planned(_checked(sch))
    return FrozenDict(_ranges(plans))


def schedule_ops(sch: Schedule, bounds: Mapping[IterVar, Range]) -> Stmt:
    """The loops of `sch` over buffers: every tensor that is computed is allocated, every input is free.

    `bounds` are those of `infer_bound`: a schedule has no other loops.
    """
    plans, analyzer = _planned(_checked(sch))
    known = _ranges(plans)
    for axis, found in known.items():
        given = bounds.get(axis) if isinstance(bounds, Mapping) else None
        if given is None or not structural_equal(given.min, found.min) or not structural_equal(given.extent, found.extent):
            raise ArgumentError(f"ScheduleOps: {axis.name} ranges over {found!r}, and bounds say {given!r}",
                                hint="give te.schedule.InferBound(s) of the same schedule")
    check_tails(plans, NOTHING)
    return place_stages(plans, Memory(sch.state, NOTHING), analyzer)


def _checked(sch: Schedule) -> Schedule:
    if not isinstance(sch, Schedule):
        raise ArgumentTypeError(f"a Schedule is needed, not {sch!r}", hint="s = te.create_schedule(C.op)")
    return sch


def _planned(sch: Schedule) -> tuple[list[StagePlan], Analyzer]:
    """The plans of all stages, with their regions; the analyzer knows the loops."""
    plans, _ = make_plans(sch.state)
    analyzer = Analyzer()
    inputs = [stage.op for stage in sch.state.stages if isinstance(stage.op, PlaceholderOp)]
    bind_sizes(analyzer, [dim for op in inputs for dim in op.shape_of(0)], at_least=0)
    infer_bounds(sch.state, plans, analyzer)
    return plans, analyzer


def _ranges(plans: list[StagePlan]) -> dict[IterVar, Range]:
    found: dict[IterVar, Range] = {}
    for plan in plans:
        for axis, extent in plan.extents.items():
            low: Expr = plan.mins.get(axis, build.const(0, axis.dtype))
            found[axis] = Range.from_min_extent(low, extent)
    return found
