"""Loops in which elements of several steps of a scan stand side by side."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.domains import is_multiple, written_tiling
from tedsl.schedule.relations import Fuse, Rebase, Relation, Split
from tedsl.schedule.scan.stages import scans_of, step_axes
from tedsl.schedule.state import StageState


def must_not_mix_steps(stage: StageState, directive: str) -> None:
    """Refuses loops of a stage that depends on a state if a tensor with a dimension for each of them would hold elements of
    several steps side by side: a step would compute the tiles around its row, and read rows that are not there yet.
    """
    scans = scans_of(stage.schedule)
    if stage not in scans.stateful or not stage.relations or not isinstance(stage.op, ComputeOp):
        return
    steps, extents = step_axes(stage), written_tiling(stage).extents
    axes = stage.op.axis
    widths: dict[IterVar, Expr] = {axes[at]: build.const(1, axes[at].dtype) if alone else Var("width", axes[at].dtype)
                                   for at, alone in steps.items()}
    for relation in stage.relations:
        if not _keeps_apart(relation, widths, extents):
            axis, scan = axes[next(iter(steps))].name, scans.steps[stage].name
            loops = [relation.parent.name] if isinstance(relation, Split) else [loop.name for loop in stage.leaf_iter_vars]
            raise stage.refuse(directive, f"{axis} counts the steps of {scan}, and the loops made of {' and '.join(loops)} mix "
                               "the rows of several steps: the copy, in the order of the loops, would need rows that are not "
                               "there yet", hint="call cache_write first, then split and fuse the loops of the new stage")


def _keeps_apart(relation: Relation, widths: dict[IterVar, Expr], extents: Mapping[IterVar, Expr]) -> bool:
    """Adds the loops that `relation` makes to `widths`; False if elements of several steps are side by side in them.

    widths: of the loops that count steps, each a number that depends on the step alone, times the width, plus an index in a
    row, below the width.
    """
    match relation:
        case Split(parent=p, outer=o, inner=i) if p in widths:
            width, part = widths[p], extents[i]
            if build.as_int(width) == 1:
                widths[o] = widths[i] = width
            elif is_multiple(width, part, Analyzer()):
                widths[o] = build.floordiv(width, part)
            elif is_multiple(part, width, Analyzer()):
                widths[o], widths[i] = build.const(1, o.dtype), width
            else:
                return False
        case Fuse(outer=o, inner=i, fused=f) if o in widths or i in widths:
            if i not in widths:
                widths[f] = build.product_of_extents(widths[o], extents[i])
            elif build.as_int(extents[o]) == 1 or (o in widths and build.as_int(widths[o]) == 1):
                widths[f] = widths[i]
            else:
                return False
        case Rebase(parent=p, rebased=r) if p in widths:
            widths[r] = widths[p]
    return True
