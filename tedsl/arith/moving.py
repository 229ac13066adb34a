"""How the region that a loop body accesses moves from one iteration to the next.

rows y .. y + 2 in iteration y:   dimension 0 moves by 1 and overlaps by 2
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import BufferLoad, Expr, Load, ProducerLoad, Var
from tedsl.ir.iters import Range
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record


@record(eq=False)
class Moving:
    """Dimension `dim` of a region moves forward by `step` per iteration; the first `overlap` of its `extent` elements are in
    the previous region too.
    """

    dim: int
    step: Expr
    extent: Expr
    overlap: Expr


def moving_dimension(region: Sequence[Range], var: Var, analyzer: Analyzer) -> Moving | str:
    """Returns how `region` moves with the loop variable `var`; as a str the reason why no part of it can be kept."""
    moving = [dim for dim, part in enumerate(region) if _uses(part.min, var)]
    if any(part.extent is None or _uses(part.extent, var) for part in region):
        return "how much of it is computed changes from one iteration to the next"
    if not moving:
        return "every iteration needs the same part of it"
    if len(moving) > 1:
        return f"its region moves in {len(moving)} dimensions at once"
    dim = moving[0]
    low, extent = region[dim].min, region[dim].extent
    assert extent is not None
    if any(isinstance(node, (Load, BufferLoad, ProducerLoad)) for node in post_order(low)):
        return "where its region starts depends on data"
    step = analyzer.simplify(build.sub(substitute(low, {var: build.add(var, 1)}), low))
    if _uses(step, var):
        return "its region does not move by the same step in every iteration"
    if not analyzer.can_prove(build.greater_equal(step, 0)):
        return "its region does not move forwards"
    overlap = analyzer.simplify(build.sub(extent, step))
    if analyzer.can_prove(build.less_equal(overlap, 0)):
        return "consecutive iterations need no common part of it"
    if not analyzer.can_prove(build.greater_equal(overlap, 0)):
        overlap = build.maximum(overlap, 0)
    return Moving(dim, step, extent, overlap)


def _uses(expr: Expr, var: Var) -> bool:
    return any(node is var for node in post_order(expr))
