"""What tensorization knows of a stage, as the functions of TVM that tests of schedules call by name.

    out_dom, in_dom = get_global_func("test.op.InferTensorizeRegion")(s[C], te.schedule.InferBound(s))
    body = get_global_func("test.op.MatchTensorizeBody")(s[C], out_dom, in_dom, intrin)

The first gives the ranges of the axes that the intrinsic computes in one iteration of the loops around it, and the regions of
the inputs that it reads; the second the formula of an intrinsic that computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.intrinsics.tensor_intrin import Region, TensorIntrin
from tedsl.lang.tensor import Tensor
from tedsl.lower.intrinsics.match import Matcher, Use
from tedsl.lower.intrinsics.region import Cover, covered, tensorized_at
from tedsl.lower.regions.bound_map import planned
from tedsl.runtime.functions import register_func
from tedsl.schedule.stage import Stage


@register_func("test.op.InferTensorizeRegion", override=True)
def infer_tensorize_region(stage: Stage, dom_map: Mapping[IterVar, Range]) -> tuple[FrozenDict[IterVar, Range],
                                                                                    FrozenDict[Tensor, tuple[Range, ...]]]:
    """Returns the range of each axis of a tensorized stage, and the region of each input, in the variables of the loops around.
    dom_map: what InferBound gives for the schedule.

    Raises ArgumentError for a stage that is not tensorized, LoweringError for an intrinsic that does not fit.
    """
    matcher, cover = _matcher(stage)
    use = matcher.use()
    return (FrozenDict({axis: Range.from_min_extent(low, extent) for axis, (low, extent) in cover.items()}),
            FrozenDict({region.tensor: _ranges(of, region, use) for of, region in use.inputs.items()}))


@register_func("test.op.MatchTensorizeBody", override=True)
def match_tensorize_body(stage: Stage, out_dom: Any, in_dom: Any, intrin: TensorIntrin) -> tuple[Expr, ...]:
    """Returns the formula of `intrin`, which is that of the tensorized loops; LoweringError if it is not."""
    if not isinstance(intrin, TensorIntrin):
        raise ArgumentTypeError(f"MatchTensorizeBody takes an intrinsic, not {shown(intrin)}",
                                hint="intrin = te.decl_tensor_intrin(...)")
    matcher, _ = _matcher(stage)
    matcher.intrin = intrin
    matcher.use()
    return tuple(intrin.op.body)


def _matcher(stage: Stage) -> tuple[Matcher, Cover]:
    if not isinstance(stage, Stage):
        raise ArgumentTypeError(f"a stage is needed, not {shown(stage)}", hint="s[C]")
    program, analyzer = planned(stage.schedule)
    for plan in program.plans:
        at = tensorized_at(plan)
        if plan.stage is stage.state and at is not None:
            outside: dict[IterVar, Expr] = {loop.leaf: loop.leaf.var for loop in plan.loops[:at]}
            for loop in plan.loops[:at]:
                analyzer.bind(loop.leaf.var, Range.from_min_extent(build.const(0, loop.leaf.dtype), loop.extent))
            cover = covered(plan, at, outside, analyzer)
            return Matcher(plan, at, cover, analyzer), cover
    raise ArgumentError(f"no loop of {stage.state.name} is tensorized", hint="s[C].tensorize(loop, intrin)")


def _ranges(of: Tensor, region: Region, use: Use) -> tuple[Range, ...]:
    """Returns a region as ranges: `of` is the tensor of the intrinsic that stands for it."""
    extents: list[Expr] = [build.const(1, low.dtype) for low in region.mins]
    for dim, extent in zip(region.dims, of.shape):
        extents[dim] = substitute(extent, use.values)
    simplify = Analyzer().simplify
    return tuple(Range.from_min_extent(simplify(low), simplify(extent)) for low, extent in zip(region.mins, extents))
