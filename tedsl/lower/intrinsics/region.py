"""The range of each axis of the formula that the loops inside a tensorized one cover in one iteration of the outer loops.

    for yo { for yi in 0..16 tensorized { for k { C[yo*16 + yi] += ... } } }      y: yo*16 .. yo*16 + 15, k: all of it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import variables
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.operation import ComputeOp
from tedsl.lower.plan import Loop, StagePlan
from tedsl.lower.regions.propagate import point, reaches_up, whole
from tedsl.lower.site import Site
from tedsl.schedule.causes import annotated, attached, said
from tedsl.schedule.state import find

IMPORTS = ("import_llvm", "import_c")  # pragmas that mean the whole function


def tensorized_at(plan: StagePlan) -> int | None:
    """The number of the loop that an intrinsic replaces with all loops inside it; None if there is none."""
    if not isinstance(plan.op, ComputeOp):
        return None
    if isinstance(plan.op, TensorComputeOp):
        return len(plan.loops) - len(plan.op.without_loops)
    return next((at for at, loop in enumerate(plan.loops) if loop.attr.tensor_intrin is not None), None)


def check_inside(site: Site, at: int) -> None:
    """Refuse stages computed inside the tensorized loops, and annotated loops (parallel, bound, pragmas) among them."""
    plan = site.plan
    first = plan.loops[at].leaf.name if at < len(plan.loops) else ""
    for position in range(at, len(plan.loops)):
        for guest in site.guests_at(position):
            raise LoweringError(f"{guest.name} is computed at loop {plan.loops[position].leaf.name} of {plan.name}, inside "
                                f"what the intrinsic at loop {first} replaces",
                                hint=f"compute {guest.name} at a loop outside of {first}", about=attached(guest.stage))
    for loop in plan.loops[at:]:
        notes = plan.stage.annotation_of(loop.leaf)
        pragmas = [key.value for key in loop.attr.pragma_keys if key.value not in IMPORTS]
        if pragmas or (notes is not None and loop.attr.tensor_intrin is None):
            what = f"marked with the pragma {pragmas[0]}" if pragmas else notes
            raise LoweringError(f"loop {loop.leaf.name} of {plan.name} is {what}, and an intrinsic at loop {first} replaces it",
                                hint=f"leave the loops inside of {first} plain", about=annotated(plan.stage, loop.leaf))
    if plan.stage.init_at is not None and plan.stage.init_at in {loop.leaf for loop in plan.loops[at:]}:
        raise LoweringError(f"the start values of {plan.name} stand at loop {plan.stage.init_at.name}, inside what the "
                            f"intrinsic at loop {first} replaces", hint=f"decompose_reduction at a loop outside of {first}",
                            about=said(plan.stage, "init_at"))


def outer_conditions(plan: StagePlan, at: int, conditions: list[Expr], analyzer: Analyzer) -> list[Expr]:
    """The guards that are invariant over the loops inside the intrinsic. Refuses a guard that excludes a part of the region."""
    inside = {loop.var: loop.leaf.name for loop in plan.loops[at:] if loop.var is not None}
    kept = []
    for condition in conditions:
        cut = [inside[v] for v in variables(condition) if v in inside]
        if not cut:
            kept.append(condition)
        elif not analyzer.can_prove(condition):
            raise LoweringError(
                f"{plan.name}: the intrinsic at loop {plan.loops[at].leaf.name} always computes its whole region, and the "
                f"guard {shown(condition)} leaves out iterations of loop {', '.join(dict.fromkeys(cut))} inside it: the "
                "extents do not divide",
                hint="split by a factor that divides the extent, or pad the tensors to a multiple of it", about=cut[0])
    return kept


Cover = Mapping[IterVar, tuple[Expr, Expr]]  # axis -> first value, number of values


def covered(plan: StagePlan, at: int, outside: Mapping[IterVar, Expr], analyzer: Analyzer) -> Cover:
    """The range of each axis that the inner loops cover when the outer loops have the values `outside`.

    Refuses a range that the loops do not cover completely.
    """
    reaches = {loop.leaf: point(outside[loop.leaf], loop.extent) if loop.leaf in outside else whole(loop.extent)
               for loop in plan.loops}
    reached = reaches_up(plan, reaches, analyzer)
    cover: dict[IterVar, tuple[Expr, Expr]] = {}
    for axis in plan.axes:
        reach = reached[axis]
        extent = plan.extents[axis] if reach.full else analyzer.simplify(build.add(build.sub(reach.high, reach.low), 1))
        cover[axis] = analyzer.simplify(build.add(plan.mins[axis], reach.low)), build.cast(axis.dtype, extent)
    _refuse_holes(plan, plan.loops[at:], cover, outside, analyzer)
    return cover


def _refuse_holes(plan: StagePlan, inside: Sequence[Loop], cover: Cover, outside: Mapping[IterVar, Expr],
                  analyzer: Analyzer) -> None:
    """Refuses inner loops with fewer iterations than the region has elements, which cannot compute all of them."""
    steps = _product([loop.extent for loop in inside if loop.leaf not in outside])
    elements = _product([extent for _, extent in cover.values()])
    if steps is elements or build.as_int(analyzer.simplify(build.sub(steps, elements))) == 0:
        return
    parts = [f"{axis.name}: {shown(extent)} from {shown(low)} on" for axis, (low, extent) in cover.items()]
    raise LoweringError(f"{plan.name}: the loops {', '.join(loop.leaf.name for loop in inside)} run through {shown(steps)} "
                        f"elements, scattered over a region of {shown(elements)} ({'; '.join(parts)})",
                        hint="an intrinsic takes neighbouring elements: the inner part of a split goes inside, the outer part "
                             "outside", about=said(plan.stage, "leaf_iter_vars"))


def _product(extents: list[Expr]) -> Expr:
    return reduce(build.product_of_extents, extents) if extents else build.const(1, "int32")


def position_of(plan: StagePlan, leaf: object) -> int | None:
    """The number of the loop `leaf` in `plan`; None if it is not one of its loops."""
    return find([loop.leaf for loop in plan.loops], leaf)
