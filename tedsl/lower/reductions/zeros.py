"""skip_zeros: the conditions under which an iteration of a loop adds what may differ from zero.

    for k: B[y] = B[y] + P[y + k] * W[k]      ->      for k: if (1 <= y + k): B[y] = B[y] + P[y + k] * W[k]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import GE, GT, LE, LT, Expr, Reduce
from tedsl.ir.iters import IterType
from tedsl.ir.walk.visitor import post_order, uses
from tedsl.lang.zeros.borders import conditions_of
from tedsl.lower.plan import Loop, StagePlan
from tedsl.lower.site import Site
from tedsl.schedule.causes import annotated


def check_guests_inside(site: Site, at: int) -> None:
    """Refuses stages that are computed at loops inside of loop number `at`, which skips zeros: they may wait for other threads,
    or keep what a later iteration reads.
    """
    plan = site.plan
    for inner in range(at + 1, len(plan.loops)):
        if site.guests_at(inner):
            guest, loop = site.guests_at(inner)[0], plan.loops[at].leaf
            raise LoweringError(f"{plan.name} skips zeros at loop {loop.name}, and {guest.name} is computed at loop "
                                f"{plan.loops[inner].leaf.name} inside of it",
                                hint=f"compute {guest.name} at {loop.name} or further out, or skip zeros at an inner loop",
                                about=annotated(plan.stage, loop, "skips_zeros"))


def conditions_inside(plan: StagePlan, at: int, translate: Callable[[Expr], Expr], analyzer: Analyzer) -> list[Expr]:
    """The conditions, on loop number `at` and those around it, without which all iterations of the loops inside add zero.

    Each is an inequality between integers that depends on loop `at`: what the loops inside make of it at best. None depends on
    the lane of a loop of the sum: what the lanes add is added to the element at once, by those that are left out, too.
    """
    reduce, loops = plan.bodies[0], plan.loops
    lanes = [loop.var for loop in loops[:at + 1]
             if loop.var is not None and loop.leaf.is_reduction and loop.attr.iter_type == IterType.VECTORIZED]
    assert isinstance(reduce, Reduce), "skip_zeros takes sums only"
    found: list[Expr] = []
    for condition in conditions_of(reduce.source[0]):
        sides = _sides(translate(condition))
        var = loops[at].var
        if sides is None or var is None or not uses(build.equal(*sides), [var]):
            continue
        low, high = sides
        inner = [loop.var for loop in loops[at + 1:] if loop.var is not None]
        if uses(low, inner) and uses(high, inner):  # by loops that may be the same
            low, high = build.sub(low, high), build.const(0, low.dtype)
        least, most = _end(low, loops[at + 1:], 0, analyzer), _end(high, loops[at + 1:], 1, analyzer)
        if least is None or most is None:
            continue
        compare = build.less if isinstance(condition, (LT, GT)) else build.less_equal
        needed = analyzer.simplify(compare(least, most))
        if not build.is_true(needed) and not uses(needed, lanes):
            found.append(needed)
    return found


def _sides(condition: Expr) -> tuple[Expr, Expr] | None:
    """The side of an inequality that is less, and the other one; None for other conditions, and where integers may wrap:
    unsigned and narrow ones, which no index has.
    """
    if not isinstance(condition, (LT, LE, GT, GE)) or not condition.a.dtype.is_int or condition.a.dtype.lanes != 1:
        return None
    if any(isinstance(node, Expr) and _may_wrap(node.dtype) for node in post_order(condition)):
        return None
    return (condition.a, condition.b) if isinstance(condition, (LT, LE)) else (condition.b, condition.a)


def _may_wrap(dtype: DType) -> bool:
    return dtype.is_uint or (dtype.is_int and dtype.bits < 32)


def _end(value: Expr, loops: Sequence[Loop], which: int, analyzer: Analyzer) -> Expr | None:
    """The least (0) or the greatest (1) value in the iterations of `loops`; None if it is not found."""
    found: Expr | None = value
    for loop in reversed(loops):  # the extent of a loop may depend on those around it
        if loop.var is not None and found is not None and uses(found, [loop.var]):
            last = build.sub(loop.extent, build.const(1, loop.extent.dtype))
            found = relax(found, {loop.var: (build.const(0, loop.var.dtype), last)}, analyzer)[which]
    return found
